/*
 * Which code was at address A at time T: an index over all LOADs and MOVEs of one dump. It keeps
 * places in the file, not code bytes; those are fetched when they are asked for.
 */
#ifndef JD_INJECT_CODE_INDEX_H
#define JD_INJECT_CODE_INDEX_H

#include "inject/jitdump_reader.h"
#include "inject/trailer.h"

/* One stay of a piece of code at one address. */
struct code_stay {
    uint64_t address;
    uint64_t size;
    uint64_t from; /* stamp of the LOAD or MOVE that brought it */
    uint32_t blob; /* index into the blobs: which code it is */
};

/* One LOAD with what came before it. */
struct code_blob {
    uint64_t load_offset;      /* of the LOAD record in the file */
    uint64_t debug_offset;     /* of its DEBUG_INFO; 0: none */
    uint64_t unwinding_offset; /* of its UNWINDING_INFO; 0: none */
    uint64_t address;          /* where the LOAD has it */
    uint64_t size;
    uint64_t timestamp;
    uint64_t code_index;
    const char *name; /* lives as long as the index */
    bool has_bytes;
};

struct code_index;

/* What one blob's records say. Start zeroed; filled by code_index_fetch; freed once at the end. */
struct code_details {
    uint8_t *bytes; /* the code, NULL: the dump has none */
    struct jitdump_entry *entries;
    uint32_t entry_count;
    struct trailer trailer;
    char *strings; /* what the entries' files point into */
    size_t bytes_room;
    size_t strings_room;
    uint32_t entry_room;
};

/*
 * Reads a whole dump. Torn and broken tails end the reading with a note in code_index_warning, they
 * are no failure. 0 or a negative errno after a message.
 */
int code_index_open(const char *path, struct code_index **out);
void code_index_close(struct code_index *index);

const struct jitdump_header *code_index_header(const struct code_index *index);
const char *code_index_warning(const struct code_index *index); /* NULL: none */
const struct trailer_names *code_index_names(const struct code_index *index);

uint32_t code_index_blob_count(const struct code_index *index);
const struct code_blob *code_index_blob(const struct code_index *index, uint32_t blob);

/* All stays, sorted by `from`; the order in which MMAP events have to be made. */
uint32_t code_index_stay_count(const struct code_index *index);
const struct code_stay *code_index_stay(const struct code_index *index, uint32_t stay);

/*
 * The stay that covers address at time: of those that began at or before the time, the last one,
 * later stays hiding the overlapped part of earlier ones. NULL when there is none. Logarithmic.
 */
const struct code_stay *code_index_at(const struct code_index *index, uint64_t address,
                                      uint64_t time);

/* Fetches the bytes, rows and inline tree of a blob. 0 or a negative errno after a message. */
int code_index_fetch(struct code_index *index, uint32_t blob, struct code_details *details);
void code_details_free(struct code_details *details);

#endif
