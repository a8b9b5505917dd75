/*
 * Which method is still the same
 *
 * A jmethodID dies with its class, and a JVM may give the same id to another method then. No event
 * tells of it that an agent could afford to listen to. But the JVM must drop compiled code before
 * it drops a class that the code mentions, as the compiled method or as an inlined one, and
 * CompiledMethodUnload for it comes before any event about code compiled later (HotSpot sends both
 * through one queue, the Service Thread's, and keeps an nmethod alive while its load event is being
 * handled). So: a method is known exactly as long as code that mentions it lives. Each piece of
 * live code holds one reference to each of its methods; the last one frees the method, and the
 * next piece of code that mentions the id has the JVM asked again. That also bounds the cache: it
 * cannot know more than the code cache does.
 *
 * Within that time one thing can still change: a class is redefined, and its ids go over to methods
 * with other line tables, while old code is still there, and may be told of once more. And the
 * method handle intrinsics (invokeBasic, linkToStatic..., native methods of MethodHandle that are
 * in no class file, one for each signature) have one id, with which JVMTI describes the one that
 * was first to be given it. So a method is what HotSpot's nmethod says it was compiled from or has
 * inlined, its Method, wherever that can be had. Where an id means another one (hotspot_bond),
 * names and lines are read from HotSpot's; where they cannot be, the names are the other one's and
 * the lines, which would be wrong, are left out.
 *
 * The lock is never held while the JVM is called, be it to give back what it answered. Two threads
 * may then ask for the same method; the second one's answer is thrown away.
 */
#include "agent/methods/method_cache.h"

#include "agent/methods/class_cache.h"
#include "agent/methods/source_name.h"
#include "writer/hash_table.h"
#include "writer/invariant.h"
#include "writer/pool.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct cached_method {
    struct hash_table_entry entry; /* key: the jmethodID */
    size_t bytes;                  /* of all this */
    uint32_t references;           /* sets, and pieces of live code */
    uint64_t vm_method;            /* HotSpot's Method, 0: not to be had */
    struct known_class *known_class;
    struct java_method known;
    struct line_entry lines[]; /* behind them the name */
};

/* What one piece of live code holds. */
struct held_methods {
    struct kept kept;
    struct method_cache *cache;
    uint32_t count, room;
    bool let_go; /* of the methods */
    struct cached_method *methods[];
};

struct method_cache {
    struct method_cache_options options;
    pthread_mutex_t lock;
    struct hash_table methods;
    uint64_t additions; /* to them, so far */
    struct class_cache classes;
    struct pools memory; /* of methods, and of what code holds */
};

struct method_cache *method_cache_new(const struct method_cache_options *options)
{
    struct method_cache *cache = calloc(1, sizeof(*cache));
    if (cache) {
        cache->options = *options;
        cache->methods.grain = 3; /* HotSpot's ids are the addresses of pointers in arrays */
        class_cache_init(&cache->classes);
        pthread_mutex_init(&cache->lock, NULL);
    }
    return cache;
}

static uint64_t key_of_id(jmethodID id)
{
    return (uint64_t)(uintptr_t)id;
}

/* The method, with a reference for the caller; the lock is held. */
static struct cached_method *take_known(struct method_cache *cache, jmethodID id,
                                        uint64_t vm_method)
{
    lock_is_held(&cache->lock);
    struct cached_method *method =
        (struct cached_method *)hash_table_find(&cache->methods, key_of_id(id));
    while (method && method->vm_method != vm_method) {
        method = (struct cached_method *)hash_table_find_next(&method->entry);
    }
    if (method) {
        method->references++;
    }
    return method;
}

/* Gives back one reference; the lock is held. */
static void drop_method(struct method_cache *cache, struct cached_method *method)
{
    if (--method->references > 0) {
        return;
    }
    class_cache_drop(&cache->classes, method->known_class);
    hash_table_remove(&cache->methods, &method->entry);
    pools_give_back(&cache->memory, method, method->bytes);
}

