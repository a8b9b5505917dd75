/*
 * Samples of events with bytes or times: their values, their stacks, and how long threads waited.
 */
#include "test.h"

#include "format/event_probe.h"
#include "jdtool/base/verb.h"
#include "jdtool/events/event_rule.h"
#include "jdtool/perf/held.h"
#include "jdtool/resolve/event_frames.h"
#include "tests/perf_file.h"
#include "tests/scratch.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Rules and facts ---- */

/* As Java and the profile's methods write it. */
TEST(test_names_of_classes)
{
    static const char *const names[][2] = {
        {"[[Ljava/lang/String;", "java.lang.String[][]"},
        {"[J", "long[]"},
        {"Lshop/Cart$$Lambda.0x000000004b40a688;", "shop.Cart$$Lambda/0x000000004b40a688"},
        {"[Lshop/Cart$$Lambda.0x0a;", "shop.Cart$$Lambda/0x0a[]"},
        {"Lshop/Cart$$Lambda$14/471910020;", "shop.Cart$$Lambda$14/471910020"},
        {"no.signature", "no.signature"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char out[EVENT_SUBJECT_MAX];
        event_class_name(names[i][0], strlen(names[i][0]), out);
        assert_string_equal(out, names[i][1]);
    }
}

TEST(test_rules_go_by_name)
{
    assert_int_equal(event_rule_of("jdagent_12:alloc", false).kind, EVENT_ALLOC);
    assert_string_equal(event_rule_of("jdagent_12:alloc", false).unit, "bytes");
    assert_int_equal(event_rule_of("jdagent_12:lock", false).kind, EVENT_LOCK);
    assert_int_equal(event_rule_of("jdagent_12:exception", false).kind, EVENT_EXCEPTION);
    assert_int_equal(event_rule_of("jdagent_12:other", false).kind, EVENT_SAMPLED);
    /* As perf calls them where it may not sample the kernel. */
    assert_int_equal(event_rule_of("jdagent_12:allocu", false).kind, EVENT_ALLOC);
    assert_int_equal(event_rule_of("jdagent_12:lock:u", false).kind, EVENT_LOCK);
    assert_int_equal(event_rule_of("jdagent_12:allocs", false).kind, EVENT_SAMPLED);
    assert_int_equal(event_rule_of("other_12:alloc", false).kind, EVENT_SAMPLED);
    assert_int_equal(event_rule_of("cpu-clock", true).kind, EVENT_SAMPLED);
    assert_int_equal(event_rule_of(NULL, true).kind, EVENT_SAMPLED);
    /* Without the switches nobody knows when a thread came back. */
    assert_int_equal(event_rule_of("sched:sched_switch", true).kind, EVENT_OFF_CPU);
    assert_int_equal(event_rule_of("sched:sched_switch", false).kind, EVENT_SAMPLED);
    assert_int_equal(event_rule_of("sched:sched_wakeup", true).kind, EVENT_WOKEN);
    assert_int_equal(event_rule_of("sched:sched_wakeup", false).kind, EVENT_SAMPLED);
}

static struct event_facts read_probe(enum event_kind kind, uint64_t value, uint64_t base,
                                     uint32_t scale, const char *name, size_t cut)
{
    uint8_t bytes[4096];
    size_t size = strlen(name) + 1;
    struct event_probe_raw raw = {
        .value = value,
        .base = base,
        .scale = scale,
        .name = (uint32_t)(sizeof raw | size << 16),
    };
    memcpy(bytes, &raw, sizeof raw);
    memcpy(bytes + sizeof raw, name, size);
    struct perf_sample sample = {.raw = bytes, .raw_size = (uint32_t)(sizeof raw + size - cut)};
    struct event_facts facts;
    event_facts_read(kind, &sample, &facts);
    return facts;
}

/* One of so many is kept by a program in the kernel, which says so by the sample's period; what
 * stands there of other events is not theirs. */
TEST(test_an_exception_stands_for_others)
{
    const struct perf_sample sample = {.period = UINT64_C(5) << 32};
    const struct perf_sample only = {.period = 1};
    struct event_facts facts;
    event_facts_read(EVENT_EXCEPTION, &sample, &facts);
    assert_int_equal(facts.weight, UINT64_C(5) << 32);
    assert_int_equal(facts.left_out, (UINT64_C(5) << 32) - 1);
    event_facts_read(EVENT_DEOPT, &sample, &facts);
    assert_int_equal(facts.weight, UINT64_C(5) << 32);
    event_facts_read(EVENT_WAKER, &sample, &facts);
    assert_int_equal(facts.weight, 1);
    event_facts_read(EVENT_EXCEPTION, &only, &facts);
    assert_int_equal(facts.weight, 1);
    assert_int_equal(facts.left_out, 0);
}

TEST(test_an_allocation_stands_for_many_bytes)
{
    const uint64_t mean = UINT64_C(512) * 1024;
    /* A small object is met once in `mean` bytes; of a huge one each is met. */
    struct event_facts small = read_probe(EVENT_ALLOC, 16, mean, 1, "Ljava/lang/String;", 0);
    assert_in_range(small.weight, mean, mean + 16);
    assert_string_equal(small.subject, "java.lang.String");
    assert_int_equal(small.left_out, 0);
    struct event_facts huge = read_probe(EVENT_ALLOC, UINT64_C(64) << 20, mean, 1, "[B", 0);
    assert_int_equal(huge.weight, UINT64_C(64) << 20);
    assert_string_equal(huge.subject, "byte[]");
    /* s = R: s / (1 - 1/e). */
    struct event_facts same = read_probe(EVENT_ALLOC, mean, mean, 1, "[[Lp/Q;", 0);
    assert_in_range(same.weight, 829408, 829430);
    assert_string_equal(same.subject, "p.Q[][]");
    /* One of four was told. */
    struct event_facts scaled = read_probe(EVENT_ALLOC, UINT64_C(64) << 20, mean, 4, "[I", 0);
    assert_int_equal(scaled.weight, UINT64_C(4) * (UINT64_C(64) << 20));
    assert_int_equal(scaled.left_out, 3);
    /* Every allocation is told. */
    assert_int_equal(read_probe(EVENT_ALLOC, 24, 0, 1, "[I", 0).weight, 24);
}

TEST(test_a_wait_stands_for_its_time)
{
    assert_int_equal(read_probe(EVENT_LOCK, 5000000, 1000000, 1, "Lp/Q;", 0).weight, 5000000);
    assert_int_equal(read_probe(EVENT_LOCK, 10, 1000000, 1, "Lp/Q;", 0).weight, 1000000);
    assert_int_equal(read_probe(EVENT_LOCK, 10, 1000000, 8, "Lp/Q;", 0).weight, 8000000);
}

TEST(test_raw_data_may_be_anything)
{
    /* The string is cut off: no class, but what is there counts. */
    struct event_facts cut = read_probe(EVENT_LOCK, 7, 5, 1, "Lp/Q;", 2);
    assert_int_equal(cut.weight, 7);
    assert_string_equal(cut.subject, "");
    /* Shorter than its head. */
    struct event_facts none = read_probe(EVENT_ALLOC, 7, 5, 1, "", 1 + 8);
    assert_int_equal(none.weight, 1);
    char name[2048];
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    struct event_facts longest = read_probe(EVENT_ALLOC, UINT64_MAX, 1, UINT32_MAX, name, 0);
    assert_int_equal(strlen(longest.subject), EVENT_SUBJECT_MAX - 1);
    assert_true(longest.weight <= UINT64_C(1000000000000000000));
    assert_string_equal(read_probe(EVENT_LOCK, 1, 1, 1, "La\nb;", 0).subject, "a?b");
}

/* ---- Stacks ---- */

static struct resolved_method methods[16];
static uint32_t method_count;

static struct resolved_frame frame(enum resolved_kind kind, const char *class_name,
                                   const char *name)
{
    struct resolved_method *method = &methods[method_count++ % 16];
    bool is_inlined = kind == RESOLVED_INLINED;
    *method = (struct resolved_method){.kind = !is_inlined  ? kind
                                               : class_name ? RESOLVED_COMPILED
                                                            : RESOLVED_NATIVE,
                                       .name = name,
                                       .class_name = class_name};
    method->method_name = class_name ? name : NULL;
    return (struct resolved_frame){.kind = (uint8_t)kind, .method = method};
}

TEST(test_what_the_jvm_did_for_it_is_left_out)
{
    struct resolved_frame frames[] = {
        frame(RESOLVED_NATIVE, NULL, "jdagent_event_alloc"),
        frame(RESOLVED_INLINED, NULL, "our_own_callback"),
        frame(RESOLVED_NATIVE, NULL, "OptoRuntime::new_instance_C"),
        frame(RESOLVED_STUB, NULL, "_new_instance_Java"),
        frame(RESOLVED_INLINED, "p.Q", "make"),
    };
    assert_int_equal(event_frames_java(frames, 5), 4);
    assert_int_equal(event_frames_java(frames, 4), 4);
    frames[3] = frame(RESOLVED_STUB, NULL, "Interpreter");
    assert_int_equal(event_frames_java(frames, 5), 3);
}

TEST(test_an_exception_is_of_its_outermost_constructor)
{
    struct resolved_frame frames[] = {
        frame(RESOLVED_NATIVE, NULL, "JVM_FillInStackTrace"),
        frame(RESOLVED_COMPILED, "java.lang.Throwable", "fillInStackTrace"),
        frame(RESOLVED_INLINED, "java.lang.Throwable", "fillInStackTrace"),
        frame(RESOLVED_INLINED, "java.lang.Throwable", "<init>"),
        frame(RESOLVED_INLINED, "java.lang.Exception", "<init>"),
        frame(RESOLVED_INLINED, "p.OwnException", "<init>"),
        frame(RESOLVED_COMPILED, "p.Thrower", "<init>"),
        frame(RESOLVED_COMPILED, "p.Main", "main"),
    };
    assert_string_equal(event_frames_exception(frames, 8), "p.OwnException");
    assert_string_equal(event_frames_exception(frames, 4), "java.lang.Throwable");
    assert_null(event_frames_exception(frames, 3));
}

TEST(test_pools_wait_for_work)
{
    struct resolved_frame pool[] = {
        frame(RESOLVED_COMPILED, "jdk.internal.misc.Unsafe", "park"),
        frame(RESOLVED_COMPILED, "java.util.concurrent.ThreadPoolExecutor", "getTask"),
    };
    struct resolved_frame own[] = {
        frame(RESOLVED_COMPILED, "jdk.internal.misc.Unsafe", "park"),
        frame(RESOLVED_COMPILED, "p.Own", "getTask"),
    };
    struct resolved_frame loop[] = {
        frame(RESOLVED_COMPILED, "io.grpc.netty.shaded.io.netty.channel.epoll.Native", "epollWait"),
    };
    struct resolved_frame worker[] = {
        frame(RESOLVED_COMPILED, "jdk.internal.misc.Unsafe", "park"),
        frame(RESOLVED_INLINED, "java.util.concurrent.locks.LockSupport", "parkNanos"),
        frame(RESOLVED_COMPILED, "kotlinx.coroutines.scheduling.CoroutineScheduler$Worker",
              "runWorker"),
    };
    struct resolved_frame native[] = {frame(RESOLVED_NATIVE, NULL, "pthread_join")};
    assert_true(event_frames_idle(pool, 2, "pool-1-thread-1", true));
    assert_false(event_frames_idle(own, 2, "pool-1-thread-1", true));
    assert_true(event_frames_idle(loop, 1, "grpc-0", true));
    assert_true(event_frames_idle(worker, 3, "worker-1", true));
    worker[1].method = own[1].method; /* its work */
    assert_false(event_frames_idle(worker, 3, "worker-1", true));
    struct resolved_frame agent[] = {
        frame(RESOLVED_COMPILED, "java.lang.Thread", "sleep"),
        frame(RESOLVED_INTERPRETED, "datadog.trace.agent.common.metrics.Aggregator", "run"),
    };
    assert_true(event_frames_idle(agent, 2, "dd-metrics", true));
    agent[0] = frame(RESOLVED_COMPILED, "java.util.HashMap", "get");
    assert_false(event_frames_idle(agent, 2, "dd-metrics", true));
    struct resolved_frame helper[] = {
        frame(RESOLVED_COMPILED, "java.lang.VirtualThread", "takeVirtualThreadListToUnblock"),
    };
    assert_true(event_frames_idle(helper, 1, "VirtualThread-u", true));
    helper[0] = frame(RESOLVED_COMPILED, "org.apache.catalina.core.StandardServer", "await");
    assert_true(event_frames_idle(helper, 1, "container-0", true));
    loop[0] = frame(RESOLVED_COMPILED, "p.Otherchannel.epoll.Native", "epollWait");
    assert_false(event_frames_idle(loop, 1, "grpc-0", true));
    assert_true(event_frames_idle(native, 1, "java", true));
    assert_false(event_frames_idle(native, 1, "java", false)); /* one that has no name yet */
    assert_true(event_frames_idle(native, 1, "G1 Conc#0", true));
    assert_true(event_frames_idle(native, 1, "C2 Comp..hread0", true));
    assert_true(event_frames_idle(native, 1, "jdagent writer", true));
    assert_false(event_frames_idle(native, 1, "worker", true));
    assert_false(event_frames_idle(own, 2, "java", true));
}

/* ---- Waits ---- */

/* Times of a list, which is freed. */
static const char *times_of(struct held_sample *list)
{
    static char text[64];
    size_t size = 0;
    text[0] = '\0';
    while (list) {
        struct held_sample *next = list->next;
        assert_int_equal(list->since, list->sample->time);
        assert_memory_equal(list->sample->head.at, "sixteen bytes it", 16);
        assert_memory_equal(list->sample->tail.at, "tail", 4);
        size += (size_t)snprintf(text + size, sizeof text - size, "%s%u", size ? " " : "",
                                 (unsigned)list->sample->time);
        free(list);
        list = next;
    }
    return text;
}

TEST(test_samples_are_held_until_they_are_taken)
{
    const uint8_t bytes[] = "sixteen bytes ittail";
    struct perf_sample sample = {
        .pid = 1, .time = 100, .head = {bytes, 16}, .middle = {bytes + 16, 0}};
    sample.user.at = bytes + 16;
    sample.tail = (struct perf_bytes){bytes + 16, 4};
    size_t slot = perf_sample_kept_size(&sample, false) + 128; /* and what is held beside it */
    struct held *held = held_new(3 * slot);
    uint32_t from = 0;
    assert_non_null(held);
    assert_null(held_first(held, 7));
    assert_null(held_take(held, 7));
    assert_true(held_add(held, 7, &sample, 5));
    assert_int_equal(held_first(held, 7)->weight, 5);
    sample.time = 90;
    assert_true(held_add(held, 7, &sample, 0));
    sample = (struct perf_sample){
        .pid = 2, .time = 50, .head = sample.head, .user = sample.user, .tail = sample.tail};
    assert_true(held_add(held, 8, &sample, 0));
    assert_false(held_add(held, 9, &sample, 0)); /* there is no room for this one */
    assert_null(held_first(held, 9));
    assert_string_equal(times_of(held_take(held, 7)), "100 90");
    assert_null(held_take(held, 7));
    sample.time = 40;
    assert_true(held_add(held, 9, &sample, 0));
    assert_null(held_take_next(held, 1, &from));
    from = 0;
    assert_string_equal(times_of(held_take_next(held, 2, &from)), "40");
    sample.pid = 3;
    assert_true(held_add(held, 9, &sample, 0));
    assert_string_equal(times_of(held_take_next(held, 2, &from)), "50");
    assert_null(held_take_next(held, 2, &from));
    from = 0;
    assert_string_equal(times_of(held_take_next(held, HELD_OF_ALL, &from)), "40");
    assert_null(held_take_next(held, HELD_OF_ALL, &from));
    /* Threads come and go for ever in the same room. */
    for (uint64_t thread = 0; thread < 100000; thread++) {
        assert_true(held_add(held, thread << 32, &sample, 0));
        free(held_take(held, thread << 32));
    }
    assert_true(held_add(held, 7, &sample, 0)); /* and is freed */
    held_free(held);
}

/* The part of a stack copy that is not valid is not kept. */
TEST(test_a_kept_sample_has_what_is_valid_of_its_stack)
{
    _Alignas(8) uint8_t bytes[1000];
    _Alignas(8) uint8_t room[2000];
    _Alignas(8) uint8_t other[2000];
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (uint8_t)(i * 7);
    }
    const struct perf_sample sample = {.head = {bytes, 8},
                                       .chain = (const uint64_t *)(const void *)(bytes + 16),
                                       .middle = {bytes + 40, 0},
                                       .user = {bytes + 40, 940},
                                       .regs = (const uint64_t *)(const void *)(bytes + 48),
                                       .stack = bytes + 80,
                                       .stack_size = 880,
                                       .stack_dyn_size = 100,
                                       .tail = {bytes + 980, 20}};
    assert_int_equal(perf_sample_kept_size(&sample, false), sizeof sample + 1000);
    assert_int_equal(perf_sample_kept_size(&sample, true), sizeof sample + 180 + 20);
    struct perf_sample *kept = perf_sample_keep(&sample, true, room);
    assert_int_equal(perf_sample_kept_size(kept, false), sizeof sample + 180 + 20);
    for (int again = 0; again < 2; again++) { /* as often as it is kept */
        assert_memory_equal(kept->head.at, bytes, 180);
        assert_ptr_equal(kept->stack, kept->head.at + 80);
        assert_ptr_equal(kept->regs, kept->head.at + 48);
        assert_ptr_equal(kept->chain, kept->head.at + 16);
        assert_null(kept->user.at);
        assert_memory_equal(kept->tail.at, bytes + 980, 20);
        kept = perf_sample_keep(kept, false, other);
    }
}

