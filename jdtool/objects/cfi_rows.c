#include "jdtool/objects/cfi_rows.h"

#include "format/leb128.h"
#include "jdtool/base/array.h"
#include "jdtool/objects/cfi_check.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#define OPERATIONS_MAX 12 /* of an expression: a procedure linkage table's has 9 */

/* Files have two or three CIEs, or as many as compilations. More than so many that are read, again
 * or not, are nobody's; nor are larger ones. */
#define CIES         16
#define CIE_READS    (UINT32_C(1) << 18)
#define CIE_SIZE_MAX 1024

/* Where a register of the caller is, or the CFA, before it is written as a native_place. */
struct rule {
    uint8_t rule; /* enum native_rule */
    uint8_t reg;
    int64_t offset;
    const uint8_t *at, *end; /* an expression */
};

enum { CFA_RULE, PLACE_RULES, RULES = PLACE_RULES + NATIVE_PLACES };

struct rules {
    struct rule of[RULES]; /* the CFA's, then native_row.places */
};

struct cie {
    uint64_t code_step;
    int64_t data_step;
    struct rules rules; /* behind its instructions */
    uint32_t offset;    /* in the section, plus 1; 0: none is here yet */
    uint8_t encoding;   /* of addresses in its FDEs */
    bool sized;         /* their augmentation data tell their size */
    bool signal, is_sound;
};

/* One function. */
struct fde {
    uint64_t start, end;
    uint32_t at;  /* in the section */
    uint32_t cie; /* where that is in the section */
};

struct reader {
    const uint8_t *bytes;
    size_t size;
    uint64_t address;              /* of the section */
    uint8_t places[CFI_REGISTERS]; /* of a register: its rule; 0: nobody asks for it */
    struct fde *fdes;
    uint32_t count, room;
    struct cie cies[CIES];
    uint32_t cie_reads;
    unsigned machine;
    Dwarf_Op operations[RULES][OPERATIONS_MAX];
};

/* ---- Integers ---- */

static uint64_t fixed(const uint8_t *at, size_t bytes)
{
    uint64_t value = 0;
    memcpy(&value, at, bytes);
    return value;
}

static size_t bytes_of(uint8_t encoding)
{
    switch (encoding & 0x07) {
    case DW_EH_PE_absptr:
    case DW_EH_PE_udata8: /* and sdata8 */
        return 8;
    case DW_EH_PE_udata2:
        return 2;
    case DW_EH_PE_udata4:
        return 4;
    default:
        return 0;
    }
}

/* The address that a function begins at; its size, which is `relative` to nothing. */
static bool get_address(const struct reader *reader, const uint8_t **at, const uint8_t *end,
                        uint8_t encoding, bool relative, uint64_t *value)
{
    size_t bytes = bytes_of(encoding);
    if (!bytes || bytes > (size_t)(end - *at)) {
        return false;
    }
    *value = fixed(*at, bytes);
    if (relative && encoding & 0x08 && bytes < 8) { /* signed */
        unsigned shift = 64 - 8 * (unsigned)bytes;
        *value = (uint64_t)((int64_t)(*value << shift) >> shift);
    }
    uint64_t base =
        (encoding & 0x70) == DW_EH_PE_pcrel ? reader->address + (uint64_t)(*at - reader->bytes) : 0;
    *value += relative ? base : 0;
    *at += bytes;
    return true;
}

/* ---- Instructions ---- */

struct program {
    const struct reader *reader;
    const struct cie *cie;
    const uint8_t *at, *end;
    struct rules rules;
    struct rules kept[CFI_REMEMBERED_MAX];
    uint32_t kept_count;
    struct rule nobodys;
    uint64_t advance; /* bytes of code to the next row */
    bool in_cie;
};

static bool get(struct program *program, uint64_t *value)
{
    return uleb128_get(&program->at, program->end, value) == 0;
}

/* The rule of the register that comes next; one that nobody asks for has one, too. */
static bool get_rule(struct program *program, struct rule **rule)
{
    uint64_t reg;
    if (!get(program, &reg) || reg >= CFI_REGISTERS) {
        return false;
    }
    uint8_t place = program->reader->places[reg];
    *rule = place ? &program->rules.of[place] : &program->nobodys;
    return true;
}

