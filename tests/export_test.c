/*
 * The parts of exports: writers, profile, filter, sources. Whether the formats tell what they
 * should is shell.export_formats' job.
 */
#include "test.h"

#include "jdtool/base/intern.h"
#include "jdtool/base/json_writer.h"
#include "jdtool/base/packed_output.h"
#include "jdtool/base/protobuf.h"
#include "jdtool/exports/export.h"
#include "jdtool/pipeline/replay.h"
#include "jdtool/pipeline/sample_filter.h"
#include "jdtool/profile/saved.h"
#include "jdtool/resolve/source_texts.h"
#include "jdtool/resolve/zip_file.h"
#include "tests/resolved_samples.h"
#include "tests/scratch.h"

#include <errno.h>
#include <zlib.h>

TEST(test_json)
{
    struct packed_output *output;
    struct json_writer json;
    assert_int_equal(packed_output_open_memory(false, &output), 0);
    json_start(&json, output);
    json_object(&json, NULL);
    json_array(&json, "a");
    json_text(&json, NULL, "q\"\\\n\x01\xff\xc3\xa9");
    json_text(&json, NULL, NULL);
    json_int(&json, NULL, INT64_MIN);
    json_uint(&json, NULL, UINT64_MAX);
    json_bool(&json, NULL, true);
    json_decimal(&json, NULL, 0, 6);
    json_decimal(&json, NULL, 1, 6);
    json_decimal(&json, NULL, -1500000, 6);
    json_decimal(&json, NULL, INT64_C(1790000000123456789), 6);
    json_decimal(&json, NULL, 120, 1);
    json_end(&json);
    json_fill(&json, "n", "null", 2);
    json_object(&json, "e");
    json_end(&json);
    json_end(&json);
    uint8_t *bytes;
    size_t size;
    assert_int_equal(packed_output_take(output, &bytes, &size), 0);
    const char *expected =
        "{\n\"a\":[\"q\\\"\\\\\\n\\u0001\xef\xbf\xbd\xc3\xa9\",null,-9223372036854775808,"
        "18446744073709551615,true,0,0.000001,-1.5,1790000000123.456789,12],"
        "\n\"n\":[null,null],\n\"e\":{}}";
    assert_int_equal(size, strlen(expected));
    assert_memory_equal(bytes, expected, size);
    free(bytes);
}

/* Deeper than the writer can, which is an error of the output and nothing worse. */
TEST(test_json_depth)
{
    struct packed_output *output;
    struct json_writer json;
    uint8_t *bytes = NULL;
    size_t size;
    assert_int_equal(packed_output_open_memory(false, &output), 0);
    json_start(&json, output);
    for (int i = 0; i < 2 * JSON_DEPTH_MAX; i++) {
        json_array(&json, NULL);
    }
    for (int i = 0; i < 2 * JSON_DEPTH_MAX; i++) {
        json_end(&json);
    }
    assert_int_equal(packed_output_take(output, &bytes, &size), -EOVERFLOW);
}

TEST(test_protobuf)
{
    struct bytes message = {0};
    protobuf_uint(&message, 1, 300);
    protobuf_uint(&message, 2, 0); /* left out */
    protobuf_fixed64(&message, 3, 1);
    size_t outer = protobuf_begin(&message, 4);
    size_t inner = protobuf_begin(&message, 5);
    for (int i = 0; i < 200; i++) {
        bytes_uleb(&message, 1);
    }
    protobuf_end(&message, inner);
    protobuf_end(&message, outer);
    protobuf_bytes(&message, 16, "", 0);
    protobuf_uint(&message, 1, UINT64_MAX);
    static const uint8_t head[] = {0x08, 0xac, 0x02, 0x19, 1,    0,    0,    0,   0,
                                   0,    0,    0,    0x22, 0xcb, 0x01, 0x2a, 200, 0x01};
    static const uint8_t tail[] = {0x82, 0x01, 0,    0x08, 0xff, 0xff, 0xff,
                                   0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01};
    assert_false(message.failed);
    assert_int_equal(message.size, sizeof head + 200 + sizeof tail);
    assert_memory_equal(message.at, head, sizeof head);
    assert_memory_equal(message.at + sizeof head + 200, tail, sizeof tail);
    bytes_free(&message);
}

/* What has to be escaped is, wherever it stands: runs of what has not are looked at together. */
TEST(test_json_escapes)
{
    static const struct {
        char c;
        const char *put;
    } escapes[] = {{'"', "\\\""},
                   {'\\', "\\\\"},
                   {'\n', "\\n"},
                   {'\x1f', "\\u001f"},
                   {'\x80', "\xef\xbf\xbd"},
                   {'\x7f', "\x7f"},
                   {' ', " "},
                   {'#', "#"},
                   {'[', "["}};
    enum { SIZE = 27 };
    for (size_t i = 0; i < SIZE * (sizeof escapes / sizeof *escapes); i++) {
        const char *put = escapes[i / SIZE].put;
        int at = (int)(i % SIZE);
        char text[SIZE + 1] = "abcdefghijklmnopqrstuvwxyz~";
        char wanted[64];
        struct packed_output *output;
        struct json_writer json;
        uint8_t *bytes;
        size_t size;
        int length = snprintf(wanted, sizeof wanted, "\"%.*s%s%s\"", at, text, put, text + at + 1);
        text[at] = escapes[i / SIZE].c;
        assert_int_equal(packed_output_open_memory(false, &output), 0);
        json_start(&json, output);
        json_text(&json, NULL, text);
        assert_int_equal(packed_output_take(output, &bytes, &size), 0);
        assert_int_equal(size, length);
        assert_memory_equal(bytes, wanted, size);
        free(bytes);
    }
}

TEST(test_printf)
{
    enum { LONG = 5000 };
    struct packed_output *output;
    uint8_t *bytes;
    size_t size;
    assert_int_equal(packed_output_open_memory(false, &output), 0);
    packed_output_printf(output, "%s%*s|", "short", LONG, "");
    packed_output_printf(output, "%511s", "");
    packed_output_printf(output, "%512s", "");
    assert_int_equal(packed_output_take(output, &bytes, &size), 0);
    assert_int_equal(size, 5 + LONG + 1 + 511 + 512);
    assert_memory_equal(bytes, "short   ", 8);
    assert_int_equal(bytes[5 + LONG], '|');
    free(bytes);
}

