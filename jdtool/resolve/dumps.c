#include "jdtool/resolve/dumps.h"

#include "jdtool/base/array.h"
#include "jdtool/base/message.h"
#include "jdtool/resolve/pieces.h"

#include <ctype.h>
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

/* A dump's first records and its mapping lie that close together, in ns. */
#define MAPS_WITHIN (UINT64_C(10) * 1000 * 1000 * 1000)

/* A mapping of a dump that was read of, in its time or not. */
struct marker {
    uint32_t pid;
    const char *path;
    uint64_t inode;
    int fd; /* opened at once, with what is at `opened`; -1: not */
    const char *opened;
};

/* A dump that options name. */
struct named_dump {
    const char *path;
    struct jitdump_header header;
    uint64_t inode;
    bool readable;
    bool used;
};

struct dumps {
    struct perf_data *data;
    struct methods *methods;
    struct dumps_options options;
    struct time_conversion conversion;
    struct named_dump *named;
    uint32_t unused; /* of these */
    struct marker *markers;
    uint32_t marker_count;
    uint32_t marker_room;
    struct code_source **sources;
    struct recorded_jvm **list; /* their `about` */
    uint32_t count;
    uint32_t room;
    uint32_t list_room;
};

static const char unreadable[] = "its dump cannot be read";

