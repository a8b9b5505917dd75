/*
 * A living piece of code, and what others keep of it.
 *
 * Whoever has to know something of code for as long as it lives hangs it on the code's occupant,
 * which owns it from then on, and needs no map of addresses of its own:
 *
 *     timeline      span     span          span        ranges of addresses
 *                      \    /                |
 *                     occupant            occupant     one for each living piece of code
 *                         |
 *                       kept -> kept -> kept           methods it mentions, its record, its number
 *
 * What happens to the code is told to each of them, in this order:
 *
 *     OVERLAPPED   once at most: other code has come over a part of it, though nobody said that it
 *                  is gone. Who takes that for its end lets go now.
 *     MOVED        it is at another address.
 *     GONE | OVER  the last that is told: the code is gone, or the session is over.
 */
#ifndef JD_WRITER_OCCUPANT_H
#define JD_WRITER_OCCUPANT_H

#include "writer/occupancy/range_map.h"

#include <stdbool.h>
#include <stdint.h>

enum occupant_event {
    OCCUPANT_OVERLAPPED,
    OCCUPANT_MOVED,
    OCCUPANT_GONE,
    OCCUPANT_OVER, /* no other thread is at work any more, and in a fork no lock may be taken */
};

/* The first member of what is kept. */
struct kept {
    struct kept *next;
    /* Told under the occupancy's lock. After GONE or OVER nobody refers to it any more. */
    void (*tell)(struct kept *kept, enum occupant_event event);
};

struct occupant {
    struct range code; /* all of it, also where others overlap it now */
    uint64_t identity; /* identity_of, in timeline.c */
    uint64_t from;     /* when it began: later than any other's that overlapped it */
    uint64_t index;    /* unique in the process, and rising: perf names files after it */
    struct kept *kept;
    uint32_t spans; /* ranges of the timeline that are this one's */
    bool whole;     /* nobody has overlapped any part */
    bool forgotten; /* it could not be written down: see timeline_forget */
};

/* A piece of code's stay at one address. */
struct stay {
    uint64_t from;             /* when it began */
    uint64_t index;            /* the code's */
    struct occupant *occupant; /* NULL: it occupies nothing, or there was no memory to know it */
};

/* Hands something over. No occupant: the code is known to live nowhere, and `kept` ends at once. */
static inline void occupant_keep(struct occupant *occupant, struct kept *kept)
{
    if (kept && occupant) {
        kept->next = occupant->kept;
        occupant->kept = kept;
    } else if (kept) {
        kept->tell(kept, OCCUPANT_GONE);
    }
}

#endif
