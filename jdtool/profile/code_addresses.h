/*
 * Small addresses for a profile's generated code: all blobs of a JVM behind one another, from 0
 * on. Readers that keep addresses in 31 bits get these in the place of the code's own.
 */
#ifndef JD_TOOL_CODE_ADDRESSES_H
#define JD_TOOL_CODE_ADDRESSES_H

#include "jdtool/base/hash_map.h"
#include "jdtool/profile/profile.h"

struct code_address_entry {
    const struct resolved_code *code;
    uint64_t address;
};

struct code_addresses {
    struct code_address_entry *list; /* in the order of the profile's locations */
    uint32_t count, room;
    struct hash_map by_code;
    uint64_t *ends; /* by module: behind its last blob */
};

/* places is zeroed first; free it on failure, too. 0 or -ENOMEM. */
int code_addresses_make(const struct profile *profile, struct code_addresses *places);
void code_addresses_free(struct code_addresses *places);

/* Where a blob of the profile's code is; UINT64_MAX: it is none of them. */
uint64_t code_addresses_of(const struct code_addresses *places, const struct resolved_code *code);

/* The blob of a module's code at an address, and in *offset how far into it that is; NULL: none.
 */
const struct resolved_code *code_addresses_at(const struct code_addresses *places,
                                              const struct module *module, uint64_t address,
                                              uint64_t *offset);

#endif
