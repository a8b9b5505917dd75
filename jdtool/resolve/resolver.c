#include "jdtool/resolve/resolver.h"

#include "jdtool/base/array.h"
#include "jdtool/base/message.h"
#include "jdtool/perf/build_ids.h"
#include "jdtool/resolve/event_frames.h"
#include "jdtool/resolve/places.h"
#include "jdtool/unwind/interpreter.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Marks a chain that will be completed by a PERF_RECORD_CALLCHAIN_DEFERRED; a cookie follows. */
#define CONTEXT_USER_DEFERRED ((uint64_t)-640)

/* As deep as the kernel records (kernel.perf_event_max_stack), where the event does not tell. */
#define KERNEL_MAX_STACK 127

/* A copy of 64 KB has room for no more return addresses. */
#define UNWOUND_MAX 8192

/* A stack's outermost frames are searched for the thread's root: unwinders may go a little too
 * far. */
#define ROOT_DEPTH 3

struct resolver {
    struct perf_data *data;
    struct resolver_options options;
    unsigned machine; /* e_machine */
    bool unwinds;
    struct methods *methods;
    struct objects *objects;
    struct object *kernel;
    struct kernel_place kernel_place;
    struct module *kernel_module;
    struct process_table *table;
    struct dumps *dumps;
    struct places *places;
    struct hash_map by_detail; /* of interpreted methods: their detail -> place in interpreted */
    struct interpreted {
        const struct method_detail *detail;
        const struct resolved_method *method;
    } * interpreted;
    uint32_t interpreted_count;
    uint32_t interpreted_room;
    uint32_t given_sources; /* by resolver_codes: all stays of so many, */
    uint32_t *given;        /* and of each so many */
    uint32_t given_room;
    uint64_t frames_cut;

    /* The sample at hand. */
    struct process *process;
    uint64_t time;
    struct resolved_frame *frames;
    uint32_t frame_count;
    uint32_t frame_room;
    const struct resolved_code **touched;
    uint32_t touched_count;
    uint32_t touched_room;
    struct place *outermost[ROOT_DEPTH]; /* of the user's part, a ring */
    uint32_t user_places;
    bool passed_barrier;
    bool failed;
    struct unwind_frame unwound[UNWOUND_MAX];
};

static int no_memory(const struct resolver *resolver)
{
    error_message("failed to resolve the samples of %s: %s", perf_data_path(resolver->data),
                  strerror(ENOMEM));
    return -ENOMEM;
}

/* ---- Life ---- */

/* A recording that was killed does not tell its machine; then it is this one. */
static unsigned machine_of(struct perf_data *data)
{
    const char *arch = perf_data_string(data, PERF_FEATURE_ARCH);
    if (!arch) {
#ifdef __aarch64__
        return EM_AARCH64;
#else
        return EM_X86_64;
#endif
    }
    return strcmp(arch, "aarch64") == 0 || strcmp(arch, "arm64") == 0 ? EM_AARCH64
           : strcmp(arch, "x86_64") == 0                              ? EM_X86_64
                                                                      : EM_NONE;
}

/* A recording of another machine has pids that mean nothing here. */
static bool is_of_this_machine(struct perf_data *data)
{
    char own[256];
    const char *name = perf_data_string(data, PERF_FEATURE_HOSTNAME);
    return !name || (gethostname(own, sizeof own) == 0 && strcmp(own, name) == 0);
}

static int take_listed(void *context, const struct listed_build_id *listed)
{
    struct resolver *resolver = context;
    if (!listed->kernel) {
        return objects_list_build_id(resolver->objects, listed->path, listed->id, listed->id_size);
    }
    if (strcmp(listed->path, "[kernel.kallsyms]") == 0) { /* by it another machine's is found */
        struct kernel_place place = {.id = listed->id, .id_size = listed->id_size};
        (void)objects_kernel(resolver->objects, &place);
    }
    return 0;
}

