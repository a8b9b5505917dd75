/*
 * Tells whether a native address is where threads begin: in start_thread, clone, _start and the
 * like. A stack that ends anywhere else was cut short.
 */
#ifndef JD_TOOL_THREAD_ROOT_H
#define JD_TOOL_THREAD_ROOT_H

#include "jdtool/perf/processes.h"

struct thread_roots;

struct thread_roots *thread_roots_new(void); /* NULL: no memory */
void thread_roots_free(struct thread_roots *roots);

/* An address in a mapping. Files that are gone, or have no symbols there, are judged by name. */
bool thread_roots_has(struct thread_roots *roots, const struct mapping *mapping, uint64_t address);

#endif
