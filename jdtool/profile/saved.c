#include "jdtool/profile/saved.h"

#include "format/leb128.h"
#include "jdtool/base/array.h"
#include "jdtool/base/intern.h"
#include "jdtool/base/message.h"
#include "jdtool/base/numbered.h"
#include "jdtool/base/packed_output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct saved {
    const char *path;
    struct packed_output *output;
    const struct profile *profile; /* told up to the counts below */
    struct string_table texts;
    uint32_t texts_told, functions, codes, locations, nodes, threads, modules;
    uint32_t *module_numbers; /* by module id; 0: not told yet, else its ref */
    uint32_t module_room;
    struct numbered programs; /* of struct told_program */
    uint64_t time;            /* of the sample before */
};

/* What a process' JVM runs, as was told last. */
struct told_program {
    uint64_t pid;
    uint32_t text;
};

void saved_abort(struct saved *saved)
{
    if (saved) {
        packed_output_abort(saved->output);
        string_table_free(&saved->texts);
        free(saved->module_numbers);
        numbered_free(&saved->programs);
        free(saved);
    }
}

/* ---- Fields ---- */

static void put(struct saved *saved, uint64_t value)
{
    uint8_t bytes[LEB128_MAX];
    packed_output_put(saved->output, bytes, uleb128_put(bytes, value));
}

static void put_signed(struct saved *saved, int64_t value)
{
    put(saved, (uint64_t)value << 1 ^ (uint64_t)(value >> 63));
}

/* The number of a text, which is told first when it is new; so it comes before a record begins. */
static uint32_t text(struct saved *saved, const char *string)
{
    if (!string) {
        return 0;
    }
    uint32_t number = string_table_add(&saved->texts, string);
    if (number >= saved->texts_told && !saved->texts.error) {
        size_t size = strlen(saved->texts.list[number]);
        size = size < SAVED_TEXT_MAX ? size : SAVED_TEXT_MAX;
        put(saved, SAVED_TEXT);
        put(saved, size);
        packed_output_put(saved->output, saved->texts.list[number], size);
        saved->texts_told = number + 1;
    }
    return number + 1;
}

/* ---- Things, each told when it is first needed ---- */

static void put_dump(struct saved *saved, const struct module *module, uint32_t number)
{
    for (uint32_t i = 0; i < saved->profile->recording->jvm_count; i++) {
        const struct recorded_jvm *jvm = saved->profile->recording->jvms[i];
        if (jvm->module == module && jvm->dump) {
            uint32_t path = text(saved, jvm->dump);
            put(saved, SAVED_DUMP);
            put(saved, number);
            put(saved, path);
        }
    }
}

/* 0: none, or no memory, which string_table's error tells as well. */
static uint32_t module_ref(struct saved *saved, const struct module *module)
{
    if (!module) {
        return 0;
    }
    if (ARRAY_REACH(saved->module_numbers, module->id, saved->module_room)) {
        saved->texts.error = -ENOMEM;
        return 0;
    }
    if (!saved->module_numbers[module->id]) {
        uint32_t path = text(saved, module->path);
        put(saved, SAVED_MODULE);
        put(saved, module->kind);
        put(saved, path);
        put(saved, module->pid);
        put(saved, module->build_id_size);
        packed_output_put(saved->output, module->build_id, module->build_id_size);
        saved->module_numbers[module->id] = ++saved->modules;
        put_dump(saved, module, saved->modules - 1);
    }
    return saved->module_numbers[module->id];
}

static void put_function(struct saved *saved, const struct profile_function *function)
{
    static const struct resolved_method none;
    const struct resolved_method *method = function->method ? function->method : &none;
    const char *const strings[] = {function->method ? function->name : NULL, method->class_name,
                                   method->method_name, method->descriptor, method->file};
    uint32_t numbers[sizeof strings / sizeof *strings];
    for (size_t i = 0; i < sizeof strings / sizeof *strings; i++) {
        numbers[i] = text(saved, strings[i]);
    }
    uint32_t module = module_ref(saved, function->module);
    put(saved, SAVED_FUNCTION);
    put(saved, method->kind);
    for (size_t i = 0; i < sizeof strings / sizeof *strings; i++) {
        put(saved, numbers[i]);
    }
    put(saved, method->first_line);
    put(saved, module);
    put(saved, method->address);
    put(saved, method->size);
}

