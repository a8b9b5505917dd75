#include "jdtool/look/bundle_files.h"

#include "jdtool/base/message.h"
#include "jdtool/base/others_file.h"
#include "jdtool/confined/confined.h"
#include "jdtool/exports/export.h"
#include "jdtool/objects/elf_file.h"
#include "jdtool/pipeline/replay.h"
#include "jdtool/profile/profile.h"
#include "jdtool/record/image_cache.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* More than a recording has libraries. */
enum { FILES_MAX = 2048 };

/* Of these a process without rights tells what the samples say, and then what the files do. */
struct wanted {
    char path[PATH_MAX];
    uint8_t id[MODULE_BUILD_ID_MAX];
    uint32_t size; /* of the build-id */
    bool is_kernel;
    bool is_sound; /* the file has this build-id */
};

struct files {
    struct export_order order; /* an export format has no other context */
    const struct opened_profile *profile;
    int fds[FILES_MAX];
    uint32_t count;
    struct wanted list[FILES_MAX];
};

/* ---- Which ---- */

static int take_modules(const struct profile *profile, const struct export_settings *settings,
                        struct packed_output *output)
{
    struct files *files =
        (struct files *)((char *)settings - offsetof(struct files, order.settings));
    (void)output;
    for (uint32_t i = 0; i < profile->module_count && files->count < FILES_MAX; i++) {
        const struct module *module = profile->modules[i];
        struct wanted *wanted = &files->list[files->count];
        bool is_kernel = module && strcmp(module->path, "[kernel.kallsyms]") == 0;
        if (!module || module->build_id_size < 4 || (!is_kernel && module->path[0] != '/') ||
            strlen(module->path) >= sizeof wanted->path) {
            continue;
        }
        memcpy(wanted->path, module->path, strlen(module->path) + 1);
        memcpy(wanted->id, module->build_id, module->build_id_size);
        wanted->size = module->build_id_size;
        wanted->is_kernel = is_kernel;
        files->count++;
    }
    return 0;
}

/* In a process without rights. */
static int list_modules(void *context)
{
    static const struct export_format format = {.name = "modules", .write = take_modules};
    struct files *files = context;
    struct export_memory memory = {0};
    struct sample_sink *sink;
    char path[PATH_MAX + 16];
    snprintf(path, sizeof path, "%s/samples.saved", files->profile->path);
    files->order = (struct export_order){&format, {.path = path, .memory = &memory}};
    const struct replay_options options = {.input = path};
    if (export_sink_new(&files->order, 1, &sink) == 0) {
        (void)replay_run(&options, &sink, 1);
    }
    free(memory.bytes);
    return 0;
}

/* ---- Whether they are still the same ---- */

static int check_ids(void *context)
{
    struct files *files = context;
    for (uint32_t i = 0; i < files->count; i++) {
        struct wanted *wanted = &files->list[i];
        uint8_t id[OBJECT_ID_MAX];
        struct elf_file file;
        char path[32];
        snprintf(path, sizeof path, "/proc/self/fd/%d", files->fds[i]);
        if (files->fds[i] >= 0 && elf_file_open(-1, path, &file) == OBJECT_SOUND) {
            size_t size = elf_file_build_id(&file, id);
            wanted->is_sound = size == wanted->size && memcmp(id, wanted->id, size) == 0;
            elf_file_close(&file);
        }
    }
    return 0;
}

/* The kernel that runs is the one that was sampled: its notes have that build-id. */
static bool is_this_kernel(const struct wanted *wanted)
{
    uint8_t notes[4096];
    int fd = open("/sys/kernel/notes", O_RDONLY | O_CLOEXEC);
    ssize_t size = fd < 0 ? 0 : read(fd, notes, sizeof notes);
    if (fd >= 0) {
        close(fd);
    }
    return size > 0 && memmem(notes, (size_t)size, wanted->id, wanted->size) != NULL;
}

/* ---- All of it ---- */

static void run(struct files *files, int (*work)(void *context))
{
    struct rights *rights = rights_new();
    if (rights) {
        rights_hold(rights, files->profile->path, files->profile->directory);
        rights_read(rights, files->profile->path);
        (void)confined_run(&(struct confined_options){.rights = rights,
                                                      .what = "the samples",
                                                      .cpu_seconds = CONFINED_SECONDS,
                                                      .inner = true,
                                                      .work = work,
                                                      .context = files});
    }
    rights_free(rights);
}

/* Nothing that the process without rights has told is believed: count and texts have their bounds.
 */
static void bound(struct files *files)
{
    files->count = files->count < FILES_MAX ? files->count : FILES_MAX;
    for (uint32_t i = 0; i < files->count; i++) {
        struct wanted *wanted = &files->list[i];
        wanted->path[PATH_MAX - 1] = '\0';
        wanted->size = wanted->size <= MODULE_BUILD_ID_MAX ? wanted->size : 0;
    }
}

static void add(int profile, int fd, const struct wanted *wanted)
{
    struct image_copy copy = {.path = wanted->is_kernel ? "/[kernel.kallsyms]" : wanted->path,
                              .name = wanted->is_kernel ? "kallsyms" : "elf",
                              .id = wanted->id,
                              .size = wanted->size};
    (void)image_cache_copy(profile, fd, &copy);
}

/* Ours: what the shared memory says may change while we look. */
static void add_all(struct files *files, struct wanted *ours, int *fds)
{
    int profile = files->profile->directory;
    for (uint32_t i = 0; i < files->count; i++) {
        const struct wanted *wanted = &ours[i];
        fds[i] = -1;
        if (wanted->size < 4 || image_cache_has(profile, wanted->id, wanted->size)) {
            continue;
        }
        if (!wanted->is_kernel) {
            fds[i] = wanted->path[0] == '/' ? open_regular(wanted->path) : -1;
        } else if (is_this_kernel(wanted)) {
            fds[i] = open("/proc/kallsyms", O_RDONLY | O_CLOEXEC);
        }
    }
    memcpy(files->fds, fds, sizeof files->fds);
    uint32_t count = files->count;
    run(files, check_ids);
    for (uint32_t i = 0; i < count; i++) {
        if (fds[i] >= 0 && (ours[i].is_kernel || files->list[i].is_sound)) {
            add(profile, fds[i], &ours[i]);
        }
        if (fds[i] >= 0) {
            close(fds[i]);
        }
    }
}

void bundle_add_files(const struct opened_profile *profile)
{
    struct files *files = confined_shared(sizeof *files);
    struct wanted *ours = calloc(FILES_MAX, sizeof *ours);
    int *fds = calloc(FILES_MAX, sizeof *fds);
    if (files && ours && fds) {
        files->profile = profile;
        run(files, list_modules);
        files->profile = profile;
        bound(files);
        memcpy(ours, files->list, files->count * sizeof *ours);
        add_all(files, ours, fds);
    }
    free(fds);
    free(ours);
    confined_unshare(files, sizeof *files);
}
