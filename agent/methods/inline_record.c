/*
 * The record has jmethodIDs, and an id stands for what the method is now: of a class that was
 * redefined the new one, also in code that was compiled from the old. The nmethod itself has the
 * Methods. The record was made from its scopes (create_inline_record in prims/jvmtiExport.cpp), so
 * the two must agree in everything they both say, and what does not is not believed. Once they
 * have, of the record only the places and the number of their frames are looked at: its bytecodes
 * and ids lie apart for each place, and to fetch them takes longer than all else.
 */
#include "agent/methods/inline_record.h"

#include "writer/array.h"

#include <stdlib.h>

const jvmtiCompiledMethodLoadInlineRecord *inline_record_of(const void *compile_info)
{
    for (const jvmtiCompiledMethodLoadRecordHeader *record = compile_info; record;
         record = record->next) {
        /* A higher minor version only adds. */
        if (record->kind == JVMTI_CMLR_INLINE_INFO &&
            record->majorinfoversion == JVMTI_CMLR_MAJOR_VERSION_1) {
            const jvmtiCompiledMethodLoadInlineRecord *found =
                (const jvmtiCompiledMethodLoadInlineRecord *)record;
            return found->numpcs > 0 ? found : NULL;
        }
    }
    return NULL;
}

uint32_t inline_record_offset(const void *pc, const void *address, uint32_t size)
{
    uintptr_t at = (uintptr_t)pc;
    uintptr_t start = (uintptr_t)address;
    if (at <= start) {
        return 0;
    }
    return at - start > size ? size : (uint32_t)(at - start);
}

/* Whether the record has code of inlined methods. */
static bool has_inlined(const jvmtiCompiledMethodLoadInlineRecord *record)
{
    for (jint i = 0; i < record->numpcs; i++) {
        if (record->pcinfo[i].numstackframes != 1) {
            return true;
        }
    }
    return false;
}

/* ---- By scopes ---- */

/* A scope that has become a frame of the builder. */
struct known_scope {
    uint64_t key; /* its number, counted on from one nmethod to the next; 0: none */
    uint32_t frame;
    jint depth; /* frames up to the compiled method's, that and its own included */
    int32_t bci;
};

/* Each scope has one slot, and is decoded again where another one took it. */
enum { KNOWN_LOG2 = 8 };

/* One that is to become a frame. */
struct new_scope {
    uint32_t number;
    int32_t bci;
    uint64_t method;
};

bool inline_scopes_init(struct inline_scopes *scopes)
{
    *scopes =
        (struct inline_scopes){.known = calloc((size_t)1 << KNOWN_LOG2, sizeof(*scopes->known))};
    return scopes->known != NULL;
}

void inline_scopes_free(struct inline_scopes *scopes)
{
    hotspot_scopes_free(&scopes->scopes);
    free(scopes->known);
    free(scopes->chain);
    free(scopes->keys);
    *scopes = (struct inline_scopes){0};
}

/* Where a scope is, if it is known. */
static struct known_scope *slot_of(const struct inline_scopes *scopes, uint32_t number)
{
    return &scopes->known[number * UINT32_C(0x9e3779b9) >> (32 - KNOWN_LOG2)];
}

/* Whether that is the bytecode of a place's frame. */
static bool has_bci(const struct inline_scopes *scopes, const PCStackInfo *info, jint n,
                    int32_t bci)
{
    return scopes->scopes.believed || info->bcis[n] == bci;
}

/*
 * The frame of a place's innermost scope: those of its scopes that are not known are decoded, and
 * become frames from the outermost on. False: they are not as the record has them. Of those that
 * are known the first is looked at, which others could lead to only by the same senders.
 */
