/* Parts of jdtool view: requests, the front end's fields, access, and counts per instruction. */
#include "test.h"

#include "jdtool/profile/method_tallies.h"
#include "jdtool/resolve/source_texts.h"
#include "jdtool/view/annotate.h"
#include "jdtool/view/cells.h"
#include "jdtool/view/content.h"
#include "jdtool/view/json_fields.h"
#include "jdtool/view/method_match.h"
#include "jdtool/view/report_text.h"
#include "tests/resolved_samples.h"
#include "tests/scratch.h"

#include <stdlib.h>
#include <string.h>

/* ---- Requests ---- */

static struct http_request request;

static enum http_parsed parse(const char *text)
{
    static char bytes[2 * HTTP_REQUEST_MAX];
    size_t size = strlen(text);
    memcpy(bytes, text, size);
    memset(bytes + size, 'X', 64); /* what was there before */
    return http_parse(bytes, size, &request);
}

TEST(test_requests)
{
    assert_int_equal(parse("GET /a/b?c=d HTTP/1.1\r\nX: y\r\nhOsT: \t h:1 \r\n\r\n"),
                     HTTP_COMPLETE);
    assert_string_equal(request.method, "GET");
    assert_string_equal(request.path, "/a/b");
    assert_string_equal(request.host, "h:1");
    assert_int_equal(request.body_size, 0);
    assert_int_equal(parse("POST /#x HTTP/1.0\r\nContent-Length: 3\r\n\r\nabcd"), HTTP_COMPLETE);
    assert_string_equal(request.path, "/");
    assert_string_equal(request.host, "");
    assert_string_equal(request.body, "abc");
    assert_int_equal(request.body_size, 3);
    assert_int_equal(parse("POST / HTTP/1.1\r\ncontent-LENGTH: 3\r\n\r\nab"), HTTP_INCOMPLETE);
    assert_int_equal(parse("GET / HTTP/1.1\r\nHost: h\r\n"), HTTP_INCOMPLETE);
    assert_int_equal(parse(""), HTTP_INCOMPLETE);
    static const char *const wrong[] = {
        "GET /\r\n\r\n",
        "GET x HTTP/1.1\r\n\r\n",
        "GET / FTP/1.1\r\n\r\n",
        "\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(parse(wrong[i]), HTTP_MALFORMED);
    }
    char nul[] = "GET /\0x HTTP/1.1\r\n";
    assert_int_equal(http_parse(nul, sizeof nul - 1, &request), HTTP_MALFORMED);
    assert_int_equal(parse("POST / HTTP/1.1\r\nContent-Length: 65536\r\n\r\n"), HTTP_TOO_LARGE);
    assert_int_equal(parse("POST / HTTP/1.1\r\nContent-Length: 9223372036854775807\r\n\r\n"),
                     HTTP_TOO_LARGE);
    static char endless[HTTP_REQUEST_MAX + 1];
    memset(endless, 'x', HTTP_REQUEST_MAX);
    assert_int_equal(parse(endless), HTTP_TOO_LARGE);
    endless[HTTP_REQUEST_MAX - 1] = '\0';
    assert_int_equal(parse(endless), HTTP_INCOMPLETE);
}

TEST(test_answers)
{
    char text[1024];
    struct http_response response = {.status = 200, .content_type = "a/b", .body_size = 7};
    size_t size = http_put_head(&response, "https://x", text, sizeof text);
    assert_int_equal(size, strlen(text));
    assert_int_equal(strncmp(text, "HTTP/1.1 200 OK\r\n", 17), 0);
    assert_non_null(strstr(text, "\r\nContent-Length: 7\r\n"));
    assert_non_null(strstr(text, "\r\nContent-Type: a/b\r\n"));
    assert_non_null(strstr(text, "\r\nX-Content-Type-Options: nosniff\r\n"));
    assert_non_null(strstr(text, "\r\nAccess-Control-Allow-Origin: https://x\r\n"));
    assert_null(strstr(text, "gzip"));
    assert_null(strstr(text, "Private-Network"));
    assert_string_equal(text + size - 4, "\r\n\r\n");
    response.is_gzip = response.is_preflight = true;
    http_put_head(&response, "https://x", text, sizeof text);
    assert_non_null(strstr(text, "\r\nContent-Encoding: gzip\r\n"));
    assert_non_null(strstr(text, "\r\nAccess-Control-Allow-Private-Network: true\r\n"));
    assert_int_equal(http_put_head(&response, "https://x", text, 100), 0);
}

