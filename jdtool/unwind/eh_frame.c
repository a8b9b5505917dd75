#include "jdtool/unwind/eh_frame.h"

#include "format/leb128.h"

#include <dwarf.h>
#include <elf.h>
#include <errno.h>
#include <string.h>

/* DWARF's numbers of the registers that rows speak of. */
struct registers {
    uint8_t sp;
    uint8_t fp;
    uint8_t ra; /* the return address's column */
};
static const struct registers x86_64 = {.sp = 7, .fp = 6, .ra = 16};
static const struct registers aarch64 = {.sp = 31, .fp = 29, .ra = 30};

/* Pointer encodings: DW_EH_PE_pcrel | sdata4; udata4; DW_EH_PE_datarel | sdata4. */
#define PCREL_SDATA4   0x1b
#define UDATA4         0x03
#define DATAREL_SDATA4 0x3b

/* A short run of call-frame instructions, gathered before it is put. */
struct run {
    uint8_t bytes[96];
    size_t size;
};

static void add_byte(struct run *run, uint8_t byte)
{
    run->bytes[run->size++] = byte;
}

static void add_uleb(struct run *run, uint64_t value)
{
    run->size += uleb128_put(run->bytes + run->size, value);
}

static void add_sleb(struct run *run, int64_t value)
{
    run->size += sleb128_put(run->bytes + run->size, value);
}

/* The expression base + offset, once or twice dereferenced by the rule that holds it. */
static void add_expression(struct run *run, unsigned base, int64_t offset, bool deref)
{
    struct run inner = {.size = 0};
    add_byte(&inner, (uint8_t)(DW_OP_breg0 + base));
    add_sleb(&inner, offset);
    if (deref) {
        add_byte(&inner, DW_OP_deref);
    }
    add_uleb(run, inner.size);
    memcpy(run->bytes + run->size, inner.bytes, inner.size);
    run->size += inner.size;
}

/* The word so many above sp, + offset. */
static void add_saved(struct run *run, unsigned sp, const struct frame_row *row)
{
    struct run inner = {.size = 0};
    add_byte(&inner, (uint8_t)(DW_OP_breg0 + sp));
    add_sleb(&inner, INT64_C(8) * row->cfa_reg);
    add_byte(&inner, DW_OP_deref);
    add_byte(&inner, DW_OP_plus_uconst);
    add_uleb(&inner, (uint64_t)row->cfa_offset);
    add_uleb(run, inner.size);
    memcpy(run->bytes + run->size, inner.bytes, inner.size);
    run->size += inner.size;
}

/* In memory at base + offset. */
static void add_at(struct run *run, unsigned reg, unsigned base, int64_t offset)
{
    add_byte(run, DW_CFA_expression);
    add_uleb(run, reg);
    add_expression(run, base, offset, false);
}

/* In memory at CFA + offset; the data alignment factor is -8. */
static void add_at_cfa(struct run *run, unsigned reg, int32_t offset)
{
    if (offset < 0) {
        add_byte(run, (uint8_t)(DW_CFA_offset | reg));
        add_uleb(run, (uint64_t)(-(int64_t)offset / 8));
    } else {
        add_byte(run, DW_CFA_offset_extended_sf);
        add_uleb(run, reg);
        add_sleb(run, -(offset / 8));
    }
}

static void add_cfa(struct run *run, const struct registers *regs, const struct frame_row *row)
{
    if (row->cfa == FRAME_CFA_INTERPRETER) {
        add_byte(run, DW_CFA_def_cfa_expression);
        add_expression(run, regs->fp, -8, true);
        return;
    }
    if (row->cfa == FRAME_CFA_SAVED) {
        add_byte(run, DW_CFA_def_cfa_expression);
        add_saved(run, regs->sp, row);
        return;
    }
    unsigned base = row->cfa == FRAME_CFA_SP   ? regs->sp
                    : row->cfa == FRAME_CFA_FP ? regs->fp
                                               : row->cfa_reg;
    if (row->cfa_offset >= 0) {
        add_byte(run, DW_CFA_def_cfa);
        add_uleb(run, base);
        add_uleb(run, (uint64_t)row->cfa_offset);
    } else {
        add_byte(run, DW_CFA_def_cfa_expression);
        add_expression(run, base, row->cfa_offset, false);
    }
}

static void add_registers(struct run *run, const struct registers *regs,
                          const struct frame_row *row)
{
    if (row->cfa == FRAME_CFA_INTERPRETER) {
        add_at(run, regs->ra, regs->fp, 8);
        add_at(run, regs->fp, regs->fp, 0);
        return;
    }
    if (row->ra == FRAME_IN_REG && row->ra_reg == regs->ra) {
        add_byte(run, DW_CFA_same_value); /* still in the link register */
        add_uleb(run, regs->ra);
    } else if (row->ra == FRAME_IN_REG) {
        add_byte(run, DW_CFA_register);
        add_uleb(run, regs->ra);
        add_uleb(run, row->ra_reg);
    } else if (row->ra == FRAME_AT_SP) {
        add_at(run, regs->ra, regs->sp, row->ra_offset);
    } else if (row->ra == FRAME_AT_CFA) {
        add_at_cfa(run, regs->ra, row->ra_offset);
    } else {
        add_byte(run, DW_CFA_undefined);
        add_uleb(run, regs->ra);
    }
    if (row->fp == FRAME_SAME) {
        add_byte(run, DW_CFA_same_value);
        add_uleb(run, regs->fp);
    } else if (row->fp == FRAME_AT_SP) {
        add_at(run, regs->fp, regs->sp, row->fp_offset);
    } else if (row->fp == FRAME_AT_CFA) {
        add_at_cfa(run, regs->fp, row->fp_offset);
    } else {
        add_byte(run, DW_CFA_undefined);
        add_uleb(run, regs->fp);
    }
}

