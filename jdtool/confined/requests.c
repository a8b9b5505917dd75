#include "jdtool/confined/requests.h"

#include "jdtool/base/descriptor.h"
#include "jdtool/base/others_file.h"
#include "jdtool/base/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* libc adds it, and calls it 0: that of x86-64 and of aarch64, where each is the other's
 * O_NOFOLLOW. */
#define KERNEL_LARGEFILE (0100000 | 0400000)

/* What its open may say. */
#define READ_FLAGS                                                                                 \
    (O_ACCMODE | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW | O_DIRECTORY | O_PATH)

/* ---- Its memory and its descriptors ---- */

static bool read_memory(const struct requests *requests, uint64_t from, void *to, size_t size)
{
    struct iovec ours = {to, size};
    struct iovec its = {(void *)(uintptr_t)from, size}; /* NOLINT(performance-no-int-to-ptr) */
    return process_vm_readv(requests->pid, &ours, 1, &its, 1, 0) == (ssize_t)size;
}

static bool write_memory(const struct requests *requests, uint64_t to, void *from, size_t size)
{
    struct iovec ours = {from, size};
    struct iovec its = {(void *)(uintptr_t)to, size}; /* NOLINT(performance-no-int-to-ptr) */
    return process_vm_writev(requests->pid, &ours, 1, &its, 1, 0) == (ssize_t)size;
}

/* A text, which may end before memory does: page by page. */
static int read_text(const struct requests *requests, uint64_t from, char text[PATH_MAX])
{
    for (size_t used = 0; used < PATH_MAX;) {
        size_t size = 4096 - ((from + used) & 4095);
        size = size < PATH_MAX - used ? size : PATH_MAX - used;
        if (!read_memory(requests, from + used, text + used, size)) {
            return -EFAULT;
        }
        if (memchr(text + used, '\0', size)) {
            return 0;
        }
        used += size;
    }
    return -ENAMETOOLONG;
}

/* Ours of its number, to be closed. */
static int take(const struct requests *requests, int number)
{
    int fd = (int)syscall(SYS_pidfd_getfd, requests->pidfd, number, 0);
    return fd < 0 ? -errno : fd;
}

bool requests_can(const struct requests *requests, uint64_t address, uint32_t value)
{
    uint32_t its;
    return read_memory(requests, address, &its, sizeof its) && its == value;
}

/* ---- What it names ---- */

/* A name below a descriptor of ours, AT_FDCWD where it stands for itself. */
struct named {
    int at, held; /* held: to be closed; -1: none */
    char path[PATH_MAX];
};

static void let_go(struct named *named)
{
    descriptor_close(named->held);
}

/* Its own /proc is not ours: "/proc/self/fd/3" and what is below it. */
static int name_own(const struct requests *requests, struct named *named, const char *text)
{
    char *end;
    unsigned long number = strtoul(text, &end, 10);
    if (end == text || number > INT_MAX || (*end && *end != '/')) {
        return -EACCES;
    }
    char rest[PATH_MAX];
    snprintf(rest, sizeof rest, "%s", end + strspn(end, "/"));
    named->held = take(requests, (int)number);
    if (named->held < 0) {
        return named->held;
    }
    if (*end) {
        named->at = named->held;
        memcpy(named->path, rest, sizeof rest);
    } else {
        snprintf(named->path, sizeof named->path, "/proc/self/fd/%d", named->held);
    }
    return 0;
}

static int name_it(const struct requests *requests, int directory, uint64_t path,
                   struct named *named)
{
    static const char own[] = "/proc/self/";
    named->at = AT_FDCWD;
    named->held = -1;
    int err = read_text(requests, path, named->path);
    if (err) {
        return err;
    }
    if (strncmp(named->path, own, strlen(own)) == 0 ||
        strncmp(named->path, "/proc/thread-self", strlen("/proc/thread-self")) == 0) {
        char text[PATH_MAX];
        memcpy(text, named->path, sizeof text);
        return strncmp(text + strlen(own), "fd/", 3) == 0
                   ? name_own(requests, named, text + strlen(own) + 3)
                   : -EACCES;
    }
    const char *rest;
    int held = named->path[0] == '/' ? rights_held(requests->rights, named->path, &rest) : -1;
    if (held >= 0) {
        named->at = held;
        memmove(named->path, rest, strlen(rest) + 1);
        return 0;
    }
    if (named->path[0] != '/' && directory != AT_FDCWD) {
        named->held = named->at = take(requests, directory);
        return named->held < 0 ? named->held : 0;
    }
    return 0;
}

/* ---- Opening ---- */