static bool frame_of(const struct inline_code *code, struct inline_scopes *scopes, uint32_t number,
                     const PCStackInfo *info, struct inline_builder *builder, uint32_t *frame)
{
    const jint count = info->numstackframes;
    const uint64_t base = scopes->base;
    const struct known_scope *known = slot_of(scopes, number);
    jint n = 0;
    *frame = INLINE_NO_FRAME;
    if (count < 1 || !ARRAY_RESERVE(scopes->chain, scopes->chain_room, (size_t)count)) {
        return false;
    }
    for (; number != 0 && known->key != base + number; known = slot_of(scopes, number)) {
        struct hotspot_scope scope;
        if (n == count || !hotspot_scopes_at(&scopes->scopes, number, &scope) ||
            !has_bci(scopes, info, n, scope.bci)) {
            return false;
        }
        scopes->chain[n++] = (struct new_scope){number, scope.bci, scope.method};
        number = scope.sender;
    }
    if (number != 0) {
        if (known->depth != count - n || !has_bci(scopes, info, n, known->bci)) {
            return false;
        }
        *frame = known->frame;
    } else if (n != count || scopes->chain[n - 1].method != code->nmethod->method) {
        return false;
    }
    while (n-- > 0) {
        const struct new_scope *scope = &scopes->chain[n];
        const jint depth = count - n;
        const method_key key = depth == 1 ? (method_key)(uintptr_t)code->method : scope->method;
        *frame = inline_builder_frame(builder, *frame, key, &info->methods[n], scope->bci);
        *slot_of(scopes, scope->number) =
            (struct known_scope){base + scope->number, *frame, depth, scope->bci};
    }
    return true;
}

static bool add_places(const struct inline_code *code, struct inline_scopes *scopes,
                       struct inline_builder *builder)
{
    uint32_t offset = 0;
    int32_t pc;
    uint32_t number;
    for (jint i = 0; i < code->record->numpcs; i++) {
        const PCStackInfo *info = &code->record->pcinfo[i];
        const uint32_t end = inline_record_offset(info->pc, code->address, code->size);
        uint32_t frame;
        if (!hotspot_scopes_next(&scopes->scopes, &pc, &number) || number == 0 ||
            (const char *)info->pc != (const char *)code->address + pc) {
            return false;
        }
        if (end > offset) {
            if (!frame_of(code, scopes, number, info, builder, &frame)) {
                return false;
            }
            inline_builder_place(builder, end, frame);
            offset = end;
        }
    }
    return hotspot_scopes_next(&scopes->scopes, &pc, &number) && number == 0;
}

bool inline_record_add_scopes(struct hotspot *hotspot, struct hotspot_nearby *nearby,
                              const struct inline_code *code, struct inline_scopes *scopes,
                              struct inline_builder *builder)
{
    if (!hotspot_knows_scopes(hotspot, code->nmethod)) {
        return false;
    }
    if (!has_inlined(code->record)) { /* all are the compiled method's */
        for (jint i = 0; i < code->record->numpcs; i++) {
            const PCStackInfo *info = &code->record->pcinfo[i];
            const method_key key = (method_key)(uintptr_t)code->method;
            inline_builder_add(builder, inline_record_offset(info->pc, code->address, code->size),
                               &key, info->bcis, 1);
        }
        return true;
    }
    bool same = hotspot_scopes_begin(hotspot, nearby, code->nmethod, &scopes->scopes) &&
                add_places(code, scopes, builder);
    scopes->base += UINT32_MAX;
    hotspot_scopes_were(hotspot, same);
    return same;
}

/* ---- By the record alone ---- */

void inline_record_add(const struct inline_code *code, struct inline_scopes *scopes,
                       struct inline_builder *builder)
{
    for (jint i = 0; i < code->record->numpcs; i++) {
        const PCStackInfo *info = &code->record->pcinfo[i];
        const uint32_t end = inline_record_offset(info->pc, code->address, code->size);
        jint count = info->numstackframes;
        if (!ARRAY_RESERVE(scopes->keys, scopes->key_room, (size_t)count)) {
            count = -1; /* no memory */
        }
        for (jint depth = 0; depth < count; depth++) {
            scopes->keys[depth] = (method_key)(uintptr_t)info->methods[depth];
        }
        inline_builder_add(builder, end, scopes->keys, info->bcis, count);
    }
}
