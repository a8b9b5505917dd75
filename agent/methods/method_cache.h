/*
 * What the JVM knows of its methods: names, source files, line tables. Asked for once a method and
 * kept for as long as live code mentions it.
 */
#ifndef JD_AGENT_METHOD_CACHE_H
#define JD_AGENT_METHOD_CACHE_H

#include "agent/hotspot/hotspot.h"
#include "agent/methods/java_method.h"
#include "agent/methods/method_fetch.h"
#include "agent/methods/symbol_name.h"
#include "writer/occupancy/occupant.h"

#include <jvmti.h>

struct method_cache;

/*
 * The methods that one piece of code mentions. A set keeps each of its methods alive until it is
 * emptied or held; it belongs to one thread at a time. Set it to all zeroes at first.
 */
struct method_set {
    struct method_cache *cache;
    jvmtiEnv *jvmti;
    JavaVM *vm;
    struct held_methods *held; /* NULL: none */
    struct hotspot_nearby *nearby;
    struct hotspot_methods own; /* the last that was read of HotSpot's */
};

struct method_cache_options {
    enum name_style names;
    bool normalize;
    /*
     * What HotSpot's own structures tell of its Methods, see hotspot_bond and hotspot_one_method.
     * NULL: nothing, and the JVM is asked for each method's class.
     */
    enum hotspot_bond (*bond)(void *context, struct hotspot_nearby *nearby, uint64_t vm_method,
                              jmethodID id, uint64_t *class_key);
    bool (*read)(void *context, struct hotspot_nearby *nearby, uint64_t vm_method,
                 struct hotspot_methods *methods);
    void *context;
};

/* The symbol of a method as these options want it. source_file is the JVM's word, or NULL. */
void method_symbol(char name[SYMBOL_MAX], const struct method_cache_options *options,
                   const char *class_signature, const char *source_file,
                   const struct fetched_method *fetched);

/* NULL: no memory. */
struct method_cache *method_cache_new(const struct method_cache_options *options);

/* Every set must be empty, and what code held has been told of its end or never will be. */
void method_cache_free(struct method_cache *cache);

/* Ties an empty set to a cache, to the JVM (vm may be NULL where few methods are asked for) and to
 * what this thread has read of HotSpot's structures (NULL: nothing). */
void method_set_begin(struct method_set *set, struct method_cache *cache, jvmtiEnv *jvmti,
                      JavaVM *vm, struct hotspot_nearby *nearby);

/*
 * The method that code was compiled from or has inlined, from the set, the cache or the JVM; it is
 * in the set from then on. `id` is JVMTI's word for it, which may stand for another one by now,
 * `vm_method` HotSpot's (0: unknown). NULL when the JVM does not tell or memory ran out. Only
 * inside of a JVMTI callback that vouches for the id.
 */
const struct java_method *method_set_get(struct method_set *set, jmethodID id, uint64_t vm_method);

/*
 * Some code mentions these methods, and what is returned here keeps them for as long as it lives:
 * for its occupant (writer/occupancy/occupant.h). Empties the set. NULL: there are none.
 */
struct kept *method_set_hold(struct method_set *set);

/* Empties the set without more. */
void method_set_empty(struct method_set *set);

/* Frees what the set itself holds; it must be empty. */
void method_set_destroy(struct method_set *set);

#endif
