/*
 * What HotSpot knows of its code beyond what it tells through JVMTI: tier, on-stack replacement,
 * frame size, entry points. Read out of the JVM's own structures by the layout tables that it
 * exports for the serviceability agent (gHotSpotVMStructs, gHotSpotVMTypes).
 *
 * Nothing depends on it: in a JVM that has no tables, or has other fields or types than those we
 * know, the facts stay unknown.
 */
#ifndef JD_AGENT_HOTSPOT_H
#define JD_AGENT_HOTSPOT_H

#include "writer/code.h"

#include <jni.h>

struct hotspot;

/* Finds the tables of the JVM that `vm` belongs to. NULL: it has none that we understand. */
struct hotspot *hotspot_new(JavaVM *vm);
void hotspot_free(struct hotspot *hotspot);

/*
 * Fills in what can be known of the code at `address`, which must be alive: call it in the JVMTI
 * callback that tells of the code. Leaves the rest of *facts as it is. hotspot may be NULL.
 */
void hotspot_facts(struct hotspot *hotspot, const void *address, uint64_t size,
                   struct code_facts *facts);

/*
 * The same for code that belongs to a Java method. Returns HotSpot's Method that it was compiled
 * from; NULL: unknown.
 */
const void *hotspot_compiled_facts(struct hotspot *hotspot, const void *address, uint64_t size,
                                   struct code_facts *facts);

/* Where a method's parts are, as an interpreted frame refers to them. */
struct hotspot_method {
    uint64_t address;   /* of HotSpot's Method */
    uint64_t bytecodes; /* address of the first one */
    uint32_t bytecode_size;
    /* HotSpot's ConstantPool: the class's, and one more for each redefinition. NULL: unknown. */
    const void *constant_pool;
};

/* Whether hotspot_method can answer. hotspot may be NULL. */
bool hotspot_knows_methods(const struct hotspot *hotspot);

/* The method of an id that is alive. False: it cannot be told. */
bool hotspot_method(struct hotspot *hotspot, jmethodID id, struct hotspot_method *method);

/* Modified UTF-8. */
struct hotspot_names {
    char *name; /* malloc's, for both */
    const char *descriptor;
};

/* The names of a Method that is alive. False: they cannot be told, or no memory. */
bool hotspot_names(const struct hotspot *hotspot, const void *method, struct hotspot_names *names);

#endif
