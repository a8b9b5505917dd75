#include "jdtool/profile/timeline_rows.h"

#include "jdtool/base/array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int compare_beginnings(const void *a, const void *b)
{
    const struct profile_mark *first = *(const struct profile_mark *const *)a;
    const struct profile_mark *second = *(const struct profile_mark *const *)b;
    return ORDER(first->from, second->from) ?: ORDER(first->until, second->until);
}

int timeline_marks_of(const struct profile *profile, enum mark_kind kind,
                      const struct profile_mark ***list, uint32_t *count)
{
    *count = 0;
    *list = calloc((size_t)profile->mark_count + 1, sizeof(struct profile_mark *));
    if (!*list) {
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < profile->mark_count; i++) {
        if (profile->marks[i].kind == kind) {
            (*list)[(*count)++] = &profile->marks[i];
        }
    }
    qsort((void *)*list, *count, sizeof(struct profile_mark *), compare_beginnings);
    return 0;
}

/* ---- Rows ---- */

static int compare_names(const void *a, const void *b)
{
    const struct timeline_row *first = a;
    const struct timeline_row *second = b;
    return strcmp(first->name, second->name);
}

static int compare_totals(const void *a, const void *b)
{
    const struct timeline_row *first = a;
    const struct timeline_row *second = b;
    return ORDER(second->total, first->total) ?: compare_names(a, b);
}

static int compare_counts(const void *a, const void *b)
{
    const struct timeline_row *first = a;
    const struct timeline_row *second = b;
    return ORDER(second->count, first->count) ?: compare_totals(a, b);
}

static const char *name_of(const struct profile_mark *mark, enum timeline_key key)
{
    const char *name = key == TIMELINE_BY_TEXT      ? mark->text
                       : key == TIMELINE_BY_SUBJECT ? mark->subject
                                                    : mark_kind_name(mark->kind);
    return *name ? name : mark->kind == MARK_SAFEPOINT ? "[no operation]" : "[unknown]";
}

int timeline_rows_make(const struct profile *profile, enum mark_kind kind, enum timeline_key key,
                       enum timeline_order order, struct timeline_rows *rows)
{
    uint32_t count = 0;
    *rows =
        (struct timeline_rows){.list = calloc((size_t)profile->mark_count + 1, sizeof *rows->list)};
    if (!rows->list) {
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < profile->mark_count; i++) {
        const struct profile_mark *mark = &profile->marks[i];
        if (mark->kind == kind) {
            uint64_t time = mark->until - mark->from;
            rows->list[count++] =
                (struct timeline_row){name_of(mark, key), 1, time, time, mark->number};
        }
    }
    qsort(rows->list, count, sizeof *rows->list, compare_names);
    for (uint32_t i = 0; i < count; i++) {
        const struct timeline_row *row = &rows->list[i];
        struct timeline_row *last = rows->count ? &rows->list[rows->count - 1] : NULL;
        if (!last || strcmp(last->name, row->name) != 0) {
            rows->list[rows->count++] = *row;
            continue;
        }
        last->count++;
        last->total += row->total;
        last->longest = row->longest > last->longest ? row->longest : last->longest;
        last->number += row->number;
    }
    qsort(rows->list, rows->count, sizeof *rows->list,
          order == TIMELINE_MOST_FIRST ? compare_counts : compare_totals);
    return 0;
}

/* ---- At once ---- */

uint32_t timeline_most_at_once(const struct profile *profile, enum mark_kind kind)
{
    uint64_t *from = calloc((size_t)profile->mark_count + 1, sizeof *from);
    uint64_t *until = calloc((size_t)profile->mark_count + 1, sizeof *until);
    uint32_t count = 0;
    uint32_t most = 0;
    for (uint32_t i = 0; from && until && i < profile->mark_count; i++) {
        if (profile->marks[i].kind == kind) {
            from[count] = profile->marks[i].from;
            until[count++] = profile->marks[i].until;
        }
    }
    if (from && until) {
        qsort(from, count, sizeof *from, compare_u64);
        qsort(until, count, sizeof *until, compare_u64);
    }
    for (uint32_t i = 0, ended = 0; i < count; i++) {
        while (ended < count && until[ended] <= from[i]) {
            ended++;
        }
        most = i + 1 - ended > most && i + 1 > ended ? i + 1 - ended : most;
    }
    free(from);
    free(until);
    return most;
}
