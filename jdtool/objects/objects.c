/* The set of objects: who is who, which are open, what is told of the rest. */
#include "jdtool/objects/objects.h"

#include "jdtool/base/array.h"
#include "jdtool/base/message.h"
#include "jdtool/objects/object.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

/* As an absolute path: the working directory is nobody's concern. */
static char *find_directory(const char *given)
{
    char *path = NULL;
    const char *home = getenv("HOME");
    if (asprintf(&path, "%s%s", given ? given : home ? home : "", given ? "" : "/.debug") < 0) {
        return NULL;
    }
    char *absolute = realpath(path, NULL);
    if (!absolute) { /* not there: nothing will be found */
        return path;
    }
    free(path);
    return absolute;
}

static bool is_our_kernel(const char *release)
{
    struct utsname own;
    return release && uname(&own) == 0 && strcmp(own.release, release) == 0;
}

int objects_new(const struct objects_options *options, struct objects **out)
{
    *out = NULL;
    struct objects *objects = calloc(1, sizeof *objects);
    if (!objects) {
        return -ENOMEM;
    }
    (void)unsetenv("DEBUGINFOD_URLS");
    objects->vmlinux_file = ELF_FILE_NONE;
    objects->rows = ROW_SET_EMPTY;
    objects->live = options->live;
    objects->build_id_dir = find_directory(options->build_id_dir);
    objects->os_release = options->os_release ? strdup(options->os_release) : NULL;
    if (!objects->build_id_dir || (options->os_release && !objects->os_release)) {
        objects_free(objects);
        return -ENOMEM;
    }
    objects->places = (struct file_places){
        .machine = options->machine,
        .build_id_dir = objects->build_id_dir,
        .kernel = objects->os_release,
        .here = options->here,
        .sparing = options->sparing,
        .patience = options->patience ? options->patience : OBJECT_PATIENCE,
        .same_kernel = options->here && is_our_kernel(options->os_release),
    };
    *out = objects;
    return 0;
}

static void free_object(struct object *object)
{
    if (object) {
        if (object->file) {
            object_file_close(object->file);
        }
        intern_release(&object->objects->paths, object->path);
        free(object->why);
        free(object);
    }
}

void objects_free(struct objects *objects)
{
    if (!objects) {
        return;
    }
    for (uint32_t i = 0; i < objects->count; i++) {
        free_object(objects->list[i]);
    }
    free_object(objects->too_many);
    kernel_free(objects);
    row_set_free(&objects->rows);
    hash_map_free(&objects->by_identity);
    hash_map_free(&objects->listed_by_path);
    intern_free(&objects->paths);
    free(objects->list);
    free(objects->listed);
    free(objects->build_id_dir);
    free(objects->os_release);
    free(objects);
}

/* ---- The list of build-ids ---- */

static uint64_t hash_of_path(const char *interned)
{
    return hash_mix((uint64_t)(uintptr_t)interned);
}

static struct file_identity *find_listed(const struct objects *objects, const char *interned)
{
    uint32_t at;
    HASH_MAP_FIND(at, &objects->listed_by_path, hash_of_path(interned),
                  objects->listed[at].path == interned);
    return at == HASH_MAP_NONE ? NULL : &objects->listed[at];
}

int objects_list_build_id(struct objects *objects, const char *path, const uint8_t *id, size_t size)
{
    if (size == 0 || size > BUILD_ID_MAX || objects->listed_count >= OBJECTS_MAX) {
        return 0;
    }
    path = intern(&objects->paths, path);
    if (!path) {
        return -ENOMEM;
    }
    struct file_identity *listed = find_listed(objects, path);
    if (listed) {
        if (!build_id_same(listed->build_id, listed->build_id_size, id, size)) {
            listed->build_id_size = 0; /* which of them? */
        }
        return 0;
    }
    if (ARRAY_RESERVE(objects->listed, objects->listed_count, objects->listed_room) ||
        hash_map_add(&objects->listed_by_path, hash_of_path(path), objects->listed_count)) {
        return -ENOMEM;
    }
    listed = &objects->listed[objects->listed_count++];
    *listed = (struct file_identity){.path = path, .build_id_size = (uint8_t)size};
    memcpy(listed->build_id, id, size);
    return 0;
}

/* ---- Idle ones ---- */

/* Invariant 2: the only one in the row has no neighbours. */
static bool is_idle(const struct object *object)
{
    return object->idle_before || (object->objects && object->objects->idlest == object);
}

static void begin_idle(struct object *object)
{
    struct objects *objects = object->objects;
    object->idle_before = objects->idle_last;
    *(objects->idle_last ? &objects->idle_last->idle_next : &objects->idlest) = object;
    objects->idle_last = object;
    objects->idle_count++;
}

static void end_idle(struct object *object)
{
    struct objects *objects = object->objects;
    *(object->idle_before ? &object->idle_before->idle_next : &objects->idlest) = object->idle_next;
    *(object->idle_next ? &object->idle_next->idle_before : &objects->idle_last) =
        object->idle_before;
    object->idle_before = object->idle_next = NULL;
    objects->idle_count--;
}

