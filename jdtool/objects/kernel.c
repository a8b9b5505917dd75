/* The kernel as an object: its names from kallsyms or a vmlinux, and those it made at run time. */
#include "jdtool/base/descriptor.h"
#include "jdtool/base/text.h"
#include "jdtool/objects/object.h"
#include "jdtool/objects/symbols.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROC_KALLSYMS "/proc/kallsyms"

#define MADE_BYTES_MAX ((size_t)16 << 20)

/* The kernel that runs here tells its build-id in its notes. */
static size_t own_id(uint8_t id[BUILD_ID_MAX])
{
    uint8_t notes[4096];
    int fd = open("/sys/kernel/notes", O_RDONLY | O_CLOEXEC);
    ssize_t size = fd < 0 ? 0 : read(fd, notes, sizeof notes);
    descriptor_close(fd);
    for (size_t at = 0; size > 0 && at + 12 <= (size_t)size;) {
        uint32_t header[3]; /* name size, content size, type */
        memcpy(header, notes + at, sizeof header);
        size_t name = at + 12;
        size_t content = name + ((header[0] + 3u) & ~3u);
        size_t next = content + ((header[1] + 3u) & ~3u);
        if (header[0] > sizeof notes || header[1] > sizeof notes || next > (size_t)size) {
            break;
        }
        if (header[2] == 3 && header[0] == 4 && memcmp(notes + name, "GNU", 4) == 0 &&
            header[1] <= BUILD_ID_MAX) {
            memcpy(id, notes + content, header[1]);
            return header[1];
        }
        at = next;
    }
    return 0;
}

bool objects_kernel_copy(char path[PATH_MAX])
{
    uint8_t id[BUILD_ID_MAX];
    char text[BUILD_ID_TEXT];
    size_t size = own_id(id);
    text_hex(id, size, text);
    return size > 0 && snprintf(path, PATH_MAX, KERNEL_COPY "%s", text) < PATH_MAX;
}

struct object *objects_kernel(struct objects *objects, const struct kernel_place *place)
{
    struct object *kernel = objects->kernel;
    if (!kernel) {
        struct object_place none = {.file.path = "[kernel.kallsyms]"};
        kernel = objects->kernel = objects_find(objects, &none);
        if (kernel->state == OBJECT_TOO_MANY) {
            return kernel;
        }
        kernel->kernel = true;
        kernel->state = OBJECT_UNTRIED;
    }
    if (place->id_size && place->id_size <= BUILD_ID_MAX && !kernel->place.file.build_id_size) {
        memcpy(kernel->place.file.build_id, place->id, place->id_size);
        kernel->place.file.build_id_size = place->id_size;
    }
    uint8_t own[BUILD_ID_MAX];
    size_t size = place->id_size ? own_id(own) : 0;
    if (size && (size != place->id_size || memcmp(own, place->id, size) != 0)) {
        objects->places.same_kernel = false; /* of that release, and yet another build */
    }
    if (place->reference && place->reference_address && !objects->kernel_reference) {
        objects->kernel_reference = strdup(place->reference);
        objects->kernel_reference_address = place->reference_address;
    }
    return kernel;
}

/* ---- Made at run time ---- */

int objects_add_ksymbol(struct objects *objects, uint64_t address, uint32_t size, const char *name)
{
    struct kernel_functions *made = &objects->made;
    size_t length = strlen(name) + 1;
    if (length > MADE_BYTES_MAX - made->names.size || size == 0) {
        return 0;
    }
    struct symbol symbol = {.address = address, .size = size, .name = (uint32_t)made->names.size};
    bytes_put(&made->names, name, length);
    made->sorted = false;
    symbols_add(&made->symbols, &symbol);
    made->symbols.names[0].bytes = (const char *)made->names.at;
    made->symbols.names[0].size = made->names.size;
    return made->names.failed || made->symbols.failed ? -ENOMEM : 0;
}

static const struct symbol *made_at(struct kernel_functions *made, uint64_t address)
{
    if (!made->sorted) {
        symbols_finish(&made->symbols, 0, true);
        made->sorted = true;
    }
    return symbols_at(&made->symbols, address);
}

/* ---- Where its names are ---- */

