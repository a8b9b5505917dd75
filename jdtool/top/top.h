/*
 * jdperf top: what JVMs do now, in a terminal.
 *
 *     this process        finds the JVMs, attaches to them and leaves them, holds the terminal
 *       sampler           takes the samples (sampler/, or perf), writes them into a pipe
 *       reader's parent   opens for the reader what it may have (confined/)
 *         reader          without rights: resolves samples, keeps the last seconds, draws
 *       guardians         one a JVM: leave it when we are killed
 *
 * Nothing is kept in a file of ours; what agents write goes with their sessions.
 */
#ifndef JD_TOOL_TOP_TOP_H
#define JD_TOOL_TOP_TOP_H

#include "jdtool/base/text.h"
#include "jdtool/record/record.h"

struct top_options {
    struct words matches;         /* of the record's match */
    struct record_options record; /* without a profile; its match is "" alone for all JVMs */
    unsigned window;              /* seconds */
    const char *source_path;      /* NULL: none but the JDKs' */
};

/* An exit status. */
int top(const struct top_options *options);

#endif
