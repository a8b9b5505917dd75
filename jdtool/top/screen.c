#include "jdtool/top/screen.h"

#include "jdtool/base/clock.h"
#include "jdtool/base/packed_output.h"
#include "jdtool/resolve/source_texts.h"
#include "jdtool/top/table.h"
#include "jdtool/top/terminal.h"
#include "jdtool/view/annotate.h"
#include "jdtool/view/cells.h"
#include "jdtool/view/report_text.h"

#include <curses.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- Source with what its lines took ---- */

#define LINES_MAX (UINT32_C(1) << 20) /* of a file; a line of a higher number is a lie */

struct line_weights {
    uint64_t self, total;
    bool is_its; /* of the function itself */
};

static bool same_file(const char *one, const char *other)
{
    return one && other && strcmp(one, other) == 0;
}

static uint32_t last_line(const struct method_tallies *t, const char *file)
{
    uint32_t last = 0;
    for (uint32_t i = 0; i < t->lines.count; i++) {
        const struct tally *tally = &t->lines.list[i];
        if (same_file(t->profile->functions[tally->function].file, file) &&
            tally->what < LINES_MAX && tally->what > last) {
            last = tally->what;
        }
    }
    return last;
}

/* By line, for the caller to free. NULL: no memory. */
static struct line_weights *weigh(const struct method_tallies *t, uint32_t function, uint32_t event,
                                  uint32_t last)
{
    struct line_weights *lines = calloc((size_t)last + 1, sizeof *lines);
    const char *file = t->profile->functions[function].file;
    for (uint32_t i = 0; lines && i < t->lines.count; i++) {
        const struct tally *tally = &t->lines.list[i];
        if (same_file(t->profile->functions[tally->function].file, file) && tally->what <= last) {
            const uint64_t *weights = method_tally_weights(t, &t->lines, i);
            lines[tally->what].self += weights[event];
            lines[tally->what].total += weights[t->events + event];
            lines[tally->what].is_its |= tally->function == function;
        }
    }
    return lines;
}

static void put_share(struct packed_output *output, uint64_t weight, uint64_t whole)
{
    if (weight) {
        packed_output_printf(output, "%7.2f%%", whole ? 100.0 * (double)weight / (double)whole : 0);
    } else {
        packed_output_text(output, "        ");
    }
}

/* A line of source, tabs as blanks. */
static void put_text(struct packed_output *output, const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '\t') {
            packed_output_text(output, "    ");
        } else {
            packed_output_put(output, &text[i], 1);
        }
    }
}

/*
 * Writes the file of a function, or where its text is not to be had, those of its lines that were
 * sampled. whole: the weight that is 100 %. Sets *hottest to the row (from 0) of the function's
 * line that took the most itself. 0 or -ENOMEM.
 */
static int source_view_put(const struct method_tallies *tallies, uint32_t function, uint32_t event,
                           uint64_t whole, struct source_texts *sources,
                           struct packed_output *output, uint32_t *hottest)
{
    const char *file = tallies->profile->functions[function].file;
    uint32_t last = last_line(tallies, file);
    struct line_weights *lines = weigh(tallies, function, event, last);
    char *text = NULL;
    size_t size;
    int err = lines ? 0 : -ENOMEM;
    if (!err && file && sources) {
        err = source_texts_read(sources, file, &text, &size);
    }
    *hottest = 0;
    if (!err && !text) {
        packed_output_printf(output, "(no source of %s: name its directory with --source-path)\n",
                             file ? file : "it");
    }
    const char *at = text;
    uint64_t most = 0;
    uint32_t row = text ? 0 : 1;
    for (uint32_t line = 1; !err && (at ? *at != '\0' : line <= last); line++) {
        struct line_weights weights = line <= last ? lines[line] : (struct line_weights){0};
        size_t length = at ? strcspn(at, "\r\n") : 0;
        if (at || weights.total) {
            if (weights.is_its && weights.self > most) {
                most = weights.self;
                *hottest = row;
            }
            row++;
            put_share(output, weights.self, whole);
            put_share(output, weights.total, whole);
            packed_output_printf(output, " %5" PRIu32 "  ", line);
            put_text(output, at, length);
            packed_output_text(output, "\n");
        }
        if (at) {
            at += length;
            at += *at == '\r';
            at += *at == '\n';
        }
    }
    free(text);
    free(lines);
    return err;
}

