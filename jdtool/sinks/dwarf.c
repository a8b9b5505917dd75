/*
 * The sections and how they hang together:
 *
 *   .debug_info     units; a unit's functions, in them the inlined ones, then one abstract
 *                   subprogram for each method inlined in the unit, to which the inlined ones refer
 *   .debug_abbrev   the shapes of these entries, one table for all units
 *   .debug_line     a line program for each unit, with the unit's table of files
 *   .debug_ranges   where the code of an inlined method is, when it is in several places
 *   .debug_aranges  which unit an address is in
 *   .debug_str      names
 */
#include "jdtool/sinks/dwarf.h"

#include "jdtool/base/intern.h"

#include <dwarf.h>
#include <errno.h>

/* An inline tree that is deeper is hostile: HotSpot stops at 15 levels (MaxInlineLevel). */
#define MAX_DEPTH 1024

enum abbreviation {
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

/* Line program parameters. */
#define LINE_BASE   (-5)
#define LINE_RANGE  14
#define OPCODE_BASE 13

/* A hash table from pointers or numbers to 32-bit values, for the tables of a unit. */
struct map {
    struct map_slot {
        uint64_t key;
        uint32_t value; /* plus one; 0: empty */
    } * slots;
    uint32_t count;
    uint32_t room;
};

/* Where an abstract subprogram's offset has to be put once it is known. */
struct fixup {
    size_t at;
    uint64_t method;
};

/* Code of a node and of those below it: a piece, in order of addresses. */
struct piece {
    uint32_t node;
    uint32_t start;
    uint32_t end;
    uint32_t next; /* of the same node, index plus one */
};

struct unit {
    const char *root; /* NULL: none */
    uint64_t address;
    size_t info_at;
    size_t high_pc_at;
    struct bytes line_program;
    struct bytes files;       /* entries of the line program's file table */
    struct bytes directories; /* and of its directory table */
    struct map file_numbers;  /* const char * -> number */
    struct map root_numbers;
    struct map methods; /* ids of those inlined; value unused */
    struct fixup *fixups;
    uint32_t fixup_count;
    uint32_t fixup_room;
};

struct dwarf {
    struct source_path *source_path;
    const struct trailer_names *names;
    struct bytes info, abbrev, line, ranges, aranges, strings;
    struct map name_offsets; /* const char * -> offset in strings */
    struct intern files;
    struct unit unit;
    bool failed;