void method_cache_free(struct method_cache *cache)
{
    if (!cache) {
        return;
    }
    struct hash_table_entry *entry; /* of a method that code held to the end */
    while ((entry = hash_table_drain(&cache->methods))) {
        class_cache_drop(&cache->classes, ((struct cached_method *)entry)->known_class);
    }
    class_cache_destroy(&cache->classes);
    pools_free(&cache->memory);
    pthread_mutex_destroy(&cache->lock);
    free(cache);
}

/* Puts the source's name in place of the Java one, where the language is one that mangles. */
static void name_as_in_source(char name[SYMBOL_MAX], const char *class_name,
                              const char *source_file, const struct fetched_method *fetched)
{
    enum source_language language = source_language(source_file);
    if (language == SOURCE_OTHER) {
        return;
    }
    char method[SYMBOL_MAX];
    char parameters[SYMBOL_MAX];
    symbol_text(method, sizeof(method), fetched->name);
    size_t before = strlen(class_name) + 1 + strlen(method); /* "pkg.Cls.m", which is cut off */
    const char *rest = before < strlen(name) ? name + before : "";
    memcpy(parameters, rest, strlen(rest) + 1);
    source_name(name, SYMBOL_MAX, language,
                &(struct source_method){.class_name = class_name,
                                        .method = method,
                                        .parameters = parameters,
                                        .is_private_static = fetched->is_private_static});
}

void method_symbol(char name[SYMBOL_MAX], const struct method_cache_options *options,
                   const char *class_signature, const char *source_file,
                   const struct fetched_method *fetched)
{
    symbol_method_name(name, SYMBOL_MAX, options->names, options->normalize, class_signature,
                       fetched->name, fetched->descriptor);
    if (options->names == NAMES_SOURCE) {
        char class_name[SYMBOL_MAX];
        symbol_class_name(class_name, sizeof(class_name), options->normalize, class_signature);
        name_as_in_source(name, class_name, source_file, fetched);
    }
}

static enum hotspot_bond bond_of(const struct method_set *set, uint64_t vm_method, jmethodID id,
                                 uint64_t *class_key)
{
    const struct method_cache_options *options = &set->cache->options;
    *class_key = 0;
    return options->bond && vm_method
               ? options->bond(options->context, set->nearby, vm_method, id, class_key)
               : HOTSPOT_UNKNOWN;
}

/* The method as HotSpot's own structures have it; until the next one is read. NULL: not to be had.
 */
static const struct hotspot_method *read_own(struct method_set *set, uint64_t vm_method)
{
    const struct method_cache_options *options = &set->cache->options;
    return options->read && options->read(options->context, set->nearby, vm_method, &set->own)
               ? &set->own.methods[0]
               : NULL;
}

/* What is told of a method, by HotSpot's structures or else by the JVM. */
struct answer {
    const struct hotspot_method *own; /* NULL: the JVM told it */
    struct fetched_method fetched;    /* by the JVM, all zeroes: nothing */
    uint64_t class_key;               /* see class_new */
};

/* Asks the JVM. False: it does not tell. */
static bool ask(struct method_set *set, jmethodID id, uint64_t vm_method, struct answer *answer)
{
    if (!method_fetch(set->jvmti, id, &answer->fetched)) {
        return false;
    }
    /* Behind the JVM's answer: what is the id's now was it then, for what is not never comes back.
     */
    if (bond_of(set, vm_method, id, &answer->class_key) == HOTSPOT_ANOTHER) {
        answer->own = read_own(set, vm_method);
        answer->fetched.line_count = 0;
    }
    return true;
}

