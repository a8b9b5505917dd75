/*
 * A range of the map is either live, and then part of one piece of code, all of it at first, less
 * when others came to overlap it; or retired, at one time. Addresses in no range have never been
 * used. A retired range that touches another one of the same time becomes one with it.
 */
#include "writer/timeline.h"

#include "writer/range_map.h"

#include <stdlib.h>

/* One load, cut into two by what it overlaps, takes two ranges more than there were. */
enum { RANGES_PER_LOAD = 2 };

struct occupant {
    struct range code; /* all of it, also where others overlap it now */
    uint64_t identity;
    uint64_t code_index;
    uint64_t from;  /* what timeline_load returned */
    bool forgotten; /* see timeline_forget */
};

struct span {
    struct range range;
    bool live;
    uint64_t retired; /* when, unless live */
    struct occupant occupant;
};

struct timeline {
    struct range_map *spans;
    uint64_t start;
    bool blind; /* ran out of memory, so that what it would say of the past could be wrong */
};

struct timeline *timeline_new(uint64_t start)
{
    struct timeline *timeline = calloc(1, sizeof(*timeline));
    if (!timeline) {
        return NULL;
    }
    timeline->start = start;
    timeline->spans = range_map_new(sizeof(struct span));
    if (!timeline->spans) {
        free(timeline);
        return NULL;
    }
    return timeline;
}

void timeline_free(struct timeline *timeline)
{
    if (timeline) {
        range_map_free(timeline->spans);
        free(timeline);
    }
}

size_t timeline_range_count(const struct timeline *timeline)
{
    return range_map_count(timeline->spans);
}

static struct span *span_at(const struct timeline *timeline, uint64_t address)
{
    return range_map_at(timeline->spans, address);
}

static struct span *span_behind(const struct timeline *timeline, const struct span *span)
{
    return span_at(timeline, span->range.end);
}

/* The live range at which the code that starts at an address starts, or NULL. */
static struct span *first_span(const struct timeline *timeline, uint64_t address)
{
    struct span *span = span_at(timeline, address);
    return span && span->live && span->range.start == address &&
                   span->occupant.code.start == address
               ? span
               : NULL;
}

/* The same, if it is just this code. */
static struct span *span_of(const struct timeline *timeline, const struct code *code)
{
    struct span *span = first_span(timeline, code->address);
    return span && span->occupant.code.end == code->address + code->size &&
                   span->occupant.identity == code_identity(code)
               ? span
               : NULL;
}

bool timeline_knows(const struct timeline *timeline, const struct code *code)
{
    if (!code->replayed && code->facts.compile_id < 0) {
        return false;
    }
    const struct span *span = span_of(timeline, code);
    return span && !span->occupant.forgotten;
}

static bool is_taken(const struct span *span)
{
    return span->live && !span->occupant.forgotten;
}

void timeline_forget(struct timeline *timeline, uint64_t address)
{
    struct span *span = first_span(timeline, address);
    const struct occupant *occupant = span ? &span->occupant : NULL;
    uint64_t end = span ? occupant->code.end : 0;
    uint64_t code_index = span ? occupant->code_index : 0;
    for (; span && span->range.start < end; span = span_behind(timeline, span)) {
        if (span->live && span->occupant.code_index == code_index) {
            span->occupant.forgotten = true;
        }
    }
}

bool timeline_next_gap(const struct timeline *timeline, uint64_t from, uint64_t end,
                       uint64_t *gap_start, uint64_t *gap_end)
{
    const struct span *span = span_at(timeline, from);
    while (span && is_taken(span) && span->range.start <= from) {
        from = span->range.end;
        span = span_behind(timeline, span);
    }
    while (span && !is_taken(span)) {
        span = span_behind(timeline, span);
    }
    *gap_start = from;
    *gap_end = span && span->range.start < end ? span->range.start : end;
    return from < end;
}

/* Leaves no range in [start, end), splitting what reaches in. Takes one reserved range at most. */
static void clear(struct timeline *timeline, struct range range)
{
    struct span *span = span_at(timeline, range.start);
    if (span && span->range.start < range.start) {
        uint64_t span_end = span->range.end;
        span->range.end = range.start;
        if (span_end > range.end) {
            struct span *rest =
                range_map_insert(timeline->spans, (struct range){range.end, span_end});
            struct range rest_range = rest->range;
            *rest = *span;
            rest->range = rest_range;
            return;
        }
        span = span_at(timeline, range.start);
    }
    while (span && span->range.end <= range.end) {
        range_map_remove(timeline->spans, span);
        span = span_at(timeline, range.start);
    }
    if (span && span->range.start < range.end) {
        span->range.start = range.end;
    }
}

