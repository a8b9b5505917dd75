#include "jdtool/resolve/code_blobs.h"

#include "jdtool/base/array.h"
#include "jdtool/jitdump/safepoint_lines.h"

#include <stdlib.h>
#include <string.h>

/* A line of code without an inline tree. */
struct blob_row {
    uint32_t offset;
    uint32_t line;
};

struct kept_blob {
    bool known;   /* method, kind, tier, is_osr */
    bool fetched; /* and its tree or rows are here */
    uint8_t kind; /* enum resolved_kind */
    uint8_t tier;
    bool is_osr;
    bool at_safepoints; /* the tree holds at safepoints only */
    const struct resolved_method *method;
    struct trailer_node *nodes; /* of its tree; the ranges are in the same allocation */
    struct trailer_range *ranges;
    uint32_t node_count;
    uint32_t range_count;
    struct blob_row *rows;
    uint32_t row_count;
};

void code_blobs_start(struct jvm_dump *dump)
{
    dump->blobs.element = sizeof(struct kept_blob);
    dump->codes.element = sizeof(struct resolved_code);
}

static struct kept_blob *blob_at(const struct jvm_dump *dump, uint32_t blob)
{
    return chunks_at(&dump->blobs, blob);
}

static void forget_trees(struct jvm_dump *dump)
{
    for (uint32_t i = 0; i < dump->blobs.count; i++) {
        struct kept_blob *kept = blob_at(dump, i);
        free(kept->nodes);
        free(kept->rows);
        kept->nodes = NULL;
        kept->ranges = NULL;
        kept->rows = NULL;
        kept->node_count = 0;
        kept->range_count = 0;
        kept->row_count = 0;
        kept->fetched = false;
    }
    dump->blob_bytes = 0;
}

void code_blobs_free(struct jvm_dump *dump)
{
    forget_trees(dump);
    chunks_free(&dump->blobs);
    chunks_free(&dump->codes);
    hash_map_free(&dump->by_stay);
    hash_map_free(&dump->by_page);
}

/* ---- Fetching ---- */

static bool keep_tree(struct jvm_dump *dump, const struct trailer *from, struct kept_blob *kept)
{
    size_t nodes_size = from->node_count * sizeof *from->nodes;
    size_t ranges_size = from->range_count * sizeof *from->ranges;
    char *bytes = malloc(nodes_size + ranges_size + 1);
    if (!bytes) {
        return false;
    }
    memcpy(bytes, from->nodes, nodes_size);
    memcpy(bytes + nodes_size, from->ranges, ranges_size);
    kept->nodes = (struct trailer_node *)bytes;
    kept->node_count = from->node_count;
    kept->ranges = (struct trailer_range *)(bytes + nodes_size);
    kept->range_count = from->range_count;
    dump->blob_bytes += nodes_size + ranges_size;
    return true;
}

/* Lines of the method's own file; those of others are of methods that the dump says nothing of. */
static bool keep_rows(struct jvm_dump *dump, const struct code_blob *blob,
                      const struct code_details *details, struct kept_blob *kept)
{
    const char *file = details->entry_count ? details->entries[0].file : NULL;
    kept->rows = calloc(details->entry_count + (size_t)1, sizeof *kept->rows);
    if (!kept->rows) {
        return false;
    }
    for (uint32_t i = 0; i < details->entry_count; i++) {
        const struct jitdump_entry *entry = &details->entries[i];
        uint64_t offset = entry->address - blob->address;
        if (offset >= blob->size || offset > UINT32_MAX ||
            (kept->row_count && kept->rows[kept->row_count - 1].offset > offset)) {
            continue;
        }
        bool is_own = entry->file == file || strcmp(entry->file, file) == 0;
        kept->rows[kept->row_count++] =
            (struct blob_row){(uint32_t)offset, is_own ? entry->line : 0};
    }
    dump->blob_bytes += kept->row_count * sizeof *kept->rows;
    return true;
}

static enum resolved_kind kind_of(const struct code_blob *blob, const struct trailer *trailer)
{
    int64_t kind = trailer->facts[JITDUMP_CODE_KIND];
    return frames_shape_of(blob->name, kind) == FRAMES_COMPILED ? RESOLVED_COMPILED : RESOLVED_STUB;
}

