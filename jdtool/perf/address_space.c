#include "jdtool/perf/address_space.h"

#include "jdtool/base/array.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct space {
    uint32_t references;
    uint32_t count;
    uint32_t room;
    uint64_t state;
    struct mapped *mappings;
};

/* ---- Files ---- */

static struct held_file *file_at(const struct spaces *spaces, uint32_t index)
{
    return chunks_at(&spaces->files, index);
}

static void hold_file(struct mapped_file *file)
{
    ((struct held_file *)file)->holders++;
}

static void let_file_go(struct spaces *spaces, struct mapped_file *file)
{
    struct held_file *held = (struct held_file *)file;
    uint32_t index = file->index;
    assert(held->holders > 0); /* invariant 2 */
    if (--held->holders > 0) {
        return;
    }
    if (spaces->listener) {
        spaces->listener->file_gone(spaces->listener->context, file);
    }
    (void)hash_map_remove(&spaces->files_by_identity, file_identity_hash(&file->identity), index);
    intern_release(&spaces->paths, file->identity.path);
    memset(held, 0, sizeof *held);
    file->index = spaces->free_file;
    spaces->free_file = index + 1;
}

/* A file that nobody holds yet. Has the path from now on, on failure too. NULL: no memory. */
static struct mapped_file *add_file(struct spaces *spaces, const struct file_identity *identity,
                                    bool anonymous)
{
    uint32_t index = spaces->free_file ? spaces->free_file - 1 : spaces->files.count;
    struct held_file *held =
        spaces->free_file ? file_at(spaces, index) : chunks_add(&spaces->files);
    if (!held || hash_map_add(&spaces->files_by_identity, file_identity_hash(identity), index)) {
        if (held && !spaces->free_file) {
            spaces->files.count--; /* which is zero, as it was */
        }
        intern_release(&spaces->paths, identity->path);
        return NULL;
    }
    spaces->free_file = spaces->free_file ? held->file.index : 0;
    held->file = (struct mapped_file){.identity = *identity,
                                      .index = index,
                                      .number = ++spaces->next_file_number,
                                      .anonymous = anonymous};
    return &held->file;
}

/* The file of a mapping, with one more holder. NULL: no memory. */
static struct mapped_file *file_of(struct spaces *spaces, const struct mapping *mapping)
{
    struct file_identity identity = mapping->file;
    identity.path = intern_hold(&spaces->paths, identity.path);
    if (!identity.path) {
        return NULL;
    }
    uint32_t at;
    HASH_MAP_FIND(at, &spaces->files_by_identity, file_identity_hash(&identity),
                  file_identity_same(&file_at(spaces, at)->file.identity, &identity));
    if (at != HASH_MAP_NONE) {
        file_at(spaces, at)->holders++;
        intern_release(&spaces->paths, identity.path); /* the file has it already */
        return &file_at(spaces, at)->file;
    }
    struct mapped_file *file = add_file(spaces, &identity, mapping->anonymous);
    if (file) {
        hold_file(file);
    }
    return file;
}

/* ---- Life ---- */

void spaces_free(struct spaces *spaces)
{
    chunks_free(&spaces->files);
    hash_map_free(&spaces->files_by_identity);
    intern_free(&spaces->paths);
}

struct space *space_new(struct spaces *spaces)
{
    struct space *space = calloc(1, sizeof *space);
    if (space) {
        space->references = 1;
        space->state = ++spaces->next_state;
    }
    return space;
}

struct space *space_share(struct space *space)
{
    space->references++;
    return space;
}

void space_let_go(struct spaces *spaces, struct space *space)
{
    if (space && --space->references == 0) {
        spaces->mapping_count -= space->count;
        for (uint32_t i = 0; i < space->count; i++) {
            let_file_go(spaces, space->mappings[i].file);
        }
        free(space->mappings);
        free(space);
    }
}

