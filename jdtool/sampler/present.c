#include "jdtool/sampler/present.h"

#include "jdtool/base/bytes.h"
#include "jdtool/objects/elf_file.h"
#include "jdtool/perf/perf_data.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
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

static void put_threads(struct perf_pipe *pipe, pid_t process)
{
    char path[PATH_MAX];
    struct dirent *entry;
    snprintf(path, sizeof path, "/proc/%d/task", (int)process);
    DIR *threads = opendir(path);
    while (threads && (entry = readdir(threads)) != NULL) {
        char name[64] = "";
        if (!isdigit((unsigned char)entry->d_name[0])) {
            continue;
        }
        snprintf(path, sizeof path, "/proc/%d/task/%.16s/comm", (int)process, entry->d_name);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd >= 0 ? read(fd, name, sizeof name - 1) : -1;
        if (fd >= 0) {
            close(fd);
        }
        if (n > 0) { /* else it has ended */
            name[n - (name[n - 1] == '\n')] = '\0';
            struct bytes body = {0};
            bytes_u32(&body, (uint32_t)process);
            bytes_u32(&body, (uint32_t)strtoul(entry->d_name, NULL, 10));
            put(pipe, PERF_RECORD_COMM, PERF_RECORD_MISC_USER, &body, name);
        }
    }
    if (threads) {
        closedir(threads);
    }
}

/* ---- Mappings ---- */

struct present_mapping {
    uint64_t start, end, offset, inode;
    unsigned major, minor;
    uint32_t protection, flags;
    const char *path; /* "": none */
};

/* The build-id of the very file that is mapped, at most BUILD_ID_MAX bytes. 0: not known. */
static size_t build_id_of(int root, const struct present_mapping *mapping, uint8_t *id)
{
    uint8_t found[OBJECT_ID_MAX];
    struct elf_file file;
    if (root < 0 || mapping->path[0] != '/' || mapping->path[1] == '/' ||
        elf_file_open(root, mapping->path, &file) != OBJECT_SOUND) {
        return 0;
    }
    size_t size = file.inode == mapping->inode ? elf_file_build_id(&file, found) : 0;
    elf_file_close(&file);
    size = size <= BUILD_ID_MAX ? size : 0;
    memcpy(id, found, size);
    return size;
}

static void put_mapping(struct perf_pipe *pipe, pid_t process, int root,
                        const struct present_mapping *mapping)
{
    struct {
        uint8_t size, reserved[3], id[BUILD_ID_MAX];
    } build_id = {0};
    struct bytes body = {0};
    uint16_t misc = PERF_RECORD_MISC_USER;
    bytes_u32(&body, (uint32_t)process);
    bytes_u32(&body, (uint32_t)process);
    bytes_u64(&body, mapping->start);
    bytes_u64(&body, mapping->end - mapping->start);
    bytes_u64(&body, mapping->offset);
    build_id.size = (uint8_t)build_id_of(root, mapping, build_id.id);
    if (build_id.size) {
        misc |= PERF_RECORD_MISC_MMAP_BUILD_ID;
        bytes_put(&body, &build_id, sizeof build_id);
    } else {
        bytes_u32(&body, mapping->major);
        bytes_u32(&body, mapping->minor);
        bytes_u64(&body, mapping->inode);
        bytes_u64(&body, 0); /* the inode's generation */
    }
    bytes_u32(&body, mapping->protection);
    bytes_u32(&body, mapping->flags);
    put(pipe, PERF_RECORD_MMAP2, misc, &body, mapping->path[0] ? mapping->path : "//anon");
}

/* "7f12-7f34 r-xp 00001000 08:01 1234   /path". What is executed alone. */
static bool parse(char *line, struct present_mapping *mapping)
{
    char *at = line;
    line[strcspn(line, "\n")] = '\0';
    mapping->start = strtoull(at, &at, 16);
    mapping->end = *at == '-' ? strtoull(at + 1, &at, 16) : 0;
    const char *rights = *at == ' ' && strlen(at) > 5 ? at + 1 : "----";
    if (mapping->end <= mapping->start || rights[2] != 'x') {
        return false;
    }
    mapping->offset = strtoull(rights + 4, &at, 16);
    mapping->major = (unsigned)strtoul(at, &at, 16);
    mapping->minor = *at == ':' ? (unsigned)strtoul(at + 1, &at, 16) : 0;
    mapping->inode = strtoull(at, &at, 10);
    mapping->path = at + strspn(at, " ");
    mapping->protection = (rights[0] == 'r' ? PROT_READ : 0) | (rights[1] == 'w' ? PROT_WRITE : 0) |
                          (uint32_t)PROT_EXEC;
    mapping->flags = rights[3] == 's' ? MAP_SHARED : MAP_PRIVATE;
    return true;
}

static void put_mappings(struct perf_pipe *pipe, pid_t process)
{
    char path[64];
    char *line = NULL;
    size_t room = 0;
    snprintf(path, sizeof path, "/proc/%d/root", (int)process);
    int root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    snprintf(path, sizeof path, "/proc/%d/maps", (int)process);
    FILE *file = fopen(path, "re");
    while (file && getline(&line, &room, file) > 0) {
        struct present_mapping mapping;
        if (parse(line, &mapping)) {
            put_mapping(pipe, process, root, &mapping);
        }
    }
    free(line);
    if (file) {
        fclose(file);
    }
    if (root >= 0) {
        close(root);
    }
}

void present_process(struct perf_pipe *pipe, pid_t process)
{
    put_threads(pipe, process);
    put_mappings(pipe, process);
}