static bool name_blob(struct blob_context *context, const struct jvm_dump *dump,
                      const struct code_blob *blob, struct kept_blob *kept)
{
    const struct trailer *trailer = &context->details.trailer;
    struct method_facts facts = {.name = blob->name, .module = dump->about.module};
    kept->kind = (uint8_t)kind_of(blob, trailer);
    facts.kind = (enum resolved_kind)kept->kind;
    if (kept->kind == RESOLVED_COMPILED) {
        int64_t tier = trailer->facts[JITDUMP_CODE_TIER];
        kept->tier = tier > 0 && tier <= JITDUMP_TIER_JVMCI ? (uint8_t)tier : 0;
        kept->is_osr = trailer->facts[JITDUMP_CODE_OSR_ENTRY] >= 0;
        if (context->details.entry_count) {
            facts.file = context->details.entries[0].file;
        }
        if (trailer->node_count && trailer->nodes[0].method) {
            const struct trailer_method *method =
                trailer_names_method(code_index_names(dump->about.index), trailer->nodes[0].method);
            facts.name = method->name;
            facts.file = method->file;
            facts.first_line = method->first_line;
        }
    }
    kept->method = methods_of(context->methods, &facts);
    kept->known = kept->method != NULL;
    return kept->known;
}

/* A dump that cannot be read again costs lines and inlined methods, not the profile. */
static bool fetch(struct blob_context *context, struct jvm_dump *dump, uint32_t number,
                  struct kept_blob *kept)
{
    const struct code_blob *blob = code_index_blob(dump->about.index, number);
    struct code_details *details = &context->details;
    if (dump->blob_bytes > BLOB_BYTES_MAX) {
        forget_trees(dump);
    }
    if (dump->unreadable || code_index_fetch(dump->about.index, number, details) != 0) {
        dump->unreadable = true;
        trailer_clear(&details->trailer);
        details->entry_count = 0;
    }
    (void)code_frames_facts(dump->frames, number, details);
    if (!kept->known && !name_blob(context, dump, blob, kept)) {
        return false;
    }
    if (kept->kind == RESOLVED_COMPILED) {
        kept->at_safepoints = safepoint_lines_of(dump->about.index, number, details);
        bool stays = details->trailer.range_count ? keep_tree(dump, &details->trailer, kept)
                                                  : keep_rows(dump, blob, details, kept);
        if (!stays) {
            return false;
        }
    }
    kept->fetched = true;
    return true;
}

static struct kept_blob *fetched_blob(struct blob_context *context, struct jvm_dump *dump,
                                      uint32_t blob)
{
    while (dump->blobs.count <= blob) {
        if (!chunks_add(&dump->blobs)) {
            return NULL;
        }
    }
    struct kept_blob *kept = blob_at(dump, blob);
    return kept->fetched || fetch(context, dump, blob, kept) ? kept : NULL;
}

const struct blob_frames *code_blobs_shape(struct blob_context *context, struct jvm_dump *dump,
                                           uint32_t blob)
{
    (void)fetched_blob(context, dump, blob);
    return code_frames_facts(dump->frames, blob, NULL);
}

/* ---- Codes ---- */

#define PAGE_SHIFT     12
#define PAGES_MAX      4096 /* larger code has addresses of its own, apart from all others */
#define PAGE_CODES_MAX 64   /* code at a place that so many had before, too */
#define APART          (UINT64_C(1) << 56)

static const struct resolved_code *code_at(const struct jvm_dump *dump, uint32_t number)
{
    return chunks_at(&dump->codes, number);
}

/* Whether some code that has its own address lies there already. */
static bool is_taken(const struct jvm_dump *dump, uint64_t address, uint64_t end)
{
    for (uint64_t page = address >> PAGE_SHIFT; page <= (end - 1) >> PAGE_SHIFT; page++) {
        struct hash_map_cursor cursor = hash_map_start(&dump->by_page, page);
        uint32_t number;
        uint32_t seen = 0;
        while ((number = hash_map_next(&dump->by_page, &cursor)) != HASH_MAP_NONE) {
            const struct resolved_code *other = code_at(dump, number);
            if (++seen == PAGE_CODES_MAX ||
                (other->address < end && address < other->address + other->size)) {
                return true;
            }
        }
    }
    return false;
}

