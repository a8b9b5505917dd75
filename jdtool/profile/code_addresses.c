#include "jdtool/profile/code_addresses.h"

#include "jdtool/base/array.h"

#include <errno.h>

#define ALIGNMENT UINT64_C(64)

uint64_t code_addresses_of(const struct code_addresses *places, const struct resolved_code *code)
{
    struct hash_map_cursor cursor = hash_map_start(&places->by_code, (uintptr_t)code);
    uint32_t at;
    while ((at = hash_map_next(&places->by_code, &cursor)) != HASH_MAP_NONE) {
        if (places->list[at].code == code) {
            return places->list[at].address;
        }
    }
    return UINT64_MAX;
}

int code_addresses_make(const struct profile *profile, struct code_addresses *places)
{
    *places = (struct code_addresses){0};
    places->ends = calloc((size_t)profile->module_count + 1, sizeof *places->ends);
    if (!places->ends) {
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < profile->location_count; i++) {
        const struct resolved_code *code = profile->locations[i].code;
        const struct module *module = profile->locations[i].module;
        if (!code || !module || code_addresses_of(places, code) != UINT64_MAX) {
            continue;
        }
        if (array_reserve(&places->list, places->count, &places->room, sizeof *places->list) ||
            hash_map_add(&places->by_code, (uintptr_t)code, places->count)) {
            return -ENOMEM;
        }
        uint64_t *end = &places->ends[module->id];
        places->list[places->count++] = (struct code_address_entry){code, *end};
        *end += (code->size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }
    return 0;
}

void code_addresses_free(struct code_addresses *places)
{
    free(places->list);
    free(places->ends);
    hash_map_free(&places->by_code);
    *places = (struct code_addresses){0};
}

const struct resolved_code *code_addresses_at(const struct code_addresses *places,
                                              const struct module *module, uint64_t address,
                                              uint64_t *offset)
{
    for (uint32_t i = 0; i < places->count; i++) {
        const struct code_address_entry *entry = &places->list[i];
        if (entry->code->module == module && address >= entry->address &&
            address - entry->address < entry->code->size) {
            *offset = address - entry->address;
            return entry->code;
        }
    }
    return NULL;
}
