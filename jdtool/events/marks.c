#include "jdtool/events/marks.h"

#include "format/event_probe.h"
#include "jdtool/base/array.h"
#include "jdtool/base/hash_map.h"
#include "jdtool/events/event_rule.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SUBJECT_MAX 1024
#define TEXT_MAX    256

/* A slot for each thread and kind that ever began. */
struct open_mark {
    uint32_t pid, tid;
    enum mark_kind kind;
    bool is_there;
    uint64_t from;
    uint64_t number;
    char *text, *subject; /* from malloc, NULL: none */
};

struct marks {
    struct hash_map by_thread;
    struct open_mark *list;
    uint32_t count;
    uint32_t room;
    uint64_t lost;
};

const char *mark_kind_name(enum mark_kind kind)
{
    static const char *const names[MARK_KINDS] = {
        [MARK_SAFEPOINT] = "safepoint",
        [MARK_OPERATION] = "operation",
        [MARK_GC] = "gc",
        [MARK_COMPILE] = "compile",
        [MARK_DEOPT] = "deopt",
        [MARK_THREAD_START] = "thread-start",
        [MARK_THREAD_STOP] = "thread-stop",
        [MARK_PARK] = "park",
        [MARK_CODE_CACHE] = "code-cache",
        [MARK_JFR] = "jfr",
    };
    return kind < MARK_KINDS ? names[kind] : "unknown";
}

struct marks *marks_new(void)
{
    return calloc(1, sizeof(struct marks));
}

void marks_free(struct marks *marks)
{
    if (!marks) {
        return;
    }
    for (uint32_t i = 0; i < marks->count; i++) {
        free(marks->list[i].text);
        free(marks->list[i].subject);
    }
    hash_map_free(&marks->by_thread);
    free(marks->list);
    free(marks);
}

uint64_t marks_lost(const struct marks *marks)
{
    return marks->lost;
}

/* ---- What is open ---- */

static struct open_mark *find(const struct marks *marks, uint32_t tid, enum mark_kind kind)
{
    uint32_t at;
    HASH_MAP_FIND(at, &marks->by_thread, hash_pair(tid, kind),
                  marks->list[at].tid == tid && marks->list[at].kind == kind);
    return at == HASH_MAP_NONE ? NULL : &marks->list[at];
}

static void clear(struct open_mark *open)
{
    free(open->text);
    free(open->subject);
    open->text = NULL;
    open->subject = NULL;
    open->number = 0;
    open->is_there = false;
}

/* An empty slot. NULL with *err 0: there are too many. */
static struct open_mark *slot_of(struct marks *marks, uint32_t tid, enum mark_kind kind, int *err)
{
    struct open_mark *open = find(marks, tid, kind);
    *err = 0;
    if (open) {
        marks->lost += open->is_there;
        clear(open);
        return open;
    }
    if (marks->count >= MARKS_OPEN_MAX) {
        marks->lost++;
        return NULL;
    }
    if (ARRAY_RESERVE(marks->list, marks->count, marks->room) ||
        hash_map_add(&marks->by_thread, hash_pair(tid, kind), marks->count)) {
        *err = -ENOMEM;
        return NULL;
    }
    open = &marks->list[marks->count++];
    *open = (struct open_mark){.tid = tid, .kind = kind};
    return open;
}

static int begin(struct marks *marks, const struct perf_sample *sample, enum mark_kind kind,
                 uint64_t number, const char *text, const char *subject)
{
    int err;
    struct open_mark *open = slot_of(marks, sample->tid, kind, &err);
    if (!open) {
        return err;
    }
    open->pid = sample->pid;
    open->from = sample->time;
    open->number = number;
    open->text = text ? strdup(text) : NULL;
    open->subject = subject ? strdup(subject) : NULL;
    open->is_there = true;
    return (text && !open->text) || (subject && !open->subject) ? -ENOMEM : 0;
}

static int give(const struct open_mark *open, uint64_t until, bool is_open,
                const struct mark_taker *taker)
{
    struct resolved_mark mark = {
        .kind = open->kind,
        .from = open->from,
        .until = until > open->from ? until : open->from,
        .is_open = is_open,
        .text = open->text,
        .subject = open->subject,
        .number = open->number,
    };
    return taker->take(taker->context, open->pid, open->tid, &mark);
}