static int make_parts(struct resolver *resolver)
{
    struct perf_data *data = resolver->data;
    const struct resolver_options *options = &resolver->options;
    struct objects_options objects = {
        .machine = resolver->machine,
        .build_id_dir = options->build_id_dir,
        .os_release = perf_data_string(data, PERF_FEATURE_OSRELEASE),
        .here = is_of_this_machine(data),
    };
    struct dumps_options dumps = {.named = options->dumps,
                                  .named_count = options->dump_count,
                                  .live = perf_data_is_live(data)};
    resolver->methods = methods_new();
    resolver->table = process_table_new();
    if (!resolver->methods || !resolver->table || objects_new(&objects, &resolver->objects) ||
        perf_data_build_ids(data, take_listed, resolver)) {
        return no_memory(resolver);
    }
    struct places_options places = {.methods = resolver->methods,
                                    .objects = resolver->objects,
                                    .symbolize = options->symbolize,
                                    .unwind = resolver->unwinds};
    resolver->places = places_new(&places);
    resolver->kernel = objects_kernel(resolver->objects, &resolver->kernel_place);
    resolver->kernel_module =
        methods_add_module(resolver->methods, MODULE_KERNEL, "[kernel.kallsyms]");
    if (!resolver->places || !resolver->kernel_module) {
        return no_memory(resolver);
    }
    return dumps_new(data, resolver->methods, &dumps, &resolver->dumps);
}

int resolver_new(struct perf_data *data, const struct resolver_options *options,
                 struct resolver **out)
{
    struct resolver *resolver = calloc(1, sizeof *resolver);
    *out = NULL;
    if (!resolver) {
        error_message("failed to resolve the samples of %s: %s", perf_data_path(data),
                      strerror(ENOMEM));
        return -ENOMEM;
    }
    resolver->data = data;
    resolver->options = *options;
    resolver->machine = machine_of(data);
    resolver->unwinds = options->unwind && perf_data_has(data, PERF_SAMPLE_STACK_USER) &&
                        resolver->machine != EM_NONE;
    int err = make_parts(resolver);
    if (err) {
        resolver_free(resolver);
        return err;
    }
    *out = resolver;
    return 0;
}

void resolver_settle(struct resolver *resolver)
{
    places_free(resolver->places);
    objects_free(resolver->objects);
    resolver->places = NULL;
    resolver->objects = NULL;
}

void resolver_free(struct resolver *resolver)
{
    if (!resolver) {
        return;
    }
    places_free(resolver->places);
    dumps_free(resolver->dumps);
    process_table_free(resolver->table);
    objects_free(resolver->objects);
    methods_free(resolver->methods);
    hash_map_free(&resolver->by_detail);
    free(resolver->interpreted);
    free(resolver->given);
    free(resolver->frames);
    free(resolver->touched);
    free(resolver);
}

bool resolver_unwinds(const struct resolver *resolver)
{
    return resolver->unwinds;
}

/* ---- Records ---- */

int resolver_notice(struct resolver *resolver, const struct perf_record *record)
{
    struct mapping mapping;
    uint32_t pid;
    if (mapping_decode(resolver->data, record, &mapping, &pid) &&
        dumps_notice(resolver->dumps, pid, &mapping)) {
        return no_memory(resolver);
    }
    return 0;
}

/* "[kernel.kallsyms]_text", at the offset in the file that is that symbol's address. */
static int add_kernel_mapping(struct resolver *resolver, const struct mapping *mapping)
{
    static const char kallsyms[] = "[kernel.kallsyms]";
    if (strncmp(mapping->path, kallsyms, sizeof kallsyms - 1) != 0) {
        return 0;
    }
    const char *symbol = mapping->path + sizeof kallsyms - 1;
    struct kernel_place place = {
        .id = mapping->build_id_size ? mapping->build_id : NULL,
        .id_size = mapping->build_id_size,
        .reference = *symbol ? symbol : NULL,
        .reference_address = *symbol ? mapping->file_offset : 0,
    };
    resolver->kernel = objects_kernel(resolver->objects, &place);
    if (mapping->build_id_size && mapping->build_id_size <= MODULE_BUILD_ID_MAX) {
        memcpy(resolver->kernel_module->build_id, mapping->build_id, mapping->build_id_size);
        resolver->kernel_module->build_id_size = mapping->build_id_size;
    }
    return 0;
}

