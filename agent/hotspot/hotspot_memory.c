/*
 * write(2) from an address to a pipe fails with EFAULT, or stops short, where nothing can be read:
 * the kernel copies, and knows how to be wrong about an address. mincore(2) would not do, for it
 * finds pages that may not be read in order, and whatever only looks first can be overtaken.
 *
 * process_vm_readv(2) on oneself does the same without descriptors, but looks each piece's pages up
 * anew: 600 ns a piece where the pipe takes 10 (Linux 6.18), and a class has some hundred pieces.
 * Besides, container engines used to forbid it.
 */
#include "agent/hotspot/hotspot_fields.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* Two pages: as many as a pipe keeps for the next write (fs/pipe.c: tmp_page), so that none has to
 * be found and charged each time. */
enum { TURN_BYTES = 8192, TURN_PIECES = 256 };

/* Of a turn's piece that lasts, and needs no pipe (memory_lasts). */
#define COPIED SIZE_MAX

/* A piece that begins at most so many bytes behind the last one is read with what lies between: to
 * the kernel a piece costs as much as some hundred bytes. Less than a page, so that this is on the
 * pages of both, and nothing else is asked for. */
enum { GAP_MAX = 256 };

struct own_memory {
    struct memory memory;
    pthread_mutex_t lock;
    int to_pipe, from_pipe;
    bool by_sigmask;                /* see is_there */
    uint64_t lasting, lasting_size; /* see memory_lasts */
    uint64_t *lasting_there;        /* a bit for each of its pages that was seen to be there */
    struct iovec from[TURN_PIECES];
    size_t places[TURN_PIECES]; /* of the pieces, in `bytes` */
    char bytes[TURN_BYTES];     /* what has come out of the pipe */
};

/*
 * The kernel copies a signal mask before it looks at what is to be done with it, and so tells an
 * address that cannot be read (EFAULT) from one that can (EINVAL), and changes nothing. It is a
 * tenth of what the pipe takes. Those who play the kernel, as qemu does, may look in another order.
 */
static int set_no_mask(const void *at)
{
    enum { NO_SUCH_ORDER = -1, KERNEL_MASK_BYTES = 8 };
    return syscall(SYS_rt_sigprocmask, NO_SUCH_ORDER, at, NULL, KERNEL_MASK_BYTES) == 0 ? 0 : errno;
}

static bool sigmask_tells(void)
{
    static const uint64_t there = 0;
    const void *nowhere = (const void *)(uintptr_t)sizeof(there); // NOLINT: no address
    int before = errno;
    bool tells = set_no_mask(&there) == EINVAL && set_no_mask(nowhere) == EFAULT;
    errno = before;
    return tells;
}

/* Where the copying has come to. */
struct progress {
    const struct memory_piece *pieces;
    size_t count;
    size_t piece;
    size_t offset; /* in it */
};

/* Copies a piece of what lasts. False: it is not all of that, or a page of it cannot be read. */
static bool copy_lasting(const struct own_memory *own, const struct memory_piece *piece)
{
    uint64_t from = piece->from - own->lasting;
    if (from >= own->lasting_size || piece->size == 0 || piece->size > own->lasting_size - from) {
        return false;
    }
    for (uint64_t page = from / PAGE; page <= (from + piece->size - 1) / PAGE; page++) {
        uint64_t *there = &own->lasting_there[page / 64];
        const uint64_t bit = UINT64_C(1) << page % 64;
        const void *at = (const void *)(uintptr_t)(own->lasting + page * PAGE); // NOLINT: asked for
        if (!(*there & bit) && set_no_mask(at) != EINVAL) {
            return false;
        }
        *there |= bit;
    }
    memcpy(piece->to, (const void *)(uintptr_t)piece->from, piece->size); // NOLINT: it is there
    return true;
}

/* Fills in one turn's vectors from where we are; returns how many there are. *pieces: how many
 * pieces they are of. */
static int next_turn(struct own_memory *own, const struct progress *at, size_t *pieces)
{
    size_t offset = at->offset;
    size_t bytes = 0;
    uint64_t end = 0; /* of the last vector */
    int used = 0;
    *pieces = 0;
    for (size_t i = at->piece; i < at->count && *pieces < TURN_PIECES; i++) {
        const struct memory_piece *piece = &at->pieces[i];
        if (offset == 0 && copy_lasting(own, piece)) {
            own->places[(*pieces)++] = COPIED;
            continue;
        }
        size_t size = piece->size - offset;
        uint64_t from = piece->from + offset;
        uint64_t gap = from - end;
        bool is_near = used > 0 && size > 0 && gap <= GAP_MAX;
        bytes += is_near ? gap : 0;
        if (bytes >= TURN_BYTES && size > 0) {
            break;
        }
        if (size > TURN_BYTES - bytes) {
            size = TURN_BYTES - bytes;
        }
        if (is_near) {
            own->from[used - 1].iov_len += gap + size;
        } else if (size > 0) {
            /* What is read may lie anywhere, where nothing is as well. */
            void *there = (void *)(uintptr_t)from; // NOLINT: the kernel's to follow
            own->from[used++] = (struct iovec){there, size};
        }
        own->places[(*pieces)++] = bytes;
        bytes += size;
        end = size > 0 ? from + size : end;
        offset = 0;
    }
    return used;
}

