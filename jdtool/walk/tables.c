#include "jdtool/walk/tables.h"

#include "jdtool/base/array.h"
#include "jdtool/objects/frame_row.h"

#include <dwarf.h>
#include <elf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <string.h>

void tables_new(struct tables *tables, struct walk_program *program, unsigned machine)
{
    /* 0 is none of each. */
    *tables = (struct tables){
        .program = program, .machine = machine, .pages = 1, .blobs = 1, .rows = 1, .full_rows = 0};
}

/* ---- Room ---- */

/* Without memory it is never given again. */
static void put_number(struct numbers *numbers, uint32_t number)
{
    if (!ARRAY_RESERVE(numbers->list, numbers->count, numbers->room)) {
        numbers->list[numbers->count++] = number;
    }
}

/* So many of `most` that were never given, from the returned one on; 0: there is no room. */
static uint32_t take(struct tables *tables, uint32_t *used, uint32_t count, uint32_t most)
{
    uint32_t first = *used;
    if (count > most - first) {
        tables->is_full = true;
        return 0;
    }
    *used += count;
    return first;
}

/* One that was given back, or a new one. */
static uint32_t take_one(struct tables *tables, struct numbers *numbers, uint32_t *used,
                         uint32_t most)
{
    return numbers->count ? numbers->list[--numbers->count] : take(tables, used, 1, most);
}

/* The power of two of so many rows. */
static uint32_t row_size(uint32_t count)
{
    uint32_t size = 0;
    while (UINT32_C(1) << size < count) {
        size++;
    }
    return size;
}

/* ---- Rows ---- */

static struct walk_row plain(uint32_t offset, enum walk_rule rule)
{
    return (struct walk_row){.offset = offset, .rule = (uint8_t)rule};
}

/* fp: where the caller's is from the CFA on; 0: where it is. */
static struct walk_row by_cfa(uint32_t offset, enum walk_rule rule, int64_t cfa, int64_t fp)
{
    int64_t words = fp / 8;
    if (cfa % 8 || cfa / 8 != (int16_t)(cfa / 8) || fp % 8 || words < INT8_MIN ||
        words >= WALK_FP_LOST) {
        return plain(offset, WALK_COMPLEX);
    }
    return (struct walk_row){
        .offset = offset, .cfa = (int16_t)(cfa / 8), .fp = (int8_t)words, .rule = (uint8_t)rule};
}

static struct walk_row without_fp(struct walk_row row)
{
    row.fp = WALK_FP_LOST;
    return row;
}

static bool is_same(const struct walk_row *row, const struct walk_row *other)
{
    return row->cfa == other->cfa && row->fp == other->fp && row->rule == other->rule;
}

/* ---- Generated code ---- */

static struct walk_row full(struct tables *tables, const struct frame_row *row)
{
    const struct walk_full_row full = {.cfa_offset = row->cfa_offset,
                                       .ra_offset = row->ra_offset,
                                       .fp_offset = row->fp_offset,
                                       .cfa = row->cfa,
                                       .cfa_reg = row->cfa_reg,
                                       .ra = row->ra,
                                       .ra_reg = row->ra_reg,
                                       .fp = row->fp};
    struct walk_full_row *list = tables->program->full_rows;
    uint32_t at = 0;
    while (at < tables->full_rows && memcmp(&list[at], &full, sizeof full) != 0) {
        at++; /* there are some dozen */
    }
    if (at == WALK_FULL_ROWS) {
        return plain(row->offset, WALK_COMPLEX);
    }
    if (at == tables->full_rows) {
        list[tables->full_rows++] = full;
    }
    struct walk_row packed = plain(row->offset, WALK_FULL);
    packed.cfa = (int16_t)at;
    return packed;
}

#define AARCH64_FP 29
#define AARCH64_LR 30
#define AARCH64_SP 31

