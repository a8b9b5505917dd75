#include "jdtool/record/probes.h"

#include "format/event_probe.h"
#include "jdtool/base/descriptor.h"
#include "jdtool/base/message.h"
#include "jdtool/confined/confined.h"
#include "jdtool/objects/elf_file.h"
#include "jdtool/sampler/tracepoints.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* ---- tracefs ---- */

static int open_definitions(int flags)
{
    const char *place = tracefs_path();
    char path[64];
    if (!place) {
        return -ENOENT;
    }
    snprintf(path, sizeof path, "%s/uprobe_events", place);
    int fd = open(path, flags | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

static int cannot_trace(const char *what, const char *means, int err)
{
    if (geteuid() != 0) {
        error_message("%s: %s, which need root (/sys/kernel/tracing: %s); left out. Run "
                      "jdperf as root for it",
                      what, means, strerror(-err));
    } else if (err == -ENOENT) {
        error_message("%s: %s, and this kernel or container has none (/sys/kernel/tracing); left "
                      "out. Record from the host, with jdperf record PID",
                      what, means);
    } else {
        error_message("%s: %s, and the kernel refuses (%s): no CAP_PERFMON, lockdown or a seccomp "
                      "filter; left out. Record from the host, with jdperf record PID",
                      what, means, strerror(-err));
    }
    return err;
}

int probes_check(const char *what)
{
    int fd = open_definitions(O_WRONLY | O_APPEND);
    if (fd < 0) {
        return cannot_trace(what, "it needs uprobes", fd);
    }
    close(fd);
    return 0;
}

/* An event of ours that tells nothing. A descriptor or a negative errno. */
static int open_event(const char *group, const char *name, bool sees_kernel)
{
    int64_t id = tracepoint_id(group, name);
    struct perf_event_attr attr = {.type = PERF_TYPE_TRACEPOINT,
                                   .size = sizeof attr,
                                   .config = (uint64_t)id,
                                   .sample_type = sees_kernel ? PERF_SAMPLE_RAW : 0,
                                   .sample_period = 1,
                                   .disabled = 1,
                                   .exclude_kernel = !sees_kernel};
    int fd = id < 0 ? (int)id
                    : (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    return id >= 0 && fd < 0 ? -errno : fd;
}

int probes_hold_scheduler(const char *what)
{
    int fd = open_event("sched", "sched_switch", true);
    return fd < 0 ? cannot_trace(what, "it needs the scheduler's tracepoints", fd) : fd;
}

void probes_name_group(char group[PROBES_GROUP_MAX])
{
    uint32_t number = 0;
    if (getrandom(&number, sizeof number, GRND_NONBLOCK) != sizeof number) {
        number = (uint32_t)time(NULL);
    }
    snprintf(group, PROBES_GROUP_MAX, EVENT_PROBE_GROUP "%d_%08" PRIx32, (int)getpid(), number);
}

/* ---- Where a function is ---- */

bool probes_offset(const struct elf_file *file, uint64_t address, uint64_t *offset)
{
    size_t count;
    GElf_Phdr header;
    if (elf_getphdrnum(file->elf, &count)) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (gelf_getphdr(file->elf, (int)i, &header) && header.p_type == PT_LOAD &&
            address >= header.p_vaddr && address - header.p_vaddr < header.p_filesz) {
            *offset = address - header.p_vaddr + header.p_offset;
            return true;
        }
    }
    return false;
}

/* ---- Definitions ---- */

/* The registers of the first four arguments, by the kernel's names. */
#ifdef __aarch64__
#define EVENT_ARGUMENTS " value=%x0:u64 base=%x1:u64 scale=%x2:u32 name=+0(%x3):string"
#define FAR_ARGUMENT    " far=%x4:u32"
#define DEOPT_ARGUMENTS " request=%x1:s32"
#else
#define EVENT_ARGUMENTS " value=%di:u64 base=%si:u64 scale=%dx:u32 name=+0(%cx):string"
#define FAR_ARGUMENT    " far=%r8:u32"
#define DEOPT_ARGUMENTS " request=%si:s32"
#endif

static const char *const argument_texts[] = {
    [PROBE_NOTHING] = "",
    [PROBE_EVENT] = EVENT_ARGUMENTS,
    [PROBE_ALLOC] = EVENT_ARGUMENTS FAR_ARGUMENT,
    [PROBE_DEOPT] = DEOPT_ARGUMENTS,
};

/* The kernel finds the file by a path, which may hold anything: it gets our descriptor's. */
int probes_define_at(const char *group, const char *event, int file, uint64_t offset,
                     const char *arguments)
{
    char text[2048];
    int size = snprintf(text, sizeof text, "p:%s/%s /proc/%d/fd/%d:0x%" PRIx64 "%s\n", group, event,
                        (int)getpid(), file, offset, arguments);
    if (size >= (int)sizeof text) {
        return -E2BIG;
    }
    int definitions = open_definitions(O_WRONLY | O_APPEND);
    if (definitions < 0) {
        return definitions;
    }
    int err = write(definitions, text, (size_t)size) == size ? 0 : -errno;
    close(definitions);
    return err;
}

/* In a process without rights: which function of a JVM's file is where. */
struct lookup {
    int file;
    bool is_sound, found;
    uint64_t offset;
    char function[128];
};

static int look_up(void *context)
{
    struct lookup *lookup = context;
    struct elf_file file;
    GElf_Sym symbol;
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", lookup->file);
    if (elf_file_open(-1, path, &file) == OBJECT_SOUND) {
        lookup->is_sound = true;
        lookup->found = (elf_file_symbol(&file, ".dynsym", lookup->function, &symbol) ||
                         elf_file_symbol(&file, ".symtab", lookup->function, &symbol)) &&
                        probes_offset(&file, symbol.st_value, &lookup->offset);
        elf_file_close(&file);
    }
    return 0;
}

int probes_define(const char *group, const char *event, int root, const char *path,
                  const char *function, enum probe_arguments arguments)
{
    struct stat status;
    struct lookup *lookup = confined_shared(sizeof *lookup);
    int file = elf_file_open_only(root, path, &status);
    int err = !lookup ? -ENOMEM : file < 0 ? file : -ENOENT;
    if (lookup && file >= 0) {
        lookup->file = file;
        snprintf(lookup->function, sizeof lookup->function, "%s", function);
        confined_look(path, look_up, lookup);
    }
    if (!lookup || !lookup->is_sound) {
        error_message("failed to read %s for a probe", path);
    } else if (!lookup->found) {
        error_message("failed to find %s in %s", function, path);
    } else {
        err = probes_define_at(group, event, file, lookup->offset, argument_texts[arguments]);
        failed_to(err, "define a uprobe on %s of %s", function, path);
    }
    descriptor_close(file);
    confined_unshare(lookup, sizeof *lookup);
    return err;
}

int probes_hold(const char *group, const char *event)
{
    return open_event(group, event, false);
}

/* ---- Their end ---- */

/* Calls take with the group and the event of each line; both are cut off there. False from it ends
 * that. */
static void walk(bool (*take)(void *context, char *group, char *event), void *context)
{
    int fd = open_definitions(O_RDONLY);
    FILE *lines = fd >= 0 ? fdopen(fd, "r") : NULL;
    char *line = NULL;
    size_t room = 0;
    bool more = lines != NULL;
    while (more && getline(&line, &room, lines) > 0) {
        char *group = strchr(line, ':');
        char *event = group ? strchr(group, '/') : NULL;
        if (event && strncmp(group + 1, EVENT_PROBE_GROUP, sizeof EVENT_PROBE_GROUP - 1) == 0) {
            *event++ = '\0';
            event[strcspn(event, " \n")] = '\0';
            more = take(context, group + 1, event);
        }
    }
    free(line);
    if (lines) {
        fclose(lines);
    } else {
        descriptor_close(fd);
    }
}

struct removal {
    const char *group;
    bool is_busy;
};

static bool remove_one(void *context, char *group, char *event)
{
    struct removal *removal = context;
    char text[160];
    if (strcmp(group, removal->group) != 0) {
        return true;
    }
    int fd = open_definitions(O_WRONLY | O_APPEND);
    int size = snprintf(text, sizeof text, "-:%s/%s\n", group, event);
    if (fd >= 0 && size < (int)sizeof text && write(fd, text, (size_t)size) < 0) {
        removal->is_busy |= errno == EBUSY;
    }
    descriptor_close(fd);
    return true;
}

void probes_remove(const char *group)
{
    const struct timespec pause = {.tv_nsec = 20000000};
    for (int tries = 0; *group && tries < 500; tries++) {
        struct removal removal = {.group = group};
        walk(remove_one, &removal);
        if (!removal.is_busy) {
            return;
        }
        nanosleep(&pause, NULL);
    }
}

struct search {
    char (*list)[PROBES_GROUP_MAX];
    size_t count;
};

static bool collect(void *context, char *group, char *event)
{
    struct search *search = context;
    (void)event;
    pid_t pid = (pid_t)strtol(group + sizeof EVENT_PROBE_GROUP - 1, NULL, 10);
    bool is_known = false;
    for (size_t i = 0; i < search->count; i++) {
        is_known |= strcmp(search->list[i], group) == 0;
    }
    bool is_gone = pid > 0 && kill(pid, 0) != 0 && errno == ESRCH;
    if (!is_gone || is_known || strlen(group) >= PROBES_GROUP_MAX) {
        return true;
    }
    char(*grown)[PROBES_GROUP_MAX] =
        realloc(search->list, (search->count + 1) * sizeof *search->list);
    if (grown) {
        search->list = grown;
        memcpy(search->list[search->count++], group, strlen(group) + 1);
    }
    return grown != NULL;
}

void probes_find_left(void (*take)(void *context, const char *group), void *context)
{
    struct search search = {0};
    walk(collect, &search);
    for (size_t i = 0; i < search.count; i++) {
        take(context, search.list[i]);
    }
    free(search.list);
}
