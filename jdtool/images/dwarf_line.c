/* Tables of files and line programs: .debug_line. */
#include "jdtool/images/dwarf_private.h"

#include <dwarf.h>

/* Line program parameters. */
#define LINE_BASE   (-5)
#define LINE_RANGE  14
#define OPCODE_BASE 13

uint32_t dwarf_file_number(struct dwarf *dwarf, const char *file)
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

void dwarf_put_rows(struct dwarf *dwarf, const struct dwarf_function *function)
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

void dwarf_put_line_table(struct dwarf *dwarf)
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
