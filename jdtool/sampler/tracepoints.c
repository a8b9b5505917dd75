#include "jdtool/sampler/tracepoints.h"

#include "jdtool/base/descriptor.h"

#include "jdtool/perf/perf_data.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

const char *tracefs_path(void)
{
    static const char *const places[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};
    char path[64];
    for (int tries = 0; tries < 2; tries++) {
        for (size_t i = 0; i < 2; i++) {
            snprintf(path, sizeof path, "%s/events", places[i]);
            if (access(path, X_OK) == 0) {
                return places[i];
            }
        }
        if (tries == 0 && mount("tracefs", places[0], "tracefs", 0, NULL) != 0) {
            break;
        }
    }
    return NULL;
}

/* Files of tracefs have no size. Returns the bytes that are added, or a negative errno. */
static ssize_t read_file(struct bytes *to, const char *path)
{
    char part[4096];
    size_t before = to->size;
    ssize_t n = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && (n = read(fd, part, sizeof part)) > 0) {
        bytes_put(to, part, (size_t)n);
    }
    ssize_t result = fd < 0 || n < 0 ? -errno : (ssize_t)(to->size - before);
    descriptor_close(fd);
    return result;
}

int64_t tracepoint_id(const char *group, const char *event)
{
    char path[PATH_MAX];
    const char *place = tracefs_path();
    struct bytes text = {0};
    if (!place) {
        return -ENOENT;
    }
    snprintf(path, sizeof path, "%s/events/%s/%s/id", place, group, event);
    int64_t id = read_file(&text, path);
    bytes_u32(&text, 0);
    if (id >= 0) {
        id = text.failed ? -ENOMEM : strtol((const char *)text.at, NULL, 10);
    }
    bytes_free(&text);
    return id;
}

/* ---- For readers: perf's trace-event-info.c ---- */

/* Its size, and what it holds. */
static void put_file(struct bytes *body, const char *path)
{
    struct bytes file = {0};
    (void)read_file(&file, path);
    bytes_u64(body, file.size);
    bytes_put(body, file.at, file.size);
    body->failed |= file.failed;
    bytes_free(&file);
}

static bool is_of(const struct sampler_event *event, const char *group)
{
    return strcmp(event->group, group) == 0;
}

/* Whether none before it is of its group; or, with `event`, is the same event of it. */
static bool is_first(const struct sampler_event *events, uint32_t at, bool event)
{
    for (uint32_t i = 0; i < at; i++) {
        if (is_of(&events[i], events[at].group) &&
            (!event || strcmp(events[i].event, events[at].event) == 0)) {
            return false;
        }
    }
    return true;
}

/* The events of one group. */
static void put_group(struct bytes *body, const char *place, const struct sampler_event *events,
                      uint32_t count, const char *group)
{
    char path[PATH_MAX];
    uint32_t different = 0;
    for (uint32_t i = 0; i < count; i++) {
        different += is_of(&events[i], group) && is_first(events, i, true);
    }
    bytes_put(body, group, strlen(group) + 1);
    bytes_u32(body, different);
    for (uint32_t i = 0; i < count; i++) {
        if (is_of(&events[i], group) && is_first(events, i, true)) {
            snprintf(path, sizeof path, "%s/events/%s/%s/format", place, group, events[i].event);
            put_file(body, path);
        }
    }
}

static void put_formats(struct bytes *body, const struct sampler_event *events, uint32_t count)
{
    char path[PATH_MAX];
    const char *place = tracefs_path();
    static const char *const heads[] = {"header_page", "header_event"};
    uint32_t groups = 0;
    for (size_t i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/events/%s", place, heads[i]);
        bytes_put(body, heads[i], strlen(heads[i]) + 1);
        put_file(body, path);
    }
    for (uint32_t i = 0; i < count; i++) {
        groups += is_first(events, i, false);
    }
    bytes_u32(body, 0); /* of ftrace's own events */
    bytes_u32(body, groups);
    for (uint32_t i = 0; i < count; i++) {
        if (is_first(events, i, false)) {
            put_group(body, place, events, count, events[i].group);
        }
    }
}

void tracepoints_describe(struct perf_pipe *pipe, const struct sampler_event *events,
                          uint32_t count)
{
    static const char magic[] = "\027\010\104tracing0.6"; /* with its end */
    const uint8_t machine[2] = {__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__, sizeof(long)};
    struct bytes body = {0};
    bytes_put(&body, magic, sizeof magic);
    bytes_put(&body, machine, sizeof machine);
    bytes_u32(&body, (uint32_t)sysconf(_SC_PAGESIZE));
    put_formats(&body, events, count);
    bytes_u32(&body, 0); /* no kernel symbols, */
    bytes_u32(&body, 0); /* no printk formats, */
    bytes_u64(&body, 0); /* no names of threads */
    perf_pipe_feature(pipe, PERF_FEATURE_TRACING_DATA, &body);
}