static bool get_offset(struct program *program, bool is_signed, int64_t step, int64_t *offset)
{
    uint64_t value = 0;
    bool is = is_signed ? sleb128_get(&program->at, program->end, offset) == 0
                        : uleb128_get(&program->at, program->end, &value) == 0;
    int64_t number = is_signed ? *offset : (int64_t)value;
    return is && !__builtin_mul_overflow(number, step, offset) && *offset == (int32_t)*offset;
}

static bool get_expression(struct program *program, uint8_t kind, struct rule *rule)
{
    uint64_t size;
    if (!get(program, &size) || size > (uint64_t)(program->end - program->at)) {
        return false;
    }
    *rule = (struct rule){.rule = kind, .at = program->at, .end = program->at + size};
    program->at += size;
    return true;
}

static bool advance(struct program *program, size_t bytes)
{
    if (bytes > (size_t)(program->end - program->at)) {
        return false;
    }
    program->advance = fixed(program->at, bytes) * program->cie->code_step;
    program->at += bytes;
    return true;
}

static bool is_register_operand(struct program *program, struct rule *cfa)
{
    uint64_t reg;
    cfa->rule = NATIVE_REG;
    if (!get(program, &reg) || reg >= NATIVE_REGS) {
        return false;
    }
    cfa->reg = (uint8_t)reg;
    return true;
}

static bool at_offset(struct program *program, struct rule *rule, uint8_t kind, bool is_signed)
{
    *rule = (struct rule){.rule = kind};
    return get_offset(program, is_signed, program->cie->data_step, &rule->offset);
}

/* As the CIE has it. */
static void restore(struct program *program, uint64_t reg)
{
    uint8_t place = reg < CFI_REGISTERS ? program->reader->places[reg] : 0;
    if (place) {
        program->rules.of[place] = program->cie->rules.of[place];
    }
}

static bool run_extended(struct program *program, uint8_t opcode)
{
    struct rule *cfa = &program->rules.of[CFA_RULE];
    struct rule *rule;
    uint64_t value;
    switch (opcode) {
    case DW_CFA_nop:
    case DW_CFA_GNU_window_save: /* AArch64's negate_ra_state: the signature is taken off anyway */
    case 0x2c:                   /* AArch64's negate_ra_state_with_pc */
        return true;
    case DW_CFA_advance_loc1:
        return advance(program, 1);
    case DW_CFA_advance_loc2:
        return advance(program, 2);
    case DW_CFA_advance_loc4:
        return advance(program, 4);
    case DW_CFA_offset_extended:
        return get_rule(program, &rule) && at_offset(program, rule, NATIVE_AT_CFA, false);
    case DW_CFA_offset_extended_sf:
        return get_rule(program, &rule) && at_offset(program, rule, NATIVE_AT_CFA, true);
    case DW_CFA_val_offset:
        return get_rule(program, &rule) && at_offset(program, rule, NATIVE_CFA, false);
    case DW_CFA_val_offset_sf:
        return get_rule(program, &rule) && at_offset(program, rule, NATIVE_CFA, true);
    case DW_CFA_restore_extended:
        if (!get(program, &value)) {
            return false;
        }
        restore(program, value);
        return true;
    case DW_CFA_undefined:
    case DW_CFA_same_value:
        if (!get_rule(program, &rule)) {
            return false;
        }
        *rule = (struct rule){.rule = opcode == DW_CFA_undefined ? NATIVE_UNDEFINED : NATIVE_SAME};
        return true;
    case DW_CFA_register:
        if (!get_rule(program, &rule)) {
            return false;
        }
        *rule = (struct rule){0};
        return is_register_operand(program, rule);
    case DW_CFA_remember_state:
        if (program->kept_count == CFI_REMEMBERED_MAX) {
            return false;
        }
        program->kept[program->kept_count++] = program->rules;
        return true;
    case DW_CFA_restore_state:
        if (!program->kept_count) {
            return false;
        }
        program->rules = program->kept[--program->kept_count];
        return true;
    case DW_CFA_def_cfa:
        return is_register_operand(program, cfa) && get_offset(program, false, 1, &cfa->offset);
    case DW_CFA_def_cfa_sf:
        return is_register_operand(program, cfa) &&
               get_offset(program, true, program->cie->data_step, &cfa->offset);
    case DW_CFA_def_cfa_register:
        return cfa->rule == NATIVE_REG && is_register_operand(program, cfa);
    case DW_CFA_def_cfa_offset:
        return cfa->rule == NATIVE_REG && get_offset(program, false, 1, &cfa->offset);
    case DW_CFA_def_cfa_offset_sf:
        return cfa->rule == NATIVE_REG &&
               get_offset(program, true, program->cie->data_step, &cfa->offset);
    case DW_CFA_def_cfa_expression:
        return get_expression(program, NATIVE_EXPRESSION, cfa);
    case DW_CFA_expression:
        return get_rule(program, &rule) && get_expression(program, NATIVE_AT_EXPRESSION, rule);
    case DW_CFA_val_expression:
        return get_rule(program, &rule) && get_expression(program, NATIVE_EXPRESSION, rule);
    case DW_CFA_GNU_args_size:
        return get(program, &value);
    default: /* set_loc and what nobody writes */
        return false;
    }
}

