/* jdperf bundle: one file of a profile, for another machine. */
#include "jdtool/base/descriptor.h"
#include "jdtool/base/message.h"
#include "jdtool/base/others_file.h"
#include "jdtool/base/packed_output.h"
#include "jdtool/base/text.h"
#include "jdtool/confined/confined.h"
#include "jdtool/exports/export.h"
#include "jdtool/live/child.h"
#include "jdtool/look/image_cache.h"
#include "jdtool/look/look.h"
#include "jdtool/look/opened_profile.h"
#include "jdtool/objects/elf_file.h"
#include "jdtool/pipeline/replay.h"
#include "jdtool/profile/profile.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Which files ---- */

/*
 * What a profile that is carried elsewhere has to have with it: the files whose code was sampled,
 * where perf's tools look for them by build-id.
 */

/* More than a recording has libraries. */
enum { FILES_MAX = 2048 };

/* Of these a process without rights tells what the samples say, and then what the files do. */
struct wanted {
    char path[PATH_MAX];
    uint8_t id[BUILD_ID_MAX];
    uint32_t size; /* of the build-id */
    bool is_kernel;
    bool is_sound; /* the file has this build-id */
};

struct files {
    const struct opened_profile *profile;
    int fds[FILES_MAX];
    uint32_t count;
    struct wanted list[FILES_MAX];
};

static int take_modules(const struct profile *profile, const struct export_settings *settings,
                        struct packed_output *output)
{
    struct files *files = settings->context;
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
    const struct export_order order = {&format,
                                       {.path = path, .memory = &memory, .context = files}};
    const struct replay_options options = {.input = path};
    if (export_sink_new(&order, 1, &sink) == 0) {
        (void)replay_run(&options, sink);
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
        uint8_t id[BUILD_ID_MAX];
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
    descriptor_close(fd);
    return size > 0 && memmem(notes, (size_t)size, wanted->id, wanted->size) != NULL;
}

/* ---- All of it ---- */

static void look(struct files *files, int (*work)(void *context))
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
        wanted->size = wanted->size <= BUILD_ID_MAX ? wanted->size : 0;
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
    const struct opened_profile *of = files->profile;
    int profile = of->directory;
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
    look(files, check_ids);
    opened_profile_be_owner(of);
    for (uint32_t i = 0; i < count; i++) {
        if (fds[i] >= 0 && (ours[i].is_kernel || files->list[i].is_sound)) {
            add(profile, fds[i], &ours[i]);
        }
        descriptor_close(fds[i]);
    }
    opened_profile_be_ourselves();
}

/* Adds those that are not there, of this machine. What fails is not told: it has no names there. */
static void bundle_add_files(const struct opened_profile *profile)
{
    struct files *files = confined_shared(sizeof *files);
    struct wanted *ours = calloc(FILES_MAX, sizeof *ours);
    int *fds = calloc(FILES_MAX, sizeof *fds);
    if (files && ours && fds) {
        files->profile = profile;
        look(files, list_modules);
        files->profile = profile;
        bound(files);
        memcpy(ours, files->list, files->count * sizeof *ours);
        add_all(files, ours, fds);
    }
    free(fds);
    free(ours);
    confined_unshare(files, sizeof *files);
}

/* ---- The profile ---- */

enum { ITEMS_MAX = 4096 };

struct kind {
    const char *ending;
    bool gzip; /* which we do: tar's gzip takes ten times as long */
    const char *option;
};

static const struct kind kinds[] = {
    {".tar", false, NULL},
    {".tar.gz", true, NULL},
    {".tgz", true, NULL},
    {".tar.xz", false, "--xz"},
};

static const struct kind *kind_of(const char *path)
{
    size_t size = strlen(path);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        size_t length = strlen(kinds[i].ending);
        if (size > length && strcmp(path + size - length, kinds[i].ending) == 0) {
            return &kinds[i];
        }
    }
    return NULL;
}

static const char *name_of(const struct look *look)
{
    return strrchr(look->profile.path, '/') + 1;
}

/* ---- What is missing ---- */

/* Names the code first, if need be. */
static int open_profile(struct look *look)
{
    const char *given = look->word_count ? look->words[0] : PROFILE_DEFAULT_DIR;
    if (look->word_count > 1 || look->more_count) {
        return wrong_usage(look->verb, "one profile at a time: %s",
                           look->word_count > 1 ? look->words[1] : look->more[0]);
    }
    return look_open_data(look, given);
}

