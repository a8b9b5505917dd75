/* What jdperf top lists: JVMs, threads, methods, source lines or events, a line of text each. */
#ifndef JD_TOOL_TOP_TABLE_H
#define JD_TOOL_TOP_TABLE_H

#include "jdtool/profile/method_tallies.h"

#include <stdatomic.h>

/* What the process that looks after the JVMs tells the one that shows them, in memory of both. */

#define TOP_JVMS_MAX 256
#define TOP_NAME_MAX 200

struct top_jvm {
    atomic_uint pid;         /* 0: nobody's place. Set behind the name */
    char name[TOP_NAME_MAX]; /* the main class or jar and its arguments */
};

struct top_shared {
    struct top_jvm jvms[TOP_JVMS_MAX];
    atomic_bool has_ended; /* every JVM has: what is shown stays */
};

enum top_kind { TOP_JVMS, TOP_THREADS, TOP_METHODS, TOP_LINES, TOP_EVENTS, TOP_KINDS };

struct top_wanted {
    enum top_kind kind;
    uint32_t event;
    uint64_t span;     /* ns that the samples are of */
    uint32_t width;    /* columns */
    const char *match; /* rows whose name has it; "": all */
};

struct top_row {
    uint64_t key;              /* the same thing has the same one the next time */
    double share;              /* of the event */
    uint32_t id;               /* an event, a pid or a tid; 0 of a method and a line */
    size_t at, size;           /* of its text */
    size_t name_at, name_size; /* of the whole name, as it is */
};

/* Zero one to start; free it before it is made again. */
struct top_table {
    char *text; /* clean for a terminal; the first line is that of the columns' names */
    size_t head_size;
    struct top_row *rows;
    uint32_t count, room;
};

/* The tallies are those of the view, and only needed for methods and lines. 0 or -ENOMEM. */
int top_table_make(const struct profile *view, const struct method_tallies *tallies,
                   const struct top_shared *shared, const struct top_wanted *wanted,
                   struct top_table *table);
void top_table_free(struct top_table *table);

/* What a JVM is called; "" where that is not known. */
const char *top_jvm_name(const struct top_shared *shared, uint32_t pid);

#endif
