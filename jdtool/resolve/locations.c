#include "jdtool/resolve/locations.h"

#include "jdtool/base/chunks.h"
#include "jdtool/base/unique.h"
#include "jdtool/resolve/resolver.h"

#include <stdlib.h>
#include <string.h>

/* With more than this all are thrown away, and found anew. Where that is sparing, with a quarter of
 * it: what runs for months has been everywhere once. */
#define LOCATIONS_MAX  (UINT32_C(1) << 17)
#define LINE_BYTES_MAX ((size_t)24 << 20)
#define SPARING        4

/* And with more than this the stacks are: these and their map fit into a processor's own cache. The
 * last stack may go beyond it, and what is kept by node grows by doubling. */
#define NODES_MAX ((UINT32_C(1) << 16) - 2048)

/* So many may be there when a sample has been taken, which adds no more than it has frames, and
 * what its event is about. */
#define NODES_ROOM (NODES_MAX + 2 * RESOLVED_FRAMES_MAX)
#define LOCATIONS_ROOM                                                                             \
    ((uint32_t)(LINE_BYTES_MAX / (sizeof(struct location) + sizeof(struct resolved_frame))) +      \
     2 * RESOLVED_FRAMES_MAX)

#define PREFETCHED 32

/* Most questions are of a few thousand addresses. A power of two. */
#define FRONT 2048

/* A function that was named once. The first three tell it. */
struct named_symbol {
    const struct object *object;
    const struct module *module;
    uint64_t address;
    const struct resolved_method *method;
};

struct locations {
    struct locations_options options;
    struct blob_context blobs;
    struct chunks list; /* of struct addr_location */
    struct hash_map by_pc;
    struct front {
        uint64_t hash;
        struct addr_location *al; /* NULL: none */
    } front[FRONT];               /* those that were asked for last */
    struct stack_table *stacks;
    struct mapped_object {
        struct object *object; /* what is in it; NULL: nobody has asked yet */
        const struct module *module;
        bool is_ready; /* it was asked for by locations_prepare */
    } * files;         /* of files that are mapped, by their index */
    uint32_t file_room;
    struct named_symbol *symbols; /* of files that are mapped, and of the kernel */
    uint32_t symbol_count, symbol_room;
    struct hash_map by_symbol;
    bool failed;

    /* The one that is being made. */
    const struct process *process;
    struct process_code codes; /* its */
    uint64_t time;
    struct found_code found; /* the last code that was found for it */
    uint64_t until;          /* of all that was found */
    struct location made;    /* its lines are one_line, or in arena */
    struct resolved_frame one_line;
    struct arena arena;

    uint64_t version;

    struct addr_location nowhere; /* for want of memory, and of a process */
    struct resolved_frame unknown;
};

struct locations *locations_new(const struct locations_options *options)
{
    struct locations *locations = calloc(1, sizeof *locations);
    if (locations && (!(locations->stacks = stack_table_new()) ||
                      !stack_table_reserve(locations->stacks, NODES_ROOM, LOCATIONS_ROOM))) {
        stack_table_free(locations->stacks);
        free(locations);
        locations = NULL;
    }
    if (locations) {
        locations->options = *options;
        locations->blobs.methods = options->methods;
        locations->list.element = sizeof(struct addr_location);
        locations->unknown = (struct resolved_frame){.kind = RESOLVED_UNKNOWN};
    }
    return locations;
}

void locations_free(struct locations *locations)
{
    if (locations) {
        code_details_free(&locations->blobs.details);
        chunks_free(&locations->list);
        free(locations->files);
        free(locations->symbols);
        hash_map_free(&locations->by_symbol);
        hash_map_free(&locations->by_pc);
        arena_clear(&locations->arena);
        stack_table_free(locations->stacks);
        free(locations);
    }
}

static void forget_symbols(struct locations *locations)
{
    if (locations->symbol_count) {
        hash_map_clear(&locations->by_symbol);
        locations->symbol_count = 0;
    }
}

