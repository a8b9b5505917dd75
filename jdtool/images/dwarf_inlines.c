/*
 * Inlined methods: DW_TAG_inlined_subroutine, nested as the methods were inlined, each with the
 * pieces of code that it and those inlined into it have.
 */
#include "jdtool/base/array.h"
#include "jdtool/images/dwarf_private.h"

#include <dwarf.h>

/*
 * An inline tree that is deeper is hostile: HotSpot stops at 15 levels (MaxInlineLevel). So is one
 * whose methods have far more pieces of code than it has ranges: each range is a piece of its
 * method and of all callers, where neighbours make one.
 */
#define MAX_DEPTH        256
#define PIECES_PER_RANGE 32
#define PIECES_SPARE     1024

/* Adds code to a node, in order of addresses. */
static void add_piece(struct dwarf *dwarf, uint32_t node, uint32_t start, uint32_t end)
{
    uint32_t last = dwarf->last_piece[node];
    if (last && dwarf->pieces[last - 1].end == start) {
        dwarf->pieces[last - 1].end = end;
        return;
    }
    if (array_reserve(&dwarf->pieces, dwarf->piece_count, &dwarf->piece_room,
                      sizeof *dwarf->pieces) < 0) {
        dwarf->failed = true;
        return;
    }
    dwarf->pieces[dwarf->piece_count++] = (struct dwarf_piece){node, start, end, 0};
    if (last) {
        dwarf->pieces[last - 1].next = dwarf->piece_count;
    } else {
        dwarf->first_piece[node] = dwarf->piece_count;
    }
    dwarf->last_piece[node] = dwarf->piece_count;
}

static bool reserve_nodes(struct dwarf *dwarf, uint32_t count)
{
    while (dwarf->node_room < count) {
        uint32_t room = dwarf->node_room;
        if (array_reserve(&dwarf->first_piece, room, &room, sizeof(uint32_t)) < 0 ||
            array_reserve(&dwarf->last_piece, dwarf->node_room, &dwarf->node_room,
                          sizeof(uint32_t)) < 0) {
            dwarf->failed = true;
            return false;
        }
    }
    memset(dwarf->first_piece, 0, count * sizeof(uint32_t));
    memset(dwarf->last_piece, 0, count * sizeof(uint32_t));
    dwarf->piece_count = 0;
    return true;
}

/* Gives each node the code of its ranges and of those of the nodes below it. */
bool dwarf_collect_inlines(struct dwarf *dwarf, const struct dwarf_function *function)
{
    const struct trailer *tree = function->inlines;
    if (!tree || tree->node_count < 2 || !reserve_nodes(dwarf, tree->node_count)) {
        return false;
    }
    uint64_t limit = (uint64_t)tree->range_count * PIECES_PER_RANGE + PIECES_SPARE;
    for (uint32_t i = 0; i < tree->range_count; i++) {
        const struct trailer_range *range = &tree->ranges[i];
        uint32_t depth = 0;
        if (range->size > function->size || range->offset > function->size - range->size ||
            range->size == 0) {
            continue;
        }
        for (uint32_t node = range->node; node != 0; node = tree->nodes[node].parent) {
            add_piece(dwarf, node, range->offset, range->offset + range->size);
            if (++depth > MAX_DEPTH || dwarf->piece_count > limit) {
                return false;
            }
        }
    }
    return !dwarf->failed;
}

static void put_origin(struct dwarf *dwarf, uint64_t method)
{
    struct dwarf_unit *unit = &dwarf->unit;
    bool is_new;
    (void)dwarf_enter(dwarf, &unit->methods, method, 0, &is_new);
    if (array_reserve(&unit->fixups, unit->fixup_count, &unit->fixup_room, sizeof *unit->fixups) <
        0) {
        dwarf->failed = true;
        return;
    }
    unit->fixups[unit->fixup_count++] = (struct dwarf_fixup){dwarf->info.size, method};
    bytes_u32(&dwarf->info, 0);
}

/* depth: how many entries it is in. */
static void put_inlined(struct dwarf *dwarf, const struct dwarf_function *function, uint32_t index,
                        uint32_t depth, bool has_children)
{
    static const uint8_t abbreviations[2][2] = {
        {ABBREV_LEAF_INLINED, ABBREV_INLINED},
        {ABBREV_LEAF_INLINED_RANGES, ABBREV_INLINED_RANGES},
    };
    const struct trailer *tree = function->inlines;
    const struct trailer_node *node = &tree->nodes[index];
    const struct dwarf_piece *piece = &dwarf->pieces[dwarf->first_piece[index] - 1];
    const struct trailer_method *caller =
        trailer_names_method(dwarf->names, tree->nodes[node->parent].method);

    bytes_uleb(&dwarf->info, abbreviations[piece->next != 0][has_children]);
    put_origin(dwarf, node->method);
    bytes_uleb(&dwarf->info, dwarf_file_number(dwarf, caller->file));
    bytes_uleb(&dwarf->info, node->call_line);
    bytes_uleb(&dwarf->info, dwarf_column(function->layer, DWARF_COLUMN_INLINED + 2 * depth));
    bytes_uleb(&dwarf->info, dwarf_column(function->layer, DWARF_COLUMN_INLINED + 2 * depth + 1));
    if (!piece->next) {
        bytes_u64(&dwarf->info, function->address + piece->start);
        bytes_u32(&dwarf->info, piece->end - piece->start);
        return;
    }
    bytes_u64(&dwarf->info, function->address + piece->start);
    bytes_u32(&dwarf->info, (uint32_t)dwarf->ranges.size);
    for (;;) {
        bytes_u64(&dwarf->ranges, function->address + piece->start);
        bytes_u64(&dwarf->ranges, function->address + piece->end);
        if (!piece->next) {
            break;
        }
        piece = &dwarf->pieces[piece->next - 1];
    }
    bytes_u64(&dwarf->ranges, 0);
    bytes_u64(&dwarf->ranges, 0);
}

/*
 * The tree's entries. Nodes stand in depth-first order, so an entry is closed when a node comes
 * whose parent is further up. Nodes without code are left out: nothing can be below them.
 */
void dwarf_put_inlines(struct dwarf *dwarf, const struct dwarf_function *function)
{
    const struct trailer *tree = function->inlines;
    uint32_t open[MAX_DEPTH + 1] = {0}; /* the nodes whose entries are open */
    uint32_t depth = 0;
    for (uint32_t i = 1; i < tree->node_count; i++) {
        if (!dwarf->first_piece[i]) {
            continue;
        }
        uint32_t up = depth;
        while (up > 0 && open[up] != tree->nodes[i].parent) {
            up--;
        }
        if (open[up] != tree->nodes[i].parent || up == MAX_DEPTH) {
            continue; /* not depth-first: a broken dump */
        }
        for (; depth > up; depth--) {
            bytes_u8(&dwarf->info, 0);
        }
        uint32_t next = i + 1;
        while (next < tree->node_count && !dwarf->first_piece[next]) {
            next++;
        }
        bool has_children = next < tree->node_count && tree->nodes[next].parent == i;
        put_inlined(dwarf, function, i, depth, has_children);
        if (has_children) {
            open[++depth] = i;
        }
    }
    for (; depth > 0; depth--) {
        bytes_u8(&dwarf->info, 0);
    }
}
