#include "jdtool/base/packed_file.h"

#include "jdtool/base/descriptor.h"
#include "jdtool/base/message.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#define LEVEL (-1) /* 1 takes 1.3 to 1.5 times as long for a tenth less, 3 twice that */

/* Read and written at once. */
#define PIECE ((size_t)256 << 10)

/* Packed by one call, of a file that grows: it takes some 5 ms. */
#define STEP ((uint64_t)2 << 20)

/* A stream of ours goes back some 512 KB; of others it may want so much memory, as a power of 2. */
#define WINDOW_MAX 23

/* ---- Packing ---- */

/* Whether nobody can write to it: a lease says so. It is given back at once; who would open the
 * file meanwhile waits for that, and we are told of it by a signal that does nothing. */
static bool is_at_rest(int fd)
{
    bool is = fcntl(fd, F_SETSIG, SIGURG) == 0 && fcntl(fd, F_SETLEASE, F_RDLCK) == 0;
    if (is) {
        (void)fcntl(fd, F_SETLEASE, F_UNLCK);
    }
    return is;
}

static bool is_worth_it(int fd)
{
    struct stat status;
    uint32_t magic;
    return fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
           (uint64_t)status.st_size >= PACKED_FILE_MIN &&
           (uint64_t)status.st_size <= PACKED_FILE_MAX &&
           pread(fd, &magic, sizeof magic, 0) == sizeof magic && magic != ZSTD_MAGICNUMBER;
}

/*
 * A frame's head, which tells how much is in it (RFC 8878, 3.1.1.1). zstd's own is there before
 * that is known, and does not: ours takes its place at the end.
 *
 *     magic 4   descriptor 1   window 1   content size 8
 */
enum { HEAD_SIZE = 14, ZSTD_HEAD_SIZE = 6, HAS_CHECKSUM = 0x04, HAS_SIZE_OF_8 = 0xc0 };

struct packing {
    char *path;
    int fd;
    ZSTD_CCtx *stream;
    struct output_file *file; /* NULL: nothing is in it yet */
    uint8_t *pieces;          /* two */
    uint8_t head[HEAD_SIZE];
    uint64_t made;    /* by zstd, its head included */
    uint64_t at;      /* so much is packed */
    uint64_t settled; /* so much was there when it was looked at last */
    bool failed;
};

/* Past zstd's head, which is kept. */
static void put(struct packing *packing, const uint8_t *bytes, size_t size)
{
    while (size > 0 && packing->made < ZSTD_HEAD_SIZE) {
        packing->head[packing->made++] = *bytes++;
        size--;
    }
    output_file_put(packing->file, bytes, size);
    packing->made += size;
}

static void pack_piece(struct packing *packing, size_t size, bool is_last)
{
    ZSTD_inBuffer in = {.src = packing->pieces, .size = size};
    for (size_t left = 1; left > 0 && (is_last || in.pos < in.size);) {
        ZSTD_outBuffer packed = {.dst = packing->pieces + PIECE, .size = PIECE};
        left = ZSTD_compressStream2(packing->stream, &packed, &in,
                                    is_last ? ZSTD_e_end : ZSTD_e_continue);
        if (ZSTD_isError(left)) {
            packing->failed = true;
            return;
        }
        put(packing, packed.dst, packed.pos);
    }
}

static bool begin(struct packing *packing)
{
    static const uint8_t head[HEAD_SIZE];
    if (packing->file || output_file_open(packing->path, &packing->file)) {
        return packing->file != NULL;
    }
    output_file_put(packing->file, head, sizeof head);
    return true;
}

/* Up to there. */
static void pack(struct packing *packing, uint64_t until)
{
    packing->failed |= packing->at < until && !begin(packing);
    while (!packing->failed && packing->at < until) {
        uint64_t left = until - packing->at;
        ssize_t n = pread(packing->fd, packing->pieces, left < PIECE ? (size_t)left : PIECE,
                          (off_t)packing->at);
        packing->failed = n <= 0; /* it became shorter */
        if (n > 0) {
            pack_piece(packing, (size_t)n, false);
            packing->at += (uint64_t)n;
        }
    }
}

static void finish(struct packing *packing)
{
    uint32_t magic = ZSTD_MAGICNUMBER;
    pack_piece(packing, 0, true);
    if (packing->failed || memcmp(packing->head, &magic, sizeof magic) != 0 ||
        packing->head[4] != HAS_CHECKSUM) {
        packing->failed = true; /* another head than we know */
        return;
    }
    packing->head[4] |= HAS_SIZE_OF_8;
    memcpy(packing->head + ZSTD_HEAD_SIZE, &packing->at, sizeof packing->at);
    output_file_put_at(packing->file, 0, packing->head, sizeof packing->head);
}

struct packing *packing_new(const char *path)
{
    struct packing *packing = calloc(1, sizeof *packing);
    if (!packing) {
        return NULL;
    }
    packing->fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    packing->path = strdup(path);
    packing->pieces = malloc(2 * PIECE);
    packing->stream = ZSTD_createCCtx();
    if (packing->fd < 0 || !packing->path || !packing->pieces || !packing->stream ||
        ZSTD_isError(ZSTD_CCtx_setParameter(packing->stream, ZSTD_c_compressionLevel, LEVEL)) ||
        ZSTD_isError(ZSTD_CCtx_setParameter(packing->stream, ZSTD_c_checksumFlag, 1))) {
        packing_free(packing);
        return NULL;
    }
    return packing;
}