TEST(test_gzip)
{
    enum { SIZE = 1000000 };
    struct packed_output *output;
    uint8_t *text = malloc(SIZE);
    uint8_t *bytes;
    size_t size;
    uint64_t random = random_seed();
    for (size_t i = 0; i < SIZE; i++) {
        /* The first half cannot be packed: more comes out than goes in. */
        text[i] = (uint8_t)random_below(&random, i < SIZE / 2 ? 256 : 1 + i % 256);
    }
    assert_int_equal(packed_output_open_memory(true, &output), 0);
    for (size_t at = 0; at < SIZE;) {
        size_t n = random_below(&random, 200000);
        n = n < SIZE - at ? n : SIZE - at;
        packed_output_put(output, text + at, n);
        at += n;
    }
    assert_int_equal(packed_output_size(output), SIZE);
    assert_int_equal(packed_output_take(output, &bytes, &size), 0);
    uint8_t *back = malloc(SIZE + 1);
    z_stream zip = {
        .next_in = bytes, .avail_in = (uInt)size, .next_out = back, .avail_out = SIZE + 1};
    assert_int_equal(inflateInit2(&zip, 15 + 16), Z_OK);
    assert_int_equal(inflate(&zip, Z_FINISH), Z_STREAM_END);
    assert_int_equal(zip.avail_out, 1);
    inflateEnd(&zip);
    assert_memory_equal(back, text, SIZE);
    free(back);
    free(bytes);
    free(text);
}

TEST(test_strings)
{
    struct string_table table = {0};
    assert_int_equal(string_table_add(&table, ""), 0);
    assert_int_equal(string_table_add(&table, NULL), 0);
    uint32_t a = string_table_add(&table, "a\xff\xed\xa0\x80z");
    assert_string_equal(table.list[a], "a\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz");
    for (unsigned i = 0; i < 10000; i++) {
        char text[16];
        snprintf(text, sizeof text, "%u", i % 5000);
        uint32_t number = string_table_add(&table, text);
        assert_int_equal(number, 2 + i % 5000);
    }
    assert_int_equal(table.count, 5002);
    string_table_free(&table);
}

/* ---- Stacks ---- */

/* Whatever sets two lines apart makes two locations, and a caller two nodes. */
TEST(test_locations_and_nodes)
{
    static const struct resolved_code codes[2];
    const struct test_frame frames[] = {
        {.address = 16, .line = 9},
        {.address = 16, .line = 9, .tier = 4},
        {.address = 16, .line = 9, .tier = 4, .is_osr = true},
        {.address = 16, .line = 9, .kind = RESOLVED_NATIVE},
        {.address = 16, .line = 9, .code = &codes[0]},
        {.address = 16, .line = 9, .code = &codes[1]},
        {.address = 16, .line = 10},
    };
    const uint32_t count = sizeof frames / sizeof frames[0];
    struct stack_table *stacks = stack_table_new();
    assert_non_null(stacks);
    for (int round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < count; i++) {
            assert_int_equal(test_location(stacks, &frames[i], 1), i);
        }
    }
    /* Beside the first node is one with this location, but it is no callee of its. */
    assert_int_equal(stack_table_node(stacks, 0, 0), 1);
    assert_int_equal(stack_table_node(stacks, 0, 1), 2);
    assert_int_equal(stack_table_node(stacks, 1, 1), 3);
    assert_int_equal(stack_table_node(stacks, 1, 1), 3);
    assert_int_equal(stack_table_node(stacks, 0, 1), 2);
    stack_table_free(stacks);
}

/* Equal stacks are one number, others are others, and each has its own frames. */
TEST(test_stack_table)
{
    static struct world world;
    enum { STACKS = 2000 };
    static uint32_t nodes[STACKS];
    uint64_t seed = random_seed();
    uint64_t epoch = test_stacks()->epoch;
    for (int round = 0; round < 3; round++) {
        world_make(&world, seed);
        for (int i = 0; i < STACKS; i++) {
            struct resolved_sample sample = world_sample(&world);
            const struct stack_table *stacks = sample.stacks;
            struct resolved_frame frames[WORLD_DEPTH + 1];
            uint32_t count = stack_table_lines(stacks, sample.node, frames, WORLD_DEPTH + 1);
            assert_int_equal(count, world.frame_count);
            for (uint32_t k = 0; k < count; k++) {
                assert_ptr_equal(frames[k].method, world.frames[k].method);
                assert_int_equal(frames[k].line, world.frames[k].line);
            }
            uint32_t k = 0;
            for (uint32_t at = sample.node; at; at = stacks->nodes[at].caller) {
                const struct location *location = stack_table_at(stacks, at);
                assert_int_equal(location->address, world.frames[k].address);
                assert_int_equal(location->is_caller, world.frames[k].is_caller);
                k += location->line_count;
                assert_true(stacks->nodes[at].caller < at);
            }
            assert_true(round == 0 || nodes[i] == sample.node);
            nodes[i] = sample.node;
        }
        if (round == 1) { /* without the nodes the same are made again */
            stack_table_clear_nodes(test_stacks());
            assert_true(test_stacks()->epoch > epoch);
            assert_int_equal(test_stacks()->node_count, 1);
            epoch = test_stacks()->epoch;
            for (int i = 0; i < STACKS; i++) {
                nodes[i] = 0;
            }
            world_make(&world, seed);
            for (int i = 0; i < STACKS; i++) {
                nodes[i] = world_sample(&world).node;
            }
        }
    }
    stack_table_clear(test_stacks());
    assert_true(test_stacks()->epoch > epoch);
    assert_int_equal(test_stacks()->locations.count, 0);
}

struct depth_sink {
    struct sample_sink sink;
    uint32_t samples, node;
};

