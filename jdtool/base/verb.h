/*
 * jdtool's verbs. A verb is a struct verb in the file that does its work, and a line in main.c's
 * table.
 */
#ifndef JD_TOOL_VERB_H
#define JD_TOOL_VERB_H

#include <stdbool.h>

enum exit_status {
    STATUS_DONE = 0,
    STATUS_FAILED = 1,
    STATUS_USAGE = 2,
};

struct verb {
    const char *name;
    /* Prints to stdout, returns an exit_status. argv[0] is the verb's name, as getopt wants it;
     * --help is answered by main. */
    int (*run)(int argc, char **argv);
    const char *usage; /* the arguments, in one line */
    const char *help;  /* what it does and each option, ending in a newline */
    bool has_verbs;    /* it has verbs of its own, which answer --help */
    bool confined;     /* main has it run without rights: it reads the files that its words name,
                        * and writes the one behind -o */
};

extern const struct verb verb_dump;
extern const struct verb verb_verify;
extern const struct verb verb_stat;
extern const struct verb verb_map;
extern const struct verb verb_repair;
extern const struct verb verb_convert;
extern const struct verb verb_inject;
extern const struct verb verb_export;
extern const struct verb verb_report;
extern const struct verb verb_diff;
extern const struct verb verb_annotate;
extern const struct verb verb_view;
extern const struct verb verb_unwind;
extern const struct verb verb_live;

/* Says what is wrong with the arguments and how they go; returns STATUS_USAGE. */
int wrong_usage(const struct verb *verb, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/*
 * getopt_long for verbs: its own messages are off, ours name the culprit. Returns the option's
 * letter, -1 behind the last one, or '?' after wrong_usage has spoken.
 */
struct option;
int next_option(const struct verb *verb, int argc, char **argv, const char *letters,
                const struct option *options);

/* Whether everything printed has reached stdout; if not, says so. Returns an exit_status. */
int finish_output(void);

#endif
