#include "jdtool/jitdump/code_index.h"

#include "jdtool/base/array.h"
#include "jdtool/base/message.h"
#include "jdtool/jitdump/code_details.h"
#include "jdtool/jitdump/jitdump_group.h"
#include "jdtool/jitdump/stay_tree.h"

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

    struct stay_tree tree;

    uint64_t broken_records;
    uint64_t broken_trailers;
    uint64_t lost_moves;
    char warning[320];
};

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
    if (array_reserve(&index->stays, index->stay_count, &index->stay_room, sizeof(*index->stays)) <
        0) {
        return -ENOMEM;
    }
    index->blob_stay[blob] = index->stay_count;
    index->stays[index->stay_count++] = (struct code_stay){
        .address = address, .size = size, .from = from, .until = UINT64_MAX, .blob = blob};
    return 0;
}

static int add_load(struct code_index *index, const struct jitdump_record_view *record,
                    const struct jitdump_group *group)
{
    uint32_t room = index->blob_room; /* of both arrays */
    int error = array_reserve(&index->blobs, index->blob_count, &room, sizeof(*index->blobs));
    if (!error) {
        error = array_reserve(&index->blob_stay, index->blob_count, &index->blob_room,
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
        error = stay_tree_build(&index->tree, index->stays, index->stay_count);
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
    stay_tree_free(&index->tree);
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
    uint32_t last = stay_tree_last(&index->tree, begun, address);
    const struct code_stay *stay = last ? &index->stays[last - 1] : NULL;
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

int code_index_fetch(struct code_index *index, uint32_t blob, struct code_details *details)
{
    return code_details_read(index->reader, index->path, index->names, &index->blobs[blob],
                             details);
}
