/*
 * Intel's JIT Profiling API, the binary side of it: what passes between a program and a collector
 * (VTune's libittnotify_collector.so) that it loads. Source: the JIT Profiling API chapter of the
 * VTune guide, and the structures of Intel's open ITT API (ittapi, jitprofiling.h), which this
 * header describes anew rather than includes, since no distribution packages it.
 *
 * Strings, tables and the structures themselves belong to the caller; the collector copies what it
 * wants before NotifyEvent returns.
 */
#ifndef JD_FORMAT_ITT_H
#define JD_FORMAT_ITT_H

#include <stddef.h>
#include <stdint.h>

/* The environment names the collector's library. */
#if UINTPTR_MAX > UINT32_MAX
#define ITT_COLLECTOR_VARIABLE "INTEL_JIT_PROFILER64"
#else
#define ITT_COLLECTOR_VARIABLE "INTEL_JIT_PROFILER32"
#endif

/* What the library exports, and how it is called. */
#define ITT_NOTIFY_SYMBOL     "NotifyEvent"
#define ITT_INITIALIZE_SYMBOL "Initialize"
typedef unsigned (*itt_initialize_function)(void); /* 0: collects nothing, 1: samples */
typedef unsigned (*itt_notify_function)(unsigned event, void *data);

/* Ids below are the collector's own. One id is one method, however many regions it has. */
#define ITT_FIRST_METHOD_ID 1000

enum itt_event {
    ITT_SHUTDOWN = 2,                     /* data: NULL */
    ITT_METHOD_LOAD_FINISHED = 13,        /* the oldest form, not used here */
    ITT_METHOD_UNLOAD_START = 14,         /* data: struct itt_method_id */
    ITT_METHOD_UPDATE = 15,               /* not used here */
    ITT_METHOD_INLINE_LOAD_FINISHED = 16, /* data: struct itt_inline_load */
    ITT_METHOD_UPDATE_V2 = 17,            /* not used here */
    ITT_METHOD_LOAD_FINISHED_V2 = 21,     /* data: struct itt_method_load */
    ITT_METHOD_LOAD_FINISHED_V3 = 22,     /* V2 plus an architecture, for code of another one */
};

/*
 * Code from the end of the entry before (0 for the first) up to `end` belongs to the line.
 * HotSpot's own debug information ends its ranges the same way.
 */
struct itt_line {
    uint32_t end; /* offset from the region's start */
    uint32_t line;
};

/* A method, or a further region of one: iJIT_Method_Load_V2. */
struct itt_method_load {
    uint32_t method_id;
    const char *method_name; /* never NULL */
    const void *address;
    uint32_t size; /* bytes */
    uint32_t line_count;
    const struct itt_line *lines;
    const char *class_name;  /* NULL: unknown */
    const char *source_file; /* NULL: unknown */
    const char *module_name; /* NULL: the collector's own for generated code */
};

/*
 * A call that was inlined: iJIT_Method_Inline_Load. It lies inside its parent, and regions of one
 * parent do not overlap.
 */
struct itt_inline_load {
    uint32_t method_id;
    uint32_t parent_method_id; /* the direct one: the method, or the call around this one */
    const char *method_name;
    const void *address;
    uint32_t size;
    uint32_t line_count;
    const struct itt_line *lines;
    const char *class_name;
    const char *source_file;
};

/* Undocumented; a collector looks at the first four bytes. */
struct itt_method_id {
    uint32_t method_id;
};

#if UINTPTR_MAX > UINT32_MAX
#define ITT_ASSERT_AT(type, field, at)                                                             \
    _Static_assert(offsetof(struct type, field) == (at), #type "." #field)
_Static_assert(sizeof(struct itt_line) == 8, "itt_line");
_Static_assert(sizeof(struct itt_method_load) == 64, "itt_method_load");
ITT_ASSERT_AT(itt_method_load, method_name, 8);
ITT_ASSERT_AT(itt_method_load, address, 16);
ITT_ASSERT_AT(itt_method_load, size, 24);
ITT_ASSERT_AT(itt_method_load, line_count, 28);
ITT_ASSERT_AT(itt_method_load, lines, 32);
ITT_ASSERT_AT(itt_method_load, class_name, 40);
ITT_ASSERT_AT(itt_method_load, source_file, 48);
ITT_ASSERT_AT(itt_method_load, module_name, 56);
_Static_assert(sizeof(struct itt_inline_load) == 56, "itt_inline_load");
ITT_ASSERT_AT(itt_inline_load, parent_method_id, 4);
ITT_ASSERT_AT(itt_inline_load, method_name, 8);
ITT_ASSERT_AT(itt_inline_load, address, 16);
ITT_ASSERT_AT(itt_inline_load, size, 24);
ITT_ASSERT_AT(itt_inline_load, lines, 32);
ITT_ASSERT_AT(itt_inline_load, class_name, 40);
ITT_ASSERT_AT(itt_inline_load, source_file, 48);
#undef ITT_ASSERT_AT
#endif

#endif
