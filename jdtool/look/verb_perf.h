/* What of jdperf's report and annotate perf does (--perf). */
#ifndef JD_TOOL_VERB_PERF_H
#define JD_TOOL_VERB_PERF_H

#include "jdtool/look/look.h"

/* The verb's whole command line, NULL behind it; it is rearranged. An exit status. */
int report_by_perf(const struct verb *verb, char **argv);

/* The command line is read, the profile is not open yet. An exit status. */
int annotate_by_perf(struct look *look, const char *given, const char *method);

#endif