static int no_begin(struct sample_sink *sink, const struct recording *recording)
{
    (void)sink;
    (void)recording;
    return 0;
}

static int take_depth(struct sample_sink *base, const struct resolved_sample *sample)
{
    struct depth_sink *sink = (struct depth_sink *)base;
    assert_true(sink->samples == 0 || sink->node == sample->node);
    sink->node = sample->node;
    assert_int_equal(sample->stacks->node_count, 60001); /* nothing is made for a sample */
    sink->samples++;
    return 0;
}

static int no_end(struct sample_sink *sink)
{
    (void)sink;
    return 0;
}

static void no_abort(struct sample_sink *sink)
{
    (void)sink;
}

static void put_number(struct packed_output *output, uint64_t number)
{
    uint8_t bytes[10];
    size_t size = 0;
    for (; number >= 0x80; number >>= 7) {
        bytes[size++] = (uint8_t)(number | 0x80);
    }
    bytes[size++] = (uint8_t)number;
    packed_output_put(output, bytes, size);
}

static void put_numbers(struct packed_output *output, const uint32_t *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        put_number(output, numbers[i]);
    }
}

#define PUT(...)                                                                                   \
    put_numbers(output, (const uint32_t[]){__VA_ARGS__},                                           \
                sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

/* A few kilobytes with samples in the depth of a long chain: each costs what a shallow one costs.
 */
TEST_WITH(test_saved_deep, scratch_create, scratch_remove)
{
    static const struct sample_sink_ops ops = {
        .begin = no_begin, .sample = take_depth, .end = no_end, .abort = no_abort};
    const char *path = scratch_path(state, "deep.saved");
    struct packed_output *output;
    assert_int_equal(packed_output_open(path, true, &output), 0);
    packed_output_put(output, SAVED_MAGIC, SAVED_MAGIC_SIZE);
    PUT(SAVED_TEXT, 1, 'e', SAVED_EVENT, 1, 1, 99, 0, SAVED_THREAD, 1, 1, 1, 1);
    PUT(SAVED_FUNCTION, RESOLVED_NATIVE, 1, 0, 0, 0, 0, 0, 0, 0, 0);
    PUT(SAVED_LOCATION, 0, 16, 0, 0, 1, RESOLVED_NATIVE, 0, 0, 0);
    for (uint32_t i = 0; i < 60000; i++) {
        PUT(SAVED_NODE, i, 0);
    }
    for (uint32_t i = 0; i < 3000; i++) {
        PUT(SAVED_SAMPLE, 2, 0, 0, 60000, 10, 0, STACK_ROOT);
    }
    PUT(SAVED_END, 0, 0, 0, 0, 0, 0, 1, 0, 0, 3000);
    assert_int_equal(packed_output_finish(output), 0);
    struct depth_sink sink = {.sink = {&ops}};
    const struct replay_options options = {.input = path};
    assert_int_equal(replay_run(&options, &sink.sink), 0);
    assert_int_equal(sink.samples, 3000);
}

static int take_any(struct sample_sink *base, const struct resolved_sample *sample)
{
    assert_int_equal(sample->node, 2);
    ((struct depth_sink *)base)->samples++;
    return 0;
}

/* A location of a module's code, a node of it and a sample, with one field of each to choose. */
static int replay_saved(const char *path, uint32_t module, uint32_t second, uint32_t caller)
{
    static const struct sample_sink_ops ops = {
        .begin = no_begin, .sample = take_any, .end = no_end, .abort = no_abort};
    struct packed_output *output;
    assert_int_equal(packed_output_open(path, true, &output), 0);
    packed_output_put(output, SAVED_MAGIC, SAVED_MAGIC_SIZE);
    PUT(SAVED_TEXT, 1, 'e', SAVED_EVENT, 1, 1, 99, 0, SAVED_THREAD, 1, 1, 1, 1);
    PUT(SAVED_MODULE, MODULE_JVM, 1, 1, 0, SAVED_MODULE, MODULE_JVM, 1, 2, 0);
    PUT(SAVED_FUNCTION, RESOLVED_COMPILED, 1, 0, 0, 0, 0, 0, 1, 0, 0);
    PUT(SAVED_CODE, 0, 64, 64, 64, 0, 1, 1, 0);
    PUT(SAVED_LOCATION, module, 80, 1, 0, 1, RESOLVED_COMPILED, 0, 3, 0);
    PUT(SAVED_LOCATION, 1, 80, 1, 0, 1, RESOLVED_COMPILED, 0, second, 0);
    PUT(SAVED_NODE, 0, 0, SAVED_NODE, caller, 0);
    PUT(SAVED_SAMPLE, 2, 0, 0, 2, 10, 0, STACK_ROOT);
    PUT(SAVED_END, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1);
    assert_int_equal(packed_output_finish(output), 0);
    struct depth_sink sink = {.sink = {&ops}};
    const struct replay_options options = {.input = path};
    int err = replay_run(&options, &sink.sink);
    assert_int_equal(sink.samples, err ? 0 : 1);
    return err;
}

/* What a file tells are the tables themselves: nothing is twice in them, and no code elsewhere than
 * its location. */
TEST_WITH(test_saved_tables, scratch_create, scratch_remove)
{
    const char *path = scratch_path(state, "tables.saved");
    assert_int_equal(replay_saved(path, 1, 4, 1), 0);
    assert_int_equal(replay_saved(path, 1, 3, 1), -EBADMSG);
    assert_int_equal(replay_saved(path, 1, 4, 0), -EBADMSG);
    assert_int_equal(replay_saved(path, 2, 4, 1), -EBADMSG);
    assert_int_equal(replay_saved(path, 0, 4, 1), -EBADMSG);
}

/* ---- The profile ---- */

TEST(test_profile_shares)
{
    static struct world world;
    world_make(&world, random_seed());
    struct profile *by_time = profile_new(true);
    struct profile *together = profile_new(false);
    by_time->recording = together->recording = &world.recording;
    for (int i = 0; i < 300; i++) {
        struct resolved_sample sample = world_sample(&world);
        for (int twice = 0; twice < 2; twice++) {
            assert_int_equal(profile_add(by_time, &sample), 0);
            assert_int_equal(profile_add(together, &sample), 0);
        }
    }
    assert_int_equal(by_time->sample_count, 600);
    assert_true(together->sample_count <= 300);
    assert_int_equal(by_time->node_count, together->node_count);
    assert_int_equal(by_time->total_count, 600);
    uint64_t counts = 0;
    for (uint32_t i = 0; i < together->sample_count; i++) {
        counts += together->samples[i].count;
    }
    assert_int_equal(counts, 600);
    for (uint32_t i = 0; i < by_time->node_count; i++) {
        assert_true(by_time->nodes[i].parent == PROFILE_NONE || by_time->nodes[i].parent < i);
    }
    /* Interpreted and compiled, it is one function. */
    for (uint32_t i = 0; i < by_time->function_count; i++) {
        for (uint32_t k = 0; k < i; k++) {
            bool same_file = by_time->functions[i].file == by_time->functions[k].file;
            assert_false(same_file &&
                         strcmp(by_time->functions[i].name, by_time->functions[k].name) == 0);
        }
    }
    profile_free(by_time);
    profile_free(together);
}

/* A hidden class is called otherwise in each JVM: its methods are one where several are together.
 */
TEST(test_several_jvms)
{
    static const char *const names[] = {"A$$Lambda$14/0x00007f42f8000a10.run()",
                                        "A$$Lambda/0x00007f5a10001c28.run()", "B.run()"};
    for (uint32_t jvms = 1; jvms <= 2; jvms++) {
        static struct world world;
        struct profile *profile = profile_new(true);
        struct resolved_method methods[3];
        struct module modules[2];
        world_make(&world, 1);
        profile->recording = &world.recording;
        for (uint32_t i = 0; i < 6; i++) {
            uint32_t jvm = i % jvms;
            struct resolved_method *method = &methods[i < 4 ? i % 2 : 2];
            modules[jvm] = world.modules[2];
            modules[jvm].id = 10 + jvm;
            modules[jvm].pid = 100 + jvm;
            *method = (struct resolved_method){.id = (uint32_t)(method - methods),
                                               .kind = RESOLVED_INTERPRETED,
                                               .name = names[method - methods],
                                               .class_name = "A",
                                               .method_name = "run"};
            const struct test_frame frame = {.kind = RESOLVED_INTERPRETED,
                                             .method = method,
                                             .module = &modules[jvm],
                                             .address = 64,
                                             .module_address = 64};
            struct resolved_sample sample = world_sample(&world);
            struct stack_table *stacks = test_stacks();
            sample.node = stack_table_node(stacks, 0, test_location(stacks, &frame, 1));
            assert_int_equal(profile_add(profile, &sample), 0);
        }
        profile_close(profile);
        assert_int_equal(profile->function_count, jvms == 1 ? 3 : 2);
        const char *const *expected =
            jvms == 1 ? names : (const char *[]){"A$$Lambda.run()", names[2]};
        for (uint32_t i = 0; i < profile->function_count; i++) {
            assert_string_equal(profile->functions[i].name, expected[i]);
        }
        for (uint32_t i = 0; i < profile->line_count; i++) {
            assert_true(profile->lines[i].function < profile->function_count);
        }
        profile_free(profile);
    }
}

/* A view of the profile that keeps more is, number for number, what a profile of its own is: of one
 * that keeps most, and of one without times, whose samples are merged already. */
TEST(test_views)
{
    enum { OF_PROCESSES = 8 };
    for (int kind = 0; kind <= OF_PROCESSES; kind++) {
        static struct world world;
        bool of_processes = kind == OF_PROCESSES;
        bool keeps_times = kind < 4 || of_processes;
        if ((kind & 1) && !keeps_times) {
            continue; /* no view has what its profile lacks */
        }
        struct profile *whole = profile_new(keeps_times);
        struct profile *own = profile_new(kind & 1);
        world_make(&world, random_seed());
        whole->recording = own->recording = &world.recording;
        whole->keeps_identities = true;
        own->keeps_identities = kind & 2;
        for (int i = 0; i < 500; i++) {
            struct resolved_sample sample = world_sample(&world);
            uint64_t carried = random_below(&world.random, 4);
            sample.thread.virtual_id = carried;
            sample.thread.virtual_name = carried ? "virtual" : NULL;
            sample.thread.labels = carried == 2 ? "key=value\n" : NULL;
            sample.thread.process_name = i < 250 ? "java" : "renamed";
            struct resolved_thread marking = world.threads[i % WORLD_THREADS];
            marking.process_name = sample.thread.process_name;
            const struct resolved_mark mark = {.from = i, .until = i + 1, .thread = &marking};
            assert_true(!keeps_times || profile_add_mark(whole, &mark) == 0);
            assert_true(!(kind & 1) || profile_add_mark(own, &mark) == 0);
            assert_int_equal(profile_add(whole, &sample), 0);
            if (of_processes) {
                sample.thread.tid = sample.thread.pid;
                sample.thread.comm = sample.thread.process_name = "";
            }
            assert_int_equal(profile_add(own, &sample), 0);
        }
        struct profile view;
        assert_int_equal(profile_view(whole, kind & 1, kind & 2, of_processes, &view), 0);
        assert_int_equal(view.sample_count, own->sample_count);
        assert_memory_equal(view.samples, own->samples, own->sample_count * sizeof *own->samples);
        assert_int_equal(view.mark_count, own->mark_count);
        for (uint32_t i = 0; i < own->mark_count; i++) {
            assert_int_equal(view.marks[i].thread, own->marks[i].thread);
        }
        assert_int_equal(view.thread_count, own->thread_count);
        for (uint32_t i = 0; i < own->thread_count; i++) {
            const struct profile_thread *seen = &view.threads[i];
            const struct profile_thread *told = &own->threads[i];
            assert_int_equal(seen->tid, told->tid);
            assert_int_equal(seen->virtual_id, told->virtual_id);
            assert_string_equal(seen->comm, told->comm);
            assert_string_equal(seen->process_name, told->process_name);
            assert_string_equal(seen->virtual_name, told->virtual_name);
            assert_string_equal(seen->labels, told->labels);
        }
        for (uint32_t i = 0; kind & 1 && i < own->track_count; i++) {
            assert_int_equal(view.tracks[i].thread, own->tracks[i].thread);
        }
        profile_view_free(whole, &view);
        profile_free(whole);
        profile_free(own);
    }
}

/* Samples in order by several keys: none that follows is before, and those of the same stay in the
 * order of their coming. What they are together is their sum by event. */
TEST(test_order)
{
    static const enum sample_key keys[] = {BY_EVENT, BY_THREAD, BY_TIME, BY_NUMBER};
    static struct world world;
    struct profile *profile = profile_new(true);
    world_make(&world, random_seed());
    profile->recording = &world.recording;
    for (int i = 0; i < 500; i++) {
        struct resolved_sample sample = world_sample(&world);
        sample.time = world_start + random_below(&world.random, 100);
        assert_int_equal(profile_add(profile, &sample), 0);
    }
    uint32_t *order = profile_order(profile, keys);
    assert_non_null(order);
    struct profile_sum all = {0};
    for (uint32_t event = 0; event < world.recording.event_count; event++) {
        struct profile_sum sum = profile_sum(profile, event);
        all.samples += sum.samples;
        all.weight += sum.weight;
    }
    uint64_t weight = profile->samples[order[0]].weight;
    for (uint32_t i = 1; i < profile->sample_count; i++) {
        const struct profile_sample *a = &profile->samples[order[i - 1]];
        const struct profile_sample *b = &profile->samples[order[i]];
        uint64_t of_a[] = {a->event, a->thread, a->time, order[i - 1]};
        uint64_t of_b[] = {b->event, b->thread, b->time, order[i]};
        size_t k = 0;
        while (k < 3 && of_a[k] == of_b[k]) {
            k++;
        }
        assert_true(of_a[k] < of_b[k]);
        weight += b->weight;
    }
    assert_int_equal(all.samples, 500);
    assert_int_equal(all.weight, weight);
    free(order);
    profile_free(profile);
}

/* The function of the innermost frame, as a profile has it. */
static uint32_t function_of(struct profile *profile, enum resolved_kind kind,
                            const struct module *module, const char *name)
{
    static struct resolved_method methods[16];
    static uint32_t count;
    struct resolved_method *method = &methods[count];
    *method = (struct resolved_method){.id = count++, .kind = kind, .name = name, .module = module};
    const struct test_frame frame = {.kind = (uint8_t)kind,
                                     .address = 0x1000 + count,
                                     .module_address = 0x1000 + count,
                                     .module = module,
                                     .method = method};
    static const struct recorded_event event = {.name = "cpu-clock", .unit = "nanoseconds"};
    const struct resolved_sample sample = {
        .event = &event,
        .weight = 1,
        .thread = {.pid = 1, .tid = 1, .comm = "main", .process_name = "java"},
        .stacks = test_stacks(),
        .node = test_stack(&frame, 1)};
    struct profile_sample made;
    assert_int_equal(profile_intern(profile, &sample, &made), 0);
    uint32_t location = profile->nodes[made.node].location;
    return profile->lines[profile->locations[location].first_line].function;
}

TEST(test_functions_are_one_within_their_file)
{
    static struct world world;
    world_make(&world, 1);
    const struct module *one = &world.modules[0];
    const struct module *other = &world.modules[3];
    const struct module *jvm = &world.modules[2];
    const struct module another_jvm = {.id = 4, .kind = MODULE_JVM, .path = "[java 2]", .pid = 2};
    struct profile *profile = profile_new(true);
    profile->recording = &world.recording;
    uint32_t decode = function_of(profile, RESOLVED_NATIVE, one, "decode");
    uint32_t others = function_of(profile, RESOLVED_NATIVE, other, "decode");
    assert_int_not_equal(others, decode);
    assert_ptr_equal(profile->functions[decode].module, one);
    assert_ptr_equal(profile->functions[others].module, other);
    assert_int_equal(function_of(profile, RESOLVED_NATIVE, one, "decode"), decode);
    static const struct module copies[] = {
        {.id = 5, .path = "/tmp/copy.so", .build_id = {0xab, 0xcd, 3, 4}, .build_id_size = 20},
        {.id = 6, .path = "/tmp/copy.so", .build_id = {0xab, 0xcd, 3, 5}, .build_id_size = 20},
        {.id = 7, .path = "/tmp/zstd-1234567890123.so"},
        {.id = 8, .path = "/tmp/zstd-7654321098765.so"},
        {.id = 9, .path = "/tmp/lz4-7654321098765.so"},
    };
    static const uint32_t same_as[] = {5, 1, 2, 2, 4};
    uint32_t copied[6] = {[5] = decode};
    for (uint32_t i = 0; i < sizeof copies / sizeof *copies; i++) {
        copied[i] = function_of(profile, RESOLVED_NATIVE, &copies[i], "decode");
        for (uint32_t k = 0; k < i; k++) {
            assert_int_equal(copied[k] == copied[i], k == same_as[i]);
        }
        assert_int_equal(copied[i] == decode, same_as[i] == 5);
    }
    uint32_t method = function_of(profile, RESOLVED_COMPILED, jvm, "a.B.c()");
    assert_int_equal(function_of(profile, RESOLVED_INTERPRETED, &another_jvm, "a.B.c()"), method);

    /* Versions of symbols are for linkers. */
    uint32_t waits = function_of(profile, RESOLVED_NATIVE, one, "wait@@GLIBC_2.3.2");
    assert_string_equal(profile->functions[waits].name, "wait");
    assert_string_equal(profile->functions[waits].system_name, "wait@@GLIBC_2.3.2");
    assert_int_equal(function_of(profile, RESOLVED_NATIVE, one, "wait@GLIBC_2.2.5"), waits);
    uint32_t plt = function_of(profile, RESOLVED_NATIVE, one, "malloc@plt");
    assert_string_equal(profile->functions[plt].name, "malloc@plt");
    uint32_t java = function_of(profile, RESOLVED_COMPILED, jvm, "a.B.c@d()");
    assert_string_equal(profile->functions[java].name, "a.B.c@d()");
    profile_free(profile);
}

static uint32_t thread_of(struct profile *profile, uint32_t pid, uint32_t tid, const char *comm,
                          const char *process)
{
    const struct resolved_thread thread = {
        .pid = pid, .tid = tid, .comm = comm, .process_name = process};
    uint32_t id;
    assert_int_equal(profile_intern_thread(profile, &thread, &id), 0);
    assert_int_equal(profile->tracks[profile->threads[id].track].thread, id);
    return id;
}

/* What a JVM runs is not known before its dump is. */
TEST(test_processes_are_called_by_what_they_run)
{
    struct recording recording = {.event_count = 0};
    struct profile *profile = profile_new(true);
    profile->recording = &recording;
    uint32_t early = thread_of(profile, 1, 1, "java", "java");
    uint32_t native = thread_of(profile, 2, 2, "perf", "perf");
    const struct resolved_thread told = {
        .pid = 1, .tid = 9, .comm = "main", .process_name = "java", .program = "Market"};
    const struct resolved_thread group = {.pid = 1, .tid = 1, .comm = "", .process_name = "java"};
    uint32_t late;
    uint32_t all;
    assert_int_equal(profile_intern_thread(profile, &told, &late), 0);
    assert_int_equal(profile_intern_thread(profile, &group, &all), 0);
    assert_string_equal(profile_process(&profile->threads[early]), "java");
    profile_close(profile);
    assert_string_equal(profile_process(&profile->threads[early]), "Market");
    assert_string_equal(profile_process(&profile->threads[late]), "Market");
    assert_string_equal(profile_process(&profile->threads[native]), "perf");
    assert_string_equal(profile->threads[early].process_name, "java");
    assert_string_equal(profile->threads[all].comm, "Market 1");
    profile_free(profile);
}

/* A thread is one under each of its names, its track one under all. */
TEST(test_renamed_threads)
{
    struct profile *profile = profile_new(true);
    uint32_t main = thread_of(profile, 1, 1, "main", "java");
    uint32_t worker = thread_of(profile, 1, 2, "main", "java");
    uint32_t renamed = thread_of(profile, 1, 2, "worker", "java");
    assert_int_not_equal(main, worker);
    assert_int_not_equal(renamed, worker);
    assert_int_equal(thread_of(profile, 1, 1, "main", "java"), main);
    assert_int_equal(thread_of(profile, 1, 2, "main", "server"), worker);
    assert_string_equal(profile->threads[worker].process_name, "server");
    assert_int_equal(thread_of(profile, 1, 2, NULL, NULL), 3);
    assert_int_equal(thread_of(profile, 2, 2, "worker", "java"), 4);
    assert_int_equal(profile->track_count, 3);
    profile_free(profile);
}

TEST_WITH(test_every_format, scratch_create, scratch_remove)
{
    for (size_t f = 0; export_formats[f]; f++) {
        static struct world world;
        struct export_order order = {export_formats[f],
                                     {.path = scratch_path(state, export_formats[f]->name)}};
        struct sample_sink *sink;
        world_make(&world, random_seed());
        assert_int_equal(export_sink_new(&order, 1, &sink), 0);
        assert_int_equal(sink->ops->begin(sink, &world.recording), 0);
        for (int i = 0; i < 200; i++) {
            struct resolved_sample sample = world_sample(&world);
            assert_int_equal(sink->ops->sample(sink, &sample), 0);
        }
        for (uint32_t i = 0; i < 200; i++) {
            const struct resolved_thread thread = {
                .pid = 1, .tid = i, .comm = "VM Thread", .process_name = "java"};
            const struct resolved_mark mark = {.kind = (enum mark_kind)(i % MARK_KINDS),
                                               .from = world.recording.from + i,
                                               .until = world.recording.from + 2 * i,
                                               .thread = &thread,
                                               .text = i % 2 ? "one" : "another",
                                               .number = i};
            assert_int_equal(sink->ops->mark(sink, &mark), 0);
        }
        assert_int_equal(sink->ops->end(sink), 0);
        struct stat status;
        assert_int_equal(stat(order.settings.path, &status), 0);
        assert_true(status.st_size > 1000);
        /* Without a sample there is nothing to write, and with an abort nothing is left. */
        order.settings.path = scratch_path(state, "none");
        assert_int_equal(export_sink_new(&order, 1, &sink), 0);
        assert_int_equal(sink->ops->begin(sink, &world.recording), 0);
        assert_int_equal(sink->ops->end(sink), -ENODATA);
        assert_int_equal(export_sink_new(&order, 1, &sink), 0);
        sink->ops->abort(sink);
        assert_int_equal(stat(order.settings.path, &status), -1);
    }
}

/* ---- The filter ---- */

struct counting_sink {
    struct sample_sink sink;
    uint64_t samples, weight;
    uint32_t events;
    bool ended;
};

static int count_begin(struct sample_sink *sink, const struct recording *recording)
{
    ((struct counting_sink *)sink)->events = recording->event_count;
    return 0;
}

static int count_sample(struct sample_sink *sink, const struct resolved_sample *sample)
{
    struct counting_sink *counting = (struct counting_sink *)sink;
    assert_true(sample->event->id < counting->events);
    counting->samples++;
    counting->weight += sample->weight;
    return 0;
}

static int count_end(struct sample_sink *sink)
{
    ((struct counting_sink *)sink)->ended = true;
    return 0;
}

static void count_abort(struct sample_sink *sink)
{
    (void)sink;
}

static const struct sample_sink_ops count_ops = {
    .begin = count_begin, .sample = count_sample, .end = count_end, .abort = count_abort};

/* How many of 1000 samples pass. */
static uint64_t passed(const struct sample_filter_options *options)
{
    static struct world world;
    struct counting_sink counting = {.sink = {&count_ops}};
    struct sample_sink *filter;
    world_make(&world, 1);
    assert_int_equal(sample_filter_new(options, &counting.sink, &filter), 0);
    assert_int_equal(filter->ops->begin(filter, &world.recording), 0);
    for (int i = 0; i < 1000; i++) {
        struct resolved_sample sample = world_sample(&world);
        assert_int_equal(filter->ops->sample(filter, &sample), 0);
    }
    assert_int_equal(filter->ops->end(filter), 0);
    assert_true(counting.ended);
    assert_int_equal(counting.events, options->event ? 1 : WORLD_EVENTS);
    return counting.samples;
}

TEST(test_filter)
{
    assert_int_equal(passed(&(struct sample_filter_options){0}), 1000);
    uint64_t first = passed(&(struct sample_filter_options){.until = 100000000});
    uint64_t rest = passed(&(struct sample_filter_options){.from = 100000000});
    assert_int_equal(first + rest, 1000);
    assert_in_range(first, 95, 101); /* a millisecond each */
    assert_int_equal(passed(&(struct sample_filter_options){.until = 1}), 1);
    static struct world world;
    world_make(&world, 1);
    uint64_t start = world_sample(&world).time;
    uint64_t second = world_sample(&world).time - start;
    assert_int_equal(passed(&(struct sample_filter_options){.until = second}), 1);
    assert_int_equal(passed(&(struct sample_filter_options){.until = second + 1}), 2);
    uint64_t clock = passed(&(struct sample_filter_options){.event = "cpu-clock"});
    uint64_t misses = passed(&(struct sample_filter_options){.event = "cache-misses"});
    assert_int_equal(clock + misses, 1000);
    uint64_t workers = passed(&(struct sample_filter_options){.threads = {{"worker*"}, 1}});
    uint64_t by_id = passed(&(struct sample_filter_options){.threads = {{"101", "102"}, 2}});
    assert_int_equal(workers, by_id);
    uint64_t other = passed(&(struct sample_filter_options){.pids = {{"200"}, 1}});
    assert_true(other > 0 && workers > other);
    assert_int_equal(passed(&(struct sample_filter_options){.comms = {{"java"}, 1}}), 1000);
    assert_int_equal(passed(&(struct sample_filter_options){.comms = {{"main"}, 1}}), 0);
    uint64_t with =
        passed(&(struct sample_filter_options){.includes = {{"^org\\.x\\.Class1\\.m[34]\\("}, 1}});
    uint64_t without =
        passed(&(struct sample_filter_options){.excludes = {{"^org\\.x\\.Class1\\.m[34]\\("}, 1}});
    assert_int_equal(with + without, 1000);
    assert_true(with > 0 && without > 0);
    uint64_t really = 0; /* by the frames of each, and by no answer that was kept */
    world_make(&world, 1);
    for (int i = 0; i < 1000; i++) {
        (void)world_sample(&world);
        bool found = false;
        for (uint32_t k = 0; k < world.frame_count; k++) {
            const struct resolved_method *method = world.frames[k].method;
            found |= method && (strncmp(method->name, "org.x.Class1.m3(", 16) == 0 ||
                                strncmp(method->name, "org.x.Class1.m4(", 16) == 0);
        }
        really += found;
    }
    assert_int_equal(with, really);
    struct counting_sink counting = {.sink = {&count_ops}};
    struct sample_filter_options wrong = {.includes = {{"("}, 1}};
    struct sample_filter_options part = {.event = "cpu"}; /* of a name is none */
    struct sample_sink *filter;
    assert_int_equal(sample_filter_new(&part, &counting.sink, &filter), 0);
    assert_int_equal(filter->ops->begin(filter, &world.recording), -EINVAL);
    filter->ops->abort(filter);
    assert_int_equal(sample_filter_new(&wrong, &counting.sink, &filter), -EINVAL);
}

/* A process is one row, called by what its JVM runs, which is not known at its first samples. */
TEST_WITH(test_processes, scratch_create, scratch_remove)
{
    static struct world world;
    static char text[1 << 20];
    char saved[256];
    char stacks[256];
    snprintf(saved, sizeof saved, "%s", scratch_path(state, "saved"));
    snprintf(stacks, sizeof stacks, "%s", scratch_path(state, "stacks"));
    const struct export_order save = {.settings = {.path = saved}};
    const struct export_order collapse = {export_format_of("collapsed"), {.path = stacks}};
    const struct sample_filter_options by_process = {.grouping = GROUP_BY_PROCESS};
    const struct replay_options input = {.input = saved};
    struct sample_sink *sink;
    world_make(&world, 1);
    assert_int_equal(export_sink_new(&save, 1, &sink), 0);
    assert_int_equal(sink->ops->begin(sink, &world.recording), 0);
    for (int i = 0; i < 200; i++) {
        struct resolved_sample sample = world_sample(&world);
        sample.thread.program = i > 20 && sample.thread.pid == 100 ? "shop.jar" : NULL;
        assert_int_equal(sink->ops->sample(sink, &sample), 0);
    }
    assert_int_equal(sink->ops->end(sink), 0);
    assert_int_equal(export_sink_new(&collapse, 1, &sink), 0);
    assert_int_equal(sample_filter_new(&by_process, sink, &sink), 0);
    assert_int_equal(replay_run(&input, sink), 0);
    scratch_read_text(stacks, text, sizeof text);
    uint32_t shop = 0;
    uint32_t java = 0;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) { /* NOLINT */
        bool is_shop = strncmp(line, "shop.jar 100", 12) == 0;
        shop += is_shop;
        java += !is_shop;
        assert_true(is_shop || strncmp(line, "java 200", 8) == 0);
    }
    assert_true(shop > 0 && java > 0);
}

