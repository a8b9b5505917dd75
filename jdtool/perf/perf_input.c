#include "jdtool/perf/perf_input.h"

#include "jdtool/base/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

/* Not more than the processor keeps near. */
#define WINDOW_SIZE ((size_t)256 * 1024)

/* As much as the kernel lets an ordinary user have (fs.pipe-max-size): perf is seldom kept waiting,
 * and what it cannot write in time it loses. */
#define PIPE_SIZE (1024 * 1024)

/* So far ahead a file that is read by pieces is wanted in memory: to the kernel it looks as if it
 * was read here and there. */
#define AHEAD (UINT64_C(8) << 20)

struct perf_input {
    int fd;
    bool is_file;
    uint64_t size;   /* of a file */
    uint64_t end;    /* of what is wanted of it */
    size_t piece;    /* what is read at once; 0: as much as there is room */
    uint64_t ahead;  /* until there it was asked for */
    uint64_t offset; /* of window[start] */
    size_t start;    /* window[start..filled) is to be taken */
    size_t filled;
    _Alignas(8) uint8_t window[WINDOW_SIZE];
};

static int open_fd(const char *path)
{
    if (strcmp(path, "-") == 0) {
        return fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
    }
    return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO is refused, not waited for */
}

int perf_input_open(const char *path, struct perf_input **out)
{
    struct stat status;
    *out = NULL;
    int fd = open_fd(path);
    if (fd < 0 || fstat(fd, &status)) {
        int err = -errno;
        descriptor_close(fd);
        return err;
    }
    bool is_file = S_ISREG(status.st_mode);
    struct perf_input *input = NULL;
    int err = 0;
    if (S_ISDIR(status.st_mode)) {
        err = -EISDIR;
    } else if (!is_file && strcmp(path, "-") != 0) {
        err = -EINVAL;
    } else {
        input = malloc(sizeof *input);
        err = input ? 0 : -ENOMEM;
    }
    if (err) {
        (void)close(fd);
        return err;
    }
    input->fd = fd;
    input->is_file = is_file;
    input->size = is_file ? (uint64_t)status.st_size : 0;
    input->piece = 0;
    input->ahead = 0;
    perf_input_seek(input, 0, is_file ? input->size : UINT64_MAX);
    if (!is_file) {
        (void)fcntl(fd, F_SETPIPE_SZ, PIPE_SIZE); /* one that stays small does, too */
    }
    *out = input;
    return 0;
}

void perf_input_close(struct perf_input *input)
{
    if (input) {
        (void)close(input->fd);
        free(input);
    }
}

bool perf_input_is_file(const struct perf_input *input)
{
    return input->is_file;
}

uint64_t perf_input_size(const struct perf_input *input)
{
    return input->size;
}

int perf_input_read_at(const struct perf_input *input, uint64_t offset, void *to, size_t size)
{
    ssize_t n = descriptor_read_at(input->fd, to, size, offset);
    return n < 0 ? (int)n : (size_t)n < size ? -ENODATA : 0;
}

void perf_input_seek(struct perf_input *input, uint64_t offset, uint64_t end)
{
    input->offset = offset;
    input->end = end;
    input->start = 0;
    input->filled = 0;
}

void perf_input_by_pieces(struct perf_input *input, size_t piece)
{
    input->piece = piece;
}

static void ask_ahead(struct perf_input *input, uint64_t offset)
{
    if (input->ahead < offset + AHEAD / 2) {
        input->ahead = input->ahead > offset ? input->ahead : offset;
        (void)posix_fadvise(input->fd, (off_t)input->ahead, (off_t)AHEAD, POSIX_FADV_WILLNEED);
        input->ahead += AHEAD;
    }
}

/* Reads some more behind what there is. The number of bytes, 0 at the end, or a negative errno. */
static ssize_t fill(struct perf_input *input)
{
    size_t room = WINDOW_SIZE - input->filled;
    uint64_t behind = input->offset + (input->filled - input->start);
    if (room > input->end - behind) {
        room = (size_t)(input->end - behind);
    }
    if (input->piece) {
        room = room < input->piece ? room : input->piece;
        ask_ahead(input, behind);
    }
    ssize_t n;
    do {
        n = input->is_file ? pread(input->fd, input->window + input->filled, room, (off_t)behind)
                           : read(input->fd, input->window + input->filled, room);
    } while (n < 0 && errno == EINTR);
    if (n < 0) {
        return -errno;
    }
    input->filled += (size_t)n;
    return n;
}

