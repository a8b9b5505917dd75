/*
 * Makes the standard dump of one that leaves line rows to its inline trees (lines=tree), or the
 * other way about: the same records in the same order, but for the rows of DEBUG_INFO. On request
 * with the sources of the code, as samply's records.
 */
#ifndef JD_TOOL_CONVERT_H
#define JD_TOOL_CONVERT_H

#include "jdtool/inspect/samply_sources.h"
#include "jdtool/jitdump/jitdump_reader.h"

#include <stdbool.h>

struct convert_result {
    uint64_t loads;
    uint64_t changed;    /* DEBUG_INFOs whose rows came or went */
    uint64_t too_large;  /* that were left as they are: their rows would not fit in a record */
    uint64_t torn_bytes; /* of a record that the dump ends inside, left out */
};

/* Takes the next bytes of the dump that is made. */
typedef void (*convert_put)(void *context, const void *bytes, size_t size);

/*
 * Converts all that the reader, at its first record, has to give. `to_tree`: leaves rows out where
 * the tree gives the very same. `sources` (NULL: none) come ahead of the DEBUG_INFO that
 * first names them. Nothing is mended: a record that is broken is an end, -EINVAL after
 * a message with `name`. 0 or a negative errno after a message.
 */
int convert_dump(struct jitdump_reader *reader, const char *name, bool to_tree,
                 struct samply_sources *sources, convert_put put, void *context,
                 struct convert_result *result);

#endif