/* Our own description of it; the class's reference is its. NULL: no memory. The lock is held. */
static struct cached_method *describe(struct method_cache *cache, jmethodID id, uint64_t vm_method,
                                      struct known_class *known_class, const struct answer *answer)
{
    const struct hotspot_method *own = answer->own;
    const struct fetched_method of_own = {
        .name = own ? (char *)own->name : NULL,
        .descriptor = own ? (char *)own->descriptor : NULL,
        .is_private_static = own && own->private_static,
        .native = own && own->native,
    };
    const struct fetched_method *fetched = own ? &of_own : &answer->fetched;
    char name[SYMBOL_MAX];
    method_symbol(name, &cache->options, known_class->signature, known_class->source_file, fetched);
    const size_t name_bytes = strlen(name) + 1;
    const size_t lines_bytes =
        (own ? own->line_count : (size_t)fetched->line_count) * sizeof(struct line_entry);
    const size_t bytes = sizeof(struct cached_method) + lines_bytes + name_bytes;
    struct cached_method *method = pools_take(&cache->memory, bytes);
    if (!method) {
        return NULL;
    }
    uint32_t count = own ? own->line_count : method_fetch_lines(fetched, method->lines);
    if (own && count) {
        memcpy(method->lines, own->lines, lines_bytes);
    }
    *method = (struct cached_method){
        .entry.key = key_of_id(id),
        .bytes = bytes,
        .references = 1,
        .vm_method = vm_method,
        .known_class = known_class,
        .known = {.method = {.name = memcpy((char *)method->lines + lines_bytes, name, name_bytes),
                             .class_name = known_class->name,
                             .file = known_class->file,
                             .first_line =
                                 count
                                     ? source_map_find(known_class->map, method->lines[0].line).line
                                     : 0,
                             .id = class_cache_method_id()},
                  .lines = method->lines,
                  .line_count = count,
                  .map = known_class->map,
                  .native = fetched->native},
    };
    return method;
}

/* Asks the JVM for the class that a method belongs to. NULL: not to be had. */
static struct known_class *ask_for_class(const struct method_set *set, jmethodID id, uint64_t key)
{
    const struct method_cache_options *options = &set->cache->options;
    struct known_class *known = NULL;
    struct fetched_class fetched;
    JNIEnv *jni = NULL;
    if (set->vm) {
        (*set->vm)->GetEnv(set->vm, (void **)&jni, JNI_VERSION_1_6);
    }
    if (class_fetch_of_method(set->jvmti, jni, id, &fetched)) {
        known = class_new(key, options->names, options->normalize, &fetched);
        class_fetch_free(set->jvmti, &fetched);
    }
    return known;
}

/*
 * Puts a method into the cache, which may have got it from another thread since it had `additions`;
 * with a reference for the caller, who gives that of the class away. NULL: no memory. The lock is
 * held.
 */
static struct cached_method *add(struct method_cache *cache, jmethodID id, uint64_t vm_method,
                                 struct known_class *known_class, const struct answer *answer,
                                 uint64_t additions)
{
    struct cached_method *known =
        additions == cache->additions ? NULL : take_known(cache, id, vm_method);
    struct cached_method *method =
        known ? NULL : describe(cache, id, vm_method, known_class, answer);
    if (method && hash_table_add(&cache->methods, &method->entry)) {
        cache->additions++;
        return method;
    }
    if (method) {
        pools_give_back(&cache->memory, method, method->bytes);
    }
    class_cache_drop(&cache->classes, known_class);
    return known;
}

/*
 * A method that the cache does not know, with a reference for the caller. Where memory may be read
 * in place, to look takes a fraction of the time that the JVM takes to answer, and needs no look
 * whom the answer was about. The lock is held, but not while the JVM is asked; *answer, all zeroes
 * before, is the caller's to give back to the JVM without the lock.
 */
