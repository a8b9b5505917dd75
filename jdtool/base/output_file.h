/*
 * The one way a file of ours comes to be: made without a name or under one of its own, mode 0600,
 * every write checked, and put in its place by a rename when it is complete. Until then the path
 * keeps what it held; where the file system can (O_TMPFILE) a killed program leaves nothing behind.
 *
 * The first error is remembered and told by output_file_finish; the calls before it need no check.
 */
#ifndef JD_TOOL_OUTPUT_FILE_H
#define JD_TOOL_OUTPUT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct output_file;

/*
 * Whether a file may be renamed to this path: its directory is there and takes files, and nothing
 * stands there, or a regular file (a link to one included, which is replaced). Anything else would
 * be lost, /dev/null above all. To be asked before the work that fills the file. 0 or a negative
 * errno after a message.
 */
int output_path_check(const char *path);

/* Starts a file that will stand at `path` (copied), which output_path_check likes. 0 or a negative
 * errno after a message. */
int output_file_open(const char *path, struct output_file **out);

/* The same for what is made of the file `in`, which is another one. */
int output_file_open_of(const char *in, const char *path, struct output_file **out);

/* For who reads again what he writes, and calls nothing but the ends below; read and write. */
int output_file_descriptor(const struct output_file *file);

/* Appends; small pieces are gathered. */
void output_file_put(struct output_file *file, const void *bytes, size_t size);

/* Overwrites what was put before, or puts it further behind, where a hole is left (sparse); where
 * output_file_put goes on is not changed. */
void output_file_put_at(struct output_file *file, uint64_t offset, const void *bytes, size_t size);

/* Goes on appending there. */
void output_file_seek(struct output_file *file, uint64_t offset);

/* Where output_file_put goes on. */
uint64_t output_file_tell(const struct output_file *file);

/* For a writer's own errors: remembered like those of a write; err is a negative errno. */
void output_file_fail(struct output_file *file, int err);

/* Who called sudo, if that is how we are root; what he has asked for is to be his. */
bool output_caller(uid_t *uid, gid_t *gid);

/* The file is his, then, where he could have made it himself: in a directory of his, or of all. */
void output_file_hand_over(struct output_file *file);

/* Puts the file in its place and frees it. 0 or a negative errno after a message; there is then
 * no file. */
int output_file_finish(struct output_file *file);

/* Frees it and leaves no file. NULL is fine. */
void output_file_abort(struct output_file *file);

#endif
