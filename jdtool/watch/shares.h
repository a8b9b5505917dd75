/*
 * What each user gets of a watch, so that one who starts JVMs without end leaves the others theirs:
 * places, and processor time.
 */
#ifndef JD_TOOL_WATCH_SHARES_H
#define JD_TOOL_WATCH_SHARES_H

#include <stdint.h>
#include <sys/types.h>

#define NO_PLACE ((size_t)-1)

/*
 * All places are taken, place i by a JVM of users[i]; which of them is given up for one of
 * `newcomer`: the last of the user who has most, if that is still not less than the newcomer's user
 * has then. NO_PLACE: none.
 */
size_t shares_place_for(const uid_t *users, size_t count, uid_t newcomer);

/*
 * What a JVM may use of a processor, in hundredths of a percent, from 1 on: `each` percent, but
 * with the user's others no more than `together` percent; 0: no such limit. 0: no limit.
 */
uint32_t shares_of_processor(unsigned each, unsigned together, size_t jvms_of_user);

/* One in more samples than this is never taken: too few would be left to say anything. */
#define THINNING_MAX 64

/*
 * Of how many samples one is to be taken in the next window, where it was one of `one_in` in the
 * last, which has cost so much of what the limit allows (0: there is none): fewer at once, as far
 * as needed, and more by degrees, when that leaves some room.
 */
uint32_t shares_thinning(uint32_t one_in, uint64_t cost, uint64_t limit);

#endif
