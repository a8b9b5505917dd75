/* Arrays that grow as they are filled. */
#ifndef JD_TOOL_ARRAY_H
#define JD_TOOL_ARRAY_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/*
 * Makes room for one more element behind the first `count` of the array whose pointer array_pointer
 * points to. 0, or -ENOMEM; the array is then as it was.
 */
static inline int array_reserve(void *array_pointer, uint32_t count, uint32_t *room, size_t element)
{
    void **array = array_pointer;
    if (count < *room) {
        return 0;
    }
    uint32_t wanted = *room ? *room * 2 : 64;
    void *grown = *room < UINT32_MAX / 4 ? realloc(*array, wanted * element) : NULL;
    if (!grown) {
        return -ENOMEM;
    }
    *array = grown;
    *room = wanted;
    return 0;
}

/* The same of an array that is filled in any order: makes room for that index, and what is new is
 * zeroed. */
static inline int array_reach(void *array_pointer, uint32_t index, uint32_t *room, size_t element)
{
    void **array = array_pointer;
    uint32_t before = *room;
    while (index >= *room) {
        if (array_reserve(array_pointer, *room, room, element)) {
            return -ENOMEM;
        }
    }
    if (*room > before) {
        memset((char *)*array + before * element, 0, (*room - before) * element);
    }
    return 0;
}

/* Both of them for an array that is a pointer of its elements' type. */
#define ARRAY_RESERVE(list, count, room)                                                           \
    array_reserve(&(list), (count), &(room), sizeof(__typeof__(*(list))))
#define ARRAY_REACH(list, index, room)                                                             \
    array_reach(&(list), (index), &(room), sizeof(__typeof__(*(list))))

/* For functions that compare: which of two values comes first. Of several keys the first one that
 * differs counts: ORDER(a->event, b->event) ?: ORDER(a->at, b->at). */
#define ORDER(a, b) (((a) > (b)) - ((a) < (b)))

/* For qsort and bsearch, of numbers. */
static inline int compare_u32(const void *a, const void *b)
{
    return ORDER(*(const uint32_t *)a, *(const uint32_t *)b);
}

static inline int compare_u64(const void *a, const void *b)
{
    return ORDER(*(const uint64_t *)a, *(const uint64_t *)b);
}

/* The numbers below `count` as `compare` sorts them, which is given pointers to two of them. The
 * caller frees. NULL: no memory. */
static inline uint32_t *array_sorted(uint32_t count,
                                     int (*compare)(const void *a, const void *b, void *context),
                                     const void *context)
{
    uint32_t *order = malloc(((size_t)count + 1) * sizeof *order);
    for (uint32_t i = 0; order && i < count; i++) {
        order[i] = i;
    }
    if (order) {
        qsort_r(order, count, sizeof *order, compare, (void *)context);
    }
    return order;
}

/*
 * Sets `at` to the first of `count` sorted things that is not before what is looked for; `count`
 * when all are. is_before: whether the one at `at` is, an expression.
 */
#define ARRAY_FIRST(at, count, is_before)                                                          \
    do {                                                                                           \
        __typeof__(at) low_ = 0;                                                                   \
        __typeof__(at) high_ = (count);                                                            \
        while (low_ < high_) {                                                                     \
            (at) = low_ + (high_ - low_) / 2;                                                      \
            if (is_before) {                                                                       \
                low_ = (at) + 1;                                                                   \
            } else {                                                                               \
                high_ = (at);                                                                      \
            }                                                                                      \
        }                                                                                          \
        (at) = low_;                                                                               \
    } while (0)

#endif
