/* One dump of a process: opened, followed through its segments and as it grows, asked. */
#include "jdtool/base/message.h"
#include "jdtool/resolve/dumps_private.h"
#include "jdtool/resolve/pieces.h"

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
static const char *clock_fault(const struct dumps *dumps, struct code_source *source)
{
    const struct perf_event_attr *attr = &perf_data_event(dumps->data, 0)->attr;
    if (!perf_data_has(dumps->data, PERF_SAMPLE_TIME)) {
        return "the recording has no time stamps; record with 'perf record -T -k mono'";
    }
    if (!(code_index_header(source->about.index)->flags & JITDUMP_FLAGS_ARCH_TIMESTAMP)) {
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
    source->conversion = dumps->conversion;
    return NULL;
}

uint64_t code_source_recording_time(const struct code_source *source, uint64_t dump_time)
{
    const struct time_conversion *c = &source->conversion;
    if (!c->known || dump_time == UINT64_MAX) {
        return dump_time;
    }
    uint64_t whole = dump_time >> c->shift;
    uint64_t rest = dump_time & ((UINT64_C(1) << c->shift) - 1);
    return c->zero + whole * c->mult + ((rest * c->mult) >> c->shift);
}

uint64_t code_source_dump_time(const struct code_source *source, uint64_t recording_time)
{
    const struct time_conversion *c = &source->conversion;
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
static bool is_of_earlier_run(const struct code_source *source, const struct process *process)
{
    uint64_t last = code_index_last_stamp(source->about.index);
    if (last == 0) { /* nothing in it, or its writer has no clock */
        return false;
    }
    uint64_t time = code_source_recording_time(source, last);
    uint64_t from = source->about.from;
    return time < process->from || (from > MAPS_WITHIN && time < from - MAPS_WITHIN);
}

/* ---- Opening ---- */

static uint64_t recording_time(const void *source, uint64_t stamp)
{
    return code_source_recording_time(source, stamp);
}

static const char segment_word[] = "/segment-";

/* The number of the segment that a path leads to, 0: none. *parent: bytes before its directory. */
static uint64_t segment_of(const char *path, size_t *parent)
{
    size_t end = (size_t)(base_name(path) - path);
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
static char *beside_dump(const struct code_source *source, const char *extension)
{
    static const char suffix[] = ".dump";
    size_t stem = strlen(source->path);
    if (stem > sizeof suffix - 1 &&
        strcmp(source->path + stem - (sizeof suffix - 1), suffix) == 0) {
        stem -= sizeof suffix - 1;
    }
    char *path;
    return asprintf(&path, "%.*s.%s", (int)stem, source->path, extension) < 0 ? NULL : path;
}

/* The table of methods stands beside the dump. Without it interpreted frames have no names. */
static void open_names(struct code_source *source, bool live)
{
    if (!source->names_path) {
        source->names_path = beside_dump(source, "methods");
        if (!source->names_path) {
            return;
        }
    }
    int err =
        live ? method_names_follow(source->names_path, -1, recording_time, source, &source->names)
             : method_names_open(source->names_path, recording_time, source, &source->names);
    if (err) {
        source->names = NULL;
    }
    if (err && err != -ENOENT) { /* told once */
        free(source->names_path);
        source->names_path = NULL;
    }
}

/* The same of the journal of threads, which is of all segments and stands beside their directories.
 */
static char *journal_path(const struct code_source *source)
{
    size_t parent;
    if (!segment_of(source->path, &parent)) {
        return beside_dump(source, "threads");
    }
    const char *name = base_name(source->path);
    const char *dot = strrchr(name, '.');
    char *path;
    int stem = dot ? (int)(dot - name) : (int)strlen(name);
    return asprintf(&path, "%.*s/%.*s.threads", (int)parent, source->path, stem, name) < 0 ? NULL
                                                                                           : path;
}

/* Where one was asked for. */
static void open_journal(struct code_source *source, bool is_all)
{
    if (!source->journal_path) {
        source->journal_path = journal_path(source);
        if (!source->journal_path) {
            return;
        }
    }
    int err = thread_journal_open(source->journal_path, is_all, &source->journal);
    const char *fault = NULL;
    if (!err &&
        thread_journal_has_arch_stamps(source->journal) !=
            (bool)(code_index_header(source->about.index)->flags & JITDUMP_FLAGS_ARCH_TIMESTAMP)) {
        fault = "it has another clock than its dump";
    } else if (!err && thread_journal_pid(source->journal) != source->about.pid) {
        if (source->conversion.known) { /* inner_threads.h compares with the system's own clock */
            fault = "its JVM is in a container and has the processor's time stamps; run the agent "
                    "with clock=monotonic";
        } else {
            inner_threads_init(&source->inner, source->about.pid,
                               thread_journal_pid(source->journal));
        }
    }
    if (fault) {
        warning_message("cannot use %s: %s", source->journal_path, fault);
        thread_journal_close(source->journal);
        source->journal = NULL;
    }
    if (fault || (err && err != -ENOENT)) { /* told once */
        free(source->journal_path);
        source->journal_path = NULL;
    }
}

/* So may the JVM's own log, which is read at the end. Its stamps are of the system's clock. */
static void open_log(struct code_source *source)
{
    char *path = source->log || source->conversion.known ? NULL : beside_dump(source, "log");
    struct stat status;
    int fd = path ? open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) : -1;
    if (fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) {
        source->log = fdopen(fd, "r");
    }
    if (fd >= 0 && !source->log) {
        (void)close(fd);
    }
    free(path);
}

static void grow_bounds(struct code_source *source)
{
    uint32_t count = code_index_stay_count(source->about.index);
    for (; source->bounded < count; source->bounded++) {
        const struct code_stay *stay = code_index_stay(source->about.index, source->bounded);
        uint64_t end = stay->address + stay->size;
        source->code_start =
            stay->address < source->code_start ? stay->address : source->code_start;
        source->code_end = end > source->code_end ? end : source->code_end;
    }
}

static void refuse(struct code_source *source, const char *problem)
{
    warning_message("cannot use %s: %s", source->about.dump, problem);
    source->about.problem = problem;
    code_index_close(source->about.index);
    source->about.index = NULL;
    source->may_grow = false;
}

/* ---- Segments ---- */

bool code_source_is_segment_of(const char *path, const char *other)
{
    size_t parent = 0;
    size_t others = 0;
    return segment_of(path, &parent) && segment_of(other, &others) && parent == others &&
           strncmp(path, other, parent) == 0 && strcmp(base_name(path), base_name(other)) == 0;
}

/* The path of a segment of this dump's, of its table of methods, where `table`. */
static bool segment_path(const struct code_source *source, uint64_t number, bool table,
                         char out[PATH_MAX])
{
    size_t parent = 0;
    const char *name = base_name(source->path);
    int stem = (int)(strrchr(name, '.') - name);
    (void)segment_of(source->path, &parent);
    int n = snprintf(out, PATH_MAX, "%.*s%s%06llu/%.*s.%s", (int)parent, source->path, segment_word,
                     (unsigned long long)number, stem, name, table ? "methods" : "dump");
    return n >= 0 && n < PATH_MAX;
}

/* Some numbers may be somebody else's, or gone. */
#define SEGMENTS_AHEAD 16

/* Reads what follows: the next segment is there before the writer closes the last. 1: some was
 * there; 0; or a negative errno after a message. */
static int follow_segments(struct code_source *source, bool is_all)
{
    char path[PATH_MAX];
    int grown = 0;
    uint64_t ahead = 1;
    while (source->segment && ahead <= SEGMENTS_AHEAD &&
           (is_all || code_index_is_closed(source->about.index))) {
        uint64_t number = source->segment + ahead++;
        int err = segment_path(source, number, false, path)
                      ? code_index_continue(source->about.index, path, is_all)
                      : 0;
        if (err == 0) {
            continue;
        }
        if (err > 0 && source->names && segment_path(source, number, true, path)) {
            err = method_names_update(source->names, is_all);
            uint64_t until =
                code_source_recording_time(source, code_index_last_stamp(source->about.index));
            err = err < 0 ? err : method_names_continue(source->names, path, until, is_all);
        }
        if (err < 0) {
            return err;
        }
        source->segment = number;
        ahead = 1;
        grown = 1;
    }
    return grown;
}

uint64_t code_source_segment(const char *path)
{
    size_t parent;
    return segment_of(path, &parent);
}

/* What is known of by then was read before, as a rule. */
int code_source_map_segment(struct code_source *source, const char *path)
{
    uint64_t number = code_source_segment(path);
    if (number <= source->segment) {
        return 0;
    }
    source->segment = number - 1; /* those between are gone */
    int grown = follow_segments(source, true);
    grow_bounds(source);
    source->generation += grown > 0;
    return grown < 0 ? grown : 0;
}

int code_source_add_module(struct dumps *dumps, struct code_source *source)
{
    char text[64];
    snprintf(text, sizeof text, source->about.number ? "[java %u-%u]" : "[java %u]",
             source->about.pid, source->about.number + 1);
    struct module *module = methods_add_module(dumps->methods, MODULE_JVM, text);
    source->about.module = module;
    if (!module) {
        return dumps_no_memory();
    }
    module->pid = source->about.pid;
    return 0;
}

static int make_usable(struct dumps *dumps, struct code_source *source,
                       const struct process *process)
{
    const char *fault = clock_fault(dumps, source);
    if (!fault && is_of_earlier_run(source, process)) {
        fault = "it is the dump of an earlier run that had the same name; name the right one with "
                "--dump";
    }
    if (fault) {
        refuse(source, fault);
        return 0;
    }
    source->about.warning = code_index_warning(source->about.index);
    if (source->about.warning) {
        warning_message("%s: %s", source->path, source->about.warning);
    }
    grow_bounds(source);
    source->frames = code_frames_new(source->about.index);
    if (!source->frames) {
        return dumps_no_memory();
    }
    int err = code_source_add_module(dumps, source);
    if (err) {
        return err;
    }
    open_names(source, source->may_grow);
    open_journal(source, !source->may_grow);
    open_log(source);
    source->segment = code_source_segment(source->path);
    int grown = follow_segments(source, !dumps->options.live);
    grow_bounds(source);
    source->may_grow = source->may_grow || (grown > 0 && dumps->options.live &&
                                            !code_index_is_closed(source->about.index));
    return grown < 0 ? grown : 0;
}

int code_source_open(struct dumps *dumps, struct code_source *source, const char *path, int fd,
                     const struct process *process)
{
    source->path = strdup(path);
    source->about.dump = source->path;
    if (!source->path) {
        if (fd >= 0) {
            (void)close(fd);
        }
        return dumps_no_memory();
    }
    int err;
    if (dumps->options.live) {
        err = code_index_follow(path, fd, &source->about.index);
        source->may_grow = !err && !code_index_is_closed(source->about.index);
    } else {
        err = code_index_open(path, &source->about.index);
    }
    if (err) {
        source->about.index = NULL;
        source->about.problem = DUMP_UNREADABLE;
        return err == -ENOMEM ? err : 0;
    }
    return make_usable(dumps, source, process);
}

/* ---- Growth ---- */

static bool lives(uint32_t pid)
{
    return kill((pid_t)pid, 0) == 0 || errno == EPERM;
}

int code_source_update(struct code_source *source, bool is_all)
{
    /* Asked before reading: what a process wrote before it ended is then read, too. */
    bool was_alive = lives(source->about.pid);
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    source->updated = (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
    int grown = code_index_update(source->about.index, is_all || !was_alive);
    if (grown < 0) {
        return grown;
    }
    if (!source->names && source->names_path) {
        open_names(source, true);
        grown |= source->names != NULL;
    } else if (source->names) {
        int named = method_names_update(source->names, is_all || !was_alive);
        if (named < 0) {
            return named;
        }
        grown |= named;
    }
    if (source->journal) {
        int told = thread_journal_update(source->journal, is_all || !was_alive);
        if (told < 0) {
            return told;
        }
    } else if (source->journal_path) {
        open_journal(source, is_all || !was_alive);
    }
    open_log(source);
    int more = follow_segments(source, is_all || !was_alive);
    if (more < 0) {
        return more;
    }
    grown |= more;
    if (grown) {
        grow_bounds(source);
        for (struct code_source *s = source; s; s = s->earlier) {
            s->generation++;
        }
    }
    source->may_grow = !is_all && was_alive && !code_index_is_closed(source->about.index);
    source->about.warning = code_index_warning(source->about.index);
    if (!source->may_grow && source->about.warning) {
        warning_message("%s: %s", source->path, source->about.warning);
    }
    return 0;
}

/* The agent tells of the methods that live once more within seconds of a segment's beginning, and
 * samples may wait. */
#define SEGMENTS_LAST (UINT64_C(10) * 1000 * 1000 * 1000)

void code_source_let_go(struct code_source *source, uint64_t time, bool keep)
{
    if (!source->segment || time < SEGMENTS_LAST) {
        return;
    }
    time -= SEGMENTS_LAST;
    code_index_let_go(source->about.index, code_source_dump_time(source, time), keep);
    if (source->names) {
        method_names_let_go(source->names, time);
    }
}

void code_source_free(struct code_source *source)
{
    pieces_free(source);
    code_frames_free(source->frames);
    method_names_close(source->names);
    thread_journal_close(source->journal);
    inner_threads_free(&source->inner);
    if (source->log) {
        (void)fclose(source->log);
    }
    code_index_close(source->about.index);
    free(source->names_path);
    free(source->journal_path);
    free(source->path);
    free(source->recorded);
    free(source);
}
