/*
 * How much each method of a profile took, by itself and with what it called, by event; and the same
 * of its lines, its callers and the forms in which it ran. What is on a stack several times counts
 * once. By itself the innermost method took it, and beside it the class that was allocated or
 * whatever else the event is about. A wait is counted to "[idle]", else it and a wake-up to the
 * innermost Java method, and where there is none, to the innermost function outside the kernel.
 */
#ifndef JD_TOOL_METHOD_TALLIES_H
#define JD_TOOL_METHOD_TALLIES_H

#include "jdtool/base/hash_map.h"
#include "jdtool/profile/profile.h"

struct tally {
    uint32_t function; /* this and what it is are its key */
    uint32_t what;     /* see struct method_tallies */
    uint32_t stamp;    /* the last sample that was counted, so that it counts once */
    uint32_t self_samples, total_samples;
};

#define TALLY_KEY (2 * sizeof(uint32_t))

/* Tallies of one sort, with weights by event behind one another: selfs, then totals. */
struct tallies {
    struct tally *list;
    uint64_t *weights;
    uint32_t count, room, weights_room;
    struct hash_map map;
};

struct method_tallies {
    const struct profile *profile;
    uint32_t events;
    struct tallies methods; /* what: 0 */
    struct tallies lines;   /* what: a source line of the method */
    struct tallies callers; /* what: the function that called it; totals alone */
    struct tallies forms;   /* what: METHOD_FORM, how it ran */
};

/* kind: enum resolved_kind; tier and is_osr: of a compiled method, else 0. */
#define METHOD_FORM(kind, tier, is_osr) ((uint32_t)(kind) << 8 | (uint32_t)(tier) << 1 | (is_osr))
#define METHOD_FORM_KIND(form)          ((form) >> 8)
#define METHOD_FORM_TIER(form)          ((form) >> 1 & 0x7f)
#define METHOD_FORM_IS_OSR(form)        ((form)&1)

/* Counts all samples of the profile, which stays the caller's. Free the result on failure, too. 0
 * or -ENOMEM. */
int method_tallies_make(const struct profile *profile, struct method_tallies *made);
void method_tallies_free(struct method_tallies *made);

/* Weights of a tally: the first `events` are its own, as many totals follow. */
const uint64_t *method_tally_weights(const struct method_tallies *made,
                                     const struct tallies *tallies, uint32_t id);

/* Ids of all tallies, the heaviest by that event's self, then its total, first. */
struct tallies_order {
    uint32_t *list;
    uint32_t
        *first; /* by function: where its tallies begin; the tallies' count where it has none */
};

/* by_function: those of a method behind one another; else `first` means nothing. Free the order on
 * failure, too. 0 or -ENOMEM. */
int method_tallies_order(const struct method_tallies *made, const struct tallies *tallies,
                         uint32_t event, bool by_function, struct tallies_order *order);
void tallies_order_free(struct tallies_order *order);

/* The tally at a place of an order by function; NULL: it is not that function's. */
static inline const struct tally *tally_at(const struct tallies *tallies,
                                           const struct tallies_order *order, uint32_t place,
                                           uint32_t function)
{
    const struct tally *tally = place < tallies->count ? &tallies->list[order->list[place]] : NULL;
    return tally && tally->function == function ? tally : NULL;
}

#endif
