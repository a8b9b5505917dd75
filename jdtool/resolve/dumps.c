#include "jdtool/base/array.h"
#include "jdtool/base/message.h"
#include "jdtool/resolve/dumps_private.h"
#include "jdtool/resolve/pieces.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int dumps_no_memory(void)
{
    error_message("failed to read the dumps: %s", strerror(ENOMEM));
    return -ENOMEM;
}

/* ---- Whose is it ---- */

const struct process_codes *dumps_codes(const struct dumps *dumps)
{
    return &dumps->codes;
}

static void release_source(struct dumps *dumps, struct code_source *source)
{
    while (source) {
        assert(source->holders > 0); /* invariant 1 */
        bool is_dead = --source->holders == 0;
        dumps->dead += is_dead;
        source = is_dead ? source->earlier : NULL;
    }
}

int dumps_fork(struct dumps *dumps, const struct process *parent, const struct process *process)
{
    struct process_code code = process_code_of(&dumps->codes, parent);
    if (!code.source) {
        return 0;
    }
    if (array_reach(&dumps->codes.list, process->index, &dumps->codes.room,
                    sizeof *dumps->codes.list)) {
        return dumps_no_memory();
    }
    assert(!dumps->codes.list[process->index].source); /* invariant 2 */
    code.until = process->from < code.until ? process->from : code.until;
    code.source->holders++;
    dumps->codes.list[process->index] = code;
    return 0;
}

void dumps_process_gone(struct dumps *dumps, const struct process *process)
{
    if (process->index < dumps->codes.room) {
        if (dumps->codes.list[process->index].source) {
            dump_files_gone(dumps, process);
        }
        release_source(dumps, dumps->codes.list[process->index].source);
        dumps->codes.list[process->index] = (struct process_code){0};
    }
}

uint32_t dumps_dead(const struct dumps *dumps)
{
    return dumps->dead;
}

int dumps_forget(struct dumps *dumps)
{
    uint32_t left = 0;
    int err = 0;
    for (uint32_t i = 0; i < dumps->count; i++) {
        struct code_source *source = dumps->sources[i];
        if (source->holders == 0) {
            code_source_free(source);
            continue;
        }
        pieces_free(source);
        pieces_start(source);
        if (source->about.module && !err) {
            err = code_source_add_module(dumps, source);
        }
        dumps->sources[left] = source;
        dumps->list[left++] = &source->about;
    }
    dumps->count = left;
    dumps->dead = 0;
    return err;
}

static struct code_source *add_source(struct dumps *dumps, const struct process *process,
                                      const char *recorded, uint64_t from)
{
    struct code_source *source = calloc(1, sizeof *source);
    char *kept = source && recorded ? strdup(recorded) : NULL;
    if (!source || (recorded && !kept) ||
        array_reach(&dumps->codes.list, process->index, &dumps->codes.room,
                    sizeof *dumps->codes.list) ||
        array_reserve(&dumps->sources, dumps->count, &dumps->room, sizeof(struct code_source *)) ||
        array_reserve(&dumps->list, dumps->count, &dumps->list_room,
                      sizeof(struct recorded_jvm *))) {
        free(kept);
        free(source);
        (void)dumps_no_memory();
        return NULL;
    }
    struct process_code *code = &dumps->codes.list[process->index];
    source->earlier = code->source ? process_code_own(*code) : NULL;
    if (!source->earlier) {
        release_source(dumps, code->source);
    } /* else it is held by this one from now on */
    *code = (struct process_code){.source = source, .until = UINT64_MAX};
    source->holders = 1;
    source->recorded = kept;
    source->about = (struct recorded_jvm){
        .pid = process->pid,
        .number = source->earlier ? source->earlier->about.number + 1 : 0,
        .recorded = kept,
        .from = from,
    };
    source->code_start = UINT64_MAX;
    pieces_start(source);
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
        source->about.problem = DUMP_UNREADABLE;
        return source->path ? 0 : dumps_no_memory();
    }
    return code_source_open(dumps, source, named->path, -1, process);
}

static int map_segment(const struct dumps *dumps, const struct process *process,
                       struct code_source *source, const char *path)
{
    struct marker *marker = dump_files_marker(dumps, process->pid, path);
    if (marker && marker->fd >= 0) { /* it is read by its number */
        (void)close(marker->fd);
        marker->fd = -1;
    }
    if (marker) {
        marker->process = process->number;
    }
    return code_source_map_segment(source, path);
}

