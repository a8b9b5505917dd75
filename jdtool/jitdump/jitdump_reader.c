#include "jdtool/jitdump/jitdump_reader.h"

#include "format/samply.h"
#include "jdtool/base/descriptor.h"
#include "jdtool/base/message.h"
#include "jdtool/base/packed_file.h"

#include <byteswap.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * Bytes read ahead: many records at a time, for most have a few hundred bytes. Where somebody goes
 * from one place to another, few: what lies behind is not wanted.
 */
#define WINDOW_BYTES ((size_t)256 << 10)
#define SEEK_BYTES   ((size_t)8 << 10)

struct jitdump_reader {
    int fd;
    char *name;
    bool swapped;
    struct jitdump_header header;
    uint64_t file_size;
    uint64_t offset; /* of the next record */

    uint8_t *window; /* the file's bytes [window_offset, window_offset + window_size) */
    size_t window_room;
    uint64_t window_offset;
    size_t window_size;
    size_t read_ahead; /* of the next reading */

    char error[160];
};

static __attribute__((format(printf, 2, 3))) void set_error(struct jitdump_reader *reader,
                                                            const char *format, ...)
{
    va_list args;
    va_start(args, format);
    // NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): only with several files a run.
    vsnprintf(reader->error, sizeof(reader->error), format, args);
    va_end(args);
}

uint32_t jitdump_in_order32(const struct jitdump_reader *reader, uint32_t value)
{
    return reader->swapped ? bswap_32(value) : value;
}

uint64_t jitdump_in_order64(const struct jitdump_reader *reader, uint64_t value)
{
    return reader->swapped ? bswap_64(value) : value;
}

uint32_t jitdump_reader_u32(const struct jitdump_reader *reader, const void *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof(value));
    return jitdump_in_order32(reader, value);
}

static uint64_t read_u64(const struct jitdump_reader *reader, const void *at)
{
    uint64_t value;
    memcpy(&value, at, sizeof(value));
    return jitdump_in_order64(reader, value);
}

#define FIELD32(reader, bytes, type, field)                                                        \
    jitdump_reader_u32(reader, (bytes) + offsetof(struct type, field))
#define FIELD64(reader, bytes, type, field) read_u64(reader, (bytes) + offsetof(struct type, field))

/* Fills the window with the file's bytes from offset on, `wanted` at most: no more than it has room
 * for. 0 or a negative errno. */
static int fill_window(struct jitdump_reader *reader, uint64_t offset, size_t wanted)
{
    ssize_t n = descriptor_read_at(reader->fd, reader->window, wanted, offset);
    reader->window_offset = offset;
    reader->window_size = n > 0 ? (size_t)n : 0;
    return n < 0 ? (int)n : 0;
}

static size_t usual_room(const struct jitdump_reader *reader)
{
    return reader->file_size < WINDOW_BYTES ? (size_t)reader->file_size + 1 : WINDOW_BYTES;
}

/*
 * The file's bytes [offset, offset + size), which the caller has checked against file_size. NULL
 * after set_error: out of memory, an I/O error, or the file has shrunk.
 */
static const uint8_t *bytes_at(struct jitdump_reader *reader, uint64_t offset, size_t size)
{
    if (offset < reader->window_offset ||
        offset + size > reader->window_offset + reader->window_size) {
        size_t usual = usual_room(reader);
        size_t room = reader->window || size > usual ? size : usual;
        if (room > reader->window_room) {
            uint8_t *window = realloc(reader->window, room);
            if (!window) {
                set_error(reader, "no memory for a record of %zu bytes", size);
                return NULL;
            }
            reader->window = window;
            reader->window_room = room;
        }
        bool goes_on = offset >= reader->window_offset &&
                       offset <= reader->window_offset + reader->window_size;
        reader->read_ahead = goes_on ? reader->read_ahead * 2 : SEEK_BYTES;
        if (reader->read_ahead > WINDOW_BYTES) {
            reader->read_ahead = WINDOW_BYTES;
        }
        size_t wanted = size > reader->read_ahead ? size : reader->read_ahead;
        int error = fill_window(reader, offset,
                                wanted < reader->window_room ? wanted : reader->window_room);
        if (error) {
            set_error(reader, "%s", strerror(-error));
            return NULL;
        }
        if (reader->window_size < size) {
            set_error(reader, "the file has become shorter while it was read");
            return NULL;
        }
    }
    return reader->window + (offset - reader->window_offset);
}

