#include "jdtool/resolve/pieces.h"

#include "jdtool/base/message.h"

#include <stdlib.h>
#include <string.h>

/* A line of code without an inline tree. */
struct piece_row {
    uint32_t offset;
    uint32_t line;
};

struct code_piece {
    bool known;   /* method, kind, tier, is_osr */
    bool fetched; /* and its tree or rows are here */
    uint8_t kind; /* enum resolved_kind */
    uint8_t tier;
    bool is_osr;
    const struct resolved_method *method;
    struct trailer_node *nodes; /* of its tree; the ranges are in the same allocation */
    struct trailer_range *ranges;
    uint32_t node_count;
    uint32_t range_count;
    struct piece_row *rows;
    uint32_t row_count;
};

void pieces_start(struct code_source *source)
{
    source->pieces.element = sizeof(struct code_piece);
    source->codes.element = sizeof(struct resolved_code);
}

static struct code_piece *piece_at(const struct code_source *source, uint32_t blob)
{
    return chunks_at(&source->pieces, blob);
}

static void forget_trees(struct code_source *source)
{
    for (uint32_t i = 0; i < source->pieces.count; i++) {
        struct code_piece *piece = piece_at(source, i);
        free(piece->nodes);
        free(piece->rows);
        piece->nodes = NULL;
        piece->ranges = NULL;
        piece->rows = NULL;
        piece->node_count = 0;
        piece->range_count = 0;
        piece->row_count = 0;
        piece->fetched = false;
    }
    source->piece_bytes = 0;
}

void pieces_free(struct code_source *source)
{
    forget_trees(source);
    chunks_free(&source->pieces);
    chunks_free(&source->codes);
    hash_map_free(&source->by_stay);
    hash_map_free(&source->by_page);
}

/* ---- Fetching ---- */

static bool keep_tree(struct code_source *source, const struct trailer *from,
                      struct code_piece *piece)
{
    size_t nodes_size = from->node_count * sizeof *from->nodes;
    size_t ranges_size = from->range_count * sizeof *from->ranges;
    char *bytes = malloc(nodes_size + ranges_size + 1);
    if (!bytes) {
        return false;
    }
    memcpy(bytes, from->nodes, nodes_size);
    memcpy(bytes + nodes_size, from->ranges, ranges_size);
    piece->nodes = (struct trailer_node *)bytes;
    piece->node_count = from->node_count;
    piece->ranges = (struct trailer_range *)(bytes + nodes_size);
    piece->range_count = from->range_count;
    source->piece_bytes += nodes_size + ranges_size;
    return true;
}

/* Lines of the method's own file; those of others are of methods that the dump says nothing of. */
static bool keep_rows(struct code_source *source, const struct code_blob *blob,
                      const struct code_details *details, struct code_piece *piece)
{
    const char *file = details->entry_count ? details->entries[0].file : NULL;
    piece->rows = calloc(details->entry_count + (size_t)1, sizeof *piece->rows);
    if (!piece->rows) {
        return false;
    }
    for (uint32_t i = 0; i < details->entry_count; i++) {
        const struct jitdump_entry *entry = &details->entries[i];
        uint64_t offset = entry->address - blob->address;
        if (offset >= blob->size || offset > UINT32_MAX ||
            (piece->row_count && piece->rows[piece->row_count - 1].offset > offset)) {
            continue;
        }
        bool is_own = entry->file == file || strcmp(entry->file, file) == 0;
        piece->rows[piece->row_count++] =
            (struct piece_row){(uint32_t)offset, is_own ? entry->line : 0};
    }
    source->piece_bytes += piece->row_count * sizeof *piece->rows;
    return true;
}

static enum resolved_kind kind_of(const struct code_blob *blob, const struct trailer *trailer)
{
    int64_t kind = trailer->facts[JITDUMP_CODE_KIND];
    return frames_shape_of(blob->name, kind) == FRAMES_COMPILED ? RESOLVED_COMPILED : RESOLVED_STUB;
}

