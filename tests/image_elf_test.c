/* libdwfl and KDAB hotspot's search find a symbol for every address of an image, and libdwfl its
 * lines. */
#include "test.h"

#include "jdtool/images/dwarf.h"
#include "jdtool/images/image_elf.h"
#include "tests/scratch.h"

#include <elfutils/libdwfl.h>
#include <gelf.h>

#define BASE     UINT64_C(0x7f7e545e0000)
#define CODE     UINT64_C(0x10000000)
#define DISTANCE 0x1000
#define SIZE     64
#define MOST     40

/* Symbol i is called that and stands at CODE + i * DISTANCE. */
static const char *name_of(uint32_t i)
{
    static char name[32];
    snprintf(name, sizeof name, "Some.method%u()", i);
    return name;
}

static const char *write_image(void **state, uint32_t count)
{
    static const uint8_t code[SIZE] = {0xc3};
    const char *path = scratch_path(state, "image.so");
    uint8_t build_id[BUILD_ID_MAX];
    struct image_elf *elf;
    assert_int_equal(image_elf_open(path, EM_X86_64, &elf), 0);
    for (uint32_t i = 0; i < count; i++) {
        image_elf_add(elf, CODE + (uint64_t)i * DISTANCE, SIZE, code, name_of(i));
    }
    assert_int_equal(image_elf_finish(elf, NULL, build_id), 0);
    return path;
}

static Dwfl_Module *report(const char *path, Dwfl **dwfl)
{
    static const Dwfl_Callbacks callbacks = {
        .find_elf = dwfl_build_id_find_elf,
        .find_debuginfo = dwfl_standard_find_debuginfo,
        .section_address = dwfl_offline_section_address,
    };
    *dwfl = dwfl_begin(&callbacks);
    assert_non_null(*dwfl);
    dwfl_report_begin(*dwfl);
    Dwfl_Module *module = dwfl_report_elf(*dwfl, "image.so", path, -1, BASE, false);
    assert_non_null(module);
    assert_int_equal(dwfl_report_end(*dwfl, NULL, NULL), 0);
    return module;
}

/* As perfparser's SymbolCacheEntry. */
struct entry {
    uint64_t offset;
    uint64_t value;
    uint64_t size;
    const char *name;
};

static int by_offset(const void *left, const void *right)
{
    const struct entry *a = left;
    const struct entry *b = right;
    return (a->offset > b->offset) - (a->offset < b->offset);
}

/* Ordered by one and searched by the other, as there: std::lower_bound, then the one before. */
static const char *search(const struct entry *entries, size_t count, uint64_t offset)
{
    size_t first = 0;
    size_t length = count;
    while (length > 0) {
        size_t half = length / 2;
        if (entries[first + half].value < offset) {
            first += half + 1;
            length -= half + 1;
        } else {
            length = half;
        }
    }
    if (first < count && entries[first].value == offset) {
        return entries[first].name;
    }
    if (first == 0) {
        return "";
    }
    const struct entry *before = &entries[first - 1];
    bool inside =
        before->value <= offset && (before->value + before->size > offset || before->size == 0);
    return inside ? before->name : "";
}

TEST_WITH(every_place_has_its_symbol, scratch_create, scratch_remove)
{
    for (uint32_t count = 1; count <= MOST; count++) {
        const char *path = write_image(state, count);
        Dwfl *dwfl;
        Dwfl_Module *module = report(path, &dwfl);
        struct entry entries[MOST + 8];
        size_t entry_count = 0;
        int symbols = dwfl_module_getsymtab(module);
        assert_in_range(symbols, count + 1, MOST + 8);
        for (int i = 0; i < symbols; i++) {
            GElf_Sym symbol;
            GElf_Addr address;
            const char *name =
                dwfl_module_getsym_info(module, i, &symbol, &address, NULL, NULL, NULL);
            if (name) {
                entries[entry_count++] =
                    (struct entry){address - BASE, symbol.st_value, symbol.st_size, name};
            }
        }
        qsort(entries, entry_count, sizeof *entries, by_offset);
        for (uint32_t i = 0; i < count; i++) {
            for (uint64_t at = 0; at < SIZE; at += SIZE - 1) {
                uint64_t offset = CODE + (uint64_t)i * DISTANCE + at;
                assert_string_equal(dwfl_module_addrname(module, BASE + offset), name_of(i));
                assert_string_equal(search(entries, entry_count, offset), name_of(i));
            }
        }
        dwfl_end(dwfl);
    }
}

static uint32_t line_of(uint32_t function, uint32_t row)
{
    return function * 7 % 900 + row + 1;
}

/* Of large debugging information, which is packed. */
TEST_WITH(every_place_has_its_line, scratch_create, scratch_remove)
{
    enum { FUNCTIONS = 400, ROWS = 16 };
    const char *path = scratch_path(state, "lines.so");
    struct source_path *sources;
    assert_int_equal(source_path_open(NULL, &sources), 0);
    struct dwarf *dwarf = dwarf_new(sources, NULL);
    uint8_t build_id[BUILD_ID_MAX];
    struct image_elf *elf;
    char names[FUNCTIONS][32];
    assert_int_equal(image_elf_open(path, EM_X86_64, &elf), 0);
    dwarf_unit_begin(dwarf, "a/A.java");
    for (uint32_t i = 0; i < FUNCTIONS; i++) {
        struct dwarf_row rows[ROWS];
        for (uint32_t k = 0; k < ROWS; k++) {
            rows[k] =
                (struct dwarf_row){.offset = k * 4, .line = line_of(i, k), .file = "a/A.java"};
        }
        memcpy(names[i], name_of(i), sizeof names[i]);
        const struct dwarf_function function = {.address = CODE + (uint64_t)i * DISTANCE,
                                                .size = SIZE,
                                                .name = names[i],
                                                .line = 1,
                                                .rows = rows,
                                                .row_count = ROWS};
        image_elf_add(elf, function.address, SIZE, NULL, names[i]);
        dwarf_add_function(dwarf, &function);
    }
    dwarf_unit_end(dwarf);
    uint64_t plain = dwarf_size(dwarf);
    assert_int_equal(image_elf_finish(elf, dwarf, build_id), 0);
    dwarf_free(dwarf);
    source_path_close(sources);

    Dwfl *dwfl;
    Dwfl_Module *module = report(path, &dwfl);
    for (uint32_t i = 0; i < FUNCTIONS; i++) {
        for (uint32_t k = 0; k < ROWS; k++) {
            uint64_t at = BASE + CODE + (uint64_t)i * DISTANCE + k * 4;
            Dwfl_Line *line = dwfl_module_getsrc(module, at);
            int number = 0;
            assert_non_null(line);
            assert_non_null(dwfl_lineinfo(line, NULL, &number, NULL, NULL, NULL));
            assert_int_equal(number, line_of(i, k));
        }
    }
    dwfl_end(dwfl);

    uint64_t packed = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    Elf *file = elf_begin(fd, ELF_C_READ, NULL);
    for (Elf_Scn *section = NULL; (section = elf_nextscn(file, section)) != NULL;) {
        GElf_Shdr header;
        assert_non_null(gelf_getshdr(section, &header));
        packed += header.sh_flags & SHF_COMPRESSED ? header.sh_size : 0;
    }
    elf_end(file);
    close(fd);
    assert_in_range(packed, 1000, plain / 2);
}

int main(void)
{
    (void)elf_version(EV_CURRENT);
    return tests_run(NULL, NULL);
}
