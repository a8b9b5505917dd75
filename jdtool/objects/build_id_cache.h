/*
 * The copies of files that perf record put aside: behind a recording it lists the build-ids of the
 * files that samples hit (HEADER_BUILD_ID) and copies those into a cache,
 * DIR/.build-id/xx/xx.../elf (tools/perf/util/build-id.c). They outlive containers.
 */
#ifndef JD_TOOL_BUILD_ID_CACHE_H
#define JD_TOOL_BUILD_ID_CACHE_H

#include "jdtool/perf/perf_data.h"

struct build_id_cache;

/* directory NULL: perf's own, $HOME/.debug. A list that is broken is as good as none. 0 or -ENOMEM.
 */
int build_id_cache_open(const struct perf_data *data, const char *directory,
                        struct build_id_cache **out);
void build_id_cache_close(struct build_id_cache *cache); /* NULL is fine */

/*
 * Puts the path of the copy of what had this path into `copy`. False: there is none, or the
 * recording knows several files of that name.
 */
bool build_id_cache_find(const struct build_id_cache *cache, const char *path, char *copy,
                         size_t size);

#endif