/* ---- Fields ---- */

TEST(test_fields)
{
    char value[16];
    static const char object[] =
        " {\"a\" : \"x\\\"y\\u00e9\\ud83d\\ude00\" , \"b\":1.5,\"c\": "
        "true,\"d\":\"\\\\,\\\"b\\\"\","
        "\"a longer name than any that is asked for, or than there is room for it\":\"z\",\"e\":"
        "\"123456789012345\",\"f\":\"1234567890123456\",\"g\":false}";
    assert_true(json_field_text(object, "a", value, sizeof value));
    assert_string_equal(value, "x\"y\xc3\xa9\xf0\x9f\x98\x80");
    assert_false(json_field_text(object, "b", value, sizeof value));
    assert_true(json_field_text(object, "d", value, sizeof value));
    assert_string_equal(value, "\\,\"b\"");
    assert_true(json_field_text(object, "e", value, sizeof value));
    assert_false(json_field_text(object, "f", value, sizeof value));
    assert_false(json_field_text(object, "h", value, sizeof value));
    assert_true(json_field_is_true(object, "c"));
    assert_false(json_field_is_true(object, "g"));
    assert_false(json_field_is_true(object, "a"));
    assert_false(json_field_is_true(object, "h"));
    static const char *const wrong[] = {
        "",
        "[]",
        "{",
        "{\"a\"",
        "{\"a\":",
        "{\"a\":\"x",
        "{\"a\":\"\\",
        "{\"a\":\"\\u12\"}",
        "{\"a\":\"\\u0000\"}",
        "{\"a\":\"\\x\"}",
        "{\"b\":{\"a\":\"x\"}}",
        "{\"b\":[,\"a\":\"x\"}",
        "{\"a\":\"x\"}}",
        "{'a':'x'}",
        "{a:\"x\"}",
        "\"a\":\"x\"}",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_false(json_field_text(wrong[i], "a", value, sizeof value));
    }
    /* Room for the text and its end, no more. */
    assert_true(json_field_text("{\"a\":\"\\u20ac\"}", "a", value, 4));
    assert_false(json_field_text("{\"a\":\"\\u20ac\"}", "a", value, 3));
}

/* ---- What is served ---- */

static struct world world;

/* Each sample is added so many times. */
static struct profile *make_profile(uint32_t samples, int times)
{
    struct profile *profile = profile_new(times == 1);
    world_make(&world, 7);
    profile->recording = &world.recording;
    for (uint32_t i = 0; i < samples; i++) {
        struct resolved_sample sample = world_sample(&world);
        for (int k = 0; k < times; k++) {
            assert_int_equal(profile_add(profile, &sample), 0);
        }
    }
    return profile;
}

static struct http_response ask(struct content *content, const char *method, const char *token,
                                const char *what, const char *body)
{
    static char path[256];
    struct http_response response = {0};
    snprintf(path, sizeof path, "/%s%s", token, what);
    struct http_request asked = {
        .method = method, .path = path, .host = "", .body = body, .body_size = strlen(body)};
    content_answer(content, &asked, &response);
    return response;
}