/* Up to the next row. 1: there is one; 0: none; -1: it is not to be understood. */
static int run(struct program *program)
{
    program->advance = 0;
    while (program->at < program->end) {
        uint8_t opcode = *program->at++;
        uint8_t low = opcode & 0x3f;
        struct rule *rule;
        uint8_t place = program->reader->places[low];
        bool is = true;
        switch (opcode & 0xc0) {
        case DW_CFA_advance_loc:
            program->advance = low * program->cie->code_step;
            break;
        case DW_CFA_offset:
            rule = place ? &program->rules.of[place] : &program->nobodys;
            is = at_offset(program, rule, NATIVE_AT_CFA, false);
            break;
        case DW_CFA_restore:
            restore(program, low);
            break;
        default:
            is = run_extended(program, opcode);
            break;
        }
        if (!is || (program->advance && program->in_cie)) {
            return -1;
        }
        if (program->advance) {
            return 1;
        }
    }
    return 0;
}

/* ---- Entries ---- */

/* What registers hold that nothing is said of: those that outlive calls are the caller's. */
static struct rules unsaid(const struct reader *reader)
{
    struct rules rules = {.of[CFA_RULE] = {.rule = NATIVE_UNDEFINED}};
    for (int i = PLACE_RULES; i < RULES; i++) {
        rules.of[i] = (struct rule){.rule = NATIVE_SAME};
    }
    if (reader->machine == EM_X86_64) {
        rules.of[RULES - 1] = (struct rule){.rule = NATIVE_AT_CFA, .offset = -8};
    }
    return rules;
}

/* What its augmentation tells of its FDEs. False: what it tells is not known. */
static bool read_augmentation(struct cie *cie, const char *letters, const uint8_t **at,
                              const uint8_t *end)
{
    uint64_t size = 0;
    cie->encoding = DW_EH_PE_absptr;
    cie->sized = letters[0] == 'z';
    if (cie->sized && (uleb128_get(at, end, &size) || size > (uint64_t)(end - *at))) {
        return false;
    }
    const uint8_t *data = *at;
    end = data + size;
    *at = end;
    for (letters += cie->sized; *letters; letters++) {
        bool has_data = *letters == 'L' || *letters == 'R' || *letters == 'P';
        if (!cie->sized || (!has_data && *letters != 'S' && *letters != 'B') ||
            (has_data && data == end)) {
            return false;
        }
        uint8_t encoding = has_data ? *data++ : 0;
        cie->encoding = *letters == 'R' ? encoding : cie->encoding;
        cie->signal |= *letters == 'S';
        size_t bytes = *letters == 'P' ? bytes_of(encoding) : 0;
        if (*letters == 'P' && (!bytes || bytes > (size_t)(end - data))) {
            return false;
        }
        data += bytes;
    }
    uint8_t base = cie->encoding & 0xf0;
    return bytes_of(cie->encoding) && (base == DW_EH_PE_absptr || base == DW_EH_PE_pcrel);
}

