/*
 * A profile's stacks. The tree's nodes are found by hash; but two samples of a thread have most of
 * their outer frames in common, and of those nothing is looked up: they are compared with the
 * thread's last stack.
 */
#include "jdtool/base/array.h"
#include "jdtool/sinks/profile_private.h"

#include <errno.h>

/*
 * Sets *id to the child; PROFILE_NONE: there is no room for a further one. What a new stack adds
 * are nodes in a row, each the first child of the one before. So a node's first child is mostly
 * beside it, and only where it is not the hash map has it.
 */
static int intern_node(struct profile *profile, struct profile_node wanted, uint32_t *id)
{
    struct profile_private *private = profile->private;
    uint32_t beside = wanted.parent == PROFILE_NONE ? 0 : wanted.parent + 1;
    uint64_t hash = (uint64_t)wanted.parent << 32 | wanted.location;
    if (beside < profile->node_count) { /* else it has no child */
        const struct profile_node *first = &profile->nodes[beside];
        if (first->parent == wanted.parent && first->location == wanted.location) {
            *id = beside;
            return 0;
        }
        struct hash_map_cursor cursor = hash_map_start(&private->nodes, hash);
        while ((*id = hash_map_next(&private->nodes, &cursor)) != HASH_MAP_NONE) {
            const struct profile_node *known = &profile->nodes[*id];
            if (known->parent == wanted.parent && known->location == wanted.location) {
                return 0;
            }
        }
    }
    if (profile->node_count >= PROFILE_NODES_MAX) {
        *id = PROFILE_NONE;
        return 0;
    }
    if (array_reserve(&profile->nodes, profile->node_count, &private->node_room,
                      sizeof *profile->nodes) ||
        (beside != profile->node_count &&
         hash_map_add(&private->nodes, hash, profile->node_count))) {
        return -ENOMEM;
    }
    *id = profile->node_count++;
    profile->nodes[*id] = wanted;
    return 0;
}

/* Whether a location and its lines cannot tell them apart. */
static bool same_frame(const struct resolved_frame *a, const struct resolved_frame *b)
{
    if (a->origin && a->origin == b->origin) {
        return true;
    }
    return a->address == b->address && a->module_address == b->module_address &&
           a->method == b->method && a->code == b->code && a->module == b->module &&
           a->line == b->line && a->kind == b->kind && a->tier == b->tier && a->is_osr == b->is_osr;
}

/*
 * How many of the outer frames are those of the stack before. Frames of one machine address are
 * known together or not at all: the outermost of them is the one that is not inlined.
 */
static uint32_t known_frames(const struct profile_recent *recent,
                             const struct resolved_sample *sample)
{
    uint32_t count = sample->frame_count;
    uint32_t least = count < recent->count ? count : recent->count;
    if (least == 0) {
        return 0; /* and perhaps no array at all */
    }
    const struct resolved_frame *last = &sample->frames[count];
    uint32_t same = 0;
    while (same < least && same_frame(&recent->frames[same], --last)) {
        same++;
    }
    bool is_cut = (same < recent->count && recent->frames[same].kind == RESOLVED_INLINED) ||
                  (same < count && sample->frames[count - same - 1].kind == RESOLVED_INLINED);
    while (is_cut && same > 0) {
        same--;
        is_cut = recent->frames[same].kind == RESOLVED_INLINED;
    }
    return same;
}

static int make_room(struct profile_recent *recent, uint32_t count)
{
    if (count <= recent->room) {
        return 0;
    }
    uint32_t room = recent->room ? recent->room : 64;
    while (room < count) {
        room = room < UINT32_MAX / 2 ? room * 2 : count;
    }
    struct resolved_frame *frames = realloc(recent->frames, room * sizeof *frames);
    recent->frames = frames ? frames : recent->frames;
    uint32_t *nodes = realloc(recent->nodes, room * sizeof *nodes);
    recent->nodes = nodes ? nodes : recent->nodes;
    if (!frames || !nodes) {
        return -ENOMEM;
    }
    recent->room = room;
    return 0;
}

/* The same for frames of one machine address, most of which were looked up before. */
static int location_of(struct profile *profile, const struct resolved_frame *frames, uint32_t count,
                       uint32_t *id)
{
    uint32_t origin = frames[0].origin;
    struct profile_origin *known = &profile->private->origins[origin % PROFILE_ORIGINS];
    if (origin && known->origin == origin) {
        *id = known->location;
        return 0;
    }
    int err = profile_location_of(profile, frames, count, id);
    if (!err && origin) {
        *known = (struct profile_origin){origin, *id};
    }
    return err;
}

int profile_stack_of(struct profile *profile, struct profile_recent *recent,
                     const struct resolved_sample *sample, uint32_t *node)
{
    uint32_t count = sample->frame_count;
    if (make_room(recent, count)) {
        return -ENOMEM;
    }
    uint32_t known = known_frames(recent, sample);
    *node = known ? recent->nodes[known - 1] : PROFILE_NONE;
    recent->count = known;
    /* From the root in: [first, end) are the frames of one machine address. */
    for (uint32_t end = count - known; end > 0;) {
        uint32_t first = end - 1;
        while (first > 0 && sample->frames[first - 1].kind == RESOLVED_INLINED) {
            first--;
        }
        struct profile_node wanted = {.parent = *node};
        uint32_t child;
        if (first > 0) { /* the next location's place is far from this one's */
            uint32_t next = sample->frames[first - 1].origin;
            __builtin_prefetch(&profile->private->origins[next % PROFILE_ORIGINS]);
        }
        int err = location_of(profile, &sample->frames[first], end - first, &wanted.location);
        if (!err) {
            err = intern_node(profile, wanted, &child);
        }
        if (err) {
            return err;
        }
        if (child == PROFILE_NONE) {
            profile->cut_stacks++;
            return 0;
        }
        *node = child;
        while (end > first) {
            recent->frames[recent->count] = sample->frames[--end];
            recent->nodes[recent->count++] = child;
        }
    }
    return 0;
}
