/*
 * Finds Java source files: pkg/Foo.java below one of some directories, or below a directory in one
 * of them, as in the JDK's src.zip (java.base/java/lang/String.java).
 */
#ifndef JD_TOOL_SOURCE_PATH_H
#define JD_TOOL_SOURCE_PATH_H

struct source_path;

/* directories: separated by ':'; NULL: none. 0 or a negative errno after a message. */
int source_path_open(const char *directories, struct source_path **out);
void source_path_close(struct source_path *path); /* NULL is fine */

/*
 * The directory, as an absolute path, below which the file was found; the first one when it was
 * not; NULL when there is none. Lives as long as the source path.
 */
const char *source_path_root(struct source_path *path, const char *file);

#endif