/* ---- A recording with switches, from end to end ---- */

/* HEADER_EVENT_DESC: how many, an attribute's size, then each with its ids' number and its name. */
static size_t describe_events(const struct perf_file *file, const char *const *names, uint8_t *out)
{
    uint32_t head[2] = {file->attr_count, sizeof file->attrs[0]};
    uint8_t *at = (uint8_t *)mempcpy(out, head, sizeof head);
    for (uint32_t i = 0; i < file->attr_count; i++) {
        uint32_t counts[2] = {1, (uint32_t)strlen(names[i]) + 1};
        uint64_t id = 100 + i;
        at = mempcpy(at, &file->attrs[i], sizeof file->attrs[i]);
        at = mempcpy(at, counts, sizeof counts);
        at = mempcpy(at, names[i], counts[1]);
        at = mempcpy(at, &id, sizeof id);
    }
    return (size_t)(at - out);
}

enum { SWITCHED_OUT = 101, CLOCK = 100 };

/* IDENTIFIER, TID, TIME, PERIOD, and of the switch 48 raw bytes with prev_state. */
static void put_sample(struct perf_file *file, uint64_t id, uint32_t tid, uint64_t time,
                       uint64_t state)
{
    uint64_t words[11] = {id, (uint64_t)tid << 32 | 5, time, 1};
    uint32_t raw_size = 52; /* perf has it end at a multiple of 8 */
    uint8_t *raw = (uint8_t *)&words[4];
    memcpy(raw, &raw_size, sizeof raw_size);
    memcpy(raw + 4 + 32, &state, sizeof state);
    perf_file_record(file, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_KERNEL, words,
                     id == CLOCK ? 4 * sizeof words[0] : sizeof words);
}

