/*
 * samply's record extensions (format/samply.h) for one piece of code, to be put ahead of its LOAD
 * in the buffer that is written out as one.
 */
#ifndef JD_WRITER_SAMPLY_RECORDS_H
#define JD_WRITER_SAMPLY_RECORDS_H

#include "writer/buffer.h"
#include "writer/code.h"

struct samply_records;

/*
 * For one dump. source_path lists directories that Java sources are looked for in, separated by
 * ':', or is NULL; the string has to live as long. NULL: no memory.
 */
struct samply_records *samply_records_new(const char *source_path);
void samply_records_free(struct samply_records *records);

/*
 * Appends the sources that the dump has not got yet, the inline tree and the tier, as far as each
 * is known. Without memory the buffer turns failed. Not thread-safe; the dump's lock guards it.
 */
void samply_records_put(struct samply_records *records, struct buffer *buffer,
                        const struct code *code, uint64_t timestamp);

#endif
