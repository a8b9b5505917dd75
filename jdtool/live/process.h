/*
 * A process that is looked at from outside: held by a pidfd and by its directory in /proc, so that
 * what is read is of that process and never of another one that got its number.
 *
 * What /proc tells of a process is the process' own to choose (names, paths, arguments): it is
 * read with bounds and never trusted to be a file that may be opened.
 */
#ifndef JD_TOOL_LIVE_PROCESS_H
#define JD_TOOL_LIVE_PROCESS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct live_process {
    pid_t pid;
    int pidfd;     /* readable when it has ended */
    int directory; /* /proc/PID, O_PATH */
};

#define NO_PROCESS ((struct live_process){.pidfd = -1, .directory = -1})

/* Takes hold of a process. 0 or a negative errno without a message; -ESRCH: there is none. */
int process_open(pid_t pid, struct live_process *process);

void process_close(struct live_process *process);

/* Whether it has not ended (a zombie has). */
bool process_lives(const struct live_process *process);

/*
 * Reads the file `name` of its directory ("status", "cmdline") up to size - 1 bytes, a NUL behind
 * them. Returns how many, or a negative errno.
 */
ssize_t process_read(const struct live_process *process, const char *name, char *buffer,
                     size_t size);

/* The same to its end, at most `limit` bytes, into memory that the caller frees; NULL: it cannot be
 * read. *size is without the NUL behind it. */
char *process_read_all(const struct live_process *process, const char *name, size_t limit,
                       size_t *size);

/* The number behind "key:" in its status file, the last of several when `last`; 0: none. Base 10,
 * or 16. */
unsigned long long process_status(const struct live_process *process, const char *key, bool last,
                                  int base);

/* The processor time in ns that the kernel accounts to all threads of a process, those that ended
 * included (clock_getcpuclockid), until it is reaped. False: there is no such process. */
bool process_cpu_time(pid_t pid, uint64_t *ns);

/* Why a process does not run. */
struct process_halt {
    bool is_frozen;      /* with its control group; else it is stopped */
    const char *how;     /* "stopped", "frozen" */
    const char *by_whom; /* what may have done it */
    char remedy[64];
};

/* Whether it does not run: stopped by a signal or a debugger, or frozen with its control group. */
bool process_is_halted(const struct live_process *process, struct process_halt *halt);

/* Whether one of its arguments, or of the JVM options in its environment, is this one; where this
 * ends with '=', is this one with any value. */
bool process_has_argument(const struct live_process *process, const char *argument);

/*
 * The path, as the process itself sees it, of a file that is mapped to be executed, or in any way
 * when `data`: the last part of the path is `prefix`, perhaps digits when `digits`, and `suffix`;
 * the last such mapping when `last`, else the first. False: none, or it cannot be told.
 */
struct mapped_name {
    const char *prefix;
    bool digits;
    const char *suffix;
    bool last;
    bool data;
};
bool process_mapped(const struct live_process *process, const struct mapped_name *name,
                    char path[PATH_MAX]);

/* The same file by the mapping itself, as we see it: also when it was removed or replaced
 * meanwhile. False also: the kernel does not let us (it wants CAP_CHECKPOINT_RESTORE). */
bool process_mapped_file(const struct live_process *process, const struct mapped_name *name,
                         char path[PATH_MAX]);

/* Whether the file of that device and inode is mapped. */
bool process_maps_inode(const struct live_process *process, dev_t device, ino_t inode);

#endif
