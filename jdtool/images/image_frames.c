#include "jdtool/images/image_frames.h"

#include "jdtool/base/array.h"
#include "jdtool/base/hash_map.h"
#include "jdtool/base/intern.h"
#include "jdtool/base/message.h"
#include "jdtool/images/image_elf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One byte would do, but addr2line of binutils 2.40 finds no line for an address that ends in ff;
 * and readers look for a caller one byte before where it goes on (KDAB hotspot 1.6), or do not: an
 * address in the middle is the same line's for both. */
#define FRAME_BYTES  4
#define FRAME_MIDDLE (FRAME_BYTES / 2)

/* A block has room for so many lines; that a method goes into a second one is rare, and shows as a
 * second symbol of its name. */
#define BLOCK_LINES 256
#define BLOCK_BYTES (UINT64_C(1) * BLOCK_LINES * FRAME_BYTES)
#define BLOCKS_MAX  ((uint32_t)((IMAGE_FRAMES_SPACE - IMAGE_ELF_TEXT) / BLOCK_BYTES) - 1)

/* Answers given before: chains hold the same frames again and again. */
#define ANSWERS 4096

struct block {
    const struct resolved_method *method;
    uint8_t kind; /* enum resolved_kind */
    uint16_t line_count;
    uint32_t lines; /* the first of them, index plus one; they are linked in order of appearance */
    uint32_t last_line;
    uint32_t next; /* block of the same method, index plus one; 0: this is its last */
};

struct line {
    uint32_t block;
    uint32_t line;
    uint32_t next; /* of the block, index plus one */
    uint16_t slot;
};

struct image_frames {
    uint64_t start;
    struct hash_map methods; /* method and kind -> first block */
    struct block *blocks;
    uint32_t block_count;
    uint32_t block_room;
    struct hash_map places; /* block and line -> line */
    struct line *lines;
    uint32_t line_count;
    uint32_t line_room;
    uint64_t lost;
    struct answer {
        const struct resolved_method *method;
        uint64_t address;
        uint32_t line;
        uint8_t kind;
    } answers[ANSWERS];
};

struct image_frames *image_frames_new(uint32_t number)
{
    struct image_frames *frames = calloc(1, sizeof *frames);
    if (frames) {
        frames->start = IMAGE_FRAMES_BASE + number * IMAGE_FRAMES_SPACE;
    }
    return frames;
}

void image_frames_free(struct image_frames *frames)
{
    if (frames) {
        hash_map_free(&frames->methods);
        hash_map_free(&frames->places);
        free(frames->blocks);
        free(frames->lines);
        free(frames);
    }
}

bool image_frames_is_empty(const struct image_frames *frames)
{
    return frames->block_count == 0;
}

uint64_t image_frames_start(const struct image_frames *frames)
{
    return frames->start;
}

uint64_t image_frames_lost(const struct image_frames *frames)
{
    return frames->lost;
}

/* ---- Addresses ---- */

static uint64_t offset_of(uint32_t block, uint32_t slot)
{
    return IMAGE_ELF_TEXT + block * BLOCK_BYTES + slot * (uint64_t)FRAME_BYTES;
}

/* Makes a block. HASH_MAP_NONE: no room, or no memory. */
static uint32_t add_block(struct image_frames *frames, const struct resolved_frame *frame, int *err)
{
    if (frames->block_count == BLOCKS_MAX) {
        return HASH_MAP_NONE;
    }
    if (ARRAY_RESERVE(frames->blocks, frames->block_count, frames->block_room)) {
        *err = -ENOMEM;
        return HASH_MAP_NONE;
    }
    frames->blocks[frames->block_count] =
        (struct block){.method = frame->method, .kind = frame->kind};
    return frames->block_count++;
}

static bool is_of(const struct block *block, const struct resolved_frame *frame)
{
    return block->method == frame->method && block->kind == frame->kind;
}

/* The method's first block, made when there is none. HASH_MAP_NONE: as in add_block. */
static uint32_t block_of(struct image_frames *frames, const struct resolved_frame *frame, int *err)
{
    uint64_t hash = hash_pair((uintptr_t)frame->method, frame->kind);
    uint32_t at;
    HASH_MAP_FIND(at, &frames->methods, hash, is_of(&frames->blocks[at], frame));
    if (at != HASH_MAP_NONE) {
        return at;
    }
    at = add_block(frames, frame, err);
    if (at != HASH_MAP_NONE && hash_map_add(&frames->methods, hash, at) < 0) {
        frames->block_count--;
        *err = -ENOMEM;
        return HASH_MAP_NONE;
    }
    return at;
}

static int add_line(struct image_frames *frames, uint32_t block_number, uint32_t first,
                    uint32_t line)
{
    struct block *block = &frames->blocks[block_number];
    if (ARRAY_RESERVE(frames->lines, frames->line_count, frames->line_room) ||
        hash_map_add(&frames->places, hash_pair(first, line), frames->line_count) < 0) {
        return -ENOMEM;
    }
    frames->lines[frames->line_count++] =
        (struct line){.block = block_number, .line = line, .slot = block->line_count++};
    if (block->last_line) {
        frames->lines[block->last_line - 1].next = frames->line_count;
    } else {
        block->lines = frames->line_count;
    }
    block->last_line = frames->line_count;
    return 0;
}