/* The head of a trace entry, comm, pid; on another thread's account. */
static void put_wakeup(struct perf_file *file, uint64_t id, uint32_t woken, uint64_t time)
{
    uint64_t words[10] = {id, UINT64_C(1) << 32 | 1, time, 1};
    uint32_t raw_size = 44;
    uint8_t *raw = (uint8_t *)&words[4];
    memcpy(raw, &raw_size, sizeof raw_size);
    memcpy(raw + 4 + 24, &woken, sizeof woken);
    perf_file_record(file, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_KERNEL, words, sizeof words);
}

static void put_switch(struct perf_file *file, uint32_t tid, uint64_t time, bool is_out)
{
    uint64_t trailer[3] = {(uint64_t)tid << 32 | 5, time, SWITCHED_OUT};
    perf_file_record(file, PERF_RECORD_SWITCH, is_out ? PERF_RECORD_MISC_SWITCH_OUT : 0, trailer,
                     sizeof trailer);
}

/* Of p.data r.data is made; returns the scorecard, until the next call. */
static const char *inject_with_card(void **state)
{
    char *arguments[] = {"inject",
                         "-q",
                         "-i",
                         strdup(scratch_path(state, "p.data")),
                         "-o",
                         strdup(scratch_path(state, "r.data")),
                         "--scorecard",
                         strdup(scratch_path(state, "card.json")),
                         "--processor-time",
                         strdup(scratch_path(state, "times")),
                         NULL};
    scratch_write(arguments[9], "5 4 0\n"); /* what the kernel accounted to process 5 */
    optind = 0;
    assert_int_equal(verb_inject.run(&verb_inject, 10, arguments), STATUS_DONE);
    static char text[16384];
    scratch_read_text(arguments[7], text, sizeof text);
    free(arguments[3]);
    free(arguments[5]);
    free(arguments[7]);
    free(arguments[9]);
    return text;
}

