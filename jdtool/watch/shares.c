#include "jdtool/watch/shares.h"

static size_t count_of(const uid_t *users, size_t count, uid_t user)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        found += users[i] == user;
    }
    return found;
}

size_t shares_place_for(const uid_t *users, size_t count, uid_t newcomer)
{
    size_t place = NO_PLACE;
    size_t most = count_of(users, count, newcomer) + 1;
    for (size_t i = 0; i < count; i++) {
        size_t has = count_of(users, count, users[i]);
        if (has > most || (has == most && place != NO_PLACE)) {
            most = has;
            place = i;
        }
    }
    return place;
}

uint32_t shares_of_processor(unsigned each, unsigned together, size_t jvms_of_user)
{
    uint64_t limit = (uint64_t)each * 100;
    uint64_t shared = jvms_of_user ? (uint64_t)together * 100 / jvms_of_user : 0;
    if (together && (!limit || shared < limit)) {
        limit = shared ? shared : 1;
    }
    return limit < UINT32_MAX ? (uint32_t)limit : UINT32_MAX;
}

uint32_t shares_thinning(uint32_t one_in, uint64_t cost, uint64_t limit)
{
    if (!limit) {
        return 1;
    }
    while (cost > limit && one_in < THINNING_MAX) {
        one_in *= 2;
        cost /= 2;
    }
    return one_in > 1 && cost < limit / 3 ? one_in / 2 : one_in;
}
