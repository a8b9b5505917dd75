/*
 * A JVM that runs already: who it is, where it lives, and how its files are reached. It may be
 * another user's and in other namespaces: then it sees other pids and other files.
 *
 * Its files are reached from its root directory, downwards and through no symbolic link (openat2),
 * opened without waiting for whoever is at the other end, and only read when they turn out to be
 * regular files of its user's: it may have put anything there.
 */
#ifndef JD_TOOL_LIVE_TARGET_H
#define JD_TOOL_LIVE_TARGET_H

#include "jdtool/base/others_file.h"
#include "jdtool/live/process.h"
#include "jdtool/live/wait.h"

#include <limits.h>
#include <stdbool.h>

struct target {
    struct live_process process;
    pid_t ns_pid; /* as it sees itself */
    uid_t uid;    /* its effective ones, as we see them */
    gid_t gid;
    bool same_files;          /* it sees the files that we see */
    int root;                 /* its root directory */
    char java_home[PATH_MAX]; /* as it sees it; "": not known */
    int java;                 /* major version, 0: not known */
};

/* What target_close finds nothing in. */
#define NO_TARGET ((struct target){.root = -1, .process = NO_PROCESS})

/*
 * Finds the JVM that `word` means: a pid, or a part of the name of exactly one JVM. 0 or a negative
 * errno after a message that says what is in the way; waits until a JVM that is just starting
 * listens, some seconds at most.
 */
int target_find(struct target *target, const char *word, struct waiting *waiting);

/* The JVM of that pid, without waiting. Negative errno without a message: it is none, or cannot be
 * looked into. */
int target_open(struct target *target, pid_t pid);

void target_close(struct target *target);

/* Whether we can simply give it paths: it sees what we see, with our user's rights. */
bool target_is_like_us(const struct target *target);

/* Whether it would answer a request to attach rather than die of it, SIGQUIT. */
bool target_listens(const struct target *target);

/* The agent that is loaded, and the dump that is being written, as it sees them. False: none. */
bool target_agent(const struct target *target, char path[PATH_MAX]);
bool target_dump(const struct target *target, char path[PATH_MAX]);

/* Whether that path leads to another file by now, or to none, as it does where the copy of an
 * earlier session was removed at its end; `mapped` is then a path of ours to the file that the JVM
 * has. */
bool target_agent_gone(const struct target *target, const char *path, char mapped[PATH_MAX]);

/* Its libjvm.so, as it sees it. False: none is mapped. */
bool target_libjvm(const struct target *target, char path[PATH_MAX]);

/*
 * Opens a path of its, as it sees it: O_PATH for a directory, else a regular file to read, which
 * has to be its user's or ours. A descriptor or a negative errno without a message.
 */
int target_open_directory(const struct target *target, const char *path);
int target_open_file(const struct target *target, const char *path);

/* The name of a user, in a static buffer where he has none. */
const char *target_user(uid_t uid);

/* The command line behind java and its options: "Main args", "/path/app.jar args"; that of another
 * program from its own name on: "javac args". */
void process_java_name(const struct live_process *process, char *name, size_t size);

/* Calls take for every process that has libjvm.so mapped and that we may look into, with its name:
 * the main class or jar and its arguments. Stops when take returns false. */
void target_walk(bool (*take)(void *context, pid_t pid, const char *name), void *context);

/* Whether such a name has one of the parts, behind the last of which is NULL. */
bool target_name_has(const char *name, char *const *parts);

#endif
