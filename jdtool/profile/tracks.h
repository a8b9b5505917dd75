/*
 * A profile's samples by thread and event, each list by time: for formats with a track for each.
 */
#ifndef JD_TOOL_TRACKS_H
#define JD_TOOL_TRACKS_H

#include "jdtool/profile/profile.h"

struct track_samples {
    uint32_t track; /* of the profile */
    uint32_t event;
    const uint32_t *samples; /* indices into the profile's, by time */
    uint32_t count;          /* from 1 */
    uint64_t weight;         /* of all */
};

struct tracks {
    struct track_samples *list; /* of each event the heaviest first, the first event first */
    uint32_t count;
    uint32_t *order; /* what the lists are parts of */
};

/* tracks is zeroed first; free it on failure, too. 0 or -ENOMEM. */
int tracks_make(const struct profile *profile, struct tracks *tracks);
void tracks_free(struct tracks *tracks);

/* "java/4711 main", with the event behind it where the recording has several. */
void track_name(const struct profile *profile, const struct track_samples *track, char *text,
                size_t size);

#endif
