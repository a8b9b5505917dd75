/*
 * A profile's images where perf's tools look for files by build-id (perf buildid-cache --add), in
 * its directory buildid/:
 *
 *     .build-id/ab/cdef…                    -> ../../PATH/OF/IMAGE/abcdef…
 *     PATH/OF/IMAGE/abcdef…/elf             a second link to the image
 *
 * perf looks for a file of a JVM that lives in a container in the container, but for a build-id
 * here.
 */
#ifndef JD_TOOL_RECORD_IMAGE_CACHE_H
#define JD_TOOL_RECORD_IMAGE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Adds those that are not there, in the open directory of the profile that is called `profile`.
 * What fails is not told: all else about a profile works without. */
void image_cache_add(int directory, const char *profile);

/* Whether there is a file of that build-id. */
bool image_cache_has(int profile, const uint8_t *id, size_t size);

struct image_copy {
    const char *path, *name; /* "/lib/libc.so", "elf" */
    const uint8_t *id;
    size_t size; /* of the build-id */
};

/* Copies a file, which is open, to where its build-id leads. 0 or a negative errno. */
int image_cache_copy(int profile, int from, const struct image_copy *copy);

#endif
