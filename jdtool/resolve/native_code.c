#include "jdtool/resolve/native_code.h"

#include "jdtool/base/hash_map.h"
#include "jdtool/perf/build_ids.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The same few mappings are asked for again and again. */
#define ANSWERS 1024

struct native_code {
    struct objects *objects;
    struct answer {
        const struct mapping *mapping;
        struct object *object;
    } answers[ANSWERS];
};

unsigned native_code_machine(struct perf_data *data)
{
    const char *arch = perf_data_string(data, PERF_FEATURE_ARCH);
    if (!arch) {
        return EM_NONE;
    }
    return strcmp(arch, "aarch64") == 0 || strcmp(arch, "arm64") == 0 ? EM_AARCH64
           : strcmp(arch, "x86_64") == 0                              ? EM_X86_64
                                                                      : EM_NONE;
}

/* A recording of another machine has pids that mean nothing here. */
static bool is_of_this_machine(struct perf_data *data)
{
    char own[256];
    const char *name = perf_data_string(data, PERF_FEATURE_HOSTNAME);
    return !name || (gethostname(own, sizeof own) == 0 && strcmp(own, name) == 0);
}

static int take_listed(void *context, const struct listed_build_id *listed)
{
    struct native_code *native = context;
    return listed->kernel
               ? 0
               : objects_list_build_id(native->objects, listed->path, listed->id, listed->id_size);
}

int native_code_new(struct perf_data *data, unsigned machine, const char *build_id_dir,
                    struct native_code **out)
{
    struct objects_options options = {
        .machine = machine,
        .build_id_dir = build_id_dir,
        .os_release = perf_data_string(data, PERF_FEATURE_OSRELEASE),
        .here = is_of_this_machine(data),
    };
    struct native_code *native = calloc(1, sizeof *native);
    *out = NULL;
    int err = native ? objects_new(&options, &native->objects) : -ENOMEM;
    if (!err) {
        err = perf_data_build_ids(data, take_listed, native);
    }
    if (err) {
        native_code_free(native);
        return err;
    }
    *out = native;
    return 0;
}

void native_code_free(struct native_code *native)
{
    if (native) {
        objects_free(native->objects);
        free(native);
    }
}

struct objects *native_code_objects(const struct native_code *native)
{
    return native->objects;
}

static struct object *object_of(struct native_code *native, const struct process *process,
                                const struct mapping *mapping)
{
    uint64_t hash = hash_mix((uint64_t)(uintptr_t)mapping);
    struct answer *answer = &native->answers[hash % ANSWERS];
    if (answer->mapping != mapping) {
        struct object_place place = {
            .path = mapping->path,
            .id = mapping->build_id,
            .id_size = mapping->build_id_size,
            .major = mapping->major,
            .minor = mapping->minor,
            .inode = mapping->inode,
            .pid = process->pid,
            .start = mapping->start,
            .end = mapping->end,
        };
        *answer = (struct answer){mapping, objects_find(native->objects, &place)};
    }
    return answer->object;
}

bool native_code_at(struct native_code *native, const struct process *process,
                    const struct mapping *mapping, uint64_t address, struct object **object,
                    uint64_t *file_address)
{
    *object = object_of(native, process, mapping);
    return object_address(*object, address - mapping->start + mapping->file_offset, file_address);
}
