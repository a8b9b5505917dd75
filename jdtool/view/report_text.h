/*
 * A profile as a table in the terminal: the methods by the time they took themselves, with the
 * time of what they called, a line of source and how they ran; or source lines, threads, the
 * callers or the callees of a method.
 */
#ifndef JD_TOOL_REPORT_TEXT_H
#define JD_TOOL_REPORT_TEXT_H

#include "jdtool/base/packed_output.h"
#include "jdtool/profile/profile.h"

enum report_rows {
    REPORT_METHODS,
    REPORT_LINES,
    REPORT_THREADS,
    REPORT_CALLERS, /* of `method`, as a tree */
    REPORT_CALLEES, /* the same */
};

struct report_look {
    enum report_rows rows;
    const char *method; /* for callers and callees */
    uint32_t width;     /* columns of the terminal */
    uint32_t limit;     /* rows an event; 0: all */
    bool colors;
};

/* Writes a table for each event of the profile. 0, -ENOMEM without a message, or -ENOENT after one:
 * no method has that name. */
int report_text_write(const struct profile *profile, const struct report_look *look,
                      struct packed_output *output);

#endif
