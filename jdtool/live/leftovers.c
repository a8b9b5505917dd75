#include "jdtool/live/leftovers.h"

#include "jdtool/base/array.h"
#include "jdtool/base/descriptor.h"
#include "jdtool/base/message.h"
#include "jdtool/base/others_file.h"
#include "jdtool/base/processes.h"
#include "jdtool/base/text.h"
#include "jdtool/live/fetch.h"
#include "jdtool/live/process.h"
#include "jdtool/live/staging.h"
#include "jdtool/live/target.h"
#include "jdtool/live/verbs.h"
#include "jdtool/record/probes.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

struct identity {
    dev_t device;
    ino_t inode;
    uint64_t mount; /* of a root directory: which mount it is in */
};

struct identities {
    struct identity *list;
    uint32_t count, room;
};

struct search {
    void (*take)(void *context, const struct leftover *leftover);
    void *context;
    struct identities dumps;  /* that JVMs write now, and the directories they are in */
    struct identities places; /* that were looked at */
};

static bool has(const struct identities *identities, const struct identity *one)
{
    for (size_t i = 0; i < identities->count; i++) {
        const struct identity *other = &identities->list[i];
        if (other->device == one->device && other->inode == one->inode &&
            other->mount == one->mount) {
            return true;
        }
    }
    return false;
}

static void add(struct identities *identities, const struct identity *identity)
{
    if (ARRAY_RESERVE(identities->list, identities->count, identities->room) == 0) {
        identities->list[identities->count++] = *identity;
    }
}

static void add_status(struct identities *identities, const struct stat *status)
{
    struct identity identity = {.device = status->st_dev, .inode = status->st_ino};
    add(identities, &identity);
}

static bool has_status(const struct identities *identities, const struct stat *status)
{
    struct identity one = {.device = status->st_dev, .inode = status->st_ino};
    return has(identities, &one);
}

/* ---- What lives ---- */

static bool take_jvm(void *context, pid_t pid, const char *name)
{
    struct search *search = context;
    struct target target;
    struct fetch fetch;
    struct stat status;
    char dump[PATH_MAX];
    (void)name;
    if (target_open(&target, pid) != 0) {
        return true;
    }
    if (target_dump(&target, dump) && fetch_find(&fetch, &target, dump, "/") == 0) {
        if (fstat(fetch.directory, &status) == 0) {
            add_status(&search->dumps, &status);
        }
        fetch_close(&fetch);
    }
    target_close(&target);
    return true;
}

static bool process_is_gone(pid_t pid)
{
    char path[32];
    struct stat status;
    snprintf(path, sizeof path, "/proc/%d", (int)pid);
    return stat(path, &status) != 0 && errno == ENOENT;
}

/* ---- Telling ---- */

