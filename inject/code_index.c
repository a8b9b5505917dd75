/*
 * How code_index_at stays logarithmic: the stays are sorted by time, and a segment tree over the
 * addresses where stays begin and end holds, in each node, the stays that cover the node's whole
 * span, ascending. Whoever covers an address stands in one of the nodes between its leaf and the
 * root; the last one of the right time in each of them is found by bisection, and the latest of
 * those is the answer. A stay is in O(log n) nodes, so the tree takes O(n log n) memory whatever
 * the addresses are.
 */
#include "inject/code_index.h"

#include "inject/jitdump_group.h"
#include "inject/message.h"
#include "inject/samply_tree.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_CHUNK_BYTES ((size_t)64 << 10)

struct name_chunk {
    struct name_chunk *next;
    size_t used;
    size_t room;
    char bytes[];
};

struct tree {
    uint64_t *bounds; /* sorted; leaf i is [bounds[i], bounds[i + 1]) */
    size_t leaf_count;
    size_t *first;   /* of each node, into lists; leaf i is node leaf_count + i */
    uint32_t *lists; /* stays */
};

struct code_index {
    struct jitdump_reader *reader;
    char *path;
    struct trailer_names *names;
    struct name_chunk *name_chunks;

    struct code_blob *blobs;
    uint32_t *blob_stay; /* where each blob is now, while the dump is read */
    uint32_t blob_count;
    uint32_t blob_room;

    struct code_stay *stays;
    uint32_t stay_count;
    uint32_t stay_room;

    uint32_t *slots; /* code_index -> blob + 1, open addressing; the latest LOAD wins */
    uint32_t slot_count;

    struct tree tree;

    uint64_t broken_records;
    uint64_t broken_trailers;
    uint64_t lost_moves;
    char warning[320];
};

/* Grows an array of count elements by one. */
static int reserve(void *array_pointer, uint32_t count, uint32_t *room, size_t element)
{
    void **array = array_pointer;
    if (count < *room) {
        return 0;
    }
    uint32_t wanted = *room ? *room * 2 : 256;
    void *grown =
        wanted > *room && wanted < UINT32_MAX / 2 ? realloc(*array, wanted * element) : NULL;
    if (!grown) {
        return -ENOMEM;
    }
    *array = grown;
    *room = wanted;
    return 0;
}

static const char *keep_name(struct code_index *index, const char *name)
{
    size_t size = strlen(name) + 1;
    struct name_chunk *chunk = index->name_chunks;
    if (!chunk || chunk->room - chunk->used < size) {
        size_t room = size > NAME_CHUNK_BYTES ? size : NAME_CHUNK_BYTES;
        chunk = malloc(sizeof(*chunk) + room);
        if (!chunk) {
            return NULL;
        }
        *chunk = (struct name_chunk){.next = index->name_chunks, .room = room};
        index->name_chunks = chunk;
    }
    char *kept = chunk->bytes + chunk->used;
    memcpy(kept, name, size);
    chunk->used += size;
    return kept;
}

static uint32_t *slot_of(struct code_index *index, uint64_t code_index)
{
    uint32_t mask = index->slot_count - 1;
    uint32_t slot = (uint32_t)((code_index * UINT64_C(0x9E3779B97F4A7C15)) >> 32) & mask;
    while (index->slots[slot] && index->blobs[index->slots[slot] - 1].code_index != code_index) {
        slot = (slot + 1) & mask;
    }
    return &index->slots[slot];
}

/* Notes the last blob under its code_index. */
static int enter_last_blob(struct code_index *index)
{
    if (index->blob_count > index->slot_count / 2) {
        uint32_t slot_count = index->slot_count ? index->slot_count * 2 : 64;
        uint32_t *slots = calloc(slot_count, sizeof(*slots));
        if (!slots) {
            return -ENOMEM;
        }
        free(index->slots);
        index->slots = slots;
        index->slot_count = slot_count;
        for (uint32_t i = 0; i + 1 < index->blob_count; i++) {
            *slot_of(index, index->blobs[i].code_index) = i + 1;
        }
    }
    *slot_of(index, index->blobs[index->blob_count - 1].code_index) = index->blob_count;
    return 0;
}

