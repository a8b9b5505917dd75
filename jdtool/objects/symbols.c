#include "jdtool/objects/symbols.h"

#include "jdtool/base/array.h"
#include "jdtool/base/bytes.h"

#include <ctype.h>
#include <elf.h>
#include <gelf.h>
#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

void symbols_add(struct symbols *symbols, const struct symbol *symbol)
{
    if (symbols->count == SYMBOLS_MAX) {
        symbols->cut = true;
        return;
    }
    if (ARRAY_RESERVE(symbols->list, symbols->count, symbols->room)) {
        symbols->failed = true;
        return;
    }
    symbols->list[symbols->count++] = *symbol;
}

const char *symbol_name(const struct symbols *symbols, const struct symbol *symbol)
{
    const char *bytes = symbols->names[symbol->group].bytes;
    size_t size = symbols->names[symbol->group].size;
    if (!bytes || symbol->name >= size) {
        return "";
    }
    size_t room = size - symbol->name < SYMBOL_NAME_MAX ? size - symbol->name : SYMBOL_NAME_MAX;
    return memchr(bytes + symbol->name, '\0', room) ? bytes + symbol->name : "";
}

static size_t underscores(const char *name)
{
    return strspn(name, "_");
}

/* perf's order among the names of one place (choose_best_symbol in tools/perf/util/symbol.c, and
 * symbols__fixup_end before it); b came first. */
static bool is_better(const struct symbols *symbols, const struct symbol *a, const struct symbol *b)
{
    if ((a->size == 0) != (b->size == 0)) {
        return a->size != 0;
    }
    if (a->size == 0) {
        return true; /* only the last of them gets a size there, which then counts */
    }
    if ((a->binding == STB_WEAK) != (b->binding == STB_WEAK)) {
        return b->binding == STB_WEAK;
    }
    if ((a->binding == STB_GLOBAL) != (b->binding == STB_GLOBAL)) {
        return a->binding == STB_GLOBAL;
    }
    const char *name_a = symbol_name(symbols, a);
    const char *name_b = symbol_name(symbols, b);
    if (underscores(name_a) != underscores(name_b)) {
        return underscores(name_a) < underscores(name_b);
    }
    return strlen(name_a) > strlen(name_b);
}

/* And no labels inside of functions: where a system call returns to, glibc 2.41 has
 * __syscall_cancel_arch_end, 46 of the 47 bytes into __syscall_cancel_arch. */
static void keep_one_of_each(struct symbols *symbols, bool last_wins)
{
    uint32_t kept = 0;
    uint64_t end = 0; /* of the functions so far */
    for (uint32_t i = 0; i < symbols->count; i++) {
        const struct symbol *symbol = &symbols->list[i];
        struct symbol *before = kept ? &symbols->list[kept - 1] : NULL;
        if (!before || before->address != symbol->address) {
            if (symbol->size == 0 && symbol->address < end) {
                continue;
            }
            symbols->list[kept++] = *symbol;
        } else if (last_wins || is_better(symbols, symbol, before)) {
            *before = *symbol;
        }
        const struct symbol *added = &symbols->list[kept - 1];
        end = added->address + added->size > end ? added->address + added->size : end;
    }
    symbols->count = kept;
}

enum { BYTES = sizeof(uint64_t), VALUES = 256 };

static unsigned byte_of(uint64_t address, unsigned byte)
{
    return address >> 8 * byte & 0xff;
}

/* Where the order ends: those before stay where they are. Of the kernel's 120,000 the last few
 * alone are out of order. */
static uint32_t count_settled(const struct symbol *list, uint32_t count)
{
    uint32_t ordered = count > 0;
    while (ordered < count && list[ordered - 1].address <= list[ordered].address) {
        ordered++;
    }
    uint64_t lowest = UINT64_MAX;
    for (uint32_t i = ordered; i < count; i++) {
        lowest = list[i].address < lowest ? list[i].address : lowest;
    }
    uint32_t settled = ordered;
    if (ordered < count) {
        ARRAY_FIRST(settled, ordered, list[settled].address <= lowest);
    }
    return settled;
}

