/* Names of C++ functions as people read them. */
#ifndef JD_TOOL_DEMANGLE_H
#define JD_TOOL_DEMANGLE_H

#include <stdbool.h>
#include <stddef.h>

#define DEMANGLE_INPUT_MAX 4096 /* longer names are left as they are */

/*
 * Puts the name without its parameters, as perf shows it ("G1Allocator::unsafe_max_tlab_alloc"),
 * into [out, out + room), cut where there is no more room. False: it is not a mangled one.
 */
bool demangle(const char *name, char *out, size_t room);

#endif
