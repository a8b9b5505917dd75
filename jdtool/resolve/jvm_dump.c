/* One dump of a process: opened, followed through its segments and as it grows, asked. */
#include "jdtool/base/clock.h"
#include "jdtool/base/descriptor.h"
#include "jdtool/base/message.h"
#include "jdtool/resolve/code_blobs.h"
#include "jdtool/resolve/dumps_private.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- Clocks ---- */

/* Can the dump's stamps be compared with the recording's? Sets up the conversion, if one is due. */
static const char *clock_fault(const struct dumps *dumps, struct jvm_dump *dump)
{
    const struct perf_event_attr *attr = &perf_data_event(dumps->data, 0)->attr;
    if (!perf_data_has(dumps->data, PERF_SAMPLE_TIME)) {
        return "the recording has no time stamps; record with 'perf record -T -k mono'";
    }
    if (!(code_index_header(dump->about.index)->flags & JITDUMP_FLAGS_ARCH_TIMESTAMP)) {
        return attr->use_clockid && attr->clockid == CLOCK_MONOTONIC
                   ? NULL
                   : "the recording's clock is not the dump's; record with 'perf record -k mono'";
    }
    if (attr->use_clockid) {
        return "the dump has the processor's time stamps; record without -k, or run the agent "
               "with clock=monotonic";
    }
    if (!dumps->conversion.known) {
        return "the dump has the processor's time stamps and the recording does not say how to "
               "convert them; run the agent with clock=monotonic and record with "
               "'perf record -k mono'";
    }
    dump->conversion = dumps->conversion;
    return NULL;
}

uint64_t jvm_dump_recording_time(const struct jvm_dump *dump, uint64_t dump_time)
{
    const struct time_conversion *c = &dump->conversion;
    if (!c->known || dump_time == UINT64_MAX) {
        return dump_time;
    }
    uint64_t whole = dump_time >> c->shift;
    uint64_t rest = dump_time & ((UINT64_C(1) << c->shift) - 1);
    return c->zero + whole * c->mult + ((rest * c->mult) >> c->shift);
}

uint64_t jvm_dump_time(const struct jvm_dump *dump, uint64_t recording_time)
{
    const struct time_conversion *c = &dump->conversion;
    if (!c->known) {
        return recording_time;
    }
    /* The counter's zero can lie before that of the recording's clock: `zero` is then negative. */
    uint64_t time = recording_time - c->zero;
    if (time > INT64_MAX) {
        return 0;
    }
    return ((time / c->mult) << c->shift) + ((time % c->mult) << c->shift) / c->mult;
}

/*
 * Names of dumps repeat (pids do, in containers always), so one of an earlier run may lie where
 * this JVM's is looked for. Its names would be wrong ones. All that it tells of happened before
 * this process began to run its program, or well before it mapped its dump.
 */
static bool is_of_earlier_run(const struct jvm_dump *dump, const struct process *process)
{
    uint64_t last = code_index_last_stamp(dump->about.index);
    if (last == 0) { /* nothing in it, or its writer has no clock */
        return false;
    }
    uint64_t time = jvm_dump_recording_time(dump, last);
    uint64_t from = dump->about.from;
    return time < process->from || (from > MAPS_WITHIN && time < from - MAPS_WITHIN);
}

/* ---- Opening ---- */

static uint64_t recording_time(const void *dump, uint64_t stamp)
{
    return jvm_dump_recording_time(dump, stamp);
}

static const char segment_word[] = "/segment-";

/* The number of the segment that a path leads to, 0: none. *parent: bytes before its directory. */
static uint64_t segment_of(const char *path, size_t *parent)
{
    size_t end = (size_t)(basename(path) - path);
    if (end < 1) {
        return 0;
    }
    size_t start = end - 1;
    while (start > 0 && path[start - 1] != '/') {
        start--;
    }
    if (start < 1 || strncmp(path + start - 1, segment_word, sizeof segment_word - 1) != 0) {
        return 0;
    }
    char *behind;
    uint64_t number = strtoull(path + start - 1 + sizeof segment_word - 1, &behind, 10);
    *parent = start - 1;
    return *behind == '/' ? number : 0;
}

