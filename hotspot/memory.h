/*
 * How the memory of a JVM is read: one interface for whoever reads HotSpot's structures, with the
 * JVM's own addresses, which are 64 bits wide and followed by nobody else. In the agent it is this
 * process's memory, in jdtool another's; both are read by the kernel's hand: what is not there, or
 * may not be read, is an answer and not a SIGSEGV.
 */
#ifndef JD_HOTSPOT_MEMORY_H
#define JD_HOTSPOT_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Copy `size` bytes from `from` to `to`. */
struct memory_piece {
    uint64_t from;
    void *to;
    size_t size;
};

/* Every function may be called on any thread. */
struct memory {
    /* See memory_read_pieces. */
    bool (*read)(struct memory *memory, const struct memory_piece *pieces, size_t count);
    /*
     * Whether something can be read at `at`, and so on all of its page, without a copy of it: an
     * address is a pointer then. It holds for as long as nobody unmaps the page. NULL: the memory
     * is not this process's, and all is copied.
     */
    bool (*is_there)(struct memory *memory, uint64_t at);
    void (*free)(struct memory *memory);
};

/*
 * Copies all pieces, in their order. False when one of them cannot be read to its end; what is in
 * the places to copy to then is anything. A thread waits for the others' copies.
 */
static inline bool memory_read_pieces(struct memory *memory, const struct memory_piece *pieces,
                                      size_t count)
{
    return memory->read(memory, pieces, count);
}

/* The same for one piece. */
static inline bool memory_read(struct memory *memory, uint64_t from, void *to, size_t size)
{
    const struct memory_piece piece = {.from = from, .to = to, .size = size};
    return memory->read(memory, &piece, 1);
}

#endif
