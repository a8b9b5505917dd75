#include "jdtool/watch/slice_pipe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int send_all(int to, const void *bytes, size_t size)
{
    const uint8_t *at = bytes;
    while (size > 0) {
        ssize_t n = write(to, at, size);
        if (n < 0 && errno != EINTR) {
            return -errno;
        }
        if (n > 0) {
            at += n;
            size -= (size_t)n;
        }
    }
    return 0;
}

int slice_send(int to, const struct slice_message *message, const struct labels *labels)
{
    int err = send_all(to, message, sizeof *message);
    if (!err && message->kind == SLICE_LABELS) {
        err = send_all(to, labels, sizeof *labels);
    }
    for (uint32_t i = 0; !err && message->kind == SLICE_PROFILE && i < SLICE_FORMATS_MAX; i++) {
        err = send_all(to, message->slice.bodies[i], message->slice.sizes[i]);
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
    if (message->kind == SLICE_LABELS) {
        *to = (uint8_t *)&reader->labels + at;
        return sizeof reader->labels - at;
    }
    for (uint32_t i = 0; i < SLICE_FORMATS_MAX; i++) {
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
    if (message->magic != SLICE_MAGIC || message->kind > SLICE_PROFILE) {
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

/* The texts are the other program's memory no longer. */
static int check_labels(struct labels *labels)
{
    if (labels->count > LABELS_MAX) {
        return -EBADMSG;
    }
    for (uint32_t i = 0; i < labels->count; i++) {
        labels->names[i][LABEL_NAME_MAX - 1] = '\0';
        labels->values[i][LABEL_VALUE_MAX - 1] = '\0';
        labels->list[i] = (struct export_label){labels->names[i], labels->values[i]};
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
    int err = reader->message.kind == SLICE_LABELS ? check_labels(&reader->labels) : 0;
    return err ? err : 1;
}

void slice_reader_free(struct slice_reader *reader)
{
    for (uint32_t i = 0; i < SLICE_FORMATS_MAX; i++) {
        free(reader->bodies[i]);
        reader->bodies[i] = NULL;
    }
}