TEST_WITH(test_content, scratch_create, scratch_remove)
{
    struct profile *profile = make_profile(50, 1);
    struct export_settings settings = {.path = "-"};
    char *sources = *state;
    for (int other = 0; other < 2; other++) {
        char path[256];
        snprintf(path, sizeof path, "%s/%s", sources, other ? "Other.java" : "org/x/Class.java");
        if (!other) {
            char directory[256];
            snprintf(directory, sizeof directory, "%s/org", sources);
            assert_int_equal(mkdir(directory, 0700), 0);
            snprintf(directory, sizeof directory, "%s/org/x", sources);
            assert_int_equal(mkdir(directory, 0700), 0);
        }
        scratch_write(path, "class Text {}\n");
    }
    assert_int_equal(source_texts_open(sources, &settings.sources), 0);
    struct content *content;
    struct content *other;
    assert_int_equal(content_new(profile, &settings, &content), 0);
    assert_int_equal(content_new(profile, &settings, &other), 0);
    const char *token = content_token(content);
    assert_int_equal(strlen(token), CONTENT_TOKEN_SIZE - 1);
    assert_int_equal(strspn(token, "0123456789abcdef"), CONTENT_TOKEN_SIZE - 1);
    assert_string_not_equal(token, content_token(other));

    struct http_response response = ask(content, "GET", token, "/profile.json", "");
    assert_int_equal(response.status, 200);
    assert_true(response.is_gzip);
    assert_int_equal(response.body[0], 0x1f);
    assert_true(response.body_size > 1000);
    assert_null(response.owned);
    assert_int_equal(ask(content, "HEAD", token, "/profile.json", "").status, 200);
    response = ask(content, "OPTIONS", token, "/source/v1", "");
    assert_int_equal(response.status, 204);
    assert_true(response.is_preflight);
    assert_int_equal(ask(content, "GET", token, "/x", "").status, 404);
    assert_int_equal(ask(content, "PUT", token, "/profile.json", "").status, 405);
    assert_int_equal(ask(content, "POST", token, "/source/v1", "{}").status, 400);
    assert_int_equal(ask(content, "POST", token, "/asm/v1", "{\"debugName\":\"x\"}").status, 400);

    /* Whoever does not know the whole token gets nothing, whatever he asks. */
    char wrong[CONTENT_TOKEN_SIZE];
    memcpy(wrong, token, sizeof wrong);
    wrong[CONTENT_TOKEN_SIZE - 2] = (char)(wrong[CONTENT_TOKEN_SIZE - 2] == '0' ? '1' : '0');
    static const char *const methods[] = {"GET", "POST", "OPTIONS", "PUT"};
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        assert_int_equal(ask(content, methods[i], wrong, "/profile.json", "").status, 404);
        assert_int_equal(ask(content, methods[i], content_token(other), "/profile.json", "").status,
                         404);
        assert_int_equal(ask(content, methods[i], token, "x/profile.json", "").status, 404);
        assert_int_equal(ask(content, methods[i], "", "profile.json", "").status, 404);
    }

    /* A file that no profile names is not read; a library that it does not have, neither. */
    response = ask(content, "POST", token, "/source/v1", "{\"file\":\"org/x/Class.java\"}");
    assert_non_null(memmem(response.owned, response.body_size, "class Text {}", 13));
    free(response.owned);
    response = ask(content, "POST", token, "/source/v1", "{\"file\":\"Other.java\"}");
    assert_non_null(memmem(response.owned, response.body_size, "\"error\"", 7));
    assert_null(memmem(response.owned, response.body_size, "class Text {}", 13));
    free(response.owned);
    response = ask(content, "POST", token, "/source/v1", "{\"file\":\"/etc/passwd\"}");
    assert_int_equal(response.status, 200);
    assert_non_null(memmem(response.owned, response.body_size, "\"error\"", 7));
    assert_null(memmem(response.owned, response.body_size, "root:", 5));
    free(response.owned);
    response = ask(content, "POST", token, "/asm/v1",
                   "{\"debugName\":\"passwd\",\"debugId\":\"0\",\"startAddress\":\"0x0\",\"size\":"
                   "\"0x10\"}");
    assert_non_null(memmem(response.owned, response.body_size, "no such library", 15));
    free(response.owned);
    content_free(content);
    content_free(other);
    source_texts_close(settings.sources);
    profile_free(profile);
}

/* ---- Counts ---- */

/* Against the simplest counting of the samples' innermost frames. */
TEST(test_counts)
{
    struct profile *profile = make_profile(2000, 3);
    struct annotation annotation;
    assert_int_equal(annotation_count(profile, &annotation), 0);
    uint64_t total = 0;
    uint64_t in_code = 0;
    for (uint32_t i = 0; i < profile->sample_count; i++) {
        const struct profile_sample *sample = &profile->samples[i];
        total += sample->weight;
        if (sample->node == PROFILE_NONE) {
            continue;
        }
        const struct profile_location *location =
            &profile->locations[profile->nodes[sample->node].location];
        in_code += location->code ? sample->count : 0;
    }
    uint64_t totals = 0;
    for (uint32_t event = 0; event < annotation.events; event++) {
        totals += annotation.totals[event];
    }
    assert_int_equal(totals, total);
    uint64_t samples = 0;
    assert_true(annotation.code_count > 5);
    for (uint32_t i = 0; i < annotation.code_count; i++) {
        samples += annotation.codes[i].samples;
        for (uint32_t k = 0; k < i; k++) {
            assert_ptr_not_equal(annotation.codes[i].code, annotation.codes[k].code);
        }
    }
    assert_int_equal(samples, in_code);
    for (uint32_t event = 0; event < annotation.events; event++) {
        for (uint32_t i = 0; i < annotation.code_count; i++) {
            uint64_t in_places = 0;
            for (uint32_t k = 0; k < annotation.place_count; k++) {
                const struct annotated_place *place = &annotation.places[k];
                in_places += place->code == i ? place->weights[event] : 0;
            }
            assert_int_equal(in_places, annotation.codes[i].weights[event]);
        }
    }
    for (uint32_t i = 1; i < annotation.place_count; i++) {
        const struct annotated_place *before = &annotation.places[i - 1];
        const struct annotated_place *place = &annotation.places[i];
        assert_true(before->code < place->code ||
                    (before->code == place->code && before->offset < place->offset));
    }
    annotation_free(&annotation);
    profile_free(profile);
}