void locations_file_gone(struct locations *locations, const struct mapped_file *file)
{
    if (file->index < locations->file_room) {
        if (locations->files[file->index].object) {
            forget_symbols(locations);
            objects_let_go(locations->options.objects, locations->files[file->index].object);
        }
        locations->files[file->index] = (struct mapped_object){0};
    }
}

static void clear(struct locations *locations)
{
    chunks_free(&locations->list);
    hash_map_clear(&locations->by_pc);
    memset(locations->front, 0, sizeof locations->front);
    forget_symbols(locations);
    stack_table_clear(locations->stacks);
    locations->failed |= !stack_table_reserve(locations->stacks, NODES_ROOM, LOCATIONS_ROOM);
    locations->version++;
}

void locations_clear(struct locations *locations)
{
    clear(locations);
    for (uint32_t i = 0; i < locations->file_room; i++) {
        locations->files[i].module = NULL;
    }
}

/* Whether locations are too many, with all that is made of them. */
static bool is_full(const struct locations *locations)
{
    uint32_t part = locations->options.sparing ? SPARING : 1;
    return locations->list.count > LOCATIONS_MAX / part ||
           locations->stacks->lines.size > LINE_BYTES_MAX / part;
}

bool locations_are_full(const struct locations *locations)
{
    return is_full(locations) || locations->stacks->node_count > NODES_MAX;
}

void locations_make_room(struct locations *locations)
{
    if (is_full(locations)) {
        clear(locations);
    } else if (locations_are_full(locations)) {
        stack_table_clear_nodes(locations->stacks);
        locations->version++;
    }
}

struct stack_table *locations_stacks(struct locations *locations)
{
    return locations->stacks;
}

uint64_t locations_version(const struct locations *locations)
{
    return locations->version;
}

struct blob_context *locations_blobs(struct locations *locations)
{
    return &locations->blobs;
}

bool locations_failed(const struct locations *locations)
{
    return locations->failed;
}

/* ---- Finding out ---- */

/* Of a method whose frame size the dump does not tell, code behind it can be told by its rows. */
static const struct blob_frames *shape_of(struct locations *locations,
                                          const struct found_code *code)
{
    struct jvm_dump *dump = code->dump;
    uint32_t blob = code->stay->blob;
    const struct blob_frames *shape = code_blobs_shape(&locations->blobs, dump, blob);
    bool unknown = shape->shape == FRAMES_COMPILED && shape->told_frame_size <= 0;
    return locations->options.unwind && unknown ? code_frames_of(dump->frames, blob) : shape;
}

static struct object *object_of(struct locations *locations, const struct mapped *mapped)
{
    const struct mapped_file *file = mapped->file;
    if (ARRAY_REACH(locations->files, file->index, locations->file_room)) {
        locations->failed = true;
        return NULL;
    }
    struct mapped_object *known = &locations->files[file->index];
    if (!known->object) {
        struct object_place place = {.file = file->identity,
                                     .pid = locations->process->pid,
                                     .start = mapped->start,
                                     .end = mapped->end};
        known->object = objects_find(locations->options.objects, &place);
    }
    return known->object;
}

void locations_prepare(struct locations *locations, const struct process *process, uint64_t address)
{
    const struct mapped *mapped = process_mapped_at(process, address);
    if (!mapped || mapped->file->anonymous) {
        return;
    }
    locations->process = process;
    struct object *object = object_of(locations, mapped);
    struct mapped_object *known = object ? &locations->files[mapped->file->index] : NULL;
    uint64_t offset = address - mapped->start + mapped->file_offset;
    uint64_t file_address;
    if (!known || known->is_ready || !object_address(object, offset, &file_address)) {
        return;
    }
    known->is_ready = true;
    struct object_symbol symbol;
    if (locations->options.symbolize) {
        (void)object_symbol(object, file_address, &symbol);
    }
    if (locations->options.unwind) {
        (void)object_row(object, file_address);
    }
}

