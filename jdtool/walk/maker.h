/*
 * The process that makes the tables of the program that walks: from the dumps of JVMs, from what
 * HotSpot tells of itself, and from files. All that is others' to choose, so it has no rights but
 * to look into the processes that are sampled, and asks its parent (walker.c) for the rest.
 *
 * Which process is a JVM with a dump shows by what it maps; code comes from its dump as it grows,
 * rows of files when a walk came there first.
 */
#ifndef JD_TOOL_WALK_MAKER_H
#define JD_TOOL_WALK_MAKER_H

#include "jdtool/walk/program.h"

/* What it asks its parent for: a value for the program's map of processes. Answered by an int, 0 or
 * a negative errno. */
struct walk_wish {
    uint32_t process, value;
};

/* What it tells, in memory of both; to be doubted. */
struct walk_told {
    bool is_full, is_out_of_jvms;
    uint32_t unread; /* JVMs whose dump or libjvm.so could not be read */
};

/* A number that is no process': stacks were copied, it is time to look. */
#define MAKER_NOBODY 0

/*
 * What it does until its parent has ended: for a child that was forked to be it. notices: a pipe,
 * from which it reads the numbers of processes that are sampled, a pid_t each, once they may be
 * looked into; wishes: a socket. is_default: as in struct walker_options.
 */
_Noreturn void maker_run(struct walk_program *program, struct walk_told *told, bool is_default,
                         int notices, int wishes);

#endif
