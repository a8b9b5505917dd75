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
 * with other line tables. Where an id can be followed to HotSpot's Method, a method is only the
 * same while that is (methods.h, ids_are_pointers); the old one stays for the code that was
 * compiled from it.
 *
 * The lock is never held while the JVM is asked something. Two threads may then ask for the same
 * method; the second one's answer is thrown away.
 */
#include "agent/methods.h"

#include "agent/method_fetch.h"
#include "agent/method_listing.h"
#include "agent/source_name.h"
#include "agent/table.h"
#include "writer/source_text.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct cached_file {
    struct table_entry entry; /* key: hash of the path */
    uint32_t references;      /* methods */
    struct source_file file;
    char path[];
};

struct cached_method {
    struct table_entry entry; /* key: the jmethodID */
    uint32_t references;      /* sets, and pieces of live code */
    const void *vm_method;    /* HotSpot's Method, NULL: not to be had */
    struct cached_file *file;
    struct java_method known;
    struct line_entry lines[]; /* behind them the names */
};

/* One piece of live code. */
struct live_code {
    struct table_entry entry; /* key: the address */
    uint32_t count;
    struct cached_method *methods[];
};

struct method_cache {
    struct method_cache_options options;
    pthread_mutex_t lock;
    struct table methods;
    struct table files;
    struct table code;
};

struct method_cache *method_cache_new(const struct method_cache_options *options)
{
    struct method_cache *cache = calloc(1, sizeof(*cache));
    if (cache) {
        cache->options = *options;
        pthread_mutex_init(&cache->lock, NULL);
    }
    return cache;
}

static uint64_t key_of_id(jmethodID id)
{
    return (uint64_t)(uintptr_t)id;
}

static const void *vm_method_of(const struct method_cache *cache, jmethodID id)
{
    const void *method = NULL;
    if (cache->options.ids_are_pointers) {
        memcpy(&method, id, sizeof(method));
    }
    return method;
}

/* The method that the id stands for now, with a reference for the caller; the lock is held. */
static struct cached_method *take_known(struct method_cache *cache, jmethodID id,
                                        const void *vm_method)
{
    struct cached_method *method =
        (struct cached_method *)table_find(&cache->methods, key_of_id(id));
    while (method && method->vm_method != vm_method) {
        method = (struct cached_method *)table_find_next(&method->entry);
    }
    if (method) {
        method->references++;
    }
    return method;
}

static uint64_t key_of_path(const char *path)
{
    uint64_t key = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (; *path; path++) {
        key = (key ^ (unsigned char)*path) * UINT64_C(0x100000001b3);
    }
    return key;
}

static void free_method(struct cached_method *method)
{
    free(method->known.method.listing);
    free(method);
}

/* Gives back one reference; the lock is held. */
static void drop_method(struct method_cache *cache, struct cached_method *method)
{
    if (--method->references > 0) {
        return;
    }
    struct cached_file *file = method->file;
    if (file && --file->references == 0) {
        table_remove(&cache->files, &file->entry);
        free(file);
    }
    table_remove(&cache->methods, &method->entry);
    free_method(method);
}

static void drop_code(struct method_cache *cache, struct live_code *code)
{
    for (uint32_t i = 0; i < code->count; i++) {
        drop_method(cache, code->methods[i]);
    }
    free(code);
}

void method_cache_free(struct method_cache *cache)
{
    if (!cache) {
        return;
    }
    struct table_entry *entry;
    while ((entry = table_drain(&cache->code))) {
        drop_code(cache, (struct live_code *)entry);
    }
    table_drain(&cache->methods); /* empty by now, as are the files: frees their heads */
    table_drain(&cache->files);
    pthread_mutex_destroy(&cache->lock);
    free(cache);
}