/*
 * A JVM's own mappings of memory for code: each growth of the code cache is one, and perf would let
 * it hide all methods mapped before (so would the reservation, which --call-graph dwarf records
 * with all other data mappings). And the dump's, or 'perf inject --jit' could be run on the result.
 */
static bool is_superseded(const struct resolver *resolver, const struct mapping *mapping,
                          uint32_t pid)
{
    const struct process *process = process_table_at(resolver->table, pid);
    bool has_own = process && process->code && process->code_until == UINT64_MAX;
    const struct code_source *first = NULL;
    for (const struct code_source *source = has_own ? process->code : NULL; source;
         source = source->earlier) {
        if (source->about.index) {
            first = source;
            if (source->about.recorded && strcmp(source->about.recorded, mapping->path) == 0) {
                return true;
            }
        }
    }
    return first && mapping->anonymous && mapping->from >= first->about.from;
}

/* addr, len, ksym_type, flags, name. */
static int add_ksymbol(struct resolver *resolver, const struct perf_record *record)
{
    const uint16_t unregister = 1; /* PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER */
    const char *name = perf_record_string(record, 24);
    uint16_t flags = (uint16_t)(perf_record_u32(record, 20) >> 16);
    if (!name || flags & unregister) {
        return 0;
    }
    return objects_add_ksymbol(resolver->objects, perf_record_u64(record, 8),
                               perf_record_u32(record, 16), name);
}

int resolver_record(struct resolver *resolver, const struct perf_record *record, bool *superseded)
{
    struct process_change change;
    struct mapping mapping;
    uint32_t pid;
    *superseded = false;
    if (record->type == PERF_USER_TIME_CONV) {
        dumps_set_conversion(resolver->dumps, record);
    } else if (record->type == PERF_RECORD_KSYMBOL) {
        return add_ksymbol(resolver, record) ? no_memory(resolver) : 0;
    } else if (record->type == PERF_USER_BUILD_ID) {
        return perf_record_build_id(record, take_listed, resolver) ? no_memory(resolver) : 0;
    } else if (mapping_decode_kernel(resolver->data, record, &mapping)) {
        return add_kernel_mapping(resolver, &mapping);
    }
    if (process_table_add(resolver->table, resolver->data, record, &change)) {
        return no_memory(resolver);
    }
    if (change.mapped) {
        uint64_t time = perf_record_id(resolver->data, record).time;
        int err = dumps_map(resolver->dumps, change.process, change.mapped, time);
        if (err) {
            return err;
        }
    }
    if (mapping_decode(resolver->data, record, &mapping, &pid)) {
        *superseded = is_superseded(resolver, &mapping, pid);
    }
    return 0;
}

/* ---- Frames ---- */

static void touch(struct resolver *resolver, const struct resolved_code *code)
{
    if (!code ||
        (resolver->touched_count && resolver->touched[resolver->touched_count - 1] == code)) {
        return;
    }
    if (array_reserve(&resolver->touched, resolver->touched_count, &resolver->touched_room,
                      sizeof(struct resolved_code *))) {
        resolver->failed = true;
        return;
    }
    resolver->touched[resolver->touched_count++] = code;
}

/* Room for `count` more frames; fewer, when there are too many, and then the outermost are cut. */
static uint32_t reserve_frames(struct resolver *resolver, uint32_t count)
{
    uint32_t left = RESOLVED_FRAMES_MAX - resolver->frame_count;
    if (count > left) {
        resolver->frames_cut += count - left;
        count = left;
    }
    while (resolver->frame_count + count > resolver->frame_room) {
        uint32_t room = resolver->frame_room ? resolver->frame_room * 2 : 1024;
        struct resolved_frame *grown = realloc(resolver->frames, room * sizeof *grown);
        if (!grown) {
            resolver->failed = true;
            return 0;
        }
        resolver->frames = grown;
        resolver->frame_room = room;
    }
    return count;
}

