/*
 * The text of Java source files: below the directories of a source path, in its archives, or else
 * in the src.zip of a JDK that was recorded. Names of files come from dumps: none leads out of
 * these directories.
 */
#ifndef JD_TOOL_SOURCE_TEXTS_H
#define JD_TOOL_SOURCE_TEXTS_H

#include "jdtool/resolve/frame.h"

/* ---- Where sources are ---- */

/*
 * Finds Java source files: pkg/Foo.java below one of some directories, or below a directory in one
 * of them, as in the JDK's src.zip (java.base/java/lang/String.java).
 */

struct source_path;

/* directories: separated by ':'; NULL: none. 0 or a negative errno after a message. */
int source_path_open(const char *directories, struct source_path **out);
void source_path_close(struct source_path *path); /* NULL is fine */

/*
 * The directory, as an absolute path, below which the file was found; the first one when it was
 * not; NULL when there is none. Lives as long as the source path.
 */
const char *source_path_root(struct source_path *path, const char *file);

struct source_texts;

/* path: directories as of source_path_open, and archives (src.zip, a jar); NULL: none. 0 or a
 * negative errno after a message. */
int source_texts_open(const char *path, struct source_texts **out);
void source_texts_close(struct source_texts *texts); /* NULL is fine */

/* If the module is a JDK's libjvm.so, that JDK's sources are used as well, where it has them. 0 or
 * -ENOMEM. */
int source_texts_add_jdk(struct source_texts *texts, const struct module *module);

/*
 * The text of a file as methods name it ("java/util/HashMap.java"). One of Kotlin or Scala may lie
 * in a directory with fewer names than its package ("a/b/C.kt" in "b/C.kt", if it says "package
 * a.b"). *text has a NUL behind it and is the caller's to free; NULL: not found, or not readable. 0
 * or -ENOMEM.
 */
int source_texts_read(struct source_texts *texts, const char *file, char **text, size_t *size);

#endif
