#include "jdtool/jitdump/tree_rows.h"

#include "jdtool/base/array.h"

#include <errno.h>

/* Where a line is; file NULL: unknown. */
struct place {
    const char *file;
    uint64_t file_id;
    uint32_t line;
};

static struct place line_of(const struct trailer_names *names, const struct trailer *trailer,
                            uint32_t node, uint32_t line)
{
    const struct trailer_method *method = trailer_names_method(names, trailer->nodes[node].method);
    return line && method->file ? (struct place){method->file, method->file_id, line}
                                : (struct place){0};
}

static struct place first_line(const struct trailer_names *names, const struct trailer *trailer)
{
    uint64_t root = trailer->nodes[0].method;
    return line_of(names, trailer, 0, trailer_names_method(names, root)->first_line);
}

static struct place place_of(const struct trailer_names *names, const struct trailer *trailer,
                             uint32_t node, uint32_t line)
{
    for (int climbed = 0; climbed <= JITDUMP_TREE_CLIMB; climbed++) {
        struct place place = line_of(names, trailer, node, line);
        if (place.file) {
            return place;
        }
        if (node == 0) {
            break;
        }
        line = trailer->nodes[node].call_line;
        node = trailer->nodes[node].parent;
    }
    return first_line(names, trailer);
}

static int add(struct tree_rows *rows, uint64_t address, struct place place)
{
    if (array_reserve(&rows->entries, rows->count, &rows->room, sizeof(*rows->entries)) < 0) {
        return -ENOMEM;
    }
    rows->entries[rows->count++] =
        (struct jitdump_entry){.address = address, .line = place.line, .file = place.file};
    return 0;
}

int tree_rows_make(const struct trailer *trailer, const struct trailer_names *names,
                   uint64_t address, uint64_t size, struct tree_rows *rows)
{
    rows->count = 0;
    if (trailer->node_count == 0 || trailer->range_count == 0) {
        return 0;
    }
    struct place last = {0};
    uint64_t end = 0;
    /* One more than there are ranges: the code behind them. */
    for (uint32_t i = 0; i <= trailer->range_count && end < size; i++) {
        const struct trailer_range *range = &trailer->ranges[i];
        bool behind = i == trailer->range_count;
        struct place place = behind ? first_line(names, trailer)
                                    : place_of(names, trailer, range->node, range->line);
        uint64_t start = end;
        end += behind ? 0 : range->size;
        if (!place.file || (last.file_id == place.file_id && last.line == place.line)) {
            continue;
        }
        if (add(rows, address + (rows->count ? start : 0), place) < 0) {
            return -ENOMEM;
        }
        last = place;
    }
    return rows->count ? add(rows, address + size, last) : 0;
}
