/*
 * What the files behind dwarf.h share: dwarf.c has the units and their functions, dwarf_line.c the
 * tables of files and lines, dwarf_inlines.c the inlined methods.
 */
#ifndef JD_TOOL_DWARF_PRIVATE_H
#define JD_TOOL_DWARF_PRIVATE_H

#include "jdtool/base/hash_map.h"
#include "jdtool/base/intern.h"
#include "jdtool/images/dwarf.h"

enum dwarf_abbreviation {
    ABBREV_UNIT = 1,
    ABBREV_UNIT_NO_DIRECTORY,
    ABBREV_FUNCTION,      /* with children */
    ABBREV_LEAF_FUNCTION, /* without */
    ABBREV_ABSTRACT,
    ABBREV_INLINED, /* one piece of code; with children */
    ABBREV_LEAF_INLINED,
    ABBREV_INLINED_RANGES, /* several; with children */
    ABBREV_LEAF_INLINED_RANGES,
};

/* For classes that name no source file, which compilers and the JDK make at run time, and stubs. */
#define UNKNOWN_FILE "(generated)"

/*
 * Java has no columns; ours tell places apart that have one address, file and line, since KDAB
 * hotspot takes what agrees in all of these for one place: a row of the line table, the function,
 * the call of each inlined method and that method where the code of several begins, and all of
 * these in code that took another's place. Each layer has columns of its own.
 */
enum {
    DWARF_COLUMN_ROW,
    DWARF_COLUMN_FUNCTION,
    DWARF_COLUMN_INLINED, /* of the outermost: its call, then its declaration; then the next one's
                           */
    DWARF_LAYER_COLUMNS = 1024, /* more than two for each level of inlined methods */
};

/* A column of a layer. */
static inline uint64_t dwarf_column(uint32_t layer, uint32_t column)
{
    return (uint64_t)layer * DWARF_LAYER_COLUMNS + column;
}

/* From pointers or ids to 32-bit values. Zero one to start. */
struct dwarf_table {
    struct hash_map map;
    struct dwarf_entry {
        uint64_t key;
        uint32_t value;
    } * entries; /* in the order in which they were entered */
    uint32_t count;
    uint32_t room;
};

/* Where an abstract subprogram's offset has to be put once it is known. */
struct dwarf_fixup {
    size_t at;
    uint64_t method;
};

/* Code of a node and of those below it: a piece, in order of addresses. */
struct dwarf_piece {
    uint32_t node;
    uint32_t start;
    uint32_t end;
    uint32_t next; /* of the same node, index plus one */
};

struct dwarf_unit {
    const char *root; /* NULL: none */
    size_t info_at;
    size_t ranges_at; /* in the unit's entry */
    struct dwarf_place {
        uint64_t address;
        uint64_t size;
    } * functions;
    uint32_t function_count;
    uint32_t function_room;
    struct bytes line_program;
    struct bytes files;              /* entries of the line program's file table */
    struct bytes directories;        /* and of its directory table */
    struct dwarf_table file_numbers; /* const char * -> number */
    struct dwarf_table root_numbers;
    struct dwarf_table methods; /* ids of those inlined -> offset of the abstract subprogram */
    struct dwarf_fixup *fixups;
    uint32_t fixup_count;
    uint32_t fixup_room;
};

struct dwarf {
    struct source_path *source_path;
    const struct trailer_names *names;
    struct bytes info, abbrev, line, ranges, aranges, strings;
    struct dwarf_table name_offsets; /* const char * -> offset in strings */
    struct intern files;
    struct dwarf_unit unit;
    bool failed;

    struct dwarf_piece *pieces; /* of one function */
    uint32_t piece_count;
    uint32_t piece_room;
    uint32_t *first_piece; /* of each node, index plus one */
    uint32_t *last_piece;
    uint32_t node_room;
};

/*
 * The value of a key, entered as `fresh` when the key is new; *is_new says which. Without memory it
 * is `fresh`, and the dwarf has failed.
 */
uint32_t dwarf_enter(struct dwarf *dwarf, struct dwarf_table *table, uint64_t key, uint32_t fresh,
                     bool *is_new);

/* ---- dwarf_line.c ---- */

/* The number of a file (NULL: unknown) in the unit's table, entered when it is new. */
uint32_t dwarf_file_number(struct dwarf *dwarf, const char *file);

/* A function's lines go into the unit's line program. */
void dwarf_put_rows(struct dwarf *dwarf, const struct dwarf_function *function);

/* The unit's tables and line program go into .debug_line. */
void dwarf_put_line_table(struct dwarf *dwarf);

/* ---- dwarf_inlines.c ---- */

/*
 * Finds out where each method of a function's inline tree has its code. False: there is no tree, or
 * not one that can be written.
 */
bool dwarf_collect_inlines(struct dwarf *dwarf, const struct dwarf_function *function);

/* The tree's entries, as children of the function's. */
void dwarf_put_inlines(struct dwarf *dwarf, const struct dwarf_function *function);

#endif
