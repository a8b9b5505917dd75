/*
 * Resolved samples out of nothing: a process with files, a kernel and a JVM's code, threads,
 * inlined and interpreted methods, hostile names. All of it is made of a seed. What the sinks are
 * to make of them is kept beside, as the simplest reader would: see struct told.
 */
#ifndef JD_TESTS_RESOLVED_SAMPLES_H
#define JD_TESTS_RESOLVED_SAMPLES_H

#include "jdtool/resolve/sample_sink.h"
#include "tests/random.h"
#include "tests/stacks.h"

#include <stdio.h>
#include <string.h>

enum {
    WORLD_METHODS = 60,
    WORLD_CODES = 40,
    WORLD_MODULES = 4,
    WORLD_THREADS = 5,
    WORLD_EVENTS = 2,
    WORLD_DEPTH = 40,
};

struct world {
    uint64_t random;
    uint64_t time;
    char names[WORLD_METHODS][64];
    char classes[WORLD_METHODS][32];
    char method_names[WORLD_METHODS][8];
    struct module modules[WORLD_MODULES]; /* a file, the kernel, the JVM's code, a file */
    struct resolved_method methods[WORLD_METHODS];
    struct resolved_code codes[WORLD_CODES];
    struct resolved_thread threads[WORLD_THREADS];
    struct recorded_event events[WORLD_EVENTS];
    struct recording recording;
    struct test_frame frames[WORLD_DEPTH]; /* of the last sample */
    uint32_t frame_count;
};

static const uint64_t world_start = UINT64_C(5000000000000);
static const int64_t world_wall_offset = INT64_C(1790000000000000000);

static inline enum resolved_kind world_method_kind(uint32_t i)
{
    return i < 40   ? RESOLVED_COMPILED
           : i < 45 ? RESOLVED_INTERPRETED
           : i < 47 ? RESOLVED_STUB
           : i < 54 ? RESOLVED_NATIVE
                    : RESOLVED_KERNEL;
}

static inline void world_make_methods(struct world *world)
{
    for (uint32_t i = 0; i < WORLD_METHODS; i++) {
        struct resolved_method *method = &world->methods[i];
        enum resolved_kind kind = world_method_kind(i);
        bool is_java = kind == RESOLVED_COMPILED || kind == RESOLVED_INTERPRETED;
        *method = (struct resolved_method){.id = i, .kind = kind};
        /* Five methods are both compiled and interpreted; one name has what formats choke on. */
        uint32_t number = kind == RESOLVED_INTERPRETED ? i - 40 : i;
        snprintf(world->classes[i], sizeof world->classes[i], "org.x.Class%u", number / 3);
        snprintf(world->names[i], sizeof world->names[i], is_java ? "%s.m%u(int, %s)" : "%s_%u",
                 is_java ? world->classes[i] : "function", number,
                 number == 7 ? "a;\"b\\\n\xff<c>" : "java.lang.Object");
        method->name = world->names[i];
        method->module = &world->modules[is_java || kind == RESOLVED_STUB ? 2
                                         : kind == RESOLVED_KERNEL        ? 1
                                                                          : 0];
        if (is_java) {
            method->class_name = world->classes[i];
            snprintf(world->method_names[i], sizeof world->method_names[i], "m%u", number % 1000);
            method->method_name = world->method_names[i];
            method->descriptor = strchr(method->name, '(');
            method->file = number % 4 ? "org/x/Class.java" : NULL;
            method->first_line = number % 5;
        }
    }
}

