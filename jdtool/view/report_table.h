/*
 * The rows of a table of methods, source lines or threads: who they are, what they took of an
 * event, where a method is and how it ran. Whoever shows them (jdperf report, jdperf top) lays
 * them out.
 */
#ifndef JD_TOOL_REPORT_TABLE_H
#define JD_TOOL_REPORT_TABLE_H

#include "jdtool/profile/method_tallies.h"
#include "jdtool/view/cells.h"

struct report_row {
    uint32_t function;
    uint32_t line;        /* of a table of lines, or the hottest one of the method; 0: not known */
    uint64_t self, total; /* weights */
};

/* The rows that have something of one event, the heaviest first. */
struct report_table {
    const struct method_tallies *tallies;
    uint32_t event;
    bool by_line;
    uint32_t count;
    struct tallies_order order, lines, forms;
};

/* The tallies stay the caller's. Free the result on failure, too. 0 or -ENOMEM. */
int report_table_make(const struct method_tallies *tallies, uint32_t event, bool by_line,
                      struct report_table *rows);
void report_table_free(struct report_table *rows);

struct report_row report_table_at(const struct report_table *rows, uint32_t index);

/* Where it is: FILE:LINE, or the module of a function without a source; "" where nothing is known.
 */
void report_row_place(const struct report_table *rows, const struct report_row *row,
                      char text[CELL_MAX]);

/* How it ran: the one or two forms that took the most of it, "C2, inlined". */
void report_row_ran(const struct report_table *rows, uint32_t index, char text[CELL_MAX]);

struct report_thread {
    uint64_t weight, samples;
    uint32_t track;
};

/* The threads that have samples of an event, the heaviest first, for the caller to free, and their
 * number. NULL: no memory. */
struct report_thread *report_threads(const struct profile *profile, uint32_t event,
                                     uint32_t *count);

#endif
