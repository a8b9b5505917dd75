/*
 * Call-frame rows of native code, from the files it was loaded from: .eh_frame, else .debug_frame,
 * both read by libdw. A row is looked up once per address and kept.
 */
#ifndef JD_TOOL_NATIVE_FRAMES_H
#define JD_TOOL_NATIVE_FRAMES_H

#include "jdtool/objects/frame_row.h"

struct native_files;

/* machine: e_machine of the recording. NULL: no memory. */
struct native_files *native_files_new(unsigned machine);
void native_files_free(struct native_files *files); /* NULL is fine */

struct native_file;

/*
 * The file mapped under this path ("[vdso]" is this machine's own). NULL when it cannot be read as
 * ELF; that is remembered, too.
 */
struct native_file *native_file_open(struct native_files *files, const char *path);

/* The row at an offset in the file. Never NULL; lives until the next call. */
const struct native_row *native_row_at(struct native_file *file, uint64_t file_offset);

#endif
