/* What the program that follows the scheduler (switches.bpf.c) and jdtool agree upon. */
#ifndef JD_TOOL_SWITCHES_SHARED_H
#define JD_TOOL_SWITCHES_SHARED_H

#include "jdtool/sampler/pid_namespace.h"

#include <linux/types.h>

struct switches_config {
    struct pid_namespace ours;
    __u32 is_for_all;                  /* all processes, whatever `processes` has */
    __u16 switched, waking, woken;     /* the numbers of the tracepoints */
    __u16 blocked_event, waking_event; /* of the sampler's that tell these */
};

#define SWITCHES_ENTRY_WORDS 8

/* So many threads that have no processor are followed at a time. */
#define SWITCHES_THREADS_MAX 65536

/* What is told next on a processor, whose stack may be walked before (walk/walk.bpf.c). */
struct switches_told {
    __u32 event; /* of the sampler's */
    __u32 is_waking;
    __u64 entry[SWITCHES_ENTRY_WORDS]; /* that of a wake-up is shorter */
};

#ifdef __bpf__

/* A map that both programs have: what is told next on a processor. */
#define TOLD                                                                                       \
    struct {                                                                                       \
        __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);                                                   \
        __uint(max_entries, 1);                                                                    \
        __type(key, __u32);                                                                        \
        __type(value, struct switches_told);                                                       \
    } told SEC(".maps")

#endif

/* Written like an entry of a tracepoint of the number 0, which none has: a thread that was switched
 * away from runs again. Its number and its process' are those of our PID namespace. */
struct switches_back {
    __u16 type;
    __u16 unused[3];
    __u32 tid, pid;
};

#endif
