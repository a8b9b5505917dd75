/*
 * names [BUILD-ID-DIR]: reads what `perf script -F ip,sym,dso,dsoff` prints, or without dsoff,
 * which perf has since 6.4, asks the objects for the same names, and tells how many frames of files
 * and of the kernel are named alike, which are not, and what it cost. A frame that neither can name
 * is alike, too.
 */
#include "tests/objects_counts.h"

#include <elf.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <time.h>

#if defined __aarch64__
#define MACHINE EM_AARCH64
#else
#define MACHINE EM_X86_64
#endif

static uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/*
 * A line of perf's: "   ea734e JavaThread::thread_main_inner (/usr/lib/.../libjvm.so)", the offset
 * in the file; since dsoff "   7f0a958e78ff JavaMain (/usr/lib/.../libjli.so+0x48ff)".
 */
static bool split(char *line, uint64_t *address, char **name, char **file)
{
    char *rest;
    *address = strtoull(line, &rest, 16);
    char *open = strrchr(line, '(');
    char *close = open ? strrchr(open, ')') : NULL;
    if (rest == line || *rest != ' ' || !close || open <= rest + 1) {
        return false;
    }
    open[-1] = '\0';
    *close = '\0';
    *name = rest + 1;
    *file = open + 1;
    char *offset = strrchr(*file, '+');
    if (offset && strncmp(offset, "+0x", 3) == 0) {
        *address = strtoull(offset + 1, NULL, 16);
        *offset = '\0';
    }
    return true;
}

static const char *look_up(struct objects *objects, struct object *kernel, uint64_t address,
                           const char *file)
{
    struct object_symbol symbol;
    struct object *object = kernel;
    if (file[0] == '/' || strcmp(file, "[vdso]") == 0) {
        struct object_place place = {.file.path = file};
        object = objects_find(objects, &place);
        /* perf prints the offset in the file. */
        if (!object_address(object, address, &address)) {
            return "[unknown]";
        }
    }
    return object_symbol(object, address, &symbol) ? objects_demangle(objects, symbol.name)
                                                   : "[unknown]";
}

/* A perf without libiberty prints C++ functions with their parameters. */
static bool same_name(const char *perfs, const char *ours)
{
    size_t size = strlen(ours);
    return strncmp(perfs, ours, size) == 0 && (perfs[size] == '\0' || perfs[size] == '(');
}

int main(int argc, char **argv)
{
    struct utsname own;
    struct objects *objects;
    struct kernel_place nowhere = {.id = NULL};
    uname(&own);
    struct objects_options options = {.machine = MACHINE,
                                      .build_id_dir = argc > 1 ? argv[1] : NULL,
                                      .os_release = own.release,
                                      .here = true};
    if (objects_new(&options, &objects)) {
        return 1;
    }
    struct object *kernel = objects_kernel(objects, &nowhere);
    char line[8192];
    uint64_t frames = 0;
    uint64_t equal = 0;
    uint64_t spent = 0;
    while (fgets(line, sizeof line, stdin)) {
        uint64_t address;
        char *name;
        char *file;
        if (!split(line, &address, &name, &file) || file[0] == '\0' ||
            (file[0] == '[' && strncmp(file, "[unknown", 8) == 0) ||
            strncmp(file, "/tmp/perf-", 10) == 0 || strncmp(file, "//anon", 6) == 0) {
            continue;
        }
        uint64_t start = now();
        const char *ours = look_up(objects, kernel, address, file);
        spent += now() - start;
        frames++;
        if (same_name(name, ours)) {
            equal++;
        } else {
            printf("differ %" PRIx64 " %s: perf %s, we %s\n", address, file, name, ours);
        }
    }
    struct objects_counts counts;
    struct rusage usage;
    objects_count(objects, &counts);
    getrusage(RUSAGE_SELF, &usage);
    printf("%" PRIu64 " of %" PRIu64 " frames are named alike; %" PRIu64
           " ns each; tables of %" PRIu64 " KB, resident %ld KB\n",
           equal, frames, frames ? spent / frames : 0, counts.bytes / 1024, usage.ru_maxrss);
    objects_tell(objects);
    objects_free(objects);
    return 0;
}
