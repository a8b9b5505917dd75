/*
 * JVMs start and end for months in one recording, or are sampled at ever new places, and memory and
 * descriptors do not grow. JDAGENT_LONG: 100,000 of them.
 */
#include "test.h"

#include "jdtool/pipeline/stream.h"
#include "jdtool/watch/slices.h"
#include "tests/recording_builder.h"
#include "tests/sanitized.h"
#include "tests/scratch.h"

#include <limits.h>

#include <dirent.h>
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#define FIRST_PID      5000000 /* beyond those that the kernel gives */
#define LIVES_A_SLICE  100
#define LIFE           UINT64_C(10000000) /* ns */
#define BEGAN          (LIFE * 1000)
#define DUMPS_KEPT     4000 /* more than the pipe and its reader hold */
#define SAMPLES_A_LIFE 4
#define FRAMES         5
#define PLACES_A_TURN  20

/* Some have a sample more, whose user part the kernel records when the process has long ended. */
#define WAITS(life) ((life) % 50 == 7)
#define PART_COMES                                                                                 \
    100 /* lives later: the last 256 threads and processes that ended are known still */

/* ---- The machine ---- */

struct machine {
    const char *directory;
    uint32_t lives;
    FILE *out;
    struct perf_file file;
    struct dump_builder dump;
};

static void dump_path(const struct machine *machine, uint32_t life, char path[PATH_MAX])
{
    snprintf(path, PATH_MAX, "%s/jit-%u.dump", machine->directory, FIRST_PID + 2 * life);
}

/* Methods of its own, and some that all have. */
static void write_dump(struct machine *machine, uint32_t life, uint64_t time)
{
    char name[64];
    char path[PATH_MAX];
    dump_header(&machine->dump);
    memcpy(machine->dump.bytes + offsetof(struct jitdump_header, timestamp), &time, sizeof time);
    for (uint32_t i = 0; i < 8; i++) {
        snprintf(name, sizeof name, i % 2 ? "a.Common%u.run()" : "life%u.Own%u.run()",
                 i % 2 ? i : life, i);
        dump_load(&machine->dump, time + 1, CODE + i * UINT64_C(64), 64, i + 1, name);
    }
    dump_close(&machine->dump, time + LIFE);
    dump_path(machine, life, path);
    write_bytes(path, machine->dump.bytes, machine->dump.size);
    dump_free(&machine->dump);
}

/* In two methods of the dump, one called by the other, and in three files. */
static uint64_t *chain_of(uint64_t sample)
{
    static uint64_t chain[1 + FRAMES];
    const uint64_t addresses[] = {PERF_CONTEXT_USER,        CODE + sample * 64 + 4,
                                  CODE + sample * 128 + 68, 0x10100 + sample * 16,
                                  0x40100 + sample * 16,    0x30010};
    memcpy(chain, addresses, sizeof chain);
    return chain;
}

static void live(struct machine *machine, uint32_t life)
{
    struct perf_file *file = &machine->file;
    uint32_t pid = FIRST_PID + 2 * life;
    uint64_t time = BEGAN + life * LIFE;
    char path[PATH_MAX];
    char name[16];
    write_dump(machine, life, time);
    put_task(file, PERF_RECORD_FORK, pid, 1, pid, time);
    snprintf(name, sizeof name, "jvm-%u", life);
    put_comm(file, pid, pid, time, name, true);
    snprintf(path, sizeof path, "/containers/%u/lib/libjvm.so", life);
    put_mmap2(file, pid, time + 1, 0x10000, 0x10000, path);
    put_mmap2(file, pid, time + 1, 0x30000, 0x1000, "[vdso]");
    put_mmap2(file, pid, time + 1, 0x40000, 0x10000, "/usr/lib/libshared.so");
    put_mmap2(file, pid, time + 2, CODE, 0x1000, "//anon");
    dump_path(machine, life, path);
    put_mmap2(file, pid, time + 3, 0x60000, 0x1000, path);
    put_task(file, PERF_RECORD_FORK, pid, pid, pid + 1, time + 4);
    snprintf(name, sizeof name, "work-%u", life);
    put_comm(file, pid, pid + 1, time + 4, name, false);
    for (uint64_t i = 0; i < SAMPLES_A_LIFE; i++) {
        put_sample_of(file, pid, pid + i % 2, time + 5 + i, chain_of(i), 1 + FRAMES);
    }
    if (WAITS(life) && life + PART_COMES < machine->lives) {
        const uint64_t waits[] = {PERF_CONTEXT_USER_DEFERRED, life};
        put_sample(file, pid, time + 5 + SAMPLES_A_LIFE, waits, 2);
    }
    if (life >= PART_COMES && WAITS(life - PART_COMES)) {
        put_late_chain(file, pid - 2 * PART_COMES, time + 10, life - PART_COMES, chain_of(0),
                       1 + FRAMES);
    }
    put_task(file, PERF_RECORD_EXIT, pid, pid, pid + 1, time + LIFE / 2);
    put_task(file, PERF_RECORD_EXIT, pid, 1, pid, time + LIFE / 2);
    if (life >= DUMPS_KEPT) {
        dump_path(machine, life - DUMPS_KEPT, path);
        (void)unlink(path);
    }
}