#define REFRESH_MS 1000
#define TELLS_MS   600  /* samples wait so long for what the JVM tells of its code (stream.h) */
#define SETTLE_MS  2000 /* a window that began anew is not shown before it has this */
#define MATCH_MAX  64
#define HOT_SHARE  0.05
#define WARM_SHARE 0.005
#define TABLE_TOP  3 /* lines above the rows */
#define CONTEXT    6 /* lines above the hottest one */

enum { KEY_ESCAPE = 27, KEY_CTRL_C = 3, KEY_BACK = 127, KEY_TABULATOR = '\t', KEY_RETURN = '\r' };

enum detail { NO_DETAIL, STACKS, SOURCE, ASSEMBLY };

/* Text in lines, and the part of it that is seen. */
struct pager {
    char *text;
    size_t size;
    uint32_t top;
    bool is_placed; /* it was scrolled to where it is hot, or by the user */
};

struct screen {
    const struct screen_options *options;
    struct profile view;
    struct method_tallies tallies;
    struct top_table table;
    enum top_kind kind;
    uint32_t event;
    struct window_choice choice;
    char thread[64]; /* what choice.tid is called */
    uint64_t key;    /* of the chosen row, which may move */
    uint32_t chosen, first;
    char match[MATCH_MAX];
    bool types; /* keys go into the match */
    enum detail detail;
    char *method; /* that the detail is of */
    struct pager pager;
    uint64_t next;   /* ns: when it is looked again */
    uint64_t frozen; /* ns: what is shown ended then; 0: it goes on */
    uint64_t span;
    struct profile_sum sum; /* of the event */
};

/* What has happened by then is told by now. */
static uint64_t window_end(void)
{
    return clock_ns(CLOCK_MONOTONIC) - UINT64_C(1000000) * TELLS_MS;
}

/* ---- What is looked at ---- */

static void free_view(struct screen *screen)
{
    method_tallies_free(&screen->tallies);
    screen->tallies = (struct method_tallies){0};
    window_view_free(&screen->view);
    screen->view = (struct profile){0};
}

/* A detail's text; whatever was there before is gone. */
static int take_text(struct pager *pager, struct packed_output *output)
{
    uint8_t *bytes;
    int err = packed_output_take(output, &bytes, &pager->size);
    free(pager->text);
    pager->text = err ? NULL : (char *)bytes;
    pager->size = err ? 0 : pager->size;
    return err ? -ENOMEM : 0;
}

static uint32_t find_function(const struct screen *screen)
{
    for (uint32_t i = 0; i < screen->view.function_count; i++) {
        if (strcmp(screen->view.functions[i].name, screen->method) == 0) {
            return i;
        }
    }
    return PROFILE_NONE;
}

static int put_stacks(struct screen *screen, struct packed_output *output)
{
    const struct report_look look = {
        .rows = REPORT_CALLERS, .method = screen->method, .width = (uint32_t)COLS};
    if (find_function(screen) == PROFILE_NONE) {
        packed_output_text(output, "(it has no samples now)\n");
        return 0;
    }
    return report_text_write(&screen->view, &look, output);
}

static int put_source(struct screen *screen, struct packed_output *output, uint32_t *hottest)
{
    struct source_texts *sources = screen->options->sources;
    uint32_t function = find_function(screen);
    int err = 0;
    if (function == PROFILE_NONE) {
        packed_output_text(output, "(it has no samples now)\n");
        return 0;
    }
    for (uint32_t i = 0; sources && !err && i < screen->view.module_count; i++) {
        err = source_texts_add_jdk(sources, screen->view.modules[i]);
    }
    return err ? err
               : source_view_put(&screen->tallies, function, screen->event, screen->sum.weight,
                                 sources, output, hottest);
}

/* The line with the largest number in its first column. */
static uint32_t hottest_line(const char *text, size_t size)
{
    uint32_t hottest = 0;
    uint32_t line = 0;
    double most = 0;
    for (const char *at = text; at && at < text + size; line++) {
        const char *end = memchr(at, '\n', (size_t)(text + size - at));
        char number[16] = "";
        memcpy(number, at, end && end - at >= 10 ? 10 : 0);
        if (strtod(number, NULL) > most && number[0] == ' ' && strchr(number, '.')) {
            most = strtod(number, NULL);
            hottest = line;
        }
        at = end ? end + 1 : NULL;
    }
    return hottest;
}

