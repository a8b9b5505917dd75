/* What the JVM itself does, as marks for the sinks. */
#include "jdtool/pipeline/stream_private.h"

#include "jdtool/base/message.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* How often in a recording with a timeline it is looked how full the code cache is: each look goes
 * through all pieces of code, and of all together through so many. */
#define CODE_CACHE_LOOKS  100
#define CODE_CACHE_PIECES 4000000

static int give_mark(void *context, uint32_t pid, uint32_t tid, const struct resolved_mark *mark)
{
    const struct stream *stream = context;
    struct resolved_thread thread;
    int err = resolver_thread(stream->resolver, pid, tid, mark->until, &thread);
    struct resolved_mark given = *mark;
    given.thread = &thread;
    for (uint32_t i = 0; i < stream->sink_count && !err; i++) {
        struct sample_sink *sink = stream->sinks[i];
        err = sink->ops->mark ? sink->ops->mark(sink, &given) : 0;
    }
    return err;
}

/* "pkg.Cls.m(int):12" of what the stack of a deoptimisation begins with, behind its reason. */
int stream_give_deopt(struct stream *stream, const struct resolved_sample *sample)
{
    char reason[64] = "";
    char method[1024] = "";
    struct resolved_mark mark = {
        .kind = MARK_DEOPT, .from = sample->time, .until = sample->time, .text = reason};
    struct resolved_frame frames[2];
    uint32_t count = stack_table_lines(sample->stacks, sample->node, frames, 2);
    if (count > 0 && frames[0].kind == RESOLVED_SUBJECT) {
        const char *name = frames[0].method->name; /* in brackets */
        snprintf(reason, sizeof reason, "%.*s", (int)strcspn(name + 1, "]"), name + 1);
    }
    if (count > 1 && frames[1].method) {
        int size = snprintf(method, sizeof method, "%s", frames[1].method->name);
        if (frames[1].line && size < (int)sizeof method) {
            snprintf(method + size, sizeof method - (size_t)size, ":%" PRIu32, frames[1].line);
        }
        mark.subject = method;
    }
    return give_mark(stream, sample->thread.pid, sample->thread.tid, &mark);
}

int stream_take_timeline(struct stream *stream, const struct perf_sample *sample)
{
    const struct mark_taker taker = {give_mark, stream};
    int err = marks_add(stream->marks, sample, &taker);
    return err == -ENOMEM ? stream_no_memory(stream) : err;
}

struct look {
    struct stream *stream;
    uint64_t time;
};

static int give_code_bytes(void *context, uint32_t pid, uint64_t bytes)
{
    const struct look *look = context;
    struct resolved_mark mark = {
        .kind = MARK_CODE_CACHE, .from = look->time, .until = look->time, .number = bytes};
    return give_mark(look->stream, pid, pid, &mark);
}

/* The dumps tell how much code there was at any time, once they are read. */
static int look_into_code_caches(struct stream *stream)
{
    const struct recording *recording = &stream->facts.recording;
    uint64_t span = recording->until > recording->from ? recording->until - recording->from : 0;
    uint64_t pieces = resolver_code_count(stream->resolver) + 1;
    uint64_t looks = CODE_CACHE_PIECES / pieces + 2;
    int err = 0;
    looks = looks < CODE_CACHE_LOOKS ? looks : CODE_CACHE_LOOKS;
    for (uint64_t i = 0; i <= looks && span && !err; i++) {
        struct look look = {stream, recording->from + span / looks * i};
        err = resolver_code_bytes(stream->resolver, look.time, give_code_bytes, &look);
    }
    return err;
}

/* What had begun before the recording is not told, as of probes. */
static int give_logged(void *context, uint32_t pid, uint32_t tid, const struct resolved_mark *mark)
{
    struct stream *stream = context;
    if (mark->from < stream->facts.recording.from) {
        return 0;
    }
    stream->has_timeline = true;
    return give_mark(stream, pid, tid, mark);
}

int stream_end_timeline(struct stream *stream)
{
    const struct mark_taker taker = {give_mark, stream};
    int err = marks_end(stream->marks, stream->time, &taker);
    stream->facts.recording.counts.marks_lost = marks_lost(stream->marks);
    if (!err && !stream->has_timeline) { /* or each thing would be told twice */
        err = resolver_logs(stream->resolver, give_logged, stream);
    }
    return err || !stream->has_timeline ? err : look_into_code_caches(stream);
}