/* The path of a file that stands beside the dump, to be freed; NULL: no memory. */
static char *beside_dump(const struct jvm_dump *dump, const char *extension)
{
    static const char suffix[] = ".dump";
    size_t stem = strlen(dump->path);
    if (stem > sizeof suffix - 1 && strcmp(dump->path + stem - (sizeof suffix - 1), suffix) == 0) {
        stem -= sizeof suffix - 1;
    }
    char *path;
    return asprintf(&path, "%.*s.%s", (int)stem, dump->path, extension) < 0 ? NULL : path;
}

/* The table of methods stands beside the dump. Without it interpreted frames have no names. */
static void open_names(struct jvm_dump *dump, bool live)
{
    if (!dump->names_path) {
        dump->names_path = beside_dump(dump, "methods");
        if (!dump->names_path) {
            return;
        }
    }
    int err = live ? method_names_follow(dump->names_path, -1, recording_time, dump, &dump->names)
                   : method_names_open(dump->names_path, recording_time, dump, &dump->names);
    if (err) {
        dump->names = NULL;
    }
    dump->about.names = dump->names;
    if (err && err != -ENOENT) { /* told once */
        free(dump->names_path);
        dump->names_path = NULL;
    }
}

/* The same of the journal of threads, which is of all segments and stands beside their directories.
 */
static char *journal_path(const struct jvm_dump *dump)
{
    size_t parent;
    if (!segment_of(dump->path, &parent)) {
        return beside_dump(dump, "threads");
    }
    const char *name = basename(dump->path);
    const char *dot = strrchr(name, '.');
    char *path;
    int stem = dot ? (int)(dot - name) : (int)strlen(name);
    return asprintf(&path, "%.*s/%.*s.threads", (int)parent, dump->path, stem, name) < 0 ? NULL
                                                                                         : path;
}

/* Where one was asked for. */
static void open_journal(struct jvm_dump *dump, bool live)
{
    if (!dump->journal_path) {
        dump->journal_path = journal_path(dump);
        if (!dump->journal_path) {
            return;
        }
    }
    int err = thread_journal_open(dump->journal_path, !live, &dump->journal);
    const char *fault = NULL;
    if (!err &&
        thread_journal_has_arch_stamps(dump->journal) !=
            (bool)(code_index_header(dump->about.index)->flags & JITDUMP_FLAGS_ARCH_TIMESTAMP)) {
        fault = "it has another clock than its dump";
    } else if (!err && thread_journal_pid(dump->journal) != dump->about.pid) {
        if (dump->conversion.known) { /* inner_threads.h compares with the system's own clock */
            fault = "its JVM is in a container and has the processor's time stamps; run the agent "
                    "with clock=monotonic";
        } else {
            inner_threads_init(&dump->inner, dump->about.pid, thread_journal_pid(dump->journal));
        }
    }
    if (fault) {
        warning_message("cannot use %s: %s", dump->journal_path, fault);
        thread_journal_close(dump->journal);
        dump->journal = NULL;
    }
    if (fault || (err && err != -ENOENT)) { /* told once */
        free(dump->journal_path);
        dump->journal_path = NULL;
    }
}

/* So may the JVM's own log, which is read at the end. Its stamps are of the system's clock. */
static void open_log(struct jvm_dump *dump)
{
    char *path = dump->log || dump->conversion.known ? NULL : beside_dump(dump, "log");
    struct stat status;
    int fd = path ? open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) : -1;
    if (fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) {
        dump->log = fdopen(fd, "r");
    }
    if (fd >= 0 && !dump->log) {
        (void)close(fd);
    }
    free(path);
}