static inline void world_make(struct world *world, uint64_t seed)
{
    *world = (struct world){.random = seed, .time = world_start};
    world->modules[0] = (struct module){
        .id = 0, .path = "/usr/lib/libjvm.so", .build_id = {0xab, 0xcd, 3, 4}, .build_id_size = 20};
    world->modules[1] =
        (struct module){.id = 1, .kind = MODULE_KERNEL, .path = "[kernel.kallsyms]"};
    world->modules[2] =
        (struct module){.id = 2, .kind = MODULE_JVM, .path = "[java 100]", .pid = 100};
    world->modules[3] = (struct module){.id = 3, .path = "/usr/lib/libno names.so"};
    world_make_methods(world);
    for (uint32_t i = 0; i < WORLD_CODES; i++) {
        world->codes[i] = (struct resolved_code){.id = i,
                                                 .address = 0x7f0000000000 + 0x1000 * (i % 30),
                                                 .size = 0x800,
                                                 .module_address = 0x7f0000000000 + 0x1000 * i,
                                                 .from = world_start,
                                                 .symbol = world->methods[i].name,
                                                 .method = &world->methods[i],
                                                 .module = &world->modules[2]};
    }
    static const char *const comms[WORLD_THREADS] = {"main", "worker; 1", "worker 2", "", "main"};
    for (uint32_t i = 0; i < WORLD_THREADS; i++) {
        world->threads[i] = (struct resolved_thread){.pid = i == 4 ? 200 : 100,
                                                     .tid = i == 4 ? 200 : 100 + i,
                                                     .comm = comms[i],
                                                     .process_name = "java",
                                                     .jvm = &world->modules[2],
                                                     .is_jvm = true};
    }
    world->events[0] = (struct recorded_event){
        .id = 0, .name = "cpu-clock:u", .unit = "nanoseconds", .frequency = 1000};
    world->events[1] =
        (struct recorded_event){.id = 1, .name = "cache-misses", .unit = "count", .period = 1000};
    world->recording = (struct recording){.path = "perf.data",
                                          .hostname = "host",
                                          .os_release = "6.1",
                                          .arch = "x86_64",
                                          .cpu = "a cpu",
                                          .command_line = "perf record \"java\"",
                                          .perf_version = "6.1",
                                          .verdict = "fair: 91.2 % of \"all\"",
                                          .cpu_count = 2,
                                          .events = world->events,
                                          .event_count = WORLD_EVENTS,
                                          .has_wall = true,
                                          .wall_offset = world_wall_offset,
                                          .from = world_start,
                                          .has_chains = true};
}

/* A machine address at a random place, with inlined methods on top of compiled ones; returns how
 * many frames that are, at most room. Few callers and many callees, as stacks are. */
static inline uint32_t world_make_address(struct world *world, struct test_frame *frames,
                                          uint32_t room, uint32_t depth)
{
    uint32_t spread = depth < 3 ? 2 : 8;
    uint32_t which = random_below(&world->random, 20);
    struct test_frame own = {.is_caller = depth > 0};
    if (depth == 0 && which < 3) {
        own.kind = RESOLVED_KERNEL;
        own.method = which ? &world->methods[54 + random_below(&world->random, 5)] : NULL;
        own.module = &world->modules[1];
        own.address = 0xffffffff81000000 + random_below(&world->random, 1000);
    } else if (which < 5) {
        own.kind = RESOLVED_NATIVE;
        own.method =
            which < 4 ? &world->methods[47 + random_below(&world->random, spread) % 7] : NULL;
        own.module = &world->modules[own.method ? 0 : 3];
        own.module_address = 0x4000 + 16 * random_below(&world->random, 50);
        own.address = 0x7fff00000000 + own.module_address;
    } else if (which == 5) {
        own.kind = RESOLVED_UNKNOWN;
        own.address = 0x1234;
    } else if (which < 8) {
        own.kind = RESOLVED_INTERPRETED;
        own.method = &world->methods[40 + random_below(&world->random, 5)];
        own.module = &world->modules[2];
        own.line = 10 + random_below(&world->random, 3);
        own.address = own.module_address = 0x7f0000100000;
    } else {
        uint32_t code = random_below(&world->random, spread * 5);
        own.kind = RESOLVED_COMPILED;
        own.tier = code % 5;
        own.is_osr = code % 7 == 0;
        own.code = &world->codes[code];
        own.method = own.code->method;
        own.module = own.code->module;
        uint32_t offset = 8 * random_below(&world->random, 16);
        own.address = own.code->address + offset;
        own.module_address = own.code->module_address + offset;
        own.line = offset ? 100 + offset : 0;
        uint32_t inlined = offset % 3;
        for (uint32_t i = 0; i < inlined && i + 1 < room; i++) {
            frames[i] = own;
            frames[i].kind = RESOLVED_INLINED;
            frames[i].method = &world->methods[(code + i + offset) % 40];
            frames[i].line = 7 + i;
        }
        inlined = inlined < room ? inlined : room - 1;
        frames[inlined] = own;
        return inlined + 1;
    }
    frames[0] = own;
    return 1;
}

/* The next sample; what it points to lives until the next call. */
static inline struct resolved_sample world_sample(struct world *world)
{
    uint32_t event = random_below(&world->random, 4) == 0;
    uint32_t wanted = random_below(&world->random, WORLD_DEPTH);
    uint32_t count = 0;
    while (count < wanted) {
        /* The innermost frame comes first; depth counts from there. */
        count += world_make_address(world, &world->frames[count], WORLD_DEPTH - count, count);
    }
    world->frame_count = count;
    world->time += 1000000 + random_below(&world->random, 1000);
    return (struct resolved_sample){
        .event = &world->events[event],
        .time = world->time,
        .weight = event ? 1000 : 1000000,
        .thread = world->threads[random_below(&world->random, WORLD_THREADS)],
        .stacks = test_stacks(),
        .node = test_stack(world->frames, count),
        .end = STACK_ROOT,
    };
}

#endif