static void add_advance(struct run *run, uint32_t by)
{
    if (by == 0) {
        return;
    }
    if (by < 0x40) {
        add_byte(run, (uint8_t)(DW_CFA_advance_loc | by));
    } else if (by <= UINT8_MAX) {
        add_byte(run, DW_CFA_advance_loc1);
        add_byte(run, (uint8_t)by);
    } else {
        add_byte(run, DW_CFA_advance_loc4);
        memcpy(run->bytes + run->size, &by, sizeof by);
        run->size += sizeof by;
    }
}

static bool registers_differ(const struct frame_row *a, const struct frame_row *b)
{
    return a->ra != b->ra || a->ra_offset != b->ra_offset || a->ra_reg != b->ra_reg ||
           a->fp != b->fp || a->fp_offset != b->fp_offset || a->cfa == FRAME_CFA_INTERPRETER ||
           b->cfa == FRAME_CFA_INTERPRETER;
}

static void put_rows(struct bytes *out, const struct registers *regs, const struct frames *frames)
{
    uint32_t at = 0;
    for (uint32_t i = 0; i < frames->count; i++) {
        const struct frame_row *row = &frames->rows[i];
        struct run run = {.size = 0};
        add_advance(&run, row->offset - at);
        at = row->offset;
        add_cfa(&run, regs, row);
        if (i == 0 || registers_differ(row, row - 1)) {
            add_registers(&run, regs, row);
        }
        bytes_put(out, run.bytes, run.size);
    }
}

/* Pads with DW_CFA_nop, which is 0, to a multiple of 8 and fills in the length at `start`, which is
 * one, too. */
static void finish_entry(struct bytes *out, size_t start)
{
    bytes_align(out, 8);
    bytes_patch_u32(out, start, (uint32_t)(out->size - start - 4));
}

static void put_cie(struct bytes *out, const struct registers *regs)
{
    /* Length and id are 0 here; version 1, "zR", code factor 1, data factor -8, return address. */
    const uint8_t cie[] = {0,   0,   0, 0, 0,    0,        0, 0,           1,
                           'z', 'R', 0, 1, 0x78, regs->ra, 1, PCREL_SDATA4};
    /* At a callee's first instruction: the return address was pushed, or is in its register. */
    bool pushed = regs == &x86_64;
    const uint8_t entry[] = {DW_CFA_def_cfa, regs->sp, pushed ? 8 : 0,
                             (uint8_t)(DW_CFA_offset | regs->ra), 1};
    bytes_put(out, cie, sizeof cie);
    bytes_put(out, entry, pushed ? sizeof entry : 3);
    finish_entry(out, 0);
}

static bool fits(int64_t distance)
{
    return distance == (int32_t)distance;
}

static int put_fde(struct bytes *out, const struct registers *regs, const struct frames *frames,
                   uint64_t code_address, uint64_t code_size, uint64_t table_address)
{
    size_t start = out->size;
    int64_t begin = (int64_t)(code_address - (table_address + start + 8));
    if (!fits(begin) || code_size > UINT32_MAX) {
        return -ERANGE;
    }
    bytes_u32(out, 0);
    bytes_u32(out, (uint32_t)start + 4); /* back to the CIE */
    bytes_u32(out, (uint32_t)begin);
    bytes_u32(out, (uint32_t)code_size);
    bytes_u8(out, 0); /* no augmentation */
    put_rows(out, regs, frames);
    finish_entry(out, start);
    return 0;
}

static int put_hdr(struct bytes *out, size_t fde, uint64_t code_address, uint64_t table_address)
{
    static const uint8_t encodings[] = {1, PCREL_SDATA4, UDATA4, DATAREL_SDATA4};
    size_t start = out->size;
    int64_t code = (int64_t)(code_address - (table_address + start));
    if (!fits(code)) {
        return -ERANGE;
    }
    bytes_put(out, encodings, sizeof encodings);
    bytes_u32(out, (uint32_t) - (int64_t)(start + 4)); /* .eh_frame */
    bytes_u32(out, 1);
    bytes_u32(out, (uint32_t)code);
    bytes_u32(out, (uint32_t) - (int64_t)(start - fde));
    return 0;
}

int eh_frame_build(unsigned machine, const struct frames *frames, uint64_t code_address,
                   uint64_t code_size, uint64_t table_address, struct eh_frame *table)
{
    const struct registers *regs = machine == EM_AARCH64 ? &aarch64 : &x86_64;
    struct bytes *out = &table->bytes;
    out->size = 0;
    out->failed = false;
    put_cie(out, regs);
    size_t fde = out->size;
    int error = put_fde(out, regs, frames, code_address, code_size, table_address);
    bytes_u64(out, 0); /* the terminator */
    size_t hdr = out->size;
    error = error ? error : put_hdr(out, fde, code_address, table_address);
    table->hdr_size = out->size - hdr;
    return out->failed ? -ENOMEM : error;
}

void eh_frame_free(struct eh_frame *table)
{
    bytes_free(&table->bytes);
}