/* By address; the order of those that share one stays: by one byte after the other, the lowest
 * first, and not by those that all have in common. */
static bool sort(struct symbol *list, uint32_t count)
{
    uint32_t places[BYTES][VALUES] = {{0}};
    uint32_t settled = count_settled(list, count);
    if (settled == count) {
        return true;
    }
    list += settled;
    count -= settled;
    struct symbol *other = malloc(count * sizeof *other);
    if (!other) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        for (unsigned byte = 0; byte < BYTES; byte++) {
            places[byte][byte_of(list[i].address, byte)]++;
        }
    }
    struct symbol *from = list;
    struct symbol *to = other;
    for (unsigned byte = 0; byte < BYTES; byte++) {
        uint32_t *place = places[byte];
        if (place[byte_of(list->address, byte)] == count) {
            continue;
        }
        for (uint32_t value = 0, before = 0; value < VALUES; value++) {
            uint32_t its = place[value];
            place[value] = before;
            before += its;
        }
        for (uint32_t i = 0; i < count; i++) {
            to[place[byte_of(from[i].address, byte)]++] = from[i];
        }
        struct symbol *swap = from;
        from = to;
        to = swap;
    }
    if (from != list) {
        memcpy(list, from, count * sizeof *list);
    }
    free(other);
    return true;
}

void symbols_finish(struct symbols *symbols, uint64_t end, bool last_wins)
{
    if (!sort(symbols->list, symbols->count)) {
        symbols->failed = true;
        symbols->count = 0; /* without an order nothing can be found */
        return;
    }
    keep_one_of_each(symbols, last_wins);
    for (uint32_t i = 0; i < symbols->count; i++) {
        struct symbol *symbol = &symbols->list[i];
        if (symbol->size == 0) {
            uint64_t next = i + 1 < symbols->count ? symbol[1].address : end;
            uint64_t size = next > symbol->address ? next - symbol->address : 1;
            symbol->size = size < UINT32_MAX ? (uint32_t)size : UINT32_MAX;
        }
    }
    if (symbols->count && symbols->count < symbols->room) {
        struct symbol *fitting = realloc(symbols->list, symbols->count * sizeof *fitting);
        if (fitting) {
            symbols->list = fitting;
            symbols->room = symbols->count;
        }
    }
}

/* How far back one that holds others is looked for. */
#define NESTED_MAX 32

const struct symbol *symbols_at(const struct symbols *symbols, uint64_t address)
{
    uint32_t low;
    ARRAY_FIRST(low, symbols->count, symbols->list[low].address <= address);
    for (uint32_t i = low; i-- > 0 && low - i <= NESTED_MAX;) {
        const struct symbol *symbol = &symbols->list[i];
        if (address - symbol->address < symbol->size) {
            return symbol;
        }
    }
    return NULL;
}

const struct symbol *symbols_named(const struct symbols *symbols, const char *name)
{
    for (uint32_t i = 0; i < symbols->count; i++) {
        if (strcmp(symbol_name(symbols, &symbols->list[i]), name) == 0) {
            return &symbols->list[i];
        }
    }
    return NULL;
}

uint64_t symbols_bytes(const struct symbols *symbols)
{
    return (uint64_t)symbols->room * sizeof *symbols->list;
}

void symbols_free(struct symbols *symbols)
{
    free(symbols->list);
    *symbols = (struct symbols){0};
}

/* ---- Of an ELF file ---- */

/* Sections by number: which hold code. */
static bool is_code(Elf *elf, size_t index)
{
    GElf_Shdr header;
    Elf_Scn *section = elf_getscn(elf, index);
    return section && gelf_getshdr(section, &header) && (header.sh_flags & SHF_EXECINSTR);
}

/* aarch64 marks where code and data begin ($x, $d, and with a suffix). Elsewhere no name is looked
 * at, of which a JVM's library has some megabytes. */
static bool is_mapping_mark(const struct symbols *symbols, const struct symbol *symbol,
                            unsigned machine)
{
    if (machine != EM_AARCH64) {
        return false;
    }
    const char *name = symbol_name(symbols, symbol);
    return name[0] == '$' && (name[1] == 'x' || name[1] == 'd') &&
           (name[2] == '\0' || name[2] == '.');
}

