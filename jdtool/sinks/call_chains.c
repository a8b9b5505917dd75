#include "jdtool/sinks/call_chains.h"

#include "jdtool/base/array.h"
#include "jdtool/base/message.h"
#include "jdtool/unwind/frames.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The inline tree of one blob, and the frames before an address in each of its ranges. */
struct tree {
    struct trailer trailer; /* only its nodes and ranges */
    struct expansion {
        uint32_t first; /* in dump_code.frames */
        uint32_t count; /* plus one; 0: not looked up yet */
    } * expansions;     /* by range */
};

/* What is known of one dump's code. */
struct dump_code {
    struct tree **trees; /* by blob, fetched when first needed */
    uint64_t *frames;    /* of the expansions */
    uint32_t frame_count;
    uint32_t frame_room;
};

struct call_chains {
    const struct jvms *jvms;
    struct call_chains_options options;
    struct dump_code *codes; /* as jvms->list */
    struct code_details details;
    uint64_t *chain; /* the one being made */
    size_t count;
    size_t room;
};

/* ---- Walking ---- */

bool chain_next(const struct perf_sample *sample, struct chain_walk *walk,
                struct chain_entry *entry)
{
    if (!walk->started) {
        walk->started = true;
        walk->is_user = (sample->misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_USER;
    }
    if (!(sample->has & PERF_SAMPLE_CALLCHAIN)) {
        bool first = walk->next++ == 0 && (sample->has & PERF_SAMPLE_IP);
        *entry = (struct chain_entry){
            .ip = sample->ip, .address = sample->ip, .is_user = walk->is_user, .is_first = true};
        return first;
    }
    if (walk->next >= sample->chain_count) {
        return false;
    }
    uint64_t ip = sample->chain[walk->next++];
    *entry = (struct chain_entry){.ip = ip, .address = ip};
    if (ip >= PERF_CONTEXT_MAX) {
        walk->is_user = ip == PERF_CONTEXT_USER;
        entry->is_marker = true;
        return true;
    }
    entry->is_user = walk->is_user;
    if (walk->is_user) {
        entry->is_first = !walk->seen_user;
        entry->address = entry->is_first || sample->unwound ? ip : ip - 1;
        walk->seen_user = true;
    }
    return true;
}

/* ---- Inlined frames of an address ---- */

static uint32_t number_of(const struct call_chains *chains, const struct jvm *jvm)
{
    uint32_t i = 0;
    while (chains->jvms->list[i] != jvm) {
        i++;
    }
    return i;
}

/* A copy of the fetched tree, as large as need be. NULL: no memory. */
static struct tree *copy_tree(const struct trailer *trailer)
{
    size_t nodes_size = trailer->node_count * sizeof *trailer->nodes;
    size_t ranges_size = trailer->range_count * sizeof *trailer->ranges;
    size_t expansions_size = trailer->range_count * sizeof(struct expansion);
    struct tree *tree = calloc(1, sizeof *tree + nodes_size + ranges_size + expansions_size);
    if (!tree) {
        return NULL;
    }
    struct trailer_node *nodes = (struct trailer_node *)(tree + 1);
    struct trailer_range *ranges = (struct trailer_range *)((uint8_t *)nodes + nodes_size);
    tree->expansions = (struct expansion *)((uint8_t *)ranges + ranges_size);
    if (nodes_size) {
        memcpy(nodes, trailer->nodes, nodes_size);
    }
    if (ranges_size) {
        memcpy(ranges, trailer->ranges, ranges_size);
    }
    tree->trailer = (struct trailer){.nodes = nodes,
                                     .node_count = trailer->node_count,
                                     .ranges = ranges,
                                     .range_count = trailer->range_count};
    return tree;
}

static int tree_of(struct call_chains *chains, struct dump_code *code,
                   const struct code_place *place, struct tree **tree)
{
    uint32_t blob = place->of->blob;
    if (!code->trees) {
        code->trees = calloc(code_index_blob_count(place->jvm->index), sizeof(struct tree *));
        if (!code->trees) {
            return -ENOMEM;
        }
    }
    if (!code->trees[blob]) {
        int err = code_index_fetch(place->jvm->index, blob, &chains->details);
        if (err) {
            return err;
        }
        code->trees[blob] = copy_tree(&chains->details.trailer);
    }
    *tree = code->trees[blob];
    return *tree ? 0 : -ENOMEM;
}

static int add_frame(struct dump_code *code, uint64_t frame)
{
    if (frame == 0) {
        return -ENOMEM;
    }
    if (array_reserve(&code->frames, code->frame_count, &code->frame_room, sizeof *code->frames) <
        0) {
        return -ENOMEM;
    }
    code->frames[code->frame_count++] = frame;
    return 0;
}

/* From the innermost inlined method up to, but not including, the compiled one. */
static int add_frames(struct dump_code *code, const struct jvm *jvm, const struct trailer *tree,
                      const struct trailer_range *range)
{
    uint32_t line = range->line;
    int err = 0;
    for (uint32_t node = range->node; node != 0 && !err; node = tree->nodes[node].parent) {
        const struct trailer_method *method =
            trailer_names_method(code_index_names(jvm->index), tree->nodes[node].method);
        err = add_frame(
            code, frame_table_add(jvm->frames, FRAME_INLINED, method->name, method->file, line));
        line = tree->nodes[node].call_line;
    }
    return err;
}

/* The frames before an address: *count of them at *frames, until the next call. */
static int frames_of(struct call_chains *chains, const struct code_place *place, uint64_t address,
                     const uint64_t **frames, uint32_t *count)
{
    struct dump_code *code = &chains->codes[number_of(chains, place->jvm)];
    struct tree *tree;
    int err = tree_of(chains, code, place, &tree);
    *count = 0;
    if (err) {
        return err;
    }
    const struct trailer_range *range =
        trailer_range_at(&tree->trailer, (uint32_t)(address - place->of->address));
    if (!range) {
        return 0;
    }
    struct expansion *expansion = &tree->expansions[range - tree->trailer.ranges];
    if (expansion->count == 0) {
        uint32_t first = code->frame_count;
        err = add_frames(code, place->jvm, &tree->trailer, range);
        if (err) {
            return err;
        }
        *expansion = (struct expansion){first, code->frame_count - first + 1};
    }
    *count = expansion->count - 1;
    *frames = *count ? code->frames + expansion->first : NULL;
    return 0;
}

/* ---- Chains ---- */

static int put(struct call_chains *chains, uint64_t ip)
{
    if (chains->count == chains->room) {
        size_t room = chains->room ? chains->room * 2 : 1024;
        uint64_t *grown = realloc(chains->chain, room * sizeof *grown);
        if (!grown) {
            return -ENOMEM;
        }
        chains->chain = grown;
        chains->room = room;
    }
    chains->chain[chains->count++] = ip;
    return 0;
}

/*
 * A virtual thread's bottom frame returns to the first byte of cont_returnBarrier, which the JVM
 * put there in the place of the caller's address: no call is before it, only whatever code lies
 * there.
 */
static bool is_return_barrier(const struct process *process, uint64_t time,
                              const struct chain_entry *entry, struct code_place *place)
{
    bool is_last_byte = entry->address - place->of->address == place->of->size - 1;
    struct code_place behind;
    if (!is_last_byte || entry->ip == entry->address ||
        !jvms_code_at(process, entry->ip, time, &behind) || behind.of->address != entry->ip ||
        !frames_is_return_barrier(code_index_blob(behind.jvm->index, behind.of->blob)->name)) {
        return false;
    }
    *place = behind;
    return true;
}

static int put_entry(struct call_chains *chains, const struct process *process, uint64_t time,
                     const struct chain_entry *entry)
{
    struct code_place place;
    const uint64_t *frames = NULL;
    uint32_t count = 0;
    bool is_generated = entry->is_user && !entry->is_marker && !is_frame(entry->ip) &&
                        jvms_code_at(process, entry->address, time, &place);
    if (!is_generated) {
        return put(chains, entry->ip);
    }
    uint64_t address = is_return_barrier(process, time, entry, &place) ? entry->ip : entry->address;
    int err = chains->options.expand ? frames_of(chains, &place, address, &frames, &count) : 0;
    for (uint32_t i = 0; !err && i < count; i++) {
        err = put(chains, frames[i]);
    }
    return err ? err : put(chains, chains->options.at_calls ? address : entry->ip);
}

/* Makes chains->chain. *leaf is the innermost user entry, 0: there is none. */
static int make_chain(struct call_chains *chains, const struct process *process,
                      const struct perf_sample *sample, uint64_t *leaf)
{
    struct chain_walk walk = {0};
    struct chain_entry entry;
    int err = 0;
    chains->count = 0;
    *leaf = 0;
    while (!err && chain_next(sample, &walk, &entry)) {
        size_t at = chains->count;
        err = put_entry(chains, process, sample->time, &entry);
        if (!err && entry.is_first) {
            *leaf = chains->chain[at];
        }
    }
    if (err) {
        error_message("failed to put inlined frames into call chains: %s", strerror(-err));
    }
    return err;
}

static void touch(const struct process *process, uint64_t address, uint64_t time)
{
    struct code_place place;
    if (jvms_code_at(process, address, time, &place)) {
        jvms_touch(&place);
    }
}

int call_chains_collect(struct call_chains *chains, const struct process *process,
                        const struct perf_sample *sample)
{
    struct chain_walk walk = {0};
    struct chain_entry entry;
    uint64_t leaf;
    touch(process, sample->ip, sample->time);
    while (chain_next(sample, &walk, &entry)) {
        if (entry.is_user && !entry.is_marker && !is_frame(entry.ip)) {
            touch(process, entry.address, sample->time);
            touch(process, entry.ip, sample->time); /* where perf looks */
        }
    }
    for (uint64_t i = 0; i < sample->branch_count; i++) {
        touch(process, sample->branches[i].from, sample->time);
        touch(process, sample->branches[i].to, sample->time);
    }
    return chains->options.expand ? make_chain(chains, process, sample, &leaf) : 0;
}

static uint64_t final_address(const struct process *process, uint64_t ip)
{
    const struct jvm *jvm = is_frame(ip) ? jvms_of_frame(process, ip) : NULL;
    return jvm ? frame_table_address(jvm->frames, ip) : ip;
}

int call_chains_rewrite(struct call_chains *chains, const struct process *process,
                        struct perf_sample *sample)
{
    uint64_t leaf;
    int err = make_chain(chains, process, sample, &leaf);
    if (err) {
        return err;
    }
    bool in_user = (sample->misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_USER;
    if (chains->options.leaf && in_user && is_frame(leaf)) {
        sample->ip = leaf;
    }
    sample->ip = final_address(process, sample->ip);
    if (sample->has & PERF_SAMPLE_CALLCHAIN) {
        for (size_t i = 0; i < chains->count; i++) {
            chains->chain[i] = final_address(process, chains->chain[i]);
        }
        sample->chain = chains->chain;
        sample->chain_count = chains->count;
    }
    return 0;
}

/* ---- Life ---- */

struct call_chains *call_chains_new(const struct jvms *jvms,
                                    const struct call_chains_options *options)
{
    struct call_chains *chains = calloc(1, sizeof *chains);
    if (!chains) {
        return NULL;
    }
    chains->jvms = jvms;
    chains->options = *options;
    chains->codes = calloc(jvms->count + (size_t)1, sizeof *chains->codes);
    if (!chains->codes) {
        call_chains_free(chains);
        return NULL;
    }
    return chains;
}

void call_chains_free(struct call_chains *chains)
{
    if (!chains) {
        return;
    }
    for (uint32_t i = 0; chains->codes && i < chains->jvms->count; i++) {
        struct dump_code *code = &chains->codes[i];
        uint32_t blobs = code->trees ? code_index_blob_count(chains->jvms->list[i]->index) : 0;
        for (uint32_t j = 0; j < blobs; j++) {
            free(code->trees[j]);
        }
        free(code->trees);
        free(code->frames);
    }
    code_details_free(&chains->details);
    free(chains->codes);
    free(chains->chain);
    free(chains);
}