TEST_WITH(test_a_wait_weighs_until_the_thread_is_back, scratch_create, scratch_remove)
{
    static uint8_t events[1024];
    static const char *const names[] = {"cpu-clock", "sched:sched_switch"};
    OWN_PERF_FILE file = {.attr_count = 2};
    const uint64_t common =
        PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_PERIOD;
    file.attrs[0] = (struct perf_event_attr){.size = sizeof file.attrs[0],
                                             .type = PERF_TYPE_SOFTWARE,
                                             .sample_type = common,
                                             .sample_id_all = 1,
                                             .context_switch = 1};
    file.attrs[1] = (struct perf_event_attr){.size = sizeof file.attrs[0],
                                             .type = PERF_TYPE_TRACEPOINT,
                                             .sample_type = common | PERF_SAMPLE_RAW,
                                             .sample_id_all = 1};
    perf_file_feature(&file, PERF_FEATURE_EVENT_DESC, events,
                      describe_events(&file, names, events));
    put_sample(&file, SWITCHED_OUT, 7, 1000, 1);
    put_switch(&file, 7, 1010, true);
    put_sample(&file, CLOCK, 8, 1500, 0);
    put_sample(&file, SWITCHED_OUT, 9, 1600, 0x20); /* it ends: nobody waits */
    put_switch(&file, 7, 3000, false);
    put_switch(&file, 9, 3100, false);           /* with nothing to end */
    put_sample(&file, SWITCHED_OUT, 8, 3500, 2); /* it waits still at the end */
    put_sample(&file, CLOCK, 7, 4000, 0);
    perf_file_write(&file, scratch_path(state, "p.data"));

    const char *text = inject_with_card(state);
    assert_non_null(strstr(text, "{\"name\": \"cpu-clock\", \"unit\": \"nanoseconds\", "
                                 "\"samples\": 2, \"weight\": 2,"));
    assert_non_null(strstr(text, "\"in_profile\": 2, \"samples\": 2,")); /* waits are no work */
    assert_non_null(strstr(text, "{\"name\": \"off-cpu\", \"unit\": \"nanoseconds\", "
                                 "\"samples\": 2, \"weight\": 2500,"));

    /* And perf.data has the same, at the moment when the wait was over. */
    struct perf_data *data;
    struct perf_record record;
    struct perf_sample sample;
    uint64_t times[4];
    uint64_t periods[4];
    uint32_t count = 0;
    assert_int_equal(perf_data_open(scratch_path(state, "r.data"), &data), 0);
    while (perf_data_next(data, &record) == 1) {
        if (record.type == PERF_RECORD_SAMPLE && count < 4) {
            assert_int_equal(perf_sample_decode(data, &record, &sample), 0);
            times[count] = sample.time;
            periods[count++] = sample.period;
        }
    }
    perf_data_close(data);
    assert_int_equal(count, 4);
    const uint64_t wanted_times[] = {1500, 3000, 4000, 4000};
    const uint64_t wanted_periods[] = {1, 2000, 1, 500};
    assert_memory_equal(times, wanted_times, sizeof times);
    assert_memory_equal(periods, wanted_periods, sizeof periods);
}

