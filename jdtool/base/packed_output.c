#include "jdtool/base/packed_output.h"

#include "jdtool/base/bytes.h"
#include "jdtool/base/message.h"
#include "jdtool/base/output_file.h"

#include <errno.h>
#include <isa-l/igzip_lib.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Gathered before it is packed, and without packing: as much as an output_file writes at once
 * without a copy. */
#define GZIP_SIZE   ((size_t)64 * 1024)
#define BUFFER_SIZE ((size_t)256 * 1024)

/* ISA-L's: its level 3 takes two to three times as long for 2 to 4 % less. */
#define GZIP_LEVEL 2

struct gzip {
    struct isal_zstream stream;
    uint8_t room[ISAL_DEF_LVL2_DEFAULT];
};

static void gzip_start(struct gzip *gzip, uint16_t wrapping)
{
    isal_deflate_init(&gzip->stream);
    gzip->stream.gzip_flag = wrapping;
    gzip->stream.level = GZIP_LEVEL;
    gzip->stream.level_buf = gzip->room;
    gzip->stream.level_buf_size = sizeof gzip->room;
}

struct packed_output {
    struct packed_buffer free; /* the first member */
    struct output_file *file;  /* NULL: memory or standard output */
    bool is_memory;
    struct bytes memory;
    struct gzip *gzip; /* NULL: nothing is packed */
    int error;         /* the first one, negative errno */
    uint64_t flushed;
    uint8_t buffer[BUFFER_SIZE];
    uint8_t packed[GZIP_SIZE];
};

static int start(const char *path, bool gzip, struct packed_output **out)
{
    struct packed_output *output = malloc(sizeof *output);
    if (!output) {
        return failed_to(-ENOMEM, "write %s", path);
    }
    memset(output, 0, offsetof(struct packed_output, buffer));
    output->free =
        (struct packed_buffer){output->buffer, output->buffer + (gzip ? GZIP_SIZE : BUFFER_SIZE)};
    output->gzip = gzip ? calloc(1, sizeof *output->gzip) : NULL;
    if (gzip && !output->gzip) {
        free(output);
        return failed_to(-ENOMEM, "write %s", path);
    }
    if (gzip) {
        gzip_start(output->gzip, IGZIP_GZIP);
    }
    *out = output;
    return 0;
}

int packed_output_open(const char *path, bool gzip, struct packed_output **out)
{
    int err = start(path, gzip, out);
    if (!err && strcmp(path, "-") != 0) {
        err = output_file_open(path, &(*out)->file);
        if (err) {
            packed_output_abort(*out);
            *out = NULL;
        }
    }
    return err;
}

int packed_output_open_memory(bool gzip, struct packed_output **out)
{
    int err = start("memory", gzip, out);
    if (!err) {
        (*out)->is_memory = true;
    }
    return err;
}

void packed_output_fail(struct packed_output *output, int err)
{
    if (!output->error) {
        output->error = err;
    }
}

static void deliver(struct packed_output *output, const uint8_t *bytes, size_t size)
{
    if (output->error || size == 0) {
        return;
    }
    if (output->file) {
        output_file_put(output->file, bytes, size);
    } else if (output->is_memory) {
        bytes_put(&output->memory, bytes, size);
        if (output->memory.failed) {
            packed_output_fail(output, -ENOMEM);
        }
    } else if (fwrite(bytes, 1, size, stdout) != size) {
        packed_output_fail(output, errno ? -errno : -EIO);
    }
}

static size_t used_of(const struct packed_output *output)
{
    return (size_t)(output->free.at - output->buffer);
}

/* Lets everything that was gathered go; last: and what gzip has to say at its end. */
static void flush(struct packed_output *output, bool last)
{
    size_t used = used_of(output);
    output->flushed += used;
    output->free.at = output->buffer;
    if (!output->gzip) {
        deliver(output, output->buffer, used);
        return;
    }
    struct isal_zstream *stream = &output->gzip->stream;
    stream->next_in = output->buffer;
    stream->avail_in = (uint32_t)used;
    stream->end_of_stream = last;
    do {
        stream->next_out = output->packed;
        stream->avail_out = (uint32_t)sizeof output->packed;
        if (isal_deflate(stream) != COMP_OK) {
            packed_output_fail(output, -EIO);
            break;
        }
        deliver(output, output->packed, sizeof output->packed - stream->avail_out);
    } while (last ? stream->internal_state.state != ZSTATE_END : stream->avail_out == 0);
}

void packed_output_overflow(struct packed_output *output, const void *bytes, size_t size)
{
    const uint8_t *from = bytes;
    while (size > 0) {
        size_t fits = (size_t)(output->free.end - output->free.at);
        size_t n = size < fits ? size : fits;
        memcpy(output->free.at, from, n);
        output->free.at += n;
        from += n;
        size -= n;
        if (output->free.at == output->free.end) {
            flush(output, false);
        }
    }
}

void packed_output_text(struct packed_output *output, const char *text)
{
    packed_output_put(output, text, strlen(text));
}

void packed_output_printf(struct packed_output *output, const char *format, ...)
{
    char text[512];
    char *larger = NULL; /* a row of a wide terminal */
    va_list args;
    va_start(args, format);
    int size = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (size >= (int)sizeof text) {
        va_start(args, format);
        size = vasprintf(&larger, format, args);
        va_end(args);
    }
    if (size < 0) {
        packed_output_fail(output, -ENOMEM);
        return;
    }
    packed_output_put(output, larger ? larger : text, (size_t)size);
    free(larger);
}

uint64_t packed_output_size(const struct packed_output *output)
{
    return output->flushed + used_of(output);
}

static void release(struct packed_output *output)
{
    free(output->gzip);
    bytes_free(&output->memory);
    free(output);
}

int packed_output_finish(struct packed_output *output)
{
    flush(output, true);
    int err = output->error;
    if (output->file) {
        if (err) {
            output_file_fail(output->file, err);
        }
        output_file_hand_over(output->file);
        err = output_file_finish(output->file);
    } else {
        if (!err && !output->is_memory && fflush(stdout) != 0) {
            err = -errno;
        }
        failed_to(err, "write the output");
    }
    release(output);
    return err;
}

int packed_output_take(struct packed_output *output, uint8_t **bytes, size_t *size)
{
    flush(output, true);
    int err = output->error;
    if (err) {
        failed_to(err, "write into memory");
    } else {
        *bytes = output->memory.at;
        *size = output->memory.size;
        output->memory = (struct bytes){0};
    }
    release(output);
    return err;
}

void packed_output_abort(struct packed_output *output)
{
    if (output) {
        output_file_abort(output->file);
        release(output);
    }
}

bool packed_output_whole(const void *bytes, size_t size, struct bytes *out)
{
    struct gzip *gzip = calloc(1, sizeof *gzip);
    size_t start = out->size;
    uint8_t *room = size <= UINT32_MAX ? bytes_grow(out, size) : NULL;
    bool is = gzip && room;
    if (is) {
        gzip_start(gzip, IGZIP_ZLIB);
        gzip->stream.next_in = (uint8_t *)bytes;
        gzip->stream.avail_in = (uint32_t)size;
        gzip->stream.end_of_stream = 1;
        gzip->stream.next_out = room;
        gzip->stream.avail_out = (uint32_t)size;
        is = isal_deflate(&gzip->stream) == COMP_OK &&
             gzip->stream.internal_state.state == ZSTATE_END;
        out->size = start + (is ? gzip->stream.total_out : 0);
    }
    free(gzip);
    return is;
}
