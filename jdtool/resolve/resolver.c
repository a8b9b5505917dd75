#include "jdtool/resolve/resolver.h"

#include "jdtool/base/array.h"
#include "jdtool/base/clock.h"
#include "jdtool/base/message.h"
#include "jdtool/events/marks.h"
#include "jdtool/perf/perf_data.h"
#include "jdtool/resolve/event_frames.h"
#include "jdtool/resolve/resolver_private.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* So long a JVM may take until it can tell of its methods, in ns. */
#define STARTS_WITHIN (UINT64_C(5) * 1000 * 1000 * 1000)

static int no_memory(const struct resolver *resolver)
{
    return failed_to(-ENOMEM, "resolve the samples of %s", perf_data_path(resolver->data));
}

/* ---- Life ---- */

/* A recording that was killed does not tell its machine; then it is this one. */
static unsigned machine_of(struct perf_data *data)
{
    const char *arch = perf_data_string(data, PERF_FEATURE_ARCH);
    if (!arch) {
        return OWN_MACHINE;
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

/* What of a process or file is kept here goes with it. */
static void process_gone(void *context, const struct process *process)
{
    const struct resolver *resolver = context;
    dumps_process_gone(resolver->dumps, process);
}

static void file_gone(void *context, const struct mapped_file *file)
{
    const struct resolver *resolver = context;
    locations_file_gone(resolver->locations, file);
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
        .live = perf_data_is_live(data),
        .sparing = options->sparing,
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
    int err = dumps_new(data, resolver->methods, &dumps, &resolver->dumps);
    if (err) {
        return err;
    }
    struct locations_options locations = {.methods = resolver->methods,
                                          .objects = resolver->objects,
                                          .codes = dumps_codes(resolver->dumps),
                                          .symbolize = options->symbolize,
                                          .unwind = resolver->unwinds,
                                          .sparing = options->sparing};
    resolver->locations = locations_new(&locations);
    resolver->known_stacks = known_stacks_new();
    resolver->kernel = objects_kernel(resolver->objects, &resolver->kernel_place);
    resolver->kernel_module =
        methods_add_module(resolver->methods, MODULE_KERNEL, "[kernel.kallsyms]");
    if (!resolver->locations || !resolver->known_stacks || !resolver->kernel_module) {
        return no_memory(resolver);
    }
    resolver->listener = (struct process_listener){process_gone, file_gone, resolver};
    process_table_tell(resolver->table, &resolver->listener);
    return 0;
}

int resolver_new(struct perf_data *data, const struct resolver_options *options,
                 struct resolver **out)
{
    struct resolver *resolver = calloc(1, sizeof *resolver);
    *out = NULL;
    if (!resolver) {
        return failed_to(-ENOMEM, "resolve the samples of %s", perf_data_path(data));
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
    process_table_tell(resolver->table, NULL);
    locations_free(resolver->locations);
    known_stacks_free(resolver->known_stacks);
    objects_free(resolver->objects);
    resolver->locations = NULL;
    resolver->known_stacks = NULL;
    resolver->objects = NULL;
}

void resolver_free(struct resolver *resolver)
{
    if (!resolver) {
        return;
    }
    process_table_free(resolver->table);
    locations_free(resolver->locations);
    known_stacks_free(resolver->known_stacks);
    dumps_free(resolver->dumps);
    objects_free(resolver->objects);
    methods_free(resolver->methods);
    hash_map_free(&resolver->by_detail);
    free(resolver->interpreted);
    free(resolver->given);
    free(resolver->inner);
    free(resolver->lines);
    free(resolver->branches);
    free(resolver->places);
    free(resolver->keys);
    free(resolver->walked_frames);
    free(resolver);
}

bool resolver_unwinds(const struct resolver *resolver)
{
    return resolver->unwinds;
}

static struct process_code code_of(const struct resolver *resolver, const struct process *process)
{
    return process_code_of(dumps_codes(resolver->dumps), process);
}

/* ---- Records ---- */

/* "[kernel.kallsyms]_text", at the offset in the file that is that symbol's address. */
static int add_kernel_mapping(struct resolver *resolver, const struct mapping *mapping)
{
    static const char kallsyms[] = "[kernel.kallsyms]";
    if (strncmp(mapping->file.path, kallsyms, sizeof kallsyms - 1) != 0) {
        return 0;
    }
    const char *symbol = mapping->file.path + sizeof kallsyms - 1;
    struct kernel_place place = {
        .id = mapping->file.build_id_size ? mapping->file.build_id : NULL,
        .id_size = mapping->file.build_id_size,
        .reference = *symbol ? symbol : NULL,
        .reference_address = *symbol ? mapping->file_offset : 0,
    };
    resolver->kernel = objects_kernel(resolver->objects, &place);
    if (mapping->file.build_id_size && mapping->file.build_id_size <= BUILD_ID_MAX) {
        memcpy(resolver->kernel_module->build_id, mapping->file.build_id,
               mapping->file.build_id_size);
        resolver->kernel_module->build_id_size = mapping->file.build_id_size;
    }
    return 0;
}

/* A file that bears no build-id here may have been removed as soon as it was mapped (zstd-jni, JNA,
 * Netty), and can be had as long as its process lives, which its samples may not wait for. */
static void open_while_it_lives(struct resolver *resolver, const struct mapping *mapping)
{
    const struct object_place place = {
        .file = mapping->file, .pid = mapping->pid, .start = mapping->start, .end = mapping->end};
    struct object *object = objects_find(resolver->objects, &place);
    (void)object_open(object);
    objects_let_go(resolver->objects, object);
}

int resolver_notice(struct resolver *resolver, const struct perf_record *record)
{
    const struct mapping *mapping = record->mapping;
    if (mapping && !mapping->kernel && !mapping->anonymous && mapping->executable &&
        mapping->file.inode && !mapping->file.build_id_size && perf_data_is_live(resolver->data)) {
        open_while_it_lives(resolver, mapping);
    }
    if (mapping && !mapping->kernel && dumps_notice(resolver->dumps, mapping)) {
        return no_memory(resolver);
    }
    if (mapping && mapping->kernel && resolver->options.symbolize &&
        perf_data_is_live(resolver->data)) {
        /* Its names take longest of all: read while what is recorded begins. */
        (void)add_kernel_mapping(resolver, mapping);
        (void)object_open(resolver->kernel);
    }
    if (record->type == PERF_RECORD_FORK) { /* pid, ppid, tid */
        const struct process *process =
            process_table_at(resolver->table, perf_record_u32(record, 8));
        if (process &&
            dumps_notice_thread(code_of(resolver, process), perf_record_u32(record, 16))) {
            return no_memory(resolver);
        }
    }
    return 0;
}

/*
 * A JVM's own mappings of memory for code: each growth of the code cache is one, and perf would let
 * it hide all methods mapped before (so would the reservation, which --call-graph dwarf records
 * with all other data mappings). And the dump's, or 'perf inject --jit' could be run on the result.
 */
static bool is_superseded(const struct resolver *resolver, const struct mapping *mapping)
{
    const struct process *process = process_table_at(resolver->table, mapping->pid);
    const struct jvm_dump *dump = process ? process_code_own(code_of(resolver, process)) : NULL;
    const struct jvm_dump *first = NULL;
    for (; dump; dump = dump->earlier) {
        if (dump->about.index) {
            first = dump;
            if (dump->about.recorded && strcmp(dump->about.recorded, mapping->file.path) == 0) {
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
    const struct mapping *mapping = record->mapping;
    *superseded = false;
    if (record->type == PERF_USER_TIME_CONV) {
        dumps_set_conversion(resolver->dumps, record);
    } else if (record->type == PERF_RECORD_KSYMBOL) {
        return add_ksymbol(resolver, record) ? no_memory(resolver) : 0;
    } else if (record->type == PERF_USER_BUILD_ID) {
        return perf_record_build_id(record, take_listed, resolver) ? no_memory(resolver) : 0;
    } else if (mapping && mapping->kernel) {
        return add_kernel_mapping(resolver, mapping);
    }
    if (process_table_add(resolver->table, record, &change)) {
        return no_memory(resolver);
    }
    if (change.parent && dumps_fork(resolver->dumps, change.parent, change.process)) {
        return -ENOMEM;
    }
    if (change.mapped) {
        int err = dumps_map(resolver->dumps, change.process, change.mapped, record->id.time);
        if (err) {
            return err;
        }
    }
    if (mapping) {
        *superseded = is_superseded(resolver, mapping);
    }
    return 0;
}

/* ---- What events are about ---- */

/* Puts a frame that stands for no code at one of the ends. */
static void put_subject(struct resolver *resolver, const char *name, bool innermost)
{
    struct method_facts facts = {.kind = RESOLVED_SUBJECT, .name = name};
    const struct resolved_method *method = methods_of(resolver->methods, &facts);
    const struct resolved_frame line = {.kind = RESOLVED_SUBJECT, .method = method};
    if (!method) {
        resolver->failed = true;
        return;
    }
    sample_stack_put(resolver, &line, innermost);
}

/* The lines of the whole stack: events are told by them. */
static uint32_t read_lines(struct resolver *resolver)
{
    const struct stack_table *stacks = locations_stacks(resolver->locations);
    uint32_t count = 0;
    for (uint32_t i = 0; i < resolver->inner_count; i++) {
        const struct location *location = stack_table_location_at(stacks, resolver->inner[i]);
        for (uint32_t k = 0; k < location->line_count; k++) {
            if (ARRAY_RESERVE(resolver->lines, count, resolver->line_room)) {
                resolver->failed = true;
                return 0;
            }
            resolver->lines[count++] = location->lines[k];
        }
    }
    return count;
}

/* Leaves out the JVM's frames on the way to its event, and our callback's. Where there is no Java
 * frame behind them they stay: they are all there is. How many lines are left, at the array's end.
 */
static uint32_t cut_inner_frames(struct resolver *resolver, uint32_t count)
{
    if (count == 0) {
        return 0;
    }
    const struct stack_table *stacks = locations_stacks(resolver->locations);
    uint32_t first = event_frames_java(resolver->lines, count);
    uint32_t lines = 0;
    uint32_t cut = 0;
    while (first < count && lines < first) {
        lines += stack_table_location_at(stacks, resolver->inner[cut++])->line_count;
    }
    resolver->inner_count -= cut;
    resolver->line_count -= lines;
    memmove(resolver->inner, resolver->inner + cut,
            resolver->inner_count * sizeof *resolver->inner);
    return count - lines;
}

static void shape_event(struct resolver *resolver, struct perf_sample *sample,
                        const struct event_facts *facts)
{
    const char *subject = facts->subject;
    uint32_t count = read_lines(resolver);
    if (resolver->failed) {
        return;
    }
    if (facts->kind == EVENT_RUNNABLE) {
        /* Whoever waits for a processor has work to do: none is idle. */
    } else if (facts->kind == EVENT_OFF_CPU) {
        const char *comm = process_table_comm(resolver->table, sample->tid);
        if (event_frames_idle(resolver->lines, count, comm, sample->tid == sample->pid)) {
            put_subject(resolver, EVENT_IDLE, false);
        }
    } else if (facts->kind == EVENT_UNMOUNT) {
        uint32_t left = cut_inner_frames(resolver, count);
        if (left > 0 && event_frames_idle(resolver->lines + (count - left), left, "", false)) {
            put_subject(resolver, EVENT_IDLE, false);
        }
    } else if (facts->kind == EVENT_WAKER) {
        if (*subject) {
            put_subject(resolver, subject, false);
        }
    } else {
        char reason[64];
        if (facts->kind == EVENT_EXCEPTION) {
            subject = event_frames_exception(resolver->lines, count);
        } else if (facts->kind == EVENT_DEOPT) { /* its own address is in libjvm.so */
            struct addr_location *al = locations_at(resolver->locations, resolver->process,
                                                    resolver->time, sample->ip, false);
            deopt_name(&resolver->deopts, al->file, facts->request, reason, sizeof reason);
            subject = reason;
        }
        (void)cut_inner_frames(resolver, count);
        if (subject && *subject) {
            put_subject(resolver, subject, true);
        }
    }
    sample->unwound = true; /* its chain is made of the frames */
}

/* ---- Samples ---- */

int resolver_thread(const struct resolver *resolver, uint32_t pid, uint32_t tid, uint64_t time,
                    struct resolved_thread *thread)
{
    const struct process *process = process_table_at(resolver->table, pid);
    *thread = (struct resolved_thread){
        .pid = pid,
        .tid = tid,
        .comm = process_table_comm(resolver->table, tid),
        .process_name = process_table_comm(resolver->table, pid),
    };
    struct process_code code = {0};
    if (process) {
        code = code_of(resolver, process);
        thread->is_jvm = process->has_jvm || code.dump;
    }
    for (const struct jvm_dump *dump = code.dump; dump && !thread->jvm; dump = dump->earlier) {
        thread->jvm = dump->about.module;
    }
    for (const struct jvm_dump *dump = process_code_own(code); dump && !thread->program;
         dump = dump->earlier) { /* a fork may be another program soon */
        const char *program = dump->names ? method_names_program(dump->names) : "";
        thread->program = *program ? program : NULL;
    }
    return code.dump ? dumps_identify(code, process_table_thread_number(resolver->table, tid), time,
                                      thread)
                     : 0;
}

bool resolver_is_full(const struct resolver *resolver)
{
    return locations_are_full(resolver->locations);
}

int resolver_sample(struct resolver *resolver, struct perf_sample *sample,
                    const struct event_facts *facts, struct resolved_sample *out)
{
    resolver->process = process_table_at(resolver->table, sample->pid);
    resolver->time = sample->time;
    locations_make_room(resolver->locations);
    if (resolver->process) {
        int err = dumps_seek(resolver->dumps, resolver->process, sample->time);
        if (err) {
            return err;
        }
    }
    resolver->remembers = facts->kind == EVENT_SAMPLED;
    enum stack_end end = sample_stack(resolver, sample);
    if (facts->kind != EVENT_SAMPLED) {
        shape_event(resolver, sample, facts);
    }
    struct stack_table *stacks = locations_stacks(resolver->locations);
    for (uint32_t i = resolver->inner_count; i > 0 && !resolver->failed; i--) {
        resolver->node = stack_table_node(stacks, resolver->node, resolver->inner[i - 1]);
        resolver->failed = resolver->node == HASH_MAP_NONE;
    }
    if (resolver->failed || locations_failed(resolver->locations)) {
        return no_memory(resolver);
    }
    *out = (struct resolved_sample){
        .time = sample->time,
        .stacks = stacks,
        .node = resolver->node,
        .end = end,
        .is_late_part = sample->type != PERF_RECORD_SAMPLE,
        .branches = resolver->branches,
        .branch_count = resolver->branch_count,
        .recorded = sample,
    };
    int err = resolver_thread(resolver, sample->pid, sample->tid, sample->time, &out->thread);
    if (!err && facts->virtual_id && resolver->process) {
        dumps_identify_virtual(code_of(resolver, resolver->process), facts->virtual_id,
                               sample->time, &out->thread);
        virtual_thread_stands(&out->thread, resolver->virtual_name, sizeof resolver->virtual_name);
    }
    return err;
}

/* ---- All code of the dumps ---- */

int resolver_codes(struct resolver *resolver, uint64_t until,
                   int (*take)(void *context, const struct resolved_code *code), void *context)
{
    uint32_t count;
    struct jvm_dump *const *all = dumps_all(resolver->dumps, &count);
    while (resolver->given_sources < count) {
        if (ARRAY_RESERVE(resolver->given, resolver->given_sources, resolver->given_room)) {
            return no_memory(resolver);
        }
        resolver->given[resolver->given_sources++] = 0;
    }
    int err = 0;
    for (uint32_t i = 0; i < count && !err; i++) {
        struct jvm_dump *dump = all[i];
        uint32_t stays = dump->about.index ? code_index_stay_count(dump->about.index) : 0;
        for (; resolver->given[i] < stays && !err; resolver->given[i]++) {
            const struct code_stay *stay = code_index_stay(dump->about.index, resolver->given[i]);
            if (jvm_dump_recording_time(dump, stay->from) > until) {
                break;
            }
            const struct resolved_code *code =
                code_blobs_code(locations_blobs(resolver->locations), dump, stay);
            err = code ? take(context, code) : no_memory(resolver);
        }
    }
    return err;
}

struct code_sum {
    struct code_index *index;
    uint64_t time, bytes;
};

/* Its stamp is from when the memory was free, and may be much earlier than the code. */
static void add_stretch(void *context, uint64_t address, uint64_t size,
                        const struct code_stay *stay)
{
    struct code_sum *sum = context;
    (void)address;
    uint64_t late = code_index_blob(sum->index, stay->blob)->late * UINT64_C(1000000);
    sum->bytes += stay->from + late <= sum->time ? size : 0;
}

uint64_t resolver_code_count(const struct resolver *resolver)
{
    uint32_t count;
    struct jvm_dump *const *all = dumps_all(resolver->dumps, &count);
    uint64_t stays = 0;
    for (uint32_t i = 0; i < count; i++) {
        stays += all[i]->about.index ? code_index_stay_count(all[i]->about.index) : 0;
    }
    return stays;
}

int resolver_code_bytes(struct resolver *resolver, uint64_t time,
                        int (*take)(void *context, uint32_t pid, uint64_t bytes), void *context)
{
    uint32_t count;
    struct jvm_dump *const *all = dumps_all(resolver->dumps, &count);
    int err = 0;
    for (uint32_t i = 0; i < count && !err; i++) {
        struct jvm_dump *dump = all[i];
        if (!dump->about.index || time < dump->about.from) {
            continue;
        }
        struct code_sum sum = {dump->about.index, jvm_dump_time(dump, time), 0};
        if (code_index_map(sum.index, sum.time, add_stretch, &sum)) {
            return no_memory(resolver);
        }
        err = take(context, dump->about.pid, sum.bytes);
    }
    return err;
}

/* ---- The JVMs' own logs ---- */

struct log_taker {
    const struct jvm_dump *dump;
    int (*take)(void *context, uint32_t pid, uint32_t tid, const struct resolved_mark *mark);
    void *context;
};

/* A container's threads have other numbers in its log: what they tell is its process'. */
static int take_logged(void *context, uint32_t tid, const struct resolved_mark *mark)
{
    const struct log_taker *taker = context;
    uint32_t pid = taker->dump->about.pid;
    return taker->take(taker->context, pid, taker->dump->inner.inner_pid ? pid : tid, mark);
}

int resolver_logs(struct resolver *resolver,
                  int (*take)(void *context, uint32_t pid, uint32_t tid,
                              const struct resolved_mark *mark),
                  void *context)
{
    uint32_t count;
    struct jvm_dump *const *all = dumps_all(resolver->dumps, &count);
    int err = 0;
    for (uint32_t i = 0; i < count && !err; i++) {
        struct log_taker taker = {all[i], take, context};
        err = all[i]->log ? jvm_log_read(all[i]->log, take_logged, &taker) : 0;
    }
    return err;
}

/* ---- Growth, and the end ---- */

int resolver_update(struct resolver *resolver, bool is_all)
{
    return dumps_update(resolver->dumps, is_all);
}

int resolver_update_process(struct resolver *resolver, uint32_t pid, uint64_t since)
{
    const struct process *process = process_table_at(resolver->table, pid);
    return process ? dumps_update_process(code_of(resolver, process), since) : 0;
}

int resolver_prepare(struct resolver *resolver, const struct perf_sample *sample, uint64_t since)
{
    const struct process *process = process_table_at(resolver->table, sample->pid);
    if (process) {
        locations_prepare(resolver->locations, process, sample->ip);
    }
    return process && resolver->unwinds ? dumps_prepare(code_of(resolver, process), since) : 0;
}

static const struct jvm_dump *dump_of(const struct resolver *resolver, uint32_t pid)
{
    const struct process *process = process_table_at(resolver->table, pid);
    return process ? code_of(resolver, process).dump : NULL;
}

bool resolver_may_grow(const struct resolver *resolver, uint32_t pid)
{
    const struct jvm_dump *dump = dump_of(resolver, pid);
    return dump && dump->may_grow;
}

bool resolver_is_starting(const struct resolver *resolver, uint32_t pid)
{
    const struct jvm_dump *dump = dump_of(resolver, pid);
    return dump && dump->may_grow && dump->names && !method_names_is_whole(dump->names) &&
           clock_ns(CLOCK_MONOTONIC) - dump->opened < STARTS_WITHIN;
}

void resolver_let_go(struct resolver *resolver, uint64_t time, bool keep)
{
    dumps_let_go(resolver->dumps, time, keep);
}

int resolver_forget(struct resolver *resolver)
{
    uint32_t methods = methods_count(resolver->methods);
    if (resolver->methods_then == 0) {
        resolver->methods_then = methods;
    }
    uint32_t dead_max = resolver->options.sparing ? DEAD_MAX_SPARING : DEAD_MAX;
    if (dumps_dead(resolver->dumps) < dead_max && !dumps_outgrown(resolver->dumps) &&
        (methods < METHODS_MAX || methods / 2 < resolver->methods_then)) {
        return 0;
    }
    locations_clear(resolver->locations);
    hash_map_clear(&resolver->by_detail);
    resolver->interpreted_count = 0;
    uint8_t build_id[BUILD_ID_MAX];
    uint8_t build_id_size = resolver->kernel_module->build_id_size;
    memcpy(build_id, resolver->kernel_module->build_id, sizeof build_id);
    methods_clear(resolver->methods);
    resolver->methods_then = 0;
    resolver->kernel_module =
        methods_add_module(resolver->methods, MODULE_KERNEL, "[kernel.kallsyms]");
    if (!resolver->kernel_module) {
        return no_memory(resolver);
    }
    memcpy(resolver->kernel_module->build_id, build_id, sizeof build_id);
    resolver->kernel_module->build_id_size = build_id_size;
    return dumps_forget(resolver->dumps);
}

void resolver_rest(struct resolver *resolver)
{
    objects_rest(resolver->objects);
}

void resolver_report(const struct resolver *resolver, struct recording *recording)
{
    recording->unwound = resolver->unwinds;
    recording->jvms = dumps_list(resolver->dumps, &recording->jvm_count);
    recording->counts.frames_cut = resolver->frames_cut;
    recording->counts.walked = resolver->walked;
    recording->counts.compared = resolver->compared;
    recording->counts.compared_short = resolver->compared_short;
    recording->counts.compared_differing = resolver->compared_differing;
    recording->counts.refuted = resolver->refuted + resolver->compared_refuted;
    recording->counts.inlines_cut = locations_blobs(resolver->locations)->inlines_cut;
    recording->counts.mappings_cut = process_table_left_out(resolver->table);
}

void resolver_tell(struct resolver *resolver)
{
    dumps_tell_unused(resolver->dumps);
    objects_tell(resolver->objects);
}

/* ---- Virtual threads ---- */

void virtual_thread_stands(struct resolved_thread *thread, char *name, size_t size)
{
    if (thread->virtual_name && *thread->virtual_name) {
        snprintf(name, size, "%s", thread->virtual_name);
    } else {
        snprintf(name, size, "virtual thread %" PRIu64, thread->virtual_id);
    }
    thread->comm = name;
    thread->tid = RESOLVED_OWN_TID | (uint32_t)thread->virtual_id;
}