/* A file of so many events: the clock, whose switches are told, and tracepoints. */
static void begin_switches(struct perf_file *file, uint32_t count, const char *const *names)
{
    static uint8_t events[1024];
    *file = (struct perf_file){.attr_count = count};
    for (uint32_t i = 0; i < count; i++) {
        file->attrs[i] = (struct perf_event_attr){
            .size = sizeof file->attrs[0],
            .type = i ? PERF_TYPE_TRACEPOINT : PERF_TYPE_SOFTWARE,
            .sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
                           PERF_SAMPLE_PERIOD | (i ? PERF_SAMPLE_RAW : 0),
            .sample_id_all = 1,
            .context_switch = !i,
        };
    }
    perf_file_feature(file, PERF_FEATURE_EVENT_DESC, events, describe_events(file, names, events));
}

/* Of a wait that has no end it is said whether larger buffers would have it. */
TEST_WITH(test_a_wait_without_an_end, scratch_create, scratch_remove)
{
    static const char *const names[] = {"cpu-clock", "sched:sched_switch"};
    for (uint64_t lost = 0; lost <= 3; lost += 3) {
        OWN_PERF_FILE file;
        begin_switches(&file, 2, names);
        put_sample(&file, SWITCHED_OUT, 7, 1000, 1);
        if (lost) {
            uint64_t record[] = {CLOCK, lost, 7, 1500, CLOCK}; /* id, how many; who, when, id */
            perf_file_record(&file, PERF_RECORD_LOST, 0, record, sizeof record);
        }
        put_sample(&file, SWITCHED_OUT, 7, 2000, 1);
        put_switch(&file, 7, 3000, false);
        perf_file_write(&file, scratch_path(state, "p.data"));
        const char *text = inject_with_card(state);
        assert_non_null(strstr(text, "\"waits_lost\": 1,"));
        assert_non_null(strstr(text, lost ? "left out 1 waits whose end was lost; record with"
                                          : "left out 1 waits whose end the kernel did not"));
    }
}

