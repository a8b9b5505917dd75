#include "jdtool/unwind/stack_copies.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A record has room for about this many frames. */
#define FRAMES_MAX 8100

struct stack_copies {
    const struct jvms *jvms;
    struct jvm_tables {
        struct code_frames *code;   /* NULL: not needed yet */
        struct method_names *names; /* NULL: there is no table */
    } * tables;                     /* by jvm */
    struct native_code *native;
    unsigned machine;
    struct stack_counts counts;
    struct unwind_frame frames[FRAMES_MAX];
    uint32_t frame_count;
    uint64_t chain[FRAMES_MAX + PERF_MAX_STACK_DEPTH + PERF_MAX_CONTEXTS_PER_STACK + 2];
    /* The sample at hand. */
    const struct process *process;
    uint64_t time;
    bool frozen;
};

/* A recording that was killed does not tell; then its dumps do. */
unsigned stack_copies_machine(struct perf_data *data, const struct jvms *jvms)
{
    if (perf_data_string(data, PERF_FEATURE_ARCH)) {
        return native_code_machine(data);
    }
    unsigned machine = EM_NONE;
    for (uint32_t i = 0; i < jvms->count && machine == EM_NONE; i++) {
        const struct code_index *index = jvms->list[i]->index;
        machine = index ? code_index_header(index)->elf_mach : EM_NONE;
    }
    if (machine == EM_NONE) {
#ifdef __aarch64__
        machine = EM_AARCH64;
#else
        machine = EM_X86_64;
#endif
    }
    return machine == EM_AARCH64 || machine == EM_X86_64 ? machine : EM_NONE;
}

static uint64_t recording_time(const void *jvm, uint64_t stamp)
{
    return jvm_recording_time(jvm, stamp);
}

/* The table of methods stands beside the dump. Without it interpreted frames have no names. */
static void open_names(const struct jvm *jvm, struct method_names **names)
{
    static const char suffix[] = ".dump";
    size_t stem = strlen(jvm->dump);
    char *path;
    if (stem > sizeof suffix - 1 && strcmp(jvm->dump + stem - (sizeof suffix - 1), suffix) == 0) {
        stem -= sizeof suffix - 1;
    }
    if (asprintf(&path, "%.*s.methods", (int)stem, jvm->dump) >= 0) {
        (void)method_names_open(path, recording_time, jvm, names);
        free(path);
    }
}

struct stack_copies *stack_copies_new(unsigned machine, const struct jvms *jvms,
                                      struct native_code *native)
{
    struct stack_copies *copies = calloc(1, sizeof *copies);
    if (!copies) {
        return NULL;
    }
    copies->jvms = jvms;
    copies->machine = machine;
    copies->native = native;
    copies->tables = calloc(jvms->count + (size_t)1, sizeof *copies->tables);
    if (!copies->tables) {
        stack_copies_free(copies);
        return NULL;
    }
    for (uint32_t i = 0; i < jvms->count; i++) {
        if (jvms->list[i]->index) {
            open_names(jvms->list[i], &copies->tables[i].names);
        }
    }
    return copies;
}

void stack_copies_free(struct stack_copies *copies)
{
    if (!copies) {
        return;
    }
    for (uint32_t i = 0; copies->tables && i < copies->jvms->count; i++) {
        code_frames_free(copies->tables[i].code);
        method_names_close(copies->tables[i].names);
    }
    free(copies->tables);
    free(copies);
}

static struct jvm_tables *tables_of(const struct stack_copies *copies, const struct jvm *jvm)
{
    uint32_t i = 0;
    while (copies->jvms->list[i] != jvm) {
        i++;
    }
    return &copies->tables[i];
}

static const struct blob_frames *rows_of(struct stack_copies *copies, const struct code_place *code)
{
    struct jvm_tables *tables = tables_of(copies, code->jvm);
    if (!tables->code) {
        tables->code = code_frames_new(code->jvm->index);
    }
    return tables->code ? code_frames_of(tables->code, code->of->blob) : NULL;
}

static void find(void *context, uint64_t address, struct unwind_place *place)
{
    struct stack_copies *copies = context;
    struct code_place code;
    if (jvms_code_at(copies->process, address, copies->time, &code)) {
        place->code = rows_of(copies, &code);
        place->code_start = code.of->address;
        place->code_size = code.of->size;
        return;
    }
    const struct mapping *mapping = process_mapping_at(copies->process, address, copies->time);
    bool vdso = mapping && strcmp(mapping->path, "[vdso]") == 0;
    if (mapping && (!mapping->anonymous || vdso)) {
        place->mapped = true;
        struct object *object;
        if (native_code_at(copies->native, copies->process, mapping, address, &object,
                           &place->file_address)) {
            place->object = object;
        }
    }
}

static const struct unwind_place *find_place(void *context, uint64_t pc, bool caller)
{
    static struct unwind_place place;
    unwind_place_of(find, context, pc, caller, &place);
    return &place;
}

static const struct native_row *find_row(void *context, const struct unwind_place *place)
{
    (void)context;
    return object_row(place->object, place->file_address);
}

static const struct frame_row *find_code_row(void *context, const struct unwind_place *place)
{
    (void)context;
    return unwind_place_row(place);
}

