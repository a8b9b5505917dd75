/*
 * Which processes are sampled: a BPF program on each event drops the samples of all others in the
 * interrupt, before their stacks are copied. It knows the processes by a map that we fill.
 */
#ifndef JD_TOOL_SAMPLER_FILTER_H
#define JD_TOOL_SAMPLER_FILTER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Uprobes with programs. */
#define FILTER_PROBES_MAX 16

struct filter {
    int processes; /* the map; -1: none */
    int next;      /* of FILTER_HANDS_ON: the array that leads to the other program; -1: none */
    int program;
    int probes; /* the same program, as the kernel wants it for uprobes */
    int next_probe;
    int links[FILTER_PROBES_MAX]; /* where it is put on them */
    uint32_t link_count;
    struct filter_forks {
        int program, there; /* and where it runs: the kernel's tracepoint */
        int told;           /* a ring, readable when one of the processes has forked; -1: none */
        const uint64_t *written;
        uint64_t *read; /* NULL: none */
    } forks;
};

#define FILTER_NONE                                                                                \
    ((struct filter){.processes = -1,                                                              \
                     .next = -1,                                                                   \
                     .program = -1,                                                                \
                     .probes = -1,                                                                 \
                     .next_probe = -1,                                                             \
                     .forks = {-1, -1, -1, NULL, NULL}})

/* As many processes as may be in it at a time. */
#define FILTER_PROCESSES_MAX 16384

enum filter_kind {
    FILTER_PLAIN,
    FILTER_FOR_PROBES = 1, /* for uprobes, too */
    FILTER_HANDS_ON = 2,   /* what is kept other programs may judge (filter_hand_on), which have the
                              map's values for themselves: filter_add puts 0 there, and thins
                              nothing */
};

/*
 * Loads it, empty. Numbers of processes are those of our own PID namespace. 0 or a negative errno
 * without a message: -EPERM without CAP_BPF and CAP_PERFMON, or where the kernel is locked down.
 */
int filter_load(struct filter *filter, unsigned kind); /* of enum filter_kind, together */
void filter_close(struct filter *filter);

/* The samples of this process are kept, one in so many by chance, 1: all; or no longer. 0 or a
 * negative errno (-E2BIG: too many processes). */
int filter_add(const struct filter *filter, pid_t process, uint32_t one_in);
int filter_remove(const struct filter *filter, pid_t process);

/*
 * Has forks.told tell of each fork of a process that is in the map, of threads as well, and of no
 * others (Linux 5.8). The kernel's record of it is written by then. 0 or a negative errno without a
 * message: as filter_load, and there is nothing new.
 */
int filter_tell_forks(struct filter *filter);

/* It is readable no longer, until the next one. */
void filter_forks_seen(const struct filter *filter);

/* From now on this program of the same kind says what becomes of samples that are kept, and this
 * one of those of uprobes: their descriptors may be closed, ours not. 0 or a negative errno. */
int filter_hand_on(const struct filter *filter, int program, int probes);

/* This program is put on uprobes in the place of the filter's own, and hands on by that array; both
 * may be closed. 0 or a negative errno. */
int filter_replace_probes(struct filter *filter, int program, int next);

/* Puts it on an event. 0 or a negative errno. */
int filter_apply(const struct filter *filter, int event);

/* The same of a uprobe's, which must be one of ours: others' events on the uprobe go by it, too.
 * cookie: for the program that it hands on to, which has 0 before Linux 5.15. */
int filter_apply_to_probe(struct filter *filter, int event, uint64_t cookie);

#endif
