/*
 * The sections and how they hang together:
 *
 *   .debug_info     units; a unit's functions, in them the inlined ones, then one abstract
 *                   subprogram for each method inlined in the unit, to which the inlined ones refer
 *   .debug_abbrev   the shapes of these entries, one table for all units
 *   .debug_line     a line program for each unit, with the unit's table of files
 *   .debug_ranges   where a unit's functions are, and the code of an inlined method that is in
 *                   several places
 *   .debug_aranges  which unit an address is in
 *   .debug_str      names
 */
#include "jdtool/images/dwarf.h"

#include "jdtool/base/intern.h"
#include "jdtool/base/unique.h"

#include <dwarf.h>
#include <errno.h>

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
 * The value of a key, entered as `fresh` when the key is new; *is_new says which. Without memory
 * it is `fresh`, and the dwarf has failed.
 */
static uint32_t dwarf_enter(struct dwarf *dwarf, struct dwarf_table *table, uint64_t key,
                            uint32_t fresh, bool *is_new)
{
    const struct dwarf_entry made = {key, fresh};
    uint32_t count = table->count;
    uint32_t at = unique_add(&table->entries, &table->count, &table->room, sizeof made, &table->map,
                             &made, sizeof made.key);
    *is_new = at == count || at == HASH_MAP_NONE;
    dwarf->failed |= at == HASH_MAP_NONE;
    return *is_new ? fresh : table->entries[at].value;
}

/* ---- Tables of files and line programs: .debug_line ---- */

/* Line program parameters. */
#define LINE_BASE   (-5)
#define LINE_RANGE  14
#define OPCODE_BASE 13

/* The number of a file (NULL: unknown) in the unit's table, entered when it is new. */
static uint32_t dwarf_file_number(struct dwarf *dwarf, const char *file)
{
    struct dwarf_unit *unit = &dwarf->unit;
    const char *kept = intern(&dwarf->files, file ? file : UNKNOWN_FILE);
    bool is_new;
    if (!kept) {
        dwarf->failed = true;
        return 1;
    }
    uint32_t number = dwarf_enter(dwarf, &unit->file_numbers, (uintptr_t)kept,
                                  unit->file_numbers.count + 1, &is_new);
    if (!is_new) {
        return number;
    }
    /* Directory 0 is the unit's own. */
    const char *root = source_path_root(dwarf->source_path, kept);
    uint32_t directory = 0;
    if (root && root != unit->root) {
        directory = dwarf_enter(dwarf, &unit->root_numbers, (uintptr_t)root,
                                unit->root_numbers.count + 1, &is_new);
        if (is_new) {
            bytes_string(&unit->directories, root);
        }
    }
    bytes_string(&unit->files, kept);
    bytes_uleb(&unit->files, directory);
    bytes_u16(&unit->files, 0); /* time and size: unknown */
    return number;
}

/* A row for the code from `step` bytes behind the last row's on. */
static void put_row(struct bytes *program, uint32_t step, int64_t line_step)
{
    if (line_step < LINE_BASE || line_step >= LINE_BASE + LINE_RANGE) {
        bytes_u8(program, DW_LNS_advance_line);
        bytes_sleb(program, line_step);
        line_step = 0;
    }
    if (step > (255 - OPCODE_BASE - (LINE_RANGE - 1)) / LINE_RANGE) {
        bytes_u8(program, DW_LNS_advance_pc);
        bytes_uleb(program, step);
        step = 0;
    }
    bytes_u8(program, (uint8_t)(line_step - LINE_BASE + LINE_RANGE * (int64_t)step + OPCODE_BASE));
}

/* A function's lines go into the unit's line program. */
static void dwarf_put_rows(struct dwarf *dwarf, const struct dwarf_function *function)
{
    static const struct dwarf_row no_line = {0};
    struct bytes *program = &dwarf->unit.line_program;
    const struct dwarf_row *rows = function->rows;
    uint32_t count = function->row_count;
    uint32_t offset = 0;
    int64_t line = 1;
    uint32_t file = 1;
    if (count == 0 && function->layer) { /* for its column */
        rows = &no_line;
        count = 1;
    }
    bytes_u8(program, 0);
    bytes_uleb(program, 9);
    bytes_u8(program, DW_LNE_set_address);
    bytes_u64(program, function->address);
    if (function->layer) {
        bytes_u8(program, DW_LNS_set_column);
        bytes_uleb(program, dwarf_column(function->layer, DWARF_COLUMN_ROW));
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct dwarf_row *row = &rows[i];
        uint32_t number = row->file ? dwarf_file_number(dwarf, row->file) : file;
        if (number != file) {
            bytes_u8(program, DW_LNS_set_file);
            bytes_uleb(program, number);
            file = number;
        }
        put_row(program, row->offset - offset, row->line - line);
        offset = row->offset;
        line = row->line;
    }
    bytes_u8(program, DW_LNS_advance_pc);
    bytes_uleb(program, function->size - offset);
    bytes_u8(program, 0);
    bytes_uleb(program, 1);
    bytes_u8(program, DW_LNE_end_sequence);
}

