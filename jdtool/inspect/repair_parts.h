/* What a repair finds in a dump, for repair.c. */
#ifndef JD_TOOL_REPAIR_PARTS_H
#define JD_TOOL_REPAIR_PARTS_H

#include "jdtool/base/bytes.h"
#include "jdtool/inspect/repair.h"
#include "jdtool/jitdump/trailer.h"

/* Where the lines about what is done go. */
struct repair_output {
    repair_say say;
    void *context;
};

/* Says a line, cut at 511 bytes, about the old file's bytes at an offset. */
void repair_tell(const struct repair_output *output, uint64_t offset, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A record of the old file. */
struct repair_part {
    uint64_t offset;
    uint64_t new_offset; /* where the last round that wrote it has put it */
    uint32_t id;
    uint32_t size; /* up to its real end: less than its total_size where that was too large */
    uint32_t unit;
    bool left_out;
    bool without_trailer;
};

/* A LOAD with what describes it, or a MOVE: what is kept or left out as a whole. */
struct repair_unit {
    uint32_t first_part; /* the LOAD or MOVE is the last one */
    uint32_t part_count;
    uint64_t stamp;
    uint64_t code_index;     /* of the old file */
    uint64_t new_code_index; /* differs where the old one was used twice */
    bool left_out;
};

struct repair_parts {
    struct repair_part *parts;
    uint32_t part_count;
    uint32_t part_room;
    struct repair_unit *units;
    uint32_t unit_count;
    uint32_t unit_room;
    uint64_t close_stamp; /* of the last CLOSE */
    uint64_t close_offset;
    bool closed; /* and it is kept */
    uint64_t highest_code_index;
    /* All definitions of the dump, the left-out ones included. */
    struct trailer_names *names;
};

/* Finds all records that can stand in a sound dump. Start zeroed; freed in any case. 0 or -ENOMEM.
 */
int repair_find_parts(struct jitdump_reader *reader, const struct repair_output *output,
                      struct repair_result *result, struct repair_parts *found);
void repair_parts_free(struct repair_parts *found);

/*
 * Adds a trailer to buffer: the old one, [bytes, bytes + size), with the definitions that it refers
 * to and that `written` lacks ahead of its own; afterwards `written` has them all. `scratch` is for
 * decoding. Returns the number of definitions carried over, or -EINVAL when there is no trailer
 * that can be decoded (nothing is added then).
 */
int64_t repair_add_trailer(struct bytes *buffer, const struct jitdump_reader *reader,
                           const uint8_t *bytes, size_t size, const struct trailer_names *all,
                           struct trailer_names *written, struct trailer *scratch);

#endif
