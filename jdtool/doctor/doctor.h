/*
 * The doctor: what works here, and what to do about the rest. A check tells one line of what it
 * found; poor means that profiles suffer, bad that none can be taken, and both are given the
 * remedy as well.
 */
#ifndef JD_TOOL_LIVE_DOCTOR_H
#define JD_TOOL_LIVE_DOCTOR_H

#include "jdtool/live/wait.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct doctor {
    FILE *out;
    const char *check; /* the name of the one at work */
    bool bad;          /* one of them was */
    const char *lacks; /* why processors cannot be sampled here; NULL: they can */
    struct waiting *waiting;
};

/* What may come from others is among the arguments: control characters do not reach the terminal.
 */
void doctor_good(const struct doctor *doctor, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void doctor_poor(const struct doctor *doctor, const char *remedy, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void doctor_bad(struct doctor *doctor, const char *remedy, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Judges what is left of the disk that `where` is on. */
void doctor_tell_space(struct doctor *doctor, uint64_t bytes, const char *where);

/* Judges what perf's cache in `where` takes. */
void doctor_tell_cache(const struct doctor *doctor, uint64_t bytes, const char *where);

/* Judges perf by its first words: "perf version 6.1.192". */
void doctor_tell_perf(const struct doctor *doctor, const char *words);

/* Judges a JDK by its major version, 0: it does not say. */
void doctor_tell_jdk(const struct doctor *doctor, int java);

/* All checks of this machine, or of the JVM that `word` means. */
void doctor_examine_machine(struct doctor *doctor);
void doctor_examine_jvm(struct doctor *doctor, const char *word);

#endif
