#include "jdtool/base/packed_input.h"

#include "jdtool/base/descriptor.h"
#include "jdtool/base/message.h"

#include <errno.h>
#include <fcntl.h>
#include <isa-l/igzip_lib.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUFFER_SIZE ((size_t)64 * 1024)

struct packed_input {
    int fd;
    bool is_gzip, is_ended;
    int error;
    struct inflate_state zip;
    size_t at, size; /* of the bytes that were unpacked and not read yet */
    uint8_t buffer[BUFFER_SIZE];
    uint8_t packed[BUFFER_SIZE];
};

static ssize_t read_some(int fd, uint8_t *to, size_t size)
{
    ssize_t n;
    do {
        n = read(fd, to, size);
    } while (n < 0 && errno == EINTR);
    return n;
}

/* The gzip's first bytes decide whether it is one. */
static int start(struct packed_input *input)
{
    ssize_t n = read_some(input->fd, input->packed, sizeof input->packed);
    if (n < 0) {
        return -errno;
    }
    input->is_gzip = n >= 2 && input->packed[0] == 0x1f && input->packed[1] == 0x8b;
    if (!input->is_gzip) {
        memcpy(input->buffer, input->packed, (size_t)n);
        input->size = (size_t)n;
        return 0;
    }
    isal_inflate_init(&input->zip);
    input->zip.crc_flag = ISAL_GZIP;
    input->zip.next_in = input->packed;
    input->zip.avail_in = (uint32_t)n;
    return 0;
}

int packed_input_open(const char *path, struct packed_input **out)
{
    struct stat status = {0};
    struct packed_input *input = malloc(sizeof *input);
    int err = input ? 0 : -ENOMEM;
    if (input) {
        memset(input, 0, offsetof(struct packed_input, buffer));
        input->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        err = input->fd < 0 || fstat(input->fd, &status) < 0 ? -errno : 0;
    }
    if (!err) {
        err = S_ISREG(status.st_mode) ? start(input) : -EINVAL;
    }
    if (err) {
        failed_to(err, "read %s", path);
        packed_input_close(input);
        return err;
    }
    *out = input;
    return 0;
}

void packed_input_close(struct packed_input *input)
{
    if (!input) {
        return;
    }
    descriptor_close(input->fd);
    free(input);
}

static void unpack(struct packed_input *input)
{
    struct inflate_state *zip = &input->zip;
    while (input->size == 0 && !input->is_ended && !input->error) {
        zip->next_out = input->buffer;
        zip->avail_out = sizeof input->buffer;
        input->error = isal_inflate(zip) == ISAL_DECOMP_OK ? 0 : -EBADMSG;
        input->size = sizeof input->buffer - zip->avail_out;
        input->is_ended = zip->block_state == ISAL_BLOCK_FINISH;
        if (input->size == 0 && !input->is_ended && !input->error) {
            ssize_t n = read_some(input->fd, input->packed, sizeof input->packed);
            input->error = n < 0 ? -errno : n == 0 ? -EBADMSG : 0; /* cut before the gzip's end */
            zip->next_in = input->packed;
            zip->avail_in = n > 0 ? (uint32_t)n : 0;
        }
    }
}

/* Whether there is at least a byte to be read. */
static bool fill(struct packed_input *input)
{
    if (input->at < input->size) {
        return true;
    }
    input->at = input->size = 0;
    if (input->is_gzip) {
        unpack(input);
    } else {
        ssize_t n = read_some(input->fd, input->buffer, sizeof input->buffer);
        input->error = n < 0 ? -errno : input->error;
        input->size = n > 0 ? (size_t)n : 0;
    }
    return input->size > 0;
}

bool packed_input_byte(struct packed_input *input, uint8_t *byte)
{
    if (!fill(input)) {
        return false;
    }
    *byte = input->buffer[input->at++];
    return true;
}

bool packed_input_bytes(struct packed_input *input, void *to, size_t size)
{
    uint8_t *at = to;
    while (size > 0) {
        if (!fill(input)) {
            return false;
        }
        size_t here = input->size - input->at;
        size_t n = size < here ? size : here;
        memcpy(at, input->buffer + input->at, n);
        input->at += n;
        at += n;
        size -= n;
    }
    return true;
}

bool packed_input_number(struct packed_input *input, uint64_t *number)
{
    *number = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint8_t byte;
        if (!packed_input_byte(input, &byte)) {
            return false;
        }
        if (shift == 63 && byte > 1) {
            break;
        }
        *number |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            return true;
        }
    }
    input->error = -EBADMSG;
    return false;
}

int packed_input_error(const struct packed_input *input)
{
    return input->error;
}

bool packed_input_whole(void *packed, size_t packed_size, bool zlib, void *bytes, size_t size)
{
    struct inflate_state state;
    isal_inflate_init(&state);
    state.crc_flag = zlib ? ISAL_ZLIB : ISAL_DEFLATE;
    state.next_in = packed;
    state.avail_in = (uint32_t)packed_size;
    state.next_out = bytes;
    state.avail_out = (uint32_t)size;
    return packed_size <= UINT32_MAX && size <= UINT32_MAX &&
           isal_inflate_stateless(&state) == ISAL_DECOMP_OK && state.avail_out == 0;
}
