/* Machine code of a profile's functions as the front end's /asm/v1 wants it. */
#ifndef JD_TOOL_ASSEMBLY_H
#define JD_TOOL_ASSEMBLY_H

#include "jdtool/base/packed_output.h"
#include "jdtool/exports/code_places.h"

/* More than any method has; a request for more gets this much. */
#define ASSEMBLY_MAX ((uint64_t)1024 * 1024)

struct assembly_wanted {
    const struct module *module;
    uint64_t start; /* an address in the module, as the Firefox profile has it */
    uint64_t size;
    bool to_end; /* of the function, where that is known */
};

/* Writes the answer. NULL, or why there is none, in words. */
const char *assembly_write(const struct profile *profile, const struct code_places *codes,
                           const struct assembly_wanted *wanted, struct packed_output *output);

#endif
