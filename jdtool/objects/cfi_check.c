#include "jdtool/objects/cfi_check.h"

#include "format/leb128.h"
#include "jdtool/base/array.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>

struct cie {
    Dwarf_Off offset;
    size_t address_bytes; /* of each of the two addresses that its FDEs begin with */
    bool sized;           /* their augmentation data tell their size */
};

/*
 * libdw begins to read at whatever offset a table or another entry names, so only such offsets may
 * be named as were looked at: those in these lists, which are in ascending order.
 */
struct checker {
    const unsigned char *ident;
    Elf_Data *data;
    bool eh_frame;
    struct cie *cies;
    uint32_t cie_count, cie_room;
    const struct cie *last_cie; /* found: most FDEs have that of the one before */
    uint32_t *fdes;
    uint32_t fde_count, fde_room;
};

/* ---- Programs ---- */

/*
 * Operands of those with an opcode of their own: r register, u and s LEB128, b block, digits so
 * many bytes. NULL: nobody writes it.
 */
static const char *operands_of(uint8_t opcode)
{
    static const char *const extended[] = {
        [DW_CFA_nop] = "",
        [DW_CFA_advance_loc1] = "1",
        [DW_CFA_advance_loc2] = "2",
        [DW_CFA_advance_loc4] = "4",
        [DW_CFA_offset_extended] = "ru",
        [DW_CFA_restore_extended] = "r",
        [DW_CFA_undefined] = "r",
        [DW_CFA_same_value] = "r",
        [DW_CFA_register] = "rr",
        [DW_CFA_remember_state] = "",
        [DW_CFA_restore_state] = "",
        [DW_CFA_def_cfa] = "ru",
        [DW_CFA_def_cfa_register] = "r",
        [DW_CFA_def_cfa_offset] = "u",
        [DW_CFA_def_cfa_expression] = "b",
        [DW_CFA_expression] = "rb",
        [DW_CFA_offset_extended_sf] = "rs",
        [DW_CFA_def_cfa_sf] = "rs",
        [DW_CFA_def_cfa_offset_sf] = "s",
        [DW_CFA_val_offset] = "ru",
        [DW_CFA_val_offset_sf] = "rs",
        [DW_CFA_val_expression] = "rb",
        [0x2c] = "", /* AArch64's negate_ra_state_with_pc */
        [DW_CFA_GNU_window_save] = "",
        [DW_CFA_GNU_args_size] = "u",
        [DW_CFA_GNU_negative_offset_extended] = "ru",
    };
    return opcode < sizeof extended / sizeof extended[0] ? extended[opcode] : NULL;
}

static bool skip(const uint8_t **at, const uint8_t *end, uint64_t bytes)
{
    if (bytes > (uint64_t)(end - *at)) {
        return false;
    }
    *at += bytes;
    return true;
}

static bool check_operand(char kind, const uint8_t **at, const uint8_t *end)
{
    uint64_t value;
    int64_t number;
    switch (kind) {
    case 'r':
        return uleb128_get(at, end, &value) == 0 && value < CFI_REGISTERS;
    case 'u':
        return uleb128_get(at, end, &value) == 0;
    case 's':
        return sleb128_get(at, end, &number) == 0;
    case 'b':
        return uleb128_get(at, end, &value) == 0 && value <= CFI_EXPRESSION_MAX &&
               skip(at, end, value);
    default:
        return skip(at, end, (uint64_t)(kind - '0'));
    }
}

static bool check_program(const uint8_t *at, const uint8_t *end)
{
    uint32_t remembered = 0;
    if (at > end || end - at > CFI_PROGRAM_MAX) {
        return false;
    }
    while (at < end) {
        uint8_t opcode = *at++;
        uint8_t primary = opcode & 0xc0;
        if (primary) { /* nearly all: advance_loc, restore, offset */
            if (primary == DW_CFA_offset && !check_operand('u', &at, end)) {
                return false;
            }
            continue;
        }
        const char *operands = operands_of(opcode);
        if (!operands) {
            return false;
        }
        for (; *operands; operands++) {
            if (!check_operand(*operands, &at, end)) {
                return false;
            }
        }
        if (opcode == DW_CFA_remember_state && ++remembered > CFI_REMEMBERED_MAX) {
            return false;
        }
        if (opcode == DW_CFA_restore_state && remembered) {
            remembered--;
        }
    }
    return true;
}

/* ---- Entries ---- */