static int put_assembly(struct screen *screen, struct packed_output *output)
{
    struct annotation annotation = {0};
    struct annotation_choice choice = {0};
    int err = annotation_count(&screen->view, &annotation);
    err = err ? err : annotation_choose(&annotation, screen->method, &choice);
    if (!err && choice.count) {
        if (choice.are_hosts) {
            packed_output_text(output, "(it is inlined into this method)\n");
        }
        err = annotation_put(&annotation, choice.picked[0], true, screen->options->sources, output);
    } else if (!err) {
        packed_output_text(output,
                           "(no generated code of it was sampled: it is native or interpreted)\n");
    }
    annotation_choice_free(&choice);
    annotation_free(&annotation);
    return err;
}

static int make_detail(struct screen *screen)
{
    struct packed_output *output;
    struct pager *pager = &screen->pager;
    uint32_t hottest = 0;
    int err = packed_output_open_memory(false, &output) ? -ENOMEM : 0;
    if (err) {
        return err;
    }
    err = screen->detail == STACKS   ? put_stacks(screen, output)
          : screen->detail == SOURCE ? put_source(screen, output, &hottest)
                                     : put_assembly(screen, output);
    if (err) {
        packed_output_abort(output);
        return err;
    }
    err = take_text(pager, output);
    if (!err && !pager->is_placed) {
        hottest = screen->detail == ASSEMBLY ? hottest_line(pager->text, pager->size) : hottest;
        pager->top = hottest > CONTEXT ? hottest - CONTEXT : 0;
        pager->is_placed = screen->detail == STACKS || hottest > 0; /* or when something is hot */
    }
    return err;
}

/* The row that was chosen is so wherever it is now. */
static void follow_key(struct screen *screen)
{
    struct top_table *table = &screen->table;
    for (uint32_t i = 0; i < table->count; i++) {
        if (table->rows[i].key == screen->key) {
            screen->chosen = i;
            return;
        }
    }
    screen->chosen = screen->chosen < table->count ? screen->chosen
                     : table->count                ? table->count - 1
                                                   : 0;
}

static int make_table(struct screen *screen)
{
    const struct top_wanted wanted = {.kind = screen->kind,
                                      .event = screen->event,
                                      .span = screen->span,
                                      .width = (uint32_t)COLS,
                                      .match = screen->match};
    top_table_free(&screen->table);
    int err = top_table_make(&screen->view, &screen->tallies, screen->options->shared, &wanted,
                             &screen->table);
    if (!err) {
        follow_key(screen);
    }
    return err;
}

static bool needs_tallies(const struct screen *screen)
{
    return screen->detail == SOURCE ||
           (!screen->detail && (screen->kind == TOP_METHODS || screen->kind == TOP_LINES));
}

/* Everything from the samples that the window has now. */
static int look(struct screen *screen)
{
    const struct screen_options *options = screen->options;
    const struct recording *recording = window_recording(options->window);
    uint64_t now = screen->frozen ? screen->frozen : window_end();
    uint64_t span = window_span(options->window, now);
    bool is_settled =
        span >= UINT64_C(1000000) * SETTLE_MS || !screen->table.text || span > screen->span;
    screen->next = clock_ns(CLOCK_MONOTONIC) + UINT64_C(1000000) * REFRESH_MS;
    if (!recording || recording->event_count == 0 || !is_settled) {
        return 0;
    }
    free_view(screen);
    screen->span = span;
    screen->event = screen->event < recording->event_count ? screen->event : 0;
    int err = window_view(options->window, now, &screen->choice, &screen->view);
    if (!err && needs_tallies(screen)) {
        err = method_tallies_make(&screen->view, &screen->tallies);
    }
    if (!err) {
        screen->sum = profile_sum(&screen->view, screen->event);
        err = screen->detail ? make_detail(screen) : make_table(screen);
    }
    /* Nothing points into the window when the stream goes on. */
    free_view(screen);
    return err;
}

/* ---- Drawing ---- */

/* A line of any text: cut to the terminal, without what a terminal obeys. */
static void draw_text(int y, const char *text, size_t size)
{
    struct packed_output *output;
    uint8_t *bytes;
    size_t length;
    char *line = strndup(text, size);
    if (line && packed_output_open_memory(false, &output) == 0) {
        cell_put(output, line, (uint32_t)COLS, false);
        if (packed_output_take(output, &bytes, &length) == 0) {
            mvaddnstr(y, 0, (const char *)bytes, (int)length);
            free(bytes);
        }
    }
    free(line);
}

static chtype color_of(double share)
{
    return share >= HOT_SHARE    ? COLOR_PAIR(TERMINAL_HOT)
           : share >= WARM_SHARE ? COLOR_PAIR(TERMINAL_WARM)
                                 : 0;
}