/* Adds the frames of a place. The last of them, NULL: there was no room. */
static struct resolved_frame *add_place(struct resolver *resolver, struct place *place)
{
    uint32_t count = reserve_frames(resolver, place->frame_count);
    struct resolved_frame *frames = resolver->frames + resolver->frame_count;
    if (count == 1) {
        frames[0] = place->frames[0];
    } else if (count) {
        memcpy(frames, place->frames, count * sizeof *frames);
    }
    for (uint32_t i = 0; i < count && count < place->frame_count; i++) {
        frames[i].origin = 0; /* cut, it is not what other samples have there */
    }
    resolver->frame_count += count;
    touch(resolver, place->code);
    return count && count == place->frame_count ? &frames[count - 1] : NULL;
}

static struct resolved_frame *add_user_place(struct resolver *resolver, struct place *place)
{
    resolver->outermost[resolver->user_places++ % ROOT_DEPTH] = place;
    resolver->passed_barrier |= place->unwind.barrier;
    return add_place(resolver, place);
}

static struct place *user_place(struct resolver *resolver, uint64_t pc, bool caller)
{
    return places_at(resolver->places, resolver->process, resolver->time, pc, caller);
}

static void add_kernel(struct resolver *resolver, uint64_t pc)
{
    (void)add_place(resolver, places_at_kernel(resolver->places, pc, resolver->kernel,
                                               resolver->kernel_module));
}

/* An address of a guest, or of a hypervisor: nothing is known of it. */
static void add_foreign(struct resolver *resolver, uint64_t pc)
{
    (void)add_place(resolver, places_at(resolver->places, NULL, resolver->time, pc, false));
}

/* ---- Call chains as the kernel recorded them ---- */

