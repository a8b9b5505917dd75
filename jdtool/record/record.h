/*
 * jdperf record: a command, a JVM that runs already, or the whole machine, under perf; then its
 * code is named.
 *
 * Whatever ends it (the command, the JVM, perf, the time, a signal at any moment, a full disk), the
 * way down is the same: perf is told to stop, the session is left, the dumps are fetched, the
 * profile is named or undone. Killed, the guardian does what is to be done (guard.h).
 */
#ifndef JD_TOOL_LIVE_RECORD_H
#define JD_TOOL_LIVE_RECORD_H

#include <stdbool.h>

enum stacks {
    STACKS_AUTO, /* copied, and after a while walked in the kernel where that can be */
    STACKS_COPY,
    STACKS_KERNEL,  /* walked in the kernel; those in doubt are copied */
    STACKS_COMPARE, /* both, to be compared: a check of ours */
    STACKS_FP,
    STACKS_NONE,
};

enum sampler_kind {
    SAMPLER_AUTO, /* sampler/ where it can do what is asked for, else perf */
    SAMPLER_OWN,  /* the same, and it is told why not */
    SAMPLER_PERF,
};

struct record_options {
    const char *out;
    unsigned duration;  /* seconds, 0: no end */
    unsigned frequency; /* Hz, 0: what fits */
    const char *period; /* instead; NULL: none */
    const char *event;  /* NULL: what the machine has */
    const char *jvm;    /* of -p: one, or several with commas between; NULL: none */
    char *const *match; /* all JVMs whose name contains one of these; NULL: none */
    bool all;
    enum stacks stacks;
    enum sampler_kind sampler;
    unsigned stack_size;
    bool stack_size_given;
    unsigned depth;            /* frames of a stack that is walked in the kernel; 0: the default */
    const char *buffer;        /* perf's -m, NULL: what fits */
    const char *agent_options; /* "": none */
    bool no_inject;
    bool keep_raw;
    bool discard_raw;
    const char *alloc; /* bytes between samples of allocations, "": the default; NULL: none */
    const char *locks; /* waits that are all told, as "1ms"; the same */
    bool exceptions;
    const char *timeline; /* what the JVM itself does; "parks": those as well; NULL: not */
    bool off_cpu;
    bool threads; /* who ran: whole names, virtual threads, labels */
    bool wakers;
    char **inject_options; /* further ones for jdtool inject, NULL-terminated */
    char **perf_options;   /* further ones for perf record, NULL-terminated */
    char **command;        /* NULL-terminated; the first is NULL: none */
};

/* The values of options that jdperf record and jdperf watch have. An exit_status, after a message.
 */
struct verb;
int record_take_stack_size(const struct verb *verb, const char *text, unsigned *bytes);
int record_take_sampler(const struct verb *verb, const char *text, enum sampler_kind *sampler);

/* An exit status: jdperf's own, or the command's. */
int record(const struct record_options *options);

#endif
