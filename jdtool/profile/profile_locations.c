/*
 * A profile's functions, locations and stacks. They are the samples' own (stack_table.h), in which
 * differ what is the same to a reader: where a process has mapped a file, whether an address was
 * returned to, which bytecode of a line was interpreted (perf.data's frames have that as their
 * offset), why code has no name, methods of one name. So several of their nodes and locations are
 * one here, and the resolver's may go under us. What became of each is remembered by its number; a
 * sample whose stack was there costs one look.
 */
#include "jdtool/base/array.h"
#include "jdtool/base/text.h"
#include "jdtool/base/tree.h"
#include "jdtool/profile/profile_private.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ---- Functions ---- */

const char *profile_text(struct profile *profile, const char *text)
{
    if (text_is_utf8(text)) {
        return intern(&profile->private->strings, text);
    }
    char *mended = text_mended(text);
    const char *kept = mended ? intern(&profile->private->strings, mended) : NULL;
    free(mended);
    return kept;
}

/* The ELF file, or the kernel, that a function is of. NULL: a JVM's code, or unknown. */
static const struct module *file_of(const struct profile_function *function)
{
    const struct module *module = function->module;
    return module && module->kind != MODULE_JVM ? module : NULL;
}

/* Methods of one name are one function: an interpreted and a compiled one, or the method of several
 * JVMs; but not those of different sources, nor functions of different ELF files. Sets *id. */
static int intern_function(struct profile *profile, const struct profile_function *function,
                           uint32_t *id)
{
    struct profile_private *private = profile->private;
    struct profile_function made = *function;
    made.name = profile_text(profile, function->name);
    made.file = function->file ? profile_text(profile, function->file) : NULL;
    if (!made.name || (function->file && !made.file)) {
        return -ENOMEM;
    }
    uint64_t hash = (uintptr_t)made.name;
    struct hash_map_cursor cursor = hash_map_start(&private->functions, hash);
    while ((*id = hash_map_next(&private->functions, &cursor)) != HASH_MAP_NONE) {
        struct profile_function *known = &profile->functions[*id];
        if (known->name == made.name && file_of(known) == file_of(&made) &&
            (known->file == made.file || !known->file || !made.file)) {
            known->file = known->file ? known->file : made.file;
            known->first_line = known->first_line ? known->first_line : made.first_line;
            return 0;
        }
    }
    if (array_reserve(&profile->functions, profile->function_count, &private->function_room,
                      sizeof *profile->functions) ||
        hash_map_add(&private->functions, hash, profile->function_count)) {
        return -ENOMEM;
    }
    *id = profile->function_count++;
    profile->functions[*id] = made;
    return 0;
}

/* A function's name for people, without its symbol's version: "pthread_cond_wait@@GLIBC_2.3.2",
 * "memcpy@GLIBC_2.2.5"; "malloc@plt" is no version. */
static const char *plain_name(const struct resolved_method *method, char *text, size_t size)
{
    const char *at = method->kind == RESOLVED_NATIVE ? strchr(method->name, '@') : NULL;
    if (!at || at == method->name || strcmp(at, "@plt") == 0) {
        return method->name;
    }
    int length = snprintf(text, size, "%.*s", (int)(at - method->name), method->name);
    return length > 0 && (size_t)length < size ? text : method->name;
}

/* JVM's own spelling has no blanks; ours, with its parts, tells overloaded methods apart. */
static const char *system_name_of(struct profile *profile, const struct resolved_method *method)
{
    if (!method->class_name || !method->method_name) {
        return method->name;
    }
    char text[1024];
    int size = snprintf(text, sizeof text, "%s.%s%s", method->class_name, method->method_name,
                        method->descriptor ? method->descriptor : "");
    if (size < 0 || (size_t)size >= sizeof text) {
        return method->name;
    }
    return profile_text(profile, text);
}

