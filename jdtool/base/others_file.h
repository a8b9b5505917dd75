/*
 * Files of others: of a JVM's user, or in a directory that somebody else may write into. They are
 * opened below a directory that is open already and through no link, checked once they are open,
 * and copied as what they hold, not as what size they say.
 */
#ifndef JD_TOOL_OTHERS_FILE_H
#define JD_TOOL_OTHERS_FILE_H

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * openat2 with RESOLVE_* in `resolve`; O_CLOEXEC is added. Where somebody renames something
 * meanwhile, the kernel cannot tell whether ".." has left the directory, and says EAGAIN: asked
 * again then, for as long as 1,000 such refusals. A descriptor or a negative errno without a
 * message; -ENOSYS before Linux 5.6.
 */
int open_resolved(int directory, const char *path, int flags, uint64_t resolve);

/*
 * Opens a path below a directory, never above it, through no symbolic or magic link (openat2;
 * before Linux 5.6, and where that is filtered, step by step). A leading '/' is the directory
 * itself. `flags` as open's; O_CLOEXEC is added. A descriptor or a negative errno without a
 * message.
 */
int open_below(int directory, const char *path, int flags);

/* The same without openat2; open_below chooses. */
int open_below_by_steps(int directory, const char *path, int flags);

/* A directory that lies in another one, is no link and not mounted there, to read. A descriptor or
 * a negative errno without a message. */
int open_directory_in(int directory, const char *name);

/* The same without openat2, by the mounts' numbers; open_directory_in chooses. */
int open_directory_in_by_mount(int directory, const char *name);

/* As open_below for a regular file of `owner`'s or ours, without waiting for whoever is at the
 * other end of what is none. `flags`: O_RDONLY or O_RDWR. */
int open_file_below(int directory, const char *path, uid_t owner, int flags);

/* Opens a directory below another one, made (0700) where it is not there; never above it, nor
 * through a link. A descriptor or a negative errno without a message. */
int make_below(int directory, const char *path);

/* A regular file at that path, whoever's it is, but through no link at the path's end; to read. A
 * descriptor or a negative errno without a message. */
int open_regular(const char *path);

/* The absolute path of a directory, free it: as realpath; as it was given where it is held
 * (jdtool/confined), for then it is there though its path may lead elsewhere by now. NULL: errno.
 */
char *directory_path(const char *given);

/*
 * Copies what the file holds now: its data, to the same places, and no hole, so that no size it
 * claims costs anything. 0; -EFBIG: it holds more than `limit` bytes, of which the first are
 * copied; or another negative errno. No message.
 */
int copy_file_data(int from, int to, uint64_t limit);

/*
 * The entries of a directory below another one ("." that one itself), which is no link. NULL, and
 * errno: it cannot be read. directory_next leaves out "." and ".."; it and directory_close take
 * NULL.
 */
DIR *directory_open(int directory, const char *name);
const struct dirent *directory_next(DIR *entries);
void directory_close(DIR *entries);

/* Whether it can be read, and nothing is in it. */
bool directory_is_empty(int directory);

#endif
