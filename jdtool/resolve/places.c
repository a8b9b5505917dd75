#include "jdtool/resolve/places.h"

#include "jdtool/base/chunks.h"
#include "jdtool/base/hash_map.h"

#include <stdlib.h>
#include <string.h>

/* With more than this all are thrown away, and found anew. */
#define PLACES_MAX      (UINT32_C(1) << 17)
#define FRAME_BYTES_MAX ((size_t)24 << 20)

/* Most questions are of a few thousand addresses. A power of two. */
#define FRONT 2048

struct places {
    struct places_options options;
    struct piece_context pieces;
    struct chunks list; /* of struct place */
    struct hash_map by_pc;
    struct front {
        uint64_t hash;
        struct place *place; /* NULL: none */
    } front[FRONT];          /* those that were asked for last */
    struct arena arena;      /* frames and rows */
    bool failed;

    /* The place that is being made. */
    struct process *process;
    uint64_t time;
    struct code_place found; /* the last code that was found for it */
    uint64_t until;          /* of all that was found */

    uint32_t made; /* so many, which is the origin of their frames */

    struct place nowhere; /* for want of memory, and of a process */
    struct resolved_frame unknown;
};

struct places *places_new(const struct places_options *options)
{
    struct places *places = calloc(1, sizeof *places);
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
        hash_map_free(&places->by_pc);
        arena_clear(&places->arena);
        free(places);
    }
}

void places_make_room(struct places *places)
{
    if (places->list.count > PLACES_MAX || places->arena.size > FRAME_BYTES_MAX) {
        chunks_free(&places->list);
        hash_map_clear(&places->by_pc);
        memset(places->front, 0, sizeof places->front);
        arena_clear(&places->arena);
    }
}

struct piece_context *places_pieces(struct places *places)
{
    return &places->pieces;
}

bool places_failed(const struct places *places)
{
    return places->failed;
}

/* ---- Finding out ---- */

/* Of a method whose frame size the dump does not tell, code behind it can be told by its rows. */
static const struct blob_frames *shape_of(struct places *places, const struct code_place *code)
{
    struct code_source *source = code->source;
    uint32_t blob = code->stay->blob;
    const struct blob_frames *shape = piece_shape(&places->pieces, source, blob);
    bool unknown = shape->shape == FRAMES_COMPILED && shape->told_frame_size <= 0;
    return places->options.unwind && unknown ? code_frames_of(source->frames, blob) : shape;
}

static struct object *object_of(struct places *places, const struct mapped *mapped)
{
    struct mapped_file *file = mapped->file;
    if (!file->object) {
        struct object_place place = {
            .path = file->path,
            .id = file->build_id_size ? file->build_id : NULL,
            .id_size = file->build_id_size,
            .major = file->major,
            .minor = file->minor,
            .inode = file->inode,
            .pid = places->process->pid,
            .start = mapped->start,
            .end = mapped->end,
        };
        file->object = objects_find(places->options.objects, &place);
    }
    return file->object;
}

static const struct module *module_of(struct places *places, struct mapped_file *file)
{
    if (!file->module) {
        uint8_t id[OBJECT_ID_MAX];
        size_t size = object_build_id(file->object, id);
        file->module = methods_file_module(places->options.methods, file->path, id, size);
        places->failed |= !file->module;
    }
    return file->module;
}

/* unwind_find_fn */
static void find(void *context, uint64_t address, struct unwind_place *place)
{
    struct places *places = context;
    struct code_place code = dumps_code_at(places->process, address, places->time);
    if (code.until < places->until) {
        places->until = code.until;
    }
    if (code.stay) {
        places->found = code;
        place->code = shape_of(places, &code);
        place->code_start = code.stay->address;
        place->code_size = code.stay->size;
        return;
    }
    const struct mapped *mapped = process_mapped_at(places->process, address);
    bool vdso = mapped && strcmp(mapped->file->path, "[vdso]") == 0;
    if (mapped && (!mapped->file->anonymous || vdso)) {
        place->mapped = true;
        struct object *object = object_of(places, mapped);
        uint64_t offset = address - mapped->start + mapped->file_offset;
        if (object_address(object, offset, &place->file_address)) {
            place->object = object;
        }
    }
}

/* ---- Frames ---- */

static void use_frame(struct place *place, const struct resolved_frame *one)
{
    place->own = *one;
    place->frame_count = 1; /* see finish_frames */
    place->frames = NULL;
}

static void use_code(struct places *places, struct place *place, const struct code_place *found)
{
    struct code_source *source = found->source;
    const struct resolved_code *code = piece_code(&places->pieces, source, found->stay);
    place->source = source;
    place->code = code;
    if (code) {
        place->module = code->module;
        place->module_address = code->module_address + (place->unwind.address - code->address);
        place->frames = piece_frames(&places->pieces, source, code, place->unwind.address,
                                     &places->arena, &place->frame_count);
    }
    if (!code || !place->frames) {
        places->failed = true;
        use_frame(place, &places->unknown);
    }
}

