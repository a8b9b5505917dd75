/*
 * A sink in front of another one that lets only some samples through: a stretch of time, threads,
 * processes, an event, stacks with or without certain frames. What is grouped by thread behind it
 * can be grouped by virtual thread, process or label instead.
 */
#ifndef JD_TOOL_SAMPLE_FILTER_H
#define JD_TOOL_SAMPLE_FILTER_H

#include "jdtool/profile/thread_labels.h"
#include "jdtool/resolve/sample_sink.h"

#define SAMPLE_FILTER_WORDS_MAX 16 /* of each kind */

/* The words of one option; a sample passes if one of them fits, or there are none. */
struct sample_filter_words {
    const char *list[SAMPLE_FILTER_WORDS_MAX];
    uint32_t count;
};

/* What stands in the place of threads. */
enum sample_grouping {
    GROUP_BY_THREAD,
    GROUP_BY_VIRTUAL, /* virtual threads, and the threads that carried none */
    GROUP_BY_PROCESS,
    GROUP_BY_LABEL, /* the values of a label */
};

/* Zero one to let everything through. */
struct sample_filter_options {
    uint64_t from, until;                /* ns behind the first sample; until 0: no end */
    struct sample_filter_words threads;  /* names, which may have * and ?, or numbers; of virtual
                                            threads and of those that carry them */
    struct sample_filter_words labels;   /* "key" or "key=value", which may have * and ? */
    struct sample_filter_words comms;    /* names of processes, the same */
    struct sample_filter_words pids;     /* numbers */
    struct sample_filter_words includes; /* regular expressions: some frame's name has it */
    struct sample_filter_words excludes; /* no frame's name has it */
    enum sample_grouping grouping;
    const char *group_label; /* of GROUP_BY_LABEL: its key */
    const char *event;       /* its name, modifiers left out or not; NULL: all */
};

/*
 * behind is the filter's from now on, on failure, too. options are kept, not copied. 0 or a
 * negative errno after a message: -EINVAL is a regular expression that is none.
 */
int sample_filter_new(const struct sample_filter_options *options, struct sample_sink *behind,
                      struct sample_sink **out);

#endif
