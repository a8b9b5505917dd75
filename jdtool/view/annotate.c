#include "jdtool/view/annotate.h"

#include "jdtool/base/array.h"
#include "jdtool/base/unique.h"
#include "jdtool/jitdump/code_index.h"
#include "jdtool/jitdump/safepoint_lines.h"
#include "jdtool/resolve/source_texts.h"
#include "jdtool/unwind/disassembly.h"
#include "jdtool/view/method_match.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Counting ---- */

/* Which instructions were sampled, how often. */

static int find_code(struct annotation *a, const struct profile_location *location, uint32_t *id)
{
    uint32_t *number = &a->numbers[location->code_number];
    if (*number == 0) {
        if (ARRAY_RESERVE(a->codes, a->code_count, a->code_room)) {
            return -ENOMEM;
        }
        a->codes[a->code_count++] = (struct annotated_code){.code = location->code};
        *number = a->code_count;
    }
    *id = *number - 1;
    return 0;
}

static int find_place(struct annotation *a, struct hash_map *map, uint32_t code, uint64_t offset,
                      uint32_t *id)
{
    const struct annotated_place made = {.offset = offset, .code = code};
    *id = unique_add(&a->places, &a->place_count, &a->place_room, sizeof made, map, &made,
                     offsetof(struct annotated_place, code) + sizeof code);
    return *id == HASH_MAP_NONE ? -ENOMEM : 0;
}

/* The code and place of a sample's own address; *place PROFILE_NONE: it is in no generated code. */
static int locate(struct annotation *a, struct hash_map *map, const struct profile_sample *sample,
                  uint32_t *code, uint32_t *place)
{
    *place = PROFILE_NONE;
    if (sample->node == PROFILE_NONE) {
        return 0;
    }
    const struct profile_location *location =
        &a->profile->locations[a->profile->nodes[sample->node].location];
    if (!location->code) {
        return 0;
    }
    int err = find_code(a, location, code);
    err =
        err ? err
            : find_place(a, map, *code, location->address - location->code->module_address, place);
    if (!err) {
        a->places[*place].is_caller = location->is_caller;
    }
    return err;
}

/* One block of memory for all weights. */
static int give_weights(struct annotation *a)
{
    size_t lists = (size_t)a->code_count + a->place_count + 1;
    a->weights = calloc(lists * a->events + 1, sizeof *a->weights);
    if (!a->weights) {
        return -ENOMEM;
    }
    uint64_t *next = a->weights;
    a->totals = next;
    for (uint32_t i = 0; i < a->code_count; i++) {
        a->codes[i].weights = next += a->events;
    }
    for (uint32_t i = 0; i < a->place_count; i++) {
        a->places[i].weights = next += a->events;
    }
    return 0;
}

static int count(struct annotation *a, struct hash_map *map, const struct profile_sample *sample)
{
    uint32_t code = 0;
    uint32_t place;
    int err = locate(a, map, sample, &code, &place);
    if (err) {
        return err;
    }
    a->totals[sample->event] += sample->weight;
    if (place != PROFILE_NONE && a->codes && a->places) {
        uint64_t *of_code = a->codes[code].weights;
        uint64_t *of_place = a->places[place].weights;
        a->codes[code].samples += sample->count;
        if (of_code && of_place) {
            of_code[sample->event] += sample->weight;
            of_place[sample->event] += sample->weight;
        }
    }
    return 0;
}

static int compare_places(const void *a, const void *b)
{
    const struct annotated_place *first = a;
    const struct annotated_place *second = b;
    return ORDER(first->code, second->code) ?: ORDER(first->offset, second->offset);
}

int annotation_count(const struct profile *profile, struct annotation *a)
{
    struct hash_map map = {0};
    *a = (struct annotation){.profile = profile, .events = profile->recording->event_count};
    a->numbers = calloc((size_t)profile->code_count + 1, sizeof *a->numbers);
    int err = a->numbers ? 0 : -ENOMEM;
    for (uint32_t i = 0; i < profile->sample_count && !err; i++) {
        uint32_t code;
        uint32_t place;
        err = locate(a, &map, &profile->samples[i], &code, &place);
    }
    if (!err) {
        err = give_weights(a);
    }
    for (uint32_t i = 0; i < profile->sample_count && !err; i++) {
        err = count(a, &map, &profile->samples[i]);
    }
    hash_map_free(&map);
    if (!err && a->place_count) {
        qsort(a->places, a->place_count, sizeof *a->places, compare_places);
    }
    return err;
}

void annotation_free(struct annotation *a)
{
    free(a->numbers);
    free(a->codes);
    free(a->places);
    free(a->weights);
    *a = (struct annotation){0};
}