/* A frame record: x29 and x30 side by side; or both in their registers. */
static struct walk_row pack_record(struct tables *tables, const struct frame_row *row)
{
    bool by_sp = row->cfa == FRAME_CFA_SP;
    bool is_saved = row->fp == row->ra && row->ra_offset == row->fp_offset + 8 &&
                    (row->ra == FRAME_AT_CFA || (by_sp && row->ra == FRAME_AT_SP));
    bool is_leaf = row->fp == FRAME_SAME && row->ra == FRAME_IN_REG && row->ra_reg == AARCH64_LR;
    int64_t record = !is_saved                 ? 0
                     : row->ra == FRAME_AT_CFA ? row->fp_offset
                                               : row->fp_offset - (int64_t)row->cfa_offset;
    if ((!by_sp && row->cfa != FRAME_CFA_FP) || (!is_leaf && record == 0)) {
        return full(tables, row);
    }
    struct walk_row packed =
        by_cfa(row->offset, by_sp ? WALK_BY_SP : WALK_BY_FP, row->cfa_offset, record);
    return packed.rule == WALK_COMPLEX ? full(tables, row) : packed;
}

static struct walk_row pack_code(struct tables *tables, const struct frame_row *row)
{
    if (row->cfa == FRAME_CFA_INTERPRETER) {
        return plain(row->offset, WALK_INTERPRETED);
    }
    if (tables->machine == EM_AARCH64) {
        return pack_record(tables, row);
    }
    bool by_sp = row->cfa == FRAME_CFA_SP;
    int64_t cfa = row->cfa_offset;
    bool usual = row->ra == FRAME_AT_CFA
                     ? row->ra_offset == -8
                     : by_sp && row->ra == FRAME_AT_SP && row->ra_offset == cfa - 8;
    bool fp_by_cfa = row->fp == FRAME_AT_CFA || (by_sp && row->fp == FRAME_AT_SP);
    if ((!by_sp && row->cfa != FRAME_CFA_FP) || !usual ||
        (!fp_by_cfa && row->fp != FRAME_SAME && row->fp != FRAME_NOWHERE)) {
        return full(tables, row);
    }
    int64_t fp = !fp_by_cfa ? 0 : row->fp == FRAME_AT_CFA ? row->fp_offset : row->fp_offset - cfa;
    struct walk_row packed = by_cfa(row->offset, by_sp ? WALK_BY_SP : WALK_BY_FP, cfa, fp);
    if (packed.rule == WALK_COMPLEX || (fp_by_cfa && fp == 0)) {
        return full(tables, row);
    }
    return row->fp == FRAME_NOWHERE ? without_fp(packed) : packed;
}

/* The word of a slot; its pages are made. NULL: there is no room. */
static uint32_t *slot_word(struct tables *tables, struct walk_jvm *jvm, uint64_t slot)
{
    struct walk_page *pages = tables->program->pages;
    uint32_t *directory = &jvm->directories[slot >> 20];
    for (int level = 0; level < 2; level++) {
        if (!*directory) {
            uint32_t page =
                take_one(tables, &tables->free_pages, &tables->pages, tables->program->room.pages);
            if (!page) {
                return NULL;
            }
            memset(&pages[page], 0, sizeof pages[page]);
            __atomic_store_n(directory, page, __ATOMIC_RELEASE);
        }
        directory = &pages[*directory].words[level ? slot & 1023 : slot >> 10 & 1023];
    }
    return directory;
}

/* Appends a blob to those that share the new one's slots. */
static void share(struct walk_blob *blobs, uint32_t number, uint32_t other)
{
    uint32_t at = number;
    for (int i = 0; i < 8 && blobs[at].next && blobs[at].next != other; i++) {
        at = blobs[at].next;
    }
    if (!blobs[at].next && at != other) {
        __atomic_store_n(&blobs[at].next, other, __ATOMIC_RELEASE);
    }
}

/* Its page must be there. */
static uint32_t *known_word(const struct tables *tables, const struct walk_jvm *jvm, uint64_t slot)
{
    struct walk_page *pages = tables->program->pages;
    uint32_t page = slot >> 20 < WALK_DIRECTORIES
                        ? pages[jvm->directories[slot >> 20]].words[slot >> 10 & 1023]
                        : 0;
    return page ? &pages[page].words[slot & 1023] : NULL;
}

