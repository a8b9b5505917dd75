/*
 * The places where a session reports code, all at once.
 */
#ifndef JD_AGENT_SINKS_H
#define JD_AGENT_SINKS_H

#include "agent/session/options.h"
#include "writer/log/record_log.h"
#include "writer/occupancy/occupancy.h"

#include <stdbool.h>

struct sinks {
    struct occupancy *occupancy;            /* which they all hang on */
    const char *names[OCCUPANCY_SINKS_MAX]; /* as `mode` has them */
    unsigned count;
    struct record_log *log; /* of the jitdump, NULL: there is none */
    struct sink *map;       /* NULL: there is none */
};

/*
 * Opens what options->modes asks for; *options has to live as long as the sinks. One place that
 * works is better than none, so with several asked for a failure of some is only told of, unless
 * options->strict. Returns 0, or a negative errno when nothing is open.
 */
int sinks_open(struct sinks *sinks, const struct options *options);

/* Has `wanted` called by each log that lacks something (record_log_on_want). Before the first piece
 * of code. */
void sinks_on_want(const struct sinks *sinks,
                   bool (*wanted)(void *context, enum record_log_want want), void *context);

/* Whether what was told is where it belongs, and the sinks, all or at least one of them, go on:
 * have neither failed nor run out of room. Waits for a disk that is no slower than slow. */
bool sinks_stand(const struct sinks *sinks, bool all);

void sinks_close(struct sinks *sinks);

#endif
