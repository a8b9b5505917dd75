/* What exports are made of: the writers, the profile, the filter, the sources. Whether the formats
 * tell what they should is shell.export_formats' job. */
#include "jdtool/base/packed_output.h"
#include "jdtool/base/zip_file.h"
#include "jdtool/sinks/export.h"
#include "jdtool/sinks/json_writer.h"
#include "jdtool/sinks/protobuf.h"
#include "jdtool/sinks/sample_filter.h"
#include "jdtool/sinks/source_texts.h"
#include "jdtool/sinks/string_table.h"
#include "tests/resolved_samples.h"
#include "tests/scratch.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <zlib.h>

#include <cmocka.h>

static void test_json(void **state)
{
    (void)state;
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
static void test_json_depth(void **state)
{
    (void)state;
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

static void test_protobuf(void **state)
{
    (void)state;
    struct protobuf message = {0};
    protobuf_uint(&message, 1, 300);
    protobuf_uint(&message, 2, 0); /* left out */
    protobuf_fixed64(&message, 3, 1);
    size_t outer = protobuf_begin(&message, 4);
    size_t inner = protobuf_begin(&message, 5);
    for (int i = 0; i < 200; i++) {
        protobuf_packed_uint(&message, 1);
    }
    protobuf_end(&message, inner);
    protobuf_end(&message, outer);
    protobuf_bytes(&message, 16, "", 0);
    protobuf_uint(&message, 1, UINT64_MAX);
    static const uint8_t head[] = {0x08, 0xac, 0x02, 0x19, 1,    0,    0,    0,   0,
                                   0,    0,    0,    0x22, 0xcb, 0x01, 0x2a, 200, 0x01};
    static const uint8_t tail[] = {0x82, 0x01, 0,    0x08, 0xff, 0xff, 0xff,
                                   0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01};
    assert_int_equal(message.error, 0);
    assert_int_equal(message.size, sizeof head + 200 + sizeof tail);
    assert_memory_equal(message.bytes, head, sizeof head);
    assert_memory_equal(message.bytes + sizeof head + 200, tail, sizeof tail);
    protobuf_free(&message);
}

static void test_gzip(void **state)
{
    (void)state;
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

static void test_strings(void **state)
{
    (void)state;
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

/* ---- The profile ---- */

static void test_profile_shares(void **state)
{
    (void)state;
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

static void test_every_format(void **state)
{
    for (size_t f = 0; export_formats[f]; f++) {
        static struct world world;
        struct export_settings settings = {.path = scratch_path(state, export_formats[f]->name)};
        struct sample_sink *sink;
        world_make(&world, random_seed());
        assert_int_equal(export_sink_new(export_formats[f], &settings, &sink), 0);
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
        assert_int_equal(stat(settings.path, &status), 0);
        assert_true(status.st_size > 1000);
        /* Without a sample there is nothing to write, and with an abort nothing is left. */
        settings.path = scratch_path(state, "none");
        assert_int_equal(export_sink_new(export_formats[f], &settings, &sink), 0);
        assert_int_equal(sink->ops->begin(sink, &world.recording), 0);
        assert_int_equal(sink->ops->end(sink), -ENODATA);
        assert_int_equal(export_sink_new(export_formats[f], &settings, &sink), 0);
        sink->ops->abort(sink);
        assert_int_equal(stat(settings.path, &status), -1);
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

static void test_filter(void **state)
{
    (void)state;
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
    struct counting_sink counting = {.sink = {&count_ops}};
    struct sample_filter_options wrong = {.includes = {{"("}, 1}};
    struct sample_filter_options part = {.event = "cpu"}; /* of a name is none */
    struct sample_sink *filter;
    assert_int_equal(sample_filter_new(&part, &counting.sink, &filter), 0);
    assert_int_equal(filter->ops->begin(filter, &world.recording), -EINVAL);
    filter->ops->abort(filter);
    assert_int_equal(sample_filter_new(&wrong, &counting.sink, &filter), -EINVAL);
}

static void test_filter_times(void **state)
{
    (void)state;
    uint64_t time = 0;
    assert_int_equal(sample_filter_time("1.5", &time), 0);
    assert_int_equal(time, 1500000000);
    assert_int_equal(sample_filter_time("300ms", &time), 0);
    assert_int_equal(time, 300000000);
    assert_int_equal(sample_filter_time("2m", &time), 0);
    assert_int_equal(time, UINT64_C(120000000000));
    static const char *const wrong[] = {"", "x", "-1", "1h", "nan", "1e999"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(sample_filter_time(wrong[i], &time), -EINVAL);
    }
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

static void write_bytes(const char *path, const uint8_t *bytes, size_t size)
{
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    fclose(file);
}

static void test_zip(void **state)
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

static void test_sources(void **state)
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_json_depth),
        cmocka_unit_test(test_protobuf),
        cmocka_unit_test(test_gzip),
        cmocka_unit_test(test_strings),
        cmocka_unit_test(test_profile_shares),
        cmocka_unit_test_setup_teardown(test_every_format, scratch_create, scratch_remove),
        cmocka_unit_test(test_filter),
        cmocka_unit_test(test_filter_times),
        cmocka_unit_test_setup_teardown(test_zip, scratch_create, scratch_remove),
        cmocka_unit_test_setup_teardown(test_sources, scratch_create, scratch_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
