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
 * The lock is never held while the JVM is asked something. Two threads may then ask for the same
 * method; the second one's answer is thrown away.
 */
#include "agent/methods/method_cache.h"

#include "agent/hash_table.h"
#include "agent/methods/class_cache.h"
#include "agent/methods/source_name.h"
#include "writer/invariant.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct cached_method {
    struct hash_table_entry entry; /* key: the jmethodID */
    uint32_t references;           /* sets, and pieces of live code */
    const void *vm_method;         /* HotSpot's Method, NULL: not to be had */
    struct known_class *known_class;
    struct java_method known;
    struct line_entry lines[]; /* behind them the name */
};

/* What one piece of live code holds. */
struct held_methods {
    struct kept kept;
    struct method_cache *cache;
    uint32_t count;
    struct cached_method *methods[];
};

struct method_cache {
    struct method_cache_options options;
    pthread_mutex_t lock;
    struct hash_table methods;
    struct class_cache classes;
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
                                        const void *vm_method)
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
    free(method);
}

void method_cache_free(struct method_cache *cache)
{
    if (!cache) {
        return;
    }
    hash_table_drain(&cache->methods); /* empty by now: frees the slots */
    class_cache_destroy(&cache->classes);
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

/*
 * Our own description of what the JVM told, with HotSpot's lines instead where `own` is not NULL;
 * the class's reference is its. NULL: no memory.
 */
static struct cached_method *describe(const struct method_cache_options *options, jmethodID id,
                                      struct known_class *known_class,
                                      const struct fetched_method *fetched,
                                      const struct hotspot_method *own)
{
    char name[SYMBOL_MAX];
    method_symbol(name, options, known_class->signature, known_class->source_file, fetched);
    size_t name_bytes = strlen(name) + 1;
    size_t lines_bytes =
        (own ? own->line_count : (size_t)fetched->line_count) * sizeof(struct line_entry);
    struct cached_method *method = malloc(sizeof(*method) + lines_bytes + name_bytes);
    if (!method) {
        return NULL;
    }
    uint32_t count = 0;
    if (!own) {
        count = method_fetch_lines(fetched, method->lines);
    } else if (own->line_count) {
        count = own->line_count;
        memcpy(method->lines, own->lines, lines_bytes);
    }
    method->entry = (struct hash_table_entry){.key = key_of_id(id)};
    method->references = 1;
    method->known_class = known_class;
    method->known = (struct java_method){
        .method = {.name = memcpy((char *)method->lines + lines_bytes, name, name_bytes),
                   .class_name = known_class->name,
                   .file = known_class->file,
                   .first_line =
                       count ? source_map_find(known_class->map, method->lines[0].line).line : 0,
                   .id = java_method_new_id()},
        .lines = method->lines,
        .line_count = count,
        .map = known_class->map,
        .native = fetched->native,
    };
    return method;
}

static enum hotspot_bond bond_of(const struct method_set *set, const void *vm_method, jmethodID id,
                                 const void **class_key)
{
    const struct method_cache_options *options = &set->cache->options;
    *class_key = NULL;
    return options->bond && vm_method
               ? options->bond(options->context, set->nearby, vm_method, id, class_key)
               : HOTSPOT_UNKNOWN;
}

/*
 * The class that a method belongs to, with a reference for the caller; `key` is as for class_new.
 * NULL: it is not to be had.
 */
static struct known_class *get_class(const struct method_set *set, jmethodID id, const void *key)
{
    struct method_cache *cache = set->cache;
    const struct method_cache_options *options = &cache->options;
    struct known_class *known = NULL;
    if (key) {
        pthread_mutex_lock(&cache->lock);
        known = class_cache_find(&cache->classes, key);
        pthread_mutex_unlock(&cache->lock);
    }
    struct fetched_class fetched;
    JNIEnv *jni = NULL;
    if (!known && set->vm) {
        (*set->vm)->GetEnv(set->vm, (void **)&jni, JNI_VERSION_1_6);
    }
    if (known || !class_fetch_of_method(set->jvmti, jni, id, &fetched)) {
        return known;
    }
    known = class_new(key, options->names, options->normalize, &fetched);
    class_fetch_free(set->jvmti, &fetched);
    if (known) {
        pthread_mutex_lock(&cache->lock);
        known = class_cache_add(&cache->classes, known);
        pthread_mutex_unlock(&cache->lock);
    }
    return known;
}

/* Describes a method; its class's reference is given back where there is no memory (NULL). */
static struct cached_method *describe_or_drop(struct method_set *set, jmethodID id,
                                              struct known_class *known_class,
                                              const struct fetched_method *fetched,
                                              const struct hotspot_method *own)
{
    struct method_cache *cache = set->cache;
    struct cached_method *method = describe(&cache->options, id, known_class, fetched, own);
    if (!method) {
        pthread_mutex_lock(&cache->lock);
        class_cache_drop(&cache->classes, known_class);
        pthread_mutex_unlock(&cache->lock);
    }
    return method;
}

/* The method as HotSpot's own structures have it; until the next one is read. NULL: not to be had.
 */
static const struct hotspot_method *read_own(struct method_set *set, const void *vm_method)
{
    const struct method_cache_options *options = &set->cache->options;
    return options->read && options->read(options->context, set->nearby, vm_method, &set->own)
               ? &set->own.methods[0]
               : NULL;
}

/* The same as if the JVM had told it, but for the lines. Not to be given back. */
static struct fetched_method as_fetched(const struct hotspot_method *own)
{
    return (struct fetched_method){
        .name = (char *)own->name,
        .descriptor = (char *)own->descriptor,
        .is_private_static = own->private_static,
        .native = own->native,
    };
}

/* A method of whom HotSpot itself has told all; NULL: not to be had. */
static struct cached_method *take_own(struct method_set *set, jmethodID id,
                                      const struct hotspot_method *own)
{
    struct known_class *known_class = get_class(set, id, own->pool);
    const struct fetched_method fetched = as_fetched(own);
    return known_class ? describe_or_drop(set, id, known_class, &fetched, own) : NULL;
}

/* Asks the JVM; the answer holds a reference to its class, and is not in the cache as yet. */
static struct cached_method *ask(struct method_set *set, jmethodID id, const void *vm_method)
{
    struct fetched_method fetched;
    if (!method_fetch(set->jvmti, id, &fetched)) {
        return NULL;
    }
    /* Behind the JVM's answer: what is the id's now was it then, for what is not never comes back.
     */
    const void *class_key;
    bool is_other = bond_of(set, vm_method, id, &class_key) == HOTSPOT_ANOTHER;
    struct known_class *known_class = get_class(set, id, class_key);
    struct cached_method *method = NULL;
    if (known_class && is_other) {
        const struct hotspot_method *own = read_own(set, vm_method);
        struct fetched_method other = fetched;
        other.line_count = 0;
        other = own ? as_fetched(own) : other;
        method = describe_or_drop(set, id, known_class, &other, own);
    } else if (known_class) {
        method = describe_or_drop(set, id, known_class, &fetched, NULL);
    }
    method_fetch_free(set->jvmti, &fetched);
    return method;
}

/*
 * Puts a described method into the cache, or frees it where another thread was faster. The one that
 * is in the cache, with a reference for the caller; NULL: no memory. The lock is held.
 */
static struct cached_method *add_described(struct method_cache *cache, jmethodID id,
                                           const void *vm_method, struct cached_method *method)
{
    struct cached_method *known = take_known(cache, id, vm_method);
    method->vm_method = vm_method;
    if (!known && hash_table_add(&cache->methods, &method->entry)) {
        known = method;
    }
    if (known != method) {
        class_cache_drop(&cache->classes, method->known_class);
        free(method);
    }
    return known;
}

/* A method of a class that is known: nobody has to be asked, and the lock is taken once. NULL: its
 * class is not known, or there is no memory. */
static struct cached_method *add_of_known_class(struct method_set *set, jmethodID id,
                                                const void *vm_method,
                                                const struct hotspot_method *own)
{
    struct method_cache *cache = set->cache;
    struct cached_method *method = NULL;
    const struct fetched_method fetched = as_fetched(own);
    pthread_mutex_lock(&cache->lock);
    struct known_class *known_class = class_cache_find(&cache->classes, own->pool);
    if (known_class) {
        method = describe(&cache->options, id, known_class, &fetched, own);
        if (method) {
            method = add_described(cache, id, vm_method, method);
        } else {
            class_cache_drop(&cache->classes, known_class);
        }
    }
    pthread_mutex_unlock(&cache->lock);
    return method;
}

/*
 * A method that the cache does not know, with a reference for the caller. Where memory may be read
 * in place, to look takes a fraction of the time that the JVM takes to answer, and needs no look
 * whom the answer was about.
 */
static struct cached_method *learn(struct method_set *set, jmethodID id, const void *vm_method)
{
    struct method_cache *cache = set->cache;
    const struct hotspot_method *own = NULL;
    if (vm_method && hotspot_nearby_in_place(set->nearby)) {
        own = read_own(set, vm_method);
    }
    struct cached_method *method = own ? add_of_known_class(set, id, vm_method, own) : NULL;
    if (method) {
        return method;
    }
    method = own ? take_own(set, id, own) : ask(set, id, vm_method);
    if (method) {
        pthread_mutex_lock(&cache->lock);
        method = add_described(cache, id, vm_method, method);
        pthread_mutex_unlock(&cache->lock);
    }
    return method;
}

void method_set_begin(struct method_set *set, struct method_cache *cache, jvmtiEnv *jvmti,
                      JavaVM *vm, struct hotspot_nearby *nearby)
{
    set->nearby = nearby;
    set->cache = cache;
    set->jvmti = jvmti;
    set->vm = vm;
}

/* Room for one method more. */
static bool grow_set(struct method_set *set)
{
    if (set->count < set->room) {
        return true;
    }
    uint32_t room = set->room ? set->room * 2 : 64;
    struct cached_method **methods = realloc(set->methods, room * sizeof(struct cached_method *));
    if (!methods) {
        return false;
    }
    set->methods = methods;
    set->room = room;
    return true;
}

const struct java_method *method_set_get(struct method_set *set, jmethodID id,
                                         const void *vm_method)
{
    if (!id || !grow_set(set)) {
        return NULL;
    }
    pthread_mutex_lock(&set->cache->lock);
    struct cached_method *method = take_known(set->cache, id, vm_method);
    pthread_mutex_unlock(&set->cache->lock);
    if (!method && !(method = learn(set, id, vm_method))) {
        return NULL;
    }
    set->methods[set->count++] = method;
    return &method->known;
}

static void drop_all(struct method_cache *cache, struct cached_method *const *methods,
                     uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        drop_method(cache, methods[i]);
    }
}

