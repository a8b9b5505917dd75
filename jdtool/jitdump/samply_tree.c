/*
 * samply's record has an inline tree whose calls each have ranges of code, children inside their
 * parents', and apart from it a table of lines that belong to whatever call is the deepest. The
 * trailer has the deepest call and its line in one list of ranges. So this sweeps over all offsets
 * where a call begins or ends or a line begins, with the calls that are active in a heap: calls
 * stand depth-first, so the active one with the highest number is the deepest.
 */
#include "jdtool/jitdump/samply_tree.h"

#include "format/fnv1a.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Ids of functions from samply's records have the highest bit, which no writer reaches by counting.
 */
#define SAMPLY_ID (UINT64_C(1) << 63)

struct span {
    uint32_t start;
    uint32_t end;
    uint32_t node;
};

struct sweep {
    struct span *spans; /* sorted by start */
    uint32_t span_count;
    uint32_t *bounds; /* sorted, all below the code's size; the first is 0 */
    uint32_t bound_count;
    struct span *heap; /* the highest node first */
    uint32_t heap_count;
};

/* The id of a function, the same each time it is asked for; 0 when nothing is known of it. */
static uint64_t method_id(const struct samply_inlines *inlines, uint32_t index,
                          struct trailer_names *names)
{
    if (index >= inlines->function_count ||
        inlines->functions[index].name_index >= inlines->name_count) {
        return 0;
    }
    const struct samply_function *function = &inlines->functions[index];
    struct trailer_method method = {.name = inlines->names[function->name_index],
                                    .first_line = function->start_line};
    const char *path =
        function->file_index < inlines->file_count ? inlines->files[function->file_index] : "";
    uint64_t start = fnv1a(FNV1A_START, path);
    const char *why;
    if (*path) {
        for (method.file_id = start | SAMPLY_ID;
             trailer_names_add_file(names, method.file_id, path, &why) < 0; method.file_id++) {
            if (!trailer_names_file(names, method.file_id)) {
                return 0; /* no memory; else the id is another path's, and the next one is tried */
            }
        }
    }
    uint64_t id = fnv1a(start + function->start_line, method.name) | SAMPLY_ID;
    while (trailer_names_add_method(names, id, &method, &why) < 0) {
        if (!trailer_names_has_method(names, id)) {
            return 0;
        }
        id++;
    }
    return id;
}

static int add_nodes(const struct samply_inlines *inlines, struct trailer_names *names,
                     struct trailer *trailer)
{
    int error =
        trailer_add_node(trailer, &(struct trailer_node){.method = method_id(inlines, 0, names)});
    uint32_t depth = 0; /* of the node before; node 0 has 0, calls from it have 1 */
    for (uint32_t i = 0; i < inlines->call_count && !error; i++) {
        const struct samply_inline_call *call = &inlines->calls[i];
        uint32_t parent = i; /* the node before */
        uint32_t wanted = call->depth < depth ? call->depth : depth;
        for (; depth > wanted; depth--) {
            parent = trailer->nodes[parent].parent;
        }
        depth++;
        error = trailer_add_node(
            trailer,
            &(struct trailer_node){.method = method_id(inlines, call->function_index, names),
                                   .parent = parent,
                                   .call_line = call->call_line});
    }
    return error;
}

static int by_start(const void *left, const void *right)
{
    const struct span *a = left;
    const struct span *b = right;
    return (a->start > b->start) - (a->start < b->start);
}

static int by_value(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left;
    uint32_t b = *(const uint32_t *)right;
    return (a > b) - (a < b);
}

