/*
 * A recording without end, cut into slices: each is a profile of its own, in one or several export
 * formats, and nothing of it stays when it was given away.
 *
 * A slice ends with the first sample behind its time, or by the clock when none comes
 * (slices_sink_turn). A sample that comes later than that is in the next slice: none is lost.
 */
#ifndef JD_TOOL_SLICES_H
#define JD_TOOL_SLICES_H

#include "jdtool/exports/export.h"

#define SLICE_FORMATS_MAX 2

struct slice {
    uint64_t from, until; /* ns since 1970; a sample that came late may be older */
    uint64_t samples;
    uint64_t frames, unnamed; /* of all samples, and those without a name */
    uint64_t lost;            /* samples, by the kernel's count, since the recording began */
    uint64_t let_go_early;    /* see struct recording_counts, the same */
    /* In the order of the options' formats. */
    const uint8_t *bodies[SLICE_FORMATS_MAX];
    size_t sizes[SLICE_FORMATS_MAX];
};

struct slices_options {
    uint64_t length; /* ns, from 1 */
    const struct export_format *formats[SLICE_FORMATS_MAX];
    uint32_t format_count;
    const struct export_settings *settings; /* path is not used */
    const char *note; /* what each profile says of itself (struct recording's verdict), as it stands
                         then; NULL: nothing */
    /* Of formats that merge equal stacks, keep those of different threads apart. Servers make a
     * series of each thread's name; else pprof tells of no threads. All formats then have what
     * journals tell, too: virtual threads and labels. */
    bool by_thread;
    /* Takes each slice that has samples; 0, or a negative errno after a message, which ends the
     * stream. */
    int (*take)(void *context, const struct slice *slice);
    void *context;
};

/* Options are kept, not copied. The recording's clock has to be CLOCK_MONOTONIC where it has no
 * wall clock of its own. 0 or a negative errno after a message. */
int slices_sink_new(const struct slices_options *options, struct sample_sink **out);

/* Ends the slice if it is over since `slack` ns; now: CLOCK_MONOTONIC. The same result as `take`.
 */
int slices_sink_turn(struct sample_sink *sink, uint64_t now, uint64_t slack);

#endif
