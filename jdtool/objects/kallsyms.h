/* The functions of the kernel and its modules, from a file like /proc/kallsyms. */
#ifndef JD_TOOL_KALLSYMS_H
#define JD_TOOL_KALLSYMS_H

#include "jdtool/base/bytes.h"
#include "jdtool/objects/symbols.h"

struct kallsyms {
    struct symbols symbols; /* symbol.module: place in modules, plus one */
    struct bytes text;      /* names, each with its end; the first is empty */
    char **modules;         /* "[nf_tables]" */
    uint32_t module_count;
    uint32_t module_room;
};

#define KALLSYMS_SIZE_MAX ((size_t)128 << 20)

/*
 * Reads `path`. 0; -ENOENT and the like when it cannot be read; -EPERM when the kernel hides its
 * addresses (all are 0); -EINVAL when it is no such file; -ENOMEM.
 */
int kallsyms_read(const char *path, struct kallsyms *out);
void kallsyms_free(struct kallsyms *kallsyms); /* a zeroed one is fine */

#endif
