#include "jdtool/watch/slice_pipe.h"

#include "jdtool/base/descriptor.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int slice_send(int to, const struct slice_message *message)
{
    int err = descriptor_write(to, message, sizeof *message);
    for (uint32_t i = 0; !err && message->kind == SLICE_PROFILE && i < SLICE_FORMATS_MAX; i++) {
        err = descriptor_write(to, message->slice.bodies[i], message->slice.sizes[i]);
    }
    return err;
}

/* Where the next byte goes, and how many are missing there; 0: the message is complete. */
static size_t missing(struct slice_reader *reader, uint8_t **to)
{
    const struct slice_message *message = &reader->message;
    size_t at = reader->got;
    if (at < sizeof *message) {
        *to = (uint8_t *)&reader->message + at;
        return sizeof *message - at;
    }
    at -= sizeof *message;
    for (uint32_t i = 0; message->kind == SLICE_PROFILE && i < SLICE_FORMATS_MAX; i++) {
        size_t size = message->slice.sizes[i];
        if (at < size) {
            *to = reader->bodies[i] + at;
            return size - at;
        }
        at -= size;
    }
    return 0;
}

/* The message's own part is there. */
static int prepare(struct slice_reader *reader)
{
    const struct slice_message *message = &reader->message;
    if (message->magic != SLICE_MAGIC || message->kind >= SLICE_KINDS) {
        return -EBADMSG;
    }
    for (uint32_t i = 0; message->kind == SLICE_PROFILE && i < SLICE_FORMATS_MAX; i++) {
        size_t size = message->slice.sizes[i];
        if (size > SLICE_BODY_MAX) {
            return -EBADMSG;
        }
        free(reader->bodies[i]);
        reader->bodies[i] = size ? malloc(size) : NULL;
        if (size && !reader->bodies[i]) {
            return -ENOMEM;
        }
    }
    return 0;
}

int slice_read(struct slice_reader *reader, int from)
{
    uint8_t *to;
    size_t wanted;
    while ((wanted = missing(reader, &to)) > 0) {
        ssize_t n = read(from, to, wanted);
        if (n < 0) {
            return errno == EAGAIN || errno == EINTR ? 0 : -errno;
        }
        if (n == 0) {
            return -EPIPE;
        }
        bool had_message = reader->got >= sizeof reader->message;
        reader->got += (size_t)n;
        if (!had_message && reader->got == sizeof reader->message) {
            int err = prepare(reader);
            if (err) {
                return err;
            }
        }
    }
    reader->got = 0;
    return 1;
}

void slice_reader_free(struct slice_reader *reader)
{
    for (uint32_t i = 0; i < SLICE_FORMATS_MAX; i++) {
        free(reader->bodies[i]);
        reader->bodies[i] = NULL;
    }
}

/* ---- Orders ---- */

#define LABEL_BYTES_MAX ((size_t)LABELS_MAX * (LABEL_NAME_MAX + LABEL_VALUE_MAX))

void slice_order_put(struct bytes *bytes, const struct slice_order *order,
                     const struct labels *labels)
{
    struct slice_order its = *order;
    its.magic = SLICE_MAGIC;
    its.label_bytes = 0;
    for (uint32_t i = 0; labels && i < labels->count; i++) {
        its.label_bytes += (uint32_t)(strlen(labels->names[i]) + strlen(labels->values[i]) + 2);
    }
    bytes_put(bytes, &its, sizeof its);
    for (uint32_t i = 0; labels && i < labels->count; i++) {
        bytes_put(bytes, labels->names[i], strlen(labels->names[i]));
        bytes_put(bytes, "=", 1);
        bytes_put(bytes, labels->values[i], strlen(labels->values[i]));
        bytes_put(bytes, "\n", 1);
    }
}

size_t slice_order_take(const uint8_t *bytes, size_t size, struct slice_order *order,
                        struct labels *labels)
{
    if (size < sizeof *order) {
        return 0;
    }
    memcpy(order, bytes, sizeof *order);
    if (size - sizeof *order < order->label_bytes || order->label_bytes > LABEL_BYTES_MAX) {
        return 0;
    }
    const char *at = (const char *)bytes + sizeof *order;
    const char *end = at + order->label_bytes;
    labels->count = 0;
    while (at < end) {
        char name[LABEL_NAME_MAX];
        char value[LABEL_VALUE_MAX];
        const char *line_end = memchr(at, '\n', (size_t)(end - at));
        line_end = line_end ? line_end : end;
        const char *equals = memchr(at, '=', (size_t)(line_end - at));
        if (equals) {
            snprintf(name, sizeof name, "%.*s", (int)(equals - at), at);
            snprintf(value, sizeof value, "%.*s", (int)(line_end - equals - 1), equals + 1);
            labels_set(labels, name, value);
        }
        at = line_end + 1;
    }
    return sizeof *order + order->label_bytes;
}
