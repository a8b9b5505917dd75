#include "writer/sinks/trailer_encoder.h"

#include <stdatomic.h>
#include <stddef.h>

enum { SECTION_LIMIT = 16 * 1024 * 1024 };

static uint64_t next_round(void)
{
    static atomic_uint_least64_t last;
    return atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
}

void trailer_encoder_init(struct trailer_encoder *encoder)
{
    *encoder = (struct trailer_encoder){
        .round = next_round(),
        .files = BUFFER_INIT(SECTION_LIMIT),
        .methods = BUFFER_INIT(SECTION_LIMIT),
        .inlines = BUFFER_INIT(SECTION_LIMIT),
        .facts = BUFFER_INIT(SECTION_LIMIT),
    };
}

void trailer_encoder_free(struct trailer_encoder *encoder)
{
    buffer_free(&encoder->files);
    buffer_free(&encoder->methods);
    buffer_free(&encoder->inlines);
    buffer_free(&encoder->facts);
}

void trailer_encoder_forget(struct trailer_encoder *encoder)
{
    encoder->round = next_round();
    encoder->frozen_told = false;
}

/* Whether what has this note is not defined as yet; it is from now on. */
static bool define(const struct trailer_encoder *encoder, const uint64_t *note)
{
    bool is_new = *note != encoder->round;
    *(uint64_t *)note = encoder->round; /* see writer/code.h */
    return is_new;
}

/* Returns the id to refer to a file with, having defined it if this is the first time. */
static uint32_t file_id(struct trailer_encoder *encoder, const struct source_file *file)
{
    if (!file || file->id == 0) {
        return 0;
    }
    if (define(encoder, &file->defined)) {
        buffer_put_uleb(&encoder->files, file->id);
        buffer_put_string(&encoder->files, file->path);
    }
    return file->id;
}

static uint32_t method_id(struct trailer_encoder *encoder, const struct method *method)
{
    if (!method || method->id == 0) {
        return 0;
    }
    if (define(encoder, &method->defined)) {
        uint32_t file = file_id(encoder, method->file);
        buffer_put_uleb(&encoder->methods, method->id);
        buffer_put_uleb(&encoder->methods, file);
        buffer_put_uleb(&encoder->methods, method->first_line);
        buffer_put_string(&encoder->methods, method->name);
    }
    return method->id;
}

static void encode_inlines(struct trailer_encoder *encoder, const struct code *code)
{
    struct buffer *out = &encoder->inlines;
    if (code->node_count == 0) {
        return;
    }
    buffer_put_uleb(out, code->node_count);
    for (uint32_t i = 0; i < code->node_count; i++) {
        const struct inline_node *node = &code->nodes[i];
        buffer_put_uleb(out, method_id(encoder, node->method));
        if (i > 0) {
            buffer_put_uleb(out, node->parent);
            buffer_put_uleb(out, node->call_line);
        }
    }
    int64_t line = 0;
    for (uint32_t i = 0; i < code->range_count; i++) {
        const struct inline_range *range = &code->ranges[i];
        uint32_t end = i + 1 < code->range_count ? range[1].offset : code->ranges_end;
        buffer_put_uleb(out, end - range->offset);
        buffer_put_uleb(out, range->node);
        buffer_put_sleb(out, (int64_t)range->line - line);
        line = range->line;
    }
}

static void encode_fact(struct buffer *out, uint32_t key, int32_t value)
{
    if (value >= 0) {
        buffer_put_uleb(out, key);
        buffer_put_uleb(out, (uint64_t)value);
    }
}

static void encode_facts(struct trailer_encoder *encoder, const struct code_facts *facts)
{
    struct buffer *out = &encoder->facts;
    encode_fact(out, JITDUMP_CODE_KIND, facts->kind);
    encode_fact(out, JITDUMP_CODE_TIER, facts->tier);
    encode_fact(out, JITDUMP_CODE_FRAME_SIZE, facts->frame_size);
    encode_fact(out, JITDUMP_CODE_VERIFIED_ENTRY, facts->verified_entry);
    encode_fact(out, JITDUMP_CODE_OSR_ENTRY, facts->osr_entry);
    encode_fact(out, JITDUMP_CODE_OSR_BCI, facts->osr_bci);
    encode_fact(out, JITDUMP_CODE_COMPILE_ID, facts->compile_id);
    encode_fact(out, JITDUMP_CODE_FRAME_COMPLETE, facts->frame_complete);
    if (facts->frozen && !encoder->frozen_told) {
        for (uint32_t i = 0; i < JITDUMP_CODE_FROZEN_COUNT; i++) {
            encode_fact(out, JITDUMP_CODE_FROZEN_FIRST + i, facts->frozen[i]);
        }
        encoder->frozen_told = true;
    }
}

