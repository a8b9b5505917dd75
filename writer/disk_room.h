/*
 * How much of a file system may be used: what is free on it, but for a reserve that is left to
 * others.
 */
#ifndef JD_WRITER_DISK_ROOM_H
#define JD_WRITER_DISK_ROOM_H

#include <stdbool.h>
#include <stdint.h>

/* As a reserve: 1 GiB or 5 % of the file system, whichever is less. */
#define DISK_ROOM_DEFAULT UINT64_MAX

/* Bytes that may be used of the file system that the open file is on; UINT64_MAX: nobody can
 * tell. */
uint64_t disk_room(int fd, uint64_t reserve);

/* Whether a write that failed with this negative errno may do better when there is room again. */
bool disk_is_full(int error);

/* As much as has to be there for who was out of room to go on: less would be gone at once. */
uint64_t disk_room_to_go_on(int fd);

#endif