static uint64_t find_address(struct image_frames *frames, const struct resolved_frame *frame,
                             int *err)
{
    uint32_t first = block_of(frames, frame, err);
    if (first == HASH_MAP_NONE) {
        return 0;
    }
    const struct line *lines = frames->lines;
    uint32_t at;
    HASH_MAP_FIND(at, &frames->places, hash_pair(first, frame->line),
                  lines[at].line == frame->line && is_of(&frames->blocks[lines[at].block], frame));
    if (at != HASH_MAP_NONE) {
        return frames->start + offset_of(lines[at].block, lines[at].slot);
    }
    uint32_t block = first;
    while (frames->blocks[block].next) {
        block = frames->blocks[block].next - 1;
    }
    if (frames->blocks[block].line_count == BLOCK_LINES) {
        uint32_t more = add_block(frames, frame, err);
        if (more == HASH_MAP_NONE) {
            return *err ? 0 : frames->start + offset_of(block, BLOCK_LINES - 1);
        }
        frames->blocks[block].next = more + 1;
        block = more;
    }
    *err = add_line(frames, block, first, frame->line);
    return *err ? 0 : frames->start + offset_of(block, frames->blocks[block].line_count - 1U);
}

uint64_t image_frames_address(struct image_frames *frames, const struct resolved_frame *frame,
                              int *err)
{
    uint64_t hash = ((uintptr_t)frame->method >> 4) * 31 + frame->line + frame->kind;
    struct answer *answer = &frames->answers[hash % ANSWERS];
    if (answer->method != frame->method || answer->line != frame->line ||
        answer->kind != frame->kind) {
        uint64_t address = find_address(frames, frame, err);
        if (!address) {
            frames->lost++;
            return 0;
        }
        *answer = (struct answer){frame->method, address + FRAME_MIDDLE, frame->line, frame->kind};
    }
    return answer->address;
}

/* ---- Writing ---- */

/* By file, so that each is one unit of the debugging information; by text, not by address. */
static int by_method(const void *left, const void *right, void *blocks)
{
    uint32_t number = *(const uint32_t *)left;
    uint32_t other = *(const uint32_t *)right;
    const struct resolved_method *a = ((const struct block *)blocks)[number].method;
    const struct resolved_method *b = ((const struct block *)blocks)[other].method;
    return strcmp(a->file ? a->file : "", b->file ? b->file : "")
               ?: strcmp(a->name, b->name)
               ?: ORDER(number, other);
}

static void add_block_to(const struct image_frames *frames, uint32_t number,
                         const char *const suffixes[2], struct intern *names, struct image_elf *elf,
                         struct dwarf *dwarf)
{
    const struct block *block = &frames->blocks[number];
    const char *suffix =
        block->kind == RESOLVED_SUBJECT ? "" : suffixes[block->kind == RESOLVED_INTERPRETED];
    struct dwarf_row rows[BLOCK_LINES];
    uint32_t count = 0;
    char *text = NULL;
    const char *name = block->method->name;
    if (*suffix && asprintf(&text, "%s%s", name, suffix) >= 0) {
        name = intern(names, text);
        free(text);
    }
    if (!name) {
        image_elf_fail(elf, -ENOMEM);
        return;
    }
    for (uint32_t at = block->lines; at; at = frames->lines[at - 1].next) {
        rows[count] = (struct dwarf_row){.offset = count * FRAME_BYTES,
                                         .line = frames->lines[at - 1].line,
                                         .file = block->method->file};
        count++;
    }
    struct dwarf_function function = {
        .address = offset_of(number, 0),
        .size = (uint64_t)count * FRAME_BYTES,
        .name = name,
        .line = block->method->first_line ? block->method->first_line : rows[0].line,
        .rows = rows,
        .row_count = block->method->file ? count : 0,
    };
    image_elf_add(elf, function.address, function.size, NULL, name);
    dwarf_add_function(dwarf, &function);
}

static void add_blocks(const struct image_frames *frames, const uint32_t *order,
                       const char *const suffixes[2], struct intern *names, struct image_elf *elf,
                       struct dwarf *dwarf)
{
    const char *file = NULL;
    for (uint32_t i = 0; i < frames->block_count; i++) {
        const char *its = frames->blocks[order[i]].method->file;
        if (i == 0 || strcmp(its ? its : "", file ? file : "") != 0) {
            if (i > 0) {
                dwarf_unit_end(dwarf);
            }
            dwarf_unit_begin(dwarf, its);
            file = its;
        }
        add_block_to(frames, order[i], suffixes, names, elf, dwarf);
    }
    if (frames->block_count) {
        dwarf_unit_end(dwarf);
    }
}

int image_frames_write(const struct image_frames *frames, uint16_t machine, const char *inlined,
                       const char *interpreted, struct source_path *source_path, const char *path,
                       uint8_t build_id[BUILD_ID_MAX])
{
    const char *const suffixes[2] = {inlined, interpreted};
    uint32_t *order = array_sorted(frames->block_count, by_method, frames->blocks);
    struct dwarf *dwarf = dwarf_new(source_path, NULL);
    struct intern names = {0};
    struct image_elf *elf = NULL;
    int err = -ENOMEM;
    if (order && dwarf) {
        err = image_elf_open(path, machine, &elf);
    } else {
        failed_to(-ENOMEM, "write %s", path);
    }
    if (!err) {
        add_blocks(frames, order, suffixes, &names, elf, dwarf);
        err = image_elf_finish(elf, dwarf, build_id);
    }
    dwarf_free(dwarf);
    intern_free(&names);
    free(order);
    return err;
}
