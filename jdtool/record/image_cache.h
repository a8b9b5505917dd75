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

/* Adds those that are not there, in the open directory of the profile that is called `profile`.
 * What fails is not told: all else about a profile works without. */
void image_cache_add(int directory, const char *profile);

#endif
