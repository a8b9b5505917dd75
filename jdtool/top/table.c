#include "jdtool/top/table.h"

#include "format/fnv1a.h"
#include "jdtool/base/array.h"
#include "jdtool/base/text.h"
#include "jdtool/view/report_table.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_MAX   1000 /* nobody looks further down */
#define AT_WIDTH   26
#define RAN_WIDTH  12
#define NAME_MIN   30
#define NAME_START 19 /* columns before a method's name */

struct maker {
    const struct profile *view;
    const struct top_shared *shared;
    const struct top_wanted *wanted;
    struct top_table *table;
    struct packed_output *output;
    uint64_t weight; /* of the event, of all samples of the view */
    bool is_time;    /* weights are ns */
};

static bool fits(const struct maker *m, const char *name)
{
    return m->table->count < ROWS_MAX && strstr(name, m->wanted->match);
}

/* ---- Rows ---- */

static int begin_row(struct maker *m, uint64_t key, uint32_t id, uint64_t weight)
{
    struct top_table *table = m->table;
    if (ARRAY_RESERVE(table->rows, table->count, table->room)) {
        return -ENOMEM;
    }
    table->rows[table->count++] =
        (struct top_row){.key = key,
                         .id = id,
                         .share = m->weight ? (double)weight / (double)m->weight : 0,
                         .at = (size_t)packed_output_size(m->output)};
    return 0;
}

static void end_row(struct maker *m, const char *name)
{
    struct top_row *row = &m->table->rows[m->table->count - 1];
    row->name_at = (size_t)packed_output_size(m->output);
    row->size = row->name_at - row->at;
    row->name_size = strlen(name);
    packed_output_text(m->output, name);
}

static void put_head(struct maker *m, const char *head)
{
    packed_output_text(m->output, head);
    m->table->head_size = strlen(head);
}

static void put_rest(struct maker *m, const char *text, uint32_t used)
{
    cell_put(m->output, text, m->wanted->width > used ? m->wanted->width - used : 1, false);
}

static void put_share(struct maker *m, uint64_t weight)
{
    packed_output_printf(m->output, "%7.2f%%",
                         m->weight ? 100.0 * (double)weight / (double)m->weight : 0);
}

/* How much of a processor it had; of other events than time its share. */
static void put_load(struct maker *m, uint64_t weight)
{
    if (m->is_time) {
        packed_output_printf(m->output, "%7.1f%%",
                             m->wanted->span ? 100.0 * (double)weight / (double)m->wanted->span
                                             : 0);
    } else {
        put_share(m, weight);
    }
}

/* ---- JVMs ---- */

const char *top_jvm_name(const struct top_shared *shared, uint32_t pid)
{
    for (size_t i = 0; i < TOP_JVMS_MAX && pid; i++) {
        if (atomic_load(&shared->jvms[i].pid) == pid) {
            return shared->jvms[i].name;
        }
    }
    return "";
}

struct jvm_row {
    uint32_t pid;
    uint64_t weight, samples;
};

static int compare_jvms(const void *a, const void *b)
{
    const struct jvm_row *x = a, *y = b;
    return ORDER(y->weight, x->weight) ?: ORDER(x->pid, y->pid);
}

/* Those that are looked after; programs that they have started are counted with none. */
static void weigh_jvms(const struct maker *m, struct jvm_row *rows, uint32_t count)
{
    const struct profile *view = m->view;
    for (uint32_t i = 0; i < view->sample_count; i++) {
        const struct profile_sample *sample = &view->samples[i];
        uint32_t pid = view->threads[sample->thread].pid;
        for (uint32_t k = 0; k < count && sample->event == m->wanted->event; k++) {
            if (rows[k].pid == pid) {
                rows[k].weight += sample->weight;
                rows[k].samples += sample->count;
                break;
            }
        }
    }
}

static int make_jvms(struct maker *m)
{
    struct jvm_row rows[TOP_JVMS_MAX];
    uint32_t count = 0;
    for (size_t i = 0; i < TOP_JVMS_MAX; i++) {
        uint32_t pid = atomic_load(&m->shared->jvms[i].pid);
        if (pid) {
            rows[count++] = (struct jvm_row){.pid = pid};
        }
    }
    weigh_jvms(m, rows, count);
    qsort(rows, count, sizeof *rows, compare_jvms);
    put_head(m, m->is_time ? "     CPU   SAMPLES       PID  JVM"
                           : "   SHARE   SAMPLES       PID  JVM");
    for (uint32_t i = 0; i < count; i++) {
        const char *name = top_jvm_name(m->shared, rows[i].pid);
        if (!fits(m, name)) {
            continue;
        }
        if (begin_row(m, rows[i].pid, rows[i].pid, rows[i].weight)) {
            return -ENOMEM;
        }
        put_load(m, rows[i].weight);
        packed_output_printf(m->output, "%10" PRIu64 "%10" PRIu32 "  ", rows[i].samples,
                             rows[i].pid);
        put_rest(m, name, 30);
        end_row(m, name);
    }
    return 0;
}

/* ---- Threads ---- */

