#include "agent/methods/class_cache.h"

#include "agent/methods/source_name.h"
#include "format/fnv1a.h"

#include <stdatomic.h>
#include <stdio.h>
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

/* Copies a string and its NUL to *at, which it moves on. */
static const char *store(char **at, const char *string)
{
    size_t bytes = strlen(string) + 1;
    const char *stored = memcpy(*at, string, bytes);
    *at += bytes;
    return stored;
}

/* What was inlined from a file: "pkg.UtilKt.{inline}", as the source has it "pkg.{inline Util.kt}".
 */
static void name_place(char name[SYMBOL_MAX], enum name_style names, const char *signature,
                       const char *class_name, const char *file)
{
    if (names == NAMES_SOURCE) {
        char made[SYMBOL_MAX];
        char text[SYMBOL_MAX - sizeof("{inline }")];
        symbol_text(text, sizeof(text), file);
        snprintf(made, sizeof(made), "{inline %s}", text);
        source_name(
            name, SYMBOL_MAX, SOURCE_KOTLIN,
            &(struct source_method){.class_name = class_name, .method = "", .parameters = made});
        return;
    }
    symbol_method_name(name, SYMBOL_MAX, names, false, signature, "{inline}", "");
    size_t size = strlen(name);
    if (size > 2 && strcmp(name + size - 2, "()") == 0) { /* nobody knows its parameters */
        name[size - 2] = '\0';
    }
}

uint32_t class_cache_method_id(void)
{
    static atomic_uint last_id;
    return atomic_fetch_add(&last_id, 1) + 1;
}

/* The method that stands for what was inlined from a place. Without memory it has no name. */
static void describe_place(struct source_place *place, enum name_style names)
{
    char signature[SYMBOL_MAX];
    char name[SYMBOL_MAX];
    char class_name[SYMBOL_MAX];
    snprintf(signature, sizeof(signature), "L%s;", place->path);
    symbol_class_name(class_name, sizeof(class_name), false, signature);
    name_place(name, names, signature, class_name, place->file);
    size_t name_bytes = strlen(name) + 1;
    place->strings = malloc(name_bytes + strlen(class_name) + 1);
    if (place->strings) {
        char *at = place->strings;
        place->method.method = (struct method){
            .name = store(&at, name),
            .class_name = store(&at, class_name),
            .id = class_cache_method_id(),
        };
    }
}

/* The class's source map, with its places described. NULL: it has none, or there is no memory. */
static struct source_map *map_of(const struct fetched_class *fetched, enum name_style names)
{
    struct source_map *map = source_map_new(fetched->source_map, fetched->signature);
    bool named = true;
    for (uint32_t i = 0; map && map->inlines && i < map->place_count; i++) {
        describe_place(&map->places[i], names);
        named &= map->places[i].strings != NULL;
    }
    if (!named) {
        source_map_free(map);
        map = NULL;
    }
    return map;
}

struct known_class *class_new(uint64_t key, enum name_style names, bool normalize,
                              const struct fetched_class *fetched)
{
    char name[SYMBOL_MAX];
    char path[SYMBOL_MAX];
    struct source_map *map = map_of(fetched, names);
    symbol_class_name(name, sizeof(name), normalize, fetched->signature);
    size_t bytes = strlen(name) + 1 + strlen(fetched->signature) + 1;
    if (fetched->source_file) {
        symbol_source_path(path, sizeof(path), fetched->signature, fetched->source_file);
        if (map && !map->inlines) { /* compiled from what is in the map */
            source_map_path(path, sizeof(path), map);
        }
        bytes += strlen(fetched->source_file) + 1 + strlen(path) + 1;
    }
    struct known_class *known = malloc(sizeof(*known) + bytes);
    if (!known) {
        source_map_free(map);
        return NULL;
    }
    *known = (struct known_class){.entry = {.key = key}, .references = 1, .map = map};
    char *at = known->strings;
    known->name = store(&at, name);
    known->signature = store(&at, fetched->signature);
    if (fetched->source_file) {
        known->source_file = store(&at, fetched->source_file);
        known->path = store(&at, path);
    }
    return known;
}

/* Frees a class that holds no files. */
static void free_class(struct known_class *known)
{
    source_map_free(known->map);
    free(known->map_files);
    free(known);
}

struct known_class *class_cache_find(struct class_cache *cache, uint64_t key)
{
    struct known_class *known =
        key ? (struct known_class *)hash_table_find(&cache->classes, key) : NULL;
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

/* The files of the map's places; one that is not to be had stays unknown. */
static void take_map_files(struct class_cache *cache, struct known_class *known)
{
    struct source_map *map = known->map;
    if (!map || !map->inlines ||
        !(known->map_files = calloc(map->place_count, sizeof(struct known_file *)))) {
        return;
    }
    for (uint32_t i = 0; i < map->place_count; i++) {
        struct source_place *place = &map->places[i];
        char signature[SYMBOL_MAX];
        char path[SYMBOL_MAX];
        snprintf(signature, sizeof(signature), "L%s;", place->path);
        symbol_source_path(path, sizeof(path), signature, place->file);
        known->map_files[i] = take_file(cache, path);
        place->method.method.file = known->map_files[i] ? &known->map_files[i]->file : NULL;
    }
}

struct known_class *class_cache_add(struct class_cache *cache, struct known_class *known)
{
    const uint64_t key = known->entry.key;
    struct known_class *other = class_cache_find(cache, key);
    if (other) {
        free_class(known);
        return other;
    }
    if (key && !hash_table_add(&cache->classes, &known->entry)) {
        free_class(known);
        return NULL;
    }
    known->known_file = known->path ? take_file(cache, known->path) : NULL;
    known->file = known->known_file ? &known->known_file->file : NULL;
    take_map_files(cache, known);
    return known;
}

void class_cache_drop(struct class_cache *cache, struct known_class *known)
{
    if (--known->references > 0) {
        return;
    }
    drop_file(cache, known->known_file);
    for (uint32_t i = 0; known->map_files && i < known->map->place_count; i++) {
        drop_file(cache, known->map_files[i]);
    }
    if (known->entry.key) {
        hash_table_remove(&cache->classes, &known->entry);
    }
    free_class(known);
}

void class_cache_destroy(struct class_cache *cache)
{
    hash_table_free(&cache->classes); /* empty by now */
    hash_table_free(&cache->files);
}
