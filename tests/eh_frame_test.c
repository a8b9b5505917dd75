/* libdw reads back the call-frame information that jdtool writes. */
#include "test.h"

#include "jdtool/unwind/eh_frame.h"

#include <dwarf.h>
#include <elf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <string.h>

#define CODE  UINT64_C(0x7f1234567000)
#define SIZE  UINT64_C(0x140)
#define TABLE (CODE - UINT64_C(0x70000000))

static struct eh_frame table;

static int free_table(void **state)
{
    (void)state;
    eh_frame_free(&table);
    return 0;
}

static int32_t i32_at(size_t offset)
{
    int32_t value;
    memcpy(&value, table.bytes.at + offset, sizeof value);
    return value;
}

static struct frame_row sample_rows[] = {
    {.offset = 0, .cfa = FRAME_CFA_SP, .cfa_offset = 8, .ra = FRAME_AT_CFA, .ra_offset = -8},
    {.offset = 1,
     .cfa = FRAME_CFA_SP,
     .cfa_offset = 16,
     .ra = FRAME_AT_CFA,
     .ra_offset = -8,
     .fp = FRAME_AT_CFA,
     .fp_offset = -16},
    {.offset = 0x45, .cfa = FRAME_CFA_INTERPRETER},
    {.offset = 0x130, .cfa = FRAME_CFA_REG, .cfa_reg = 13, .ra = FRAME_IN_REG, .ra_reg = 0},
    {.offset = 0x150,
     .cfa = FRAME_CFA_SAVED,
     .cfa_reg = 1,
     .cfa_offset = 0x80,
     .ra = FRAME_AT_CFA,
     .ra_offset = -8},
};
static struct frames sample = {.rows = sample_rows,
                               .count = sizeof sample_rows / sizeof sample_rows[0]};

/* The form that perf 6.1 accepts, byte by byte. */
TEST_WITH(test_layout, NULL, free_table)
{
    assert_int_equal(eh_frame_build(EM_X86_64, &sample, CODE, SIZE, TABLE, &table), 0);
    size_t hdr = table.bytes.size - table.hdr_size;
    assert_int_equal(hdr % 8, 0);
    assert_int_equal(table.hdr_size, 20);
    assert_memory_equal(table.bytes.at + hdr, "\x01\x1b\x03\x3b", 4);
    assert_int_equal(i32_at(hdr + 4), -(int32_t)(hdr + 4)); /* to .eh_frame, from here */
    assert_int_equal(i32_at(hdr + 8), 1);
    assert_int_equal((int64_t)(TABLE + hdr) + i32_at(hdr + 12), CODE);
    size_t fde = hdr + (size_t)(int64_t)i32_at(hdr + 16);
    assert_int_equal((int64_t)(TABLE + fde + 8) + i32_at(fde + 8), CODE);
    assert_int_equal(i32_at(fde + 12), SIZE);
}

TEST_WITH(test_libdw_reads_it, NULL, free_table)
{
    assert_int_equal(eh_frame_build(EM_X86_64, &sample, CODE, SIZE, TABLE, &table), 0);
    Elf_Data data = {
        .d_buf = table.bytes.at, .d_type = ELF_T_BYTE, .d_size = table.bytes.size - table.hdr_size};
    unsigned char ident[EI_NIDENT] = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT};
    Dwarf_Off next;
    Dwarf_CFI_Entry entry;
    assert_int_equal(dwarf_next_cfi(ident, &data, true, 0, &next, &entry), 0);
    assert_true(dwarf_cfi_cie_p(&entry));
    assert_string_equal(entry.cie.augmentation, "zR");
    assert_int_equal(entry.cie.code_alignment_factor, 1);
    assert_int_equal(entry.cie.data_alignment_factor, -8);
    assert_int_equal(entry.cie.return_address_register, 16);
    assert_int_equal(dwarf_next_cfi(ident, &data, true, next, &next, &entry), 0);
    assert_false(dwarf_cfi_cie_p(&entry));

    static const uint8_t expected[] = {
        /* pc begin and range of the FDE, its augmentation's length */
        0,
        0,
        0,
        0,
        0x40,
        1,
        0,
        0,
        0,
        DW_CFA_def_cfa,
        7,
        8,
        DW_CFA_offset | 16,
        1,
        DW_CFA_same_value,
        6,
        DW_CFA_advance_loc | 1,
        DW_CFA_def_cfa,
        7,
        16,
        DW_CFA_offset | 16,
        1,
        DW_CFA_offset | 6,
        2,
        DW_CFA_advance_loc1,
        0x44,
        DW_CFA_def_cfa_expression,
        3,
        DW_OP_breg6,
        0x78,
        DW_OP_deref,
        DW_CFA_expression,
        16,
        2,
        DW_OP_breg6,
        8,
        DW_CFA_expression,
        6,
        2,
        DW_OP_breg6,
        0,
        DW_CFA_advance_loc1,
        0xeb,
        DW_CFA_def_cfa,
        13,
        0,
        DW_CFA_register,
        16,
        0,
        DW_CFA_same_value,
        6,
        DW_CFA_advance_loc | 0x20,
        DW_CFA_def_cfa_expression,
        6,
        DW_OP_breg7,
        8,
        DW_OP_deref,
        DW_OP_plus_uconst,
        0x80,
        1,
        DW_CFA_offset | 16,
        1,
        DW_CFA_same_value,
        6};
    const uint8_t *body = entry.fde.start;
    assert_true((size_t)(entry.fde.end - body) >= sizeof expected);
    assert_memory_equal(body + 4, expected + 4, sizeof expected - 4);
    for (const uint8_t *at = body + sizeof expected; at < entry.fde.end; at++) {
        assert_int_equal(*at, DW_CFA_nop);
    }
    /* And the end mark. */
    assert_int_equal(dwarf_next_cfi(ident, &data, true, next, &next, &entry), 1);
}

