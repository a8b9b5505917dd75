#include "jdtool/record/image_cache.h"

#include "jdtool/objects/elf_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A directory below another one, made where it is not there; never through a link. */
static int enter(int directory, const char *name)
{
    if (mkdirat(directory, name, 0700) != 0 && errno != EEXIST) {
        return -1;
    }
    return openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* "/a/b/c", one directory after the other. */
static int enter_all(int directory, const char *path)
{
    char name[NAME_MAX + 1];
    int at = dup(directory);
    while (at >= 0 && *path) {
        size_t length = strcspn(path, "/");
        if (length > NAME_MAX) {
            close(at);
            return -1;
        }
        if (length > 0) {
            memcpy(name, path, length);
            name[length] = '\0';
            int next = enter(at, name);
            close(at);
            at = next;
        }
        path += length + (path[length] == '/');
    }
    return at;
}

static void add_image(int profile, int cache, const char *image, const char *name)
{
    uint8_t id[OBJECT_ID_MAX];
    char hex[2 * OBJECT_ID_MAX + 1] = "";
    char place[2 * PATH_MAX];
    struct elf_file file;
    if (elf_file_open(-1, image, &file) != OBJECT_SOUND) {
        return;
    }
    size_t size = elf_file_build_id(&file, id);
    elf_file_close(&file);
    for (size_t i = 0; i < size; i++) {
        snprintf(hex + 2 * i, 3, "%02x", id[i]);
    }
    if (size < 2) {
        return;
    }
    snprintf(place, sizeof place, "%s/%s", image, hex);
    int elf = enter_all(cache, place);
    if (elf >= 0 && (linkat(profile, name, elf, "elf", 0) == 0 || errno == EEXIST)) {
        char shelf[] = {'/', hex[0], hex[1], '\0'};
        char to[2 * PATH_MAX + 8];
        int ids = enter(cache, ".build-id");
        int first = ids >= 0 ? enter(ids, shelf + 1) : -1;
        snprintf(to, sizeof to, "../..%s", place);
        if (first >= 0) {
            (void)symlinkat(to, first, hex + 2); /* there already: it is this one */
            close(first);
        }
        if (ids >= 0) {
            close(ids);
        }
    }
    if (elf >= 0) {
        close(elf);
    }
}

void image_cache_add(const char *profile)
{
    DIR *entries = opendir(profile);
    int directory = entries ? dirfd(entries) : -1;
    int cache = directory >= 0 ? enter(directory, "buildid") : -1;
    struct dirent *entry;
    while (cache >= 0 && (entry = readdir(entries))) {
        char image[PATH_MAX + NAME_MAX + 2];
        const char *name = entry->d_name;
        size_t length = strlen(name);
        if (strncmp(name, "perf.jit-", 9) == 0 && strcmp(name + length - 3, ".so") == 0) {
            snprintf(image, sizeof image, "%s/%s", profile, name);
            add_image(directory, cache, image, name);
        }
    }
    if (cache >= 0) {
        close(cache);
    }
    if (entries) {
        closedir(entries);
    }
}