static bool is_barrier(struct stack_copies *copies, const struct unwind_frame *frame)
{
    struct code_place code;
    return frame->caller && frame->kind == UNWIND_GENERATED &&
           jvms_code_at(copies->process, frame->ip, copies->time, &code) &&
           code.of->address == frame->ip &&
           frames_is_return_barrier(code_index_blob(code.jvm->index, code.of->blob)->name);
}

static void count(struct stack_copies *copies, enum stack_end end, uint32_t frames)
{
    bool java = false;
    bool frozen = false;
    for (uint32_t i = 0; i < frames; i++) {
        uint8_t kind = copies->frames[i].kind;
        java |= kind == UNWIND_GENERATED || kind == UNWIND_INTERPRETED;
        copies->counts.interpreted_frames += kind == UNWIND_INTERPRETED;
        frozen = frozen || is_barrier(copies, &copies->frames[i]);
    }
    copies->counts.stacks[end]++;
    copies->counts.java_stacks[end] += java;
    copies->counts.frozen += frozen;
}

static bool name_interpreted(struct stack_copies *copies, const struct unwind_frame *frame,
                             const struct code_place *code, struct interpreted_frame *out)
{
    struct jvm_tables *tables = tables_of(copies, code->jvm);
    return tables->names && interpreter_name(tables->names, frame, copies->time, out);
}

/* The address that stands for an interpreted frame in the chain: its own when it has no name. */
static uint64_t interpreted(struct stack_copies *copies, const struct unwind_frame *frame)
{
    struct code_place code;
    struct interpreted_frame named;
    if (!jvms_code_at(copies->process, frame->ip, copies->time, &code) ||
        !name_interpreted(copies, frame, &code, &named)) {
        return frame->ip;
    }
    uint64_t address = frame_table_add(code.jvm->frames, FRAME_INTERPRETED, named.method->name,
                                       named.method->file, named.line);
    copies->counts.interpreted_named += address != 0;
    return address ? address : frame->ip;
}

const struct unwind_frame *stack_copies_frames(const struct stack_copies *copies, uint32_t *count)
{
    *count = copies->frame_count;
    return copies->frames;
}

bool stack_copies_interpreted(struct stack_copies *copies, const struct unwind_frame *frame,
                              struct interpreted_frame *out)
{
    struct code_place code;
    return jvms_code_at(copies->process, frame->ip, copies->time, &code) &&
           name_interpreted(copies, frame, &code, out);
}

/* The kernel's part of a recorded chain: all up to the first marker of the user's. */
static uint64_t kernel_part(const struct perf_sample *sample)
{
    uint64_t count = 0;
    while (count < sample->chain_count && sample->chain[count] != PERF_CONTEXT_USER) {
        count++;
    }
    return count;
}

static void use_chain(struct stack_copies *copies, struct perf_sample *sample, uint64_t count)
{
    sample->chain = copies->chain;
    sample->chain_count = count;
    sample->unwound = true;
}

static uint64_t put_kernel_part(struct stack_copies *copies, const struct perf_sample *sample,
                                uint64_t kernel)
{
    if (kernel) {
        memcpy(copies->chain, sample->chain, kernel * sizeof copies->chain[0]);
    }
    copies->chain[kernel] = PERF_CONTEXT_USER;
    return kernel + 1;
}

/* As much of the stack as is known without its copy. */
static void put_own_address(struct stack_copies *copies, struct perf_sample *sample,
                            uint64_t kernel)
{
    if ((sample->misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_USER) {
        uint64_t at = put_kernel_part(copies, sample, kernel);
        copies->chain[at++] = sample->ip;
        use_chain(copies, sample, at);
    }
}

void stack_copies_unwind(struct stack_copies *copies, const struct process *process,
                         struct perf_sample *sample)
{
    struct unwind_sample walk = {.stack = sample->stack, .stack_size = sample->stack_dyn_size};
    uint64_t kernel = kernel_part(sample);
    if (!sample->regs || kernel > sizeof copies->chain / sizeof copies->chain[0] - FRAMES_MAX - 1) {
        return;
    }
    if (!unwind_take_registers(copies->machine, sample->regs_abi,
                               sample->event->attr.sample_regs_user, sample->regs,
                               sample->reg_count, &walk)) {
        put_own_address(copies, sample, kernel); /* a 32-bit program's */
        return;
    }
    copies->process = process;
    copies->time = sample->time;
    struct unwind_process surroundings = {.find = find_place,
                                          .row = find_row,
                                          .code_row = find_code_row,
                                          .context = copies,
                                          .machine = copies->machine};
    uint32_t frames;
    enum unwind_end ended = unwind(&surroundings, &walk, copies->frames, FRAMES_MAX, &frames);
    enum stack_end end = (enum stack_end)ended;
    if (ended == UNWIND_COPY_ENDS && sample->stack_dyn_size < sample->stack_size) {
        end = STACK_COPY_CUT;
    }
    copies->frame_count = frames;
    count(copies, end, frames);

    uint64_t at = put_kernel_part(copies, sample, kernel);
    for (uint32_t i = 0; i < frames; i++) {
        const struct unwind_frame *frame = &copies->frames[i];
        copies->chain[at++] =
            frame->kind == UNWIND_INTERPRETED ? interpreted(copies, frame) : frame->ip;
    }
    use_chain(copies, sample, at);
}

const struct stack_counts *stack_copies_counts(const struct stack_copies *copies)
{
    return &copies->counts;
}
