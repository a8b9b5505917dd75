/*
 * How the tree is built
 *
 * HotSpot describes its code place by place, each with a full stack from the innermost inlined
 * method out to the compiled one, and with DebugNonSafepoints there are thousands of places a
 * method. Neighbours share most of their stack: what a frame comes to is worked out once, and the
 * frames that it calls refer to it.
 *
 * A node is one method inlined at one line of one parent node; it is found again by a hash over
 * these three. New nodes get the next number, so parents come before their children, but when the
 * code returns to an earlier part of the tree the numbers are no longer depth-first: then they are
 * dealt out again at the end.
 *
 * C2 and calls that it inlines late (boxing, method handles; JDK 11 to 25 at least)
 *
 * Each node of C2's graph that is made without debug information gets the current one
 * (Compile::default_node_notes). LateInlineCallGenerator::do_late_inline_helper sets that to the
 * call's, and nobody takes it back: whatever is made afterwards, as by loop unrolling, is said to
 * be at a call of the method that happened to be inlined last. Copies of what has information get
 * the wrong one as well. HotSpot has no doubts about these places, nor has anybody who asks it.
 * They are known by this: they are at a call that was inlined, and neither in what was inlined nor
 * at a call instruction. What is there by right is little (checks of the receiver), and the places
 * around it say the same. So such a place is taken to be in what the next ones before and behind
 * it have in common.
 */
#include "agent/methods/inlines.h"

#include "agent/methods/source_map.h"
#include "hotspot/call.h"
#include "writer/array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NONE INLINE_NO_FRAME

#ifdef __aarch64__
#define MACHINE EM_AARCH64
#else
#define MACHINE EM_X86_64
#endif

/* A node while the tree grows. */
struct growing_node {
    method_key key;
    const struct java_method *method;
    uint32_t parent;
    uint32_t call_line;
    int32_t call_bci;    /* the last one's that was kept */
    uint32_t first_call; /* that was inlined into it */
    uint32_t first_child;
    uint32_t last_child;
    uint32_t next_sibling;
    uint32_t near_line; /* see line_table_find */
    uint32_t slot;      /* in the hash */
    uint32_t number;    /* in depth-first order */
};

/* A method at a bytecode, as one frame called it. */
struct frame {
    method_key key;
    int32_t bci;
    uint32_t own; /* the method's node; NONE: it is unknown */
    /* Where code is, of the frame or, where nothing is known of that, of the ones around it. */
    uint32_t node; /* the method's, or what the compiler of its language inlined into it there */
    uint32_t line; /* in that one's file */
    const struct source_file *file; /* of the row */
    uint32_t file_line;
};

/* Of C2's code: a bytecode of a node whose call was inlined; */
struct inlined_call {
    int32_t bci;
    uint32_t next; /* of the same node, NONE: it is the last */
};

/* and a place, as it was told. */
struct place {
    uint32_t end;
    uint32_t node, line;
    int32_t bci; /* of the innermost frame; -1: none, or of no bytecode */
    const struct source_file *file;
    uint32_t file_line;
};

struct inline_builder {
    enum inline_depth depth;
    const uint8_t *c2; /* its bytes; NULL: it is another compiler's */
    uint32_t size;
    method_resolver resolve;
    void *context;
    bool failed;          /* out of memory */
    bool depth_first;     /* the nodes' indices are */
    uint32_t end;         /* of what was added */
    struct frame outside; /* what is known of code in no frame */

    struct growing_node *growing;
    uint32_t growing_count;
    size_t growing_room;
    struct frame *frames; /* where they are added by stacks, those of the last one */
    uint32_t frame_count;
    size_t frame_room;
    struct inlined_call *calls;
    uint32_t call_count;
    size_t call_room;
    struct place *places;
    uint32_t place_count;
    size_t place_room;
    uint32_t *slots; /* hash of the nodes, NONE: free; a power of two */
    uint32_t slot_count;
    struct code_row *rows;
    uint32_t row_count;
    size_t row_room;
    struct inline_range *ranges;
    uint32_t range_count;
    size_t range_room;
    struct inline_node *nodes;
    size_t node_room;
};

