/*
 * What goes between a watch and its slicer (slicer.h): orders to it, slices and what they cost from
 * it, through a pipe each. Both are the same program, so a message is a struct as it lies in
 * memory, and what stands behind it; but the slicer reads others' data, and what comes from it is
 * doubted.
 */
#ifndef JD_TOOL_WATCH_SLICE_PIPE_H
#define JD_TOOL_WATCH_SLICE_PIPE_H

#include "jdtool/base/bytes.h"
#include "jdtool/watch/labels.h"
#include "jdtool/watch/slices.h"

#define SLICE_MAGIC    UINT32_C(0x6a647732)
#define SLICE_BODY_MAX ((size_t)64 << 20)

enum slice_message_kind {
    SLICE_PROFILE, /* a slice of the JVM, whose bodies follow */
    SLICE_COST,    /* what the JVM has cost; its slice means nothing */
    SLICE_ENDED,   /* no more slices of the JVM will come */
    SLICE_KINDS,
};

struct slice_message {
    uint32_t magic, kind;
    uint32_t pid;       /* of the JVM */
    struct slice slice; /* its pointers mean nothing */
    /* Since the slicer began: processor time for the JVM alone, its samples, and samples of all
     * JVMs that the kernel had no room for. */
    uint64_t cpu_ns, samples, lost;
};

/* In memory of both: what the slicer does, for when it has died or takes too much. */
struct slicer_at_work {
    _Atomic uint32_t pid;    /* the JVM whose data it reads; 0: nobody's */
    _Atomic uint64_t peak;   /* bytes it had taken at most when it began with these */
    _Atomic uint32_t grower; /* the JVM whose data has made that grow most, */
    _Atomic uint64_t grown;  /* and by how many */
};

struct slice_reader {
    struct slice_message message;
    size_t got; /* of the message and what stands behind it */
    uint8_t *bodies[SLICE_FORMATS_MAX];
};

/* Sends it, a slice with its bodies; blocks. 0 or a negative errno without a message. */
int slice_send(int to, const struct slice_message *message);

/*
 * Reads what is there without blocking. 1: a message is complete, and whoever takes its bodies sets
 * them to NULL; 0: not yet; -EPIPE: the end; -EBADMSG; or another negative errno. No message.
 */
int slice_read(struct slice_reader *reader, int from);

void slice_reader_free(struct slice_reader *reader);

/* ---- Orders ---- */

enum slice_order_kind {
    ORDER_BEGIN, /* a JVM is watched from now on; its labels follow */
    ORDER_END,   /* it is not any more: the last slice is given when its samples have come */
    ORDER_THIN,  /* one in so many of its samples comes from now on */
    ORDER_KINDS,
};

struct slice_order {
    uint32_t magic, kind;
    uint32_t pid, one_in;
    uint32_t label_bytes; /* that follow: "name=value\n" each */
};

/* Puts it behind the bytes, with the labels where it has them (NULL: none). */
void slice_order_put(struct bytes *bytes, const struct slice_order *order,
                     const struct labels *labels);

/*
 * Takes the first one from bytes that have come. Returns how many bytes it had; 0: it is not all
 * there. Labels are emptied first.
 */
size_t slice_order_take(const uint8_t *bytes, size_t size, struct slice_order *order,
                        struct labels *labels);

#endif