static void put_code(struct saved *saved, const struct profile_location *location)
{
    const struct resolved_code *code = location->code;
    uint32_t symbol = text(saved, code->symbol);
    uint32_t module = module_ref(saved, code->module);
    /* The compiled method is the location's last line. */
    uint32_t own = location->first_line + location->line_count - 1;
    put(saved, SAVED_CODE);
    put(saved, module - 1);
    put(saved, code->address);
    put(saved, code->size);
    put(saved, code->module_address);
    put(saved, code->from);
    put(saved, symbol);
    put(saved, (uint64_t)saved->profile->lines[own].function + 1);
    put(saved, code->blob);
    saved->codes++;
}

static void put_location(struct saved *saved, const struct profile_location *location)
{
    if (location->code && location->code_number == saved->codes) {
        put_code(saved, location);
    }
    uint32_t module = module_ref(saved, location->module);
    /* More lines than a reader takes: the outermost ones of those that were inlined go. */
    uint32_t count = location->line_count;
    uint32_t left = count > SAVED_LINES_MAX ? count - SAVED_LINES_MAX : 0;
    put(saved, SAVED_LOCATION);
    put(saved, module);
    put(saved, location->address);
    put(saved, location->code ? (uint64_t)location->code_number + 1 : 0);
    put(saved, location->is_caller);
    put(saved, count - left);
    for (uint32_t i = 0; i < count; i++) {
        const struct profile_line *line = &saved->profile->lines[location->first_line + i];
        if (i >= count - 1 - left && i < count - 1) {
            continue;
        }
        put(saved, line->kind);
        put(saved, (uint64_t)line->tier << 1 | line->is_osr);
        put(saved, line->line);
        put(saved, line->function);
    }
}

static void put_thread(struct saved *saved, const struct profile_thread *thread)
{
    uint32_t comm = text(saved, thread->comm);
    uint32_t process = text(saved, thread->process_name);
    bool has_identity = thread->virtual_id || thread->labels[0];
    uint32_t name = has_identity ? text(saved, thread->virtual_name) : 0;
    uint32_t labels = has_identity ? text(saved, thread->labels) : 0;
    put(saved, has_identity ? SAVED_IDENTITY : SAVED_THREAD);
    put(saved, thread->pid);
    put(saved, thread->tid);
    put(saved, comm);
    put(saved, process);
    if (has_identity) {
        put(saved, thread->virtual_id);
        put(saved, name);
        put(saved, labels);
    }
}

static void put_program(struct saved *saved, const struct resolved_thread *thread)
{
    struct told_program *told = numbered_find(&saved->programs, thread->pid);
    if (!told && !thread->program) {
        return;
    }
    told = told ? told : numbered_get(&saved->programs, thread->pid, NULL);
    uint32_t number = text(saved, thread->program);
    if (!told) {
        saved->texts.error = -ENOMEM;
    } else if (told->text != number) {
        told->text = number;
        put(saved, SAVED_PROGRAM);
        put(saved, thread->pid);
        put(saved, number);
    }
}

/* Everything that the profile has learnt since it was last told. */
static int put_news(struct saved *saved)
{
    const struct profile *profile = saved->profile;
    for (; saved->functions < profile->function_count; saved->functions++) {
        put_function(saved, &profile->functions[saved->functions]);
    }
    for (; saved->locations < profile->location_count; saved->locations++) {
        put_location(saved, &profile->locations[saved->locations]);
    }
    for (; saved->nodes < profile->node_count; saved->nodes++) {
        const struct profile_node *node = &profile->nodes[saved->nodes];
        put(saved, SAVED_NODE);
        put(saved, node->parent == PROFILE_NONE ? 0 : (uint64_t)node->parent + 1);
        put(saved, node->location);
    }
    for (; saved->threads < profile->thread_count; saved->threads++) {
        put_thread(saved, &profile->threads[saved->threads]);
    }
    return saved->texts.error;
}

