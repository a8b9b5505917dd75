#include "jdtool/objects/native_frames.h"

#include "jdtool/base/array.h"

#include <dwarf.h>
#include <elf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

struct cached_row {
    uint64_t file_offset;
    struct native_row row;
};

struct segment {
    uint64_t file_offset;
    uint64_t size;
    uint64_t vaddr;
};

struct native_file {
    struct native_files *files;
    struct native_file *next;
    char *path;
    int fd;
    Elf *elf;
    Dwarf *dwarf;
    Dwarf_CFI *eh_frame;    /* belongs to the native_file */
    Dwarf_CFI *debug_frame; /* belongs to dwarf */
    struct segment *segments;
    size_t segment_count;
    /* Open addressing, a power of two of slots; 0: none yet, else place in rows + 1. */
    uint32_t *slots;
    uint32_t slot_count;
    struct cached_row *rows;
    uint32_t row_count;
    uint32_t row_room;
    struct kept_frame {
        Dwarf_Frame *frame;
    } * kept; /* frames that rows with expressions point into */
    size_t kept_count;
};

struct native_files {
    unsigned machine;
    struct native_file *list;
    struct native_row nothing;
};

/* Registers that outlive calls (System V ABI; AAPCS64), the return address column last. On aarch64
 * those that frame information of C code builds on. */
static const uint8_t places_x86_64[NATIVE_PLACES] = {3, 6, 12, 13, 14, 15, 16};
static const uint8_t places_aarch64[NATIVE_PLACES] = {19, 20, 21, 22, 23, 29, 30};

unsigned native_place_register(unsigned machine, unsigned index)
{
    return machine == EM_AARCH64 ? places_aarch64[index] : places_x86_64[index];
}

struct native_files *native_files_new(unsigned machine)
{
    struct native_files *files = calloc(1, sizeof *files);
    if (files) {
        files->machine = machine;
        (void)elf_version(EV_CURRENT);
    }
    return files;
}

static void close_file(struct native_file *file)
{
    if (file->eh_frame) {
        (void)dwarf_cfi_end(file->eh_frame);
    }
    if (file->dwarf) {
        (void)dwarf_end(file->dwarf);
    }
    if (file->elf) {
        (void)elf_end(file->elf);
    }
    if (file->fd >= 0) {
        (void)close(file->fd);
    }
    for (size_t i = 0; i < file->kept_count; i++) {
        free(file->kept[i].frame);
    }
    free(file->kept);
    free(file->segments);
    free(file->slots);
    free(file->rows);
    free(file->path);
    free(file);
}

void native_files_free(struct native_files *files)
{
    if (!files) {
        return;
    }
    for (struct native_file *file = files->list; file;) {
        struct native_file *next = file->next;
        close_file(file);
        file = next;
    }
    free(files);
}

/* The kernel maps the same vdso into every process. */
static Elf *own_vdso(void)
{
    char *image = (char *)(uintptr_t)getauxval(AT_SYSINFO_EHDR);
    if (!image || memcmp(image, ELFMAG, SELFMAG) != 0) {
        return NULL;
    }
    Elf64_Ehdr header;
    memcpy(&header, image, sizeof header);
    size_t size = header.e_shoff + (size_t)header.e_shnum * header.e_shentsize;
    return elf_memory(image, size);
}

static void read_segments(struct native_file *file)
{
    size_t count;
    if (elf_getphdrnum(file->elf, &count) != 0 || count == 0 || count > 4096) {
        return;
    }
    file->segments = calloc(count, sizeof *file->segments);
    if (!file->segments) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        GElf_Phdr header;
        if (gelf_getphdr(file->elf, (int)i, &header) && header.p_type == PT_LOAD) {
            file->segments[file->segment_count++] =
                (struct segment){header.p_offset, header.p_filesz, header.p_vaddr};
        }
    }
}

static void open_elf(struct native_file *file)
{
    if (strcmp(file->path, "[vdso]") == 0) {
        file->elf = own_vdso();
    } else if (file->path[0] == '/') {
        /* O_NONBLOCK: a hostile recording may name a FIFO. */
        file->fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (file->fd >= 0) {
            file->elf = elf_begin(file->fd, ELF_C_READ, NULL);
        }
    }
    GElf_Ehdr header;
    if (!file->elf || elf_kind(file->elf) != ELF_K_ELF || !gelf_getehdr(file->elf, &header) ||
        header.e_machine != file->files->machine) {
        return;
    }
    read_segments(file);
    file->eh_frame = dwarf_getcfi_elf(file->elf);
}