static bool take(const GElf_Sym *symbol, bool code)
{
    unsigned type = GELF_ST_TYPE(symbol->st_info);
    if (symbol->st_shndx == SHN_UNDEF || symbol->st_name == 0) {
        return false;
    }
    if (type == STT_NOTYPE) { /* a label in assembly */
        return code && symbol->st_shndx != SHN_ABS;
    }
    return (type == STT_FUNC || type == STT_GNU_IFUNC) && code;
}

static bool add_table(struct symbols *symbols, const struct elf_file *file, Elf_Scn *section,
                      const GElf_Shdr *header, uint8_t group)
{
    Elf *elf = file->elf;
    Elf_Scn *strings_section = elf_getscn(elf, header->sh_link);
    Elf_Data *strings = strings_section ? elf_getdata(strings_section, NULL) : NULL;
    Elf_Data *table = elf_getdata(section, NULL);
    if (!table || !strings || !strings->d_buf || header->sh_entsize == 0) {
        return false;
    }
    symbols->names[group].bytes = strings->d_buf;
    symbols->names[group].size = strings->d_size;
    size_t count = table->d_size / gelf_fsize(elf, ELF_T_SYM, 1, EV_CURRENT);
    size_t known = SHN_UNDEF; /* the section asked for last */
    bool known_is_code = false;
    for (size_t i = 1; i < count && i <= INT32_MAX && !symbols->cut; i++) {
        GElf_Sym symbol;
        if (!gelf_getsym(table, (int)i, &symbol)) {
            break;
        }
        if (symbol.st_shndx != known) {
            known = symbol.st_shndx;
            known_is_code = known < SHN_LORESERVE && is_code(elf, known);
        }
        if (!take(&symbol, known_is_code)) {
            continue;
        }
        struct symbol kept = {
            .address = symbol.st_value,
            .size = symbol.st_size < UINT32_MAX ? (uint32_t)symbol.st_size : UINT32_MAX,
            .name = symbol.st_name,
            .group = group,
            .binding = GELF_ST_BIND(symbol.st_info),
        };
        if (!is_mapping_mark(symbols, &kept, file->machine)) {
            symbols_add(symbols, &kept);
        }
    }
    return true;
}

static bool add(struct symbols *symbols, const struct elf_file *file, unsigned type, uint8_t group)
{
    for (Elf_Scn *section = NULL; (section = elf_nextscn(file->elf, section));) {
        GElf_Shdr header;
        if (gelf_getshdr(section, &header) && header.sh_type == type) {
            return add_table(symbols, file, section, &header, group);
        }
    }
    return false;
}

bool elf_symbols_add(struct symbols *symbols, const struct elf_file *file, uint8_t group)
{
    return add(symbols, file, SHT_SYMTAB, group);
}

bool elf_symbols_add_dynamic(struct symbols *symbols, const struct elf_file *file, uint8_t group)
{
    return add(symbols, file, SHT_DYNSYM, group);
}

/* Where the entries are: behind a header in .plt, or without one in .plt.sec, which Intel's CET has
 * calls go to. False: there is none that is known. */
static bool find_plt(const struct elf_file *file, uint64_t *address, uint64_t *size)
{
    size_t bytes;
    GElf_Shdr header;
    Elf_Scn *section = elf_file_section(file, ".plt.sec", &bytes);
    bool second = section != NULL;
    if (!second) {
        section = elf_file_section(file, ".plt", &bytes);
    }
    if (!section || !gelf_getshdr(section, &header)) {
        return false;
    }
    uint64_t skip = second ? 0 : file->machine == EM_AARCH64 ? 32 : 16;
    *address = header.sh_addr + skip;
    *size = header.sh_size > skip ? header.sh_size - skip : 0;
    return file->machine == EM_X86_64 || file->machine == EM_AARCH64;
}

static Elf_Data *table_of(Elf_Scn *section, GElf_Shdr *header)
{
    return section && gelf_getshdr(section, header) ? elf_getdata(section, NULL) : NULL;
}

#define PLT_ENTRY 16