/* The function at an address of a file, and what is inlined there. */
static void symbolize(struct places *places, struct place *place, struct object *object,
                      uint64_t address, enum resolved_kind kind)
{
    struct object_symbol symbol;
    struct resolved_frame frame = {.kind = (uint8_t)kind, .bci = -1, .module = place->module};
    if (!object_symbol(object, address, &symbol)) {
        use_frame(place, &frame);
        return;
    }
    struct method_facts facts = {
        .kind = kind, .module = place->module, .address = symbol.address, .size = symbol.size};
    const struct object_inline *inlines;
    facts.name = objects_demangle(places->options.objects, symbol.name);
    facts.name = methods_string(places->options.methods, facts.name); /* before the next call */
    size_t count =
        facts.name && kind == RESOLVED_NATIVE ? object_inlines(object, address, &inlines) : 0;
    size_t depth = count ? count - 1 : 0;
    struct resolved_frame *frames =
        facts.name ? arena_take(&places->arena, (depth + 1) * sizeof *frames) : NULL;
    if (count) {
        facts.file = inlines[depth].file;
        facts.first_line = inlines[depth].first_line;
        frame.line = inlines[depth].line;
    }
    for (size_t i = 0; i < depth && frames; i++) {
        struct method_facts inlined = {.kind = RESOLVED_NATIVE,
                                       .name = inlines[i].name ? inlines[i].name : "?",
                                       .file = inlines[i].file,
                                       .first_line = inlines[i].first_line,
                                       .module = place->module};
        frames[i] =
            (struct resolved_frame){.kind = RESOLVED_INLINED,
                                    .line = inlines[i].line,
                                    .bci = -1,
                                    .module = place->module,
                                    .method = methods_of(places->options.methods, &inlined)};
        places->failed |= !frames[i].method;
    }
    frame.method = facts.name ? methods_of(places->options.methods, &facts) : NULL;
    places->failed |= !frame.method || !frames;
    if (!frames) {
        use_frame(place, &places->unknown);
        return;
    }
    frames[depth] = frame;
    place->frames = frames;
    place->frame_count = (uint32_t)depth + 1;
}

static bool has_no_expression(const struct native_row *row)
{
    bool none = row->cfa.rule != NATIVE_EXPRESSION && row->cfa.rule != NATIVE_AT_EXPRESSION;
    for (unsigned i = 0; i < NATIVE_PLACES; i++) {
        none &=
            row->places[i].rule != NATIVE_EXPRESSION && row->places[i].rule != NATIVE_AT_EXPRESSION;
    }
    return none;
}

const struct native_row *places_row(struct places *places, const struct place *place)
{
    (void)places;
    return place->row ? place->row : object_row(place->unwind.object, place->unwind.file_address);
}

const struct frame_row *places_code_row(struct place *place)
{
    if (!place->has_code_row && place->code) {
        (void)code_frames_of(place->source->frames, place->code->blob);
        place->code_row = unwind_place_row(&place->unwind);
        place->has_code_row = true;
    }
    return place->code_row;
}

/* Keeps the row where it is whole in itself; expressions belong to a file that may be closed. */
static void keep_row(struct places *places, struct place *place)
{
    const struct native_row *row = object_row(place->unwind.object, place->unwind.file_address);
    struct native_row *kept =
        has_no_expression(row) ? arena_take(&places->arena, sizeof *kept) : NULL;
    if (kept) {
        *kept = *row;
        place->row = kept;
    }
}

static void use_file(struct places *places, struct place *place, const struct mapped *mapped)
{
    struct unwind_place *unwind = &place->unwind;
    struct resolved_frame frame = {.kind = RESOLVED_NATIVE, .bci = -1};
    place->file = object_of(places, mapped);
    place->module = module_of(places, mapped->file);
    place->module_address = unwind->object ? unwind->file_address : 0;
    frame.module = place->module;
    if (places->options.symbolize && unwind->object) {
        symbolize(places, place, unwind->object, unwind->file_address, RESOLVED_NATIVE);
    } else {
        use_frame(place, &frame);
    }
    if (places->options.unwind && unwind->object) {
        keep_row(places, place);
    }
}

/* Memory without a file that is executable: it is generated code that nobody told of. */
static void use_nothing(struct places *places, struct place *place, const struct mapped *mapped)
{
    struct process *process = places->process;
    struct resolved_frame frame = places->unknown;
    if (mapped) {
        frame.unnamed = (uint8_t)dumps_why_unnamed(process, place->unwind.address, places->time);
        if (frame.unnamed == UNNAMED_AFTER_DUMP || frame.unnamed == UNNAMED_UNKNOWN) {
            places->until = places->time; /* it depends on the time: not for the next sample */
        }
    }
    use_frame(place, &frame);
}

