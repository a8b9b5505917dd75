#include "agent/java_method.h"

/* Insertion sort: stable, which java_method_line needs, and the tables are nearly always sorted. */
void line_table_sort(struct line_entry *lines, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        struct line_entry entry = lines[i];
        uint32_t at = i;
        for (; at > 0 && lines[at - 1].bci > entry.bci; at--) {
            lines[at] = lines[at - 1];
        }
        lines[at] = entry;
    }
}

/* HotSpot's SynchronizationEntryBCI: the way into the method, before its first bytecode. */
#define ENTRY_BCI (-1)

/*
 * Method::line_number_from_bci: the way in has the first bytecode's line; among entries of one and
 * the same bci the first counts for that very bytecode, the last for those behind it.
 */
uint32_t java_method_line(const struct java_method *method, int32_t bci)
{
    const struct line_entry *lines = method->lines;
    if (bci == ENTRY_BCI) {
        bci = 0;
    }
    if (bci < 0 || method->line_count == 0 || lines[0].bci > (uint32_t)bci) {
        return 0;
    }
    uint32_t low = 0; /* lines[low].bci <= bci < lines[high].bci */
    uint32_t high = method->line_count;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (lines[middle].bci <= (uint32_t)bci) {
            low = middle;
        } else {
            high = middle;
        }
    }
    if (lines[low].bci == (uint32_t)bci) {
        while (low > 0 && lines[low - 1].bci == (uint32_t)bci) {
            low--;
        }
    }
    return lines[low].line;
}