/* ---- Text ---- */

#define CHAIN_MAX    64  /* inlined methods shown of one address; the rest is left out */
#define NAME_COLUMN  40  /* where the source stands beside a line's name */
#define LINE_MAX_OUT 160 /* of a source line */
#define AROUND       8   /* instructions shown before and behind one that was sampled */

/* A method of the chain at an address, and its line. */
struct link {
    const char *name; /* "pkg.Cls.m(int)" */
    const char *file;
    uint32_t line;
};

struct source_file {
    const char *name;
    char *text; /* NULL: not found */
};

struct writer {
    const struct annotation *annotation;
    const struct annotated_code *annotated;
    struct source_texts *sources;
    struct packed_output *output;
    struct code_details details;
    struct source_file *files;
    uint32_t file_count, file_room;
    struct link chain[CHAIN_MAX]; /* outermost first, of the last instruction */
    uint32_t chain_count;
    uint32_t place;     /* of the annotation, the next one */
    bool at_safepoints; /* what HotSpot says of an instruction holds for calls only */
};

/* ---- Source lines ---- */

static int find_file(struct writer *w, const char *name, const char **text)
{
    *text = NULL;
    for (uint32_t i = 0; i < w->file_count; i++) {
        if (strcmp(w->files[i].name, name) == 0) {
            *text = w->files[i].text;
            return 0;
        }
    }
    if (ARRAY_RESERVE(w->files, w->file_count, w->file_room)) {
        return -ENOMEM;
    }
    struct source_file *file = &w->files[w->file_count++];
    size_t size;
    *file = (struct source_file){.name = name};
    int err = w->sources ? source_texts_read(w->sources, name, &file->text, &size) : 0;
    *text = file->text;
    return err;
}

/* A line of a text without the blanks around it; NULL: the text has not so many. */
static const char *line_of(const char *text, uint32_t line, size_t *size)
{
    for (; text && line > 1; line--) {
        text = strchr(text, '\n');
        text = text ? text + 1 : NULL;
    }
    if (!text || line == 0) {
        return NULL;
    }
    text += strspn(text, " \t");
    *size = strcspn(text, "\r\n");
    while (*size > 0 && strchr(" \t", text[*size - 1])) {
        (*size)--;
    }
    *size = *size < LINE_MAX_OUT ? *size : LINE_MAX_OUT;
    return text;
}

/* ---- The chain of methods at an address ---- */

