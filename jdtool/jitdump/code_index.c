#include "jdtool/jitdump/code_index.h"

#include "jdtool/base/array.h"
#include "jdtool/base/chunks.h"
#include "jdtool/base/hash_map.h"
#include "jdtool/base/message.h"
#include "jdtool/jitdump/jitdump_reader.h"
#include "jdtool/jitdump/stay_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAME_CHUNK_BYTES ((size_t)64 << 10)

struct name_chunk {
    struct name_chunk *next;
    size_t used;
    size_t room;
    char bytes[];
};

/* code_blob.file of records that outlive their segment. */
#define KEPT UINT32_MAX

struct indexed_blob {
    struct code_blob blob; /* the first member */
    uint32_t stay;         /* where it is now */
    bool touched;          /* it was fetched */
};

struct segment {
    struct jitdump_reader *reader; /* NULL: it was let go */
    uint64_t until;                /* the last stamp when the next one had been read */
};

struct code_index {
    struct jitdump_reader *reader; /* of the last file */
    struct segment *earlier;       /* before it */
    uint32_t earlier_count;
    uint32_t earlier_room;
    uint32_t let_go;             /* of these, the first ones */
    uint32_t living;             /* blobs, when what was gone was forgotten */
    struct jitdump_reader *kept; /* NULL: none yet */
    uint64_t kept_size;
    struct code_ends first_ends;
    uint32_t *touched; /* blobs whose records are in segments */
    uint32_t touched_count;
    uint32_t touched_room;
    char *path;
    struct trailer_names *names;
    struct name_chunk *name_chunks;

    struct chunks blobs;       /* of struct indexed_blob */
    struct chunks stays;       /* of struct code_stay */
    struct hash_map by_index;  /* code_index -> blob; of several the latest LOAD wins */
    struct stay_forest forest; /* of the first `planted` stays */
    uint32_t planted;
    uint64_t last_stamp;
    uint64_t closed; /* when; 0: it is not, or its writer has no clock */
    bool is_closed;

    /* What goes from one record to the next. */
    struct jitdump_group_tracker tracker;
    struct trailer trailer;
    uint64_t trailer_of; /* offset of the DEBUG_INFO that it was read from; 0: none */

    uint64_t broken_records;
    uint64_t broken_trailers;
    uint64_t lost_moves;
    uint64_t left_out; /* LOADs and MOVEs beyond the limit */
    char warning[320];
};

