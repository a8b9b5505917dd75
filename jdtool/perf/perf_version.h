/* Which perf will read the result. */
#ifndef JD_TOOL_PERF_VERSION_H
#define JD_TOOL_PERF_VERSION_H

#include <stdbool.h>

/* From this version on perf itself shows inlined methods in all call chains. */
#define PERF_EXPANDS_INLINED 7

/* The first number of 'perf --version'; 0 when there is no perf here. */
int perf_major_version(void);

/*
 * Whether perf walks stack copies by libunwind; builds without it have libdw do it, which takes
 * call-frame information in another form (jdtool/unwind/unwind_dump.c). True when there is no perf
 * here that tells.
 */
bool perf_has_libunwind(void);

#endif
