/*
 * The verbs of jdtool, and of jdperf, which hands its command line to `jdtool live`. A verb is a
 * struct verb in the file that does its work and a line in the table of main.c or verb_live.c.
 */
#ifndef JD_TOOL_VERB_H
#define JD_TOOL_VERB_H

#include <getopt.h> /* optind */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum exit_status {
    STATUS_DONE = 0,
    STATUS_FAILED = 1,
    STATUS_USAGE = 2,
};

/* What stands on a verb's command line beside options; verb_options refuses all else. */
enum verb_words {
    VERB_CHECKS_WORDS, /* it looks itself */
    VERB_HAS_NO_WORDS,
    VERB_HAS_ONE_FILE,
};

struct verb {
    const char *name;
    enum verb_words words;
    /* Prints to stdout, returns an exit_status. argv[0] is the verb's name, as getopt wants it. */
    int (*run)(const struct verb *verb, int argc, char **argv);
    const char *usage;  /* of jdtool's: the arguments, in one line; NULL: `help` begins with it */
    const char *hint;   /* behind "unknown option: X"; NULL: none */
    const char *help;   /* what it does and each option, ending in a newline */
    bool takes_command; /* all from the first word on is not for us */
    bool has_verbs;     /* it has verbs of its own, which answer --help */
    bool confined;      /* main has it run without rights: it reads the files that its words name,
                         * and writes the one behind -o */
    /* Of such a one, while it has its rights: asks other programs. NULL: nothing to ask. */
    void (*prepare)(void);
};

enum option_kind {
    OPTION_NONE, /* behind the last one */
    OPTION_SETS,
    OPTION_KEEPS,
    OPTION_LISTS,
    OPTION_COUNTS,
    OPTION_TIMES,
    OPTION_SIZES,
    OPTION_ADDS,
    OPTION_ADDS_VALUE,
    OPTION_DOES,
    OPTION_CALLS,
    OPTION_MAY_CALL,
    OPTION_INCLUDES,
};

/* An option, and what is done about it. Tables are made of the macros below. */
struct verb_option {
    const char *name; /* NULL: there is the letter alone */
    char letter;      /* 0: there is the name alone */
    enum option_kind kind;
    size_t at; /* what is written to, in what verb_options was given */
    /* value NULL: it has none. An exit_status, after a message. */
    int (*take)(const struct verb *verb, void *context, const char *value);
    const struct verb_option *options;
    uint64_t most;
    const char *what;
};

/* clang-format off */
#define OPTION(name_, letter_, kind_) .name = (name_), .letter = (letter_), .kind = (kind_)

/* Sets a bool; keeps a value, which is a string of argv. */
#define OPTION_FLAG(name, letter, type, member) \
    {OPTION(name, letter, OPTION_SETS), .at = offsetof(type, member)}
#define OPTION_TEXT(name, letter, type, member) \
    {OPTION(name, letter, OPTION_KEEPS), .at = offsetof(type, member)}

/* Appends the text to a struct words. */
#define OPTION_TEXTS(name, letter, type, member) \
    {OPTION(name, letter, OPTION_LISTS), .at = offsetof(type, member)}

/* Sets an unsigned to a number from 1 on, or to seconds ("30s", "5m"), of so many at most; a
 * uint64_t to a size ("64M"). what: the message before another value. */
#define OPTION_NUMBER(name, letter, type, member, most_, what_) \
    {OPTION(name, letter, OPTION_COUNTS), .at = offsetof(type, member), .most = (most_), .what = (what_)}
#define OPTION_SECONDS(name, letter, type, member, most_, what_) \
    {OPTION(name, letter, OPTION_TIMES), .at = offsetof(type, member), .most = (most_), .what = (what_)}
#define OPTION_SIZE(name, letter, type, member, what_) \
    {OPTION(name, letter, OPTION_SIZES), .at = offsetof(type, member), .what = (what_)}

/* Appends itself, without and with a value, to a struct words: somebody else understands it. */
#define OPTION_WORD(name, letter, type, member) \
    {OPTION(name, letter, OPTION_ADDS), .at = offsetof(type, member)}
#define OPTION_WORDS(name, letter, type, member) \
    {OPTION(name, letter, OPTION_ADDS_VALUE), .at = offsetof(type, member)}

/* Gives its value to a function: NULL of OPTION_DO, and where it is left out of OPTION_MAY_TAKE. */
#define OPTION_DO(name, letter, take_) {OPTION(name, letter, OPTION_DOES), .take = (take_)}
#define OPTION_TAKE(name, letter, take_) {OPTION(name, letter, OPTION_CALLS), .take = (take_)}
#define OPTION_MAY_TAKE(name, letter, take_) {OPTION(name, letter, OPTION_MAY_CALL), .take = (take_)}

/* All of another table, whose context is that member. Of two of one name the first one counts. */
#define OPTION_TABLE(table, type, member) \
    {.kind = OPTION_INCLUDES, .at = offsetof(type, member), .options = (table)}

#define OPTION_END {.kind = OPTION_NONE}
/* clang-format on */

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

/* That verb of jdperf's was typed: of it is said what is wrong, also where one of jdtool's works
 * for it, whose usage does not help then. */
void verb_typed(const struct verb *verb);

/* Prints a verb's help. Returns an exit_status. */
int verb_help(const struct verb *verb);

/*
 * Reads the options (NULL: there are none), up to optind, where words begin. An exit_status, after
 * a message; --help and -h end the program.
 */
int verb_options(const struct verb *verb, int argc, char **argv, const struct verb_option *options,
                 void *context);

/* Whether everything printed has reached stdout; if not, says so. Returns an exit_status. */
int finish_output(void);

#endif
