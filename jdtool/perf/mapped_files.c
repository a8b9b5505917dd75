#include "jdtool/perf/mapped_files.h"

#include <string.h>

static uint64_t hash_file(const char *path, const struct mapping *mapping)
{
    uint64_t id = 0;
    memcpy(&id, mapping->build_id, sizeof id);
    return hash_pair(hash_pair((uintptr_t)path, mapping->inode),
                     id ^ ((uint64_t)mapping->major << 32 | mapping->minor));
}

static bool is_file(const struct mapped_file *file, const char *path, const struct mapping *mapping)
{
    return file->path == path && file->inode == mapping->inode && file->major == mapping->major &&
           file->minor == mapping->minor && file->build_id_size == mapping->build_id_size &&
           memcmp(file->build_id, mapping->build_id, sizeof file->build_id) == 0;
}

struct mapped_file *mapped_files_of(struct mapped_files *files, const struct mapping *mapping)
{
    const char *path = intern(&files->paths, mapping->path);
    if (!path) {
        return NULL;
    }
    uint64_t hash = hash_file(path, mapping);
    struct hash_map_cursor cursor = hash_map_start(&files->by_file, hash);
    uint32_t at;
    while ((at = hash_map_next(&files->by_file, &cursor)) != HASH_MAP_NONE) {
        struct mapped_file *file = chunks_at(&files->list, at);
        if (is_file(file, path, mapping)) {
            return file;
        }
    }
    struct mapped_file *file = chunks_add(&files->list);
    if (!file || hash_map_add(&files->by_file, hash, files->list.count - 1)) {
        return NULL;
    }
    *file = (struct mapped_file){.path = path,
                                 .inode = mapping->inode,
                                 .major = mapping->major,
                                 .minor = mapping->minor,
                                 .build_id_size = mapping->build_id_size,
                                 .anonymous = mapping->anonymous};
    memcpy(file->build_id, mapping->build_id, sizeof file->build_id);
    return file;
}

void mapped_files_free(struct mapped_files *files)
{
    chunks_free(&files->list);
    hash_map_free(&files->by_file);
    intern_free(&files->paths);
}
