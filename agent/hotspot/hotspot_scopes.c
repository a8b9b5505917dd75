/*
 * Which frames stand behind each place of an nmethod
 *
 * An nmethod describes the places of its code by a PcDesc each (code/pcDesc.hpp), which leads to a
 * row of scopes, from the innermost frame to the compiled method:
 *
 *   sender    where the next scope starts; 0: there is none
 *   method    its number in the nmethod's metadata, from 1 on
 *   bci + 1
 *
 * each an UNSIGNED5 number (utilities/unsigned5.hpp). PcDescs without a scope say nothing.
 *
 *   PcDescs   [pc 0x10 |o]   [pc 0x24 |o]   [pc 0x31 |o]
 *                       \              |              /
 *   scopes               c -> b -> a <- b'  <--------      a: the compiled method
 *
 * Neighbours share their outer scopes.
 */
#include "agent/hotspot/hotspot_fields.h"
#include "agent/hotspot/unsigned5.h"
#include "writer/array.h"

#include <stdlib.h>

/* Larger nmethods than any there is room for in a code cache's heap. */
#define DATA_MAX ((size_t)64 << 20)

/* So many nmethods have to be as JVMTI tells them before it is no longer asked. */
#define AGREED_ENOUGH 16

void hotspot_scopes_free(struct hotspot_scopes *scopes)
{
    free(scopes->copy);
    *scopes = (struct hotspot_scopes){0};
}

bool hotspot_scopes_at(const struct hotspot_scopes *scopes, uint32_t number,
                       struct hotspot_scope *scope)
{
    const struct hotspot_nmethod *nmethod = scopes->nmethod;
    const uint8_t *data = (const uint8_t *)scopes->data + nmethod->scopes_at;
    const uint8_t *end = (const uint8_t *)scopes->data + nmethod->data_size;
    const unsigned excluded = scopes->excluded;
    uint32_t method = 0;
    uint32_t bci = 0;
    if (number >= (size_t)(end - data)) {
        return false;
    }
    const uint8_t *at = data + number;
    if (!unsigned5_get(&at, end, excluded, &scope->sender) ||
        !unsigned5_get(&at, end, excluded, &method) || !unsigned5_get(&at, end, excluded, &bci) ||
        method == 0 || method > nmethod->metadata_count) {
        return false;
    }
    memcpy(&scope->method, scopes->metadata + (method - 1) * sizeof(uint64_t), sizeof(uint64_t));
    scope->bci = (int32_t)(bci - 1);
    return true;
}

bool hotspot_scopes_next(struct hotspot_scopes *scopes, int32_t *end, uint32_t *scope)
{
    enum { BARE_MAX = 2 }; /* one stands before all others and one behind them */
    const struct hotspot *hotspot = scopes->hotspot;
    int32_t number = 0;
    while (number == 0 && hotspot->layout.pc <= scopes->end - scopes->at) {
        const char *pc = scopes->data + scopes->at;
        memcpy(end, pc + hotspot->layout.places[PC_OFFSET].offset, sizeof(*end));
        memcpy(&number, pc + hotspot->layout.places[PC_SCOPE].offset, sizeof(number));
        scopes->at += hotspot->layout.pc;
        if (number == 0 && ++scopes->bare > BARE_MAX) {
            return false;
        }
    }
    *scope = (uint32_t)number;
    return number >= 0;
}

/* Finds what is to be read: where it is, once it has been believed, or else a copy. False: not to
 * be had, or no memory. */
static bool find_data(struct hotspot_nearby *nearby, struct hotspot_scopes *scopes)
{
    const struct hotspot *hotspot = scopes->hotspot;
    const struct hotspot_nmethod *nmethod = scopes->nmethod;
    const size_t metadata_size = nmethod->metadata_count * sizeof(uint64_t);
    if (scopes->believed && hotspot_nearby_in_place(nearby)) {
        scopes->data = hotspot_view(hotspot, nearby, nmethod->data, nmethod->data_size);
        scopes->metadata = hotspot_view(hotspot, nearby, nmethod->metadata, metadata_size);
        return scopes->data && scopes->metadata;
    }
    const size_t size = nmethod->data_size + metadata_size;
    if (!ARRAY_RESERVE(scopes->copy, scopes->copy_room, size)) {
        return false;
    }
    const struct memory_piece pieces[] = {
        {nmethod->data, scopes->copy, nmethod->data_size},
        {nmethod->metadata, scopes->copy + nmethod->data_size, metadata_size},
    };
    scopes->data = scopes->copy;
    scopes->metadata = scopes->copy + nmethod->data_size;
    return memory_read_pieces(hotspot->memory, pieces, 2);
}

void hotspot_scopes_broken(struct hotspot *hotspot)
{
    hotspot_distrust(hotspot, &hotspot->scopes,
                     "scopes of inlined methods; code inlined from a class that is redefined may "
                     "get the lines of its other version");
}

/* Whether it is a field of 32 bits of a PcDesc. */
static bool is_int_of_pc(const struct hotspot *hotspot, enum field field)
{
    const struct place *place = &hotspot->layout.places[field];
    return place->known && place->width == sizeof(int32_t) && place->offset <= hotspot->layout.pc &&
           hotspot->layout.pc - place->offset >= place->width;
}

bool hotspot_knows_scopes(const struct hotspot *hotspot, const struct hotspot_nmethod *nmethod)
{
    return hotspot && nmethod->data && nmethod->method &&
           atomic_load(&hotspot->scopes) != TRUST_BROKEN && is_int_of_pc(hotspot, PC_OFFSET) &&
           is_int_of_pc(hotspot, PC_SCOPE);
}

bool hotspot_scopes_begin(struct hotspot *hotspot, struct hotspot_nearby *nearby,
                          const struct hotspot_nmethod *nmethod, struct hotspot_scopes *scopes)
{
    if (!hotspot_knows_scopes(hotspot, nmethod) || nmethod->data_size > DATA_MAX ||
        nmethod->metadata_count > DATA_MAX / sizeof(uint64_t)) {
        return false;
    }
    scopes->hotspot = hotspot;
    scopes->nmethod = nmethod;
    scopes->at = nmethod->pcs_at;
    scopes->end = nmethod->scopes_at > nmethod->pcs_at ? nmethod->scopes_at : nmethod->data_size;
    scopes->excluded = unsigned5_excluded(hotspot->major);
    scopes->bare = 0;
    scopes->believed = atomic_load(&hotspot->scopes) == TRUST_PROVEN;
    return find_data(nearby, scopes);
}

void hotspot_scopes_were(struct hotspot *hotspot, bool as_told)
{
    int unproven = TRUST_UNPROVEN;
    if (as_told) {
        if (atomic_load(&hotspot->scopes) == TRUST_UNPROVEN &&
            atomic_fetch_add(&hotspot->agreed, 1) + 1 >= AGREED_ENOUGH) {
            (void)atomic_compare_exchange_strong(&hotspot->scopes, &unproven, TRUST_PROVEN);
        }
    } else if (atomic_load(&hotspot->agreed) == 0) {
        hotspot_scopes_broken(hotspot);
    }
}
