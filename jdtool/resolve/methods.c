#include "jdtool/resolve/methods.h"

#include "jdtool/base/chunks.h"
#include "jdtool/base/hash_map.h"
#include "jdtool/base/intern.h"

#include <stdlib.h>
#include <string.h>

/* ---- Names ---- */

/* Behind what belongs to the name: the agent's tier=on puts " [C1]", " [C2]", " [Graal]", " [OSR]"
 * there. */
static const char *end_of(const char *from)
{
    const char *end = from + strlen(from);
    while (end - from > 4 && end[-1] == ']') {
        const char *start = end - 1;
        while (start > from && *start != '[') {
            start--;
        }
        if (start <= from || start[-1] != ' ') {
            break;
        }
        end = start - 1;
    }
    return end;
}

/* Lpkg/Cls;m(I)V */
static bool split_jvm(const char *name, const char *end, struct java_name *out)
{
    const char *semicolon = memchr(name, ';', (size_t)(end - name));
    const char *open = semicolon ? memchr(semicolon, '(', (size_t)(end - semicolon)) : NULL;
    if (name[0] != 'L' || !semicolon) {
        return false;
    }
    const char *method_end = open ? open : end;
    *out = (struct java_name){.class_name = name + 1,
                              .class_size = (size_t)(semicolon - name - 1),
                              .method = semicolon + 1,
                              .method_size = (size_t)(method_end - semicolon - 1),
                              .descriptor = open,
                              .descriptor_size = open ? (size_t)(end - open) : 0};
    return true;
}

bool java_name_split(const char *name, struct java_name *out)
{
    const char *end = end_of(name);
    memset(out, 0, sizeof *out);
    if (split_jvm(name, end, out)) {
        return out->class_size && out->method_size;
    }
    const char *open = memchr(name, '(', (size_t)(end - name));
    const char *method_end = open ? open : end;
    const char *dot = method_end; /* hidden classes have a slash in their names, and no dot in it */
    while (dot > name && dot[-1] != '.') {
        dot--;
    }
    if (dot <= name + 1 || dot == method_end) {
        return false;
    }
    *out = (struct java_name){.class_name = name,
                              .class_size = (size_t)(dot - 1 - name),
                              .method = dot,
                              .method_size = (size_t)(method_end - dot),
                              .descriptor = open,
                              .descriptor_size = open ? (size_t)(end - open) : 0};
    return true;
}

/* ---- The table ---- */

struct methods {
    struct intern strings;
    struct chunks modules; /* of struct module */
    struct hash_map by_file;
    struct chunks methods; /* of struct resolved_method */
    struct hash_map by_facts;
};

struct methods *methods_new(void)
{
    struct methods *methods = calloc(1, sizeof *methods);
    if (methods) {
        methods->modules.element = sizeof(struct module);
        methods->methods.element = sizeof(struct resolved_method);
    }
    return methods;
}

void methods_clear(struct methods *methods)
{
    chunks_free(&methods->modules);
    chunks_free(&methods->methods);
    hash_map_free(&methods->by_file);
    hash_map_free(&methods->by_facts);
    intern_free(&methods->strings);
}

void methods_free(struct methods *methods)
{
    if (methods) {
        methods_clear(methods);
        free(methods);
    }
}

uint32_t methods_count(const struct methods *methods)
{
    return methods->methods.count;
}

const char *methods_string(struct methods *methods, const char *text)
{
    return intern(&methods->strings, text);
}

/* ---- Modules ---- */

struct module *methods_add_module(struct methods *methods, enum module_kind kind, const char *path)
{
    const char *kept = intern(&methods->strings, path);
    struct module *module = kept ? chunks_add(&methods->modules) : NULL;
    if (module) {
        module->id = methods->modules.count - 1;
        module->kind = kind;
        module->path = kept;
    }
    return module;
}

