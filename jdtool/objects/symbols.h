/*
 * The functions of a file or of the kernel, by address: a sorted array, made once. Of several names
 * for one address it keeps the one that perf shows.
 */
#ifndef JD_TOOL_SYMBOLS_H
#define JD_TOOL_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Names are strings in one block, which must outlive the table and need not be the table's own. */
struct symbol {
    uint64_t address;
    uint32_t size;   /* 0 until symbols_finish */
    uint32_t name;   /* offset in the block */
    uint8_t group;   /* the block: of the several a table may have names from */
    uint8_t binding; /* STB_* */
    uint16_t module; /* of the kernel's: a number of the caller's */
};

#define SYMBOLS_MAX     (UINT32_C(4) << 20) /* beyond this they are left out, and `cut` is set */
#define SYMBOL_GROUPS   5
#define SYMBOL_NAME_MAX 65536 /* longer ones are not believed */

struct symbols {
    struct symbol *list;
    uint32_t count;
    uint32_t room;
    struct {
        const char *bytes;
        size_t size;
    } names[SYMBOL_GROUPS];
    bool cut;
    bool failed; /* no memory: what is there is used */
};

/* Zero one to start. Adds one, in any order; size 0: not known. */
void symbols_add(struct symbols *symbols, const struct symbol *symbol);

/*
 * Sorts, keeps one name an address and none without a size inside of one that has some, and ends
 * symbols without a size at the next one; the last one at `end`. last_wins: of several at one
 * address the last added (the kernel's, which have no sizes).
 */
void symbols_finish(struct symbols *symbols, uint64_t end, bool last_wins);

/* The one that an address lies in, the innermost of nested ones. NULL: none. */
const struct symbol *symbols_at(const struct symbols *symbols, uint64_t address);

/* The one of that name. NULL: none. Looks at all of them. */
const struct symbol *symbols_named(const struct symbols *symbols, const char *name);

/* Its name; "" if it lies outside its block. */
const char *symbol_name(const struct symbols *symbols, const struct symbol *symbol);

uint64_t symbols_bytes(const struct symbols *symbols); /* memory it takes */
void symbols_free(struct symbols *symbols);

#endif
