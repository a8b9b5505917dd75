/*
 * Makes the synthetic seeds of the dump fuzzer: all kinds of records, both byte orders, sound and
 * broken. usage: make_corpus DIRECTORY
 */
#include "../dump_builder.h"

#include "format/samply.h"

#include <fcntl.h>
#include <stdio.h>

#define T (BUILDER_START + 5)

static void save(const char *directory, const char *name, struct dump_builder *dump)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/%s.bin", directory, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0 || write(fd, dump->bytes, dump->size) != (ssize_t)dump->size) {
        perror(path);
        exit(1);
    }
    close(fd);
    dump_free(dump);
}

static void add_samply(struct dump_builder *dump)
{
    dump_begin(dump, SAMPLY_EMBEDDED_SOURCE_FILE, T);
    dump_u32(dump, 4);
    dump_u32(dump, 10);
    dump_bytes(dump, "A.j\0class A {}\0\0", 16);
    dump_end(dump);
    dump_begin(dump, SAMPLY_JIT_CODE_DEBUG_INFO2, T);
    static const uint32_t counts[] = {1, 4, 2, 4, 2, 1, 1, 1};
    for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
        dump_u32(dump, counts[i]);
    }
    dump_bytes(dump, "f\0\0\0o\0i", 8);
    static const uint32_t lists[] = {0, 0, 1, 0, 0, 1, 0, 2, 0, 0, /* functions */
                                     0, 1, 1, 3, 0,                /* a call */
                                     0, 8,                         /* a range */
                                     0, 0, 1, 0};                  /* a line */
    for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
        dump_u32(dump, lists[i]);
    }
    dump_end(dump);
    dump_begin(dump, SAMPLY_JIT_TIER, T);
    dump_u32(dump, SAMPLY_COLOR_GREEN);
    dump_u32(dump, 4);
    dump_bytes(dump, "C1\0", 4);
    dump_end(dump);
}

static struct dump_builder everything(bool swapped)
{
    struct dump_builder dump = {.swapped = swapped};
    dump_header(&dump);
    add_samply(&dump);
    dump_group(&dump, T, 0x1000, 16, 2, "a.A.a()");
    dump_begin(&dump, JIT_CODE_UNWINDING_INFO, T);
    dump_u64(&dump, 8);
    dump_u64(&dump, 4);
    dump_u64(&dump, 0);
    dump_bytes(&dump, "12345678", 8);
    dump_end(&dump);
    dump_group(&dump, T + 1, 0x2000, 12, 3, "a.A.b()");
    dump_group(&dump, T - 1, 0x1004, 8, 4, "over the first");
    dump_move(&dump, T + 2, 0x2000, 0x3000, 12, 3);
    dump_load(&dump, T, 0x4000, 0, 9, "empty");
    dump_close(&dump, T + 3);
    return dump;
}

static struct dump_builder mixed(void)
{
    struct dump_builder dump = {0};
    dump_header(&dump);
    dump_begin_debug(&dump, T, 0x1000, 1);
    dump_entry(&dump, 0x1000, 1, "a.java");
    dump_end(&dump);
    dump_begin_debug(&dump, T, 0x2000, 2);
    dump_entry(&dump, 0x2000, 2, "b.java");
    dump_entry(&dump, 0x2004, 3, "\xff");
    dump_end(&dump);
    dump_load(&dump, T, 0x1000, 8, 1, "a");
    dump_load(&dump, T, 0x2000, 8, 1, "b");
    return dump;
}

/* Two processes wrote into one file. */
static struct dump_builder interwoven(void)
{
    struct dump_builder dump = {0};
    dump_header(&dump);
    dump_group(&dump, T, 0x1000, 12, 2, "a");
    size_t header = dump.size;
    dump_header(&dump);
    dump_patch32(&dump, header + 20, 777);
    dump_group(&dump, T, 0x2000, 12, 2, "foreign");
    dump_patch32(&dump, dump.record + 16, 777);
    dump_group(&dump, T, 0x3000, 12, 3, "b");
    dump.size -= 3; /* and torn */
    return dump;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: make_corpus DIRECTORY\n");
        return 2;
    }
    struct dump_builder dump = everything(false);
    save(argv[1], "everything", &dump);
    dump = everything(true);
    save(argv[1], "everything-swapped", &dump);
    dump = mixed();
    save(argv[1], "mixed", &dump);
    dump = interwoven();
    save(argv[1], "interwoven", &dump);
    return 0;
}