/* The same rows in aarch64's registers, beginning with what a callee is entered with. */
TEST_WITH(test_aarch64, NULL, free_table)
{
    struct frame_row rows[] = {
        {.offset = 0, .cfa = FRAME_CFA_SP, .ra = FRAME_IN_REG, .ra_reg = 30},
        {.offset = 8,
         .cfa = FRAME_CFA_SP,
         .cfa_offset = 0x40,
         .ra = FRAME_AT_CFA,
         .ra_offset = -8,
         .fp = FRAME_AT_CFA,
         .fp_offset = -16},
        {.offset = 16, .cfa = FRAME_CFA_INTERPRETER},
    };
    struct frames frames = {.rows = rows, .count = 3};
    static const uint8_t cie[] = {1,  'z', 'R',       0, 1, 0x78, 30, 1, 0x1b, DW_CFA_def_cfa,
                                  31, 0,   DW_CFA_nop};
    static const uint8_t expected[] = {DW_CFA_def_cfa,
                                       31,
                                       0,
                                       DW_CFA_same_value,
                                       30,
                                       DW_CFA_same_value,
                                       29,
                                       DW_CFA_advance_loc | 8,
                                       DW_CFA_def_cfa,
                                       31,
                                       0x40,
                                       DW_CFA_offset | 30,
                                       1,
                                       DW_CFA_offset | 29,
                                       2,
                                       DW_CFA_advance_loc | 8,
                                       DW_CFA_def_cfa_expression,
                                       3,
                                       DW_OP_breg29,
                                       0x78,
                                       DW_OP_deref,
                                       DW_CFA_expression,
                                       30,
                                       2,
                                       DW_OP_breg29,
                                       8,
                                       DW_CFA_expression,
                                       29,
                                       2,
                                       DW_OP_breg29,
                                       0};
    assert_int_equal(eh_frame_build(EM_AARCH64, &frames, CODE, SIZE, TABLE, &table), 0);
    assert_memory_equal(table.bytes.at + 8, cie, sizeof cie);
    size_t fde = 4 + (size_t)i32_at(0);
    assert_memory_equal(table.bytes.at + fde + 17, expected, sizeof expected);
}

TEST_WITH(test_distance, NULL, free_table)
{
    assert_int_equal(
        eh_frame_build(EM_X86_64, &sample, CODE, SIZE, CODE - UINT64_C(0x90000000), &table),
        -ERANGE);
    assert_int_equal(
        eh_frame_build(EM_X86_64, &sample, CODE, SIZE, CODE + UINT64_C(0x1000), &table), 0);
}

TEST_WITH(test_many_rows, NULL, free_table)
{
    static struct frame_row many[20000];
    for (uint32_t i = 0; i < 20000; i++) {
        many[i] = (struct frame_row){.offset = i * 300,
                                     .cfa = FRAME_CFA_SP,
                                     .cfa_offset = (int32_t)(8 + i % 2 * 8),
                                     .ra = FRAME_AT_CFA,
                                     .ra_offset = -8};
    }
    struct frames frames = {.rows = many, .count = 20000};
    assert_int_equal(eh_frame_build(EM_X86_64, &frames, CODE, 20000 * 300, TABLE, &table), 0);
    assert_true(table.bytes.size > 20000 * 5);
}

TEST_MAIN(NULL, NULL)
