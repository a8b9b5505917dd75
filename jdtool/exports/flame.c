/*
 * The flame graph as one HTML file for any browser, without network: page/page.html with the
 * scripts beside it and the data of one profile, or of two of which it shows the difference.
 *
 * What it draws: the tree of functions, and every sample with its time,
 * so that the page can filter by time, group by thread and count for itself. It is one line of
 * base64, to be put into an HTML file, of a gzipped file:
 *
 *     "jdflame1"  u32 size of the header  the header, JSON  columns
 *
 * The header lists the columns: name, type and count of elements. Each begins at a multiple of 8
 * bytes and is little-endian. Nodes stand behind their parents, samples are by event, then by time.
 * Times are ticks of header.tick nanoseconds since the first sample.
 */
#include "jdtool/base/array.h"
#include "jdtool/base/text.h"
#include "jdtool/exports/export.h"

#include "jdtool/base/intern.h"
#include "jdtool/profile/frame_tree.h"
#include "jdtool/profile/normal_name.h"
#include "jdtool/profile/profile.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/*
 * Which source line stands at a frame of the flame page: a node of the frame tree is a function
 * called by a function, whatever its lines, so it shows the one that most of its samples have.
 */

struct line_count {
    uint32_t node, line, count;
};

static int compare_lines(const void *a, const void *b)
{
    const struct line_count *first = a;
    const struct line_count *second = b;
    return ORDER(first->node, second->node) ?: ORDER(first->line, second->line);
}

/* The samples on each of the profile's nodes and on all that it called; NULL: no memory. */
static uint32_t *count_samples(const struct profile *profile)
{
    uint32_t *counts = calloc((size_t)profile->node_count + 1, sizeof *counts);
    if (!counts) {
        return NULL;
    }
    for (uint32_t i = 0; i < profile->sample_count; i++) {
        if (profile->samples[i].node != PROFILE_NONE) {
            counts[profile->samples[i].node] += profile->samples[i].count;
        }
    }
    for (uint32_t i = profile->node_count; i-- > 0;) {
        if (profile->nodes[i].parent != PROFILE_NONE) {
            counts[profile->nodes[i].parent] += counts[i];
        }
    }
    return counts;
}

/* All lines of all nodes, unsorted; *count of them. NULL: no memory. */
static struct line_count *list_lines(const struct profile *profile, const struct frame_tree *tree,
                                     const uint32_t *samples, size_t *count)
{
    size_t most = 1;
    for (uint32_t i = 0; i < profile->node_count; i++) {
        most += profile->locations[profile->nodes[i].location].line_count;
    }
    struct line_count *list = calloc(most, sizeof *list);
    if (!list) {
        return NULL;
    }
    size_t at = 0;
    for (uint32_t i = 0; i < profile->node_count; i++) {
        const struct profile_location *location = &profile->locations[profile->nodes[i].location];
        uint32_t node = tree->innermost[i];
        for (uint32_t k = 0; k < location->line_count; k++) {
            uint32_t line = profile->lines[location->first_line + k].line;
            list[at++] = (struct line_count){node, line, samples[i]};
            node = tree->nodes[node].parent;
        }
    }
    *count = at;
    return list;
}

/* list[0, count), sorted. */
static void choose_lines(const struct line_count *list, size_t count, uint32_t *lines,
                         uint8_t *shares)
{
    for (size_t i = 0; i < count;) {
        uint32_t node = list[i].node;
        uint64_t all = 0;
        uint64_t most = 0;
        while (i < count && list[i].node == node) {
            uint32_t line = list[i].line;
            uint64_t here = 0;
            for (; i < count && list[i].node == node && list[i].line == line; i++) {
                here += list[i].count;
            }
            all += here;
            if (line > 0 && here > most) {
                most = here;
                lines[node] = line;
            }
        }
        shares[node] = (uint8_t)(all ? 100 * most / all : 0);
    }
}