/* One that lives on, and is sampled where it was never before. */
static void live_on(struct machine *machine, uint32_t turn)
{
    struct perf_file *file = &machine->file;
    uint64_t time = BEGAN + turn * LIFE;
    if (turn == 0) {
        put_task(file, PERF_RECORD_FORK, FIRST_PID, 1, FIRST_PID, time);
        put_comm(file, FIRST_PID, FIRST_PID, time, "java", true);
        put_mmap2(file, FIRST_PID, time + 1, 0x10000, 0x10000000, "/usr/lib/libshared.so");
    }
    for (uint64_t i = 0; i < PLACES_A_TURN; i++) {
        const uint64_t chain[] = {PERF_CONTEXT_USER,
                                  0x20000 + (turn * UINT64_C(1) * PLACES_A_TURN + i) * 16, 0x10010};
        put_sample_of(file, FIRST_PID, FIRST_PID, time + 2 + i, chain, 3);
    }
}

/* The end of a pipe that tells of so many lives; a process of its own writes it. */
static int run_machine(const char *directory, void (*tell)(struct machine *machine, uint32_t life),
                       uint32_t lives, pid_t *pid)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    *pid = fork();
    assert_true(*pid >= 0);
    if (*pid > 0) {
        close(ends[1]);
        return ends[0];
    }
    close(ends[0]);
    struct machine machine = {.directory = directory, .lives = lives, .out = fdopen(ends[1], "w")};
    machine.file = recording();
    perf_file_write_pipe(&machine.file, machine.out);
    for (uint32_t life = 0; life < lives; life++) {
        tell(&machine, life);
        if (life % 20 == 19) {
            put_round(&machine.file);
            perf_file_write_bytes(machine.out, machine.file.records, machine.file.size);
            (void)fflush(machine.out);
            machine.file.size = 0;
        }
    }
    (void)fclose(machine.out);
    _exit(0);
}

/* ---- What is kept of it ---- */

struct look {
    size_t memory;
    uint32_t descriptors;
};

struct looks {
    struct look early, latest;
    uint32_t count;
    uint32_t early_at;
    uint64_t samples, unnamed;
};

static uint32_t count_descriptors(void)
{
    uint32_t count = 0;
    DIR *directory = opendir("/proc/self/fd");
    while (readdir(directory)) {
        count++;
    }
    closedir(directory);
    return count;
}

static int take(void *context, const struct slice *slice)
{
    struct looks *looks = context;
    struct mallinfo2 memory = mallinfo2();
    looks->latest = (struct look){memory.uordblks + memory.hblkhd, count_descriptors()};
    if (++looks->count == looks->early_at) {
        looks->early = looks->latest;
    }
    looks->samples += slice->samples;
    looks->unnamed += slice->unnamed;
    return 0;
}

/* ---- What becomes of the samples ---- */

/* Stands before the slices and looks at what they are given. */
struct guard {
    struct sample_sink sink; /* the first member */
    struct sample_sink *behind;
};

static int guard_begin(struct sample_sink *base, const struct recording *recording)
{
    struct sample_sink *behind = ((struct guard *)base)->behind;
    return behind->ops->begin(behind, recording);
}

static int guard_before(struct sample_sink *base, uint64_t time, bool *holds)
{
    struct sample_sink *behind = ((struct guard *)base)->behind;
    return behind->ops->before(behind, time, holds);
}

static void assert_method(const struct resolved_sample *sample, uint32_t node, uint32_t life,
                          uint64_t blob)
{
    char name[64];
    snprintf(name, sizeof name, blob % 2 ? "a.Common%u.run()" : "life%u.Own%u.run()",
             blob % 2 ? (uint32_t)blob : life, (uint32_t)blob);
    assert_string_equal(stack_table_innermost(sample->stacks, node)->method->name, name);
}