/* What flame, view, annotate and export read where the recording is not. */
static void save_samples(struct look *look)
{
    struct look saving = {.verb = look->verb, .profile = look->profile};
    const char *out;
    if (opened_profile_has(&look->profile, "samples.saved")) {
        return;
    }
    WORDS_ADD(&saving.arguments, "export");
    if (look_export(&saving, "saved", "samples.saved", &out)) {
        info_message("failed to save the samples: flame, view, export and annotate will not work "
                     "on the other machine");
    }
    saving.profile = NO_PROFILE; /* look's */
    look_free(&saving);
}

/* ---- What explains it ---- */

static int write_how_to(const struct look *look)
{
    static const char file[] = "HOW-TO-OPEN";
    const char *name = name_of(look);
    int directory = look->profile.directory;
    (void)unlinkat(directory, file, 0); /* it may be another name of something */
    int fd = openat(directory, file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    FILE *out = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (!out) {
        failed_to(-errno, "write into %s", look->profile.path);
        return STATUS_FAILED;
    }
    fprintf(out,
            "A profile of a Java program, made with jdperf. To look at it, run in the directory\n"
            "above this one:\n"
            "\n"
            "    perf --buildid-dir %s/buildid report -i %s/perf.jit.data --max-stack 1000\n"
            "\n"
            "Or copy its files once (cp -r %s/buildid/. ~/.debug/); then all perf commands\n"
            "work without --buildid-dir:\n"
            "\n"
            "    perf report -i %s/perf.jit.data --max-stack 1000\n"
            "    perf annotate -i %s/perf.jit.data\n"
            "    perf script -i %s/perf.jit.data --max-stack 1000\n"
            "\n"
            "If jdperf is installed: jdperf report %s, jdperf flame %s, jdperf view %s.\n",
            name, name, name, name, name, name, name, name, name);
    if (fclose(out) != 0) {
        failed_to(-errno, "write into %s", look->profile.path);
        return STATUS_FAILED;
    }
    return STATUS_DONE;
}

/* ---- The archive ---- */

/* Everything behind the profile's name in the archive: "s,^,NAME/,S" for tar, where NAME may have
 * any characters; links keep where they lead. */
static char *transformation(const char *name)
{
    char *text = malloc(2 * strlen(name) + 32);
    char *to = text ? stpcpy(text, "--transform=s,^,") : NULL;
    for (; to && *name; name++) {
        if (strchr("\\&,\n", *name)) {
            *to++ = '\\';
        }
        *to++ = *name;
    }
    if (to) {
        memcpy(to, "/,S", 4);
    }
    return text;
}

/* The items that there are. Their number; the names of images are allocated. */
static int list_items(const struct look *look, char **items)
{
    static const char *const fixed[] = {"HOW-TO-OPEN", "perf.jit.data",  "samples.saved",
                                        "profile",     "scorecard.json", "flamegraph.html",
                                        "src",         "buildid"};
    int directory = look->profile.directory;
    int count = 0;
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) {
        if (faccessat(directory, fixed[i], F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
            items[count] = strdup(fixed[i]);
            count += items[count] != NULL;
        }
    }
    DIR *entries = directory_open(directory, ".");
    const struct dirent *entry;
    while (count < ITEMS_MAX && (entry = directory_next(entries))) {
        size_t size = strlen(entry->d_name);
        if (strncmp(entry->d_name, "perf.jit", 8) == 0 && size > 11 &&
            strcmp(entry->d_name + size - 3, ".so") == 0) {
            items[count] = strdup(entry->d_name);
            count += items[count] != NULL;
        }
    }
    directory_close(entries);
    return count;
}

/* What tar writes, packed, to its end. 0, -EINTR or another negative errno. */
static int take_archive(int from, struct waiting *waiting, struct packed_output *output)
{
    uint8_t piece[65536];
    ssize_t n;
    do {
        struct pollfd archive = {.fd = from, .events = POLLIN};
        int err = wait_for(waiting, &archive, 1, NO_DEADLINE, true);
        if (err) {
            return err;
        }
        n = read(from, piece, sizeof piece);
        if (n > 0) {
            packed_output_put(output, piece, (size_t)n);
        }
    } while (n > 0);
    return n < 0 ? -errno : 0;
}

/* tar's exit status 1: a file has changed meanwhile. perf makes hard links to libraries, so another
 * recording that links the same one changes its inode, not what is in it. Images are as large as
 * the code cache, and mostly holes, which they stay where they are unpacked. */
static int run_tar(const struct look *look, const struct kind *kind, struct packed_output *output,
                   char **arguments)
{
    char directory[64];
    char *transform = transformation(name_of(look));
    struct child child = NO_CHILD;
    struct waiting waiting;
    int count = 0;
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        free(transform);
        return -errno;
    }
    snprintf(directory, sizeof directory, "--directory=/proc/%d/fd/%d", (int)getpid(),
             look->profile.directory);
    char *const options[] = {
        (char *)"tar",       (char *)"--warning=no-file-changed",
        (char *)"--sparse",  (char *)"--create",
        (char *)"--file=-",  (char *)"--owner=0",
        (char *)"--group=0", directory,
        transform,
    };
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        arguments[count++] = options[i];
    }
    if (kind->option) {
        arguments[count++] = (char *)kind->option;
    }
    int first = count;
    count += list_items(look, arguments + count);
    arguments[count] = NULL;
    struct child_options child_options = {.arguments = arguments,
                                          .in = -1,
                                          .out = ends[1],
                                          .err = STDERR_FILENO,
                                          .death_signal = SIGKILL};
    int err = !transform ? -ENOMEM : waiting_start(&waiting);
    err = err ? err : child_start(&child, &child_options);
    close(ends[1]);
    err = err ? err : take_archive(ends[0], &waiting, output);
    close(ends[0]);
    err = err ? err : child_wait(&child, &waiting, NO_DEADLINE, true);
    err = err ? err : child.status > 1 ? -EIO : 0;
    child_end(&child);
    for (int i = first; i < count; i++) {
        free(arguments[i]);
    }
    free(transform);
    return err;
}