static int add_stay(struct code_index *index, uint32_t blob, uint64_t address, uint64_t size,
                    uint64_t from)
{
    int error = reserve(&index->stays, index->stay_count, &index->stay_room, sizeof(*index->stays));
    if (error) {
        return error;
    }
    index->blob_stay[blob] = index->stay_count;
    index->stays[index->stay_count++] = (struct code_stay){
        .address = address, .size = size, .from = from, .until = UINT64_MAX, .blob = blob};
    return 0;
}

static int add_load(struct code_index *index, const struct jitdump_record_view *record,
                    const struct jitdump_group *group)
{
    uint32_t room = index->blob_room;
    int error = reserve(&index->blobs, index->blob_count, &room, sizeof(*index->blobs));
    if (!error) {
        error = reserve(&index->blob_stay, index->blob_count, &index->blob_room,
                        sizeof(*index->blob_stay));
    }
    const char *name = error ? NULL : keep_name(index, record->load.name);
    if (!name) {
        return -ENOMEM;
    }
    index->blobs[index->blob_count++] = (struct code_blob){
        .load_offset = record->offset,
        .debug_offset = group->debug_offset,
        .unwinding_offset = group->unwinding_offset,
        .samply_offset = group->samply_offset,
        .address = record->load.code_addr,
        .size = record->load.code_size,
        .timestamp = record->timestamp,
        .code_index = record->load.code_index,
        .name = name,
        .has_bytes = record->load.bytes != NULL,
    };
    error = enter_last_blob(index);
    return error ? error
                 : add_stay(index, index->blob_count - 1, record->load.code_addr,
                            record->load.code_size, record->timestamp);
}

static int add_move(struct code_index *index, const struct jitdump_record_view *record)
{
    uint32_t slot = index->slot_count ? *slot_of(index, record->move.code_index) : 0;
    if (slot == 0) {
        index->lost_moves++;
        return 0;
    }
    uint32_t blob = slot - 1;
    uint64_t size = index->blobs[blob].size;
    if (record->move.new_code_addr > UINT64_MAX - size) {
        index->lost_moves++;
        return 0;
    }
    index->stays[index->blob_stay[blob]].until = record->timestamp;
    return add_stay(index, blob, record->move.new_code_addr, size, record->timestamp);
}

/* Takes in the definitions that later trailers refer to. */
static void add_definitions(struct code_index *index, const struct jitdump_record_view *record,
                            struct trailer *trailer)
{
    struct jitdump_entry_walk walk = {0};
    struct jitdump_entry entry;
    int more;
    while ((more = jitdump_entry_next(index->reader, record, &walk, &entry)) > 0) {
    }
    const char *why;
    if (more < 0) {
        index->broken_records++;
    } else if (trailer_decode(index->reader, record->debug_info.entries + walk.at,
                              record->debug_info.entries_size - walk.at, index->names, trailer,
                              &why) < 0) {
        index->broken_trailers++;
    }
}

static void note_warning(struct code_index *index, enum jitdump_status status)
{
    char *at = index->warning;
    char *end = at + sizeof(index->warning);
    if (status == JITDUMP_TORN || status == JITDUMP_BAD) {
        at += snprintf(at, (size_t)(end - at), "%s at offset %llu: %s",
                       status == JITDUMP_TORN ? "torn" : "broken",
                       (unsigned long long)jitdump_reader_offset(index->reader),
                       jitdump_reader_error(index->reader));
    }
    if (index->broken_records || index->broken_trailers || index->lost_moves) {
        snprintf(at, (size_t)(end - at),
                 "%s%llu broken records, %llu broken trailers, %llu moves of unknown code",
                 at > index->warning ? "; " : "", (unsigned long long)index->broken_records,
                 (unsigned long long)index->broken_trailers, (unsigned long long)index->lost_moves);
    }
}

