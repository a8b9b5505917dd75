/*
 * The sink that writes a jitdump file (format/jitdump.h).
 */
#ifndef JD_WRITER_JITDUMP_SINK_H
#define JD_WRITER_JITDUMP_SINK_H

#include "writer/log/record_log.h"
#include "writer/sinks/sink.h"

struct jitdump_sink_options {
    struct record_log_options log; /* but for the pid, which is this process's */
    bool samply;                   /* samply's record extensions ahead of each LOAD */
    bool tree_lines;               /* no rows where the trailer's tree gives the same */
};

/*
 * Creates the file (0600, O_EXCL), writes the header and maps the file's first page PROT_EXEC,
 * which is the event that perf looks for; the mapping stays until close. A file of an earlier
 * session or of another process with our number is left alone: where there is one, ours goes to the
 * subdirectory session-2, session-3… On success *out is the sink and 0 is returned, else a negative
 * errno after one message.
 */
int jitdump_sink_open(const struct jitdump_sink_options *options, struct sink **out);

/* The log that a jitdump's sink writes to, for the table of methods, too. */
struct record_log *jitdump_sink_log(struct sink *sink);

#endif
