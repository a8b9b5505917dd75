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
 * Neighbours share their outer scopes, which are decoded once.
 */
#include "agent/hotspot/hotspot_fields.h"
#include "agent/hotspot/unsigned5.h"
#include "writer/array.h"

#include <stdlib.h>

/* Larger nmethods than any there is room for in a code cache's heap. */
#define DATA_MAX ((size_t)64 << 20)

bool hotspot_scopes_reserve(struct hotspot_scopes *scopes, size_t places, size_t frames)
{
    return ARRAY_RESERVE(scopes->places, scopes->place_room, places) &&
           ARRAY_RESERVE(scopes->methods, scopes->method_room, frames) &&
           ARRAY_RESERVE(scopes->bcis, scopes->bci_room, frames) &&
           ARRAY_RESERVE(scopes->offsets, scopes->room, frames); /* the least room of the three */
}

void hotspot_scopes_free(struct hotspot_scopes *scopes)
{
    free(scopes->places);
    free(scopes->methods);
    free(scopes->bcis);
    free(scopes->offsets);
    free(scopes->copy);
    *scopes = (struct hotspot_scopes){0};
}

/* What is being decoded: hotspot_nmethod's parts. */
struct decoder {
    const struct hotspot *hotspot;
    const struct hotspot_nmethod *nmethod;
    const char *data;
    const char *metadata;
    unsigned excluded;
};

/* The frames of the place before from the one on whose scope that is, which a place has as well:
 * copied to be its next ones. Returns how many they are. */
static size_t take_over(struct hotspot_scopes *scopes, size_t before, size_t before_end,
                        uint32_t scope)
{
    while (before < before_end && scopes->offsets[before] != scope) {
        before++;
    }
    const size_t count = before_end - before;
    const size_t to = scopes->count;
    if (count == 0 || count > scopes->room - to) {
        return 0;
    }
    memcpy(scopes->methods + to, scopes->methods + before, count * sizeof(*scopes->methods));
    memcpy(scopes->bcis + to, scopes->bcis + before, count * sizeof(*scopes->bcis));
    memcpy(scopes->offsets + to, scopes->offsets + before, count * sizeof(*scopes->offsets));
    return count;
}

/* The frames of one place, behind all others; `before`: where those of the place before begin. */
static bool decode_place(const struct decoder *decoder, uint32_t scope, size_t before,
                         struct hotspot_scopes *scopes)
{
    const struct hotspot_nmethod *nmethod = decoder->nmethod;
    const uint8_t *data = (const uint8_t *)decoder->data + nmethod->scopes_at;
    const uint8_t *end = (const uint8_t *)decoder->data + nmethod->data_size;
    const size_t first = scopes->count;
    while (scope != 0) {
        const size_t taken = take_over(scopes, before, first, scope);
        if (taken > 0) {
            scopes->count += taken;
            break;
        }
        uint32_t sender = 0;
        uint32_t method = 0;
        uint32_t bci = 0;
        if (scope >= (size_t)(end - data) || scopes->count == scopes->room) {
            return false;
        }
        const uint8_t *at = data + scope;
        if (!unsigned5_get(&at, end, decoder->excluded, &sender) ||
            !unsigned5_get(&at, end, decoder->excluded, &method) ||
            !unsigned5_get(&at, end, decoder->excluded, &bci) || method == 0 ||
            method > nmethod->metadata_count) {
            return false;
        }
        memcpy(&scopes->methods[scopes->count], decoder->metadata + (method - 1) * sizeof(uint64_t),
               sizeof(uint64_t));
        scopes->bcis[scopes->count] = (int32_t)(bci - 1);
        scopes->offsets[scopes->count++] = scope;
        scope = sender;
    }
    return scopes->count > first && scopes->methods[scopes->count - 1] == nmethod->method;
}