struct native_file *native_file_open(struct native_files *files, const char *path)
{
    struct native_file **link = &files->list;
    for (; *link; link = &(*link)->next) {
        if (strcmp((*link)->path, path) == 0) {
            struct native_file *file = *link;
            *link = file->next; /* to the front: the next question is likely the same */
            file->next = files->list;
            files->list = file;
            return file->segment_count ? file : NULL;
        }
    }
    struct native_file *file = calloc(1, sizeof *file);
    if (!file) {
        return NULL;
    }
    file->files = files;
    file->fd = -1;
    file->path = strdup(path);
    if (!file->path) {
        free(file);
        return NULL;
    }
    open_elf(file);
    file->next = files->list;
    files->list = file;
    return file->segment_count ? file : NULL;
}

static bool is_cfa(const Dwarf_Op *op)
{
    return op->atom == DW_OP_call_frame_cfa;
}

static bool plus(const Dwarf_Op *ops, size_t count, int32_t *offset)
{
    if (count == 0) {
        *offset = 0;
        return true;
    }
    /* libdw writes a negative offset as plus_uconst of its two's complement. */
    if (count == 1 && ops->atom == DW_OP_plus_uconst) {
        int64_t value = (int64_t)ops->number;
        *offset = (int32_t)value;
        return value == *offset;
    }
    if (count == 2 && ops[0].atom == DW_OP_consts && ops[1].atom == DW_OP_plus) {
        int64_t value = (int64_t)ops[0].number;
        *offset = (int32_t)value;
        return value == *offset;
    }
    return false;
}

static bool reg_plus(const Dwarf_Op *op, struct native_place *place)
{
    uint64_t reg;
    int64_t offset;
    if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31) {
        reg = op->atom - DW_OP_breg0;
        offset = (int64_t)op->number;
    } else if (op->atom == DW_OP_bregx) {
        reg = op->number;
        offset = (int64_t)op->number2;
    } else {
        return false;
    }
    if (reg >= NATIVE_REGS || offset != (int32_t)offset) {
        return false;
    }
    *place =
        (struct native_place){.rule = NATIVE_REG, .reg = (uint8_t)reg, .offset = (int32_t)offset};
    return true;
}

/* A rule in our words. True when it points into the frame, which has to be kept then. */
static bool take_register(Dwarf_Frame *frame, int number, struct native_place *place)
{
    Dwarf_Op memory[3];
    Dwarf_Op *ops;
    size_t count;
    memset(place, 0, sizeof *place);
    if (dwarf_frame_register(frame, number, memory, &ops, &count) != 0 ||
        (count == 0 && ops == memory)) {
        place->rule = NATIVE_UNDEFINED;
        return false;
    }
    if (count == 0) {
        place->rule = NATIVE_SAME;
        return false;
    }
    bool value = ops[count - 1].atom == DW_OP_stack_value;
    size_t body = value ? count - 1 : count;
    if (body && is_cfa(&ops[0]) && plus(ops + 1, body - 1, &place->offset)) {
        place->rule = value ? NATIVE_CFA : NATIVE_AT_CFA;
        return false;
    }
    if (!value && count == 1 && ops[0].atom == DW_OP_regx && ops[0].number < NATIVE_REGS) {
        place->rule = NATIVE_REG;
        place->reg = (uint8_t)ops[0].number;
        return false;
    }
    if (!value && count == 1 && ops[0].atom >= DW_OP_reg0 && ops[0].atom <= DW_OP_reg31) {
        place->rule = NATIVE_REG;
        place->reg = (uint8_t)(ops[0].atom - DW_OP_reg0);
        return false;
    }
    if (ops == memory || count > UINT16_MAX) {
        place->rule = NATIVE_UNDEFINED;
        return false;
    }
    place->rule = value ? NATIVE_EXPRESSION : NATIVE_AT_EXPRESSION;
    place->operations = ops;
    place->length = (uint16_t)body;
    return true;
}

