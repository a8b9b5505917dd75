#include "jdtool/resolve/places_private.h"

#include <stdlib.h>
#include <string.h>

/* With more than this all are thrown away, and found anew. */
#define PLACES_MAX     (UINT32_C(1) << 17)
#define LINE_BYTES_MAX ((size_t)24 << 20)

/* And with more than this the stacks are: these and their map fit into a processor's own cache. The
 * last stack may go beyond it, and what is kept by node grows by doubling. */
#define NODES_MAX ((UINT32_C(1) << 16) - 2048)

#define PREFETCHED 32

struct places *places_new(const struct places_options *options)
{
    struct places *places = calloc(1, sizeof *places);
    if (places && !(places->stacks = stack_table_new())) {
        free(places);
        places = NULL;
    }
    if (places) {
        places->options = *options;
        places->pieces.methods = options->methods;
        places->list.element = sizeof(struct place);
        places->unknown = (struct resolved_frame){.kind = RESOLVED_UNKNOWN, .bci = -1};
    }
    return places;
}

void places_free(struct places *places)
{
    if (places) {
        code_details_free(&places->pieces.details);
        chunks_free(&places->list);
        free(places->files);
        hash_map_free(&places->by_pc);
        arena_clear(&places->arena);
        stack_table_free(places->stacks);
        free(places);
    }
}

void places_file_gone(struct places *places, const struct mapped_file *file)
{
    if (file->index < places->file_room) {
        if (places->files[file->index].object) {
            objects_let_go(places->options.objects, places->files[file->index].object);
        }
        places->files[file->index] = (struct file_place){0};
    }
}

static void clear(struct places *places)
{
    chunks_free(&places->list);
    hash_map_clear(&places->by_pc);
    memset(places->front, 0, sizeof places->front);
    stack_table_clear(places->stacks);
    places->version++;
}

void places_clear(struct places *places)
{
    clear(places);
    for (uint32_t i = 0; i < places->file_room; i++) {
        places->files[i].module = NULL;
    }
}

void places_make_room(struct places *places)
{
    const struct stack_table *stacks = places->stacks;
    if (places->list.count > PLACES_MAX || stacks->lines.size > LINE_BYTES_MAX) {
        clear(places);
    } else if (stacks->node_count > NODES_MAX) {
        stack_table_clear_nodes(places->stacks);
        places->version++;
    }
}

struct stack_table *places_stacks(struct places *places)
{
    return places->stacks;
}

uint64_t places_version(const struct places *places)
{
    return places->version;
}

struct piece_context *places_pieces(struct places *places)
{
    return &places->pieces;
}

bool places_failed(const struct places *places)
{
    return places->failed;
}

/* The dumps have grown. Most of what was found before is there still: the same code, or none. */
static bool is_unchanged(struct places *places, struct process_code code, uint64_t time,
                         struct place *place)
{
    struct unwind_place *unwind = &place->unwind;
    struct code_place now = dumps_code_at(code, unwind->address, time);
    if (!place->code) {
        return !now.stay && (unwind->mapped || !code.source);
    }
    if (!now.stay || unwind->stub_section || now.source != place->source ||
        piece_code(&places->pieces, now.source, now.stay) != place->code) {
        return false;
    }
    place->has_code_row = false; /* rows live until the index grows */
    place->until = now.until;
    return true;
}

/* The process has mapped something. Mostly elsewhere: the same code, or the same part of a file. */
static bool is_mapped_as_before(const struct process *process, const struct place *place)
{
    const struct unwind_place *unwind = &place->unwind;
    if (place->code) {
        return true; /* files do not hide it */
    }
    const struct mapped *mapped =
        place->mapped_file ? process_mapped_at(process, unwind->address) : NULL;
    uint64_t address = 0;
    if (!mapped || mapped->file->number != place->mapped_file) {
        return false;
    }
    uint64_t offset = unwind->address - mapped->start + mapped->file_offset;
    bool has_address = object_address(place->file, offset, &address);
    return has_address == (unwind->object != NULL) &&
           (!has_address || address == unwind->file_address);
}

/* The lines of a place that was made are told their addresses, and are a location then. */
static void finish(struct places *places, struct place *place)
{
    struct resolved_frame *lines = places->lines;
    place->is_caller = place->caller && !place->unwind.barrier && !place->unwind.stub_section;
    for (uint32_t i = 0; i < places->line_count; i++) {
        lines[i].address = place->unwind.address;
        lines[i].module_address = place->module_address;
        lines[i].is_caller = place->is_caller;
    }
    place->line_count = places->line_count;
    place->location = stack_table_location(places->stacks, lines, place->line_count);
    places->failed |= place->location == HASH_MAP_NONE;
    if (lines != &places->one_line) {
        arena_clear(&places->arena);
    }
}

/* ---- Looking up ---- */