static uint64_t slot_of(const struct walk_jvm *jvm, uint64_t address)
{
    return (address - jvm->code_low) >> WALK_SLOT_SHIFT;
}

/* Takes a blob out of those that share a slot. */
static void unlink_blob(const struct tables *tables, uint32_t *word, uint32_t number)
{
    struct walk_blob *blobs = tables->program->blobs;
    uint32_t *link = word;
    for (int i = 0; link && *link && i < 16; i++) {
        if (*link == number) {
            __atomic_store_n(link, blobs[number].next, __ATOMIC_RELEASE);
            return;
        }
        link = &blobs[*link].next;
    }
}

/* Its number is given again later, and once. */
static void let_go(struct tables *tables, uint32_t number)
{
    struct walk_blob *blob = &tables->program->blobs[number];
    if (!blob->is_over) {
        blob->is_over = 1;
        put_number(&tables->going, number);
    }
}

/* A method that is over: no slot leads to it any more. What walks read of it goes later. */
static void remove_blob(struct tables *tables, const struct walk_jvm *jvm, uint32_t number)
{
    const struct walk_blob *blob = &tables->program->blobs[number];
    uint64_t last = slot_of(jvm, blob->start + blob->size - 1 + WALK_STUB_SECTION);
    for (uint64_t slot = slot_of(jvm, blob->start); slot <= last; slot++) {
        unlink_blob(tables, known_word(tables, jvm, slot), number);
    }
    let_go(tables, number);
}

/* A method among those of a slot whose memory the other blob was given; 0: there is none. */
static uint32_t find_over(const struct walk_blob *blobs, uint32_t at, uint32_t other)
{
    uint64_t start = blobs[other].start;
    uint64_t end = start + blobs[other].size;
    for (int i = 0; i < 16 && at; i++, at = blobs[at].next) {
        const struct walk_blob *blob = &blobs[at];
        if (at != other && blob->flags & WALK_BLOB_METHOD && blob->start < end &&
            blob->start + blob->size > start) {
            return at;
        }
    }
    return 0;
}

/* What it overlaps is hidden; a method is over then. What has another part of its first or last
 * slot stays, behind it. */
static void put_slots(struct tables *tables, struct walk_jvm *jvm, uint32_t number)
{
    struct walk_blob *blobs = tables->program->blobs;
    uint64_t start = blobs[number].start;
    uint64_t end = start + blobs[number].size;
    uint64_t first = slot_of(jvm, start);
    uint64_t own = slot_of(jvm, end - 1);
    uint64_t last = slot_of(jvm, end - 1 + WALK_STUB_SECTION);
    for (uint64_t slot = first; slot <= last; slot++) {
        uint32_t *word = slot >> 20 < WALK_DIRECTORIES ? slot_word(tables, jvm, slot) : NULL;
        if (!word) {
            tables->is_full = true;
            return;
        }
        uint32_t old;
        for (int i = 0; i < 16 && (old = find_over(blobs, *word, number)); i++) {
            remove_blob(tables, jvm, old);
            unlink_blob(tables, word, old); /* it may be behind one that shares another slot */
        }
        old = *word;
        if (old && old != number) {
            uint64_t its = blobs[old].start;
            uint64_t its_end = its + blobs[old].size;
            bool apart = its >= end || its_end <= start;
            if (slot > own && (its >= end || its_end + WALK_STUB_SECTION > end)) {
                return; /* a stub section has free slots only */
            }
            if (apart && (slot == first || slot == own)) {
                share(blobs, number, old);
            }
        }
        __atomic_store_n(word, number, __ATOMIC_RELEASE);
    }
}

/* A slice of rows for so many, which begins there; 0: there is no room. */
static uint32_t take_rows(struct tables *tables, uint32_t count)
{
    uint32_t size = row_size(count);
    if (size >= TABLES_ROW_SIZES) {
        return take(tables, &tables->rows, count, tables->program->room.rows);
    }
    struct numbers *numbers = &tables->free_rows[size];
    return numbers->count
               ? numbers->list[--numbers->count]
               : take(tables, &tables->rows, UINT32_C(1) << size, tables->program->room.rows);
}