/* Gives each of the turn's pieces what has come of it, and goes on. */
static void hand_out(const struct own_memory *own, size_t pieces, size_t bytes, struct progress *at)
{
    for (size_t i = 0; i < pieces; i++) {
        const struct memory_piece *piece = &at->pieces[at->piece];
        size_t size = piece->size - at->offset;
        size_t come = bytes > own->places[i] ? bytes - own->places[i] : 0;
        if (own->places[i] == COPIED) {
            come = size;
        } else if (come > 0) {
            come = come < size ? come : size;
            memcpy((char *)piece->to + at->offset, own->bytes + own->places[i], come);
        }
        if (come < size) {
            at->offset += come;
            return;
        }
        at->offset = 0;
        at->piece++;
    }
}

/*
 * Everything that has been written comes out again: the pipe is empty between turns. libc's own
 * functions are points of cancellation, which costs a tenth of the calls; and the JVM cancels none.
 */
static bool copy_turn(struct own_memory *own, struct progress *at)
{
    size_t pieces = 0;
    int used = next_turn(own, at, &pieces);
    ssize_t written = 0;
    do {
        written = used > 0 ? syscall(SYS_writev, own->to_pipe, own->from, used) : 0;
    } while (written < 0 && errno == EINTR);
    if (written < 0 || (written == 0 && used > 0)) {
        return false;
    }
    for (ssize_t had = 0; had < written;) {
        ssize_t got = syscall(SYS_read, own->from_pipe, own->bytes + had, (size_t)(written - had));
        if (got <= 0 && !(got < 0 && errno == EINTR)) {
            return false;
        }
        had += got > 0 ? got : 0;
    }
    hand_out(own, pieces, (size_t)written, at);
    return true;
}

static bool read_pieces(struct memory *memory, const struct memory_piece *pieces, size_t count)
{
    struct own_memory *own = (struct own_memory *)memory;
    struct progress at = {.pieces = pieces, .count = count};
    int before = errno; /* a JVM's thread in the middle of something */
    pthread_mutex_lock(&own->lock);
    bool good = true;
    while (good && at.piece < count) {
        good = copy_turn(own, &at);
    }
    pthread_mutex_unlock(&own->lock);
    errno = before;
    return good;
}

static bool is_there(struct memory *memory, uint64_t at)
{
    char byte;
    if (!((struct own_memory *)memory)->by_sigmask) {
        return memory_read(memory, at, &byte, 1);
    }
    const void *mask = (const void *)(uintptr_t)(at & ~UINT64_C(7)); // NOLINT: the kernel's
    int before = errno;
    bool there = set_no_mask(mask) == EINVAL;
    errno = before;
    return there;
}

static void free_own(struct memory *memory)
{
    struct own_memory *own = (struct own_memory *)memory;
    free(own->lasting_there);
    (void)close(own->to_pipe);
    (void)close(own->from_pipe);
    pthread_mutex_destroy(&own->lock);
    free(own);
}

struct memory *memory_own_new(void)
{
    struct own_memory *own = malloc(sizeof(*own));
    int ends[2];
    if (!own || pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
        free(own);
        return NULL;
    }
    own->memory = (struct memory){.read = read_pieces, .is_there = is_there, .free = free_own};
    own->from_pipe = ends[0];
    own->to_pipe = ends[1];
    own->by_sigmask = sigmask_tells();
    own->lasting_size = 0;
    own->lasting_there = NULL;
    pthread_mutex_init(&own->lock, NULL);
    return &own->memory;
}

void memory_lasts(struct memory *memory, uint64_t from, uint64_t until)
{
    enum { LARGEST = 1 << 30 };
    struct own_memory *own = (struct own_memory *)memory;
    if (!own->by_sigmask || from % PAGE || until <= from || until - from > LARGEST) {
        return;
    }
    pthread_mutex_lock(&own->lock);
    if (!own->lasting_there) {
        own->lasting_there = calloc((until - from) / PAGE / 64 + 1, sizeof(*own->lasting_there));
        own->lasting = from;
        own->lasting_size = own->lasting_there ? until - from : 0;
    }
    pthread_mutex_unlock(&own->lock);
}

void memory_free(struct memory *memory)
{
    if (memory) {
        memory->free(memory);
    }
}