/* [at, end): behind its id. */
static bool read_cie(const struct reader *reader, const uint8_t *at, const uint8_t *end,
                     struct cie *cie)
{
    uint8_t version = at < end ? *at++ : 0;
    const char *letters = (const char *)at;
    const uint8_t *nul = memchr(at, 0, (size_t)(end - at));
    uint64_t return_address = 0;
    if ((version != 1 && version != 3) || !nul) {
        return false;
    }
    at = nul + 1;
    if (uleb128_get(&at, end, &cie->code_step) || sleb128_get(&at, end, &cie->data_step) ||
        at == end) {
        return false;
    }
    if (version == 1) {
        return_address = *at++;
    } else if (uleb128_get(&at, end, &return_address)) {
        return false;
    }
    if (return_address >= CFI_REGISTERS || reader->places[return_address] != RULES - 1 ||
        !read_augmentation(cie, letters, &at, end)) {
        return false;
    }
    struct program program = {.reader = reader,
                              .cie = cie,
                              .at = at,
                              .end = end,
                              .rules = unsaid(reader),
                              .in_cie = true};
    if (run(&program) != 0) {
        return false;
    }
    cie->rules = program.rules;
    return true;
}

/* The bytes of an entry behind its length: at *at; false: there is none, or no sane one. */
static bool entry_at(const struct reader *reader, uint32_t offset, const uint8_t **at,
                     const uint8_t **end)
{
    if (reader->size < 8 || offset > reader->size - 8) {
        return false;
    }
    uint64_t length = fixed(reader->bytes + offset, 4);
    *at = reader->bytes + offset + 4;
    *end = *at + length;
    return length >= 4 && length <= reader->size - offset - 4 && length <= CFI_PROGRAM_MAX;
}

/* NULL: it is not known. */
static const struct cie *cie_at(struct reader *reader, uint32_t offset)
{
    const uint8_t *at;
    const uint8_t *end;
    struct cie *cie = &reader->cies[offset / 4 % CIES];
    if (cie->offset != offset + 1) {
        *cie = (struct cie){.offset = offset + 1};
        cie->is_sound = reader->cie_reads++ < CIE_READS && entry_at(reader, offset, &at, &end) &&
                        end - at <= CIE_SIZE_MAX && fixed(at, 4) == 0 &&
                        read_cie(reader, at + 4, end, cie);
    }
    return cie->is_sound ? cie : NULL;
}

static int compare_fdes(const void *a, const void *b)
{
    const struct fde *left = a;
    const struct fde *right = b;
    return ORDER(left->start, right->start) ?: ORDER(left->at, right->at);
}

/* Those of [from, to), in the order of addresses, which they mostly have. */
static int list_fdes(struct reader *reader, uint64_t from, uint64_t to)
{
    bool is_sorted = true;
    for (uint32_t offset = 0; offset + 4 <= reader->size;) {
        const uint8_t *at;
        const uint8_t *end;
        if (fixed(reader->bytes + offset, 4) == 0) { /* an end; some linkers put one in between */
            offset += 4;
            continue;
        }
        if (!entry_at(reader, offset, &at, &end)) {
            break;
        }
        uint64_t distance = fixed(at, 4);
        uint32_t id_at = offset + 4;
        const struct cie *cie =
            distance && distance <= id_at ? cie_at(reader, id_at - (uint32_t)distance) : NULL;
        struct fde fde = {.at = offset, .cie = id_at - (uint32_t)distance};
        offset = (uint32_t)(end - reader->bytes);
        at += 4;
        uint64_t size;
        if (!cie || !get_address(reader, &at, end, cie->encoding, true, &fde.start) ||
            !get_address(reader, &at, end, cie->encoding, false, &size) || !size ||
            __builtin_add_overflow(fde.start, size, &fde.end)) {
            continue;
        }
        fde.end += cie->signal; /* in the system call that it ends with the pc is behind it */
        if (fde.end <= from || fde.start >= to) {
            continue;
        }
        if (ARRAY_RESERVE(reader->fdes, reader->count, reader->room)) {
            return -ENOMEM;
        }
        is_sorted &= !reader->count || reader->fdes[reader->count - 1].start <= fde.start;
        reader->fdes[reader->count++] = fde;
    }
    if (!is_sorted) {
        qsort(reader->fdes, reader->count, sizeof *reader->fdes, compare_fdes);
    }
    return 0;
}

/* ---- Rows ---- */

