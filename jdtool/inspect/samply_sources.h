/*
 * What a dump's methods were compiled from, as samply's embedded sources (format/samply.h): the
 * Java source, or else the class file's bytecodes as text. Each comes once a dump.
 */
#ifndef JD_TOOL_SAMPLY_SOURCES_H
#define JD_TOOL_SAMPLY_SOURCES_H

#include "jdtool/base/bytes.h"
#include "jdtool/resolve/source_texts.h"

#include <stdint.h>

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

#endif