static int read_header(struct jitdump_reader *reader)
{
    if (reader->file_size < sizeof(struct jitdump_header)) {
        set_error(reader, "%llu bytes are no jitdump header",
                  (unsigned long long)reader->file_size);
        return -EINVAL;
    }
    const uint8_t *bytes = bytes_at(reader, 0, sizeof(struct jitdump_header));
    if (!bytes) {
        return -EIO;
    }
    uint32_t magic = jitdump_reader_u32(reader, bytes);
    if (magic != JITDUMP_MAGIC && magic != JITDUMP_MAGIC_SWAPPED) {
        set_error(reader, "not a jitdump (it starts with %08x)", magic);
        return -EINVAL;
    }
    reader->swapped = magic == JITDUMP_MAGIC_SWAPPED;

    struct jitdump_header *header = &reader->header;
    header->magic = JITDUMP_MAGIC;
    header->version = FIELD32(reader, bytes, jitdump_header, version);
    header->total_size = FIELD32(reader, bytes, jitdump_header, total_size);
    header->elf_mach = FIELD32(reader, bytes, jitdump_header, elf_mach);
    header->pad1 = FIELD32(reader, bytes, jitdump_header, pad1);
    header->pid = FIELD32(reader, bytes, jitdump_header, pid);
    header->timestamp = FIELD64(reader, bytes, jitdump_header, timestamp);
    header->flags = FIELD64(reader, bytes, jitdump_header, flags);
    if (header->version != JITDUMP_VERSION) {
        set_error(reader, "jitdump version %u, this program reads version %d", header->version,
                  JITDUMP_VERSION);
        return -EINVAL;
    }
    if (header->total_size < sizeof(*header) || header->total_size > reader->file_size) {
        set_error(reader, "the header claims %u bytes of a file of %llu", header->total_size,
                  (unsigned long long)reader->file_size);
        return -EINVAL;
    }
    reader->offset = header->total_size;
    return 0;
}

int jitdump_reader_open_fd(int fd, const char *name, struct jitdump_reader **out)
{
    *out = NULL;
    int error = -ENOMEM;
    struct stat status;
    struct jitdump_reader *reader = calloc(1, sizeof(*reader));
    if (!reader) {
        failed_to(-ENOMEM, "read %s", name);
        close(fd);
        return -ENOMEM;
    }
    reader->fd = fd;
    if (fstat(fd, &status) < 0) {
        error = -errno;
        set_error(reader, "%s", strerror(errno));
        goto failed;
    }
    if (!S_ISREG(status.st_mode)) {
        error = -EINVAL;
        set_error(reader, "not a regular file");
        goto failed;
    }
    reader->file_size = (uint64_t)status.st_size;
    reader->window_room = usual_room(reader);
    reader->window = malloc(reader->window_room);
    reader->read_ahead = SEEK_BYTES;
    reader->name = strdup(name);
    if (!reader->name || !reader->window) {
        set_error(reader, "%s", strerror(ENOMEM));
        goto failed;
    }
    error = read_header(reader);
    if (error) {
        goto failed;
    }
    *out = reader;
    return 0;

failed:
    error_message("failed to read %s: %s", name, reader->error);
    jitdump_reader_close(reader);
    return error;
}

/* A descriptor, or a negative errno after a message. */
static int open_file(const char *path)
{
    /* O_NONBLOCK: a FIFO in the dump's place must not make us wait; it is refused as no file. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return failed_to(-errno, "open %s", path);
    }
    return fd;
}

int jitdump_reader_open(const char *path, struct jitdump_reader **out)
{
    *out = NULL;
    int fd = open_file(path);
    fd = fd < 0 ? fd : packed_file_unpack(fd, path);
    return fd < 0 ? fd : jitdump_reader_open_fd(fd, path, out);
}

int jitdump_reader_follow(const char *path, struct jitdump_reader **out)
{
    *out = NULL;
    int fd = open_file(path);
    return fd < 0 ? fd : jitdump_reader_open_fd(fd, path, out);
}

void jitdump_reader_close(struct jitdump_reader *reader)
{
    if (reader) {
        close(reader->fd);
        free(reader->name);
        free(reader->window);
        free(reader);
    }
}

const struct jitdump_header *jitdump_reader_header(const struct jitdump_reader *reader)
{
    return &reader->header;
}

bool jitdump_reader_swapped(const struct jitdump_reader *reader)
{
    return reader->swapped;
}

void jitdump_reader_refresh(struct jitdump_reader *reader)
{
    struct stat status;
    if (fstat(reader->fd, &status) == 0 && (uint64_t)status.st_size > reader->file_size) {
        reader->file_size = (uint64_t)status.st_size;
        /* It may hold bytes from behind the old end, read while they were written. */
        reader->window_size = 0;
        if (reader->window_room < WINDOW_BYTES) {
            uint8_t *window = realloc(reader->window, WINDOW_BYTES); /* NULL: a small one does */
            reader->window = window ? window : reader->window;
            reader->window_room = window ? WINDOW_BYTES : reader->window_room;
        }
    }
}

