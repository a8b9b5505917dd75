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

/* ---- Order ---- */

/* In which of the equal parts of a span an address lies. */
static uint64_t part_of(const struct symbol_span *span, uint64_t address)
{
    return (address - span->lowest) >> span->shift;
}

/* Those with these numbers; order NULL: the first `count`. */
static struct symbol_span span_of(const struct symbol *list, const uint32_t *order, uint32_t count,
                                  uint32_t parts)
{
    struct symbol_span span = {.lowest = count ? UINT64_MAX : 0};
    uint64_t highest = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t address = list[order ? order[i] : i].address;
        span.lowest = address < span.lowest ? address : span.lowest;
        highest = address > highest ? address : highest;
    }
    while (part_of(&span, highest) >= parts) {
        span.shift++;
    }
    return span;
}

/* Their numbers into `to`, by parts; within a part their order stays. ends: zeros; becomes where
 * each part ends. */
static void spread(const struct symbol *list, const uint32_t *order, uint32_t count,
                   const struct symbol_span *span, uint32_t parts, uint32_t *ends, uint32_t *to)
{
    uint32_t before = 0;
    for (uint32_t i = 0; i < count; i++) {
        ends[part_of(span, list[order ? order[i] : i].address)]++;
    }
    for (uint32_t part = 0; part < parts; part++) {
        uint32_t its = ends[part];
        ends[part] = before;
        before += its;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t number = order ? order[i] : i;
        to[ends[part_of(span, list[number].address)]++] = number;
    }
}

static void sort_few(const struct symbol *list, uint32_t *order, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        uint32_t number = order[i];
        uint32_t at = i;
        for (; at > 0 && list[order[at - 1]].address > list[number].address; at--) {
            order[at] = order[at - 1];
        }
        order[at] = number;
    }
}

/* By address; the order of those that share one stays. Many are spread, and each part sorted. */
static bool sort(const struct symbol *list, uint32_t *order, uint32_t count)
{
    enum { FEW = 64, PARTS = 256 };
    uint32_t ends[PARTS] = {0};
    if (count <= FEW) {
        sort_few(list, order, count);
        return true;
    }
    struct symbol_span span = span_of(list, order, count, PARTS);
    uint32_t *sorted = malloc(count * sizeof *sorted);
    if (!sorted) {
        return false;
    }
    spread(list, order, count, &span, PARTS, ends, sorted);
    memcpy(order, sorted, count * sizeof *order);
    free(sorted);
    bool is_done = true;
    for (uint32_t part = 0, first = 0; part < PARTS && ends[0] < count; part++) {
        is_done &= sort(list, order + first, ends[part] - first);
        first = ends[part];
    }
    return is_done;
}

static uint64_t later(uint64_t end, const struct symbol *symbol)
{
    return symbol->address + symbol->size > end ? symbol->address + symbol->size : end;
}

/* And no labels inside of functions: where a system call returns to, glibc 2.41 has
 * __syscall_cancel_arch_end, 46 of the 47 bytes into __syscall_cancel_arch. end: of the functions
 * before these. Returns how many are kept. */
static uint32_t keep_one_of_each(const struct symbols *symbols, uint32_t *order, uint32_t count,
                                 uint64_t end)
{
    const struct symbol *list = symbols->list;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct symbol *symbol = &list[order[i]];
        const struct symbol *before = kept ? &list[order[kept - 1]] : NULL;
        if (!before || before->address != symbol->address) {
            if (symbol->size == 0 && symbol->address < end) {
                continue;
            }
            order[kept++] = order[i];
        } else if (symbols->last_wins || is_better(symbols, symbol, before)) {
            order[kept - 1] = order[i];
        }
        end = later(end, &list[order[kept - 1]]);
    }
    return kept;
}

/* Those of one part of the span, at some places of their order. */
struct symbol_page {
    uint64_t end; /* of the functions of earlier pages */
    uint32_t first, count;
    bool is_settled; /* sorted, with one of each address */
};

enum { PAGE = 32 }; /* how many symbols it has, more or less */

static bool make_pages(struct symbols *symbols)
{
    uint32_t count = symbols->count;
    uint32_t pages = count / PAGE + 1;
    uint32_t *ends = calloc(pages, sizeof *ends);
    symbols->order = malloc((count + (size_t)1) * sizeof *symbols->order);
    symbols->pages = calloc(pages, sizeof *symbols->pages);
    if (!ends || !symbols->order || !symbols->pages) {
        free(ends);
        return false;
    }
    symbols->page_count = pages;
    symbols->span = span_of(symbols->list, NULL, count, pages);
    spread(symbols->list, NULL, count, &symbols->span, pages, ends, symbols->order);
    uint64_t end = 0;
    for (uint32_t i = 0, first = 0; i < pages; i++) {
        symbols->pages[i] =
            (struct symbol_page){.end = end, .first = first, .count = ends[i] - first};
        for (; first < ends[i]; first++) {
            end = later(end, &symbols->list[symbols->order[first]]);
        }
    }
    free(ends);
    return true;
}

/* All of them are one page where they are in order already. */
static struct symbol_page page_at(const struct symbols *symbols, uint32_t number)
{
    if (!symbols->pages) {
        return (struct symbol_page){.count = symbols->count, .is_settled = true};
    }
    struct symbol_page *page = &symbols->pages[number];
    if (!page->is_settled) {
        uint32_t *order = symbols->order + page->first;
        page->is_settled = true;
        page->count = sort(symbols->list, order, page->count)
                          ? keep_one_of_each(symbols, order, page->count, page->end)
                          : 0; /* without an order nothing can be found */
    }
    return *page;
}

