/*
 * Fuzzes the reader of ELF files. The input is a byte that tells what the rest is: 0 a file that is
 * mapped, 1 one that is read, 2 symbols of the kernel, 3 a mangled name.
 */
#include "fuzz_directory.h"

#include "jdtool/confined/confined.h"
#include "jdtool/objects/build_id.h"
#include "jdtool/objects/frame_row.h"
#include "jdtool/objects/kallsyms.h"
#include "jdtool/objects/objects.h"
#include "jdtool/objects/symbols.h"
#include "tests/fuzz/silent.h"
#include "tests/objects_counts.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char path[64];

enum { ROWS_FROM = 16, ROWS_TO = 1 << 20 };

static void begin(void)
{
    snprintf(path, sizeof path, "%s/made", directory);
}

/* A new file each time: what was mapped before must not change. */
static void write_file(const uint8_t *data, size_t size, mode_t mode)
{
    (void)unlink(path);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size ||
        (fchmod(fd, mode) != 0 && !confined_here())) {
        abort();
    }
    close(fd);
}

/* A stack that has every word: no expression is refused for want of one. */
static bool read_word(void *context, uint64_t address, uint64_t *word)
{
    (void)context;
    *word = address * 3;
    return true;
}

static void evaluate(const struct native_row *row)
{
    struct native_regs regs = {.known = (UINT64_C(1) << NATIVE_REGS) - 1};
    uint64_t value;
    for (unsigned i = 0; i <= NATIVE_PLACES; i++) {
        const struct native_place *place = i < NATIVE_PLACES ? &row->places[i] : &row->cfa;
        if (place->rule == NATIVE_AT_EXPRESSION || place->rule == NATIVE_EXPRESSION) {
            (void)native_evaluate(place, &regs, 64, read_word, NULL, &value);
        }
    }
}

static void check_text(const char *text)
{
    if (text && strlen(text) > 1u << 20) {
        abort();
    }
}

static void ask(struct objects *objects, struct object *object, uint64_t address)
{
    struct object_symbol symbol;
    const struct object_inline *inlines;
    if (object_symbol(object, address, &symbol)) {
        check_text(objects_demangle(objects, symbol.name));
        if (symbol.size == 0 || address - symbol.address >= symbol.size) {
            fprintf(stderr, "a symbol that is not there\n");
            abort();
        }
    }
    size_t count = object_inlines(object, address, &inlines);
    if (count > OBJECT_INLINES_MAX + 1) {
        fprintf(stderr, "too many inlined functions\n");
        abort();
    }
    for (size_t i = 0; i < count; i++) {
        check_text(inlines[i].name);
        check_text(inlines[i].file);
    }
    const struct native_row *row = object_row(object, address);
    if (row->found) {
        evaluate(row);
    }
    (void)object_is_root(object, address);
}

/* Rows come in the order of addresses, inside what was asked for. */
static int take_row(void *context, uint64_t address, const struct native_row *row)
{
    uint64_t *last = context;
    if (address < *last || address >= ROWS_TO) {
        fprintf(stderr, "a row that is out of order\n");
        abort();
    }
    *last = address;
    if (row->found) {
        evaluate(row);
    }
    return 0;
}

static void ask_build_id(void)
{
    uint8_t id[BUILD_ID_MAX];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    (void)build_id_read(fd, id);
    close(fd);
}

static void ask_file(const uint8_t *data, size_t size, mode_t mode)
{
    struct objects_options options = {
        .machine = EM_X86_64, .build_id_dir = "/dev/shm/no-build-ids", .here = true};
    struct objects *objects;
    struct object_place place = {.file.path = path};
    uint8_t id[BUILD_ID_MAX];
    write_file(data, size, mode);
    ask_build_id();
    if (objects_new(&options, &objects) != 0) {
        return;
    }
    struct object *object = objects_find(objects, &place);
    bool is_open = object_open(object);
    if (!is_open && object_state(object) != OBJECT_UNSOUND) {
        fprintf(stderr, "a file that is not looked at\n");
        abort();
    }
    if (is_open) {
        (void)object_build_id(object, id);
        for (uint64_t offset = 0; offset < size; offset += 56) {
            uint64_t address;
            if (object_address(object, offset, &address)) {
                ask(objects, object, address);
            }
        }
        for (uint64_t address = 0; address < 1024; address += 40) {
            ask(objects, object, address);
        }
        uint64_t first = ROWS_FROM;
        (void)object_rows(object, ROWS_FROM, ROWS_TO, take_row, &first);
    }
    objects_free(objects);
}

static void ask_kernel(const uint8_t *data, size_t size)
{
    struct kallsyms kallsyms;
    write_file(data, size, 0600);
    if (kallsyms_read(path, &kallsyms) != 0) {
        return;
    }
    for (uint32_t i = 0; i < kallsyms.symbols.count; i++) {
        const struct symbol *symbol = &kallsyms.symbols.list[i];
        check_text(symbol_name(&kallsyms.symbols, symbol));
        if (symbols_at(&kallsyms.symbols, symbol->address) != symbol ||
            symbol->module > kallsyms.module_count) {
            fprintf(stderr, "a function that is not found\n");
            abort();
        }
    }
    kallsyms_free(&kallsyms);
}

static void demangle_text(const uint8_t *data, size_t size)
{
    char out[512];
    char *name = malloc(size + 1);
    if (name) {
        memcpy(name, data, size);
        name[size] = '\0';
        if (demangle(name, out, sizeof out) && strlen(out) >= sizeof out) {
            abort();
        }
        free(name);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) {
        return 0;
    }
    switch (data[0]) {
    case 2:
        ask_kernel(data + 1, size - 1);
        break;
    case 3:
        demangle_text(data + 1, size - 1);
        break;
    default:
        ask_file(data + 1, size - 1, data[0] == 1 ? 0666 : 0600);
    }
    return 0;
}