static int make_threads(struct maker *m)
{
    const struct profile *view = m->view;
    uint32_t count;
    struct report_thread *rows = report_threads(view, m->wanted->event, &count);
    int err = rows ? 0 : -ENOMEM;
    put_head(m, m->is_time ? "     CPU   SAMPLES       TID  THREAD"
                           : "   SHARE   SAMPLES       TID  THREAD");
    for (uint32_t i = 0; i < count && !err; i++) {
        const struct profile_track *track = &view->tracks[rows[i].track];
        const char *name = view->threads[track->thread].comm;
        if (!fits(m, name)) {
            continue;
        }
        err = begin_row(m, track->tid, track->tid, rows[i].weight);
        if (!err) {
            put_load(m, rows[i].weight);
            packed_output_printf(m->output, "%10" PRIu64 "%10" PRIu32 "  ", rows[i].samples,
                                 track->tid);
            put_rest(m, name, 30);
            end_row(m, name);
        }
    }
    free(rows);
    return err;
}

/* ---- Methods and lines ---- */

/* Of a narrow terminal the name has more than the columns behind it: those are left out. */
struct widths {
    uint32_t name, at, ran;
};

static struct widths widths_of(const struct maker *m)
{
    uint32_t left = m->wanted->width > NAME_START ? m->wanted->width - NAME_START : 0;
    struct widths widths = {0};
    if (left >= NAME_MIN + AT_WIDTH + 2) {
        widths.at = AT_WIDTH;
        left -= AT_WIDTH + 2;
    }
    if (left >= NAME_MIN + RAN_WIDTH + 2) {
        widths.ran = RAN_WIDTH;
        left -= RAN_WIDTH + 2;
    }
    widths.name = left > 1 ? left : 1;
    return widths;
}

static void put_column(struct maker *m, const char *text, uint32_t width)
{
    if (width) {
        packed_output_text(m->output, "  ");
        cell_put(m->output, text, width, true);
    }
}

static int put_method(struct maker *m, const struct report_table *rows, uint32_t index)
{
    struct report_row row = report_table_at(rows, index);
    const char *name = m->view->functions[row.function].name;
    char text[CELL_MAX];
    struct widths widths = widths_of(m);
    uint64_t key = fnv1a(FNV1A_START, name) + (m->wanted->kind == TOP_LINES ? row.line : 0);
    if (!fits(m, name)) {
        return 0;
    }
    if (begin_row(m, key, 0, row.self)) {
        return -ENOMEM;
    }
    put_share(m, row.self);
    put_share(m, row.total);
    packed_output_text(m->output, "   ");
    cell_put(m->output, cell_fit_name(name, widths.name, text), widths.name, true);
    report_row_place(rows, &row, text);
    cell_fit_place(text, widths.at);
    put_column(m, text, widths.at);
    report_row_ran(rows, index, text);
    put_column(m, text, widths.ran);
    end_row(m, name);
    return 0;
}

static int make_methods(struct maker *m, const struct method_tallies *tallies)
{
    struct report_table rows;
    int err = report_table_make(tallies, m->wanted->event, m->wanted->kind == TOP_LINES, &rows);
    struct widths widths = widths_of(m);
    packed_output_text(m->output, "    SELF   TOTAL   ");
    cell_put(m->output, m->wanted->kind == TOP_LINES ? "LINE OF" : "METHOD", widths.name, true);
    put_column(m, "AT", widths.at);
    put_column(m, "RAN", widths.ran);
    m->table->head_size = (size_t)packed_output_size(m->output);
    for (uint32_t i = 0; !err && i < rows.count; i++) {
        err = put_method(m, &rows, i);
    }
    report_table_free(&rows);
    return err;
}

/* ---- Events ---- */

static int make_events(struct maker *m)
{
    const struct recording *recording = m->view->recording;
    put_head(m, "    SAMPLES          WEIGHT  EVENT");
    for (uint32_t event = 0; event < recording->event_count; event++) {
        const struct recorded_event *its = &recording->events[event];
        struct profile_sum sum = profile_sum(m->view, event);
        char text[TEXT_SIZE_MAX];
        if (!fits(m, its->name)) {
            continue;
        }
        if (begin_row(m, event, event, 0)) {
            return -ENOMEM;
        }
        (void)text_weight(sum.weight, its->unit, text);
        packed_output_printf(m->output, "%11" PRIu64 "%16s  ", sum.samples, text);
        put_rest(m, its->name, 29);
        end_row(m, its->name);
    }
    return 0;
}

/* ---- All of them ---- */

static int make(struct maker *m, const struct method_tallies *tallies)
{
    switch (m->wanted->kind) {
    case TOP_JVMS:
        return make_jvms(m);
    case TOP_THREADS:
        return make_threads(m);
    case TOP_EVENTS:
        return make_events(m);
    default:
        return make_methods(m, tallies);
    }
}

int top_table_make(const struct profile *view, const struct method_tallies *tallies,
                   const struct top_shared *shared, const struct top_wanted *wanted,
                   struct top_table *table)
{
    struct maker m = {.view = view, .shared = shared, .wanted = wanted, .table = table};
    const struct recorded_event *event = &view->recording->events[wanted->event];
    size_t size;
    m.weight = profile_sum(view, wanted->event).weight;
    m.is_time = event_is_time(event);
    int err = packed_output_open_memory(false, &m.output);
    if (err) {
        return -ENOMEM;
    }
    err = make(&m, tallies);
    if (err) {
        packed_output_abort(m.output);
        return err;
    }
    uint8_t *bytes;
    err = packed_output_take(m.output, &bytes, &size);
    table->text = err ? NULL : (char *)bytes;
    return err ? -ENOMEM : 0;
}

void top_table_free(struct top_table *table)
{
    free(table->text);
    free(table->rows);
    *table = (struct top_table){0};
}