/* method NULL: only the module is known, or nothing. */
static int function_of(struct profile *profile, const struct resolved_method *method,
                       const struct module *module, uint32_t *id)
{
    struct profile_private *private = profile->private;
    uint32_t *number = &private->unknown_function;
    if (method) {
        if (array_reach(&private->method_function, method->id, &private->method_room,
                        sizeof *number)) {
            return -ENOMEM;
        }
        number = &private->method_function[method->id];
    } else if (module) {
        if (array_reach(&private->module_function, module->id, &private->module_function_room,
                        sizeof *number)) {
            return -ENOMEM;
        }
        number = &private->module_function[module->id];
    }
    if (*number == 0) {
        struct profile_function function = {.method = method, .module = module};
        char text[1024];
        if (method) {
            function.name = plain_name(method, text, sizeof text);
            function.system_name = system_name_of(profile, method);
            function.file = method->file;
            function.first_line = method->first_line;
            if (!function.system_name) {
                return -ENOMEM;
            }
        } else {
            const char *name = profile_module_name(module);
            snprintf(text, sizeof text, name[0] == '[' ? "%s" : "[%s]", name);
            function.name = text;
        }
        int err = intern_function(profile, &function, id);
        if (err) {
            return err;
        }
        struct profile_function *made = &profile->functions[*id];
        made->system_name = made->system_name ? made->system_name : made->name;
        *number = *id + 1;
    }
    *id = *number - 1;
    return 0;
}

/* ---- Locations ---- */

static int note_module(struct profile *profile, const struct module *module)
{
    struct profile_private *private = profile->private;
    if (!module || (module->id < profile->module_count && profile->modules[module->id])) {
        return 0;
    }
    if (array_reach(&profile->modules, module->id, &private->module_room,
                    sizeof(struct module *))) {
        return -ENOMEM;
    }
    if (profile->module_count <= module->id) {
        profile->module_count = module->id + 1;
    }
    profile->modules[module->id] = module;
    return 0;
}

/* Sets *id to the number of the code; of none it means nothing. */
static int code_of(struct profile *profile, const struct resolved_code *code, uint32_t *id)
{
    struct profile_private *private = profile->private;
    if (!code) {
        return 0;
    }
    struct hash_map_cursor cursor = hash_map_start(&private->codes, (uintptr_t)code);
    while ((*id = hash_map_next(&private->codes, &cursor)) != HASH_MAP_NONE) {
        if (profile->codes[*id] == code) {
            return 0;
        }
    }
    if (array_reserve(&profile->codes, profile->code_count, &private->code_room,
                      sizeof(struct resolved_code *)) ||
        hash_map_add(&private->codes, (uintptr_t)code, profile->code_count)) {
        return -ENOMEM;
    }
    *id = profile->code_count++;
    profile->codes[*id] = code;
    return note_module(profile, code->module);
}

static uint64_t location_hash(const struct profile_location *location,
                              const struct profile_line *lines)
{
    uint64_t hash =
        hash_pair((uintptr_t)location->code ^ (uintptr_t)location->module, location->address);
    for (uint32_t i = 0; i < location->line_count; i++) {
        hash = hash_pair(hash, (uint64_t)lines[i].function << 32 | lines[i].line);
    }
    return hash;
}

static bool same_lines(const struct profile_line *a, const struct profile_line *b, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (a[i].function != b[i].function || a[i].line != b[i].line || a[i].kind != b[i].kind ||
            a[i].tier != b[i].tier || a[i].is_osr != b[i].is_osr) {
            return false;
        }
    }
    return true;
}

