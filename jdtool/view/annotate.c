#include "jdtool/view/annotate.h"

#include "jdtool/base/array.h"
#include "jdtool/jitdump/code_index.h"
#include "jdtool/jitdump/safepoint_lines.h"
#include "jdtool/resolve/source_texts.h"
#include "jdtool/unwind/disassembly.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    if (array_reserve(&w->files, w->file_count, &w->file_room, sizeof *w->files)) {
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
        if (a->places[i].offset < code->size) {
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
    packed_output_printf(
        w->output, "\n%" PRIu64 " bytes at 0x%" PRIx64 ", there from %.3f s on, ", code->size,
        code->address,
        code->from > a->profile->from ? (double)(code->from - a->profile->from) / 1e9 : 0.0);
    packed_output_printf(w->output, "%" PRIu64 " samples:", w->annotated->samples);
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
