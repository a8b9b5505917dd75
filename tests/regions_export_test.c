/* The export of regions: code by instruction. */
#include "test.h"

#include "jdtool/exports/export.h"
#include "jdtool/jitdump/code_index.h"
#include "tests/dump_builder.h"
#include "tests/resolved_samples.h"

static const uint64_t code_address = UINT64_C(0x7f0000000000);

/* The profile as JSON; the caller frees it. */
static char *regions_of(const struct profile *profile)
{
    static const struct export_settings settings = {.path = "memory"};
    struct packed_output *output;
    uint8_t *bytes;
    size_t size;
    assert_int_equal(packed_output_open_memory(false, &output), 0);
    assert_int_equal(export_format_of("regions")->write(profile, &settings, output), 0);
    packed_output_put(output, "", 1);
    assert_int_equal(packed_output_take(output, &bytes, &size), 0);
    return (char *)bytes;
}

static void add(struct profile *profile, const struct world *world, uint32_t event,
                const struct test_frame *frames, uint32_t count)
{
    const struct resolved_sample sample = {.event = &world->events[event],
                                           .time = world_start,
                                           .weight = event ? 1000 : 1000000,
                                           .thread = world->threads[0],
                                           .stacks = test_stacks(),
                                           .node = test_stack(frames, count),
                                           .end = STACK_ROOT};
    assert_int_equal(profile_add(profile, &sample), 0);
}

static void has(const char *json, const char *text)
{
    if (!strstr(json, text)) {
        fail_msg("no %s in %s", text, json);
    }
}

static void has_not(const char *json, const char *text)
{
    if (strstr(json, text)) {
        fail_msg("%s in %s", text, json);
    }
}

TEST(code_by_instruction)
{
    struct world *world = malloc(sizeof *world);
    OWN_DUMP_BUILDER dump = {0};
    struct code_index *index;
    assert_non_null(world);
    world_make(world, 1);
    dump_header(&dump);
    dump_group(&dump, BUILDER_START, code_address, 250, 2, "a.A.hot()");
    assert_int_equal(code_index_follow("test", dump_fd(&dump), &index), 0);
    world->codes[0].size = 250;
    world->codes[0].index = index;
    world->codes[0].blob = 0;

    struct profile *profile = profile_new(false);
    assert_non_null(profile);
    profile->recording = &world->recording;
    const struct module *jvm = &world->modules[2];
    struct test_frame frames[2] = {
        {.kind = RESOLVED_INLINED,
         .tier = 4,
         .line = 11,
         .method = &world->methods[5],
         .module = jvm,
         .code = &world->codes[0]},
        {.kind = RESOLVED_COMPILED,
         .tier = 4,
         .line = 10,
         .method = &world->methods[0],
         .module = jvm,
         .code = &world->codes[0]},
    };
    for (uint64_t offset = 0; offset < 3; offset++) { /* 0 and 2 begin instructions, 1 does not */
        for (int i = 0; i < 2; i++) {
            frames[i].address = frames[i].module_address = code_address + offset;
        }
        add(profile, world, 0, frames, 2);
    }
    add(profile, world, 1, frames, 2);
    const struct test_frame native = {.kind = RESOLVED_NATIVE,
                                      .method = &world->methods[50],
                                      .module = &world->modules[0],
                                      .module_address = 0x4000,
                                      .address = 0x7fff00004000};
    add(profile, world, 1, &native, 1);
    add(profile, world, 0, NULL, 0);

    char *json = regions_of(profile);
    has(json, "\"samples\":6");
    has(json, "{\"kind\":\"compiled\",\"tier\":4,\"samples\":[3,1],\"weight\":[3000000,1000]}");
    has(json, "{\"kind\":\"native\",\"tier\":0,\"samples\":[0,1],\"weight\":[0,1000]}");
    has(json, "\"address\":\"0x7f0000000000\",\"size\":250,");
    /* The compiled method's own lines, then those of what was inlined. */
    has(json, "\"stacks\":[[[\"a.A.hot()\",\"a/A.java\",10]],"
              "[[\"b.B.inlined()\",\"b/B.java\",11],[\"a.A.hot()\",\"a/A.java\",10]]]");
    /* 00 01, 02 03: the dump's code. */
    has(json, "{\"offset\":0,\"bytes\":\"0001\",\"text\":\"add [rcx], al\",\"stack\":0,"
              "\"samples\":[2,0],\"weight\":[2000000,0]}");
    has(json, "{\"offset\":2,\"bytes\":\"0203\",\"text\":\"add al, [rbx]\",\"stack\":0,"
              "\"samples\":[1,1],\"weight\":[1000000,1000]}");
    has(json, "{\"offset\":4,\"bytes\":\"0405\",\"text\":\"add al, 0x05\",\"stack\":1}");
    has_not(json, "\"offset\":200,"); /* far from what was hit */
    free(json);
    profile_free(profile);
    code_index_close(index);
    free(world);
}

/* Code without bytes, code of no method, samples without stacks: all is counted. */
TEST(everything_is_counted)
{
    struct world *world = malloc(sizeof *world);
    assert_non_null(world);
    world_make(world, random_seed());
    struct profile *profile = profile_new(false);
    assert_non_null(profile);
    profile->recording = &world->recording;
    uint64_t samples[WORLD_EVENTS] = {0};
    for (int i = 0; i < 20000; i++) {
        struct resolved_sample sample = world_sample(world);
        samples[sample.event->id] += sample.node != 0;
        assert_int_equal(profile_add(profile, &sample), 0);
    }
    char *json = regions_of(profile);
    const char *shares = strstr(json, "\"shares\"");
    const char *regions = strstr(json, "\"regions\"");
    assert_non_null(shares);
    assert_non_null(regions);
    for (int part = 0; part < 2; part++) {
        uint64_t found[WORLD_EVENTS] = {0};
        const char *end = part ? json + strlen(json) : regions;
        for (const char *at = part ? regions : shares;
             (at = strstr(at, "\"samples\":[")) && at < end;) {
            char *rest;
            found[0] += strtoull(at + strlen("\"samples\":["), &rest, 10);
            found[1] += strtoull(rest + 1, &rest, 10);
            at = rest;
        }
        assert_int_equal(found[0], samples[0]);
        assert_int_equal(found[1], samples[1]);
    }
    free(json);
    profile_free(profile);
    free(world);
}

TEST_MAIN(NULL, NULL)