/* Of a file whose object was asked for. */
static const struct module *module_of(struct locations *locations, const struct mapped_file *file)
{
    struct mapped_object *known = &locations->files[file->index];
    if (!known->module) {
        uint8_t id[BUILD_ID_MAX];
        size_t size = object_build_id(known->object, id);
        known->module =
            methods_file_module(locations->options.methods, file->identity.path, id, size);
        locations->failed |= !known->module;
    }
    return known->module;
}

/* unwind_find_fn */
static void find(void *context, uint64_t address, struct unwind_place *al)
{
    struct locations *locations = context;
    struct found_code code = dumps_code_at(locations->codes, address, locations->time);
    if (code.until < locations->until) {
        locations->until = code.until;
    }
    if (code.stay) {
        locations->found = code;
        al->code = shape_of(locations, &code);
        al->code_start = code.stay->address;
        al->code_size = code.stay->size;
        return;
    }
    const struct mapped *mapped = process_mapped_at(locations->process, address);
    bool vdso = mapped && strcmp(mapped->file->identity.path, "[vdso]") == 0;
    if (mapped && (!mapped->file->anonymous || vdso)) {
        al->mapped = true;
        al->is_stepped = strcmp(mapped->file->identity.path, "[uprobes]") == 0;
        al->is_called = strcmp(mapped->file->identity.path, "[uprobes-trampoline]") == 0;
        struct object *object = object_of(locations, mapped);
        uint64_t offset = address - mapped->start + mapped->file_offset;
        if (object && object_address(object, offset, &al->file_address)) {
            al->object = object;
        }
    }
}

/* ---- Frames ---- */

static void use_line(struct locations *locations, const struct resolved_frame *line)
{
    locations->one_line = *line;
    locations->made.lines = &locations->one_line;
    locations->made.line_count = 1;
}

static void use_code(struct locations *locations, struct addr_location *al,
                     const struct found_code *found)
{
    struct jvm_dump *dump = found->dump;
    const struct resolved_code *code = code_blobs_code(&locations->blobs, dump, found->stay);
    al->dump = dump;
    al->code = code;
    struct location *made = &locations->made;
    if (code) {
        made->module = code->module;
        made->code = code;
        made->module_address = code->module_address + (al->unwind.address - code->address);
        made->lines = code_blobs_frames(&locations->blobs, dump, code, al->unwind.address,
                                        al->caller, &locations->arena, &made->line_count);
    }
    if (!made->lines) {
        locations->failed = true;
        use_line(locations, &locations->unknown);
    }
}

/* The place of a function's name, where it is kept for all its addresses. NULL: no memory. */
static struct named_symbol *named_symbol(struct locations *locations, const struct object *object,
                                         uint64_t address)
{
    const struct named_symbol wanted = {
        .object = object, .module = locations->made.module, .address = address};
    uint32_t at = unique_add(&locations->symbols, &locations->symbol_count, &locations->symbol_room,
                             sizeof wanted, &locations->by_symbol, &wanted,
                             offsetof(struct named_symbol, method));
    return at == HASH_MAP_NONE ? NULL : &locations->symbols[at];
}

/* The function at an address of a file, and what is inlined there. */
static void symbolize(struct locations *locations, struct object *object, uint64_t address,
                      enum resolved_kind kind)
{
    const struct module *module = locations->made.module;
    struct object_symbol symbol;
    struct resolved_frame frame = {.kind = (uint8_t)kind};
    if (!object_symbol(object, address, &symbol)) {
        use_line(locations, &frame);
        return;
    }
    struct method_facts facts = {
        .kind = kind, .module = module, .address = symbol.address, .size = symbol.size};
    struct named_symbol *named = named_symbol(locations, object, symbol.address);
    const struct resolved_method *known = named ? named->method : NULL;
    const struct object_inline *inlines;
    if (known) {
        facts.name = known->name;
    } else {
        facts.name = objects_demangle(locations->options.objects, symbol.name);
        facts.name =
            methods_string(locations->options.methods, facts.name); /* before the next call */
    }
    size_t count =
        facts.name && kind == RESOLVED_NATIVE ? object_inlines(object, address, &inlines) : 0;
    size_t depth = count ? count - 1 : 0;
    struct resolved_frame *frames =
        facts.name ? arena_take(&locations->arena, (depth + 1) * sizeof *frames) : NULL;
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
                                       .module = module};
        frames[i] =
            (struct resolved_frame){.kind = RESOLVED_INLINED,
                                    .line = inlines[i].line,
                                    .method = methods_of(locations->options.methods, &inlined)};
        locations->failed |= !frames[i].method;
    }
    bool is_known = known && !facts.file && !known->file;
    frame.method = is_known     ? known
                   : facts.name ? methods_of(locations->options.methods, &facts)
                                : NULL;
    if (named) {
        named->method = frame.method;
    }
    locations->failed |= !frame.method || !frames;
    if (!frames) {
        use_line(locations, &locations->unknown);
        return;
    }
    frames[depth] = frame;
    locations->made.lines = frames;
    locations->made.line_count = (uint32_t)depth + 1;
}