/* Weights of two events do not compare: nanoseconds of waits are no share of the clock's. */
TEST(test_order_of_codes_by_event)
{
    struct recorded_event events[] = {{.name = "clock", .unit = "ns"}, {.name = "wait"}};
    struct recording recording = {.events = events, .event_count = 2};
    struct resolved_code waits = {.symbol = "A.waits()"}, works = {.symbol = "A.works()"};
    struct profile_location locations[] = {
        {.code = &waits, .code_number = 0, .line_count = 1},
        {.code = &works, .code_number = 1, .line_count = 1},
    };
    struct profile_node nodes[] = {{PROFILE_NONE, 0}, {PROFILE_NONE, 1}};
    struct profile_sample samples[] = {
        {.event = 1, .weight = 1000, .count = 1, .node = 0},
        {.event = 0, .weight = 10, .count = 1, .node = 1},
    };
    const struct profile profile = {.recording = &recording,
                                    .code_count = 2,
                                    .locations = locations,
                                    .location_count = 2,
                                    .nodes = nodes,
                                    .node_count = 2,
                                    .samples = samples,
                                    .sample_count = 2};
    struct annotation annotation;
    struct annotation_choice choice;
    assert_int_equal(annotation_count(&profile, &annotation), 0);
    assert_int_equal(annotation_choose(&annotation, "A.", &choice), 0);
    assert_int_equal(choice.count, 2);
    assert_string_equal(annotated_name(&annotation, choice.picked[0]), "A.works()");
    assert_int_equal(annotated_event(&annotation, choice.picked[0]), 0);
    assert_int_equal(annotated_event(&annotation, choice.picked[1]), 1);
    annotation_choice_free(&choice);
    annotation_free(&annotation);
}

/* ---- The report's trees and names ---- */

/* All waits end in the scheduler: they are counted to what waited. Allocations begin with a class:
 * they are counted to the method, too. */
