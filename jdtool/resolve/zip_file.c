/* The format is PKWARE's APPNOTE.TXT; the offsets below are those of its 4.3.7, 4.3.12, 4.3.16. */
#include "jdtool/resolve/zip_file.h"

#include "jdtool/base/array.h"
#include "jdtool/base/descriptor.h"
#include "jdtool/base/hash_map.h"
#include "jdtool/base/packed_input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define END_SIZE       22u /* of the end record, without its comment */
#define END_SEARCH     (END_SIZE + 65535u)
#define ENTRY_SIZE     46u /* of an entry of the directory, without its name */
#define LOCAL_SIZE     30u /* of a file's own header, without its name */
#define DIRECTORY_MAX  (UINT32_C(256) * 1024 * 1024)
#define METHOD_STORED  0
#define METHOD_DEFLATE 8

struct entry {
    const char *name; /* in the directory; not NUL-terminated */
    uint32_t name_size;
    uint32_t offset, packed, size;
    uint16_t method;
};

struct zip_file {
    int fd;
    uint64_t size;
    uint64_t start; /* what its offsets count from: a jmod has a header of its own */
    uint8_t *directory;
    struct entry *entries;
    uint32_t count, room;
    struct hash_map names; /* of whole names, and of those behind the first directory */
};

static uint16_t get16(const uint8_t *at)
{
    return (uint16_t)(at[0] | at[1] << 8);
}

static uint32_t get32(const uint8_t *at)
{
    return get16(at) | (uint32_t)get16(at + 2) << 16;
}

static int read_at(const struct zip_file *zip, uint64_t offset, uint8_t *to, size_t size)
{
    if (offset > zip->size || size > zip->size - offset) {
        return -EBADMSG;
    }
    ssize_t n = descriptor_read_at(zip->fd, to, size, offset);
    return n < 0 ? (int)n : (size_t)n < size ? -EBADMSG : 0;
}

static uint64_t hash_of(const char *name, size_t size)
{
    uint64_t hash = size;
    for (size_t i = 0; i < size; i++) {
        hash = hash * 31 + (uint8_t)name[i];
    }
    return hash;
}

static int add_entry(struct zip_file *zip, const struct entry *entry)
{
    if (ARRAY_RESERVE(zip->entries, zip->count, zip->room) ||
        hash_map_add(&zip->names, hash_of(entry->name, entry->name_size), zip->count)) {
        return -ENOMEM;
    }
    const char *slash = memchr(entry->name, '/', entry->name_size);
    if (slash) {
        size_t rest = entry->name_size - (size_t)(slash + 1 - entry->name);
        if (hash_map_add(&zip->names, hash_of(slash + 1, rest), zip->count)) {
            return -ENOMEM;
        }
    }
    zip->entries[zip->count++] = *entry;
    return 0;
}

static int read_entries(struct zip_file *zip, uint32_t size)
{
    int err = 0;
    for (uint32_t at = 0; !err && size - at >= ENTRY_SIZE;) {
        const uint8_t *bytes = zip->directory + at;
        uint32_t name_size = get16(bytes + 28);
        uint32_t whole = ENTRY_SIZE + name_size + get16(bytes + 30) + get16(bytes + 32);
        if (memcmp(bytes, "PK\1\2", 4) != 0 || whole > size - at) {
            return -EBADMSG;
        }
        struct entry entry = {
            .name = (const char *)bytes + ENTRY_SIZE,
            .name_size = name_size,
            .method = get16(bytes + 10),
            .packed = get32(bytes + 20),
            .size = get32(bytes + 24),
            .offset = get32(bytes + 42),
        };
        err = add_entry(zip, &entry);
        at += whole;
    }
    return err;
}

