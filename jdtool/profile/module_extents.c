#include "jdtool/profile/module_extents.h"

#include <stdlib.h>

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
