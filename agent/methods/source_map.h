/*
 * Where a class's lines really come from: the SourceDebugExtension attribute, a source map as JSR
 * 45 has it. Two uses of it:
 *
 *   Kotlin  gives code that it inlined from other functions lines of its own, behind the file's
 *           last one; the map says from which file and line they are, and from which line of the
 *           class's own file the function was called. Such code gets a node of its own in the
 *           inline tree, with a method that stands for "whatever was inlined from that file": the
 *           map does not tell which function it was.
 *   others  (JSP) compile one source to another, which no one looks at: the lines of the class
 *           become those of the first file that the map names.
 */
#ifndef JD_AGENT_SOURCE_MAP_H
#define JD_AGENT_SOURCE_MAP_H

#include "agent/methods/java_method.h"

/* A file that lines come from. The strings are the map's. */
struct source_place {
    const char *file; /* "Discount.kt" */
    const char *path; /* of Kotlin the class: "market/DiscountKt"; else the file's; or "" */
    struct java_method method; /* what is inlined from there: no lines. Its owner fills it in, */
    char *strings;             /* and keeps what it needs here; malloc's */
};

struct source_map {
    bool inlines; /* Kotlin */
    uint32_t place_count;
    struct source_place *places;
    /* The rest is source_map.c's. */
    struct source_range *ranges;
    uint32_t range_count;
    struct source_range *calls;
    uint32_t call_count;
    char *text;
};

/*
 * Reads a source map (NULL: the class has none); the signature is the class's own, "Lmarket/Shop;".
 * NULL: there is nothing in it, it is too large or too strange to be believed, or there is no
 * memory; the lines are taken as they are then.
 */
struct source_map *source_map_new(const char *text, const char *class_signature);
void source_map_free(struct source_map *map);

/* Not of Kotlin's: the path of the source that the class was compiled from; as snprintf. */
size_t source_map_path(char *out, size_t room, const struct source_map *map);

/* A line of the line table, after the map. */
struct source_line {
    uint32_t line; /* in the class's own source; of inlined code that of the call. 0: not known */
    const struct java_method *inlined; /* the place's method, or NULL */
    uint32_t inlined_line;             /* in its file */
};

/* `map` may be NULL: the line as it is. */
struct source_line source_map_find(const struct source_map *map, uint32_t line);

#endif