/*
 * Fills, for each node of TREE (made of PROFILE), lines[node] with its most frequent line, 0 where
 * none is known, and shares[node] with how many of the node's samples have it, in percent. Both
 * have tree->count elements, all 0. Returns 0 or -ENOMEM.
 */
static int flame_lines_find(const struct profile *profile, const struct frame_tree *tree,
                            uint32_t *lines, uint8_t *shares)
{
    size_t count = 0;
    uint32_t *samples = count_samples(profile);
    struct line_count *list = samples ? list_lines(profile, tree, samples, &count) : NULL;
    if (list) {
        qsort(list, count, sizeof *list, compare_lines);
        choose_lines(list, count, lines, shares);
    }
    free(samples);
    free(list);
    return list ? 0 : -ENOMEM;
}

#define MAGIC "jdflame1"

struct flame {
    const struct profile *profile;
    const struct export_settings *settings;
    struct frame_tree tree;
    struct string_table files;
    uint32_t *order;   /* samples by event and time */
    uint32_t *lines;   /* by the tree's node: its most frequent line; 0: none is known */
    uint8_t *shares;   /* of that line among the samples with the node, in percent */
    uint32_t *numbers; /* a column that is being made */
    bool has_weights;  /* samples of one event weigh differently */
    uint64_t tick;
};

/* ---- Preparing ---- */

/* Where a sample has no stack there is a node for that, the last one. */
static uint32_t node_of(const struct flame *f, const struct profile_sample *sample)
{
    return sample->node == PROFILE_NONE ? f->tree.count : f->tree.innermost[sample->node];
}

static int prepare(struct flame *f)
{
    static const enum sample_key keys[] = {BY_EVENT, BY_TIME, BY_NUMBER};
    const struct profile *profile = f->profile;
    int err = frame_tree_make(profile, true, &f->tree);
    if (err) {
        return err;
    }
    size_t most = (size_t)f->tree.count + profile->sample_count + 2;
    f->order = profile_order(profile, keys);
    f->lines = calloc((size_t)f->tree.count + 2, sizeof *f->lines);
    f->shares = calloc((size_t)f->tree.count + 2, sizeof *f->shares);
    f->numbers = calloc(most, sizeof *f->numbers);
    if (!f->order || !f->lines || !f->shares || !f->numbers) {
        return -ENOMEM;
    }
    for (uint32_t i = 1; i < profile->sample_count; i++) {
        const struct profile_sample *sample = &profile->samples[f->order[i]];
        const struct profile_sample *before = &profile->samples[f->order[i - 1]];
        f->has_weights |= sample->event == before->event && sample->weight != before->weight;
    }
    f->tick = (profile->until - profile->from) / UINT32_MAX + 1;
    return flame_lines_find(profile, &f->tree, f->lines, f->shares);
}

/* ---- The header ---- */

static void put_kinds(struct json_writer *json)
{
    json_array(json, "kinds");
    for (int kind = 0; kind < RESOLVED_KINDS; kind++) {
        json_text(json, NULL, export_kind_name(kind));
    }
    json_text(json, NULL, "c1");
    json_end(json);
}

static void put_threads(const struct flame *f, struct json_writer *json)
{
    json_array(json, "threads");
    for (uint32_t i = 0; i < f->profile->thread_count; i++) {
        const struct profile_thread *thread = &f->profile->threads[i];
        json_array(json, NULL);
        json_uint(json, NULL, thread->pid);
        json_uint(json, NULL, thread->tid);
        json_text(json, NULL, thread->comm);
        json_text(json, NULL, profile_process(thread));
        json_end(json);
    }
    json_end(json);
}

/* Names that are others in another run, as all runs have them: what differences show. */
static void put_normal_names(struct flame *f, struct json_writer *json)
{
    const struct profile *profile = f->profile;
    json_object(json, "normal");
    for (uint32_t i = 0; i < profile->function_count; i++) {
        char key[16];
        char *name = strdup(profile->functions[i].name);
        if (!name) {
            f->files.error = -ENOMEM;
            break;
        }
        normal_name(name);
        if (strcmp(name, profile->functions[i].name) != 0) {
            snprintf(key, sizeof key, "%" PRIu32, i);
            json_text(json, key, name);
        }
        free(name);
    }
    json_end(json);
}

