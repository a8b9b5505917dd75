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