/* The unit's tables and line program go into .debug_line. */
static void dwarf_put_line_table(struct dwarf *dwarf)
{
    static const uint8_t operands[OPCODE_BASE - 1] = {0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1};
    struct dwarf_unit *unit = &dwarf->unit;
    struct bytes *line = &dwarf->line;
    size_t start = line->size;
    bytes_u32(line, 0); /* length */
    bytes_u16(line, 4); /* version */
    size_t header_at = line->size;
    bytes_u32(line, 0); /* length of the header */
    bytes_u8(line, 1);  /* minimum_instruction_length */
    bytes_u8(line, 1);  /* maximum_operations_per_instruction */
    bytes_u8(line, 1);  /* default_is_stmt */
    bytes_u8(line, (uint8_t)LINE_BASE);
    bytes_u8(line, LINE_RANGE);
    bytes_u8(line, OPCODE_BASE);
    bytes_put(line, operands, sizeof operands);
    bytes_put(line, unit->directories.at, unit->directories.size);
    bytes_u8(line, 0);
    bytes_put(line, unit->files.at, unit->files.size);
    bytes_u8(line, 0);
    bytes_patch_u32(line, header_at, (uint32_t)(line->size - header_at - 4));
    bytes_put(line, unit->line_program.at, unit->line_program.size);
    bytes_patch_u32(line, start, (uint32_t)(line->size - start - 4));
}

/* ---- Inlined methods ---- */

/*
 * Inlined methods: DW_TAG_inlined_subroutine, nested as the methods were inlined, each with the
 * pieces of code that it and those inlined into it have.
 */

/*
 * An inline tree that is deeper is hostile: HotSpot stops at 15 levels (MaxInlineLevel). So is one
 * whose methods have far more pieces of code than it has ranges: each range is a piece of its
 * method and of all callers, where neighbours make one.
 */
#define MAX_DEPTH        256
#define PIECES_PER_RANGE 32
#define PIECES_SPARE     1024

/* Adds code to a node, in order of addresses. */
static void add_piece(struct dwarf *dwarf, uint32_t node, uint32_t start, uint32_t end)
{
    uint32_t last = dwarf->last_piece[node];
    if (last && dwarf->pieces[last - 1].end == start) {
        dwarf->pieces[last - 1].end = end;
        return;
    }
    if (ARRAY_RESERVE(dwarf->pieces, dwarf->piece_count, dwarf->piece_room)) {
        dwarf->failed = true;
        return;
    }
    dwarf->pieces[dwarf->piece_count++] = (struct dwarf_piece){node, start, end, 0};
    if (last) {
        dwarf->pieces[last - 1].next = dwarf->piece_count;
    } else {
        dwarf->first_piece[node] = dwarf->piece_count;
    }
    dwarf->last_piece[node] = dwarf->piece_count;
}

static bool reserve_nodes(struct dwarf *dwarf, uint32_t count)
{
    while (dwarf->node_room < count) {
        uint32_t room = dwarf->node_room;
        if (ARRAY_RESERVE(dwarf->first_piece, room, room) ||
            ARRAY_RESERVE(dwarf->last_piece, dwarf->node_room, dwarf->node_room)) {
            dwarf->failed = true;
            return false;
        }
    }
    memset(dwarf->first_piece, 0, count * sizeof(uint32_t));
    memset(dwarf->last_piece, 0, count * sizeof(uint32_t));
    dwarf->piece_count = 0;
    return true;
}

/*
 * Finds out where each method of a function's inline tree has its code. False: there is no tree,
 * or not one that can be written.
 *
 * Gives each node the code of its ranges and of those of the nodes below it.
 */