const struct native_row *locations_row(struct locations *locations, const struct addr_location *al)
{
    (void)locations;
    return al->row ? al->row : object_row(al->unwind.object, al->unwind.file_address);
}

const struct frame_row *locations_code_row(struct addr_location *al)
{
    if (!al->has_code_row && al->code) {
        (void)code_frames_of(al->dump->frames, al->code->blob);
        al->code_row = unwind_place_row(&al->unwind);
        al->has_code_row = true;
    }
    return al->code_row;
}

static void use_file(struct locations *locations, struct addr_location *al,
                     const struct mapped *mapped)
{
    struct unwind_place *unwind = &al->unwind;
    const struct resolved_frame frame = {.kind = RESOLVED_NATIVE};
    al->file = object_of(locations, mapped);
    al->mapped_file = mapped->file->number;
    locations->made.module = al->file ? module_of(locations, mapped->file) : NULL;
    locations->made.module_address = unwind->object ? unwind->file_address : 0;
    if (locations->options.symbolize && unwind->object) {
        symbolize(locations, unwind->object, unwind->file_address, RESOLVED_NATIVE);
    } else {
        use_line(locations, &frame);
    }
    if (locations->options.unwind && unwind->object) {
        const struct native_row *row = object_row(unwind->object, unwind->file_address);
        al->row = row->lasts ? row : NULL;
    }
}

/* Memory without a file that is executable: it is generated code that nobody told of. */
static void use_nothing(struct locations *locations, struct addr_location *al,
                        const struct mapped *mapped)
{
    struct resolved_frame frame = locations->unknown;
    if (mapped) {
        frame.unnamed =
            (uint8_t)dumps_why_unnamed(locations->codes, al->unwind.address, locations->time);
        if (frame.unnamed == UNNAMED_AFTER_DUMP || frame.unnamed == UNNAMED_UNKNOWN) {
            locations->until =
                locations->time; /* it depends on the time: not for the next sample */
        }
    }
    use_line(locations, &frame);
}

/* Finds out what is at al->pc of a process at a time, and until when that holds; its lines are
 * locations->made. Without memory locations->failed is set. */
static void make(struct locations *locations, struct addr_location *al,
                 const struct process *process, uint64_t time)
{
    struct unwind_place *unwind = &al->unwind;
    locations->process = process;
    locations->codes = process_code_of(locations->options.codes, process);
    locations->time = time;
    locations->until = UINT64_MAX;
    unwind_place_of(find, locations, al->pc, al->caller, unwind);
    const struct mapped *mapped = process_mapped_at(locations->process, unwind->address);
    if (unwind->code) {
        use_code(locations, al, &locations->found);
    } else if (unwind->mapped) {
        use_file(locations, al, mapped);
    } else {
        use_nothing(locations, al, mapped);
    }
    al->is_root = -1;
    al->from = locations->time;
    al->until = locations->until;
}

