/*
 * The functions of a file or of the kernel, by address. Of several names for one address it keeps
 * the one that perf shows. A JVM's library has 50,000, of which a profile asks for some: they are
 * spread over pages by address, and a page is put in order when it is asked for.
 */
#ifndef JD_TOOL_SYMBOLS_H
#define JD_TOOL_SYMBOLS_H

#include "jdtool/objects/elf_file.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Names are strings in one block, which must outlive the table and need not be the table's own. */
struct symbol {
    uint64_t address;
    uint32_t size;   /* 0: not known yet */
    uint32_t name;   /* offset in the block */
    uint8_t group;   /* the block: of the several a table may have names from */
    uint8_t binding; /* STB_* */
    uint16_t module; /* of the kernel's: a number of the caller's */
};

#define SYMBOLS_MAX     (UINT32_C(4) << 20) /* beyond this they are left out, and `cut` is set */
#define SYMBOL_GROUPS   5
#define SYMBOL_NAME_MAX 65536 /* longer ones are not believed */

struct symbol_page;

struct symbols {
    struct symbol *list; /* in order, with their sizes, after symbols_finish */
    uint32_t count;
    uint32_t room;
    uint32_t *order;           /* places in the list, by pages; NULL: it is in order */
    struct symbol_page *pages; /* parts of this span */
    uint32_t page_count;
    struct symbol_span {
        uint64_t lowest;
        unsigned shift; /* a part has 2^shift addresses */
    } span;
    uint64_t end;
    bool last_wins;
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
 * Makes them ready to be asked. Of each address one name is kept, and none without a size inside of
 * one that has some; symbols without a size end at the next one, the last one at `end`. last_wins:
 * of several at one address the last added (the kernel's, which have no sizes).
 */
void symbols_ready(struct symbols *symbols, uint64_t end, bool last_wins);

/* The same, all at once: the list is what is kept, in order. */
void symbols_finish(struct symbols *symbols, uint64_t end, bool last_wins);

/* The one that an address lies in, the innermost of nested ones. NULL: none. */
const struct symbol *symbols_at(const struct symbols *symbols, uint64_t address);

/* The one of that name, after symbols_finish. NULL: none. Looks at all of them. */
const struct symbol *symbols_named(const struct symbols *symbols, const char *name);

/* Its name; "" if it lies outside its block. */
const char *symbol_name(const struct symbols *symbols, const struct symbol *symbol);

uint64_t symbols_bytes(const struct symbols *symbols); /* memory it takes */
void symbols_free(struct symbols *symbols);

/* ---- Of an ELF file ---- */

/* The functions that an ELF file's symbol tables name. */

/* Adds those of .symtab. False: the file has none. The names' block is the file's, under that
 * group. */
bool elf_symbols_add(struct symbols *symbols, const struct elf_file *file, uint8_t group);

/* Adds those of .dynsym: what the file offers to others. */
bool elf_symbols_add_dynamic(struct symbols *symbols, const struct elf_file *file, uint8_t group);

/*
 * Adds the entries of the procedure linkage table, each with the name of what it calls and "@plt"
 * behind it. *names gets the block of the names, from malloc, which must outlive the table.
 */
void elf_symbols_add_plt(struct symbols *symbols, const struct elf_file *file, uint8_t group,
                         char **names);

/* ---- C++ ---- */

/* Names of C++ functions as people read them. */

#define DEMANGLE_INPUT_MAX 4096 /* longer names are left as they are */

/*
 * Puts the name without its parameters, as perf shows it ("G1Allocator::unsafe_max_tlab_alloc"),
 * into [out, out + room), cut where there is no more room. False: it is not a mangled one.
 */
bool demangle(const char *name, char *out, size_t room);

#endif
