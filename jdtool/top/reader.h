/*
 * Who reads what jdperf top samples: a process without rights that resolves the samples, keeps the
 * last seconds of them and draws, and its parent that answers it (confined.h).
 */
#ifndef JD_TOOL_TOP_READER_H
#define JD_TOOL_TOP_READER_H

#include "jdtool/top/shared.h"

struct reader_options {
    const struct top_shared *shared;
    unsigned window;         /* seconds */
    const char *source_path; /* NULL: none but the JDKs' */
    const char *about;       /* the event and its rate, in words */
    bool one_jvm;            /* it begins with that one's methods, else with the JVMs */
};

/* Reads from standard input until it ends or the user has seen enough. For a process of its own,
 * which then ends. An exit status, after a message unless 0. */
int reader_run(const struct reader_options *options);

#endif
