/*
 * Finds the DEBUG_INFO and the like that belong to a LOAD. They stand right before it,
 * but in dumps of writers that take a lock for each record (perf's own agent, LLVM) those of
 * several methods get mixed; a DEBUG_INFO tells its address, so it can be bound to the right LOAD
 * all the same. Remembers a bounded number of records; zero one to start.
 */
#ifndef JD_TOOL_JITDUMP_GROUP_H
#define JD_TOOL_JITDUMP_GROUP_H

#include "jdtool/jitdump/jitdump_reader.h"

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