/* Nor is it a loss to speak of where it is one in hundreds. */
TEST_WITH(test_one_wait_in_hundreds_without_an_end, scratch_create, scratch_remove)
{
    static const char *const names[] = {"cpu-clock", "sched:sched_switch"};
    OWN_PERF_FILE file;
    begin_switches(&file, 2, names);
    put_sample(&file, SWITCHED_OUT, 7, 1000, 1);
    for (uint64_t time = 2000; time < 202000; time += 1000) {
        put_sample(&file, SWITCHED_OUT, 7, time, 1);
        put_switch(&file, 7, time + 500, false);
    }
    perf_file_write(&file, scratch_path(state, "p.data"));
    const char *text = inject_with_card(state);
    assert_non_null(strstr(text, "\"waits_lost\": 1,"));
    assert_null(strstr(text, "left out"));
}

/* From when it is preempted, or woken, until it has a processor, a thread is not blocked. */
TEST_WITH(test_waiting_for_a_processor_is_no_blocking, scratch_create, scratch_remove)
{
    enum { OUT_OF_TURN = 102, WOKEN = 103, SLEEPS = 1, PREEMPTED = 0x100 };
    static const char *const names[] = {"cpu-clock", "sched:sched_switch", "sched:sched_switch",
                                        "sched:sched_wakeup"};
    for (uint32_t count = 4; count >= 2; count -= 2) { /* of one such event all is blocking */
        OWN_PERF_FILE file;
        begin_switches(&file, count, names);
        put_sample(&file, CLOCK, 8, 500, 0);
        put_sample(&file, SWITCHED_OUT, 7, 1000, SLEEPS);
        put_sample(&file, SWITCHED_OUT, 9, 1050, PREEMPTED); /* a recording without a filter */
        if (count == 4) {
            put_sample(&file, OUT_OF_TURN, 9, 1100, PREEMPTED);
            put_sample(&file, OUT_OF_TURN, 7, 1100, SLEEPS);
            put_wakeup(&file, WOKEN, 7, 3000);
            put_wakeup(&file, WOKEN, 7, 3010); /* told to the one who wakes, too */
            put_wakeup(&file, WOKEN, 9, 3100); /* which had not yet fallen asleep */
            put_wakeup(&file, WOKEN, 77, 3200);
        }
        put_switch(&file, 7, 3400, false);
        put_switch(&file, 9, 3600, false);
        put_sample(&file, SWITCHED_OUT, 7, 4000, SLEEPS);
        if (count == 4) {
            put_wakeup(&file, WOKEN, 7, 4050); /* and has no processor when the recording ends */
        }
        put_sample(&file, CLOCK, 8, 5000, 0);
        perf_file_write(&file, scratch_path(state, "p.data"));
        const char *text = inject_with_card(state);
        if (count == 4) {
            assert_non_null(strstr(text, "\"off-cpu\", \"unit\": \"nanoseconds\", "
                                         "\"samples\": 2, \"weight\": 2050,"));
            assert_non_null(strstr(text, "\"runnable\", \"unit\": \"nanoseconds\", "
                                         "\"samples\": 3, \"weight\": 3850,"));
            assert_null(strstr(text, "woken"));
        } else {
            assert_non_null(strstr(text, "\"off-cpu\", \"unit\": \"nanoseconds\", "
                                         "\"samples\": 2, \"weight\": 3400,"));
            assert_null(strstr(text, "runnable"));
        }
    }
}

