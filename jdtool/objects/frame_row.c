#include "jdtool/objects/frame_row.h"

#include <dwarf.h>
#include <elf.h>
#include <elfutils/libdw.h>

/* Registers that outlive calls (System V ABI; AAPCS64), the return address column last. On aarch64
 * those that frame information of C code builds on. */
static const uint8_t places_x86_64[NATIVE_PLACES] = {3, 6, 12, 13, 14, 15, 16};
static const uint8_t places_aarch64[NATIVE_PLACES] = {19, 20, 21, 22, 23, 29, 30};

unsigned native_place_register(unsigned machine, unsigned index)
{
    return machine == EM_AARCH64 ? places_aarch64[index] : places_x86_64[index];
}

#define STACK_MAX 32

struct evaluation {
    uint64_t stack[STACK_MAX];
    unsigned depth;
    const struct native_regs *regs;
    uint64_t cfa;
    bool (*read)(void *context, uint64_t address, uint64_t *word);
    void *context;
};

static bool push(struct evaluation *run, uint64_t value)
{
    if (run->depth == STACK_MAX) {
        return false;
    }
    run->stack[run->depth++] = value;
    return true;
}

static bool push_register(struct evaluation *run, uint64_t reg, uint64_t offset)
{
    return reg < NATIVE_REGS && (run->regs->known >> reg & 1) &&
           push(run, run->regs->value[reg] + offset);
}

static bool two_operands(struct evaluation *run, unsigned atom)
{
    if (run->depth < 2) {
        return false;
    }
    uint64_t b = run->stack[--run->depth];
    uint64_t a = run->stack[--run->depth];
    switch (atom) {
    case DW_OP_plus:
        return push(run, a + b);
    case DW_OP_minus:
        return push(run, a - b);
    case DW_OP_mul:
        return push(run, a * b);
    case DW_OP_and:
        return push(run, a & b);
    case DW_OP_or:
        return push(run, a | b);
    case DW_OP_xor:
        return push(run, a ^ b);
    case DW_OP_shl:
        return push(run, b < 64 ? a << b : 0);
    case DW_OP_shr:
        return push(run, b < 64 ? a >> b : 0);
    case DW_OP_eq:
        return push(run, a == b);
    case DW_OP_ne:
        return push(run, a != b);
    case DW_OP_ge:
        return push(run, (int64_t)a >= (int64_t)b);
    case DW_OP_gt:
        return push(run, (int64_t)a > (int64_t)b);
    case DW_OP_le:
        return push(run, (int64_t)a <= (int64_t)b);
    case DW_OP_lt:
        return push(run, (int64_t)a < (int64_t)b);
    default:
        return false;
    }
}

/* What call-frame information of compilers and of the C library's assembly uses (PLT entries,
 * signal frames, realigned stacks); no branches, so it ends. */
static bool operate(struct evaluation *run, const Dwarf_Op *op)
{
    unsigned atom = op->atom;
    if (atom >= DW_OP_lit0 && atom <= DW_OP_lit31) {
        return push(run, atom - DW_OP_lit0);
    }
    if (atom >= DW_OP_breg0 && atom <= DW_OP_breg31) {
        return push_register(run, atom - DW_OP_breg0, op->number);
    }
    switch (atom) {
    case DW_OP_bregx:
        return push_register(run, op->number, op->number2);
    case DW_OP_call_frame_cfa:
        return push(run, run->cfa);
    case DW_OP_const1u:
    case DW_OP_const1s:
    case DW_OP_const2u:
    case DW_OP_const2s:
    case DW_OP_const4u:
    case DW_OP_const4s:
    case DW_OP_const8u:
    case DW_OP_const8s:
    case DW_OP_constu:
    case DW_OP_consts:
        return push(run, op->number);
    case DW_OP_plus_uconst:
        if (run->depth == 0) {
            return false;
        }
        run->stack[run->depth - 1] += op->number;
        return true;
    case DW_OP_dup:
        return run->depth && push(run, run->stack[run->depth - 1]);
    case DW_OP_over:
        return run->depth >= 2 && push(run, run->stack[run->depth - 2]);
    case DW_OP_drop:
        if (run->depth == 0) {
            return false;
        }
        run->depth--;
        return true;
    case DW_OP_deref:
        return run->depth &&
               run->read(run->context, run->stack[run->depth - 1], &run->stack[run->depth - 1]);
    case DW_OP_nop:
        return true;
    default:
        return two_operands(run, atom);
    }
}

bool native_evaluate(const struct native_place *place, const struct native_regs *regs, uint64_t cfa,
                     bool (*read)(void *context, uint64_t address, uint64_t *word), void *context,
                     uint64_t *value)
{
    struct evaluation run = {.regs = regs, .cfa = cfa, .read = read, .context = context};
    const Dwarf_Op *ops = place->operations;
    for (unsigned i = 0; i < place->length; i++) {
        if (!operate(&run, &ops[i])) {
            return false;
        }
    }
    if (run.depth == 0) {
        return false;
    }
    *value = run.stack[run.depth - 1];
    return true;
}
