#include "jdtool/sinks/saved_sink.h"

#include "jdtool/base/message.h"
#include "jdtool/base/packed_output.h"
#include "jdtool/sinks/profile.h"
#include "jdtool/sinks/saved_format.h"
#include "jdtool/sinks/string_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct saved_sink {
    struct sample_sink sink;
    const char *path;
    const struct recording *recording;
    struct packed_output *output;
    struct profile *profile; /* what was told already, up to the counts below; no samples */
    struct string_table texts;
    uint32_t texts_told, functions, locations, nodes, threads, modules, dumps;
    struct hash_map codes; /* by struct resolved_code's address, to indices into code_list */
    const struct resolved_code **code_list;
    uint32_t code_count, code_room;
    uint32_t *module_numbers; /* by module id; 0: not told yet, else its ref */
    uint32_t module_room;
    uint64_t time; /* of the sample before */
};

static void release(struct saved_sink *sink)
{
    packed_output_abort(sink->output);
    profile_free(sink->profile);
    string_table_free(&sink->texts);
    hash_map_free(&sink->codes);
    free(sink->code_list);
    free(sink->module_numbers);
    free(sink);
}

static int no_memory(const struct saved_sink *sink)
{
    error_message("failed to write %s: %s", sink->path, strerror(ENOMEM));
    return -ENOMEM;
}

/* ---- Fields ---- */

static void put(struct saved_sink *sink, uint64_t value)
{
    uint8_t bytes[10];
    size_t size = 0;
    for (; value >= 0x80; value >>= 7) {
        bytes[size++] = (uint8_t)(value | 0x80);
    }
    bytes[size++] = (uint8_t)value;
    packed_output_put(sink->output, bytes, size);
}

static void put_signed(struct saved_sink *sink, int64_t value)
{
    put(sink, (uint64_t)value << 1 ^ (uint64_t)(value >> 63));
}

/* The number of a text, which is told first when it is new; so it comes before a record begins. */
static uint32_t text(struct saved_sink *sink, const char *string)
{
    if (!string) {
        return 0;
    }
    uint32_t number = string_table_add(&sink->texts, string);
    if (number >= sink->texts_told) {
        size_t size = strlen(sink->texts.list[number]);
        size = size < SAVED_TEXT_MAX ? size : SAVED_TEXT_MAX;
        put(sink, SAVED_TEXT);
        put(sink, size);
        packed_output_put(sink->output, sink->texts.list[number], size);
        sink->texts_told = number + 1;
    }
    return number + 1;
}

/* ---- Things, each told when it is first needed ---- */

static void put_dump(struct saved_sink *sink, const struct module *module, uint32_t number)
{
    for (uint32_t i = 0; i < sink->recording->jvm_count; i++) {
        const struct recorded_jvm *jvm = sink->recording->jvms[i];
        if (jvm->module == module && jvm->dump) {
            uint32_t path = text(sink, jvm->dump);
            put(sink, SAVED_DUMP);
            put(sink, number);
            put(sink, path);
        }
    }
}

/* 0: none, or no memory, which string_table's error tells as well. */
static uint32_t module_ref(struct saved_sink *sink, const struct module *module)
{
    if (!module) {
        return 0;
    }
    while (module->id >= sink->module_room) {
        uint32_t room = sink->module_room ? 2 * sink->module_room : 64;
        uint32_t *grown = sink->module_room < UINT32_MAX / 4
                              ? realloc(sink->module_numbers, room * sizeof *grown)
                              : NULL;
        if (!grown) {
            sink->texts.error = -ENOMEM;
            return 0;
        }
        memset(grown + sink->module_room, 0, (room - sink->module_room) * sizeof *grown);
        sink->module_numbers = grown;
        sink->module_room = room;
    }
    if (!sink->module_numbers[module->id]) {
        uint32_t path = text(sink, module->path);
        put(sink, SAVED_MODULE);
        put(sink, module->kind);
        put(sink, path);
        put(sink, module->pid);
        put(sink, module->build_id_size);
        packed_output_put(sink->output, module->build_id, module->build_id_size);
        sink->module_numbers[module->id] = ++sink->modules;
        put_dump(sink, module, sink->modules - 1);
    }
    return sink->module_numbers[module->id];
}

