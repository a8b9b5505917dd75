/*
 * The program that walks stacks in the kernel, and its tables, which can be mapped. They are gone
 * when the last process that has them open is, however it ends.
 */
#ifndef JD_TOOL_WALK_PROGRAM_H
#define JD_TOOL_WALK_PROGRAM_H

#include "jdtool/perf/walked.h"
#include "jdtool/walk/shared.h"

#include <stdbool.h>
#include <stdint.h>

struct bpf_object;

/* How much its tables hold, at most what shared.h says. All of it is in memory from the start. */
struct walk_room {
    uint32_t jvms, pages, blobs, rows;
};

/* What is sampled, and so walked: each has a program of its own kind. */
enum walk_of { WALK_OF_CLOCK, WALK_OF_PROBES, WALK_OF_SWITCHES, WALK_PROGRAMS };

/* The sampler's maps, which its programs have, too. */
struct walk_maps {
    int processes;                    /* the filter's: pid -> enum walk_process; 0: nobody's */
    bool has_probes;                  /* uprobes are recorded */
    int output, limits, limit_states; /* of who limits events (sampler/limit.bpf.h); 0: nobody */
    int told, blocked, waking; /* of who follows the scheduler (sampler/switches.bpf.c); 0: nobody
                                  does */
};

struct walk_program {
    struct bpf_object *object;
    struct walk_room room;
    int programs[WALK_PROGRAMS]; /* negative: there is none */
    int processes;
    int output;
    int ends;
    struct walk_config *config;
    struct walk_page *pages; /* this and the others by walk_program_map */
    struct walk_blob *blobs;
    struct walk_row *rows;
    struct walk_full_row *full_rows;
    struct walk_mapping *mappings;
    struct walk_jvm *jvms;
    struct walk_wanted *wanted;
};

/* Loads it, with all tables empty, for the processes in that map of the filter's. NULL, or why it
 * cannot be had, in words. */
const char *walk_program_load(struct walk_program *program, const struct walk_room *room,
                              const struct walk_maps *maps);
void walk_program_close(struct walk_program *program); /* one that is not loaded is fine */

/* Maps its tables, in the process that fills them: they are large, and whoever has them mapped pays
 * for it when he forks and when he ends. False: there is no memory. */
bool walk_program_map(struct walk_program *program);

/* Tries it, with nothing in its tables: NULL, or why it cannot be had. Takes tens of milliseconds.
 */
const char *walk_program_lacks(void);

/* A process that is sampled (it is in the map already) is walked by the tables of that JVM from now
 * on; or its stacks are copied. 0 or a negative errno: -ENOENT: it is no longer sampled. */
int walk_program_walk(const struct walk_program *program, uint32_t process, uint32_t value);

/* How many walks have ended so, on all processors; the last one: bytes that they wrote. */
void walk_program_ends(const struct walk_program *program, uint64_t ends[WALKED_ENDS + 1]);

#endif