static int pack(const struct look *look, const struct kind *kind, struct packed_output *output)
{
    char **arguments = calloc(ITEMS_MAX + 32, sizeof *arguments);
    int err = arguments ? run_tar(look, kind, output, arguments) : -ENOMEM;
    free(arguments);
    return err;
}

static int make(struct look *look, const struct kind *kind, const char *out)
{
    struct packed_output *output;
    struct stat status;
    char size[TEXT_SIZE_MAX];
    if (packed_output_open(out, kind->gzip, &output)) {
        return STATUS_FAILED;
    }
    save_samples(look);
    bundle_add_files(&look->profile);
    opened_profile_be_owner(&look->profile);
    image_cache_add(look->profile.directory);
    int result = write_how_to(look);
    opened_profile_be_ourselves();
    int err = result ? 0 : pack(look, kind, output);
    if (err) {
        error_message("failed to write %s: %s", out,
                      err == -EIO ? "tar has failed" : strerror(-err));
    }
    if (result || err) {
        packed_output_abort(output);
        return STATUS_FAILED;
    }
    if (packed_output_finish(output)) {
        return STATUS_FAILED;
    }
    text_size(stat(out, &status) == 0 ? (uint64_t)status.st_size : 0, size);
    const char *name = name_of(look);
    const char *file = basename(out);
    info_message("%s: %s; another machine opens it with: tar xf %s%s && jdperf report %s, or "
                 "without jdperf: perf --buildid-dir %s/buildid report -i %s/perf.jit.data",
                 out, size, strchr(file, ':') ? "./" : "" /* else tar asks another host */, file,
                 name, name, name);
    return STATUS_DONE;
}

/* ---- The command line ---- */

static int run(const struct verb *verb, int argc, char **argv)
{
    static const struct verb_option options[] = {LOOK_OUTPUT, OPTION_END};
    struct look look;
    char *beside = NULL;
    const struct kind *kind = NULL;
    int status = look_parse(&look, verb, argc, argv, options);
    if (!status && look.output && !kind_of(look.output)) {
        status =
            wrong_usage(verb, "unknown kind of file: %s (.tar, .tar.gz, .tar.xz)", look.output);
    }
    status = status ? status : open_profile(&look);
    if (!status && asprintf(&beside, "%s.tar.gz", name_of(&look)) < 0) {
        beside = NULL;
        failed_to(-ENOMEM, "start bundle");
        status = STATUS_FAILED;
    }
    if (!status) {
        const char *out = look.output ? look.output : beside;
        kind = kind_of(out);
        opened_profile_tell_doubts(&look.profile);
        status = make(&look, kind, out);
    }
    free(beside);
    look_free(&look);
    return status;
}

const struct verb live_bundle = {
    .name = "bundle",
    .run = run,
    .help = "usage: jdperf bundle [DIR] [-o FILE]\n"
            "\n"
            "Packs the profile DIR (default: " PROFILE_DEFAULT_DIR ") into DIR.tar.gz or FILE\n"
            "(.tar, .tar.gz, .tar.xz): the recording, the generated code, the sampled libraries\n"
            "and kernel symbols, and the scorecard. Another machine opens it with perf alone,\n"
            "without the JVM, the JDK and the dumps. The file HOW-TO-OPEN in it explains how.\n",
};
