/*
 * Makes a sound dump of a torn, broken or mixed-up one.
 *
 * What is sound, verify.h says, and nobody else: the groups that can be found (behind broken bytes
 * too) are written, the result is verified, and what it finds wrong is left out in the next round:
 * a trailer, a record, a whole group, until nothing is found. Definitions of methods and files that
 * went with what was left out are added to the trailers of the groups that refer to them.
 */
#ifndef JD_TOOL_REPAIR_H
#define JD_TOOL_REPAIR_H

#include "jdtool/jitdump/jitdump_reader.h"

struct repair_result {
    uint64_t loads; /* kept */
    uint64_t moves;
    uint64_t dropped_loads; /* seen, but left out */
    uint64_t dropped_bytes; /* that are no record, or none we know */
    uint64_t carried;       /* definitions that had to be carried over */
};

/* Gets a line, without its newline, about something that is left out or changed: where in the old
 * file, and why. */
typedef void (*repair_say)(void *context, uint64_t offset, const char *what);

/*
 * Writes the repaired dump to fd, a regular file open for reading and writing, from its start. 0 or
 * a negative errno.
 */
int repair_dump(struct jitdump_reader *reader, int fd, repair_say say, void *context,
                struct repair_result *result);

#endif