/* What had begun before the recording did is not told: nobody knows when. */
static int end(struct marks *marks, const struct perf_sample *sample, enum mark_kind kind,
               const struct mark_taker *taker)
{
    struct open_mark *open = find(marks, sample->tid, kind);
    if (!open || !open->is_there) {
        return 0;
    }
    int err = give(open, sample->time, false, taker);
    clear(open);
    return err;
}

/* ---- Raw data ---- */

/* A text of the probe, without what a terminal would take for its own. */
static void read_text(const struct perf_sample *sample, const struct timeline_probe_raw *raw,
                      int which, char *out, size_t room)
{
    uint32_t at = raw->texts[which] & 0xffff;
    uint32_t size = raw->texts[which] >> 16;
    size_t length = 0;
    if (at <= sample->raw_size && size <= sample->raw_size - at) {
        const char *text = (const char *)sample->raw + at;
        uint32_t most = raw->sizes[which] < size ? raw->sizes[which] : size;
        length = strnlen(text, most);
        length = length < room - 1 ? length : room - 1;
        memcpy(out, text, length);
    }
    for (size_t i = 0; i < length; i++) {
        if ((unsigned char)out[i] < ' ') {
            out[i] = '?';
        }
    }
    out[length] = '\0';
}

struct joined {
    char text[SUBJECT_MAX];
    size_t size;
};

static void join(struct joined *joined, const char *text)
{
    size_t room = sizeof joined->text - joined->size;
    int size = snprintf(joined->text + joined->size, room, "%s", text);
    joined->size += size < (int)room ? (size_t)size : room - 1;
}

/* "(ILjava/lang/String;)V" as "(int, java.lang.String)". */
static void join_parameters(struct joined *joined, const char *descriptor)
{
    const char *at = descriptor + (*descriptor == '(');
    join(joined, "(");
    for (bool is_first = true; *at && *at != ')'; is_first = false) {
        char name[EVENT_SUBJECT_MAX];
        size_t size = strspn(at, "[");
        size += at[size] == 'L' ? strcspn(at + size, ";") : 0;
        size += at[size] != '\0';
        event_class_name(at, size, name);
        join(joined, is_first ? "" : ", ");
        join(joined, name);
        at += size;
    }
    join(joined, ")");
}

static void read_method(const struct perf_sample *sample, const struct timeline_probe_raw *raw,
                        struct joined *joined)
{
    char text[SUBJECT_MAX];
    joined->size = 0;
    joined->text[0] = '\0';
    read_text(sample, raw, 1, text, sizeof text);
    for (char *at = text; *at; at++) {
        if (*at == '/') {
            *at = '.';
        }
    }
    join(joined, text);
    join(joined, ".");
    read_text(sample, raw, 2, text, sizeof text);
    join(joined, text);
    read_text(sample, raw, 3, text, sizeof text);
    join_parameters(joined, text);
}

/* ---- What the probes tell ---- */

/* The first operation at a safepoint tells that all threads stand. */
static int note_safepoint(struct marks *marks, const struct perf_sample *sample, const char *name)
{
    struct open_mark *safepoint = find(marks, sample->tid, MARK_SAFEPOINT);
    if (!safepoint || !safepoint->is_there) {
        return 0;
    }
    if (!safepoint->text) {
        safepoint->number = sample->time > safepoint->from ? sample->time - safepoint->from : 0;
        safepoint->text = strdup(name);
        return safepoint->text ? 0 : -ENOMEM;
    }
    char *joined = NULL;
    if (strlen(safepoint->text) < SUBJECT_MAX) { /* of many in one safepoint the first ones */
        if (asprintf(&joined, "%s, %s", safepoint->text, name) < 0) {
            return -ENOMEM;
        }
        free(safepoint->text);
        safepoint->text = joined;
    }
    return 0;
}

/*
 * gc__begin tells what was asked for, and a collection for want of room that ends as a full one was
 * not asked for as such. Which it became the collectors' names tell (GCMemoryManager's).
 */
static void note_collector(const struct marks *marks, const struct perf_sample *sample,
                           const struct timeline_probe_raw *raw)
{
    static const char *const full[] = {"MarkSweepCompact", "PS MarkSweep", "G1 Old Generation"};
    char name[TEXT_MAX];
    struct open_mark *open = find(marks, sample->tid, MARK_GC);
    read_text(sample, raw, 0, name, sizeof name);
    for (size_t i = 0; open && i < sizeof full / sizeof *full; i++) {
        if (strcmp(name, full[i]) == 0) {
            open->number = 1;
        }
    }
}

