/*
 * Who occupied an address range, until when; and so, from when on a piece of code counts.
 *
 * HotSpot reports code late: it already runs when the event arrives. Stamped with the event's time,
 * it would leave its first samples without a name, or with that of the code that was there before.
 * Events keep their order, though: the end of the old occupant is reported before the new one. And
 * between the two nothing runs in the range. So a piece of code counts from the moment its range
 * was last given up, or from the session's start when nobody is known to have been there.
 *
 * What is remembered are address ranges, not pieces of code: when only a part of a range is used
 * again, the rest keeps its own time. Otherwise the next one to come into the rest would be stamped
 * back over the samples of somebody else.
 *
 * Times are whatever the caller's clock says, but `now` has to rise from call to call. Not
 * thread-safe. Every call takes logarithmic time for each range that it touches. Memory is bounded
 * by the number of ranges that the code cache has been cut into.
 */
#ifndef JD_WRITER_TIMELINE_H
#define JD_WRITER_TIMELINE_H

#include "writer/code.h"
#include "writer/occupancy/occupant.h"

#include <stdbool.h>
#include <stdint.h>

struct timeline;

/* A session begins at `start`. NULL: no memory. */
struct timeline *timeline_new(uint64_t start);

/* Tells all that is kept that it is over. */
void timeline_free(struct timeline *timeline);

/*
 * Where a piece of code is, or would be: what one look-up has found, for those that follow, as long
 * as nothing has changed in between. Set it to all zeroes at first; always for the same address.
 */
struct timeline_spot {
    uint64_t version;
    void *span;
};

/*
 * Whether this very code is known to be there, so that it need not be told of again: the same
 * address, size and compilation; without the compilation's number, which only HotSpot's structures
 * give, the name has to do, and then only for code that is replayed. `spot` may be NULL.
 */
bool timeline_knows(const struct timeline *timeline, const struct code *code,
                    struct timeline_spot *spot);

/*
 * The code could not be written down: it counts as not known, when it is told of again, but keeps
 * the time from which it counted. NULL is fine.
 */
void timeline_forget(struct occupant *occupant);

/*
 * Finds the first part of [from, end) in which nothing is known to live. False: there is none.
 * HotSpot replays stubs one by one and then the blob around them as well, which is to name only
 * what the stubs have left.
 */
bool timeline_next_gap(const struct timeline *timeline, uint64_t from, uint64_t end,
                       uint64_t *gap_start, uint64_t *gap_end);

/*
 * Code is there now. What it overlaps, and was never reported as gone, is gone now. `spot` may be
 * NULL, and is used up.
 */
struct stay timeline_load(struct timeline *timeline, const struct code *code,
                          struct timeline_spot *spot, uint64_t index, uint64_t now);

enum timeline_unloaded {
    TIMELINE_GONE,
    TIMELINE_UNKNOWN,    /* nobody was known there */
    TIMELINE_SUPERSEDED, /* by other code, which stays */
};

/*
 * The code that starts at the address is gone, and has not run since `left`: an earlier moment when
 * that is known, else now. One from before its LOAD's stamp tells that the stamp is late, for the
 * events are; it then counts as gone right behind it. `in_use` is the number of the compilation
 * that is in use at the address (-1: none, or unknown), and if that is the one that is known there,
 * it stays: a replay may tell of code before the end of the one before it in its place has been
 * told.
 */
enum timeline_unloaded timeline_unload(struct timeline *timeline, uint64_t address, int32_t in_use,
                                       uint64_t left);

/* The code that starts at `from` is now at `to`, with all that is kept of it. False: none is known
 * there. */
bool timeline_move(struct timeline *timeline, uint64_t from, uint64_t to, uint64_t now,
                   struct stay *stay);

#endif
