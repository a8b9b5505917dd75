/*
 * How HotSpot's code cache is laid out in a process that runs, by the tables that it exports for
 * the serviceability agent (gHotSpotVMStructs and its like), read out of the process' memory. What
 * these say is the process' own to choose: numbers are bounded, and whoever reads by them does it
 * in that process alone.
 */
#ifndef JD_TOOL_WALK_LAYOUT_H
#define JD_TOOL_WALK_LAYOUT_H

#include "jdtool/walk/shared.h"

#include <stdint.h>

/*
 * directory: /proc/PID, open; libjvm: its path as the process sees it; bias: where its address 0 is
 * mapped; *version: of the JDK, 0: it is older than 11. 0; -EAGAIN: the JVM has no code cache yet;
 * -ENOTSUP: it is not described; or another negative errno. No message.
 */
int layout_read(int directory, const char *libjvm, uint64_t bias, struct walk_layout *layout,
                uint32_t *version);

/* The same for its heap, which must have been made: all of *frozen that its dump does not tell
 * (told: JITDUMP_CODE_FROZEN_FIRST and those behind it), and that as well. entry_pc is 0 in JDKs
 * that do not tell (21). */
int layout_read_frozen(int directory, const char *libjvm, uint64_t bias, const int64_t *told,
                       struct walk_frozen *frozen);

#endif
