#include "writer/sinks/tree_rows.h"

#include <stddef.h>

/* Where a line is; file NULL: unknown. */
struct place {
    const struct source_file *file;
    uint32_t line;
};

/* A method's file as the trailer tells it. */
static const struct source_file *file_of(const struct method *method)
{
    const struct source_file *file = method && method->id ? method->file : NULL;
    return file && file->id ? file : NULL;
}

static struct place first_line(const struct code *code)
{
    const struct method *root = code->nodes[0].method;
    const struct source_file *file = file_of(root);
    return file && root->first_line ? (struct place){file, root->first_line} : (struct place){0};
}

static struct place place_of(const struct code *code, uint32_t node, uint32_t line)
{
    for (int climbed = 0; climbed <= JITDUMP_TREE_CLIMB; climbed++) {
        const struct source_file *file = file_of(code->nodes[node].method);
        if (line && file) {
            return (struct place){file, line};
        }
        if (node == 0) {
            break;
        }
        line = code->nodes[node].call_line;
        node = code->nodes[node].parent;
    }
    return first_line(code);
}

/* Whether the rows from *row on can begin with this one; goes on behind it. */
static bool is_next(const struct code *code, uint32_t *row, uint32_t offset, struct place place)
{
    if (!place.file) {
        return true;
    }
    const struct code_row *next = &code->rows[*row];
    if (*row > 0 && next[-1].file == place.file && next[-1].line == place.line) {
        return true;
    }
    if (*row == code->row_count || next->file != place.file || next->line != place.line ||
        next->offset != (*row > 0 ? offset : 0)) {
        return false;
    }
    ++*row;
    return true;
}

bool tree_gives_rows(const struct code *code)
{
    if (code->node_count == 0 || code->range_count == 0) {
        return false;
    }
    uint32_t row = 0;
    for (uint32_t i = 0; i < code->range_count; i++) {
        const struct inline_range *range = &code->ranges[i];
        if (!is_next(code, &row, range->offset, place_of(code, range->node, range->line))) {
            return false;
        }
    }
    if (code->ranges_end < code->size && !is_next(code, &row, code->ranges_end, first_line(code))) {
        return false;
    }
    return row == code->row_count;
}
