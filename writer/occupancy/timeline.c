/*
 * A range of the map is either live, and then part of one piece of code, all of it at first, less
 * when others came to overlap it; or retired, at one time. Addresses in no range have never been
 * used.
 *
 *   address  ---------------------------------------------------------------------->
 *
 *   before   [      A      )[ retired 3 )          [        B        )
 *   load C              [    C     )
 *   after    [    A     )[    C     )[3 )          [        B        )
 *             A is told that it is overlapped; C counts from now, for A was there
 *   unload A, D comes into B
 *   after    [ retired 9 )[   C     )[3 )          [  B  )[ D )[  B   )
 *             A is told that it is gone; B, overlapped, has two ranges
 *
 * What always holds between two calls:
 *
 *   T1  Ranges have a length, and none overlaps another.
 *   T2  A live range lies inside of its occupant's code.
 *   T3  An occupant's `spans` is how many ranges are its own; with the last one it ends.
 *   T4  An occupant that is whole has one range, which is all of its code.
 *   T5  Retired ranges of one time that touch are one range.
 *   T6  Nothing counts from before the session's start, and nobody leaves before he came.
 *   T7  Live ranges of one occupant are never neighbours: they would be one.
 */
#include "writer/occupancy/timeline.h"

#include "format/fnv1a.h"
#include "writer/invariant.h"
#include "writer/occupancy/range_map.h"
#include "writer/pool.h"

#include <stdlib.h>

/* One load, cut into two by what it overlaps, takes two ranges more than there were. */
enum { RANGES_PER_LOAD = 2 };

struct span {
    struct range range;
    uint64_t retired;          /* when, unless live */
    struct occupant *occupant; /* NULL: retired */
};

struct timeline {
    struct range_map *spans;
    struct pool occupants;
    uint64_t start;
    uint64_t version; /* of the ranges; never 0 */
    bool blind;       /* ran out of memory, so that what it would say of the past could be wrong */
};

static struct span *span_at(const struct timeline *timeline, uint64_t address)
{
    return range_map_at(timeline->spans, address);
}

static struct span *span_behind(const struct timeline *timeline, const struct span *span)
{
    return span_at(timeline, span->range.end);
}

/* ---- What always holds ---- */

static bool same_retirement(const struct span *a, const struct span *b)
{
    return !a->occupant && !b->occupant && a->retired == b->retired;
}

#ifdef JD_CHECK_INVARIANTS
static void check(const struct timeline *timeline)
{
    enum { ALL = 256 }; /* of more ranges only the first are looked at, or tests would take long */
    const struct span *before = NULL;
    const struct span *span = span_at(timeline, 0);
    for (int i = 0; span && i < ALL; i++) {
        const struct occupant *occupant = span->occupant;
        invariant(T1, span->range.start < span->range.end);
        invariant(T1, !before || before->range.end <= span->range.start);
        if (occupant) {
            invariant(T2, occupant->code.start <= span->range.start);
            invariant(T2, span->range.end <= occupant->code.end);
            invariant(T3, occupant->spans > 0);
            invariant(T4, !occupant->whole || occupant->spans == 1);
            invariant(T4, !occupant->whole || (span->range.start == occupant->code.start &&
                                               span->range.end == occupant->code.end));
            invariant(T6, occupant->from >= timeline->start);
        } else {
            invariant(T6, span->retired > timeline->start);
        }
        if (before && before->range.end == span->range.start) {
            invariant(T5, !same_retirement(before, span));
            invariant(T7, !occupant || before->occupant != occupant);
        }
        before = span;
        span = span_behind(timeline, span);
    }
}
#else
static void check(const struct timeline *timeline)
{
    (void)timeline;
}
#endif

/* ---- Occupants ---- */

/* Ends what is kept, or tells it something that is not the end. */
static void tell(struct occupant *occupant, enum occupant_event event)
{
    const bool is_end = event == OCCUPANT_GONE || event == OCCUPANT_OVER;
    struct kept *kept = occupant->kept;
    if (is_end) {
        occupant->kept = NULL;
    }
    while (kept) {
        struct kept *next = kept->next;
        kept->tell(kept, event);
        kept = next;
    }
}

/* One range less is the occupant's. */
static void leave(struct timeline *timeline, struct occupant *occupant)
{
    if (occupant && --occupant->spans == 0) {
        tell(occupant, OCCUPANT_GONE);
        pool_give_back(&timeline->occupants, occupant);
    }
}

/* Others have a part of it now. NULL is fine. */
static void overlap(struct occupant *occupant)
{
    if (occupant && occupant->whole) {
        occupant->whole = false;
        tell(occupant, OCCUPANT_OVERLAPPED);
    }
}

/* ---- Life ---- */