static struct symbol *symbol_of(const struct symbols *symbols, uint32_t place)
{
    return &symbols->list[symbols->order ? symbols->order[place] : place];
}

static void fit(struct symbols *symbols)
{
    struct symbol *fitting = symbols->count && symbols->count < symbols->room
                                 ? realloc(symbols->list, symbols->count * sizeof *fitting)
                                 : NULL;
    if (fitting) {
        symbols->list = fitting;
        symbols->room = symbols->count;
    }
}

static void forget_order(struct symbols *symbols)
{
    free(symbols->order);
    free(symbols->pages);
    symbols->order = NULL;
    symbols->pages = NULL;
    symbols->page_count = 0;
    symbols->span = (struct symbol_span){0};
}

void symbols_ready(struct symbols *symbols, uint64_t end, bool last_wins)
{
    symbols->last_wins = last_wins;
    symbols->end = end;
    fit(symbols);
    if (symbols->count && !make_pages(symbols)) {
        symbols->failed = true;
        symbols->count = 0;
        forget_order(symbols);
    }
}

/* One without a size ends at the next one. */
static void set_end(struct symbol *symbol, uint64_t end)
{
    uint64_t size = end > symbol->address ? end - symbol->address : 1;
    symbol->size = size < UINT32_MAX ? (uint32_t)size : UINT32_MAX;
}

void symbols_finish(struct symbols *symbols, uint64_t end, bool last_wins)
{
    symbols_ready(symbols, end, last_wins);
    struct symbol *list = symbols->count ? malloc(symbols->count * sizeof *list) : NULL;
    uint32_t count = 0;
    for (uint32_t i = 0; i < symbols->page_count && list; i++) {
        const struct symbol_page page = page_at(symbols, i);
        for (uint32_t k = 0; k < page.count; k++) {
            list[count++] = *symbol_of(symbols, page.first + k);
        }
    }
    symbols->failed |= symbols->count && !list;
    if (list) {
        free(symbols->list);
        symbols->list = list;
        symbols->room = symbols->count;
    }
    symbols->count = count;
    forget_order(symbols);
    for (uint32_t i = 0; i < count; i++) {
        if (list[i].size == 0) {
            set_end(&list[i], i + 1 < count ? list[i + 1].address : end);
        }
    }
    fit(symbols);
}

/* ---- Questions ---- */

/* Of the symbol behind one: where it begins. */
static uint64_t next_begin(const struct symbols *symbols, uint32_t number, uint32_t place)
{
    struct symbol_page page = page_at(symbols, number);
    while (place == page.first + page.count && ++number < symbols->page_count) {
        page = page_at(symbols, number);
        place = page.first;
    }
    return place < page.first + page.count ? symbol_of(symbols, place)->address : symbols->end;
}

/* How far back one that holds others is looked for. */
#define NESTED_MAX 32

const struct symbol *symbols_at(const struct symbols *symbols, uint64_t address)
{
    if (address < symbols->span.lowest) {
        return NULL;
    }
    uint64_t part = part_of(&symbols->span, address);
    uint32_t last = symbols->page_count ? symbols->page_count - 1 : 0;
    uint32_t left = NESTED_MAX;
    for (uint32_t number = (part < last ? (uint32_t)part : last) + 1; number-- > 0 && left;) {
        const struct symbol_page page = page_at(symbols, number);
        uint32_t low;
        ARRAY_FIRST(low, page.count, symbol_of(symbols, page.first + low)->address <= address);
        for (uint32_t i = low; i-- > 0 && left; left--) {
            struct symbol *symbol = symbol_of(symbols, page.first + i);
            if (symbol->size == 0) {
                set_end(symbol, next_begin(symbols, number, page.first + i + 1));
            }
            if (address - symbol->address < symbol->size) {
                return symbol;
            }
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
    return (uint64_t)symbols->room * sizeof *symbols->list +
           (symbols->order ? (uint64_t)symbols->count * sizeof *symbols->order : 0) +
           (uint64_t)symbols->page_count * sizeof *symbols->pages;
}

void symbols_free(struct symbols *symbols)
{
    forget_order(symbols);
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

/* Room for so many more at once: an array that grows is copied, and leaves its pages behind. */
static void expect(struct symbols *symbols, size_t more)
{
    size_t room = symbols->count + (more < SYMBOLS_MAX ? more : SYMBOLS_MAX);
    struct symbol *list = room > symbols->room ? realloc(symbols->list, room * sizeof *list) : NULL;
    if (list) {
        symbols->list = list;
        symbols->room = (uint32_t)room;
    }
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
    expect(symbols, count);
    bool is_plain = gelf_getclass(elf) == ELFCLASS64; /* libelf's own is read one by one */
    size_t known = SHN_UNDEF;                         /* the section asked for last */
    bool known_is_code = false;
    for (size_t i = 1; i < count && i <= INT32_MAX && !symbols->cut; i++) {
        GElf_Sym symbol;
        if (is_plain) {
            memcpy(&symbol, (const uint8_t *)table->d_buf + i * sizeof symbol, sizeof symbol);
        } else if (!gelf_getsym(table, (int)i, &symbol)) {
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
