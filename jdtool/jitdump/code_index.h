/*
 * Which code was at address A at time T: an index over all LOADs and MOVEs of one dump. It keeps
 * places in the file, not code bytes; those are fetched when they are asked for.
 *
 * A dump may be read while its JVM still writes it: code_index_follow opens it, code_index_update
 * takes in what has come since. Blobs and stays get numbers in the order of the file, and neither
 * they nor their names ever move.
 */
#ifndef JD_TOOL_CODE_INDEX_H
#define JD_TOOL_CODE_INDEX_H

#include "jdtool/jitdump/jitdump_reader.h"
#include "jdtool/jitdump/trailer.h"

/* One stay of a piece of code at one address. */
struct code_stay {
    uint64_t address;
    uint64_t size;
    uint64_t from;   /* stamp of the LOAD or MOVE that brought it */
    uint64_t until;  /* stamp of the MOVE that took it away; UINT64_MAX: none did */
    uint32_t blob;   /* index into the blobs: which code it is */
    uint32_t number; /* of the stay */
};

/* One LOAD with what came before it. */
struct code_blob {
    uint64_t load_offset;      /* of the LOAD record in the file */
    uint64_t debug_offset;     /* of its DEBUG_INFO; 0: none */
    uint64_t unwinding_offset; /* of its UNWINDING_INFO; 0: none */
    uint64_t samply_offset;    /* of its SAMPLY_JIT_CODE_DEBUG_INFO2; 0: none */
    uint64_t address;          /* where the LOAD has it */
    uint64_t size;
    uint64_t timestamp;
    uint64_t code_index;
    const char *name; /* lives as long as the index */
    bool has_bytes;
    bool is_described;   /* what follows is known without fetching it */
    int8_t tier;         /* of its trailer; -1: it does not say */
    uint8_t range_count; /* of its inline tree; UINT8_MAX: so many or more */
    uint32_t file;       /* that the offsets are of: of segments the latest that told of it */
    uint32_t late;       /* ms that it was reported behind `timestamp`, which is dated back */
};

/* Where the ranges of the code that was there first end (safepoint_lines.c). */
struct code_ends {
    uint32_t next; /* blob that was not looked at */
    uint32_t blobs;
    uint64_t ends;
    uint64_t calls; /* of these, that stand behind one */
};

struct code_index;

/*
 * What one blob's records say. Start zeroed; filled by code_index_fetch, again and again; freed
 * once at the end. Pointers live until the next fetch.
 */
struct code_details {
    const uint8_t *bytes; /* the code, NULL: the dump has none */
    struct jitdump_entry *entries;
    uint32_t entry_count;
    struct trailer trailer;
    const uint8_t *unwinding; /* .eh_frame, then .eh_frame_hdr; NULL: none */
    size_t unwinding_size;
    size_t eh_frame_hdr_size;

    /* What the pointers above point into. */
    struct code_buffer {
        uint8_t *bytes;
        size_t room;
    } code_buffer, string_buffer, unwinding_buffer;
    uint32_t entry_room;
};

/* Limits of one dump. A JVM that compiles without end reaches none of them in days. */
#define CODE_INDEX_BLOBS_MAX (UINT32_C(1) << 24)

/*
 * Reads a whole dump. Broken records are left out, torn and broken tails end the reading, with a
 * note in code_index_warning; they are no failure. 0 or a negative errno after a message.
 */
int code_index_open(const char *path, struct code_index **out);

/*
 * Opens a dump that may still be written, and reads what is there: an end inside a record is no
 * fault, the rest may be on its way. With `path` or, where fd is not negative, a file that is open
 * already: the index takes it over, on failure too.
 */
int code_index_follow(const char *path, int fd, struct code_index **out);

/*
 * Reads what was appended since. With `is_all` nothing more will come, and an end inside a record
 * is a torn tail. 1: the index has grown; 0: it has not; or a negative errno after a message.
 */
int code_index_update(struct code_index *index, bool is_all);

/*
 * Goes on with another file: the next segment of the same session, which tells of living code once
 * more. 1: it is that, and has been read; 0: there is none at that path; or a negative errno after
 * a message. What the files before it hold was read with the last update.
 */
int code_index_continue(struct code_index *index, const char *path, bool is_all);

/*
 * Nobody will ask any more for code that was gone by then: closes the segments that ended before.
 * Blobs that a later one has told of again lose nothing, for their records are read from there; of
 * others nothing but what code_blob has is left. With `keep` the records of those that were fetched
 * before are kept, in a file without a name; where there can be none the segments stay open.
 */
void code_index_let_go(struct code_index *index, uint64_t time, bool keep);

/*
 * Most blobs are of segments that were let go, and nobody had records of these kept. The latter
 * forgets them, and numbers what the other segments tell of anew: nobody may have a blob, a stay or
 * a name any more. 0 or -ENOMEM after a message.
 */
bool code_index_outgrown(const struct code_index *index);
int code_index_forget(struct code_index *index);

/* Whether the writer has closed the dump (JIT_CODE_CLOSE): no code is told of any more. */
bool code_index_is_closed(const struct code_index *index);

void code_index_close(struct code_index *index);

const struct jitdump_header *code_index_header(const struct code_index *index);
const char *code_index_warning(const struct code_index *index); /* NULL: none */
const struct trailer_names *code_index_names(const struct code_index *index);

uint32_t code_index_blob_count(const struct code_index *index);
const struct code_blob *code_index_blob(const struct code_index *index, uint32_t blob);

/*
 * All stays, as they stand in the file. Stamps of a dump may go backwards: a LOAD is stamped back
 * to the moment its range fell free.
 */
uint32_t code_index_stay_count(const struct code_index *index);
const struct code_stay *code_index_stay(const struct code_index *index, uint32_t stay);

/* What was seen of these: zeroes at first, and kept by whoever looks. */
struct code_ends *code_index_first_ends(struct code_index *index);

/* The latest stamp of a stay; 0: there is none. */
uint64_t code_index_last_stamp(const struct code_index *index);

/* When it ended, as far as it tells: when it was closed, or the latest stamp of a stay. */
uint64_t code_index_end_stamp(const struct code_index *index);

/*
 * The stay that covers address at time: of those that began at or before the time, the last one,
 * later stays hiding the overlapped part of earlier ones. NULL when there is none, or a MOVE has
 * taken its code away by then. *until, where until is not NULL, gets the moment from which on the
 * answer is another one, as far as the dump has been read. Logarithmic.
 */
const struct code_stay *code_index_at(const struct code_index *index, uint64_t address,
                                      uint64_t time, uint64_t *until);

/*
 * Calls `visit` for each stretch of the address space that had code at that time, ascending and
 * without overlaps, with the stay that code_index_at answers there. 0 or -ENOMEM.
 */
int code_index_map(struct code_index *index, uint64_t time,
                   void (*visit)(void *context, uint64_t address, uint64_t size,
                                 const struct code_stay *stay),
                   void *context);

/*
 * Fetches the bytes, rows and inline tree of a blob; rows and tree from samply's record where the
 * dump, of another runtime then, has these only there. Of one that was let go there is nothing. 0
 * or a negative errno after a message.
 */
int code_index_fetch(struct code_index *index, uint32_t blob, struct code_details *details);
void code_details_free(struct code_details *details);

/* Reads one blob's records again, for code_index.c. */

/* What code_index_fetch does; names have all of the dump's definitions. reader NULL: the records
 * are gone, and so there is nothing. */
int code_details_read(struct jitdump_reader *reader, const char *path, struct trailer_names *names,
                      const struct code_blob *blob, struct code_details *details);

#endif