/* ---- Virtual threads ---- */

static void put_virtual(struct perf_file *file, uint64_t event, uint32_t pid, uint64_t time,
                        uint64_t id, uint64_t base, uint32_t scale)
{
    struct {
        uint64_t event;
        uint32_t pid, tid;
        uint64_t time, period;
        uint32_t raw_size;
        struct event_probe_raw raw;
        uint32_t padding;
    } __attribute__((packed)) sample = {.event = event, .pid = pid, .tid = pid + 1, .time = time};
    sample.raw_size = sizeof sample.raw + sizeof sample.padding;
    sample.raw.value = id;
    sample.raw.base = base;
    sample.raw.scale = scale;
    _Static_assert(sizeof sample % 8 == 0, "a record is of whole words");
    perf_file_record(file, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, &sample, sizeof sample);
}

TEST_WITH(test_a_virtual_thread_waits_from_unmount_to_mount, scratch_create, scratch_remove)
{
    enum { OUT = 101, IN = 102, PID = 5, OTHER = 6 };
    static uint8_t events[1024];
    static const char *const names[] = {"cpu-clock", "jdagent_5_0:unmount", "jdagent_5_0:mount"};
    OWN_PERF_FILE file = {.attr_count = 3};
    const uint64_t common =
        PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_PERIOD;
    for (uint32_t i = 0; i < file.attr_count; i++) {
        file.attrs[i] = (struct perf_event_attr){
            .size = sizeof file.attrs[0],
            .type = i ? PERF_TYPE_TRACEPOINT : PERF_TYPE_SOFTWARE,
            .sample_type = i ? common | PERF_SAMPLE_RAW : common,
            .sample_id_all = 1,
        };
    }
    perf_file_feature(&file, PERF_FEATURE_EVENT_DESC, events,
                      describe_events(&file, names, events));
    put_sample(&file, CLOCK, 8, 500, 0);
    put_virtual(&file, IN, PID, 900, 40, 0, 1); /* which had been gone before the recording */
    put_virtual(&file, OUT, PID, 1000, 40, 0, 1);
    put_virtual(&file, OUT, PID, 2000, 41, 2, 4); /* for four, and two had no room */
    put_virtual(&file, OUT, OTHER, 2100, 40, 0, 1);
    put_virtual(&file, IN, PID, 2600, 41, 100, 1); /* 500 ns but for what it took to tell */
    put_virtual(&file, IN, PID, 3000, 40, 0, 1);
    put_virtual(&file, OUT, PID, 3100, 42, 0, 1);
    const uint64_t exit[] = {(uint64_t)1 << 32 | PID,
                             (uint64_t)PID << 32 | PID,
                             3500,
                             (uint64_t)PID << 32 | PID,
                             3500,
                             CLOCK};
    perf_file_record(&file, PERF_RECORD_EXIT, 0, exit, sizeof exit);
    put_sample(&file, CLOCK, 8, 4000, 0);
    perf_file_write(&file, scratch_path(state, "p.data"));

    const uint64_t weight = 4 * (600 - 100) + (3000 - 1000) + (3500 - 3100) + (4000 - 2100);
    char wanted[160];
    snprintf(wanted, sizeof wanted,
             "{\"name\": \"virtual-wait\", \"unit\": \"nanoseconds\", \"samples\": 4, "
             "\"weight\": %" PRIu64 ", \"left_out\": 5,",
             weight);
    const char *text = inject_with_card(state);
    assert_non_null(strstr(text, wanted));
    assert_null(strstr(text, "\"mount\"")); /* is no event of the profile's */
}

