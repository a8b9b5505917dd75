#include "jdtool/sampler/perf_pipe.h"

#include "jdtool/base/clock.h"
#include "jdtool/perf/perf_data.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

/* So much leaves together. */
#define GATHERED ((size_t)256 * 1024)

void perf_pipe_free(struct perf_pipe *pipe)
{
    bytes_free(&pipe->gathered);
    for (unsigned i = 0; pipe->features && i < PERF_FEATURE_BITS; i++) {
        bytes_free(&pipe->features[i]);
    }
    free(pipe->features);
    pipe->features = NULL;
    pipe->gone = 0;
}

static void put_at(struct perf_pipe *pipe, const void *bytes, size_t size, size_t offset)
{
    if (!pipe->err) {
        ssize_t n = pwrite(pipe->fd, bytes, size, (off_t)offset);
        pipe->err = n < 0 ? -errno : n < (ssize_t)size ? -EIO : 0;
    }
}

/* Whatever ends us, what is in the file can be read. */
static void tell_size(struct perf_pipe *pipe)
{
    struct perf_section *data = &pipe->head.data;
    if (pipe->written > data->offset + data->size) {
        data->size = pipe->written - data->offset;
        put_at(pipe, &data->size, sizeof data->size,
               offsetof(struct perf_file_header, data) + offsetof(struct perf_section, size));
    }
}

int perf_pipe_flush(struct perf_pipe *pipe)
{
    struct bytes *gathered = &pipe->gathered;
    bool has_room = true;
    while (perf_pipe_waiting(pipe) > 0 && !pipe->err && has_room) {
        ssize_t n = write(pipe->fd, gathered->at + pipe->gone, perf_pipe_waiting(pipe));
        has_room = n >= 0 || errno != EAGAIN;
        pipe->err = n < 0 && has_room && errno != EINTR ? -errno : 0;
        pipe->gone += n > 0 ? (size_t)n : 0;
        pipe->written += n > 0 ? (uint64_t)n : 0;
    }
    if (pipe->is_file) {
        tell_size(pipe);
    }
    if (pipe->err) {
        pipe->gone = gathered->size;
    }
    if (pipe->gone > gathered->size / 2) { /* so that each byte is moved once */
        gathered->size -= pipe->gone;
        memmove(gathered->at, gathered->at + pipe->gone, gathered->size);
        pipe->gone = 0;
    }
    return pipe->err;
}

void perf_pipe_put(struct perf_pipe *pipe, const void *bytes, size_t size)
{
    if (pipe->err) {
        return;
    }
    bytes_put(&pipe->gathered, bytes, size);
    pipe->err = pipe->gathered.failed ? -ENOMEM : 0;
    if (perf_pipe_waiting(pipe) >= GATHERED) {
        (void)perf_pipe_flush(pipe);
    }
}

/* ---- What describes the recording ---- */

static void put_record(struct perf_pipe *pipe, uint32_t type, struct bytes *body)
{
    bytes_align(body, 8);
    struct perf_event_header header = {.type = type};
    if (!body->failed && body->size <= PERF_RECORD_SIZE_MAX - sizeof header) {
        header.size = (uint16_t)(sizeof header + body->size);
        perf_pipe_put(pipe, &header, sizeof header);
        perf_pipe_put(pipe, body->at, body->size);
    } else {
        pipe->err = pipe->err ? pipe->err : -ENOMEM;
    }
    bytes_free(body);
}

/* perf's pipes have it behind its record, and files among the features. */
static void put_tracing_data(struct perf_pipe *pipe, struct bytes *body)
{
    static const uint8_t padding[8];
    struct perf_event_header header = {.type = PERF_USER_TRACING_DATA, .size = sizeof header + 8};
    bytes_put(body, padding, -body->size & 7);
    const uint32_t size[2] = {(uint32_t)body->size, 0};
    if (!body->failed) {
        perf_pipe_put(pipe, &header, sizeof header);
        perf_pipe_put(pipe, size, sizeof size);
        perf_pipe_put(pipe, body->at, body->size);
    }
}

void perf_pipe_feature(struct perf_pipe *pipe, enum perf_feature number, struct bytes *body)
{
    struct bytes record = {0};
    if (pipe->is_file) {
        perf_features_add(&pipe->head, number);
        pipe->features[number] = *body;
        *body = (struct bytes){.failed = body->failed};
    } else if (number == PERF_FEATURE_TRACING_DATA) {
        put_tracing_data(pipe, body);
    } else {
        bytes_u64(&record, number);
        bytes_put(&record, body->at, body->size);
        put_record(pipe, PERF_USER_FEATURE, &record);
    }
    pipe->err = pipe->err || !body->failed ? pipe->err : -ENOMEM;
    bytes_free(body);
}

/* Its size with a NUL, and the text. */
static void put_string(struct bytes *body, const char *text)
{
    bytes_u32(body, (uint32_t)strlen(text) + 1);
    bytes_string(body, text);
}

static void put_text(struct perf_pipe *pipe, enum perf_feature number, const char *text)
{
    struct bytes body = {0};
    put_string(&body, text);
    perf_pipe_feature(pipe, number, &body);
}

static void put_processor(struct perf_pipe *pipe)
{
    static const char key[] = "model name\t: ";
    char line[256];
    FILE *file = fopen("/proc/cpuinfo", "re");
    while (file && fgets(line, sizeof line, file)) {
        if (strncmp(line, key, sizeof key - 1) == 0) {
            line[strcspn(line, "\n")] = '\0';
            put_text(pipe, PERF_FEATURE_CPUDESC, line + sizeof key - 1);
            break;
        }
    }
    if (file) {
        fclose(file);
    }
}

