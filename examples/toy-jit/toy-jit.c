/*
 * The smallest JIT there is: it compiles the program in loop.toy, once for each number it is given,
 * and runs what came out. libjdwriter tells perf about it:
 *
 *     perf record -k mono ./toy-jit 250000000 1000000000
 *     perf inject --jit -i perf.data -o perf.jit.data
 *     perf report -i perf.jit.data
 *     perf annotate -i perf.jit.data count_to_1000000000
 *
 * shows count_to_1000000000 with four times the samples of count_to_250000000, and their loop.
 */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include <jdwriter.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Where loop.toy is, so that annotate can show its lines. */
#ifndef TOY_SOURCE
#define TOY_SOURCE "loop.toy"
#endif

struct compiled {
    uint64_t (*run)(void);
    const void *address;
    size_t size;
};

#if defined(__x86_64__)
static const unsigned char machine_code[] = {
    0x48, 0xc7, 0xc0, 0,    0, 0, 0, /*  0: mov rax, 0          line 1 */
    0x48, 0x3d, 0,    0,    0, 0,    /*  7: cmp rax, repeats    line 2 */
    0x74, 0x06,                      /* 13: je 21                      */
    0x48, 0x83, 0xc0, 0x01,          /* 15: add rax, 1          line 3 */
    0xeb, 0xf2,                      /* 19: jmp 7                      */
    0xc3,                            /* 21: ret                 line 5 */
};
static const struct jdwriter_row rows[] = {
    {0, 1, TOY_SOURCE}, {7, 2, NULL}, {15, 3, NULL}, {21, 5, NULL}};

static void set_repeats(unsigned char *code, uint32_t repeats)
{
    memcpy(code + 9, &repeats, sizeof(repeats));
}
#elif defined(__aarch64__)
static const uint32_t machine_code[] = {
    0xd2800000, /*  0: mov x0, #0                    line 1 */
    0xd2800001, /*  4: mov x1, #low half             line 2 */
    0xf2a00001, /*  8: movk x1, #high half, lsl #16         */
    0xeb01001f, /* 12: cmp x0, x1                           */
    0x54000060, /* 16: b.eq 28                              */
    0x91000400, /* 20: add x0, x0, #1                line 3 */
    0x17fffffd, /* 24: b 12                                 */
    0xd65f03c0, /* 28: ret                           line 5 */
};
static const struct jdwriter_row rows[] = {
    {0, 1, TOY_SOURCE}, {4, 2, NULL}, {20, 3, NULL}, {28, 5, NULL}};

static void set_repeats(unsigned char *code, uint32_t repeats)
{
    uint32_t *words = (uint32_t *)(void *)code;
    words[1] |= (repeats & 0xffff) << 5;
    words[2] |= (repeats >> 16) << 5;
}
#else
#error "toy-jit knows x86-64 and aarch64"
#endif

static int compile(uint32_t repeats, struct compiled *compiled)
{
    void *memory = mmap(NULL, sizeof(machine_code), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        return -1;
    }
    memcpy(memory, machine_code, sizeof(machine_code));
    set_repeats(memory, repeats);
    if (mprotect(memory, sizeof(machine_code), PROT_READ | PROT_EXEC) != 0) {
        return -1;
    }
    __builtin___clear_cache((char *)memory, (char *)memory + sizeof(machine_code));
    memcpy(&compiled->run, &memory, sizeof(memory)); /* ISO C has no cast for this */
    compiled->address = memory;
    compiled->size = sizeof(machine_code);
    return 0;
}

/* Tells the profiler. A toy without a profile still plays, so errors are not ours to end on. */
static void report(struct jdwriter *writer, const struct compiled *compiled, uint32_t repeats)
{
    char name[64];
    snprintf(name, sizeof(name), "count_to_%" PRIu32, repeats);
    struct jdwriter_code code = {
        .name = name,
        .address = compiled->address,
        .size = compiled->size,
        .bytes = compiled->address,
        .rows = rows,
        .row_count = sizeof(rows) / sizeof(*rows),
    };
    if (writer) {
        jdwriter_load(writer, &code);
    }
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: %s REPEATS...\n", argv[0]);
        return 2;
    }
    struct jdwriter *writer = NULL;
    struct jdwriter_options options = {.outputs = JDWRITER_JITDUMP | JDWRITER_MAP};
    jdwriter_open(&options, &writer);
    for (int i = 1; i < argc; i++) {
        uint32_t repeats = (uint32_t)strtoul(argv[i], NULL, 10) & INT32_MAX;
        struct compiled compiled;
        if (compile(repeats, &compiled) != 0) {
            perror("toy-jit: failed to compile");
            return 1;
        }
        report(writer, &compiled, repeats);
        printf("count_to_%" PRIu32 " returned %" PRIu64 "\n", repeats, compiled.run());
    }
    jdwriter_close(writer);
    return 0;
}
