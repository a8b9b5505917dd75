/*
 * What the verbs share that show a profile (export, annotate, view): their input, which samples of
 * it, and where sources are.
 */
#ifndef JD_TOOL_EXPORT_INPUT_H
#define JD_TOOL_EXPORT_INPUT_H

#include "jdtool/base/text.h"
#include "jdtool/base/verb.h"
#include "jdtool/confined/confined.h"
#include "jdtool/exports/export.h"
#include "jdtool/pipeline/jfr_marks.h"
#include "jdtool/pipeline/sample_filter.h"

/* Strings are those of the command line. Zero one to start; free it at the end. */
struct export_input {
    const char *input; /* a recording, saved samples, "-", or a profile's directory */
    const char *source_path;
    const char *build_id_dir;
    bool wants_code; /* bytes of the code: set by the verb */
    struct sample_filter_options filter;
    bool is_grouped;      /* --by was given */
    struct jfr_files jfr; /* the JVMs' own recordings */
    struct words dumps;   /* named or found in the directory */
    struct words helds;   /* "FD:PATH": directories of profiles that are open already */
    char *file;           /* in the directory */
    char *times;          /* in the directory: what JVMs had of the processors (processor_time.h) */
};

/* The options of it: for OPTION_TABLE. */
extern const struct verb_option export_input_options[];

#define EXPORT_INPUT_HELP                                                                          \
    "  -i, --input FILE          what perf record wrote, - for standard input, or a profile's\n"   \
    "                            directory as jdperf record makes it\n"                            \
    "      --dump FILE           use this dump for its JVM (may be repeated)\n"                    \
    "      --buildid-dir DIR     where perf record left copies of files\n"                         \
    "      --source-path DIRS    where Java sources are, separated by ':'; the recorded JDK's\n"   \
    "                            src.zip is used as well\n"                                        \
    "      --jfr FILE            also the events of a JVM's own recording of that time (.jfr), "   \
    "as\n"                                                                                         \
    "                            markers (may be repeated)\n"                                      \
    "Samples can be chosen; of an option that is repeated one has to fit:\n"                       \
    "      --from TIME, --to TIME\n"                                                               \
    "                            behind the first sample: seconds, or as 300ms, 5m\n"              \
    "      --thread NAME|TID, --comm NAME, --pid PID\n"                                            \
    "                            a thread, a process' name (* and ? are wildcards), a process\n"   \
    "      --label KEY[=VALUE]   what the program had labelled so (the same wildcards)\n"          \
    "      --by thread|virtual|process|label:KEY\n"                                                \
    "                            what stands for threads in the result\n"                          \
    "      --include REGEX, --exclude REGEX\n"                                                     \
    "                            stacks with, or without, such a frame\n"                          \
    "      --event NAME          one event of several\n"

/* A time behind the first sample. An exit_status, after a message. */
int export_input_time(const struct verb *verb, const char *value, uint64_t *time);

/*
 * Has the chosen samples exported, with_sources: with Java sources, and the JDK's where they are
 * found. 0 or a negative errno after a message.
 */
int export_input_write(struct export_input *input, struct export_order *order, bool with_sources);

/* The same choice of another profile's samples: the directory at `path`, which has the copies of
 * its files. */
int export_input_write_other(const struct export_input *input, const char *path,
                             struct export_order *order);

/*
 * Does a verb's work on the input in a process without rights (confined.h), and returns its exit
 * status. `out`: the file that it makes, `before`: another profile; NULL: none. `lasting`: it may
 * take any time.
 */
int export_input_confined(const struct export_input *input, const char *out, const char *before,
                          bool lasting, int (*work)(void *), void *context);

/* What of it is held, rights_hold; an exit status, after a message. */
int export_input_hold(const struct export_input *input, struct rights *rights);

void export_input_free(struct export_input *input);

#endif
