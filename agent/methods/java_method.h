/*
 * A Java method as the agent knows it: what the sinks want to hear, and its line table. No JVM is
 * needed to speak of one, so that what is made of it can be tested alone.
 */
#ifndef JD_AGENT_JAVA_METHOD_H
#define JD_AGENT_JAVA_METHOD_H

#include "writer/code.h"

#include <stdbool.h>
#include <stdint.h>

struct source_map;

/* Bytecodes from `bci` up to the next entry's belong to this line. */
struct line_entry {
    uint32_t bci;
    uint32_t line;
};

struct java_method {
    struct method method;
    struct line_entry *lines; /* in the order of line_table_sort */
    uint32_t line_count;
    const struct source_map *map; /* its class's, for what the line table says; NULL: none */
    bool native;
};

/* A number for struct method's id that no other has. */
uint32_t java_method_new_id(void);

/*
 * Puts a class file's entries, which may stand in any order, into the order that look-ups need, and
 * takes out those that say nothing. Returns how many there are then; 0 without memory.
 */
uint32_t line_table_sort(struct line_entry *lines, uint32_t count);

/*
 * The line table's line of a bytecode, by the rule of HotSpot's own stack traces; 0 when it is not
 * known. Where it really is, the map says. *near, 0 at first, is what was found last of the method,
 * and where it is looked for first.
 */
uint32_t java_method_line(const struct java_method *method, int32_t bci, uint32_t *near);

#endif
