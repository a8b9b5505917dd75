#include "jdtool/profile/code_addresses.h"

#include <errno.h>
#include <stdlib.h>

#define ALIGNMENT UINT64_C(64)

int code_addresses_make(const struct profile *profile, struct code_addresses *places)
{
    places->profile = profile;
    places->addresses = calloc((size_t)profile->code_count + 1, sizeof *places->addresses);
    places->ends = calloc((size_t)profile->module_count + 1, sizeof *places->ends);
    if (!places->addresses || !places->ends) {
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < profile->code_count; i++) {
        uint64_t *end = &places->ends[profile->codes[i]->module->id];
        places->addresses[i] = *end;
        *end += (profile->codes[i]->size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }
    return 0;
}

void code_addresses_free(struct code_addresses *places)
{
    free(places->addresses);
    free(places->ends);
    *places = (struct code_addresses){0};
}

const struct resolved_code *code_addresses_at(const struct code_addresses *places,
                                              const struct module *module, uint64_t address,
                                              uint64_t *offset)
{
    for (uint32_t i = 0; i < places->profile->code_count; i++) {
        const struct resolved_code *code = places->profile->codes[i];
        if (code->module == module && address >= places->addresses[i] &&
            address - places->addresses[i] < code->size) {
            *offset = address - places->addresses[i];
            return code;
        }
    }
    return NULL;
}

/* ---- Modules ---- */

#define PAGE UINT64_C(4096)

struct module_extent *module_extents(const struct profile *profile)
{
    struct module_extent *extents = calloc((size_t)profile->module_count + 1, sizeof *extents);
    for (uint32_t i = 0; extents && i < profile->location_count; i++) {
        const struct profile_location *location = &profile->locations[i];
        if (!location->module) {
            continue;
        }
        struct module_extent *extent = &extents[location->module->id];
        uint64_t page = location->address & ~(PAGE - 1);
        uint64_t limit = page > UINT64_MAX - PAGE ? UINT64_MAX : page + PAGE;
        uint64_t lowest = location->module->kind == MODULE_FILE ? 0 : page;
        if (extent->limit == 0 || lowest < extent->start) {
            extent->start = lowest;
        }
        extent->limit = limit > extent->limit ? limit : extent->limit;
        extent->has_lines |= profile->lines[location->first_line].line > 0;
        extent->has_inlined |= location->line_count > 1;
    }
    return extents;
}
