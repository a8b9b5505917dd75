/*
 * The door of a sink: one thread at a time, nobody after a failure, nobody in a fork of the process
 * (process.h), where neither the file behind it nor the lock, perhaps locked for ever, is ours.
 */
#ifndef JD_WRITER_GATE_H
#define JD_WRITER_GATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct gate {
    pthread_mutex_t lock; /* of all that is behind the gate, and of the following */
    unsigned generation;
    bool failed;      /* closed for good; set by whoever is inside */
    uint64_t dropped; /* calls that were turned away or failed inside */
};

/* 0 or a negative errno. */
int gate_init(struct gate *gate);

/* Whether this is the process that gate_init was called in. If not, keep out. */
bool gate_is_ours(const struct gate *gate);

/* 0: the caller is inside, and calls gate_leave when done; -EPIPE: it has to stay out. */
int gate_enter(struct gate *gate);

/* Hands on the error, for `return gate_leave(gate, error)`. */
int gate_leave(struct gate *gate, int error);

void gate_destroy(struct gate *gate);

#endif
