/*
 * What the files behind dumps.h share: jvm_dump.c is one dump, dumps.c knows where they lie,
 * says whose each is and finds code in them.
 */
#ifndef JD_TOOL_DUMPS_PRIVATE_H
#define JD_TOOL_DUMPS_PRIVATE_H

#include "jdtool/resolve/dumps.h"

#include <limits.h>
#include <string.h>

/* A dump's first records and its mapping lie that close together, in ns. */
#define MAPS_WITHIN (UINT64_C(10) * 1000 * 1000 * 1000)

/* What is wrong with a dump that could not be opened. */
#define DUMP_UNREADABLE "its dump cannot be read"

/* A mapping of a dump that was read of, in its time or not. */
struct marker {
    uint32_t pid;
    uint32_t process; /* the number of the one that has mapped it; 0: its time has not come */
    char *path;
    uint64_t inode;
    int fd; /* opened at once, with what is at `opened`; -1: not */
    char *opened;
};

/* A dump that options name. */
struct named_dump {
    const char *path;
    struct jitdump_header header;
    uint64_t inode;
    bool readable;
    bool used;
};

struct dumps {
    struct perf_data *data;
    struct methods *methods;
    struct dumps_options options;
    struct time_conversion conversion;
    struct named_dump *named;
    uint32_t unused; /* of these */
    struct marker *markers;
    uint32_t marker_count;
    uint32_t marker_room;
    struct jvm_dump **all;
    struct recorded_jvm **list; /* their `about` */
    uint32_t count;
    uint32_t room;
    uint32_t list_room;
    struct process_codes codes;
    uint32_t dead; /* of these, nobody holds */
};

/* Tells that there is no memory: -ENOMEM. */
int dumps_no_memory(void);

/* ---- jvm_dump.c ---- */

/*
 * Opens the dump at a path; fd: it is open already and is the dump's from now on, -1: not. One
 * that is of no use is told of, and the dump says why. 0 or a negative errno after a message.
 */
int jvm_dump_open(struct dumps *dumps, struct jvm_dump *dump, const char *path, int fd,
                  const struct process *process);

/* Whether a path is that of a segment beside the other one. */
bool jvm_dump_is_segment_of(const char *path, const char *other);

/* The number of the segment that a path leads to, 0: none. */
uint64_t jvm_dump_segment(const char *path);

/* A further segment was mapped. 0 or a negative errno after a message. */
int jvm_dump_map_segment(struct jvm_dump *dump, const char *path);

/* Reads what was appended since; is_all: nothing more will come. 0 or a negative errno after a
 * message. */
int jvm_dump_update(struct jvm_dump *dump, bool is_all);

/* What dumps_let_go does. */
void jvm_dump_let_go(struct jvm_dump *dump, uint64_t time, bool keep);

/* Most of what it has is of segments that were let go. The latter forgets that; nobody may have
 * anything of its code any more. 0 or -ENOMEM after a message. */
bool jvm_dump_outgrown(const struct jvm_dump *dump);
int jvm_dump_forget(struct jvm_dump *dump);

/* The module of its code, which has none yet. 0 or -ENOMEM after a message. */
int jvm_dump_add_module(struct dumps *dumps, struct jvm_dump *dump);

void jvm_dump_free(struct jvm_dump *dump);

#endif