void jitdump_reader_rest(struct jitdump_reader *reader)
{
    free(reader->window);
    reader->window = NULL;
    reader->window_room = reader->window_size = 0;
}

uint64_t jitdump_reader_file_size(const struct jitdump_reader *reader)
{
    return reader->file_size;
}

uint64_t jitdump_reader_offset(const struct jitdump_reader *reader)
{
    return reader->offset;
}

const char *jitdump_reader_error(const struct jitdump_reader *reader)
{
    return reader->error;
}

void jitdump_reader_seek(struct jitdump_reader *reader, uint64_t offset)
{
    reader->offset = offset < reader->file_size ? offset : reader->file_size;
}

bool jitdump_reader_append(struct jitdump_reader *reader, uint64_t offset,
                           const struct jitdump_record_view *record)
{
    const uint8_t *bytes = record->payload - sizeof(struct jitdump_record);
    bool written =
        pwrite(reader->fd, bytes, record->total_size, (off_t)offset) == (ssize_t)record->total_size;
    jitdump_reader_refresh(reader);
    return written;
}

/* Whether a writer has left the code out: no processor runs zeros alone. */
static bool is_hole(const uint8_t *bytes, uint64_t size)
{
    return size > 0 && bytes[0] == 0 && memcmp(bytes, bytes + 1, (size_t)size - 1) == 0;
}

static int parse_load(struct jitdump_reader *reader, const uint8_t *bytes,
                      struct jitdump_record_view *record)
{
    if (record->total_size < sizeof(struct jitdump_load) + 1) {
        set_error(reader, "a LOAD of %u bytes has no room for its fields", record->total_size);
        return -EINVAL;
    }
    record->load.pid = FIELD32(reader, bytes, jitdump_load, pid);
    record->load.tid = FIELD32(reader, bytes, jitdump_load, tid);
    record->load.vma = FIELD64(reader, bytes, jitdump_load, vma);
    record->load.code_addr = FIELD64(reader, bytes, jitdump_load, code_addr);
    record->load.code_size = FIELD64(reader, bytes, jitdump_load, code_size);
    record->load.code_index = FIELD64(reader, bytes, jitdump_load, code_index);

    const uint8_t *name = bytes + sizeof(struct jitdump_load);
    size_t left = record->total_size - sizeof(struct jitdump_load);
    const uint8_t *nul = memchr(name, 0, left);
    if (!nul) {
        set_error(reader, "the LOAD's name has no end");
        return -EINVAL;
    }
    record->load.name = (const char *)name;
    left -= (size_t)(nul + 1 - name);
    if (left != 0 && record->load.code_size > left) {
        set_error(reader, "the LOAD claims %llu bytes of code and holds %zu",
                  (unsigned long long)record->load.code_size, left);
        return -EINVAL;
    }
    if (record->load.code_size > UINT64_MAX - record->load.code_addr ||
        record->load.code_size > UINT64_MAX - record->load.vma) {
        set_error(reader, "the LOAD's code runs over the end of the address space");
        return -EINVAL;
    }
    record->load.bytes = left && !is_hole(nul + 1, record->load.code_size) ? nul + 1 : NULL;
    record->load.excess = left ? left - (size_t)record->load.code_size : 0;
    return 0;
}

