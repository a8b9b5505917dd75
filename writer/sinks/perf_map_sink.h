/*
 * The sink that writes a perf map: a line "START SIZE NAME" for each piece of code, bare hex, which
 * perf, bcc and bpftrace read from /tmp/perf-PID.map.
 */
#ifndef JD_WRITER_PERF_MAP_SINK_H
#define JD_WRITER_PERF_MAP_SINK_H

#include "writer/buffer.h"
#include "writer/code.h"
#include "writer/sinks/perf_map_log.h"
#include "writer/sinks/sink.h"

/* ---- Inlined methods as entries of their own ---- */

/*
 * What a piece of code is called in a perf map, where a name is all there is: one entry for all of
 * it, or one for each stretch of inlined code. The words are perf-map-agent's.
 */

enum unfold_mode {
    UNFOLD_OFF,    /* one entry for each piece of code */
    UNFOLD_LEAF,   /* "unfold": the innermost method and the compiled one, "inner in outer" */
    UNFOLD_ALL,    /* "unfoldall": the whole chain, "outer->middle->inner" */
    UNFOLD_SIMPLE, /* "unfoldsimple": the innermost method alone, "inner" */
};

struct unfold_style {
    enum unfold_mode mode;
    bool suffixes;  /* FlameGraph's for its Java colors: _[j] compiled, _[1] by C1, _[0] the
                     * interpreter, _[i] inlined; stubs have none */
    bool positions; /* "sourcepos": "(File.java:LINE)" behind each method, its first line */
};

struct unfold_entry {
    uint32_t offset; /* from the code's start */
    uint32_t size;
    uint32_t name; /* where in the names */
};

/* Start with UNFOLD_INIT, use again and again, free with unfold_free. */
struct unfold {
    struct buffer entries; /* struct unfold_entry */
    struct buffer names;
};
enum { UNFOLD_LIMIT = 16 * 1024 * 1024 };
#define UNFOLD_INIT                                                                                \
    ((struct unfold){.entries = BUFFER_INIT(UNFOLD_LIMIT), .names = BUFFER_INIT(UNFOLD_LIMIT)})

/*
 * Finds the entries of a piece of code: sorted, without gaps or overlaps from its first byte to its
 * last, neighbours of different names. Code of no bytecode has the compiled method's. Returns how
 * many there are, or -ENOMEM.
 */
int unfold_code(struct unfold *unfold, const struct code *code, const struct unfold_style *style);

/* Of entry i; it and its name live until the next unfold_code. */
static inline const struct unfold_entry *unfold_entry(const struct unfold *unfold, int i)
{
    return (const struct unfold_entry *)unfold->entries.bytes + i;
}

static inline const char *unfold_name(const struct unfold *unfold, const struct unfold_entry *entry)
{
    return (const char *)unfold->names.bytes + entry->name;
}

void unfold_free(struct unfold *unfold);

/* ---- The sink ---- */

struct perf_map_sink_options {
    struct perf_map_log_options log; /* path NULL: /tmp/perf-PID.map */
    struct unfold_style style;       /* zeroed: each piece of code once, under its own name */
};

/* Creates the map under the same rules as a dump (jitdump_sink.h). 0 or a negative errno. */
int perf_map_sink_open(const struct perf_map_sink_options *options, struct sink **out);

/* As record_log_on_want. */
void perf_map_sink_on_want(struct sink *sink,
                           bool (*wanted)(void *context, enum record_log_want want), void *context);

#endif