static int no_memory(void)
{
    error_message("failed to read the dumps: %s", strerror(ENOMEM));
    return -ENOMEM;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* jit-<digits>.dump */
static bool is_dump_name(const char *path)
{
    const char *name = base_name(path);
    if (strncmp(name, "jit-", 4) != 0 || !isdigit((unsigned char)name[4])) {
        return false;
    }
    name += 4;
    while (isdigit((unsigned char)*name)) {
        name++;
    }
    return strcmp(name, ".dump") == 0;
}

/* ---- Finding the file ---- */

static struct marker *find_marker(const struct dumps *dumps, uint32_t pid, const char *path)
{
    for (uint32_t i = 0; i < dumps->marker_count; i++) {
        if (dumps->markers[i].pid == pid && strcmp(dumps->markers[i].path, path) == 0) {
            return &dumps->markers[i];
        }
    }
    return NULL;
}

static bool is_of_another(const struct dumps *dumps, const struct marker *own, uint64_t inode)
{
    for (uint32_t i = 0; i < dumps->marker_count; i++) {
        const struct marker *other = &dumps->markers[i];
        if (other->pid != own->pid && strcmp(other->path, own->path) == 0 &&
            other->inode == inode) {
            return own->inode != 0;
        }
    }
    return false;
}

/*
 * Where the file may be: the recorded path; the same in the root directory of the process, which
 * may live in a container; beside the recording, where it was copied. Path names are used again
 * (pids repeat, in containers above all), so a file with the recorded inode goes first, and one
 * that another JVM of the recording mapped under this name is that one's.
 */
static bool find_file(const struct dumps *dumps, const struct marker *marker, char path[PATH_MAX])
{
    char candidates[3][PATH_MAX];
    const char *recording = perf_data_path(dumps->data);
    int directory = (int)(base_name(recording) - recording);
    int sizes[3] = {
        snprintf(candidates[0], PATH_MAX, "%s", marker->path),
        snprintf(candidates[1], PATH_MAX, "/proc/%u/root%s", marker->pid, marker->path),
        snprintf(candidates[2], PATH_MAX, "%.*s%s", directory, recording, base_name(marker->path)),
    };
    bool found = false;
    for (int i = 0; i < 3; i++) {
        struct stat status;
        if (sizes[i] >= PATH_MAX || stat(candidates[i], &status) || !S_ISREG(status.st_mode)) {
            continue;
        }
        bool same = marker->inode && status.st_ino == marker->inode;
        if (same || (!found && !is_of_another(dumps, marker, status.st_ino))) {
            memcpy(path, candidates[i], PATH_MAX);
            found = true;
        }
        if (same) {
            break;
        }
    }
    return found;
}

int dumps_notice(struct dumps *dumps, uint32_t pid, const struct mapping *mapping)
{
    char path[PATH_MAX];
    if (!mapping->executable || !is_dump_name(mapping->path) ||
        find_marker(dumps, pid, mapping->path)) {
        return 0;
    }
    const char *kept = methods_string(dumps->methods, mapping->path);
    if (!kept || array_reserve(&dumps->markers, dumps->marker_count, &dumps->marker_room,
                               sizeof *dumps->markers)) {
        return -ENOMEM;
    }
    struct marker *marker = &dumps->markers[dumps->marker_count++];
    *marker = (struct marker){.pid = pid, .path = kept, .inode = mapping->inode, .fd = -1};
    if (dumps->options.live && find_file(dumps, marker, path)) {
        marker->opened = methods_string(dumps->methods, path);
        marker->fd = marker->opened ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    }
    return 0;
}

/* ---- Dumps that options name ---- */

static int read_named(struct dumps *dumps)
{
    uint32_t count = dumps->options.named_count;
    dumps->named = calloc(count + (size_t)1, sizeof *dumps->named);
    if (!dumps->named) {
        return no_memory();
    }
    for (uint32_t i = 0; i < count; i++) {
        struct named_dump *named = &dumps->named[i];
        struct jitdump_reader *reader;
        struct stat status;
        named->path = dumps->options.named[i];
        int err = jitdump_reader_open(named->path, &reader);
        if (!err) {
            named->header = *jitdump_reader_header(reader);
            named->readable = true;
            jitdump_reader_close(reader);
        } else if (err != -EINVAL) {
            return err;
        } /* no dump, or one that was killed before its header: the others are not to suffer */
        named->inode = stat(named->path, &status) == 0 ? status.st_ino : 0;
    }
    dumps->unused = count;
    return 0;
}

/* How far from its beginning, by its header, a dump would have been mapped at that time; 0: nobody
 * can tell. */
static uint64_t distance_of(const struct named_dump *named, uint64_t from)
{
    uint64_t began = named->header.timestamp;
    if (!named->readable || from == 0 || (named->header.flags & JITDUMP_FLAGS_ARCH_TIMESTAMP)) {
        return 0;
    }
    return began > from ? began - from : from - began;
}

/* The one for a marker: this very file, of this name and the nearest in time, or with this pid.
 * NULL: none. */
static struct named_dump *named_for(const struct dumps *dumps, const struct marker *marker,
                                    uint64_t from)
{
    struct named_dump *by_name = NULL;
    struct named_dump *by_pid = NULL;
    uint64_t least = MAPS_WITHIN;
    for (uint32_t i = 0; i < dumps->options.named_count; i++) {
        struct named_dump *named = &dumps->named[i];
        if (named->used) {
            continue;
        }
        if (strcmp(base_name(named->path), base_name(marker->path)) == 0) {
            if (marker->inode && marker->inode == named->inode) {
                return named;
            }
            uint64_t distance = distance_of(named, from);
            if (distance <= least && (!by_name || distance < least)) {
                by_name = named;
                least = distance;
            }
        } else if (!by_pid && named->readable && named->header.pid == marker->pid) {
            by_pid = named;
        }
    }
    return by_name ? by_name : by_pid;
}

void dumps_tell_unused(const struct dumps *dumps)
{
    for (uint32_t i = 0; i < dumps->options.named_count; i++) {
        const struct named_dump *named = &dumps->named[i];
        if (!named->used && named->readable) {
            warning_message("no process of this recording is the JVM of %s (pid %u); it is left "
                            "out",
                            named->path, named->header.pid);
        }
    }
}

/* ---- Clocks ---- */

void dumps_set_conversion(struct dumps *dumps, const struct perf_record *record)
{
    dumps->conversion = (struct time_conversion){
        .known = perf_record_u64(record, 16) > 0 && perf_record_u64(record, 8) < 64,
        .shift = perf_record_u64(record, 8),
        .mult = perf_record_u64(record, 16),
        .zero = perf_record_u64(record, 24),
    };
}

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

/* The table of methods stands beside the dump. Without it interpreted frames have no names. */
static void open_names(struct code_source *source, bool live)
{
    if (!source->names_path) {
        static const char suffix[] = ".dump";
        size_t stem = strlen(source->path);
        if (stem > sizeof suffix - 1 &&
            strcmp(source->path + stem - (sizeof suffix - 1), suffix) == 0) {
            stem -= sizeof suffix - 1;
        }
        if (asprintf(&source->names_path, "%.*s.methods", (int)stem, source->path) < 0) {
            source->names_path = NULL;
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

/* Whether a path is a segment beside this dump's. */
static bool is_beside(const char *path, const char *other)
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
            err = err < 0 ? err : method_names_continue(source->names, path, is_all);
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

static int make_usable(struct dumps *dumps, struct code_source *source,
                       const struct process *process)
{
    char text[64];
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
    snprintf(text, sizeof text, source->about.number ? "[java %u-%u]" : "[java %u]",
             source->about.pid, source->about.number + 1);
    struct module *module = methods_add_module(dumps->methods, MODULE_JVM, text);
    source->frames = code_frames_new(source->about.index);
    if (!module || !source->frames) {
        return no_memory();
    }
    module->pid = source->about.pid;
    source->about.module = module;
    open_names(source, source->may_grow);
    size_t parent;
    source->segment = segment_of(source->path, &parent);
    int grown = follow_segments(source, !dumps->options.live);
    grow_bounds(source);
    source->may_grow = source->may_grow || (grown > 0 && dumps->options.live &&
                                            !code_index_is_closed(source->about.index));
    return grown < 0 ? grown : 0;
}

/* fd: open already, -1: not. */
static int open_source(struct dumps *dumps, struct code_source *source, const char *path, int fd,
                       const struct process *process)
{
    source->path = strdup(path);
    source->about.dump = source->path;
    if (!source->path) {
        if (fd >= 0) {
            (void)close(fd);
        }
        return no_memory();
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
        source->about.problem = unreadable;
        return err == -ENOMEM ? err : 0;
    }
    return make_usable(dumps, source, process);
}

/* ---- Whose is it ---- */

static struct code_source *add_source(struct dumps *dumps, struct process *process,
                                      const char *recorded, uint64_t from)
{
    struct code_source *source = calloc(1, sizeof *source);
    if (!source ||
        array_reserve(&dumps->sources, dumps->count, &dumps->room, sizeof(struct code_source *)) ||
        array_reserve(&dumps->list, dumps->count, &dumps->list_room,
                      sizeof(struct recorded_jvm *))) {
        free(source);
        (void)no_memory();
        return NULL;
    }
    bool has_own = process->code && process->code_until == UINT64_MAX;
    source->earlier = has_own ? process->code : NULL;
    source->about = (struct recorded_jvm){
        .pid = process->pid,
        .number = source->earlier ? source->earlier->about.number + 1 : 0,
        .recorded = recorded,
        .from = from,
    };
    source->code_start = UINT64_MAX;
    pieces_start(source);
    process->code = source;
    process->code_until = UINT64_MAX;
    dumps->sources[dumps->count] = source;
    dumps->list[dumps->count++] = &source->about;
    return source;
}

static int use_named(struct dumps *dumps, struct code_source *source, struct named_dump *named,
                     const struct process *process)
{
    named->used = true;
    dumps->unused--;
    if (!named->readable) {
        source->path = strdup(named->path);
        source->about.dump = source->path;
        source->about.problem = unreadable;
        return source->path ? 0 : no_memory();
    }
    return open_source(dumps, source, named->path, -1, process);
}

/* A further segment of a dump was mapped: what is known of by then was read before, as a rule. */
static int map_segment(struct code_source *source, struct marker *marker, const char *path)
{
    size_t parent;
    uint64_t number = segment_of(path, &parent);
    if (marker && marker->fd >= 0) {
        (void)close(marker->fd);
        marker->fd = -1;
    }
    if (number <= source->segment) {
        return 0;
    }
    source->segment = number - 1; /* those between are gone */
    int grown = follow_segments(source, true);
    grow_bounds(source);
    source->generation += grown > 0;
    return grown < 0 ? grown : 0;
}

int dumps_map(struct dumps *dumps, struct process *process, const struct mapped_file *file,
              uint64_t time)
{
    char path[PATH_MAX];
    if (!is_dump_name(file->path)) {
        return 0;
    }
    bool has_own = process->code && process->code_until == UINT64_MAX;
    for (struct code_source *source = has_own ? process->code : NULL; source;
         source = source->earlier) {
        const char *known = source->about.recorded ? source->about.recorded : source->about.dump;
        if (known && source->segment && is_beside(known, file->path)) {
            return map_segment(source, find_marker(dumps, process->pid, file->path), file->path);
        }
        if (known &&
            (strcmp(known, file->path) == 0 ||
             (!source->about.recorded && strcmp(base_name(known), base_name(file->path)) == 0))) {
            return 0; /* mapped twice, or listed and then mapped */
        }
    }
    struct marker unnoticed = {
        .pid = process->pid, .path = file->path, .inode = file->inode, .fd = -1};
    struct marker *marker = find_marker(dumps, process->pid, file->path);
    marker = marker ? marker : &unnoticed;
    struct code_source *source = add_source(dumps, process, file->path, time);
    if (!source) {
        return -ENOMEM;
    }
    struct named_dump *named = named_for(dumps, marker, time);
    if (named) {
        return use_named(dumps, source, named, process);
    }
    if (marker->fd >= 0) {
        int fd = marker->fd;
        marker->fd = -1;
        return open_source(dumps, source, marker->opened, fd, process);
    }
    if (find_file(dumps, marker, path)) {
        return open_source(dumps, source, path, -1, process);
    }
    size_t parent;
    if (segment_of(file->path, &parent)) {
        source->about.problem = "its segment has been removed";
        return 0;
    }
    warning_message("the dump %s of process %u is not there; name it with --dump, or put it beside "
                    "the recording",
                    file->path, process->pid);
    source->about.problem = "its dump was not found";
    return 0;
}

int dumps_seek(struct dumps *dumps, struct process *process, uint64_t time)
{
    if (dumps->unused == 0 || process->code) {
        return 0;
    }
    for (uint32_t i = 0; i < dumps->options.named_count; i++) {
        struct named_dump *named = &dumps->named[i];
        bool other_clock = named->header.flags & JITDUMP_FLAGS_ARCH_TIMESTAMP;
        uint64_t began = named->header.timestamp;
        if (named->used || !named->readable || named->header.pid != process->pid ||
            (!other_clock && (began < process->from || began > time))) {
            continue;
        }
        struct code_source *source = add_source(dumps, process, NULL, 0);
        return source ? use_named(dumps, source, named, process) : -ENOMEM;
    }
    return 0;
}

/* ---- Growth ---- */

static bool lives(uint32_t pid)
{
    return kill((pid_t)pid, 0) == 0 || errno == EPERM;
}

static int update(struct code_source *source, bool is_all)
{
    /* Asked before reading: what a process wrote before it ended is then read, too. */
    bool was_alive = lives(source->about.pid);
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

int dumps_update(struct dumps *dumps, bool is_all)
{
    int err = 0;
    for (uint32_t i = 0; i < dumps->count && !err; i++) {
        struct code_source *source = dumps->sources[i];
        if (source->may_grow && source->about.index) {
            err = update(source, is_all);
        }
    }
    return err;
}

bool dumps_may_grow(const struct dumps *dumps)
{
    for (uint32_t i = 0; i < dumps->count; i++) {
        if (dumps->sources[i]->may_grow) {
            return true;
        }
    }
    return false;
}

/* ---- Looking up ---- */

struct code_place dumps_code_at(const struct process *process, uint64_t address, uint64_t time)
{
    struct code_place place = {.until = UINT64_MAX};
    time = time < process->code_until ? time : process->code_until;
    for (struct code_source *source = process->code; source; source = source->earlier) {
        struct code_index *index = source->about.index;
        if (!index) {
            continue;
        }
        uint64_t dump_time = code_source_dump_time(source, time);
        uint64_t began = code_index_header(index)->timestamp;
        uint64_t until = UINT64_MAX;
        if (address >= source->code_start && address < source->code_end) {
            place.stay = code_index_at(index, address, dump_time, &until);
        }
        if (!place.stay && dump_time < began && began < until) {
            until = began; /* from then on earlier dumps are not asked */
        }
        until = code_source_recording_time(source, until);
        place.until = until < place.until ? until : place.until;
        place.source = source;
        if (place.stay || dump_time >= began) {
            break; /* an earlier dump did not hear what became of its code since */
        }
    }
    return place;
}

enum unnamed_reason dumps_why_unnamed(const struct process *process, uint64_t address,
                                      uint64_t time)
{
    const struct code_source *source = process->code;
    while (source && !source->about.index) {
        source = source->earlier;
    }
    if (!source) {
        return UNNAMED_NO_DUMP;
    }
    const struct code_index *index = source->about.index;
    uint64_t first = code_source_recording_time(source, code_index_header(index)->timestamp);
    if (time < first || code_index_stay_count(index) == 0) {
        return UNNAMED_BEFORE_DUMP;
    }
    if (code_index_at(index, address, UINT64_MAX - 1, NULL)) {
        return UNNAMED_BEFORE_LOAD;
    }
    uint64_t last = code_source_recording_time(source, code_index_last_stamp(index));
    return time > last ? UNNAMED_AFTER_DUMP : UNNAMED_UNKNOWN;
}

const struct recorded_jvm *const *dumps_list(const struct dumps *dumps, uint32_t *count)
{
    *count = dumps->count;
    return (const struct recorded_jvm *const *)dumps->list;
}

struct code_source *const *dumps_sources(const struct dumps *dumps, uint32_t *count)
{
    *count = dumps->count;
    return dumps->sources;
}

/* ---- Life ---- */

int dumps_new(struct perf_data *data, struct methods *methods, const struct dumps_options *options,
              struct dumps **out)
{
    struct dumps *dumps = calloc(1, sizeof *dumps);
    *out = NULL;
    if (!dumps) {
        return no_memory();
    }
    dumps->data = data;
    dumps->methods = methods;
    dumps->options = *options;
    int err = read_named(dumps);
    if (err) {
        dumps_free(dumps);
        return err;
    }
    *out = dumps;
    return 0;
}

void dumps_free(struct dumps *dumps)
{
    if (!dumps) {
        return;
    }
    for (uint32_t i = 0; i < dumps->count; i++) {
        struct code_source *source = dumps->sources[i];
        pieces_free(source);
        code_frames_free(source->frames);
        method_names_close(source->names);
        code_index_close(source->about.index);
        free(source->names_path);
        free(source->path);
        free(source);
    }
    for (uint32_t i = 0; i < dumps->marker_count; i++) {
        if (dumps->markers[i].fd >= 0) {
            (void)close(dumps->markers[i].fd);
        }
    }
    free(dumps->sources);
    free(dumps->list);
    free(dumps->markers);
    free(dumps->named);
    free(dumps);
}
