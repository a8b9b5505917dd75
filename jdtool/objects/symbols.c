#include "jdtool/objects/symbols.h"

#include "jdtool/base/array.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

void symbols_add(struct symbols *symbols, const struct symbol *symbol)
{
    if (symbols->count == SYMBOLS_MAX) {
        symbols->cut = true;
        return;
    }
    if (array_reserve(&symbols->list, symbols->count, &symbols->room, sizeof *symbols->list) < 0) {
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
