/*
 * A Java method as the agent knows it: what the sinks want to hear, and its line table. No JVM is
 * needed to speak of one, so that what is made of it can be tested alone. Where a line of the table
 * really is, the map says.
 */
#ifndef JD_AGENT_JAVA_METHOD_H
#define JD_AGENT_JAVA_METHOD_H

#include "agent/hotspot/line_table.h"
#include "writer/code.h"

#include <stdbool.h>
#include <stdint.h>

struct source_map;

struct java_method {
    struct method method;
    struct line_entry *lines; /* in the order of line_table_sort */
    uint32_t line_count;
    const struct source_map *map; /* its class's, for what the line table says; NULL: none */
    bool native;
};

#endif