static bool name_piece(struct piece_context *context, const struct code_source *source,
                       const struct code_blob *blob, struct code_piece *piece)
{
    const struct trailer *trailer = &context->details.trailer;
    struct method_facts facts = {.name = blob->name, .module = source->about.module};
    piece->kind = (uint8_t)kind_of(blob, trailer);
    facts.kind = (enum resolved_kind)piece->kind;
    if (piece->kind == RESOLVED_COMPILED) {
        int64_t tier = trailer->facts[JITDUMP_CODE_TIER];
        piece->tier = tier > 0 && tier <= 4 ? (uint8_t)tier : 0;
        piece->is_osr = trailer->facts[JITDUMP_CODE_OSR_ENTRY] >= 0;
        if (context->details.entry_count) {
            facts.file = context->details.entries[0].file;
        }
        if (trailer->node_count && trailer->nodes[0].method) {
            const struct trailer_method *method = trailer_names_method(
                code_index_names(source->about.index), trailer->nodes[0].method);
            facts.name = method->name;
            facts.file = method->file ? method->file : facts.file;
            facts.first_line = method->first_line;
        }
    }
    piece->method = methods_of(context->methods, &facts);
    piece->known = piece->method != NULL;
    return piece->known;
}

/* A dump that cannot be read again costs lines and inlined methods, not the profile. */
static bool fetch(struct piece_context *context, struct code_source *source, uint32_t number,
                  struct code_piece *piece)
{
    const struct code_blob *blob = code_index_blob(source->about.index, number);
    struct code_details *details = &context->details;
    if (source->piece_bytes > PIECE_BYTES_MAX) {
        forget_trees(source);
    }
    if (source->unreadable || code_index_fetch(source->about.index, number, details) != 0) {
        source->unreadable = true;
        trailer_clear(&details->trailer);
        details->entry_count = 0;
    }
    (void)code_frames_facts(source->frames, number, details);
    if (!piece->known && !name_piece(context, source, blob, piece)) {
        return false;
    }
    if (piece->kind == RESOLVED_COMPILED) {
        bool kept = details->trailer.range_count ? keep_tree(source, &details->trailer, piece)
                                                 : keep_rows(source, blob, details, piece);
        if (!kept) {
            return false;
        }
    }
    piece->fetched = true;
    return true;
}

static struct code_piece *fetched_piece(struct piece_context *context, struct code_source *source,
                                        uint32_t blob)
{
    while (source->pieces.count <= blob) {
        if (!chunks_add(&source->pieces)) {
            return NULL;
        }
    }
    struct code_piece *piece = piece_at(source, blob);
    return piece->fetched || fetch(context, source, blob, piece) ? piece : NULL;
}

const struct blob_frames *piece_shape(struct piece_context *context, struct code_source *source,
                                      uint32_t blob)
{
    (void)fetched_piece(context, source, blob);
    return code_frames_facts(source->frames, blob, NULL);
}

/* ---- Codes ---- */

#define PAGE_SHIFT     12
#define PAGES_MAX      4096 /* larger code has addresses of its own, apart from all others */
#define PAGE_CODES_MAX 64   /* code at a place that so many had before, too */
#define APART          (UINT64_C(1) << 56)

static const struct resolved_code *code_at(const struct code_source *source, uint32_t number)
{
    return chunks_at(&source->codes, number);
}

/* Whether some code that has its own address lies there already. */
static bool is_taken(const struct code_source *source, uint64_t address, uint64_t end)
{
    for (uint64_t page = address >> PAGE_SHIFT; page <= (end - 1) >> PAGE_SHIFT; page++) {
        struct hash_map_cursor cursor = hash_map_start(&source->by_page, page);
        uint32_t number;
        uint32_t seen = 0;
        while ((number = hash_map_next(&source->by_page, &cursor)) != HASH_MAP_NONE) {
            const struct resolved_code *other = code_at(source, number);
            if (++seen == PAGE_CODES_MAX ||
                (other->address < end && address < other->address + other->size)) {
                return true;
            }
        }
    }
    return false;
}

/* Gives code its address in the module: its own, unless other code was there before it. */
static bool place_code(struct code_source *source, struct resolved_code *code)
{
    uint64_t size = code->size ? code->size : 1;
    uint64_t end = code->address + size;
    if (size <= (uint64_t)PAGES_MAX << PAGE_SHIFT && end < APART &&
        !is_taken(source, code->address, end)) {
        code->module_address = code->address;
        for (uint64_t page = code->address >> PAGE_SHIFT; page <= (end - 1) >> PAGE_SHIFT; page++) {
            if (hash_map_add(&source->by_page, page, code->id)) {
                return false;
            }
        }
        return true;
    }
    code->module_address = APART + source->apart;
    source->apart += (size + 63) / 64 * 64;
    return true;
}