struct module *methods_file_module(struct methods *methods, const char *path,
                                   const uint8_t *build_id, size_t size)
{
    const char *kept = intern(&methods->strings, path);
    size = size <= BUILD_ID_MAX ? size : 0;
    uint64_t start = 0;
    if (size) {
        memcpy(&start, build_id, size < sizeof start ? size : sizeof start);
    }
    uint64_t hash = hash_pair((uintptr_t)kept, start);
    struct hash_map_cursor cursor = hash_map_start(&methods->by_file, hash);
    uint32_t at;
    while ((at = hash_map_next(&methods->by_file, &cursor)) != HASH_MAP_NONE) {
        struct module *module = chunks_at(&methods->modules, at);
        if (module->path == kept && module->build_id_size == size &&
            (size == 0 || memcmp(module->build_id, build_id, size) == 0)) {
            return module;
        }
    }
    struct module *module = kept ? methods_add_module(methods, MODULE_FILE, kept) : NULL;
    if (!module || hash_map_add(&methods->by_file, hash, module->id)) {
        return NULL;
    }
    if (size) {
        memcpy(module->build_id, build_id, size);
        module->build_id_size = (uint8_t)size;
    }
    return module;
}

/* ---- Methods ---- */

static const char *keep(struct methods *methods, const char *text, size_t size)
{
    char *copy = size ? strndup(text, size) : NULL;
    const char *kept = copy ? intern(&methods->strings, copy) : NULL;
    free(copy);
    return kept;
}

/* The JVM's form of a class's name as Java writes it. In Java's own form a slash belongs to the
 * name of a hidden class, "pkg.Cls$$Lambda/0x000078". */
static const char *keep_jvm_class(struct methods *methods, const struct java_name *name)
{
    char *copy = strndup(name->class_name, name->class_size);
    if (!copy) {
        return NULL;
    }
    for (char *c = copy; *c; c++) {
        if (*c == '/') {
            *c = '.';
        }
    }
    const char *kept = intern(&methods->strings, copy);
    free(copy);
    return kept;
}

static bool take_apart(struct methods *methods, struct resolved_method *method)
{
    struct java_name name;
    if ((method->kind != RESOLVED_COMPILED && method->kind != RESOLVED_INTERPRETED) ||
        !java_name_split(method->name, &name)) {
        return true;
    }
    bool is_jvm = name.class_name != method->name;
    method->class_name =
        is_jvm ? keep_jvm_class(methods, &name) : keep(methods, name.class_name, name.class_size);
    method->method_name = keep(methods, name.method, name.method_size);
    method->descriptor =
        name.descriptor ? keep(methods, name.descriptor, name.descriptor_size) : NULL;
    return method->class_name && method->method_name &&
           (method->descriptor || !name.descriptor_size);
}

const struct resolved_method *methods_of(struct methods *methods, const struct method_facts *facts)
{
    const char *name = intern(&methods->strings, facts->name);
    const char *file = facts->file ? intern(&methods->strings, facts->file) : NULL;
    if (!name || (facts->file && !file)) {
        return NULL;
    }
    uint64_t hash = hash_pair(hash_pair((uintptr_t)name, (uintptr_t)file),
                              hash_pair((uintptr_t)facts->module, facts->address + facts->kind));
    struct hash_map_cursor cursor = hash_map_start(&methods->by_facts, hash);
    uint32_t at;
    while ((at = hash_map_next(&methods->by_facts, &cursor)) != HASH_MAP_NONE) {
        const struct resolved_method *method = chunks_at(&methods->methods, at);
        if (method->name == name && method->file == file && method->kind == facts->kind &&
            method->module == facts->module && method->address == facts->address) {
            return method;
        }
    }
    struct resolved_method *method = chunks_add(&methods->methods);
    if (!method) {
        return NULL;
    }
    *method = (struct resolved_method){.id = methods->methods.count - 1,
                                       .kind = facts->kind,
                                       .name = name,
                                       .file = file,
                                       .first_line = facts->first_line,
                                       .module = facts->module,
                                       .address = facts->address,
                                       .size = facts->size};
    if (!take_apart(methods, method) ||
        hash_map_add(&methods->by_facts, hash, methods->methods.count - 1)) {
        return NULL;
    }
    return method;
}
