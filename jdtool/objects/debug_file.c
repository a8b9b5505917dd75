#include "jdtool/objects/debug_file.h"

#include <elfutils/libdwelf.h>
#include <gelf.h>
#include <limits.h>
#include <lzma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The CRC-32 of zlib, which .gnu_debuglink names a file by that bears no build-id. */
static uint32_t crc_of(int fd)
{
    uint8_t buffer[16384];
    uint32_t crc = UINT32_MAX;
    off_t at = 0;
    for (ssize_t size; (size = pread(fd, buffer, sizeof buffer, at)) > 0; at += size) {
        for (ssize_t i = 0; i < size; i++) {
            crc ^= buffer[i];
            for (int bit = 0; bit < 8; bit++) {
                crc = crc >> 1 ^ (crc & 1 ? UINT32_C(0xedb88320) : 0);
            }
        }
    }
    return ~crc;
}

static bool open_with_id(int root, const char *path, const uint8_t *id, size_t size,
                         struct elf_file *out)
{
    if (elf_file_open(root, path, out) != OBJECT_SOUND) {
        return false;
    }
    if (elf_file_has_id(out, id, size)) {
        return true;
    }
    elf_file_close(out);
    return false;
}

static bool open_by_id(const char *directory, const char *ending, const uint8_t *id, size_t size,
                       struct elf_file *out)
{
    char text[BUILD_ID_TEXT];
    char path[PATH_MAX];
    build_id_text(id, size, text);
    int length =
        snprintf(path, sizeof path, "%s/.build-id/%.2s/%s%s", directory, text, text + 2, ending);
    return length > 0 && length < PATH_MAX && open_with_id(-1, path, id, size, out);
}

/* A candidate for what .gnu_debuglink names; without a build-id its content must have the CRC. */
static bool try_linked(int root, const char *path, const uint8_t *id, size_t id_size, uint32_t crc,
                       struct elf_file *out)
{
    if (id_size) {
        return open_with_id(root, path, id, id_size, out);
    }
    if (elf_file_open(root, path, out) != OBJECT_SOUND) {
        return false;
    }
    if (crc_of(out->fd) == crc) {
        return true;
    }
    elf_file_close(out);
    return false;
}

/* Where gdb looks, too: beside the file, in .debug beside it, below /usr/lib/debug. */
static bool follow_link(const struct found_file *found, const uint8_t *id, size_t id_size,
                        struct elf_file *out)
{
    GElf_Word crc;
    const char *name = found->path ? dwelf_elf_gnu_debuglink(found->file.elf, &crc) : NULL;
    const char *slash = found->path ? strrchr(found->path, '/') : NULL;
    if (!name || !slash || strchr(name, '/') || name[0] == '\0' || name[0] == '.') {
        return false;
    }
    int root = found->pid ? process_root(found->pid) : -1;
    int length = (int)(slash - found->path);
    bool is_found = false;
    for (int i = 0; i < 3 && !is_found && (root >= 0 || !found->pid); i++) {
        char path[PATH_MAX];
        int size = snprintf(path, sizeof path, "%s%.*s%s/%s", i == 2 ? "/usr/lib/debug" : "",
                            length, found->path, i == 1 ? "/.debug" : "", name);
        is_found = size < PATH_MAX && try_linked(root, path, id, id_size, crc, out);
    }
    if (root >= 0) {
        (void)close(root);
    }
    return is_found;
}

bool debug_file_find(const struct file_places *places, const struct found_file *found,
                     struct elf_file *out)
{
    uint8_t id[OBJECT_ID_MAX];
    size_t size = elf_file_build_id(&found->file, id);
    *out = ELF_FILE_NONE;
    if (size >= 2 && (open_by_id(places->build_id_dir, "/debug", id, size, out) ||
                      open_by_id("/usr/lib/debug", ".debug", id, size, out))) {
        return true;
    }
    return follow_link(found, id, size, out);
}

bool debug_file_find_shared(const struct file_places *places, const char *name, const uint8_t *id,
                            size_t id_size, struct elf_file *out)
{
    *out = ELF_FILE_NONE;
    if (id_size < 2) {
        return false;
    }
    return open_by_id("/usr/lib/debug", ".debug", id, id_size, out) ||
           open_by_id(places->build_id_dir, "/elf", id, id_size, out) ||
           (name[0] == '/' && open_with_id(-1, name, id, id_size, out));
}

/* All of it, or NULL: broken, no memory, or larger than is sane. */
static void *unpack(const void *packed, size_t packed_size, size_t *size)
{
    lzma_stream stream = LZMA_STREAM_INIT;
    size_t room = packed_size < DEBUG_DATA_MAX / 8 ? packed_size * 8 + 4096 : DEBUG_DATA_MAX;
    uint8_t *out = malloc(room);
    if (!out || lzma_stream_decoder(&stream, DEBUG_DATA_MAX, 0) != LZMA_OK) {
        free(out);
        return NULL;
    }
    stream.next_in = packed;
    stream.avail_in = packed_size;
    stream.next_out = out;
    stream.avail_out = room;
    lzma_ret state;
    while ((state = lzma_code(&stream, LZMA_FINISH)) == LZMA_OK && stream.avail_out == 0) {
        uint8_t *grown = room < DEBUG_DATA_MAX ? realloc(out, room * 2) : NULL;
        if (!grown) {
            break;
        }
        out = grown;
        stream.next_out = out + room;
        stream.avail_out = room;
        room *= 2;
    }
    *size = stream.total_out;
    lzma_end(&stream);
    if (state != LZMA_STREAM_END || *size == 0) {
        free(out);
        return NULL;
    }
    return out;
}

bool debug_file_unpack(const struct elf_file *file, struct elf_file *out)
{
    size_t size;
    *out = ELF_FILE_NONE;
    Elf_Scn *section = elf_file_section(file, ".gnu_debugdata", &size);
    Elf_Data *packed = section ? elf_rawdata(section, NULL) : NULL;
    if (!packed || !packed->d_buf) {
        return false;
    }
    void *image = unpack(packed->d_buf, packed->d_size, &size);
    return image && elf_file_take(image, size, out) == OBJECT_SOUND;
}
