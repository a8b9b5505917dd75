/*
 * Fuzzes unwinding: code, registers and a stack copy. The code is analysed, its rows are written as
 * a table, and the stack is walked by them.
 *
 * The input: shape, entry, code size (two bytes), the code, 17 registers, the stack.
 */
#include "jdtool/unwind/eh_frame.h"
#include "jdtool/unwind/unwind.h"
#include "tests/unwind_places.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CODE      UINT64_C(0x10000)
#define STACK     UINT64_C(0x70000000)
#define FRAMES    256
#define REGISTERS 17

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct blob_frames piece;
static uint64_t piece_size;

static void find(void *context, uint64_t address, struct unwind_place *place)
{
    (void)context;
    if (address - CODE < piece_size) {
        place->code = &piece;
        place->code_start = CODE;
        place->code_size = piece_size;
    }
}

static const struct unwind_place *place_at(void *context, uint64_t pc, bool caller)
{
    struct unwind_place *place = next_place();
    unwind_place_of(find, context, pc, caller, place);
    return place;
}

static void fail(const char *what)
{
    fprintf(stderr, "%s\n", what);
    abort();
}

static void check_rows(const struct frames *frames)
{
    for (uint32_t i = 0; i < frames->count; i++) {
        if ((i == 0 && frames->rows[i].offset != 0) ||
            (i > 0 && frames->rows[i].offset <= frames->rows[i - 1].offset) ||
            frames->rows[i].offset >= piece_size) {
            fail("rows out of order");
        }
    }
}

static void walk(const uint8_t *registers, const uint8_t *stack, size_t size)
{
    static struct unwind_frame frames[FRAMES];
    struct unwind_process process = {
        .find = place_at, .row = test_row, .code_row = test_code_row, .machine = EM_X86_64};
    struct unwind_sample sample = {.stack_size = size, .sp = STACK};
    uint8_t *exact = malloc(size ? size : 1); /* so that a read behind it is seen */
    uint32_t count;
    if (!exact) {
        abort();
    }
    memcpy(exact, stack, size);
    sample.stack = exact;
    memcpy(sample.regs.value, registers, REGISTERS * sizeof(uint64_t));
    sample.regs.known = (UINT64_C(1) << REGISTERS) - 1;
    sample.regs.value[7] = STACK;
    sample.pc = CODE + sample.regs.value[16] % piece_size;
    enum unwind_end end = unwind(&process, &sample, frames, FRAMES, &count);
    if (end >= UNWIND_END_COUNT || count < 1 || count > FRAMES) {
        fail("a walk without an end");
    }
    free(exact);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t registers = REGISTERS * sizeof(uint64_t);
    if (size < 4 + 1 + registers) {
        return 0;
    }
    size_t room = size - 4 - registers;
    piece_size = 1 + (data[2] | (size_t)data[3] << 8) % room;
    piece.shape = (enum frames_shape)(data[0] % (FRAMES_CONTINUATION + 1));
    piece.return_barrier = data[0] & 0x40;
    piece.continuation_entry = data[0] & 0x80;
    struct frames_code code = {.bytes = data + 4,
                               .size = (uint32_t)piece_size,
                               .address = CODE,
                               .shape = piece.shape,
                               .verified_entry = data[1] & 0x7f,
                               .osr_entry = data[1] & 0x80 ? data[1] & 0x7f : -1,
                               .entry_frame = data[1]};
    if (frames_aarch64(&code, &piece.frames) != 0) {
        fail("code that is not analysed");
    }
    check_rows(&piece.frames);
    if (frames_x86_64(&code, &piece.frames) != 0) {
        fail("code that is not analysed");
    }
    check_rows(&piece.frames);
    struct eh_frame table = {0};
    if (eh_frame_build(EM_X86_64, &piece.frames, CODE, piece_size, CODE + 0x1000000, &table) != 0) {
        fail("rows that make no table");
    }
    eh_frame_free(&table);
    walk(data + 4 + piece_size, data + 4 + piece_size + registers,
         size - 4 - piece_size - registers);
    frames_free(&piece.frames);
    return 0;
}