static struct cached_method *learn(struct method_set *set, jmethodID id, uint64_t vm_method,
                                   struct answer *answer)
{
    struct method_cache *cache = set->cache;
    lock_is_held(&cache->lock);
    const uint64_t additions = cache->additions;
    if (vm_method && hotspot_nearby_in_place(set->nearby)) {
        answer->own = read_own(set, vm_method);
    }
    if (answer->own) {
        answer->class_key = answer->own->pool;
    } else {
        pthread_mutex_unlock(&cache->lock);
        bool told = ask(set, id, vm_method, answer);
        pthread_mutex_lock(&cache->lock);
        if (!told) {
            return NULL;
        }
    }
    struct known_class *known_class = class_cache_find(&cache->classes, answer->class_key);
    if (!known_class) {
        pthread_mutex_unlock(&cache->lock);
        known_class = ask_for_class(set, id, answer->class_key);
        pthread_mutex_lock(&cache->lock);
        known_class = known_class ? class_cache_add(&cache->classes, known_class) : NULL;
    }
    return known_class ? add(cache, id, vm_method, known_class, answer, additions) : NULL;
}

void method_set_begin(struct method_set *set, struct method_cache *cache, jvmtiEnv *jvmti,
                      JavaVM *vm, struct hotspot_nearby *nearby)
{
    set->nearby = nearby;
    set->cache = cache;
    set->jvmti = jvmti;
    set->vm = vm;
}

static size_t held_bytes(uint32_t room)
{
    return sizeof(struct held_methods) + room * sizeof(struct cached_method *);
}

static void drop_all(struct method_cache *cache, struct cached_method *const *methods,
                     uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        drop_method(cache, methods[i]);
    }
}

/* Overlapped code is gone, though nobody said so, and the right to know its methods with it. When
 * the session is over the cache frees all at once. */
static void tell(struct kept *kept, enum occupant_event event)
{
    struct held_methods *held = (struct held_methods *)kept;
    struct method_cache *cache = held->cache;
    if (event != OCCUPANT_OVERLAPPED && event != OCCUPANT_GONE) {
        return;
    }
    pthread_mutex_lock(&cache->lock);
    if (!held->let_go) {
        drop_all(cache, held->methods, held->count);
        held->let_go = true;
    }
    if (event == OCCUPANT_GONE) {
        pools_give_back(&cache->memory, held, held_bytes(held->room));
    }
    pthread_mutex_unlock(&cache->lock);
}

/* Room for one method more in what the set's code will hold. False: no memory. The lock is held. */
static bool make_room(struct method_set *set)
{
    struct method_cache *cache = set->cache;
    struct held_methods *held = set->held;
    const uint32_t count = held ? held->count : 0;
    if (held && count < held->room) {
        return true;
    }
    const uint32_t room = count ? count * 2 : 1;
    struct held_methods *larger = pools_take(&cache->memory, held_bytes(room));
    if (!larger) {
        return false;
    }
    *larger =
        (struct held_methods){.kept.tell = tell, .cache = cache, .count = count, .room = room};
    if (held) {
        memcpy(larger->methods, held->methods, count * sizeof(struct cached_method *));
        pools_give_back(&cache->memory, held, held_bytes(held->room));
    }
    set->held = larger;
    return true;
}

const struct java_method *method_set_get(struct method_set *set, jmethodID id, uint64_t vm_method)
{
    struct method_cache *cache = set->cache;
    if (!id) {
        return NULL;
    }
    struct answer answer = {0};
    pthread_mutex_lock(&cache->lock);
    struct cached_method *method = NULL;
    if (make_room(set) && ((method = take_known(cache, id, vm_method)) ||
                           (method = learn(set, id, vm_method, &answer)))) {
        set->held->methods[set->held->count++] = method;
    }
    pthread_mutex_unlock(&cache->lock);
    method_fetch_free(set->jvmti, &answer.fetched);
    return method ? &method->known : NULL;
}

struct kept *method_set_hold(struct method_set *set)
{
    struct held_methods *held = set->held;
    set->held = NULL;
    return held ? &held->kept : NULL;
}

void method_set_empty(struct method_set *set)
{
    struct kept *kept = method_set_hold(set);
    if (kept) {
        kept->tell(kept, OCCUPANT_GONE);
    }
}

void method_set_destroy(struct method_set *set)
{
    hotspot_methods_free(&set->own);
    *set = (struct method_set){0};
}
