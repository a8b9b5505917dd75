/*
 * Writes DWARF 4 (dwarfstd.org): a compile unit for each source file, in it a subprogram for each
 * compiled method, in that its inlined methods with their ranges, and a line table. What perf, gdb,
 * addr2line -i and objdump need, and no more.
 */
#ifndef JD_TOOL_DWARF_H
#define JD_TOOL_DWARF_H

#include "jdtool/base/bytes.h"
#include "jdtool/jitdump/trailer.h"
#include "jdtool/resolve/source_texts.h"

/* Code from this offset on, up to the next row, belongs to a line. */
struct dwarf_row {
    uint32_t offset; /* from the function's start */
    uint32_t line;   /* 0: none */
    const char *file;
};

struct dwarf_function {
    uint64_t address; /* in the image */
    uint64_t size;
    /* That of its symbol: perf takes another one for an inlined function's. It outlives the struct
     * dwarf. */
    const char *name;
    uint32_t line;                /* of its declaration; 0: unknown */
    const struct dwarf_row *rows; /* ascending offsets below size */
    uint32_t row_count;
    const struct trailer *inlines; /* NULL: none */
    uint32_t layer;                /* tells it from code that was at its place before */
};

struct dwarf_section {
    const char *name;
    const struct bytes *bytes;
};
#define DWARF_SECTIONS 6

struct dwarf;

/* names: what the inline trees refer to. Both must outlive the struct dwarf. NULL: no memory. */
struct dwarf *dwarf_new(struct source_path *source_path, const struct trailer_names *names);
void dwarf_free(struct dwarf *dwarf); /* NULL is fine */

/* A unit is for functions of one file (NULL: unknown), wherever they lie. */
void dwarf_unit_begin(struct dwarf *dwarf, const char *file);
void dwarf_add_function(struct dwarf *dwarf, const struct dwarf_function *function);
void dwarf_unit_end(struct dwarf *dwarf);

/* About how large the sections have become, in bytes. */
uint64_t dwarf_size(const struct dwarf *dwarf);

/* The sections; they live as long as the struct dwarf. 0, or -ENOMEM when something was lost. */
int dwarf_sections(struct dwarf *dwarf, struct dwarf_section sections[DWARF_SECTIONS]);

#endif
