/*
 * For fuzz targets that run a stream: a sink that looks at everything it is told, and what a
 * fuzzer needs instead of the machine: files in memory, no messages, no waiting.
 */
#ifndef JD_FUZZ_CHECKING_SINK_H
#define JD_FUZZ_CHECKING_SINK_H

#include "fuzz_directory.h"

#include "jdtool/pipeline/stream.h"
#include "jdtool/resolve/resolver.h"
#include "tests/fuzz/silent.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void fault(const char *what)
{
    fprintf(stderr, "%s\n", what);
    abort();
}

static void require(bool holds, const char *what)
{
    if (!holds) {
        fault(what);
    }
}

/* The dump of a JVM; flags: O_TRUNC, or O_APPEND. */
static void write_dump(int flags, const void *data, size_t size)
{
    static int fd = -1;
    if (fd < 0) {
        fd = make_file("jit-4242.dump");
    }
    if (((flags & O_TRUNC) && ftruncate(fd, 0) != 0) || lseek(fd, 0, SEEK_END) < 0 ||
        write(fd, data, size) != (ssize_t)size) {
        abort();
    }
}

/* ---- The sink ---- */

static uint64_t consumed; /* so that nothing is left unread */

static void read_string(const char *string)
{
    consumed += string ? strlen(string) : 0;
}

static void check_method(const struct resolved_method *method)
{
    require(method->kind < RESOLVED_KINDS && method->name, "a method without kind or name");
    require(!method->class_name == !method->method_name, "a class without a method");
    read_string(method->name);
    read_string(method->class_name);
    read_string(method->method_name);
    read_string(method->descriptor);
    read_string(method->file);
}

static void check_code(const struct resolved_code *code)
{
    require(code->method && code->module && code->symbol && code->index, "code that is nobody's");
    require(code->module->kind == MODULE_JVM, "code in no JVM");
    read_string(code->symbol);
    check_method(code->method);
}

static void check_frame(const struct location *location, const struct resolved_frame *frame)
{
    require(frame->kind < RESOLVED_KINDS, "a frame of no kind");
    require(!frame->unnamed || frame->kind == RESOLVED_UNKNOWN, "a named frame without a name");
    bool generated = frame->kind == RESOLVED_STUB || frame->kind == RESOLVED_COMPILED ||
                     frame->kind == RESOLVED_INTERPRETED;
    require(!generated || (location->code && frame->method), "generated code without code");
    if (frame->method) {
        check_method(frame->method);
    }
}

static void check_location(const struct location *location)
{
    require(location->line_count > 0, "a location without lines");
    for (uint32_t i = 0; i < location->line_count; i++) {
        check_frame(location, &location->lines[i]);
        require(location->lines[i].kind == RESOLVED_INLINED || i + 1 == location->line_count,
                "a frame that is inlined into others and is none of those");
    }
    if (location->code) {
        check_code(location->code);
        require(location->address - location->code->address < location->code->size,
                "beside its code");
        require(location->module == location->code->module, "in another module than its code");
    }
    if (location->module) {
        read_string(location->module->path);
    }
}

static int check_begin(struct sample_sink *sink, const struct recording *recording)
{
    (void)sink;
    for (uint32_t i = 0; i < recording->event_count; i++) {
        read_string(recording->events[i].name);
    }
    read_string(recording->command_line);
    return 0;
}

static int check_record(struct sample_sink *sink, const struct perf_record *record, bool superseded)
{
    (void)sink;
    consumed += superseded;
    for (uint32_t i = 0; i < record->size; i++) {
        consumed += record->bytes[i];
    }
    return 0;
}

static int check_told(struct sample_sink *sink, const struct resolved_code *code)
{
    (void)sink;
    check_code(code);
    return 0;
}

static int check_sample(struct sample_sink *sink, const struct resolved_sample *sample)
{
    (void)sink;
    uint32_t count = 0;
    require(sample->end < STACK_ENDS && sample->event && sample->recorded, "half a sample");
    for (uint32_t at = sample->node; at; at = sample->stacks->nodes[at].caller) {
        const struct location *location = stack_table_at(sample->stacks, at);
        bool is_cut = location_own(location)->kind == RESOLVED_INLINED;
        check_location(location);
        count += location->line_count;
        require(!is_cut || (!sample->stacks->nodes[at].caller && count == RESOLVED_FRAMES_MAX),
                "an inlined frame at the end");
    }
    require(count <= RESOLVED_FRAMES_MAX, "too many frames");
    for (uint32_t i = 0; i < sample->branch_count; i++) {
        check_code(sample->branches[i]);
    }
    read_string(sample->thread.comm);
    read_string(sample->thread.process_name);
    return 0;
}

static int check_end(struct sample_sink *sink)
{
    (void)sink;
    return 0;
}

static void check_abort(struct sample_sink *sink)
{
    (void)sink;
}

static int run_stream(const struct stream_options *options)
{
    static const struct sample_sink_ops ops = {.begin = check_begin,
                                               .record = check_record,
                                               .code = check_told,
                                               .sample = check_sample,
                                               .end = check_end,
                                               .abort = check_abort};
    struct sample_sink sink = {.ops = &ops};
    struct sample_sink *const sinks[] = {&sink};
    struct stream_result result;
    return stream_run(options, sinks, 1, &result);
}

#endif
