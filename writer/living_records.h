/*
 * Which records of a dump are of code that is still there, and where they stand in the file: what
 * the next segment begins with. Not thread-safe. Memory is bounded by the ranges that the code
 * cache has been cut into.
 */
#ifndef JD_WRITER_LIVING_RECORDS_H
#define JD_WRITER_LIVING_RECORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct living_records;

/* NULL: no memory. */
struct living_records *living_records_new(void);
void living_records_free(struct living_records *living); /* NULL is fine */

/* A record of code at [address, address + extent) stands at [offset, offset + size). What it
 * overlaps is there no more. False: no memory, and it will be missing. */
bool living_records_add(struct living_records *living, uint64_t address, uint64_t extent,
                        uint64_t offset, uint64_t size);

/* The code that starts at the address is gone. */
void living_records_remove(struct living_records *living, uint64_t address);

/* A stretch of the file. */
struct living_stretch {
    uint64_t offset;
    uint64_t size;
    uint64_t moved_to; /* the caller's to fill in */
};

/*
 * The stretches that hold all of the records, in the order of the file, each record whole in one.
 * *count 0: there are none. The caller frees the list. NULL: no memory, or none.
 */
struct living_stretch *living_records_list(const struct living_records *living, size_t *count);

/* The stretches have been copied to `moved_to` of another file, which counts from now on. */
void living_records_move(struct living_records *living, const struct living_stretch *list,
                         size_t count);

#endif
