/*
 * Finds the text of a source file.
 */
#ifndef JD_WRITER_SOURCE_TEXT_H
#define JD_WRITER_SOURCE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Reads the file `path` ("java/util/HashMap.java") from the first of the directories in
 * source_path, separated by ':', that has it. A path that leads out of the directory is refused: it
 * comes from a class file. Returns the text, which the caller frees, and its size; NULL when there
 * is none, or none that is a regular file of at most SOURCE_TEXT_MAX bytes.
 */
char *source_text_read(const char *source_path, const char *path, size_t *size);

/* Whether source_text_read would find it, as far as its name tells. */
bool source_text_exists(const char *source_path, const char *path);

enum { SOURCE_TEXT_MAX = 4 * 1024 * 1024 };

#endif