static void put_names(struct flame *f, struct json_writer *json)
{
    const struct profile *profile = f->profile;
    json_array(json, "names");
    for (uint32_t i = 0; i < profile->function_count; i++) {
        json_text(json, NULL, profile->functions[i].name);
    }
    json_text(json, NULL, "[no stack]");
    json_end(json);
    put_normal_names(f, json);
    json_array(json, "name_files");
    for (uint32_t i = 0; i < profile->function_count; i++) {
        const char *file = profile->functions[i].file;
        json_int(json, NULL, file ? (int64_t)string_table_add(&f->files, file) : -1);
    }
    json_int(json, NULL, -1);
    json_end(json);
    json_array(json, "files");
    for (uint32_t i = 0; i < f->files.count; i++) {
        json_text(json, NULL, f->files.list[i]);
    }
    json_end(json);
}

/* What the strip above the heat map shows: from where, and how long, in ticks. */
static void put_marks(const struct flame *f, struct json_writer *json)
{
    static const struct {
        enum mark_kind kind;
        const char *name;
    } kinds[] = {{MARK_SAFEPOINT, "pauses"},
                 {MARK_COMPILE, "compilations"},
                 {MARK_DEOPT, "deoptimisations"}};
    const struct profile *profile = f->profile;
    json_object(json, "marks");
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds && profile->mark_count; k++) {
        json_array(json, kinds[k].name);
        for (uint32_t i = 0; i < profile->mark_count; i++) {
            const struct profile_mark *mark = &profile->marks[i];
            uint64_t from = mark->from > profile->from ? mark->from - profile->from : 0;
            uint64_t until = mark->until > profile->from ? mark->until - profile->from : 0;
            if (mark->kind == kinds[k].kind && until >= from) {
                json_uint(json, NULL, from / f->tick);
                json_uint(json, NULL, (until - from) / f->tick);
            }
        }
        json_end(json);
    }
    json_end(json);
}

static void put_column(struct json_writer *json, const char *name, const char *type, uint64_t count)
{
    json_array(json, NULL);
    json_text(json, NULL, name);
    json_text(json, NULL, type);
    json_uint(json, NULL, count);
    json_end(json);
}

static void put_header(struct flame *f, struct packed_output *output)
{
    const struct profile *profile = f->profile;
    const struct recording *recording = profile->recording;
    uint64_t nodes = (uint64_t)f->tree.count + 1;
    struct json_writer json;
    json_start(&json, output);
    json_object(&json, NULL);
    json_text(&json, "command", recording->command_line);
    json_text(&json, "host", recording->hostname);
    if (recording->has_wall) {
        json_decimal(&json, "start", (int64_t)export_wall_time(profile, profile->from), 6);
    }
    json_uint(&json, "tick", f->tick);
    json_uint(&json, "duration", profile->until - profile->from);
    if (f->settings->changed) {
        json_uint(&json, "runs", f->settings->runs);
    }
    put_kinds(&json);
    profile_json_events(&json, f->profile);
    put_threads(f, &json);
    put_names(f, &json);
    put_marks(f, &json);
    json_array(&json, "columns");
    put_column(&json, "parent", "u32", nodes); /* how far before, 0: outermost */
    put_column(&json, "name", "u32", nodes);
    put_column(&json, "line", "u32", nodes);
    put_column(&json, "kind", "u8", nodes);
    put_column(&json, "share", "u8", nodes);
    if (f->settings->changed) {
        put_column(&json, "changed", "u32", nodes); /* a bit an event */
    }
    put_column(&json, "time", "u32", profile->sample_count);
    put_column(&json, "node", "u32", profile->sample_count);
    put_column(&json, "thread", "u32", profile->sample_count);
    if (f->has_weights) {
        put_column(&json, "weight", "f64", profile->sample_count);
    }
    json_end(&json);
    json_end(&json);
}