int space_unshare(struct spaces *spaces, struct space **space)
{
    struct space *shared = *space;
    if (shared->references == 1) {
        return 0;
    }
    struct space *own = space_new(spaces);
    if (!own) {
        return -ENOMEM;
    }
    if (shared->count) {
        if (shared->count > MAPPINGS_MAX - spaces->mapping_count) {
            spaces->left_out += shared->count;
        } else {
            own->mappings = malloc(shared->count * sizeof *own->mappings);
            if (!own->mappings) {
                space_let_go(spaces, own);
                return -ENOMEM;
            }
            memcpy(own->mappings, shared->mappings, shared->count * sizeof *own->mappings);
            own->count = shared->count;
            own->room = shared->count;
            for (uint32_t i = 0; i < own->count; i++) {
                hold_file(own->mappings[i].file);
            }
            spaces->mapping_count += own->count;
        }
    }
    *space = own;
    space_let_go(spaces, shared);
    return 0;
}

/* ---- Mappings ---- */

/* The place of the first mapping that ends behind the address. */
static uint32_t first_behind(const struct space *space, uint64_t address)
{
    uint32_t low;
    ARRAY_FIRST(low, space->count, space->mappings[low].end <= address);
    return low;
}

/* Two more than there are: the new mapping, and the rest of one that it cuts in two. */
static int reserve(struct space *space)
{
    if (space->count + 2 > space->room) {
        uint32_t room = space->room < 14 ? 16 : space->room + space->room / 2;
        struct mapped *grown = realloc(space->mappings, room * sizeof *grown);
        if (!grown) {
            return -ENOMEM;
        }
        space->mappings = grown;
        space->room = room;
    }
    return 0;
}

static void move(struct space *space, uint32_t from, uint32_t to)
{
    memmove(space->mappings + to, space->mappings + from,
            (space->count - from) * sizeof *space->mappings);
    space->count = space->count - from + to;
}

#ifndef NDEBUG
/* Invariant 1, around the mapping that was just put in. */
static bool ascends(const struct space *space, uint32_t at)
{
    const struct mapped *mapping = &space->mappings[at];
    return mapping->start < mapping->end && (at == 0 || mapping[-1].end <= mapping->start) &&
           (at + 1 == space->count || mapping->end <= mapping[1].start);
}
#endif

int space_map(struct spaces *spaces, struct space *space, const struct mapping *mapping,
              struct mapped_file **file)
{
    *file = NULL;
    if (space->count >= PROCESS_MAPPINGS_MAX || spaces->mapping_count >= MAPPINGS_MAX) {
        spaces->left_out++;
        return 0;
    }
    if (reserve(space) || !(*file = file_of(spaces, mapping))) {
        return -ENOMEM;
    }
    uint32_t before = space->count;
    uint32_t at = first_behind(space, mapping->start);
    struct mapped *first = &space->mappings[at];
    if (at < space->count && first->start < mapping->start) {
        if (first->end > mapping->end) { /* it goes on behind */
            move(space, at, at + 1);
            first->end = mapping->start;
            first++;
            first->file_offset += mapping->end - first->start;
            first->start = mapping->end;
            hold_file(first->file);
            at++;
        } else {
            first->end = mapping->start;
            at++;
        }
    }
    uint32_t end = at;
    while (end < space->count && space->mappings[end].end <= mapping->end) {
        let_file_go(spaces, space->mappings[end].file);
        end++;
    }
    if (end < space->count && space->mappings[end].start < mapping->end) {
        struct mapped *last = &space->mappings[end];
        last->file_offset += mapping->end - last->start;
        last->start = mapping->end;
    }
    move(space, end, at + 1);
    space->mappings[at] =
        (struct mapped){mapping->start, mapping->end, mapping->file_offset, *file};
    assert(ascends(space, at));
    space->state = ++spaces->next_state;
    spaces->mapping_count += space->count - before;
    return 0;
}

const struct mapped *process_mapped_at(const struct process *process, uint64_t address)
{
    const struct space *space = process->space;
    uint32_t at = first_behind(space, address);
    return at < space->count && space->mappings[at].start <= address ? &space->mappings[at] : NULL;
}

uint64_t process_mappings_state(const struct process *process)
{
    return process->space->state;
}
