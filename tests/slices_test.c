/*
 * Slices of an endless recording: where they begin and end, and that no sample is lost or counted
 * twice. And the labels that a process is given.
 */
#include "test.h"

#include "jdtool/watch/labels.h"
#include "jdtool/watch/push.h"
#include "jdtool/watch/slices.h"
#include "tests/resolved_samples.h"

#include <stdlib.h>

enum { SLICES_MAX = 64 };

struct taken {
    struct slice slices[SLICES_MAX];
    uint32_t count;
    uint64_t samples;
};

static int take(void *context, const struct slice *slice)
{
    struct taken *taken = context;
    assert_in_range(taken->count, 0, SLICES_MAX - 1);
    assert_non_null(slice->bodies[0]);
    assert_non_null(slice->bodies[1]);
    assert_int_equal(slice->bodies[0][0], 0x1f); /* gzip */
    taken->slices[taken->count++] = *slice;
    taken->samples += slice->samples;
    return 0;
}

struct setting {
    struct export_settings settings;
    struct slices_options options;
    struct taken taken;
    struct world world;
    struct sample_sink *sink;
};

static void start(struct setting *setting)
{
    memset(setting, 0, sizeof *setting);
    world_make(&setting->world, 7);
    setting->settings = (struct export_settings){.path = "slice", .no_threads = true};
    setting->options = (struct slices_options){
        .length = UINT64_C(100000000),
        .formats = {export_format_of("pprof"), export_format_of("otlp")},
        .format_count = 2,
        .settings = &setting->settings,
        .take = take,
        .context = &setting->taken,
    };
    assert_int_equal(slices_sink_new(&setting->options, &setting->sink), 0);
    assert_int_equal(setting->sink->ops->begin(setting->sink, &setting->world.recording), 0);
}

static void give(struct setting *setting, const struct resolved_sample *sample)
{
    assert_int_equal(setting->sink->ops->sample(setting->sink, sample), 0);
}

/* Samples of a second and some more, a millisecond apart: a slice for each tenth. */
TEST(test_slices)
{
    struct setting setting;
    start(&setting);
    for (int i = 0; i < 1050; i++) {
        struct resolved_sample sample = world_sample(&setting.world);
        give(&setting, &sample);
    }
    assert_int_equal(setting.sink->ops->end(setting.sink), 0);
    assert_int_equal(setting.taken.samples, 1050);
    assert_int_equal(setting.taken.count, 11);
    for (uint32_t i = 0; i < setting.taken.count; i++) {
        const struct slice *slice = &setting.taken.slices[i];
        assert_int_equal(slice->until - slice->from, 100000000);
        assert_int_equal(slice->from,
                         (uint64_t)world_wall_offset + world_start + UINT64_C(100000000) * i);
        assert_in_range(slice->unnamed, 1, slice->frames - 1);
    }
}

/* A lambda has one name in the profiles of all runs of its program, and so has a library that it
 * unpacks. */
TEST(test_names_of_runs)
{
    struct world world;
    struct profile *profile = profile_new(false);
    world_make(&world, 7);
    for (uint32_t i = 0; i < WORLD_METHODS; i++) {
        if (world.methods[i].class_name) {
            world.methods[i].class_name = "A$$Lambda/0x00007f42f8000a10";
            world.methods[i].method_name = "run";
            world.methods[i].descriptor = "()V";
            world.methods[i].name = "A$$Lambda/0x00007f42f8000a10.run()";
        }
    }
    world.modules[3].path = "/tmp/jna2091806938731694127.tmp"; /* its samples have no method */
    profile->joins_runs = true;
    for (int i = 0; i < 100; i++) {
        struct resolved_sample sample = world_sample(&world);
        assert_int_equal(profile_add(profile, &sample), 0);
    }
    uint32_t lambdas = 0, libraries = 0;
    for (uint32_t i = 0; i < profile->function_count; i++) {
        const struct profile_function *function = &profile->functions[i];
        lambdas += strcmp(function->name, "A$$Lambda.run()") == 0 &&
                   strcmp(function->system_name, "A$$Lambda.run()V") == 0;
        libraries += strcmp(function->name, "[jna.tmp]") == 0;
        assert_null(strstr(function->name, "/0x"));
    }
    assert_int_equal(libraries, 1);
    assert_in_range(lambdas, 1, 2); /* of a file, and of none */
    profile_free(profile);
}

/* What comes after its slice was given by the clock is in the next one, whose times stay its own.
 */
TEST(test_late_sample)
{
    struct setting setting;
    start(&setting);
    struct resolved_sample sample = world_sample(&setting.world);
    sample.time = world_start + 10;
    give(&setting, &sample);
    assert_int_equal(slices_sink_turn(setting.sink, world_start + 99999999, 0), 0);
    assert_int_equal(setting.taken.count, 0);
    assert_int_equal(slices_sink_turn(setting.sink, world_start + 100000000, 1000), 0);
    assert_int_equal(setting.taken.count, 0);
    assert_int_equal(slices_sink_turn(setting.sink, world_start + 100001000, 1000), 0);
    assert_int_equal(setting.taken.count, 1);
    sample.time = world_start + 20;
    give(&setting, &sample);
    assert_int_equal(setting.sink->ops->end(setting.sink), 0);
    assert_int_equal(setting.taken.count, 2);
    assert_int_equal(setting.taken.slices[1].from, setting.taken.slices[0].until);
}

