/*
 * Fuzzes every export and the scorecard with resolved samples. The input chooses one of them and
 * the seed of a world of methods, modules and threads (tests/resolved_samples.h); then it gives
 * names to things, in bytes that come from others' dumps and recordings, and tells of samples with
 * weights and times of any size.
 */
#include "checking_sink.h"
#include "jdtool/exports/export.h"
#include "jdtool/perf/perf_data.h"
#include "jdtool/score/scorecard.h"
#include "tests/resolved_samples.h"

enum { SAMPLES_MAX = 200, STRINGS_MAX = 64, STRING_MAX = 2000 };

struct script {
    const uint8_t *at, *end;
    char *strings[STRINGS_MAX];
    uint32_t string_count;
};

static uint8_t next(struct script *script)
{
    return script->at < script->end ? *script->at++ : 0;
}

static uint64_t next_number(struct script *script)
{
    uint64_t number = 0;
    for (unsigned bytes = next(script) % 9; bytes > 0; bytes--) {
        number = number << 8 | next(script);
    }
    return number;
}

/* The bytes up to the next 0, as a string that lives as long as the script. */
static const char *next_string(struct script *script)
{
    size_t left = (size_t)(script->end - script->at);
    size_t length = strnlen((const char *)script->at, left < STRING_MAX ? left : STRING_MAX);
    if (script->string_count == STRINGS_MAX) {
        return "";
    }
    char *string = strndup((const char *)script->at, length);
    script->at += length < left ? length + 1 : length;
    script->strings[script->string_count++] = string;
    return string ? string : "";
}

static void rename_method(struct script *script, struct resolved_method *method)
{
    switch (next(script) % 4) {
    case 0:
        method->name = next_string(script);
        break;
    case 1:
        method->class_name = next_string(script);
        method->method_name = next_string(script);
        break;
    case 2:
        method->descriptor = next_string(script);
        break;
    default:
        method->file = next_string(script);
        method->first_line = (uint32_t)next_number(script);
        break;
    }
}

static void rename_things(struct script *script, struct world *world)
{
    for (uint8_t what; (what = next(script)) != 0;) {
        uint8_t which = next(script);
        switch (what % 8) {
        case 1:
            world->modules[which % WORLD_MODULES].path = next_string(script);
            break;
        case 2:
            world->threads[which % WORLD_THREADS].comm = next_string(script);
            break;
        case 3:
            world->threads[which % WORLD_THREADS].process_name = next_string(script);
            break;
        case 4:
            world->events[which % WORLD_EVENTS].name = next_string(script);
            break;
        case 5:
            world->recording.hostname = next_string(script);
            world->recording.wall_offset = (int64_t)next_number(script);
            world->recording.has_wall = which & 1;
            break;
        default:
            rename_method(script, &world->methods[which % WORLD_METHODS]);
            break;
        }
    }
}

static void tell(struct script *script, struct world *world, struct sample_sink *sink)
{
    stack_table_clear(test_stacks());
    int err = sink->ops->begin(sink, &world->recording);
    for (uint32_t i = 0; i < SAMPLES_MAX && script->at < script->end && !err; i++) {
        struct perf_sample recorded = {.misc = PERF_RECORD_MISC_USER};
        struct resolved_sample sample = world_sample(world);
        uint8_t what = next(script);
        sample.recorded = &recorded;
        if (what & 1) {
            sample.weight = next_number(script);
        }
        if (what & 2) {
            world->time += next_number(script) >> 2;
            sample.time = world->time;
        }
        if (what & 4) {
            sample.end = (enum stack_end)(next(script) % STACK_ENDS);
        }
        if (what & 8 && world->frame_count) {
            world->frames[next(script) % world->frame_count].line = (uint32_t)next_number(script);
            sample.node = test_stack(world->frames, world->frame_count);
        }
        if (what & 16) {
            sample.node = 0;
        }
        sample.is_late_part = what & 32;
        sample.left_out = what & 64 ? next_number(script) : 0;
        err = sink->ops->sample(sink, &sample);
    }
    world->recording.until = world->time;
    if (err) {
        sink->ops->abort(sink);
    } else {
        err = sink->ops->end(sink);
        require(err || access("out", F_OK) == 0, "a result that is not there");
    }
    (void)unlink("out");
}

static void begin(void)
{
    write_dump(O_TRUNC, "", 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct world world;
    if (size < 3) {
        return 0;
    }
    struct script script = {.at = data + 2, .end = data + size};
    struct export_order order = {
        .settings = {.path = "out", .suffixes = data[1] & 1, .weights = data[1] & 2}};
    const struct scorecard_options card = {.json = "out", .result = "result"};
    struct sample_sink *sink = NULL;
    uint32_t formats = 0;
    while (export_formats[formats]) {
        formats++;
    }
    world_make(&world, next_number(&script));
    rename_things(&script, &world);
    if (data[0] % (formats + 1) == formats) {
        sink = scorecard_sink_new(&card);
    } else {
        order.format = export_formats[data[0] % (formats + 1)];
        sink = export_sink_new(&order, 1, &sink) ? NULL : sink;
    }
    if (sink) {
        tell(&script, &world, sink);
    }
    for (uint32_t i = 0; i < script.string_count; i++) {
        free(script.strings[i]);
    }
    return 0;
}
