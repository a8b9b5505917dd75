/*
 * The exports: what each format is called, how it is written from a profile, and the sink that
 * gathers one profile for all that are wanted and has each written when the recording ends.
 */
#ifndef JD_TOOL_EXPORT_H
#define JD_TOOL_EXPORT_H

#include "jdtool/base/json_writer.h"
#include "jdtool/base/packed_output.h"
#include "jdtool/profile/profile.h"

struct source_texts;

/* What is said of a process beside what its samples tell. */
struct export_label {
    const char *name, *value;
};

/* The data of another profile (format_flame), and what that one is called. */
struct export_before {
    const uint8_t *bytes;
    size_t size;
    const char *name;
};

/* A result in memory. */
struct export_memory {
    uint8_t *bytes; /* the caller's to free */
    size_t size;
};

struct export_settings {
    const char *path;                  /* of the result; "-": standard output */
    struct export_memory *memory;      /* the result goes there, not to the path; NULL */
    const char *service;               /* OTLP's service.name; NULL: each process' own name */
    const struct export_label *labels; /* OTLP: further attributes of the resource */
    uint32_t label_count;
    bool no_threads;   /* pprof: samples have no labels for threads */
    bool suffixes;     /* collapsed: FlameGraph's marks _[j], _[i], _[k], … behind the names */
    bool weights;      /* collapsed: weights, not numbers of samples */
    const char *title; /* html: above the graph; NULL: the recording's command */
    const char *name;  /* html: of this profile, beside that of before */
    const struct export_before *before; /* html: shows what differs from it; NULL */
    const uint32_t *changed; /* html, flame: by node of the profile, which is then that of several
                                runs: a bit for each event of which it changed beyond chance */
    uint32_t runs;           /* how many those are */
    void *context;           /* of a verb's own format */
    struct source_texts *sources; /* Java sources that go into the result; NULL: none do */
};

struct export_format {
    const char *name;
    const char *file;  /* what it is called in a profile's directory; NULL: it is for our own use */
    const char *about; /* a few words for --help */
    bool keeps_times;
    bool adds_up;    /* equal samples become one in it, and threads of one name: any profile does */
    bool identities; /* samples are told apart by virtual thread and labels, too */
    bool of_marks;   /* it needs no samples */
    bool of_none;    /* nor marks */
    bool reads_code; /* as of its sink */
    bool gzip;       /* always; others are gzipped where the path ends in .gz */
    /* 0 or a negative errno; -ENOMEM without a message, errors of the output stay in it. */
    int (*write)(const struct profile *profile, const struct export_settings *settings,
                 struct packed_output *output);
};

extern const struct export_format *const export_formats[]; /* ends with NULL */

/* NULL: there is none of that name. */
const struct export_format *export_format_of(const char *name);

/* "FORMAT[=FILE]", for a format that has a file's name: sets *file to FILE, NULL without one. NULL:
 * there is no such format, or FILE is empty. */
const struct export_format *export_choose(const char *word, const char **file);

/* The format of a file by its name's end, ".html" or ".pb.gz". NULL: it says nothing. */
const struct export_format *export_by_ending(const char *path);

/* The names of those formats, or of all, with ", " between them. */
void export_format_names(bool all, char *text, size_t size);

/* One result of several that are made of a profile. */
struct export_order {
    const struct export_format *format; /* NULL: saved samples (saved.h), of which one may be
                                           wanted */
    struct export_settings settings;
};

/* The orders are kept, not copied. 0 or a negative errno after a message. */
int export_sink_new(const struct export_order *orders, uint32_t count, struct sample_sink **out);

/* What a format calls an event: "cpu" of clocks; else letters, digits and '_' alone, because
 * servers refuse others. Into text, cut at its size. */
void export_event_name(const struct recorded_event *event, char *text, size_t size);

/* "compiled", "kernel": as JSON documents have the kinds of frames. */
const char *export_kind_name(enum resolved_kind kind);

/* The time between two samples in the event's unit; 0: not known. */
uint64_t export_event_period(const struct recorded_event *event);

/* A time of the recording as ns since 1970; without its clock's data it is as recorded. */
uint64_t export_wall_time(const struct profile *profile, uint64_t time);

/* ---- JSON documents ---- */

/*
 * What the JSON documents about a profile have in common:
 *
 *   {"version": 1, "recording": …, "command": …, "arch": …, "samples": N,
 *    "events": [{"name", "unit", "samples", "weight"}], …
 */

/* Begins a document, in an object that stays open. What is written goes to output, which stays the
 * caller's. */
void profile_json_begin(struct json_writer *json, const struct profile *profile,
                        struct packed_output *output);

/* The array "events" alone, for documents that begin otherwise. */
void profile_json_events(struct json_writer *json, const struct profile *profile);

/* Ends it, with a newline. */
void profile_json_end(struct json_writer *json);

#endif
