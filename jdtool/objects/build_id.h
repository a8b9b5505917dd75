/*
 * The build-id alone of a file of another's, for who has more rights than a parser should have: the
 * sampler, which asks for it at each mapping, and the recording, of its images. Some headers and
 * notes, of bounded size, and no library.
 */
#ifndef JD_TOOL_BUILD_ID_H
#define JD_TOOL_BUILD_ID_H

#include "jdtool/objects/objects.h"

#include <sys/types.h>

/* The build-id of the regular file that is open. Returns its size; 0: it has none, or is no ELF
 * file of this machine's byte order. */
size_t build_id_read(int fd, uint8_t id[BUILD_ID_MAX]);

/* The same of the file at `path` below the directory `root`, through links as the process there
 * would follow them, if it is the one of this inode. */
size_t build_id_find(int root, const char *path, uint64_t inode, uint8_t id[BUILD_ID_MAX]);

#endif