/* Without samples there is no slice; a stream that breaks off leaves none. */
TEST(test_nothing)
{
    struct setting setting;
    start(&setting);
    assert_int_equal(slices_sink_turn(setting.sink, UINT64_MAX / 2, 0), 0);
    assert_int_equal(setting.sink->ops->end(setting.sink), 0);
    start(&setting);
    struct resolved_sample sample = world_sample(&setting.world);
    give(&setting, &sample);
    setting.sink->ops->abort(setting.sink);
    assert_int_equal(setting.taken.count, 0);
}

/* ---- Labels ---- */

TEST(test_labels)
{
    static struct labels labels;
    labels_set(&labels, "a", "1");
    labels_set(&labels, "b", "2\n3");
    labels_set(&labels, "c", "4");
    labels_set(&labels, "a", "5");
    assert_string_equal(labels_get(&labels, "a"), "5");
    assert_string_equal(labels_get(&labels, "b"), "2?3");
    labels_set(&labels, "a", "");
    assert_null(labels_get(&labels, "a"));
    assert_int_equal(labels.count, 2);
    assert_string_equal(labels.list[0].name, "b");
    assert_string_equal(labels.list[1].value, "4");
    for (int i = 0; i < 2 * LABELS_MAX; i++) {
        char name[16];
        snprintf(name, sizeof name, "n%d", i);
        labels_set(&labels, name, "x");
    }
    assert_int_equal(labels.count, LABELS_MAX);
    static const char *const good[] = {"a=b", "_a1=", "A_b=c=d"};
    static const char *const bad[] = {"", "a", "=b", "1a=b", "a-b=c", "a b=c"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_true(label_is_valid(good[i]));
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_false(label_is_valid(bad[i]));
    }
}

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

TEST(test_cgroup)
{
    static const struct {
        const char *cgroup, *unit, *container;
        bool is_pod;
    } cases[] = {
        {"0::/\n", "", "", false},
        {"0::/system.slice/shop.service\n", "shop", "", false},
        {"0::/user.slice/user-0.slice/user@0.service/app.slice/run-1.scope\n", "", "", false},
        {"0::/system.slice/docker-" ID ".scope\n", "", "0123456789ab", false},
        {"12:cpu:/docker/" ID "\n0::/system.slice/docker.service\n", "", "0123456789ab", false},
        {"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice/"
         "cri-containerd-" ID ".scope\n",
         "", "0123456789ab", true},
        {"1:name=systemd:/kubepods/besteffort/pod1/" ID "\n", "", "0123456789ab", true},
        {"0::/machine.slice/libpod-0123.scope\n", "", "", false},
        {"no line of that kind", "", "", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char unit[LABEL_VALUE_MAX];
        char container[16];
        bool is_pod;
        labels_from_cgroup(cases[i].cgroup, unit, container, &is_pod);
        assert_string_equal(unit, cases[i].unit);
        assert_string_equal(container, cases[i].container);
        assert_int_equal(is_pod, cases[i].is_pod);
    }
}

/* Who may name a service is the operator's to say: its user may set the environment. */
TEST(test_service)
{
    static const char environment[] = "A=b\0OTEL_SERVICE_NAME=payments\0C=d";
    static const struct {
        const char *from;
        bool unit, container;
        const char *service;
    } cases[] = {
        {LABELS_SERVICE_FROM, true, true, "payments"}, {"unit,env", true, true, "shop"},
        {"unit,env", false, true, "payments"},         {"unit", false, true, "Main"},
        {"unit,container", false, true, "0123"},       {"container,unit", true, true, "0123"},
        {"container", false, false, "Main"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static struct labels labels;
        memset(&labels, 0, sizeof labels);
        labels_set(&labels, "main_class", "Main");
        labels_set(&labels, "unit", cases[i].unit ? "shop" : "");
        labels_set(&labels, "container", cases[i].container ? "0123" : "");
        assert_true(labels_service_from_is_valid(cases[i].from));
        labels_set_service(&labels, cases[i].from, environment, sizeof environment);
        assert_string_equal(labels_get(&labels, "service_name"), cases[i].service);
    }
    static const char *const wrong[] = {"", ",", "env,", ",env", "environment", "env;unit", "ENV"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_false(labels_service_from_is_valid(wrong[i]));
    }
}

/* The gateway's JSON: what a label has is escaped, and mended where it is no UTF-8, and base64 has
 * its ends right. */
TEST(test_parca_body)
{
    static struct labels labels;
    const struct push_protocol *parca = push_protocols;
    while (strcmp(parca->name, "parca") != 0) {
        parca++;
    }
    memset(&labels, 0, sizeof labels);
    labels_set(&labels, "a", "q\"\\\xe9");
    static const char *const base64[] = {"", "MQ==", "MTI=", "MTIz", "MTIzNA=="};
    for (size_t size = 0; size < sizeof base64 / sizeof *base64; size++) {
        char expected[512];
        size_t made = 0;
        uint8_t *body = parca->make(&labels, (const uint8_t *)"1234", size, &made);
        snprintf(
            expected, sizeof expected,
            "{\n\"normalized\":true,\n\"series\":[{\"labels\":{\"labels\":[{\"name\":\"__name__\","
            "\"value\":\"jdagent\"},{\"name\":\"a\",\"value\":\"q\\\"\\\\\xef\xbf\xbd\"}]},"
            "\"samples\":["
            "{\"rawProfile\":\"%s\"}]}]}",
            base64[size]);
        assert_int_equal(made, strlen(expected));
        assert_memory_equal(body, expected, made);
        free(body);
    }
}

TEST_MAIN(NULL, NULL)
