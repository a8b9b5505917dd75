#include "jdtool/live/process.h"

#include "jdtool/base/descriptor.h"
#include "jdtool/base/processes.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

int process_open(pid_t pid, struct live_process *process)
{
    *process = (struct live_process){.pid = pid, .pidfd = -1, .directory = -1};
    process->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    int err = process->pidfd < 0 ? -errno : 0;
    if (!err) {
        process->directory = process_directory_open(pid);
        err = process->directory < 0 ? -ESRCH : 0;
    }
    /* Alive behind both, so both are of the same process. EINVAL: a thread that leads none. */
    if (!err && !process_lives(process)) {
        err = -ESRCH;
    }
    if (err) {
        process_close(process);
    }
    return err == -EINVAL ? -ESRCH : err;
}

void process_close(struct live_process *process)
{
    descriptor_close(process->pidfd);
    descriptor_close(process->directory);
    process->pidfd = process->directory = -1;
}

bool process_lives(const struct live_process *process)
{
    struct pollfd poll_pid = {.fd = process->pidfd, .events = POLLIN};
    return poll(&poll_pid, 1, 0) == 0;
}

ssize_t process_read(const struct live_process *process, const char *name, char *buffer,
                     size_t size)
{
    int fd = openat(process->directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        return -errno;
    }
    size_t used = 0;
    ssize_t n = 0;
    while (used < size - 1 && (n = read(fd, buffer + used, size - 1 - used)) > 0) {
        used += (size_t)n;
    }
    int err = n < 0 ? -errno : 0;
    close(fd);
    buffer[used] = '\0';
    return err && used == 0 ? err : (ssize_t)used;
}

char *process_read_all(const struct live_process *process, const char *name, size_t limit,
                       size_t *size)
{
    size_t room = limit < 65536 ? limit : 65536;
    char *buffer = NULL;
    for (;;) {
        char *grown = realloc(buffer, room + 1);
        ssize_t n = grown ? process_read(process, name, grown, room + 1) : -ENOMEM;
        buffer = grown ? grown : buffer;
        if (n < 0) {
            free(buffer);
            return NULL;
        }
        *size = (size_t)n;
        if ((size_t)n < room || room == limit) {
            return buffer;
        }
        room = room * 4 < limit ? room * 4 : limit;
    }
}

unsigned long long process_status(const struct live_process *process, const char *key, bool last,
                                  int base)
{
    char text[8192];
    size_t length = strlen(key);
    if (process_read(process, "status", text, sizeof text) <= 0) {
        return 0;
    }
    for (char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, length) != 0 || line[length] != ':') {
            continue;
        }
        char *at = line + length + 1;
        char *end = at;
        unsigned long long value = strtoull(at, &end, base);
        while (last && *end == '\t') {
            at = end;
            value = strtoull(at, &end, base);
        }
        return value;
    }
    return 0;
}

bool process_cpu_time(pid_t pid, uint64_t *ns)
{
    clockid_t clock;
    struct timespec time;
    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &time) != 0) {
        return false;
    }
    *ns = (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
    return true;
}

/* Whether that file of a control group says so. */
static bool says_frozen(const char *hierarchy, const char *group, const char *file,
                        const char *word)
{
    char path[PATH_MAX];
    char text[256];
    int n = snprintf(path, sizeof path, "/sys/fs/cgroup%s%s/%s", hierarchy, group, file);
    return n < (int)sizeof path && descriptor_text(AT_FDCWD, path, text, sizeof text) > 0 &&
           strstr(text, word) != NULL;
}

/* By version 2 ("0::/group", which is mounted elsewhere beside version 1), or version 1's freezer
 * ("7:freezer:/group"): no state of the process tells of the first (cgroups(7)). */
static bool is_frozen(const struct live_process *process)
{
    enum { LIMIT = 64 << 10 };
    size_t size;
    bool frozen = false;
    char *text = process_read_all(process, "cgroup", LIMIT, &size);
    char *rest = text;
    for (char *line; !frozen && (line = strsep(&rest, "\n"));) {
        char *kind = strchr(line, ':');
        char *group = kind ? strchr(kind + 1, ':') : NULL;
        if (group && kind + 1 == group) {
            frozen = says_frozen("", group + 1, "cgroup.events", "frozen 1") ||
                     says_frozen("/unified", group + 1, "cgroup.events", "frozen 1");
        } else if (group && strncmp(kind, ":freezer:", 9) == 0) {
            frozen = says_frozen("/freezer", group + 1, "freezer.state", "FROZEN");
        }
    }
    free(text);
    return frozen;
}

bool process_is_halted(const struct live_process *process, struct process_halt *halt)
{
    char text[1024];
    const char *state = process_read(process, "stat", text, sizeof text) > 0
                            ? process_stat_field(text, PROCESS_STAT_STATE)
                            : NULL;
    if (state && (*state == 'T' || *state == 't')) {
        *halt = (struct process_halt){.how = "stopped", .by_whom = "SIGSTOP, or a debugger"};
        snprintf(halt->remedy, sizeof halt->remedy, "kill -CONT %d", (int)process->pid);
        return true;
    }
    if (is_frozen(process)) {
        *halt = (struct process_halt){.is_frozen = true,
                                      .how = "frozen",
                                      .by_whom = "docker pause, or its control group",
                                      .remedy = "docker unpause, or thaw its control group"};
        return true;
    }
    return false;
}

