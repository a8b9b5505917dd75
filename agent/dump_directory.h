/*
 * Where the dump goes.
 */
#ifndef JD_AGENT_DUMP_DIRECTORY_H
#define JD_AGENT_DUMP_DIRECTORY_H

#include <limits.h>

/*
 * Makes the directory of a session's dump, mode 0700, and puts its name into `out`.
 *
 * `given` (the option `dir`, "" for none) is used as it is, and made when it is missing. When this
 * process has left a dump of an earlier session in it already, the new one goes to its
 * subdirectory session-2, session-3…, so that nothing is overwritten.
 *
 * Otherwise it is .debug/jit/java-jit-YYYYMMDD.XXXXXXXX, always a new one, in $JITDUMPDIR, else
 * $HOME, else the current directory: where perf's own agent puts its dumps.
 *
 * Returns 0 or -1, after a message.
 */
int dump_directory_make(const char *given, char out[PATH_MAX]);

#endif