static int read_records(struct code_index *index)
{
    struct jitdump_group_tracker tracker = {0};
    struct jitdump_record_view record;
    struct trailer trailer = {0};
    enum jitdump_status status;
    int error = 0;
    do {
        status = jitdump_reader_next(index->reader, &record);
        if (status == JITDUMP_BROKEN) {
            index->broken_records++;
            continue;
        }
        if (status != JITDUMP_RECORD) {
            break;
        }
        struct jitdump_group group = jitdump_group_add(&tracker, &record);
        if (record.id == JIT_CODE_LOAD) {
            error = add_load(index, &record, &group);
        } else if (record.id == JIT_CODE_MOVE) {
            error = add_move(index, &record);
        } else if (record.id == JIT_CODE_DEBUG_INFO) {
            add_definitions(index, &record, &trailer);
        }
    } while (!error);
    trailer_free(&trailer);
    note_warning(index, status);
    return error;
}

static int by_time(const void *left, const void *right)
{
    const struct code_stay *a = left;
    const struct code_stay *b = right;
    if (a->from != b->from) {
        return a->from < b->from ? -1 : 1;
    }
    /* `until` holds the place in the file while the stays are sorted. */
    return a->until < b->until ? -1 : 1;
}

/* Sorts by time, and by place in the file where times are equal. */
static int sort_stays(struct code_index *index)
{
    if (index->stay_count == 0) {
        return 0;
    }
    uint64_t *until = malloc(index->stay_count * sizeof(*until));
    if (!until) {
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < index->stay_count; i++) {
        until[i] = index->stays[i].until;
        index->stays[i].until = i;
    }
    qsort(index->stays, index->stay_count, sizeof(*index->stays), by_time);
    for (uint32_t i = 0; i < index->stay_count; i++) {
        index->stays[i].until = until[index->stays[i].until];
    }
    free(until);
    return 0;
}

