/*
 * jdtool inject: a recording and the dumps of its JVMs in, a recording that any perf can read out.
 */
#ifndef JD_TOOL_INJECT_H
#define JD_TOOL_INJECT_H

#include "jdtool/pipeline/jfr_marks.h"

#include <stdbool.h>
#include <stdint.h>

/* What becomes of inlined methods in call chains; DWARF leaves them to perf 7 and later. */
enum inline_mode { INLINE_EXPAND, INLINE_DWARF, INLINE_OFF };

struct inject_options {
    const char *input; /* "-": stdin */
    const char *output;
    const char *source_path;
    const char *scorecard;
    const char *processor_time; /* what JVMs had of it (processor_time.h); NULL: not known */
    const char *build_id_dir;   /* NULL: perf's default */
    const char *held;           /* "FD:PATH": that directory is open already; NULL: none */
    const char *save;           /* the samples with their names (saved_format.h); NULL: no */
    char **dumps;
    uint32_t dump_count;
    const char **exports; /* "FORMAT[=FILE]", as of export_choose; without FILE: beside output */
    uint32_t export_count;
    struct jfr_files jfr; /* the JVMs' own recordings, for what is saved and exported */
    enum inline_mode inline_mode;
    const char *inlined_suffix;
    const char *interpreted_suffix;
    bool leaf;
    bool keep_all;
    bool keep_stacks;
    bool quiet;
};

/* What it reads and makes, for confined_run. */
struct rights;
void inject_rights(const struct inject_options *options, struct rights *rights);

/*
 * Does all of it. 0 or a negative errno after a message; there is then no result, but for -ENODATA:
 * there are dumps, not one of them could be used, and the result is the recording without names for
 * generated code.
 */
int inject(const struct inject_options *options);

#endif
