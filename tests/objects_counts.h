/* What tests ask of files' objects, which nobody else does. */
#ifndef JD_TESTS_OBJECTS_COUNTS_H
#define JD_TESTS_OBJECTS_COUNTS_H

#include "jdtool/objects/object.h"
#include "jdtool/objects/objects.h"

struct objects_counts {
    uint64_t files[OBJECT_STATES];   /* objects in that state */
    uint64_t lookups[OBJECT_STATES]; /* questions asked of them; SOUND: those answered by a file */
    uint64_t opened;                 /* files opened, again included */
    uint64_t without_lines;          /* files whose DWARF is too large (OBJECT_DWARF_MAX) */
    uint64_t slow;                   /* files whose lines took longer than the patience */
    uint64_t bytes;                  /* that tables take now */
};

static inline enum object_state object_state(const struct object *object)
{
    return object->state;
}

static inline void objects_count(const struct objects *objects, struct objects_counts *counts)
{
    *counts = (struct objects_counts){
        .opened = objects->opened,
        .bytes = objects->bytes + symbols_bytes(&objects->kallsyms.symbols) +
                 symbols_bytes(&objects->vmlinux) + objects->kallsyms.text.room +
                 symbols_bytes(&objects->made.symbols) + objects->made.names.room};
    for (uint32_t i = 0; i < objects->count; i++) {
        const struct object *object = objects->list[i];
        counts->files[object->state]++;
        counts->lookups[object->state] += object->lookups;
        counts->without_lines += object->dwarf_left_out > 0;
        counts->slow += object->lines_given_up;
    }
    if (objects->too_many) {
        counts->files[OBJECT_TOO_MANY]++;
        counts->lookups[OBJECT_TOO_MANY] += objects->too_many->lookups;
    }
}

#endif
