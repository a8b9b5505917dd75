/* A profile's marks added up, for those who tell of them. */
#ifndef JD_TOOL_TIMELINE_ROWS_H
#define JD_TOOL_TIMELINE_ROWS_H

#include "jdtool/profile/profile.h"

/* Marks of one kind that have the same name. */
struct timeline_row {
    const char *name;
    uint64_t count;
    uint64_t total, longest; /* ns */
    uint64_t number;         /* theirs together */
};

enum timeline_key { TIMELINE_BY_KIND, TIMELINE_BY_TEXT, TIMELINE_BY_SUBJECT };
enum timeline_order { TIMELINE_LONGEST_FIRST, TIMELINE_MOST_FIRST }; /* by total, by count */

struct timeline_rows {
    struct timeline_row *list; /* the caller's to free */
    uint32_t count;
};

/* 0 or -ENOMEM. */
int timeline_rows_make(const struct profile *profile, enum mark_kind kind, enum timeline_key key,
                       enum timeline_order order, struct timeline_rows *rows);

/* The marks of a kind in the order of their beginnings; the caller's to free. 0 or -ENOMEM. */
int timeline_marks_of(const struct profile *profile, enum mark_kind kind,
                      const struct profile_mark ***list, uint32_t *count);

/* How many of them went on at once, at most. 0 without memory. */
uint32_t timeline_most_at_once(const struct profile *profile, enum mark_kind kind);

#endif
