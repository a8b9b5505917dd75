#include "jdtool/objects/frame_row.h"

#include "jdtool/base/array.h"
#include "jdtool/base/hash_map.h"
#include "jdtool/objects/cfi_rows.h"

#include <dwarf.h>
#include <elf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

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
    (void)push(&run, cfa); /* DWARF 5, 6.4.2.3; of the CFA itself it is below all that counts */
    for (unsigned i = 0; i < place->length; i++) {
        if (!operate(&run, &ops[i])) {
            return false;
        }
    }
    if (run.depth == 0 || !place->length) {
        return false;
    }
    *value = run.stack[run.depth - 1];
    return true;
}

/* ---- Rows kept once ---- */

static bool has_expression(const struct native_place *place)
{
    return place->rule == NATIVE_EXPRESSION || place->rule == NATIVE_AT_EXPRESSION;
}

static uint64_t hash_of_place(uint64_t hash, const struct native_place *place)
{
    return hash_pair(hash, (uint64_t)(uint32_t)place->offset << 32 | (uint64_t)place->reg << 8 |
                               place->rule);
}

static bool is_same_place(const struct native_place *a, const struct native_place *b)
{
    return a->rule == b->rule && a->reg == b->reg && a->offset == b->offset;
}

static bool is_same(const struct native_row *a, const struct native_row *b)
{
    bool same = is_same_place(&a->cfa, &b->cfa) && a->found == b->found && a->signal == b->signal;
    for (unsigned i = 0; i < NATIVE_PLACES && same; i++) {
        same = is_same_place(&a->places[i], &b->places[i]);
    }
    return same;
}

/*
 * The copy of a row that equals it, `lasts` set, which lives until row_set_free. NULL: the row has
 * an expression, which belongs to a file, or there is no room.
 */
static const struct native_row *row_set_keep(struct row_set *set, const struct native_row *row)
{
    uint64_t hash = hash_of_place((uint64_t)row->found << 1 | row->signal, &row->cfa);
    bool whole = !has_expression(&row->cfa);
    for (unsigned i = 0; i < NATIVE_PLACES; i++) {
        hash = hash_of_place(hash, &row->places[i]);
        whole &= !has_expression(&row->places[i]);
    }
    if (!whole) {
        return NULL;
    }
    uint32_t at;
    HASH_MAP_FIND(at, &set->by_content, hash, is_same(chunks_at(&set->list, at), row));
    if (at != HASH_MAP_NONE) {
        return chunks_at(&set->list, at);
    }
    struct native_row *kept = set->list.count < ROW_SET_MAX ? chunks_add(&set->list) : NULL;
    if (!kept || hash_map_add(&set->by_content, hash, set->list.count - 1)) {
        return NULL;
    }
    *kept = *row;
    kept->lasts = true;
    return kept;
}

void row_set_free(struct row_set *set)
{
    chunks_free(&set->list);
    hash_map_free(&set->by_content);
}

/* ---- Rows of a file ---- */

struct cached_row {
    uint64_t address;
    const struct native_row *row;
};

/* One that the set does not take. */
struct own_row {
    struct native_row row;
    Dwarf_Op operations[]; /* of its expressions */
};

struct frame_rows {
    unsigned machine;
    Elf *elf;                     /* with .eh_frame; NULL: none */
    struct cfi_rows *eh_frame;    /* NULL: there is none */
    struct cfi_rows *debug_frame; /* the same; of its Dwarf */
    bool asked_eh_frame;
    bool asked_debug_frame;
    bool asked_sigreturn;                  /* for what comes next */
    uint64_t sigreturn_from, sigreturn_to; /* cfi_rows_sigreturn */
    struct hash_map by_address;
    struct cached_row *list;
    uint32_t count;
    uint32_t room;
    struct row_set *set;
    struct own_row **own;
    uint32_t own_count;
    uint32_t own_room;
    struct native_row nothing;
};

struct frame_rows *frame_rows_new(unsigned machine, Elf *eh_frame, struct row_set *set)
{
    struct frame_rows *rows = calloc(1, sizeof *rows);
    if (rows) {
        rows->machine = machine;
        rows->set = set;
        rows->elf = eh_frame;
    }
    return rows;
}

static struct cfi_rows *eh_frame_of(struct frame_rows *rows)
{
    if (rows->elf && !rows->asked_eh_frame) {
        rows->asked_eh_frame = true;
        (void)cfi_rows_open(rows->elf, rows->machine, false, &rows->eh_frame);
    }
    return rows->eh_frame;
}

static struct cfi_rows *debug_frame_of(struct frame_rows *rows,
                                       Dwarf *(*debug_frame)(void *context), void *context)
{
    if (!rows->asked_debug_frame) {
        rows->asked_debug_frame = true;
        Dwarf *dwarf = debug_frame(context);
        if (dwarf) {
            (void)cfi_rows_open(dwarf_getelf(dwarf), rows->machine, true, &rows->debug_frame);
        }
    }
    return rows->debug_frame;
}

static void forget(struct frame_rows *rows)
{
    for (uint32_t i = 0; i < rows->own_count; i++) {
        free(rows->own[i]);
    }
    rows->own_count = 0;
    rows->count = 0;
    hash_map_clear(&rows->by_address);
}