static int read_directory(struct zip_file *zip)
{
    uint64_t searched = zip->size < END_SEARCH ? zip->size : END_SEARCH;
    uint8_t *tail = calloc(1, END_SEARCH);
    int err = tail ? read_at(zip, zip->size - searched, tail, (size_t)searched) : -ENOMEM;
    uint32_t size = 0;
    uint32_t offset = 0;
    if (!err) {
        err = -EBADMSG;
        for (uint64_t at = searched; at-- > 0;) {
            if (searched - at >= END_SIZE && memcmp(tail + at, "PK\5\6", 4) == 0) {
                size = get32(tail + at + 12);
                offset = get32(tail + at + 16);
                err = size > DIRECTORY_MAX ? -EBADMSG : 0;
                uint64_t end = zip->size - searched + at;
                uint64_t whole = (uint64_t)offset + size;
                zip->start = end > whole ? end - whole : 0;
                break;
            }
        }
    }
    free(tail);
    if (!err) {
        zip->directory = malloc((size_t)size + 1);
        err = zip->directory ? read_at(zip, zip->start + offset, zip->directory, size) : -ENOMEM;
    }
    return err ? err : read_entries(zip, size);
}

int zip_file_open(const char *path, struct zip_file **out)
{
    struct stat status = {0};
    struct zip_file *zip = calloc(1, sizeof *zip);
    if (!zip) {
        return -ENOMEM;
    }
    zip->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    int err = zip->fd < 0 || fstat(zip->fd, &status) < 0 ? -errno : 0;
    if (!err) {
        err = S_ISREG(status.st_mode) ? 0 : -EBADMSG;
        zip->size = (uint64_t)status.st_size;
    }
    if (!err) {
        err = read_directory(zip);
    }
    if (err) {
        zip_file_close(zip);
        return err;
    }
    *out = zip;
    return 0;
}

void zip_file_close(struct zip_file *zip)
{
    if (!zip) {
        return;
    }
    descriptor_close(zip->fd);
    hash_map_free(&zip->names);
    free(zip->entries);
    free(zip->directory);
    free(zip);
}

/* The rest of a name behind its first `skip` bytes is the name that is looked for. */
static bool is_name(const struct entry *entry, size_t skip, const char *name, size_t size)
{
    return entry->name_size - skip == size && memcmp(entry->name + skip, name, size) == 0;
}

static const struct entry *find(struct zip_file *zip, const char *name)
{
    size_t size = strlen(name);
    const struct entry *below = NULL;
    struct hash_map_cursor cursor = hash_map_start(&zip->names, hash_of(name, size));
    uint32_t at;
    while ((at = hash_map_next(&zip->names, &cursor)) != HASH_MAP_NONE) {
        const struct entry *entry = &zip->entries[at];
        const char *slash = memchr(entry->name, '/', entry->name_size);
        if (is_name(entry, 0, name, size)) {
            return entry;
        }
        if (slash && is_name(entry, (size_t)(slash + 1 - entry->name), name, size)) {
            below = entry;
        }
    }
    return below;
}

static int unpack(const struct entry *entry, uint8_t *packed, char *bytes)
{
    if (entry->method == METHOD_STORED && entry->packed == entry->size) {
        memcpy(bytes, packed, entry->size);
        return 0;
    }
    bool is_whole = entry->method == METHOD_DEFLATE &&
                    packed_input_whole(packed, entry->packed, false, bytes, entry->size);
    return is_whole ? 0 : -EBADMSG;
}

int zip_file_read(struct zip_file *zip, const char *name, char **bytes, size_t *size)
{
    const struct entry *entry = find(zip, name);
    uint8_t header[LOCAL_SIZE] = {0};
    *bytes = NULL;
    if (!entry) {
        return 0;
    }
    if (entry->size > ZIP_ENTRY_MAX || entry->packed > zip->size) {
        return -EBADMSG;
    }
    int err = read_at(zip, zip->start + entry->offset, header, sizeof header);
    if (err || memcmp(header, "PK\3\4", 4) != 0) {
        return err ? err : -EBADMSG;
    }
    uint64_t start =
        zip->start + entry->offset + LOCAL_SIZE + get16(header + 26) + get16(header + 28);
    uint8_t *packed = malloc((size_t)entry->packed + 1);
    char *made = malloc((size_t)entry->size + 1);
    err = packed && made ? read_at(zip, start, packed, entry->packed) : -ENOMEM;
    if (!err) {
        err = unpack(entry, packed, made);
    }
    free(packed);
    if (err) {
        free(made);
        return err;
    }
    made[entry->size] = '\0';
    *bytes = made;
    *size = entry->size;
    return 0;
}
