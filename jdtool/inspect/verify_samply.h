/* The rules of samply's records (format/samply.h), for verify.c. */
#ifndef JD_TOOL_VERIFY_SAMPLY_H
#define JD_TOOL_VERIFY_SAMPLY_H

#include "jdtool/inspect/verify_report.h"
#include "jdtool/jitdump/samply_reader.h"

/* What the records of a group said, until the LOAD tells how much code there is. Start zeroed. */
struct samply_pending {
    uint64_t offset; /* of the first one in the file; 0: none */
    uint64_t end;    /* no offset into the code is above it */
    bool has_inlines;
    bool has_tier;
};

/* Reports the broken rules of one record. */
void samply_check(struct samply_pending *pending, const struct jitdump_reader *reader,
                  const struct jitdump_record_view *record, const struct verify_output *output);

/* The same once the group's LOAD is there. */
void samply_check_load(const struct samply_pending *pending, uint64_t code_size,
                       const struct verify_output *output);

#endif
