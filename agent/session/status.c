#include "agent/session/status.h"

#include "writer/message.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Memory that lines are appended to. */
struct report {
    char text[(OCCUPANCY_SINKS_MAX + 1) * (PATH_MAX + 256)];
    size_t length;
};

/* What snprintf wrote, or would have written, becomes part of the text. */
static void added(struct report *report, int n)
{
    size_t room = sizeof(report->text) - report->length;
    if (n > 0) {
        report->length += (size_t)n < room ? (size_t)n : room - 1;
    }
}

#define ADD_LINE(report, ...)                                                                      \
    added(report, snprintf((report)->text + (report)->length,                                      \
                           sizeof((report)->text) - (report)->length, __VA_ARGS__))

static void describe(struct report *report, const struct session *session)
{
    if (!session) {
        ADD_LINE(report, "state=stopped\n");
        return;
    }
    for (unsigned i = 0; i < session->sinks.count; i++) {
        struct sink_stats stats;
        occupancy_stats(session->sinks.occupancy, i, &stats);
        ADD_LINE(report,
                 "state=%s mode=%s seconds=%lld records=%" PRIu64 " bytes=%" PRIu64
                 " dropped=%" PRIu64 " segments=%" PRIu64 " file=%s\n",
                 stats.failed   ? "failed"
                 : stats.paused ? "paused"
                                : "running",
                 session->sinks.names[i], (long long)(time(NULL) - session->started), stats.records,
                 stats.bytes, stats.dropped, stats.segments, stats.path ? stats.path : "-");
    }
    if (session->options.lease[0]) {
        ADD_LINE(report, "lease=%s\n", session->options.lease);
    }
}

/* The same lines in a file of their own, for a script that cannot read the JVM's stderr. */
static int write_report(const struct report *report, const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    ssize_t written = fd < 0 ? -1 : write(fd, report->text, report->length);
    int error = errno;
    if (fd >= 0 && close(fd) != 0 && written >= 0) {
        error = errno;
        written = -1;
    }
    if (written != (ssize_t)report->length) {
        message(MESSAGE_ERROR, "failed to write the status to %s: %s", path,
                written < 0 ? strerror(error) : "no space left");
        return written < 0 ? -error : -ENOSPC;
    }
    return 0;
}

int status_tell(const struct session *session, const char *path)
{
    struct report *report = calloc(1, sizeof(*report));
    if (!report) {
        message(MESSAGE_ERROR, "failed to report the status: no memory");
        return -ENOMEM;
    }
    describe(report, session);
    int result = 0;
    if (path[0]) {
        result = write_report(report, path);
    } else {
        char *rest = report->text;
        for (char *line = strsep(&rest, "\n"); line && *line; line = strsep(&rest, "\n")) {
            message(MESSAGE_ERROR, "status: %s", line); /* asked for, so at any level */
        }
    }
    free(report);
    return result;
}
