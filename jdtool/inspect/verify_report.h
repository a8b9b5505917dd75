/* How the parts of verify tell of a broken rule. */
#ifndef JD_TOOL_VERIFY_REPORT_H
#define JD_TOOL_VERIFY_REPORT_H

#include "jdtool/inspect/verify.h"

/* Where findings go. */
struct verify_output {
    verify_report report;
    void *context;
};

/* Reports that a rule is broken by the record at an offset. */
void verify_broken(const struct verify_output *output, enum verify_rule rule, uint64_t offset,
                   const char *format, ...) __attribute__((format(printf, 4, 5)));

/* RULE_NAME for a name of `what`. */
void verify_name(const struct verify_output *output, uint64_t offset, const char *what,
                 const char *name);

#endif