static int by_value(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left;
    uint64_t b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

/* The number of bounds at or below address; so its leaf plus one. */
static size_t bounds_up_to(const struct tree *tree, uint64_t address)
{
    size_t low = 0;
    size_t high = tree->leaf_count + 1;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (tree->bounds[middle] <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static int find_bounds(struct code_index *index)
{
    struct tree *tree = &index->tree;
    tree->bounds = malloc(((size_t)index->stay_count * 2 + 1) * sizeof(*tree->bounds));
    if (!tree->bounds) {
        return -ENOMEM;
    }
    size_t count = 0;
    for (uint32_t i = 0; i < index->stay_count; i++) {
        if (index->stays[i].size > 0) {
            tree->bounds[count++] = index->stays[i].address;
            tree->bounds[count++] = index->stays[i].address + index->stays[i].size;
        }
    }
    qsort(tree->bounds, count, sizeof(*tree->bounds), by_value);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (kept == 0 || tree->bounds[kept - 1] != tree->bounds[i]) {
            tree->bounds[kept++] = tree->bounds[i];
        }
    }
    tree->leaf_count = kept ? kept - 1 : 0;
    return 0;
}

/* Calls for each node that makes up the stay's span: counts it, or enters the stay in its list. */
static void enter_stay(struct code_index *index, uint32_t stay, size_t *next, bool count_only)
{
    struct tree *tree = &index->tree;
    const struct code_stay *entered = &index->stays[stay];
    if (entered->size == 0) {
        return;
    }
    size_t left = bounds_up_to(tree, entered->address) - 1 + tree->leaf_count;
    size_t right = bounds_up_to(tree, entered->address + entered->size) - 1 + tree->leaf_count;
    for (; left < right; left /= 2, right /= 2) {
        size_t nodes[2];
        int count = 0;
        if (left & 1) {
            nodes[count++] = left++;
        }
        if (right & 1) {
            nodes[count++] = --right;
        }
        while (count-- > 0) {
            if (count_only) {
                next[nodes[count]]++;
            } else {
                tree->lists[next[nodes[count]]++] = stay;
            }
        }
    }
}

static int build_tree(struct code_index *index)
{
    struct tree *tree = &index->tree;
    int error = find_bounds(index);
    if (error || tree->leaf_count == 0) {
        return error;
    }
    size_t node_count = tree->leaf_count * 2;
    tree->first = calloc(node_count + 1, sizeof(*tree->first));
    size_t *next = calloc(node_count, sizeof(*next));
    if (!tree->first || !next) {
        free(next);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < index->stay_count; i++) {
        enter_stay(index, i, next, true);
    }
    for (size_t i = 0; i < node_count; i++) {
        tree->first[i + 1] = tree->first[i] + next[i];
        next[i] = tree->first[i];
    }
    tree->lists = malloc((tree->first[node_count] + 1) * sizeof(*tree->lists));
    if (!tree->lists) {
        free(next);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < index->stay_count; i++) {
        enter_stay(index, i, next, false);
    }
    free(next);
    return 0;
}

static int open_reader(struct jitdump_reader *reader, const char *path, struct code_index **out)
{
    *out = NULL;
    int error = -ENOMEM;
    struct code_index *index = calloc(1, sizeof(*index));
    if (!index) {
        jitdump_reader_close(reader);
        error_message("failed to read %s: %s", path, strerror(ENOMEM));
        return error;
    }
    index->reader = reader;
    index->path = strdup(path);
    index->names = trailer_names_new();
    if (index->path && index->names) {
        error = read_records(index);
    }
    if (!error) {
        error = sort_stays(index);
    }
    if (!error) {
        error = build_tree(index);
    }
    if (error) {
        error_message("failed to read %s: %s", path, strerror(-error));
        code_index_close(index);
        return error;
    }
    *out = index;
    return 0;
}

int code_index_open(const char *path, struct code_index **out)
{
    struct jitdump_reader *reader;
    *out = NULL;
    int error = jitdump_reader_open(path, &reader);
    return error ? error : open_reader(reader, path, out);
}

int code_index_open_fd(int fd, const char *name, struct code_index **out)
{
    struct jitdump_reader *reader;
    *out = NULL;
    int error = jitdump_reader_open_fd(fd, name, &reader);
    return error ? error : open_reader(reader, name, out);
}

void code_index_close(struct code_index *index)
{
    if (!index) {
        return;
    }
    while (index->name_chunks) {
        struct name_chunk *next = index->name_chunks->next;
        free(index->name_chunks);
        index->name_chunks = next;
    }
    jitdump_reader_close(index->reader);
    trailer_names_free(index->names);
    free(index->path);
    free(index->blobs);
    free(index->blob_stay);
    free(index->stays);
    free(index->slots);
    free(index->tree.bounds);
    free(index->tree.first);
    free(index->tree.lists);
    free(index);
}

const struct jitdump_header *code_index_header(const struct code_index *index)
{
    return jitdump_reader_header(index->reader);
}

const char *code_index_warning(const struct code_index *index)
{
    return index->warning[0] ? index->warning : NULL;
}

const struct trailer_names *code_index_names(const struct code_index *index)
{
    return index->names;
}

uint32_t code_index_blob_count(const struct code_index *index)
{
    return index->blob_count;
}

const struct code_blob *code_index_blob(const struct code_index *index, uint32_t blob)
{
    return &index->blobs[blob];
}

uint32_t code_index_stay_count(const struct code_index *index)
{
    return index->stay_count;
}

const struct code_stay *code_index_stay(const struct code_index *index, uint32_t stay)
{
    return &index->stays[stay];
}

const struct code_stay *code_index_at(const struct code_index *index, uint64_t address,
                                      uint64_t time)
{
    const struct tree *tree = &index->tree;
    if (tree->leaf_count == 0) {
        return NULL;
    }
    size_t leaf = bounds_up_to(tree, address);
    if (leaf == 0 || leaf > tree->leaf_count) {
        return NULL;
    }
    uint32_t begun = 0; /* stays that began at or before the time: those below this one */
    uint32_t high = index->stay_count;
    while (begun < high) {
        uint32_t middle = begun + (high - begun) / 2;
        if (index->stays[middle].from <= time) {
            begun = middle + 1;
        } else {
            high = middle;
        }
    }
    uint32_t best = 0; /* plus one */
    for (size_t node = leaf - 1 + tree->leaf_count; node >= 1; node /= 2) {
        size_t low = tree->first[node];
        size_t end = tree->first[node + 1];
        while (low < end) {
            size_t middle = low + (end - low) / 2;
            if (tree->lists[middle] < begun) {
                low = middle + 1;
            } else {
                end = middle;
            }
        }
        if (low > tree->first[node] && tree->lists[low - 1] + 1 > best) {
            best = tree->lists[low - 1] + 1;
        }
    }
    const struct code_stay *stay = best ? &index->stays[best - 1] : NULL;
    return stay && (stay->until == UINT64_MAX || time < stay->until) ? stay : NULL;
}

void code_index_map(const struct code_index *index, uint64_t time,
                    void (*visit)(void *context, uint64_t address, uint64_t size,
                                  const struct code_stay *stay),
                    void *context)
{
    const uint64_t *bounds = index->tree.bounds;
    const struct code_stay *stay = NULL; /* the one that covers [start, bounds[i]) */
    uint64_t start = 0;
    for (size_t i = 0; i < index->tree.leaf_count; i++) {
        const struct code_stay *next = code_index_at(index, bounds[i], time);
        if (next != stay) {
            if (stay) {
                visit(context, start, bounds[i] - start, stay);
            }
            stay = next;
            start = bounds[i];
        }
    }
    if (stay) {
        visit(context, start, bounds[index->tree.leaf_count] - start, stay);
    }
}

static int reserve_buffer(struct code_buffer *buffer, size_t size)
{
    if (size <= buffer->room) {
        return 0;
    }
    uint8_t *grown = realloc(buffer->bytes, size + size / 2);
    if (!grown) {
        return -ENOMEM;
    }
    buffer->bytes = grown;
    buffer->room = size + size / 2;
    return 0;
}

static int add_entry(struct code_details *details, const struct jitdump_entry *entry)
{
    int error = reserve(&details->entries, details->entry_count, &details->entry_room,
                        sizeof(*details->entries));
    if (!error) {
        details->entries[details->entry_count++] = *entry;
    }
    return error;
}

static int fetch_rows(struct code_index *index, const struct jitdump_record_view *record,
                      struct code_details *details)
{
    /* All names together are shorter than the entries, so the buffer never has to move. */
    int error = reserve_buffer(&details->string_buffer, record->debug_info.entries_size);
    if (error) {
        return error;
    }
    char *string = (char *)details->string_buffer.bytes;
    struct jitdump_entry_walk walk = {0};
    struct jitdump_entry entry;
    const char *last = NULL; /* in the record */
    const char *kept = NULL; /* its copy */
    int more;
    while ((more = jitdump_entry_next(index->reader, record, &walk, &entry)) > 0) {
        if (!last || (entry.file != last && strcmp(entry.file, last) != 0)) {
            size_t size = strlen(entry.file) + 1;
            memcpy(string, entry.file, size);
            kept = string;
            string += size;
        }
        last = entry.file;
        entry.file = kept;
        error = add_entry(details, &entry);
        if (error) {
            return error;
        }
    }
    const char *why;
    if (more == 0) {
        /* A broken trailer was told of when the dump was read; it decodes to nothing. */
        trailer_decode(index->reader, record->debug_info.entries + walk.at,
                       record->debug_info.entries_size - walk.at, index->names, &details->trailer,
                       &why);
    }
    return 0;
}

/* Rows from the lines of samply's record. Where it knows none, the outer function's first. */
static int make_rows(const struct jitdump_record_view *record, const struct samply_inlines *inlines,
                     const struct code_blob *blob, struct code_details *details)
{
    int error = reserve_buffer(&details->string_buffer, record->payload_size);
    if (error) {
        return error;
    }
    const char *copy = (const char *)details->string_buffer.bytes;
    memcpy(details->string_buffer.bytes, record->payload, record->payload_size);
    struct jitdump_entry entry = {0};
    for (uint32_t i = 0; i < inlines->line_count && !error; i++) {
        const struct samply_line *line = &inlines->lines[i];
        uint32_t file = line->file_index;
        entry.line = line->line;
        if (entry.line == 0 && inlines->function_count > 0) {
            entry.line = inlines->functions[0].start_line;
            file = inlines->functions[0].file_index;
        }
        if (entry.line == 0 || file >= inlines->file_count || line->offset >= blob->size) {
            continue;
        }
        entry.address = blob->address + line->offset;
        entry.file = copy + (inlines->files[file] - (const char *)record->payload);
        error = add_entry(details, &entry);
    }
    if (!error && details->entry_count > 0) {
        entry = details->entries[details->entry_count - 1];
        entry.address = blob->address + blob->size;
        error = add_entry(details, &entry);
    }
    return error;
}

static int fetch_samply(struct code_index *index, const struct jitdump_record_view *record,
                        const struct code_blob *blob, struct code_details *details)
{
    struct samply_inlines inlines = {0};
    const char *why;
    int error = 0;
    if (samply_decode_inlines(index->reader, record, &inlines, &why) == 0) {
        if (details->entry_count == 0) {
            error = make_rows(record, &inlines, blob, details);
        }
        if (!error && blob->size <= UINT32_MAX) {
            error = samply_tree(&inlines, (uint32_t)blob->size, index->names, &details->trailer);
        }
    }
    samply_inlines_free(&inlines);
    return error;
}

static int fetch_unwinding(const struct jitdump_record_view *record, struct code_details *details)
{
    size_t size = (size_t)record->unwinding_info.data_size;
    int error = reserve_buffer(&details->unwinding_buffer, size);
    if (!error && size > 0) {
        memcpy(details->unwinding_buffer.bytes, record->unwinding_info.data, size);
        details->unwinding = details->unwinding_buffer.bytes;
        details->unwinding_size = size;
        details->eh_frame_hdr_size = (size_t)record->unwinding_info.eh_frame_hdr_size;
    }
    return error;
}

/* Reads a record again that was sound before. */
static int read_again(struct code_index *index, uint64_t offset, uint32_t id,
                      struct jitdump_record_view *record)
{
    jitdump_reader_seek(index->reader, offset);
    enum jitdump_status status = jitdump_reader_next(index->reader, record);
    if (status == JITDUMP_RECORD && record->id == id) {
        return 0;
    }
    error_message(
        "failed to read %s again at offset %llu: %s", index->path, (unsigned long long)offset,
        status == JITDUMP_RECORD ? "the file has changed" : jitdump_reader_error(index->reader));
    return -EIO;
}

int code_index_fetch(struct code_index *index, uint32_t blob, struct code_details *details)
{
    const struct code_blob *wanted = &index->blobs[blob];
    struct jitdump_record_view record;
    details->bytes = NULL;
    details->unwinding = NULL;
    details->unwinding_size = 0;
    details->eh_frame_hdr_size = 0;
    details->entry_count = 0;
    trailer_clear(&details->trailer);

    int error = 0;
    if (wanted->debug_offset) {
        error = read_again(index, wanted->debug_offset, JIT_CODE_DEBUG_INFO, &record);
        if (!error) {
            error = fetch_rows(index, &record, details);
        }
    }
    if (!error && wanted->samply_offset && details->trailer.node_count == 0) {
        error = read_again(index, wanted->samply_offset, SAMPLY_JIT_CODE_DEBUG_INFO2, &record);
        if (!error) {
            error = fetch_samply(index, &record, wanted, details);
        }
    }
    if (!error && wanted->unwinding_offset) {
        error = read_again(index, wanted->unwinding_offset, JIT_CODE_UNWINDING_INFO, &record);
        if (!error) {
            error = fetch_unwinding(&record, details);
        }
    }
    if (!error && wanted->has_bytes && wanted->size > 0) {
        error = read_again(index, wanted->load_offset, JIT_CODE_LOAD, &record);
        if (!error && (!record.load.bytes || record.load.code_size != wanted->size)) {
            error_message("failed to read %s again: the file has changed", index->path);
            error = -EIO;
        }
        if (!error) {
            error = reserve_buffer(&details->code_buffer, (size_t)wanted->size);
        }
        if (!error) {
            memcpy(details->code_buffer.bytes, record.load.bytes, (size_t)wanted->size);
            details->bytes = details->code_buffer.bytes;
        }
    }
    if (error == -ENOMEM) {
        error_message("failed to read %s: %s", index->path, strerror(ENOMEM));
    }
    return error;
}

void code_details_free(struct code_details *details)
{
    free(details->entries);
    free(details->code_buffer.bytes);
    free(details->string_buffer.bytes);
    free(details->unwinding_buffer.bytes);
    trailer_free(&details->trailer);
    memset(details, 0, sizeof(*details));
}
