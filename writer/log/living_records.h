/*
 * Which records of a dump are of code that is still there, and where they stand in the file: what
 * the next segment begins with.
 *
 * A record has two holders at most: the code that it is of, as one of the things that its occupant
 * keeps, and the log, which has it in its list, in the order of the file. What nobody but the log
 * holds is of code that is gone, and leaves the list when it is looked through next. So the two
 * need no message and no lock for it. The list is the log's thread's alone.
 */
#ifndef JD_WRITER_LIVING_RECORDS_H
#define JD_WRITER_LIVING_RECORDS_H

#include "writer/occupancy/occupant.h"

#include <stdatomic.h>

struct living_record {
    struct kept kept; /* by the code's occupant */
    struct living_record *next;
    uint64_t offset; /* in the file */
    uint64_t size;
    atomic_uint holders;
};

/* A record that is to be written, with two holders: the code and the log. NULL: no memory, and
 * later segments will lack it. */
struct living_record *living_record_new(void);

/* The log's hold on one that is not in its list. NULL is fine. */
void living_record_drop(struct living_record *record);

/* Zeroed: empty. */
struct living_records {
    struct living_record *first, *last;
};

/* It stands in the file at [offset, offset + size), behind all others. NULL is fine. */
void living_records_add(struct living_records *living, struct living_record *record,
                        uint64_t offset, uint64_t size);

/* Takes those out whose code is gone. Returns how many bytes the others have. */
uint64_t living_records_prune(struct living_records *living);

/*
 * The next stretch of the file that holds records and nothing else: *record is where it begins, at
 * first the first one, and behind it then. False: there is none. Gone code's records count, too.
 */
bool living_records_stretch(const struct living_record **record, uint64_t *offset, uint64_t *size);

/* All have been copied, one behind the other, to `offset` of another file, which counts from now
 * on.
 */
void living_records_move(struct living_records *living, uint64_t offset);

/* Empties it. */
void living_records_free(struct living_records *living);

#endif
