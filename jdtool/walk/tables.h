/*
 * Fills the tables of the program that walks (shared.h) from the rows that unwind/ and objects/
 * have: there is no second source of them. What was given to the program is not changed again, for
 * it may be reading: something new is written beside it, and then the one word that leads there.
 *
 * One thread at a time.
 */
#ifndef JD_TOOL_WALK_TABLES_H
#define JD_TOOL_WALK_TABLES_H

#include "jdtool/objects/objects.h"
#include "jdtool/unwind/code_frames.h"
#include "jdtool/walk/program.h"

/* Numbers that may be given again. */
struct numbers {
    uint32_t *list;
    uint32_t count, room;
};

/* Rows are given by powers of two: a method of more keeps its last ones for itself. */
#define TABLES_ROW_SIZES 16

struct tables {
    struct walk_program *program;
    unsigned machine;                       /* EM_X86_64 or EM_AARCH64 */
    uint32_t pages, blobs, rows, full_rows; /* given at least once, from the first on */
    bool is_full;                           /* something had no room */
    struct numbers free_pages, free_blobs, free_rows[TABLES_ROW_SIZES];
    struct numbers going, gone; /* blobs that walks may still be reading */
};

/* They live as long as the process. */
void tables_new(struct tables *tables, struct walk_program *program, unsigned machine);

/*
 * Generated code at its place, with what is known of its frames. It hides what was there; of a
 * method that is over, and all of it goes. Returns its number, which it has until then; 0: there is
 * no room, or it lies too far away.
 */
uint32_t tables_add_code(struct tables *tables, struct walk_jvm *jvm, uint64_t address,
                         uint64_t size, const struct blob_frames *frames);

/* Its rows, once; and its frame's size, if that was not told. */
void tables_add_rows(struct tables *tables, uint32_t number, const struct blob_frames *frames);

/* All code of a JVM that nobody walks any more. */
void tables_remove_code(struct tables *tables, struct walk_jvm *jvm);

/* What went before the call before may be given again: a walk takes a millisecond or two, so calls
 * are to be further apart. */
void tables_settle(struct tables *tables);

/* What a file's rows became: for struct walk_mapping. */
struct file_rows {
    uint32_t base, page, grains; /* grains 0: no row, or no room */
};

/* The rows of a file in a range of its addresses. */
struct file_rows tables_add_file(struct tables *tables, struct object *object, uint64_t from,
                                 uint64_t to);

#endif