static bool keep_frame(struct native_file *file, Dwarf_Frame *frame)
{
    struct kept_frame *kept = realloc(file->kept, (file->kept_count + 1) * sizeof *kept);
    if (!kept) {
        return false;
    }
    file->kept = kept;
    kept[file->kept_count++].frame = frame;
    return true;
}

static void take_frame(struct native_file *file, Dwarf_Frame *frame, struct native_row *row)
{
    Dwarf_Op *ops;
    size_t count;
    bool keep = false;
    if (dwarf_frame_cfa(frame, &ops, &count) != 0 || count == 0 || count > UINT16_MAX) {
        free(frame);
        return;
    }
    if (count != 1 || !reg_plus(ops, &row->cfa)) {
        row->cfa = (struct native_place){
            .rule = NATIVE_EXPRESSION, .length = (uint16_t)count, .operations = ops};
        keep = true;
    }
    int return_address = dwarf_frame_info(frame, NULL, NULL, &row->signal);
    for (unsigned i = 0; i < NATIVE_PLACES; i++) {
        int number = (int)native_place_register(file->files->machine, i);
        if (i == NATIVE_PLACES - 1 && return_address >= 0) {
            number = return_address;
        }
        keep |= take_register(frame, number, &row->places[i]);
    }
    row->found = true;
    if (!keep) {
        free(frame);
    } else if (!keep_frame(file, frame)) {
        memset(row, 0, sizeof *row);
        free(frame);
    }
}

static Dwarf_CFI *debug_frame_of(struct native_file *file)
{
    if (!file->dwarf) {
        file->dwarf = dwarf_begin_elf(file->elf, DWARF_C_READ, NULL);
        file->debug_frame = file->dwarf ? dwarf_getcfi(file->dwarf) : NULL;
    }
    return file->debug_frame;
}

static void look_up(struct native_file *file, uint64_t file_offset, struct native_row *row)
{
    memset(row, 0, sizeof *row);
    for (size_t i = 0; i < file->segment_count; i++) {
        const struct segment *segment = &file->segments[i];
        if (file_offset - segment->file_offset >= segment->size) {
            continue;
        }
        Dwarf_Addr address = file_offset - segment->file_offset + segment->vaddr;
        Dwarf_Frame *frame = NULL;
        if ((file->eh_frame && dwarf_cfi_addrframe(file->eh_frame, address, &frame) == 0) ||
            (debug_frame_of(file) &&
             dwarf_cfi_addrframe(file->debug_frame, address, &frame) == 0)) {
            take_frame(file, frame, row);
        }
        return;
    }
}

static uint32_t slot_of(const struct native_file *file, uint64_t file_offset)
{
    uint32_t mask = file->slot_count - 1;
    uint32_t slot = (uint32_t)(file_offset * UINT64_C(0x9e3779b97f4a7c15) >> 32) & mask;
    while (file->slots[slot] && file->rows[file->slots[slot] - 1].file_offset != file_offset) {
        slot = (slot + 1) & mask;
    }
    return slot;
}

static bool grow(struct native_file *file)
{
    if (array_reserve(&file->rows, file->row_count, &file->row_room, sizeof *file->rows) < 0) {
        return false;
    }
    if (file->row_count * 2 < file->slot_count) {
        return true;
    }
    uint32_t count = file->slot_count ? file->slot_count * 2 : 512;
    uint32_t *slots = calloc(count, sizeof *slots);
    if (!slots) {
        return false;
    }
    free(file->slots);
    file->slots = slots;
    file->slot_count = count;
    for (uint32_t i = 0; i < file->row_count; i++) {
        file->slots[slot_of(file, file->rows[i].file_offset)] = i + 1;
    }
    return true;
}

const struct native_row *native_row_at(struct native_file *file, uint64_t file_offset)
{
    if (!grow(file)) {
        return &file->files->nothing;
    }
    uint32_t slot = slot_of(file, file_offset);
    if (!file->slots[slot]) {
        file->rows[file->row_count].file_offset = file_offset;
        look_up(file, file_offset, &file->rows[file->row_count].row);
        file->slots[slot] = ++file->row_count;
    }
    return &file->rows[file->slots[slot] - 1].row;
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
