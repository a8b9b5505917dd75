/*
 * What was there before the kernel told us of anything: a process' threads with their names, what
 * it has mapped and executes, and the kernel itself, as records like those that the kernel would
 * have written, at time 0.
 */
#ifndef JD_TOOL_SAMPLER_PRESENT_H
#define JD_TOOL_SAMPLER_PRESENT_H

#include "jdtool/sampler/perf_pipe.h"

#include <stdbool.h>
#include <sys/types.h>

/* Bytes that follow each record of the kernel's: pid, tid, time, processor, id (sample_id_all). */
#define PRESENT_TRAILER 32

/* By the first symbol of /proc/kallsyms; nothing where addresses are hidden. */
void present_kernel(struct perf_pipe *pipe);

/* What the files that a process has mapped are told by. */
enum present_by {
    PRESENT_BY_BUILD_ID, /* they are opened for it; where they have none, by device and inode */
    PRESENT_BY_INODE,    /* and device */
    PRESENT_BY_PATH,     /* alone: nobody opens what no sample is in */
};

/* Nothing of a process that has ended. Whether a thread of it may carry virtual ones. */
bool present_process(struct perf_pipe *pipe, pid_t process, enum present_by by);

/* The carriers of virtual threads are workers of a ForkJoinPool, by default of the JVM's first one
 * (java.lang.VirtualThread, createDefaultScheduler). Others may have one, too. Since JDK 26 the
 * name's middle is left out (os::set_native_thread_name). */
bool present_may_carry(const char *comm);

/* It is sampled no longer: its threads, as if they had ended at that time. */
void present_no_more(struct perf_pipe *pipe, pid_t process, uint64_t time);

/* A whole MMAP2 record, which tells a file by device and inode: by its build-id instead, in place,
 * as long as the process lives and the file lies where it was mapped from. */
void present_build_id(uint8_t *record);

/* All processes that there are, with build-ids. */
void present_all(struct perf_pipe *pipe);

#endif
