#include "jdtool/sampler/perf_pipe.h"

#include "jdtool/base/clock.h"
#include "jdtool/perf/perf_data.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

/* So much leaves together. */
#define GATHERED ((size_t)256 * 1024)

void perf_pipe_free(struct perf_pipe *pipe)
{
    bytes_free(&pipe->gathered);
    pipe->gone = 0;
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

static struct bytes feature(enum perf_feature number)
{
    struct bytes body = {0};
    bytes_u64(&body, number);
    return body;
}

/* Its size with a NUL, and the text. */
static void put_string(struct bytes *body, const char *text)
{
    bytes_u32(body, (uint32_t)strlen(text) + 1);
    bytes_string(body, text);
}

static void put_text(struct perf_pipe *pipe, enum perf_feature number, const char *text)
{
    struct bytes body = feature(number);
    put_string(&body, text);
    put_record(pipe, PERF_USER_FEATURE, &body);
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

void perf_pipe_describe(struct perf_pipe *pipe, const struct perf_pipe_event *events,
                        uint32_t count, char *const *command)
{
    static const uint64_t head[2] = {UINT64_C(0x32454c4946524550), sizeof head}; /* "PERFILE2" */
    perf_pipe_put(pipe, head, sizeof head);

    struct bytes body;
    for (uint32_t i = 0; i < count; i++) {
        body = (struct bytes){0};
        bytes_put(&body, &events[i].attr, sizeof events[i].attr);
        bytes_u64(&body, events[i].id);
        put_record(pipe, PERF_USER_ATTR, &body);
    }
    body = feature(PERF_FEATURE_EVENT_DESC); /* how many, how large the attributes of each are */
    bytes_u32(&body, count);
    bytes_u32(&body, sizeof events->attr);
    for (uint32_t i = 0; i < count; i++) {
        bytes_put(&body, &events[i].attr, sizeof events[i].attr);
        bytes_u32(&body, 1);
        put_string(&body, events[i].name);
        bytes_u64(&body, events[i].id);
    }
    put_record(pipe, PERF_USER_FEATURE, &body);

    struct utsname machine;
    if (uname(&machine) == 0) {
        put_text(pipe, PERF_FEATURE_HOSTNAME, machine.nodename);
        put_text(pipe, PERF_FEATURE_OSRELEASE, machine.release);
        put_text(pipe, PERF_FEATURE_ARCH, machine.machine);
    }
    put_processor(pipe);

    body = feature(PERF_FEATURE_NRCPUS);
    bytes_u32(&body, (uint32_t)sysconf(_SC_NPROCESSORS_CONF));
    bytes_u32(&body, (uint32_t)sysconf(_SC_NPROCESSORS_ONLN));
    put_record(pipe, PERF_USER_FEATURE, &body);

    uint32_t words = 0;
    size_t size = 0;
    while (command[words] && size + strlen(command[words]) < 16384) {
        size += strlen(command[words++]) + sizeof(uint32_t) + 1;
    }
    body = feature(PERF_FEATURE_CMDLINE);
    bytes_u32(&body, words);
    for (uint32_t i = 0; i < words; i++) {
        put_string(&body, command[i]);
    }
    put_record(pipe, PERF_USER_FEATURE, &body);

    body = feature(PERF_FEATURE_CLOCK_DATA); /* version 1 */
    bytes_u32(&body, 1);
    bytes_u32(&body, CLOCK_MONOTONIC);
    bytes_u64(&body, clock_ns(CLOCK_REALTIME));
    bytes_u64(&body, clock_ns(CLOCK_MONOTONIC));
    put_record(pipe, PERF_USER_FEATURE, &body);
}

void perf_pipe_round(struct perf_pipe *pipe)
{
    static const struct perf_event_header round = {.type = PERF_USER_FINISHED_ROUND,
                                                   .size = sizeof round};
    perf_pipe_put(pipe, &round, sizeof round);
}
