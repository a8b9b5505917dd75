#include "jdtool/live/target.h"

#include "jdtool/base/descriptor.h"
#include "jdtool/base/message.h"
#include "jdtool/base/others_file.h"
#include "jdtool/base/processes.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct mapped_name libjvm = {.prefix = "libjvm", .suffix = ".so"};

/* ---- Its files ---- */

/* As the process would: a link of a package's is followed, inside of its root. Without openat2 no
 * link is. */
static int open_in_root(int root, const char *path, int flags)
{
    int fd =
        open_resolved(root, *path ? path : ".", flags, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
    return fd == -ENOSYS || fd == -EPERM ? open_below(root, path, flags) : fd;
}

int target_open_directory(const struct target *target, const char *path)
{
    return open_below(target->root, path, O_PATH | O_DIRECTORY);
}

int target_open_file(const struct target *target, const char *path)
{
    return open_file_below(target->root, path, target->uid, O_RDONLY);
}

/* ---- What is to know of it ---- */

bool target_is_like_us(const struct target *target)
{
    return target->same_files && target->uid == geteuid();
}

static bool same_namespace(const struct live_process *process, const char *path)
{
    struct stat theirs;
    struct stat ours;
    char self[64];
    snprintf(self, sizeof self, "/proc/self/%s", path);
    return fstatat(process->directory, path, &theirs, 0) == 0 && stat(self, &ours) == 0 &&
           theirs.st_dev == ours.st_dev && theirs.st_ino == ours.st_ino;
}

/* "17.0.9"; a JDK 8 says "1.8.0". 0: neither. */
static int major_version(const char *text)
{
    return (int)strtol(text + (strncmp(text, "1.", 2) == 0 ? 2 : 0), NULL, 10);
}

/* From the `release` file in its home: JAVA_VERSION="17.0.9". */
static int version_of_home(const struct target *target)
{
    static const char key[] = "JAVA_VERSION=\"";
    char path[PATH_MAX + 16];
    char text[4096];
    snprintf(path, sizeof path, "%s/release", target->java_home);
    int fd = open_in_root(target->root, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
    struct stat status;
    ssize_t n = 0;
    if (fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) {
        n = read(fd, text, sizeof text - 1);
    }
    descriptor_close(fd);
    text[n > 0 ? n : 0] = '\0';
    const char *at = strstr(text, key);
    return at ? major_version(at + sizeof key - 1) : 0;
}

/* One of its counters, in hsperfdata_USER/PID, which it has mapped. A counter's name is followed by
 * its value, with NULs between for alignment. "": not known. */
static void read_counter(const struct live_process *process, int root, uid_t uid, const char *key,
                         char *value, size_t size)
{
    static const struct mapped_name name = {
        .prefix = "", .digits = true, .suffix = "", .data = true};
    enum { LIMIT = 64 << 10 };
    char path[PATH_MAX];
    int fd = process_mapped(process, &name, path) && strstr(path, "/hsperfdata_")
                 ? open_file_below(root, path, uid, O_RDONLY)
                 : -1;
    char *text = fd >= 0 ? malloc(LIMIT + 1) : NULL;
    value[0] = '\0';
    if (text) {
        ssize_t n = read(fd, text, LIMIT);
        const char *end = text + (n > 0 ? n : 0);
        text[n > 0 ? n : 0] = '\0';
        const char *at = memmem(text, (size_t)(end - text), key, strlen(key) + 1);
        for (at = at ? at + strlen(key) + 1 : end; at < end && !*at; at++) {
        }
        snprintf(value, size, "%s", at);
    }
    free(text);
    descriptor_close(fd);
}

/* There is no release file, or none any more where a package's upgrade removed a JDK whose JVMs run
 * on. */
static int version_of_counters(const struct target *target)
{
    char version[32];
    read_counter(&target->process, target->root, target->uid, "java.property.java.version", version,
                 sizeof version);
    return major_version(version);
}

static void find_home(struct target *target)
{
    static const char *const places[] = {"/lib/server/", "/lib/amd64/server/",
                                         "/lib/aarch64/server/"};
    char path[PATH_MAX];
    if (!process_mapped(&target->process, &libjvm, path)) {
        return;
    }
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        char *at = strstr(path, places[i]);
        if (at) {
            *at = '\0';
            memcpy(target->java_home, path, strlen(path) + 1);
            target->java = version_of_home(target);
            if (target->java == 0 && i > 0) {
                target->java = 8; /* Debian's has no such file; the later ones' places are others */
            }
            break;
        }
    }
    if (target->java == 0) {
        target->java = version_of_counters(target);
    }
}

static int describe(struct target *target)
{
    struct live_process *process = &target->process;
    target->ns_pid = (pid_t)process_status(process, "NSpid", true, 10);
    target->ns_pid = target->ns_pid ? target->ns_pid : process->pid;
    struct stat status;
    /* Uid: real, effective, saved, file system; the third and fourth may be set apart by none. */
    char text[8192];
    unsigned uids[2] = {0};
    unsigned gids[2] = {0};
    if (process_read(process, "status", text, sizeof text) <= 0) {
        return -ESRCH;
    }
    const char *uid = strstr(text, "\nUid:");
    const char *gid = strstr(text, "\nGid:");
    if (!uid || !gid || sscanf(uid, "\nUid: %u %u", &uids[0], &uids[1]) != 2 || /* NOLINT */
        sscanf(gid, "\nGid: %u %u", &gids[0], &gids[1]) != 2) {                 /* NOLINT */
        return -EINVAL;
    }
    target->uid = uids[1];
    target->gid = gids[1];
    target->root = openat(process->directory, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (target->root < 0) {
        return -errno;
    }
    struct stat here;
    struct process_root root; /* a directory that is mounted there again is the same by its inode */
    process_root_read(process->directory, &root);
    target->same_files = same_namespace(process, "ns/mnt") && fstat(target->root, &status) == 0 &&
                         stat("/", &here) == 0 && status.st_dev == here.st_dev &&
                         status.st_ino == here.st_ino && !*root.path;
    find_home(target);
    return 0;
}

int target_open(struct target *target, pid_t pid)
{
    char path[PATH_MAX];
    *target = NO_TARGET;
    int err = process_open(pid, &target->process);
    if (!err && !process_mapped(&target->process, &libjvm, path)) {
        err = -ENOEXEC;
    }
    if (!err) {
        err = describe(target);
    }
    if (err) {
        target_close(target);
    }
    return err;
}

void target_close(struct target *target)
{
    descriptor_close(target->root);
    target->root = -1;
    process_close(&target->process);
}

static const struct mapped_name agent_name = {.prefix = "libjdagent", .suffix = ".so"};

bool target_agent(const struct target *target, char path[PATH_MAX])
{
    return process_mapped(&target->process, &agent_name, path);
}

bool target_agent_gone(const struct target *target, const char *path, char mapped[PATH_MAX])
{
    struct stat status;
    int fd = open_in_root(target->root, path, O_PATH);
    bool there = fd >= 0 && fstat(fd, &status) == 0 &&
                 process_maps_inode(&target->process, status.st_dev, status.st_ino);
    descriptor_close(fd);
    return !there && process_mapped_file(&target->process, &agent_name, mapped);
}

bool target_libjvm(const struct target *target, char path[PATH_MAX])
{
    return process_mapped(&target->process, &libjvm, path);
}

bool target_dump(const struct target *target, char path[PATH_MAX])
{
    static const struct mapped_name name = {
        .prefix = "jit-", .digits = true, .suffix = ".dump", .last = true};
    return process_mapped(&target->process, &name, path);
}

/* Attaching begins with SIGQUIT, which ends a JVM that does not catch it yet: one that has just
 * been started. (One with -Xrs never does, but has its socket from the start.) */
bool target_listens(const struct target *target)
{
    char path[64];
    struct stat status;
    snprintf(path, sizeof path, "/tmp/.java_pid%d", (int)target->ns_pid);
    int fd = open_below(target->root, path, O_PATH | O_NOFOLLOW);
    bool socket = fd >= 0 && fstat(fd, &status) == 0 && S_ISSOCK(status.st_mode);
    descriptor_close(fd);
    return socket || (process_status(&target->process, "SigCgt", false, 16) & 4) != 0;
}

/* ---- By name ---- */

/* "/usr/bin/java", "java-21"; not "javac". */
static const char *program_of(const char *path, bool *is_java)
{
    const char *program = basename(path);
    *is_java |= strncmp(program, "java", 4) == 0 && !isalpha((unsigned char)program[4]);
    return program;
}

/* Main class and arguments, as the JVM's launcher found them. */
static void java_command(const struct live_process *process, char *name, size_t size)
{
    int root = openat(process->directory, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
    uid_t uid = (uid_t)process_status(process, "Uid", false, 10);
    read_counter(process, root, uid, "sun.rt.javaCommand", name, size);
    descriptor_close(root);
}

void process_java_name(const struct live_process *process, char *name, size_t size)
{
    enum { LIMIT = 1024 * 1024 }; /* a class path alone may have some 100 KB */
    static const char *const with_value[] = {"-cp",
                                             "-classpath",
                                             "--class-path",
                                             "-p",
                                             "--module-path",
                                             "--upgrade-module-path",
                                             "--limit-modules",
                                             "--add-modules",
                                             "--add-opens",
                                             "--add-exports",
                                             "--add-reads",
                                             "--patch-module",
                                             "--enable-native-access",
                                             "--source"};
    static char none[1];
    size_t length = 0;
    char *read = process_read_all(process, "cmdline", LIMIT, &length);
    const char *text = read ? read : none;
    const char *end = text + length;
    end -= end > text && !end[-1]; /* the last argument's */
    char executable[PATH_MAX] = "";
    /* It may go by another name ("exec -a shop java …"). */
    if (readlinkat(process->directory, "exe", executable, sizeof executable - 1) < 0) {
        executable[0] = '\0';
    }
    bool is_java = false;
    (void)program_of(executable, &is_java);
    const char *program = program_of(text, &is_java);
    /* javac and the like have their main class within, programs that hold a JVM name none: they go
     * by their own names. */
    const char *at = is_java ? text + strlen(text) + 1 : program;
    bool has_file = false; /* of options, which IDEs make, and perhaps of the class */
    while (is_java && at < end && (*at == '-' || *at == '@')) {
        has_file |= *at == '@';
        bool last = strcmp(at, "-jar") == 0 || strcmp(at, "-m") == 0 || strcmp(at, "--module") == 0;
        for (size_t i = 0; i < sizeof with_value / sizeof *with_value; i++) {
            if (strcmp(at, with_value[i]) == 0) {
                at += strlen(at) + 1;
                break;
            }
        }
        at += at < end ? strlen(at) + 1 : 0;
        if (last) {
            break;
        }
    }
    if (has_file) {
        java_command(process, name, size);
        if (*name) {
            free(read);
            return;
        }
    }
    at = at < end && !(has_file && !isalpha((unsigned char)*at)) ? at : text;
    size_t used = 0;
    for (; at < end && used + 1 < size; at++) {
        name[used] = *at;
        if (!name[used]) {
            name[used] = ' ';
        }
        used++;
    }
    name[used] = '\0';
    free(read);
}

struct walk {
    bool (*take)(void *context, pid_t pid, const char *name);
    void *context;
};

static bool take_jvm(void *context, pid_t pid)
{
    const struct walk *walk = context;
    struct live_process process;
    char path[PATH_MAX];
    char name[2048];
    bool more = true;
    if (process_open(pid, &process) != 0) {
        return true;
    }
    if (process_mapped(&process, &libjvm, path)) {
        process_java_name(&process, name, sizeof name);
        more = walk->take(walk->context, pid, name);
    }
    process_close(&process);
    return more;
}

bool target_name_has(const char *name, char *const *parts)
{
    while (*parts && !strstr(name, *parts)) {
        parts++;
    }
    return *parts;
}

void target_walk(bool (*take)(void *context, pid_t pid, const char *name), void *context)
{
    struct walk walk = {take, context};
    processes_walk(take_jvm, &walk);
}

struct name_search {
    const char *word;
    unsigned count;
    pid_t pid;
    bool tell;
};

static bool take_name(void *context, pid_t pid, const char *name)
{
    struct name_search *search = context;
    if (strstr(name, search->word)) {
        search->count++;
        search->pid = pid;
        if (search->tell) {
            detail_message("", "%d %.110s", (int)pid, name);
        }
    }
    return true;
}

static int find_by_name(const char *word, pid_t *pid)
{
    struct name_search search = {.word = word};
    target_walk(take_name, &search);
    if (search.count == 0) {
        error_message("no JVM's name contains '%s': jdperf jvms lists them", word);
        return -ESRCH;
    }
    if (search.count > 1) {
        error_message("'%s' is part of %u JVMs' names: give a pid, or more of the name", word,
                      search.count);
        search.tell = true;
        target_walk(take_name, &search);
        return -EINVAL;
    }
    *pid = search.pid;
    return 0;
}

/* ---- Finding one ---- */

const char *target_user(uid_t uid)
{
    static char number[32];
    const struct passwd *user = getpwuid(uid);
    snprintf(number, sizeof number, "uid %u", (unsigned)uid);
    return user ? user->pw_name : number;
}

/* Says why the process of that pid is none that we can work with: with the remedy behind a colon.
 */
static int refuse(pid_t pid, int err)
{
    struct live_process process;
    struct stat status;
    char byte[2];
    if (process_open(pid, &process) != 0) {
        error_message("there is no process %d: jdperf jvms lists the JVMs", (int)pid);
        return -ESRCH;
    }
    /* Linux 6.18 shows maps to who has CAP_PERFMON, and does not let him see its root. */
    if (fstatat(process.directory, "", &status, AT_EMPTY_PATH) == 0 &&
        (err == -EACCES || process_read(&process, "maps", byte, sizeof byte) < 0)) {
        char *owner = strdup(target_user(status.st_uid));
        /* As its user, or as a root without its capabilities: ptrace(2), "Ptrace access mode
         * checking". A java with file capabilities, and one that was another user's when it began
         * (jsvc), cannot be looked into by its user. */
        const char *why = ": run as that user or as root";
        if (geteuid() == 0) {
            why = ", because root has no CAP_SYS_PTRACE here: give it that (docker: --cap-add "
                  "SYS_PTRACE), or run jdperf on the host";
        } else if (geteuid() == status.st_uid) {
            why = ", because it has more capabilities (getcap shows those of a java), or began as "
                  "another user (jsvc): run as root";
        }
        error_message("process %d belongs to %s, and the kernel denies %s access to it%s", (int)pid,
                      owner ? owner : "?", target_user(geteuid()), why);
        free(owner);
        err = -EPERM;
    } else if (err == -ENOEXEC) {
        error_message("process %d is not a HotSpot JVM (it has no libjvm.so loaded): jdperf jvms "
                      "lists the JVMs",
                      (int)pid);
    } else {
        failed_to(err, "look into process %d", (int)pid);
    }
    process_close(&process);
    return err;
}

static int wait_until_it_listens(const struct target *target, struct waiting *waiting)
{
    int pid = (int)target->process.pid;
    int64_t deadline = deadline_in(4000);
    while (!target_listens(target)) {
        struct pollfd ends = {.fd = target->process.pidfd, .events = POLLIN};
        int64_t soon = deadline_in(50);
        if (now_ms() >= deadline) {
            error_message("process %d does not accept attach requests yet (it is still starting, "
                          "or blocks its signals): try again later",
                          pid);
            return -EAGAIN;
        }
        int err = wait_for(waiting, &ends, 1, soon, true);
        if (err == 0) {
            error_message("process %d has ended", pid);
            return -ESRCH;
        }
        if (err == -EINTR) {
            error_message("interrupted before process %d accepted attach requests", pid);
            return err;
        }
    }
    return 0;
}

int target_find(struct target *target, const char *word, struct waiting *waiting)
{
    char *end = NULL;
    pid_t pid = (pid_t)strtol(word, &end, 10);
    *target = NO_TARGET;
    if (*end || end == word || pid <= 0) {
        int err = find_by_name(word, &pid);
        if (err) {
            return err;
        }
    }
    int err = target_open(target, pid);
    if (err) {
        return refuse(pid, err);
    }
    struct process_halt halt;
    if (process_is_halted(&target->process, &halt)) {
        error_message("process %d is %s (%s) and cannot answer: %s", (int)pid, halt.how,
                      halt.by_whom, halt.remedy);
        err = -EAGAIN;
    } else if (!target->same_files && geteuid() != 0) {
        error_message("process %d is in a container: only root can attach from outside", (int)pid);
        err = -EPERM;
    } else {
        err = wait_until_it_listens(target, waiting);
    }
    if (err) {
        target_close(target);
    }
    return err;
}