static int parse_move(struct jitdump_reader *reader, const uint8_t *bytes,
                      struct jitdump_record_view *record)
{
    if (record->total_size < sizeof(struct jitdump_move)) {
        set_error(reader, "a MOVE of %u bytes has no room for its fields", record->total_size);
        return -EINVAL;
    }
    record->move.pid = FIELD32(reader, bytes, jitdump_move, pid);
    record->move.tid = FIELD32(reader, bytes, jitdump_move, tid);
    record->move.vma = FIELD64(reader, bytes, jitdump_move, vma);
    record->move.old_code_addr = FIELD64(reader, bytes, jitdump_move, old_code_addr);
    record->move.new_code_addr = FIELD64(reader, bytes, jitdump_move, new_code_addr);
    record->move.code_size = FIELD64(reader, bytes, jitdump_move, code_size);
    record->move.code_index = FIELD64(reader, bytes, jitdump_move, code_index);
    if (record->move.code_size > UINT64_MAX - record->move.old_code_addr ||
        record->move.code_size > UINT64_MAX - record->move.new_code_addr) {
        set_error(reader, "the MOVE's code runs over the end of the address space");
        return -EINVAL;
    }
    return 0;
}

static int parse_debug_info(struct jitdump_reader *reader, const uint8_t *bytes,
                            struct jitdump_record_view *record)
{
    if (record->total_size < sizeof(struct jitdump_debug_info)) {
        set_error(reader, "a DEBUG_INFO of %u bytes has no room for its fields",
                  record->total_size);
        return -EINVAL;
    }
    record->debug_info.code_addr = FIELD64(reader, bytes, jitdump_debug_info, code_addr);
    record->debug_info.nr_entry = FIELD64(reader, bytes, jitdump_debug_info, nr_entry);
    record->debug_info.entries = bytes + sizeof(struct jitdump_debug_info);
    record->debug_info.entries_size = record->total_size - sizeof(struct jitdump_debug_info);
    if (record->debug_info.nr_entry >
        record->debug_info.entries_size / (sizeof(struct jitdump_debug_entry) + 1)) {
        set_error(reader, "the DEBUG_INFO claims %llu entries in %zu bytes",
                  (unsigned long long)record->debug_info.nr_entry, record->debug_info.entries_size);
        return -EINVAL;
    }
    return 0;
}

static int parse_unwinding_info(struct jitdump_reader *reader, const uint8_t *bytes,
                                struct jitdump_record_view *record)
{
    if (record->total_size < sizeof(struct jitdump_unwinding_info)) {
        set_error(reader, "an UNWINDING_INFO of %u bytes has no room for its fields",
                  record->total_size);
        return -EINVAL;
    }
    uint64_t left = record->total_size - sizeof(struct jitdump_unwinding_info);
    record->unwinding_info.data_size =
        FIELD64(reader, bytes, jitdump_unwinding_info, unwind_data_size);
    record->unwinding_info.eh_frame_hdr_size =
        FIELD64(reader, bytes, jitdump_unwinding_info, eh_frame_hdr_size);
    record->unwinding_info.mapped_size =
        FIELD64(reader, bytes, jitdump_unwinding_info, mapped_size);
    record->unwinding_info.data = bytes + sizeof(struct jitdump_unwinding_info);
    if (record->unwinding_info.data_size > left ||
        record->unwinding_info.eh_frame_hdr_size > record->unwinding_info.data_size) {
        set_error(reader, "the UNWINDING_INFO claims %llu bytes (%llu of header) and holds %llu",
                  (unsigned long long)record->unwinding_info.data_size,
                  (unsigned long long)record->unwinding_info.eh_frame_hdr_size,
                  (unsigned long long)left);
        return -EINVAL;
    }
    return 0;
}

static int parse_record(struct jitdump_reader *reader, const uint8_t *bytes,
                        struct jitdump_record_view *record)
{
    switch (record->id) {
    case JIT_CODE_LOAD:
        return parse_load(reader, bytes, record);
    case JIT_CODE_MOVE:
        return parse_move(reader, bytes, record);
    case JIT_CODE_DEBUG_INFO:
        return parse_debug_info(reader, bytes, record);
    case JIT_CODE_UNWINDING_INFO:
        return parse_unwinding_info(reader, bytes, record);
    default:
        return 0;
    }
}

