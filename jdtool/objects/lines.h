/*
 * What the DWARF of a file says of an address: the source line, and the functions that were inlined
 * there. Read by libdw on demand: the units' ranges once, a unit's functions when it is first asked
 * for; answers are kept, all in bounds.
 */
#ifndef JD_TOOL_LINES_H
#define JD_TOOL_LINES_H

#include "jdtool/objects/objects.h"

#include <elfutils/libdw.h>

#define LINES_UNITS_MAX   (UINT32_C(1) << 20)
#define LINES_RANGES_MAX  (UINT32_C(1) << 21) /* of units, and of functions at one time */
#define LINES_ANSWERS_MAX 16384

struct lines;

/* dwarf must outlive the lines. After `patience` ns of the processor's time they are given up.
 * NULL: no memory. */
struct lines *lines_new(Dwarf *dwarf, uint64_t patience);
void lines_free(struct lines *lines); /* NULL is fine */

/* Look-ups that take less do not count for that: there may be any number of them. */
#define LINES_QUICK_NS UINT64_C(20000000)

/* See object_inlines. 0, too, once they are given up. */
size_t lines_at(struct lines *lines, uint64_t address, const struct object_inline **inlines);

bool lines_given_up(const struct lines *lines);

uint64_t lines_bytes(const struct lines *lines); /* memory it takes, libdw's not included */

#endif
