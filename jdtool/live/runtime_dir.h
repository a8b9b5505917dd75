/*
 * What is of this boot alone and nobody else may touch: /run/jdagent of root's, else jdagent in
 * XDG_RUNTIME_DIR.
 */
#ifndef JD_TOOL_LIVE_RUNTIME_DIR_H
#define JD_TOOL_LIVE_RUNTIME_DIR_H

#include <limits.h>
#include <stdbool.h>

/* Its path, which is `path`; "": there is none. */
const char *runtime_dir_path(char path[PATH_MAX]);

/* Opens it, made where `make`: nobody else can have put anything into it. A descriptor, or a
 * negative errno without a message. */
int runtime_dir_open(bool make);

#endif
