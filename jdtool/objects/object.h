/* What the files of this room know of an object; others know struct object by its name only. */
#ifndef JD_TOOL_OBJECT_H
#define JD_TOOL_OBJECT_H

#include "jdtool/base/hash_map.h"
#include "jdtool/base/intern.h"
#include "jdtool/objects/find_file.h"
#include "jdtool/objects/frame_row.h"
#include "jdtool/objects/kallsyms.h"
#include "jdtool/objects/lines.h"
#include "jdtool/objects/symbols.h"

/* A file while it is open, with what was made of it so far. */
struct object_file {
    struct found_file found;
    struct elf_file debug;      /* its separate debug file */
    struct elf_file packed;     /* its .gnu_debugdata */
    struct elf_file dwarf_file; /* whichever has DWARF, open once more for that alone */
    struct elf_file shared;     /* what its DWARF shares with others (dwz) */
    struct symbols symbols;
    char *plt_names; /* of some of them */
    struct frame_rows *rows;
    Dwarf *dwarf; /* of whichever has it; NULL: none */
    Dwarf *shared_dwarf;
    struct lines *lines;
    struct segment {
        uint64_t file_offset;
        uint64_t size;
        uint64_t address;
    } * segments;
    uint32_t segment_count;
    bool debug_asked, dwarf_asked, symbols_asked;
    uint64_t dwarf_left_out; /* bytes of DWARF that are too many to be unpacked */
    bool dwarf_used;         /* since object_file_rest */
};

/*
 *     1. Each object stands in the list, at its `index`, and once in by_identity.
 *     2. One that nobody has is idle: in the row from `idlest` to `idle_last`, in the order in
 * which they were let go. There are `idle_count` of them, at most OBJECTS_IDLE_MAX.
 */
struct object {
    struct objects *objects;
    uint32_t id;
    uint32_t index;   /* in the list */
    uint32_t holders; /* who has it from objects_find */
    struct object *idle_before, *idle_next;
    const char *path; /* of its identity, held; NULL: nobody's */
    enum object_state state;
    struct object_place place; /* where it was mapped first */
    char *why;
    uint64_t lookups;
    uint64_t dwarf_left_out; /* of its file, while it was open */
    bool lines_given_up;     /* they took too long */
    bool kernel;
    uint8_t found_id[BUILD_ID_MAX]; /* of the file, when none was recorded */
    uint8_t found_id_size;
    struct object_file *file; /* NULL: closed */
    uint64_t bytes;           /* that are counted for it */
    struct object *newer;     /* in the order of use, while open */
    struct object *older;
};

/* Functions that the kernel made at run time, in the order they were told; `sorted` of them are in
 * order of their addresses. */
struct kernel_functions {
    struct symbols symbols;
    struct bytes names;
    bool sorted;
};

struct objects {
    struct file_places places;
    char *build_id_dir;
    bool live;
    char *os_release;
    struct hash_map by_identity;
    struct object **list;
    uint32_t count;
    uint32_t room;
    struct object *too_many; /* what is found beyond OBJECTS_MAX */
    uint32_t next_id;
    struct object *idlest, *idle_last;
    uint32_t idle_count;
    uint64_t bad_forgotten; /* of those that were freed, how many could not be used */
    struct intern paths;

    struct hash_map listed_by_path;
    struct file_identity
        *listed; /* with its path and build-id alone; of size 0: there are several */
    uint32_t listed_count;
    uint32_t listed_room;

    struct object *newest; /* of the open ones */
    struct object *oldest;
    uint32_t open_count;
    uint64_t bytes;
    uint64_t opened;
    struct row_set rows;
    char demangled[DEMANGLE_INPUT_MAX];

    struct object *kernel;
    struct kallsyms kallsyms;
    bool has_copy;          /* they are perf's copy, though the kernel runs here */
    struct symbols vmlinux; /* instead of kallsyms */
    struct elf_file vmlinux_file;
    uint64_t vmlinux_moved; /* to be added to its addresses */
    char *kernel_reference;
    uint64_t kernel_reference_address;
    struct kernel_functions made;
};

/* The object's file, opened if need be, and counted as used. NULL: it cannot be read. */
struct object_file *object_use(struct object *object);

/* Counts what a file's tables take anew; closes others when it is too much. */
void object_count_bytes(struct object *object);

/* Opens and closes what is behind an object (object_file.c). */
enum object_state object_file_open(const struct file_places *places,
                                   const struct object_place *place, struct row_set *rows,
                                   struct object_file **out, char **why);
void object_file_close(struct object_file *file);
uint64_t object_file_bytes(const struct object_file *file);
const struct symbols *object_file_symbols(const struct file_places *places,
                                          struct object_file *file);
Dwarf *object_file_dwarf(const struct file_places *places, struct object_file *file);
/* Whether that DWARF has .debug_frame, without opening it: it may take long. */
bool object_file_has_debug_frame(const struct file_places *places, struct object_file *file);
/* What was found in DWARF nobody keeps a pointer to: it is closed if it was not used since the last
 * call, and opened again when it is. */
void object_file_rest(struct object_file *file);

/* The kernel's (kernel.c). */
void kernel_open(struct object *object);
bool kernel_symbol(struct object *object, uint64_t address, struct object_symbol *symbol);
void kernel_free(struct objects *objects);

#endif