/* ---- Sources ---- */

static void put16(uint8_t *to, uint32_t value)
{
    to[0] = (uint8_t)value;
    to[1] = (uint8_t)(value >> 8);
}

static void put32(uint8_t *to, uint32_t value)
{
    put16(to, value);
    put16(to + 2, value >> 16);
}

/* An archive of one deflated file; returns its size. */
static size_t make_zip(uint8_t *zip, const char *name, const char *text)
{
    size_t name_size = strlen(name);
    uint8_t packed[1024];
    z_stream stream = {.next_in = (Bytef *)(uintptr_t)text,
                       .avail_in = (uInt)strlen(text),
                       .next_out = packed,
                       .avail_out = sizeof packed};
    assert_int_equal(deflateInit2(&stream, 6, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    uint32_t size = (uint32_t)(sizeof packed - stream.avail_out);
    deflateEnd(&stream);

    uint8_t *at = zip;
    memset(zip, 0, 4096);
    put32(at, 0x04034b50);
    put16(at + 8, 8);
    put16(at + 26, (uint32_t)name_size);
    memcpy(at + 30, name, name_size);
    at += 30 + name_size;
    memcpy(at, packed, size);
    at += size;
    uint32_t directory = (uint32_t)(at - zip);
    put32(at, 0x02014b50);
    put16(at + 10, 8);
    put32(at + 20, size);
    put32(at + 24, (uint32_t)strlen(text));
    put16(at + 28, (uint32_t)name_size);
    memcpy(at + 46, name, name_size);
    at += 46 + name_size;
    uint32_t directory_size = (uint32_t)(at - zip) - directory;
    put32(at, 0x06054b50);
    put16(at + 10, 1);
    put32(at + 12, directory_size);
    put32(at + 16, directory);
    return (size_t)(at + 22 - zip);
}

TEST_WITH(test_zip, scratch_create, scratch_remove)
{
    uint8_t bytes[4096];
    size_t size = make_zip(bytes, "java.base/java/lang/X.java", "class X {}\n");
    const char *path = scratch_path(state, "src.zip");
    struct zip_file *zip;
    char *text;
    size_t text_size;
    write_bytes(path, bytes, size);
    assert_int_equal(zip_file_open(path, &zip), 0);
    static const char *const names[] = {"java/lang/X.java", "java.base/java/lang/X.java"};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(zip_file_read(zip, names[i], &text, &text_size), 0);
        assert_int_equal(text_size, 11);
        assert_string_equal(text, "class X {}\n");
        free(text);
    }
    assert_int_equal(zip_file_read(zip, "lang/X.java", &text, &text_size), 0);
    assert_null(text);
    zip_file_close(zip);

    /* Damaged at any place it is read or refused, and nothing else happens. */
    for (size_t at = 0; at < size; at++) {
        for (int flip = 1; flip < 256; flip *= 4) {
            uint8_t damaged[4096];
            memcpy(damaged, bytes, sizeof damaged);
            damaged[at] ^= (uint8_t)(flip | 0x81);
            write_bytes(path, damaged, size);
            if (zip_file_open(path, &zip) == 0) {
                zip_file_read(zip, names[0], &text, &text_size);
                free(text);
                zip_file_close(zip);
            }
        }
    }
}

TEST_WITH(test_sources, scratch_create, scratch_remove)
{
    scratch_write(scratch_path(state, "X.java"), "class X {}\n");
    struct source_texts *texts;
    char *text;
    size_t size;
    assert_int_equal(source_texts_open(*state, &texts), 0);
    assert_int_equal(source_texts_read(texts, "X.java", &text, &size), 0);
    assert_int_equal(size, 11);
    free(text);
    /* A dump's names lead nowhere else. */
    const char *directory = strrchr(*state, '/') + 1;
    char outside[256];
    snprintf(outside, sizeof outside, "../%s/X.java", directory);
    const char *const refused[] = {outside, "/etc/passwd", "..", "a/../../etc/passwd",
                                   "",      "Y.java"};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        assert_int_equal(source_texts_read(texts, refused[i], &text, &size), 0);
        assert_null(text);
    }
    struct module module = {.path = "/nowhere/lib/server/libjvm.so"};
    assert_int_equal(source_texts_add_jdk(texts, &module), 0);
    source_texts_close(texts);
}

