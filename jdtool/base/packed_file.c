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

#define LEVEL 1 /* 3 takes twice the time for a fifteenth less */

/* Read and written at once. */
#define PIECE ((size_t)256 << 10)

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

static int pack_piece(ZSTD_CCtx *stream, ZSTD_inBuffer *in, uint8_t *out, struct output_file *file,
                      bool is_last)
{
    for (size_t left = 1; left > 0 && (is_last || in->pos < in->size);) {
        ZSTD_outBuffer packed = {.dst = out, .size = PIECE};
        left = ZSTD_compressStream2(stream, &packed, in, is_last ? ZSTD_e_end : ZSTD_e_continue);
        if (ZSTD_isError(left)) {
            return -EIO; /* one that became longer or shorter */
        }
        output_file_put(file, out, packed.pos);
    }
    return 0;
}

/* `pieces` has room for two. */
static int pack(int fd, ZSTD_CCtx *stream, uint8_t *pieces, struct output_file *file)
{
    struct stat status;
    int err = fstat(fd, &status) != 0 ? -errno : 0;
    if (err || ZSTD_isError(ZSTD_CCtx_setParameter(stream, ZSTD_c_compressionLevel, LEVEL)) ||
        ZSTD_isError(ZSTD_CCtx_setParameter(stream, ZSTD_c_checksumFlag, 1)) ||
        ZSTD_isError(ZSTD_CCtx_setPledgedSrcSize(stream, (uint64_t)status.st_size))) {
        return err ? err : -ENOMEM;
    }
    off_t at = 0;
    ssize_t n;
    do {
        n = pread(fd, pieces, PIECE, at);
        ZSTD_inBuffer in = {.src = pieces, .size = n > 0 ? (size_t)n : 0};
        err = n < 0 ? -errno : pack_piece(stream, &in, pieces + PIECE, file, n == 0);
        at += n;
    } while (!err && n > 0);
    return err;
}

struct output_file *packed_file_make(const char *path)
{
    struct output_file *file = NULL;
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    bool is = fd >= 0 && is_worth_it(fd) && is_at_rest(fd);
    uint8_t *pieces = is ? malloc(2 * PIECE) : NULL;
    ZSTD_CCtx *stream = pieces ? ZSTD_createCCtx() : NULL;
    struct stat status = {0};
    if (stream && fstat(fd, &status) == 0 && output_file_open(path, &file) == 0) {
        int err = pack(fd, stream, pieces, file);
        if (err || output_file_tell(file) >= (uint64_t)status.st_size) {
            output_file_abort(file);
            file = NULL;
        }
    }
    (void)ZSTD_freeCCtx(stream);
    free(pieces);
    descriptor_close(fd);
    return file;
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
