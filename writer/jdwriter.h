/*
 * libjdwriter: for programs that generate code at run time and want Linux perf to see it.
 *
 *     struct jdwriter *writer;
 *     jdwriter_open(&(struct jdwriter_options){.outputs = JDWRITER_JITDUMP}, &writer);
 *     ...
 *     jdwriter_load(writer, &(struct jdwriter_code){
 *         .name = "my_function", .address = code, .size = size, .bytes = code});
 *
 * and then
 *
 *     perf record -k mono PROGRAM
 *     perf inject --jit -i perf.data -o perf.jit.data
 *     perf report -i perf.jit.data          (or annotate)
 *
 * All functions but open and close may be called from any thread at any time, and return 0 or a
 * negative errno. Nothing here ends the process, whatever the disk does: a writer that fails in
 * mid-run says so once on stderr ("jdwriter: failed to ..."), ends its files at the last whole
 * record, and answers -EPIPE from then on. In a fork of the process it does nothing at all.
 *
 * Each record reaches the kernel before the call returns, so that a process that is killed loses
 * none. Report code before it first runs, and its end before its memory is used again.
 */
#ifndef JDWRITER_H
#define JDWRITER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct jdwriter;

enum jdwriter_output {
    /* jit-PID.dump, for perf inject: names, lines, machine code, and which code was when at a
     * place. Stamped with CLOCK_MONOTONIC, which is what -k mono asks perf for. */
    JDWRITER_JITDUMP = 1 << 0,
    /* /tmp/perf-PID.map, for perf top, bcc and bpftrace: names alone, and only those of the last
     * code at a place. */
    JDWRITER_MAP = 1 << 1,
};

struct jdwriter_options {
    unsigned outputs; /* JDWRITER_JITDUMP, JDWRITER_MAP or both */
    /* Of the dump, which has to exist; NULL: the current one. Where it has a dump of this process's
     * number already, ours goes to its subdirectory session-2, session-3… */
    const char *directory;
    uint64_t max_bytes; /* end the dump before it grows beyond this; 0: no limit */
};

/* Code from `offset` up to the next row's comes from this line. */
struct jdwriter_row {
    uint32_t offset;  /* from the code's start, in bytes, ascending */
    uint32_t line;    /* 1 and up */
    const char *file; /* NULL: as in the row before */
};

/* All pointers are the caller's and are not used after the call. */
struct jdwriter_code {
    const char *name; /* the symbol: UTF-8 on one line */
    const void *address;
    size_t size;       /* bytes */
    const void *bytes; /* where the code can be read now, often `address`; NULL: leave it out, and
                        * there will be nothing to annotate */
    const struct jdwriter_row *rows; /* code before the first one counts to it */
    size_t row_count;
};

/* Creates the files, readable by their owner alone. On success *writer is to be closed. */
int jdwriter_open(const struct jdwriter_options *options, struct jdwriter **writer);

/* Code is there now. -EINVAL: no name, or rows that do not ascend, end outside or lack a file. */
int jdwriter_load(struct jdwriter *writer, const struct jdwriter_code *code);

/* Code that was reported at `from` is now at `to`. -ENOENT: none was. */
int jdwriter_move(struct jdwriter *writer, const void *from, const void *to, size_t size);

/* The code that starts at the address is gone. Unknown addresses are fine. */
int jdwriter_unload(struct jdwriter *writer, const void *address);

/* The dump's path, or NULL; lives as long as the writer. */
const char *jdwriter_dump_path(const struct jdwriter *writer);

/* Ends and closes the files; must be the last call. NULL is fine. */
void jdwriter_close(struct jdwriter *writer);

#ifdef __cplusplus
}
#endif

#endif
