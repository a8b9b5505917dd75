/* libbpf, loaded when a BPF program of ours is to be: jdtool runs where it is not installed. What
 * is used of it is declared here, as libbpf 1 has it: jdtool is built without its headers, too. */
#ifndef JD_TOOL_LIBBPF_H
#define JD_TOOL_LIBBPF_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bpf_map;
struct bpf_object;
struct bpf_program;

/* libbpf takes less than all that it knows itself (sz). */
struct bpf_object_open_opts {
    size_t sz;
    const char *object_name;
};

struct libbpf {
    struct bpf_object *(*open_mem)(const void *bytes, size_t size,
                                   const struct bpf_object_open_opts *options);
    int (*load)(struct bpf_object *object);
    void (*close)(struct bpf_object *object);
    struct bpf_map *(*find_map)(const struct bpf_object *object, const char *name);
    struct bpf_program *(*find_program)(const struct bpf_object *object, const char *name);
    int (*program_fd)(const struct bpf_program *program);
    int (*set_autoload)(struct bpf_program *program, bool is);
    int (*map_fd)(const struct bpf_map *map);
    uint32_t (*max_entries)(const struct bpf_map *map);
    int (*set_max_entries)(struct bpf_map *map, uint32_t count);
    uint32_t (*value_size)(const struct bpf_map *map);
    int (*reuse_fd)(struct bpf_map *map, int fd);
    int (*look_up)(int map, const void *key, void *value);
    int (*update)(int map, const void *key, const void *value, uint64_t flags);
    int (*processors)(void);
    void *(*set_print)(void *print);
};

/* Its functions, once an object was opened. */
extern struct libbpf bpf;

/* Loads libbpf, which says nothing itself, and opens the object that lies there, under a name for
 * the kernel. NULL, or why it cannot be had, in words; *out is NULL then. */
const char *libbpf_open(const char *object, const char *end, const char *name,
                        struct bpf_object **out);

/* Why the kernel did not take it; `otherwise`: for another reason than that we may not. Its
 * verifier refuses by EACCES. */
const char *libbpf_refusal(int err, const char *otherwise);

/* Puts the object that clang has made into the program: NAME and NAME_end; an empty one where
 * jdtool is built without clang or libbpf's headers (JD_BPF_OBJECT: the object's path). */
#ifdef JD_BPF_OBJECT
/* NOLINTBEGIN(bugprone-macro-parentheses): what stands in assembly is text. */
#define LIBBPF_OBJECT(name)                                                                        \
    __asm__(".section .rodata\n"                                                                   \
            ".balign 8\n"                                                                          \
            ".global " #name "\n" #name ":\n"                                                      \
            ".incbin \"" JD_BPF_OBJECT "\"\n"                                                      \
            ".global " #name "_end\n" #name "_end:\n"                                              \
            ".byte 0\n"                                                                            \
            ".previous\n");                                                                        \
    extern const char name[] __attribute__((visibility("hidden")));                                \
    extern const char name##_end[] __attribute__((visibility("hidden")))
/* NOLINTEND(bugprone-macro-parentheses) */
#else
#define LIBBPF_OBJECT(name)                                                                        \
    static const char name[1];                                                                     \
    static const char *const name##_end = name
#endif

#endif