static bool dwarf_collect_inlines(struct dwarf *dwarf, const struct dwarf_function *function)
{
    const struct trailer *tree = function->inlines;
    if (!tree || tree->node_count < 2 || !reserve_nodes(dwarf, tree->node_count)) {
        return false;
    }
    uint64_t limit = (uint64_t)tree->range_count * PIECES_PER_RANGE + PIECES_SPARE;
    for (uint32_t i = 0; i < tree->range_count; i++) {
        const struct trailer_range *range = &tree->ranges[i];
        uint32_t depth = 0;
        if (range->size > function->size || range->offset > function->size - range->size ||
            range->size == 0) {
            continue;
        }
        for (uint32_t node = range->node; node != 0; node = tree->nodes[node].parent) {
            add_piece(dwarf, node, range->offset, range->offset + range->size);
            if (++depth > MAX_DEPTH || dwarf->piece_count > limit) {
                return false;
            }
        }
    }
    return !dwarf->failed;
}

static void put_origin(struct dwarf *dwarf, uint64_t method)
{
    struct dwarf_unit *unit = &dwarf->unit;
    bool is_new;
    (void)dwarf_enter(dwarf, &unit->methods, method, 0, &is_new);
    if (ARRAY_RESERVE(unit->fixups, unit->fixup_count, unit->fixup_room)) {
        dwarf->failed = true;
        return;
    }
    unit->fixups[unit->fixup_count++] = (struct dwarf_fixup){dwarf->info.size, method};
    bytes_u32(&dwarf->info, 0);
}

/* depth: how many entries it is in. */
static void put_inlined(struct dwarf *dwarf, const struct dwarf_function *function, uint32_t index,
                        uint32_t depth, bool has_children)
{
    static const uint8_t abbreviations[2][2] = {
        {ABBREV_LEAF_INLINED, ABBREV_INLINED},
        {ABBREV_LEAF_INLINED_RANGES, ABBREV_INLINED_RANGES},
    };
    const struct trailer *tree = function->inlines;
    const struct trailer_node *node = &tree->nodes[index];
    const struct dwarf_piece *piece = &dwarf->pieces[dwarf->first_piece[index] - 1];
    const struct trailer_method *caller =
        trailer_names_method(dwarf->names, tree->nodes[node->parent].method);

    bytes_uleb(&dwarf->info, abbreviations[piece->next != 0][has_children]);
    put_origin(dwarf, node->method);
    bytes_uleb(&dwarf->info, dwarf_file_number(dwarf, caller->file));
    bytes_uleb(&dwarf->info, node->call_line);
    bytes_uleb(&dwarf->info, dwarf_column(function->layer, DWARF_COLUMN_INLINED + 2 * depth));
    bytes_uleb(&dwarf->info, dwarf_column(function->layer, DWARF_COLUMN_INLINED + 2 * depth + 1));
    if (!piece->next) {
        bytes_u64(&dwarf->info, function->address + piece->start);
        bytes_u32(&dwarf->info, piece->end - piece->start);
        return;
    }
    bytes_u64(&dwarf->info, function->address + piece->start);
    bytes_u32(&dwarf->info, (uint32_t)dwarf->ranges.size);
    for (;;) {
        bytes_u64(&dwarf->ranges, function->address + piece->start);
        bytes_u64(&dwarf->ranges, function->address + piece->end);
        if (!piece->next) {
            break;
        }
        piece = &dwarf->pieces[piece->next - 1];
    }
    bytes_u64(&dwarf->ranges, 0);
    bytes_u64(&dwarf->ranges, 0);
}

/*
 * The tree's entries, as children of the function's.
 *
 * The tree's entries. Nodes stand in depth-first order, so an entry is closed when a node comes
 * whose parent is further up. Nodes without code are left out: nothing can be below them.
 */
static void dwarf_put_inlines(struct dwarf *dwarf, const struct dwarf_function *function)
{
    const struct trailer *tree = function->inlines;
    uint32_t open[MAX_DEPTH + 1] = {0}; /* the nodes whose entries are open */
    uint32_t depth = 0;
    for (uint32_t i = 1; i < tree->node_count; i++) {
        if (!dwarf->first_piece[i]) {
            continue;
        }
        uint32_t up = depth;
        while (up > 0 && open[up] != tree->nodes[i].parent) {
            up--;
        }
        if (open[up] != tree->nodes[i].parent || up == MAX_DEPTH) {
            continue; /* not depth-first: a broken dump */
        }
        for (; depth > up; depth--) {
            bytes_u8(&dwarf->info, 0);
        }
        uint32_t next = i + 1;
        while (next < tree->node_count && !dwarf->first_piece[next]) {
            next++;
        }
        bool has_children = next < tree->node_count && tree->nodes[next].parent == i;
        put_inlined(dwarf, function, i, depth, has_children);
        if (has_children) {
            open[++depth] = i;
        }
    }
    for (; depth > 0; depth--) {
        bytes_u8(&dwarf->info, 0);
    }
}

