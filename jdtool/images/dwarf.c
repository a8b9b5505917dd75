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
#include "jdtool/base/array.h"
#include "jdtool/images/dwarf_private.h"

#include <dwarf.h>
#include <errno.h>

uint32_t dwarf_enter(struct dwarf *dwarf, struct dwarf_table *table, uint64_t key, uint32_t fresh,
                     bool *is_new)
{
    struct hash_map_cursor cursor = hash_map_start(&table->map, key);
    uint32_t at;
    *is_new = false;
    while ((at = hash_map_next(&table->map, &cursor)) != HASH_MAP_NONE) {
        if (table->entries[at].key == key) {
            return table->entries[at].value;
        }
    }
    *is_new = true;
    if (array_reserve(&table->entries, table->count, &table->room, sizeof *table->entries) < 0 ||
        hash_map_add(&table->map, key, table->count) < 0) {
        dwarf->failed = true;
        return fresh;
    }
    table->entries[table->count++] = (struct dwarf_entry){key, fresh};
    return fresh;
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

    if (array_reserve(&unit->functions, unit->function_count, &unit->function_room,
                      sizeof *unit->functions) < 0) {
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
