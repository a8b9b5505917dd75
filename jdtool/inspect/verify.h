/*
 * The rules of a sound dump: those of the jitdump specification, of the readers that have to live
 * with it, and of our trailer (format/jitdump.h).
 */
#ifndef JD_TOOL_VERIFY_H
#define JD_TOOL_VERIFY_H

#include "jdtool/jitdump/jitdump_reader.h"

enum verify_rule {
    RULE_HEADER,        /* 40 bytes, a machine, no flag that is not defined */
    RULE_TORN,          /* the file ends at a record's end */
    RULE_RECORD,        /* a record's sizes fit together, and its name ends */
    RULE_ID,            /* the record's kind is known */
    RULE_CLOSE,         /* nothing behind CLOSE, which is a bare prefix */
    RULE_CLOSE_STAMP,   /* CLOSE is later than all code; samply ends it there */
    RULE_GROUP,         /* DEBUG_INFO, UNWINDING_INFO and the like stand before their LOAD */
    RULE_ADDRESS,       /* a DEBUG_INFO is for the address of the LOAD behind it */
    RULE_STAMP,         /* stamps do not go backwards in a group, nor before the header's */
    RULE_CODE_INDEX,    /* every LOAD has an index of its own */
    RULE_PID,           /* all records are of the header's process */
    RULE_NAME,          /* names are not empty, and UTF-8 */
    RULE_EXCESS,        /* nothing stands behind the code of a LOAD */
    RULE_MOVE,          /* a MOVE moves code that is there, and its size stays */
    RULE_ROW_ORDER,     /* rows are sorted by address */
    RULE_ROW_INSIDE,    /* rows are inside the code or at its end */
    RULE_ROW_LINE,      /* lines count from 1 */
    RULE_UNWINDING,     /* perf needs a header table, and a mapped size of 0 or the data's */
    RULE_TRAILER,       /* the trailer decodes */
    RULE_TRAILER_NAMES, /* it refers to methods and files that are defined */
    RULE_TRAILER_TREE,  /* nodes depth-first, ranges not empty and inside the code */
    RULE_TRAILER_FACTS, /* known kinds and tiers, offsets inside the code */
    RULE_SAMPLY,        /* samply's records: lists, depths, ranges, padding */
    RULE_COUNT
};

/* Gets a broken rule: the record's offset in the file, and what is wrong, without a newline. */
typedef void (*verify_report)(void *context, enum verify_rule rule, uint64_t offset,
                              const char *what);

/*
 * Reads from the reader's place to the end and reports each broken rule. What stands behind bytes
 * that cannot be a record is not looked at. 0, or -ENOMEM.
 */
int verify_dump(struct jitdump_reader *reader, verify_report report, void *context);

/* The rule in a few words. */
const char *verify_rule_text(enum verify_rule rule);

#endif
