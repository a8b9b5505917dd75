/*
 * The files that perf opens by their names when it is run on a recording: those that the recording
 * names, which somebody else may have made. It gets those of them that are what they should be.
 */
#ifndef JD_TOOL_PERF_FILES_H
#define JD_TOOL_PERF_FILES_H

#include "jdtool/confined/confined.h"
#include "jdtool/look/opened_profile.h"

#include <stddef.h>

struct perf_files;

/* Those that the recording `name` in a profile says were mapped, each once: read by a process
 * without rights. NULL: no memory. */
struct perf_files *perf_files_list(const struct opened_profile *profile, const char *name);
void perf_files_free(struct perf_files *files); /* NULL is fine */

/* The next one behind `before` (NULL: the first), an absolute path outside of the profile; NULL:
 * there is none. */
const char *perf_files_next(const struct perf_files *files, const char *before);

/*
 * perf may read what it needs of the system (confine.h), the profile, and of these files, wherever
 * they are, those that are machine code, dumps or a JDK's sources now; and write into `place`. End
 * the program in any case.
 */
void perf_files_allow(const struct perf_files *files, const struct opened_profile *profile,
                      int place, struct confined_program *program);

#endif
