/*
 * JVMTI's inline record of a compiled method (jvmticmlr.h), and which Methods its frames are of.
 */
#ifndef JD_AGENT_INLINE_RECORD_H
#define JD_AGENT_INLINE_RECORD_H

#include "agent/hotspot/hotspot.h"
#include "agent/methods/inlines.h"

#include <jvmti.h>
#include <jvmticmlr.h>

/* The record in what CompiledMethodLoad calls compile_info; NULL: there is none. */
const jvmtiCompiledMethodLoadInlineRecord *inline_record_of(const void *compile_info);

/* The offset of a pc in code; one outside of it is taken to the code's nearest end. */
uint32_t inline_record_offset(const void *pc, const void *address, uint32_t size);

/* Memory to read scopes with, used again and again. */
struct inline_scopes {
    struct hotspot_scopes scopes;
    struct known_scope *known; /* of the code at hand, and left from earlier code */
    struct new_scope *chain;   /* of one place */
    method_key *keys;          /* likewise */
    size_t chain_room, key_room;
    uint64_t base; /* of the keys in `known` */
};

/* False: no memory. */
bool inline_scopes_init(struct inline_scopes *scopes);
void inline_scopes_free(struct inline_scopes *scopes); /* all zeroes is fine */

/* The code whose record it is. */
struct inline_code {
    const void *address;
    uint32_t size;
    jmethodID method;
    const jvmtiCompiledMethodLoadInlineRecord *record;
    const struct hotspot_nmethod *nmethod;
};

/*
 * Adds the record's places to a builder that was begun with the id of the code's method as its
 * root_key, with the methods as the nmethod says: their keys are its Methods, and its scopes say
 * what the record says, place by place and bytecode by bytecode. False: they do not, or cannot be
 * had, and the builder is to begin anew. hotspot may be NULL.
 */
bool inline_record_add_scopes(struct hotspot *hotspot, struct hotspot_nearby *nearby,
                              const struct inline_code *code, struct inline_scopes *scopes,
                              struct inline_builder *builder);

/* The same by the record alone: the keys are its jmethodIDs. */
void inline_record_add(const struct inline_code *code, struct inline_scopes *scopes,
                       struct inline_builder *builder);

#endif
