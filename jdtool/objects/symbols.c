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

/* By address; the order of those that share one stays. */
static int by_address(const void *left, const void *right)
{
    const struct symbol *a = left;
    const struct symbol *b = right;
    return (a->address > b->address) - (a->address < b->address);
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

/* qsort of the C library need not be stable, and the order among equals matters: a merge sort. */
static bool sort(struct symbol *list, uint32_t count)
{
    uint32_t i = 1;
    while (i < count && list[i - 1].address <= list[i].address) {
        i++;
    }
    if (i >= count) {
        return true; /* the kernel's are in order */
    }
    struct symbol *other = malloc(count * sizeof *other);
    if (!other) {
        return false;
    }
    struct symbol *from = list;
    struct symbol *to = other;
    for (uint32_t width = 1; width < count; width *= 2) {
        for (uint32_t start = 0; start < count; start += 2 * width) {
            uint32_t left = start;
            uint32_t middle = start + width < count ? start + width : count;
            uint32_t right = middle;
            uint32_t end = middle + width < count ? middle + width : count;
            for (uint32_t at = start; at < end; at++) {
                bool take_left =
                    left < middle && (right == end || by_address(&from[left], &from[right]) <= 0);
                to[at] = from[take_left ? left++ : right++];
            }
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
    uint32_t low = 0;
    uint32_t high = symbols->count;
    while (low < high) { /* the first that begins behind the address */
        uint32_t middle = low + (high - low) / 2;
        if (symbols->list[middle].address <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
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
