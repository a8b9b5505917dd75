/* What is at a place. */
#include "jdtool/resolve/places_private.h"

#include <string.h>

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
    const struct mapped_file *file = mapped->file;
    if (array_reach(&places->files, file->index, &places->file_room, sizeof *places->files)) {
        places->failed = true;
        return NULL;
    }
    struct file_place *known = &places->files[file->index];
    if (!known->object) {
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
        known->object = objects_find(places->options.objects, &place);
    }
    return known->object;
}

/* Of a file whose object was asked for. */
static const struct module *module_of(struct places *places, const struct mapped_file *file)
{
    struct file_place *known = &places->files[file->index];
    if (!known->module) {
        uint8_t id[OBJECT_ID_MAX];
        size_t size = object_build_id(known->object, id);
        known->module = methods_file_module(places->options.methods, file->path, id, size);
        places->failed |= !known->module;
    }
    return known->module;
}

/* unwind_find_fn */
static void find(void *context, uint64_t address, struct unwind_place *place)
{
    struct places *places = context;
    struct code_place code = dumps_code_at(places->codes, address, places->time);
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
        if (object && object_address(object, offset, &place->file_address)) {
            place->object = object;
        }
    }
}

/* ---- Frames ---- */

static void use_line(struct places *places, const struct resolved_frame *line)
{
    places->one_line = *line;
    places->lines = &places->one_line;
    places->line_count = 1;
}

static void use_code(struct places *places, struct place *place, const struct code_place *found)
{
    struct code_source *source = found->source;
    const struct resolved_code *code = piece_code(&places->pieces, source, found->stay);
    place->source = source;
    place->code = code;
    places->lines = NULL;
    if (code) {
        place->module = code->module;
        place->module_address = code->module_address + (place->unwind.address - code->address);
        places->lines = piece_frames(&places->pieces, source, code, place->unwind.address,
                                     &places->arena, &places->line_count);
    }
    if (!places->lines) {
        places->failed = true;
        use_line(places, &places->unknown);
    }
}

/* The function at an address of a file, and what is inlined there. */
static void symbolize(struct places *places, struct place *place, struct object *object,
                      uint64_t address, enum resolved_kind kind)
{
    struct object_symbol symbol;
    struct resolved_frame frame = {.kind = (uint8_t)kind, .bci = -1, .module = place->module};
    if (!object_symbol(object, address, &symbol)) {
        use_line(places, &frame);
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
        use_line(places, &places->unknown);
        return;
    }
    frames[depth] = frame;
    places->lines = frames;
    places->line_count = (uint32_t)depth + 1;
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

static void use_file(struct places *places, struct place *place, const struct mapped *mapped)
{
    struct unwind_place *unwind = &place->unwind;
    struct resolved_frame frame = {.kind = RESOLVED_NATIVE, .bci = -1};
    place->file = object_of(places, mapped);
    place->mapped_file = mapped->file->number;
    place->module = place->file ? module_of(places, mapped->file) : NULL;
    place->module_address = unwind->object ? unwind->file_address : 0;
    frame.module = place->module;
    if (places->options.symbolize && unwind->object) {
        symbolize(places, place, unwind->object, unwind->file_address, RESOLVED_NATIVE);
    } else {
        use_line(places, &frame);
    }
    if (places->options.unwind && unwind->object) {
        const struct native_row *row = object_row(unwind->object, unwind->file_address);
        place->row = row->lasts ? row : NULL;
    }
}

/* Memory without a file that is executable: it is generated code that nobody told of. */
static void use_nothing(struct places *places, struct place *place, const struct mapped *mapped)
{
    struct resolved_frame frame = places->unknown;
    if (mapped) {
        frame.unnamed =
            (uint8_t)dumps_why_unnamed(places->codes, place->unwind.address, places->time);
        if (frame.unnamed == UNNAMED_AFTER_DUMP || frame.unnamed == UNNAMED_UNKNOWN) {
            places->until = places->time; /* it depends on the time: not for the next sample */
        }
    }
    use_line(places, &frame);
}

void place_make(struct places *places, struct place *place, const struct process *process,
                uint64_t time)
{
    struct unwind_place *unwind = &place->unwind;
    struct code_place at_pc = {0};
    places->process = process;
    places->codes = process_code_of(places->options.codes, process);
    places->time = time;
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

void place_make_kernel(struct places *places, struct place *place, struct object *kernel,
                       const struct module *module)
{
    struct resolved_frame frame = {.kind = RESOLVED_KERNEL, .bci = -1, .module = module};
    place->unwind.address = place->pc;
    place->module = module;
    place->module_address = place->pc;
    if (places->options.symbolize && kernel) {
        symbolize(places, place, kernel, place->pc, RESOLVED_KERNEL);
    } else {
        use_line(places, &frame);
    }
}
