/*
 * A door for one thread at a time, and for nobody in a fork of the process (process.h), where
 * neither the files behind it nor the lock, perhaps locked for ever, are ours.
 */
#ifndef JD_WRITER_GATE_H
#define JD_WRITER_GATE_H

#include <pthread.h>
#include <stdbool.h>

struct gate {
    pthread_mutex_t lock; /* of all that is behind the gate */
    unsigned generation;
};

/* 0 or a negative errno. */
int gate_init(struct gate *gate);

/* Whether this is the process that gate_init was called in. If not, keep out. */
bool gate_is_ours(const struct gate *gate);

/* 0: the caller is inside, and calls gate_leave when done; -EPIPE: it has to stay out. */
int gate_enter(struct gate *gate);
void gate_leave(struct gate *gate);

void gate_destroy(struct gate *gate);

#endif
