/*
 * The places where a session reports code, all at once.
 */
#ifndef JD_AGENT_SINKS_H
#define JD_AGENT_SINKS_H

#include "agent/options.h"
#include "writer/sink.h"

#include <stdbool.h>

enum { SINKS_MAX = 4 };

struct sinks {
    struct sink *sinks[SINKS_MAX];
    const char *names[SINKS_MAX]; /* as `mode` has them */
    unsigned count;
};

/*
 * Opens what options->modes asks for; *options has to live as long as the sinks. One place that
 * works is better than none, so with several asked for a failure of some is only told of, unless
 * options->strict. Returns 0, or -1 when nothing is open.
 */
int sinks_open(struct sinks *sinks, const struct options *options);

/* Whether some have failed, for good. */
bool sinks_any_failed(const struct sinks *sinks);

/* As sink_load and sink_unload, for each. False: every sink has failed, for good. */
bool sinks_load(struct sinks *sinks, const struct code *code);
bool sinks_unload(struct sinks *sinks, uint64_t address);

/* As sink_swept, for each. */
void sinks_swept(struct sinks *sinks);

/* As sink_close, for each. */
void sinks_close(struct sinks *sinks);

#endif