/* When the last one who was in the range left it; who has not, does it now. */
static uint64_t vacated(const struct timeline *timeline, struct range range, uint64_t now)
{
    uint64_t latest = timeline->start;
    const struct span *span = span_at(timeline, range.start);
    for (; span && span->range.start < range.end; span = span_behind(timeline, span)) {
        uint64_t left = span->live ? now : span->retired;
        latest = left > latest ? left : latest;
    }
    return latest;
}

static uint64_t occupy(struct timeline *timeline, const struct occupant *occupant, uint64_t now)
{
    if (timeline->blind || !range_map_reserve(timeline->spans, RANGES_PER_LOAD)) {
        timeline->blind = true;
        return now;
    }
    uint64_t from = vacated(timeline, occupant->code, now);
    clear(timeline, occupant->code);
    struct span *span = range_map_insert(timeline->spans, occupant->code);
    span->live = true;
    span->occupant = *occupant;
    span->occupant.from = from;
    return from;
}

uint64_t timeline_load(struct timeline *timeline, const struct code *code, uint64_t code_index,
                       uint64_t now)
{
    const struct occupant occupant = {
        .code = {code->address, code->address + code->size},
        .identity = code_identity(code),
        .code_index = code_index,
    };
    if (occupant.code.end <= occupant.code.start) {
        return now; /* empty, or around the end of the address space: it occupies nothing */
    }
    struct span *forgotten = span_of(timeline, code);
    if (forgotten && forgotten->occupant.forgotten && forgotten->range.end == occupant.code.end) {
        uint64_t from = forgotten->occupant.from;
        forgotten->occupant = occupant;
        forgotten->occupant.from = from;
        return from;
    }
    return occupy(timeline, &occupant, now);
}

static bool same_retirement(const struct span *a, const struct span *b)
{
    return !a->live && !b->live && a->retired == b->retired;
}

/* Makes a range retired, and one with its neighbours where they are of the same time. Returns the
 * range that it is part of then. */
static struct span *retire(struct timeline *timeline, struct span *span, uint64_t now)
{
    span->live = false;
    span->retired = now;
    if (span->range.start > 0) {
        struct span *before = span_at(timeline, span->range.start - 1);
        if (before != span && same_retirement(before, span)) {
            uint64_t end = span->range.end;
            range_map_remove(timeline->spans, span);
            before->range.end = end;
            span = before;
        }
    }
    return span;
}

static void retire_occupant(struct timeline *timeline, struct span *first, uint64_t now)
{
    const struct occupant occupant = first->occupant;
    struct span *span = first;
    for (; span && span->range.start < occupant.code.end; span = span_behind(timeline, span)) {
        if (span->live && span->occupant.code_index == occupant.code_index) {
            span = retire(timeline, span, now);
        }
    }
}

enum timeline_unloaded timeline_unload(struct timeline *timeline, uint64_t address, int32_t in_use,
                                       uint64_t left)
{
    struct span *first = first_span(timeline, address);
    if (!first) {
        return TIMELINE_UNKNOWN;
    }
    if (in_use >= 0 && first->occupant.identity == code_identity_compiled(in_use)) {
        return TIMELINE_SUPERSEDED;
    }
    /* Loads at one address have to have rising stamps, also when both came too late. */
    uint64_t earliest = first->occupant.from + 1;
    retire_occupant(timeline, first, left > earliest ? left : earliest);
    return TIMELINE_GONE;
}

bool timeline_move(struct timeline *timeline, uint64_t from, uint64_t to, uint64_t now,
                   uint64_t *code_index)
{
    struct span *first = first_span(timeline, from);
    if (!first) {
        return false;
    }
    struct occupant occupant = first->occupant;
    *code_index = occupant.code_index;
    retire_occupant(timeline, first, now);
    occupant.code.end = to + (occupant.code.end - occupant.code.start);
    occupant.code.start = to;
    if (occupant.code.end > occupant.code.start) {
        occupy(timeline, &occupant, now);
    }
    return true;
}