struct timeline *timeline_new(uint64_t start)
{
    struct timeline *timeline = calloc(1, sizeof(*timeline));
    if (!timeline) {
        return NULL;
    }
    timeline->start = start;
    timeline->version = 1;
    timeline->occupants = POOL_INIT(sizeof(struct occupant));
    timeline->spans = range_map_new(sizeof(struct span));
    if (!timeline->spans) {
        free(timeline);
        return NULL;
    }
    return timeline;
}

/* Of an occupant, or of the place of one that has left or is still to come. */
static void end(void *item)
{
    struct occupant *occupant = item;
    if (occupant->spans > 0) {
        tell(occupant, OCCUPANT_OVER);
    }
}

void timeline_free(struct timeline *timeline)
{
    if (!timeline) {
        return;
    }
    pool_visit(&timeline->occupants, end);
    pool_free(&timeline->occupants);
    range_map_free(timeline->spans);
    free(timeline);
}

/* ---- Looking ---- */

/* The range around an address, or the next one; a spot says it without looking, if it still can. */
static struct span *find(const struct timeline *timeline, struct timeline_spot *spot,
                         uint64_t address)
{
    if (spot && spot->version == timeline->version) {
        invariant(T1, spot->span == span_at(timeline, address));
        return spot->span;
    }
    struct span *span = span_at(timeline, address);
    if (spot) {
        *spot = (struct timeline_spot){.version = timeline->version, .span = span};
    }
    return span;
}

/* That of code whose compilation has this number. */
static uint64_t identity_compiled(int32_t compile_id)
{
    return (uint64_t)compile_id << 1 | 1;
}

/* What tells code from other code at the same place: the number of its compilation, or else its
 * name's hash. The lowest bit tells which. */
static uint64_t identity_of(const struct code *code)
{
    return code->facts.compile_id >= 0 ? identity_compiled(code->facts.compile_id)
                                       : fnv1a(FNV1A_START, code->name) << 1;
}

/* Whether the code that starts at an address starts with this range, which may be NULL. */
static bool is_first(const struct span *span, uint64_t address)
{
    return span && span->occupant && span->range.start == address &&
           span->occupant->code.start == address;
}

/* The same, if it is just this code. */
static bool is_first_of(const struct span *span, const struct code *code)
{
    return is_first(span, code->address) &&
           span->occupant->code.end == code->address + code->size &&
           span->occupant->identity == identity_of(code);
}

bool timeline_knows(const struct timeline *timeline, const struct code *code,
                    struct timeline_spot *spot)
{
    if (!code->replayed && code->facts.compile_id < 0) {
        return false;
    }
    const struct span *span = find(timeline, spot, code->address);
    return is_first_of(span, code) && !span->occupant->forgotten;
}

static bool is_taken(const struct span *span)
{
    return span->occupant && !span->occupant->forgotten;
}