/* Kotlin and Scala leave out directories that all packages have in common; another package's file
 * of that name is not taken for it, nor is a Java source looked for like that. */
TEST_WITH(test_sources_with_fewer_directories, scratch_create, scratch_remove)
{
    static const struct {
        const char *written, *text, *named;
        bool found;
    } cases[] = {
        {"A.kt", "// A\npackage com.shop\n\nclass A\n", "com/shop/A.kt", true},
        {"A.kt", "package com.shop\r\n", "com/shop/A.kt", true},
        {"A.kt", "package com.`shop`\n", "com/shop/A.kt", true},
        {"A.kt", "package com.shops\n", "com/shop/A.kt", false},
        {"A.kt", "package com.sho\n", "com/shop/A.kt", false},
        {"A.kt", "package com\n", "com/shop/A.kt", false},
        {"A.kt", "class A\n", "com/shop/A.kt", false},
        {"A.kt", "", "com/shop/A.kt", false},
        {"sub/A.kt", "package com.shop.sub\n", "com/shop/sub/A.kt", true},
        {"sub/B.scala", "package com.shop\npackage sub\n\nclass B\n", "com/shop/sub/B.scala", true},
        {"sub/B.scala", "package com.shop\npackage other\n", "com/shop/sub/B.scala", false},
        {"C.java", "package com.shop;\n", "com/shop/C.java", false},
    };
    assert_int_equal(mkdir(scratch_path(state, "sub"), 0700), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct source_texts *texts;
        char *text;
        size_t size;
        scratch_write(scratch_path(state, cases[i].written), cases[i].text);
        assert_int_equal(source_texts_open(*state, &texts), 0);
        assert_int_equal(source_texts_read(texts, cases[i].named, &text, &size), 0);
        if ((text != NULL) != cases[i].found) {
            fail_msg("case %zu: found %d", i, text != NULL);
        }
        free(text);
        source_texts_close(texts);
    }
}

TEST_MAIN(NULL, NULL)