static void clear_table(struct dwarf_table *table)
{
    hash_map_clear(&table->map);
    table->count = 0;
}

static void free_table(struct dwarf_table *table)
{
    hash_map_free(&table->map);
    free(table->entries);
}

/* Puts a reference to a name. The same names come again and again, from the same address. */
static void put_name(struct dwarf *dwarf, const char *name)
{
    bool is_new;
    uint32_t at = dwarf_enter(dwarf, &dwarf->name_offsets, (uintptr_t)name,
                              (uint32_t)dwarf->strings.size, &is_new);
    if (is_new) {
        bytes_string(&dwarf->strings, name);
    }
    bytes_u32(&dwarf->info, at);
}

/* ---- Abbreviations ---- */

/* Attributes and forms of entries that come with and without children. */
#define NAMES DW_AT_name, DW_FORM_strp, DW_AT_linkage_name, DW_FORM_strp
#define PLACE                                                                                      \
    DW_AT_low_pc, DW_FORM_addr, DW_AT_high_pc, DW_FORM_data4, DW_AT_external, DW_FORM_flag_present
#define DECLARATION DW_AT_decl_file, DW_FORM_udata, DW_AT_decl_line, DW_FORM_udata
#define COLUMN      DW_AT_decl_column, DW_FORM_udata
#define CALL                                                                                       \
    DW_AT_abstract_origin, DW_FORM_ref4, DW_AT_call_file, DW_FORM_udata, DW_AT_call_line,          \
        DW_FORM_udata, DW_AT_call_column, DW_FORM_udata, COLUMN
#define ONE_PIECE CALL, DW_AT_low_pc, DW_FORM_addr, DW_AT_high_pc, DW_FORM_data4
#define PIECES    CALL, DW_AT_entry_pc, DW_FORM_addr, DW_AT_ranges, DW_FORM_sec_offset

static void put_abbreviations(struct bytes *out)
{
    static const struct {
        uint8_t code, tag, children;
        uint8_t attributes[20]; /* pairs of attribute and form; none needs two bytes */
    } table[] = {
        {ABBREV_UNIT,
         DW_TAG_compile_unit,
         DW_CHILDREN_yes,
         {DW_AT_language, DW_FORM_data1, DW_AT_name, DW_FORM_strp, DW_AT_low_pc, DW_FORM_addr,
          DW_AT_ranges, DW_FORM_sec_offset, DW_AT_stmt_list, DW_FORM_sec_offset, DW_AT_comp_dir,
          DW_FORM_strp}},
        {ABBREV_UNIT_NO_DIRECTORY,
         DW_TAG_compile_unit,
         DW_CHILDREN_yes,
         {DW_AT_language, DW_FORM_data1, DW_AT_name, DW_FORM_strp, DW_AT_low_pc, DW_FORM_addr,
          DW_AT_ranges, DW_FORM_sec_offset, DW_AT_stmt_list, DW_FORM_sec_offset}},
        {ABBREV_FUNCTION, DW_TAG_subprogram, DW_CHILDREN_yes, {NAMES, PLACE, DECLARATION, COLUMN}},
        {ABBREV_LEAF_FUNCTION,
         DW_TAG_subprogram,
         DW_CHILDREN_no,
         {NAMES, PLACE, DECLARATION, COLUMN}},
        {ABBREV_ABSTRACT,
         DW_TAG_subprogram,
         DW_CHILDREN_no,
         {NAMES, DECLARATION, DW_AT_inline, DW_FORM_data1}},
        {ABBREV_INLINED, DW_TAG_inlined_subroutine, DW_CHILDREN_yes, {ONE_PIECE}},
        {ABBREV_LEAF_INLINED, DW_TAG_inlined_subroutine, DW_CHILDREN_no, {ONE_PIECE}},
        {ABBREV_INLINED_RANGES, DW_TAG_inlined_subroutine, DW_CHILDREN_yes, {PIECES}},
        {ABBREV_LEAF_INLINED_RANGES, DW_TAG_inlined_subroutine, DW_CHILDREN_no, {PIECES}},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        bytes_uleb(out, table[i].code);
        bytes_uleb(out, table[i].tag);
        bytes_u8(out, table[i].children);
        for (size_t j = 0; j < sizeof table[i].attributes && table[i].attributes[j]; j++) {
            bytes_uleb(out, table[i].attributes[j]);
        }
        bytes_u16(out, 0);
    }
    bytes_u8(out, 0);
}