void timeline_forget(struct occupant *occupant)
{
    if (occupant) {
        occupant->forgotten = true;
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

/* ---- Coming ---- */

/* Leaves no range in [start, end), splitting what reaches in; `span` is the first that might. Takes
 * one reserved range at most. */
static void clear(struct timeline *timeline, struct span *span, struct range range)
{
    if (span && span->range.start < range.start) {
        const struct span old = *span;
        overlap(old.occupant);
        span->range.end = range.start;
        if (old.range.end > range.end) {
            struct span *rest =
                range_map_insert(timeline->spans, (struct range){range.end, old.range.end});
            rest->retired = old.retired;
            rest->occupant = old.occupant;
            if (rest->occupant) {
                rest->occupant->spans++;
            }
            return;
        }
        span = span_at(timeline, range.start);
    }
    while (span && span->range.end <= range.end) {
        struct occupant *occupant = span->occupant;
        range_map_remove(timeline->spans, span);
        overlap(occupant);
        leave(timeline, occupant);
        span = span_at(timeline, range.start);
    }
    if (span && span->range.start < range.end) {
        overlap(span->occupant);
        span->range.start = range.end;
    }
}

/* When the last one who was in the range left it; who has not, does it now. `span` is the first
 * that might be in it. */
static uint64_t vacated(const struct timeline *timeline, const struct span *span,
                        struct range range, uint64_t now)
{
    uint64_t latest = timeline->start;
    for (; span && span->range.start < range.end; span = span_behind(timeline, span)) {
        uint64_t left = span->occupant ? now : span->retired;
        latest = left > latest ? left : latest;
    }
    return latest;
}

/* Gives it one range, which is all of its code; `span` is the first that might be in the way.
 * False: no memory. */
static bool occupy(struct timeline *timeline, struct occupant *occupant, struct span *span,
                   uint64_t now)
{
    if (timeline->blind || !range_map_reserve(timeline->spans, RANGES_PER_LOAD)) {
        timeline->blind = true;
        return false;
    }
    occupant->from = vacated(timeline, span, occupant->code, now);
    clear(timeline, span, occupant->code);
    span = range_map_insert(timeline->spans, occupant->code);
    span->occupant = occupant;
    occupant->spans++;
    occupant->whole = true;
    timeline->version++;
    return true;
}

/* Code that could not be written down is told of again: what is kept of it is another's. */
static void remember(struct occupant *occupant, uint64_t index)
{
    overlap(occupant);
    tell(occupant, OCCUPANT_GONE);
    occupant->whole = true;
    occupant->forgotten = false;
    occupant->index = index;
}

struct stay timeline_load(struct timeline *timeline, const struct code *code,
                          struct timeline_spot *spot, uint64_t index, uint64_t now)
{
    const struct range range = {code->address, code->address + code->size};
    struct stay stay = {.from = now, .index = index};
    if (range.end <= range.start) {
        return stay; /* empty, or around the end of the address space: it occupies nothing */
    }
    struct span *span = find(timeline, spot, range.start);
    if (is_first_of(span, code) && span->occupant->forgotten && span->range.end == range.end) {
        stay.occupant = span->occupant;
        remember(stay.occupant, index);
        stay.from = stay.occupant->from;
        return stay;
    }
    struct occupant *occupant = pool_take(&timeline->occupants);
    if (occupant) {
        *occupant = (struct occupant){.code = range, .identity = identity_of(code), .index = index};
    }
    if (!occupant || !occupy(timeline, occupant, span, now)) {
        timeline->blind = true;
        if (occupant) {
            pool_give_back(&timeline->occupants, occupant);
        }
        return stay;
    }
    check(timeline);
    stay.from = occupant->from;
    stay.occupant = occupant;
    return stay;
}

/* ---- Going ---- */

/* One range of two that touch, if they are of one retirement. Returns the one that `second`'s
 * addresses are in then. */
static struct span *join(struct timeline *timeline, struct span *first, struct span *second)
{
    if (!first || !second || first->range.end != second->range.start ||
        !same_retirement(first, second)) {
        return second;
    }
    uint64_t end = second->range.end;
    range_map_remove(timeline->spans, second);
    first->range.end = end;
    return first;
}

/* Makes a range retired, and one with its neighbours where they are of the same time. Returns the
 * range that it is part of then. */
static struct span *retire(struct timeline *timeline, struct span *span, uint64_t now)
{
    span->occupant = NULL;
    span->retired = now;
    if (span->range.start > 0) {
        span = join(timeline, span_at(timeline, span->range.start - 1), span);
    }
    (void)join(timeline, span, span_behind(timeline, span));
    return span;
}

/* Retires all ranges of the occupant whose first one this is; whoever calls holds one more, so that
 * it does not end. */
static void retire_occupant(struct timeline *timeline, struct span *span, uint64_t now)
{
    struct occupant *occupant = span->occupant;
    const uint64_t end = occupant->code.end;
    timeline->version++;
    for (; span && span->range.start < end; span = span_behind(timeline, span)) {
        if (span->occupant == occupant) {
            span = retire(timeline, span, now);
            occupant->spans--;
        }
    }
}

enum timeline_unloaded timeline_unload(struct timeline *timeline, uint64_t address, int32_t in_use,
                                       uint64_t left)
{
    struct span *first = span_at(timeline, address);
    if (!is_first(first, address)) {
        return TIMELINE_UNKNOWN;
    }
    struct occupant *occupant = first->occupant;
    if (in_use >= 0 && occupant->identity == identity_compiled(in_use)) {
        return TIMELINE_SUPERSEDED;
    }
    /* Loads at one address have to have rising stamps, also when both came too late. */
    uint64_t earliest = occupant->from + 1;
    occupant->spans++;
    retire_occupant(timeline, first, left > earliest ? left : earliest);
    invariant(T3, occupant->spans == 1);
    leave(timeline, occupant);
    check(timeline);
    return TIMELINE_GONE;
}

bool timeline_move(struct timeline *timeline, uint64_t from, uint64_t to, uint64_t now,
                   struct stay *stay)
{
    struct span *first = span_at(timeline, from);
    if (!is_first(first, from)) {
        return false;
    }
    struct occupant *occupant = first->occupant;
    *stay = (struct stay){.from = now, .index = occupant->index, .occupant = occupant};
    occupant->spans++;
    retire_occupant(timeline, first, now);
    occupant->code.end = to + (occupant->code.end - occupant->code.start);
    occupant->code.start = to;
    bool there = occupant->code.end > to && occupy(timeline, occupant, span_at(timeline, to), now);
    if (there) {
        tell(occupant, OCCUPANT_MOVED);
    } else {
        stay->occupant = NULL;
    }
    leave(timeline, occupant);
    check(timeline);
    return true;
}
