/*
 * Reads a jitdump (format/jitdump.h), of either byte order, record by record. The file is taken for
 * hostile: every size is checked against the file before it is believed, nothing is mapped (a file
 * that shrinks under a mapping kills the reader), and memory is bounded by the largest record.
 */
#ifndef JD_TOOL_JITDUMP_READER_H
#define JD_TOOL_JITDUMP_READER_H

#include "format/jitdump.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct jitdump_reader;

/* How a look-up for a record ended. */
enum jitdump_status {
    JITDUMP_RECORD, /* *record is filled */
    JITDUMP_END,    /* the file ends here, cleanly */
    JITDUMP_BROKEN, /* a record ends where it says, but its contents cannot be; the reader is behind
                       it, and of *record only what the prefix says is filled */
    JITDUMP_TORN,   /* the file ends inside a record: what a killed writer leaves */
    JITDUMP_BAD,    /* the bytes at jitdump_reader_offset cannot be a record, or not be read */
};

/*
 * One record as it stands in the file, in this machine's byte order. Pointers are into the reader's
 * buffer and live until its next call. address + size of a LOAD or MOVE never wraps.
 */
struct jitdump_record_view {
    uint64_t offset; /* in the file */
    uint32_t id;     /* enum jitdump_record_id, or one of somebody else's */
    uint32_t total_size;
    uint64_t timestamp;
    union {
        struct {
            uint32_t pid;
            uint32_t tid;
            uint64_t vma;
            uint64_t code_addr;
            uint64_t code_size;
            uint64_t code_index;
            const char *name;     /* NUL-terminated inside the record */
            const uint8_t *bytes; /* code_size bytes; NULL: none, or all of them zero */
            size_t excess;        /* bytes behind the code that belong to nothing */
        } load;
        struct {
            uint32_t pid;
            uint32_t tid;
            uint64_t vma;
            uint64_t old_code_addr;
            uint64_t new_code_addr;
            uint64_t code_size;
            uint64_t code_index;
        } move;
        struct {
            uint64_t code_addr;
            uint64_t nr_entry;
            const uint8_t *entries; /* in the file's byte order: walk with jitdump_entry_next */
            size_t entries_size;    /* bytes from `entries` to the end of the record */
        } debug_info;
        struct {
            uint64_t eh_frame_hdr_size;
            uint64_t mapped_size;
            const uint8_t *data; /* .eh_frame, then .eh_frame_hdr */
            uint64_t data_size;
        } unwinding_info;
    };
    const uint8_t *payload; /* all that follows the prefix, as it is in the file */
    size_t payload_size;
};

struct jitdump_entry {
    uint64_t address;
    uint32_t line;
    uint32_t discrim;
    const char *file; /* never the "\xff" marker: it is replaced by the name before it */
};

/* Where a walk over a DEBUG_INFO record's entries stands. Start with all zero. */
struct jitdump_entry_walk {
    uint64_t index;   /* of the next entry */
    size_t at;        /* its offset from record->debug_info.entries */
    const char *file; /* of the entry before, for the "\xff" marker */
};

/*
 * Opens a dump, which may be packed (packed_file.h), and reads its header. 0 or a negative errno
 * (-EINVAL: not a jitdump), after a message. The reader is freed with jitdump_reader_close, NULL
 * being fine.
 */
int jitdump_reader_open(const char *path, struct jitdump_reader **out);

/* The same for one that may still be written, as which no packed one is taken. */
int jitdump_reader_follow(const char *path, struct jitdump_reader **out);

/* The same for such a file that is open already: the reader takes fd over, on failure too. `name`
 * is for messages. */
int jitdump_reader_open_fd(int fd, const char *name, struct jitdump_reader **out);

void jitdump_reader_close(struct jitdump_reader *reader);

/*
 * Bytes in the file when it was opened, or refreshed; the reader never looks behind them.
 * jitdump_reader_refresh asks the file again: a writer may have appended to it.
 */
void jitdump_reader_refresh(struct jitdump_reader *reader);
uint64_t jitdump_reader_file_size(const struct jitdump_reader *reader);

