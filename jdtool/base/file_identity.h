/*
 * Which file a mapping is of: what the kernel tells of it, in a record or in /proc/PID/maps. Two
 * files that had the same path one after the other differ in their inodes or build-ids.
 */
#ifndef JD_TOOL_FILE_IDENTITY_H
#define JD_TOOL_FILE_IDENTITY_H

#include "jdtool/base/hash_map.h"

#define BUILD_ID_MAX  20
#define BUILD_ID_TEXT (2 * BUILD_ID_MAX + 1) /* room for one by text_hex */

struct file_identity {
    const char *path; /* as the process sees it; "[vdso]"; "": none */
    uint64_t inode;   /* 0: not recorded */
    uint32_t major;   /* of its device; both 0: not recorded */
    uint32_t minor;
    uint8_t build_id[BUILD_ID_MAX]; /* perf records it in place of the others */
    uint8_t build_id_size;          /* 0: not recorded */
};

static inline bool build_id_same(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size)
{
    return a_size == b_size && memcmp(a, b, a_size) == 0;
}

/* Both of interned paths. */
static inline uint64_t file_identity_hash(const struct file_identity *file)
{
    uint64_t id = 0;
    memcpy(&id, file->build_id, sizeof id);
    return hash_pair(hash_pair((uintptr_t)file->path, file->inode),
                     id ^ ((uint64_t)file->major << 32 | file->minor));
}

static inline bool file_identity_same(const struct file_identity *a, const struct file_identity *b)
{
    return a->path == b->path && a->inode == b->inode && a->major == b->major &&
           a->minor == b->minor &&
           build_id_same(a->build_id, a->build_id_size, b->build_id, b->build_id_size);
}

#endif