/* ---- Columns ---- */

static void align(struct packed_output *output)
{
    static const uint8_t zeros[8];
    packed_output_put(output, zeros, (8 - packed_output_size(output) % 8) % 8);
}

static void put_numbers(const struct flame *f, struct packed_output *output, uint32_t count)
{
    align(output);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t value = f->numbers[i];
        uint8_t bytes[4] = {(uint8_t)value, (uint8_t)(value >> 8), (uint8_t)(value >> 16),
                            (uint8_t)(value >> 24)};
        packed_output_put(output, bytes, sizeof bytes);
    }
}

static void put_nodes(struct flame *f, struct packed_output *output)
{
    enum { KIND_C1 = RESOLVED_KINDS };
    const struct frame_tree_node *nodes = f->tree.nodes;
    uint32_t count = f->tree.count;
    for (uint32_t i = 0; i < count; i++) {
        f->numbers[i] = nodes[i].parent == PROFILE_NONE ? 0 : i - nodes[i].parent;
    }
    f->numbers[count] = 0;
    put_numbers(f, output, count + 1);
    for (uint32_t i = 0; i < count; i++) {
        f->numbers[i] = nodes[i].function;
    }
    f->numbers[count] = f->profile->function_count;
    put_numbers(f, output, count + 1);
    memcpy(f->numbers, f->lines, ((size_t)count + 1) * sizeof *f->lines);
    put_numbers(f, output, count + 1);
    align(output);
    for (uint32_t i = 0; i <= count; i++) {
        uint8_t kind = i < count ? nodes[i].kind : RESOLVED_UNKNOWN;
        bool is_c1 = kind == RESOLVED_COMPILED && nodes[i].tier >= 1 && nodes[i].tier <= 3;
        kind = is_c1 ? KIND_C1 : kind;
        packed_output_put(output, &kind, 1);
    }
    align(output);
    packed_output_put(output, f->shares, (size_t)count + 1);
    if (f->settings->changed) {
        memset(f->numbers, 0, ((size_t)count + 1) * sizeof *f->numbers);
        for (uint32_t i = 0; i < f->profile->node_count; i++) {
            f->numbers[f->tree.innermost[i]] |= f->settings->changed[i];
        }
        put_numbers(f, output, count + 1);
    }
}

static void put_samples(struct flame *f, struct packed_output *output)
{
    const struct profile *profile = f->profile;
    uint32_t count = profile->sample_count;
    for (uint32_t i = 0; i < count; i++) {
        f->numbers[i] = (uint32_t)((profile->samples[f->order[i]].time - profile->from) / f->tick);
    }
    put_numbers(f, output, count);
    for (uint32_t i = 0; i < count; i++) {
        f->numbers[i] = node_of(f, &profile->samples[f->order[i]]);
    }
    put_numbers(f, output, count);
    for (uint32_t i = 0; i < count; i++) {
        f->numbers[i] = profile->samples[f->order[i]].thread;
    }
    put_numbers(f, output, count);
    align(output);
    for (uint32_t i = 0; f->has_weights && i < count; i++) {
        double weight = (double)profile->samples[f->order[i]].weight;
        uint64_t bits;
        uint8_t bytes[8];
        memcpy(&bits, &weight, sizeof bits);
        for (int k = 0; k < 8; k++) {
            bytes[k] = (uint8_t)(bits >> (8 * k));
        }
        packed_output_put(output, bytes, sizeof bytes);
    }
}

/* ---- All together ---- */

static void put_base64(struct packed_output *output, const uint8_t *bytes, size_t size)
{
    for (size_t at = 0; at < size; at += 3) {
        char text[4];
        text_base64(bytes + at, size - at, text);
        packed_output_put(output, text, sizeof text);
    }
}