/* ---- All of it ---- */

int saved_begin(struct saved *saved, const struct profile *profile)
{
    const struct recording *recording = profile->recording;
    saved->profile = profile;
    packed_output_put(saved->output, SAVED_MAGIC, SAVED_MAGIC_SIZE);
    for (uint32_t i = 0; i < recording->event_count; i++) {
        const struct recorded_event *event = &recording->events[i];
        uint32_t name = text(saved, event->name);
        uint32_t unit = text(saved, event->unit);
        put(saved, SAVED_EVENT);
        put(saved, name);
        put(saved, unit);
        put(saved, event->frequency);
        put(saved, event->period);
    }
    return saved->texts.error;
}

int saved_sample(struct saved *saved, const struct profile_sample *made,
                 const struct resolved_sample *sample)
{
    int err = put_news(saved);
    if (err) {
        return err;
    }
    put_program(saved, &sample->thread);
    put(saved, SAVED_SAMPLE);
    put_signed(saved, (int64_t)(made->time - saved->time));
    put(saved, made->event);
    put(saved, made->thread);
    put(saved, made->node == PROFILE_NONE ? 0 : (uint64_t)made->node + 1);
    put(saved, made->weight);
    put(saved, sample->cpu);
    put(saved, sample->end);
    saved->time = made->time;
    return saved->texts.error;
}

int saved_mark(struct saved *saved, const struct resolved_mark *mark, uint32_t thread)
{
    int err = put_news(saved);
    if (err) {
        return err;
    }
    uint32_t words = text(saved, mark->text);
    uint32_t subject = text(saved, mark->subject);
    put(saved, SAVED_MARK);
    put(saved, mark->kind);
    put_signed(saved, (int64_t)(mark->from - saved->time));
    put(saved, mark->until - mark->from);
    put(saved, mark->is_open);
    put(saved, mark->number);
    put(saved, thread);
    put(saved, words);
    put(saved, subject);
    return saved->texts.error;
}

static void put_end(struct saved *saved)
{
    const struct recording *recording = saved->profile->recording;
    const char *const strings[] = {recording->hostname,     recording->os_release,
                                   recording->arch,         recording->cpu,
                                   recording->command_line, recording->perf_version};
    uint32_t numbers[sizeof strings / sizeof *strings];
    for (size_t i = 0; i < sizeof strings / sizeof *strings; i++) {
        numbers[i] = text(saved, strings[i]);
    }
    if (recording->verdict && recording->verdict[0]) {
        uint32_t verdict = text(saved, recording->verdict);
        put(saved, SAVED_VERDICT);
        put(saved, verdict);
    }
    put(saved, SAVED_END);
    for (size_t i = 0; i < sizeof strings / sizeof *strings; i++) {
        put(saved, numbers[i]);
    }
    put(saved, recording->cpu_count);
    put(saved, recording->has_wall);
    put_signed(saved, recording->wall_offset);
    put(saved, saved->profile->total_count);
}

int saved_close(struct saved *saved)
{
    put_end(saved);
    int err = saved->texts.error;
    profile_tell_losses(saved->profile, saved->path);
    if (err) {
        failed_to(-ENOMEM, "write %s", saved->path);
    } else {
        err = packed_output_finish(saved->output);
        saved->output = NULL;
    }
    saved_abort(saved);
    return err;
}

int saved_open(const char *path, struct saved **out)
{
    struct saved *saved = calloc(1, sizeof *saved);
    if (!saved) {
        return failed_to(-ENOMEM, "write %s", path);
    }
    saved->path = path;
    int err = packed_output_open(path, true, &saved->output);
    if (err) {
        saved_abort(saved);
        return err;
    }
    saved->programs = NUMBERED(struct told_program);
    *out = saved;
    return 0;
}
