#include "writer/occupancy/occupancy.h"

#include "writer/invariant.h"
#include "writer/process.h"
#include "writer/stamp.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

/* ---- The gate ---- */

/*
 * A door for one thread at a time, and for nobody in a fork of the process (process.h), where
 * neither the files behind it nor the lock, perhaps locked for ever, are ours.
 */

struct gate {
    pthread_mutex_t lock; /* of all that is behind the gate */
    unsigned generation;
};

/* 0 or a negative errno. */
static int gate_init(struct gate *gate)
{
    int error = process_watch_forks();
    if (error) {
        return error;
    }
    *gate = (struct gate){.generation = process_generation()};
    return -pthread_mutex_init(&gate->lock, NULL);
}

/* Whether this is the process that gate_init was called in. If not, keep out. */
static bool gate_is_ours(const struct gate *gate)
{
    return process_generation() == gate->generation;
}

/* 0: the caller is inside, and calls gate_leave when done; -EPIPE: it has to stay out. */
static int gate_enter(struct gate *gate)
{
    if (!gate_is_ours(gate)) {
        return -EPIPE;
    }
    pthread_mutex_lock(&gate->lock);
    return 0;
}

static void gate_leave(struct gate *gate)
{
    pthread_mutex_unlock(&gate->lock);
}

static void gate_destroy(struct gate *gate)
{
    if (gate_is_ours(gate)) {
        pthread_mutex_destroy(&gate->lock);
    }
}

/* ---- Occupancy ---- */

struct occupancy {
    struct gate gate; /* to everything below but `swept` */
    struct timeline *timeline;
    bool tsc;
    uint64_t start;
    uint64_t last_stamp;
    atomic_uint_least64_t swept; /* when occupancy_swept was called last; 0: never */
    struct {
        struct sink *sink;
        uint64_t dropped;
    } places[OCCUPANCY_SINKS_MAX];
    unsigned count;
};

/* The time, later than any before: two events in one tick still have an order. */
static uint64_t next_stamp(struct occupancy *occupancy)
{
    uint64_t now = stamp_now(occupancy->tsc);
    occupancy->last_stamp = now > occupancy->last_stamp ? now : occupancy->last_stamp + 1;
    return occupancy->last_stamp;
}

/* perf names the ELF file that it makes of a LOAD after the index, so it is unique even when a
 * second session of this process writes a dump into the same directory. */
static uint64_t next_index(void)
{
    static atomic_uint_least64_t last;
    return atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
}

int occupancy_new(bool tsc, struct occupancy **out)
{
    struct occupancy *occupancy = calloc(1, sizeof(*occupancy));
    if (!occupancy || gate_init(&occupancy->gate) != 0) {
        free(occupancy);
        return -ENOMEM;
    }
    occupancy->tsc = tsc;
    stamp_begin();
    occupancy->start = next_stamp(occupancy);
    occupancy->timeline = timeline_new(occupancy->start);
    if (!occupancy->timeline) {
        gate_destroy(&occupancy->gate);
        free(occupancy);
        return -ENOMEM;
    }
    *out = occupancy;
    return 0;
}

uint64_t occupancy_start(const struct occupancy *occupancy)
{
    return occupancy->start;
}

void occupancy_add(struct occupancy *occupancy, struct sink *sink)
{
    occupancy->places[occupancy->count++].sink = sink;
}

/* Whether any sink works; the lock is held. */
static bool any_works(const struct occupancy *occupancy)
{
    for (unsigned i = 0; i < occupancy->count; i++) {
        if (!occupancy->places[i].sink->failed) {
            return true;
        }
    }
    return false;
}

/* Hands one piece to every sink. A piece that one of them could not write is not known: when it is
 * told of again, all get it again. The lock is held. */
static int load_one(struct occupancy *occupancy, const struct code *code,
                    struct timeline_spot *spot)
{
    lock_is_held(&occupancy->gate.lock);
    const struct stay stay =
        timeline_load(occupancy->timeline, code, spot, next_index(), next_stamp(occupancy));
    int first_error = 0;
    for (unsigned i = 0; i < occupancy->count; i++) {
        struct sink *sink = occupancy->places[i].sink;
        int error = sink->failed ? -EPIPE : sink->ops->load(sink, code, &stay);
        if (error) {
            occupancy->places[i].dropped++;
            first_error = first_error ? first_error : error;
            if (!sink->failed) {
                timeline_forget(stay.occupant);
            }
        }
    }
    occupant_keep(stay.occupant, code->kept); /* behind the sinks, who see what it keeps alive */
    return first_error;
}

/* Loads the parts of a replayed stub in which nothing else is known to live. */
static int load_gaps(struct occupancy *occupancy, const struct code *code)
{
    uint64_t end = code->address + code->size;
    struct code gap = *code;
    gap.kept = NULL; /* nobody keeps anything of a stub's parts */
    uint64_t gap_end = code->address;
    int error = 0;
    while (!error && timeline_next_gap(occupancy->timeline, gap_end, end, &gap.address, &gap_end)) {
        gap.size = gap_end - gap.address;
        if (gap.size != code->size) { /* offsets are from the start of the whole */
            gap.facts = CODE_FACTS_UNKNOWN;
            gap.facts.kind = code->facts.kind;
        }
        if (code->bytes) {
            gap.bytes = (const char *)code->bytes + (gap.address - code->address);
        }
        error = load_one(occupancy, &gap, NULL);
    }
    return error;
}

