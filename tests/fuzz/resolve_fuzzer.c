/*
 * Fuzzes the resolver with sequences of mappings, forks, code, methods and samples. What it makes
 * of it must hold together.
 */
#include "checking_sink.h"

#include "../methods_builder.h"
#include "../recording_builder.h"

#define PROCESSES 4
#define WORDS     64 /* of a stack copy */

struct script {
    const uint8_t *at;
    const uint8_t *end;
    struct perf_file file;
    struct dump_builder dump;
    struct methods_builder methods;
    uint64_t time;
    uint64_t codes;
};

static uint8_t next(struct script *script)
{
    return script->at < script->end ? *script->at++ : 0;
}

static uint32_t next_pid(struct script *script)
{
    return PID + next(script) % PROCESSES;
}

/* Mostly where code is, and near it; sometimes anywhere. */
static uint64_t next_address(struct script *script)
{
    uint8_t low = next(script);
    uint8_t high = next(script);
    if (high == 0xff) {
        uint64_t any = 0;
        for (int i = 0; i < 8; i++) {
            any = any << 8 | next(script);
        }
        return any;
    }
    return CODE + (uint64_t)(high & 0x3f) * 64 + low;
}

static void map(struct script *script)
{
    static const char *const paths[] = {
        "//anon", "/bin/true", "[vdso]", "/x/libjvm.so", "jit-4242.dump", "/x/jit-4243.dump", ""};
    uint32_t pid = next_pid(script);
    uint64_t start = next_address(script) & ~UINT64_C(0xfff);
    uint64_t pages = 1 + next(script);
    const char *path = paths[next(script) % (sizeof paths / sizeof paths[0])];
    put_mmap2_of(&script->file, pid, script->time, start, pages << 12, (uint64_t)next(script) << 12,
                 path);
}

/* Rows of lines, an inline tree with a node a byte, and the code, bytes of the script. */
static void load(struct script *script)
{
    static const char *const names[] = {"a.A.m(int)",
                                        "Interpreter",
                                        "cont_thaw",
                                        "cont_returnBarrier",
                                        "call_stub",
                                        "La/B;m()V",
                                        "jdk.internal.vm.Continuation.enterSpecial(a.B)"};
    uint64_t address = next_address(script);
    uint64_t size = next(script);
    uint8_t kind = next(script);
    uint64_t id = ++script->codes;
    const char *name = names[kind % (sizeof names / sizeof names[0])];
    if (kind & 0x80) {
        struct dump_builder section = {0};
        uint64_t nodes = 1 + next(script) % 8;
        dump_begin_debug(&script->dump, script->time, address, 0);
        dump_begin_trailer(&script->dump);
        dump_method(&section, id, 0, 7, name);
        dump_section(&script->dump, JITDUMP_TRAILER_METHODS, &section);
        dump_uleb(&section, nodes);
        for (uint64_t i = 0; i < nodes; i++) {
            dump_uleb(&section, 1 + next(script) % id);
            if (i > 0) {
                dump_uleb(&section, next(script) % i);
                dump_uleb(&section, 3);
            }
        }
        for (uint64_t i = 0; i < size; i += 8) {
            dump_uleb(&section, 8);
            dump_uleb(&section, next(script) % nodes);
            dump_sleb(&section, 1);
        }
        dump_section(&script->dump, JITDUMP_TRAILER_INLINES, &section);
        dump_uleb(&section, JITDUMP_CODE_KIND);
        dump_uleb(&section, 1 + (kind >> 4 & 3));
        dump_uleb(&section, JITDUMP_CODE_FRAME_SIZE);
        dump_uleb(&section, (uint64_t)(next(script) % 16) * 8);
        dump_section(&script->dump, JITDUMP_TRAILER_CODE, &section);
        dump_end_trailer(&script->dump);
        dump_end(&script->dump);
    }
    dump_begin(&script->dump, JIT_CODE_LOAD, script->time);
    dump_load_fields(&script->dump, address, size, id);
    dump_string(&script->dump, name);
    for (uint64_t i = 0; i < size; i++) {
        uint8_t byte = next(script);
        dump_bytes(&script->dump, &byte, 1);
    }
    dump_end(&script->dump);
}

static void method(struct script *script)
{
    static const uint32_t lines[] = {0, 10, 5, 12, 0, 0};
    uint64_t address = UINT64_C(0x7f1100000000) + (uint64_t)(next(script) % 8) * 64;
    if (script->methods.size > 3000) {
        return;
    }
    methods_begin(&script->methods, 1 + next(script) % 2, script->time, "a/A.java");
    methods_add(&script->methods, address, address + 0x1000, 1 + next(script), "a.A.i()", lines);
    methods_end(&script->methods);
}