const struct resolved_code *piece_code(struct piece_context *context, struct code_source *source,
                                       const struct code_stay *stay)
{
    struct hash_map_cursor cursor = hash_map_start(&source->by_stay, stay->number);
    uint32_t number;
    while ((number = hash_map_next(&source->by_stay, &cursor)) != HASH_MAP_NONE) {
        const struct resolved_code *known = code_at(source, number);
        if (known->stay == stay->number) {
            return known;
        }
    }
    const struct code_piece *piece = fetched_piece(context, source, stay->blob);
    struct resolved_code *code = piece ? chunks_add(&source->codes) : NULL;
    if (!code) {
        return NULL;
    }
    *code = (struct resolved_code){
        .id = source->codes.count - 1,
        .stay = stay->number,
        .address = stay->address,
        .size = stay->size,
        .from = code_source_recording_time(source, stay->from),
        .symbol = code_index_blob(source->about.index, stay->blob)->name,
        .method = piece->method,
        .module = source->about.module,
        .index = source->about.index,
        .blob = stay->blob,
    };
    if (!place_code(source, code) || hash_map_add(&source->by_stay, stay->number, code->id)) {
        return NULL;
    }
    return code;
}

/* ---- Frames ---- */

static uint32_t row_line(const struct code_piece *piece, uint64_t offset)
{
    uint32_t low = 0;
    uint32_t high = piece->row_count;
    while (low < high) { /* the first that is behind */
        uint32_t middle = low + (high - low) / 2;
        if (piece->rows[middle].offset <= offset) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low ? piece->rows[low - 1].line : 0;
}

static const struct resolved_method *inlined_method(struct piece_context *context,
                                                    const struct code_source *source, uint64_t id)
{
    const struct trailer_method *method =
        trailer_names_method(code_index_names(source->about.index), id);
    struct method_facts facts = {.kind = RESOLVED_COMPILED,
                                 .name = method->name,
                                 .file = method->file,
                                 .first_line = method->first_line,
                                 .module = source->about.module};
    return methods_of(context->methods, &facts);
}

/* How many nodes lie between a node and the compiled method, itself included; 0: it is that one. */
static uint32_t depth_of(const struct trailer *tree, uint32_t node, uint64_t *cut)
{
    uint32_t depth = 0;
    for (; node != 0 && depth < INLINE_DEPTH_MAX; node = tree->nodes[node].parent) {
        depth++;
    }
    *cut += node != 0;
    return depth;
}

struct resolved_frame *piece_frames(struct piece_context *context, struct code_source *source,
                                    const struct resolved_code *code, uint64_t address,
                                    struct arena *arena, uint32_t *count)
{
    const struct code_piece *piece = fetched_piece(context, source, code->blob);
    if (!piece) {
        return NULL;
    }
    uint64_t offset = address - code->address;
    const struct trailer tree = {.nodes = piece->nodes,
                                 .node_count = piece->node_count,
                                 .ranges = piece->ranges,
                                 .range_count = piece->range_count};
    const struct trailer_range *range =
        offset <= UINT32_MAX ? trailer_range_at(&tree, (uint32_t)offset) : NULL;
    uint32_t node = range ? range->node : 0;
    uint32_t depth = depth_of(&tree, node, &context->inlines_cut);
    struct resolved_frame *frames = arena_take(arena, (depth + (size_t)1) * sizeof *frames);
    if (!frames) {
        return NULL;
    }
    uint32_t line = range ? range->line : row_line(piece, offset);
    for (uint32_t i = 0; i < depth; i++) {
        frames[i] = (struct resolved_frame){
            .kind = RESOLVED_INLINED,
            .tier = piece->tier,
            .is_osr = piece->is_osr,
            .line = line,
            .bci = -1,
            .module = code->module,
            .method = inlined_method(context, source, tree.nodes[node].method),
            .code = code,
        };
        if (!frames[i].method) {
            return NULL;
        }
        line = tree.nodes[node].call_line;
        node = tree.nodes[node].parent;
    }
    frames[depth] = (struct resolved_frame){
        .kind = piece->kind,
        .tier = piece->tier,
        .is_osr = piece->is_osr,
        .line = node == 0 ? line : 0, /* of a tree that was too deep the call is not known */
        .bci = -1,
        .module = code->module,
        .method = piece->method,
        .code = code,
    };
    *count = depth + 1;
    return frames;
}
