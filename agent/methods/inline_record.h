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

/*
 * Keys for the methods of all the record's frames, in their order, until scopes are read again: as
 * the nmethod says, where it says what the record says, place by place and bytecode by bytecode,
 * its Methods; *own is set then. Else the record's jmethodIDs. NULL: no memory, or no record of
 * any code. hotspot may be NULL.
 */
const method_key *inline_record_keys(struct hotspot *hotspot, struct hotspot_nearby *nearby,
                                     const struct hotspot_nmethod *nmethod, const void *address,
                                     const jvmtiCompiledMethodLoadInlineRecord *record,
                                     struct hotspot_scopes *scopes, bool *own);

#endif