static bool is_running(const struct object *kernel)
{
    const struct file_identity *file = &kernel->place.file;
    uint8_t id[BUILD_ID_MAX];
    size_t size = own_id(id);
    if (file->build_id_size && size) {
        return build_id_same(id, size, file->build_id, file->build_id_size);
    }
    return kernel->objects->places.same_kernel;
}

/* Whether it is the same boot: KASLR puts the kernel elsewhere at each. */
static bool is_at_its_place(const struct objects *objects)
{
    if (!objects->kernel_reference) {
        return true;
    }
    if (objects->kallsyms.begin && strcmp(objects->kernel_reference, "_text") == 0) {
        return objects->kallsyms.begin == objects->kernel_reference_address;
    }
    const struct symbols *symbols = &objects->kallsyms.symbols;
    const struct symbol *there = symbols_at(symbols, objects->kernel_reference_address);
    bool begins = there && there->address == objects->kernel_reference_address;
    if (begins && strcmp(symbol_name(symbols, there), objects->kernel_reference) == 0) {
        return true;
    }
    /* Several symbols share that address, and one of them is kept. */
    const struct symbol *named = symbols_named(symbols, objects->kernel_reference);
    return named ? named->address == objects->kernel_reference_address : begins;
}

__attribute__((format(printf, 2, 3))) static void say(struct object *kernel, const char *format,
                                                      ...)
{
    va_list args;
    char *why = NULL;
    va_start(args, format);
    if (vasprintf(&why, format, args) < 0) {
        why = NULL;
    }
    va_end(args);
    free(kernel->why);
    kernel->why = why;
}

/* False, with a reason, when these are not the names. */
static bool try_names(struct object *kernel, const char *path,
                      int (*read)(const char *path, struct kallsyms *out))
{
    struct objects *objects = kernel->objects;
    int err = read(path, &objects->kallsyms);
    if (err == -EPERM) {
        kernel->state = OBJECT_DENIED;
        say(kernel,
            "the kernel does not show its addresses in %s (run as root, or set "
            "kernel.kptr_restrict to 0)",
            path);
        return false;
    }
    if (err) {
        say(kernel, "%s: %s", path, strerror(-err));
        return false;
    }
    if (!is_at_its_place(objects)) {
        kallsyms_free(&objects->kallsyms);
        kernel->state = OBJECT_REFUSED;
        say(kernel, "%s is from another boot: '%s' has another address", path,
            objects->kernel_reference);
        return false;
    }
    return true;
}

static bool try_kallsyms(struct object *kernel, const char *path)
{
    return try_names(kernel, path, kallsyms_read);
}

static bool try_vmlinux(struct object *kernel, const char *path)
{
    struct objects *objects = kernel->objects;
    const struct file_identity *wanted = &kernel->place.file;
    struct elf_file *file = &objects->vmlinux_file;
    if (elf_file_open(-1, path, file) != OBJECT_SOUND) {
        return false;
    }
    if (elf_file_has_id(file, wanted->build_id, wanted->build_id_size) &&
        elf_symbols_add(&objects->vmlinux, file, 0)) {
        symbols_finish(&objects->vmlinux, 0, false);
        const struct symbol *reference =
            objects->kernel_reference ? symbols_named(&objects->vmlinux, objects->kernel_reference)
                                      : NULL;
        objects->vmlinux_moved =
            reference ? objects->kernel_reference_address - reference->address : 0;
        return true;
    }
    symbols_free(&objects->vmlinux);
    elf_file_close(file);
    return false;
}

/* The file of the kernel's build-id below a directory. False: it has none. */
static bool path_by_id(const struct object *kernel, const char *directory, const char *end,
                       char path[PATH_MAX])
{
    char id[BUILD_ID_TEXT];
    if (kernel->place.file.build_id_size < 2) {
        return false;
    }
    text_hex(kernel->place.file.build_id, kernel->place.file.build_id_size, id);
    snprintf(path, PATH_MAX, "%s/.build-id/%.2s/%s%s", directory, id, id + 2, end);
    return true;
}

/* What perf put aside. */
static bool try_copy(struct object *kernel)
{
    char path[PATH_MAX];
    return path_by_id(kernel, kernel->objects->build_id_dir, "/kallsyms", path) &&
           access(path, R_OK) == 0 && try_kallsyms(kernel, path);
}

/* What an earlier recording of this boot has kept. */
static bool try_kept(struct object *kernel)
{
    char path[PATH_MAX];
    return kernel->objects->live && objects_kernel_copy(path) && access(path, R_OK) == 0 &&
           try_names(kernel, path, kallsyms_map);
}

