/*
 * The code that a dump tells of, piece by piece as it grows, for the tables of the program that
 * walks: what the JVM says of its frame at once, the call-frame rows of a piece when they are asked
 * for. Names, lines and inline trees are passed over.
 */
#ifndef JD_TOOL_CODE_FEED_H
#define JD_TOOL_CODE_FEED_H

#include "jdtool/jitdump/jitdump_reader.h"
#include "jdtool/unwind/code_frames.h"

/* One piece of code, and where the file has it. */
struct fed_code {
    uint64_t address, size;
    uint64_t load_offset;
    int64_t verified_entry, osr_entry; /* -1: unknown or none */
    struct blob_frames frames;         /* the facts */
};

struct code_feed {
    struct jitdump_reader *reader; /* whoever has the feed refreshes it, and has it rest */
    uint32_t entry_frame;          /* that of Continuation.enterSpecial; 0: it has not come yet */
    int64_t frozen[JITDUMP_CODE_FROZEN_COUNT]; /* JITDUMP_CODE_FROZEN_FIRST and on; -1: not told */

    /* The last DEBUG_INFO, which stands in front of its LOAD. */
    uint64_t address;
    int64_t facts[JITDUMP_CODE_KEYS];
};

/* Takes the file over, on failure too. 0 or a negative errno after a message. */
int code_feed_open(struct code_feed *feed, int fd, const char *name);
void code_feed_close(struct code_feed *feed); /* one that is not open is fine */

/* The next piece. False: there is no more, for now. */
bool code_feed_next(struct code_feed *feed, struct fed_code *code);

/* Works its rows out, to be freed with frames_free; none: it has none. */
void code_feed_rows(struct code_feed *feed, struct fed_code *code);

#endif