static int begin_operation(struct marks *marks, const struct perf_sample *sample,
                           const struct timeline_probe_raw *raw)
{
    char name[TEXT_MAX];
    read_text(sample, raw, 0, name, sizeof name);
    int err = raw->number ? 0 : note_safepoint(marks, sample, name);
    return err ? err : begin(marks, sample, MARK_OPERATION, raw->number != 0, name, NULL);
}

static int begin_compile(struct marks *marks, const struct perf_sample *sample,
                         const struct timeline_probe_raw *raw)
{
    char compiler[TEXT_MAX];
    struct joined method;
    read_text(sample, raw, 0, compiler, sizeof compiler);
    read_method(sample, raw, &method);
    return begin(marks, sample, MARK_COMPILE, 0,
                 strcmp(compiler, "c1") == 0   ? "C1"
                 : strcmp(compiler, "c2") == 0 ? "C2"
                                               : compiler,
                 method.text);
}

static int end_compile(struct marks *marks, const struct perf_sample *sample,
                       const struct timeline_probe_raw *raw, const struct mark_taker *taker)
{
    struct open_mark *open = find(marks, sample->tid, MARK_COMPILE);
    if (open) { /* a bool, of which the kernel fetched four bytes */
        open->number = (raw->number & 0xff) == 0;
    }
    return end(marks, sample, MARK_COMPILE, taker);
}

static int moment(const struct perf_sample *sample, const struct timeline_probe_raw *raw,
                  enum mark_kind kind, const struct mark_taker *taker)
{
    char name[TEXT_MAX];
    read_text(sample, raw, 0, name, sizeof name);
    struct resolved_mark mark = {.kind = kind,
                                 .from = sample->time,
                                 .until = sample->time,
                                 .text = name,
                                 .number = raw->number};
    return taker->take(taker->context, sample->pid, sample->tid, &mark);
}

int marks_add(struct marks *marks, const struct perf_sample *sample, const struct mark_taker *taker)
{
    struct timeline_probe_raw raw;
    if (!sample->raw || sample->raw_size < sizeof raw) {
        return 0;
    }
    memcpy(&raw, sample->raw, sizeof raw);
    switch (raw.what) {
    case TIMELINE_GC_BEGIN:
        return begin(marks, sample, MARK_GC, raw.number & 0xff, NULL, NULL);
    case TIMELINE_GC_END:
        return end(marks, sample, MARK_GC, taker);
    case TIMELINE_GC_MEMORY:
        note_collector(marks, sample, &raw);
        return 0;
    case TIMELINE_OPERATION_BEGIN:
        return begin_operation(marks, sample, &raw);
    case TIMELINE_OPERATION_END:
        return end(marks, sample, MARK_OPERATION, taker);
    case TIMELINE_SAFEPOINT_BEGIN:
        return begin(marks, sample, MARK_SAFEPOINT, 0, NULL, NULL);
    case TIMELINE_SAFEPOINT_END:
        return end(marks, sample, MARK_SAFEPOINT, taker);
    case TIMELINE_COMPILE_BEGIN:
        return begin_compile(marks, sample, &raw);
    case TIMELINE_COMPILE_END:
        return end_compile(marks, sample, &raw, taker);
    case TIMELINE_THREAD_START:
        return moment(sample, &raw, MARK_THREAD_START, taker);
    case TIMELINE_THREAD_STOP:
        return moment(sample, &raw, MARK_THREAD_STOP, taker);
    case TIMELINE_PARK_BEGIN:
        return begin(marks, sample, MARK_PARK, 0, NULL, NULL);
    case TIMELINE_PARK_END:
        return end(marks, sample, MARK_PARK, taker);
    default:
        return 0;
    }
}

static int end_open(struct open_mark *open, uint64_t time, const struct mark_taker *taker)
{
    int err = 0;
    if (open && open->is_there) {
        err = give(open, time, true, taker);
        clear(open);
    }
    return err;
}

int marks_end_thread(struct marks *marks, uint32_t tid, uint64_t time,
                     const struct mark_taker *taker)
{
    int err = 0;
    for (int kind = 0; kind < MARK_KINDS && marks->count && !err; kind++) {
        err = end_open(find(marks, tid, kind), time, taker);
    }
    return err;
}

int marks_end(struct marks *marks, uint64_t time, const struct mark_taker *taker)
{
    int err = 0;
    for (uint32_t i = 0; i < marks->count && !err; i++) {
        err = end_open(&marks->list[i], time, taker);
    }
    return err;
}

