/* The instructions of a piece of generated code around those that samples hit. */
#ifndef JD_TOOL_REGION_CODE_H
#define JD_TOOL_REGION_CODE_H

#include "jdtool/base/json_writer.h"
#include "jdtool/exports/profile.h"

/* What samples hit at one address. */
struct region_hit {
    uint32_t offset;        /* in the code */
    const uint64_t *counts; /* samples by event, then weights by event */
};

/*
 * Writes the keys "stacks" and "instructions" of the region's object; where the dump has no bytes
 * of the code, neither. Hits stand in the order of their offsets. 0 or -ENOMEM.
 */
int region_code_put(struct json_writer *json, const struct recording *recording,
                    const struct resolved_code *code, const struct region_hit *hits,
                    uint32_t hit_count);

#endif
