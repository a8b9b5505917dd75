/*
 * What the JVM itself did, at a moment or from one to another: pauses, compilations,
 * deoptimisations. Marks go to the sinks beside the samples, on the same clock.
 */
#ifndef JD_TOOL_MARK_H
#define JD_TOOL_MARK_H

#include <stdbool.h>
#include <stdint.h>

enum mark_kind {
    /* From the request to stop until all threads go on. text: the operations that it was for;
     * number: ns until all threads stood */
    MARK_SAFEPOINT,
    MARK_OPERATION,    /* of the VM thread. text: its name; number: 1 while others run on */
    MARK_GC,           /* number: 1 of a full one, whoever asked for it */
    MARK_COMPILE,      /* text: "C1", "C2"; subject: the method; number: 1: it gave nothing */
    MARK_DEOPT,        /* text: reason and action; subject: method and line */
    MARK_THREAD_START, /* text: its name; number: Java's id */
    MARK_THREAD_STOP,
    MARK_PARK,
    MARK_CODE_CACHE, /* number: bytes of the code cache that hold code */
    MARK_JFR,        /* of the JVM's own recording. text: the event; subject: its fields */
    MARK_KINDS,
};

struct resolved_thread;

/* Strings live until whoever is given the mark returns, and may be NULL. */
struct resolved_mark {
    enum mark_kind kind;
    uint64_t from, until; /* the recording's clock; a moment: equal */
    bool is_open;         /* it did not end: `until` is where its thread or the recording does */
    const struct resolved_thread *thread; /* that told of it, never NULL */
    const char *text, *subject;
    uint64_t number;
};

/* "safepoint", "compile": what files call a kind. */
const char *mark_kind_name(enum mark_kind kind);

#endif