/* ---- A JVM's log ---- */

/* "[  text ]" at *at, without what pads it; *at goes behind it. NULL: it is not there. */
static char *bracketed(char **at)
{
    char *end = **at == '[' ? strchr(*at, ']') : NULL;
    if (!end) {
        return NULL;
    }
    char *text = *at + 1 + strspn(*at + 1, " ");
    *at = end + 1;
    while (end > text && end[-1] == ' ') {
        end--;
    }
    *end = '\0';
    return text;
}

/* The number behind a word of the line, in ns. False: the word is not there. */
static bool number_behind(const char *line, const char *word, uint64_t *number)
{
    const char *at = strstr(line, word);
    char *end = NULL;
    *number = at ? strtoull(at + strlen(word), &end, 10) : 0;
    return at && end > at + strlen(word) && strncmp(end, " ns", 3) == 0;
}

static void last_for(struct resolved_mark *mark, uint64_t until, uint64_t duration)
{
    mark->until = until;
    mark->from = duration < until ? until - duration : 0;
}

/*
 * Safepoint "G1CollectForAllocation", Time since last: 1 ns, Reaching safepoint: 2 ns, …, Total: 9
 * ns (JDK 13 and later: SafepointTracing::end). It is written when threads go on.
 */
static bool read_safepoint(char *text, uint64_t time, struct resolved_mark *mark)
{
    static const char head[] = "Safepoint \"";
    uint64_t total;
    char *name = text + sizeof head - 1;
    char *end = strncmp(text, head, sizeof head - 1) == 0 ? strchr(name, '"') : NULL;
    if (!end || !number_behind(end, "Reaching safepoint: ", &mark->number) ||
        !number_behind(end, "Total: ", &total)) {
        return false;
    }
    *end = '\0';
    mark->kind = MARK_SAFEPOINT;
    mark->text = name;
    last_for(mark, time, total);
    return true;
}

/* GC(3) Pause Young (Normal) (G1 Evacuation Pause) 23M->4M(96M) 3.456ms. Written at the end. */
static bool read_collection(const char *text, uint64_t time, struct resolved_mark *mark)
{
    static const char pause[] = " Pause ";
    const char *at = strncmp(text, "GC(", 3) == 0 ? strstr(text, pause) : NULL;
    const char *last = at ? strrchr(at, ' ') : NULL;
    char *end = NULL;
    double took = last ? strtod(last + 1, &end) : 0;
    if (!last || end == last + 1 || strcmp(end, "ms") != 0 || !(took >= 0 && took < 1e9)) {
        return false;
    }
    mark->kind = MARK_GC;
    mark->number = strncmp(at + sizeof pause - 1, "Full", 4) == 0;
    last_for(mark, time, (uint64_t)(took * 1e6));
    return true;
}

bool jvm_log_line(char *line, struct resolved_mark *mark, uint32_t *tid)
{
    char *at = line;
    char *end;
    const char *stamp = bracketed(&at);
    const char *thread = stamp ? bracketed(&at) : NULL;
    const char *tags = thread ? bracketed(&at) : NULL;
    *mark = (struct resolved_mark){0};
    if (!tags) {
        return false;
    }
    uint64_t time = strtoull(stamp, &end, 10);
    if (end == stamp || strcmp(end, "ns") != 0) {
        return false;
    }
    *tid = (uint32_t)strtoul(thread, NULL, 10);
    at += strspn(at, " ");
    at[strcspn(at, "\r\n")] = '\0';
    for (char *c = at; *c; c++) {
        if ((unsigned char)*c < ' ') {
            *c = '?';
        }
    }
    return strcmp(tags, "safepoint") == 0 ? read_safepoint(at, time, mark)
           : strcmp(tags, "gc") == 0      ? read_collection(at, time, mark)
                                          : false;
}

int jvm_log_read(FILE *file,
                 int (*take)(void *context, uint32_t tid, const struct resolved_mark *mark),
                 void *context)
{
    char line[JVM_LOG_LINE_MAX];
    bool begins = true;
    int err = 0;
    while (!err && fgets(line, sizeof line, file)) {
        struct resolved_mark mark;
        uint32_t tid;
        bool ends = strchr(line, '\n') != NULL;
        if (begins && ends && jvm_log_line(line, &mark, &tid)) {
            err = take(context, tid, &mark);
        }
        begins = ends;
    }
    return err;
}
