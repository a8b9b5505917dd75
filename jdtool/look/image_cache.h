/*
 * A profile's files where perf's tools look for them by build-id (perf buildid-cache --add), in its
 * directory buildid/. They are put there before perf is run, and before the profile is packed. An
 * image has a path in the recording, too, but perf does not find it there once the profile was
 * moved, or where the JVM lives in a container: of such a process perf looks for files in there.
 *
 *     .build-id/ab/cdef…                    -> ../../PATH/OF/FILE/abcdef…
 *     PATH/OF/FILE/abcdef…/elf              a copy of the file, or
 *     perf.jit-….so/abcdef…/elf             a second link to an image
 */
#ifndef JD_TOOL_IMAGE_CACHE_H
#define JD_TOOL_IMAGE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Adds the images that are not there, in the open directory of the profile. What fails is not told:
 * all else about a profile works without. */
void image_cache_add(int profile);

/* Whether there is a file of that build-id. */
bool image_cache_has(int profile, const uint8_t *id, size_t size);

struct image_copy {
    const char *path, *name; /* absolute: "/lib/libc.so"; "elf" */
    const uint8_t *id;
    size_t size; /* of the build-id */
};

/* Copies a file, which is open, to where its build-id leads. 0 or a negative errno. */
int image_cache_copy(int profile, int from, const struct image_copy *copy);

#endif
