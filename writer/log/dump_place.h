/*
 * Finds a place for a dump where nobody's file is in the way: DIRECTORY/jit-PID.dump, or, when
 * there is one already, DIRECTORY/session-2/jit-PID.dump, session-3 and so on. In containers every
 * process is number 1, and several may share one directory at the same time; so what is there is
 * never removed or taken over.
 */
#ifndef JD_WRITER_DUMP_PLACE_H
#define JD_WRITER_DUMP_PLACE_H

#include "writer/output_file.h"

/*
 * Creates the dump of process `pid`. `directory` is a descriptor of the directory `path`, or
 * AT_FDCWD. *place is a descriptor of the directory that the dump is in, for the caller to close.
 * 0, or a negative errno after one message.
 */
int dump_place_create(int directory, const char *path, unsigned pid, struct output_file *file,
                      int *place);

#endif
