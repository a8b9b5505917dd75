/* libbpf, loaded when a BPF program of ours is to be: jdtool runs where it is not installed. Only
 * where jdtool was built with clang and libbpf's headers (JD_BPF_OBJECT). */
#ifndef JD_TOOL_LIBBPF_H
#define JD_TOOL_LIBBPF_H

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

struct libbpf {
    __typeof__(bpf_object__open_mem) *open_mem;
    __typeof__(bpf_object__load) *load;
    __typeof__(bpf_object__close) *close;
    __typeof__(bpf_object__find_map_by_name) *find_map;
    __typeof__(bpf_object__find_program_by_name) *find_program;
    __typeof__(bpf_program__fd) *program_fd;
    __typeof__(bpf_program__set_autoload) *set_autoload;
    __typeof__(bpf_map__fd) *map_fd;
    __typeof__(bpf_map__max_entries) *max_entries;
    __typeof__(bpf_map__set_max_entries) *set_max_entries;
    __typeof__(bpf_map__value_size) *value_size;
    __typeof__(bpf_map__reuse_fd) *reuse_fd;
    __typeof__(bpf_map_lookup_elem) *look_up;
    __typeof__(bpf_map_update_elem) *update;
    __typeof__(libbpf_num_possible_cpus) *processors;
    __typeof__(libbpf_set_print) *set_print;
};

/* Its functions, once it is loaded. */
extern struct libbpf bpf;

/* NULL, or why it cannot be had, in words. Says nothing itself from then on. */
const char *libbpf_load(void);

/* Puts the object that clang has made into the program: NAME and NAME_end. */
/* NOLINTBEGIN(bugprone-macro-parentheses): what stands in assembly is text. */
#define LIBBPF_OBJECT(name, path)                                                                  \
    __asm__(".section .rodata\n"                                                                   \
            ".balign 8\n"                                                                          \
            ".global " #name "\n" #name ":\n"                                                      \
            ".incbin \"" path "\"\n"                                                               \
            ".global " #name "_end\n" #name "_end:\n"                                              \
            ".byte 0\n"                                                                            \
            ".previous\n");                                                                        \
    extern const char name[] __attribute__((visibility("hidden")));                                \
    extern const char name##_end[] __attribute__((visibility("hidden")))
/* NOLINTEND(bugprone-macro-parentheses) */

#endif