static const char *keep_name(struct code_index *index, const char *name)
{
    size_t size = strlen(name) + 1;
    struct name_chunk *chunk = index->name_chunks;
    if (!chunk || chunk->room - chunk->used < size) {
        size_t room = size > NAME_CHUNK_BYTES ? size : NAME_CHUNK_BYTES;
        chunk = malloc(sizeof *chunk + room);
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

static struct indexed_blob *blob_at(const struct code_index *index, uint32_t blob)
{
    return chunks_at(&index->blobs, blob);
}

/* The blob with this code_index, HASH_MAP_NONE: none. */
static uint32_t blob_of(const struct code_index *index, uint64_t code_index)
{
    uint32_t blob;
    HASH_MAP_FIND(blob, &index->by_index, code_index,
                  blob_at(index, blob)->blob.code_index == code_index);
    return blob;
}

static int add_stay(struct code_index *index, uint32_t blob, uint64_t address, uint64_t size,
                    uint64_t from)
{
    struct code_stay *stay = chunks_add(&index->stays);
    if (!stay) {
        return -ENOMEM;
    }
    *stay = (struct code_stay){.address = address,
                               .size = size,
                               .from = from,
                               .until = UINT64_MAX,
                               .blob = blob,
                               .number = index->stays.count - 1};
    blob_at(index, blob)->stay = stay->number;
    index->last_stamp = from > index->last_stamp ? from : index->last_stamp;
    return 0;
}

/* Where a blob's records are. */
static void set_records(const struct code_index *index, struct code_blob *blob,
                        const struct jitdump_record_view *load, const struct jitdump_group *group)
{
    blob->load_offset = load->offset;
    blob->debug_offset = group->debug_offset;
    blob->unwinding_offset = group->unwinding_offset;
    blob->samply_offset = group->samply_offset;
    blob->has_bytes = load->load.bytes != NULL;
    blob->file = index->earlier_count;
    blob->is_described =
        group->debug_offset && group->debug_offset == index->trailer_of && !group->samply_offset;
    if (blob->is_described) {
        int64_t tier = index->trailer.facts[JITDUMP_CODE_TIER];
        uint32_t ranges = index->trailer.range_count;
        int64_t late = index->trailer.facts[JITDUMP_CODE_LATE];
        blob->late = late < 0 ? 0 : late < UINT32_MAX ? (uint32_t)late : UINT32_MAX;
        blob->tier = -1;
        if (tier >= 0 && tier <= INT8_MAX) {
            blob->tier = (int8_t)tier;
        }
        blob->range_count = (uint8_t)(ranges < UINT8_MAX ? ranges : UINT8_MAX);
    }
}

/* Whether an earlier segment has told of the very same stay; it is read from this one from now on.
 */
static bool is_told_again(struct code_index *index, const struct jitdump_record_view *record,
                          const struct jitdump_group *group)
{
    uint32_t same = index->earlier_count ? blob_of(index, record->load.code_index) : HASH_MAP_NONE;
    struct code_blob *blob = same == HASH_MAP_NONE ? NULL : &blob_at(index, same)->blob;
    if (!blob || blob->address != record->load.code_addr || blob->size != record->load.code_size ||
        blob->timestamp != record->timestamp) {
        return false;
    }
    if (blob->file != index->earlier_count) { /* the first of it that the segment says is whole */
        set_records(index, blob, record, group);
    }
    return true;
}

static int add_load(struct code_index *index, const struct jitdump_record_view *record,
                    const struct jitdump_group *group)
{
    if (is_told_again(index, record, group)) {
        return 0;
    }
    if (index->stays.count >= CODE_INDEX_BLOBS_MAX) {
        index->left_out++;
        return 0;
    }
    const char *name = keep_name(index, record->load.name);
    struct indexed_blob *added = name ? chunks_add(&index->blobs) : NULL;
    if (!added) {
        return -ENOMEM;
    }
    uint32_t number = index->blobs.count - 1;
    added->blob = (struct code_blob){
        .address = record->load.code_addr,
        .size = record->load.code_size,
        .timestamp = record->timestamp,
        .code_index = record->load.code_index,
        .name = name,
    };
    set_records(index, &added->blob, record, group);
    uint32_t same = blob_of(index, record->load.code_index);
    if (same != HASH_MAP_NONE) {
        (void)hash_map_remove(&index->by_index, record->load.code_index, same);
    }
    if (hash_map_add(&index->by_index, record->load.code_index, number)) {
        return -ENOMEM;
    }
    return add_stay(index, number, record->load.code_addr, record->load.code_size,
                    record->timestamp);
}

static int add_move(struct code_index *index, const struct jitdump_record_view *record)
{
    uint32_t blob = blob_of(index, record->move.code_index);
    if (blob == HASH_MAP_NONE ||
        record->move.new_code_addr > UINT64_MAX - blob_at(index, blob)->blob.size) {
        index->lost_moves++;
        return 0;
    }
    if (index->stays.count >= CODE_INDEX_BLOBS_MAX) {
        index->left_out++;
        return 0;
    }
    struct code_stay *last = chunks_at(&index->stays, blob_at(index, blob)->stay);
    last->until = record->timestamp;
    return add_stay(index, blob, record->move.new_code_addr, blob_at(index, blob)->blob.size,
                    record->timestamp);
}

/* Takes in the definitions that later trailers refer to. */
static void add_definitions(struct code_index *index, const struct jitdump_record_view *record)
{
    const uint8_t *behind;
    size_t size;
    const char *why;
    index->trailer_of = 0;
    if (jitdump_behind_entries(index->reader, record, &behind, &size) < 0) {
        index->broken_records++;
    } else if (trailer_decode(index->reader, behind, size, index->names, &index->trailer, &why) <
               0) {
        index->broken_trailers++;
    } else {
        index->trailer_of = record->offset;
    }
}

static void note_warning(struct code_index *index, enum jitdump_status status)
{
    char *at = index->warning;
    char *end = at + sizeof index->warning;
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
        at += strlen(at);
    }
    if (index->left_out) {
        snprintf(at, (size_t)(end - at), "%s%llu pieces of code left out beyond the limit of %u",
                 at > index->warning ? "; " : "", (unsigned long long)index->left_out,
                 CODE_INDEX_BLOBS_MAX);
    }
}

/* What stands there now; *status: how it ended. */
static int read_records(struct code_index *index, enum jitdump_status *status)
{
    struct jitdump_record_view record;
    int err = 0;
    do {
        *status = jitdump_reader_next(index->reader, &record);
        if (*status == JITDUMP_BROKEN) {
            index->broken_records++;
            continue;
        }
        if (*status != JITDUMP_RECORD) {
            break;
        }
        struct jitdump_group group = jitdump_group_add(&index->tracker, &record);
        index->is_closed = record.id == JIT_CODE_CLOSE;
        index->closed = index->is_closed ? record.timestamp : 0;
        if (record.id == JIT_CODE_LOAD) {
            err = add_load(index, &record, &group);
        } else if (record.id == JIT_CODE_MOVE) {
            err = add_move(index, &record);
        } else if (record.id == JIT_CODE_DEBUG_INFO) {
            add_definitions(index, &record);
        }
    } while (!err);
    return err;
}

/* Enters the stays that have come since the last time. */
static int plant(struct code_index *index)
{
    uint32_t count = index->stays.count - index->planted;
    if (count == 0) {
        return 0;
    }
    // NOLINTNEXTLINE(bugprone-sizeof-expression): the elements are pointers.
    const struct code_stay **stays = malloc(count * sizeof *stays);
    if (!stays) {
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < count; i++) {
        stays[i] = chunks_at(&index->stays, index->planted + i);
    }
    int err = stay_forest_add(&index->forest, stays, count);
    free(stays);
    index->planted += err ? 0 : count;
    return err;
}

static int take_in(struct code_index *index, bool is_all)
{
    enum jitdump_status status;
    int err = read_records(index, &status);
    if (!err) {
        err = plant(index);
    }
    if (err) {
        return failed_to(err, "read %s", index->path);
    }
    note_warning(index, is_all ? status : JITDUMP_END);
    return 0;
}

static int open_reader(struct jitdump_reader *reader, const char *path, bool is_all,
                       struct code_index **out)
{
    *out = NULL;
    struct code_index *index = calloc(1, sizeof *index);
    if (!index) {
        jitdump_reader_close(reader);
        return failed_to(-ENOMEM, "read %s", path);
    }
    index->reader = reader;
    index->blobs.element = sizeof(struct indexed_blob);
    index->stays.element = sizeof(struct code_stay);
    index->path = strdup(path);
    index->names = trailer_names_new();
    int err = -ENOMEM;
    if (index->path && index->names) {
        err = take_in(index, is_all);
    } else {
        failed_to(-ENOMEM, "read %s", path);
    }
    if (err) {
        code_index_close(index);
        return err;
    }
    *out = index;
    return 0;
}

int code_index_open(const char *path, struct code_index **out)
{
    struct jitdump_reader *reader;
    *out = NULL;
    int err = jitdump_reader_open(path, &reader);
    return err ? err : open_reader(reader, path, true, out);
}

int code_index_follow(const char *path, int fd, struct code_index **out)
{
    struct jitdump_reader *reader;
    *out = NULL;
    int err =
        fd < 0 ? jitdump_reader_follow(path, &reader) : jitdump_reader_open_fd(fd, path, &reader);
    return err ? err : open_reader(reader, path, false, out);
}

int code_index_update(struct code_index *index, bool is_all)
{
    uint32_t stays = index->stays.count;
    jitdump_reader_refresh(index->reader);
    int err = take_in(index, is_all);
    if (!err && index->stays.count == stays) {
        jitdump_reader_rest(index->reader);
    }
    return err ? err : index->stays.count > stays;
}

/* Opens a file that may be the next segment. NULL: it is not. */
static struct jitdump_reader *open_next(const struct code_index *index, const char *path)
{
    const struct jitdump_header *own = jitdump_reader_header(index->reader);
    struct jitdump_reader *reader = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || jitdump_reader_open_fd(fd, path, &reader) != 0) {
        return NULL;
    }
    const struct jitdump_header *header = jitdump_reader_header(reader);
    if (header->pid != own->pid || header->timestamp != own->timestamp ||
        header->flags != own->flags) {
        jitdump_reader_close(reader);
        return NULL;
    }
    return reader;
}

