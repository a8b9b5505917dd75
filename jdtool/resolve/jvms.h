/*
 * The JVMs of a recording: processes that mapped a dump, as perf finds them (a file named
 * jit-<digits>.dump, mapped executable), and the code in it. A process may have several dumps, one
 * after the other (an agent stopped and started again): each is a struct jvm of its own.
 */
#ifndef JD_TOOL_JVMS_H
#define JD_TOOL_JVMS_H

#include "jdtool/jitdump/code_index.h"
#include "jdtool/perf/processes.h"
#include "jdtool/sinks/frame_table.h"

struct jvm {
    struct process *process;
    struct jvm *earlier;      /* the same process' dump before this one */
    const char *recorded;     /* the dump's path as the JVM sees it; NULL: only --dump told of it */
    char *dump;               /* the path it was opened under; NULL: it was not found */
    struct code_index *index; /* NULL: not found, or useless for this recording; `why` tells */
    const char *why;
    uint64_t from;       /* when the dump was mapped */
    uint64_t code_start; /* what all code of the dump lies in */
    uint64_t code_end;

    /* Stays that no other one overlaps, a bit set, and answers that jvms_code_at gave of those. */
    uint64_t *lone_stays;
    struct code_answer *answers;

    /* Of a dump with the processor's time stamps; otherwise not known. */
    struct time_conversion conversion;

    /* Which stays and which blobs of the index samples or call chains touch: bit sets. */
    uint64_t *touched_stays;
    uint64_t *touched_blobs;
    /* Inlined and interpreted frames of this code; NULL without an index. */
    struct frame_table *frames;

    uint32_t number; /* among the process' dumps, from 0 */
};

struct jvms {
    struct jvm **list;
    uint32_t count;
};

struct jvms_options {
    char *const *dumps; /* files to be used in place of those of that name, or of that JVM */
    uint32_t dump_count;
    const char *suffixes[FRAME_KINDS]; /* for frame_table_new */
};

/*
 * Finds and opens the dumps. One that cannot be used is told of and stays in the list without an
 * index. 0 or a negative errno after a message.
 */
int jvms_find(struct perf_data *data, struct processes *processes,
              const struct jvms_options *options, struct jvms *jvms);
void jvms_free(struct jvms *jvms);

/* A piece of code that was found: whose, and which stay. */
struct code_place {
    struct jvm *jvm;
    uint32_t stay;
    const struct code_stay *of;
};

/* The code at an address of a process at a time. False: none that a dump tells of. */
bool jvms_code_at(const struct process *process, uint64_t address, uint64_t time,
                  struct code_place *place);

/* Marks it as touched, so that it gets into the image. */
void jvms_touch(const struct code_place *place);

/* The dump whose frame table an address is of (is_frame), or NULL. */
struct jvm *jvms_of_frame(const struct process *process, uint64_t frame);

/* The latest dump of a process, or of the one it was forked from, or NULL. */
struct jvm *jvms_of(const struct process *process);

/* A stamp of the dump on the recording's clock. */
uint64_t jvm_recording_time(const struct jvm *jvm, uint64_t dump_time);

#endif