/* Code has come to a place in this generation. Of what was moved the earlier place is not told. */
static void note_stay(struct jvm_dump *dump, const struct code_stay *stay)
{
    uint64_t first = stay->address >> STRETCH_SHIFT;
    uint64_t last = (stay->address + stay->size) >> STRETCH_SHIFT; /* that end may be a pc, too */
    bool is_moved = stay->blob < dump->bounded_blobs;
    dump->bounded_blobs = is_moved ? dump->bounded_blobs : stay->blob + 1;
    if (is_moved || last - first >= STRETCHES) {
        dump->all_came = dump->generation;
        return;
    }
    for (uint64_t at = first; at <= last; at++) {
        dump->came[at & (STRETCHES - 1)] = dump->generation;
    }
}

static void grow_bounds(struct jvm_dump *dump)
{
    uint32_t count = code_index_stay_count(dump->about.index);
    for (; dump->bounded < count; dump->bounded++) {
        const struct code_stay *stay = code_index_stay(dump->about.index, dump->bounded);
        uint64_t end = stay->address + stay->size;
        dump->code_start = stay->address < dump->code_start ? stay->address : dump->code_start;
        dump->code_end = end > dump->code_end ? end : dump->code_end;
        note_stay(dump, stay);
    }
}

/* The dump has grown, or what processes have that have an earlier one. */
static void begin_generation(struct jvm_dump *dump, bool names)
{
    dump->generation++;
    if (names) {
        dump->names_came = dump->generation;
    }
    grow_bounds(dump);
    for (struct jvm_dump *earlier = dump->earlier; earlier; earlier = earlier->earlier) {
        earlier->all_came = earlier->names_came = ++earlier->generation;
    }
}

static void refuse(struct jvm_dump *dump, const char *problem)
{
    warning_message("cannot use %s: %s", dump->about.dump, problem);
    dump->about.problem = problem;
    code_index_close(dump->about.index);
    dump->about.index = NULL;
    dump->may_grow = false;
}

/* ---- Segments ---- */

bool jvm_dump_is_segment_of(const char *path, const char *other)
{
    size_t parent = 0;
    size_t others = 0;
    return segment_of(path, &parent) && segment_of(other, &others) && parent == others &&
           strncmp(path, other, parent) == 0 && strcmp(basename(path), basename(other)) == 0;
}

/* The path of a segment of this dump's, of its table of methods, where `table`. */
static bool segment_path(const struct jvm_dump *dump, uint64_t number, bool table,
                         char out[PATH_MAX])
{
    size_t parent = 0;
    const char *name = basename(dump->path);
    int stem = (int)(strrchr(name, '.') - name);
    (void)segment_of(dump->path, &parent);
    int n = snprintf(out, PATH_MAX, "%.*s%s%06llu/%.*s.%s", (int)parent, dump->path, segment_word,
                     (unsigned long long)number, stem, name, table ? "methods" : "dump");
    return n >= 0 && n < PATH_MAX;
}

/* Some numbers may be somebody else's, or gone. */
#define SEGMENTS_AHEAD 16

/* Reads what follows: the next segment is there before the writer closes the last. 1: some was
 * there; 0; or a negative errno after a message. */
static int follow_segments(struct jvm_dump *dump, bool is_all)
{
    char path[PATH_MAX];
    int grown = 0;
    uint64_t ahead = 1;
    while (dump->segment && ahead <= SEGMENTS_AHEAD &&
           (is_all || code_index_is_closed(dump->about.index))) {
        uint64_t number = dump->segment + ahead++;
        int err = segment_path(dump, number, false, path)
                      ? code_index_continue(dump->about.index, path, is_all)
                      : 0;
        if (err == 0) {
            continue;
        }
        if (err > 0 && dump->names && segment_path(dump, number, true, path)) {
            err = method_names_update(dump->names, is_all);
            uint64_t until =
                jvm_dump_recording_time(dump, code_index_last_stamp(dump->about.index));
            err = err < 0 ? err : method_names_continue(dump->names, path, until, is_all);
        }
        if (err < 0) {
            return err;
        }
        dump->segment = number;
        ahead = 1;
        grown = 1;
    }
    return grown;
}