/* Of a value of that encoding; 0: of no fixed size. */
static size_t encoded_bytes(const struct checker *checker, uint8_t encoding)
{
    if ((encoding & 0x70) > DW_EH_PE_funcrel) {
        return 0;
    }
    switch (encoding & 0x07) {
    case DW_EH_PE_absptr:
        return checker->ident[EI_CLASS] == ELFCLASS32 ? 4 : 8;
    case DW_EH_PE_udata2:
        return 2;
    case DW_EH_PE_udata4:
        return 4;
    case DW_EH_PE_udata8:
        return 8;
    default:
        return 0;
    }
}

/* What its augmentation tells of its FDEs. False: what it tells is not known. */
static bool read_augmentation(const struct checker *checker, const Dwarf_CIE *entry,
                              struct cie *cie)
{
    const uint8_t *at = entry->augmentation_data;
    const uint8_t *end = at ? at + entry->augmentation_data_size : at;
    uint8_t encoding = DW_EH_PE_absptr;
    cie->sized = entry->augmentation[0] == 'z';
    for (const char *its = entry->augmentation + cie->sized; *its; its++) {
        bool has_data = *its == 'L' || *its == 'R' || *its == 'P';
        if (!cie->sized || (!has_data && *its != 'S' && *its != 'B') || (has_data && at == end)) {
            return false;
        }
        uint8_t its_encoding = has_data ? *at++ : 0;
        encoding = *its == 'R' ? its_encoding : encoding;
        size_t bytes = *its == 'P' ? encoded_bytes(checker, its_encoding) : 0;
        if (*its == 'P' && (!bytes || !skip(&at, end, bytes))) {
            return false;
        }
    }
    cie->address_bytes = encoded_bytes(checker, encoding);
    return cie->address_bytes > 0;
}

static bool check_cie(struct checker *checker, Dwarf_Off offset, const Dwarf_CIE *entry)
{
    struct cie cie = {.offset = offset};
    if (entry->return_address_register >= CFI_REGISTERS ||
        !read_augmentation(checker, entry, &cie) ||
        !check_program(entry->initial_instructions, entry->initial_instructions_end) ||
        ARRAY_RESERVE(checker->cies, checker->cie_count, checker->cie_room)) {
        return false;
    }
    checker->cies[checker->cie_count++] = cie;
    checker->last_cie = NULL; /* they may have moved */
    return true;
}

static int compare_cie(const void *key, const void *element)
{
    Dwarf_Off offset = *(const Dwarf_Off *)key;
    Dwarf_Off its = ((const struct cie *)element)->offset;
    return ORDER(offset, its);
}

/* NULL: none is there. Stays valid until the next check_cie. */
static const struct cie *find_cie(struct checker *checker, Dwarf_Off offset)
{
    if (checker->cie_count && (!checker->last_cie || checker->last_cie->offset != offset)) {
        checker->last_cie =
            bsearch(&offset, checker->cies, checker->cie_count, sizeof *checker->cies, compare_cie);
    }
    return checker->last_cie;
}

static bool check_fde(struct checker *checker, Dwarf_Off offset, const Dwarf_FDE *entry)
{
    const struct cie *cie = find_cie(checker, entry->CIE_pointer);
    const uint8_t *at = entry->start;
    uint64_t augmentation = 0;
    if (!cie || !skip(&at, entry->end, 2 * cie->address_bytes) ||
        (cie->sized && uleb128_get(&at, entry->end, &augmentation)) ||
        !skip(&at, entry->end, augmentation) || !check_program(at, entry->end) ||
        ARRAY_RESERVE(checker->fdes, checker->fde_count, checker->fde_room)) {
        return false;
    }
    checker->fdes[checker->fde_count++] = (uint32_t)offset;
    return true;
}

/* All entries, from the first one on. An end in between is none: tables point beyond it. */
static bool check_entries(struct checker *checker)
{
    static const uint8_t end[4];
    const Elf_Data *data = checker->data;
    Dwarf_Off next;
    for (Dwarf_Off at = 0; data->d_size >= 4 && at <= data->d_size - 4; at = next) {
        Dwarf_CFI_Entry entry;
        if (memcmp((const char *)data->d_buf + at, end, sizeof end) == 0) {
            next = at + sizeof end;
            continue;
        }
        next = at;
        int result =
            dwarf_next_cfi(checker->ident, checker->data, checker->eh_frame, at, &next, &entry);
        if (result > 0 || next <= at) {
            break;
        }
        if (result == 0 && !(dwarf_cfi_cie_p(&entry) ? check_cie(checker, at, &entry.cie)
                                                     : check_fde(checker, at, &entry.fde))) {
            return false;
        }
    }
    return true;
}

/* ---- The table of .eh_frame_hdr ---- */

