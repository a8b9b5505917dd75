/*
 * The journal of threads, jit-PID.threads: what each thread of a JVM was called, which virtual
 * thread it carried from when to when, and which label the program had set. It stands beside the
 * dump of the same process; the agent writes it with threads=on, jdtool joins it to samples by
 * thread and time.
 *
 * The file is a header and blocks. A block is of one thread: a head and slots of 16 bytes, in the
 * order of time. Blocks of one thread do not overlap in time, but may stand in the file in another
 * order, behind blocks of any other thread. All integers are in the byte order of the machine that
 * wrote the file; the magic tells which.
 *
 * A record is a slot: a kind and a time, and a value. One with a text goes on with a slot that
 * tells whose text of which length, and then as many slots as the bytes need; it never reaches into
 * another block.
 */
#ifndef JD_FORMAT_THREADS_H
#define JD_FORMAT_THREADS_H

#include <stddef.h>
#include <stdint.h>

#define THREADS_MAGIC         0x4A645468u /* "JdTh" */
#define THREADS_MAGIC_SWAPPED 0x6854644Au
#define THREADS_VERSION       1

/* threads_header.flags: time stamps are the processor's own, as in the dump. */
#define THREADS_FLAGS_ARCH_TIMESTAMP (UINT64_C(1) << 0)

/* Only the newest blocks are kept, THREADS_KEPT bytes of them or some more; before them the file is
 * a hole, which reads as zeros. */
#define THREADS_FLAGS_ENDLESS (UINT64_C(1) << 1)
#define THREADS_KEPT          (UINT64_C(64) << 20)

/* A writer tells of a virtual thread's name once; but again when so many others, with the next
 * ids, have been told of since. */
#define THREADS_TOLD_AGAIN 65536

struct threads_header {
    uint32_t magic;
    uint32_t version;
    uint32_t total_size; /* bytes of this header; a reader skips what it does not know */
    uint32_t pid;        /* as the writing process sees itself, as all thread ids are */
    uint64_t timestamp;
    uint64_t flags;
};

/* Not known which virtual thread, or whether one: the thread has told nothing yet. */
#define THREADS_NOT_KNOWN UINT64_MAX

struct threads_block {
    uint32_t tid;
    uint32_t slots;     /* behind this head, from 1 to THREADS_BLOCK_SLOTS */
    uint64_t base;      /* what the slots' times are behind of */
    uint64_t mounted;   /* before the first slot: the virtual thread; 0: none */
    uint64_t lost_from; /* from then to `base` records of this thread were left out; 0: none */
};

#define THREADS_BLOCK_SLOTS 125

enum threads_kind {
    THREADS_MOUNT = 1,      /* value: the virtual thread's id, which this thread runs from now on */
    THREADS_UNMOUNT = 2,    /* value: the virtual thread's id, which it runs no more */
    THREADS_VIRTUAL = 3,    /* value: a virtual thread's id; text: its name */
    THREADS_PLATFORM = 4,   /* value: a thread's id in Java; text: its name from now on */
    THREADS_END = 5,        /* the thread ends */
    THREADS_LABEL = 6,      /* value: the label of what runs on this thread; 0: none any more */
    THREADS_LABEL_TEXT = 7, /* value: a label; text: what it says, lines of "key=value" */
};

struct threads_slot {
    uint64_t stamp; /* time behind the block's base << 8 | enum threads_kind; others are skipped */
    uint64_t value;
};

/* The second slot of a record with a text. */
struct threads_text {
    uint32_t tid;    /* whose name it is, which may be another thread than the block's; else 0 */
    uint16_t length; /* bytes of (modified) UTF-8, not terminated */
    uint16_t flags;
    uint64_t unused;
};

/* threads_text.flags: the text was longer, and is cut. */
#define THREADS_TEXT_CUT (UINT16_C(1) << 0)

#define THREADS_TEXT_MAX 1024 /* bytes */

_Static_assert(sizeof(struct threads_header) == 32, "threads_header");
_Static_assert(offsetof(struct threads_header, timestamp) == 16, "threads_header.timestamp");
_Static_assert(sizeof(struct threads_block) == 32, "threads_block");
_Static_assert(offsetof(struct threads_block, base) == 8, "threads_block.base");
_Static_assert(sizeof(struct threads_slot) == 16, "threads_slot");
_Static_assert(sizeof(struct threads_text) == sizeof(struct threads_slot), "threads_text");
_Static_assert(THREADS_TEXT_MAX / 16 + 2 < THREADS_BLOCK_SLOTS, "a text fits into a block");

#endif
