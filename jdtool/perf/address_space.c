#include "jdtool/perf/address_space.h"

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

/* ---- Life ---- */

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
    uint32_t low = 0;
    uint32_t high = space->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (space->mappings[middle].end <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
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

int space_map(struct spaces *spaces, struct space *space, const struct mapped *mapping)
{
    if (space->count >= PROCESS_MAPPINGS_MAX || spaces->mapping_count >= MAPPINGS_MAX) {
        spaces->left_out++;
        return 0;
    }
    if (reserve(space)) {
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
            at++;
        } else {
            first->end = mapping->start;
            at++;
        }
    }
    uint32_t end = at;
    while (end < space->count && space->mappings[end].end <= mapping->end) {
        end++;
    }
    if (end < space->count && space->mappings[end].start < mapping->end) {
        struct mapped *last = &space->mappings[end];
        last->file_offset += mapping->end - last->start;
        last->start = mapping->end;
    }
    move(space, end, at + 1);
    space->mappings[at] = *mapping;
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
