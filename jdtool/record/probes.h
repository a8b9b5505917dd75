/*
 * The kernel's probes that a recording of JVM events needs: uprobes on functions of the agent and
 * of libjvm.so (format/event_probe.h), and whether the scheduler's tracepoints may be had.
 *
 * A uprobe belongs to the whole machine and outlives who defined it, so each recording has a group
 * of its own, "jdagent_PID_RANDOM", which it removes, or its guardian, or jdperf clean. It belongs
 * to a file, not to a path: it may be defined before a JVM maps the file, and costs nothing in
 * processes that are not recorded.
 */
#ifndef JD_TOOL_LIVE_PROBES_H
#define JD_TOOL_LIVE_PROBES_H

#include "format/event_probe.h"

#include <stdbool.h>
#include <stdint.h>

#define PROBES_GROUP_MAX 48

/* 0, or a negative errno after a message that begins with `what` and has the remedy: this user may
 * define no uprobes here. */
int probes_check(const char *what);

/* The same for the scheduler's tracepoints; else an event on one of them that tells nothing, to be
 * closed when others are open, for closing the last one waits for all processors. */
int probes_hold_scheduler(const char *what);

/* Chooses a group's name; nothing is made. */
void probes_name_group(char group[PROBES_GROUP_MAX]);

/*
 * Defines GROUP:event on the function that the file at `path`, below the directory `root` (-1: as
 * we see it), offers under that name. 0 or a negative errno after a message.
 */
int probes_define(const char *group, const char *event, int root, const char *path,
                  const char *function, enum probe_arguments arguments);

/*
 * Defines GROUP:event at a place of the open file, by its offset, with the arguments that the
 * kernel is given as text (" name=%ax:u32 ..."). An event that is there already gets one more
 * place, if its arguments have the same names and types (Linux 5.4). 0 or a negative errno, without
 * a message.
 */
int probes_define_at(const char *group, const char *event, int file, uint64_t offset,
                     const char *arguments);

/* The place in the file of what is at that address. False: nothing of the file is. */
struct elf_file;
bool probes_offset(const struct elf_file *file, uint64_t address, uint64_t *offset);

/*
 * An event of ours on GROUP:event, which is there and tells nothing; to be closed before
 * probes_remove. Negative: not to be had. The kernel puts probes in for the first event that wants
 * them, and takes them out behind the last, for which it waits for all processors: 14 and 64 ms. So
 * perf, which has some for each processor, waits for neither, and its reader not for perf.
 */
int probes_hold(const char *group, const char *event);

/* Removes a group's probes, once perf has let go of them: waits some seconds at most. */
void probes_remove(const char *group);

/* Calls `take` with each group that is there and whose recorder has gone. */
void probes_find_left(void (*take)(void *context, const char *group), void *context);

#endif
