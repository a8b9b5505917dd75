/*
 * Who is at which address, from when on: the one room between those who report code and the sinks
 * that write it down.
 *
 * It has one lock, one timeline (timeline.h) and one clock for all sinks. What is known already is
 * dropped here, before anybody encodes it; of a stub that is replayed around others only the parts
 * that nobody has are handed on; and each piece is stamped once, under the lock, so that events
 * have the order in which they are written.
 *
 * All functions may be called from any thread at the same time, but for occupancy_close, which must
 * be the last call. In a fork of the process (process.h), where neither files nor lock are ours,
 * they do nothing and return -EPIPE.
 */
#ifndef JD_WRITER_OCCUPANCY_H
#define JD_WRITER_OCCUPANCY_H

#include "writer/occupancy/timeline.h"
#include "writer/sinks/sink.h"

enum { OCCUPANCY_SINKS_MAX = 4 };

struct occupancy;

/* Its clock is CLOCK_MONOTONIC, or with `tsc` the processor's, on x86-64. 0 or a negative errno. */
int occupancy_new(bool tsc, struct occupancy **out);

/* The moment it began, of its clock: nothing counts from before. */
uint64_t occupancy_start(const struct occupancy *occupancy);

/* Adds a sink, which is the occupancy's from then on. At most OCCUPANCY_SINKS_MAX, before the first
 * call of those below. */
void occupancy_add(struct occupancy *occupancy, struct sink *sink);

/*
 * Whether this very code is known to be there, so that nothing of it needs to be looked up: asked
 * with the address, the size and what tells compilations apart (struct code, `facts.compile_id`, or
 * else `replayed` and the name, which may be NULL: not known is the answer then). `spot` is for
 * occupancy_load; NULL is fine.
 */
bool occupancy_knows(struct occupancy *occupancy, const struct code *code,
                     struct timeline_spot *spot);

/*
 * Reports code that is there now, to every sink that works; what is known already, to none. 0, or
 * the error of the first sink that has one; -EPIPE: one had failed before. `spot` is what
 * occupancy_knows found, or NULL. code->kept is the occupancy's from now on, whatever happens.
 */
int occupancy_load(struct occupancy *occupancy, const struct code *code,
                   struct timeline_spot *spot);

/* Reports that `size` bytes of code went from one address to another. -ENOENT: none known there. */
int occupancy_move(struct occupancy *occupancy, uint64_t from, uint64_t to, uint64_t size);

/*
 * Reports that code that started at `address` is no longer there. `in_use` is the number of the
 * compilation that is in use there now (-1: none, or unknown); if just that is known there already,
 * it stays. Unknown addresses are fine.
 */
void occupancy_unload(struct occupancy *occupancy, uint64_t address, int32_t in_use);

/*
 * Code that will be reported as unloaded from now on, up to the next call, has not run since this
 * moment. For a JVM that frees code in garbage collections: it tells of the end of code late, when
 * other code may already run at its place. Takes no lock.
 */
void occupancy_swept(struct occupancy *occupancy);

/* Waits, not for ever, until all that was told is where it belongs, a disk for the most part.
 * False: it is not. */
bool occupancy_settle(struct occupancy *occupancy);

/* Whether every sink has failed, for good; also in a fork. */
bool occupancy_is_dead(struct occupancy *occupancy);

/* How the sink that was added as number `sink`, from 0, stands. */
void occupancy_stats(struct occupancy *occupancy, unsigned sink, struct sink_stats *stats);

/* Closes the sinks and frees all. NULL is fine. */
void occupancy_close(struct occupancy *occupancy);

#endif
