/*
 * How HotSpot's code cache is laid out in a process that runs, by the tables that it exports for
 * the serviceability agent (gHotSpotVMStructs and its like), read out of the process' memory. What
 * these say is the process' own to choose: numbers are bounded, and whoever reads by them does it
 * in that process alone.
 */
#ifndef JD_TOOL_WALK_LAYOUT_H
#define JD_TOOL_WALK_LAYOUT_H

#include "hotspot/layout.h"
#include "jdtool/walk/shared.h"

#include <stdint.h>

/*
 * Reads the tables. directory: /proc/PID, open; libjvm: its path as the process sees it; bias:
 * where its address 0 is mapped. 0 or a negative errno, as the following: -ENOTSUP: it is not
 * described. No message.
 */
int layout_read(int directory, const char *libjvm, uint64_t bias, struct hotspot_layout *layout);

/* The code cache by these tables. *version: of the JDK, 0: it is older than 11. -EAGAIN: the JVM
 * has no code cache yet. */
int layout_code_cache(int directory, const struct hotspot_layout *layout, struct walk_layout *walk,
                      uint32_t *version);

/* The heap, which must have been made (-EAGAIN): all of *frozen that its dump does not tell (told:
 * JITDUMP_CODE_FROZEN_FIRST and those behind it), and that as well. entry_pc is 0 in JDKs that do
 * not tell (21). */
int layout_frozen(int directory, const struct hotspot_layout *layout, const int64_t *told,
                  struct walk_frozen *frozen);

#endif