/* The header's own size comes before it, so it is made apart. */
static int put_columns(struct flame *f, struct packed_output *data)
{
    struct packed_output *header;
    uint8_t *bytes;
    size_t size;
    int err = packed_output_open_memory(false, &header);
    if (err) {
        return err;
    }
    put_header(f, header);
    err = packed_output_take(header, &bytes, &size);
    if (err) {
        return err;
    }
    uint8_t prefix[4] = {(uint8_t)size, (uint8_t)(size >> 8), (uint8_t)(size >> 16),
                         (uint8_t)(size >> 24)};
    packed_output_put(data, MAGIC, sizeof MAGIC - 1);
    packed_output_put(data, prefix, sizeof prefix);
    packed_output_put(data, bytes, size);
    free(bytes);
    put_nodes(f, data);
    put_samples(f, data);
    return f->files.error;
}

/* The line; of the settings, `changed` and `runs` matter. */
static int write_data(const struct profile *profile, const struct export_settings *settings,
                      struct packed_output *output)
{
    struct flame f = {.profile = profile, .settings = settings};
    struct packed_output *data = NULL;
    uint8_t *bytes = NULL;
    size_t size = 0;
    int err = prepare(&f);
    if (!err) {
        err = packed_output_open_memory(true, &data);
    }
    if (!err) {
        err = put_columns(&f, data);
        int taken = packed_output_take(data, &bytes, &size);
        err = err ? err : taken;
    }
    if (!err) {
        put_base64(output, bytes, size);
        packed_output_text(output, "\n");
    }
    free(bytes);
    frame_tree_free(&f.tree);
    string_table_free(&f.files);
    free(f.order);
    free(f.lines);
    free(f.shares);
    free(f.numbers);
    return err;
}

extern const struct export_format format_flame;
const struct export_format format_flame = {
    .name = "flame",
    .about = "the data of that page",
    .keeps_times = true,
    .write = write_data,
};

/* ---- The page ---- */

