#include "jdtool/objects/cfi_rows.h"

#include "format/leb128.h"
#include "jdtool/base/array.h"
#include "jdtool/objects/elf_file.h"

#include <dwarf.h>
#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>

/* Bounds that compilers keep: of a section, an entry and a CIE in bytes; the highest register
 * number (of x86-64 and AArch64 it is 145); rows that one entry keeps at a time; operations of an
 * expression (a procedure linkage table's has 9). */
#define SECTION_MAX    (UINT32_C(128) << 20)
#define ENTRY_MAX      (UINT32_C(256) << 10)
#define CIE_SIZE_MAX   1024
#define REGISTERS      256
#define REMEMBERED_MAX 16
#define OPERATIONS_MAX 32

/* Files have two or three CIEs, or as many as compilations. More than so many that are read, again
 * or not, are nobody's. */
#define CIES      16
#define CIE_READS (UINT32_C(1) << 18)

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
    bool has_own_return; /* another register than all others have: clone's thread, a stack's root */
};

/* Where a function's entry is. There are 70,000 of libjvm.so's: what else it says is read there. */
struct fde {
    int32_t start; /* the function's, behind `base` */
    uint32_t at;   /* in the section, less `shift` */
};

/* What such an entry says. */
struct function {
    uint64_t start, end;
    const struct cie *cie;
    const uint8_t *at, *last; /* its program */
};

