/*
 * The record has jmethodIDs, and an id stands for what the method is now: of a class that was
 * redefined the new one, also in code that was compiled from the old. The nmethod itself has the
 * Methods. The record was made from its scopes (create_inline_record in prims/jvmtiExport.cpp), so
 * the two must agree in everything they both say, and what does not is not believed.
 */
#include "agent/methods/inline_record.h"

#include <string.h>

const jvmtiCompiledMethodLoadInlineRecord *inline_record_of(const void *compile_info)
{
    for (const jvmtiCompiledMethodLoadRecordHeader *record = compile_info; record;
         record = record->next) {
        /* A higher minor version only adds. */
        if (record->kind == JVMTI_CMLR_INLINE_INFO &&
            record->majorinfoversion == JVMTI_CMLR_MAJOR_VERSION_1) {
            return (const jvmtiCompiledMethodLoadInlineRecord *)record;
        }
    }
    return NULL;
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

static bool is_as_told(const struct hotspot_scopes *scopes, const void *address,
                       const jvmtiCompiledMethodLoadInlineRecord *record)
{
    const int32_t *bcis = scopes->bcis;
    bool same = scopes->place_count == (size_t)record->numpcs;
    for (jint i = 0; i < record->numpcs && same; i++) {
        const PCStackInfo *info = &record->pcinfo[i];
        const struct hotspot_place *place = &scopes->places[i];
        same = (const char *)info->pc == (const char *)address + place->end &&
               (uint32_t)info->numstackframes == place->frames &&
               memcmp(info->bcis, bcis, place->frames * sizeof(*bcis)) == 0;
        bcis += place->frames;
    }
    return same;
}

/* Fills in the Methods. False: they are not to be had, or not believed. */
static bool read_methods(struct hotspot *hotspot, struct hotspot_nearby *nearby,
                         const struct hotspot_nmethod *nmethod, const void *address,
                         const jvmtiCompiledMethodLoadInlineRecord *record, size_t frames,
                         struct hotspot_scopes *scopes)
{
    if (!hotspot_knows_scopes(hotspot, nmethod)) {
        return false;
    }
    if (frames == (size_t)record->numpcs) { /* nothing is inlined */
        for (size_t i = 0; i < frames; i++) {
            scopes->methods[i] = nmethod->method;
        }
        scopes->count = frames;
        return true;
    }
    bool same = hotspot_scopes_read(hotspot, nearby, nmethod, scopes) &&
                is_as_told(scopes, address, record);
    hotspot_scopes_were(hotspot, same);
    return same;
}

const method_key *inline_record_keys(struct hotspot *hotspot, struct hotspot_nearby *nearby,
                                     const struct hotspot_nmethod *nmethod, const void *address,
                                     const jvmtiCompiledMethodLoadInlineRecord *record,
                                     struct hotspot_scopes *scopes, bool *own)
{
    const size_t frames = count_frames(record);
    *own = false;
    if (frames == 0 || !hotspot_scopes_reserve(scopes, (size_t)record->numpcs, frames)) {
        return NULL;
    }
    *own = read_methods(hotspot, nearby, nmethod, address, record, frames, scopes);
    method_key *key = scopes->methods;
    for (jint i = 0; i < record->numpcs && !*own; i++) {
        const PCStackInfo *info = &record->pcinfo[i];
        for (jint depth = 0; depth < info->numstackframes; depth++) {
            *key++ = (method_key)(uintptr_t)info->methods[depth];
        }
    }
    return scopes->methods;
}
