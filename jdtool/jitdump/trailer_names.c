/*
 * The methods and source files that a dump defines, by id. Ids come from the file, so they may be
 * anything: two hash tables with open addressing, grown at half load, over arrays of definitions.
 */
#include "jdtool/jitdump/trailer.h"

#include "jdtool/base/array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct file {
    uint64_t id;
    char *path;
};

struct method {
    uint64_t id;
    char *name;
    struct trailer_method seen; /* as callers get it */
};

/* Slots hold an index into the array of definitions plus one; 0: free. */
struct table {
    uint32_t *slots;
    uint32_t slot_count; /* a power of two, or 0 */
    uint32_t count;      /* of definitions */
    uint32_t room;
};

struct trailer_names {
    struct table file_table;
    struct table method_table;
    struct file *files;
    struct method **methods; /* each its own allocation: callers keep pointers into them */
};

static const struct trailer_method unknown_method = {.name = "?"};

struct trailer_names *trailer_names_new(void)
{
    return calloc(1, sizeof(struct trailer_names));
}

void trailer_names_free(struct trailer_names *names)
{
    if (!names) {
        return;
    }
    for (uint32_t i = 0; i < names->file_table.count; i++) {
        free(names->files[i].path);
    }
    for (uint32_t i = 0; i < names->method_table.count; i++) {
        free(names->methods[i]->name);
        free(names->methods[i]);
    }
    free(names->files);
    free(names->methods);
    free(names->file_table.slots);
    free(names->method_table.slots);
    free(names);
}

static uint32_t hash(uint64_t id)
{
    return (uint32_t)((id * UINT64_C(0x9E3779B97F4A7C15)) >> 32);
}

/* Both kinds of definition begin with the id. */
static uint64_t file_id_at(const struct trailer_names *names, uint32_t index)
{
    return names->files[index].id;
}

static uint64_t method_id_at(const struct trailer_names *names, uint32_t index)
{
    return names->methods[index]->id;
}

typedef uint64_t (*id_at_fn)(const struct trailer_names *names, uint32_t index);

/* The definition's index plus one, or 0. */
static uint32_t find(const struct trailer_names *names, const struct table *table, id_at_fn id_at,
                     uint64_t id)
{
    if (table->slot_count == 0) {
        return 0;
    }
    uint32_t mask = table->slot_count - 1;
    for (uint32_t slot = hash(id) & mask; table->slots[slot]; slot = (slot + 1) & mask) {
        if (id_at(names, table->slots[slot] - 1) == id) {
            return table->slots[slot];
        }
    }
    return 0;
}

static void put(struct table *table, uint64_t id, uint32_t index)
{
    uint32_t mask = table->slot_count - 1;
    uint32_t slot = hash(id) & mask;
    while (table->slots[slot]) {
        slot = (slot + 1) & mask;
    }
    table->slots[slot] = index + 1;
}

/* Makes room for one more definition, in the slots and in the array. 0 or -ENOMEM. */
static int reserve(const struct trailer_names *names, struct table *table, id_at_fn id_at,
                   void **array, size_t element)
{
    /* The slots first: they are dealt out by what stands in the array, which realloc may move. */
    if (table->count >= table->slot_count / 2) {
        uint32_t slot_count = table->slot_count ? table->slot_count * 2 : 128;
        uint32_t *slots = calloc(slot_count, sizeof(*slots));
        if (!slots) {
            return -ENOMEM;
        }
        free(table->slots);
        table->slots = slots;
        table->slot_count = slot_count;
        for (uint32_t i = 0; i < table->count; i++) {
            put(table, id_at(names, i), i);
        }
    }
    return array_reserve(array, table->count, &table->room, element);
}

const char *trailer_names_file(const struct trailer_names *names, uint64_t id)
{
    uint32_t found = find(names, &names->file_table, file_id_at, id);
    return found ? names->files[found - 1].path : NULL;
}

bool trailer_names_has_method(const struct trailer_names *names, uint64_t id)
{
    return find(names, &names->method_table, method_id_at, id) != 0;
}

const struct trailer_method *trailer_names_method(const struct trailer_names *names, uint64_t id)
{
    uint32_t found = find(names, &names->method_table, method_id_at, id);
    return found ? &names->methods[found - 1]->seen : &unknown_method;
}

uint64_t trailer_names_method_count(const struct trailer_names *names)
{
    return names->method_table.count;
}

int trailer_names_add_file(struct trailer_names *names, uint64_t id, const char *path,
                           const char **why)
{
    const char *known = trailer_names_file(names, id);
    if (known) {
        *why = "a file id is defined twice with different paths";
        return strcmp(known, path) == 0 ? 0 : -EINVAL;
    }
    if (id == 0) {
        *why = "file id 0 is defined";
        return -EINVAL;
    }
    void *array = names->files;
    // NOLINTNEXTLINE(bugprone-sizeof-expression): the elements are pointers.
    int error = reserve(names, &names->file_table, file_id_at, &array, sizeof(*names->files));
    names->files = array;
    char *copy = error ? NULL : strdup(path);
    if (!copy) {
        *why = "no memory";
        return -ENOMEM;
    }
    names->files[names->file_table.count] = (struct file){.id = id, .path = copy};
    put(&names->file_table, id, names->file_table.count++);
    return 0;
}

int trailer_names_add_method(struct trailer_names *names, uint64_t id,
                             const struct trailer_method *method, const char **why)
{
    uint32_t found = find(names, &names->method_table, method_id_at, id);
    if (found) {
        const struct trailer_method *known = &names->methods[found - 1]->seen;
        *why = "a method id is defined twice with different contents";
        return strcmp(known->name, method->name) == 0 && known->file_id == method->file_id &&
                       known->first_line == method->first_line
                   ? 0
                   : -EINVAL;
    }
    if (id == 0) {
        *why = "method id 0 is defined";
        return -EINVAL;
    }
    void *array = names->methods;
    // NOLINTNEXTLINE(bugprone-sizeof-expression): the elements are pointers.
    int error = reserve(names, &names->method_table, method_id_at, &array, sizeof(*names->methods));
    names->methods = array;
    struct method *added = error ? NULL : calloc(1, sizeof(*added));
    char *copy = added ? strdup(method->name) : NULL;
    if (!copy) {
        free(added);
        *why = "no memory";
        return -ENOMEM;
    }
    added->id = id;
    added->name = copy;
    added->seen.name = copy;
    added->seen.file = trailer_names_file(names, method->file_id);
    added->seen.file_id = method->file_id;
    added->seen.first_line = method->first_line;
    names->methods[names->method_table.count] = added;
    put(&names->method_table, id, names->method_table.count++);
    return 0;
}