/* The same in the kernel; object NULL: it is not known. */
static void make_kernel(struct locations *locations, struct addr_location *al,
                        struct object *kernel, const struct module *module)
{
    const struct resolved_frame frame = {.kind = RESOLVED_KERNEL};
    al->unwind.address = al->pc;
    locations->made.module = module;
    locations->made.module_address = al->pc;
    if (locations->options.symbolize && kernel) {
        symbolize(locations, kernel, al->pc, RESOLVED_KERNEL);
    } else {
        use_line(locations, &frame);
    }
}

/* ---- Keeping it ---- */

/* The dumps have grown. Most of what was found before is there still: the same code, or none. */
static bool is_unchanged(struct locations *locations, struct process_code code, uint64_t time,
                         struct addr_location *al)
{
    struct unwind_place *unwind = &al->unwind;
    struct found_code now = dumps_code_at(code, unwind->address, time);
    if (!al->code) {
        return !now.stay && (unwind->mapped || !code.dump);
    }
    if (!now.stay || unwind->stub_section || now.dump != al->dump ||
        code_blobs_code(&locations->blobs, now.dump, now.stay) != al->code) {
        return false;
    }
    al->has_code_row = false; /* rows live until the index grows */
    al->until = now.until;
    return true;
}

/* Whether it is the code that this very dump told of, and has not grown since: a mapping elsewhere
 * changes nothing of it. */
static bool is_told_still(const struct addr_location *al, struct process_code code,
                          uint32_t generation)
{
    return al->code && !al->unwind.stub_section && al->dump == code.dump &&
           al->generation == generation;
}

/* The process has mapped something. Mostly elsewhere: the same code, or the same part of a file. */
static bool is_mapped_as_before(const struct process *process, const struct addr_location *al)
{
    const struct unwind_place *unwind = &al->unwind;
    if (al->code) {
        return true; /* files do not hide it */
    }
    const struct mapped *mapped =
        al->mapped_file ? process_mapped_at(process, unwind->address) : NULL;
    uint64_t address = 0;
    if (!mapped || mapped->file->number != al->mapped_file) {
        return false;
    }
    uint64_t offset = unwind->address - mapped->start + mapped->file_offset;
    bool has_address = object_address(al->file, offset, &address);
    return has_address == (unwind->object != NULL) &&
           (!has_address || address == unwind->file_address);
}

/* What was found is a location. */
static void finish(struct locations *locations, struct addr_location *al)
{
    struct location *made = &locations->made;
    made->address = al->unwind.address;
    made->is_caller = al->caller && !al->unwind.barrier && !al->unwind.stub_section;
    al->line_count = made->line_count;
    al->location = stack_table_location(locations->stacks, made);
    locations->failed |= al->location == HASH_MAP_NONE;
    if (made->lines != &locations->one_line) {
        arena_clear(&locations->arena);
    }
    *made = (struct location){0};
}

/* ---- Looking up ---- */

static uint64_t hash_of(uint32_t process, uint64_t pc, bool caller)
{
    return (pc << 1 | caller) * UINT64_C(0x9e3779b97f4a7c15) + process;
}

static bool is_of(const struct addr_location *al, uint32_t process, uint64_t pc, bool caller)
{
    return al->pc == pc && al->process == process && al->caller == caller;
}

/* Looking one up misses the processor's caches twice, at its slot and at what it holds: many at
 * a time wait for memory together. */
void locations_prefetch(const struct locations *locations, const struct process *process,
                        const uint64_t *pcs, uint32_t count)
{
    struct hash_map_cursor cursors[PREFETCHED];
    for (uint32_t from = 0; from < count; from += PREFETCHED) {
        uint32_t left = count - from;
        uint32_t some = left < PREFETCHED ? left : PREFETCHED;
        for (uint32_t i = 0; i < some; i++) {
            uint64_t hash = hash_of(process->number, pcs[from + i], from + i > 0);
            cursors[i] = hash_map_start(&locations->by_pc, hash);
            hash_map_prefetch(&locations->by_pc, &cursors[i]);
        }
        for (uint32_t i = 0; i < some; i++) {
            uint32_t at = hash_map_next(&locations->by_pc, &cursors[i]);
            if (at != HASH_MAP_NONE) {
                const struct addr_location *found = chunks_at(&locations->list, at);
                __builtin_prefetch(found);
                __builtin_prefetch(&found->unwind);
            }
        }
    }
}

