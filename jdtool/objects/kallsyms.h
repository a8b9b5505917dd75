/* The functions of the kernel and its modules, from a file like /proc/kallsyms. */
#ifndef JD_TOOL_KALLSYMS_H
#define JD_TOOL_KALLSYMS_H

#include "jdtool/base/bytes.h"
#include "jdtool/base/output_file.h"
#include "jdtool/objects/symbols.h"

struct kallsyms {
    struct symbols symbols; /* symbol.module: place in modules, plus one */
    struct bytes text;      /* names, each with its end; the first is empty */
    char **modules;         /* "[nf_tables]" */
    uint32_t module_count;
    uint32_t module_room;
    uint64_t begin; /* where _text is, also if another symbol there is kept; 0: not told */
    void *mapped;   /* both are in there instead; NULL: they are not */
    size_t mapped_size;
};

#define KALLSYMS_SIZE_MAX ((size_t)128 << 20)

/*
 * Reads `path`. 0; -ENOENT and the like when it cannot be read; -EPERM when the kernel hides its
 * addresses (all are 0); -EINVAL when it is no such file; -ENOMEM.
 */
int kallsyms_read(const char *path, struct kallsyms *out);

/*
 * The kernel's own functions, not those of modules, as a file that is ready to be asked: it is
 * mapped, and nothing of it is read but what is asked for, and once that it is in order. The format
 * is of this build on this machine. kallsyms_map: 0; -ENOENT and the like; -EINVAL when it is no
 * such file.
 */
void kallsyms_put(const struct kallsyms *kallsyms, struct output_file *file);
int kallsyms_map(const char *path, struct kallsyms *out);

/* Whether there is such a file of this build's format, by its size and beginning. */
bool kallsyms_is_put(const char *path);

void kallsyms_free(struct kallsyms *kallsyms); /* a zeroed one is fine */

#endif
