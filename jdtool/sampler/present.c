#include "jdtool/sampler/present.h"

#include "jdtool/base/bytes.h"
#include "jdtool/base/descriptor.h"
#include "jdtool/base/others_file.h"
#include "jdtool/base/processes.h"
#include "jdtool/objects/build_id.h"
#include "jdtool/perf/perf_data.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* As a record begins; its text, padded, and the trailer follow. */
static void put(struct perf_pipe *pipe, uint32_t type, uint16_t misc, struct bytes *body,
                const char *text)
{
    static const uint8_t trailer[PRESENT_TRAILER];
    struct perf_event_header header = {.type = type, .misc = misc};
    bytes_string(body, text);
    bytes_align(body, 8);
    bytes_put(body, trailer, sizeof trailer);
    if (!body->failed && body->size <= PERF_RECORD_SIZE_MAX - sizeof header) {
        header.size = (uint16_t)(sizeof header + body->size);
        perf_pipe_put(pipe, &header, sizeof header);
        perf_pipe_put(pipe, body->at, body->size);
    }
    bytes_free(body);
}

/* ---- The kernel ---- */

void present_kernel(struct perf_pipe *pipe)
{
    static const char symbol[] = " T _text\n";
    char line[256];
    uint64_t start = 0;
    FILE *file = fopen("/proc/kallsyms", "re");
    while (file && !start && fgets(line, sizeof line, file)) {
        char *end;
        uint64_t address = strtoull(line, &end, 16);
        start = strcmp(end, symbol) == 0 ? address : 0;
    }
    if (file) {
        fclose(file);
    }
    if (start) {
        struct bytes body = {0};
        bytes_u32(&body, UINT32_MAX); /* no process */
        bytes_u32(&body, 0);
        bytes_u64(&body, start);
        bytes_u64(&body, UINT64_MAX - start);
        bytes_u64(&body, start);
        put(pipe, PERF_RECORD_MMAP, PERF_RECORD_MISC_KERNEL, &body, "[kernel.kallsyms]_text");
    }
}

/* ---- Threads ---- */

bool present_may_carry(const char *comm)
{
    static const char pool[] = "ForkJoinPool-";
    static const char cut[] = "ForkJoi..";
    return strncmp(comm, pool, sizeof pool - 1) == 0 || strncmp(comm, cut, sizeof cut - 1) == 0;
}

/* Whether one of them may carry virtual ones. */
static bool put_threads(struct perf_pipe *pipe, pid_t process)
{
    bool carries = false;
    DIR *threads = process_threads_open(process);
    for (pid_t thread; (thread = process_next(threads));) {
        char path[64];
        char name[64];
        snprintf(path, sizeof path, "/proc/%d/task/%d/comm", (int)process, (int)thread);
        ssize_t n = descriptor_text(AT_FDCWD, path, name, sizeof name);
        if (n > 0) { /* else it has ended */
            name[n - (name[n - 1] == '\n')] = '\0';
            struct bytes body = {0};
            bytes_u32(&body, (uint32_t)process);
            bytes_u32(&body, (uint32_t)thread);
            put(pipe, PERF_RECORD_COMM, PERF_RECORD_MISC_USER, &body, name);
            carries |= present_may_carry(name);
        }
    }
    directory_close(threads);
    return carries;
}

/* ---- Mappings ---- */

/* In a MMAP2 record in the place of device, inode and generation. */
struct present_id {
    uint8_t size, reserved[3], id[BUILD_ID_MAX];
};

/* Of the very file that is mapped. False: not known. */
static bool build_id_of(int root, const char *path, uint64_t inode, struct present_id *id)
{
    uint8_t found[BUILD_ID_MAX];
    if (root < 0 || path[0] != '/' || path[1] == '/') {
        return false;
    }
    size_t size = build_id_find(root, path, inode, found);
    size = size <= BUILD_ID_MAX ? size : 0;
    *id = (struct present_id){.size = (uint8_t)size};
    memcpy(id->id, found, size);
    return size != 0;
}

enum { DEVICE_AT = 40, INODE_AT = 48, PATH_AT = 72 };