/* The chain up to the user's part. */
static uint64_t add_kernel_part(struct resolver *resolver, const struct perf_sample *sample)
{
    bool in_kernel = (sample->misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL;
    uint64_t i = 0;
    for (; i < sample->chain_count && sample->chain[i] != PERF_CONTEXT_USER; i++) {
        uint64_t ip = sample->chain[i];
        if (ip == CONTEXT_USER_DEFERRED) {
            return sample->chain_count; /* only the cookie is behind it */
        }
        if (ip >= PERF_CONTEXT_MAX) {
            in_kernel = ip == PERF_CONTEXT_KERNEL;
        } else if (in_kernel) {
            add_kernel(resolver, ip);
        } else {
            add_foreign(resolver, ip);
        }
    }
    return i;
}

/* From the marker on. */
static void add_user_part(struct resolver *resolver, const struct perf_sample *sample, uint64_t i)
{
    bool is_user = false;
    bool is_first = true;
    for (; i < sample->chain_count; i++) {
        uint64_t ip = sample->chain[i];
        if (ip >= PERF_CONTEXT_MAX) {
            is_user = ip == PERF_CONTEXT_USER;
        } else if (is_user) {
            (void)add_user_place(resolver, user_place(resolver, ip, !is_first));
            is_first = false;
        } else {
            add_foreign(resolver, ip);
        }
    }
}

/* Those that start in user mode need no marker in old recordings. */
static void add_chain(struct resolver *resolver, const struct perf_sample *sample)
{
    bool in_user = (sample->misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_USER;
    bool marked = sample->chain_count && sample->chain[0] >= PERF_CONTEXT_MAX;
    if (in_user && !marked) {
        for (uint64_t i = 0; i < sample->chain_count && sample->chain[i] < PERF_CONTEXT_MAX; i++) {
            (void)add_user_place(resolver, user_place(resolver, sample->chain[i], i > 0));
        }
        uint64_t i = 0;
        while (i < sample->chain_count && sample->chain[i] < PERF_CONTEXT_MAX) {
            i++;
        }
        add_user_part(resolver, sample, i);
        return;
    }
    add_user_part(resolver, sample, add_kernel_part(resolver, sample));
}

static void add_own_address(struct resolver *resolver, const struct perf_sample *sample)
{
    switch (sample->misc & PERF_RECORD_MISC_CPUMODE_MASK) {
    case PERF_RECORD_MISC_USER:
        (void)add_user_place(resolver, user_place(resolver, sample->ip, false));
        break;
    case PERF_RECORD_MISC_KERNEL:
        add_kernel(resolver, sample->ip);
        break;
    default:
        add_foreign(resolver, sample->ip);
        break;
    }
}

/*
 * --call-graph lbr: the user's part are the calls that the processor remembers, as perf puts them
 * together (resolve_lbr_callchain_sample in tools/perf/util/machine.c): where the last one went,
 * then where each came from, which are the calls themselves.
 */
static bool has_branch_stack(const struct perf_sample *sample)
{
    return sample->branch_count &&
           sample->event->attr.branch_sample_type & PERF_SAMPLE_BRANCH_CALL_STACK;
}

static void add_branch_stack(struct resolver *resolver, struct perf_sample *sample)
{
    (void)add_kernel_part(resolver, sample);
    (void)add_user_place(resolver, user_place(resolver, sample->branches[0].to, false));
    for (uint64_t i = 0; i < sample->branch_count; i++) {
        (void)add_user_place(resolver, user_place(resolver, sample->branches[i].from, false));
    }
    sample->unwound = true;
}

/* ---- Stack copies ---- */

static const struct unwind_place *find_place(void *context, uint64_t pc, bool caller)
{
    return &user_place(context, pc, caller)->unwind;
}

static const struct native_row *find_row(void *context, const struct unwind_place *place)
{
    const struct resolver *resolver = context;
    return places_row(resolver->places, place_of(place));
}

static const struct frame_row *find_code_row(void *context, const struct unwind_place *place)
{
    (void)context;
    return places_code_row(place_of(place));
}

/* The method of a detail, which stays the same. NULL: no memory. */
static const struct resolved_method *interpreted_method(struct resolver *resolver,
                                                        const struct method_detail *detail,
                                                        const struct module *module)
{
    struct hash_map_cursor cursor = hash_map_start(&resolver->by_detail, (uintptr_t)detail);
    uint32_t at;
    while ((at = hash_map_next(&resolver->by_detail, &cursor)) != HASH_MAP_NONE) {
        if (resolver->interpreted[at].detail == detail) {
            return resolver->interpreted[at].method;
        }
    }
    struct method_facts facts = {.kind = RESOLVED_INTERPRETED,
                                 .name = detail->name,
                                 .file = detail->file,
                                 .first_line = detail->line_count ? detail->lines[0].line : 0,
                                 .module = module};
    const struct resolved_method *method = methods_of(resolver->methods, &facts);
    if (!method ||
        array_reserve(&resolver->interpreted, resolver->interpreted_count,
                      &resolver->interpreted_room, sizeof *resolver->interpreted) ||
        hash_map_add(&resolver->by_detail, (uintptr_t)detail, resolver->interpreted_count)) {
        resolver->failed = true;
        return NULL;
    }
    resolver->interpreted[resolver->interpreted_count++] = (struct interpreted){detail, method};
    return method;
}

static void name_interpreted(struct resolver *resolver, const struct place *place,
                             const struct unwind_frame *unwound, struct resolved_frame *frame)
{
    struct interpreted_frame named;
    frame->kind = RESOLVED_INTERPRETED;
    frame->origin = 0; /* what is interpreted there depends on the sample */
    if (place->source && place->source->names &&
        interpreter_name(place->source->names, unwound, resolver->time, &named)) {
        const struct resolved_method *method =
            interpreted_method(resolver, named.method, place->module);
        if (method) {
            frame->method = method;
            frame->line = named.line;
            frame->bci = named.bci <= INT32_MAX ? (int32_t)named.bci : -1;
        }
    }
}

static enum stack_end end_of(enum unwind_end ended, const struct perf_sample *sample)
{
    static const enum stack_end ends[UNWIND_END_COUNT] = {
        [UNWIND_ROOT] = STACK_ROOT,
        [UNWIND_COPY_ENDS] = STACK_COPY_ENDS,
        [UNWIND_UNKNOWN_CODE] = STACK_UNKNOWN,
        [UNWIND_NO_FRAME_INFO] = STACK_NO_INFO,
        [UNWIND_BROKEN] = STACK_BROKEN,
        [UNWIND_TOO_DEEP] = STACK_CUT,
    };
    if (ended == UNWIND_COPY_ENDS && sample->stack_dyn_size < sample->stack_size) {
        return STACK_COPY_CUT;
    }
    return ended < UNWIND_END_COUNT ? ends[ended] : STACK_BROKEN;
}

/* False: there is no copy that can be unwound. */
static bool add_copy(struct resolver *resolver, struct perf_sample *sample, enum stack_end *end)
{
    struct unwind_sample walk = {.stack = sample->stack, .stack_size = sample->stack_dyn_size};
    if (!sample->regs) {
        return false;
    }
    if (!unwind_take_registers(resolver->machine, sample->regs_abi,
                               sample->event->attr.sample_regs_user, sample->regs,
                               sample->reg_count, &walk)) { /* a 32-bit program's */
        if ((sample->misc & PERF_RECORD_MISC_CPUMODE_MASK) != PERF_RECORD_MISC_USER) {
            return false;
        }
        (void)add_kernel_part(resolver, sample);
        (void)add_user_place(resolver, user_place(resolver, sample->ip, false));
        sample->unwound = true;
        *end = STACK_BROKEN;
        return true;
    }
    (void)add_kernel_part(resolver, sample);
    struct unwind_process surroundings = {.find = find_place,
                                          .row = find_row,
                                          .code_row = find_code_row,
                                          .context = resolver,
                                          .machine = resolver->machine};
    uint32_t count;
    enum unwind_end ended = unwind(&surroundings, &walk, resolver->unwound, UNWOUND_MAX, &count);
    *end = end_of(ended, sample);
    for (uint32_t i = 0; i < count; i++) {
        const struct unwind_frame *unwound = &resolver->unwound[i];
        struct place *place = place_of(unwound->place);
        struct resolved_frame *frame = add_user_place(resolver, place);
        if (frame && unwound->kind == UNWIND_INTERPRETED) {
            name_interpreted(resolver, place, unwound, frame);
        }
    }
    sample->unwound = true;
    return true;
}

/* ---- How stacks end ---- */

static bool reaches_root(struct resolver *resolver)
{
    for (uint32_t i = 1; i <= ROOT_DEPTH && i <= resolver->user_places; i++) {
        if (place_is_root(resolver->outermost[(resolver->user_places - i) % ROOT_DEPTH])) {
            return true;
        }
    }
    return false;
}

static const struct place *outermost(const struct resolver *resolver)
{
    return resolver->outermost[(resolver->user_places - 1) % ROOT_DEPTH];
}

/* Of a chain that the kernel made by frame pointers. */
static enum stack_end chain_end(const struct resolver *resolver, const struct perf_sample *sample)
{
    uint64_t most = sample->event->attr.sample_max_stack;
    if (!(sample->has & PERF_SAMPLE_CALLCHAIN)) {
        return STACK_NONE;
    }
    if (sample->chain_count >= (most ? most : KERNEL_MAX_STACK)) {
        return STACK_CUT;
    }
    const struct unwind_place *last = &outermost(resolver)->unwind;
    return last->code || last->mapped ? STACK_BROKEN : STACK_UNKNOWN;
}

static enum stack_end judge(struct resolver *resolver, const struct perf_sample *sample,
                            enum stack_end copy_end, uint64_t frames_cut)
{
    if (resolver->user_places == 0) {
        return STACK_KERNEL_ONLY;
    }
    if (resolver->frames_cut > frames_cut) {
        return STACK_CUT;
    }
    bool is_copy = copy_end != STACK_ENDS;
    bool rooted = reaches_root(resolver);
    if (is_copy && copy_end == STACK_ROOT && outermost(resolver)->unwind.object) {
        rooted = true; /* its file says that it has no caller */
    }
    if (rooted && (is_copy || sample->has & PERF_SAMPLE_CALLCHAIN)) {
        return resolver->passed_barrier ? STACK_FROZEN : STACK_ROOT;
    }
    if (!is_copy) {
        return chain_end(resolver, sample);
    }
    return copy_end == STACK_ROOT ? STACK_BROKEN : copy_end;
}

/* ---- What events are about ---- */

/* Puts a frame that stands for no code in at `at`. */
static void put_subject(struct resolver *resolver, uint32_t at, const char *name)
{
    struct method_facts facts = {.kind = RESOLVED_SUBJECT, .name = name};
    const struct resolved_method *method = methods_of(resolver->methods, &facts);
    if (!method) {
        resolver->failed = true;
        return;
    }
    if (reserve_frames(resolver, 1)) {
        struct resolved_frame *frames = resolver->frames;
        memmove(frames + at + 1, frames + at, (resolver->frame_count - at) * sizeof *frames);
        frames[at] = (struct resolved_frame){.kind = RESOLVED_SUBJECT, .bci = -1, .method = method};
        resolver->frame_count++;
    }
}

/* Leaves out the JVM's frames on the way to its event, and our callback's. Where there is no Java
 * frame behind them they stay: they are all there is. */
static void cut_inner_frames(struct resolver *resolver)
{
    uint32_t count = resolver->frame_count;
    uint32_t first = event_frames_java(resolver->frames, count);
    if (first < count) {
        memmove(resolver->frames, resolver->frames + first,
                (count - first) * sizeof *resolver->frames);
        resolver->frame_count -= first;
    }
}

static void shape_event(struct resolver *resolver, struct perf_sample *sample,
                        const struct event_facts *facts)
{
    const char *subject = facts->subject;
    if (facts->kind == EVENT_OFF_CPU) {
        const char *comm = process_table_comm(resolver->table, sample->tid);
        if (event_frames_idle(resolver->frames, resolver->frame_count, comm)) {
            put_subject(resolver, resolver->frame_count, EVENT_IDLE);
        }
    } else if (facts->kind == EVENT_WAKER) {
        if (*subject) {
            put_subject(resolver, resolver->frame_count, subject);
        }
    } else {
        if (facts->kind == EVENT_EXCEPTION) {
            subject = event_frames_exception(resolver->frames, resolver->frame_count);
        }
        cut_inner_frames(resolver);
        if (subject && *subject) {
            put_subject(resolver, 0, subject);
        }
    }
    sample->unwound = true; /* its chain is made of the frames */
}

/* ---- Samples ---- */

static void touch_branches(struct resolver *resolver, const struct perf_sample *sample)
{
    for (uint64_t i = 0; i < sample->branch_count; i++) {
        touch(resolver, user_place(resolver, sample->branches[i].from, false)->code);
        touch(resolver, user_place(resolver, sample->branches[i].to, false)->code);
    }
}

static void fill_thread(const struct resolver *resolver, const struct perf_sample *sample,
                        struct resolved_thread *thread)
{
    const struct process *process = resolver->process;
    *thread = (struct resolved_thread){
        .pid = sample->pid,
        .tid = sample->tid,
        .comm = process_table_comm(resolver->table, sample->tid),
        .process_name = process_table_comm(resolver->table, sample->pid),
    };
    for (const struct code_source *source = process ? process->code : NULL; source && !thread->jvm;
         source = source->earlier) {
        thread->jvm = source->about.module;
    }
    thread->is_jvm = process && (process->has_jvm || process->code);
}

int resolver_sample(struct resolver *resolver, struct perf_sample *sample,
                    const struct event_facts *facts, struct resolved_sample *out)
{
    uint64_t frames_cut = resolver->frames_cut;
    enum stack_end copy_end = STACK_ENDS; /* there is no copy */
    resolver->process = process_table_at(resolver->table, sample->pid);
    resolver->time = sample->time;
    resolver->frame_count = 0;
    resolver->touched_count = 0;
    resolver->user_places = 0;
    resolver->passed_barrier = false;
    places_make_room(resolver->places);
    if (resolver->process) {
        int err = dumps_seek(resolver->dumps, resolver->process, sample->time);
        if (err) {
            return err;
        }
    }
    if (resolver->unwinds && add_copy(resolver, sample, &copy_end)) {
        /* all there is */
    } else if (has_branch_stack(sample)) {
        add_branch_stack(resolver, sample);
    } else if (sample->has & PERF_SAMPLE_CALLCHAIN) {
        add_chain(resolver, sample);
    } else if (sample->has & PERF_SAMPLE_IP) {
        add_own_address(resolver, sample);
    }
    if (sample->branch_count) {
        touch_branches(resolver, sample);
    }
    enum stack_end end = judge(resolver, sample, copy_end, frames_cut);
    if (facts->kind != EVENT_SAMPLED) {
        shape_event(resolver, sample, facts);
    }
    if (resolver->failed || places_failed(resolver->places)) {
        return no_memory(resolver);
    }
    *out = (struct resolved_sample){
        .time = sample->time,
        .frames = resolver->frames,
        .frame_count = resolver->frame_count,
        .end = end,
        .is_late_part = sample->type != PERF_RECORD_SAMPLE,
        .touched = resolver->touched,
        .touched_count = resolver->touched_count,
        .recorded = sample,
    };
    fill_thread(resolver, sample, &out->thread);
    return 0;
}

/* ---- All code of the dumps ---- */

int resolver_codes(struct resolver *resolver, uint64_t until,
                   int (*take)(void *context, const struct resolved_code *code), void *context)
{
    uint32_t count;
    struct code_source *const *sources = dumps_sources(resolver->dumps, &count);
    while (resolver->given_sources < count) {
        if (array_reserve(&resolver->given, resolver->given_sources, &resolver->given_room,
                          sizeof *resolver->given)) {
            return no_memory(resolver);
        }
        resolver->given[resolver->given_sources++] = 0;
    }
    int err = 0;
    for (uint32_t i = 0; i < count && !err; i++) {
        struct code_source *source = sources[i];
        uint32_t stays = source->about.index ? code_index_stay_count(source->about.index) : 0;
        for (; resolver->given[i] < stays && !err; resolver->given[i]++) {
            const struct code_stay *stay = code_index_stay(source->about.index, resolver->given[i]);
            if (code_source_recording_time(source, stay->from) > until) {
                break;
            }
            const struct resolved_code *code =
                piece_code(places_pieces(resolver->places), source, stay);
            err = code ? take(context, code) : no_memory(resolver);
        }
    }
    return err;
}

/* ---- Growth, and the end ---- */

int resolver_update(struct resolver *resolver, bool is_all)
{
    return dumps_update(resolver->dumps, is_all);
}

bool resolver_may_grow(const struct resolver *resolver, uint32_t pid)
{
    const struct process *process = process_table_at(resolver->table, pid);
    return process && process->code && process->code->may_grow;
}

void resolver_report(const struct resolver *resolver, struct recording *recording)
{
    recording->unwound = resolver->unwinds;
    recording->jvms = dumps_list(resolver->dumps, &recording->jvm_count);
    recording->counts.frames_cut = resolver->frames_cut;
    recording->counts.inlines_cut = places_pieces(resolver->places)->inlines_cut;
    recording->counts.mappings_cut = process_table_left_out(resolver->table);
}

void resolver_tell(struct resolver *resolver)
{
    dumps_tell_unused(resolver->dumps);
    objects_tell(resolver->objects);
}
