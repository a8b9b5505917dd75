#include "agent/class_cache.h"

#include "agent/symbol_name.h"
#include "format/fnv1a.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct known_file {
    struct hash_table_entry entry; /* key: hash of the path */
    uint32_t references;           /* classes */
    struct source_file file;
    char path[];
};

void class_cache_init(struct class_cache *cache)
{
    *cache = (struct class_cache){.classes = {.grain = 9}}; /* constant pools are larger still */
}

static uint64_t key_of_class(const void *key)
{
    return (uint64_t)(uintptr_t)key;
}

/* Copies a string and its NUL to *at, which it moves on. */
static const char *store(char **at, const char *string)
{
    size_t bytes = strlen(string) + 1;
    const char *stored = memcpy(*at, string, bytes);
    *at += bytes;
    return stored;
}

struct known_class *class_new(const void *key, bool normalize, const struct fetched_class *fetched)
{
    char name[SYMBOL_MAX];
    char path[SYMBOL_MAX];
    symbol_class_name(name, sizeof(name), normalize, fetched->signature);
    size_t bytes = strlen(name) + 1 + strlen(fetched->signature) + 1;
    if (fetched->source_file) {
        symbol_source_path(path, sizeof(path), fetched->signature, fetched->source_file);
        bytes += strlen(fetched->source_file) + 1 + strlen(path) + 1;
    }
    struct known_class *known = malloc(sizeof(*known) + bytes);
    if (!known) {
        return NULL;
    }
    *known = (struct known_class){.entry = {.key = key_of_class(key)}, .references = 1};
    char *at = known->strings;
    known->name = store(&at, name);
    known->signature = store(&at, fetched->signature);
    if (fetched->source_file) {
        known->source_file = store(&at, fetched->source_file);
        known->path = store(&at, path);
    }
    return known;
}

struct known_class *class_cache_find(struct class_cache *cache, const void *key)
{
    struct known_class *known =
        key ? (struct known_class *)hash_table_find(&cache->classes, key_of_class(key)) : NULL;
    if (known) {
        known->references++;
    }
    return known;
}

/* The one file of that path, with a reference for the caller. NULL: no memory. */
static struct known_file *take_file(struct class_cache *cache, const char *path)
{
    static atomic_uint last_id;
    uint64_t key = fnv1a(FNV1A_START, path);
    struct known_file *file = (struct known_file *)hash_table_find(&cache->files, key);
    while (file && strcmp(file->path, path) != 0) {
        file = (struct known_file *)hash_table_find_next(&file->entry);
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
        if (!hash_table_add(&cache->files, &file->entry)) {
            free(file);
            return NULL;
        }
    }
    file->references++;
    return file;
}

static void drop_file(struct class_cache *cache, struct known_file *file)
{
    if (file && --file->references == 0) {
        hash_table_remove(&cache->files, &file->entry);
        free(file);
    }
}

struct known_class *class_cache_add(struct class_cache *cache, struct known_class *known)
{
    const void *key = (const void *)(uintptr_t)known->entry.key;
    struct known_class *other = class_cache_find(cache, key);
    if (other) {
        free(known);
        return other;
    }
    if (key && !hash_table_add(&cache->classes, &known->entry)) {
        free(known);
        return NULL;
    }
    known->known_file = known->path ? take_file(cache, known->path) : NULL;
    known->file = known->known_file ? &known->known_file->file : NULL;
    return known;
}

void class_cache_drop(struct class_cache *cache, struct known_class *known)
{
    if (--known->references > 0) {
        return;
    }
    drop_file(cache, known->known_file);
    if (known->entry.key) {
        hash_table_remove(&cache->classes, &known->entry);
    }
    free(known);
}

void class_cache_destroy(struct class_cache *cache)
{
    hash_table_drain(&cache->classes); /* empty by now: frees the slots */
    hash_table_drain(&cache->files);
}