int code_index_continue(struct code_index *index, const char *path, bool is_all)
{
    struct jitdump_reader *next = open_next(index, path);
    if (!next) {
        return 0;
    }
    if (ARRAY_RESERVE(index->earlier, index->earlier_count, index->earlier_room)) {
        jitdump_reader_close(next);
        return failed_to(-ENOMEM, "read %s", path);
    }
    struct segment *before = &index->earlier[index->earlier_count++];
    before->reader = index->reader;
    jitdump_reader_rest(before->reader);
    index->reader = next;
    index->tracker = (struct jitdump_group_tracker){0};
    index->is_closed = false;
    int err = take_in(index, is_all);
    before->until = index->last_stamp;
    return err ? err : 1;
}

/* ---- Letting go of segments ---- */

static struct jitdump_reader *reader_of(const struct code_index *index,
                                        const struct code_blob *blob)
{
    if (blob->file == KEPT) {
        return index->kept;
    }
    return blob->file < index->earlier_count ? index->earlier[blob->file].reader : index->reader;
}

/* A dump without records yet, in a file without a name. NULL: there can be none. */
static struct jitdump_reader *make_kept(struct code_index *index)
{
    struct jitdump_header header = *jitdump_reader_header(index->reader);
    struct jitdump_reader *kept = NULL;
    header.total_size = sizeof header;
    index->kept_size = sizeof header;
    int fd = open("/var/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0 && write(fd, &header, sizeof header) != sizeof header) {
        (void)close(fd);
        fd = -1;
    }
    return fd >= 0 && jitdump_reader_open_fd(fd, index->path, &kept) == 0 ? kept : NULL;
}

