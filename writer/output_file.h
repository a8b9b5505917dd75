/*
 * A private file that only ever holds whole records.
 *
 * A record goes out in one write. When the kernel takes less of it, the rest follows; when the rest
 * cannot be written, the file is cut back to where the record began, one message says why, and the
 * file is closed for good: later records are answered with -EPIPE. Nothing is buffered, so a killed
 * process loses no record that was appended.
 *
 * A limit on the size of files (RLIMIT_FSIZE) is one more error: the SIGXFSZ that the kernel sends
 * with it, which ends a process by default, is held back and taken away.
 *
 * Not thread-safe; its owner has a lock.
 */
#ifndef JD_WRITER_OUTPUT_FILE_H
#define JD_WRITER_OUTPUT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

struct output_file {
    int fd;      /* -1: closed */
    pid_t owner; /* a fork of it shares the file */
    char *path;
    uint64_t size;           /* bytes in whole records */
    bool size_limited;       /* RLIMIT_FSIZE was set when the file was opened */
    bool outlives_full_disk; /* ENOSPC and EDQUOT cost one record, without a message; false at first
                              */
};

/* What becomes of a file that stands in the new one's place. */
enum output_file_in_place {
    OUTPUT_FILE_REFUSE,         /* it stays, whatever it is */
    OUTPUT_FILE_REFUSE_QUIETLY, /* the same without a message, for who takes another place then */
    /* A stale regular file of our own is removed; a symbolic link, a FIFO, a directory, anything of
     * another user's is refused, and so is a file that some struct output_file, in this process or
     * another, is writing to. */
    OUTPUT_FILE_REPLACE_STALE,
};

/*
 * Creates the file with mode 0600. `directory` is a descriptor of the directory that the path leads
 * to, or AT_FDCWD: then the path is all that is known. 0, or a negative errno after one message.
 */
int output_file_create(struct output_file *file, int directory, const char *path,
                       enum output_file_in_place in_place);

/* Appends one record. 0, a negative errno when this one failed, -EPIPE when an earlier one did. */
int output_file_append(struct output_file *file, const void *record, size_t size);

/* The same for a record, or several, made of pieces, which are used up; then `hole` bytes of zero,
 * which take no room on the disk where they fill whole blocks of it. */
int output_file_append_pieces(struct output_file *file, struct iovec *pieces, int count,
                              uint64_t hole);

/* Writes over bytes that are there already, [offset, offset + size). Returns and fails as append,
 * but cannot take back what was written until then. */
int output_file_overwrite(struct output_file *file, uint64_t offset, const void *bytes,
                          size_t size);

/*
 * Puts a finished file into the place of another one, whose path and whose readers it takes over;
 * who has the old one open still sees that. Both structs are released but for `file`, which is the
 * new file then. On an error (a negative errno, after a message) `file` is as it was, and the other
 * file is removed.
 */
int output_file_replace(struct output_file *file, struct output_file *by);

/* Closes the descriptor; path and size stay to be asked for. Says so when somebody has removed the
 * file meanwhile: what was written to it cannot be found by anyone. */
void output_file_close(struct output_file *file);

/* Closes, and frees the path. */
void output_file_release(struct output_file *file);

/* The same, and removes the file. */
void output_file_discard(struct output_file *file);

#endif
