#include "jdtool/look/image_cache.h"

#include "jdtool/base/descriptor.h"
#include "jdtool/base/others_file.h"
#include "jdtool/base/text.h"
#include "jdtool/objects/build_id.h"
#include "jdtool/objects/elf_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* No library is that large. */
#define IMAGE_COPY_MAX (UINT64_C(1) << 30)

/* More than a recording has JVMs with an image each. */
enum { PLACE_MAX = 8192, IMAGES_MAX = 2048 };

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
    descriptor_close(ids);
}

static bool name_place(const char *path, const uint8_t *id, size_t size, char *hex, char *place)
{
    if (size < 2 || size > BUILD_ID_MAX) {
        return false;
    }
    text_hex(id, size, hex);
    return snprintf(place, PLACE_MAX, "%s/%s", path, hex) < PLACE_MAX;
}

static void add_image(int profile, int cache, const char *name)
{
    uint8_t id[BUILD_ID_MAX];
    char hex[BUILD_ID_TEXT];
    char place[PLACE_MAX];
    char path[NAME_MAX + 2];
    snprintf(path, sizeof path, "/%s", name);
    int image = openat(profile, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    bool is_named = image >= 0 && name_place(path, id, build_id_read(image, id), hex, place);
    descriptor_close(image);
    int elf = is_named ? make_below(cache, place) : -1;
    if (elf >= 0 && (linkat(profile, name, elf, "elf", 0) == 0 || errno == EEXIST)) {
        put_on_shelf(cache, hex, place);
    }
    descriptor_close(elf);
}

bool image_cache_has(int profile, const uint8_t *id, size_t size)
{
    char hex[BUILD_ID_TEXT];
    char path[BUILD_ID_TEXT + 32];
    text_hex(id, size, hex);
    snprintf(path, sizeof path, "buildid/.build-id/%.2s/%s", hex, hex + 2);
    int fd = open_below(profile, path, O_PATH | O_NOFOLLOW);
    descriptor_close(fd);
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
        descriptor_close(all[i]);
    }
    return err;
}

static bool is_image(const char *name)
{
    return strncmp(name, "perf.jit-", 9) == 0 && text_ends(name, ".so");
}

void image_cache_add(int profile)
{
    DIR *entries = directory_open(profile, ".");
    int cache = entries ? make_below(profile, "buildid") : -1;
    const struct dirent *entry;
    unsigned left = IMAGES_MAX;
    while (cache >= 0 && left > 0 && (entry = directory_next(entries))) {
        if (is_image(entry->d_name)) {
            left--;
            add_image(profile, cache, entry->d_name);
        }
    }
    descriptor_close(cache);
    directory_close(entries);
}
