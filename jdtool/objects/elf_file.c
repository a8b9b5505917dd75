#include "jdtool/objects/elf_file.h"

#include "jdtool/base/descriptor.h"
#include "jdtool/base/others_file.h"
#include "jdtool/base/packed_input.h"

#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* Beyond this no file is looked at: nothing that runs is that large. */
#define SIZE_MAX_ANY (UINT64_C(8) << 30)

static enum object_state state_of(int error)
{
    return error == EACCES || error == EPERM ? OBJECT_DENIED : OBJECT_MISSING;
}

/*
 * A descriptor that names the file and has not opened it: opening a device already does something.
 * Below a root, links are followed as the process would (Linux 5.6; before, they are not).
 */
static int open_path(int root, const char *path)
{
    if (root < 0) {
        int fd = open(path, O_PATH | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
    }
    path += strspn(path, "/"); /* else a confined process is given our own */
    int fd = open_resolved(root, path, O_PATH, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
    if (fd == -ENOSYS || fd == -EPERM) {
        fd = openat(root, path, O_PATH | O_CLOEXEC | O_NOFOLLOW);
        fd = fd < 0 ? -errno : fd;
    }
    return fd;
}

int elf_file_open_only(int root, const char *path, struct stat *status)
{
    int handle = open_path(root, path);
    if (handle < 0) {
        return handle;
    }
    char name[64];
    int fd = -EINVAL;
    snprintf(name, sizeof name, "/proc/self/fd/%d", handle);
    if (fstat(handle, status) == 0 && S_ISREG(status->st_mode)) {
        fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        fd = fd < 0 ? -errno : fd;
    }
    (void)close(handle);
    return fd;
}

/* Whether nobody can shorten it but root and us. */
static bool stays_as_it_is(const struct stat *status)
{
    return (status->st_uid == 0 || status->st_uid == geteuid()) &&
           (status->st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

static enum object_state begin(struct elf_file *file, Elf *elf)
{
    GElf_Ehdr header;
    file->elf = elf;
    if (!elf || elf_kind(elf) != ELF_K_ELF || !gelf_getehdr(elf, &header)) {
        elf_file_close(file);
        return OBJECT_UNSOUND;
    }
    file->machine = header.e_machine;
    /* Now, not when libdw asks: libelf then loses the sections that it has read by then. */
    (void)(file->mapped || file->fd < 0 || elf_rawfile(elf, NULL));
    return OBJECT_SOUND;
}

static bool is_debug_section(Elf *elf, const GElf_Shdr *header)
{
    size_t names;
    const char *name =
        elf_getshdrstrndx(elf, &names) ? NULL : elf_strptr(elf, names, header->sh_name);
    return name && strncmp(name, ".debug_", sizeof ".debug_" - 1) == 0;
}

uint64_t elf_file_debug_bytes(const struct elf_file *file, bool all)
{
    uint64_t bytes = 0;
    for (Elf_Scn *section = NULL; (section = elf_nextscn(file->elf, section));) {
        GElf_Shdr header;
        GElf_Chdr packed;
        if (!gelf_getshdr(section, &header) || header.sh_type == SHT_NOBITS ||
            !is_debug_section(file->elf, &header)) {
            continue;
        }
        uint64_t its = all ? header.sh_size : 0;
        if (header.sh_flags & SHF_COMPRESSED) {
            its = gelf_getchdr(section, &packed) ? packed.ch_size : UINT64_MAX;
        }
        bytes = its < UINT64_MAX - bytes ? bytes + its : UINT64_MAX;
    }
    return bytes;
}

enum object_state elf_file_open(int root, const char *path, struct elf_file *out)
{
    struct stat status = {0};
    struct statfs file_system;
    *out = ELF_FILE_NONE;
    int fd = elf_file_open_only(root, path, &status);
    if (fd < 0) {
        return fd == -EINVAL ? OBJECT_UNSOUND : state_of(-fd);
    }
    *out = (struct elf_file){
        .fd = fd,
        .size = (uint64_t)status.st_size,
        .mapped = stays_as_it_is(&status),
        .overlay = fstatfs(fd, &file_system) == 0 && file_system.f_type == OVERLAYFS_SUPER_MAGIC,
        .device = status.st_dev,
        .inode = status.st_ino,
    };
    if (out->size > (out->mapped ? SIZE_MAX_ANY : ELF_FILE_READ_MAX)) {
        elf_file_close(out);
        return OBJECT_UNSOUND;
    }
    (void)elf_version(EV_CURRENT);
    return begin(out, elf_begin(fd, out->mapped ? ELF_C_READ_MMAP : ELF_C_READ, NULL));
}

enum object_state elf_file_take(void *image, size_t size, struct elf_file *out)
{
    *out = (struct elf_file){.fd = -1, .image = image, .size = size};
    (void)elf_version(EV_CURRENT);
    return begin(out, elf_memory(image, size));
}

bool elf_file_again(const struct elf_file *file, struct elf_file *out)
{
    *out = *file;
    out->elf = NULL;
    out->image = out->unpacked = NULL;
    out->fd = file->elf && file->fd >= 0 ? fcntl(file->fd, F_DUPFD_CLOEXEC, 0) : -1;
    if (out->fd < 0) {
        *out = ELF_FILE_NONE;
        return false;
    }
    return begin(out, elf_begin(out->fd, out->mapped ? ELF_C_READ_MMAP : ELF_C_READ, NULL)) ==
           OBJECT_SOUND;
}

/* Of one that is mapped. */
static void advise(const struct elf_file *file, int advice)
{
    size_t size;
    char *image = file->mapped ? elf_rawfile(file->elf, &size) : NULL;
    if (image) {
        (void)madvise(image, size, advice);
    }
}

void elf_file_read_here_and_there(const struct elf_file *file)
{
    advise(file, MADV_RANDOM);
}

void elf_file_close(struct elf_file *file)
{
    if (file->elf) {
        (void)elf_end(file->elf);
    }
    descriptor_close(file->fd);
    free(file->image);
    free(file->unpacked);
    *file = ELF_FILE_NONE;
}

size_t elf_file_build_id(const struct elf_file *file, uint8_t id[BUILD_ID_MAX])
{
    const void *found;
    ssize_t size = dwelf_elf_gnu_build_id(file->elf, &found);
    if (size <= 0) {
        return 0;
    }
    if (size > BUILD_ID_MAX) { /* perf cuts them as well */
        size = BUILD_ID_MAX;
    }
    memcpy(id, found, (size_t)size);
    return (size_t)size;
}

Elf_Scn *elf_file_section(const struct elf_file *file, const char *name, size_t *size)
{
    size_t names;
    if (elf_getshdrstrndx(file->elf, &names)) {
        return NULL;
    }
    for (Elf_Scn *section = NULL; (section = elf_nextscn(file->elf, section));) {
        GElf_Shdr header;
        if (!gelf_getshdr(section, &header) || header.sh_type == SHT_NOBITS) {
            continue;
        }
        const char *its = elf_strptr(file->elf, names, header.sh_name);
        if (its && strcmp(its, name) == 0) {
            *size = header.sh_size;
            return section;
        }
    }
    return NULL;
}

void elf_file_hide(const struct elf_file *file, const char *name)
{
    size_t size;
    GElf_Shdr header;
    Elf_Scn *section = elf_file_section(file, name, &size);
    if (section && gelf_getshdr(section, &header)) {
        header.sh_type = SHT_NOBITS; /* in libelf's copy of the header */
        (void)gelf_update_shdr(section, &header);
    }
}

/* One section into `to`, where `room` is left. Returns its size; 0: it is not zlib's, or damaged.
 */
static uint64_t unpack(Elf *elf, Elf_Scn *section, uint8_t *to, uint64_t room)
{
    GElf_Shdr header;
    GElf_Chdr packed;
    if (!gelf_getshdr(section, &header) || !(header.sh_flags & SHF_COMPRESSED) ||
        header.sh_type == SHT_NOBITS || !is_debug_section(elf, &header) ||
        !gelf_getchdr(section, &packed) || packed.ch_type != ELFCOMPRESS_ZLIB ||
        packed.ch_size > room) {
        return 0;
    }
    Elf_Data *data = elf_getdata(section, NULL);
    size_t behind = gelf_fsize(elf, ELF_T_CHDR, 1, EV_CURRENT);
    if (!data || data->d_size < behind ||
        !packed_input_whole((char *)data->d_buf + behind, data->d_size - behind, true, to,
                            packed.ch_size)) {
        return 0;
    }
    data->d_buf = to;
    data->d_size = packed.ch_size;
    data->d_type = ELF_T_BYTE;
    header.sh_flags &= ~(GElf_Xword)SHF_COMPRESSED; /* in libelf's copy of the header */
    header.sh_size = packed.ch_size;
    (void)gelf_update_shdr(section, &header);
    return packed.ch_size;
}

void elf_file_unpack(struct elf_file *file)
{
    uint64_t room = elf_file_debug_bytes(file, false);
    uint8_t *to = room > 0 ? malloc(room) : NULL;
    file->unpacked = to;
    if (to) {
        advise(file, MADV_NORMAL); /* it is read from end to end */
    }
    for (Elf_Scn *section = NULL; to && (section = elf_nextscn(file->elf, section));) {
        uint64_t size = unpack(file->elf, section, to, room);
        to += size;
        room -= size;
    }
    if (file->unpacked) {
        advise(file, MADV_DONTNEED); /* pages that were looked at once */
        advise(file, MADV_RANDOM);
    }
}

bool elf_file_symbol(const struct elf_file *file, const char *section, const char *name,
                     GElf_Sym *symbol)
{
    size_t size;
    GElf_Shdr header;
    Elf_Scn *table = elf_file_section(file, section, &size);
    Elf_Data *data = table ? elf_getdata(table, NULL) : NULL;
    if (!data || !gelf_getshdr(table, &header)) {
        return false;
    }
    for (int i = 0; gelf_getsym(data, i, symbol); i++) {
        const char *its = elf_strptr(file->elf, header.sh_link, symbol->st_name);
        if (symbol->st_shndx != SHN_UNDEF && its && strcmp(its, name) == 0) {
            return true;
        }
    }
    return false;
}
