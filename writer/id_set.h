/*
 * A set of ids, numbers from 1 up. Bounded: who asks whether it has told of something tells it
 * again, at worst, when the set had to be emptied. Not thread-safe.
 */
#ifndef JD_WRITER_ID_SET_H
#define JD_WRITER_ID_SET_H

#include <stdbool.h>
#include <stdint.h>

/* Empty when zeroed. */
struct id_set {
    uint32_t *slots; /* open addressing; 0: free */
    uint32_t size;   /* a power of two, or 0 */
    uint32_t count;
};

/* Adds an id. Whether it is new; also when memory runs out. */
bool id_set_add(struct id_set *set, uint32_t id);

/* Makes it empty. Keeps a little memory. */
void id_set_clear(struct id_set *set);

void id_set_free(struct id_set *set);

#endif
