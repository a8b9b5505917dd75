/* What the JVM itself did, for scripts: each mark, in the order of their beginnings. */
#include "jdtool/base/json_writer.h"
#include "jdtool/exports/export.h"
#include "jdtool/profile/timeline_rows.h"

#include <stdlib.h>

static void put_mark(struct json_writer *json, const struct profile *profile,
                     const struct profile_mark *mark)
{
    const struct profile_thread *thread = &profile->threads[mark->thread];
    json_object(json, NULL);
    json_uint(json, "time", mark->from);
    if (mark->until > mark->from || mark->kind <= MARK_COMPILE || mark->kind == MARK_PARK) {
        json_uint(json, "duration", mark->until - mark->from);
    }
    if (mark->is_open) {
        json_bool(json, "open", true);
    }
    json_uint(json, "pid", thread->pid);
    json_uint(json, "tid", thread->tid);
    json_text(json, "thread", thread->comm);
    switch (mark->kind) {
    case MARK_SAFEPOINT:
        json_text(json, "operation", mark->text);
        json_uint(json, "until_all_stood", mark->number);
        break;
    case MARK_OPERATION:
        json_text(json, "operation", mark->text);
        json_bool(json, "concurrent", mark->number != 0);
        break;
    case MARK_GC:
        json_bool(json, "full", mark->number != 0);
        break;
    case MARK_COMPILE:
        json_text(json, "compiler", mark->text);
        json_text(json, "method", mark->subject);
        json_bool(json, "failed", mark->number != 0);
        break;
    case MARK_DEOPT:
        json_text(json, "reason", mark->text);
        json_text(json, "method", mark->subject);
        break;
    case MARK_THREAD_START:
    case MARK_THREAD_STOP:
        json_text(json, "name", mark->text);
        json_uint(json, "java_id", mark->number);
        break;
    case MARK_CODE_CACHE:
        json_uint(json, "bytes", mark->number);
        break;
    case MARK_JFR:
        json_text(json, "event", mark->text);
        json_text(json, "fields", mark->subject);
        break;
    default:
        break;
    }
    json_end(json);
}

static int put_kind(struct json_writer *json, const struct profile *profile, enum mark_kind kind)
{
    const struct profile_mark **list;
    uint32_t count;
    int err = timeline_marks_of(profile, kind, &list, &count);
    if (err) {
        return err;
    }
    json_array(json, mark_kind_name(kind));
    for (uint32_t i = 0; i < count; i++) {
        put_mark(json, profile, list[i]);
    }
    json_end(json);
    free((void *)list);
    return 0;
}

static int write_json(const struct profile *profile, const struct export_settings *settings,
                      struct packed_output *output)
{
    (void)settings;
    struct json_writer json;
    int err = 0;
    json_start(&json, output);
    json_object(&json, NULL);
    json_uint(&json, "from", profile->from);
    json_uint(&json, "until", profile->until);
    if (profile->recording->has_wall) {
        json_int(&json, "wall_offset", profile->recording->wall_offset);
    }
    for (int kind = 0; kind < MARK_KINDS && !err; kind++) {
        err = put_kind(&json, profile, (enum mark_kind)kind);
    }
    json_end(&json);
    packed_output_text(output, "\n");
    return err;
}

extern const struct export_format format_timeline_json;
const struct export_format format_timeline_json = {
    .name = "timeline-json",
    .about = "what jdperf timeline --json prints",
    .keeps_times = true,
    .of_marks = true,
    .write = write_json,
};