/* Its operations; 0: some are not known here, or they are too many. */
static uint16_t read_operations(const uint8_t *at, const uint8_t *end, Dwarf_Op *operations)
{
    uint16_t count = 0;
    while (at < end) {
        Dwarf_Op op = {.atom = *at++};
        bool based = op.atom >= DW_OP_breg0 && op.atom <= DW_OP_breg31;
        bool is = count < OPERATIONS_MAX;
        if (based) {
            int64_t number;
            is &= sleb128_get(&at, end, &number) == 0;
            op.number = is ? (uint64_t)number : 0;
        } else if (op.atom == DW_OP_plus_uconst) {
            is &= uleb128_get(&at, end, &op.number) == 0;
        } else if (op.atom == DW_OP_const1u) {
            is &= at < end;
            op.number = is ? *at++ : 0;
        } else {
            is &= (op.atom >= DW_OP_lit0 && op.atom <= DW_OP_lit31) || op.atom == DW_OP_deref ||
                  op.atom == DW_OP_and || op.atom == DW_OP_ge || op.atom == DW_OP_shl ||
                  op.atom == DW_OP_plus || op.atom == DW_OP_minus;
        }
        if (!is) {
            return 0;
        }
        operations[count++] = op;
    }
    return count;
}

static struct native_place place_of(const struct rule *rule, Dwarf_Op *operations)
{
    struct native_place place = {
        .rule = rule->rule, .reg = rule->reg, .offset = (int32_t)rule->offset};
    if (rule->rule == NATIVE_EXPRESSION || rule->rule == NATIVE_AT_EXPRESSION) {
        place.length = read_operations(rule->at, rule->end, operations);
        place.operations = operations;
    }
    return place;
}

static void make_row(struct reader *reader, const struct cie *cie, const struct rules *rules,
                     struct native_row *row)
{
    *row = (struct native_row){.signal = cie->signal};
    row->cfa = place_of(&rules->of[CFA_RULE], reader->operations[CFA_RULE]);
    for (int i = 0; i < NATIVE_PLACES; i++) {
        row->places[i] = place_of(&rules->of[PLACE_RULES + i], reader->operations[PLACE_RULES + i]);
    }
    row->found = row->cfa.rule != NATIVE_UNDEFINED;
}

struct taker {
    int (*take)(void *context, uint64_t address, const struct native_row *row);
    void *context;
    uint64_t from;
};

/* A function's rows below `end`, those of its that hold nowhere in the range left out. */
static int each_row(struct reader *reader, const struct fde *fde, uint64_t end,
                    const struct taker *taker)
{
    static const struct native_row nothing = {0};
    struct native_row row;
    const uint8_t *at = NULL;
    const uint8_t *last = NULL;
    const struct cie *cie = cie_at(reader, fde->cie);
    uint64_t size = 0;
    uint64_t skipped;
    bool is = cie && entry_at(reader, fde->at, &at, &last);
    at += is ? 4 : 0;
    is = is && get_address(reader, &at, last, cie->encoding, false, &skipped) &&
         get_address(reader, &at, last, cie->encoding, false, &skipped) &&
         (!cie->sized || uleb128_get(&at, last, &size) == 0) && size <= (uint64_t)(last - at);
    if (!is) {
        return taker->take(taker->context, fde->start > taker->from ? fde->start : taker->from,
                           &nothing);
    }
    struct program program = {
        .reader = reader, .cie = cie, .at = at + size, .end = last, .rules = cie->rules};
    uint64_t place = fde->start;
    int more = 1;
    int err = 0;
    while (more > 0 && place < end && !err) {
        more = run(&program);
        uint64_t next = more > 0 && program.advance < end - place ? place + program.advance : end;
        if (next > taker->from) {
            make_row(reader, cie, &program.rules, &row);
            err = taker->take(taker->context, place > taker->from ? place : taker->from,
                              more < 0 ? &nothing : &row);
        }
        place = next;
    }
    return err;
}

static int each_fde(struct reader *reader, uint64_t to, const struct taker *taker)
{
    static const struct native_row nothing = {0};
    uint64_t at = taker->from;
    int err = 0;
    for (uint32_t i = 0; i < reader->count && at < to && !err; i++) {
        struct fde fde = reader->fdes[i];
        uint64_t end = i + 1 < reader->count && reader->fdes[i + 1].start < fde.end
                           ? reader->fdes[i + 1].start
                           : fde.end;
        end = end < to ? end : to;
        if (end <= at) {
            continue;
        }
        if (fde.start > at) {
            err = taker->take(taker->context, at, &nothing);
        }
        err = err ? err : each_row(reader, &fde, end, taker);
        at = end;
    }
    return !err && at < to ? taker->take(taker->context, at, &nothing) : err;
}

