/*
 * Names interpreted frames: from the addresses that HotSpot's interpreter keeps in its frame, by
 * the table of methods.
 */
#ifndef JD_TOOL_INTERPRETER_H
#define JD_TOOL_INTERPRETER_H

#include "jdtool/jitdump/method_names.h"
#include "jdtool/unwind/unwind.h"

struct interpreted_frame {
    const struct method_detail *method;
    uint32_t line;  /* 0: unknown, or native */
    int64_t bci;    /* -1: unknown, or native */
    uint64_t until; /* so long the same frame runs that */
};

/*
 * What an UNWIND_INTERPRETED frame runs at that time. False: the table does not tell of its method,
 * or the frame contradicts it.
 */
bool interpreter_name(struct method_names *names, const struct unwind_frame *frame, uint64_t time,
                      struct interpreted_frame *out);

#endif