TEST(test_events_are_counted_to_who_causes_them)
{
    struct recorded_event events[] = {{.name = "cpu-clock", .unit = "nanoseconds"},
                                      {.name = "off-cpu", .unit = "nanoseconds"},
                                      {.name = "alloc", .unit = "bytes"}};
    struct recording recording = {.events = events, .event_count = 3};
    enum { SCHEDULE, FUTEX, PARK, TAKE, RUN, IDLE, FUNCTIONS };
    struct profile_function functions[FUNCTIONS] = {{.name = "schedule"}, {.name = "futex"},
                                                    {.name = "park"},     {.name = "A.take()"},
                                                    {.name = "A.run()"},  {.name = "[idle]"}};
    struct profile_line lines[FUNCTIONS] = {
        {.function = SCHEDULE, .kind = RESOLVED_KERNEL},
        {.function = FUTEX, .kind = RESOLVED_KERNEL},
        {.function = PARK, .kind = RESOLVED_NATIVE},
        {.function = TAKE, .kind = RESOLVED_INLINED},
        {.function = RUN, .kind = RESOLVED_COMPILED},
        {.function = IDLE, .kind = RESOLVED_SUBJECT},
    };
    struct profile_location locations[] = {{.first_line = SCHEDULE, .line_count = 2},
                                           {.first_line = PARK, .line_count = 1},
                                           {.first_line = TAKE, .line_count = 2},
                                           {.first_line = IDLE, .line_count = 1}};
    struct profile_node nodes[] = {{PROFILE_NONE, 3}, /* 0: of who is idle: 0, 1, 2, 3 */
                                   {0, 2},
                                   {1, 1},
                                   {2, 0},
                                   {PROFILE_NONE, 2}, /* 4: of Java: 4, 5, 6 */
                                   {4, 1},
                                   {5, 0},
                                   {PROFILE_NONE, 1}, /* 7: native: 7, 8 */
                                   {7, 0},
                                   {PROFILE_NONE, 0}, /* 9: the kernel alone */
                                   {4, 3}};           /* 10: of Java, that allocates a class */
    struct profile_sample samples[] = {
        {.event = 0, .weight = 1, .count = 1, .node = 6},
        {.event = 1, .weight = 10, .count = 1, .node = 3},
        {.event = 1, .weight = 100, .count = 1, .node = 6},
        {.event = 1, .weight = 1000, .count = 1, .node = 8},
        {.event = 1, .weight = 10000, .count = 1, .node = 9},
        {.event = 1, .weight = 100000, .count = 1, .node = PROFILE_NONE},
        {.event = 2, .weight = 5, .count = 1, .node = 10},
    };
    const struct profile profile = {.recording = &recording,
                                    .functions = functions,
                                    .function_count = FUNCTIONS,
                                    .lines = lines,
                                    .line_count = FUNCTIONS,
                                    .locations = locations,
                                    .location_count = 4,
                                    .nodes = nodes,
                                    .node_count = 11,
                                    .samples = samples,
                                    .sample_count = 7};
    static const uint64_t selfs[FUNCTIONS][3] = {
        [SCHEDULE] = {1, 10000}, [PARK] = {0, 1000}, [TAKE] = {0, 100, 5}, [IDLE] = {0, 10, 5}};
    static const uint64_t totals[FUNCTIONS] = {11110, 11110, 1110, 110, 110, 10};
    struct method_tallies tallies;
    assert_int_equal(method_tallies_make(&profile, &tallies), 0);
    assert_int_equal(tallies.methods.count, FUNCTIONS);
    for (uint32_t i = 0; i < FUNCTIONS; i++) {
        const uint64_t *weights = method_tally_weights(&tallies, &tallies.methods, i);
        uint32_t function = tallies.methods.list[i].function;
        assert_memory_equal(weights, selfs[function], sizeof selfs[function]);
        assert_int_equal(weights[3 + 1], totals[function]);
    }
    method_tallies_free(&tallies);
}

/* Who throws an exception is behind its constructors, those of its superclasses, too, and behind
 * what native code calls to make it. */
TEST(test_exceptions_are_counted_to_who_throws)
{
    struct recorded_event event = {.name = "exception", .unit = "count"};
    struct recording recording = {.events = &event, .event_count = 1};
    struct profile_function functions[] = {
        {.name = "a.Bad"},          {.name = "java.lang.Throwable.fillInStackTrace()"},
        {.name = "b.Bad.<init>()"}, {.name = "a.Bad.<init>(int)"},
        {.name = "a.Bad.<init>()"}, {.name = "call_stub"},
        {.name = "jni_NewObjectV"}, {.name = "a.Badly.<init>()"},
    };
    static const enum resolved_kind kinds[] = {
        RESOLVED_SUBJECT,  RESOLVED_COMPILED, RESOLVED_COMPILED, RESOLVED_INLINED,
        RESOLVED_COMPILED, RESOLVED_STUB,     RESOLVED_NATIVE,   RESOLVED_INTERPRETED,
    };
    struct profile_line lines[8] = {{0}};
    struct profile_location locations[8];
    struct profile_node nodes[8];
    for (uint32_t i = 0; i < 8; i++) {
        lines[i].function = i;
        lines[i].kind = kinds[i];
        locations[i] = (struct profile_location){.first_line = i, .line_count = 1};
        nodes[i] = (struct profile_node){i + 1 < 8 ? i + 1 : PROFILE_NONE, i};
    }
    struct profile_sample sample = {.weight = 3, .count = 1, .node = 0};
    const struct profile profile = {.recording = &recording,
                                    .functions = functions,
                                    .function_count = 8,
                                    .lines = lines,
                                    .line_count = 8,
                                    .locations = locations,
                                    .location_count = 8,
                                    .nodes = nodes,
                                    .node_count = 8,
                                    .samples = &sample,
                                    .sample_count = 1};
    struct method_tallies tallies;
    assert_int_equal(method_tallies_make(&profile, &tallies), 0);
    for (uint32_t i = 0; i < tallies.methods.count; i++) {
        const uint64_t *weights = method_tally_weights(&tallies, &tallies.methods, i);
        uint32_t function = tallies.methods.list[i].function;
        assert_int_equal(weights[0], function == 0 || function == 7 ? 3 : 0);
    }
    method_tallies_free(&tallies);
}

