#include "writer/living_records.h"

#include "writer/range_map.h"

#include <stdlib.h>

/* One record, cut into two by what it overlaps, takes two ranges more than there were. */
enum { RANGES_PER_RECORD = 2 };

struct span {
    struct range range;
    struct range code; /* all of it */
    uint64_t offset;   /* of the record, which tells it from others at the same place */
    uint64_t size;
};

struct living_records {
    struct range_map *spans;
};

struct living_records *living_records_new(void)
{
    struct living_records *living = calloc(1, sizeof(*living));
    if (living && !(living->spans = range_map_new(sizeof(struct span)))) {
        free(living);
        living = NULL;
    }
    return living;
}

void living_records_free(struct living_records *living)
{
    if (living) {
        range_map_free(living->spans);
        free(living);
    }
}

static struct span *span_at(const struct living_records *living, uint64_t address)
{
    return range_map_at(living->spans, address);
}

static void clear(struct living_records *living, struct range range)
{
    struct span *span = span_at(living, range.start);
    if (span && span->range.start < range.start) {
        struct span before = *span;
        span->range.end = range.start;
        if (before.range.end > range.end) {
            struct span *rest =
                range_map_insert(living->spans, (struct range){range.end, before.range.end});
            before.range.start = range.end;
            *rest = before;
            return;
        }
        span = span_at(living, range.start);
    }
    while (span && span->range.end <= range.end) {
        range_map_remove(living->spans, span);
        span = span_at(living, range.start);
    }
    if (span && span->range.start < range.end) {
        span->range.start = range.end;
    }
}

bool living_records_add(struct living_records *living, uint64_t address, uint64_t extent,
                        uint64_t offset, uint64_t size)
{
    const struct range code = {address, address + extent};
    if (code.end <= code.start) {
        return true; /* it occupies nothing, and names no sample */
    }
    if (!range_map_reserve(living->spans, RANGES_PER_RECORD)) {
        return false;
    }
    clear(living, code);
    struct span *span = range_map_insert(living->spans, code);
    span->code = code;
    span->offset = offset;
    span->size = size;
    return true;
}

void living_records_remove(struct living_records *living, uint64_t address)
{
    struct span *span = span_at(living, address);
    if (!span || span->range.start != address || span->code.start != address) {
        return;
    }
    const struct span gone = *span;
    while (span && span->range.start < gone.code.end) {
        uint64_t end = span->range.end;
        if (span->offset == gone.offset) {
            range_map_remove(living->spans, span);
        }
        span = span_at(living, end);
    }
}

static int by_offset(const void *a, const void *b)
{
    uint64_t first = ((const struct living_stretch *)a)->offset;
    uint64_t second = ((const struct living_stretch *)b)->offset;
    return (first > second) - (first < second);
}

struct living_stretch *living_records_list(const struct living_records *living, size_t *count)
{
    size_t spans = range_map_count(living->spans);
    struct living_stretch *list = spans ? malloc(spans * sizeof(*list)) : NULL;
    size_t n = 0;
    for (struct span *span = list ? span_at(living, 0) : NULL; span && n < spans;
         span = span_at(living, span->range.end)) {
        list[n++] = (struct living_stretch){.offset = span->offset, .size = span->size};
    }
    size_t kept = 0;
    if (list) {
        qsort(list, n, sizeof(*list), by_offset);
    }
    for (size_t i = 0; i < n; i++) { /* neighbours in the file become one */
        uint64_t end = kept ? list[kept - 1].offset + list[kept - 1].size : 0;
        if (kept && list[i].offset < end) {
            continue; /* another part of the same code */
        }
        if (kept && list[i].offset == end) {
            list[kept - 1].size += list[i].size;
        } else {
            list[kept++] = list[i];
        }
    }
    *count = kept;
    return list;
}

static const struct living_stretch *stretch_of(const struct living_stretch *list, size_t count,
                                               uint64_t offset)
{
    size_t low = 0;
    size_t high = count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (list[middle].offset <= offset) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return &list[low];
}

void living_records_move(struct living_records *living, const struct living_stretch *list,
                         size_t count)
{
    struct span *span = count ? span_at(living, 0) : NULL;
    for (; span; span = span_at(living, span->range.end)) {
        const struct living_stretch *stretch = stretch_of(list, count, span->offset);
        span->offset = stretch->moved_to + (span->offset - stretch->offset);
    }
}