/* Whether an FDE begins there. The table is in the FDEs' order, mostly: *guess is where to look. */
static bool is_fde(const struct checker *checker, uint32_t offset, uint32_t *guess)
{
    if (*guess < checker->fde_count && checker->fdes[*guess] == offset) {
        ++*guess;
        return true;
    }
    const uint32_t *found = checker->fde_count ? bsearch(&offset, checker->fdes, checker->fde_count,
                                                         sizeof offset, compare_u32)
                                               : NULL;
    *guess = found ? (uint32_t)(found - checker->fdes) + 1 : 0;
    return found;
}

/* Each pair of 4 bytes is a function's and its FDE's distance from the table's section. */
static bool check_table(const struct checker *checker, const Elf_Data *table, uint64_t address,
                        uint64_t frame_address)
{
    const uint8_t *at = table->d_buf;
    const uint8_t *end = at + table->d_size;
    uint32_t count;
    uint32_t guess = 0;
    if (table->d_size < 4) {
        return false;
    }
    if (at[1] == DW_EH_PE_omit || at[2] == DW_EH_PE_omit || at[3] == DW_EH_PE_omit) {
        return true; /* there is none: libdw reads .eh_frame from its beginning */
    }
    size_t pointer = encoded_bytes(checker, at[1]);
    if (!pointer || at[2] != DW_EH_PE_udata4 || at[3] != (DW_EH_PE_datarel | DW_EH_PE_sdata4)) {
        return false;
    }
    at += 4;
    if (!skip(&at, end, pointer + sizeof count)) {
        return false;
    }
    memcpy(&count, at - sizeof count, sizeof count);
    if (count > (uint64_t)(end - at) / 8) {
        return false;
    }
    for (; count > 0; count--, at += 8) {
        int32_t distance;
        memcpy(&distance, at + 4, sizeof distance);
        uint64_t offset = address + (uint64_t)(int64_t)distance - frame_address;
        if (offset > UINT32_MAX || !is_fde(checker, (uint32_t)offset, &guess)) {
            return false;
        }
    }
    return true;
}

/* ---- Sections ---- */

struct section {
    Elf_Scn *scn;
    uint64_t address;
};

/* The next one whose name has `part` in it. NULL: none. */
static const char *next_section(Elf *elf, const char *part, struct section *section)
{
    size_t names;
    if (elf_getshdrstrndx(elf, &names)) {
        return NULL;
    }
    while ((section->scn = elf_nextscn(elf, section->scn))) {
        GElf_Shdr header;
        const char *name =
            gelf_getshdr(section->scn, &header) ? elf_strptr(elf, names, header.sh_name) : NULL;
        if (name && header.sh_type != SHT_NOBITS && strstr(name, part)) {
            section->address = header.sh_addr;
            return name;
        }
    }
    return NULL;
}

/* table: may be NULL. */
static bool check_data(Elf *elf, Elf_Data *data, const struct section *frame,
                       const struct section *table)
{
    struct checker checker = {.ident = (const unsigned char *)elf_getident(elf, NULL),
                              .data = data,
                              .eh_frame = table != NULL};
    Elf_Data *of_table = table && table->scn ? elf_rawdata(table->scn, NULL) : NULL;
    bool is_sound = checker.ident[EI_DATA] == ELFDATA2LSB && data->d_size <= CFI_BYTES_MAX &&
                    (!data->d_buf || check_entries(&checker)) &&
                    (!of_table || !of_table->d_buf ||
                     check_table(&checker, of_table, table->address, frame->address));
    free(checker.cies);
    free(checker.fdes);
    return is_sound;
}

bool cfi_check_eh_frame(Elf *elf)
{
    struct section section = {0};
    struct section table = {0};
    for (const char *name; (name = next_section(elf, ".eh_frame", &section));) {
        if (strcmp(name, ".eh_frame_hdr") == 0) {
            table = section;
        } else if (strcmp(name, ".eh_frame") == 0) {
            Elf_Data *data = elf_rawdata(section.scn, NULL);
            return !data || check_data(elf, data, &section, &table);
        }
    }
    return false;
}

bool cfi_check_debug_frame(Elf *elf)
{
    struct section section = {0};
    unsigned count = 0;
    for (const char *name; (name = next_section(elf, "debug_frame", &section));) {
        Elf_Data *raw = elf_rawdata(section.scn, NULL);
        Elf_Data *unpacked = elf_getdata(section.scn, NULL);
        if (++count > 1 || strcmp(name, ".debug_frame") != 0 ||
            (raw && !check_data(elf, raw, &section, NULL)) ||
            (unpacked && (!raw || unpacked->d_buf != raw->d_buf) &&
             !check_data(elf, unpacked, &section, NULL))) {
            return false;
        }
    }
    return true;
}
