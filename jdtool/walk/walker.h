/*
 * Has the stacks of JVMs walked in the kernel (walk.bpf.c): looks after the program's tables, in a
 * process that has no rights but to look into those that are sampled (walker.c). Which process is a
 * JVM with a dump shows by what it maps; code comes from its dump as it grows, rows of files when a
 * walk came there first.
 *
 * Of a JVM the tables know nothing at first, or of what has just been compiled or mapped: then the
 * program has the stack copied, so nothing here has to be in time.
 */
#ifndef JD_TOOL_WALK_WALKER_H
#define JD_TOOL_WALK_WALKER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define WALK_DEPTH_DEFAULT 1000
#define WALK_DEPTH_MAX     10000

struct walker_options {
    unsigned depth; /* frames; what is further out is left out, and that is told */
    bool compares;  /* each stack that was walked is copied as well, and both are compared */
};

struct walker;

/* Loads the program. NULL: *lacks says why it cannot be had. */
struct walker *walker_new(const struct walker_options *options, const char **lacks);

/* Whoever else has it (after a fork) keeps it. NULL is fine. */
void walker_free(struct walker *walker);

/* Begins to look after the tables. 0 or a negative errno. */
int walker_start(struct walker *walker);

/* The program, which drops samples like a filter, and its map of processes: one that is added with
 * WALK_COPY is sampled, its stacks copied until its tables are there. Descriptors of the walker's.
 */
int walker_program(const struct walker *walker);
int walker_processes(const struct walker *walker);

/* Where what was walked on that processor is written: a PERF_COUNT_SW_BPF_OUTPUT of it. 0 or a
 * negative errno. */
int walker_output(const struct walker *walker, uint32_t processor, int event);

bool walker_compares(const struct walker *walker);

/* A process is sampled from now on, or has mapped code, or runs another program. */
void walker_notice(struct walker *walker, pid_t process);

/* Says what had no room and, where walks are compared, how they ended. */
void walker_tell(const struct walker *walker);

#endif