/* Gives back the memory that it reads through, until it is asked for more: of many dumps that are
 * followed most do not grow. What its records pointed to is gone. */
void jitdump_reader_rest(struct jitdump_reader *reader);

/* The header in this machine's byte order; `swapped` tells that the file's is the other one. */
const struct jitdump_header *jitdump_reader_header(const struct jitdump_reader *reader);
bool jitdump_reader_swapped(const struct jitdump_reader *reader);

/* Reads the next record. After JITDUMP_TORN and JITDUMP_BAD the reader stays where it is. */
enum jitdump_status jitdump_reader_next(struct jitdump_reader *reader,
                                        struct jitdump_record_view *record);

/* Where the next call of jitdump_reader_next looks. */
uint64_t jitdump_reader_offset(const struct jitdump_reader *reader);

/* Goes to a file offset, from where jitdump_reader_next goes on: that of a record seen before. */
void jitdump_reader_seek(struct jitdump_reader *reader, uint64_t offset);

/*
 * Goes to the first offset from the present one up to limit, itself excluded, where a record of a
 * known kind stands that is sound in itself and followed by another one or by the file's end: the
 * way out of broken bytes. False: there is none, and the reader is at limit, or at the file's end.
 */
bool jitdump_reader_resync(struct jitdump_reader *reader, uint64_t limit);

/*
 * Writes a record of another reader's, which is its last, into this one's file, which is our own,
 * at an offset that is its end. False: it could not be written.
 */
bool jitdump_reader_append(struct jitdump_reader *reader, uint64_t offset,
                           const struct jitdump_record_view *record);

/* Why the last call was not JITDUMP_RECORD, as "reason" of a message; lives until the next call. */
const char *jitdump_reader_error(const struct jitdump_reader *reader);

/*
 * Walks a DEBUG_INFO record's entries. Returns 1 and fills *entry, 0 behind the last one, -EINVAL
 * when the record ends inside an entry.
 */
int jitdump_entry_next(const struct jitdump_reader *reader,
                       const struct jitdump_record_view *record, struct jitdump_entry_walk *walk,
                       struct jitdump_entry *entry);

/* Sets *at and *size to what stands behind the entries: a trailer, perhaps. 0 or -EINVAL as above:
 * to what stands from that entry on. */
int jitdump_behind_entries(const struct jitdump_reader *reader,
                           const struct jitdump_record_view *record, const uint8_t **at,
                           size_t *size);

/* Integers of the file's byte order, from unaligned memory. */
uint32_t jitdump_reader_u32(const struct jitdump_reader *reader, const void *at);

/* A number of this machine's byte order in the file's. */
uint32_t jitdump_in_order32(const struct jitdump_reader *reader, uint32_t value);
uint64_t jitdump_in_order64(const struct jitdump_reader *reader, uint64_t value);

/* ---- What belongs to a LOAD ---- */

/*
 * Finds the DEBUG_INFO and the like that belong to a LOAD. They stand right before it,
 * but in dumps of writers that take a lock for each record (perf's own agent, LLVM) those of
 * several methods get mixed; a DEBUG_INFO tells its address, so it can be bound to the right LOAD
 * all the same. Remembers a bounded number of records; zero one to start.
 */

/* As many DEBUG_INFOs wait for their LOAD, and for as many LOADs; later ones push old ones out. */
#define GROUP_PENDING 16

struct jitdump_group_tracker {
    struct jitdump_group_pending {
        uint64_t offset;
        uint64_t address;
        uint32_t age; /* LOADs seen since */
    } debug[GROUP_PENDING];
    uint32_t debug_count;
    uint64_t unwinding_offset;
    uint64_t samply_offset;
};

/* File offsets of what belongs to a LOAD, 0: there is none. */
struct jitdump_group {
    uint64_t debug_offset;
    uint64_t unwinding_offset;
    uint64_t samply_offset; /* SAMPLY_JIT_CODE_DEBUG_INFO2 */
};

/* Takes note of any record; of a LOAD, tells what belongs to it. Other records give an empty group.
 */
struct jitdump_group jitdump_group_add(struct jitdump_group_tracker *tracker,
                                       const struct jitdump_record_view *record);

#endif