void present_build_id(uint8_t *record)
{
    struct perf_event_header header;
    struct present_id id;
    uint32_t process;
    uint64_t inode;
    memcpy(&header, record, sizeof header);
    header.misc &= (uint16_t)~PERF_RECORD_MISC_MMAP_BUILD_ID; /* left by another listener */
    if (header.size > PATH_AT && memchr(record + PATH_AT, '\0', header.size - PATH_AT)) {
        memcpy(&process, record + sizeof header, sizeof process);
        memcpy(&inode, record + INODE_AT, sizeof inode);
        int root = record[PATH_AT] == '/' ? process_root_open((pid_t)process) : -1;
        if (build_id_of(root, (const char *)record + PATH_AT, inode, &id)) {
            header.misc |= PERF_RECORD_MISC_MMAP_BUILD_ID;
            memcpy(record + DEVICE_AT, &id, sizeof id);
        }
        descriptor_close(root);
    }
    memcpy(record, &header, sizeof header);
}

struct presented {
    struct perf_pipe *pipe;
    pid_t process;
    int root; /* of it; -1: build-ids are not wanted */
    bool has_inodes;
};

/* What is executed alone. */
static bool put_mapping(void *context, struct process_mapping *mapping)
{
    const struct presented *to = context;
    const char *rights = mapping->rights;
    struct present_id id;
    struct bytes body = {0};
    uint16_t misc = PERF_RECORD_MISC_USER;
    if (rights[2] != 'x') {
        return true;
    }
    bytes_u32(&body, (uint32_t)to->process);
    bytes_u32(&body, (uint32_t)to->process);
    bytes_u64(&body, mapping->start);
    bytes_u64(&body, mapping->end - mapping->start);
    bytes_u64(&body, mapping->offset);
    if (build_id_of(to->root, mapping->file.path, mapping->file.inode, &id)) {
        misc |= PERF_RECORD_MISC_MMAP_BUILD_ID;
        bytes_put(&body, &id, sizeof id);
    } else {
        bytes_u32(&body, to->has_inodes ? mapping->file.major : 0);
        bytes_u32(&body, to->has_inodes ? mapping->file.minor : 0);
        bytes_u64(&body, to->has_inodes ? mapping->file.inode : 0);
        bytes_u64(&body, 0); /* the inode's generation */
    }
    bytes_u32(&body, (rights[0] == 'r' ? PROT_READ : 0) | (rights[1] == 'w' ? PROT_WRITE : 0) |
                         (uint32_t)PROT_EXEC);
    bytes_u32(&body, rights[3] == 's' ? MAP_SHARED : MAP_PRIVATE);
    put(to->pipe, PERF_RECORD_MMAP2, misc, &body,
        mapping->file.path[0] ? mapping->file.path : "//anon");
    return true;
}

static void put_mappings(struct perf_pipe *pipe, pid_t process, enum present_by by)
{
    char path[64];
    struct presented to = {pipe, process,
                           by == PRESENT_BY_BUILD_ID ? process_root_open(process) : -1,
                           by != PRESENT_BY_PATH};
    snprintf(path, sizeof path, "/proc/%d/maps", (int)process);
    process_mappings(open(path, O_RDONLY | O_CLOEXEC), put_mapping, &to);
    descriptor_close(to.root);
}

bool present_process(struct perf_pipe *pipe, pid_t process, enum present_by by)
{
    bool carries = put_threads(pipe, process);
    put_mappings(pipe, process, by);
    return carries;
}

static void put_end(struct perf_pipe *pipe, pid_t process, uint32_t thread, uint64_t time)
{
    /* pid, ppid, tid, ptid, time; and the trailer's pid, tid, time, processor, id. */
    const struct {
        struct perf_event_header header;
        uint32_t ids[4];
        uint64_t time;
        uint32_t its[2];
        uint64_t rest[3];
    } record = {
        .header = {.type = PERF_RECORD_EXIT, .size = sizeof record},
        .ids = {(uint32_t)process, 0, thread, 0},
        .time = time,
        .its = {(uint32_t)process, thread},
        .rest = {time, 0, 0},
    };
    perf_pipe_put(pipe, &record, sizeof record);
}

void present_no_more(struct perf_pipe *pipe, pid_t process, uint64_t time)
{
    DIR *threads = process_threads_open(process);
    for (pid_t thread; (thread = process_next(threads));) {
        if (thread != process) {
            put_end(pipe, process, (uint32_t)thread, time);
        }
    }
    directory_close(threads);
    put_end(pipe, process, (uint32_t)process, time);
}

static bool present(void *pipe, pid_t process)
{
    (void)present_process(pipe, process, PRESENT_BY_BUILD_ID);
    return true;
}

void present_all(struct perf_pipe *pipe)
{
    processes_walk(present, pipe);
}
