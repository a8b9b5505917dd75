/*
 * What all exports are made of: the samples of a recording, with everything that many of them share
 * kept once. Stacks are a tree with the thread's root on top, so that a stack is one number.
 *
 *     sample -> node (of the tree) -> location -> lines -> function
 *
 * A location is a machine address in a module (of generated code: in one version of it), with a
 * line for each method that was inlined there: innermost first, the compiled method last. What has
 * no code of its own (an interpreted method) has a location of one line.
 *
 * All ids are dense, from 0, and tell where in its array a thing is; a node's parent stands before
 * it.
 */
#ifndef JD_TOOL_PROFILE_H
#define JD_TOOL_PROFILE_H

#include "jdtool/resolve/sample_sink.h"

#define PROFILE_NONE UINT32_MAX

/* More different stacks than have this many nodes are cut at their inner end, which is counted. */
#define PROFILE_NODES_MAX (UINT32_C(1) << 24)

struct profile_function {
    const char *name;            /* never NULL: "[libc.so.6]" where only the module is known */
    const char *system_name;     /* class, method and descriptor without blanks; else the name */
    const char *file;            /* NULL: not known */
    uint32_t first_line;         /* 0: not known */
    const struct module *module; /* NULL: not in one */
    const struct resolved_method *method; /* the first of that name and file; NULL: unknown */
};

struct profile_line {
    uint32_t function;
    uint32_t line; /* 0: not known */
    uint8_t kind;  /* enum resolved_kind */
    uint8_t tier;
    bool is_osr;
};

struct profile_location {
    const struct module *module;      /* NULL: not in one */
    const struct resolved_code *code; /* NULL: no generated code */
    uint64_t address;                 /* in the module; without one, and in the kernel, as it was */
    uint32_t code_number;             /* of code, among the profile's */
    uint32_t first_line;              /* index of its innermost line */
    uint32_t line_count : 31;         /* from 1 */
    uint32_t is_caller : 1;           /* see struct resolved_frame; of the first that was seen */
};

struct profile_node {
    uint32_t parent; /* PROFILE_NONE: outermost */
    uint32_t location;
};

/* A thread under one name: a thread that is renamed is two of these, of one track. In a profile
 * that keeps identities, with one virtual thread and one set of labels, too. */
struct profile_thread {
    uint32_t pid, tid;
    const char *comm;
    const char *labels;       /* lines of "key=value"; "": none */
    uint64_t virtual_id;      /* 0: none. So far its key */
    const char *virtual_name; /* "": none, or it has none */
    const char *process_name; /* the main thread's */
    const char *program;      /* see struct resolved_thread; "": not known */
    uint32_t track;
    uint32_t plain; /* itself without identity: index into plain_threads */
};

struct profile_track {
    uint32_t pid, tid;
    uint32_t thread; /* under its last name */
};

struct profile_sample {
    uint32_t node; /* PROFILE_NONE: without a stack */
    uint32_t thread;
    uint32_t event;
    uint32_t count;  /* 1 in a profile that keeps times */
    uint64_t time;   /* on the recording's clock; the first of them where several are one */
    uint64_t weight; /* of all of them together */
};

/* See struct resolved_mark. */
struct profile_mark {
    uint64_t from, until, number;
    const char *text, *subject; /* never NULL */
    uint32_t thread;
    uint8_t kind; /* enum mark_kind */
    bool is_open;
};

/* Read it as you like; it is filled by profile_add alone. */
struct profile {
    const struct recording *recording; /* whoever made the profile sets it */
    bool keeps_identities; /* of virtual threads and labels; set before the first sample */
    bool joins_runs;  /* with other runs' profiles: names are normal_name's. Set before the first
                         sample, or when it is closed where it has several JVMs' */
    bool keeps_times; /* else equal stacks of a thread and event are one sample */
    struct profile_function *functions;
    struct profile_line *lines;
    const struct resolved_code **codes; /* in the order of the locations that are first in them */
    struct profile_location *locations;
    struct profile_node *nodes;
    struct profile_thread *threads;
    struct profile_thread *plain_threads; /* without identities; only where those are kept */
    struct profile_track *tracks;
    struct profile_sample *samples; /* in the order of their coming */
    struct profile_mark *marks;     /* in the order of their coming */
    const struct module **modules;  /* by module id; NULL: none of that id was seen */
    uint32_t function_count, line_count, code_count, location_count, node_count;
    uint32_t thread_count, plain_thread_count, track_count, sample_count, module_count, mark_count;
    uint64_t total_count; /* of samples */
    uint64_t from, until; /* time of the first and the last sample; 0: there are none */
    uint64_t cut_stacks;  /* see PROFILE_NODES_MAX */
    uint64_t late_parts;  /* whoever leaves them out counts them (is_late_part) */
    struct profile_private *private;
};

/* NULL: no memory. */
struct profile *profile_new(bool keep_times);
void profile_free(struct profile *profile); /* NULL is fine */

/* Adds a sample. 0 or -ENOMEM; the profile can only be freed then. */
int profile_add(struct profile *profile, const struct resolved_sample *sample);

/* Both halves of it. Adds all that the sample needs, and makes it; adds what was made. The same. */
int profile_intern(struct profile *profile, const struct resolved_sample *sample,
                   struct profile_sample *made);
int profile_keep(struct profile *profile, const struct profile_sample *sample);

/* The same for a thread alone, and for a mark. */
int profile_intern_thread(struct profile *profile, const struct resolved_thread *thread,
                          uint32_t *id);
int profile_add_mark(struct profile *profile, const struct resolved_mark *mark);

/* Gives functions the names that they have in all JVMs, where it has several, tells all threads of
 * a process what it runs, names what stands for a process (a main thread without a name) by that
 * and its pid, and frees what only further samples need: none can be added then. */
void profile_close(struct profile *profile);

/* What a reader knows the thread's process by: several JVMs are all "java". */
static inline const char *profile_process(const struct profile_thread *thread)
{
    return thread->program[0] ? thread->program : thread->process_name;
}

/*
 * The profile as one that kept less would be: without times, or identities, which it may have.
 * of_processes: and without times a process' threads are one, of its pid and without a name. What
 * both have is shared: free the view first. 0 or -ENOMEM, and the view is then freed.
 */
int profile_view(const struct profile *profile, bool times, bool identities, bool of_processes,
                 struct profile *view);
void profile_view_free(const struct profile *profile, struct profile *view);

/* What its samples of an event are together. */
struct profile_sum {
    uint64_t samples, weight;
};
struct profile_sum profile_sum(const struct profile *profile, uint32_t event);

/* Its samples' numbers, sorted by these keys, of which the last is BY_NUMBER. The caller frees.
 * NULL: no memory. */
enum sample_key { BY_NUMBER, BY_EVENT, BY_PROCESS, BY_TRACK, BY_THREAD, BY_NODE, BY_TIME };
uint32_t *profile_order(const struct profile *profile, const enum sample_key *keys);

/* Warns of what the profile lacks; path: of the result. */
void profile_tell_losses(const struct profile *profile, const char *path);

/* The last part of a module's path; "[unknown]" of NULL. */
const char *profile_module_name(const struct module *module);

#endif