/* ---- Finding ---- */

static bool has_file(const char *path)
{
    static const char *const memory[] = {
        "//anon", "/memfd:", "/anon_hugepage", "/SYSV", "/dev/zero", "/dev/shm/",
    };
    if (strcmp(path, "[vdso]") == 0) {
        return true;
    }
    for (size_t i = 0; i < sizeof memory / sizeof memory[0]; i++) {
        if (strncmp(path, memory[i], strlen(memory[i])) == 0) {
            return false;
        }
    }
    return path[0] == '/';
}

/* Where nothing was recorded but the path, each process may have another file there. */
static bool same(const struct object_place *a, const struct object_place *b)
{
    bool path_only = !a->file.build_id_size && !a->file.inode;
    return file_identity_same(&a->file, &b->file) && a->id_is_listed == b->id_is_listed &&
           (!path_only || a->pid == b->pid);
}

static struct object *new_object(struct objects *objects, const struct object_place *place,
                                 enum object_state state)
{
    struct object *object = calloc(1, sizeof *object);
    if (object) {
        object->objects = objects;
        object->id = objects->next_id++;
        object->index = objects->count;
        object->place = *place;
        object->state = state;
    }
    return object;
}

/* Beyond the limit, and without memory, all share one. */
static struct object *too_many(struct objects *objects)
{
    static struct object without_memory = {.place.file.path = "", .state = OBJECT_TOO_MANY};
    if (!objects->too_many) {
        struct object_place none = {.file.path = "[files beyond the limit]"};
        objects->too_many = new_object(objects, &none, OBJECT_TOO_MANY);
    }
    return objects->too_many ? objects->too_many : &without_memory;
}

static struct object *add_object(struct objects *objects, const struct object_place *place)
{
    if (objects->count >= OBJECTS_MAX ||
        ARRAY_RESERVE(objects->list, objects->count, objects->room)) {
        return too_many(objects);
    }
    struct object *object =
        new_object(objects, place, has_file(place->file.path) ? OBJECT_UNTRIED : OBJECT_NONE);
    if (object) {
        object->path = intern_hold(&objects->paths, place->file.path);
    }
    if (!object || !object->path ||
        hash_map_add(&objects->by_identity, file_identity_hash(&place->file), objects->count)) {
        free_object(object);
        return too_many(objects);
    }
    objects->list[objects->count++] = object;
    return object;
}

static struct object *find_place(struct objects *objects, const struct object_place *place)
{
    uint32_t at;
    HASH_MAP_FIND(at, &objects->by_identity, file_identity_hash(&place->file),
                  same(&objects->list[at]->place, place));
    return at == HASH_MAP_NONE ? add_object(objects, place) : objects->list[at];
}

struct object *objects_find(struct objects *objects, const struct object_place *place)
{
    struct object_place own = *place;
    struct file_identity *file = &own.file;
    file->path = intern_hold(&objects->paths, file->path);
    if (!file->path) {
        return too_many(objects);
    }
    const struct file_identity *listed = find_listed(objects, file->path);
    if (!file->build_id_size && listed && listed->build_id_size) {
        memcpy(file->build_id, listed->build_id, listed->build_id_size);
        file->build_id_size = listed->build_id_size;
        own.id_is_listed = true;
    }
    struct object *object = find_place(objects, &own);
    intern_release(&objects->paths, file->path);
    if (object->holders++ == 0 && is_idle(object)) {
        end_idle(object);
    }
    return object;
}

/* ---- Open files ---- */

static void unlink_open(struct object *object)
{
    struct objects *objects = object->objects;
    *(object->newer ? &object->newer->older : &objects->newest) = object->older;
    *(object->older ? &object->older->newer : &objects->oldest) = object->newer;
    object->newer = object->older = NULL;
}

static void link_newest(struct object *object)
{
    struct objects *objects = object->objects;
    object->older = objects->newest;
    *(objects->newest ? &objects->newest->newer : &objects->oldest) = object;
    objects->newest = object;
}

static void close_object(struct object *object)
{
    unlink_open(object);
    object_file_close(object->file);
    object->file = NULL;
    object->objects->bytes -= object->bytes;
    object->objects->open_count--;
    object->bytes = 0;
}

/* The object itself stays: its answers are in use. */
static void close_others(struct object *object)
{
    struct objects *objects = object->objects;
    while (objects->oldest != object &&
           (objects->open_count > OBJECTS_OPEN_MAX || objects->bytes > OBJECTS_BYTES_MAX)) {
        close_object(objects->oldest);
    }
}

void object_count_bytes(struct object *object)
{
    uint64_t bytes = object_file_bytes(object->file);
    object->objects->bytes += bytes - object->bytes;
    object->bytes = bytes;
    close_others(object);
}

