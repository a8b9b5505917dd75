/*
 * The classes that cached methods belong to, and their source files: what all methods of a class
 * have in common is fetched and kept once. Counted by references; no locks.
 */
#ifndef JD_AGENT_CLASS_CACHE_H
#define JD_AGENT_CLASS_CACHE_H

#include "agent/methods/method_fetch.h"
#include "agent/methods/source_map.h"
#include "agent/methods/symbol_name.h"
#include "writer/code.h"
#include "writer/hash_table.h"

struct class_cache {
    struct hash_table classes;
    struct hash_table files;
};

/* Memory of its own, which holds the strings, too. */
struct known_class {
    struct hash_table_entry entry; /* key: see class_new */
    uint32_t references;
    struct known_file *known_file;
    struct source_file *file;      /* NULL: unknown; the same object for all classes of one path */
    const char *name;              /* "java.util.Map$Entry", as symbol_class_name gives it */
    const char *signature;         /* JVMTI's */
    const char *source_file;       /* the JVM's word for it; NULL: unknown */
    const char *path;              /* the file's; NULL: unknown */
    struct source_map *map;        /* NULL: its lines are where the line tables have them */
    struct known_file **map_files; /* of the map's places; NULL: none */
    char strings[];
};

/* A number for struct method's id that no other has. */
uint32_t class_cache_method_id(void);

/* An empty cache, which needs no memory as yet. */
void class_cache_init(struct class_cache *cache);

/*
 * Describes a class for class_cache_add, without a file as yet. `key` is something that no other
 * class has as long as this one is cached; 0: nothing is known, and it is not going to be found.
 * NULL: no memory.
 */
struct known_class *class_new(uint64_t key, enum name_style names, bool normalize,
                              const struct fetched_class *fetched);

/* The class of that key, with a reference for the caller. NULL: not known. */
struct known_class *class_cache_find(struct class_cache *cache, uint64_t key);

/*
 * Puts a new class into the cache. Returns it, or the one that has come in between (the new one is
 * freed then), with a reference for the caller. NULL: no memory, and the new one is freed.
 */
struct known_class *class_cache_add(struct class_cache *cache, struct known_class *known);

/* Gives back one reference; the last one frees the class. */
void class_cache_drop(struct class_cache *cache, struct known_class *known);

/* Frees what the cache itself holds; every class must have been dropped. */
void class_cache_destroy(struct class_cache *cache);

#endif