/* ---- What the JVM itself does ---- */

static void put_mark(struct perf_file *file, enum timeline_probe what, uint64_t time)
{
    struct {
        uint64_t id;
        uint32_t pid, tid;
        uint64_t time, period;
        uint32_t raw_size;
        struct timeline_probe_raw raw;
        uint32_t padding;
    } __attribute__((packed)) sample = {100, 5, 7, time, 1, sizeof sample.raw, {0}, 0};
    sample.raw.what = (uint32_t)what;
    sample.raw_size += sizeof sample.padding; /* perf has it end at a multiple of 8 */
    _Static_assert(sizeof sample % 8 == 0, "a record is of whole words");
    perf_file_record(file, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, &sample, sizeof sample);
}

TEST_WITH(test_what_lost_its_end_is_told, scratch_create, scratch_remove)
{
    static uint8_t events[512];
    static const char *const names[] = {"jdagent_5_0:timeline"};
    OWN_PERF_FILE file = {.attr_count = 1};
    file.attrs[0] = (struct perf_event_attr){.size = sizeof file.attrs[0],
                                             .type = PERF_TYPE_TRACEPOINT,
                                             .sample_type = PERF_SAMPLE_IDENTIFIER |
                                                            PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
                                                            PERF_SAMPLE_PERIOD | PERF_SAMPLE_RAW,
                                             .sample_id_all = 1};
    perf_file_feature(&file, PERF_FEATURE_EVENT_DESC, events,
                      describe_events(&file, names, events));
    put_mark(&file, TIMELINE_GC_BEGIN, 1000);
    put_mark(&file, TIMELINE_GC_BEGIN, 2000); /* the end between them was lost */
    put_mark(&file, TIMELINE_GC_END, 2500);
    perf_file_write(&file, scratch_path(state, "p.data"));
    const char *text = inject_with_card(state);
    assert_non_null(strstr(text, "\"marks_lost\": 1,"));
    assert_non_null(strstr(text, "left out 1 events of the JVM's time line"));
}

TEST_MAIN(NULL, NULL)
