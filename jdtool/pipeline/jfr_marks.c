#include "jdtool/pipeline/jfr_marks.h"

#include "jdtool/base/array.h"
#include "jdtool/base/hash_map.h"
#include "jdtool/base/message.h"
#include "jdtool/events/jfr_events.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A thread that has had samples, under its last name. */
struct known_thread {
    uint32_t pid, tid;
    char *name, *process_name;
};

struct jfr_marks {
    struct sample_sink sink;
    struct sample_sink *behind;
    const struct jfr_files *files;
    const struct recording *recording;
    struct known_thread *threads;
    uint32_t count, room;
    struct hash_map by_tid;
    uint64_t outside; /* events before or behind the samples */
    uint64_t given;
};

static int no_memory(void)
{
    return failed_to(-ENOMEM, "join recordings of JVMs");
}

/* ---- Threads ---- */

static struct known_thread *find_thread(const struct jfr_marks *marks, uint32_t pid, uint32_t tid)
{
    uint32_t id;
    HASH_MAP_FIND(id, &marks->by_tid, tid,
                  marks->threads[id].tid == tid && (!pid || marks->threads[id].pid == pid));
    return id == HASH_MAP_NONE ? NULL : &marks->threads[id];
}

static int rename_thread(char **name, const char *now)
{
    if (*name && strcmp(*name, now) == 0) {
        return 0;
    }
    char *copy = strdup(now);
    free(*name);
    *name = copy;
    return copy ? 0 : no_memory();
}

static int note_thread(struct jfr_marks *marks, const struct resolved_thread *thread)
{
    struct known_thread *known = find_thread(marks, thread->pid, thread->tid);
    if (!known) {
        if (ARRAY_RESERVE(marks->threads, marks->count, marks->room) ||
            hash_map_add(&marks->by_tid, thread->tid, marks->count)) {
            return no_memory();
        }
        known = &marks->threads[marks->count++];
        *known = (struct known_thread){.pid = thread->pid, .tid = thread->tid};
    }
    int err = rename_thread(&known->name, thread->comm);
    return err ? err : rename_thread(&known->process_name, thread->process_name);
}

/* ---- Events ---- */

/* The JVM as we number it: where it is the only one, it is that, whatever it is called inside of a
 * container. 0: it is none of ours. */
static uint32_t find_jvm(const struct jfr_marks *marks, uint32_t pid)
{
    uint32_t only = 0;
    bool several = false;
    for (uint32_t i = 0; i < marks->count; i++) {
        uint32_t its = marks->threads[i].pid;
        several |= only && its != only;
        only = its;
        if (its == pid) {
            return pid;
        }
    }
    for (uint32_t i = 0; i < marks->recording->jvm_count; i++) {
        if (marks->recording->jvms[i]->pid == pid) {
            return pid;
        }
    }
    return several ? 0 : only;
}

static int take_event(void *context, uint32_t pid, uint32_t tid, const struct resolved_mark *event)
{
    struct jfr_marks *marks = context;
    const struct recording *recording = marks->recording;
    uint64_t offset = (uint64_t)recording->wall_offset;
    uint32_t jvm = find_jvm(marks, pid);
    struct resolved_mark mark = *event;
    mark.from -= offset;
    mark.until -= offset;
    if (!jvm || mark.until < recording->from || mark.from > recording->until) {
        marks->outside++;
        return 0;
    }
    const struct known_thread *known = find_thread(marks, jvm, tid);
    const struct resolved_thread thread = {.pid = jvm,
                                           .tid = tid ? tid : jvm,
                                           .comm = known ? known->name : "",
                                           .process_name = known ? known->process_name : "",
                                           .is_jvm = true};
    mark.thread = &thread;
    marks->given++;
    return marks->behind->ops->mark ? marks->behind->ops->mark(marks->behind, &mark) : 0;
}

/* What cannot be read is told, and costs its own marks alone. */
static int read_files(struct jfr_marks *marks)
{
    if (!marks->recording->has_wall) {
        warning_message(
            "the recording does not contain its time of day: events of .jfr files are left out");
        return 0;
    }
    for (uint32_t i = 0; i < marks->files->count; i++) {
        marks->given = marks->outside = 0;
        int err = jfr_file_read(marks->files->list[i], take_event, marks);
        if (err == -ENOMEM) {
            return err;
        }
        if (!err && marks->given == 0) {
            warning_message("%s has no events of the recorded JVMs and time (%" PRIu64
                            " of others)",
                            marks->files->list[i], marks->outside);
        }
    }
    return 0;
}

/* ---- As a sample sink ---- */

static int begin(struct sample_sink *base, const struct recording *recording)
{
    struct jfr_marks *marks = (struct jfr_marks *)base;
    marks->recording = recording;
    return marks->behind->ops->begin(marks->behind, recording);
}

static int pass_sample(struct sample_sink *base, const struct resolved_sample *sample)
{
    struct jfr_marks *marks = (struct jfr_marks *)base;
    int err = note_thread(marks, &sample->thread);
    return err ? err : marks->behind->ops->sample(marks->behind, sample);
}

static int pass_mark(struct sample_sink *base, const struct resolved_mark *mark)
{
    struct sample_sink *behind = ((struct jfr_marks *)base)->behind;
    return behind->ops->mark ? behind->ops->mark(behind, mark) : 0;
}

static void release(struct jfr_marks *marks)
{
    for (uint32_t i = 0; i < marks->count; i++) {
        free(marks->threads[i].name);
        free(marks->threads[i].process_name);
    }
    free(marks->threads);
    hash_map_free(&marks->by_tid);
    free(marks);
}

static void give_up(struct sample_sink *base)
{
    struct jfr_marks *marks = (struct jfr_marks *)base;
    marks->behind->ops->abort(marks->behind);
    release(marks);
}

static int end(struct sample_sink *base)
{
    struct jfr_marks *marks = (struct jfr_marks *)base;
    int err = read_files(marks);
    if (err) {
        give_up(base);
        return err;
    }
    err = marks->behind->ops->end(marks->behind);
    release(marks);
    return err;
}

int jfr_marks_new(const struct jfr_files *files, struct sample_sink *behind,
                  struct sample_sink **out)
{
    static const struct sample_sink_ops ops = {
        .begin = begin, .sample = pass_sample, .mark = pass_mark, .end = end, .abort = give_up};
    struct jfr_marks *marks = calloc(1, sizeof *marks);
    if (!marks) {
        behind->ops->abort(behind);
        return no_memory();
    }
    marks->sink = (struct sample_sink){.ops = &ops, .reads_code = behind->reads_code};
    marks->behind = behind;
    marks->files = files;
    *out = &marks->sink;
    return 0;
}

static int take_file(const struct verb *verb, void *context, const char *path)
{
    struct jfr_files *files = context;
    if (files->count == JFR_FILES_MAX) {
        return wrong_usage(verb, "--jfr can be given %d times", JFR_FILES_MAX);
    }
    files->list[files->count++] = path;
    return STATUS_DONE;
}

const struct verb_option jfr_files_options[] = {OPTION_TAKE("jfr", 0, take_file), OPTION_END};