static uint64_t size_below(int place, const char *name, int depth)
{
    struct stat status;
    if (fstatat(place, name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
        return 0;
    }
    uint64_t bytes = (uint64_t)status.st_blocks * 512;
    DIR *entries = S_ISDIR(status.st_mode) && depth > 0 ? directory_open(place, name) : NULL;
    const struct dirent *entry;
    while ((entry = directory_next(entries))) {
        bytes += size_below(dirfd(entries), entry->d_name, depth - 1);
    }
    directory_close(entries);
    return bytes;
}

uint64_t leftover_size(int place, const char *name)
{
    return size_below(place, name, 16);
}

static void tell(const struct search *search, int place, const char *prefix, const char *name)
{
    char path[2 * PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", prefix, name);
    struct leftover leftover = {place, name, path, leftover_size(place, name)};
    search->take(search->context, &leftover);
}

/* Calls `wanted` for all that is in a directory, and tells of what it likes. */
static void look_into(const struct search *search, int place, const char *prefix,
                      bool (*wanted)(const struct search *search, int place, const char *name,
                                     const struct stat *status))
{
    DIR *entries = directory_open(place, ".");
    const struct dirent *entry;
    struct stat status;
    while ((entry = directory_next(entries))) {
        if (fstatat(place, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
            (status.st_uid == geteuid() || geteuid() == 0) &&
            wanted(search, place, entry->d_name, &status)) {
            tell(search, place, prefix, entry->d_name);
        }
    }
    directory_close(entries);
}

/* ---- Staging directories ---- */

static bool lease_is_taken(const struct staging *staging, const struct stat *status)
{
    int lease = open_file_below(staging->directory, LEASE_NAME, status->st_uid, O_RDONLY);
    bool taken = lease >= 0 && lease_is_held(lease);
    descriptor_close(lease);
    return taken;
}

static bool is_old_staging(const struct search *search, int place, const char *name,
                           const struct stat *status)
{
    struct staging staging = {.place = place, .directory = -1};
    if (!S_ISDIR(status->st_mode) || !staging_is_name(name)) {
        return false;
    }
    snprintf(staging.name, sizeof staging.name, "%.*s", (int)sizeof staging.name - 1, name);
    if (staging_open(&staging) != 0) {
        return false;
    }
    bool lives = lease_is_taken(&staging, status) || has_status(&search->dumps, status);
    close(staging.directory);
    return !lives;
}

static void look_for_staging(struct search *search, int root, const char *prefix)
{
    struct target target = {.root = root};
    for (const char *const *place = staging_places; *place; place++) {
        char path[PATH_MAX];
        struct stat status;
        int fd = target_open_directory(&target, *place);
        if (fd < 0) {
            continue;
        }
        /* Several namespaces may share one. */
        if (fstat(fd, &status) == 0 && !has_status(&search->places, &status)) {
            add_status(&search->places, &status);
            snprintf(path, sizeof path, "%s%s", prefix, *place);
            look_into(search, fd, path, is_old_staging);
        }
        close(fd);
    }
}

/* Another namespace's root, or that of a process that was chrooted, may be the same directory by
 * another mount, below which others are mounted. */
static bool identify_root(int root, struct identity *identity)
{
    struct statx status;
    if (statx(root, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_MNT_ID, &status) != 0) {
        return false;
    }
    *identity = (struct identity){
        .device = makedev(status.stx_dev_major, status.stx_dev_minor),
        .inode = status.stx_ino,
        .mount = status.stx_mask & STATX_MNT_ID ? status.stx_mnt_id : 0,
    };
    return true;
}

struct namespaces {
    struct search *search;
    struct identities roots;
};

static bool look_into_root(void *context, pid_t pid)
{
    struct namespaces *namespaces = context;
    struct live_process process;
    if (process_open(pid, &process) != 0) {
        return true;
    }
    int root = openat(process.directory, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct identity identity;
    if (root >= 0 && identify_root(root, &identity) && !has(&namespaces->roots, &identity)) {
        char prefix[64];
        add(&namespaces->roots, &identity);
        snprintf(prefix, sizeof prefix, "/proc/%d/root", (int)pid);
        look_for_staging(namespaces->search, root, prefix);
    }
    descriptor_close(root);
    process_close(&process);
    return true;
}

/* For root, the directories of all mount namespaces, and of what was chrooted in one. */
static void look_into_namespaces(struct search *search)
{
    struct namespaces namespaces = {.search = search};
    if (geteuid() == 0) {
        processes_walk(look_into_root, &namespaces);
    }
    free(namespaces.roots.list);
}

/* ---- The rest ---- */

/* The number between a prefix and a suffix that begins with '.', 0: it is no such name. */
static pid_t pid_in(const char *name, const char *prefix, size_t *rest)
{
    size_t length = strlen(prefix);
    if (strncmp(name, prefix, length) != 0 || name[length] < '1' || name[length] > '9') {
        return 0;
    }
    char *end = NULL;
    long pid = strtol(name + length, &end, 10);
    *rest = (size_t)(end - name);
    return pid > 0 && pid < INT32_MAX ? (pid_t)pid : 0;
}

/* The temporary directories of jdperfs that were killed. */
static bool is_scratch(const struct search *search, int place, const char *name,
                       const struct stat *status)
{
    size_t rest = 0;
    pid_t pid = pid_in(name, "jdperf.", &rest);
    (void)search;
    (void)place;
    return pid && S_ISDIR(status->st_mode) && name[rest] == '.' && strlen(name + rest) == 9 &&
           process_is_gone(pid);
}

/* In a container's /tmp pids are the container's, so only maps on this side can be judged. */
static bool is_old_map(const struct search *search, int place, const char *name,
                       const struct stat *status)
{
    size_t rest = 0;
    pid_t pid = pid_in(name, "perf-", &rest);
    (void)search;
    (void)place;
    return pid && S_ISREG(status->st_mode) && strcmp(name + rest, ".map") == 0 &&
           process_is_gone(pid);
}

static bool is_old_dump(const struct search *search, int place, const char *name,
                        const struct stat *status)
{
    (void)place;
    return S_ISDIR(status->st_mode) && strncmp(name, "java-jit-", 9) == 0 &&
           !has_status(&search->dumps, status);
}

static void look_at(const struct search *search, const char *path,
                    bool (*wanted)(const struct search *search, int place, const char *name,
                                   const struct stat *status))
{
    int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        look_into(search, fd, path, wanted);
        close(fd);
    }
}

/* What perf inject --jit put into the build-id cache: useless without the recording it was made
 * for, and by the ten thousand. */
static void look_for_injected(const struct search *search, int place, const char *prefix, int depth)
{
    DIR *entries = directory_open(place, ".");
    const struct dirent *entry;
    while (depth > 0 && (entry = directory_next(entries))) {
        char path[PATH_MAX];
        const char *name = entry->d_name;
        size_t length = strlen(name);
        if (strncmp(name, "jitted-", 7) == 0 && strcmp(name + length - 3, ".so") == 0) {
            tell(search, dirfd(entries), prefix, name);
            continue;
        }
        int below = openat(dirfd(entries), name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (below >= 0) {
            if (snprintf(path, sizeof path, "%s/%s", prefix, name) < PATH_MAX) {
                look_for_injected(search, below, path, depth - 1);
            }
            close(below);
        }
    }
    directory_close(entries);
}

static void look_at_what_others_want(const struct search *search)
{
    char path[PATH_MAX];
    const char *home = getenv("HOME");
    const char *base = getenv("JITDUMPDIR");
    look_at(search, "/tmp", is_old_map);
    base = base && *base ? base : home;
    if (base && snprintf(path, sizeof path, "%s/.debug/jit", base) < PATH_MAX) {
        look_at(search, path, is_old_dump);
    }
    if (home && snprintf(path, sizeof path, "%s/.debug", home) < PATH_MAX) {
        int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (fd >= 0) {
            look_for_injected(search, fd, path, 32);
            close(fd);
        }
    }
}

void leftovers_find(bool all, void (*take)(void *context, const struct leftover *leftover),
                    void *context)
{
    struct search search = {.take = take, .context = context};
    const char *temporary = getenv("TMPDIR");
    int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    target_walk(take_jvm, &search);
    if (root >= 0) {
        look_for_staging(&search, root, "");
        close(root);
    }
    look_into_namespaces(&search);
    look_at(&search, temporary && *temporary ? temporary : "/tmp", is_scratch);
    if (all) {
        look_at_what_others_want(&search);
    }
    free(search.dumps.list);
    free(search.places.list);
}

/* ---- The verb ---- */

/* jdperf clean: what sessions, kills and other tools left behind. */

struct cleaning {
    bool dry, all;
    unsigned count;
    uint64_t bytes;
};

static void take(void *context, const struct leftover *leftover)
{
    struct cleaning *cleaning = context;
    char size[TEXT_SIZE_MAX];
    text_size(leftover->bytes, size);
    if (!cleaning->dry && remove_tree(leftover->place, leftover->name) != 0) {
        return;
    }
    fputs(cleaning->dry ? "would remove " : "removed ", stdout);
    text_print(stdout, leftover->path);
    printf(" (%s)\n", size);
    cleaning->count++;
    cleaning->bytes += leftover->bytes;
}

/* The kernel's probes of recordings that were killed together with their guardian. */
static void take_probes(void *context, const char *group)
{
    struct cleaning *cleaning = context;
    if (!cleaning->dry) {
        probes_remove(group);
    }
    printf("%s the probes %s\n", cleaning->dry ? "would remove" : "removed", group);
    cleaning->count++;
}

static int run(const struct verb *verb, int argc, char **argv)
{
    static const struct verb_option options[] = {
        OPTION_FLAG("dry-run", 'n', struct cleaning, dry),
        OPTION_FLAG("all", 0, struct cleaning, all),
        OPTION_END,
    };
    struct cleaning cleaning = {0};
    int status = verb_options(verb, argc, argv, options, &cleaning);
    if (status) {
        return status;
    }
    leftovers_find(cleaning.all, take, &cleaning);
    probes_find_left(take_probes, &cleaning);
    char size[TEXT_SIZE_MAX];
    text_size(cleaning.bytes, size);
    if (cleaning.count) {
        info_message("%u %s%s, %s", cleaning.count, cleaning.count == 1 ? "leftover" : "leftovers",
                     cleaning.dry ? " to remove" : "", size);
    } else {
        info_message("nothing to clean");
    }
    return finish_output();
}

const struct verb live_clean = {
    .name = "clean",
    .words = VERB_HAS_NO_WORDS,
    .run = run,
    .help = "usage: jdperf clean [-n] [--all]\n"
            "\n"
            "Removes leftovers of earlier runs: directories in /tmp of sessions that have ended\n"
            "and of a jdperf that was killed, and probes in the kernel. As root, it removes those\n"
            "of all users and in running containers. It never removes running recordings and\n"
            "profiles (-o DIR).\n"
            "\n"
            "  -n, --dry-run       only list them\n"
            "      --all           also remove perf maps in /tmp and dumps below ~/.debug/jit of\n"
            "                      JVMs that have ended, and the files of perf inject --jit in\n"
            "                      ~/.debug; other tools may still use these\n",
};
