/* Which part of each module the locations of a profile lie in. */
#ifndef JD_TOOL_MODULE_EXTENTS_H
#define JD_TOOL_MODULE_EXTENTS_H

#include "jdtool/profile/profile.h"

struct module_extent {
    /* Whole pages; limit 0: no location lies in it. A file begins at 0, the kernel and a JVM's
     * code, which have addresses of their own, where the lowest location does. */
    uint64_t start, limit;
    bool has_lines, has_inlined; /* some location there has a line, an inlined method */
};

/* By module id; the caller frees. NULL: no memory. */
struct module_extent *module_extents(const struct profile *profile);

#endif