static uint32_t rows_shown(void)
{
    return LINES > TABLE_TOP + 2 ? (uint32_t)LINES - TABLE_TOP - 1 : 1;
}

static void draw_bar(int y, const char *text, size_t size, chtype attribute)
{
    attron(attribute);
    mvhline(y, 0, ' ', COLS);
    draw_text(y, text, size);
    attroff(attribute);
}

static void draw_head(const struct screen *screen)
{
    static const char *const kinds[] = {"JVMs", "threads", "methods", "lines", "events"};
    static const char *const details[] = {"", "callers of ", "source of ", "machine code of "};
    const struct recording *recording = window_recording(screen->options->window);
    char text[CELL_MAX];
    char part[300] = "";
    uint64_t lost = recording ? recording->counts.lost_samples : 0;
    snprintf(text, sizeof text, "jdperf top   %s   last %.0f s: %" PRIu64 " samples",
             screen->options->about, (double)screen->span / 1e9, screen->sum.samples);
    if (recording && recording->event_count) {
        const struct recorded_event *event = &recording->events[screen->event];
        if (event_is_time(event) && screen->span) {
            snprintf(part, sizeof part, ", %.2f processors",
                     (double)screen->sum.weight / (double)screen->span);
        }
        if (lost) {
            snprintf(part + strlen(part), sizeof part - strlen(part), ", %" PRIu64 " lost", lost);
        }
        if (recording->event_count > 1) {
            snprintf(part + strlen(part), sizeof part - strlen(part), "   event %.60s",
                     event->name);
        }
    }
    strncat(text, part, sizeof text - strlen(text) - 1);
    strncat(text,
            atomic_load(&screen->options->shared->has_ended) ? "   THE JVM HAS ENDED"
            : screen->frozen                                 ? "   PAUSED"
                                                             : "",
            sizeof text - strlen(text) - 1);
    attron(A_BOLD);
    draw_text(0, text, strlen(text));
    attroff(A_BOLD);

    size_t used = (size_t)snprintf(text, sizeof text, "%s%.400s", details[screen->detail],
                                   screen->detail ? screen->method : kinds[screen->kind]);
    if (screen->choice.pid && used < sizeof text) {
        used += (size_t)snprintf(text + used, sizeof text - used, "   JVM %" PRIu32 " %.60s",
                                 screen->choice.pid,
                                 top_jvm_name(screen->options->shared, screen->choice.pid));
    }
    if (screen->choice.tid && used < sizeof text) {
        used += (size_t)snprintf(text + used, sizeof text - used, "   thread %" PRIu32 " %s",
                                 screen->choice.tid, screen->thread);
    }
    if ((screen->match[0] || screen->types) && !screen->detail && used < sizeof text) {
        snprintf(text + used, sizeof text - used, "   /%s%s", screen->match,
                 screen->types ? "_" : "");
    }
    draw_text(1, text, strlen(text));
}

static void draw_table(struct screen *screen)
{
    const struct top_table *table = &screen->table;
    uint32_t shown = rows_shown();
    if (!table->text) {
        draw_text(TABLE_TOP, "waiting for the first samples", 29);
        return;
    }
    draw_bar(TABLE_TOP - 1, table->text, table->head_size, A_REVERSE);
    if (screen->chosen < screen->first) {
        screen->first = screen->chosen;
    } else if (screen->chosen >= screen->first + shown) {
        screen->first = screen->chosen - shown + 1;
    }
    for (uint32_t i = 0; i < shown && screen->first + i < table->count; i++) {
        const struct top_row *row = &table->rows[screen->first + i];
        bool is_chosen = screen->first + i == screen->chosen;
        chtype attribute = is_chosen ? A_STANDOUT : color_of(row->share);
        if (is_chosen) {
            draw_bar((int)(TABLE_TOP + i), table->text + row->at, row->size, attribute);
        } else {
            attron(attribute);
            draw_text((int)(TABLE_TOP + i), table->text + row->at, row->size);
            attroff(attribute);
        }
    }
}

static const char *line_at(const struct pager *pager, uint32_t line)
{
    const char *at = pager->text;
    const char *end = at ? at + pager->size : NULL;
    for (; at && line > 0; line--) {
        at = memchr(at, '\n', (size_t)(end - at));
        at = at && at + 1 < end ? at + 1 : NULL;
    }
    return at;
}

static uint32_t line_count(const struct pager *pager)
{
    uint32_t count = 0;
    for (size_t i = 0; i < pager->size; i++) {
        count += pager->text[i] == '\n';
    }
    return count;
}

