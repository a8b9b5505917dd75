#include "jdtool/objects/build_id_cache.h"

#include "jdtool/perf/perf_data_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define LIST_MAX (UINT64_C(64) << 20)

struct build_id_cache {
    char *directory;
    uint8_t *list; /* the section */
    struct listed {
        const char *path; /* in the list */
        const uint8_t *id;
        uint8_t id_size;
    } * files; /* by path */
    size_t count;
};

static int by_path(const void *left, const void *right)
{
    return strcmp(((const struct listed *)left)->path, ((const struct listed *)right)->path);
}

/* Counts the sound entries, and enters them when there is a place for them. */
static size_t take_list(const uint8_t *list, size_t size, struct listed *files)
{
    size_t count = 0;
    struct perf_build_id_entry entry;
    for (size_t at = 0; size - at > sizeof entry; at += entry.header.size) {
        memcpy(&entry, list + at, sizeof entry);
        if (entry.header.size <= sizeof entry || entry.header.size > size - at) {
            break;
        }
        const char *path = (const char *)list + at + sizeof entry;
        bool has_size = entry.header.misc & PERF_BUILD_ID_SIZE;
        uint8_t id_size = has_size ? entry.size : BUILD_ID_MAX;
        if (id_size < 2 || id_size > BUILD_ID_MAX ||
            !memchr(path, '\0', entry.header.size - sizeof entry)) {
            continue;
        }
        if (files) {
            files[count] = (struct listed){
                .path = path,
                .id = list + at + offsetof(struct perf_build_id_entry, build_id),
                .id_size = id_size,
            };
        }
        count++;
    }
    return count;
}

/* As an absolute path, for its files take the place of recorded ones. NULL: no memory. */
static char *find_directory(const char *given)
{
    char *path = NULL;
    const char *home = getenv("HOME");
    if (asprintf(&path, "%s%s", given ? given : home ? home : "", given ? "" : "/.debug") < 0) {
        return NULL;
    }
    char *absolute = realpath(path, NULL);
    if (!absolute) { /* not there: nothing will be found */
        return path;
    }
    free(path);
    return absolute;
}

static int read_list(const struct perf_data *data, struct build_id_cache *cache)
{
    const struct perf_section *section = &data->features[PERF_FEATURE_BUILD_ID];
    if (section->size == 0 || section->size > LIST_MAX) {
        return 0;
    }
    cache->list = malloc(section->size);
    if (!cache->list) {
        return -ENOMEM;
    }
    if (perf_data_read(data, section->offset, cache->list, section->size)) {
        return 0;
    }
    size_t count = take_list(cache->list, section->size, NULL);
    cache->files = calloc(count + 1, sizeof *cache->files);
    if (!cache->files) {
        return -ENOMEM;
    }
    cache->count = take_list(cache->list, section->size, cache->files);
    if (cache->count) {
        qsort(cache->files, cache->count, sizeof *cache->files, by_path);
    }
    return 0;
}

int build_id_cache_open(const struct perf_data *data, const char *directory,
                        struct build_id_cache **out)
{
    struct build_id_cache *cache = calloc(1, sizeof *cache);
    int err = cache ? 0 : -ENOMEM;
    *out = NULL;
    if (!err) {
        cache->directory = find_directory(directory);
        err = cache->directory ? read_list(data, cache) : -ENOMEM;
    }
    if (err) {
        build_id_cache_close(cache);
        return err;
    }
    *out = cache;
    return 0;
}

void build_id_cache_close(struct build_id_cache *cache)
{
    if (cache) {
        free(cache->directory);
        free(cache->list);
        free(cache->files);
        free(cache);
    }
}

static bool same_id(const struct listed *a, const struct listed *b)
{
    return a->id_size == b->id_size && memcmp(a->id, b->id, a->id_size) == 0;
}

bool build_id_cache_find(const struct build_id_cache *cache, const char *path, char *copy,
                         size_t size)
{
    if (cache->count == 0) {
        return false;
    }
    struct listed wanted = {.path = path};
    const struct listed *end = cache->files + cache->count;
    const struct listed *found =
        bsearch(&wanted, cache->files, cache->count, sizeof *cache->files, by_path);
    if (!found) {
        return false;
    }
    const struct listed *first = found;
    while (first > cache->files && by_path(first - 1, found) == 0) {
        first--;
    }
    for (const struct listed *other = first; other < end && by_path(other, found) == 0; other++) {
        if (!same_id(other, found)) {
            return false;
        }
    }
    char id[BUILD_ID_MAX * 2 + 1];
    for (size_t i = 0; i < found->id_size; i++) {
        snprintf(id + i * 2, 3, "%02x", found->id[i]);
    }
    int length = snprintf(copy, size, "%s/.build-id/%.2s/%s/elf", cache->directory, id, id + 2);
    struct stat status;
    return length >= 0 && (size_t)length < size && stat(copy, &status) == 0 &&
           S_ISREG(status.st_mode);
}
