/*
 * Reads this process's own memory by the kernel's hand: what is not there, or may not be read, is
 * an answer and not a SIGSEGV. For pointers found in structures that are not ours.
 */
#ifndef JD_AGENT_HOTSPOT_MEMORY_H
#define JD_AGENT_HOTSPOT_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

struct memory_reader;

/* Copy `size` bytes from `from` to `to`. */
struct memory_piece {
    const void *from;
    void *to;
    size_t size;
};

/* Takes two file descriptors for as long as it lives. NULL: no memory or no descriptors. */
struct memory_reader *memory_reader_new(void);
void memory_reader_free(struct memory_reader *reader); /* NULL is fine */

/*
 * Copies all pieces, in their order. False when one of them cannot be read to its end; what is in
 * the places to copy to then is anything. On any thread; a thread waits for the others' copies.
 */
bool memory_read_pieces(struct memory_reader *reader, const struct memory_piece *pieces,
                        size_t count);

/* The same for one piece. */
bool memory_read(struct memory_reader *reader, const void *from, void *to, size_t size);

/*
 * Whether something can be read at `at`, and so on all of its page: one system call that copies
 * nothing to us. It holds for as long as nobody unmaps the page.
 */
bool memory_is_there(struct memory_reader *reader, const void *at);

#endif