enum jitdump_status jitdump_reader_next(struct jitdump_reader *reader,
                                        struct jitdump_record_view *record)
{
    memset(record, 0, sizeof(*record));
    record->offset = reader->offset;
    reader->error[0] = 0;
    uint64_t left = reader->file_size - reader->offset;
    if (left == 0) {
        return JITDUMP_END;
    }
    if (left < sizeof(struct jitdump_record)) {
        set_error(reader, "the file ends %llu bytes into a record's prefix",
                  (unsigned long long)left);
        return JITDUMP_TORN;
    }
    const uint8_t *bytes = bytes_at(reader, reader->offset, sizeof(struct jitdump_record));
    if (!bytes) {
        return JITDUMP_BAD;
    }
    record->id = FIELD32(reader, bytes, jitdump_record, id);
    record->total_size = FIELD32(reader, bytes, jitdump_record, total_size);
    record->timestamp = FIELD64(reader, bytes, jitdump_record, timestamp);
    if (record->total_size < sizeof(struct jitdump_record)) {
        set_error(reader, "a record of id %u claims %u bytes", record->id, record->total_size);
        return JITDUMP_BAD;
    }
    if (record->total_size > left) {
        set_error(reader, "the file ends %llu bytes into a record of id %u and %u bytes",
                  (unsigned long long)left, record->id, record->total_size);
        return JITDUMP_TORN;
    }
    bytes = bytes_at(reader, reader->offset, record->total_size);
    if (!bytes) {
        return JITDUMP_BAD;
    }
    record->payload = bytes + sizeof(struct jitdump_record);
    record->payload_size = record->total_size - sizeof(struct jitdump_record);
    reader->offset += record->total_size;
    return parse_record(reader, bytes, record) < 0 ? JITDUMP_BROKEN : JITDUMP_RECORD;
}

int jitdump_entry_next(const struct jitdump_reader *reader,
                       const struct jitdump_record_view *record, struct jitdump_entry_walk *walk,
                       struct jitdump_entry *entry)
{
    if (walk->index >= record->debug_info.nr_entry) {
        return 0;
    }
    size_t left = record->debug_info.entries_size - walk->at;
    if (left <= sizeof(struct jitdump_debug_entry)) {
        return -EINVAL;
    }
    const uint8_t *bytes = record->debug_info.entries + walk->at;
    const uint8_t *name = bytes + sizeof(struct jitdump_debug_entry);
    const uint8_t *nul = memchr(name, 0, left - sizeof(struct jitdump_debug_entry));
    if (!nul) {
        return -EINVAL;
    }
    bool same_file = name[0] == 0xff && name[1] == 0;
    if (!same_file) {
        walk->file = (const char *)name;
    } else if (!walk->file) {
        return -EINVAL;
    }
    entry->address = FIELD64(reader, bytes, jitdump_debug_entry, code_addr);
    entry->line = FIELD32(reader, bytes, jitdump_debug_entry, line);
    entry->discrim = FIELD32(reader, bytes, jitdump_debug_entry, discrim);
    entry->file = walk->file;
    walk->index++;
    walk->at += (size_t)(nul + 1 - bytes);
    return 1;
}

int jitdump_behind_entries(const struct jitdump_reader *reader,
                           const struct jitdump_record_view *record, const uint8_t **at,
                           size_t *size)
{
    struct jitdump_entry_walk walk = {0};
    struct jitdump_entry entry;
    int more;
    while ((more = jitdump_entry_next(reader, record, &walk, &entry)) > 0) {
    }
    *at = record->debug_info.entries + walk.at;
    *size = record->debug_info.entries_size - walk.at;
    return more;
}

/* The least bytes of a record of this kind; 0: a kind that a resync does not believe in. */
static uint32_t least_size(uint32_t id)
{
    switch (id) {
    case JIT_CODE_LOAD:
        return sizeof(struct jitdump_load) + 1;
    case JIT_CODE_MOVE:
        return sizeof(struct jitdump_move);
    case JIT_CODE_DEBUG_INFO:
        return sizeof(struct jitdump_debug_info);
    case JIT_CODE_CLOSE:
        return sizeof(struct jitdump_close);
    case JIT_CODE_UNWINDING_INFO:
        return sizeof(struct jitdump_unwinding_info);
    case SAMPLY_JIT_CODE_DEBUG_INFO2:
        return sizeof(struct samply_debug_info2);
    case SAMPLY_JIT_TIER:
        return sizeof(struct samply_tier);
    case SAMPLY_EMBEDDED_SOURCE_FILE:
        return sizeof(struct samply_embedded_source);
    default:
        return 0;
    }
}

/* A record prefix that a resync believes in; enough to tell it from code bytes and names. */
static bool plausible_prefix(const struct jitdump_reader *reader, const uint8_t *bytes,
                             uint64_t left)
{
    uint32_t id = jitdump_reader_u32(reader, bytes);
    uint32_t least = least_size(id);
    if (least == 0) {
        return false;
    }
    uint32_t size = FIELD32(reader, bytes, jitdump_record, total_size);
    bool fixed = id == JIT_CODE_MOVE || id == JIT_CODE_CLOSE;
    return size >= least && size <= left && (!fixed || size == least) &&
           FIELD64(reader, bytes, jitdump_record, timestamp) >= reader->header.timestamp;
}