/* A branch is left out for what it took of the method that was asked for, not of the profile. */
TEST(test_callers_of_a_method_that_took_little)
{
    struct recorded_event event = {.name = "clock", .unit = "ns"};
    struct recording recording = {.events = &event, .event_count = 1};
    struct profile_function functions[] = {
        {.name = "A.hot()"}, {.name = "A.rare()"}, {.name = "A.asks()"}};
    struct profile_line lines[] = {{.function = 0}, {.function = 1}, {.function = 2}};
    struct profile_location locations[] = {{.first_line = 0, .line_count = 1},
                                           {.first_line = 1, .line_count = 1},
                                           {.first_line = 2, .line_count = 1}};
    struct profile_node nodes[] = {{PROFILE_NONE, 0}, {PROFILE_NONE, 2}, {1, 1}};
    struct profile_sample samples[] = {{.weight = 10000, .count = 1000, .node = 0},
                                       {.weight = 10, .count = 1, .node = 2}};
    const struct profile profile = {.recording = &recording,
                                    .functions = functions,
                                    .function_count = 3,
                                    .lines = lines,
                                    .line_count = 3,
                                    .locations = locations,
                                    .location_count = 3,
                                    .nodes = nodes,
                                    .node_count = 3,
                                    .samples = samples,
                                    .sample_count = 2,
                                    .total_count = 1001};
    const struct report_look look = {.rows = REPORT_CALLERS, .method = "rare", .width = 80};
    struct packed_output *output;
    uint8_t *text = NULL;
    size_t size = 0;
    assert_int_equal(packed_output_open_memory(false, &output), 0);
    assert_int_equal(report_text_write(&profile, &look, output), 0);
    assert_int_equal(packed_output_take(output, &text, &size), 0);
    assert_non_null(memmem(text, size, "A.asks()", 8));
    free(text);
}

/* What the table wrote is found again. */
TEST(test_names_that_were_shortened)
{
    const char *name = "org.apache.coyote.Request.recycle(int, java.lang.String)";
    char text[CELL_MAX];
    for (uint32_t width = 12; width < 60; width++) {
        assert_true(method_match(name, cell_fit_name(name, width, text)) >= 2);
    }
    assert_int_equal(method_match(name, "o.a.c.Request.recycle"), 2);
    assert_int_equal(method_match(name, "o.a.c.Request.recy…"), 1);
    assert_int_equal(method_match(name, "o.a.c.Request.recy"), 0);
    assert_int_equal(method_match(name, "o.b.c.Request.recycle(…)"), 0);
    assert_int_equal(method_match(name, "o.a.c.x.Request.recycle(…)"), 0);
    assert_int_equal(method_match("a.b()", "o.a.c.Request.recycle(…)"), 0);
    /* A class of Clojure's or of a script has no capital. */
    assert_string_equal(cell_fit_name("app.core$fn__1.invoke()", 8, text), "a.core$fn__1.invoke()");
    assert_string_equal(cell_fit_name("script.run()", 8, text), "script.run()");
    assert_string_equal(cell_fit_name("std::move<a.b>()", 8, text), "std::move<a.b>()");
}

/* Of a place the line stays. */
TEST(test_places_that_were_shortened)
{
    static const struct {
        const char *place, *fitted;
        uint32_t width;
    } places[] = {
        {"WholeStageCodegen.scala:50", "WholeStag…:50", 13},
        {"Ünïcödé.java:12345", "Ünï…:12345", 10},
        {"A.java:1", "A.java:1", 8},
        {"A.java:12345", "A.java:12345", 7}, /* there is no room for it */
        {"libjvm.so", "libjvm.so", 5},
        {"[a:b]", "[a:b]", 4},
    };
    char text[CELL_MAX];
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        strcpy(text, places[i].place);
        cell_fit_place(text, places[i].width);
        assert_string_equal(text, places[i].fitted);
    }
}

TEST_MAIN(NULL, NULL)