/* Overlapped code is gone, though nobody said so, and the right to know its methods with it. */
static void tell(struct kept *kept, enum occupant_event event)
{
    struct held_methods *held = (struct held_methods *)kept;
    struct method_cache *cache = held->cache;
    if (event == OCCUPANT_OVER) {
        drop_all(cache, held->methods, held->count);
    } else if (event != OCCUPANT_MOVED && held->count > 0) {
        pthread_mutex_lock(&cache->lock);
        drop_all(cache, held->methods, held->count);
        pthread_mutex_unlock(&cache->lock);
        held->count = 0;
    }
    if (event == OCCUPANT_GONE || event == OCCUPANT_OVER) {
        free(held);
    }
}

struct kept *method_set_hold(struct method_set *set)
{
    struct held_methods *held =
        set->count ? malloc(sizeof(*held) + set->count * sizeof(struct cached_method *)) : NULL;
    if (!held) {
        return NULL;
    }
    *held = (struct held_methods){.kept.tell = tell, .cache = set->cache, .count = set->count};
    memcpy(held->methods, set->methods, set->count * sizeof(struct cached_method *));
    set->count = 0;
    return &held->kept;
}

void method_set_empty(struct method_set *set)
{
    if (set->count == 0) {
        return;
    }
    pthread_mutex_lock(&set->cache->lock);
    drop_all(set->cache, set->methods, set->count);
    pthread_mutex_unlock(&set->cache->lock);
    set->count = 0;
}

void method_set_destroy(struct method_set *set)
{
    hotspot_methods_free(&set->own);
    free(set->methods);
    *set = (struct method_set){0};
}
