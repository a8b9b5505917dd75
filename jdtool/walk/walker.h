/*
 * Has the stacks of JVMs walked in the kernel (walk.bpf.c): loads the program, and has its tables
 * made by a process of its own (maker.h), for which it opens what that may look into.
 *
 * Of a JVM the tables know nothing at first, or of what has just been compiled or mapped: then the
 * program has the stack copied, so nothing here has to be in time. Nor has the program itself: the
 * kernel takes tens of milliseconds to verify it, beside what is sampled already.
 */
#ifndef JD_TOOL_WALK_WALKER_H
#define JD_TOOL_WALK_WALKER_H

#include "jdtool/walk/program.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define WALK_DEPTH_DEFAULT 1000
#define WALK_DEPTH_MAX     10000

/* What a recording has to have before walking is worth its start, in stacks. */
#define WALK_AFTER 300

struct walker_options {
    unsigned depth;  /* frames; what is further out is left out, and that is told */
    unsigned copied; /* deeper stacks of the clock are copied where such a copy, in bytes, has as
                        many frames at least; 0: they are not */
    unsigned after;  /* so many stacks are copied before it begins: of fewer it is not worth it */
    bool compares;   /* each stack that was walked is copied as well, and both are compared */
    bool is_default; /* nobody asked for it: JVMs older than those that tests hold against copies
                        are left alone, and it is not told where it cannot be had */
};

struct walker;

/* Nothing is loaded yet. NULL: there is no memory. */
struct walker *walker_new(const struct walker_options *options);

/* Whoever else has it (after a fork) keeps it. NULL is fine. */
void walker_free(struct walker *walker);

/* What it has of the sampler's: the map of the filter (FILTER_HANDS_ON) in which the processes are
 * that are sampled, and others. The walker's until the process ends. */
void walker_shares(struct walker *walker, const struct walk_maps *maps);

/* Tells that stacks are copied, for want of something. */
void tell_not_walked(const char *lacks);

/* The same, unless nobody asked for walks. */
void walker_lacks(const struct walker *walker, const char *what);

/* So many stacks were copied. True, once: it begins, and is to be told of all processes that are
 * sampled already (walker_notice). */
bool walker_begins(struct walker *walker, uint64_t copied);

/* The program, for filter_hand_on and switches_hand_on, as soon as it is loaded; negative: it is
 * not, or cannot be. */
int walker_program(const struct walker *walker, enum walk_of what);

/* Where what was walked on that processor is written: a PERF_COUNT_SW_BPF_OUTPUT of it. The program
 * must be there. 0 or a negative errno. */
int walker_output(const struct walker *walker, uint32_t processor, int event);

bool walker_compares(const struct walker *walker);

/* A process is sampled from now on, or has mapped code, or runs another program. Nothing to do
 * before it begins. */
void walker_notice(struct walker *walker, pid_t process);

/* Stacks had to be copied: what the tables lack may be known by now. */
void walker_copied(const struct walker *walker);

/* Says what had no room and, where walks are compared, how they ended. */
void walker_tell(const struct walker *walker);

#endif