/* Copies the record at *offset, 0 where there is none, behind those that are kept, and tells where
 * that is. */
static bool keep_record(struct code_index *index, struct jitdump_reader *reader, uint64_t *offset)
{
    struct jitdump_record_view record;
    if (*offset == 0) {
        return true;
    }
    jitdump_reader_seek(reader, *offset);
    if (jitdump_reader_next(reader, &record) != JITDUMP_RECORD ||
        !jitdump_reader_append(index->kept, index->kept_size, &record)) {
        return false;
    }
    *offset = index->kept_size;
    index->kept_size += record.total_size;
    return true;
}

static bool keep_blob(struct code_index *index, struct code_blob *blob)
{
    struct jitdump_reader *reader = reader_of(index, blob);
    struct code_blob kept = *blob;
    if (!index->kept && !(index->kept = make_kept(index))) {
        return false;
    }
    if (!keep_record(index, reader, &kept.debug_offset) ||
        !keep_record(index, reader, &kept.samply_offset) ||
        !keep_record(index, reader, &kept.unwinding_offset) ||
        !keep_record(index, reader, &kept.load_offset)) {
        return false;
    }
    kept.file = KEPT;
    *blob = kept;
    return true;
}

/* What was fetched of a segment and nothing tells of again leaves the list. False: some of it could
 * not be kept. */
static bool clear_touched(struct code_index *index, uint32_t segment, bool keep)
{
    uint32_t left = 0;
    bool done = true;
    for (uint32_t i = 0; i < index->touched_count; i++) {
        struct code_blob *blob = &blob_at(index, index->touched[i])->blob;
        bool goes = blob->file == segment;
        if (goes && keep && !keep_blob(index, blob)) {
            goes = false;
            done = false;
        }
        if (!goes) {
            index->touched[left++] = index->touched[i];
        }
    }
    index->touched_count = left;
    return done;
}

void code_index_let_go(struct code_index *index, uint64_t time, bool keep)
{
    /* Records are copied as they are, so of a dump of our byte order. */
    while (index->let_go < index->earlier_count && index->earlier[index->let_go].until < time &&
           !jitdump_reader_swapped(index->reader) && clear_touched(index, index->let_go, keep)) {
        struct segment *segment = &index->earlier[index->let_go++];
        jitdump_reader_close(segment->reader);
        segment->reader = NULL;
    }
}

static void free_chunks(struct name_chunk *chunk)
{
    while (chunk) {
        struct name_chunk *next = chunk->next;
        free(chunk);
        chunk = next;
    }
}

bool code_index_outgrown(const struct code_index *index)
{
    return index->let_go > 0 && !index->kept && chunks_outgrown(&index->blobs, index->living);
}

/* From its first record on, as the last file; those before it have been read. */
static int read_again(struct code_index *index, struct jitdump_reader *reader)
{
    enum jitdump_status status;
    index->reader = reader;
    index->tracker = (struct jitdump_group_tracker){0};
    jitdump_reader_seek(reader, jitdump_reader_header(reader)->total_size);
    return read_records(index, &status);
}