bool occupancy_knows(struct occupancy *occupancy, const struct code *code,
                     struct timeline_spot *spot)
{
    if (gate_enter(&occupancy->gate) != 0) {
        return false;
    }
    bool known = (code->facts.compile_id >= 0 || code->name) &&
                 timeline_knows(occupancy->timeline, code, spot);
    gate_leave(&occupancy->gate);
    return known;
}

static void make_room(struct occupancy *occupancy, bool patient)
{
    for (unsigned i = 0; gate_is_ours(&occupancy->gate) && i < occupancy->count; i++) {
        struct sink *sink = occupancy->places[i].sink;
        if (sink->ops->make_room) {
            sink->ops->make_room(sink, patient);
        }
    }
}

bool occupancy_settle(struct occupancy *occupancy)
{
    bool settled = gate_is_ours(&occupancy->gate);
    for (unsigned i = 0; settled && i < occupancy->count; i++) {
        struct sink *sink = occupancy->places[i].sink;
        settled = !sink->ops->settle || sink->ops->settle(sink);
    }
    return settled;
}

int occupancy_load(struct occupancy *occupancy, const struct code *code, struct timeline_spot *spot)
{
    make_room(occupancy, code->patient); /* without the lock, which others wait for */
    int error = gate_enter(&occupancy->gate);
    if (error) {
        if (code->kept) {
            code->kept->tell(code->kept, OCCUPANT_OVER);
        }
        return error;
    }
    struct kept *left = code->kept;
    if (!any_works(occupancy)) {
        error = -EPIPE;
        for (unsigned i = 0; i < occupancy->count; i++) {
            occupancy->places[i].dropped++;
        }
    } else if (code->replayed && !code->method) {
        error = load_gaps(occupancy, code);
    } else if (!timeline_knows(occupancy->timeline, code, spot)) {
        error = load_one(occupancy, code, spot);
        left = NULL;
    }
    occupant_keep(NULL, left);
    gate_leave(&occupancy->gate);
    return error;
}

/* The lock is held. */
static int move_inside(struct occupancy *occupancy, uint64_t from, uint64_t to, uint64_t size)
{
    lock_is_held(&occupancy->gate.lock);
    struct stay stay;
    if (!timeline_move(occupancy->timeline, from, to, next_stamp(occupancy), &stay)) {
        return -ENOENT;
    }
    int first_error = 0;
    for (unsigned i = 0; i < occupancy->count; i++) {
        struct sink *sink = occupancy->places[i].sink;
        int error = sink->failed ? -EPIPE : sink->ops->move(sink, from, to, size, &stay);
        occupancy->places[i].dropped += error != 0;
        first_error = first_error ? first_error : error;
    }
    return first_error;
}

int occupancy_move(struct occupancy *occupancy, uint64_t from, uint64_t to, uint64_t size)
{
    int error = gate_enter(&occupancy->gate);
    if (!error) {
        error = any_works(occupancy) ? move_inside(occupancy, from, to, size) : -EPIPE;
        gate_leave(&occupancy->gate);
    }
    return error;
}

void occupancy_unload(struct occupancy *occupancy, uint64_t address, int32_t in_use)
{
    if (gate_enter(&occupancy->gate) == 0) {
        uint64_t swept = atomic_load_explicit(&occupancy->swept, memory_order_relaxed);
        (void)timeline_unload(occupancy->timeline, address, in_use,
                              swept ? swept : next_stamp(occupancy));
        gate_leave(&occupancy->gate);
    }
}

void occupancy_swept(struct occupancy *occupancy)
{
    atomic_store_explicit(&occupancy->swept, stamp_now(occupancy->tsc), memory_order_relaxed);
}

bool occupancy_is_dead(struct occupancy *occupancy)
{
    if (gate_enter(&occupancy->gate) != 0) {
        return true;
    }
    bool dead = !any_works(occupancy);
    gate_leave(&occupancy->gate);
    return dead;
}

void occupancy_stats(struct occupancy *occupancy, unsigned sink, struct sink_stats *stats)
{
    *stats = (struct sink_stats){.failed = true};
    if (gate_enter(&occupancy->gate) == 0) {
        struct sink *asked = occupancy->places[sink].sink;
        asked->ops->stats(asked, stats);
        stats->dropped += occupancy->places[sink].dropped;
        stats->failed |= asked->failed;
        gate_leave(&occupancy->gate);
    }
}

void occupancy_close(struct occupancy *occupancy)
{
    if (!occupancy) {
        return;
    }
    bool in_fork = !gate_is_ours(&occupancy->gate);
    for (unsigned i = 0; i < occupancy->count; i++) {
        struct sink *sink = occupancy->places[i].sink;
        sink->ops->close(sink, in_fork);
    }
    timeline_free(occupancy->timeline);
    gate_destroy(&occupancy->gate);
    free(occupancy);
}
