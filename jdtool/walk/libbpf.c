#include "jdtool/walk/libbpf.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <sys/resource.h>

struct libbpf bpf;

static const char *load(void)
{
    static const struct {
        const char *name;
        void *place;
    } functions[] = {
        {"bpf_object__open_mem", &bpf.open_mem},
        {"bpf_object__load", &bpf.load},
        {"bpf_object__close", &bpf.close},
        {"bpf_object__find_map_by_name", &bpf.find_map},
        {"bpf_object__find_program_by_name", &bpf.find_program},
        {"bpf_program__fd", &bpf.program_fd},
        {"bpf_program__set_autoload", &bpf.set_autoload},
        {"bpf_map__fd", &bpf.map_fd},
        {"bpf_map__max_entries", &bpf.max_entries},
        {"bpf_map__set_max_entries", &bpf.set_max_entries},
        {"bpf_map__value_size", &bpf.value_size},
        {"bpf_map__reuse_fd", &bpf.reuse_fd},
        {"bpf_map_lookup_elem", &bpf.look_up},
        {"bpf_map_update_elem", &bpf.update},
        {"libbpf_num_possible_cpus", &bpf.processors},
        {"libbpf_set_print", &bpf.set_print},
    };
    void *library = dlopen("libbpf.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        return "libbpf.so.1 is not installed (Debian, Ubuntu: libbpf1)";
    }
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *function = dlsym(library, functions[i].name);
        if (!function) {
            return "libbpf is too old";
        }
        memcpy(functions[i].place, &function, sizeof function);
    }
    /* Below Linux 5.11 maps count as locked memory. */
    const struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY};
    (void)setrlimit(RLIMIT_MEMLOCK, &all);
    (void)bpf.set_print(NULL); /* what the verifier writes is long */
    return NULL;
}

const char *libbpf_open(const char *object, const char *end, const char *name,
                        struct bpf_object **out)
{
    const struct bpf_object_open_opts options = {.sz = sizeof options, .object_name = name};
    size_t size = (size_t)(end - object);
    const char *lacks =
        size ? load()
             : "jdtool was built without clang or libbpf's headers, or for another processor";
    *out = lacks ? NULL : bpf.open_mem(object, size, &options);
    return lacks || *out ? lacks : "there is no memory";
}

const char *libbpf_refusal(int err, const char *otherwise)
{
    return err == -EPERM ? "loading a BPF program needs root, or CAP_BPF and CAP_PERFMON"
                         : otherwise;
}
