#include "jdtool/objects/build_id.h"

#include "jdtool/base/descriptor.h"
#include "jdtool/objects/elf_file.h"

#include <elf.h>
#include <endian.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Programs have a dozen; the note that is looked for is in the first bytes of one of them. */
enum { SEGMENTS_MAX = 128, NOTES_MAX = 16384 };

#if __BYTE_ORDER == __LITTLE_ENDIAN
#define DATA_HERE ELFDATA2LSB
#else
#define DATA_HERE ELFDATA2MSB
#endif

static bool read_at(int fd, uint64_t offset, void *to, size_t size)
{
    return offset <= INT64_MAX - size && pread(fd, to, size, (off_t)offset) == (ssize_t)size;
}

/* Notes: a head, a name, and what it tells, each padded. */
static size_t find_note(const uint8_t *notes, size_t size, size_t align, uint8_t id[BUILD_ID_MAX])
{
    size_t pad = align == 8 ? 7 : 3;
    for (size_t at = 0; size - at >= sizeof(Elf64_Nhdr);) {
        Elf64_Nhdr head;
        memcpy(&head, notes + at, sizeof head);
        at += sizeof head;
        size_t name = ((size_t)head.n_namesz + pad) & ~pad;
        size_t text = ((size_t)head.n_descsz + pad) & ~pad;
        if (name > size - at || head.n_descsz > size - at - name) {
            return 0;
        }
        if (head.n_type == NT_GNU_BUILD_ID && head.n_namesz == sizeof ELF_NOTE_GNU &&
            memcmp(notes + at, ELF_NOTE_GNU, sizeof ELF_NOTE_GNU) == 0 && head.n_descsz > 0) {
            size_t found = head.n_descsz < BUILD_ID_MAX ? head.n_descsz : BUILD_ID_MAX;
            memcpy(id, notes + at + name, found);
            return found;
        }
        if (text > size - at - name) {
            return 0;
        }
        at += name + text;
    }
    return 0;
}

static size_t read_segment(int fd, uint64_t offset, uint64_t size, uint64_t align,
                           uint8_t id[BUILD_ID_MAX])
{
    uint8_t notes[NOTES_MAX];
    if (size > sizeof notes) {
        size = sizeof notes;
    }
    return read_at(fd, offset, notes, (size_t)size) ? find_note(notes, (size_t)size, align, id) : 0;
}

/* A segment's head, in the terms of 64 bits. */
static bool read_head(int fd, uint64_t offset, bool wide, Elf64_Phdr *head)
{
    Elf32_Phdr narrow;
    if (wide) {
        return read_at(fd, offset, head, sizeof *head);
    }
    if (!read_at(fd, offset, &narrow, sizeof narrow)) {
        return false;
    }
    *head = (Elf64_Phdr){.p_type = narrow.p_type,
                         .p_offset = narrow.p_offset,
                         .p_filesz = narrow.p_filesz,
                         .p_align = narrow.p_align};
    return true;
}

size_t build_id_read(int fd, uint8_t id[BUILD_ID_MAX])
{
    union {
        uint8_t kind[EI_NIDENT];
        Elf64_Ehdr wide;
        Elf32_Ehdr narrow; /* longer than a wide one with what must follow it, a segment's head */
    } file;
    if (!read_at(fd, 0, &file, sizeof file) || memcmp(file.kind, ELFMAG, SELFMAG) != 0 ||
        file.kind[EI_DATA] != DATA_HERE) {
        return 0;
    }
    bool wide = file.kind[EI_CLASS] == ELFCLASS64;
    uint64_t at = wide ? file.wide.e_phoff : file.narrow.e_phoff;
    size_t each = wide ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr);
    unsigned count = wide ? file.wide.e_phnum : file.narrow.e_phnum;
    if ((!wide && file.kind[EI_CLASS] != ELFCLASS32) || at > INT64_MAX ||
        (wide ? file.wide.e_phentsize : file.narrow.e_phentsize) != each) {
        return 0;
    }
    size_t size = 0;
    for (unsigned i = 0; i < count && i < SEGMENTS_MAX && !size; i++) {
        Elf64_Phdr head;
        if (read_head(fd, at + i * each, wide, &head) && head.p_type == PT_NOTE) {
            size = read_segment(fd, head.p_offset, head.p_filesz, head.p_align, id);
        }
    }
    return size;
}

size_t build_id_find(int root, const char *path, uint64_t inode, uint8_t id[BUILD_ID_MAX])
{
    struct stat status;
    int fd = elf_file_open_only(root, path, &status);
    size_t size = fd >= 0 && (uint64_t)status.st_ino == inode ? build_id_read(fd, id) : 0;
    descriptor_close(fd);
    return size;
}
