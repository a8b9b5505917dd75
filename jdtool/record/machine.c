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

int dump_list_read(struct words *list, const char *at, const char *profile)
{
    char pattern[96];
    glob_t found = {0};
    size_t length = strlen(at) + 1;
    *list = (struct words){0};
    snprintf(pattern, sizeof pattern, "%s/{,jvm-*/}jit-*.dump", at);
    int err = glob(pattern, GLOB_BRACE, NULL, &found);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        char path[2 * PATH_MAX];
        snprintf(path, sizeof path, "%s/%s", profile, found.gl_pathv[i] + length);
        words_add(list, "%s", path);
    }
    globfree(&found);
    return failed_to(list->failed || (err && err != GLOB_NOMATCH) ? -ENOMEM : 0,
                     "look for dumps in %s", profile);
}