static uint32_t find_chain(const struct writer *w, const struct instruction *instruction,
                           struct link chain[CHAIN_MAX])
{
    uint32_t offset = instruction->offset;
    const struct trailer *tree = &w->details.trailer;
    const struct resolved_code *code = w->annotated->code;
    const struct trailer_names *names = code_index_names(code->index);
    const struct trailer_range *range = trailer_range_at(tree, offset);
    struct trailer_range between;
    if (range && w->at_safepoints && range->offset + range->size != offset + instruction->size) {
        range = safepoint_lines_between(tree, offset, &between);
    }
    struct link inner[CHAIN_MAX];
    uint32_t count = 0;
    uint32_t line = range ? range->line : 0;
    uint32_t node = range ? range->node : 0;
    if (range && node < tree->node_count) {
        for (;;) {
            const struct trailer_method *method =
                trailer_names_method(names, tree->nodes[node].method);
            if (count < CHAIN_MAX) {
                inner[count++] = (struct link){method->name, method->file, line};
            }
            if (node == 0) {
                break;
            }
            line = tree->nodes[node].call_line;
            node = tree->nodes[node].parent;
        }
    } else {
        /* Without a tree: the row before, which is of whatever method it is of. */
        const struct jitdump_entry *row = NULL;
        uint64_t start = code_index_blob(code->index, code->blob)->address;
        for (uint32_t i = 0; i < w->details.entry_count; i++) {
            const struct jitdump_entry *entry = &w->details.entries[i];
            if (entry->address - start <= offset && (!row || entry->address >= row->address)) {
                row = entry;
            }
        }
        inner[count++] = (struct link){code->symbol, row ? row->file : NULL, row ? row->line : 0};
    }
    for (uint32_t i = 0; i < count; i++) {
        chain[i] = inner[count - 1 - i];
    }
    return count;
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static bool same_link(const struct link *a, const struct link *b)
{
    return a->line == b->line && same_text(a->name, b->name) && same_text(a->file, b->file);
}

/* ---- Lines of the result ---- */

static void put_columns(struct writer *w, const uint64_t *weights)
{
    for (uint32_t i = 0; i < w->annotation->events; i++) {
        uint64_t whole = w->annotated->weights[i];
        if (weights && weights[i] && whole) {
            packed_output_printf(w->output, "%9.2f ", 100.0 * (double)weights[i] / (double)whole);
        } else {
            packed_output_text(w->output, "          ");
        }
    }
}

static void put_bars(struct writer *w, uint32_t depth)
{
    for (uint32_t i = 0; i < depth; i++) {
        packed_output_text(w->output, "| ");
    }
}

/* "HashMap.getNode" of "java.util.HashMap.getNode(java.lang.Object)". */
static void short_name(const char *name, char *text, size_t room)
{
    size_t end = strcspn(name, "( ");
    size_t start = end;
    int dots = 0;
    while (start > 0 && (name[start - 1] != '.' || ++dots < 2)) {
        start--;
    }
    snprintf(text, room, "%.*s", (int)(end - start), name + start);
}

static int put_link(struct writer *w, uint32_t depth)
{
    const struct link *link = &w->chain[depth];
    char name[256];
    const char *text = NULL;
    size_t size = 0;
    short_name(link->name, name, sizeof name);
    int err = link->file ? find_file(w, link->file, &text) : 0;
    put_columns(w, NULL);
    packed_output_text(w->output, "|        | ");
    put_bars(w, depth);
    int used = (int)(2 * (size_t)depth + strlen(name));
    if (link->line) {
        packed_output_printf(w->output, "%s:%u", name, link->line);
        used += snprintf(NULL, 0, ":%u", link->line);
    } else {
        packed_output_text(w->output, name);
    }
    const char *line = line_of(text, link->line, &size);
    if (line) {
        packed_output_printf(w->output, "%*s", used < NAME_COLUMN ? NAME_COLUMN - used : 2, "");
        packed_output_put(w->output, line, size);
    }
    packed_output_text(w->output, "\n");
    return err;
}

/* Shows what of the chain is another than at the instruction before. */
static int put_chain(struct writer *w, const struct instruction *instruction)
{
    struct link chain[CHAIN_MAX];
    uint32_t count = find_chain(w, instruction, chain);
    uint32_t same = 0;
    while (same < count && same < w->chain_count && same_link(&chain[same], &w->chain[same])) {
        same++;
    }
    /* Back in a caller, its line is shown again. */
    if (same == count && count < w->chain_count) {
        same = count - 1;
    }
    memcpy(w->chain, chain, count * sizeof *chain);
    w->chain_count = count;
    int err = 0;
    for (uint32_t i = same; i < count && !err; i++) {
        err = put_link(w, i);
    }
    return err;
}

/* What was sampled up to an offset: a sampled address inside of an instruction is its own (see
 * begins). NULL: nothing. */
static const uint64_t *take_weights(struct writer *w, uint64_t end)
{
    const struct annotation *a = w->annotation;
    uint32_t number = (uint32_t)(w->annotated - a->codes);
    const uint64_t *weights = NULL;
    while (w->place < a->place_count && a->places[w->place].code == number &&
           a->places[w->place].offset < end) {
        weights = a->places[w->place++].weights;
    }
    return weights;
}

static void put_instruction(struct writer *w, const struct instruction *instruction)
{
    const struct resolved_code *code = w->annotated->code;
    const uint64_t *weights = take_weights(w, (uint64_t)instruction->offset + instruction->size);
    put_columns(w, weights);
    packed_output_printf(w->output, "| %6x | ", instruction->offset);
    put_bars(w, w->chain_count ? w->chain_count - 1 : 0);
    packed_output_text(w->output, instruction->text);
    uint64_t target = instruction->target - code->address;
    if (instruction->target && target < code->size) {
        packed_output_printf(w->output, "  ; to %" PRIx64, target);
    } else if (instruction->target) {
        const struct code_stay *stay =
            code_index_at(code->index, instruction->target, UINT64_MAX - 1, NULL);
        if (stay) {
            packed_output_printf(w->output, "  ; %.200s",
                                 code_index_blob(code->index, stay->blob)->name);
        }
    }
    packed_output_text(w->output, "\n");
}

static struct instruction instruction_at(const struct writer *w, const bool *begins, uint32_t at)
{
    const struct resolved_code *code = w->annotated->code;
    return disassemble_in_step(w->annotation->profile->recording->arch, w->details.bytes,
                               (size_t)code->size, begins, at, code->address);
}

/* By offset: sampled addresses, at which an instruction begins. NULL: no memory. */
static bool *sampled_addresses(const struct writer *w)
{
    const struct annotation *a = w->annotation;
    const struct resolved_code *code = w->annotated->code;
    uint32_t number = (uint32_t)(w->annotated - a->codes);
    bool *begins = calloc((size_t)code->size + 1, sizeof *begins);
    for (uint32_t i = w->place; begins && i < a->place_count && a->places[i].code == number; i++) {
        if (a->places[i].offset < code->size && !a->places[i].is_caller) {
            begins[a->places[i].offset] = true;
        }
    }
    return begins;
}

/* By offset of an instruction's beginning: whether it is near one that was sampled. NULL: no
 * memory. */
static bool *near_samples(struct writer *w, const bool *begins)
{
    const struct resolved_code *code = w->annotated->code;
    uint32_t last[AROUND] = {0}; /* the instructions before */
    uint32_t count = 0, behind = 0;
    uint32_t place = w->place;
    bool *near = calloc((size_t)code->size + 1, sizeof *near);
    for (uint32_t at = 0; near && at < code->size; count++) {
        uint32_t size = instruction_at(w, begins, at).size;
        bool is_sampled = take_weights(w, (uint64_t)at + size) != NULL;
        for (uint32_t i = 0; is_sampled && i < AROUND && i < count; i++) {
            near[last[i]] = true;
        }
        behind = is_sampled ? AROUND + 1 : behind;
        near[at] = behind > 0;
        behind -= behind > 0;
        last[count % AROUND] = at;
        at += size;
    }
    w->place = place;
    return near;
}

static void put_left_out(struct writer *w, uint32_t *count)
{
    if (*count > 0) {
        put_columns(w, NULL);
        packed_output_printf(w->output, "|    ... | %" PRIu32 " instructions without samples\n",
                             *count);
        w->chain_count = 0; /* the next one is told anew */
    }
    *count = 0;
}

static int put_instructions(struct writer *w, bool is_whole)
{
    const struct resolved_code *code = w->annotated->code;
    bool *begins = sampled_addresses(w);
    bool *near = begins && !is_whole ? near_samples(w, begins) : NULL;
    int err = begins && (near || is_whole) ? 0 : -ENOMEM;
    uint32_t left_out = 0;
    for (uint32_t at = 0; at < code->size && !err;) {
        struct instruction instruction = instruction_at(w, begins, at);
        if (!near || near[at]) {
            put_left_out(w, &left_out);
            err = put_chain(w, &instruction);
            put_instruction(w, &instruction);
        } else {
            left_out++;
        }
        at += instruction.size;
    }
    put_left_out(w, &left_out);
    free(near);
    free(begins);
    return err;
}

static void put_head(struct writer *w)
{
    const struct annotation *a = w->annotation;
    const struct resolved_code *code = w->annotated->code;
    const struct recording *recording = a->profile->recording;
    packed_output_text(w->output, code->symbol);
    /* When it was compiled is not known: code->from is when nothing else was there any more. */
    packed_output_printf(w->output,
                         "\n%" PRIu64 " bytes at 0x%" PRIx64 ", %" PRIu64 " samples:", code->size,
                         code->address, w->annotated->samples);
    for (uint32_t i = 0; i < a->events; i++) {
        uint64_t whole = a->totals[i];
        packed_output_printf(w->output, "%s %.2f %% of %.60s", i ? "," : "",
                             whole ? 100.0 * (double)w->annotated->weights[i] / (double)whole : 0.0,
                             recording->events[i].name ? recording->events[i].name : "all");
    }
    packed_output_text(w->output, "\n\n");
    for (uint32_t i = 0; i < a->events; i++) {
        packed_output_printf(w->output, "%9.9s ",
                             recording->events[i].name ? recording->events[i].name : "");
    }
    packed_output_text(w->output, "| offset | code\n");
}

int annotation_put(const struct annotation *annotation, uint32_t number, bool is_whole,
                   struct source_texts *sources, struct packed_output *output)
{
    struct writer w = {.annotation = annotation,
                       .annotated = &annotation->codes[number],
                       .sources = sources,
                       .output = output};
    const struct resolved_code *code = w.annotated->code;
    int err = 0;
    while (w.place < annotation->place_count && annotation->places[w.place].code < number) {
        w.place++;
    }
    put_head(&w);
    if (!code->index || code_index_fetch(code->index, code->blob, &w.details) < 0) {
        packed_output_text(output, "(its dump is not at hand)\n");
    } else if (!w.details.bytes) {
        packed_output_text(output, "(the dump has no bytes of it: the agent ran with code=off)\n");
    } else {
        w.at_safepoints = safepoint_lines_of(code->index, code->blob, &w.details);
        err = put_instructions(&w, is_whole);
    }
    for (uint32_t i = 0; i < w.file_count; i++) {
        free(w.files[i].text);
    }
    free(w.files);
    code_details_free(&w.details);
    return err;
}

/* ---- Choosing ---- */

const char *annotated_name(const struct annotation *a, uint32_t code)
{
    const struct resolved_code *its = a->codes[code].code;
    return its->method ? its->method->name : its->symbol;
}

uint32_t annotated_event(const struct annotation *a, uint32_t code)
{
    uint32_t event = 0;
    while (event + 1 < a->events && a->codes[code].weights[event] == 0) {
        event++;
    }
    return event;
}

/* Codes by their first event, then by its weight, the heaviest first: weights of two events do not
 * compare. */
static int compare_codes(const void *x, const void *y, void *argument)
{
    const struct annotation *a = argument;
    uint32_t i = *(const uint32_t *)x, k = *(const uint32_t *)y;
    uint32_t event = annotated_event(a, i), other = annotated_event(a, k);
    return ORDER(event, other)
               ?: ORDER(a->codes[k].weights[event], a->codes[i].weights[event])
               ?: ORDER(i, k);
}

/* Whether a location of generated code has the wanted method inlined. */
static bool has_inlined(const struct profile *profile, const struct profile_location *location,
                        const char *wanted)
{
    for (uint32_t i = 0; location->code && i + 1 < location->line_count; i++) {
        const struct profile_line *line = &profile->lines[location->first_line + i];
        if (method_match(profile->functions[line->function].name, wanted) > 0) {
            return true;
        }
    }
    return false;
}

/* The codes of which instructions of the wanted method, inlined there, were sampled: picks them, in
 * that order, and sets their shares of those samples in `hosted`, by code. Returns their number. */
static uint32_t pick_hosts(const struct annotation *a, const char *wanted, const uint32_t *order,
                           uint32_t *picked, uint64_t *hosted)
{
    const struct profile *profile = a->profile;
    uint32_t count = 0;
    for (uint32_t i = 0; i < a->code_count; i++) {
        hosted[i] = 0;
    }
    for (uint32_t i = 0; i < profile->sample_count; i++) {
        const struct profile_sample *sample = &profile->samples[i];
        const struct profile_location *location =
            sample->node == PROFILE_NONE
                ? NULL
                : &profile->locations[profile->nodes[sample->node].location];
        if (!location || !has_inlined(profile, location, wanted)) {
            continue;
        }
        uint32_t code = a->numbers[location->code_number] - 1;
        hosted[code] += sample->event == annotated_event(a, code) ? sample->weight : 0;
    }
    for (uint32_t i = 0; i < a->code_count; i++) {
        if (hosted[order[i]]) {
            picked[count++] = order[i];
        }
    }
    /* Of a method that calls, only what it called may have been sampled. */
    for (uint32_t i = 0; profile->locations && count == 0 && i < profile->location_count; i++) {
        const struct profile_location *location = &profile->locations[i];
        if (has_inlined(profile, location, wanted) && a->numbers[location->code_number]) {
            picked[count++] = a->numbers[location->code_number] - 1;
        }
    }
    return count;
}

static uint32_t pick_codes(const struct annotation *a, const char *wanted, const uint32_t *order,
                           uint32_t *picked)
{
    uint32_t count = 0;
    for (int rank = 3; rank > 0 && count == 0; rank--) {
        for (uint32_t i = 0; i < a->code_count; i++) {
            if (method_match(annotated_name(a, order[i]), wanted) == rank) {
                picked[count++] = order[i];
            }
        }
    }
    return count;
}

int annotation_choose(const struct annotation *a, const char *wanted,
                      struct annotation_choice *choice)
{
    size_t count = (size_t)a->code_count + 1;
    *choice = (struct annotation_choice){.order = array_sorted(a->code_count, compare_codes, a),
                                         .picked = calloc(count, sizeof *choice->picked),
                                         .hosted = calloc(count, sizeof *choice->hosted)};
    uint32_t *hosts = calloc(count, sizeof *hosts);
    if (!choice->order || !choice->picked || !choice->hosted || !hosts) {
        free(hosts);
        return -ENOMEM;
    }
    choice->count = pick_codes(a, wanted, choice->order, choice->picked);
    uint32_t host_count = pick_hosts(a, wanted, choice->order, hosts, choice->hosted);
    if (choice->count == 0 && host_count > 0) {
        choice->are_hosts = true;
        memcpy(choice->picked, hosts, host_count * sizeof *hosts);
        choice->count = host_count;
    }
    free(hosts);
    return 0;
}

void annotation_choice_free(struct annotation_choice *choice)
{
    free(choice->order);
    free(choice->picked);
    free(choice->hosted);
}
