/* A session by hand: what jdperf attach, status, stop and map have in common (verb_attach.c). */
#ifndef JD_TOOL_LIVE_BY_HAND_H
#define JD_TOOL_LIVE_BY_HAND_H

#include "jdtool/live/guard.h"
#include "jdtool/live/session.h"
#include "jdtool/live/verbs.h"

struct by_hand {
    struct waiting waiting;
    struct target target;
    struct guardian guardian;
    struct live_session session;
    struct session_status status;
};

/*
 * Reads the verb's options into `context`, and has the JVM that the one word names dealt with,
 * which answers. `question` as of live_one_jvm. An exit status.
 */
int by_hand(const struct verb *verb, int argc, char **argv, const struct verb_option *options,
            void *context, const char *question,
            int (*deal)(const struct verb *verb, struct by_hand *work, const void *context));

#endif
