/* The rules of DEBUG_INFO: rows, trailer, and how they fit the LOAD behind; for verify.c. */
#ifndef JD_TOOL_VERIFY_DEBUG_H
#define JD_TOOL_VERIFY_DEBUG_H

#include "jdtool/inspect/verify_report.h"
#include "jdtool/jitdump/trailer.h"

/* What a DEBUG_INFO says, kept until its LOAD tells how much code there is. Start zeroed. */
struct debug_pending {
    uint64_t offset; /* in the file; 0: none waits */
    uint64_t address;
    uint64_t lowest; /* of its rows; lowest > highest: it has none */
    uint64_t highest;
    uint64_t ranges_end; /* bytes that the trailer's ranges cover */
    int64_t facts[JITDUMP_CODE_FRAME_COMPLETE + 1];
};

/* What goes along from record to record. */
struct debug_rules {
    const struct verify_output *output;
    const struct jitdump_reader *reader;
    struct trailer_names *names;
    struct trailer trailer;
};

/* Reports the broken rules of one record, which waits for its LOAD from then on. */
void debug_check(struct debug_rules *rules, struct debug_pending *pending,
                 const struct jitdump_record_view *record);

/* The rest once the LOAD is there; none waits afterwards. */
void debug_check_load(const struct debug_rules *rules, struct debug_pending *pending,
                      const struct jitdump_record_view *load);

#endif