static int guard_sample(struct sample_sink *base, const struct resolved_sample *sample)
{
    struct sample_sink *behind = ((struct guard *)base)->behind;
    uint32_t life = (uint32_t)((sample->time - BEGAN) / LIFE);
    uint64_t number = (sample->time - BEGAN) % LIFE - 5;
    char comm[16];
    snprintf(comm, sizeof comm, number < SAMPLES_A_LIFE && number % 2 ? "work-%u" : "jvm-%u", life);
    assert_string_equal(sample->thread.comm, comm);
    assert_int_equal(sample->thread.jvm->pid, FIRST_PID + 2 * life);
    number = number < SAMPLES_A_LIFE ? number : 0;
    assert_method(sample, sample->node, life, number);
    assert_method(sample, sample->stacks->nodes[sample->node].caller, life, number * 2 + 1);
    return behind->ops->sample(behind, sample);
}

static int guard_end(struct sample_sink *base)
{
    struct sample_sink *behind = ((struct guard *)base)->behind;
    return behind->ops->end(behind);
}

static void guard_abort(struct sample_sink *base)
{
    struct sample_sink *behind = ((struct guard *)base)->behind;
    behind->ops->abort(behind);
}

/* What a machine tells is cut into slices, as the watch does it; guard: it is in front, or NULL. */
static void slice(void **state, void (*tell)(struct machine *machine, uint32_t life),
                  uint32_t lives, int (*take_slice)(void *context, const struct slice *slice),
                  struct looks *looks, struct guard *guard)
{
    const struct export_settings settings = {.path = "slice", .no_threads = true};
    const struct slices_options options = {
        .length = LIVES_A_SLICE * LIFE,
        .formats = {export_format_of("pprof")},
        .format_count = 1,
        .settings = &settings,
        .take = take_slice,
        .context = looks,
    };
    const struct stream_options stream = {.input = "-", .symbolize = true, .sparing = true};
    struct sample_sink *slices;
    struct stream_result result;
    pid_t pid;
    int status;
    int in = run_machine(scratch_path(state, ""), tell, lives, &pid);
    assert_int_equal(dup2(in, STDIN_FILENO), STDIN_FILENO);
    close(in);
    assert_int_equal(slices_sink_new(&options, &slices), 0);
    if (guard) {
        guard->behind = slices;
    }
    struct sample_sink *const sinks[] = {guard ? &guard->sink : slices};
    assert_int_equal(stream_run(&stream, sinks, 1, &result), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

TEST_WITH(what_is_dead_is_forgotten, scratch_create, scratch_remove)
{
    static const struct sample_sink_ops ops = {.begin = guard_begin,
                                               .before = guard_before,
                                               .sample = guard_sample,
                                               .end = guard_end,
                                               .abort = guard_abort};
    uint32_t lives = getenv("JDAGENT_LONG") ? 100000 : SANITIZED ? 400 : 1200;
    struct looks looks = {.early_at = lives / LIVES_A_SLICE / 2};
    struct guard guard = {.sink.ops = &ops};
    slice(state, live, lives, take, &looks, &guard);

    uint64_t samples = (uint64_t)lives * SAMPLES_A_LIFE + (lives - PART_COMES) / 50;
    assert_int_equal(looks.samples, samples);
    assert_int_equal(looks.unnamed, 0);
    assert_in_range(looks.count, lives / LIVES_A_SLICE, lives / LIVES_A_SLICE + 1);
    print_message("%u lives: %zu KB, %u descriptors; at half of them %zu KB, %u\n", lives,
                  looks.latest.memory >> 10, looks.latest.descriptors, looks.early.memory >> 10,
                  looks.early.descriptors);
    assert_true(looks.latest.memory < looks.early.memory + (1 << 20));
    assert_true(looks.latest.descriptors < looks.early.descriptors + 20);
}

/* The most that it was in the first third, and behind that. */
static int take_peak(void *context, const struct slice *slice)
{
    struct looks *looks = context;
    struct mallinfo2 memory = mallinfo2();
    struct look *peak = ++looks->count <= looks->early_at ? &looks->early : &looks->latest;
    size_t now = memory.uordblks + memory.hblkhd;
    peak->memory = now > peak->memory ? now : peak->memory;
    looks->samples += slice->samples;
    return 0;
}

TEST_WITH(places_are_forgotten, scratch_create, scratch_remove)
{
    enum { TURNS = SANITIZED ? 1500 : 7000 };
    struct looks looks = {.early_at = TURNS / LIVES_A_SLICE / 3};
    slice(state, live_on, TURNS, take_peak, &looks, NULL);
    assert_int_equal(looks.samples, (uint64_t)TURNS * PLACES_A_TURN);
    print_message("%u places: at most %zu KB, in the first third %zu KB\n", TURNS * PLACES_A_TURN,
                  looks.latest.memory >> 10, looks.early.memory >> 10);
    assert_true(looks.latest.memory < looks.early.memory + (1 << 20));
}

TEST_MAIN(NULL, NULL)
