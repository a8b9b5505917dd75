#include "jdtool/record/machine.h"

#include "jdtool/base/array.h"
#include "jdtool/base/message.h"

#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct look {
    struct machine *machine;
    const char *profile;
};

static bool is_known(const struct machine *machine, int dump)
{
    struct stat one;
    struct stat other;
    if (fstat(dump, &one) != 0) {
        return true;
    }
    for (size_t i = 0; i < machine->count; i++) {
        if (fstat(machine->dumps[i].dump, &other) == 0 && one.st_dev == other.st_dev &&
            one.st_ino == other.st_ino) {
            return true;
        }
    }
    return false;
}

static bool take_jvm(void *context, pid_t pid, const char *name)
{
    struct look *look = context;
    struct machine *machine = look->machine;
    struct target target;
    struct fetch fetch;
    char dump[PATH_MAX];
    (void)name;
    if (target_open(&target, pid) != 0) {
        return true;
    }
    if (target_dump(&target, dump) && fetch_find(&fetch, &target, dump, look->profile) == 0) {
        if (!is_known(machine, fetch.dump) &&
            ARRAY_RESERVE(machine->dumps, machine->count, machine->room) == 0) {
            machine->dumps[machine->count++] = fetch;
        } else {
            fetch_close(&fetch);
        }
    }
    target_close(&target);
    return true;
}

void machine_look(struct machine *machine, const char *profile)
{
    struct look look = {machine, profile};
    target_walk(take_jvm, &look);
}

void machine_fetch(struct machine *machine, const char *profile)
{
    for (size_t i = 0; i < machine->count; i++) {
        (void)fetch_copy(&machine->dumps[i], profile, false);
    }
}

void machine_free(struct machine *machine)
{
    for (size_t i = 0; i < machine->count; i++) {
        fetch_close(&machine->dumps[i]);
    }
    free(machine->dumps);
    *machine = (struct machine){0};
}

int dump_list_read(struct dump_list *list, const char *at, const char *profile)
{
    static const char *const patterns[] = {"jit-*.dump", "jvm-*/jit-*.dump"};
    char pattern[96];
    size_t length = strlen(at) + 1;
    glob_t found = {0};
    int err = 0;
    *list = (struct dump_list){0};
    for (size_t i = 0; !err && i < sizeof patterns / sizeof *patterns; i++) {
        snprintf(pattern, sizeof pattern, "%s/%s", at, patterns[i]);
        err = glob(pattern, i ? GLOB_APPEND : 0, NULL, &found);
        err = err == GLOB_NOMATCH ? 0 : err;
    }
    if (!err && found.gl_pathc > 0) {
        list->paths = calloc(found.gl_pathc, sizeof *list->paths);
        err = list->paths ? 0 : GLOB_NOSPACE;
    }
    for (size_t i = 0; !err && i < found.gl_pathc; i++) {
        err = asprintf(&list->paths[list->count], "%s/%s", profile, found.gl_pathv[i] + length) < 0
                  ? GLOB_NOSPACE
                  : 0;
        list->count += !err;
    }
    globfree(&found);
    if (err) {
        failed_to(-ENOMEM, "look for dumps in %s", profile);
    }
    return err ? -ENOMEM : 0;
}

void dump_list_free(struct dump_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->paths[i]);
    }
    free(list->paths);
    *list = (struct dump_list){0};
}
