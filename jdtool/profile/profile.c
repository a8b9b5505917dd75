#include "jdtool/profile/profile.h"

#include "jdtool/base/array.h"
#include "jdtool/base/intern.h"
#include "jdtool/base/message.h"
#include "jdtool/base/numbered.h"
#include "jdtool/base/tree.h"
#include "jdtool/base/unique.h"
#include "jdtool/profile/normal_name.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct profile_private {
    struct intern
        strings; /* names that do not live as long as the recording, or have many owners */
    struct hash_map functions, codes, locations, nodes, threads, plain_threads, tracks, samples;
    uint32_t *method_function; /* by method id: a number + 1; 0: not seen yet */
    uint32_t *module_function; /* by module id, for what has no method; the same */
    uint32_t method_room, module_function_room;
    uint32_t unknown_function;
    uint32_t function_room, line_room, code_room, location_room, node_room;
    uint32_t thread_room, plain_thread_room, track_room, mark_room, sample_room, module_room;
    struct profile_line *group; /* the lines of the location that is being looked up */
    uint32_t group_room;
    struct stack_notes of_nodes, of_locations; /* a number here + 1, 32 bits wide */
    uint32_t *path; /* of a new stack: its nodes there, innermost first */
    uint32_t path_room;
};

/* ---- Locations and stacks ---- */

/*
 * A profile's functions, locations and stacks. They are the samples' own (stack_table.h), in which
 * differ what is the same to a reader: where a process has mapped a file, whether an address was
 * returned to, which bytecode of a line was interpreted (perf.data's frames have that as their
 * offset), why code has no name, methods of one name. So several of their nodes and locations are
 * one here, and the resolver's may go under us. What became of each is remembered by its number; a
 * sample whose stack was there costs one look.
 */

/* ---- Functions ---- */

/* The text, kept once. NULL: no memory. */
static const char *profile_text(struct profile *profile, const char *text)
{
    return intern_utf8(&profile->private->strings, text);
}

/* The ELF file, or the kernel, that a function is of. NULL: a JVM's code, or unknown. */
static const struct module *file_of(const struct profile_function *function)
{
    const struct module *module = function->module;
    return module && module->kind != MODULE_JVM ? module : NULL;
}

/* "[libc.so.6]"; of a copy with a name of its own, as all copies have it, where they are joined. */
static void name_file(const struct module *module, bool is_joined, char *text, size_t size)
{
    const char *name = profile_module_name(module);
    snprintf(text, size, name[0] == '[' ? "%s" : "[%s]", name);
    if (is_joined) {
        normal_name(text);
    }
}

/* Two containers have the same libc.so.6 each, two JVMs a copy of zstd-jni below /tmp. */
static bool is_same_file(const struct module *a, const struct module *b)
{
    if (a == b || !a || !b || a->build_id_size != b->build_id_size) {
        return a == b;
    }
    if (a->build_id_size) {
        return build_id_same(a->build_id, a->build_id_size, b->build_id, b->build_id_size);
    }
    char names[2][256];
    name_file(a, true, names[0], sizeof names[0]);
    name_file(b, true, names[1], sizeof names[1]);
    return strcmp(names[0], names[1]) == 0;
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
        if (known->name == made.name && is_same_file(file_of(known), file_of(&made)) &&
            (known->file == made.file || !known->file || !made.file)) {
            known->file = known->file ? known->file : made.file;
            known->first_line = known->first_line ? known->first_line : made.first_line;
            return 0;
        }
    }
    if (ARRAY_RESERVE(profile->functions, profile->function_count, private->function_room) ||
        hash_map_add(&private->functions, hash, profile->function_count)) {
        return -ENOMEM;
    }
    *id = profile->function_count++;
    profile->functions[*id] = made;
    return 0;
}

/* A function's name for people, without its symbol's version: "pthread_cond_wait@@GLIBC_2.3.2",
 * "memcpy@GLIBC_2.2.5"; "malloc@plt" is no version. */