void objects_rest(struct objects *objects)
{
    for (struct object *object = objects->newest; object; object = object->older) {
        object_file_rest(object->file);
        uint64_t bytes = object_file_bytes(object->file);
        objects->bytes += bytes - object->bytes;
        object->bytes = bytes;
    }
}

struct object_file *object_use(struct object *object)
{
    struct objects *objects = object->objects;
    object->lookups++;
    if (object->file) {
        if (objects->newest != object) {
            unlink_open(object);
            link_newest(object);
        }
        return object->file;
    }
    if ((object->state != OBJECT_UNTRIED && object->state != OBJECT_SOUND) || object->kernel) {
        return NULL;
    }
    char *why;
    object->state =
        object_file_open(&objects->places, &object->place, &objects->rows, &object->file, &why);
    free(object->why);
    object->why = why;
    objects->opened++;
    if (object->state == OBJECT_SOUND) {
        object->found_id_size =
            (uint8_t)elf_file_build_id(&object->file->found.file, object->found_id);
        objects->open_count++;
        link_newest(object);
        object_count_bytes(object);
    }
    return object->file;
}

/* ---- Letting go ---- */

static bool is_bad(const struct object *object)
{
    return object && object->lookups && object->state != OBJECT_SOUND &&
           object->state != OBJECT_UNTRIED && object->state != OBJECT_NONE;
}

static void forget(struct object *object)
{
    struct objects *objects = object->objects;
    struct object *last = objects->list[objects->count - 1];
    assert(object->holders == 0 && objects->list[object->index] == object); /* invariant 1 */
    objects->bad_forgotten += is_bad(object);
    if (object->file) {
        close_object(object);
    }
    (void)hash_map_remove(&objects->by_identity, file_identity_hash(&object->place.file),
                          object->index);
    if (last != object) {
        (void)hash_map_remove(&objects->by_identity, file_identity_hash(&last->place.file),
                              last->index);
        (void)hash_map_add(&objects->by_identity, file_identity_hash(&last->place.file),
                           object->index); /* there is room: two have just gone */
        last->index = object->index;
        objects->list[last->index] = last;
    }
    objects->count--;
    free_object(object);
}

void objects_let_go(struct objects *objects, struct object *object)
{
    if (object->index >= objects->count || objects->list[object->index] != object) {
        return; /* beyond the limit all share one */
    }
    assert(object->holders > 0 && !is_idle(object));
    if (--object->holders > 0) {
        return;
    }
    begin_idle(object);
    if (objects->idle_count > OBJECTS_IDLE_MAX) {
        struct object *idlest = objects->idlest;
        end_idle(idlest);
        forget(idlest);
    }
}

/* ---- Telling ---- */

#define TOLD_MAX 8

/* The most asked for of the bad ones that were not told yet. */
static const struct object *worst(const struct objects *objects, const struct object *before)
{
    const struct object *found = NULL;
    for (uint32_t i = 0; i <= objects->count; i++) {
        const struct object *object = i < objects->count ? objects->list[i] : objects->too_many;
        if (!is_bad(object) ||
            (before && (object->lookups > before->lookups ||
                        (object->lookups == before->lookups && object->id <= before->id)))) {
            continue;
        }
        if (!found || object->lookups > found->lookups ||
            (object->lookups == found->lookups && object->id < found->id)) {
            found = object;
        }
    }
    return found;
}

/* The files whose lines or frames were asked for and left out. */
static void tell_left_out(const struct objects *objects)
{
    unsigned told = 0;
    for (uint32_t i = 0; i < objects->count && told < TOLD_MAX; i++) {
        const struct object *object = objects->list[i];
        if (object->dwarf_left_out) {
            warning_message("names only, no lines or inlined functions, in the code of %s: its "
                            "debug information takes %" PRIu64 " MB%s",
                            object->place.file.path, object->dwarf_left_out >> 20,
                            objects->places.sparing ? ""
                                                    : ", unpacked (objcopy "
                                                      "--decompress-debug-sections would make it "
                                                      "one that can be read in place)");
            told++;
        }
        if (object->lines_given_up) {
            warning_message("names only, no lines or inlined functions, in the code of %s: its "
                            "debug information takes too long to read",
                            object->place.file.path);
            told++;
        }
    }
}

void objects_tell(struct objects *objects)
{
    tell_left_out(objects);
    uint64_t files = 0;
    for (uint32_t i = 0; i <= objects->count; i++) {
        files += is_bad(i < objects->count ? objects->list[i] : objects->too_many);
    }
    const struct object *object = NULL;
    for (uint64_t i = 0; i < files && i < TOLD_MAX; i++) {
        object = worst(objects, object);
        if (!object) {
            return;
        }
        warning_message("no names or frames of %s: %s", object->place.file.path,
                        object_why(object));
    }
    files += objects->bad_forgotten;
    if (files > TOLD_MAX) {
        warning_message("... and of %" PRIu64 " files more", files - TOLD_MAX);
    }
}
