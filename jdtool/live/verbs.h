/*
 * The verbs of `jdtool live`, which are jdperf's: it hands its command line over. A verb is a
 * struct live_verb in a file verb_*.c of the room whose work it starts and a line in verb_live.c's
 * table.
 */
#ifndef JD_TOOL_LIVE_VERBS_H
#define JD_TOOL_LIVE_VERBS_H

#include "jdtool/base/verb.h"
#include "jdtool/live/wait.h"

#include <getopt.h>

/* The profile is there, but bad (the scorecard's verdict). */
#define STATUS_BAD_PROFILE 3

struct live_verb {
    const char *name;
    /* argv[0] is the verb's name. An exit status. */
    int (*run)(const struct live_verb *verb, int argc, char **argv);
    const char *help; /* from "usage:" on */
    const char *hint; /* behind "unknown option: X"; "": none */
};

extern const struct live_verb live_attach;
extern const struct live_verb live_status;
extern const struct live_verb live_stop;
extern const struct live_verb live_map;
extern const struct live_verb live_record;
extern const struct live_verb live_clean;
extern const struct live_verb live_inject;
extern const struct live_verb live_diff;
extern const struct live_verb live_bundle;
extern const struct live_verb live_compare;
extern const struct live_verb live_doctor;
extern const struct live_verb live_jvms;
extern const struct live_verb live_top;
extern const struct live_verb live_watch;
extern const struct live_verb live_watch_slicer;
extern const struct live_verb live_report;
extern const struct live_verb live_annotate;
extern const struct live_verb live_flame;
extern const struct live_verb live_timeline;
extern const struct live_verb live_export;
extern const struct live_verb live_view;
extern const struct live_verb live_script;

/* Where the agent is: --agent, or beside jdtool. */
const char *live_agent(void);

/*
 * getopt_long for these verbs, with messages as jdperf's scripts have them. Returns the option's
 * letter, -1 behind the last one, or '?' after a message; --help and -h end the program. `letters`
 * as getopt's: a leading '+' ends at the first word.
 */
int live_option(const struct live_verb *verb, int argc, char **argv, const char *letters,
                const struct option *options);

/* The same, and *index is that of a long option's row, or is not touched. */
int live_option_at(const struct live_verb *verb, int argc, char **argv, const char *letters,
                   const struct option *options, int *index);

/* Says what is wrong with the command line: "VERB: ", `before`, `word`, `after`. STATUS_USAGE. */
int live_wrong_usage(const struct live_verb *verb, const char *before, const char *word,
                     const char *after);

/* The one word that is left, "which JVM"; NULL after a message. `question` as "to which JVM". */
const char *live_one_jvm(const struct live_verb *verb, int argc, char **argv, const char *question);

#endif
