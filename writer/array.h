/*
 * An array that grows: a pointer, NULL at first, and a size_t with how many elements there is room
 * for, 0 at first; who owns it frees it.
 */
#ifndef JD_WRITER_ARRAY_H
#define JD_WRITER_ARRAY_H

#include <stdbool.h>
#include <stddef.h>

/* Makes room for `count` elements, by doubling. False: no memory; all stays as it is. */
#define ARRAY_RESERVE(array, room, count)                                                          \
    ((size_t)(count) <= (room) || array_grow(&(array), &(room), (count), sizeof(*(array))))

/* `array` is the pointer's address. */
bool array_grow(void *array, size_t *room, size_t count, size_t size);

#endif