/* ---- Arguments ---- */

/* Whether the word may go on behind `length` characters. */
static bool any_value(const char *word, size_t length)
{
    return length > 0 && word[length - 1] == '=';
}

static bool has_word(const char *text, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = text; (at = strstr(at, word)); at += length) {
        bool begins = at == text || at[-1] == ' ' || at[-1] == '\t';
        bool ends = at[length] == '\0' || at[length] == ' ' || at[length] == '\t';
        if (begins && (ends || any_value(word, length))) {
            return true;
        }
    }
    return false;
}

static bool is_options_variable(const char *text)
{
    static const char *const names[] = {
        "JAVA_TOOL_OPTIONS=", "JDK_JAVA_OPTIONS=", "_JAVA_OPTIONS="};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strncmp(text, names[i], strlen(names[i])) == 0) {
            return true;
        }
    }
    return false;
}

bool process_has_argument(const struct live_process *process, const char *argument)
{
    enum { LIMIT = 1024 * 1024 };
    bool found = false;
    size_t size = 0;
    size_t length = strlen(argument);
    char *text = process_read_all(process, "cmdline", LIMIT, &size);
    for (size_t at = 0; text && !found && at < size; at += strlen(text + at) + 1) {
        found = strncmp(text + at, argument, length) == 0 &&
                (text[at + length] == '\0' || any_value(argument, length));
    }
    free(text);
    text = found ? NULL : process_read_all(process, "environ", LIMIT, &size);
    for (size_t at = 0; text && !found && at < size; at += strlen(text + at) + 1) {
        const char *value = strchr(text + at, '=');
        found = value && is_options_variable(text + at) && has_word(value + 1, argument);
    }
    free(text);
    return found;
}

/* ---- Mappings ---- */

static bool name_fits(const char *path, const struct mapped_name *name)
{
    const char *slash = strrchr(path, '/');
    size_t prefix = strlen(name->prefix);
    if (!slash || strncmp(slash + 1, name->prefix, prefix) != 0) {
        return false;
    }
    const char *rest = slash + 1 + prefix;
    if (name->digits) {
        size_t digits = strspn(rest, "0123456789");
        rest += digits;
        if (digits == 0) {
            return false;
        }
    }
    return strcmp(rest, name->suffix) == 0;
}

static void read_mappings(const struct live_process *process,
                          bool (*take)(void *context, struct process_mapping *mapping),
                          void *context)
{
    process_mappings(openat(process->directory, "maps", O_RDONLY | O_NOFOLLOW | O_CLOEXEC), take,
                     context);
}

struct path_search {
    const struct mapped_name *name;
    char *path;
    uint64_t start, end; /* of the mapping */
    bool found;
};

static bool take_path(void *context, struct process_mapping *mapping)
{
    struct path_search *search = context;
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%.*s", (int)process_path_length(mapping->file.path),
                          mapping->file.path);
    /* A library that failed to load may leave a mapping behind, but none that can be executed. */
    if ((mapping->rights[2] != 'x' && !search->name->data) || path[0] != '/' ||
        length >= PATH_MAX || !name_fits(path, search->name)) {
        return true;
    }
    memcpy(search->path, path, (size_t)length + 1);
    search->start = mapping->start;
    search->end = mapping->end;
    search->found = true;
    return search->name->last;
}

bool process_mapped(const struct live_process *process, const struct mapped_name *name,
                    char path[PATH_MAX])
{
    struct path_search search = {.name = name, .path = path};
    read_mappings(process, take_path, &search);
    if (!search.found) {
        return false;
    }
    struct process_root root;
    process_root_read(process->directory, &root);
    const char *inside = process_path(&root, path);
    memmove(path, inside, strlen(inside) + 1);
    return true;
}

bool process_mapped_file(const struct live_process *process, const struct mapped_name *name,
                         char path[PATH_MAX])
{
    struct path_search search = {.name = name, .path = path};
    read_mappings(process, take_path, &search);
    snprintf(path, PATH_MAX, "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, (int)process->pid,
             search.start, search.end);
    return search.found && access(path, R_OK) == 0;
}

struct inode_search {
    dev_t device;
    ino_t inode;
    bool found;
};

static bool take_inode(void *context, struct process_mapping *mapping)
{
    struct inode_search *search = context;
    search->found = mapping->file.inode == search->inode &&
                    makedev(mapping->file.major, mapping->file.minor) == search->device;
    return !search->found;
}

bool process_maps_inode(const struct live_process *process, dev_t device, ino_t inode)
{
    struct inode_search search = {.device = device, .inode = inode};
    read_mappings(process, take_inode, &search);
    return search.found;
}