/* ---- The section ---- */

static Elf_Data *find_section(Elf *elf, uint64_t *address)
{
    size_t names;
    Elf_Scn *scn = NULL;
    if (elf_getshdrstrndx(elf, &names)) {
        return NULL;
    }
    while ((scn = elf_nextscn(elf, scn))) {
        GElf_Shdr header;
        const char *name =
            gelf_getshdr(scn, &header) ? elf_strptr(elf, names, header.sh_name) : NULL;
        if (name && header.sh_type != SHT_NOBITS && header.sh_size &&
            strcmp(name, ".eh_frame") == 0) {
            *address = header.sh_addr;
            return elf_rawdata(scn, NULL);
        }
    }
    return NULL;
}

void cfi_rows_sigreturn(Elf *elf, uint64_t *from, uint64_t *to)
{
    /* mov x8,#__NR_rt_sigreturn; svc #0 */
    static const uint8_t code[8] = {0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4};
    uint64_t address;
    Elf_Scn *scn = NULL;
    *from = *to = 0;
    if (find_section(elf, &address)) {
        return;
    }
    while ((scn = elf_nextscn(elf, scn))) {
        GElf_Shdr header;
        const Elf_Data *data = gelf_getshdr(scn, &header) && header.sh_flags & SHF_EXECINSTR &&
                                       header.sh_type == SHT_PROGBITS
                                   ? elf_rawdata(scn, NULL)
                                   : NULL;
        const uint8_t *at =
            data && data->d_buf ? memmem(data->d_buf, data->d_size, code, sizeof code) : NULL;
        if (at) {
            *from = header.sh_addr + (uint64_t)(at - (const uint8_t *)data->d_buf) - 4;
            *to = *from + 4 + sizeof code + 1; /* in the system call the pc is behind it */
            return;
        }
    }
}

/* The rows of such a file. */
static int each_sigreturn(Elf *elf, uint64_t from, uint64_t to,
                          int (*take)(void *context, uint64_t address,
                                      const struct native_row *row),
                          void *context)
{
    static const struct native_row nothing = {0};
    static const struct native_row signal = {.found = true, .signal = true};
    uint64_t at;
    uint64_t end;
    cfi_rows_sigreturn(elf, &at, &end);
    if (at < from || end > to || !end) {
        return -ENOENT;
    }
    int err = take(context, from, &nothing);
    err = err ? err : take(context, at, &signal);
    return err ? err : take(context, end, &nothing);
}

int cfi_rows_each(Elf *elf, unsigned machine, uint64_t from, uint64_t to,
                  int (*take)(void *context, uint64_t address, const struct native_row *row),
                  void *context)
{
    uint64_t address;
    const unsigned char *ident = (const unsigned char *)elf_getident(elf, NULL);
    const Elf_Data *data = find_section(elf, &address);
    if (!data && machine == EM_AARCH64) {
        return each_sigreturn(elf, from, to, take, context);
    }
    if (!data || !data->d_buf || data->d_size > CFI_BYTES_MAX || ident[EI_CLASS] != ELFCLASS64 ||
        ident[EI_DATA] != ELFDATA2LSB || (machine != EM_X86_64 && machine != EM_AARCH64)) {
        return -ENOENT;
    }
    struct reader *reader = calloc(1, sizeof *reader);
    if (!reader) {
        return -ENOMEM;
    }
    reader->bytes = data->d_buf;
    reader->size = data->d_size;
    reader->address = address;
    reader->machine = machine;
    for (unsigned i = 0; i < NATIVE_PLACES; i++) {
        reader->places[native_place_register(machine, i)] = (uint8_t)(PLACE_RULES + i);
    }
    const struct taker taker = {take, context, from};
    int err = list_fdes(reader, from, to);
    err = err ? err : each_fde(reader, to, &taker);
    free(reader->fdes);
    free(reader);
    return err;
}
