/*
 * An array that grows and whose elements never move: pointers to them stay good as long as it
 * lives. Memory comes in chunks of CHUNK_ELEMENTS; nothing is copied when it grows.
 */
#ifndef JD_TOOL_CHUNKS_H
#define JD_TOOL_CHUNKS_H

#include "jdtool/base/array.h"

#include <stdbool.h>

#define CHUNK_ELEMENTS 256

/* Fewer that are gone are not worth making the array anew: some 150 to 400 bytes of memory each. */
#define CHUNKS_GONE_LEAST (UINT32_C(1) << 10)

/* Start with {.element = bytes of an element}. */
struct chunks {
    size_t element;
    void **list;
    uint32_t list_count;
    uint32_t list_room;
    uint32_t count; /* of elements */
};

/* index is below count. */
static inline void *chunks_at(const struct chunks *chunks, uint32_t index)
{
    return (char *)chunks->list[index / CHUNK_ELEMENTS] + index % CHUNK_ELEMENTS * chunks->element;
}

/* A new last element, zeroed. NULL: no memory; the array is then as it was. */
static inline void *chunks_add(struct chunks *chunks)
{
    if (chunks->count == UINT32_MAX - 1) {
        return NULL;
    }
    if (chunks->count == chunks->list_count * (uint64_t)CHUNK_ELEMENTS) {
        if (ARRAY_RESERVE(chunks->list, chunks->list_count, chunks->list_room)) {
            return NULL;
        }
        void *chunk = calloc(CHUNK_ELEMENTS, chunks->element);
        if (!chunk) {
            return NULL;
        }
        chunks->list[chunks->list_count++] = chunk;
    }
    return chunks_at(chunks, chunks->count++);
}

/* Of an array that things are only put into: whether so much was added since it was made anew, with
 * `living` elements, that making it once more is worth it. */
static inline bool chunks_outgrown(const struct chunks *chunks, uint32_t living)
{
    return chunks->count > living + living / 2 + CHUNKS_GONE_LEAST;
}

/* Frees what it holds; it is then an empty one. */
static inline void chunks_free(struct chunks *chunks)
{
    for (uint32_t i = 0; i < chunks->list_count; i++) {
        free(chunks->list[i]);
    }
    free(chunks->list);
    *chunks = (struct chunks){.element = chunks->element};
}

#endif