/* The descriptor becomes the process'. Its number there, or a negative errno. */
static int hand_over(const struct requests *requests, uint64_t id, int fd, bool *answered)
{
    struct seccomp_notif_addfd hand = {.id = id,
                                       .flags = SECCOMP_ADDFD_FLAG_SEND,
                                       .srcfd = (uint32_t)fd,
                                       .newfd_flags = O_CLOEXEC};
    int number = ioctl(requests->listener, SECCOMP_IOCTL_NOTIF_ADDFD, &hand);
    *answered = number >= 0;
    return number < 0 ? -errno : number;
}

/* "/proc/1/root", which is some directory. */
static bool is_root_of_process(const char *path)
{
    size_t digits = strncmp(path, "/proc/", 6) == 0 ? strspn(path + 6, "0123456789") : 0;
    return digits > 0 && strcmp(path + 6 + digits, "/root") == 0;
}

/* The memory of a process that is held, or its root, which is some directory. */
static bool is_of_held_process(const struct requests *requests, const struct named *named,
                               uint64_t flags)
{
    return named->at >= 0 &&
           (strcmp(named->path, "mem") == 0 ||
            ((flags & O_PATH) && strcmp(named->path, "root") == 0)) &&
           rights_hold_process(requests->rights, named->at);
}

/* To read: named without opening it first, since opening a device or a FIFO already does something.
 * A descriptor that only names cannot be handed over; it gets one to read in its place. */
static int open_to_read(const struct requests *requests, const struct named *named, uint64_t flags,
                        uint64_t resolve)
{
    int how = O_PATH | O_CLOEXEC | (int)(flags & (O_NOFOLLOW | O_DIRECTORY));
    struct stat status;
    if (flags & ~(uint64_t)(READ_FLAGS | KERNEL_LARGEFILE)) {
        return -EACCES;
    }
    int handle = resolve ? open_resolved(named->at, named->path, how, resolve)
                         : openat(named->at, named->path, how);
    int err = handle < 0 && resolve ? handle : 0;
    err = !err && (handle < 0 || fstat(handle, &status) != 0) ? -errno : err;
    if (!err && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)) {
        err = S_ISLNK(status.st_mode) ? -ELOOP : -EOPNOTSUPP; /* a pipe, say */
    }
    if (!err) {
        char name[32];
        snprintf(name, sizeof name, "/proc/self/fd/%d", handle);
        int fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        err = fd < 0 ? -errno : 0;
        close(handle);
        handle = fd;
        bool may = !err && (rights_may_read(requests->rights, fd, &status) ||
                            ((flags & O_PATH) && is_root_of_process(named->path)) ||
                            is_of_held_process(requests, named, flags));
        err = !err && !may ? -EACCES : err;
    }
    if (err && handle >= 0) {
        close(handle);
    }
    return err ? err : handle;
}

/* The directory to write into, by number. What is called as it was given is not looked for again.
 */
