/*
 * An ELF file that was opened without trusting it: its owner may put a device, a pipe or a link in
 * its place, lie in every header, and shorten it while we read.
 */
#ifndef JD_TOOL_ELF_FILE_H
#define JD_TOOL_ELF_FILE_H

#include "jdtool/objects/objects.h"

#include <gelf.h>
#include <libelf.h>
#include <sys/stat.h>
#include <sys/types.h>

/* A file that others than root and ourselves can write is read instead of mapped (a page of a
 * shortened file kills who touches it), which costs its size in memory: up to this one. */
#define ELF_FILE_READ_MAX (UINT64_C(256) << 20)

struct elf_file {
    Elf *elf;       /* NULL: not open */
    int fd;         /* -1: an image in memory */
    void *image;    /* of one that was made in memory; freed with it */
    void *unpacked; /* see elf_file_unpack; the same */
    uint64_t size;  /* bytes of the file */
    bool mapped;    /* its pages are the file's: they cost nothing */
    bool overlay;   /* of a file system whose inode numbers need not be those of mappings */
    dev_t device;
    ino_t inode;
    unsigned machine; /* e_machine */
};

#define ELF_FILE_NONE ((struct elf_file){.fd = -1})

/*
 * Opens the regular ELF file at `path`, below the directory `root` when it is not negative: then
 * the path's links stay inside, too. OBJECT_SOUND, or OBJECT_MISSING, OBJECT_DENIED,
 * OBJECT_UNSOUND.
 */
enum object_state elf_file_open(int root, const char *path, struct elf_file *out);

/* Opens the regular file alone, whatever is in it, in the same way. A descriptor or a negative
 * errno. */
int elf_file_open_only(int root, const char *path, struct stat *status);

/* Takes an ELF image of `size` bytes from malloc over, on failure too. OBJECT_SOUND or
 * OBJECT_UNSOUND. */
enum object_state elf_file_take(void *image, size_t size, struct elf_file *out);

/*
 * The same file a second time: what libelf unpacks of it stays in memory until this one is closed.
 * False: it is an image in memory, or cannot be opened, and *out is not open.
 */
bool elf_file_again(const struct elf_file *file, struct elf_file *out);

/* Little of a large file will be asked for: of a mapped one no more pages are taken than are
 * touched. The kernel maps sixteen about each, which of libjvm.so's DWARF makes 200 MB. */
void elf_file_read_here_and_there(const struct elf_file *file);

void elf_file_close(struct elf_file *file); /* one that is not open is fine */

/* The build-id in its notes. Returns its size; 0: it has none. */
size_t elf_file_build_id(const struct elf_file *file, uint8_t id[BUILD_ID_MAX]);

/* The section of that name with its content in the file. NULL: there is none. */
Elf_Scn *elf_file_section(const struct elf_file *file, const char *name, size_t *size);

/* Bytes of debug information, as the sections' headers tell: those that are to be unpacked, or all.
 */
uint64_t elf_file_debug_bytes(const struct elf_file *file, bool all);

/* From now on a section of that name is none, so that libdw neither unpacks nor reads it. */
void elf_file_hide(const struct elf_file *file, const char *name);

/* Unpacks compressed sections of debug information. libelf would do so when libdw opens the file,
 * in three times the time, with what cannot be unpacked here. */
void elf_file_unpack(struct elf_file *file);

/* What the file defines under that name, by its table `section`: ".dynsym" or ".symtab". A walk
 * through the table. False: nothing, or there is no such table. */
bool elf_file_symbol(const struct elf_file *file, const char *section, const char *name,
                     GElf_Sym *symbol);

#endif
