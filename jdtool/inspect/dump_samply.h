/* samply's records in the listing of jdtool dump. */
#ifndef JD_TOOL_DUMP_SAMPLY_H
#define JD_TOOL_DUMP_SAMPLY_H

#include "jdtool/jitdump/samply_reader.h"

/* Prints what stands behind the record's own line start; brief: one line and no more. */
void print_samply_record(const struct jitdump_reader *reader,
                         const struct jitdump_record_view *record, bool brief);

#endif
