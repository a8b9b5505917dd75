/*
 * Which Method each inlined frame is of
 *
 * JVMTI's inline record has jmethodIDs, and an id stands for what the method is now: of a class
 * that was redefined the new one, also in code that was compiled from the old. The nmethod itself
 * has the Methods. It describes each place of its code by a PcDesc (code/pcDesc.hpp), which leads
 * to a row of scopes, from the innermost frame to the compiled method:
 *
 *   sender    where the next scope starts; 0: there is none
 *   method    its number in the nmethod's metadata, from 1 on
 *   bci + 1
 *
 * each an UNSIGNED5 number (utilities/unsigned5.hpp). JVMTI's record was made from just these (see
 * create_inline_record in prims/jvmtiExport.cpp), leaving out PcDescs without a scope: so the two
 * must agree in everything they both say, and what does not is not believed.
 *
 *   PcDescs   [pc 0x10 |o]   [pc 0x24 |o]   [pc 0x31 |o]
 *                       \              |              /
 *   scopes               c -> b -> a <- b'  <--------      a: the compiled method
 *
 * Neighbours share their outer scopes, which are decoded once.
 */
#include "agent/hotspot/hotspot_fields.h"
#include "agent/hotspot/unsigned5.h"

#include <stdlib.h>

/* Larger nmethods than any there is room for in a code cache's heap. */
#define DATA_MAX ((size_t)64 << 20)

static bool reserve(struct hotspot_scopes *scopes, size_t methods)
{
    if (methods > scopes->room) {
        method_key *grown = realloc(scopes->methods, methods * sizeof(void *));
        scopes->methods = grown ? grown : scopes->methods;
        uint32_t *offsets = realloc(scopes->offsets, methods * sizeof(*offsets));
        scopes->offsets = offsets ? offsets : scopes->offsets;
        if (!grown || !offsets) {
            return false;
        }
        scopes->room = methods;
    }
    return true;
}

void hotspot_scopes_free(struct hotspot_scopes *scopes)
{
    free(scopes->methods);
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

/* The frames of a place. */
struct frames {
    const PCStackInfo *info; /* as JVMTI has them; NULL: there are none */
    method_key *methods;
    uint32_t *offsets;
};

/* Whether the frames of a place from `depth` on are the outer ones of the place before, by its
 * scope there; then they are filled in, and *same tells whether JVMTI says so, too. */
static bool takes_over(const struct frames *before, const struct frames *place, jint depth,
                       uint32_t scope, bool *same)
{
    const jint count = place->info->numstackframes - depth;
    const jint from = before->info ? before->info->numstackframes - count : -1;
    if (from < 0 || before->offsets[from] != scope) {
        return false;
    }
    memcpy(place->methods + depth, before->methods + from, (size_t)count * sizeof(void *));
    memcpy(place->offsets + depth, before->offsets + from, (size_t)count * sizeof(uint32_t));
    *same = memcmp(place->info->bcis + depth, before->info->bcis + from,
                   (size_t)count * sizeof(jint)) == 0;
    return true;
}

/* The Methods of one place's frames, as they must be by JVMTI's record. */
static bool decode_place(const struct decoder *decoder, uint32_t scope, const struct frames *before,
                         const struct frames *place)
{
    const struct hotspot_nmethod *nmethod = decoder->nmethod;
    const PCStackInfo *info = place->info;
    method_key *methods = place->methods;
    const uint8_t *scopes = (const uint8_t *)decoder->data + nmethod->scopes_at;
    const uint8_t *end = (const uint8_t *)decoder->data + nmethod->data_size;
    bool same = false;
    for (jint depth = 0; depth < info->numstackframes; depth++) {
        if (takes_over(before, place, depth, scope, &same)) {
            return same;
        }
        place->offsets[depth] = scope;
        uint32_t sender = 0;
        uint32_t method = 0;
        uint32_t bci = 0;
        if (scope == 0 || scope >= (size_t)(end - scopes)) {
            return false;
        }
        const uint8_t *at = scopes + scope;
        if (!unsigned5_get(&at, end, decoder->excluded, &sender) ||
            !unsigned5_get(&at, end, decoder->excluded, &method) ||
            !unsigned5_get(&at, end, decoder->excluded, &bci) || method == 0 ||
            method > nmethod->metadata_count || (jint)(bci - 1) != info->bcis[depth]) {
            return false;
        }
        memcpy(&methods[depth], decoder->metadata + (method - 1) * sizeof(void *), sizeof(void *));
        scope = sender;
    }
    return scope == 0 && info->numstackframes > 0 &&
           methods[info->numstackframes - 1] == (method_key)nmethod->method;
}

/* All of them, PcDesc by PcDesc and place by place. */
static bool decode(const struct decoder *decoder, const char *address,
                   const jvmtiCompiledMethodLoadInlineRecord *record, struct hotspot_scopes *scopes)
{
    const struct hotspot *hotspot = decoder->hotspot;
    const struct hotspot_nmethod *nmethod = decoder->nmethod;
    enum { BARE_MAX = 2 };
    size_t end = nmethod->scopes_at > nmethod->pcs_at ? nmethod->scopes_at : nmethod->data_size;
    const size_t offset_at = hotspot->places[PC_OFFSET].offset;
    const size_t scope_at = hotspot->places[PC_SCOPE].offset;
    jint place = 0;
    int bare = 0; /* PcDescs without a scope: one stands before all others and one behind them */
    struct frames before = {0};
    scopes->count = 0;
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
        const PCStackInfo *info = place < record->numpcs ? &record->pcinfo[place] : NULL;
        if (!info || (const char *)info->pc != address + offset || scope < 0) {
            return false;
        }
        const struct frames frames = {info, scopes->methods + scopes->count,
                                      scopes->offsets + scopes->count};
        if (!decode_place(decoder, (uint32_t)scope, &before, &frames)) {
            return false;
        }
        before = frames;
        scopes->count += (size_t)info->numstackframes;
        place++;
    }
    return place == record->numpcs;
}

