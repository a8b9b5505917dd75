/*
 * The verbs of `jdtool live`, which are jdperf's: it hands its command line over. A verb is in a
 * file verb_*.c of the room whose work it starts.
 */
#ifndef JD_TOOL_LIVE_VERBS_H
#define JD_TOOL_LIVE_VERBS_H

#include "jdtool/base/verb.h"
#include "jdtool/live/wait.h"

/* The profile is there, but bad (the scorecard's verdict). */
#define STATUS_BAD_PROFILE 3

extern const struct verb live_attach;
extern const struct verb live_status;
extern const struct verb live_stop;
extern const struct verb live_map;
extern const struct verb live_record;
extern const struct verb live_clean;
extern const struct verb live_inject;
extern const struct verb live_diff;
extern const struct verb live_bundle;
extern const struct verb live_compare;
extern const struct verb live_doctor;
extern const struct verb live_jvms;
extern const struct verb live_top;
extern const struct verb live_watch;
extern const struct verb live_watch_slicer;
extern const struct verb live_report;
extern const struct verb live_annotate;
extern const struct verb live_flame;
extern const struct verb live_timeline;
extern const struct verb live_export;
extern const struct verb live_view;
extern const struct verb live_script;

/* Where the agent is: --agent, or beside jdtool. */
const char *live_agent(void);

/* The one word that is left, "which JVM"; NULL after a message. `question` as "to which JVM". */
const char *live_one_jvm(const struct verb *verb, int argc, char **argv, const char *question);

#endif