struct inline_builder *inline_builder_new(void)
{
    return calloc(1, sizeof(struct inline_builder));
}

void inline_builder_free(struct inline_builder *builder)
{
    if (!builder) {
        return;
    }
    free(builder->growing);
    free(builder->frames);
    free(builder->calls);
    free(builder->places);
    free(builder->slots);
    free(builder->rows);
    free(builder->ranges);
    free(builder->nodes);
    free(builder);
}

static uint32_t slot_of(const struct inline_builder *builder, uint32_t parent, method_key key,
                        uint32_t call_line)
{
    uint64_t hash = key * UINT64_C(0x9e3779b97f4a7c15);
    hash ^= (((uint64_t)parent << 32) | call_line) * UINT64_C(0xc2b2ae3d27d4eb4f);
    hash ^= hash >> 29;
    return (uint32_t)(hash * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (builder->slot_count - 1);
}

static void insert_slot(struct inline_builder *builder, uint32_t index)
{
    struct growing_node *node = &builder->growing[index];
    uint32_t slot = slot_of(builder, node->parent, node->key, node->call_line);
    while (builder->slots[slot] != NONE) {
        slot = (slot + 1) & (builder->slot_count - 1);
    }
    builder->slots[slot] = index;
    node->slot = slot;
}

/* Keeps the hash at most half full. */
static bool reserve_slots(struct inline_builder *builder)
{
    if (builder->growing_count * 2 < builder->slot_count) {
        return true;
    }
    uint32_t count = builder->slot_count ? builder->slot_count * 2 : 64;
    uint32_t *slots = realloc(builder->slots, count * sizeof(*slots));
    if (!slots) {
        return false;
    }
    builder->slots = slots;
    builder->slot_count = count;
    memset(slots, 0xff, count * sizeof(*slots));
    for (uint32_t i = 0; i < builder->growing_count; i++) {
        insert_slot(builder, i);
    }
    return true;
}

static uint32_t new_node(struct inline_builder *builder, uint32_t parent, uint32_t call_line,
                         method_key key, const struct java_method *method)
{
    uint32_t index = builder->growing_count;
    if (!ARRAY_RESERVE(builder->growing, builder->growing_room, index + 1) ||
        !reserve_slots(builder)) {
        builder->failed = true;
        return NONE;
    }
    struct growing_node *nodes = builder->growing;
    nodes[index] = (struct growing_node){.key = key,
                                         .method = method,
                                         .parent = parent,
                                         .call_line = call_line,
                                         .call_bci = INT32_MIN,
                                         .first_call = NONE,
                                         .first_child = NONE,
                                         .last_child = NONE,
                                         .next_sibling = NONE,
                                         .number = index};
    builder->growing_count++;
    if (parent != NONE) {
        if (nodes[parent].last_child == NONE) {
            nodes[parent].first_child = index;
            /* Depth-first so far only if nothing was numbered since the parent itself. */
            builder->depth_first &= parent + 1 == index;
        } else {
            nodes[nodes[parent].last_child].next_sibling = index;
            /* The numbers between belong to the elder sibling's descendants, or they do not. */
            uint32_t above = index - 1;
            while (above > parent) {
                above = nodes[above].parent;
            }
            builder->depth_first &= above == parent;
        }
        nodes[parent].last_child = index;
    }
    insert_slot(builder, index);
    return index;
}

/*
 * The node of a method called at `call_line` of `parent`; NONE when the method is unknown. `method`
 * is NULL where its key and id have to tell it.
 */
static uint32_t child_node(struct inline_builder *builder, uint32_t parent, uint32_t call_line,
                           method_key key, const void *id, const struct java_method *method)
{
    const struct growing_node *nodes = builder->growing;
    for (uint32_t slot = slot_of(builder, parent, key, call_line); builder->slots[slot] != NONE;
         slot = (slot + 1) & (builder->slot_count - 1)) {
        uint32_t index = builder->slots[slot];
        if (nodes[index].parent == parent && nodes[index].key == key &&
            nodes[index].call_line == call_line) {
            return index;
        }
    }
    if (!method) {
        method = builder->resolve(builder->context, key, id);
    }
    return method ? new_node(builder, parent, call_line, key, method) : NONE;
}

void inline_builder_begin(struct inline_builder *builder, enum inline_depth depth, uint32_t size,
                          method_key root_key, const struct java_method *root,
                          method_resolver resolve, void *context)
{
    builder->depth = depth;
    builder->size = size;
    builder->resolve = resolve;
    builder->context = context;
    builder->failed = false;
    builder->depth_first = true;
    builder->end = 0;
    /* Not the whole hash: one large method must not make all the small ones behind it slow. */
    for (uint32_t i = 0; i < builder->growing_count; i++) {
        builder->slots[builder->growing[i].slot] = NONE;
    }
    builder->growing_count = 0;
    builder->frame_count = 0;
    builder->call_count = builder->place_count = 0;
    builder->c2 = NULL;
    builder->row_count = 0;
    builder->range_count = 0;
    builder->outside = (struct frame){
        .own = NONE, .file = root->method.file, .file_line = root->method.first_line};
    new_node(builder, NONE, 0, root_key, root);
}

void inline_builder_of_c2(struct inline_builder *builder, const uint8_t *bytes)
{
    builder->c2 = bytes;
}

static void add_row(struct inline_builder *builder, uint32_t offset, const struct source_file *file,
                    uint32_t line)
{
    if (line == 0 || !file) {
        return; /* the row before goes on */
    }
    if (builder->row_count > 0) {
        const struct code_row *last = &builder->rows[builder->row_count - 1];
        if (last->line == line && last->file == file) {
            return;
        }
    }
    if (!ARRAY_RESERVE(builder->rows, builder->row_room, builder->row_count + 1)) {
        builder->failed = true;
        return;
    }
    /* Nothing known of what stood before the first row: let it start with the code. */
    builder->rows[builder->row_count] =
        (struct code_row){.offset = builder->row_count ? offset : 0, .line = line, .file = file};
    builder->row_count++;
}

static void add_range(struct inline_builder *builder, uint32_t offset, uint32_t node, uint32_t line)
{
    if (builder->range_count > 0) {
        const struct inline_range *last = &builder->ranges[builder->range_count - 1];
        if (last->node == node && last->line == line) {
            return;
        }
    }
    if (!ARRAY_RESERVE(builder->ranges, builder->range_room, builder->range_count + 1)) {
        builder->failed = true;
        return;
    }
    builder->ranges[builder->range_count++] =
        (struct inline_range){.offset = offset, .node = node, .line = line};
}

/* A frame's line, and the node that it is in: see source_map.h. */
static void locate(struct inline_builder *builder, struct frame *frame)
{
    struct growing_node *own = &builder->growing[frame->own];
    struct source_line at = source_map_find(
        own->method->map,
        line_table_find(own->method->lines, own->method->line_count, frame->bci, &own->near_line));
    frame->node = frame->own;
    frame->line = at.line;
    if (at.inlined && builder->depth != INLINE_OFF) {
        const method_key key = (method_key)(uintptr_t)at.inlined;
        uint32_t node = child_node(builder, frame->own, at.line, key, NULL, at.inlined);
        if (node != NONE) {
            frame->node = node;
            frame->line = at.inlined_line;
        }
    }
    const struct java_method *method = builder->growing[frame->node].method;
    if (frame->line != 0 && method->method.file) {
        frame->file = method->method.file;
        frame->file_line = frame->line;
    }
}

/* The node `own` is called by a bytecode of `node`, mostly by the same one as before. */
static void keep_call(struct inline_builder *builder, uint32_t own, uint32_t node, int32_t bci)
{
    if (builder->growing[own].call_bci == bci) {
        return;
    }
    if (!ARRAY_RESERVE(builder->calls, builder->call_room, builder->call_count + 1)) {
        builder->failed = true;
        return;
    }
    builder->growing[own].call_bci = bci;
    builder->calls[builder->call_count] =
        (struct inlined_call){bci, builder->growing[node].first_call};
    builder->growing[node].first_call = builder->call_count++;
}

uint32_t inline_builder_frame(struct inline_builder *builder, uint32_t sender, method_key key,
                              const void *id, int32_t bci)
{
    const uint32_t number = builder->frame_count;
    if (!ARRAY_RESERVE(builder->frames, builder->frame_room, number + 1)) {
        builder->failed = true;
        return NONE;
    }
    struct frame frame = sender == NONE ? builder->outside : builder->frames[sender];
    if (sender == NONE) { /* else it is not a stack of this method's */
        frame.own = key == builder->growing[0].key ? 0 : NONE;
    } else if (builder->depth == INLINE_OFF) {
        frame.own = NONE;
    } else if (frame.own != NONE) { /* else what an unknown method called is left out, too */
        frame.own = child_node(builder, frame.node, frame.line, key, id, NULL);
        if (frame.own != NONE && builder->c2) {
            keep_call(builder, frame.own, frame.node, frame.bci);
        }
    }
    frame.key = key;
    frame.bci = bci;
    if (frame.own != NONE) {
        locate(builder, &frame);
    }
    builder->frames[number] = frame;
    builder->frame_count = number + 1;
    return number;
}

static struct place place_of(uint32_t end, const struct frame *at)
{
    return (struct place){.end = end,
                          .node = at->node,
                          .line = at->line,
                          .bci = at->own == NONE ? -1 : at->bci,
                          .file = at->file,
                          .file_line = at->file_line};
}

static void add_place(struct inline_builder *builder, uint32_t offset, const struct place *at)
{
    add_row(builder, offset, at->file, at->file_line);
    if (builder->depth == INLINE_FULL) {
        add_range(builder, offset, at->node, at->line);
    }
}

static void keep_place(struct inline_builder *builder, const struct place *place)
{
    if (!ARRAY_RESERVE(builder->places, builder->place_room, builder->place_count + 1)) {
        builder->failed = true;
        return;
    }
    builder->places[builder->place_count++] = *place;
}

/* Whether a place is at a call that was inlined, and at none that is there. */
static bool is_stray(const struct inline_builder *builder, const struct place *place)
{
    const struct inlined_call *calls = builder->calls;
    uint32_t call = place->bci < 0 ? NONE : builder->growing[place->node].first_call;
    while (call != NONE && calls[call].bci != place->bci) {
        call = calls[call].next;
    }
    return call != NONE && !is_behind_call(MACHINE, builder->c2, place->end);
}

/* Where code is between two places: in the innermost node of both, on the line by which that leads
 * to the second. */
static struct place between(const struct inline_builder *builder, uint32_t before,
                            const struct place *behind)
{
    const struct growing_node *nodes = builder->growing;
    struct place made = *behind;
    /* A node stands behind its parent: the later of two cannot be the other one's. */
    while (before != made.node) {
        if (before > made.node) {
            before = nodes[before].parent;
            continue;
        }
        made.line = made.file_line = nodes[made.node].call_line;
        made.node = nodes[made.node].parent;
        made.file = nodes[made.node].method->method.file;
    }
    return made;
}

static void settle_places(struct inline_builder *builder)
{
    uint32_t before = 0; /* the node of the last one that is sure */
    uint32_t offset = 0;
    uint32_t sure = 0; /* the next one that is */
    for (uint32_t i = 0; i < builder->place_count && !builder->failed; i++) {
        struct place at = builder->places[i];
        const uint32_t end = at.end;
        for (;
             sure < builder->place_count && (sure < i || is_stray(builder, &builder->places[sure]));
             sure++) {
        }
        if (sure == i) {
            before = at.node;
        } else if (sure < builder->place_count) {
            at = between(builder, before, &builder->places[sure]);
        }
        add_place(builder, offset, &at);
        offset = end;
    }
}

void inline_builder_place(struct inline_builder *builder, uint32_t end, uint32_t frame)
{
    const uint32_t offset = builder->end;
    if (end > builder->size) {
        end = builder->size;
    }
    if (end <= offset || builder->failed) {
        return;
    }
    const struct place place =
        place_of(end, frame == NONE ? &builder->outside : &builder->frames[frame]);
    builder->end = end;
    if (builder->c2) {
        keep_place(builder, &place);
    } else {
        add_place(builder, offset, &place);
    }
}

void inline_builder_add(struct inline_builder *builder, uint32_t end, const method_key *methods,
                        const int32_t *bcis, int32_t n)
{
    const uint32_t size = builder->size;
    if ((end < size ? end : size) <= builder->end || builder->failed) {
        return;
    }
    uint32_t frame = NONE;
    uint32_t depth = 0;
    builder->failed = n < 0;
    for (; n > 0 && depth < builder->frame_count; frame = depth++, n--) {
        const struct frame *known = &builder->frames[depth];
        if (known->key != methods[n - 1] || known->bci != bcis[n - 1]) {
            break;
        }
    }
    builder->frame_count = depth;
    for (; n > 0 && !builder->failed; n--) {
        frame = inline_builder_frame(builder, frame, methods[n - 1], NULL, bcis[n - 1]);
    }
    inline_builder_place(builder, end, frame);
}

/* Deals out the numbers depth-first. */
static void number_nodes(struct inline_builder *builder)
{
    struct growing_node *nodes = builder->growing;
    uint32_t number = 0;
    for (uint32_t at = 0; at != NONE;) {
        nodes[at].number = number++;
        if (nodes[at].first_child != NONE) {
            at = nodes[at].first_child;
            continue;
        }
        while (at != NONE && nodes[at].next_sibling == NONE) {
            at = nodes[at].parent;
        }
        at = at == NONE ? NONE : nodes[at].next_sibling;
    }
    for (uint32_t i = 0; i < builder->range_count; i++) {
        builder->ranges[i].node = nodes[builder->ranges[i].node].number;
    }
}

static bool finish_nodes(struct inline_builder *builder)
{
    if (!ARRAY_RESERVE(builder->nodes, builder->node_room, builder->growing_count)) {
        return false;
    }
    if (!builder->depth_first) {
        number_nodes(builder);
    }
    const struct growing_node *growing = builder->growing;
    for (uint32_t i = 0; i < builder->growing_count; i++) {
        builder->nodes[growing[i].number] =
            (struct inline_node){.method = &growing[i].method->method,
                                 .parent = i ? growing[growing[i].parent].number : 0,
                                 .call_line = growing[i].call_line};
    }
    return true;
}

int inline_builder_finish(struct inline_builder *builder, struct code *code)
{
    code->rows = NULL;
    code->nodes = NULL;
    code->ranges = NULL;
    code->row_count = code->node_count = code->range_count = code->ranges_end = 0;
    if (builder->failed) {
        return -ENOMEM;
    }
    settle_places(builder);
    const struct java_method *root = builder->growing[0].method;
    if (builder->end < builder->size) {
        add_row(builder, builder->end, root->method.file, root->method.first_line);
    }
    if (builder->failed || (builder->range_count > 0 && !finish_nodes(builder))) {
        return -ENOMEM;
    }
    code->rows = builder->rows;
    code->row_count = builder->row_count;
    if (builder->range_count > 0) {
        code->nodes = builder->nodes;
        code->node_count = builder->growing_count;
        code->ranges = builder->ranges;
        code->range_count = builder->range_count;
        code->ranges_end = builder->end;
    }
    return 0;
}