/* A file as it is in the sources, and its end: nothing has to be found on the user's machine. */
#define EMBED(name, file)                                                                          \
    __asm__(".pushsection .rodata\n" #name "_begin:\n.incbin \"" PAGE_DIRECTORY "/" file           \
            "\"\n" #name "_end:\n.popsection\n");                                                  \
    extern const char name##_begin[] __attribute__((visibility("hidden")));                        \
    extern const char name##_end[] __attribute__((visibility("hidden")))

EMBED(page_html, "page.html");
EMBED(data_js, "data.js");
EMBED(view_js, "view.js");
EMBED(graph_js, "graph.js");
EMBED(strip_js, "strip.js");
EMBED(heatmap_js, "heatmap.js");
EMBED(main_js, "main.js");

static const struct script {
    const char *begin, *end;
} scripts[] = {{data_js_begin, data_js_end},       {view_js_begin, view_js_end},
               {graph_js_begin, graph_js_end},     {strip_js_begin, strip_js_end},
               {heatmap_js_begin, heatmap_js_end}, {main_js_begin, main_js_end}};

/* Text of others in HTML, in an attribute's quotes, too. */
static void put_escaped(struct packed_output *output, const char *text)
{
    for (; *text; text++) {
        unsigned char letter = (unsigned char)*text;
        switch (letter) {
        case '&':
            packed_output_text(output, "&amp;");
            break;
        case '<':
            packed_output_text(output, "&lt;");
            break;
        case '>':
            packed_output_text(output, "&gt;");
            break;
        case '"':
            packed_output_text(output, "&quot;");
            break;
        default:
            packed_output_put(output, letter < ' ' || letter == 0x7f ? "?" : text, 1);
        }
    }
}

/* ---- What stands above the graph ---- */

static void put_title(struct packed_output *output, const struct profile *profile,
                      const struct export_settings *settings)
{
    const char *command = profile->recording->command_line;
    if (settings->title) {
        put_escaped(output, settings->title);
    } else if (settings->before) {
        put_escaped(output, settings->before->name);
        packed_output_text(output, " and ");
        put_escaped(output, settings->name);
    } else {
        char text[160];
        snprintf(text, sizeof text, "%s", command && *command ? command : "jdperf");
        put_escaped(output, text);
    }
}

/* "cpu-clock at 99 Hz, off-cpu; 2026-11-24 04:13 UTC on host" */
static void put_about(struct packed_output *output, const struct profile *profile)
{
    const struct recording *recording = profile->recording;
    for (uint32_t i = 0; i < recording->event_count; i++) {
        const struct recorded_event *event = &recording->events[i];
        packed_output_text(output, i ? ", " : "");
        put_escaped(output, event->name);
        if (event->frequency) {
            packed_output_printf(output, " at %llu Hz", (unsigned long long)event->frequency);
        }
    }
    struct tm parts;
    char text[64];
    time_t seconds = (time_t)(export_wall_time(profile, profile->from) / 1000000000);
    if (recording->has_wall && gmtime_r(&seconds, &parts) &&
        strftime(text, sizeof text, "; %Y-%m-%d %H:%M UTC", &parts)) {
        packed_output_text(output, text);
    }
    if (recording->hostname) {
        packed_output_text(output, " on ");
        put_escaped(output, recording->hostname);
    }
}

/* A graph of a profile that is not good misleads; it says so itself. */
static void put_note(struct packed_output *output, const struct profile *profile)
{
    const struct recording *recording = profile->recording;
    if (!recording->has_chains && !recording->has_copies) {
        packed_output_text(output,
                           "This profile was recorded without stacks: each frame stands alone.");
    }
    if (recording->verdict && *recording->verdict && strncmp(recording->verdict, "good", 4) != 0) {
        packed_output_text(output, "This profile is ");
        put_escaped(output, recording->verdict);
        packed_output_text(output, ".");
    }
}

/* ---- All together ---- */

static int put_data(struct packed_output *output, const struct profile *profile,
                    const struct export_settings *settings)
{
    static const char opens[] = "<script type=\"application/x-jdflame\" data-title=\"";
    const struct export_before *before = settings->before;
    if (before) {
        packed_output_text(output, opens);
        put_escaped(output, before->name);
        packed_output_text(output, "\">");
        packed_output_put(output, before->bytes, before->size);
        packed_output_text(output, "</script>\n");
    }
    packed_output_text(output, opens);
    put_escaped(output, before ? settings->name : "");
    packed_output_text(output, "\">");
    int err = write_data(profile, settings, output);
    packed_output_text(output, "</script>\n");
    return err;
}

static int write_page(const struct profile *profile, const struct export_settings *settings,
                      struct packed_output *output)
{
    int err = 0;
    for (const char *at = page_html_begin; at < page_html_end && !err;) {
        size_t left = (size_t)(page_html_end - at);
        const char *mark = memmem(at, left, "@@", 2);
        const char *end = mark ? memmem(mark + 2, left - (size_t)(mark - at) - 2, "@@", 2) : NULL;
        packed_output_put(output, at, end ? (size_t)(mark - at) : left);
        if (!end) {
            break;
        }
        size_t size = (size_t)(end - mark) - 2;
        if (size == 5 && memcmp(mark + 2, "title", size) == 0) {
            put_title(output, profile, settings);
        } else if (size == 5 && memcmp(mark + 2, "about", size) == 0) {
            put_about(output, profile);
        } else if (size == 4 && memcmp(mark + 2, "note", size) == 0) {
            put_note(output, profile);
        } else if (size == 4 && memcmp(mark + 2, "data", size) == 0) {
            err = put_data(output, profile, settings);
        } else { /* scripts */
            for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
                packed_output_put(output, scripts[i].begin,
                                  (size_t)(scripts[i].end - scripts[i].begin));
            }
        }
        at = end + 2;
    }
    return err;
}

extern const struct export_format format_html;
const struct export_format format_html = {
    .name = "html",
    .file = "flamegraph.html",
    .about = "a flame graph, one file for any browser",
    .keeps_times = true,
    .write = write_page,
};