static void draw_pager(struct screen *screen)
{
    struct pager *pager = &screen->pager;
    uint32_t shown = rows_shown() + 1;
    uint32_t count = line_count(pager);
    uint32_t last = count > shown ? count - shown : 0;
    pager->top = pager->top < last ? pager->top : last;
    const char *at = line_at(pager, pager->top);
    for (uint32_t i = 0; i < shown && at && at < pager->text + pager->size; i++) {
        size_t left = (size_t)(pager->text + pager->size - at);
        const char *end = memchr(at, '\n', left);
        size_t size = end ? (size_t)(end - at) : left;
        char number[16] = "";
        memcpy(number, at, size < 10 ? size : 10);
        chtype attribute =
            number[0] == ' ' && strchr(number, '.') ? color_of(strtod(number, NULL) / 100) : 0;
        attron(attribute);
        draw_text((int)(TABLE_TOP - 1 + i), at, size);
        attroff(attribute);
        at = end ? end + 1 : NULL;
    }
}

static void draw(struct screen *screen)
{
    /* How to leave stands first: a narrow terminal cuts the rest. */
    const char *keys =
        screen->types    ? "type a part of a name   Enter: done   Esc: none"
        : screen->detail ? "q back | s stacks  c source  a code | arrows scroll  p pause"
        : screen->kind == TOP_METHODS || screen->kind == TOP_LINES
            ? "q quit | s stacks  c source  a code | v JVMs  t threads  m methods  l lines  "
              "e events | / find  p pause  Esc all"
            : "q quit | Enter: its methods | v JVMs  t threads  m methods  l lines  e events | "
              "/ find  p pause  Esc all";
    erase();
    draw_head(screen);
    if (screen->detail) {
        draw_pager(screen);
    } else {
        draw_table(screen);
    }
    draw_bar(LINES - 1, keys, strlen(keys), A_REVERSE);
    refresh();
}

/* ---- Keys ---- */

static const struct top_row *chosen_row(const struct screen *screen)
{
    return screen->chosen < screen->table.count ? &screen->table.rows[screen->chosen] : NULL;
}

static void look_soon(struct screen *screen)
{
    screen->next = 0;
}

static void show(struct screen *screen, enum top_kind kind)
{
    screen->kind = kind;
    screen->chosen = screen->first = 0;
    screen->key = 0;
    screen->match[0] = '\0';
    look_soon(screen);
}

/* The method is known again by its name: functions' numbers change. */
static int open_detail(struct screen *screen, enum detail detail)
{
    const struct top_row *row = chosen_row(screen);
    if (!screen->detail) {
        if (!row || (screen->kind != TOP_METHODS && screen->kind != TOP_LINES)) {
            return 0;
        }
        free(screen->method);
        screen->method = strndup(screen->table.text + row->name_at, row->name_size);
        if (!screen->method) {
            return -ENOMEM;
        }
    }
    screen->detail = detail;
    screen->pager.is_placed = false;
    screen->pager.top = 0;
    look_soon(screen);
    return 0;
}

static int open_row(struct screen *screen)
{
    const struct top_row *row = chosen_row(screen);
    if (screen->kind == TOP_METHODS || screen->kind == TOP_LINES) {
        return open_detail(screen, STACKS);
    }
    if (!row) {
        return 0;
    }
    if (screen->kind == TOP_JVMS) {
        screen->choice = (struct window_choice){.pid = row->id};
    } else if (screen->kind == TOP_THREADS) {
        screen->choice.tid = row->id;
        snprintf(screen->thread, sizeof screen->thread, "%.*s", (int)row->name_size,
                 screen->table.text + row->name_at);
    } else {
        screen->event = row->id;
    }
    show(screen, TOP_METHODS);
    return 0;
}

/* One step back: of the detail, the name, the thread, the JVM. */
static void go_back(struct screen *screen)
{
    if (screen->detail) {
        screen->detail = NO_DETAIL;
    } else if (screen->match[0]) {
        screen->match[0] = '\0';
    } else if (screen->choice.tid) {
        screen->choice.tid = 0;
    } else {
        screen->choice.pid = 0;
    }
    look_soon(screen);
}

