/*
 * A recording as perf writes it into a pipe (perf record -o -): a head, the event with its id, what
 * is told of the machine, then records. Into a regular file, as perf writes that: what is told of
 * the machine comes last, and until then the head says how much is there. Little records are
 * gathered and leave together. Where the descriptor is one that does not wait (O_NONBLOCK), what
 * the reader has no room for is kept.
 */
#ifndef JD_TOOL_SAMPLER_PERF_PIPE_H
#define JD_TOOL_SAMPLER_PERF_PIPE_H

#include "jdtool/base/bytes.h"
#include "jdtool/perf/perf_data.h"

#include <linux/perf_event.h>
#include <stddef.h>
#include <stdint.h>

struct perf_pipe {
    int fd;
    int err;               /* a negative errno: nothing is written any more */
    struct bytes gathered; /* of which `gone` bytes have been written */
    size_t gone;
    uint64_t written;             /* bytes that have left */
    bool is_file;                 /* until its end is there */
    struct perf_file_header head; /* of a file */
    struct bytes *features;       /* of a file, until its end: each by its number */
};

void perf_pipe_free(struct perf_pipe *pipe);

/* Bytes, of records that are whole in the end. */
void perf_pipe_put(struct perf_pipe *pipe, const void *bytes, size_t size);

/* What was gathered leaves, as far as the reader has room. 0 or the negative errno that was first.
 */
int perf_pipe_flush(struct perf_pipe *pipe);

/* Bytes that have not left. */
static inline size_t perf_pipe_waiting(const struct perf_pipe *pipe)
{
    return pipe->gathered.size - pipe->gone;
}

struct perf_pipe_event {
    struct perf_event_attr attr;
    const char *name;
    uint64_t id; /* that its records bear */
};

/*
 * The head, and all that describes the recording: its events, the machine, the command line
 * (NULL-terminated), and a moment on both clocks.
 */
void perf_pipe_describe(struct perf_pipe *pipe, const struct perf_pipe_event *events,
                        uint32_t count, char *const *command);

/* One thing more that is told of the recording, behind perf_pipe_describe. Frees the body. */
void perf_pipe_feature(struct perf_pipe *pipe, enum perf_feature number, struct bytes *body);

/* There is nothing more to come: a file gets its end. As perf_pipe_flush. */
int perf_pipe_finish(struct perf_pipe *pipe);

/* All rings have been read: what is older than the round before can be told. */
void perf_pipe_round(struct perf_pipe *pipe);

#endif
