/*
 * The directories that the segments of one session stand in: segment-000001, segment-000002 and so
 * on below a directory that may be other sessions', too. What is removed of them is what this
 * session made itself, and nothing else.
 *
 * Not thread-safe.
 */
#ifndef JD_WRITER_SEGMENT_DIRS_H
#define JD_WRITER_SEGMENT_DIRS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

struct segment_dirs;

/*
 * Finds a place: below the directory `path`, whose descriptor `directory` is, or in the first of
 * its session-2, session-3… where there are segments of another session already. Makes nothing yet
 * but such a directory. 0, or a negative errno after one message.
 */
int segment_dirs_open(int directory, const char *path, struct segment_dirs **out);

/* Makes the next one. Its path goes to `path`, its descriptor, which stays the dirs', to *fd. 0, or
 * a negative errno after a message, but for ENOSPC and EDQUOT, which have none. */
int segment_dirs_begin(struct segment_dirs *dirs, char path[PATH_MAX], int *fd);

/* The descriptor, which stays the dirs', of the one begun last; it has to be there. */
int segment_dirs_present(const struct segment_dirs *dirs);

/* The same of the directory that they all are in, whose path goes to `path`. */
int segment_dirs_parent(const struct segment_dirs *dirs, char path[PATH_MAX]);

/* The one begun last holds a file of that name, which was made for it: it goes with it. At most two
 * of each. */
void segment_dirs_add_file(struct segment_dirs *dirs, const char *name, int fd);

/* The one begun last comes to nothing, and goes with its files. */
void segment_dirs_abandon(struct segment_dirs *dirs);

/* The one before the last is as large as that, and nothing more will come. */
void segment_dirs_closed(struct segment_dirs *dirs, uint64_t bytes);

/*
 * Removes the oldest ones until no more than `count` are left (0: any number), the last one among
 * them, and those that are closed take up no more than `bytes` (0: any number).
 */
void segment_dirs_keep(struct segment_dirs *dirs, uint32_t count, uint64_t bytes);

/* Removes the oldest one, unless it is the last. False: it is. */
bool segment_dirs_give_way(struct segment_dirs *dirs);

/* Leaves all that is there. NULL is fine. */
void segment_dirs_close(struct segment_dirs *dirs);

#endif