/* The one of these, made when there is none (and then with pc 0). NULL: no memory. */
static struct addr_location *find_known(struct locations *locations, uint32_t process, uint64_t pc,
                                        bool caller, bool *is_new)
{
    uint64_t hash = hash_of(process, pc, caller);
    struct front *front = &locations->front[hash >> 32 & (FRONT - 1)];
    *is_new = false;
    if (front->hash == hash && front->al && is_of(front->al, process, pc, caller)) {
        return front->al;
    }
    struct hash_map_cursor cursor = hash_map_start(&locations->by_pc, hash);
    uint32_t at;
    while ((at = hash_map_next(&locations->by_pc, &cursor)) != HASH_MAP_NONE) {
        struct addr_location *al = chunks_at(&locations->list, at);
        if (is_of(al, process, pc, caller)) {
            *front = (struct front){hash, al};
            return al;
        }
    }
    struct addr_location *al = chunks_add(&locations->list);
    if (!al || hash_map_add(&locations->by_pc, hash, locations->list.count - 1)) {
        locations->failed = true;
        return NULL;
    }
    al->pc = pc;
    al->process = process;
    al->caller = caller;
    *is_new = true;
    return al;
}

static struct addr_location *nowhere(struct locations *locations, uint64_t pc, bool caller)
{
    struct addr_location *al = &locations->nowhere;
    *al = (struct addr_location){.pc = pc, .caller = caller, .unwind = {.address = pc - caller}};
    use_line(locations, &locations->unknown);
    finish(locations, al);
    return al;
}

struct addr_location *locations_at(struct locations *locations, const struct process *process,
                                   uint64_t time, uint64_t pc, bool caller)
{
    bool is_new;
    struct addr_location *al =
        process ? find_known(locations, process->number, pc, caller, &is_new) : NULL;
    if (!al) {
        return nowhere(locations, pc, caller);
    }
    struct process_code code = process_code_of(locations->options.codes, process);
    uint32_t generation = code.dump ? code.dump->generation : 0;
    uint64_t state = process_mappings_state(process);
    if (time > code.until) {
        time = code.until;
    }
    bool holds = !is_new && time >= al->from && time < al->until;
    bool is_mapped = al->mappings_state == state;
    if (holds && !is_mapped) {
        holds = is_mapped_as_before(process, al);
        al->mappings_state = state;
    }
    if (holds && (!is_mapped || al->generation != generation) &&
        !is_told_still(al, code, generation)) {
        /* What was mapped may be another dump. */
        uint32_t stretch = is_mapped && code.dump ? addr_location_stretch(al) : STRETCHES;
        if (stretch < STRETCHES && jvm_dump_stands(code.dump, al->generation, stretch)) {
            al->has_code_row = false; /* as below */
        } else {
            holds = is_unchanged(locations, code, time, al);
        }
        al->generation = generation;
    }
    if (!holds) {
        struct addr_location fresh = {.pc = pc,
                                      .caller = caller,
                                      .process = process->number,
                                      .generation = generation,
                                      .mappings_state = state};
        make(locations, &fresh, process, time);
        locations->version += al->until > al->from;
        *al = fresh;
        finish(locations, al);
    }
    return al;
}

struct addr_location *locations_at_kernel(struct locations *locations, uint64_t pc,
                                          struct object *kernel, const struct module *module)
{
    bool is_new;
    struct addr_location *al = find_known(locations, 0, pc, false, &is_new);
    if (!al) {
        return nowhere(locations, pc, false);
    }
    if (is_new) {
        make_kernel(locations, al, kernel, module);
        finish(locations, al);
    }
    return al;
}

bool addr_location_is_root(struct addr_location *al)
{
    if (al->is_root < 0) {
        bool is_root = al->file && object_is_root(al->file, al->unwind.file_address);
        al->is_root = is_root ? 1 : 0;
    }
    return al->is_root == 1;
}