static void put_function(struct saved_sink *sink, const struct profile_function *function)
{
    static const struct resolved_method none;
    const struct resolved_method *method = function->method ? function->method : &none;
    const char *const strings[] = {function->method ? function->name : NULL, method->class_name,
                                   method->method_name, method->descriptor, method->file};
    uint32_t numbers[sizeof strings / sizeof *strings];
    for (size_t i = 0; i < sizeof strings / sizeof *strings; i++) {
        numbers[i] = text(sink, strings[i]);
    }
    uint32_t module = module_ref(sink, function->module);
    put(sink, SAVED_FUNCTION);
    put(sink, method->kind);
    for (size_t i = 0; i < sizeof strings / sizeof *strings; i++) {
        put(sink, numbers[i]);
    }
    put(sink, method->first_line);
    put(sink, module);
    put(sink, method->address);
    put(sink, method->size);
}

static int code_ref(struct saved_sink *sink, const struct profile_location *location, uint32_t *ref)
{
    const struct resolved_code *code = location->code;
    *ref = 0;
    if (!code) {
        return 0;
    }
    struct hash_map_cursor cursor = hash_map_start(&sink->codes, (uintptr_t)code);
    uint32_t at;
    while ((at = hash_map_next(&sink->codes, &cursor)) != HASH_MAP_NONE) {
        if (sink->code_list[at] == code) {
            *ref = at + 1;
            return 0;
        }
    }
    if (sink->code_count == sink->code_room) {
        uint32_t room = sink->code_room ? 2 * sink->code_room : 256;
        const struct resolved_code **grown =
            realloc(sink->code_list, room * sizeof(struct resolved_code *));
        if (!grown) {
            return -ENOMEM;
        }
        sink->code_list = grown;
        sink->code_room = room;
    }
    if (hash_map_add(&sink->codes, (uintptr_t)code, sink->code_count)) {
        return -ENOMEM;
    }
    sink->code_list[sink->code_count++] = code;
    *ref = sink->code_count;
    uint32_t symbol = text(sink, code->symbol);
    uint32_t module = module_ref(sink, code->module);
    /* The compiled method is the location's last line. */
    uint32_t own = location->first_line + location->line_count - 1;
    put(sink, SAVED_CODE);
    put(sink, module - 1);
    put(sink, code->address);
    put(sink, code->size);
    put(sink, code->module_address);
    put(sink, code->from);
    put(sink, symbol);
    put(sink, (uint64_t)sink->profile->lines[own].function + 1);
    put(sink, code->blob);
    return 0;
}

static int put_location(struct saved_sink *sink, const struct profile_location *location)
{
    uint32_t code;
    int err = code_ref(sink, location, &code);
    if (err) {
        return err;
    }
    uint32_t module = module_ref(sink, location->module);
    /* More lines than a reader takes: the outermost ones of those that were inlined go. */
    uint32_t count = location->line_count;
    uint32_t left = count > SAVED_LINES_MAX ? count - SAVED_LINES_MAX : 0;
    put(sink, SAVED_LOCATION);
    put(sink, module);
    put(sink, location->address);
    put(sink, code);
    put(sink, location->is_caller);
    put(sink, count - left);
    for (uint32_t i = 0; i < count; i++) {
        const struct profile_line *line = &sink->profile->lines[location->first_line + i];
        if (i >= count - 1 - left && i < count - 1) {
            continue;
        }
        put(sink, line->kind);
        put(sink, (uint64_t)line->tier << 1 | line->is_osr);
        put(sink, line->line);
        put(sink, line->function);
    }
    return 0;
}

static void put_thread(struct saved_sink *sink, const struct profile_thread *thread)
{
    uint32_t comm = text(sink, thread->comm);
    uint32_t process = text(sink, thread->process_name);
    bool has_identity = thread->virtual_id || thread->labels[0];
    uint32_t name = has_identity ? text(sink, thread->virtual_name) : 0;
    uint32_t labels = has_identity ? text(sink, thread->labels) : 0;
    put(sink, has_identity ? SAVED_IDENTITY : SAVED_THREAD);
    put(sink, thread->pid);
    put(sink, thread->tid);
    put(sink, comm);
    put(sink, process);
    if (has_identity) {
        put(sink, thread->virtual_id);
        put(sink, name);
        put(sink, labels);
    }
}

/* Everything that the profile has learnt since it was last told. */
static int put_news(struct saved_sink *sink)
{
    const struct profile *profile = sink->profile;
    int err = 0;
    for (; sink->functions < profile->function_count; sink->functions++) {
        put_function(sink, &profile->functions[sink->functions]);
    }
    for (; !err && sink->locations < profile->location_count; sink->locations++) {
        err = put_location(sink, &profile->locations[sink->locations]);
    }
    for (; sink->nodes < profile->node_count; sink->nodes++) {
        const struct profile_node *node = &profile->nodes[sink->nodes];
        put(sink, SAVED_NODE);
        put(sink, node->parent == PROFILE_NONE ? 0 : (uint64_t)node->parent + 1);
        put(sink, node->location);
    }
    for (; sink->threads < profile->thread_count; sink->threads++) {
        put_thread(sink, &profile->threads[sink->threads]);
    }
    return err ? err : sink->texts.error;
}

