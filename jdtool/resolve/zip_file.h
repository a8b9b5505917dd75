/*
 * Reads files out of a zip archive, as a JDK's src.zip. What it says of itself is checked: sizes
 * and offsets, that names are found, that a file has the size it claims. Archives beyond 4 GB
 * (zip64) are not read.
 */
#ifndef JD_TOOL_ZIP_FILE_H
#define JD_TOOL_ZIP_FILE_H

#include <stddef.h>

/* A file in it that claims to be larger is refused. */
#define ZIP_ENTRY_MAX ((size_t)64 * 1024 * 1024)

struct zip_file;

/* 0 or a negative errno, without a message: -EBADMSG is no zip archive or a damaged one. */
int zip_file_open(const char *path, struct zip_file **out);
void zip_file_close(struct zip_file *zip); /* NULL is fine */

/*
 * The contents of the file of that name, or else of one whose name is that behind its first
 * directory ("java.base/java/lang/String.java" for "java/lang/String.java"). *bytes has a NUL
 * behind it and is the caller's to free; NULL: there is none of that name. 0 or a negative errno.
 */
int zip_file_read(struct zip_file *zip, const char *name, char **bytes, size_t *size);

#endif