int code_index_forget(struct code_index *index)
{
    struct trailer_names *names = trailer_names_new();
    if (!names) {
        return failed_to(-ENOMEM, "read %s", index->path);
    }
    trailer_names_free(index->names);
    index->names = names;
    free_chunks(index->name_chunks);
    index->name_chunks = NULL;
    chunks_free(&index->blobs);
    chunks_free(&index->stays);
    hash_map_clear(&index->by_index);
    stay_forest_free(&index->forest);
    index->planted = index->touched_count = 0;
    struct jitdump_reader *last = index->reader;
    uint32_t count = index->earlier_count - index->let_go;
    memmove(index->earlier, index->earlier + index->let_go, count * sizeof *index->earlier);
    index->let_go = 0;
    int err = 0;
    for (index->earlier_count = 0; index->earlier_count < count && !err; index->earlier_count++) {
        struct jitdump_reader *reader = index->earlier[index->earlier_count].reader;
        err = read_again(index, reader);
        jitdump_reader_rest(reader);
    }
    index->earlier_count = count;
    err = err ? err : read_again(index, last);
    index->reader = last;
    err = err ? err : plant(index);
    index->living = index->blobs.count;
    return failed_to(err, "read %s", index->path);
}

bool code_index_is_closed(const struct code_index *index)
{
    return index->is_closed;
}

void code_index_close(struct code_index *index)
{
    if (!index) {
        return;
    }
    free_chunks(index->name_chunks);
    for (uint32_t i = 0; i < index->earlier_count; i++) {
        jitdump_reader_close(index->earlier[i].reader);
    }
    free(index->earlier);
    jitdump_reader_close(index->kept);
    free(index->touched);
    jitdump_reader_close(index->reader);
    trailer_names_free(index->names);
    free(index->path);
    chunks_free(&index->blobs);
    chunks_free(&index->stays);
    hash_map_free(&index->by_index);
    stay_forest_free(&index->forest);
    trailer_free(&index->trailer);
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
    return index->blobs.count;
}

const struct code_blob *code_index_blob(const struct code_index *index, uint32_t blob)
{
    return &blob_at(index, blob)->blob;
}

uint32_t code_index_stay_count(const struct code_index *index)
{
    return index->stays.count;
}

const struct code_stay *code_index_stay(const struct code_index *index, uint32_t stay)
{
    return chunks_at(&index->stays, stay);
}

uint64_t code_index_last_stamp(const struct code_index *index)
{
    return index->last_stamp;
}

uint64_t code_index_end_stamp(const struct code_index *index)
{
    return index->closed > index->last_stamp ? index->closed : index->last_stamp;
}

const struct code_stay *code_index_at(const struct code_index *index, uint64_t address,
                                      uint64_t time, uint64_t *until)
{
    uint64_t next;
    const struct code_stay *stay = stay_forest_at(&index->forest, address, time, &next);
    if (stay && stay->until != UINT64_MAX) {
        if (stay->until <= time) {
            stay = NULL;
        } else if (stay->until < next) {
            next = stay->until;
        }
    }
    if (until) {
        *until = next;
    }
    return stay;
}

int code_index_map(struct code_index *index, uint64_t time,
                   void (*visit)(void *context, uint64_t address, uint64_t size,
                                 const struct code_stay *stay),
                   void *context)
{
    int err = stay_forest_join(&index->forest);
    if (err || index->forest.count == 0) {
        return err;
    }
    const struct stay_tree *tree = &index->forest.trees[0];
    const struct code_stay *stay = NULL; /* the one that covers [start, bounds[i]) */
    uint64_t start = 0;
    for (size_t i = 0; i < tree->leaf_count; i++) {
        const struct code_stay *next = code_index_at(index, tree->bounds[i], time, NULL);
        if (next != stay) {
            if (stay) {
                visit(context, start, tree->bounds[i] - start, stay);
            }
            stay = next;
            start = tree->bounds[i];
        }
    }
    if (stay) {
        visit(context, start, tree->bounds[tree->leaf_count] - start, stay);
    }
    return 0;
}

struct code_ends *code_index_first_ends(struct code_index *index)
{
    return &index->first_ends;
}

int code_index_fetch(struct code_index *index, uint32_t blob, struct code_details *details)
{
    struct indexed_blob *of = blob_at(index, blob);
    struct jitdump_reader *reader = reader_of(index, &of->blob);
    if (!of->touched) {
        if (ARRAY_RESERVE(index->touched, index->touched_count, index->touched_room)) {
            return failed_to(-ENOMEM, "read %s", index->path);
        }
        index->touched[index->touched_count++] = blob;
        of->touched = true;
    }
    uint64_t next = jitdump_reader_offset(index->reader);
    int err = code_details_read(reader, index->path, index->names, &of->blob, details);
    jitdump_reader_seek(index->reader, next); /* where an update goes on */
    return err;
}