/* All of them, PcDesc by PcDesc. */
static bool decode(const struct decoder *decoder, struct hotspot_scopes *scopes)
{
    const struct hotspot *hotspot = decoder->hotspot;
    const struct hotspot_nmethod *nmethod = decoder->nmethod;
    enum { BARE_MAX = 2 };
    size_t end = nmethod->scopes_at > nmethod->pcs_at ? nmethod->scopes_at : nmethod->data_size;
    const size_t offset_at = hotspot->places[PC_OFFSET].offset;
    const size_t scope_at = hotspot->places[PC_SCOPE].offset;
    int bare = 0; /* PcDescs without a scope: one stands before all others and one behind them */
    size_t before = 0;
    for (size_t at = nmethod->pcs_at; at + hotspot->pc <= end; at += hotspot->pc) {
        int32_t offset;
        int32_t scope;
        memcpy(&offset, decoder->data + at + offset_at, sizeof(offset));
        memcpy(&scope, decoder->data + at + scope_at, sizeof(scope));
        if (scope == 0) {
            if (++bare > BARE_MAX) {
                return false;
            }
            continue;
        }
        const size_t first = scopes->count;
        if (scope < 0 || scopes->place_count == scopes->place_room ||
            !decode_place(decoder, (uint32_t)scope, before, scopes)) {
            return false;
        }
        scopes->places[scopes->place_count++] =
            (struct hotspot_place){.end = offset, .frames = (uint32_t)(scopes->count - first)};
        before = first;
    }
    return true;
}

/* What is to be decoded: where it is, once it has been believed, or else a copy. False: not to be
 * had, or no memory. */
static bool find_data(const struct hotspot *hotspot, struct hotspot_nearby *nearby,
                      const struct hotspot_nmethod *nmethod, struct hotspot_scopes *scopes,
                      struct decoder *decoder)
{
    const size_t metadata_size = nmethod->metadata_count * sizeof(uint64_t);
    if (atomic_load(&hotspot->scopes) == TRUST_PROVEN && hotspot_nearby_in_place(nearby)) {
        decoder->data = hotspot_view(hotspot, nearby, nmethod->data, nmethod->data_size);
        decoder->metadata = hotspot_view(hotspot, nearby, nmethod->metadata, metadata_size);
        return decoder->data && decoder->metadata;
    }
    const size_t size = nmethod->data_size + metadata_size;
    if (!ARRAY_RESERVE(scopes->copy, scopes->copy_room, size)) {
        return false;
    }
    const struct memory_piece pieces[] = {
        {nmethod->data, scopes->copy, nmethod->data_size},
        {nmethod->metadata, scopes->copy + nmethod->data_size, metadata_size},
    };
    decoder->data = scopes->copy;
    decoder->metadata = scopes->copy + nmethod->data_size;
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
    const struct place *place = &hotspot->places[field];
    return place->known && place->width == sizeof(int32_t) && place->offset <= hotspot->pc &&
           hotspot->pc - place->offset >= place->width;
}

bool hotspot_knows_scopes(const struct hotspot *hotspot, const struct hotspot_nmethod *nmethod)
{
    return hotspot && nmethod->data && nmethod->method &&
           atomic_load(&hotspot->scopes) != TRUST_BROKEN && is_int_of_pc(hotspot, PC_OFFSET) &&
           is_int_of_pc(hotspot, PC_SCOPE);
}

bool hotspot_scopes_read(struct hotspot *hotspot, struct hotspot_nearby *nearby,
                         const struct hotspot_nmethod *nmethod, struct hotspot_scopes *scopes)
{
    scopes->place_count = scopes->count = 0;
    if (!hotspot_knows_scopes(hotspot, nmethod) || nmethod->data_size > DATA_MAX ||
        nmethod->metadata_count > DATA_MAX / sizeof(uint64_t)) {
        return false;
    }
    struct decoder decoder = {
        .hotspot = hotspot,
        .nmethod = nmethod,
        .excluded = unsigned5_excluded(hotspot->major),
    };
    return find_data(hotspot, nearby, nmethod, scopes, &decoder) && decode(&decoder, scopes);
}

void hotspot_scopes_were(struct hotspot *hotspot, bool as_told)
{
    int unproven = TRUST_UNPROVEN;
    if (as_told) {
        (void)atomic_compare_exchange_strong(&hotspot->scopes, &unproven, TRUST_PROVEN);
    } else if (atomic_load(&hotspot->scopes) == TRUST_UNPROVEN) {
        hotspot_scopes_broken(hotspot);
    }
}
