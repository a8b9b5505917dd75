/*
 * What the kernel has written into the rings since the last turn, given on: of the processes that
 * are sampled, with the copies of stacks cut where stacks end.
 *
 * Processors write side by side: what a process maps may stand in one's ring before another's tells
 * that it was forked, and is only given on once that is known. So a turn
 *
 *   1. notes where each ring ends;
 *   2. takes up the forks of all side-bands, in the order of time, of which there may be more by
 *      now: whatever happened before something that stands before the ends of (1) is among them;
 *   3. gives on what stands before those ends, first of the side-bands, then the samples.
 */
#ifndef JD_TOOL_SAMPLER_TURN_H
#define JD_TOOL_SAMPLER_TURN_H

#include "jdtool/perf/walked.h"
#include "jdtool/sampler/filter.h"
#include "jdtool/sampler/perf_pipe.h"
#include "jdtool/sampler/ring.h"
#include "jdtool/sampler/sampler.h"
#include "jdtool/sampler/stack_ends.h"

#include <stdbool.h>

/* The trailer behind records that are no samples; samples have the same values among others. */
#define TURN_SAMPLE_TYPE                                                                           \
    (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | (uint64_t)PERF_SAMPLE_CPU)

/* How samples of an event look beside what all have; the first one is the clock. */
struct turn_event {
    uint64_t id;        /* that its samples are given on with */
    bool has_stack;     /* a chain, */
    bool has_copies;    /* and registers and a copy of the stack */
    bool has_raw;       /* what a tracepoint tells */
    bool is_of_another; /* than who runs; and so is sampled */
    bool is_limited;    /* before a copy its weight may be told (limit.bpf.h) */
    bool has_backs;     /* some tell that a thread has a processor again (switches_shared.h) */
};

#define TURN_EVENTS_MAX (SAMPLER_EVENTS_MAX + 1)

/* What one processor writes; a ring that is not open has nothing. */
struct turn_rings {
    struct ring side_band, samples;
    uint64_t side_band_end, samples_end; /* of this turn */
    uint64_t forks_end;                  /* forks before it have been taken up */
    int events[TURN_EVENTS_MAX];         /* that write into the samples' ring, too; 0: none */
    uint64_t ids[TURN_EVENTS_MAX];       /* the kernel's, of the processor's events */
    bool is_refused;                     /* they could not be opened, which was told */
    int walked_event;                    /* what walks write into the samples' ring; 0: nothing */
    uint64_t walked_id;                  /* of its records */
    uint32_t weighed;                    /* a thread, whose next sample of such an event */
    uint64_t weight;                     /* stands for so many; 0: none is known */
};

struct turn {
    struct turn_event events[TURN_EVENTS_MAX];
    uint32_t event_count;
    uint64_t begun;        /* samples before that time are not wanted */
    uint64_t forked;       /* when a process was last taken up */
    bool is_for_all;       /* whoever it is, is sampled */
    bool is_for_each;      /* not what those fork that are sampled */
    bool reads_no_files;   /* files are not told by build-id */
    uint32_t one_in;       /* samples is given on at first, see turn_thin_process; 0: all are */
    struct filter filter;  /* is told who is sampled; FILTER_NONE: samples come of all, and those of
                              others are dropped here */
    struct numbered known; /* of struct turn_process */
    uint32_t taken_up;     /* since those that have ended were looked for */
    uint32_t left_out;     /* children that could not be sampled: there are too many */
    struct stack_ends ends;
    uint64_t chance;      /* of the last draw, where no filter draws */
    uint64_t lost;        /* samples, of which it was told; */
    uint32_t lost_before; /* and of those some, too few to be one that would be given on */
    struct perf_pipe pipe;
    uint64_t given;        /* samples of the clock */
    uint64_t copied;       /* stacks */
    bool carries;          /* virtual threads: some thread of who is sampled may */
    struct walker *walker; /* is told of processes that are sampled; NULL: stacks are copied */
    bool compares;         /* what was walked goes along with the copy that follows it */
    struct {               /* such a one, as the user's part of a call chain */
        const struct ring *ring;
        uint32_t tid;
        uint32_t count;
        uint64_t chain[WALKED_WORDS_MAX];
    } compared;
    _Alignas(8) uint8_t record[65536];
    _Alignas(8) uint8_t walked[65536];
};

void turn_new(struct turn *turn, int out); /* of a clock without stacks */
void turn_free(struct turn *turn);         /* and its filter */

/* It is sampled, and what it forks from now on; or no longer. 0 or a negative errno. */
int turn_sample_process(struct turn *turn, uint32_t pid, bool is);

/* One in so many samples of a process that is sampled is given on from now on, chosen by chance,
 * and weighs as much as all of these; 1: all. 0 or a negative errno. */
int turn_thin_process(struct turn *turn, uint32_t pid, uint32_t one_in);

/* The same of all that are sampled, and will be. */
void turn_thin(struct turn *turn, uint32_t one_in);

/* Calls `take` with each process that is sampled. */
void turn_each_process(const struct turn *turn, void (*take)(void *context, uint32_t pid),
                       void *context);

/* Between turns: what was forked is sampled from now on. Nothing is given on. */
void turn_take_forks(struct turn *turn, struct turn_rings *rings, uint32_t count);

/* Whether a side-band has filled by a quarter, so that a turn is due. */
bool turn_side_band_fills(const struct turn_rings *rings, uint32_t count);

/* 0 or the negative errno of who reads. While he is slow, samples stay in their rings. */
int turn_take(struct turn *turn, struct turn_rings *rings, uint32_t count);

/* After the last turn: so many samples were lost, of which the kernel has told in the rings those
 * that lie before another record. */
void turn_tell_lost(struct turn *turn, uint64_t all);

#endif