    struct piece *pieces; /* of one function */
    uint32_t piece_count;
    uint32_t piece_room;
    uint32_t *first_piece; /* of each node, index plus one */
    uint32_t *last_piece;
    uint32_t node_room;
};

/* ---- Small tools ---- */

static bool grow(struct dwarf *dwarf, void *array_pointer, uint32_t count, uint32_t *room,
                 size_t element)
{
    void **array = array_pointer;
    if (count < *room) {
        return true;
    }
    uint32_t wanted = *room ? *room : 64;
    while (wanted <= count) {
        wanted *= 2;
    }
    void *grown = realloc(*array, wanted * element);
    if (!grown) {
        dwarf->failed = true;
        return false;
    }
    *array = grown;
    *room = wanted;
    return true;
}

static struct map_slot *map_find(const struct map *map, uint64_t key)
{
    uint32_t mask = map->room - 1;
    uint32_t slot = (uint32_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & mask;
    while (map->slots[slot].value && map->slots[slot].key != key) {
        slot = (slot + 1) & mask;
    }
    return &map->slots[slot];
}

/* The value of a key, or 0 after entering it with *fresh as its value. Values count from 1. */
static uint32_t map_enter(struct dwarf *dwarf, struct map *map, uint64_t key, uint32_t fresh)
{
    if (map->count * 2 >= map->room) {
        struct map bigger = {.count = map->count, .room = map->room ? map->room * 2 : 64};
        bigger.slots = calloc(bigger.room, sizeof *bigger.slots);
        if (!bigger.slots) {
            dwarf->failed = true;
            return 1;
        }
        for (uint32_t i = 0; i < map->room; i++) {
            if (map->slots[i].value) {
                *map_find(&bigger, map->slots[i].key) = map->slots[i];
            }
        }
        free(map->slots);
        *map = bigger;
    }
    struct map_slot *slot = map_find(map, key);
    if (slot->value) {
        return slot->value;
    }
    *slot = (struct map_slot){key, fresh};
    map->count++;
    return 0;
}

static void map_clear(struct map *map)
{
    if (map->slots) {
        memset(map->slots, 0, map->room * sizeof *map->slots);
    }
    map->count = 0;
}

/* Puts a reference to a name. The same names come again and again, from the same address. */
static void put_name(struct dwarf *dwarf, const char *name)
{
    uint32_t fresh = (uint32_t)dwarf->strings.size;
    uint32_t at = map_enter(dwarf, &dwarf->name_offsets, (uintptr_t)name, fresh);
    if (!at) {
        bytes_string(&dwarf->strings, name);
        at = fresh;
    }
    bytes_u32(&dwarf->info, at);
}

/* ---- Abbreviations ---- */

/* Attributes and forms of entries that come with and without children. */
#define NAMES DW_AT_name, DW_FORM_strp, DW_AT_linkage_name, DW_FORM_strp
#define PLACE                                                                                      \
    DW_AT_low_pc, DW_FORM_addr, DW_AT_high_pc, DW_FORM_data4, DW_AT_external, DW_FORM_flag_present
#define DECLARATION DW_AT_decl_file, DW_FORM_udata, DW_AT_decl_line, DW_FORM_udata
#define CALL                                                                                       \
    DW_AT_abstract_origin, DW_FORM_ref4, DW_AT_call_file, DW_FORM_udata, DW_AT_call_line,          \
        DW_FORM_udata
#define ONE_PIECE CALL, DW_AT_low_pc, DW_FORM_addr, DW_AT_high_pc, DW_FORM_data4
#define PIECES    CALL, DW_AT_ranges, DW_FORM_sec_offset

static void put_abbreviations(struct bytes *out)
{
    static const struct {
        uint8_t code, tag, children;
        uint8_t attributes[18]; /* pairs of attribute and form; none needs two bytes */
    } table[] = {
        {ABBREV_UNIT,
         DW_TAG_compile_unit,
         DW_CHILDREN_yes,
         {DW_AT_language, DW_FORM_data1, DW_AT_name, DW_FORM_strp, DW_AT_low_pc, DW_FORM_addr,
          DW_AT_high_pc, DW_FORM_data8, DW_AT_stmt_list, DW_FORM_sec_offset, DW_AT_comp_dir,
          DW_FORM_strp}},
        {ABBREV_UNIT_NO_DIRECTORY,
         DW_TAG_compile_unit,
         DW_CHILDREN_yes,
         {DW_AT_language, DW_FORM_data1, DW_AT_name, DW_FORM_strp, DW_AT_low_pc, DW_FORM_addr,
          DW_AT_high_pc, DW_FORM_data8, DW_AT_stmt_list, DW_FORM_sec_offset}},
        {ABBREV_FUNCTION, DW_TAG_subprogram, DW_CHILDREN_yes, {NAMES, PLACE, DECLARATION}},
        {ABBREV_LEAF_FUNCTION, DW_TAG_subprogram, DW_CHILDREN_no, {NAMES, PLACE, DECLARATION}},
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
    struct unit *unit = &dwarf->unit;
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
    free(dwarf->name_offsets.slots);
    free(unit->file_numbers.slots);
    free(unit->root_numbers.slots);
    free(unit->methods.slots);
    free(unit->fixups);
    free(dwarf->pieces);
    free(dwarf->first_piece);
    free(dwarf->last_piece);
    free(dwarf);
}

/* ---- Files ---- */

/* The number of a file in the unit's table, entered when it is new. */
static uint32_t file_number(struct dwarf *dwarf, const char *file)
{
    struct unit *unit = &dwarf->unit;
    const char *kept = intern(&dwarf->files, file ? file : UNKNOWN_FILE);
    if (!kept) {
        dwarf->failed = true;
        return 1;
    }
    uint32_t fresh = unit->file_numbers.count + 1;
    uint32_t number = map_enter(dwarf, &unit->file_numbers, (uintptr_t)kept, fresh);
    if (number) {
        return number;
    }
    /* Directory 0 is the unit's own. */
    const char *root = source_path_root(dwarf->source_path, kept);
    uint32_t directory = 0;
    if (root && root != unit->root) {
        uint32_t fresh_root = unit->root_numbers.count + 1;
        directory = map_enter(dwarf, &unit->root_numbers, (uintptr_t)root, fresh_root);
        if (!directory) {
            bytes_string(&unit->directories, root);
            directory = fresh_root;
        }
    }
    bytes_string(&unit->files, kept);
    bytes_uleb(&unit->files, directory);
    bytes_u16(&unit->files, 0); /* time and size: unknown */
    return fresh;
}

/* ---- Units ---- */

void dwarf_unit_begin(struct dwarf *dwarf, const char *file, uint64_t address)
{
    struct unit *unit = &dwarf->unit;
    unit->address = address;
    unit->root = file ? source_path_root(dwarf->source_path, file) : NULL;
    unit->info_at = dwarf->info.size;
    unit->line_program.size = 0;
    unit->files.size = 0;
    unit->directories.size = 0;
    unit->fixup_count = 0;
    map_clear(&unit->file_numbers);
    map_clear(&unit->root_numbers);
    map_clear(&unit->methods);

    bytes_u32(&dwarf->info, 0); /* length */
    bytes_u16(&dwarf->info, 4); /* DWARF version */
    bytes_u32(&dwarf->info, 0); /* abbreviations */
    bytes_u8(&dwarf->info, 8);  /* bytes of an address */
    bytes_uleb(&dwarf->info, unit->root ? ABBREV_UNIT : ABBREV_UNIT_NO_DIRECTORY);
    bytes_u8(&dwarf->info, DW_LANG_Java);
    const char *kept = intern(&dwarf->files, file ? file : UNKNOWN_FILE);
    put_name(dwarf, kept ? kept : UNKNOWN_FILE);
    bytes_u64(&dwarf->info, address);
    unit->high_pc_at = dwarf->info.size;
    bytes_u64(&dwarf->info, 0);
    bytes_u32(&dwarf->info, (uint32_t)dwarf->line.size);
    if (unit->root) {
        put_name(dwarf, unit->root);
    }
    (void)file_number(dwarf, file); /* number 1 */
}

static void put_line_table(struct dwarf *dwarf)
{
    static const uint8_t operands[OPCODE_BASE - 1] = {0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1};
    struct unit *unit = &dwarf->unit;
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

static void put_arange(struct dwarf *dwarf, uint64_t size)
{
    struct bytes *aranges = &dwarf->aranges;
    bytes_u32(aranges, 44); /* length */
    bytes_u16(aranges, 2);  /* version */
    bytes_u32(aranges, (uint32_t)dwarf->unit.info_at);
    bytes_u8(aranges, 8);  /* bytes of an address */
    bytes_u8(aranges, 0);  /* of a segment */
    bytes_u32(aranges, 0); /* padding to 16 bytes */
    bytes_u64(aranges, dwarf->unit.address);
    bytes_u64(aranges, size);
    bytes_u64(aranges, 0);
    bytes_u64(aranges, 0);
}

static void put_abstract_functions(struct dwarf *dwarf)
{
    struct unit *unit = &dwarf->unit;
    for (uint32_t i = 0; i < unit->methods.room; i++) {
        struct map_slot *slot = &unit->methods.slots[i];
        if (!slot->value) {
            continue;
        }
        const struct trailer_method *method = trailer_names_method(dwarf->names, slot->key);
        slot->value = (uint32_t)(dwarf->info.size - unit->info_at);
        bytes_uleb(&dwarf->info, ABBREV_ABSTRACT);
        put_name(dwarf, method->name);
        put_name(dwarf, method->name);
        bytes_uleb(&dwarf->info, file_number(dwarf, method->file));
        bytes_uleb(&dwarf->info, method->first_line);
        bytes_u8(&dwarf->info, DW_INL_inlined);
    }
    for (uint32_t i = 0; i < unit->fixup_count; i++) {
        const struct fixup *fixup = &unit->fixups[i];
        bytes_patch_u32(&dwarf->info, fixup->at, map_find(&unit->methods, fixup->method)->value);
    }
}

void dwarf_unit_end(struct dwarf *dwarf, uint64_t end_address)
{
    struct unit *unit = &dwarf->unit;
    uint64_t size = end_address - unit->address;
    put_abstract_functions(dwarf);
    bytes_u8(&dwarf->info, 0); /* end of the unit's children */
    if (!dwarf->info.failed) {
        memcpy(dwarf->info.at + unit->high_pc_at, &size, sizeof size);
    }
    bytes_patch_u32(&dwarf->info, unit->info_at, (uint32_t)(dwarf->info.size - unit->info_at - 4));
    put_line_table(dwarf);
    put_arange(dwarf, size);
}

/* ---- Lines ---- */

static void put_rows(struct dwarf *dwarf, const struct dwarf_function *function)
{
    struct bytes *program = &dwarf->unit.line_program;
    uint32_t offset = 0;
    int64_t line = 1;
    uint32_t file = 1;
    bytes_u8(program, 0);
    bytes_uleb(program, 9);
    bytes_u8(program, DW_LNE_set_address);
    bytes_u64(program, function->address);
    for (uint32_t i = 0; i < function->row_count; i++) {
        const struct dwarf_row *row = &function->rows[i];
        uint32_t number = row->file ? file_number(dwarf, row->file) : file;
        int64_t line_step = row->line - line;
        uint32_t step = row->offset - offset;
        if (number != file) {
            bytes_u8(program, DW_LNS_set_file);
            bytes_uleb(program, number);
            file = number;
        }
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
        bytes_u8(program,
                 (uint8_t)(line_step - LINE_BASE + LINE_RANGE * (int64_t)step + OPCODE_BASE));
        offset = row->offset;
        line = row->line;
    }
    bytes_u8(program, DW_LNS_advance_pc);
    bytes_uleb(program, function->size - offset);
    bytes_u8(program, 0);
    bytes_uleb(program, 1);
    bytes_u8(program, DW_LNE_end_sequence);
}

/* ---- Inlined methods ---- */

/* Adds code to a node, in order of addresses. */
static void add_piece(struct dwarf *dwarf, uint32_t node, uint32_t start, uint32_t end)
{
    uint32_t last = dwarf->last_piece[node];
    if (last && dwarf->pieces[last - 1].end == start) {
        dwarf->pieces[last - 1].end = end;
        return;
    }
    if (!grow(dwarf, &dwarf->pieces, dwarf->piece_count, &dwarf->piece_room,
              sizeof *dwarf->pieces)) {
        return;
    }
    dwarf->pieces[dwarf->piece_count++] = (struct piece){node, start, end, 0};
    if (last) {
        dwarf->pieces[last - 1].next = dwarf->piece_count;
    } else {
        dwarf->first_piece[node] = dwarf->piece_count;
    }
    dwarf->last_piece[node] = dwarf->piece_count;
}

/* Gives each node the code of its ranges and of those of the nodes below it. */
static bool collect_pieces(struct dwarf *dwarf, const struct trailer *tree, uint64_t size)
{
    uint32_t room = dwarf->node_room;
    if (!grow(dwarf, &dwarf->first_piece, tree->node_count, &room, sizeof(uint32_t)) ||
        !grow(dwarf, &dwarf->last_piece, tree->node_count, &dwarf->node_room, sizeof(uint32_t))) {
        return false;
    }
    dwarf->piece_count = 0;
    memset(dwarf->first_piece, 0, tree->node_count * sizeof(uint32_t));
    memset(dwarf->last_piece, 0, tree->node_count * sizeof(uint32_t));
    for (uint32_t i = 0; i < tree->range_count; i++) {
        const struct trailer_range *range = &tree->ranges[i];
        uint32_t depth = 0;
        if (range->size > size || range->offset > size - range->size || range->size == 0) {
            continue;
        }
        for (uint32_t node = range->node; node != 0; node = tree->nodes[node].parent) {
            add_piece(dwarf, node, range->offset, range->offset + range->size);
            if (++depth > MAX_DEPTH) {
                return false;
            }
        }
    }
    return !dwarf->failed;
}

static void put_origin(struct dwarf *dwarf, uint64_t method)
{
    struct unit *unit = &dwarf->unit;
    (void)map_enter(dwarf, &unit->methods, method, 1);
    if (grow(dwarf, &unit->fixups, unit->fixup_count, &unit->fixup_room, sizeof *unit->fixups)) {
        unit->fixups[unit->fixup_count++] = (struct fixup){dwarf->info.size, method};
    }
    bytes_u32(&dwarf->info, 0);
}

static void put_inlined(struct dwarf *dwarf, const struct dwarf_function *function, uint32_t index,
                        bool has_children)
{
    static const uint8_t abbreviations[2][2] = {
        {ABBREV_LEAF_INLINED, ABBREV_INLINED},
        {ABBREV_LEAF_INLINED_RANGES, ABBREV_INLINED_RANGES},
    };
    const struct trailer *tree = function->inlines;
    const struct trailer_node *node = &tree->nodes[index];
    const struct piece *piece = &dwarf->pieces[dwarf->first_piece[index] - 1];
    const struct trailer_method *caller =
        trailer_names_method(dwarf->names, tree->nodes[node->parent].method);

    bytes_uleb(&dwarf->info, abbreviations[piece->next != 0][has_children]);
    put_origin(dwarf, node->method);
    bytes_uleb(&dwarf->info, file_number(dwarf, caller->file));
    bytes_uleb(&dwarf->info, node->call_line);
    if (!piece->next) {
        bytes_u64(&dwarf->info, function->address + piece->start);
        bytes_u32(&dwarf->info, piece->end - piece->start);
        return;
    }
    bytes_u32(&dwarf->info, (uint32_t)dwarf->ranges.size);
    uint64_t base = function->address - dwarf->unit.address; /* ranges count from the unit's */
    for (;;) {
        bytes_u64(&dwarf->ranges, base + piece->start);
        bytes_u64(&dwarf->ranges, base + piece->end);
        if (!piece->next) {
            break;
        }
        piece = &dwarf->pieces[piece->next - 1];
    }
    bytes_u64(&dwarf->ranges, 0);
    bytes_u64(&dwarf->ranges, 0);
}

/*
 * The tree's entries. Nodes stand in depth-first order, so an entry is closed when a node comes
 * whose parent is further up. Nodes without code are left out: nothing can be below them.
 */
static void put_tree(struct dwarf *dwarf, const struct dwarf_function *function)
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
        put_inlined(dwarf, function, i, has_children);
        if (has_children) {
            open[++depth] = i;
        }
    }
    for (; depth > 0; depth--) {
        bytes_u8(&dwarf->info, 0);
    }
}

void dwarf_add_function(struct dwarf *dwarf, const struct dwarf_function *function)
{
    const struct trailer *tree = function->inlines;
    bool has_tree = tree && tree->node_count > 1 && collect_pieces(dwarf, tree, function->size);

    bytes_uleb(&dwarf->info, has_tree ? ABBREV_FUNCTION : ABBREV_LEAF_FUNCTION);
    put_name(dwarf, function->name);
    put_name(dwarf, function->name);
    bytes_u64(&dwarf->info, function->address);
    bytes_u32(&dwarf->info, (uint32_t)function->size);
    bytes_uleb(&dwarf->info, 1); /* the unit's file is the table's first */
    bytes_uleb(&dwarf->info, function->line);
    if (has_tree) {
        put_tree(dwarf, function);
        bytes_u8(&dwarf->info, 0);
    }
    put_rows(dwarf, function);
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