const char *packing_path(const struct packing *packing)
{
    return packing->path;
}

bool packing_go_on(struct packing *packing)
{
    struct stat status;
    if (packing->failed || fstat(packing->fd, &status) != 0 || !is_worth_it(packing->fd)) {
        return false;
    }
    uint64_t size = (uint64_t)status.st_size;
    uint64_t until = packing->settled < size ? packing->settled : size;
    packing->failed = size < packing->at;
    pack(packing, until - packing->at > STEP ? packing->at + STEP : until);
    bool is_more = packing->at < until;
    packing->settled = is_more ? packing->settled : size;
    return is_more;
}

struct output_file *packing_end(struct packing *packing)
{
    struct output_file *file = NULL;
    struct stat status = {0};
    struct stat there;
    if (is_worth_it(packing->fd) && is_at_rest(packing->fd) && fstat(packing->fd, &status) == 0 &&
        lstat(packing->path, &there) == 0 && there.st_ino == status.st_ino &&
        there.st_dev == status.st_dev && (uint64_t)status.st_size >= packing->at) {
        pack(packing, (uint64_t)status.st_size);
        finish(packing);
        if (!packing->failed && output_file_tell(packing->file) < packing->at) {
            file = packing->file;
            packing->file = NULL;
        }
    }
    packing_free(packing);
    return file;
}

void packing_free(struct packing *packing)
{
    if (packing) {
        output_file_abort(packing->file);
        (void)ZSTD_freeCCtx(packing->stream);
        free(packing->pieces);
        free(packing->path);
        descriptor_close(packing->fd);
        free(packing);
    }
}

/* ---- Unpacking ---- */

struct unpacking {
    int in, out;
    ZSTD_DCtx *stream;
    uint64_t size, made;
    uint8_t from[PIECE], to[PIECE];
};

/* Unpacks a piece; *left is 0 at a frame's end. 0 or a negative errno. */
static int unpack_piece(struct unpacking *work, ZSTD_inBuffer *in, size_t *left)
{
    bool is_full = true; /* there may be more, though all was read */
    int err = 0;
    while (!err && (in->pos < in->size || (is_full && *left))) {
        ZSTD_outBuffer plain = {.dst = work->to, .size = PIECE};
        *left = ZSTD_decompressStream(work->stream, &plain, in);
        work->made += plain.pos;
        is_full = plain.pos == plain.size;
        err = ZSTD_isError(*left) || work->made > work->size
                  ? -EINVAL
                  : descriptor_write(work->out, work->to, plain.pos);
    }
    return err;
}

static int unpack(struct unpacking *work)
{
    size_t left = 1;
    ssize_t n;
    int err = 0;
    for (off_t at = 0; !err && (n = pread(work->in, work->from, PIECE, at)) != 0; at += n) {
        ZSTD_inBuffer in = {.src = work->from, .size = n > 0 ? (size_t)n : 0};
        err = n < 0 ? -errno : unpack_piece(work, &in, &left);
    }
    return err ? err : left || work->made != work->size ? -EINVAL : 0;
}

/* NULL, or why it is refused. */
static const char *fault_of(int err)
{
    return err == -EINVAL ? "it is packed, and damaged or cut" : err ? strerror(-err) : NULL;
}

/* As packed_file_unpack, of one that is packed; fd stays open. */
static int unpack_packed(int fd, const char *name)
{
    uint8_t header[32]; /* a frame's has 18 bytes at most */
    ssize_t n = pread(fd, header, sizeof header, 0);
    unsigned long long size = ZSTD_getFrameContentSize(header, n > 0 ? (size_t)n : 0);
    if (size >= ZSTD_CONTENTSIZE_ERROR) { /* or it is unknown */
        error_message("failed to unpack %s: it does not say how much is in it", name);
        return -EINVAL;
    }
    if (size > PACKED_FILE_MAX) {
        error_message("failed to unpack %s: it would be %llu MB, and %llu MB is the limit", name,
                      size >> 20, (unsigned long long)(PACKED_FILE_MAX >> 20));
        return -EINVAL;
    }
    struct unpacking *work = malloc(sizeof *work);
    int err = work ? 0 : -ENOMEM;
    if (work) {
        work->in = fd;
        work->size = size;
        work->made = 0;
        work->stream = ZSTD_createDCtx();
        work->out = memfd_create("unpacked", MFD_CLOEXEC);
        err = work->out < 0 ? -errno : !work->stream ? -ENOMEM : 0;
        if (!err &&
            ZSTD_isError(ZSTD_DCtx_setParameter(work->stream, ZSTD_d_windowLogMax, WINDOW_MAX))) {
            err = -ENOMEM;
        }
        err = err ? err : unpack(work);
        (void)ZSTD_freeDCtx(work->stream);
        fd = work->out;
    }
    if (err) {
        error_message("failed to unpack %s: %s", name, fault_of(err));
        if (work && fd >= 0) {
            close(fd);
        }
    }
    free(work);
    return err ? err : fd;
}

int packed_file_unpack(int fd, const char *name)
{
    uint32_t magic;
    struct stat status;
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) ||
        pread(fd, &magic, sizeof magic, 0) != sizeof magic || magic != ZSTD_MAGICNUMBER) {
        return fd;
    }
    int plain = unpack_packed(fd, name);
    close(fd);
    return plain;
}
