/*
 * Finds the file of an object: goes through the places where it may be (objects.h lists them) until
 * one of them has the file that was recorded.
 */
#ifndef JD_TOOL_FIND_FILE_H
#define JD_TOOL_FIND_FILE_H

#include "jdtool/objects/elf_file.h"

/* Where to look. */
struct file_places {
    unsigned machine;
    const char *build_id_dir;
    const char *kernel; /* the recording's release, for messages */
    bool here;          /* pids mean something */
    bool same_kernel;   /* our own vdso is the recorded one */
    bool sparing;       /* see struct objects_options */
    uint64_t patience;  /* ns, the same */
};

struct found_file {
    struct elf_file file;
    uint32_t pid;    /* 0: path is ours; else that process' */
    char *path;      /* NULL: it has none that its debug file could be beside of */
    bool only_debug; /* a separate debug file in the file's place: no code, no .eh_frame */
};

/* OBJECT_SOUND with *out filled; else why not, with *why in words (from malloc; NULL: no memory).
 */
enum object_state find_file(const struct file_places *places, const struct object_place *wanted,
                            struct found_file *out, char **why);
void found_file_close(
    struct found_file *found); /* one that is all zero but for file's fd is fine */

/* Whether a file that is open bears that build-id. */
bool elf_file_has_id(const struct elf_file *file, const uint8_t *id, size_t size);

/* ---- Separate files ---- */

/*
 * The separate files that a stripped file's symbols and DWARF are in: those of debug packages and
 * of perf's cache by build-id, the one that .gnu_debuglink names, what is packed in .gnu_debugdata.
 */

/* The file with the symbols and DWARF of one that was found. False: none is here. */
bool debug_file_find(const struct file_places *places, const struct found_file *found,
                     struct elf_file *out);

/*
 * The file that a dwz'ed one shares its DWARF with, which .gnu_debugaltlink names with its
 * build-id. False: it is not here.
 */
bool debug_file_find_shared(const struct file_places *places, const char *name, const uint8_t *id,
                            size_t id_size, struct elf_file *out);

/* Unpacks .gnu_debugdata: a file with nothing but a symbol table. False: there is none, or it is
 * larger than DEBUG_DATA_MAX. */
#define DEBUG_DATA_MAX ((size_t)64 << 20)
bool debug_file_unpack(const struct elf_file *file, struct elf_file *out);

#endif