int dumps_map(struct dumps *dumps, const struct process *process, const struct mapped_file *file,
              uint64_t time)
{
    char path[PATH_MAX];
    if (!dump_files_has_name(file->path)) {
        return 0;
    }
    for (struct code_source *source = process_code_own(process_code_of(&dumps->codes, process));
         source; source = source->earlier) {
        const char *known = source->about.recorded ? source->about.recorded : source->about.dump;
        if (known && source->segment && code_source_is_segment_of(known, file->path)) {
            return map_segment(dumps, process, source, file->path);
        }
        if (known &&
            (strcmp(known, file->path) == 0 ||
             (!source->about.recorded && strcmp(base_name(known), base_name(file->path)) == 0))) {
            return 0; /* mapped twice, or listed and then mapped */
        }
    }
    struct marker unnoticed = {.pid = process->pid, .inode = file->inode, .fd = -1};
    struct code_source *source = add_source(dumps, process, file->path, time);
    if (!source) {
        return -ENOMEM;
    }
    unnoticed.path = source->recorded;
    struct marker *marker = dump_files_marker(dumps, process->pid, file->path);
    marker = marker ? marker : &unnoticed;
    marker->process = process->number;
    struct named_dump *named = dump_files_named_for(dumps, marker, time);
    if (named) {
        return use_named(dumps, source, named, process);
    }
    if (marker->fd >= 0) {
        int fd = marker->fd;
        marker->fd = -1;
        return code_source_open(dumps, source, marker->opened, fd, process);
    }
    if (dump_files_find(dumps, marker, path)) {
        return code_source_open(dumps, source, path, -1, process);
    }
    if (code_source_segment(file->path)) {
        source->about.problem = "its segment has been removed";
        return 0;
    }
    warning_message("the dump %s of process %u is not there; name it with --dump, or put it beside "
                    "the recording",
                    file->path, process->pid);
    source->about.problem = "its dump was not found";
    return 0;
}

int dumps_seek(struct dumps *dumps, const struct process *process, uint64_t time)
{
    if (dumps->unused == 0 || process_code_of(&dumps->codes, process).source) {
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

int dumps_update(struct dumps *dumps, bool is_all)
{
    int err = 0;
    for (uint32_t i = 0; i < dumps->count && !err; i++) {
        struct code_source *source = dumps->sources[i];
        if (source->may_grow && source->about.index) {
            err = code_source_update(source, is_all);
        }
    }
    return err;
}

int dumps_update_process(struct process_code code, uint64_t since)
{
    int err = 0;
    for (struct code_source *source = code.source; source && !err; source = source->earlier) {
        if (source->may_grow && source->about.index && source->updated < since) {
            err = code_source_update(source, false);
        }
    }
    return err;
}

void dumps_let_go(struct dumps *dumps, uint64_t time, bool keep)
{
    for (uint32_t i = 0; i < dumps->count; i++) {
        if (dumps->sources[i]->about.index) {
            code_source_let_go(dumps->sources[i], time, keep);
        }
    }
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

struct code_place dumps_code_at(struct process_code code, uint64_t address, uint64_t time)
{
    struct code_place place = {.until = UINT64_MAX};
    time = time < code.until ? time : code.until;
    for (struct code_source *source = code.source; source; source = source->earlier) {
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

enum unnamed_reason dumps_why_unnamed(struct process_code code, uint64_t address, uint64_t time)
{
    const struct code_source *source = code.source;
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

int dumps_notice_thread(struct process_code code, uint32_t tid)
{
    struct code_source *source = process_code_own(code);
    return source && source->inner.inner_pid ? inner_threads_notice(&source->inner, tid) : 0;
}

/* The dump with the journal of that time. NULL: there is none, or it is not the process' own: the
 * threads of a fork are others than its parent's. */
static struct code_source *journal_source(struct process_code code, uint64_t time)
{
    struct code_source *source = process_code_own(code);
    while (source && (!source->journal || code_source_dump_time(source, time) <
                                              code_index_header(source->about.index)->timestamp)) {
        source = source->earlier;
    }
    return source;
}

void dumps_identify_virtual(struct process_code code, uint64_t id, uint64_t time,
                            struct resolved_thread *thread)
{
    struct code_source *source = journal_source(code, time);
    struct thread_identity found = {.virtual_name = ""};
    if (source) {
        thread_journal_virtual_at(source->journal, id, code_source_dump_time(source, time), &found);
    }
    thread->has_journal = source != NULL;
    thread->virtual_id = id;
    thread->virtual_name = found.virtual_name;
    thread->labels = found.labels;
}

int dumps_identify(struct process_code code, uint32_t number, uint64_t time,
                   struct resolved_thread *thread)
{
    struct code_source *source = journal_source(code, time);
    if (!source) {
        return 0;
    }
    struct thread_identity found;
    uint32_t tid = thread->tid;
    thread->has_journal = true;
    if (source->inner.inner_pid &&
        inner_threads_tid(&source->inner, thread->tid, number, time, &tid)) {
        return dumps_no_memory();
    }
    if (tid == 0) {
        thread->is_unknown = true;
        return 0;
    }
    if (thread_journal_at(source->journal, tid, code_source_dump_time(source, time), thread->comm,
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
        return dumps_no_memory();
    }
    dumps->data = data;
    dumps->methods = methods;
    dumps->options = *options;
    int err = dump_files_read_named(dumps);
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
        code_source_free(dumps->sources[i]);
    }
    dump_files_free(dumps);
    free(dumps->codes.list);
    free(dumps->sources);
    free(dumps->list);
    free(dumps);
}
