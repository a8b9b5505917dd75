/*
 * A method's line table: in whatever order a class file has it, and in the order that look-ups
 * need.
 */
#ifndef JD_AGENT_LINE_TABLE_H
#define JD_AGENT_LINE_TABLE_H

#include <stdint.h>

/* Bytecodes from `bci` up to the next entry's belong to this line. */
struct line_entry {
    uint32_t bci;
    uint32_t line;
};

/*
 * Puts a class file's entries, which may stand in any order, into the order that look-ups need, and
 * takes out those that say nothing. Returns how many there are then; 0 without memory.
 */
uint32_t line_table_sort(struct line_entry *lines, uint32_t count);

/*
 * The line of a bytecode in a sorted table, by the rule of HotSpot's own stack traces; 0 when it is
 * not known. *near, 0 at first, is what was found last in this table, and where it is looked for
 * first.
 */
uint32_t line_table_find(const struct line_entry *lines, uint32_t count, int32_t bci,
                         uint32_t *near);

#endif
