#include "jdtool/objects/thread_root.h"

#include <elfutils/libdwfl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file whose symbols were looked up, or could not be. */
struct file {
    const char *path; /* a mapping's file, compared by address: they are interned */
    Dwfl *dwfl;       /* NULL: not readable */
    Dwfl_Module *module;
    GElf_Addr bias;
};

/* Answers given before: the same few addresses end all stacks. */
struct answer {
    const char *path;
    uint64_t offset; /* in the file */
    bool is_root;
};

#define ANSWERS 1024

struct thread_roots {
    struct file *files;
    uint32_t count;
    struct answer answers[ANSWERS];
};

struct thread_roots *thread_roots_new(void)
{
    return calloc(1, sizeof(struct thread_roots));
}

void thread_roots_free(struct thread_roots *roots)
{
    if (!roots) {
        return;
    }
    for (uint32_t i = 0; i < roots->count; i++) {
        if (roots->files[i].dwfl) {
            dwfl_end(roots->files[i].dwfl);
        }
    }
    free(roots->files);
    free(roots);
}

static const Dwfl_Callbacks callbacks = {
    .find_elf = dwfl_build_id_find_elf,
    .find_debuginfo = dwfl_standard_find_debuginfo,
    .section_address = dwfl_offline_section_address,
};

/* The path is the recording's: it may be anything by now, and a FIFO would be waited for. */
static void open_file(struct file *file)
{
    struct stat status;
    bool regular = stat(file->path, &status) == 0 && S_ISREG(status.st_mode);
    file->dwfl = regular ? dwfl_begin(&callbacks) : NULL;
    if (file->dwfl) {
        dwfl_report_begin(file->dwfl);
        file->module = dwfl_report_offline(file->dwfl, file->path, file->path, -1);
        dwfl_report_end(file->dwfl, NULL, NULL);
    }
}

static struct file *find_file(struct thread_roots *roots, const char *path)
{
    for (uint32_t i = 0; i < roots->count; i++) {
        if (roots->files[i].path == path) {
            return &roots->files[i];
        }
    }
    struct file *grown = realloc(roots->files, (roots->count + 1) * sizeof *grown);
    if (!grown) {
        return NULL;
    }
    roots->files = grown;
    grown[roots->count] = (struct file){.path = path};
    open_file(&grown[roots->count]);
    return &grown[roots->count++];
}

/* The symbol at an offset in the file, NULL: none known. */
static const char *symbol_at(const struct file *file, uint64_t offset)
{
    GElf_Addr bias;
    Elf *elf = file->module ? dwfl_module_getelf(file->module, &bias) : NULL;
    size_t count;
    if (!elf || elf_getphdrnum(elf, &count)) {
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        GElf_Phdr header;
        if (gelf_getphdr(elf, (int)i, &header) && header.p_type == PT_LOAD &&
            offset >= header.p_offset && offset - header.p_offset < header.p_filesz) {
            GElf_Off into;
            GElf_Sym symbol;
            return dwfl_module_addrinfo(file->module,
                                        offset - header.p_offset + header.p_vaddr + bias, &into,
                                        &symbol, NULL, NULL, NULL);
        }
    }
    return NULL;
}

static bool is_root_symbol(const char *name)
{
    static const char *const names[] = {
        "start_thread",
        "clone",
        "clone3",
        "__clone",
        "__clone3",
        "__GI___clone",
        "__GI___clone3",
        "_start",
        "thread_start",
        "start",
        "__libc_start_main",
        "__libc_start_call_main",
        "__clone_internal",
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        size_t size = strlen(names[i]);
        if (strncmp(name, names[i], size) == 0 && (name[size] == '\0' || name[size] == '@')) {
            return true;
        }
    }
    return strncmp(name, "__libc_start_main", 17) == 0; /* _impl, _alias_1 */
}

/* The library that threads begin in. Its start_thread is a local function, so that a stripped one
 * has no symbol there, while what it is called for has. */
static bool is_thread_library(const char *path)
{
    const char *name = strrchr(path, '/');
    name = name ? name + 1 : path;
    return strncmp(name, "libc.", 5) == 0 || strncmp(name, "libc-", 5) == 0 ||
           strncmp(name, "libpthread", 10) == 0 || strncmp(name, "ld-musl", 7) == 0;
}

bool thread_roots_has(struct thread_roots *roots, const struct mapping *mapping, uint64_t address)
{
    uint64_t offset = address - mapping->start + mapping->file_offset;
    struct answer *answer = &roots->answers[(offset ^ offset >> 10) % ANSWERS];
    if (answer->path == mapping->file && answer->offset == offset) {
        return answer->is_root;
    }
    const struct file *file = find_file(roots, mapping->file);
    const char *symbol = file ? symbol_at(file, offset) : NULL;
    *answer = (struct answer){
        .path = mapping->file,
        .offset = offset,
        .is_root = symbol ? is_root_symbol(symbol) : is_thread_library(mapping->path),
    };
    return answer->is_root;
}
