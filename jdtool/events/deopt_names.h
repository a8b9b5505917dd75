/* Why compiled code was given up, in words. */
#ifndef JD_TOOL_DEOPT_NAMES_H
#define JD_TOOL_DEOPT_NAMES_H

#include "jdtool/objects/objects.h"

#include <stddef.h>

#define DEOPT_REASONS 32
#define DEOPT_FILES   8 /* libjvm.so of so many JDKs; others are asked each time */

/* Zero one to start; nothing is to be freed. */
struct deopt_names {
    struct deopt_file {
        uint32_t object;               /* its id */
        char names[DEOPT_REASONS][48]; /* the longest has 33 letters */
        bool asked[DEOPT_REASONS];
    } files[DEOPT_FILES];
    uint32_t count;
};

/*
 * "[unstable_if, reinterpret]" of an uncommon trap's request (struct deopt_probe_raw). The reasons'
 * numbers are another JDK's others: their names are read out of the libjvm.so that was probed, and
 * where it cannot be read (or NULL) it is "[reason 23, reinterpret]".
 */
void deopt_name(struct deopt_names *names, struct object *libjvm, int32_t request, char *out,
                size_t size);

#endif
