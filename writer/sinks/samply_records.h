/*
 * samply's record extensions (format/samply.h) for one piece of code, to be put ahead of its LOAD
 * in the buffer that is written out as one.
 */
#ifndef JD_WRITER_SAMPLY_RECORDS_H
#define JD_WRITER_SAMPLY_RECORDS_H

#include "writer/buffer.h"
#include "writer/code.h"

struct samply_records;

/* For one dump. NULL: no memory. */
struct samply_records *samply_records_new(void);
void samply_records_free(struct samply_records *records);

/*
 * Appends the inline tree and the tier, as far as each is known. Without memory the buffer turns
 * failed. Not thread-safe; the dump's lock guards it.
 */
void samply_records_put(struct samply_records *records, struct buffer *buffer,
                        const struct code *code, uint64_t timestamp);

#endif