/* ---- The sink ---- */

static int begin(struct sample_sink *base, const struct recording *recording)
{
    struct saved_sink *sink = (struct saved_sink *)base;
    sink->recording = recording;
    sink->profile = profile_new(true);
    if (!sink->profile) {
        return no_memory(sink);
    }
    sink->profile->recording = recording;
    sink->profile->keeps_identities = true;
    packed_output_put(sink->output, SAVED_MAGIC, SAVED_MAGIC_SIZE);
    for (uint32_t i = 0; i < recording->event_count; i++) {
        const struct recorded_event *event = &recording->events[i];
        uint32_t name = text(sink, event->name);
        uint32_t unit = text(sink, event->unit);
        put(sink, SAVED_EVENT);
        put(sink, name);
        put(sink, unit);
        put(sink, event->frequency);
        put(sink, event->period);
    }
    return sink->texts.error ? no_memory(sink) : 0;
}

static int add_sample(struct sample_sink *base, const struct resolved_sample *sample)
{
    struct saved_sink *sink = (struct saved_sink *)base;
    struct profile_sample made;
    if (sample->is_late_part) {
        sink->profile->late_parts++; /* it has been saved with its kernel part */
        return 0;
    }
    if (profile_intern(sink->profile, sample, &made) || put_news(sink)) {
        return no_memory(sink);
    }
    put(sink, SAVED_SAMPLE);
    put_signed(sink, (int64_t)(made.time - sink->time));
    put(sink, made.event);
    put(sink, made.thread);
    put(sink, made.node == PROFILE_NONE ? 0 : (uint64_t)made.node + 1);
    put(sink, made.weight);
    put(sink, sample->cpu);
    put(sink, sample->end);
    sink->time = made.time;
    return 0;
}

static int add_mark(struct sample_sink *base, const struct resolved_mark *mark)
{
    struct saved_sink *sink = (struct saved_sink *)base;
    uint32_t thread;
    if (profile_intern_thread(sink->profile, mark->thread, &thread) || put_news(sink)) {
        return no_memory(sink);
    }
    uint32_t words = text(sink, mark->text);
    uint32_t subject = text(sink, mark->subject);
    put(sink, SAVED_MARK);
    put(sink, mark->kind);
    put_signed(sink, (int64_t)(mark->from - sink->time));
    put(sink, mark->until - mark->from);
    put(sink, mark->is_open);
    put(sink, mark->number);
    put(sink, thread);
    put(sink, words);
    put(sink, subject);
    return sink->texts.error ? no_memory(sink) : 0;
}

static void put_end(struct saved_sink *sink)
{
    const struct recording *recording = sink->recording;
    const char *const strings[] = {recording->hostname,     recording->os_release,
                                   recording->arch,         recording->cpu,
                                   recording->command_line, recording->perf_version};
    uint32_t numbers[sizeof strings / sizeof *strings];
    for (size_t i = 0; i < sizeof strings / sizeof *strings; i++) {
        numbers[i] = text(sink, strings[i]);
    }
    put(sink, SAVED_END);
    for (size_t i = 0; i < sizeof strings / sizeof *strings; i++) {
        put(sink, numbers[i]);
    }
    put(sink, recording->cpu_count);
    put(sink, recording->has_wall);
    put_signed(sink, recording->wall_offset);
    put(sink, sink->profile->total_count);
}

static int end(struct sample_sink *base)
{
    struct saved_sink *sink = (struct saved_sink *)base;
    put_end(sink);
    int err = sink->texts.error ? no_memory(sink) : 0;
    profile_tell_losses(sink->profile, sink->path);
    if (!err) {
        err = packed_output_finish(sink->output);
        sink->output = NULL;
    }
    release(sink);
    return err;
}

static void give_up(struct sample_sink *base)
{
    release((struct saved_sink *)base);
}

int saved_sink_new(const char *path, struct sample_sink **out)
{
    static const struct sample_sink_ops ops = {
        .begin = begin, .sample = add_sample, .mark = add_mark, .end = end, .abort = give_up};
    struct saved_sink *sink = calloc(1, sizeof *sink);
    if (!sink) {
        error_message("failed to write %s: %s", path, strerror(ENOMEM));
        return -ENOMEM;
    }
    sink->sink.ops = &ops;
    sink->path = path;
    int err = packed_output_open(path, true, &sink->output);
    if (err) {
        release(sink);
        return err;
    }
    *out = &sink->sink;
    return 0;
}
