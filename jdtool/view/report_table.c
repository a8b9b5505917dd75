#include "jdtool/view/report_table.h"

#include "jdtool/base/array.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RAN_SHARE 0.15 /* a form that took less of a method is not named */

/* ---- Methods and lines ---- */

/* Rows of the event stand before those that have nothing of it. */
static uint32_t rows_with_weight(const struct report_table *rows, const struct tallies *tallies)
{
    const struct method_tallies *t = rows->tallies;
    uint32_t count = 0;
    for (uint32_t i = 0; i < tallies->count; i++) {
        const uint64_t *weights = method_tally_weights(t, tallies, rows->order.list[i]);
        count += weights[rows->event] || weights[t->events + rows->event];
    }
    return count;
}

static const struct tallies *rows_of(const struct report_table *rows)
{
    return rows->by_line ? &rows->tallies->lines : &rows->tallies->methods;
}

int report_table_make(const struct method_tallies *t, uint32_t event, bool by_line,
                      struct report_table *rows)
{
    *rows = (struct report_table){.tallies = t, .event = event, .by_line = by_line};
    int err = method_tallies_order(t, rows_of(rows), event, false, &rows->order);
    err = err ? err : method_tallies_order(t, &t->lines, event, true, &rows->lines);
    err = err ? err : method_tallies_order(t, &t->forms, event, true, &rows->forms);
    rows->count = err ? 0 : rows_with_weight(rows, rows_of(rows));
    return err;
}

void report_table_free(struct report_table *rows)
{
    tallies_order_free(&rows->order);
    tallies_order_free(&rows->lines);
    tallies_order_free(&rows->forms);
    *rows = (struct report_table){0};
}

/* The line of a method that took the most itself; its first one where none did. */
static uint32_t hottest_line(const struct report_table *rows, uint32_t function)
{
    const struct method_tallies *t = rows->tallies;
    uint32_t i = rows->lines.first[function];
    const struct tally *line = tally_at(&t->lines, &rows->lines, i, function);
    if (line && method_tally_weights(t, &t->lines, rows->lines.list[i])[rows->event] > 0) {
        return line->what;
    }
    return t->profile->functions[function].first_line;
}

struct report_row report_table_at(const struct report_table *rows, uint32_t index)
{
    const struct tallies *tallies = rows_of(rows);
    const struct tally *tally = &tallies->list[rows->order.list[index]];
    const uint64_t *weights = method_tally_weights(rows->tallies, tallies, rows->order.list[index]);
    return (struct report_row){
        .function = tally->function,
        .line = rows->by_line ? tally->what : hottest_line(rows, tally->function),
        .self = weights[rows->event],
        .total = weights[rows->tallies->events + rows->event],
    };
}

void report_row_place(const struct report_table *rows, const struct report_row *row,
                      char text[CELL_MAX])
{
    const struct profile_function *function = &rows->tallies->profile->functions[row->function];
    const char *file = function->file ? basename(function->file) : NULL;
    if (file && row->line) {
        snprintf(text, CELL_MAX, "%s:%" PRIu32, file, row->line);
    } else {
        snprintf(text, CELL_MAX, "%s",
                 file               ? file
                 : function->module ? profile_module_name(function->module)
                                    : "");
    }
}

static const char *form_name(uint32_t form)
{
    switch (METHOD_FORM_KIND(form)) {
    case RESOLVED_KERNEL:
        return "kernel";
    case RESOLVED_NATIVE:
        return "native";
    case RESOLVED_STUB:
        return "stub";
    case RESOLVED_COMPILED:
        return METHOD_FORM_TIER(form) == 0  ? "compiled"
               : METHOD_FORM_TIER(form) < 4 ? (METHOD_FORM_IS_OSR(form) ? "C1 OSR" : "C1")
               : METHOD_FORM_TIER(form) > 4 ? (METHOD_FORM_IS_OSR(form) ? "Graal OSR" : "Graal")
               : METHOD_FORM_IS_OSR(form)   ? "C2 OSR"
                                            : "C2";
    case RESOLVED_INLINED:
        return "inlined";
    case RESOLVED_INTERPRETED:
        return "interpreted";
    default:
        return "";
    }
}

void report_row_ran(const struct report_table *rows, uint32_t index, char text[CELL_MAX])
{
    const struct method_tallies *t = rows->tallies;
    const struct tallies *tallies = rows_of(rows);
    const uint64_t *weights = method_tally_weights(t, tallies, rows->order.list[index]);
    uint32_t function = tallies->list[rows->order.list[index]].function;
    uint32_t at = rows->event + (weights[rows->event] == 0 ? t->events : 0);
    size_t used = 0;
    uint32_t named = 0;
    text[0] = '\0';
    const struct tally *form;
    for (uint32_t i = rows->forms.first[function];
         (form = tally_at(&t->forms, &rows->forms, i, function)) && named < 2; i++) {
        uint64_t weight = method_tally_weights(t, &t->forms, rows->forms.list[i])[at];
        if (weight > 0 && (double)weight >= RAN_SHARE * (double)weights[at]) {
            used += (size_t)snprintf(text + used, CELL_MAX - used, "%s%s", named++ ? ", " : "",
                                     form_name(form->what));
        }
    }
}

/* ---- Threads ---- */

static int compare_threads(const void *a, const void *b)
{
    const struct report_thread *x = a, *y = b;
    return ORDER(y->weight, x->weight)
               ?: ORDER(!x->samples, !y->samples)
               ?: ORDER(x->track, y->track);
}

struct report_thread *report_threads(const struct profile *profile, uint32_t event, uint32_t *count)
{
    struct report_thread *rows = calloc((size_t)profile->track_count + 1, sizeof *rows);
    *count = 0;
    if (!rows) {
        return NULL;
    }
    for (uint32_t i = 0; i < profile->track_count; i++) {
        rows[i].track = i;
    }
    for (uint32_t i = 0; i < profile->sample_count; i++) {
        const struct profile_sample *sample = &profile->samples[i];
        struct report_thread *row = &rows[profile->threads[sample->thread].track];
        row->weight += sample->event == event ? sample->weight : 0;
        row->samples += sample->event == event ? sample->count : 0;
    }
    qsort(rows, profile->track_count, sizeof *rows, compare_threads);
    while (*count < profile->track_count && rows[*count].samples) {
        ++*count;
    }
    return rows;
}
