/*
 * Where the dump goes.
 */
#ifndef JD_AGENT_DUMP_DIRECTORY_H
#define JD_AGENT_DUMP_DIRECTORY_H

#include <limits.h>

/*
 * Makes the directory of a session's dump, mode 0700, and puts its absolute name, without symbolic
 * links, into `out`.
 *
 * `given` (the option `dir`, "" for none) is used as it is, and made when it is missing.
 *
 * Otherwise it is .debug/jit/java-jit-YYYYMMDD.XXXXXXXX, always a new one, in $JITDUMPDIR, else
 * $HOME, else the current directory: where perf's own agent puts its dumps.
 *
 * From the root down every directory, and every symbolic link on the way, has to belong to us or to
 * root: whoever else owns one could lead us elsewhere. But a directory below somebody else's is
 * used if it is there, ours and closed to all others (mode 0700), and no link leads to it.
 *
 * Returns a descriptor of the directory for the caller to close, or a negative errno after a
 * message.
 */
int dump_directory_make(const char *given, char out[PATH_MAX]);

#endif
