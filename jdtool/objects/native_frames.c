#include "jdtool/objects/native_frames.h"

#include "jdtool/objects/frame_rows.h"

#include <elf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

struct segment {
    uint64_t file_offset;
    uint64_t size;
    uint64_t vaddr;
};

struct native_file {
    struct native_files *files;
    struct native_file *next;
    char *path;
    int fd;
    Elf *elf;
    Dwarf *dwarf;
    struct frame_rows *rows;
    struct segment *segments;
    size_t segment_count;
};

struct native_files {
    unsigned machine;
    struct native_file *list;
    struct native_row nothing;
};

struct native_files *native_files_new(unsigned machine)
{
    struct native_files *files = calloc(1, sizeof *files);
    if (files) {
        files->machine = machine;
        (void)elf_version(EV_CURRENT);
    }
    return files;
}

static void close_file(struct native_file *file)
{
    frame_rows_free(file->rows);
    if (file->dwarf) {
        (void)dwarf_end(file->dwarf);
    }
    if (file->elf) {
        (void)elf_end(file->elf);
    }
    if (file->fd >= 0) {
        (void)close(file->fd);
    }
    free(file->segments);
    free(file->path);
    free(file);
}

void native_files_free(struct native_files *files)
{
    if (!files) {
        return;
    }
    for (struct native_file *file = files->list; file;) {
        struct native_file *next = file->next;
        close_file(file);
        file = next;
    }
    free(files);
}

/* The kernel maps the same vdso into every process. */
static Elf *own_vdso(void)
{
    char *image = (char *)(uintptr_t)getauxval(AT_SYSINFO_EHDR);
    if (!image || memcmp(image, ELFMAG, SELFMAG) != 0) {
        return NULL;
    }
    Elf64_Ehdr header;
    memcpy(&header, image, sizeof header);
    size_t size = header.e_shoff + (size_t)header.e_shnum * header.e_shentsize;
    return elf_memory(image, size);
}

static void read_segments(struct native_file *file)
{
    size_t count;
    if (elf_getphdrnum(file->elf, &count) != 0 || count == 0 || count > 4096) {
        return;
    }
    file->segments = calloc(count, sizeof *file->segments);
    if (!file->segments) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        GElf_Phdr header;
        if (gelf_getphdr(file->elf, (int)i, &header) && header.p_type == PT_LOAD) {
            file->segments[file->segment_count++] =
                (struct segment){header.p_offset, header.p_filesz, header.p_vaddr};
        }
    }
}

static void open_elf(struct native_file *file)
{
    if (strcmp(file->path, "[vdso]") == 0) {
        file->elf = own_vdso();
    } else if (file->path[0] == '/') {
        /* O_NONBLOCK: a hostile recording may name a FIFO. */
        file->fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (file->fd >= 0) {
            file->elf = elf_begin(file->fd, ELF_C_READ, NULL);
        }
    }
    GElf_Ehdr header;
    if (!file->elf || elf_kind(file->elf) != ELF_K_ELF || !gelf_getehdr(file->elf, &header) ||
        header.e_machine != file->files->machine) {
        return;
    }
    read_segments(file);
    file->rows = frame_rows_new(file->files->machine, file->elf);
}

struct native_file *native_file_open(struct native_files *files, const char *path)
{
    struct native_file **link = &files->list;
    for (; *link; link = &(*link)->next) {
        if (strcmp((*link)->path, path) == 0) {
            struct native_file *file = *link;
            *link = file->next; /* to the front: the next question is likely the same */
            file->next = files->list;
            files->list = file;
            return file->rows && file->segment_count ? file : NULL;
        }
    }
    struct native_file *file = calloc(1, sizeof *file);
    if (!file) {
        return NULL;
    }
    file->files = files;
    file->fd = -1;
    file->path = strdup(path);
    if (!file->path) {
        free(file);
        return NULL;
    }
    open_elf(file);
    file->next = files->list;
    files->list = file;
    return file->rows && file->segment_count ? file : NULL;
}

static Dwarf *dwarf_of(void *context)
{
    struct native_file *file = context;
    if (!file->dwarf) {
        file->dwarf = dwarf_begin_elf(file->elf, DWARF_C_READ, NULL);
    }
    return file->dwarf;
}

const struct native_row *native_row_at(struct native_file *file, uint64_t file_offset)
{
    for (size_t i = 0; i < file->segment_count; i++) {
        const struct segment *segment = &file->segments[i];
        if (file_offset - segment->file_offset < segment->size) {
            return frame_rows_at(file->rows, file_offset - segment->file_offset + segment->vaddr,
                                 dwarf_of, file);
        }
    }
    return &file->files->nothing;
}