static int place_of(const struct requests *requests, const struct named *named,
                    const char *directory, const char *name)
{
    struct stat status;
    int place =
        named->at == AT_FDCWD ? rights_writable(requests->rights, directory, NULL, name) : -1;
    if (place >= 0) {
        return place;
    }
    int fd = openat(named->at, directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int err = fd < 0 || fstat(fd, &status) != 0 ? -errno : 0;
    descriptor_close(fd);
    place = err ? err : rights_writable(requests->rights, "", &status, name);
    return !err && place < 0 ? -EACCES : place;
}

/* Parts a name into the directory to write into, by number, and what it is called there. */
static int parent_of(const struct requests *requests, const struct named *named, const char **name)
{
    char directory[PATH_MAX];
    const char *slash = strrchr(named->path, '/');
    *name = slash ? slash + 1 : named->path;
    snprintf(directory, sizeof directory, "%.*s", slash ? (int)(slash - named->path) + 1 : 1,
             slash ? named->path : ".");
    if (!**name || strcmp(*name, ".") == 0 || strcmp(*name, "..") == 0) {
        return -EACCES;
    }
    return place_of(requests, named, directory, *name);
}

static int open_nameless(const struct requests *requests, const struct named *named)
{
    int flags = O_TMPFILE | O_RDWR | O_CLOEXEC;
    const char *where = ".";
    int place = place_of(requests, named, named->path, NULL);
    if (place < 0 && strcmp(named->path, "/var/tmp") == 0) {
        place = AT_FDCWD;
        where = named->path;
        flags |= O_EXCL; /* it never gets a name */
    } else if (place < 0) {
        return place;
    }
    int fd = openat(place, where, flags, 0600);
    return fd < 0 ? -errno : fd;
}

/* To write: a new file only. */
static int open_to_write(const struct requests *requests, const struct named *named, uint64_t flags)
{
    const char *name;
    if ((flags & O_TMPFILE) == O_TMPFILE) {
        return open_nameless(requests, named);
    }
    if (!(flags & O_CREAT) || !(flags & O_EXCL)) {
        return -EACCES;
    }
    int place = parent_of(requests, named, &name);
    if (place < 0) {
        return place;
    }
    int fd = openat(place, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    return fd < 0 ? -errno : fd;
}

static int answer_open(const struct requests *requests, const struct seccomp_notif *asked,
                       bool *answered)
{
    const __u64 *arguments = asked->data.args;
    struct open_how how = {.flags = (uint32_t)arguments[2]};
    struct named named;
    bool second = asked->data.nr == SYS_openat2;
    if (second &&
        (arguments[3] != sizeof how || !read_memory(requests, arguments[2], &how, sizeof how))) {
        return -EINVAL;
    }
    int err = name_it(requests, (int)arguments[0], arguments[1], &named);
    int fd = err ? err
             : (how.flags & O_ACCMODE) != O_RDONLY || (how.flags & O_CREAT)
                 ? open_to_write(requests, &named, how.flags)
                 : open_to_read(requests, &named, how.flags, how.resolve);
    let_go(&named);
    if (fd >= 0) {
        err = hand_over(requests, asked->id, fd, answered);
        close(fd);
        return err;
    }
    return fd;
}

/* ---- Asking about names ---- */

static int answer_access(const struct requests *requests, int directory, uint64_t path, int mode,
                         int flags)
{
    struct named named;
    int err = name_it(requests, directory, path, &named);
    if (!err && faccessat(named.at, named.path, mode, flags) != 0) {
        err = -errno;
    }
    let_go(&named);
    return err;
}

static int answer_stat(const struct requests *requests, int directory, uint64_t path, uint64_t to,
                       int flags)
{
    struct named named;
    struct stat status;
    int err = name_it(requests, directory, path, &named);
    if (!err && fstatat(named.at, named.path, &status, flags) != 0) {
        err = -errno;
    }
    let_go(&named);
    return !err && !write_memory(requests, to, &status, sizeof status) ? -EFAULT : err;
}

static int answer_statx(const struct requests *requests, const __u64 *arguments)
{
    struct named named;
    struct statx status;
    int err = name_it(requests, (int)arguments[0], arguments[1], &named);
    if (!err && statx(named.at, named.path, (int)arguments[2], (unsigned)arguments[3], &status)) {
        err = -errno;
    }
    let_go(&named);
    return !err && !write_memory(requests, arguments[4], &status, sizeof status) ? -EFAULT : err;
}

static int answer_link_text(const struct requests *requests, int directory, uint64_t path,
                            uint64_t to, uint64_t size)
{
    char text[PATH_MAX];
    struct named named;
    int err = name_it(requests, directory, path, &named);
    ssize_t length = err ? -1 : readlinkat(named.at, named.path, text, sizeof text);
    err = !err && length < 0 ? -errno : err;
    let_go(&named);
    if (err) {
        return err;
    }
    size = size < (uint64_t)length ? size : (uint64_t)length;
    return write_memory(requests, to, text, size) ? (int)size : -EFAULT;
}

/* ---- Results ---- */

static int answer_unlink(const struct requests *requests, int directory, uint64_t path, int flags)
{
    struct named named;
    const char *name;
    int err = flags ? -EACCES : name_it(requests, directory, path, &named);
    if (flags) {
        return err;
    }
    int place = err ? err : parent_of(requests, &named, &name);
    err = place < 0 ? place : unlinkat(place, name, 0) != 0 ? -errno : 0;
    let_go(&named);
    return err;
}

static int answer_rename(const struct requests *requests, int from_directory, uint64_t from,
                         int to_directory, uint64_t to)
{
    struct named old;
    struct named new = {.held = -1};
    const char *names[2];
    int err = name_it(requests, from_directory, from, &old);
    err = err ? err : name_it(requests, to_directory, to, &new);
    int places[2] = {err ? err : parent_of(requests, &old, &names[0]),
                     err ? err : parent_of(requests, &new, &names[1])};
    for (int i = 0; i < 2 && !err; i++) {
        err = places[i] < 0 ? places[i] : 0;
    }
    if (!err && renameat(places[0], names[0], places[1], names[1]) != 0) {
        err = -errno;
    }
    let_go(&old);
    let_go(&new);
    return err;
}

/* Whether it writes to this one: it has been made for it. */
static bool is_result(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && (flags & O_ACCMODE) == O_RDWR && !(flags & O_PATH);
}

/* A file without a name gets one. */
static int answer_link(const struct requests *requests, const __u64 *arguments)
{
    struct named file;
    struct named new = {.held = -1};
    struct stat status;
    const char *name;
    int err = name_it(requests, (int)arguments[0], arguments[1], &file);
    if (!err && (file.held < 0 || file.at != AT_FDCWD || !is_result(file.held) ||
                 fstat(file.held, &status) != 0 || status.st_nlink != 0)) {
        err = -EACCES;
    }
    err = err ? err : name_it(requests, (int)arguments[2], arguments[3], &new);
    int place = err ? err : parent_of(requests, &new, &name);
    err = place < 0 ? place : 0;
    if (!err && linkat(AT_FDCWD, file.path, place, name, AT_SYMLINK_FOLLOW) != 0) {
        err = -errno;
    }
    let_go(&file);
    let_go(&new);
    return err;
}

/* To who called sudo, and nobody else. */
static int answer_owner(const struct requests *requests, const __u64 *arguments)
{
    uid_t uid;
    gid_t gid;
    int fd = take(requests, (int)arguments[0]);
    int err = fd < 0 ? fd : 0;
    if (!err && (!output_caller(&uid, &gid) || uid != (uid_t)arguments[1] ||
                 gid != (gid_t)arguments[2] || !is_result(fd))) {
        err = -EPERM;
    }
    if (!err && fchown(fd, uid, gid) != 0) {
        err = -errno;
    }
    descriptor_close(fd);
    return err;
}

/* ---- All of it ---- */

static int answer(const struct requests *requests, const struct seccomp_notif *asked,
                  bool *answered)
{
    const __u64 *a = asked->data.args;
    switch (asked->data.nr) {
    case SYS_openat:
    case SYS_openat2:
        return answer_open(requests, asked, answered);
#ifdef SYS_access
    case SYS_access:
        return answer_access(requests, AT_FDCWD, a[0], (int)a[1], 0);
    case SYS_stat:
        return answer_stat(requests, AT_FDCWD, a[0], a[1], 0);
    case SYS_lstat:
        return answer_stat(requests, AT_FDCWD, a[0], a[1], AT_SYMLINK_NOFOLLOW);
    case SYS_readlink:
        return answer_link_text(requests, AT_FDCWD, a[0], a[1], a[2]);
    case SYS_unlink:
        return answer_unlink(requests, AT_FDCWD, a[0], 0);
    case SYS_rename:
        return answer_rename(requests, AT_FDCWD, a[0], AT_FDCWD, a[1]);
#endif
    case SYS_faccessat:
        return answer_access(requests, (int)a[0], a[1], (int)a[2], 0);
    case SYS_faccessat2:
        return answer_access(requests, (int)a[0], a[1], (int)a[2], (int)a[3]);
    case SYS_newfstatat:
        return answer_stat(requests, (int)a[0], a[1], a[2], (int)a[3]);
    case SYS_statx:
        return answer_statx(requests, a);
    case SYS_readlinkat:
        return answer_link_text(requests, (int)a[0], a[1], a[2], a[3]);
    case SYS_unlinkat:
        return answer_unlink(requests, (int)a[0], a[1], (int)a[2]);
#ifdef SYS_renameat
    case SYS_renameat:
        return answer_rename(requests, (int)a[0], a[1], (int)a[2], a[3]);
#endif
    case SYS_renameat2:
        return a[4] ? -EINVAL : answer_rename(requests, (int)a[0], a[1], (int)a[2], a[3]);
    case SYS_linkat:
        return answer_link(requests, a);
    case SYS_fchown:
        return answer_owner(requests, a);
    default:
        return -ENOSYS;
    }
}

bool requests_answer(const struct requests *requests)
{
    struct seccomp_notif asked = {0};
    if (ioctl(requests->listener, SECCOMP_IOCTL_NOTIF_RECV, &asked) != 0) {
        return errno == EINTR || errno == ENOENT || errno == EAGAIN;
    }
    bool answered = false;
    int value = answer(requests, &asked, &answered);
    if (!answered) {
        struct seccomp_notif_resp response = {
            .id = asked.id, .val = value > 0 ? value : 0, .error = value < 0 ? value : 0};
        (void)ioctl(requests->listener, SECCOMP_IOCTL_NOTIF_SEND, &response);
    }
    return true;
}
