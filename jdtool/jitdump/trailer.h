/*
 * Decodes the trailer of a DEBUG_INFO record (format/jitdump.h): the inline tree and what the JVM
 * knew of the code. Methods and files are defined once a dump, so one struct trailer_names goes
 * along with a reader from the first record to the last.
 */
#ifndef JD_TOOL_TRAILER_H
#define JD_TOOL_TRAILER_H

#include "format/jitdump.h"
#include "jdtool/jitdump/jitdump_reader.h"

/* A method as a dump defines it. Strings belong to the trailer_names and live as long. */
struct trailer_method {
    const char *name;    /* "?" when the dump never defined it */
    const char *file;    /* NULL: unknown */
    uint64_t file_id;    /* 0: unknown */
    uint32_t first_line; /* 0: unknown */
};

struct trailer_node {
    uint64_t method; /* id; 0: unknown */
    uint32_t parent; /* node 0 has none */
    uint32_t call_line;
};

struct trailer_range {
    uint32_t offset;
    uint32_t size;
    uint32_t node;
    uint32_t line;
};

/* One decoded trailer. Start zeroed, use it again and again, free with trailer_free. */
struct trailer {
    struct trailer_node *nodes;
    uint32_t node_count;
    struct trailer_range *ranges;
    uint32_t range_count;
    int64_t facts[JITDUMP_CODE_KEYS]; /* by enum jitdump_code_key; -1: unknown */
    bool tree_rows;                   /* the record's rows are left to the tree: tree_rows_make */
    uint32_t undefined_files;         /* methods that name a file which was not defined before */
    uint32_t node_room;
    uint32_t range_room;
};

struct trailer_names;

struct trailer_names *trailer_names_new(void); /* NULL: no memory */
void trailer_names_free(struct trailer_names *names);

/* Never NULL: an id without a definition gives a method named "?". */
const struct trailer_method *trailer_names_method(const struct trailer_names *names, uint64_t id);

/* The path of a source file; NULL: the dump has not defined it. */
const char *trailer_names_file(const struct trailer_names *names, uint64_t id);

/* Whether the dump has defined the method. */
bool trailer_names_has_method(const struct trailer_names *names, uint64_t id);

/*
 * Takes a definition in, copying the strings; a method's `file` is found through its file_id. 0, or
 * after *why -EINVAL: the id is 0 or has a definition with other contents; -ENOMEM.
 */
int trailer_names_add_file(struct trailer_names *names, uint64_t id, const char *path,
                           const char **why);
int trailer_names_add_method(struct trailer_names *names, uint64_t id,
                             const struct trailer_method *method, const char **why);

uint64_t trailer_names_method_count(const struct trailer_names *names);

/* One section of a trailer. */
struct trailer_section {
    uint64_t tag; /* enum jitdump_trailer_tag, or one that we do not know */
    const uint8_t *at;
    const uint8_t *end;
};

/*
 * Finds the trailer in what stands behind the entries of a DEBUG_INFO record, [bytes, bytes +
 * size): 1 with its sections in [*at, *end); 0: there is none, or none of a version we know;
 * -EINVAL: broken, *why says how.
 */
int trailer_find(const struct jitdump_reader *reader, const uint8_t *bytes, size_t size,
                 const uint8_t **at, const uint8_t **end, const char **why);

/* Steps over one section, or over one definition of a section of its kind: 1, 0 at the end,
 * -EINVAL after *why. Strings are those in the record. */
int trailer_section_next(const uint8_t **at, const uint8_t *end, struct trailer_section *section,
                         const char **why);
int trailer_file_next(struct trailer_section *section, uint64_t *id, const char **path,
                      const char **why);
int trailer_method_next(struct trailer_section *section, uint64_t *id,
                        struct trailer_method *method, const char **why);

/*
 * Decodes what stands behind the entries of a DEBUG_INFO record, [bytes, bytes + size), taking
 * definitions into names. 0: decoded, or there is no trailer (both counts are then 0); -EINVAL
 * (broken) or -ENOMEM: *why says how, and the trailer is empty but for the definitions before the
 * fault.
 */
int trailer_decode(const struct jitdump_reader *reader, const uint8_t *bytes, size_t size,
                   struct trailer_names *names, struct trailer *trailer, const char **why);

/* Decodes the facts alone, -1 where unknown. 0; -EINVAL: broken, *why says how. */
int trailer_facts(const struct jitdump_reader *reader, const uint8_t *bytes, size_t size,
                  int64_t facts[JITDUMP_CODE_KEYS], const char **why);

/* For those who make a trailer of something else. 0 or -ENOMEM. */
int trailer_add_node(struct trailer *trailer, const struct trailer_node *node);
int trailer_add_range(struct trailer *trailer, const struct trailer_range *range);

/* Makes it one that says nothing: no nodes, no ranges, all facts unknown. */
void trailer_clear(struct trailer *trailer);
void trailer_free(struct trailer *trailer);

/* The range that covers an offset from the code's start, or NULL. Logarithmic. */
const struct trailer_range *trailer_range_at(const struct trailer *trailer, uint32_t offset);

/* ---- Rows of the tree ---- */

/*
 * The rows of a DEBUG_INFO record that leaves them to its inline tree (format/jitdump.h, "Rows from
 * the tree").
 */

/* Rows as they would stand in the record. Start zeroed, use again and again; the caller frees
 * entries. */
struct tree_rows {
    struct jitdump_entry *entries; /* their files belong to the names */
    uint32_t count;
    uint32_t room;
};

/*
 * Makes the rows of `size` bytes of code at `address`, in the place of those that *rows had; none
 * where the tree is empty. Ranges behind the code give none. 0 or -ENOMEM.
 */
int tree_rows_make(const struct trailer *trailer, const struct trailer_names *names,
                   uint64_t address, uint64_t size, struct tree_rows *rows);

#endif