/* The one file of that path, with a reference for the caller; the lock is held. NULL: no memory. */
static struct cached_file *take_file(struct method_cache *cache, const char *path)
{
    static atomic_uint last_id;
    uint64_t key = key_of_path(path);
    struct cached_file *file = (struct cached_file *)table_find(&cache->files, key);
    while (file && strcmp(file->path, path) != 0) {
        file = (struct cached_file *)table_find_next(&file->entry);
    }
    if (!file) {
        size_t bytes = strlen(path) + 1;
        file = calloc(1, sizeof(*file) + bytes);
        if (!file) {
            return NULL;
        }
        memcpy(file->path, path, bytes);
        file->entry.key = key;
        file->file.path = file->path;
        file->file.id = atomic_fetch_add(&last_id, 1) + 1;
        if (!table_add(&cache->files, &file->entry)) {
            free(file);
            return NULL;
        }
    }
    file->references++;
    return file;
}

static uint32_t lowest_line(const struct line_entry *lines, uint32_t count)
{
    return count ? lines[0].line : 0;
}

/* Puts the source's name in place of the Java one, where the language is one that mangles. */
static void name_as_in_source(char name[SYMBOL_MAX], const char *class_name,
                              const struct fetched_method *fetched)
{
    enum source_language language = source_language(fetched->source_file);
    if (language == SOURCE_OTHER) {
        return;
    }
    char method[SYMBOL_MAX];
    char parameters[SYMBOL_MAX];
    symbol_text(method, sizeof(method), fetched->name);
    size_t before = strlen(class_name) + 1 + strlen(method); /* "pkg.Cls.m", which is cut off */
    const char *rest = before < strlen(name) ? name + before : "";
    memcpy(parameters, rest, strlen(rest) + 1);
    source_name(name, SYMBOL_MAX, language, class_name, method, parameters);
}

void method_symbol(char *name, size_t room, const struct method_cache_options *options,
                   const struct fetched_method *fetched)
{
    symbol_method_name(name, room, options->names, options->normalize, fetched->class_signature,
                       fetched->name, fetched->descriptor);
    if (options->names == NAMES_SOURCE && room >= SYMBOL_MAX) {
        char class_name[SYMBOL_MAX];
        symbol_class_name(class_name, sizeof(class_name), options->normalize,
                          fetched->class_signature);
        name_as_in_source(name, class_name, fetched);
    }
}

/* Our own description of what the JVM told, without the file. NULL: no memory. */
static struct cached_method *describe(const struct method_cache_options *options, jmethodID id,
                                      const struct fetched_method *fetched)
{
    static atomic_uint last_id;
    char name[SYMBOL_MAX];
    char class_name[SYMBOL_MAX];
    method_symbol(name, sizeof(name), options, fetched);
    symbol_class_name(class_name, sizeof(class_name), options->normalize, fetched->class_signature);
    size_t name_bytes = strlen(name) + 1;
    size_t class_bytes = strlen(class_name) + 1;
    size_t lines_bytes = (size_t)fetched->line_count * sizeof(struct line_entry);
    struct cached_method *method = malloc(sizeof(*method) + lines_bytes + name_bytes + class_bytes);
    if (!method) {
        return NULL;
    }
    uint32_t count = 0;
    for (jint i = 0; i < fetched->line_count; i++) {
        if (fetched->lines[i].start_location >= 0 && fetched->lines[i].line_number >= 0) {
            method->lines[count++] =
                (struct line_entry){.bci = (uint32_t)fetched->lines[i].start_location,
                                    .line = (uint32_t)fetched->lines[i].line_number};
        }
    }
    line_table_sort(method->lines, count);
    char *strings = (char *)method->lines + lines_bytes;
    memcpy(strings, name, name_bytes);
    memcpy(strings + name_bytes, class_name, class_bytes);
    method->entry = (struct table_entry){.key = key_of_id(id)};
    method->references = 1;
    method->file = NULL;
    method->known = (struct java_method){
        .method = {.name = strings,
                   .class_name = strings + name_bytes,
                   .first_line = lowest_line(method->lines, count),
                   .id = atomic_fetch_add(&last_id, 1) + 1},
        .lines = method->lines,
        .line_count = count,
        .native = fetched->native,
    };
    return method;
}