/* The location of `wanted`, whose lines stand in private->group. Sets *id. */
static int intern_location(struct profile *profile, struct profile_location *wanted, uint32_t *id)
{
    struct profile_private *private = profile->private;
    uint64_t hash = location_hash(wanted, private->group);
    struct hash_map_cursor cursor = hash_map_start(&private->locations, hash);
    while ((*id = hash_map_next(&private->locations, &cursor)) != HASH_MAP_NONE) {
        const struct profile_location *known = &profile->locations[*id];
        if (known->address == wanted->address && known->module == wanted->module &&
            known->code == wanted->code && known->line_count == wanted->line_count &&
            same_lines(&profile->lines[known->first_line], private->group, wanted->line_count)) {
            return 0;
        }
    }
    int err = note_module(profile, wanted->module);
    err = err ? err : code_of(profile, wanted->code, &wanted->code_number);
    wanted->first_line = profile->line_count;
    for (uint32_t i = 0; !err && i < wanted->line_count; i++) {
        err = array_reserve(&profile->lines, profile->line_count, &private->line_room,
                            sizeof *profile->lines);
        if (!err) {
            profile->lines[profile->line_count++] = private->group[i];
        }
    }
    if (err ||
        array_reserve(&profile->locations, profile->location_count, &private->location_room,
                      sizeof *profile->locations) ||
        hash_map_add(&private->locations, hash, profile->location_count)) {
        return -ENOMEM;
    }
    *id = profile->location_count++;
    profile->locations[*id] = *wanted;
    return 0;
}

static int find_location(struct profile *profile, const struct location *seen, uint32_t *id)
{
    struct profile_private *private = profile->private;
    const struct resolved_frame *frames = seen->lines;
    uint32_t count = seen->line_count;
    struct profile_location location = {.module = seen->module,
                                        .code = seen->code,
                                        .line_count = count,
                                        .address = seen->address,
                                        .is_caller = seen->is_caller};
    if (seen->module && seen->module->kind != MODULE_KERNEL) {
        location.address = seen->module_address;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (array_reserve(&private->group, i, &private->group_room, sizeof *private->group)) {
            return -ENOMEM;
        }
        private->group[i] = (struct profile_line){.line = frames[i].line,
                                                  .kind = frames[i].kind,
                                                  .tier = frames[i].tier,
                                                  .is_osr = frames[i].is_osr};
        int err = function_of(profile, frames[i].method, seen->module, &private->group[i].function);
        if (err) {
            return err;
        }
    }
    return intern_location(profile, &location, id);
}

/* ---- Stacks ---- */

static int location_of(struct profile *profile, const struct stack_table *stacks, uint32_t location,
                       uint32_t *id)
{
    uint32_t *number = (uint32_t *)profile->private->of_locations.list + location;
    if (*number == 0) {
        int err = find_location(profile, stack_table_location_at(stacks, location), id);
        if (err) {
            return err;
        }
        *number = *id + 1;
    }
    *id = *number - 1;
    return 0;
}

int profile_stack_of(struct profile *profile, const struct resolved_sample *sample, uint32_t *node)
{
    struct profile_private *private = profile->private;
    const struct stack_table *stacks = sample->stacks;
    uint32_t at = sample->node;
    uint32_t depth = 0;
    *node = PROFILE_NONE;
    if (at == 0) {
        return 0;
    }
    if (stack_notes_follow(&private->of_nodes, stacks->epoch, stacks->node_count) ||
        stack_notes_follow(&private->of_locations, stacks->location_epoch,
                           stacks->locations.count)) {
        return -ENOMEM;
    }
    uint32_t *numbers = private->of_nodes.list;
    for (; at && numbers[at] == 0; at = stacks->nodes[at].caller) {
        if (array_reserve(&private->path, depth, &private->path_room, sizeof *private->path)) {
            return -ENOMEM;
        }
        private->path[depth++] = at;
    }
    *node = at ? numbers[at] - 1 : PROFILE_NONE;
    while (depth > 0) {
        uint32_t location;
        at = private->path[--depth];
        int err = location_of(profile, stacks, stacks->nodes[at].location, &location);
        if (err) {
            return err;
        }
        uint32_t child =
            tree_child(&profile->nodes, &profile->node_count, &private->node_room,
                       sizeof *profile->nodes, PROFILE_NODES_MAX, &private->nodes, *node, location);
        if (child == HASH_MAP_NONE) {
            profile->cut_stacks++;
            return profile->node_count < PROFILE_NODES_MAX ? -ENOMEM : 0;
        }
        numbers[at] = child + 1;
        *node = child;
    }
    return 0;
}