void frame_rows_free(struct frame_rows *rows)
{
    if (!rows) {
        return;
    }
    forget(rows);
    cfi_rows_close(rows->eh_frame);
    cfi_rows_close(rows->debug_frame);
    hash_map_free(&rows->by_address);
    free((void *)rows->own);
    free(rows->list);
    free(rows);
}

bool frame_rows_need_dwarf(const struct frame_rows *rows)
{
    return rows->debug_frame != NULL;
}

/* The row of an address; false: it has none. */
static bool find_row(struct frame_rows *rows, uint64_t address,
                     Dwarf *(*debug_frame)(void *context), void *context, struct native_row *row)
{
    struct cfi_rows *cfi = eh_frame_of(rows);
    memset(row, 0, sizeof *row);
    if (cfi) {
        cfi_rows_at(cfi, address, row);
    }
    cfi = row->found ? NULL : debug_frame_of(rows, debug_frame, context);
    if (cfi) {
        cfi_rows_at(cfi, address, row);
    }
    return row->found;
}

/* A copy of a row, with its expressions. NULL: no memory. */
static const struct native_row *keep_own(struct frame_rows *rows, const struct native_row *row)
{
    size_t count = row->cfa.length;
    for (unsigned i = 0; i < NATIVE_PLACES; i++) {
        count += row->places[i].length;
    }
    struct own_row *own = NULL;
    if (ARRAY_RESERVE(rows->own, rows->own_count, rows->own_room) ||
        !(own = malloc(sizeof *own + count * sizeof *own->operations))) {
        return NULL;
    }
    own->row = *row;
    Dwarf_Op *to = own->operations;
    for (unsigned i = 0; i <= NATIVE_PLACES; i++) {
        struct native_place *place = i < NATIVE_PLACES ? &own->row.places[i] : &own->row.cfa;
        if (place->length) {
            memcpy(to, place->operations, place->length * sizeof *to);
            place->operations = to;
            to += place->length;
        }
    }
    rows->own[rows->own_count++] = own;
    return &own->row;
}

static bool is_sigreturn(struct frame_rows *rows, uint64_t address)
{
    if (!rows->asked_sigreturn) {
        rows->asked_sigreturn = true;
        if (rows->elf && rows->machine == EM_AARCH64) {
            cfi_rows_sigreturn(rows->elf, &rows->sigreturn_from, &rows->sigreturn_to);
        }
    }
    return address >= rows->sigreturn_from && address < rows->sigreturn_to;
}

static const struct native_row *look_up(struct frame_rows *rows, uint64_t address,
                                        Dwarf *(*debug_frame)(void *context), void *context)
{
    struct native_row row;
    if (!find_row(rows, address, debug_frame, context, &row) && is_sigreturn(rows, address)) {
        row.found = row.signal = true;
    }
    const struct native_row *kept = row_set_keep(rows->set, &row);
    kept = kept ? kept : keep_own(rows, &row);
    return kept ? kept : &rows->nothing;
}

const struct native_row *frame_rows_at(struct frame_rows *rows, uint64_t address,
                                       Dwarf *(*debug_frame)(void *context), void *context)
{
    uint32_t at;
    HASH_MAP_FIND(at, &rows->by_address, address, rows->list[at].address == address);
    if (at != HASH_MAP_NONE) {
        return rows->list[at].row;
    }
    if (rows->count == FRAME_ROWS_MAX) {
        forget(rows);
    }
    if (ARRAY_RESERVE(rows->list, rows->count, rows->room) ||
        hash_map_add(&rows->by_address, address, rows->count)) {
        return &rows->nothing;
    }
    struct cached_row *cached = &rows->list[rows->count++];
    cached->address = address;
    cached->row = look_up(rows, address, debug_frame, context);
    return cached->row;
}

/* The rows of a file that has nothing but a way back from signals. */
static int each_sigreturn(const struct frame_rows *rows, uint64_t from, uint64_t to,
                          int (*take)(void *context, uint64_t address,
                                      const struct native_row *row),
                          void *context)
{
    static const struct native_row nothing = {0};
    static const struct native_row signal = {.found = true, .signal = true};
    if (rows->sigreturn_from < from || rows->sigreturn_to > to || !rows->sigreturn_to) {
        return -ENOENT;
    }
    int err = take(context, from, &nothing);
    err = err ? err : take(context, rows->sigreturn_from, &signal);
    return err ? err : take(context, rows->sigreturn_to, &nothing);
}

int frame_rows_each(struct frame_rows *rows, uint64_t from, uint64_t to,
                    int (*take)(void *context, uint64_t address, const struct native_row *row),
                    void *context)
{
    struct cfi_rows *cfi = eh_frame_of(rows);
    if (cfi) {
        return cfi_rows_each(cfi, from, to, take, context);
    }
    (void)is_sigreturn(rows, from);
    return each_sigreturn(rows, from, to, take, context);
}

uint64_t frame_rows_bytes(const struct frame_rows *rows)
{
    return sizeof *rows + cfi_rows_bytes(rows->eh_frame) + cfi_rows_bytes(rows->debug_frame) +
           (uint64_t)rows->room * sizeof *rows->list +
           (uint64_t)rows->own_count * sizeof(struct own_row) +
           rows->by_address.room * sizeof *rows->by_address.slots;
}