/* Gives code its address in the module: its own, unless other code was there before it. */
static bool give_address(struct jvm_dump *dump, struct resolved_code *code)
{
    uint64_t size = code->size ? code->size : 1;
    uint64_t end = code->address + size;
    if (size <= (uint64_t)PAGES_MAX << PAGE_SHIFT && end < APART &&
        !is_taken(dump, code->address, end)) {
        code->module_address = code->address;
        for (uint64_t page = code->address >> PAGE_SHIFT; page <= (end - 1) >> PAGE_SHIFT; page++) {
            if (hash_map_add(&dump->by_page, page, code->id)) {
                return false;
            }
        }
        return true;
    }
    code->module_address = APART + dump->apart;
    dump->apart += (size + 63) / 64 * 64;
    return true;
}

const struct resolved_code *code_blobs_code(struct blob_context *context, struct jvm_dump *dump,
                                            const struct code_stay *stay)
{
    uint32_t number;
    HASH_MAP_FIND(number, &dump->by_stay, stay->number,
                  code_at(dump, number)->stay == stay->number);
    if (number != HASH_MAP_NONE) {
        return code_at(dump, number);
    }
    const struct kept_blob *kept = fetched_blob(context, dump, stay->blob);
    struct resolved_code *code = kept ? chunks_add(&dump->codes) : NULL;
    if (!code) {
        return NULL;
    }
    *code = (struct resolved_code){
        .id = dump->codes.count - 1,
        .stay = stay->number,
        .address = stay->address,
        .size = stay->size,
        .from = jvm_dump_recording_time(dump, stay->from),
        .is_interpreter =
            code_frames_facts(dump->frames, stay->blob, NULL)->shape == FRAMES_INTERPRETER,
        .symbol = code_index_blob(dump->about.index, stay->blob)->name,
        .method = kept->method,
        .module = dump->about.module,
        .index = dump->about.index,
        .blob = stay->blob,
    };
    if (!give_address(dump, code) || hash_map_add(&dump->by_stay, stay->number, code->id)) {
        return NULL;
    }
    return code;
}

/* ---- Frames ---- */

static uint32_t row_line(const struct kept_blob *kept, uint64_t offset)
{
    uint32_t low;
    ARRAY_FIRST(low, kept->row_count, kept->rows[low].offset <= offset);
    return low ? kept->rows[low - 1].line : 0;
}

static const struct resolved_method *inlined_method(struct blob_context *context,
                                                    const struct jvm_dump *dump, uint64_t id)
{
    const struct trailer_method *method =
        trailer_names_method(code_index_names(dump->about.index), id);
    struct method_facts facts = {.kind = RESOLVED_COMPILED,
                                 .name = method->name,
                                 .file = method->file,
                                 .first_line = method->first_line,
                                 .module = dump->about.module};
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

struct resolved_frame *code_blobs_frames(struct blob_context *context, struct jvm_dump *dump,
                                         const struct resolved_code *code, uint64_t address,
                                         bool caller, struct arena *arena, uint32_t *count)
{
    const struct kept_blob *kept = fetched_blob(context, dump, code->blob);
    if (!kept) {
        return NULL;
    }
    uint64_t offset = address - code->address;
    const struct trailer tree = {.nodes = kept->nodes,
                                 .node_count = kept->node_count,
                                 .ranges = kept->ranges,
                                 .range_count = kept->range_count};
    struct trailer_range made;
    const struct trailer_range *range = NULL;
    if (offset <= UINT32_MAX) {
        range = kept->at_safepoints && !caller
                    ? safepoint_lines_between(&tree, (uint32_t)offset, &made)
                    : trailer_range_at(&tree, (uint32_t)offset);
    }
    uint32_t node = range ? range->node : 0;
    uint32_t depth = depth_of(&tree, node, &context->inlines_cut);
    struct resolved_frame *frames = arena_take(arena, (depth + (size_t)1) * sizeof *frames);
    if (!frames) {
        return NULL;
    }
    uint32_t line = range ? range->line : row_line(kept, offset);
    for (uint32_t i = 0; i < depth; i++) {
        frames[i] = (struct resolved_frame){
            .kind = RESOLVED_INLINED,
            .tier = kept->tier,
            .is_osr = kept->is_osr,
            .line = line,
            .method = inlined_method(context, dump, tree.nodes[node].method),
        };
        if (!frames[i].method) {
            return NULL;
        }
        line = tree.nodes[node].call_line;
        node = tree.nodes[node].parent;
    }
    frames[depth] = (struct resolved_frame){
        .kind = kept->kind,
        .tier = kept->tier,
        .is_osr = kept->is_osr,
        .line = node == 0 ? line : 0, /* of a tree that was too deep the call is not known */
        .method = kept->method,
    };
    *count = depth + 1;
    return frames;
}
