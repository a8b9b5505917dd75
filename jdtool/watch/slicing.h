/*
 * A slicer (slicer.h) as its watch has it: started, fed, asked for slices, and found out about when
 * it has died.
 */
#ifndef JD_TOOL_WATCH_SLICING_H
#define JD_TOOL_WATCH_SLICING_H

#include "jdtool/live/child.h"
#include "jdtool/sampler/perf_pipe.h"
#include "jdtool/watch/slice_pipe.h"
#include "jdtool/watch/watch.h"

struct confined;
struct rights;

struct slicing {
    struct child child; /* none: it does not run */
    int recording;      /* where the recording goes; -1: it has all */
    int from;           /* slices; -1: none will come */
    int says;           /* its words, a file in memory */
    struct perf_pipe orders;
    struct slice_reader reader;
    struct confined *confined;
    struct rights *rights;
    const struct slicer_at_work *at_work; /* NULL: not known */
    int64_t began;                        /* ms */
};

#define NO_SLICING                                                                                 \
    ((struct slicing){                                                                             \
        .child = NO_CHILD, .recording = -1, .from = -1, .says = -1, .orders = {.fd = -1}})

/* 0 or a negative errno without a message; then there is none. */
int slicing_start(struct slicing *slicing, const struct watch_jvm_options *options);

/* Kills it if it runs. */
void slicing_close(struct slicing *slicing);

/* Nothing more will be recorded: it gives what it has, and ends. */
void slicing_end_recording(struct slicing *slicing);

/* Labels: those of a JVM that begins; NULL otherwise. Without effect where none runs. */
void slicing_order(struct slicing *slicing, enum slice_order_kind kind, pid_t jvm, uint32_t one_in,
                   const struct labels *labels);

/* Fills in what is to be polled, at most SLICING_POLLED; answers what it asks for, and sends orders
 * that have waited. */
#define SLICING_POLLED 4
size_t slicing_descriptors(const struct slicing *slicing, struct pollfd *list);
void slicing_turn(struct slicing *slicing);

/* Whose data it was reading when it died, 0: nobody's. */
pid_t slicing_worked_on(const struct slicing *slicing);

/* Whose data has made it grow by at least so many bytes, of the `rss` that it takes now; 0:
 * nobody's. */
pid_t slicing_grower(const struct slicing *slicing, uint64_t rss, uint64_t least);

#endif
