/*
 * samply's three extensions of the jitdump format, as Markus Stange describes them in "Jitdump
 * record format for debug info with inlines" (gist mstange/8db7a7a0ec21ca1e93c5f7fc12077559,
 * October 2023). Written on request only (`samply=on`, the last by `jdtool convert --samply`):
 * samply itself and perf skip ids they do not know, other readers stop at them.
 *
 * All three stand ahead of the LOAD they describe, inside its group, and like the rest of a dump in
 * the byte order of the machine that wrote it. The prefix is that of every record (jitdump.h).
 *
 * The document spells out SAMPLY_JIT_CODE_DEBUG_INFO2 field by field. Of the other two it tells the
 * purpose only, so their layout here is this project's reading of it, in the same style: counts and
 * sizes first, then NUL-terminated UTF-8 padded to a multiple of four.
 */
#ifndef JD_FORMAT_SAMPLY_H
#define JD_FORMAT_SAMPLY_H

#include "format/jitdump.h"

enum samply_record_id {
    SAMPLY_JIT_CODE_DEBUG_INFO2 = 827346259,
    SAMPLY_JIT_TIER = 827346260,
    SAMPLY_EMBEDDED_SOURCE_FILE = 827346261,
};

/* String lists are padded with 0-3 zero bytes to this boundary, counted from the list's start. */
#define SAMPLY_ALIGN 4

/*
 * Behind it, in this order:
 *   file list        file_count NUL-terminated strings, file_list_size bytes with their padding
 *   function names   function_names_count of them, function_names_list_size bytes
 *   functions        function_count records; the first is the outer function
 *   inline calls     inline_call_count records, depth-first
 *   ranges           range_count records, in the order of the calls: each takes its next
 *                    range_count of them
 *   lines            line_count records, ascending
 */
struct samply_debug_info2 {
    struct jitdump_record prefix;
    uint32_t file_count;
    uint32_t file_list_size;
    uint32_t function_names_count;
    uint32_t function_names_list_size;
    uint32_t function_count;
    uint32_t inline_call_count;
    uint32_t range_count;
    uint32_t line_count;
};

/*
 * file_index always counts in the file list. A method whose source file is unknown names an empty
 * string there, since the document has no "none".
 */
struct samply_function {
    uint32_t name_index;
    uint32_t file_index;
    uint32_t start_line;   /* 0: unknown */
    uint32_t start_column; /* 0: unknown; always so for Java */
    uint32_t flags;        /* none is defined */
};

struct samply_inline_call {
    uint32_t depth; /* 0: called by the outer function; at most that of the call before, plus one */
    uint32_t range_count; /* 1 and up */
    uint32_t function_index;
    uint32_t call_line; /* in the caller's file; 0: unknown */
    uint32_t call_column;
};

struct samply_range {
    uint32_t offset; /* from the code's start */
    uint32_t size;   /* bytes */
};

/* Code from `offset` up to the next record's. Inside inlined code: of the innermost function. */
struct samply_line {
    uint32_t offset; /* from the code's start */
    uint32_t file_index;
    uint32_t line; /* 1 and up; 0: from here on no line is known */
    uint32_t column;
};

/*
 * The tier of the code that the group's LOAD brings. Behind it: the name ("Interpreter", "C1",
 * "C2", "Graal", "Stub"), name_size bytes with NUL and padding.
 */
struct samply_tier {
    struct jitdump_record prefix;
    uint32_t color; /* enum samply_color */
    uint32_t name_size;
};

/* The document's "fixed list of colors", taken to be that of the Firefox Profiler's categories, in
 * its order. */
enum samply_color {
    SAMPLY_COLOR_TRANSPARENT = 0,
    SAMPLY_COLOR_PURPLE = 1,
    SAMPLY_COLOR_GREEN = 2,
    SAMPLY_COLOR_ORANGE = 3,
    SAMPLY_COLOR_YELLOW = 4,
    SAMPLY_COLOR_LIGHTBLUE = 5,
    SAMPLY_COLOR_BLUE = 6,
    SAMPLY_COLOR_BROWN = 7,
    SAMPLY_COLOR_MAGENTA = 8,
    SAMPLY_COLOR_RED = 9,
    SAMPLY_COLOR_LIGHTRED = 10,
    SAMPLY_COLOR_DARKGREY = 11,
    SAMPLY_COLOR_GREY = 12,
    SAMPLY_COLOR_COUNT = 13,
};

/*
 * A source file for viewers that have none. Each path comes once a dump, in the first group that
 * needs it. Classes whose Java source cannot be had may come as a file with a line for each of
 * their methods and bytecodes, "java/util/HashMap$Node.bytecode", which tells the lines of the
 * source; no line record refers to it. Behind it: the path, as in the file lists, path_size bytes
 * with NUL and padding; then the text, text_size bytes (no NUL), and padding up to a multiple of
 * four.
 */
struct samply_embedded_source {
    struct jitdump_record prefix;
    uint32_t path_size;
    uint32_t text_size;
};

JD_ASSERT_SIZE(samply_debug_info2, 48);
JD_ASSERT_AT(samply_debug_info2, file_count, 16);
JD_ASSERT_AT(samply_debug_info2, function_names_count, 24);
JD_ASSERT_AT(samply_debug_info2, function_count, 32);
JD_ASSERT_AT(samply_debug_info2, inline_call_count, 36);
JD_ASSERT_AT(samply_debug_info2, range_count, 40);
JD_ASSERT_AT(samply_debug_info2, line_count, 44);
JD_ASSERT_SIZE(samply_function, 20);
JD_ASSERT_AT(samply_function, flags, 16);
JD_ASSERT_SIZE(samply_inline_call, 20);
JD_ASSERT_AT(samply_inline_call, call_line, 12);
JD_ASSERT_SIZE(samply_range, 8);
JD_ASSERT_SIZE(samply_line, 16);
JD_ASSERT_AT(samply_line, line, 8);
JD_ASSERT_SIZE(samply_tier, 24);
JD_ASSERT_SIZE(samply_embedded_source, 24);

#endif