static void put_section(struct buffer *out, enum jitdump_trailer_tag tag,
                        const struct buffer *section)
{
    if (section->size > 0) {
        buffer_put_uleb(out, tag);
        buffer_put_uleb(out, section->size);
        buffer_put(out, section->bytes, section->size);
    }
    if (section->failed) {
        out->failed = true;
    }
}

void trailer_encode(struct trailer_encoder *encoder, const struct code *code, bool tree_rows,
                    uint64_t late, struct buffer *out)
{
    buffer_clear(&encoder->files);
    buffer_clear(&encoder->methods);
    buffer_clear(&encoder->inlines);
    buffer_clear(&encoder->facts);
    encode_inlines(encoder, code);
    encode_facts(encoder, &code->facts);
    if (late && encoder->facts.size) {
        buffer_put_uleb(&encoder->facts, JITDUMP_CODE_LATE);
        buffer_put_uleb(&encoder->facts, late);
    }
    if (code->node_count == 0 && encoder->facts.size == 0) {
        return;
    }
    size_t start = out->size;
    buffer_extend(out, sizeof(struct jitdump_trailer));
    put_section(out, JITDUMP_TRAILER_FILES, &encoder->files);
    put_section(out, JITDUMP_TRAILER_METHODS, &encoder->methods);
    put_section(out, JITDUMP_TRAILER_INLINES, &encoder->inlines);
    put_section(out, JITDUMP_TRAILER_CODE, &encoder->facts);
    if (tree_rows) {
        buffer_put_uleb(out, JITDUMP_TRAILER_TREE_ROWS);
        buffer_put_uleb(out, 0);
    }
    if (!out->failed) {
        struct jitdump_trailer trailer = {
            .magic = JITDUMP_TRAILER_MAGIC,
            .version = JITDUMP_TRAILER_VERSION,
            .size = (uint32_t)(out->size - start),
        };
        memcpy(out->bytes + start, &trailer, sizeof(trailer));
    }
}

/* ---- Rows of the tree ---- */

/* Where a line is; file NULL: unknown. */
struct place {
    const struct source_file *file;
    uint32_t line;
};

/* A method's file as the trailer tells it. */
static const struct source_file *file_of(const struct method *method)
{
    const struct source_file *file = method && method->id ? method->file : NULL;
    return file && file->id ? file : NULL;
}

static struct place first_line(const struct code *code)
{
    const struct method *root = code->nodes[0].method;
    const struct source_file *file = file_of(root);
    return file && root->first_line ? (struct place){file, root->first_line} : (struct place){0};
}

static struct place place_of(const struct code *code, uint32_t node, uint32_t line)
{
    for (int climbed = 0; climbed <= JITDUMP_TREE_CLIMB; climbed++) {
        const struct source_file *file = file_of(code->nodes[node].method);
        if (line && file) {
            return (struct place){file, line};
        }
        if (node == 0) {
            break;
        }
        line = code->nodes[node].call_line;
        node = code->nodes[node].parent;
    }
    return first_line(code);
}

/* Whether the rows from *row on can begin with this one; goes on behind it. */
static bool is_next(const struct code *code, uint32_t *row, uint32_t offset, struct place place)
{
    if (!place.file) {
        return true;
    }
    const struct code_row *next = &code->rows[*row];
    if (*row > 0 && next[-1].file == place.file && next[-1].line == place.line) {
        return true;
    }
    if (*row == code->row_count || next->file != place.file || next->line != place.line ||
        next->offset != (*row > 0 ? offset : 0)) {
        return false;
    }
    ++*row;
    return true;
}

bool tree_gives_rows(const struct code *code)
{
    if (code->node_count == 0 || code->range_count == 0) {
        return false;
    }
    uint32_t row = 0;
    for (uint32_t i = 0; i < code->range_count; i++) {
        const struct inline_range *range = &code->ranges[i];
        if (!is_next(code, &row, range->offset, place_of(code, range->node, range->line))) {
            return false;
        }
    }
    if (code->ranges_end < code->size && !is_next(code, &row, code->ranges_end, first_line(code))) {
        return false;
    }
    return row == code->row_count;
}
