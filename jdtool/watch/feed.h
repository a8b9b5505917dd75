/*
 * Where a watch's samples come from: our own sampler, of all JVMs, which come and go while it
 * samples; where that cannot be had, one perf for all of them, which has to begin anew when another
 * JVM comes. Both write a recording into a pipe.
 */
#ifndef JD_TOOL_WATCH_FEED_H
#define JD_TOOL_WATCH_FEED_H

#include "jdtool/live/wait.h"
#include "jdtool/watch/watch.h"

struct feed;

/* Chooses, and says why where it is perf and nobody has asked for that. 0 or a negative errno after
 * a message. Options are kept. */
int feed_new(const struct watch_jvm_options *options, struct feed **out);
void feed_free(struct feed *feed); /* NULL is fine; what perf runs is killed */

/* Begins a recording of the JVMs that were added, anew where one has begun. `out` stays the
 * caller's, who closes it with feed_is_own false right away. 0 or a negative errno. */
int feed_begin(struct feed *feed, int out);

bool feed_is_own(const struct feed *feed);

/* Samples a second and processor: as asked for, as the kernel allows, not in step with its tick. */
unsigned feed_frequency(const struct feed *feed);

/* A JVM is sampled from now on, or no longer. 0 or a negative errno. */
int feed_add(struct feed *feed, pid_t jvm);
void feed_remove(struct feed *feed, pid_t jvm);

/* Whether the recording is to begin anew, since other JVMs are to be sampled. Of perf. */
bool feed_is_stale(const struct feed *feed);

/* One in so many of its samples is taken. False: it cannot be had. */
bool feed_thin(struct feed *feed, pid_t jvm, uint32_t one_in);

/* Nothing is sampled for a while, or again. Of perf. */
void feed_pause(struct feed *feed, bool pauses);

/* Fills in what is to be polled, feed_polled_max at most; gives on what has come, some times a
 * second at least. A negative errno of the turn: the recording has ended. */
uint32_t feed_polled_max(const struct feed *feed);
uint32_t feed_descriptors(const struct feed *feed, struct pollfd *list);
int feed_turn(struct feed *feed);

/* In so many ms a turn is due, whether or not something wakes us. */
int feed_turn_within(const struct feed *feed);

/* What perf has said, where it has failed; "": nothing. */
void feed_words(const struct feed *feed, char *why, size_t size);

/* Nothing more is sampled; it ends when feed_has_ended. */
void feed_stop(struct feed *feed);
bool feed_has_ended(struct feed *feed);

/* What runs for it beside this process, 0: nothing does. */
pid_t feed_process(const struct feed *feed);

#endif