static bool try_vmlinuxes(struct object *kernel)
{
    const struct objects *objects = kernel->objects;
    char path[PATH_MAX];
    if (!path_by_id(kernel, objects->build_id_dir, "/vmlinux", path)) {
        return false;
    }
    if (try_vmlinux(kernel, path)) {
        return true;
    }
    (void)path_by_id(kernel, "/usr/lib/debug", ".debug", path);
    if (try_vmlinux(kernel, path)) {
        return true;
    }
    static const char *const places[] = {
        "/usr/lib/debug/boot/vmlinux-%s",
        "/usr/lib/debug/lib/modules/%s/vmlinux",
        "/lib/modules/%s/build/vmlinux",
        "/lib/modules/%s/vmlinux",
        "/boot/vmlinux-%s",
    };
    const char *release = objects->os_release;
    if (!release || strchr(release, '/')) {
        return false;
    }
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        const char *hole = strstr(places[i], "%s");
        snprintf(path, sizeof path, "%.*s%s%s", (int)(hole - places[i]), places[i], release,
                 hole + 2);
        if (try_vmlinux(kernel, path)) {
            return true;
        }
    }
    return false;
}

static void set_sound(struct object *kernel)
{
    kernel->state = OBJECT_SOUND;
    free(kernel->why);
    kernel->why = NULL;
}

void kernel_open(struct object *kernel)
{
    if (kernel->state != OBJECT_UNTRIED) {
        return;
    }
    kernel->state = OBJECT_MISSING;
    /* For /proc/kallsyms the kernel unpacks each name anew: a copy, where it can be seen to be of
     * this boot, costs a fifth of it. */
    bool running = is_running(kernel);
    kernel->objects->has_copy =
        running && kernel->objects->kernel_reference && (try_kept(kernel) || try_copy(kernel));
    if (kernel->objects->has_copy || (running && try_kallsyms(kernel, PROC_KALLSYMS)) ||
        try_copy(kernel) || try_vmlinuxes(kernel)) {
        set_sound(kernel);
        return;
    }
    if (!kernel->why) {
        const char *release = kernel->objects->os_release;
        say(kernel,
            "the recording is of another kernel (%s), and neither perf's copy of its symbols in %s "
            "nor its vmlinux is here",
            release ? release : "of an unknown release", kernel->objects->build_id_dir);
    }
}

/* Modules come and go: where an address is not the kernel's own, a copy is none of this moment. */
static void replace_copy(struct object *kernel)
{
    struct objects *objects = kernel->objects;
    struct kallsyms copy = objects->kallsyms;
    objects->has_copy = false;
    if (try_kallsyms(kernel, PROC_KALLSYMS)) {
        kallsyms_free(&copy);
    } else {
        objects->kallsyms = copy;
    }
    set_sound(kernel);
}

bool kernel_symbol(struct object *kernel, uint64_t address, struct object_symbol *out)
{
    struct objects *objects = kernel->objects;
    kernel_open(kernel);
    kernel->lookups++;
    const struct symbols *symbols = &objects->made.symbols;
    const struct symbol *found =
        objects->made.symbols.count ? made_at(&objects->made, address) : NULL;
    const char *module = found ? "[bpf]" : NULL;
    uint64_t moved = 0;
    if (!found) {
        moved = objects->vmlinux_moved;
        symbols = objects->vmlinux.count ? &objects->vmlinux : &objects->kallsyms.symbols;
        found = symbols_at(symbols, address - moved);
        if (objects->has_copy && (!found || found->module)) {
            replace_copy(kernel);
            found = symbols_at(symbols, address);
        }
        module = found && found->module ? objects->kallsyms.modules[found->module - 1] : NULL;
    }
    const char *name = found ? symbol_name(symbols, found) : "";
    if (!name[0]) {
        return false;
    }
    *out = (struct object_symbol){
        .address = found->address + moved, .size = found->size, .name = name, .module = module};
    return true;
}

void kernel_free(struct objects *objects)
{
    kallsyms_free(&objects->kallsyms);
    symbols_free(&objects->vmlinux);
    symbols_free(&objects->made.symbols);
    elf_file_close(&objects->vmlinux_file);
    bytes_free(&objects->made.names);
    free(objects->kernel_reference);
}
