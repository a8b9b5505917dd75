/* What the process that looks after the JVMs tells the one that shows them, in memory of both. */
#ifndef JD_TOOL_TOP_SHARED_H
#define JD_TOOL_TOP_SHARED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

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

#endif
