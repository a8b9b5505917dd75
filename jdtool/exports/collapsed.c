/*
 * Collapsed stacks, a line for each: "thread;root;…;leaf COUNT". flamegraph.pl, inferno, speedscope
 * and many others read them.
 */
#include "jdtool/base/unique.h"
#include "jdtool/exports/export.h"
#include "jdtool/profile/frame_tree.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* Stacks of one text: samples of one tree node and thread name. */
struct stack {
    const char *comm;
    uint32_t node;
    uint64_t value;
};

#define STACK_KEY (offsetof(struct stack, node) + sizeof(uint32_t))

struct collapsed {
    struct packed_output *output;
    const struct profile *profile;
    bool suffixes;
    struct frame_tree tree;
    struct stack *stacks;
    uint32_t count, room;
    uint32_t *path; /* the nodes of a stack that is being written */
    uint32_t path_room;
    char *names;       /* of all functions, each with the ';' before it */
    size_t *name_ends; /* by function */
};

/* As FlameGraph's java palette and async-profiler know them. */
static const char *suffix_of(struct frame_tree_node node)
{
    switch (node.kind) {
    case RESOLVED_KERNEL:
        return "_[k]";
    case RESOLVED_INLINED:
        return "_[i]";
    case RESOLVED_INTERPRETED:
        return "_[0]";
    case RESOLVED_COMPILED:
        return node.tier >= 1 && node.tier <= 3 ? "_[1]" : "_[j]";
    default:
        return "";
    }
}

/* ';' parts frames, a line's end stacks. */
static void clean(char *name)
{
    for (; *name; name++) {
        *name = (char)(*name == ';' ? ':' : *name == '\n' || *name == '\r' ? ' ' : *name);
    }
}

static int make_names(struct collapsed *c)
{
    const struct profile *profile = c->profile;
    size_t size = 1;
    for (uint32_t i = 0; i < profile->function_count; i++) {
        size += strlen(profile->functions[i].name) + 1;
    }
    c->names = malloc(size);
    c->name_ends = calloc((size_t)profile->function_count + 1, sizeof *c->name_ends);
    if (!c->names || !c->name_ends) {
        return -ENOMEM;
    }
    size_t at = 0;
    for (uint32_t i = 0; i < profile->function_count; i++) {
        size_t length = strlen(profile->functions[i].name);
        c->names[at] = ';';
        memcpy(c->names + at + 1, profile->functions[i].name, length + 1);
        clean(c->names + at + 1);
        at += 1 + length;
        c->name_ends[i] = at;
    }
    return 0;
}

static void put_name(const struct collapsed *c, uint32_t function)
{
    size_t from = function ? c->name_ends[function - 1] : 0;
    packed_output_put(c->output, c->names + from, c->name_ends[function] - from);
}

static int put_thread(struct collapsed *c, const char *comm)
{
    if (comm[0] && !strpbrk(comm, ";\n\r")) {
        packed_output_text(c->output, comm);
        return 0;
    }
    char *text = strdup(comm[0] ? comm : "[unknown]");
    if (!text) {
        return -ENOMEM;
    }
    clean(text);
    packed_output_text(c->output, text);
    free(text);
    return 0;
}

static int put_stack(struct collapsed *c, const struct stack *stack)
{
    uint32_t depth = 0;
    for (uint32_t at = stack->node; at != PROFILE_NONE; at = c->tree.nodes[at].parent) {
        if (ARRAY_RESERVE(c->path, depth, c->path_room)) {
            return -ENOMEM;
        }
        c->path[depth++] = at;
    }
    int err = put_thread(c, stack->comm);
    while (depth > 0) {
        struct frame_tree_node node = c->tree.nodes[c->path[--depth]];
        put_name(c, node.function);
        if (c->suffixes) {
            packed_output_text(c->output, suffix_of(node));
        }
    }
    packed_output_printf(c->output, " %" PRIu64 "\n", stack->value);
    return err;
}

static int add_up(struct collapsed *c, bool weights)
{
    struct hash_map map = {0};
    int err = 0;
    for (uint32_t i = 0; !err && i < c->profile->sample_count; i++) {
        const struct profile_sample *sample = &c->profile->samples[i];
        struct stack stack = {
            .comm = c->profile->threads[sample->thread].comm,
            .node = sample->node == PROFILE_NONE ? PROFILE_NONE : c->tree.innermost[sample->node],
        };
        uint32_t at =
            unique_add(&c->stacks, &c->count, &c->room, sizeof stack, &map, &stack, STACK_KEY);
        if (at != HASH_MAP_NONE) {
            c->stacks[at].value += weights ? sample->weight : sample->count;
        } else {
            err = -ENOMEM;
        }
    }
    hash_map_free(&map);
    return err;
}

static int put_stacks(struct collapsed *c, bool weights)
{
    int err = frame_tree_make(c->profile, c->suffixes, &c->tree);
    if (!err) {
        err = add_up(c, weights);
    }
    if (!err) {
        err = make_names(c);
    }
    for (uint32_t i = 0; !err && i < c->count; i++) {
        err = put_stack(c, &c->stacks[i]);
    }
    return err;
}

static int write_collapsed(const struct profile *profile, const struct export_settings *settings,
                           struct packed_output *output)
{
    struct collapsed *c = calloc(1, sizeof *c);
    if (!c) {
        return -ENOMEM;
    }
    *c = (struct collapsed){.output = output, .profile = profile, .suffixes = settings->suffixes};
    int err = put_stacks(c, settings->weights);
    frame_tree_free(&c->tree);
    free(c->stacks);
    free(c->path);
    free(c->names);
    free(c->name_ends);
    free(c);
    return err;
}

extern const struct export_format format_collapsed;
const struct export_format format_collapsed = {
    .name = "collapsed",
    .file = "stacks.collapsed.txt",
    .about = "a line a stack, for flamegraph.pl, inferno and others",
    .adds_up = true,
    .write = write_collapsed,
};