/* Their number, those that say the same as the one before left out; *first: where they begin. */
static uint32_t add_rows(struct tables *tables, const struct frames *frames, uint32_t *first)
{
    struct walk_row *rows = tables->program->rows;
    uint32_t count = 0;
    *first = frames->count ? take_rows(tables, frames->count) : 0;
    for (uint32_t i = 0; *first && i < frames->count; i++) {
        struct walk_row row = pack_code(tables, &frames->rows[i]);
        if (!count || !is_same(&rows[*first + count - 1], &row)) {
            rows[*first + count++] = row;
        }
    }
    return count;
}

void tables_add_rows(struct tables *tables, uint32_t number, const struct blob_frames *frames)
{
    struct walk_blob *blob = &tables->program->blobs[number];
    uint32_t first;
    if (blob->rows || blob->is_over || !frames->frames.count) {
        return;
    }
    uint32_t count = add_rows(tables, &frames->frames, &first);
    blob->room = first ? frames->frames.count : 0;
    blob->frame = blob_frame_size(frames);
    __atomic_store_n(&blob->rows, count ? (uint64_t)first << 32 | count : 0, __ATOMIC_RELEASE);
}

uint32_t tables_add_code(struct tables *tables, struct walk_jvm *jvm, uint64_t address,
                         uint64_t size, const struct blob_frames *frames)
{
    uint64_t room = (uint64_t)WALK_DIRECTORIES << (20 + WALK_SLOT_SHIFT);
    if (size == 0 || size > FRAMES_CODE_MAX || address < jvm->code_low ||
        address - jvm->code_low > room - UINT64_C(2) * FRAMES_CODE_MAX) {
        return 0;
    }
    uint32_t number =
        take_one(tables, &tables->free_blobs, &tables->blobs, tables->program->room.blobs);
    if (!number) {
        return 0;
    }
    uint32_t flags =
        (frames->told_frame_size > 0 ? WALK_BLOB_TOLD : 0u) |
        (frames->continuation_entry ? WALK_BLOB_ENTRY : 0u) |
        (frames->return_barrier ? WALK_BLOB_BARRIER : 0u) |
        (frames->yields ? WALK_BLOB_YIELDS : 0u) |
        (frames->is_method || frames->shape == FRAMES_COMPILED ? WALK_BLOB_METHOD : 0u);
    tables->program->blobs[number] = (struct walk_blob){
        .start = address,
        .size = (uint32_t)size,
        .frame = blob_frame_size(frames),
        .id = (uint32_t)frames->compile_id,
        .shape = (uint8_t)frames->shape,
        .flags = (uint8_t)flags,
    };
    tables_add_rows(tables, number, frames);
    put_slots(tables, jvm, number);
    return number;
}

/* ---- What goes ---- */

void tables_remove_code(struct tables *tables, struct walk_jvm *jvm)
{
    struct walk_page *pages = tables->program->pages;
    const struct walk_blob *blobs = tables->program->blobs;
    for (uint32_t i = 0; i < WALK_DIRECTORIES; i++) {
        uint32_t directory = jvm->directories[i];
        for (uint32_t k = 0; directory && k < WALK_PAGE_WORDS; k++) {
            uint32_t page = pages[directory].words[k];
            for (uint32_t at = 0; page && at < WALK_PAGE_WORDS; at++) {
                uint32_t number = pages[page].words[at];
                /* A blob is met at its first slot, or behind the one that shares it. */
                for (int n = 0; number && n < 16; n++, number = blobs[number].next) {
                    uint64_t slot = (uint64_t)i << 20 | k << 10 | at;
                    if (slot_of(jvm, blobs[number].start) == slot) {
                        let_go(tables, number);
                    }
                }
            }
            if (page) {
                put_number(&tables->free_pages, page);
            }
        }
        if (directory) {
            put_number(&tables->free_pages, directory);
        }
        jvm->directories[i] = 0;
    }
}