/* Asks the JVM; the answer has one reference, for the caller. */
static struct cached_method *fetch(struct method_set *set, jmethodID id, const void *vm_method)
{
    struct method_cache *cache = set->cache;
    struct fetched_method fetched;
    if (!method_fetch(set->jvmti, set->jni, id, &fetched)) {
        return NULL;
    }
    char path[SYMBOL_MAX];
    if (fetched.source_file) {
        symbol_source_path(path, sizeof(path), fetched.class_signature, fetched.source_file);
    }
    struct cached_method *method = describe(&cache->options, id, &fetched);
    bool has_file = fetched.source_file != NULL;
    method_fetch_free(set->jvmti, &fetched);
    if (!method) {
        return NULL;
    }
    method->vm_method = vm_method;
    if (cache->options.listings &&
        !(has_file && source_text_exists(cache->options.source_path, path))) {
        method->known.method.listing = method_listing(set->jvmti, set->jni, id, &method->known);
    }
    pthread_mutex_lock(&cache->lock);
    struct cached_method *other = take_known(cache, id, vm_method);
    if (other) {
        free_method(method);
        method = other;
    } else {
        if (has_file) {
            method->file = take_file(cache, path);
        }
        method->known.method.file = method->file ? &method->file->file : NULL;
        if (!table_add(&cache->methods, &method->entry)) {
            /* No memory for even the heads, so the file is nowhere else in use. */
            if (method->file && --method->file->references == 0) {
                table_remove(&cache->files, &method->file->entry);
                free(method->file);
            }
            free_method(method);
            method = NULL;
        }
    }
    pthread_mutex_unlock(&cache->lock);
    return method;
}

void method_set_begin(struct method_set *set, struct method_cache *cache, jvmtiEnv *jvmti,
                      JNIEnv *jni)
{
    set->cache = cache;
    set->jvmti = jvmti;
    set->jni = jni;
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

const struct java_method *method_set_get(struct method_set *set, jmethodID id)
{
    if (!grow_set(set)) {
        return NULL;
    }
    /* Taken before the JVM is asked: redefined in between, the answer is thrown away next time. */
    const void *vm_method = vm_method_of(set->cache, id);
    pthread_mutex_lock(&set->cache->lock);
    struct cached_method *method = take_known(set->cache, id, vm_method);
    pthread_mutex_unlock(&set->cache->lock);
    if (!method) {
        method = fetch(set, id, vm_method);
    }
    if (!method) {
        return NULL;
    }
    set->methods[set->count++] = method;
    return &method->known;
}

void method_set_hold(struct method_set *set, uint64_t address)
{
    struct method_cache *cache = set->cache;
    struct live_code *code = malloc(sizeof(*code) + set->count * sizeof(struct cached_method *));
    if (!code) {
        method_set_empty(set); /* asked for again by the next piece of code */
        return;
    }
    code->entry = (struct table_entry){.key = address};
    code->count = set->count;
    memcpy(code->methods, set->methods, set->count * sizeof(struct cached_method *));
    pthread_mutex_lock(&cache->lock);
    struct live_code *old = (struct live_code *)table_find(&cache->code, address);
    if (old) {
        table_remove(&cache->code, &old->entry);
        drop_code(cache, old);
    }
    if (!table_add(&cache->code, &code->entry)) {
        drop_code(cache, code);
    }
    pthread_mutex_unlock(&cache->lock);
    set->count = 0;
}

void method_set_empty(struct method_set *set)
{
    if (set->count == 0) {
        return;
    }
    pthread_mutex_lock(&set->cache->lock);
    for (uint32_t i = 0; i < set->count; i++) {
        drop_method(set->cache, set->methods[i]);
    }
    pthread_mutex_unlock(&set->cache->lock);
    set->count = 0;
}

void method_set_destroy(struct method_set *set)
{
    free(set->methods);
    *set = (struct method_set){0};
}

void method_cache_release(struct method_cache *cache, uint64_t address)
{
    pthread_mutex_lock(&cache->lock);
    struct live_code *code = (struct live_code *)table_find(&cache->code, address);
    if (code) {
        table_remove(&cache->code, &code->entry);
        drop_code(cache, code);
    }
    pthread_mutex_unlock(&cache->lock);
}