int64_t perf_input_need(struct perf_input *input, size_t size, const uint8_t **at)
{
    if (size > PERF_INPUT_NEED_MAX) {
        return -E2BIG;
    }
    if (input->filled - input->start < size && WINDOW_SIZE - input->start < PERF_INPUT_NEED_MAX) {
        memmove(input->window, input->window + input->start, input->filled - input->start);
        input->filled -= input->start;
        input->start = 0;
    }
    while (input->filled - input->start < size) {
        ssize_t n = fill(input);
        if (n < 0) {
            return n;
        }
        if (n == 0) {
            break;
        }
    }
    size_t have = input->filled - input->start;
    *at = input->window + input->start;
    return (int64_t)(have < size ? have : size);
}

void perf_input_skip(struct perf_input *input, uint64_t size)
{
    size_t have = input->filled - input->start;
    input->offset += size;
    if (size <= have) {
        input->start += (size_t)size;
    } else {
        input->start = 0; /* of a file: to be read from there */
        input->filled = 0;
    }
    if (input->start == input->filled) {
        input->start = 0;
        input->filled = 0;
    }
}

uint64_t perf_input_offset(const struct perf_input *input)
{
    return input->offset;
}

bool perf_input_wait(const struct perf_input *input, int milliseconds)
{
    struct pollfd poll_fd = {.fd = input->fd, .events = POLLIN};
    if (input->is_file || input->filled > input->start) {
        return true;
    }
    return poll(&poll_fd, 1, milliseconds) != 0;
}

/* ---- Packed records ---- */

#define ROOM ((size_t)256 * 1024) /* several records of the largest size; memory stays at that */

struct perf_unpack {
    ZSTD_DStream *stream;
    ZSTD_inBuffer in;
    size_t at;          /* of the next record in bytes */
    size_t size;        /* valid bytes */
    bool may_have_more; /* zstd had to stop for want of room */
    _Alignas(8) uint8_t bytes[ROOM];
};

struct perf_unpack *perf_unpack_new(void)
{
    struct perf_unpack *unpack = calloc(1, sizeof *unpack);
    if (!unpack) {
        return NULL;
    }
    unpack->stream = ZSTD_createDStream();
    if (!unpack->stream) {
        free(unpack);
        return NULL;
    }
    (void)ZSTD_initDStream(unpack->stream);
    return unpack;
}

void perf_unpack_free(struct perf_unpack *unpack)
{
    if (unpack) {
        (void)ZSTD_freeDStream(unpack->stream);
        free(unpack);
    }
}

void perf_unpack_feed(struct perf_unpack *unpack, const void *packed, size_t size)
{
    unpack->in = (ZSTD_inBuffer){.src = packed, .size = size};
}

bool perf_unpack_is_cut_off(const struct perf_unpack *unpack)
{
    return unpack->at < unpack->size;
}

/* Unpacks what there is room for. 1, 0 when nothing came, or -EINVAL. */
static int unpack_more(struct perf_unpack *unpack)
{
    if (unpack->in.pos == unpack->in.size && !unpack->may_have_more) {
        return 0;
    }
    memmove(unpack->bytes, unpack->bytes + unpack->at, unpack->size - unpack->at);
    unpack->size -= unpack->at;
    unpack->at = 0;
    ZSTD_outBuffer out = {.dst = unpack->bytes, .size = ROOM, .pos = unpack->size};
    if (ZSTD_isError(ZSTD_decompressStream(unpack->stream, &out, &unpack->in))) {
        return -EINVAL;
    }
    unpack->may_have_more = out.pos == out.size;
    bool came = out.pos > unpack->size;
    unpack->size = out.pos;
    return came || unpack->in.pos < unpack->in.size;
}

int perf_unpack_next(struct perf_unpack *unpack, struct perf_record *record)
{
    for (;;) {
        struct perf_event_header header = {0};
        size_t left = unpack->size - unpack->at;
        if (left >= sizeof header) {
            memcpy(&header, unpack->bytes + unpack->at, sizeof header);
            if (header.size < sizeof header || header.size % 8) {
                return -EINVAL;
            }
        }
        if (left >= sizeof header && left >= header.size) {
            *record = (struct perf_record){
                .type = header.type,
                .misc = header.misc,
                .size = header.size,
                .bytes = unpack->bytes + unpack->at,
            };
            unpack->at += header.size;
            return 1;
        }
        int more = unpack_more(unpack);
        if (more <= 0) {
            return more;
        }
    }
}