void tables_settle(struct tables *tables)
{
    for (uint32_t i = 0; i < tables->gone.count; i++) {
        uint32_t number = tables->gone.list[i];
        const struct walk_blob *blob = &tables->program->blobs[number];
        uint32_t size = row_size(blob->room);
        if (blob->rows && size < TABLES_ROW_SIZES) {
            put_number(&tables->free_rows[size], (uint32_t)(blob->rows >> 32));
        }
        put_number(&tables->free_blobs, number);
    }
    tables->gone.count = 0;
    struct numbers going = tables->going;
    tables->going = tables->gone;
    tables->gone = going;
}

/* ---- Files ---- */

/* native_row.places (native_place_register); those of aarch64 are x19 to x23, x29, x30. */
enum { RBX, RBP, R12, R13, R14, R15, RETURN_ADDRESS, X29 = 5 };

static bool is_register(const struct native_place *place, uint32_t atom)
{
    const Dwarf_Op *ops = place->operations;
    return place->rule == NATIVE_AT_EXPRESSION && place->length == 1 && ops->atom == atom &&
           ops->number == 0;
}

/* The row that binutils writes for a procedure linkage table: rsp + 8, and 8 more from the 11th
 * byte of each 16 on. */
static bool is_plt(const struct native_place *cfa)
{
    static const uint8_t atoms[] = {DW_OP_breg7, DW_OP_breg16, DW_OP_lit15, DW_OP_and, DW_OP_lit11,
                                    DW_OP_ge,    DW_OP_lit3,   DW_OP_shl,   DW_OP_plus};
    const Dwarf_Op *ops = cfa->operations;
    if (cfa->length != sizeof atoms || ops[0].number != 8 || ops[1].number != 0) {
        return false;
    }
    for (size_t i = 0; i < sizeof atoms; i++) {
        if (ops[i].atom != atoms[i]) {
            return false;
        }
    }
    return true;
}

/* A frame that was aligned anew: its CFA lies at rbp + something, the caller's rbp at rbp. */
static bool is_realigned(const struct native_row *row)
{
    const Dwarf_Op *ops = row->cfa.operations;
    return row->cfa.length == 2 && ops[0].atom == DW_OP_breg6 && ops[1].atom == DW_OP_deref &&
           is_register(&row->places[RBP], DW_OP_breg6);
}

/* The place of a register that outlives calls; -1: the tables have no words for it. */
static int frame_place(const struct native_place *place, uint8_t same)
{
    return place->rule == NATIVE_SAME        ? same
           : place->rule == NATIVE_UNDEFINED ? FRAME_NOWHERE
           : place->rule == NATIVE_AT_CFA    ? FRAME_AT_CFA
                                             : -1;
}

static struct walk_row pack_native_aarch64(struct tables *tables, uint32_t offset,
                                           const struct native_row *row)
{
    const struct native_place *cfa = &row->cfa;
    const struct native_place *x29 = &row->places[X29];
    const struct native_place *x30 = &row->places[RETURN_ADDRESS];
    int fp = frame_place(x29, FRAME_SAME);
    int ra = frame_place(x30, FRAME_IN_REG);
    bool is_told = cfa->rule == NATIVE_REG && (cfa->reg == AARCH64_SP || cfa->reg == AARCH64_FP);
    if (!is_told || fp < 0 || ra < 0) {
        return plain(offset, WALK_COMPLEX);
    }
    const struct frame_row told = {.offset = offset,
                                   .cfa = cfa->reg == AARCH64_SP ? FRAME_CFA_SP : FRAME_CFA_FP,
                                   .cfa_offset = cfa->offset,
                                   .ra = (uint8_t)ra,
                                   .ra_offset = ra == FRAME_AT_CFA ? x30->offset : 0,
                                   .ra_reg = ra == FRAME_IN_REG ? AARCH64_LR : 0,
                                   .fp = (uint8_t)fp,
                                   .fp_offset = fp == FRAME_AT_CFA ? x29->offset : 0};
    return pack_record(tables, &told);
}

