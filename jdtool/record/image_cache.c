#include "jdtool/record/image_cache.h"

#include "jdtool/base/others_file.h"
#include "jdtool/confined/confined.h"
#include "jdtool/objects/elf_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* No library is that large. */
#define IMAGE_COPY_MAX (UINT64_C(1) << 30)

enum { PLACE_MAX = 8192 };

/* An image in the profile, and what it says of itself. */
struct image {
    char name[NAME_MAX + 1];
    size_t size; /* of its build-id; 0: it has none */
    uint8_t id[OBJECT_ID_MAX];
};

/* More than a recording has JVMs with an image each. */
#define IMAGES_MAX 2048

struct images {
    char profile[PATH_MAX];
    uint32_t count;
    struct image list[IMAGES_MAX];
};

/* In a process without rights: what made them had read others' data. */
static int read_ids(void *context)
{
    struct images *images = context;
    for (uint32_t i = 0; i < images->count; i++) {
        struct image *image = &images->list[i];
        struct elf_file file;
        char path[PATH_MAX + NAME_MAX + 2];
        snprintf(path, sizeof path, "%s/%s", images->profile, image->name);
        if (elf_file_open(-1, path, &file) == OBJECT_SOUND) {
            image->size = elf_file_build_id(&file, image->id);
            elf_file_close(&file);
        }
    }
    return 0;
}

/* "ab/cdef…": from where `elf` lies it is found, below ".build-id". */
static void put_on_shelf(int cache, const char *hex, const char *place)
{
    char shelf[] = {hex[0], hex[1], '\0'};
    char to[PLACE_MAX + 8];
    int ids = make_below(cache, ".build-id");
    int first = ids >= 0 ? make_below(ids, shelf) : -1;
    snprintf(to, sizeof to, "../..%s", place);
    if (first >= 0) {
        (void)symlinkat(to, first, hex + 2); /* there already: it is this one */
        close(first);
    }
    if (ids >= 0) {
        close(ids);
    }
}

static bool name_place(const char *path, const uint8_t *id, size_t size, char *hex, char *place)
{
    if (size < 2 || size > OBJECT_ID_MAX) {
        return false;
    }
    build_id_text(id, size, hex);
    return snprintf(place, PLACE_MAX, "%s/%s", path, hex) < PLACE_MAX;
}

static void add_image(int profile, int cache, const char *place_of, const struct image *image)
{
    char hex[BUILD_ID_TEXT];
    char place[PLACE_MAX];
    char path[PATH_MAX + NAME_MAX + 2];
    snprintf(path, sizeof path, "%s/%s", place_of, image->name);
    if (!name_place(path, image->id, image->size, hex, place)) {
        return;
    }
    int elf = make_below(cache, place);
    if (elf >= 0 && (linkat(profile, image->name, elf, "elf", 0) == 0 || errno == EEXIST)) {
        put_on_shelf(cache, hex, place);
    }
    if (elf >= 0) {
        close(elf);
    }
}

bool image_cache_has(int profile, const uint8_t *id, size_t size)
{
    char hex[BUILD_ID_TEXT];
    char path[BUILD_ID_TEXT + 32];
    build_id_text(id, size, hex);
    snprintf(path, sizeof path, "buildid/.build-id/%.2s/%s", hex, hex + 2);
    int fd = open_below(profile, path, O_PATH | O_NOFOLLOW);
    if (fd >= 0) {
        close(fd);
    }
    return fd >= 0;
}

/* What a file of the kernel's holds, which says that it is empty. */
static int copy_text(int from, int to, uint64_t limit)
{
    char text[65536];
    ssize_t n;
    while ((n = read(from, text, sizeof text)) > 0 && (uint64_t)n <= limit) {
        if (write(to, text, (size_t)n) != n) {
            return -EIO;
        }
        limit -= (uint64_t)n;
    }
    return n < 0 ? -errno : n > 0 ? -EFBIG : 0;
}

int image_cache_copy(int profile, int from, const struct image_copy *copy)
{
    char hex[BUILD_ID_TEXT];
    char place[PLACE_MAX];
    struct stat status;
    if (!name_place(copy->path, copy->id, copy->size, hex, place)) {
        return -EINVAL;
    }
    int cache = make_below(profile, "buildid");
    int directory = cache >= 0 ? make_below(cache, place) : -1;
    int to = directory >= 0 ? openat(directory, copy->name,
                                     O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600)
                            : -1;
    int err = to < 0 || fstat(from, &status) != 0 ? -errno : 0;
    if (!err) {
        err = (status.st_size ? copy_file_data : copy_text)(from, to, IMAGE_COPY_MAX);
        if (!err && ftruncate(to, status.st_size ? status.st_size : lseek(to, 0, SEEK_CUR)) != 0) {
            err = -errno;
        }
        if (err) {
            (void)unlinkat(directory, copy->name, 0);
        } else {
            put_on_shelf(cache, hex, place);
        }
    }
    int all[] = {to, directory, cache};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (all[i] >= 0) {
            close(all[i]);
        }
    }
    return err;
}

/* The images that lie in the profile; the names stay ours. */
static void list_images(DIR *entries, struct images *images, struct image *ours)
{
    struct dirent *entry;
    while (images->count < IMAGES_MAX && (entry = readdir(entries))) {
        const char *name = entry->d_name;
        size_t length = strlen(name);
        if (strncmp(name, "perf.jit-", 9) == 0 && strcmp(name + length - 3, ".so") == 0) {
            memcpy(ours[images->count].name, name, length + 1);
            memcpy(images->list[images->count++].name, name, length + 1);
        }
    }
}

static void add_all(const char *profile, DIR *entries, struct images *images, struct image *ours)
{
    struct rights *rights = rights_new();
    int cache = make_below(dirfd(entries), "buildid");
    if (rights && cache >= 0) {
        snprintf(images->profile, sizeof images->profile, "%s", profile);
        list_images(entries, images, ours);
        uint32_t count = images->count;
        rights_hold(rights, profile, dirfd(entries));
        rights_read(rights, profile);
        (void)confined_run(&(struct confined_options){.rights = rights,
                                                      .what = "the images",
                                                      .cpu_seconds = CONFINED_SECONDS,
                                                      .inner = true,
                                                      .work = read_ids,
                                                      .context = images});
        for (uint32_t i = 0; i < count; i++) {
            ours[i].size = images->list[i].size;
            memcpy(ours[i].id, images->list[i].id, sizeof ours[i].id);
            add_image(dirfd(entries), cache, profile, &ours[i]);
        }
    }
    rights_free(rights);
    if (cache >= 0) {
        close(cache);
    }
}

void image_cache_add(int directory, const char *profile)
{
    struct images *images = confined_shared(sizeof *images);
    struct image *ours = calloc(IMAGES_MAX, sizeof *ours);
    DIR *entries = images && ours ? directory_open(directory, ".") : NULL;
    if (entries) {
        add_all(profile, entries, images, ours);
    }
    directory_close(entries);
    free(ours);
    confined_unshare(images, sizeof *images);
}
