/*
 * A recording as perf writes it into a pipe (perf record -o -): a head, the event with its ids,
 * what is told of the machine, then records. Little records are gathered and leave together.
 */
#ifndef JD_TOOL_SAMPLER_PERF_PIPE_H
#define JD_TOOL_SAMPLER_PERF_PIPE_H

#include <linux/perf_event.h>
#include <stddef.h>
#include <stdint.h>

struct perf_pipe {
    int fd;
    int err; /* a negative errno: nothing is written any more */
    size_t filled;
    _Alignas(8) uint8_t room[256 * 1024];
};

/* Bytes, of records that are whole in the end. Waits for the reader. */
void perf_pipe_put(struct perf_pipe *pipe, const void *bytes, size_t size);

/* What was gathered leaves. 0 or the negative errno that was first. */
int perf_pipe_flush(struct perf_pipe *pipe);

/*
 * The head, and all that describes the recording: one event with that name and those ids, the
 * machine, the command line (NULL-terminated), and a moment on both clocks.
 */
void perf_pipe_describe(struct perf_pipe *pipe, const struct perf_event_attr *attr,
                        const char *name, const uint64_t *ids, uint32_t id_count,
                        char *const *command);

/* All rings have been read: what is older than the round before can be told. */
void perf_pipe_round(struct perf_pipe *pipe);

/* As many ids as an event may have: a record's size has 16 bits. */
#define PERF_PIPE_IDS_MAX 8000

#endif