struct dwarf *dwarf_new(struct source_path *source_path, const struct trailer_names *names)
{
    struct dwarf *dwarf = calloc(1, sizeof *dwarf);
    if (dwarf) {
        dwarf->source_path = source_path;
        dwarf->names = names;
        put_abbreviations(&dwarf->abbrev);
        bytes_u8(&dwarf->strings, 0);
    }
    return dwarf;
}

void dwarf_free(struct dwarf *dwarf)
{
    if (!dwarf) {
        return;
    }
    struct dwarf_unit *unit = &dwarf->unit;
    bytes_free(&dwarf->info);
    bytes_free(&dwarf->abbrev);
    bytes_free(&dwarf->line);
    bytes_free(&dwarf->ranges);
    bytes_free(&dwarf->aranges);
    bytes_free(&dwarf->strings);
    bytes_free(&unit->line_program);
    bytes_free(&unit->files);
    bytes_free(&unit->directories);
    intern_free(&dwarf->files);
    free_table(&dwarf->name_offsets);
    free_table(&unit->file_numbers);
    free_table(&unit->root_numbers);
    free_table(&unit->methods);
    free(unit->functions);
    free(unit->fixups);
    free(dwarf->pieces);
    free(dwarf->first_piece);
    free(dwarf->last_piece);
    free(dwarf);
}

/* ---- Units ---- */

void dwarf_unit_begin(struct dwarf *dwarf, const char *file)
{
    struct dwarf_unit *unit = &dwarf->unit;
    unit->root = file ? source_path_root(dwarf->source_path, file) : NULL;
    unit->info_at = dwarf->info.size;
    unit->line_program.size = 0;
    unit->files.size = 0;
    unit->directories.size = 0;
    unit->function_count = 0;
    unit->fixup_count = 0;
    clear_table(&unit->file_numbers);
    clear_table(&unit->root_numbers);
    clear_table(&unit->methods);

    bytes_u32(&dwarf->info, 0); /* length */
    bytes_u16(&dwarf->info, 4); /* DWARF version */
    bytes_u32(&dwarf->info, 0); /* abbreviations */
    bytes_u8(&dwarf->info, 8);  /* bytes of an address */
    bytes_uleb(&dwarf->info, unit->root ? ABBREV_UNIT : ABBREV_UNIT_NO_DIRECTORY);
    bytes_u8(&dwarf->info, DW_LANG_Java);
    const char *kept = intern(&dwarf->files, file ? file : UNKNOWN_FILE);
    put_name(dwarf, kept ? kept : UNKNOWN_FILE);
    bytes_u64(&dwarf->info, 0); /* ranges count from here */
    unit->ranges_at = dwarf->info.size;
    bytes_u32(&dwarf->info, 0);
    bytes_u32(&dwarf->info, (uint32_t)dwarf->line.size);
    if (unit->root) {
        put_name(dwarf, unit->root);
    }
    (void)dwarf_file_number(dwarf, file); /* number 1 */
}

static void put_places(struct dwarf *dwarf)
{
    struct dwarf_unit *unit = &dwarf->unit;
    struct bytes *aranges = &dwarf->aranges;
    bytes_patch_u32(&dwarf->info, unit->ranges_at, (uint32_t)dwarf->ranges.size);
    bytes_u32(aranges, 28 + unit->function_count * 16); /* length */
    bytes_u16(aranges, 2);                              /* version */
    bytes_u32(aranges, (uint32_t)unit->info_at);
    bytes_u8(aranges, 8);  /* bytes of an address */
    bytes_u8(aranges, 0);  /* of a segment */
    bytes_u32(aranges, 0); /* padding to 16 bytes */
    for (uint32_t i = 0; i < unit->function_count; i++) {
        const struct dwarf_place *function = &unit->functions[i];
        bytes_u64(&dwarf->ranges, function->address);
        bytes_u64(&dwarf->ranges, function->address + function->size);
        bytes_u64(aranges, function->address);
        bytes_u64(aranges, function->size);
    }
    bytes_u64(&dwarf->ranges, 0);
    bytes_u64(&dwarf->ranges, 0);
    bytes_u64(aranges, 0);
    bytes_u64(aranges, 0);
}