static void chain(struct script *script)
{
    uint64_t words[40] = {PERF_CONTEXT_KERNEL, 0xffffffff81000000, PERF_CONTEXT_USER};
    bool kernel = next(script) & 1;
    uint64_t count = 3;
    uint64_t more = next(script) % 32;
    uint32_t pid = next_pid(script);
    for (uint64_t i = 0; i <= more; i++) {
        words[count++] = next_address(script);
    }
    uint64_t skip = kernel ? 0 : 2;
    put_sample(&script->file, pid, script->time, words + skip, count - skip);
}

/* A stack whose words are code, methods, places in the stack, or anything. */
static uint64_t next_word(struct script *script)
{
    uint64_t stack = UINT64_C(0x7ffd00001000);
    switch (next(script) % 4) {
    case 0:
        return next_address(script);
    case 1:
        return stack + (uint64_t)(next(script) % WORDS) * 8;
    case 2:
        return UINT64_C(0x7f1100000000) + (uint64_t)(next(script) % 8) * 64;
    default:
        return next(script);
    }
}

static void copy(struct script *script)
{
    uint64_t payload[8 + 17 + WORDS + 4];
    size_t at = 0;
    uint32_t pid = next_pid(script);
    uint64_t valid = (uint64_t)(next(script) % (WORDS + 1)) * 8;
    uint64_t pc = next_address(script);
    payload[at++] = pc;
    payload[at++] = pid | (uint64_t)pid << 32;
    payload[at++] = script->time;
    payload[at++] = 0; /* no chain */
    payload[at++] = next(script) % 8 ? PERF_SAMPLE_REGS_ABI_64 : next(script);
    for (int i = 0; i < 17; i++) { /* ax bx cx dx si di bp sp ip r8-15 */
        payload[at++] = i == 7 ? UINT64_C(0x7ffd00001000) : i == 8 ? pc : next_word(script);
    }
    payload[at++] = WORDS * 8;
    for (int i = 0; i < WORDS; i++) {
        payload[at++] = script->at < script->end ? next_word(script) : 0;
    }
    payload[at++] = valid;
    perf_file_record(&script->file, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, payload, at * 8);
}

static void step(struct script *script)
{
    script->time += next(script) % 16;
    switch (next(script) % 12) {
    case 0:
        map(script);
        break;
    case 1:
        put_task(&script->file, PERF_RECORD_FORK, next_pid(script), next_pid(script),
                 next_pid(script), script->time);
        break;
    case 2:
        put_comm(&script->file, next_pid(script), next_pid(script), script->time, "java",
                 next(script) & 1);
        break;
    case 3:
        put_task(&script->file, PERF_RECORD_EXIT, next_pid(script), 1, next_pid(script),
                 script->time);
        break;
    case 4:
    case 5:
        load(script);
        break;
    case 6:
        dump_move(&script->dump, script->time, 0, next_address(script), 0,
                  1 + next(script) % (script->codes + 1));
        break;
    case 7:
        method(script);
        break;
    case 8:
        put_round(&script->file);
        break;
    case 9:
        copy(script);
        break;
    default:
        chain(script);
        break;
    }
}

static void write_file(const char *name, const void *data, size_t size)
{
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size) {
        abort();
    }
    close(fd);
}

static void begin(void)
{
    write_dump(O_TRUNC, "", 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) {
        return 0;
    }
    struct script script = {.at = data + 1, .end = data + size, .file = recording()};
    bool copies = data[0] & 1;
    if (copies) {
        script.file.attrs[0].sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
        script.file.attrs[0].sample_regs_user = 0xff01ff;
    }
    script.time = 1000050;
    dump_header(&script.dump);
    methods_start(&script.methods);
    put_mmap2(&script.file, PID, script.time, 0x7f0000000000, 4096, "jit-4242.dump");
    while (script.at < script.end) {
        step(&script);
    }
    perf_file_write(&script.file, "p.data");
    write_dump(O_TRUNC, script.dump.bytes, script.dump.size);
    write_file("jit-4242.methods", script.methods.bytes, script.methods.size);
    const struct stream_options options = {
        .input = "p.data", .symbolize = data[0] & 2, .keep_stacks = data[0] & 4};
    if (run_stream(&options)) {
        fault("what is sound was not read");
    }
    dump_free(&script.dump);
    free(script.file.records);
    return 0;
}