static void type(struct screen *screen, int key)
{
    size_t length = strlen(screen->match);
    if (key == KEY_RETURN || key == '\n' || key == KEY_ENTER) {
        screen->types = false;
    } else if (key == KEY_ESCAPE) {
        screen->types = false;
        screen->match[0] = '\0';
    } else if ((key == KEY_BACKSPACE || key == KEY_BACK || key == '\b') && length > 0) {
        screen->match[length - 1] = '\0';
    } else if (key >= ' ' && key < KEY_BACK && length + 1 < MATCH_MAX) {
        screen->match[length] = (char)key;
        screen->match[length + 1] = '\0';
    }
    screen->chosen = screen->first = 0;
    screen->key = 0;
    look_soon(screen);
}

static uint32_t moved(uint32_t at, int64_t by, uint32_t count)
{
    int64_t to = (int64_t)at + by;
    int64_t last = count ? (int64_t)count - 1 : 0;
    return (uint32_t)(to < 0 ? 0 : to > last ? last : to);
}

static bool scroll_by(struct screen *screen, int key)
{
    int64_t page = rows_shown();
    int64_t by = key == KEY_UP      ? -1
                 : key == KEY_DOWN  ? 1
                 : key == KEY_PPAGE ? -page
                 : key == KEY_NPAGE ? page
                 : key == KEY_HOME  ? -INT32_MAX
                 : key == KEY_END   ? INT32_MAX
                                    : 0;
    if (by && screen->detail) {
        screen->pager.top = moved(screen->pager.top, by, line_count(&screen->pager));
        screen->pager.is_placed = true;
    } else if (by) {
        screen->chosen = moved(screen->chosen, by, screen->table.count);
        const struct top_row *row = chosen_row(screen);
        screen->key = row ? row->key : 0;
    }
    return by != 0;
}

static int take_key(struct screen *screen, int key)
{
    if (key == KEY_CTRL_C) {
        return -ECANCELED;
    }
    if (screen->types) {
        type(screen, key);
        return 0;
    }
    if (scroll_by(screen, key)) {
        return 0;
    }
    switch (key) {
    case 'q':
        if (!screen->detail) {
            return -ECANCELED;
        }
        go_back(screen);
        return 0;
    case KEY_ESCAPE:
    case KEY_LEFT:
    case KEY_BACKSPACE:
    case KEY_BACK:
        go_back(screen);
        return 0;
    case 's':
        return open_detail(screen, STACKS);
    case 'c':
        return open_detail(screen, SOURCE);
    case 'a':
        return open_detail(screen, ASSEMBLY);
    case 'p':
    case ' ':
        screen->frozen = screen->frozen ? 0 : window_end();
        look_soon(screen);
        return 0;
    case KEY_RESIZE:
        look_soon(screen);
        return 0;
    default:
        break;
    }
    if (screen->detail) {
        return 0;
    }
    switch (key) {
    case KEY_RETURN:
    case KEY_ENTER:
    case KEY_RIGHT:
        return open_row(screen);
    case '/':
        screen->types = true;
        return 0;
    case 'v':
        screen->choice = (struct window_choice){0};
        show(screen, TOP_JVMS);
        return 0;
    case 't':
        show(screen, TOP_THREADS);
        return 0;
    case 'm':
        show(screen, TOP_METHODS);
        return 0;
    case 'l':
        show(screen, TOP_LINES);
        return 0;
    case 'e':
        show(screen, TOP_EVENTS);
        return 0;
    case KEY_TABULATOR:
        show(screen, (screen->kind + 1) % TOP_KINDS);
        return 0;
    default:
        return 0;
    }
}

/* ---- All of it ---- */

struct screen *screen_new(const struct screen_options *options)
{
    struct screen *screen = calloc(1, sizeof *screen);
    if (screen) {
        screen->options = options;
        screen->kind = options->one_jvm ? TOP_METHODS : TOP_JVMS;
    }
    return screen;
}

void screen_free(struct screen *screen)
{
    free_view(screen);
    top_table_free(&screen->table);
    free(screen->pager.text);
    free(screen->method);
    free(screen);
}

int screen_turn(struct screen *screen)
{
    bool changed = false;
    int key;
    int err = 0;
    while (!err && (key = getch()) != ERR) {
        err = take_key(screen, key);
        changed = true;
    }
    if (!screen->frozen && atomic_load(&screen->options->shared->has_ended)) {
        screen->frozen = clock_ns(CLOCK_MONOTONIC);
        screen->next = 0;
    }
    bool is_due =
        screen->next == 0 || (!screen->frozen && clock_ns(CLOCK_MONOTONIC) >= screen->next);
    if (!err && is_due) {
        err = look(screen);
        changed = true;
    }
    if (!err && changed) {
        draw(screen);
    }
    return err;
}
