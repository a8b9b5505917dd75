/* Which perf will read the result. */
#ifndef JD_TOOL_PERF_VERSION_H
#define JD_TOOL_PERF_VERSION_H

/* From this version on perf itself shows inlined methods in all call chains. */
#define PERF_EXPANDS_INLINED 7

/* The first number of 'perf --version'; 0 when there is no perf here. */
int perf_major_version(void);

#endif
