/*
 * Small addresses for a profile's generated code: all blobs of a JVM behind one another, from 0
 * on. Readers that keep addresses in 31 bits get these in the place of the code's own.
 */
#ifndef JD_TOOL_CODE_ADDRESSES_H
#define JD_TOOL_CODE_ADDRESSES_H

#include "jdtool/profile/profile.h"

struct code_addresses {
    const struct profile *profile;
    uint64_t *addresses; /* by number of the code */
    uint64_t *ends;      /* by module: behind its last blob */
};

/* places is zeroed first; free it on failure, too. 0 or -ENOMEM. */
int code_addresses_make(const struct profile *profile, struct code_addresses *places);
void code_addresses_free(struct code_addresses *places);

/* The blob of a module's code at an address, and in *offset how far into it that is; NULL: none.
 */
const struct resolved_code *code_addresses_at(const struct code_addresses *places,
                                              const struct module *module, uint64_t address,
                                              uint64_t *offset);

/* ---- Modules ---- */

/* Which part of each module the locations of a profile lie in. */

struct module_extent {
    /* Whole pages; limit 0: no location lies in it. A file begins at 0, the kernel and a JVM's
     * code, which have addresses of their own, where the lowest location does. */
    uint64_t start, limit;
    bool has_lines, has_inlined; /* some location there has a line, an inlined method */
};

/* By module id; the caller frees. NULL: no memory. */
struct module_extent *module_extents(const struct profile *profile);

#endif
