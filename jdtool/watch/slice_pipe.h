/*
 * What a watched JVM's process hands to the watch that started it: its labels once, then slices,
 * through a pipe. Both are the same program, so a message is a struct as it lies in memory, and
 * what stands behind it.
 */
#ifndef JD_TOOL_WATCH_SLICE_PIPE_H
#define JD_TOOL_WATCH_SLICE_PIPE_H

#include "jdtool/exports/slices.h"
#include "jdtool/watch/labels.h"

#define SLICE_MAGIC    UINT32_C(0x6a647731)
#define SLICE_BODY_MAX ((size_t)64 << 20)

enum slice_message_kind { SLICE_LABELS, SLICE_PROFILE };

struct slice_message {
    uint32_t magic, kind;
    struct slice slice; /* its pointers mean nothing */
    /* Of the JVM's process with its perf, since it began; and what it holds now. */
    uint64_t cpu_ns, rss;
    uint64_t paused_ns; /* it has not sampled for so long, since its share of time was used up */
};

struct slice_reader {
    struct slice_message message;
    size_t got; /* of the message and what stands behind it */
    uint8_t *bodies[SLICE_FORMATS_MAX];
    struct labels labels; /* the last that came */
};

/* Sends the labels, or a slice with its bodies; blocks. 0 or a negative errno without a message. */
int slice_send(int to, const struct slice_message *message, const struct labels *labels);

/*
 * Reads what is there without blocking. 1: a message is complete, and whoever takes its bodies sets
 * them to NULL; 0: not yet; -EPIPE: the end; -EBADMSG; or another negative errno. No message.
 */
int slice_read(struct slice_reader *reader, int from);

void slice_reader_free(struct slice_reader *reader);

#endif
