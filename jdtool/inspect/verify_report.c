#include "jdtool/inspect/verify_report.h"

#include "jdtool/base/text.h"

#include <stdarg.h>
#include <stdio.h>

void verify_broken(const struct verify_output *output, enum verify_rule rule, uint64_t offset,
                   const char *format, ...)
{
    char what[320];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof(what), format, args);
    va_end(args);
    output->report(output->context, rule, offset, what);
}

void verify_name(const struct verify_output *output, uint64_t offset, const char *what,
                 const char *name)
{
    if (!*name) {
        verify_broken(output, RULE_NAME, offset, "%s has no name", what);
    } else if (!text_is_utf8(name)) {
        verify_broken(output, RULE_NAME, offset, "%s has a name that is not UTF-8", what);
    }
}

const char *verify_rule_text(enum verify_rule rule)
{
    static const char *const texts[RULE_COUNT] = {
        [RULE_HEADER] = "the header is as readers want it",
        [RULE_TORN] = "the file ends at a record's end",
        [RULE_RECORD] = "a record's sizes fit together",
        [RULE_ID] = "a record is of a known kind",
        [RULE_CLOSE] = "CLOSE is the last record, and a bare one",
        [RULE_CLOSE_STAMP] = "CLOSE is stamped later than all code",
        [RULE_GROUP] = "what describes code stands before its LOAD",
        [RULE_ADDRESS] = "a DEBUG_INFO is for the LOAD behind it",
        [RULE_STAMP] = "stamps do not go backwards in a group",
        [RULE_CODE_INDEX] = "each LOAD has a code index of its own",
        [RULE_PID] = "all records are of one process",
        [RULE_NAME] = "names are not empty, and UTF-8",
        [RULE_EXCESS] = "nothing stands behind the code of a LOAD",
        [RULE_MOVE] = "a MOVE moves existing code",
        [RULE_ROW_ORDER] = "rows are sorted",
        [RULE_ROW_INSIDE] = "rows are inside the code",
        [RULE_ROW_LINE] = "lines count from 1",
        [RULE_UNWINDING] = "unwinding information is as perf wants it",
        [RULE_TRAILER] = "a trailer can be decoded",
        [RULE_TRAILER_NAMES] = "a trailer refers to what is defined",
        [RULE_TRAILER_TREE] = "an inline tree is depth-first, its ranges inside the code",
        [RULE_TRAILER_FACTS] = "facts about code are possible",
        [RULE_SAMPLY] = "samply's records keep their rules",
    };
    return texts[rule];
}