static int prepare(struct sweep *sweep, const struct samply_inlines *inlines, uint32_t code_size)
{
    sweep->spans = calloc((size_t)inlines->range_count + 1, sizeof(*sweep->spans));
    sweep->heap = calloc((size_t)inlines->range_count + 1, sizeof(*sweep->heap));
    sweep->bounds =
        calloc((size_t)inlines->range_count * 2 + inlines->line_count + 1, sizeof(*sweep->bounds));
    if (!sweep->spans || !sweep->heap || !sweep->bounds) {
        return -ENOMEM;
    }
    uint32_t bounds = 1; /* the code's start */
    uint32_t next = 0;   /* the range that no call has taken yet */
    for (uint32_t i = 0; i < inlines->call_count; i++) {
        uint32_t left = inlines->range_count - next;
        uint32_t end =
            next + (inlines->calls[i].range_count < left ? inlines->calls[i].range_count : left);
        for (; next < end; next++) {
            uint32_t start = inlines->ranges[next].offset;
            if (start >= code_size) {
                continue;
            }
            uint32_t room = code_size - start;
            uint32_t size = inlines->ranges[next].size < room ? inlines->ranges[next].size : room;
            sweep->spans[sweep->span_count++] =
                (struct span){.start = start, .end = start + size, .node = i + 1};
            sweep->bounds[bounds++] = start;
            if (size < room) {
                sweep->bounds[bounds++] = start + size;
            }
        }
    }
    for (uint32_t i = 0; i < inlines->line_count; i++) {
        if (inlines->lines[i].offset < code_size) {
            sweep->bounds[bounds++] = inlines->lines[i].offset;
        }
    }
    qsort(sweep->spans, sweep->span_count, sizeof(*sweep->spans), by_start);
    qsort(sweep->bounds, bounds, sizeof(*sweep->bounds), by_value);
    for (uint32_t i = 0; i < bounds; i++) {
        if (i == 0 || sweep->bounds[i] != sweep->bounds[sweep->bound_count - 1]) {
            sweep->bounds[sweep->bound_count++] = sweep->bounds[i];
        }
    }
    return 0;
}

static void swap(struct span *a, struct span *b)
{
    struct span old = *a;
    *a = *b;
    *b = old;
}

static void push(struct sweep *sweep, const struct span *span)
{
    uint32_t at = sweep->heap_count++;
    sweep->heap[at] = *span;
    for (; at > 0 && sweep->heap[(at - 1) / 2].node < sweep->heap[at].node; at = (at - 1) / 2) {
        swap(&sweep->heap[at], &sweep->heap[(at - 1) / 2]);
    }
}

static void pop(struct sweep *sweep)
{
    sweep->heap[0] = sweep->heap[--sweep->heap_count];
    for (uint32_t at = 0;;) {
        uint32_t child = 2 * at + 1;
        if (child + 1 < sweep->heap_count &&
            sweep->heap[child + 1].node > sweep->heap[child].node) {
            child++;
        }
        if (child >= sweep->heap_count || sweep->heap[child].node <= sweep->heap[at].node) {
            return;
        }
        swap(&sweep->heap[at], &sweep->heap[child]);
        at = child;
    }
}

static int add_ranges(struct sweep *sweep, const struct samply_inlines *inlines, uint32_t code_size,
                      struct trailer *trailer)
{
    uint32_t span = 0;
    uint32_t line = 0; /* the line records up to this one have begun */
    for (uint32_t i = 0; i < sweep->bound_count; i++) {
        uint32_t offset = sweep->bounds[i];
        uint32_t end = i + 1 < sweep->bound_count ? sweep->bounds[i + 1] : code_size;
        for (; span < sweep->span_count && sweep->spans[span].start <= offset; span++) {
            push(sweep, &sweep->spans[span]);
        }
        while (sweep->heap_count > 0 && sweep->heap[0].end <= offset) {
            pop(sweep);
        }
        while (line < inlines->line_count && inlines->lines[line].offset <= offset) {
            line++;
        }
        struct trailer_range range = {.offset = offset,
                                      .size = end - offset,
                                      .node = sweep->heap_count ? sweep->heap[0].node : 0,
                                      .line = line ? inlines->lines[line - 1].line : 0};
        if (range.size > 0 && trailer_add_range(trailer, &range) < 0) {
            return -ENOMEM;
        }
    }
    return 0;
}

int samply_tree(const struct samply_inlines *inlines, uint32_t code_size,
                struct trailer_names *names, struct trailer *trailer)
{
    struct sweep sweep = {0};
    int error = add_nodes(inlines, names, trailer) < 0 ? -ENOMEM : 0;
    if (!error) {
        error = prepare(&sweep, inlines, code_size);
    }
    if (!error) {
        error = add_ranges(&sweep, inlines, code_size, trailer);
    }
    free(sweep.spans);
    free(sweep.heap);
    free(sweep.bounds);
    return error;
}
