/* Of each frame of the flame page, the source line that most of its samples have. */
#include "jdtool/exports/flame_lines.h"

#include <errno.h>
#include <stdlib.h>

struct line_count {
    uint32_t node, line, count;
};

static int compare_lines(const void *a, const void *b)
{
    const struct line_count *first = a;
    const struct line_count *second = b;
    if (first->node != second->node) {
        return first->node < second->node ? -1 : 1;
    }
    return first->line < second->line ? -1 : first->line > second->line;
}

/* The samples on each of the profile's nodes and on all that it called; NULL: no memory. */
static uint32_t *count_samples(const struct profile *profile)
{
    uint32_t *counts = calloc((size_t)profile->node_count + 1, sizeof *counts);
    if (!counts) {
        return NULL;
    }
    for (uint32_t i = 0; i < profile->sample_count; i++) {
        if (profile->samples[i].node != PROFILE_NONE) {
            counts[profile->samples[i].node] += profile->samples[i].count;
        }
    }
    for (uint32_t i = profile->node_count; i-- > 0;) {
        if (profile->nodes[i].parent != PROFILE_NONE) {
            counts[profile->nodes[i].parent] += counts[i];
        }
    }
    return counts;
}

/* All lines of all nodes, unsorted; *count of them. NULL: no memory. */
static struct line_count *list_lines(const struct profile *profile, const struct frame_tree *tree,
                                     const uint32_t *samples, size_t *count)
{
    size_t most = 1;
    for (uint32_t i = 0; i < profile->node_count; i++) {
        most += profile->locations[profile->nodes[i].location].line_count;
    }
    struct line_count *list = calloc(most, sizeof *list);
    if (!list) {
        return NULL;
    }
    size_t at = 0;
    for (uint32_t i = 0; i < profile->node_count; i++) {
        const struct profile_location *location = &profile->locations[profile->nodes[i].location];
        uint32_t node = tree->innermost[i];
        for (uint32_t k = 0; k < location->line_count; k++) {
            uint32_t line = profile->lines[location->first_line + k].line;
            list[at++] = (struct line_count){node, line, samples[i]};
            node = tree->nodes[node].parent;
        }
    }
    *count = at;
    return list;
}

/* list[0, count), sorted. */
static void choose_lines(const struct line_count *list, size_t count, uint32_t *lines,
                         uint8_t *shares)
{
    for (size_t i = 0; i < count;) {
        uint32_t node = list[i].node;
        uint64_t all = 0;
        uint64_t most = 0;
        while (i < count && list[i].node == node) {
            uint32_t line = list[i].line;
            uint64_t here = 0;
            for (; i < count && list[i].node == node && list[i].line == line; i++) {
                here += list[i].count;
            }
            all += here;
            if (line > 0 && here > most) {
                most = here;
                lines[node] = line;
            }
        }
        shares[node] = (uint8_t)(all ? 100 * most / all : 0);
    }
}

int flame_lines_find(const struct profile *profile, const struct frame_tree *tree, uint32_t *lines,
                     uint8_t *shares)
{
    size_t count = 0;
    uint32_t *samples = count_samples(profile);
    struct line_count *list = samples ? list_lines(profile, tree, samples, &count) : NULL;
    if (list) {
        qsort(list, count, sizeof *list, compare_lines);
        choose_lines(list, count, lines, shares);
    }
    free(samples);
    free(list);
    return list ? 0 : -ENOMEM;
}