uint64_t jvm_dump_segment(const char *path)
{
    size_t parent;
    return segment_of(path, &parent);
}

/* What is known of by then was read before, as a rule. */
int jvm_dump_map_segment(struct jvm_dump *dump, const char *path)
{
    uint64_t number = jvm_dump_segment(path);
    if (number <= dump->segment) {
        return 0;
    }
    dump->segment = number - 1; /* those between are gone */
    int grown = follow_segments(dump, true);
    if (grown > 0) {
        begin_generation(dump, true);
    }
    return grown < 0 ? grown : 0;
}

int jvm_dump_add_module(struct dumps *dumps, struct jvm_dump *dump)
{
    char text[64];
    snprintf(text, sizeof text, dump->about.number ? "[java %u-%u]" : "[java %u]", dump->about.pid,
             dump->about.number + 1);
    struct module *module = methods_add_module(dumps->methods, MODULE_JVM, text);
    dump->about.module = module;
    if (!module) {
        return dumps_no_memory();
    }
    module->pid = dump->about.pid;
    return 0;
}

static int make_usable(struct dumps *dumps, struct jvm_dump *dump, const struct process *process)
{
    const char *fault = clock_fault(dumps, dump);
    if (!fault && is_of_earlier_run(dump, process)) {
        fault = "it is the dump of an earlier run that had the same name; name the right one with "
                "--dump";
    }
    if (fault) {
        refuse(dump, fault);
        return 0;
    }
    dump->about.warning = code_index_warning(dump->about.index);
    if (dump->about.warning) {
        warning_message("%s: %s", dump->path, dump->about.warning);
    }
    grow_bounds(dump);
    dump->frames = code_frames_new(dump->about.index);
    if (!dump->frames) {
        return dumps_no_memory();
    }
    int err = jvm_dump_add_module(dumps, dump);
    if (err) {
        return err;
    }
    open_names(dump, dumps->options.live);
    open_journal(dump, dumps->options.live);
    open_log(dump);
    dump->segment = jvm_dump_segment(dump->path);
    int grown = follow_segments(dump, !dumps->options.live);
    grow_bounds(dump);
    dump->may_grow = dump->may_grow ||
                     (grown > 0 && dumps->options.live && !code_index_is_closed(dump->about.index));
    return grown < 0 ? grown : 0;
}

int jvm_dump_open(struct dumps *dumps, struct jvm_dump *dump, const char *path, int fd,
                  const struct process *process)
{
    dump->path = strdup(path);
    dump->about.dump = dump->path;
    dump->opened = clock_ns(CLOCK_MONOTONIC);
    if (!dump->path) {
        descriptor_close(fd);
        return dumps_no_memory();
    }
    int err;
    if (dumps->options.live) {
        err = code_index_follow(path, fd, &dump->about.index);
        dump->may_grow = !err && !code_index_is_closed(dump->about.index);
    } else {
        err = code_index_open(path, &dump->about.index);
    }
    if (err) {
        dump->about.index = NULL;
        dump->about.problem = DUMP_UNREADABLE;
        return err == -ENOMEM ? err : 0;
    }
    return make_usable(dumps, dump, process);
}

/* ---- Growth ---- */

/* A file beside the dump that is not there is looked for this often, in ns: our parent opens it for
 * us, and samples wait for longer. The agent makes it as it begins, so what is not there for long
 * is looked for less and less often. */
#define SEEK_EVERY      (UINT64_C(250) * 1000 * 1000)
#define SEEK_EVERY_MOST (UINT64_C(4) * 1000 * 1000 * 1000)