/* The head, the ids and the attributes with where their ids are. */
static void begin_file(struct perf_pipe *pipe, const struct perf_pipe_event *events, uint32_t count)
{
    struct perf_file_header *head = &pipe->head;
    *head = (struct perf_file_header){.magic = PERF_FILE_MAGIC, .size = sizeof *head};
    head->attr_size = sizeof events->attr + sizeof(struct perf_section);
    head->attrs.offset = sizeof *head + count * sizeof events->id;
    head->attrs.size = count * head->attr_size;
    head->data.offset = head->attrs.offset + head->attrs.size;
    perf_pipe_put(pipe, head, sizeof *head);
    for (uint32_t i = 0; i < count; i++) {
        perf_pipe_put(pipe, &events[i].id, sizeof events[i].id);
    }
    for (uint32_t i = 0; i < count; i++) {
        struct perf_section id = {sizeof *head + i * sizeof events->id, sizeof events->id};
        perf_pipe_put(pipe, &events[i].attr, sizeof events[i].attr);
        perf_pipe_put(pipe, &id, sizeof id);
    }
}

static void begin_pipe(struct perf_pipe *pipe, const struct perf_pipe_event *events, uint32_t count)
{
    static const uint64_t head[2] = {PERF_FILE_MAGIC, sizeof head};
    perf_pipe_put(pipe, head, sizeof head);
    for (uint32_t i = 0; i < count; i++) {
        struct bytes body = {0};
        bytes_put(&body, &events[i].attr, sizeof events[i].attr);
        bytes_u64(&body, events[i].id);
        put_record(pipe, PERF_USER_ATTR, &body);
    }
}

void perf_pipe_describe(struct perf_pipe *pipe, const struct perf_pipe_event *events,
                        uint32_t count, char *const *command)
{
    struct stat status;
    struct bytes body = {0};
    pipe->is_file = fstat(pipe->fd, &status) == 0 && S_ISREG(status.st_mode);
    if (pipe->is_file && !(pipe->features = calloc(PERF_FEATURE_BITS, sizeof *pipe->features))) {
        pipe->is_file = false;
        pipe->err = -ENOMEM;
    } else if (pipe->is_file) {
        begin_file(pipe, events, count);
    } else {
        begin_pipe(pipe, events, count);
    }
    bytes_u32(&body, count); /* how many, how large the attributes of each are */
    bytes_u32(&body, sizeof events->attr);
    for (uint32_t i = 0; i < count; i++) {
        bytes_put(&body, &events[i].attr, sizeof events[i].attr);
        bytes_u32(&body, 1);
        put_string(&body, events[i].name);
        bytes_u64(&body, events[i].id);
    }
    perf_pipe_feature(pipe, PERF_FEATURE_EVENT_DESC, &body);

    struct utsname machine;
    if (uname(&machine) == 0) {
        put_text(pipe, PERF_FEATURE_HOSTNAME, machine.nodename);
        put_text(pipe, PERF_FEATURE_OSRELEASE, machine.release);
        put_text(pipe, PERF_FEATURE_ARCH, machine.machine);
    }
    put_processor(pipe);

    bytes_u32(&body, (uint32_t)sysconf(_SC_NPROCESSORS_CONF));
    bytes_u32(&body, (uint32_t)sysconf(_SC_NPROCESSORS_ONLN));
    perf_pipe_feature(pipe, PERF_FEATURE_NRCPUS, &body);

    uint32_t words = 0;
    size_t size = 0;
    while (command[words] && size + strlen(command[words]) < 16384) {
        size += strlen(command[words++]) + sizeof(uint32_t) + 1;
    }
    bytes_u32(&body, words);
    for (uint32_t i = 0; i < words; i++) {
        put_string(&body, command[i]);
    }
    perf_pipe_feature(pipe, PERF_FEATURE_CMDLINE, &body);

    bytes_u32(&body, 1); /* the version */
    bytes_u32(&body, CLOCK_MONOTONIC);
    bytes_u64(&body, clock_ns(CLOCK_REALTIME));
    bytes_u64(&body, clock_ns(CLOCK_MONOTONIC));
    perf_pipe_feature(pipe, PERF_FEATURE_CLOCK_DATA, &body);
}

static void end_file(struct perf_pipe *pipe)
{
    struct bytes end = {0};
    perf_features_put(&pipe->head, pipe->features, pipe->written, &end);
    perf_pipe_put(pipe, end.at, end.size);
    pipe->err = pipe->err || !end.failed ? pipe->err : -ENOMEM;
    bytes_free(&end);
    (void)perf_pipe_flush(pipe);
    put_at(pipe, &pipe->head, sizeof pipe->head, 0);
}

int perf_pipe_finish(struct perf_pipe *pipe)
{
    int err = perf_pipe_flush(pipe);
    if (pipe->is_file && !err) {
        pipe->is_file = false; /* what comes are no records */
        end_file(pipe);
    }
    return pipe->err;
}

void perf_pipe_round(struct perf_pipe *pipe)
{
    static const struct perf_event_header round = {.type = PERF_USER_FINISHED_ROUND,
                                                   .size = sizeof round};
    perf_pipe_put(pipe, &round, sizeof round);
}
