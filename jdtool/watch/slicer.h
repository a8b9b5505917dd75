/*
 * The slicer: the process that resolves the samples of all JVMs that a watch looks after, and makes
 * slices of them. It reads what others wrote (dumps, journals, ELF files), and has no rights
 * (confined.h): whatever becomes of it, the watch starts it anew.
 *
 * In: the recording, on its standard input; orders (slice_pipe.h). Out: slices and costs. It ends
 * when the recording does, after the last slices.
 */
#ifndef JD_TOOL_WATCH_SLICER_H
#define JD_TOOL_WATCH_SLICER_H

#include "jdtool/exports/export.h"

#include <stdint.h>

struct slicer_options {
    int parent;     /* see confined_enter */
    int orders;     /* does not block */
    int out;        /* where slices go */
    int at_work;    /* a file in memory whose first word is the process whose data is read, or 0 */
    unsigned slice; /* seconds */
    bool threads;   /* are told apart */
    const struct export_format *formats[2];
    uint32_t format_count;
};

/* An exit status. */
int slicer(const struct slicer_options *options);

#endif