/* How many frames the record has in all; 0: not the record of any nmethod. */
static size_t count_frames(const jvmtiCompiledMethodLoadInlineRecord *record)
{
    size_t frames = 0;
    for (jint i = 0; i < record->numpcs; i++) {
        jint depth = record->pcinfo[i].numstackframes;
        if (depth < 1) {
            return 0;
        }
        frames += (size_t)depth;
    }
    return frames;
}

/* What is to be decoded: where it is, once it has been believed, or else a copy. False: not to be
 * had, or no memory. */
static bool find_data(const struct hotspot *hotspot, struct hotspot_nearby *nearby,
                      const struct hotspot_nmethod *nmethod, struct hotspot_scopes *scopes,
                      struct decoder *decoder)
{
    const size_t metadata_size = nmethod->metadata_count * sizeof(void *);
    if (atomic_load(&hotspot->scopes) == TRUST_PROVEN && hotspot_nearby_in_place(nearby)) {
        decoder->data = hotspot_view(hotspot, nearby, nmethod->data, nmethod->data_size);
        decoder->metadata = hotspot_view(hotspot, nearby, nmethod->metadata, metadata_size);
        return decoder->data && decoder->metadata;
    }
    const size_t size = nmethod->data_size + metadata_size;
    if (size > scopes->copy_room) {
        char *grown = realloc(scopes->copy, size);
        if (!grown) {
            return false;
        }
        scopes->copy = grown;
        scopes->copy_room = size;
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

bool hotspot_scopes_read(struct hotspot *hotspot, struct hotspot_nearby *nearby,
                         const struct hotspot_nmethod *nmethod, const void *address,
                         const jvmtiCompiledMethodLoadInlineRecord *record,
                         struct hotspot_scopes *scopes)
{
    size_t frames = count_frames(record);
    size_t metadata_size = nmethod->metadata_count * sizeof(void *);
    if (!hotspot || !nmethod->data || !nmethod->method || frames == 0 ||
        atomic_load(&hotspot->scopes) == TRUST_BROKEN || !is_int_of_pc(hotspot, PC_OFFSET) ||
        !is_int_of_pc(hotspot, PC_SCOPE)) {
        return false;
    }
    bool good = nmethod->data_size <= DATA_MAX && metadata_size <= DATA_MAX;
    if (good && !reserve(scopes, frames)) {
        return false;
    }
    if (good && frames == (size_t)record->numpcs) { /* nothing is inlined */
        for (size_t i = 0; i < frames; i++) {
            scopes->methods[i] = (method_key)nmethod->method;
        }
        scopes->count = frames;
        return true;
    }
    struct decoder decoder = {
        .hotspot = hotspot,
        .nmethod = nmethod,
        .excluded = unsigned5_excluded(hotspot->major),
    };
    good = good && find_data(hotspot, nearby, nmethod, scopes, &decoder) &&
           decode(&decoder, address, record, scopes);
    if (good) {
        int unproven = TRUST_UNPROVEN;
        (void)atomic_compare_exchange_strong(&hotspot->scopes, &unproven, TRUST_PROVEN);
    } else if (atomic_load(&hotspot->scopes) == TRUST_UNPROVEN) {
        hotspot_scopes_broken(hotspot);
    }
    return good;
}
