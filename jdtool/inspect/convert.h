/*
 * Makes the standard dump of one that leaves line rows to its inline trees (lines=tree), or the
 * other way about: the same records in the same order, but for the rows of DEBUG_INFO. On request
 * with the sources of the code, as samply's records.
 */
#ifndef JD_TOOL_CONVERT_H
#define JD_TOOL_CONVERT_H

#include "jdtool/base/bytes.h"
#include "jdtool/jitdump/jitdump_reader.h"
#include "jdtool/resolve/source_texts.h"

#include <stdbool.h>
#include <stdint.h>

/* ---- Sources of samply's dumps ---- */

/*
 * What a dump's methods were compiled from, as samply's embedded sources (format/samply.h): the
 * Java source, or else the class file's bytecodes as text. Each comes once a dump.
 */

struct samply_sources;

/* The texts stay the caller's. NULL: no memory. */
struct samply_sources *samply_sources_new(struct source_texts *texts);
void samply_sources_free(struct samply_sources *sources); /* NULL is fine */

/* The dump has a source of that path already. 0 or -ENOMEM. */
int samply_sources_have(struct samply_sources *sources, const char *path);

/*
 * Appends the record of a source file ("java/util/HashMap.java"), where it is found and was not
 * asked for before. `method` is the symbol of one of its methods, in any of the agent's styles, and
 * leads to its class file where there is no source (NULL: to none). `swapped`: for a machine of the
 * other byte order. 0 or -ENOMEM.
 */
int samply_sources_put(struct samply_sources *sources, const char *file, const char *method,
                       uint64_t timestamp, bool swapped, struct bytes *out);

/* How many there were. */
uint64_t samply_sources_count(const struct samply_sources *sources);
uint64_t samply_listings_count(const struct samply_sources *sources);

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
