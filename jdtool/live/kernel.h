/* What the kernel allows, as it tells in /proc; in JDPERF_PROC for a test. */
#ifndef JD_TOOL_LIVE_KERNEL_H
#define JD_TOOL_LIVE_KERNEL_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* The path of a file there, "self/status", in `path` of PATH_MAX bytes. */
void kernel_path(const char *name, char *path);

/* The beginning of such a file, NUL-terminated. False, and "": it cannot be read. */
bool kernel_read(const char *name, char *text, size_t size);

/* The setting kernel.NAME; `otherwise`: there is none. */
long kernel_number(const char *name, long otherwise);

/* Whether a seccomp filter is on for us, as in containers. */
bool kernel_filters(void);

/* Whether we are in a time namespace (time_namespaces(7)) whose CLOCK_MONOTONIC is not that of the
 * kernel's samples. */
bool kernel_shifts_clock(void);

/* 0, or there a negative errno after a message. */
int kernel_check_clock(void);

#endif