static const char *plain_name(const struct profile *profile, const struct resolved_method *method,
                              char *text, size_t size)
{
    if (profile->joins_runs && method->class_name && strlen(method->name) < size) {
        normal_name(strcpy(text, method->name)); /* NOLINT: it fits */
        return text;
    }
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
    if (profile->joins_runs) {
        normal_name(text);
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
        if (ARRAY_REACH(private->method_function, method->id, private->method_room)) {
            return -ENOMEM;
        }
        number = &private->method_function[method->id];
    } else if (module) {
        if (ARRAY_REACH(private->module_function, module->id, private->module_function_room)) {
            return -ENOMEM;
        }
        number = &private->module_function[module->id];
    }
    if (*number == 0) {
        struct profile_function function = {.method = method, .module = module};
        char text[1024];
        if (method) {
            function.name = plain_name(profile, method, text, sizeof text);
            function.system_name = system_name_of(profile, method);
            function.file = method->file;
            function.first_line = method->first_line;
            if (!function.system_name) {
                return -ENOMEM;
            }
        } else {
            name_file(module, profile->joins_runs, text, sizeof text);
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
    if (ARRAY_REACH(profile->modules, module->id, private->module_room)) {
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
    const size_t size = sizeof(struct resolved_code *);
    *id = unique_add((void *)&profile->codes, &profile->code_count, &private->code_room, size,
                     &private->codes, (const void *)&code, size);
    return *id == HASH_MAP_NONE ? -ENOMEM : note_module(profile, code->module);
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
        err = ARRAY_RESERVE(profile->lines, profile->line_count, private->line_room);
        if (!err) {
            profile->lines[profile->line_count++] = private->group[i];
        }
    }
    if (err || ARRAY_RESERVE(profile->locations, profile->location_count, private->location_room) ||
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
        if (ARRAY_RESERVE(private->group, i, private->group_room)) {
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

/* Sets *node to that of the sample's stack. 0 or -ENOMEM. */
static int profile_stack_of(struct profile *profile, const struct resolved_sample *sample,
                            uint32_t *node)
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
        if (ARRAY_RESERVE(private->path, depth, private->path_room)) {
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

/* ---- The profile ---- */

struct profile *profile_new(bool keep_times)
{
    struct profile *profile = calloc(1, sizeof *profile);
    struct profile_private *private = calloc(1, sizeof *private);
    if (!profile || !private) {
        free(profile);
        free(private);
        return NULL;
    }
    private->of_nodes.element = private->of_locations.element = sizeof(uint32_t);
    profile->keeps_times = keep_times;
    profile->private = private;
    return profile;
}

struct program {
    uint64_t pid;
    const char *name;
};

static void name_threads(struct profile *profile, struct profile_thread *threads, uint32_t count,
                         const struct numbered *programs)
{
    for (uint32_t i = 0; i < count; i++) {
        struct profile_thread *thread = &threads[i];
        const struct program *program = numbered_find(programs, thread->pid);
        thread->program = program ? program->name : thread->program;
        if (thread->tid == thread->pid && !thread->comm[0] && thread->process_name[0]) {
            char text[512];
            snprintf(text, sizeof text, "%.490s %" PRIu32, profile_process(thread), thread->pid);
            const char *name = profile_text(profile, text);
            thread->comm = name ? name : thread->comm;
        }
    }
}

/* The first samples of a JVM are from before it told what it runs. */
static void name_processes(struct profile *profile)
{
    struct numbered programs = NUMBERED(struct program);
    for (uint32_t i = 0; i < profile->thread_count; i++) {
        const struct profile_thread *thread = &profile->threads[i];
        struct program *program =
            thread->program[0] ? numbered_get(&programs, thread->pid, NULL) : NULL;
        if (program) {
            program->name = thread->program;
        }
    }
    name_threads(profile, profile->threads, profile->thread_count, &programs);
    name_threads(profile, profile->plain_threads, profile->plain_thread_count, &programs);
    numbered_free(&programs);
}

static void *copy_of(const void *list, size_t count, size_t element)
{
    void *copy = malloc((count + 1) * element);
    return copy && count ? memcpy(copy, list, count * element) : copy;
}

static bool has_several_jvms(const struct profile *profile)
{
    const struct module *first = NULL;
    for (uint32_t i = 0; i < profile->module_count; i++) {
        const struct module *module = profile->modules[i];
        if (module && module->kind == MODULE_JVM) {
            if (first && module->pid != first->pid) {
                return true;
            }
            first = module;
        }
    }
    return false;
}

/* Interns functions once more, by their normal names; numbers: the new one of each. */
static int intern_again(struct profile *profile, const struct profile_function *functions,
                        uint32_t count, uint32_t *numbers)
{
    int err = 0;
    for (uint32_t i = 0; !err && i < count; i++) {
        struct profile_function function = functions[i];
        char text[1024];
        if (function.method) {
            function.name = plain_name(profile, function.method, text, sizeof text);
            function.system_name = system_name_of(profile, function.method);
        }
        err = function.system_name ? intern_function(profile, &function, &numbers[i]) : -ENOMEM;
    }
    return err;
}

/* One method's hidden or generated class is called otherwise in each JVM. Without memory for it
 * they stay so. */
static void join_jvms(struct profile *profile)
{
    struct profile_private *private = profile->private;
    uint32_t count = profile->function_count;
    struct profile_function *were = copy_of(profile->functions, count, sizeof *were);
    uint32_t *numbers = calloc((size_t)count + 1, sizeof *numbers);
    if (were && numbers) {
        hash_map_free(&private->functions);
        private->functions = (struct hash_map){0};
        profile->function_count = 0;
        profile->joins_runs = true;
        if (intern_again(profile, were, count, numbers)) {
            memcpy(profile->functions, were, count * sizeof *were);
            profile->function_count = count;
        } else {
            for (uint32_t i = 0; i < profile->line_count; i++) {
                profile->lines[i].function = numbers[profile->lines[i].function];
            }
        }
    }
    free(were);
    free(numbers);
}

static void release(struct profile *profile)
{
    struct profile_private *private = profile->private;
    hash_map_free(&private->functions);
    hash_map_free(&private->codes);
    hash_map_free(&private->locations);
    hash_map_free(&private->nodes);
    hash_map_free(&private->threads);
    hash_map_free(&private->plain_threads);
    hash_map_free(&private->tracks);
    hash_map_free(&private->samples);
    stack_notes_free(&private->of_nodes);
    stack_notes_free(&private->of_locations);
    free(private->path);
    private->path = NULL;
    private->path_room = 0;
}

void profile_close(struct profile *profile)
{
    if (!profile->joins_runs && has_several_jvms(profile)) {
        join_jvms(profile);
    }
    name_processes(profile);
    release(profile);
}

void profile_free(struct profile *profile)
{
    if (!profile) {
        return;
    }
    struct profile_private *private = profile->private;
    release(profile);
    intern_free(&private->strings);
    free(private->method_function);
    free(private->module_function);
    free(private->group);
    free(private);
    free(profile->functions);
    free(profile->lines);
    free((void *)profile->codes);
    free(profile->locations);
    free(profile->nodes);
    free(profile->threads);
    free(profile->plain_threads);
    free(profile->tracks);
    free(profile->samples);
    free(profile->marks);
    free(profile->modules);
    free(profile);
}

void profile_tell_losses(const struct profile *profile, const char *path)
{
    if (profile->cut_stacks) {
        warning_message("%s: %" PRIu64 " stacks are cut at their inner end: there are more "
                        "different ones than %u nodes hold",
                        path, profile->cut_stacks, PROFILE_NODES_MAX);
    }
    if (profile->late_parts) {
        warning_message("%s: %" PRIu64 " user parts of stacks are left out, which the kernel "
                        "recorded apart (perf record --call-graph fp,defer) from samples that are "
                        "not here",
                        path, profile->late_parts);
    }
}

const char *profile_module_name(const struct module *module)
{
    if (!module || !module->path) {
        return "[unknown]";
    }
    const char *slash = strrchr(module->path, '/');
    return slash && slash[1] ? slash + 1 : module->path;
}

/* ---- Threads ---- */

static int track_of(struct profile *profile, uint32_t pid, uint32_t tid, uint32_t *id)
{
    struct profile_private *private = profile->private;
    const struct profile_track made = {.pid = pid, .tid = tid, .thread = PROFILE_NONE};
    *id = unique_add(&profile->tracks, &profile->track_count, &private->track_room, sizeof made,
                     &private->tracks, &made, offsetof(struct profile_track, thread));
    return *id == HASH_MAP_NONE ? -ENOMEM : 0;
}

/* A thread under all that is told of it, made where there is none. */
static int intern_thread(struct profile_thread **list, uint32_t *count, uint32_t *room,
                         struct hash_map *map, const struct profile_thread *thread, uint32_t *id)
{
    *id = unique_add(list, count, room, sizeof **list, map, thread,
                     offsetof(struct profile_thread, virtual_name));
    if (*id == HASH_MAP_NONE || !*list) {
        return -ENOMEM;
    }
    (*list)[*id].process_name = thread->process_name; /* the last one it had */
    (*list)[*id].virtual_name = thread->virtual_name;
    (*list)[*id].program = thread->program;
    return 0;
}

/* A thread of that track under names that it did not have in its last sample. Sets *id. */
static int rename_thread(struct profile *profile, uint32_t track,
                         const struct resolved_thread *wanted, uint32_t *id)
{
    struct profile_private *private = profile->private;
    const char *none = profile_text(profile, "");
    struct profile_thread thread = {
        .pid = wanted->pid,
        .tid = wanted->tid,
        .comm = profile_text(profile, wanted->comm ? wanted->comm : ""),
        .process_name = profile_text(profile, wanted->process_name ? wanted->process_name : ""),
        .program = profile_text(profile, wanted->program ? wanted->program : ""),
        .track = track,
        .virtual_name = none,
        .labels = none,
    };
    if (!thread.comm || !thread.process_name || !thread.program || !none) {
        return -ENOMEM;
    }
    int err = 0;
    if (profile->keeps_identities) {
        err = intern_thread(&profile->plain_threads, &profile->plain_thread_count,
                            &private->plain_thread_room, &private->plain_threads, &thread,
                            &thread.plain);
        thread.virtual_id = wanted->virtual_id;
        thread.virtual_name = profile_text(
            profile, thread.virtual_id && wanted->virtual_name ? wanted->virtual_name : "");
        thread.labels = profile_text(profile, wanted->labels ? wanted->labels : "");
        err = thread.virtual_name && thread.labels ? err : -ENOMEM;
    }
    if (!err) {
        err = intern_thread(&profile->threads, &profile->thread_count, &private->thread_room,
                            &private->threads, &thread, id);
    }
    if (!err) {
        profile->tracks[track].thread = *id;
    }
    return err;
}

static bool has_identity(const struct profile_thread *known, const struct resolved_thread *wanted)
{
    return known->virtual_id == wanted->virtual_id &&
           strcmp(known->labels, wanted->labels ? wanted->labels : "") == 0 &&
           strcmp(known->virtual_name, wanted->virtual_name ? wanted->virtual_name : "") == 0;
}

/* The thread, which has mostly the names that it had. */
int profile_intern_thread(struct profile *profile, const struct resolved_thread *wanted,
                          uint32_t *id)
{
    uint32_t track;
    if (track_of(profile, wanted->pid, wanted->tid, &track)) {
        return -ENOMEM;
    }
    *id = profile->tracks[track].thread;
    const struct profile_thread *known = *id == PROFILE_NONE ? NULL : &profile->threads[*id];
    bool is_same = known && wanted->comm && strcmp(known->comm, wanted->comm) == 0 &&
                   wanted->process_name && strcmp(known->process_name, wanted->process_name) == 0 &&
                   (!wanted->program || strcmp(known->program, wanted->program) == 0) &&
                   (!profile->keeps_identities || has_identity(known, wanted));
    return is_same ? 0 : rename_thread(profile, track, wanted, id);
}

/* ---- Samples ---- */

/* Adds a sample to those that are there, or to the one that it is equal to. */
static int merge_sample(struct profile *profile, struct hash_map *map, uint32_t *room,
                        const struct profile_sample *sample)
{
    uint32_t count = profile->sample_count;
    uint32_t id = unique_add(&profile->samples, &profile->sample_count, room, sizeof *sample, map,
                             sample, offsetof(struct profile_sample, count));
    if (id < count) {
        profile->samples[id].weight += sample->weight;
        profile->samples[id].count += sample->count;
    }
    return id == HASH_MAP_NONE ? -ENOMEM : 0;
}

int profile_intern(struct profile *profile, const struct resolved_sample *sample,
                   struct profile_sample *made)
{
    *made = (struct profile_sample){
        .time = sample->time, .weight = sample->weight, .count = 1, .event = sample->event->id};
    int err = profile_intern_thread(profile, &sample->thread, &made->thread);
    if (!err) {
        err = profile_stack_of(profile, sample, &made->node);
    }
    if (err) {
        return err;
    }
    if (profile->total_count == 0 || sample->time < profile->from) {
        profile->from = sample->time;
    }
    if (sample->time > profile->until) {
        profile->until = sample->time;
    }
    profile->total_count++;
    return 0;
}

int profile_keep(struct profile *profile, const struct profile_sample *sample)
{
    struct profile_private *private = profile->private;
    if (!profile->keeps_times) {
        return merge_sample(profile, &private->samples, &private->sample_room, sample);
    }
    if (ARRAY_RESERVE(profile->samples, profile->sample_count, private->sample_room)) {
        return -ENOMEM;
    }
    profile->samples[profile->sample_count++] = *sample;
    return 0;
}

int profile_add(struct profile *profile, const struct resolved_sample *sample)
{
    struct profile_sample made;
    int err = profile_intern(profile, sample, &made);
    return err ? err : profile_keep(profile, &made);
}

struct profile_sum profile_sum(const struct profile *profile, uint32_t event)
{
    struct profile_sum sum = {0};
    for (uint32_t i = 0; i < profile->sample_count; i++) {
        bool is_of = profile->samples[i].event == event;
        sum.samples += is_of ? profile->samples[i].count : 0;
        sum.weight += is_of ? profile->samples[i].weight : 0;
    }
    return sum;
}

struct sample_order {
    const struct profile *profile;
    const enum sample_key *keys;
};

static int compare_samples(const void *a, const void *b, void *context)
{
    const struct sample_order *order = context;
    const struct profile *profile = order->profile;
    const uint32_t numbers[] = {*(const uint32_t *)a, *(const uint32_t *)b};
    const struct profile_sample *first = &profile->samples[numbers[0]];
    const struct profile_sample *second = &profile->samples[numbers[1]];
    for (const enum sample_key *key = order->keys;; key++) {
        uint64_t of_first = first->time;
        uint64_t of_second = second->time;
        switch (*key) {
        case BY_EVENT:
            of_first = first->event;
            of_second = second->event;
            break;
        case BY_PROCESS:
            of_first = profile->threads[first->thread].pid;
            of_second = profile->threads[second->thread].pid;
            break;
        case BY_TRACK:
            of_first = profile->threads[first->thread].track;
            of_second = profile->threads[second->thread].track;
            break;
        case BY_THREAD:
            of_first = first->thread;
            of_second = second->thread;
            break;
        case BY_NODE:
            of_first = first->node;
            of_second = second->node;
            break;
        case BY_TIME:
            break;
        case BY_NUMBER:
            return ORDER(numbers[0], numbers[1]);
        }
        if (of_first != of_second) {
            return of_first < of_second ? -1 : 1;
        }
    }
}

uint32_t *profile_order(const struct profile *profile, const enum sample_key *keys)
{
    const struct sample_order order = {profile, keys};
    return array_sorted(profile->sample_count, compare_samples, &order);
}

/* ---- Marks ---- */

int profile_add_mark(struct profile *profile, const struct resolved_mark *mark)
{
    struct profile_mark made = {
        .from = mark->from,
        .until = mark->until,
        .number = mark->number,
        .text = profile_text(profile, mark->text ? mark->text : ""),
        .subject = profile_text(profile, mark->subject ? mark->subject : ""),
        .kind = (uint8_t)mark->kind,
        .is_open = mark->is_open,
    };
    if (!made.text || !made.subject || profile_intern_thread(profile, mark->thread, &made.thread) ||
        ARRAY_RESERVE(profile->marks, profile->mark_count, profile->private->mark_room)) {
        return -ENOMEM;
    }
    profile->marks[profile->mark_count++] = made;
    return 0;
}

/* ---- Views ---- */

void profile_view_free(const struct profile *profile, struct profile *view)
{
    if (view->samples != profile->samples) {
        free(view->samples);
    }
    if (view->threads != profile->threads && view->threads != profile->plain_threads) {
        free(view->threads);
    }
    if (view->tracks != profile->tracks) {
        free(view->tracks);
    }
    if (view->marks != profile->marks) {
        free(view->marks);
    }
}

/* Threads without identities: whoever had a number of one has that of its plain one. */
static int view_plainly(const struct profile *profile, struct profile *view)
{
    view->threads = profile->plain_threads;
    view->thread_count = profile->plain_thread_count;
    view->samples = copy_of(profile->samples, profile->sample_count, sizeof *view->samples);
    view->tracks = copy_of(profile->tracks, profile->track_count, sizeof *view->tracks);
    view->marks = copy_of(profile->marks, profile->mark_count, sizeof *view->marks);
    for (uint32_t i = 0; view->samples && i < view->sample_count; i++) {
        view->samples[i].thread = profile->threads[view->samples[i].thread].plain;
    }
    for (uint32_t i = 0; view->tracks && i < view->track_count; i++) {
        view->tracks[i].thread = profile->threads[view->tracks[i].thread].plain;
    }
    for (uint32_t i = 0; view->marks && i < view->mark_count; i++) {
        view->marks[i].thread = profile->threads[view->marks[i].thread].plain;
    }
    return view->samples && view->tracks && view->marks ? 0 : -ENOMEM;
}

/* Equal samples are one, and threads are those of samples: marks are nothing without times. */
static int view_without_times(const struct profile *profile, bool of_processes,
                              struct profile *view)
{
    static const char none[] = "";
    const struct profile_sample *samples = view->samples;
    const struct profile_thread *threads = view->threads;
    struct hash_map thread_map = {0};
    struct hash_map map = {0};
    uint32_t thread_room = 0;
    uint32_t room = 0;
    int err = 0;
    uint32_t sample_count = view->sample_count;
    view->threads = NULL;
    view->thread_count = view->mark_count = view->sample_count = 0;
    view->samples = NULL;
    view->keeps_times = false;
    for (uint32_t i = 0; !err && i < sample_count; i++) {
        struct profile_sample sample = samples[i];
        struct profile_thread thread = threads[sample.thread];
        if (of_processes) {
            thread = (struct profile_thread){.pid = thread.pid,
                                             .tid = thread.pid,
                                             .comm = none,
                                             .labels = none,
                                             .virtual_name = none,
                                             .process_name = none,
                                             .program = none};
        }
        err = intern_thread(&view->threads, &view->thread_count, &thread_room, &thread_map, &thread,
                            &sample.thread);
        err = err ? err : merge_sample(view, &map, &room, &sample);
    }
    if (samples != profile->samples) {
        free((void *)samples);
    }
    hash_map_free(&thread_map);
    hash_map_free(&map);
    return err;
}

int profile_view(const struct profile *profile, bool times, bool identities, bool of_processes,
                 struct profile *view)
{
    int err = 0;
    *view = *profile;
    if (profile->keeps_identities && !identities) {
        view->keeps_identities = false;
        err = view_plainly(profile, view);
    }
    /* One that is merged already is merged again where threads became one. */
    if (!err && !times && (profile->keeps_times || view->samples != profile->samples)) {
        err = view_without_times(profile, of_processes, view);
    }
    if (err) {
        profile_view_free(profile, view);
    }
    return err;
}