static bool lives(uint32_t pid)
{
    return kill((pid_t)pid, 0) == 0 || errno == EPERM;
}

int jvm_dump_update(struct jvm_dump *dump, bool is_all)
{
    /* Asked before reading: what a process wrote before it ended is then read, too. */
    bool was_alive = lives(dump->about.pid);
    dump->updated = clock_ns(CLOCK_MONOTONIC);
    int grown = code_index_update(dump->about.index, is_all || !was_alive);
    if (grown < 0) {
        return grown;
    }
    int named = 0;
    if (!dump->names && dump->names_path) {
        open_names(dump, true);
        named = dump->names != NULL;
    } else if (dump->names) {
        named = method_names_update(dump->names, is_all || !was_alive);
        if (named < 0) {
            return named;
        }
    }
    bool seeks = is_all || !was_alive || dump->updated - dump->sought >= dump->seek_every;
    if (seeks) {
        dump->sought = dump->updated;
        dump->seek_every = dump->seek_every * 2 < SEEK_EVERY        ? SEEK_EVERY
                           : dump->seek_every * 2 < SEEK_EVERY_MOST ? dump->seek_every * 2
                                                                    : SEEK_EVERY_MOST;
    }
    if (dump->journal) {
        int told = thread_journal_update(dump->journal, is_all || !was_alive);
        if (told < 0) {
            return told;
        }
    } else if (dump->journal_path && seeks) {
        open_journal(dump, true);
    }
    if (seeks) {
        open_log(dump);
    }
    int more = follow_segments(dump, is_all || !was_alive);
    if (more < 0) {
        return more;
    }
    if (grown || named || more) {
        begin_generation(dump, named || more);
    }
    dump->may_grow = !is_all && was_alive && !code_index_is_closed(dump->about.index);
    dump->about.warning = code_index_warning(dump->about.index);
    if (!dump->may_grow && dump->about.warning) {
        warning_message("%s: %s", dump->path, dump->about.warning);
    }
    return 0;
}

/* The agent tells of the methods that live once more within seconds of a segment's beginning, and
 * samples may wait. */
#define SEGMENTS_LAST (UINT64_C(10) * 1000 * 1000 * 1000)

void jvm_dump_let_go(struct jvm_dump *dump, uint64_t time, bool keep)
{
    if (!dump->segment || time < SEGMENTS_LAST) {
        return;
    }
    time -= SEGMENTS_LAST;
    code_index_let_go(dump->about.index, jvm_dump_time(dump, time), keep);
    if (dump->names) {
        method_names_let_go(dump->names, time);
    }
}

bool jvm_dump_outgrown(const struct jvm_dump *dump)
{
    return (dump->about.index && code_index_outgrown(dump->about.index)) ||
           (dump->names && method_names_outgrown(dump->names));
}

int jvm_dump_forget(struct jvm_dump *dump)
{
    int err = 0;
    if (dump->about.index && code_index_outgrown(dump->about.index)) {
        code_frames_free(dump->frames);
        err = code_index_forget(dump->about.index);
        dump->frames = code_frames_new(dump->about.index);
        dump->bounded = dump->bounded_blobs = 0;
        dump->all_came = ++dump->generation;
        grow_bounds(dump);
        err = err || dump->frames ? err : dumps_no_memory();
    }
    if (!err && dump->names && method_names_outgrown(dump->names)) {
        err = method_names_forget(dump->names);
    }
    return err;
}

void jvm_dump_free(struct jvm_dump *dump)
{
    code_blobs_free(dump);
    code_frames_free(dump->frames);
    method_names_close(dump->names);
    thread_journal_close(dump->journal);
    inner_threads_free(&dump->inner);
    if (dump->log) {
        (void)fclose(dump->log);
    }
    code_index_close(dump->about.index);
    free(dump->names_path);
    free(dump->journal_path);
    free(dump->path);
    free(dump->recorded);
    free(dump);
}