void elf_symbols_add_plt(struct symbols *symbols, const struct elf_file *file, uint8_t group,
                         char **names)
{
    Elf *elf = file->elf;
    size_t bytes;
    uint64_t address;
    uint64_t size;
    GElf_Shdr relocations_header;
    GElf_Shdr symbols_header;
    struct bytes text = {0};
    *names = NULL;
    Elf_Data *relocations =
        table_of(elf_file_section(file, ".rela.plt", &bytes), &relocations_header);
    Elf_Data *dynamic =
        relocations ? table_of(elf_getscn(elf, relocations_header.sh_link), &symbols_header) : NULL;
    if (!dynamic || relocations_header.sh_type != SHT_RELA || !find_plt(file, &address, &size)) {
        return;
    }
    bytes_u8(&text, 0);
    for (int i = 0; i < (int)(size / PLT_ENTRY) && i < UINT16_MAX; i++) {
        GElf_Rela relocation;
        GElf_Sym symbol;
        if (!gelf_getrela(relocations, i, &relocation)) {
            break;
        }
        size_t number = GELF_R_SYM(relocation.r_info);
        const char *name =
            number && number <= INT32_MAX && gelf_getsym(dynamic, (int)number, &symbol)
                ? elf_strptr(elf, symbols_header.sh_link, symbol.st_name)
                : NULL;
        if (name && name[0]) { /* those without are resolved by a function (IFUNC) */
            struct symbol entry = {.address = address + (uint64_t)i * PLT_ENTRY,
                                   .size = PLT_ENTRY,
                                   .name = (uint32_t)text.size,
                                   .group = group,
                                   .binding = STB_GLOBAL};
            bytes_put(&text, name, strnlen(name, SYMBOL_NAME_MAX - 8));
            bytes_string(&text, "@plt");
            symbols_add(symbols, &entry);
        }
    }
    symbols->names[group].bytes = (char *)text.at;
    symbols->names[group].size = text.failed ? 0 : text.size;
    *names = (char *)text.at;
}

/* ---- C++ ---- */

struct text {
    char *out;
    size_t room;
    size_t size;
    jmp_buf full;
};

/*
 * A short name can stand for an endless one (substitutions of substitutions). Nothing but a jump
 * ends libiberty's printing early; it holds no memory but its stack.
 */
static void put_piece(const char *piece, size_t size, void *context)
{
    struct text *text = context;
    size_t fits = text->room - 1 - text->size;
    memcpy(text->out + text->size, piece, size < fits ? size : fits);
    text->size += size < fits ? size : fits;
    if (size > fits) {
        longjmp(text->full, 1);
    }
}

/* Rust's older scheme is C++'s with a hash behind the name. */
static void drop_rust_hash(char *name)
{
    enum { HASH = 19 }; /* "::h" and 16 digits */
    size_t size = strlen(name);
    if (size <= HASH || strncmp(name + size - HASH, "::h", 3) != 0) {
        return;
    }
    for (size_t i = size - 16; i < size; i++) {
        if (!isxdigit((unsigned char)name[i])) {
            return;
        }
    }
    name[size - HASH] = '\0';
}

bool demangle(const char *name, char *out, size_t room)
{
    static const char plt[] = "@plt";
    struct text text = {.out = out, .room = room};
    if (strncmp(name, "_Z", 2) != 0 || strnlen(name, DEMANGLE_INPUT_MAX) == DEMANGLE_INPUT_MAX) {
        return false;
    }
    /* Without parameters or options it is what perf asks for (symbol-elf.c, demangle_sym). */
    if (setjmp(text.full) == 0 &&
        !cplus_demangle_v3_callback(name, DMGL_NO_OPTS, put_piece, &text)) {
        return false;
    }
    out[text.size] = '\0';
    drop_rust_hash(out);
    /* What stands behind a mangled name is dropped, but not this mark of ours. */
    size_t size = strlen(name);
    size_t end = strlen(out);
    if (size >= sizeof plt && strcmp(name + size - (sizeof plt - 1), plt) == 0 &&
        end + sizeof plt <= room) {
        memcpy(out + end, plt, sizeof plt);
    }
    return true;
}
