#include "jdtool/base/array.h"
#include "jdtool/base/descriptor.h"
#include "jdtool/base/message.h"
#include "jdtool/base/others_file.h"
#include "jdtool/base/processes.h"
#include "jdtool/resolve/code_blobs.h"
#include "jdtool/resolve/dumps_private.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Where they lie ---- */

/* Where dumps lie: the files that processes map, and those that options name. */

/* Whether it is named as one, jit-<digits>.dump. */
static bool has_dump_name(const char *path)
{
    const char *name = basename(path);
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

/* What dumps_notice has kept of a mapping; NULL: nothing. Moves with the next dumps_notice. */
static struct marker *marker_of(const struct dumps *dumps, uint32_t pid, const char *path)
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

/* Below the process' root no link is followed, which would lead into our own files: the kernel
 * recorded the path without any. */
static bool stat_in_root(uint32_t pid, const char *path, struct stat *status)
{
    int root = process_root_open((pid_t)pid);
    int fd = root < 0 ? -1 : open_below(root, path, O_PATH);
    bool is = fd >= 0 && fstat(fd, status) == 0;
    descriptor_close(fd);
    descriptor_close(root);
    return is;
}

/*
 * Where the file of a mapping is now. False: nowhere.
 *
 * Where the file may be: the recorded path; the same in the root directory of the process, which
 * may live in a container; beside the recording, where it was copied. Path names are used again
 * (pids repeat, in containers above all), so a file with the recorded inode goes first, and one
 * that another JVM of the recording mapped under this name is that one's.
 */
static bool find_dump_file(const struct dumps *dumps, const struct marker *marker,
                           char path[PATH_MAX])
{
    char candidates[3][PATH_MAX];
    const char *recording = perf_data_path(dumps->data);
    int directory = (int)(basename(recording) - recording);
    int sizes[3] = {
        snprintf(candidates[0], PATH_MAX, "%s", marker->path),
        snprintf(candidates[1], PATH_MAX, "/proc/%u/root%s", marker->pid, marker->path),
        snprintf(candidates[2], PATH_MAX, "%.*s%s", directory, recording, basename(marker->path)),
    };
    bool found = false;
    for (int i = 0; i < 3; i++) {
        struct stat status;
        bool is = sizes[i] < PATH_MAX && (i == 1 ? stat_in_root(marker->pid, marker->path, &status)
                                                 : stat(candidates[i], &status) == 0);
        if (!is || !S_ISREG(status.st_mode)) {
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

int dumps_notice(struct dumps *dumps, const struct mapping *mapping)
{
    uint32_t pid = mapping->pid;
    char path[PATH_MAX];
    if (!mapping->executable || !has_dump_name(mapping->file.path) ||
        marker_of(dumps, pid, mapping->file.path)) {
        return 0;
    }
    char *kept = strdup(mapping->file.path);
    if (!kept || ARRAY_RESERVE(dumps->markers, dumps->marker_count, dumps->marker_room)) {
        free(kept);
        return -ENOMEM;
    }
    struct marker *marker = &dumps->markers[dumps->marker_count++];
    *marker = (struct marker){.pid = pid, .path = kept, .inode = mapping->file.inode, .fd = -1};
    if (dumps->options.live && find_dump_file(dumps, marker, path)) {
        marker->opened = strdup(path);
        marker->fd = marker->opened ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    }
    return 0;
}

static void free_marker(struct marker *marker)
{
    descriptor_close(marker->fd);
    free(marker->path);
    free(marker->opened);
}

/* What was kept for a process goes with it. */
static void forget_markers(struct dumps *dumps, const struct process *process)
{
    uint32_t left = 0;
    for (uint32_t i = 0; i < dumps->marker_count; i++) {
        if (dumps->markers[i].process == process->number) {
            free_marker(&dumps->markers[i]);
        } else {
            dumps->markers[left++] = dumps->markers[i];
        }
    }
    dumps->marker_count = left;
}

static void free_files(struct dumps *dumps)
{
    for (uint32_t i = 0; i < dumps->marker_count; i++) {
        free_marker(&dumps->markers[i]);
    }
    free(dumps->markers);
    free(dumps->named);
}

/* ---- Dumps that options name ---- */

/* Reads the headers of the dumps that options name. 0 or a negative errno after a message. */
static int read_named(struct dumps *dumps)
{
    uint32_t count = dumps->options.named_count;
    dumps->named = calloc(count + (size_t)1, sizeof *dumps->named);
    if (!dumps->named) {
        return dumps_no_memory();
    }
    for (uint32_t i = 0; i < count; i++) {
        struct named_dump *named = &dumps->named[i];
        struct jitdump_reader *reader;
        struct stat status;
        named->path = dumps->options.named[i];
        int err = dumps->options.live ? jitdump_reader_follow(named->path, &reader)
                                      : jitdump_reader_open(named->path, &reader);
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

/*
 * The one of these for a mapping at that time: this very file, of this name and the nearest in
 * time, or with this pid. NULL: none.
 */
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
        if (strcmp(basename(named->path), basename(marker->path)) == 0) {
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

/* ---- Whose they are ---- */

int dumps_no_memory(void)
{
    return failed_to(-ENOMEM, "read the dumps");
}

/* ---- Whose is it ---- */

const struct process_codes *dumps_codes(const struct dumps *dumps)
{
    return &dumps->codes;
}

static void release_dump(struct dumps *dumps, struct jvm_dump *dump)
{
    while (dump) {
        assert(dump->holders > 0); /* invariant 1 */
        bool is_dead = --dump->holders == 0;
        dumps->dead += is_dead;
        dump = is_dead ? dump->earlier : NULL;
    }
}

int dumps_fork(struct dumps *dumps, const struct process *parent, const struct process *process)
{
    struct process_code code = process_code_of(&dumps->codes, parent);
    if (!code.dump) {
        return 0;
    }
    if (ARRAY_REACH(dumps->codes.list, process->index, dumps->codes.room)) {
        return dumps_no_memory();
    }
    assert(!dumps->codes.list[process->index].dump); /* invariant 2 */
    code.until = process->from < code.until ? process->from : code.until;
    code.dump->holders++;
    dumps->codes.list[process->index] = code;
    return 0;
}

void dumps_process_gone(struct dumps *dumps, const struct process *process)
{
    if (process->index < dumps->codes.room) {
        if (dumps->codes.list[process->index].dump) {
            forget_markers(dumps, process);
        }
        release_dump(dumps, dumps->codes.list[process->index].dump);
        dumps->codes.list[process->index] = (struct process_code){0};
    }
}

uint32_t dumps_dead(const struct dumps *dumps)
{
    return dumps->dead;
}

bool dumps_outgrown(const struct dumps *dumps)
{
    for (uint32_t i = 0; i < dumps->count; i++) {
        if (jvm_dump_outgrown(dumps->all[i])) {
            return true;
        }
    }
    return false;
}

int dumps_forget(struct dumps *dumps)
{
    uint32_t left = 0;
    int err = 0;
    for (uint32_t i = 0; i < dumps->count; i++) {
        struct jvm_dump *dump = dumps->all[i];
        if (dump->holders == 0) {
            jvm_dump_free(dump);
            continue;
        }
        code_blobs_free(dump);
        code_blobs_start(dump);
        if (!err && jvm_dump_outgrown(dump)) {
            err = jvm_dump_forget(dump);
        }
        if (dump->about.module && !err) {
            err = jvm_dump_add_module(dumps, dump);
        }
        dumps->all[left] = dump;
        dumps->list[left++] = &dump->about;
    }
    dumps->count = left;
    dumps->dead = 0;
    return err;
}

static struct jvm_dump *add_dump(struct dumps *dumps, const struct process *process,
                                 const char *recorded, uint64_t from)
{
    struct jvm_dump *dump = calloc(1, sizeof *dump);
    char *kept = dump && recorded ? strdup(recorded) : NULL;
    if (!dump || (recorded && !kept) ||
        ARRAY_REACH(dumps->codes.list, process->index, dumps->codes.room) ||
        ARRAY_RESERVE(dumps->all, dumps->count, dumps->room) ||
        ARRAY_RESERVE(dumps->list, dumps->count, dumps->list_room)) {
        free(kept);
        free(dump);
        (void)dumps_no_memory();
        return NULL;
    }
    struct process_code *code = &dumps->codes.list[process->index];
    dump->earlier = code->dump ? process_code_own(*code) : NULL;
    if (!dump->earlier) {
        release_dump(dumps, code->dump);
    } /* else it is held by this one from now on */
    *code = (struct process_code){.dump = dump, .until = UINT64_MAX};
    dump->holders = 1;
    dump->recorded = kept;
    dump->about = (struct recorded_jvm){
        .pid = process->pid,
        .number = dump->earlier ? dump->earlier->about.number + 1 : 0,
        .recorded = kept,
        .from = from,
    };
    dump->code_start = UINT64_MAX;
    code_blobs_start(dump);
    dumps->all[dumps->count] = dump;
    dumps->list[dumps->count++] = &dump->about;
    return dump;
}

static int use_named(struct dumps *dumps, struct jvm_dump *dump, struct named_dump *named,
                     const struct process *process)
{
    named->used = true;
    dumps->unused--;
    if (!named->readable) {
        dump->path = strdup(named->path);
        dump->about.dump = dump->path;
        dump->about.problem = DUMP_UNREADABLE;
        return dump->path ? 0 : dumps_no_memory();
    }
    return jvm_dump_open(dumps, dump, named->path, -1, process);
}

static int map_segment(const struct dumps *dumps, const struct process *process,
                       struct jvm_dump *dump, const char *path)
{
    struct marker *marker = marker_of(dumps, process->pid, path);
    if (marker && marker->fd >= 0) { /* it is read by its number */
        (void)close(marker->fd);
        marker->fd = -1;
    }
    if (marker) {
        marker->process = process->number;
    }
    return jvm_dump_map_segment(dump, path);
}

int dumps_map(struct dumps *dumps, const struct process *process, const struct mapped_file *file,
              uint64_t time)
{
    char path[PATH_MAX];
    if (!has_dump_name(file->identity.path)) {
        return 0;
    }
    for (struct jvm_dump *dump = process_code_own(process_code_of(&dumps->codes, process)); dump;
         dump = dump->earlier) {
        const char *known = dump->about.recorded ? dump->about.recorded : dump->about.dump;
        if (known && dump->segment && jvm_dump_is_segment_of(known, file->identity.path)) {
            return map_segment(dumps, process, dump, file->identity.path);
        }
        if (known && (strcmp(known, file->identity.path) == 0 ||
                      (!dump->about.recorded &&
                       strcmp(basename(known), basename(file->identity.path)) == 0))) {
            return 0; /* mapped twice, or listed and then mapped */
        }
    }
    struct marker unnoticed = {.pid = process->pid, .inode = file->identity.inode, .fd = -1};
    struct jvm_dump *dump = add_dump(dumps, process, file->identity.path, time);
    if (!dump) {
        return -ENOMEM;
    }
    unnoticed.path = dump->recorded;
    struct marker *marker = marker_of(dumps, process->pid, file->identity.path);
    marker = marker ? marker : &unnoticed;
    marker->process = process->number;
    struct named_dump *named = named_for(dumps, marker, time);
    if (named) {
        return use_named(dumps, dump, named, process);
    }
    if (marker->fd >= 0) {
        int fd = marker->fd;
        marker->fd = -1;
        return jvm_dump_open(dumps, dump, marker->opened, fd, process);
    }
    if (find_dump_file(dumps, marker, path)) {
        return jvm_dump_open(dumps, dump, path, -1, process);
    }
    if (jvm_dump_segment(file->identity.path)) {
        dump->about.problem = "its segment has been removed";
        return 0;
    }
    warning_message(
        "the dump %s of process %u is missing; name it with --dump, or put it beside the recording",
        file->identity.path, process->pid);
    dump->about.problem = "its dump was not found";
    return 0;
}

int dumps_seek(struct dumps *dumps, const struct process *process, uint64_t time)
{
    if (dumps->unused == 0 || process_code_of(&dumps->codes, process).dump) {
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
        struct jvm_dump *dump = add_dump(dumps, process, NULL, 0);
        return dump ? use_named(dumps, dump, named, process) : -ENOMEM;
    }
    return 0;
}

/* ---- Growth ---- */

int dumps_update(struct dumps *dumps, bool is_all)
{
    int err = 0;
    for (uint32_t i = 0; i < dumps->count && !err; i++) {
        struct jvm_dump *dump = dumps->all[i];
        if (dump->may_grow && dump->about.index) {
            err = jvm_dump_update(dump, is_all);
        }
    }
    return err;
}

int dumps_update_process(struct process_code code, uint64_t since)
{
    int err = 0;
    for (struct jvm_dump *dump = code.dump; dump && !err; dump = dump->earlier) {
        if (dump->may_grow && dump->about.index && dump->updated < since) {
            err = jvm_dump_update(dump, false);
        }
    }
    return err;
}

int dumps_prepare(struct process_code code, uint64_t since)
{
    struct jvm_dump *dump = code.dump;
    if (!dump || dump->is_prepared || !dump->may_grow || !dump->about.index) {
        return 0;
    }
    int err = dumps_update_process(code, since);
    dump->is_prepared = !err && code_frames_of_interpreter(dump->frames);
    return err;
}

void dumps_let_go(struct dumps *dumps, uint64_t time, bool keep)
{
    for (uint32_t i = 0; i < dumps->count; i++) {
        if (dumps->all[i]->about.index) {
            jvm_dump_let_go(dumps->all[i], time, keep);
        }
    }
}

/* ---- Looking up ---- */

struct found_code dumps_code_at(struct process_code code, uint64_t address, uint64_t time)
{
    struct found_code found = {.until = UINT64_MAX};
    time = time < code.until ? time : code.until;
    for (struct jvm_dump *dump = code.dump; dump; dump = dump->earlier) {
        struct code_index *index = dump->about.index;
        if (!index) {
            continue;
        }
        uint64_t dump_time = jvm_dump_time(dump, time);
        uint64_t began = code_index_header(index)->timestamp;
        uint64_t until = UINT64_MAX;
        if (address >= dump->code_start && address < dump->code_end) {
            found.stay = code_index_at(index, address, dump_time, &until);
        }
        if (!found.stay && dump_time < began && began < until) {
            until = began; /* from then on earlier dumps are not asked */
        }
        until = jvm_dump_recording_time(dump, until);
        found.until = until < found.until ? until : found.until;
        found.dump = dump;
        if (found.stay || dump_time >= began) {
            break; /* an earlier dump did not hear what became of its code since */
        }
    }
    return found;
}

enum unnamed_reason dumps_why_unnamed(struct process_code code, uint64_t address, uint64_t time)
{
    const struct jvm_dump *dump = code.dump;
    while (dump && !dump->about.index) {
        dump = dump->earlier;
    }
    if (!dump) {
        return UNNAMED_NO_DUMP;
    }
    const struct code_index *index = dump->about.index;
    uint64_t first = jvm_dump_recording_time(dump, code_index_header(index)->timestamp);
    if (time < first || code_index_stay_count(index) == 0) {
        return UNNAMED_BEFORE_DUMP;
    }
    if (code_index_at(index, address, UINT64_MAX - 1, NULL)) {
        return UNNAMED_BEFORE_LOAD;
    }
    uint64_t end = jvm_dump_recording_time(dump, code_index_end_stamp(index));
    return time > end && !dump->may_grow ? UNNAMED_AFTER_DUMP : UNNAMED_UNKNOWN;
}

int dumps_notice_thread(struct process_code code, uint32_t tid)
{
    struct jvm_dump *dump = process_code_own(code);
    return dump && dump->inner.inner_pid ? inner_threads_notice(&dump->inner, tid) : 0;
}

/* The dump with the journal of that time. NULL: there is none, or it is not the process' own: the
 * threads of a fork are others than its parent's. */
static struct jvm_dump *journal_dump(struct process_code code, uint64_t time)
{
    struct jvm_dump *dump = process_code_own(code);
    while (dump && (!dump->journal ||
                    jvm_dump_time(dump, time) < code_index_header(dump->about.index)->timestamp)) {
        dump = dump->earlier;
    }
    return dump;
}

void dumps_identify_virtual(struct process_code code, uint64_t id, uint64_t time,
                            struct resolved_thread *thread)
{
    struct jvm_dump *dump = journal_dump(code, time);
    struct thread_identity found = {.virtual_name = ""};
    if (dump) {
        thread_journal_virtual_at(dump->journal, id, jvm_dump_time(dump, time), &found);
    }
    thread->has_journal = dump != NULL;
    thread->virtual_id = id;
    thread->virtual_name = found.virtual_name;
    thread->labels = found.labels;
}

int dumps_identify(struct process_code code, uint32_t number, uint64_t time,
                   struct resolved_thread *thread)
{
    struct jvm_dump *dump = journal_dump(code, time);
    if (!dump) {
        return 0;
    }
    struct thread_identity found;
    uint32_t tid = thread->tid;
    thread->has_journal = true;
    if (dump->inner.inner_pid && inner_threads_tid(&dump->inner, thread->tid, number, time, &tid)) {
        return dumps_no_memory();
    }
    if (tid == 0) {
        thread->is_unknown = true;
        return 0;
    }
    if (thread_journal_at(dump->journal, tid, jvm_dump_time(dump, time), thread->comm,
                          thread->process_name, &found)) {
        return dumps_no_memory();
    }
    thread->comm = found.name ? found.name : thread->comm;
    thread->is_unknown = found.is_unknown;
    thread->virtual_id = found.virtual_id;
    thread->virtual_name = found.virtual_name;
    thread->labels = found.labels;
    return 0;
}

const struct recorded_jvm *const *dumps_list(const struct dumps *dumps, uint32_t *count)
{
    *count = dumps->count;
    return (const struct recorded_jvm *const *)dumps->list;
}

struct jvm_dump *const *dumps_all(const struct dumps *dumps, uint32_t *count)
{
    *count = dumps->count;
    return dumps->all;
}

/* ---- Life ---- */

int dumps_new(struct perf_data *data, struct methods *methods, const struct dumps_options *options,
              struct dumps **out)
{
    struct dumps *dumps = calloc(1, sizeof *dumps);
    *out = NULL;
    if (!dumps) {
        return dumps_no_memory();
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

void dumps_set_conversion(struct dumps *dumps, const struct perf_record *record)
{
    dumps->conversion = (struct time_conversion){
        .known = perf_record_u64(record, 16) > 0 && perf_record_u64(record, 8) < 64,
        .shift = perf_record_u64(record, 8),
        .mult = perf_record_u64(record, 16),
        .zero = perf_record_u64(record, 24),
    };
}

void dumps_free(struct dumps *dumps)
{
    if (!dumps) {
        return;
    }
    for (uint32_t i = 0; i < dumps->count; i++) {
        jvm_dump_free(dumps->all[i]);
    }
    free_files(dumps);
    free(dumps->codes.list);
    free(dumps->all);
    free(dumps->list);
    free(dumps);
}