static void put_abstract_functions(struct dwarf *dwarf)
{
    struct dwarf_unit *unit = &dwarf->unit;
    for (uint32_t i = 0; i < unit->methods.count; i++) {
        struct dwarf_entry *entry = &unit->methods.entries[i];
        const struct trailer_method *method = trailer_names_method(dwarf->names, entry->key);
        entry->value = (uint32_t)(dwarf->info.size - unit->info_at);
        bytes_uleb(&dwarf->info, ABBREV_ABSTRACT);
        put_name(dwarf, method->name);
        put_name(dwarf, method->name);
        bytes_uleb(&dwarf->info, dwarf_file_number(dwarf, method->file));
        bytes_uleb(&dwarf->info, method->first_line);
        bytes_u8(&dwarf->info, DW_INL_inlined);
    }
    for (uint32_t i = 0; i < unit->fixup_count; i++) {
        const struct dwarf_fixup *fixup = &unit->fixups[i];
        bool is_new;
        bytes_patch_u32(&dwarf->info, fixup->at,
                        dwarf_enter(dwarf, &unit->methods, fixup->method, 0, &is_new));
    }
}

void dwarf_unit_end(struct dwarf *dwarf)
{
    struct dwarf_unit *unit = &dwarf->unit;
    put_abstract_functions(dwarf);
    bytes_u8(&dwarf->info, 0); /* end of the unit's children */
    bytes_patch_u32(&dwarf->info, unit->info_at, (uint32_t)(dwarf->info.size - unit->info_at - 4));
    put_places(dwarf);
    dwarf_put_line_table(dwarf);
}

void dwarf_add_function(struct dwarf *dwarf, const struct dwarf_function *function)
{
    struct dwarf_unit *unit = &dwarf->unit;
    bool has_tree = dwarf_collect_inlines(dwarf, function);

    if (ARRAY_RESERVE(unit->functions, unit->function_count, unit->function_room)) {
        dwarf->failed = true;
        return;
    }
    unit->functions[unit->function_count++] =
        (struct dwarf_place){function->address, function->size};
    bytes_uleb(&dwarf->info, has_tree ? ABBREV_FUNCTION : ABBREV_LEAF_FUNCTION);
    put_name(dwarf, function->name);
    put_name(dwarf, function->name);
    bytes_u64(&dwarf->info, function->address);
    bytes_u32(&dwarf->info, (uint32_t)function->size);
    bytes_uleb(&dwarf->info, 1); /* the unit's file is the table's first */
    bytes_uleb(&dwarf->info, function->line);
    bytes_uleb(&dwarf->info, dwarf_column(function->layer, DWARF_COLUMN_FUNCTION));
    if (has_tree) {
        dwarf_put_inlines(dwarf, function);
        bytes_u8(&dwarf->info, 0);
    }
    dwarf_put_rows(dwarf, function);
}

uint64_t dwarf_size(const struct dwarf *dwarf)
{
    return dwarf->info.size + dwarf->line.size + dwarf->ranges.size + dwarf->strings.size +
           dwarf->unit.line_program.size;
}

int dwarf_sections(struct dwarf *dwarf, struct dwarf_section sections[DWARF_SECTIONS])
{
    const struct dwarf_section all[DWARF_SECTIONS] = {
        {".debug_info", &dwarf->info},       {".debug_abbrev", &dwarf->abbrev},
        {".debug_line", &dwarf->line},       {".debug_ranges", &dwarf->ranges},
        {".debug_aranges", &dwarf->aranges}, {".debug_str", &dwarf->strings},
    };
    bool failed = dwarf->failed;
    for (unsigned i = 0; i < DWARF_SECTIONS; i++) {
        failed |= all[i].bytes->failed;
        sections[i] = all[i];
    }
    return failed || dwarf->unit.line_program.failed || dwarf->unit.files.failed ||
                   dwarf->unit.directories.failed
               ? -ENOMEM
               : 0;
}