static struct walk_row pack_native(struct tables *tables, uint32_t offset,
                                   const struct native_row *row)
{
    const struct native_place *cfa = &row->cfa;
    const struct native_place *fp = &row->places[RBP];
    const struct native_place *ra = &row->places[RETURN_ADDRESS];
    if (!row->found) {
        return plain(offset, WALK_NONE);
    }
    if (row->signal) {
        return plain(offset, WALK_SIGNAL);
    }
    if (ra->rule == NATIVE_UNDEFINED) {
        return plain(offset, WALK_ROOT);
    }
    if (tables->machine == EM_AARCH64) {
        return pack_native_aarch64(tables, offset, row);
    }
    if (ra->rule != NATIVE_AT_CFA || ra->offset != -8) {
        return plain(offset, WALK_COMPLEX);
    }
    if (cfa->rule == NATIVE_EXPRESSION && is_realigned(row)) {
        return by_cfa(offset, WALK_REALIGNED, (int64_t)((const Dwarf_Op *)cfa->operations)->number,
                      0);
    }
    struct walk_row packed = plain(offset, WALK_COMPLEX);
    int64_t saved = fp->rule == NATIVE_AT_CFA ? fp->offset : 0;
    if (fp->rule == NATIVE_AT_CFA && saved == 0) {
        return packed;
    }
    if (cfa->rule == NATIVE_EXPRESSION && is_plt(cfa)) {
        packed = by_cfa(offset, WALK_PLT, 0, saved);
    } else if (cfa->rule == NATIVE_REG && (cfa->reg == 7 || cfa->reg == 6)) {
        packed = by_cfa(offset, cfa->reg == 7 ? WALK_BY_SP : WALK_BY_FP, cfa->offset, saved);
    }
    bool known = fp->rule == NATIVE_AT_CFA || fp->rule == NATIVE_SAME;
    return known || packed.rule == WALK_COMPLEX ? packed : without_fp(packed);
}

struct file_walk {
    struct tables *tables;
    uint32_t first;
};

/* Appends one to those of the file, unless it says what the one before says. */
static void add_row(struct tables *tables, uint32_t first, struct walk_row row)
{
    struct walk_row *rows = tables->program->rows;
    if (tables->rows > first && is_same(rows + tables->rows - 1, &row)) {
        return;
    }
    uint32_t at = take(tables, &tables->rows, 1, tables->program->room.rows);
    if (at) {
        rows[at] = row;
    }
}

static int take_row(void *context, uint64_t address, const struct native_row *row)
{
    const struct file_walk *walk = context;
    uint32_t offset = (uint32_t)address; /* files of more than 4 GB are left alone */
    add_row(walk->tables, walk->first, pack_native(walk->tables, offset, row));
    return walk->tables->is_full ? -ENOSPC : 0;
}

/* For each piece of the file the row that holds at its beginning. */
static bool add_grains(struct tables *tables, uint32_t first, struct file_rows *file)
{
    const struct walk_row *rows = tables->program->rows;
    struct walk_page *pages = tables->program->pages;
    uint32_t count = (file->grains + WALK_PAGE_WORDS - 1) / WALK_PAGE_WORDS;
    uint32_t row = first;
    file->page = take(tables, &tables->pages, count, tables->program->room.pages);
    for (uint32_t i = 0; i < file->grains && file->page; i++) {
        while (row + 1 < tables->rows &&
               rows[row + 1].offset <= file->base + (i << WALK_GRAIN_SHIFT)) {
            row++;
        }
        pages[file->page + i / WALK_PAGE_WORDS].words[i % WALK_PAGE_WORDS] = row;
    }
    return file->page != 0;
}

struct file_rows tables_add_file(struct tables *tables, struct object *object, uint64_t from,
                                 uint64_t to)
{
    struct file_walk walk = {.tables = tables, .first = tables->rows};
    struct file_rows file = {.base = (uint32_t)from & ~((UINT32_C(1) << WALK_GRAIN_SHIFT) - 1)};
    struct file_rows none = {0};
    if (to > UINT32_MAX || from >= to) {
        return none;
    }
    int err = object_rows(object, from, to, take_row, &walk);
    /* One more than there are pieces: the last piece has a next one. */
    file.grains = (((uint32_t)to - file.base) >> WALK_GRAIN_SHIFT) + 2;
    if (err || tables->rows == walk.first || !add_grains(tables, walk.first, &file)) {
        tables->rows = walk.first;
        return none;
    }
    return file;
}