static void make(struct places *places, struct place *place)
{
    struct unwind_place *unwind = &place->unwind;
    struct code_place at_pc = {0};
    places->until = UINT64_MAX;
    if (place->caller) {
        struct unwind_place unused = {0};
        places->found = at_pc;
        find(places, place->pc, &unused);
        at_pc = places->found;
    }
    unwind_place_of(find, places, place->pc, place->caller, unwind);
    const struct mapped *mapped = process_mapped_at(places->process, unwind->address);
    if (unwind->code) {
        use_code(places, place, unwind->barrier ? &at_pc : &places->found);
    } else if (unwind->mapped) {
        use_file(places, place, mapped);
    } else {
        use_nothing(places, place, mapped);
    }
    place->is_root = -1;
    place->from = places->time;
    place->until = places->until;
}

/* The dumps have grown. Most of what was found before is there still: the same code, or none. */
static bool is_unchanged(struct places *places, struct process *process, uint64_t time,
                         struct place *place)
{
    struct unwind_place *unwind = &place->unwind;
    struct code_place now = dumps_code_at(process, unwind->address, time);
    if (!place->code) {
        return !now.stay && (unwind->mapped || !process->code);
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
static bool is_mapped_as_before(struct process *process, const struct place *place)
{
    const struct unwind_place *unwind = &place->unwind;
    if (place->code) {
        return true; /* files do not hide it */
    }
    const struct mapped *mapped = place->file ? process_mapped_at(process, unwind->address) : NULL;
    uint64_t address = 0;
    if (!mapped || mapped->file->module != place->module || mapped->file->object != place->file) {
        return false;
    }
    uint64_t offset = unwind->address - mapped->start + mapped->file_offset;
    bool has_address = object_address(mapped->file->object, offset, &address);
    return has_address == (unwind->object != NULL) &&
           (!has_address || address == unwind->file_address);
}

static uint32_t next_origin(struct places *places)
{
    places->made += places->made < UINT32_MAX;
    return places->made < UINT32_MAX ? places->made : 0;
}

/* A place that has come to where it stays: its frames are told their addresses. */
static void finish_frames(struct place *place, uint32_t origin)
{
    struct resolved_frame *frames = (struct resolved_frame *)place->frames;
    if (!frames) {
        frames = &place->own;
        place->frames = frames;
    }
    place->is_caller = place->caller && !place->unwind.barrier && !place->unwind.stub_section;
    for (uint32_t i = 0; i < place->frame_count; i++) {
        frames[i].address = place->unwind.address;
        frames[i].module_address = place->module_address;
        frames[i].is_caller = place->is_caller;
        frames[i].origin = origin;
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
    *place = (struct place){.pc = pc,
                            .caller = caller,
                            .unwind = {.address = pc - caller},
                            .own = places->unknown,
                            .frame_count = 1};
    finish_frames(place, 0);
    return place;
}

struct place *places_at(struct places *places, struct process *process, uint64_t time, uint64_t pc,
                        bool caller)
{
    bool is_new;
    struct place *place = process ? find_place(places, process->number, pc, caller, &is_new) : NULL;
    if (!place) {
        return nowhere(places, pc, caller);
    }
    uint32_t generation = process->code ? process->code->generation : 0;
    uint64_t state = process_mappings_state(process);
    if (time > process->code_until) {
        time = process->code_until;
    }
    bool holds = !is_new && time >= place->from && time < place->until;
    bool is_mapped = place->mappings_state == state;
    if (holds && !is_mapped) {
        holds = is_mapped_as_before(process, place);
        place->mappings_state = state;
    }
    if (holds && (!is_mapped || place->generation != generation)) {
        /* What was mapped may be another dump. */
        holds = is_unchanged(places, process, time, place);
        place->generation = generation;
    }
    if (!holds) {
        struct place fresh = {.pc = pc,
                              .caller = caller,
                              .process = process->number,
                              .generation = generation,
                              .mappings_state = state};
        places->process = process;
        places->time = time;
        make(places, &fresh);
        *place = fresh;
        finish_frames(place, next_origin(places));
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
        struct resolved_frame frame = {.kind = RESOLVED_KERNEL, .bci = -1, .module = module};
        place->unwind.address = pc;
        place->module = module;
        place->module_address = pc;
        if (places->options.symbolize && kernel) {
            symbolize(places, place, kernel, pc, RESOLVED_KERNEL);
        } else {
            use_frame(place, &frame);
        }
        finish_frames(place, next_origin(places));
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