struct cfi_rows {
    const uint8_t *bytes;
    size_t size;
    uint64_t address; /* of .eh_frame; 0 for .debug_frame */
    uint64_t base;
    uint32_t shift;
    bool is_debug_frame;
    uint8_t places[REGISTERS]; /* of a register: its rule; 0: nobody asks for it */
    const uint8_t *list;       /* of struct fde, in the order of addresses; may lie at any byte */
    struct fde *fdes;          /* that list; NULL: it is the file's own, .eh_frame_hdr */
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
static bool get_address(const struct cfi_rows *rows, const uint8_t **at, const uint8_t *end,
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
        (encoding & 0x70) == DW_EH_PE_pcrel ? rows->address + (uint64_t)(*at - rows->bytes) : 0;
    *value += relative ? base : 0;
    *at += bytes;
    return true;
}

/* ---- Instructions ---- */

struct program {
    const struct cfi_rows *cfi;
    const struct cie *cie;
    const uint8_t *at, *end;
    struct rules rules;
    struct rules kept[REMEMBERED_MAX];
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
    if (!get(program, &reg) || reg >= REGISTERS) {
        return false;
    }
    uint8_t place = program->cfi->places[reg];
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
    uint8_t place = program->cfi->places[reg];
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
        if (!get(program, &value) || value >= REGISTERS) {
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
        if (program->kept_count == REMEMBERED_MAX) {
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
        uint8_t place = program->cfi->places[low];
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
static struct rules unsaid(const struct cfi_rows *rows)
{
    struct rules rules = {.of[CFA_RULE] = {.rule = NATIVE_UNDEFINED}};
    for (int i = PLACE_RULES; i < RULES; i++) {
        rules.of[i] = (struct rule){.rule = NATIVE_SAME};
    }
    if (rows->machine == EM_X86_64) {
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
static bool read_cie(const struct cfi_rows *rows, const uint8_t *at, const uint8_t *end,
                     struct cie *cie)
{
    uint8_t version = at < end ? *at++ : 0;
    const char *letters = (const char *)at;
    const uint8_t *nul = memchr(at, 0, (size_t)(end - at));
    uint64_t return_address = 0;
    if ((version != 1 && version != 3 && (version != 4 || !rows->is_debug_frame)) || !nul) {
        return false;
    }
    at = nul + 1;
    if (version == 4) { /* bytes of an address, and of a segment's selector */
        if (end - at < 2 || at[0] != 8 || at[1]) {
            return false;
        }
        at += 2;
    }
    if (uleb128_get(&at, end, &cie->code_step) || sleb128_get(&at, end, &cie->data_step) ||
        at == end) {
        return false;
    }
    if (version == 1) {
        return_address = *at++;
    } else if (uleb128_get(&at, end, &return_address)) {
        return false;
    }
    if (return_address >= REGISTERS || !read_augmentation(cie, letters, &at, end)) {
        return false;
    }
    cie->has_own_return = rows->places[return_address] != RULES - 1;
    struct program program = {
        .cfi = rows, .cie = cie, .at = at, .end = end, .rules = unsaid(rows), .in_cie = true};
    if (run(&program) != 0) {
        return false;
    }
    cie->rules = program.rules;
    return true;
}

/* The bytes of an entry behind its length: at *at; false: there is none, or no sane one. */
static bool entry_at(const struct cfi_rows *rows, uint32_t offset, const uint8_t **at,
                     const uint8_t **end)
{
    if (rows->size < 8 || offset > rows->size - 8) {
        return false;
    }
    uint64_t length = fixed(rows->bytes + offset, 4);
    *at = rows->bytes + offset + 4;
    *end = *at + length;
    return length >= 4 && length <= rows->size - offset - 4 && length <= ENTRY_MAX;
}

/* What stands in a CIE where an FDE has its distance from that, or in .debug_frame its place. */
static uint64_t cie_id(const struct cfi_rows *rows)
{
    return rows->is_debug_frame ? UINT32_MAX : 0;
}

/* NULL: it is not known. */
static const struct cie *cie_at(struct cfi_rows *rows, uint32_t offset)
{
    const uint8_t *at;
    const uint8_t *end;
    struct cie *cie = &rows->cies[offset / 4 % CIES];
    if (cie->offset != offset + 1) {
        *cie = (struct cie){.offset = offset + 1};
        cie->is_sound = rows->cie_reads++ < CIE_READS && entry_at(rows, offset, &at, &end) &&
                        end - at <= CIE_SIZE_MAX && fixed(at, 4) == cie_id(rows) &&
                        read_cie(rows, at + 4, end, cie);
    }
    return cie->is_sound ? cie : NULL;
}

static int compare_fdes(const void *a, const void *b)
{
    const struct fde *left = a;
    const struct fde *right = b;
    return ORDER(left->start, right->start) ?: ORDER(left->at, right->at);
}

/* The function of an entry whose bytes behind the length are [at, end). False: it is a CIE, or
 * makes no sense. */
static bool read_function(struct cfi_rows *rows, const uint8_t *at, const uint8_t *end,
                          struct function *function)
{
    uint64_t pointer = fixed(at, 4);
    uint32_t here = (uint32_t)(at - rows->bytes);
    uint64_t size;
    uint64_t augmentation = 0;
    if (pointer == cie_id(rows) || (!rows->is_debug_frame && pointer > here)) {
        return false;
    }
    const struct cie *cie =
        cie_at(rows, rows->is_debug_frame ? (uint32_t)pointer : here - (uint32_t)pointer);
    at += 4;
    if (!cie || !get_address(rows, &at, end, cie->encoding, true, &function->start) ||
        !get_address(rows, &at, end, cie->encoding, false, &size) || !size ||
        __builtin_add_overflow(function->start, size, &function->end) ||
        (cie->sized && uleb128_get(&at, end, &augmentation)) ||
        augmentation > (uint64_t)(end - at)) {
        return false;
    }
    function->end += cie->signal; /* in the system call that it ends with the pc is behind it */
    function->cie = cie;
    function->at = at + augmentation;
    function->last = end;
    return true;
}

/* Nothing is remembered yet: that is most of its memory, and is not cleared for each function. */
static void begin(struct program *program, const struct cfi_rows *rows,
                  const struct function *function)
{
    program->cfi = rows;
    program->cie = function->cie;
    program->at = function->at;
    program->end = function->last;
    program->rules = function->cie->rules;
    program->kept_count = 0;
    program->in_cie = false;
}

static struct fde fde_of(const struct cfi_rows *rows, uint32_t index)
{
    struct fde fde;
    memcpy(&fde, rows->list + index * sizeof fde, sizeof fde);
    return fde;
}

static int64_t distance_of(const struct cfi_rows *rows, uint64_t address)
{
    return (int64_t)(address - rows->base);
}

static uint64_t start_of(const struct cfi_rows *rows, uint32_t index)
{
    return rows->base + (uint64_t)(int64_t)fde_of(rows, index).start;
}

/* Of an entry that is listed, and begins where the list says. */
static bool function_at(struct cfi_rows *rows, uint32_t index, struct function *function)
{
    const uint8_t *at;
    const uint8_t *end;
    return entry_at(rows, fde_of(rows, index).at + rows->shift, &at, &end) &&
           read_function(rows, at, end, function) && function->start == start_of(rows, index);
}

/* In the order of addresses, which they mostly have. */
static int list_fdes(struct cfi_rows *rows)
{
    bool is_sorted = true;
    rows->base = rows->address;
    rows->shift = 0;
    rows->count = 0;
    for (uint32_t offset = 0; offset + 4 <= rows->size;) {
        const uint8_t *at;
        const uint8_t *end;
        struct function function;
        if (fixed(rows->bytes + offset, 4) == 0) { /* an end; some linkers put one in between */
            offset += 4;
            continue;
        }
        if (!entry_at(rows, offset, &at, &end)) {
            break;
        }
        struct fde fde = {.at = offset};
        offset = (uint32_t)(end - rows->bytes);
        if (!read_function(rows, at, end, &function)) {
            continue;
        }
        int64_t start = distance_of(rows, function.start);
        fde.start = (int32_t)start;
        if (fde.start != start) {
            continue;
        }
        if (ARRAY_RESERVE(rows->fdes, rows->count, rows->room)) {
            return -ENOMEM;
        }
        is_sorted &= !rows->count || rows->fdes[rows->count - 1].start <= fde.start;
        rows->fdes[rows->count++] = fde;
    }
    if (!is_sorted) {
        qsort(rows->fdes, rows->count, sizeof *rows->fdes, compare_fdes);
    }
    rows->list = (const uint8_t *)rows->fdes;
    return 0;
}

static bool is_in_order(const struct cfi_rows *rows)
{
    for (uint32_t i = 1; i < rows->count; i++) {
        if (fde_of(rows, i - 1).start > fde_of(rows, i).start) {
            return false;
        }
    }
    return true;
}

/*
 * Linkers list the same in .eh_frame_hdr, at that address, in order. It need not be made then,
 * which is most of the work for a large library. False: it is none like theirs. Whether an entry
 * makes sense is seen when it is asked for.
 */
static bool take_own_list(struct cfi_rows *rows, const Elf_Data *data, uint64_t address)
{
    static const uint8_t head[] = {1, DW_EH_PE_pcrel | DW_EH_PE_sdata4, DW_EH_PE_udata4,
                                   DW_EH_PE_datarel | DW_EH_PE_sdata4};
    enum { SECTION = sizeof head, COUNT = SECTION + 4, LIST = COUNT + 4 };
    const uint8_t *bytes = data && data->d_size >= LIST ? data->d_buf : NULL;
    uint32_t to_section = (uint32_t)(rows->address - address);
    if (!bytes || memcmp(bytes, head, sizeof head) != 0 ||
        fixed(bytes + SECTION, 4) != (uint32_t)(to_section - SECTION) ||
        fixed(bytes + COUNT, 4) > (data->d_size - LIST) / sizeof(struct fde)) {
        return false;
    }
    rows->list = bytes + LIST;
    rows->count = (uint32_t)fixed(bytes + COUNT, 4);
    rows->base = address;
    rows->shift = -to_section;
    return rows->count > 0 && is_in_order(rows);
}

/* The first of them that begins behind an address. */
static uint32_t first_behind(const struct cfi_rows *rows, uint64_t address)
{
    uint32_t at;
    int64_t distance = distance_of(rows, address);
    ARRAY_FIRST(at, rows->count, fde_of(rows, at).start <= distance);
    return at;
}

/* ---- Rows ---- */

/* The operand of an operation, `size` bytes. */
static bool get_fixed(const uint8_t **at, const uint8_t *end, size_t size, bool is_signed,
                      Dwarf_Op *op)
{
    if (size > (size_t)(end - *at)) {
        return false;
    }
    unsigned shift = 64 - 8 * (unsigned)size;
    op->number = fixed(*at, size);
    if (is_signed) {
        op->number = (uint64_t)((int64_t)(op->number << shift) >> shift);
    }
    *at += size;
    return true;
}

static bool get_signed(const uint8_t **at, const uint8_t *end, uint64_t *value)
{
    int64_t number = 0;
    bool is = sleb128_get(at, end, &number) == 0;
    *value = (uint64_t)number;
    return is;
}

/* False: nobody here evaluates it (native_evaluate). */
static bool read_operation(const uint8_t **at, const uint8_t *end, Dwarf_Op *op)
{
    *op = (Dwarf_Op){.atom = *(*at)++};
    if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31) {
        return get_signed(at, end, &op->number);
    }
    switch (op->atom) {
    case DW_OP_bregx:
        return uleb128_get(at, end, &op->number) == 0 && get_signed(at, end, &op->number2);
    case DW_OP_const1u:
    case DW_OP_const1s:
        return get_fixed(at, end, 1, op->atom == DW_OP_const1s, op);
    case DW_OP_const2u:
    case DW_OP_const2s:
        return get_fixed(at, end, 2, op->atom == DW_OP_const2s, op);
    case DW_OP_const4u:
    case DW_OP_const4s:
        return get_fixed(at, end, 4, op->atom == DW_OP_const4s, op);
    case DW_OP_const8u:
    case DW_OP_const8s:
        return get_fixed(at, end, 8, false, op);
    case DW_OP_constu:
    case DW_OP_plus_uconst:
        return uleb128_get(at, end, &op->number) == 0;
    case DW_OP_consts:
        return get_signed(at, end, &op->number);
    case DW_OP_call_frame_cfa:
    case DW_OP_deref:
    case DW_OP_dup:
    case DW_OP_over:
    case DW_OP_drop:
    case DW_OP_nop:
    case DW_OP_plus:
    case DW_OP_minus:
    case DW_OP_mul:
    case DW_OP_and:
    case DW_OP_or:
    case DW_OP_xor:
    case DW_OP_shl:
    case DW_OP_shr:
    case DW_OP_eq:
    case DW_OP_ne:
    case DW_OP_ge:
    case DW_OP_gt:
    case DW_OP_le:
    case DW_OP_lt:
        return true;
    default:
        return op->atom >= DW_OP_lit0 && op->atom <= DW_OP_lit31;
    }
}

/* Its operations; 0: some are not known here, or they are too many. */
static uint16_t read_operations(const uint8_t *at, const uint8_t *end, Dwarf_Op *operations)
{
    uint16_t count = 0;
    while (at < end) {
        if (count == OPERATIONS_MAX || !read_operation(&at, end, &operations[count++])) {
            return 0;
        }
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

static void make_row(struct cfi_rows *rows, const struct cie *cie, const struct rules *rules,
                     struct native_row *row)
{
    *row = (struct native_row){.signal = cie->signal};
    row->cfa = place_of(&rules->of[CFA_RULE], rows->operations[CFA_RULE]);
    for (int i = 0; i < NATIVE_PLACES; i++) {
        row->places[i] = place_of(&rules->of[PLACE_RULES + i], rows->operations[PLACE_RULES + i]);
    }
    if (cie->has_own_return) {
        row->places[NATIVE_PLACES - 1] = (struct native_place){.rule = NATIVE_UNDEFINED};
    }
    row->found = row->cfa.rule != NATIVE_UNDEFINED;
}

struct taker {
    int (*take)(void *context, uint64_t address, const struct native_row *row);
    void *context;
    uint64_t from;
};

/* A function's rows below `end`, those of its that hold nowhere in the range left out. */
static int each_row(struct cfi_rows *rows, const struct function *function, uint64_t end,
                    const struct taker *taker)
{
    static const struct native_row nothing = {0};
    struct native_row row;
    struct program program;
    begin(&program, rows, function);
    uint64_t place = function->start;
    int more = 1;
    int err = 0;
    while (more > 0 && place < end && !err) {
        more = run(&program);
        uint64_t next = more > 0 && program.advance < end - place ? place + program.advance : end;
        if (next > taker->from) {
            make_row(rows, function->cie, &program.rules, &row);
            err = taker->take(taker->context, place > taker->from ? place : taker->from,
                              more < 0 ? &nothing : &row);
        }
        place = next;
    }
    return err;
}

/* What a function says does not outlive the look at another one, whose CIE may take its CIE's
 * place; where that one begins is listed. */
static int each_function(struct cfi_rows *rows, uint64_t to, const struct taker *taker)
{
    static const struct native_row nothing = {0};
    uint64_t at = taker->from;
    int err = 0;
    uint32_t i = first_behind(rows, at);
    for (i -= i > 0; i < rows->count && at < to && !err; i++) {
        struct function function;
        if (start_of(rows, i) >= to) {
            break;
        }
        if (!function_at(rows, i, &function)) {
            continue;
        }
        uint64_t next = i + 1 < rows->count ? start_of(rows, i + 1) : UINT64_MAX;
        uint64_t end = next < function.end ? next : function.end;
        end = end < to ? end : to;
        if (end <= at) {
            continue;
        }
        if (function.start > at) {
            err = taker->take(taker->context, at, &nothing);
        }
        err = err ? err : each_row(rows, &function, end, taker);
        at = end;
    }
    return !err && at < to ? taker->take(taker->context, at, &nothing) : err;
}

int cfi_rows_each(struct cfi_rows *rows, uint64_t from, uint64_t to,
                  int (*take)(void *context, uint64_t address, const struct native_row *row),
                  void *context)
{
    return each_function(rows, to, &(struct taker){take, context, from});
}

void cfi_rows_at(struct cfi_rows *rows, uint64_t address, struct native_row *row)
{
    struct function function;
    uint32_t behind = first_behind(rows, address);
    memset(row, 0, sizeof *row);
    if (!behind || !function_at(rows, behind - 1, &function) || address >= function.end) {
        return;
    }
    struct program program;
    begin(&program, rows, &function);
    uint64_t left = address - function.start;
    int more;
    while ((more = run(&program)) > 0 && program.advance <= left) {
        left -= program.advance;
    }
    if (more >= 0) {
        make_row(rows, function.cie, &program.rules, row);
    }
}

/* ---- The section ---- */

static Elf_Data *find_section(Elf *elf, const char *name, uint64_t *address)
{
    const struct elf_file file = {.elf = elf};
    size_t size;
    GElf_Shdr header;
    Elf_Scn *section = elf_file_section(&file, name, &size);
    if (!section || !size || !gelf_getshdr(section, &header) || header.sh_flags & SHF_COMPRESSED) {
        return NULL;
    }
    *address = header.sh_addr;
    return elf_getdata(section, NULL);
}

void cfi_rows_sigreturn(Elf *elf, uint64_t *from, uint64_t *to)
{
    /* mov x8,#__NR_rt_sigreturn; svc #0 */
    static const uint8_t code[8] = {0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4};
    uint64_t address;
    Elf_Scn *scn = NULL;
    *from = *to = 0;
    if (find_section(elf, ".eh_frame", &address)) {
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

int cfi_rows_open(Elf *elf, unsigned machine, bool is_debug_frame, struct cfi_rows **out)
{
    uint64_t address;
    const unsigned char *ident = (const unsigned char *)elf_getident(elf, NULL);
    const Elf_Data *data =
        find_section(elf, is_debug_frame ? ".debug_frame" : ".eh_frame", &address);
    *out = NULL;
    if (!data || !data->d_buf || data->d_size > SECTION_MAX || ident[EI_CLASS] != ELFCLASS64 ||
        ident[EI_DATA] != ELFDATA2LSB || (machine != EM_X86_64 && machine != EM_AARCH64)) {
        return -ENOENT;
    }
    struct cfi_rows *rows = calloc(1, sizeof *rows);
    if (!rows) {
        return -ENOMEM;
    }
    rows->bytes = data->d_buf;
    rows->size = data->d_size;
    rows->address = is_debug_frame ? 0 : address;
    rows->is_debug_frame = is_debug_frame;
    rows->machine = machine;
    for (unsigned i = 0; i < NATIVE_PLACES; i++) {
        rows->places[native_place_register(machine, i)] = (uint8_t)(PLACE_RULES + i);
    }
    const Elf_Data *list = is_debug_frame ? NULL : find_section(elf, ".eh_frame_hdr", &address);
    if (!take_own_list(rows, list, address) && list_fdes(rows)) {
        cfi_rows_close(rows);
        return -ENOMEM;
    }
    *out = rows;
    return 0;
}

void cfi_rows_close(struct cfi_rows *rows)
{
    if (rows) {
        free(rows->fdes);
        free(rows);
    }
}

uint64_t cfi_rows_bytes(const struct cfi_rows *rows)
{
    return rows ? sizeof *rows + (uint64_t)rows->room * sizeof *rows->fdes : 0;
}
