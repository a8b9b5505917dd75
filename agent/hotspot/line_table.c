#include "agent/hotspot/line_table.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static bool is_sorted(const struct line_entry *lines, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        if (lines[i - 1].bci > lines[i].bci) {
            return false;
        }
    }
    return true;
}

/* Merges two runs, [0, middle) and [middle, end), of `from`. */
static void merge(const struct line_entry *from, size_t middle, size_t end, struct line_entry *to)
{
    size_t left = 0;
    size_t right = middle;
    for (size_t at = 0; at < end; at++) {
        bool take_left = left < middle && (right == end || from[left].bci <= from[right].bci);
        to[at] = from[take_left ? left++ : right++];
    }
}

/* Stable, which line_table_find needs. False: no memory. */
static bool merge_sort(struct line_entry *lines, size_t count)
{
    struct line_entry *room = malloc(count * sizeof(*room));
    if (!room) {
        return false;
    }
    struct line_entry *from = lines;
    struct line_entry *to = room;
    for (size_t run = 1; run < count; run *= 2) {
        for (size_t at = 0; at < count; at += 2 * run) {
            size_t end = count - at < 2 * run ? count - at : 2 * run;
            merge(from + at, run < end ? run : end, end, to + at);
        }
        struct line_entry *swap = from;
        from = to;
        to = swap;
    }
    if (from != lines) {
        memcpy(lines, from, count * sizeof(*lines));
    }
    free(room);
    return true;
}

/* Of more than two entries of one bci only the first and the last say anything. */
static uint32_t thin_out(struct line_entry *lines, uint32_t count)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        bool middle = kept >= 2 && lines[kept - 2].bci == lines[i].bci;
        kept -= middle;
        lines[kept++] = lines[i];
    }
    return kept;
}

uint32_t line_table_sort(struct line_entry *lines, uint32_t count)
{
    if (!is_sorted(lines, count) && !merge_sort(lines, count)) {
        return 0;
    }
    return thin_out(lines, count);
}

/* HotSpot's SynchronizationEntryBCI: the way into the method, before its first bytecode. */
#define ENTRY_BCI (-1)

/*
 * Method::line_number_from_bci: the way in has the first bytecode's line; among entries of one and
 * the same bci the first counts for that very bytecode, the last for those behind it.
 */
uint32_t line_table_find(const struct line_entry *lines, uint32_t count, int32_t bci,
                         uint32_t *near)
{
    if (bci == ENTRY_BCI) {
        bci = 0;
    }
    if (bci < 0 || count == 0 || lines[0].bci > (uint32_t)bci) {
        return 0;
    }
    uint32_t low = 0; /* lines[low].bci <= bci < lines[high].bci */
    uint32_t high = count;
    if (lines[*near].bci > (uint32_t)bci) {
        high = *near;
    } else { /* most often it is this one or one of the next */
        enum { STEPS = 4 };
        low = *near;
        for (int i = 0; i < STEPS && low + 1 < high && lines[low + 1].bci <= (uint32_t)bci; i++) {
            low++;
        }
        if (low + 1 < high && lines[low + 1].bci > (uint32_t)bci) {
            high = low + 1;
        }
    }
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (lines[middle].bci <= (uint32_t)bci) {
            low = middle;
        } else {
            high = middle;
        }
    }
    *near = low;
    if (lines[low].bci == (uint32_t)bci && low > 0 && lines[low - 1].bci == (uint32_t)bci) {
        low--;
    }
    return lines[low].line;
}
