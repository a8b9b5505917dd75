#include "jdtool/objects/build_id.h"

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
static size_t find_note(const uint8_t *notes, size_t size, size_t align, uint8_t id[OBJECT_ID_MAX])
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
            size_t found = head.n_descsz < OBJECT_ID_MAX ? head.n_descsz : OBJECT_ID_MAX;
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
                           uint8_t id[OBJECT_ID_MAX])
{
    uint8_t notes[NOTES_MAX];
    if (size > sizeof notes) {
        size = sizeof notes;
    }
    return read_at(fd, offset, notes, (size_t)size) ? find_note(notes, (size_t)size, align, id) : 0;
}

static size_t read_64(int fd, uint8_t id[OBJECT_ID_MAX])
{
    Elf64_Ehdr file;
    Elf64_Phdr segment;
    size_t size = 0;
    if (!read_at(fd, 0, &file, sizeof file) || file.e_phentsize != sizeof segment) {
        return 0;
    }
    for (uint64_t i = 0; i < file.e_phnum && i < SEGMENTS_MAX && !size; i++) {
        if (file.e_phoff <= INT64_MAX &&
            read_at(fd, file.e_phoff + i * sizeof segment, &segment, sizeof segment) &&
            segment.p_type == PT_NOTE) {
            size = read_segment(fd, segment.p_offset, segment.p_filesz, segment.p_align, id);
        }
    }
    return size;
}

static size_t read_32(int fd, uint8_t id[OBJECT_ID_MAX])
{
    Elf32_Ehdr file;
    Elf32_Phdr segment;
    size_t size = 0;
    if (!read_at(fd, 0, &file, sizeof file) || file.e_phentsize != sizeof segment) {
        return 0;
    }
    for (uint64_t i = 0; i < file.e_phnum && i < SEGMENTS_MAX && !size; i++) {
        if (read_at(fd, file.e_phoff + i * sizeof segment, &segment, sizeof segment) &&
            segment.p_type == PT_NOTE) {
            size = read_segment(fd, segment.p_offset, segment.p_filesz, segment.p_align, id);
        }
    }
    return size;
}

size_t build_id_read(int fd, uint8_t id[OBJECT_ID_MAX])
{
    uint8_t kind[EI_NIDENT];
    if (!read_at(fd, 0, kind, sizeof kind) || memcmp(kind, ELFMAG, SELFMAG) != 0 ||
        kind[EI_DATA] != DATA_HERE) {
        return 0;
    }
    return kind[EI_CLASS] == ELFCLASS64   ? read_64(fd, id)
           : kind[EI_CLASS] == ELFCLASS32 ? read_32(fd, id)
                                          : 0;
}

size_t build_id_find(int root, const char *path, uint64_t inode, uint8_t id[OBJECT_ID_MAX])
{
    struct stat status;
    int fd = elf_file_open_only(root, path, &status);
    size_t size = fd >= 0 && (uint64_t)status.st_ino == inode ? build_id_read(fd, id) : 0;
    if (fd >= 0) {
        close(fd);
    }
    return size;
}