/* Whether the file ends at offset or goes on there with a plausible record. */
static bool plausible_end(const struct jitdump_reader *reader, uint64_t offset)
{
    uint8_t prefix[sizeof(struct jitdump_record)];
    uint64_t left = reader->file_size - offset;
    if (left == 0) {
        return true;
    }
    /* Not through the window: the look ahead may be far and must not throw it away. */
    return left >= sizeof(prefix) &&
           pread(reader->fd, prefix, sizeof(prefix), (off_t)offset) == sizeof(prefix) &&
           plausible_prefix(reader, prefix, left);
}

/* Whether a sound record stands at the reader's offset; `bytes` are those of its prefix. */
static bool believable(struct jitdump_reader *reader, const uint8_t *bytes)
{
    uint64_t offset = reader->offset;
    if (!plausible_prefix(reader, bytes, reader->file_size - offset) ||
        !plausible_end(reader, offset + FIELD32(reader, bytes, jitdump_record, total_size))) {
        return false;
    }
    struct jitdump_record_view record;
    bool sound = jitdump_reader_next(reader, &record) == JITDUMP_RECORD;
    if (sound && record.id == JIT_CODE_LOAD) {
        sound = record.load.pid == reader->header.pid && record.load.excess == 0;
    }
    if (sound && record.id == JIT_CODE_DEBUG_INFO) {
        const uint8_t *behind;
        size_t size;
        sound = jitdump_behind_entries(reader, &record, &behind, &size) == 0;
    }
    reader->offset = offset;
    return sound;
}

bool jitdump_reader_resync(struct jitdump_reader *reader, uint64_t limit)
{
    limit = limit < reader->file_size ? limit : reader->file_size;
    while (reader->offset < limit &&
           reader->file_size - reader->offset >= sizeof(struct jitdump_record)) {
        const uint8_t *bytes = bytes_at(reader, reader->offset, sizeof(struct jitdump_record));
        if (!bytes) {
            break;
        }
        if (believable(reader, bytes)) {
            return true;
        }
        reader->offset++;
    }
    reader->offset = limit;
    return false;
}

/* ---- What belongs to a LOAD ---- */

static void forget(struct jitdump_group_tracker *tracker, uint32_t index)
{
    tracker->debug_count--;
    memmove(&tracker->debug[index], &tracker->debug[index + 1],
            (tracker->debug_count - index) * sizeof(tracker->debug[0]));
}

static void add_debug_info(struct jitdump_group_tracker *tracker,
                           const struct jitdump_record_view *record)
{
    if (tracker->debug_count == GROUP_PENDING) {
        forget(tracker, 0);
    }
    tracker->debug[tracker->debug_count++] = (struct jitdump_group_pending){
        .offset = record->offset, .address = record->debug_info.code_addr};
}

static struct jitdump_group take(struct jitdump_group_tracker *tracker,
                                 const struct jitdump_record_view *load)
{
    struct jitdump_group group = {.unwinding_offset = tracker->unwinding_offset,
                                  .samply_offset = tracker->samply_offset};
    tracker->unwinding_offset = 0;
    tracker->samply_offset = 0;
    for (uint32_t i = tracker->debug_count; i-- > 0;) {
        uint64_t address = tracker->debug[i].address;
        if (group.debug_offset == 0 &&
            (address == load->load.code_addr || address == load->load.vma)) {
            group.debug_offset = tracker->debug[i].offset;
            forget(tracker, i);
        } else if (++tracker->debug[i].age >= GROUP_PENDING) {
            forget(tracker, i);
        }
    }
    return group;
}

struct jitdump_group jitdump_group_add(struct jitdump_group_tracker *tracker,
                                       const struct jitdump_record_view *record)
{
    switch (record->id) {
    case JIT_CODE_DEBUG_INFO:
        add_debug_info(tracker, record);
        break;
    case JIT_CODE_UNWINDING_INFO:
        tracker->unwinding_offset = record->offset;
        break;
    case SAMPLY_JIT_CODE_DEBUG_INFO2:
        tracker->samply_offset = record->offset;
        break;
    case JIT_CODE_LOAD:
        return take(tracker, record);
    default:
        break;
    }
    return (struct jitdump_group){0};
}
