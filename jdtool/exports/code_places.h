/*
 * Small addresses for a profile's generated code: all pieces of a JVM behind one another, from 0
 * on. Readers that keep addresses in 31 bits get these in the place of the code's own.
 */
#ifndef JD_TOOL_CODE_PLACES_H
#define JD_TOOL_CODE_PLACES_H

#include "jdtool/base/hash_map.h"
#include "jdtool/exports/profile.h"

struct code_place_entry {
    const struct resolved_code *code;
    uint64_t address;
};

struct code_places {
    struct code_place_entry *list; /* in the order of the profile's locations */
    uint32_t count, room;
    struct hash_map by_code;
    uint64_t *ends; /* by module: behind its last piece */
};

/* places is zeroed first; free it on failure, too. 0 or -ENOMEM. */
int code_places_make(const struct profile *profile, struct code_places *places);
void code_places_free(struct code_places *places);

/* Where a piece of the profile's code is; UINT64_MAX: it is none of them. */
uint64_t code_places_of(const struct code_places *places, const struct resolved_code *code);

/* The piece of a module's code at an address, and in *offset how far into it that is; NULL: none.
 */
const struct resolved_code *code_places_at(const struct code_places *places,
                                           const struct module *module, uint64_t address,
                                           uint64_t *offset);

#endif
