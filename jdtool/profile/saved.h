/* Writes a profile into a file of saved samples (below), while it is made. */
#ifndef JD_TOOL_SAVED_H
#define JD_TOOL_SAVED_H

#include "jdtool/profile/profile.h"

struct saved;

/* path is kept, not copied. 0 or a negative errno after a message. */
int saved_open(const char *path, struct saved **out);

/*
 * The profile, which keeps identities, as soon as there is one; then each sample and mark when the
 * profile has what it needs (profile_intern, profile_intern_thread), in the order of their coming.
 * 0 or -ENOMEM.
 */
int saved_begin(struct saved *saved, const struct profile *profile);
int saved_sample(struct saved *saved, const struct profile_sample *made,
                 const struct resolved_sample *sample);
int saved_mark(struct saved *saved, const struct resolved_mark *mark, uint32_t thread);

/* Completes the file and frees it. 0 or a negative errno after a message; it is then not there. */
int saved_close(struct saved *saved);

/* Frees it and leaves no file. NULL is fine. */
void saved_abort(struct saved *saved);

/* ---- The file ---- */

/*
 * The file of saved samples (jdtool inject --save): everything that the exports need of a
 * recording, its samples in their order and their frames with names. It is made while perf records,
 * so a profile can be exported, drawn and searched afterwards without the recording, which may not
 * have been kept, and without the files that ran, which may be on another machine.
 *
 * gzip around: the magic, then records up to SAVED_END. A record is a byte that says what it is,
 * then its fields: numbers as LEB128, texts as the number of a SAVED_TEXT (0: NULL). What a record
 * refers to stands before it. Things are numbered from 0 in the order of their records; a "ref" is
 * such a number + 1, 0 is none.
 */

#define SAVED_MAGIC      "jdsaved1"
#define SAVED_MAGIC_SIZE 8

/* Bounds that a reader sets; what a recording of any use has is far below. */
#define SAVED_TEXT_MAX   (UINT32_C(1) << 20) /* bytes */
#define SAVED_THINGS_MAX (UINT32_C(1) << 26) /* of one sort, samples apart */
#define SAVED_LINES_MAX  1024                /* of one location */
#define SAVED_DEPTH_MAX  (UINT32_C(1) << 16) /* frames of a stack */

enum saved_record {
    SAVED_END = 0,      /* what is known of the recording as a whole: texts hostname, os release,
                           arch, cpu, command line, perf version; numbers cpu count, has_wall, wall
                           offset (zigzag), samples */
    SAVED_TEXT = 1,     /* size, bytes; the first one is number 1 */
    SAVED_EVENT = 2,    /* name, unit, frequency, period; all before the first sample */
    SAVED_MODULE = 3,   /* kind, path, pid, size of the build-id, its bytes */
    SAVED_DUMP = 4,     /* module, path: what a JVM's module was made of */
    SAVED_FUNCTION = 5, /* kind, name (0: only the module is known), class, method, descriptor,
                           file, first line, module ref, address, size */
    SAVED_CODE = 6, /* module, address, size, module address, from, symbol, function ref, blob */
    SAVED_LOCATION = 7,  /* module ref, address, code ref, is_caller, count; of each line, innermost
                            first: kind, tier << 1 | is_osr, line, function */
    SAVED_NODE = 8,      /* parent ref, location */
    SAVED_THREAD = 9,    /* pid, tid, comm, process name */
    SAVED_SAMPLE = 10,   /* time since the sample before (zigzag), event, thread, node ref, weight,
                            cpu, end */
    SAVED_MARK = 11,     /* kind, beginning behind the time of the sample before (zigzag), duration,
                            is_open, number, thread, text, subject */
    SAVED_IDENTITY = 12, /* a SAVED_THREAD's fields, of a thread that had a virtual thread or
                           labels; its id (0: none), its name, lines of labels */
    SAVED_PROGRAM = 14,  /* pid, text: what that process' JVM runs, told before its next sample;
                            text 0: that is not known any more */
    SAVED_VERDICT = 13,  /* text: the scorecard's, in words; at most one, before the end */
};

#endif