static uint64_t hash_of(uint32_t process, uint64_t pc, bool caller)
{
    return (pc << 1 | caller) * UINT64_C(0x9e3779b97f4a7c15) + process;
}

static bool is_of(const struct place *place, uint32_t process, uint64_t pc, bool caller)
{
    return place->pc == pc && place->process == process && place->caller == caller;
}

/* Looking one up misses the processor's caches twice, at its slot and at the place itself: many at
 * a time wait for memory together. */
void places_prefetch(const struct places *places, const struct process *process,
                     const uint64_t *pcs, uint32_t count)
{
    struct hash_map_cursor cursors[PREFETCHED];
    for (uint32_t from = 0; from < count; from += PREFETCHED) {
        uint32_t left = count - from;
        uint32_t some = left < PREFETCHED ? left : PREFETCHED;
        for (uint32_t i = 0; i < some; i++) {
            uint64_t hash = hash_of(process->number, pcs[from + i], from + i > 0);
            cursors[i] = hash_map_start(&places->by_pc, hash);
            hash_map_prefetch(&places->by_pc, &cursors[i]);
        }
        for (uint32_t i = 0; i < some; i++) {
            uint32_t at = hash_map_next(&places->by_pc, &cursors[i]);
            if (at != HASH_MAP_NONE) {
                const struct place *found = chunks_at(&places->list, at);
                __builtin_prefetch(found);
                __builtin_prefetch(&found->unwind);
            }
        }
    }
}

/* The place of these, made when there is none (and then with pc 0). NULL: no memory. */
static struct place *find_place(struct places *places, uint32_t process, uint64_t pc, bool caller,
                                bool *is_new)
{
    uint64_t hash = hash_of(process, pc, caller);
    struct front *front = &places->front[hash >> 32 & (FRONT - 1)];
    *is_new = false;
    if (front->hash == hash && front->place && is_of(front->place, process, pc, caller)) {
        return front->place;
    }
    struct hash_map_cursor cursor = hash_map_start(&places->by_pc, hash);
    uint32_t at;
    while ((at = hash_map_next(&places->by_pc, &cursor)) != HASH_MAP_NONE) {
        struct place *place = chunks_at(&places->list, at);
        if (is_of(place, process, pc, caller)) {
            *front = (struct front){hash, place};
            return place;
        }
    }
    struct place *place = chunks_add(&places->list);
    if (!place || hash_map_add(&places->by_pc, hash, places->list.count - 1)) {
        places->failed = true;
        return NULL;
    }
    place->pc = pc;
    place->process = process;
    place->caller = caller;
    *is_new = true;
    return place;
}

static struct place *nowhere(struct places *places, uint64_t pc, bool caller)
{
    struct place *place = &places->nowhere;
    *place = (struct place){.pc = pc, .caller = caller, .unwind = {.address = pc - caller}};
    places->one_line = places->unknown;
    places->lines = &places->one_line;
    places->line_count = 1;
    finish(places, place);
    return place;
}

struct place *places_at(struct places *places, const struct process *process, uint64_t time,
                        uint64_t pc, bool caller)
{
    bool is_new;
    struct place *place = process ? find_place(places, process->number, pc, caller, &is_new) : NULL;
    if (!place) {
        return nowhere(places, pc, caller);
    }
    struct process_code code = process_code_of(places->options.codes, process);
    uint32_t generation = code.source ? code.source->generation : 0;
    uint64_t state = process_mappings_state(process);
    if (time > code.until) {
        time = code.until;
    }
    bool holds = !is_new && time >= place->from && time < place->until;
    bool is_mapped = place->mappings_state == state;
    if (holds && !is_mapped) {
        holds = is_mapped_as_before(process, place);
        place->mappings_state = state;
    }
    if (holds && (!is_mapped || place->generation != generation)) {
        /* What was mapped may be another dump. */
        holds = is_unchanged(places, code, time, place);
        place->generation = generation;
    }
    if (!holds) {
        struct place fresh = {.pc = pc,
                              .caller = caller,
                              .process = process->number,
                              .generation = generation,
                              .mappings_state = state};
        place_make(places, &fresh, process, time);
        places->version += place->until > place->from;
        *place = fresh;
        finish(places, place);
    }
    return place;
}

struct place *places_at_kernel(struct places *places, uint64_t pc, struct object *kernel,
                               const struct module *module)
{
    bool is_new;
    struct place *place = find_place(places, 0, pc, false, &is_new);
    if (!place) {
        return nowhere(places, pc, false);
    }
    if (is_new) {
        place_make_kernel(places, place, kernel, module);
        finish(places, place);
    }
    return place;
}

bool place_is_root(struct place *place)
{
    if (place->is_root < 0) {
        bool is_root = place->file && object_is_root(place->file, place->unwind.file_address);
        place->is_root = is_root ? 1 : 0;
    }
    return place->is_root == 1;
}
