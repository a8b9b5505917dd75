/*
 * The perf.data sink: a recording that any perf can read, written as samples come. Records pass
 * through, samples get call chains made of their resolved frames, code is mapped when it is first
 * touched (image_maps.h); the images with the code and with the frames that have none are written
 * at the end (image_set.h).
 *
 * Call chains: before the address in a compiled method stand the methods inlined there, innermost
 * first, each as an address in the image of frames; an interpreted method stands in the place of
 * its interpreter. Callers in generated code are given as addresses in the call: a return address
 * belongs to what comes behind the call, and perf looks it up as it stands.
 */
#ifndef JD_TOOL_PERF_DATA_SINK_H
#define JD_TOOL_PERF_DATA_SINK_H

#include "jdtool/resolve/sample_sink.h"
#include "jdtool/resolve/source_texts.h"

#include <stdbool.h>

struct perf_data_sink_options {
    const char *output;
    bool expand;      /* inlined methods are frames of their own */
    bool inlines;     /* inlined methods are in the images' debugging information */
    bool leaf;        /* move the sample's own address, too, so that self time is the innermost's */
    bool keep_all;    /* code that nothing touched is in the images, too */
    bool pack;        /* the records, as perf record -z does */
    bool keep_stacks; /* stack copies stay, for perf to unwind: with call-frame information */
    const char *inlined_suffix; /* behind such methods' names */
    const char *interpreted_suffix;
    struct source_path *source_path; /* never NULL */
    /* Told at the end where the code of each JVM is: the first of its images. NULL: nobody. */
    void (*written)(void *context, const struct module *module, const char *path);
    void *written_context;
};

/* What it is given must live longer. NULL after a message. */
struct sample_sink *perf_data_sink_new(const struct perf_data_sink_options *options);

#endif
