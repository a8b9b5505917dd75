#include "jdtool/resolve/jvms.h"

#include "jdtool/base/message.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* jit-<digits>.dump: the digits, -1 when it is not such a name. */
static long dump_pid(const char *path)
{
    const char *name = base_name(path);
    if (strncmp(name, "jit-", 4) != 0 || !isdigit((unsigned char)name[4])) {
        return -1;
    }
    char *end;
    long pid = strtol(name + 4, &end, 10);
    return strcmp(end, ".dump") == 0 ? pid : -1;
}

static struct jvm *add_jvm(struct jvms *jvms, struct process *process, const char *recorded,
                           uint64_t from)
{
    struct jvm **list = realloc(jvms->list, (jvms->count + 1) * sizeof(struct jvm *));
    if (!list) {
        return NULL;
    }
    jvms->list = list;
    struct jvm *jvm = calloc(1, sizeof *jvm);
    if (jvm) {
        *jvm = (struct jvm){
            .process = process, .earlier = process->owner, .recorded = recorded, .from = from};
        jvm->number = jvm->earlier ? jvm->earlier->number + 1 : 0;
        process->owner = jvm;
        list[jvms->count++] = jvm;
    }
    return jvm;
}

static int find_markers(struct jvms *jvms, struct process *process)
{
    for (uint32_t i = 0; i < process->mapping_count; i++) {
        const struct mapping *mapping = &process->mappings[i];
        if (dump_pid(mapping->path) < 0) {
            continue;
        }
        bool known = false; /* mapped twice, or listed and then mapped */
        for (const struct jvm *jvm = process->owner; jvm; jvm = jvm->earlier) {
            known |= strcmp(jvm->recorded, mapping->path) == 0;
        }
        if (!known && !add_jvm(jvms, process, mapping->path, mapping->from)) {
            return -ENOMEM;
        }
    }
    return 0;
}

/* ---- Finding the file ---- */

static uint64_t recorded_inode(const struct jvm *jvm)
{
    const struct process *process = jvm->process;
    for (uint32_t i = 0; i < process->mapping_count; i++) {
        if (strcmp(process->mappings[i].path, jvm->recorded) == 0) {
            return process->mappings[i].inode;
        }
    }
    return 0;
}

static bool is_of_another(const struct jvms *jvms, const struct jvm *jvm, uint64_t inode)
{
    for (uint32_t i = 0; i < jvms->count; i++) {
        const struct jvm *other = jvms->list[i];
        if (other->process != jvm->process && other->recorded &&
            strcmp(other->recorded, jvm->recorded) == 0 && recorded_inode(other) == inode) {
            return recorded_inode(jvm) != 0;
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
static bool find_file(const struct jvms *jvms, const struct jvm *jvm, const struct perf_data *data,
                      char path[PATH_MAX])
{
    char candidates[3][PATH_MAX];
    const char *recording = perf_data_path(data);
    int directory = (int)(base_name(recording) - recording);
    int sizes[3] = {
        snprintf(candidates[0], PATH_MAX, "%s", jvm->recorded),
        snprintf(candidates[1], PATH_MAX, "/proc/%u/root%s", jvm->process->pid, jvm->recorded),
        snprintf(candidates[2], PATH_MAX, "%.*s%s", directory, recording, base_name(jvm->recorded)),
    };
    uint64_t inode = recorded_inode(jvm);
    bool found = false;
    for (int i = 0; i < 3; i++) {
        struct stat status;
        if (sizes[i] >= PATH_MAX || stat(candidates[i], &status) || !S_ISREG(status.st_mode)) {
            continue;
        }
        bool same = inode && status.st_ino == inode;
        if (same || (!found && !is_of_another(jvms, jvm, status.st_ino))) {
            memcpy(path, candidates[i], PATH_MAX);
            found = true;
        }
        if (same) {
            break;
        }
    }
    return found;
}

static const char unreadable[] = "its dump cannot be read";

static int use_dump(struct jvm *jvm, const char *path)
{
    jvm->dump = strdup(path);
    if (!jvm->dump) {
        return -ENOMEM;
    }
    int err = code_index_open(path, &jvm->index);
    if (err) {
        jvm->index = NULL;
        jvm->why = unreadable;
        return err == -ENOMEM ? err : 0;
    }
    if (code_index_warning(jvm->index)) {
        warning_message("%s: %s", path, code_index_warning(jvm->index));
    }
    return 0;
}

/* The JVM that a file named by --dump is of: one that mapped a file of that name, of several the
 * one that mapped this very file, or mapped it when the dump began; else the one with the pid in
 * the dump's header. NULL: none. */
static struct jvm *jvm_of_dump(const struct jvms *jvms, const char *path,
                               const struct jitdump_header *header)
{
    struct stat status;
    uint64_t inode = stat(path, &status) == 0 ? status.st_ino : 0;
    uint64_t least = UINT64_MAX;
    struct jvm *by_name = NULL;
    struct jvm *by_pid = NULL;
    for (uint32_t i = 0; i < jvms->count; i++) {
        struct jvm *jvm = jvms->list[i];
        if (jvm->dump) {
            continue;
        }
        if (jvm->recorded && strcmp(base_name(jvm->recorded), base_name(path)) == 0) {
            uint64_t distance = header->timestamp > jvm->from ? header->timestamp - jvm->from
                                                              : jvm->from - header->timestamp;
            if (inode && recorded_inode(jvm) == inode) {
                return jvm;
            }
            if (!by_name || distance < least) {
                by_name = jvm;
                least = distance;
            }
        } else if (!by_pid && header->pid && jvm->process->pid == header->pid) {
            by_pid = jvm;
        }
    }
    return by_name ? by_name : by_pid;
}

/* Gives a file named by --dump to its JVM. */
static int use_named_dump(struct jvms *jvms, const struct processes *processes, const char *path)
{
    struct jitdump_reader *reader;
    struct jitdump_header header = {0};
    int err = jitdump_reader_open(path, &reader);
    if (!err) {
        header = *jitdump_reader_header(reader);
        jitdump_reader_close(reader);
    } else if (err != -EINVAL) {
        return err;
    }
    struct jvm *jvm = jvm_of_dump(jvms, path, &header);
    if (err) { /* no dump, or one that was killed before its header: the others are not to suffer */
        if (jvm) {
            jvm->why = unreadable;
            jvm->dump = strdup(path);
        }
        return !jvm || jvm->dump ? 0 : -ENOMEM;
    }
    if (!jvm) {
        bool other_clock = header.flags & JITDUMP_FLAGS_ARCH_TIMESTAMP;
        struct process *process =
            processes_at(processes, header.pid, other_clock ? UINT64_MAX : header.timestamp);
        if (!process || process->owner) {
            warning_message("no process of this recording is the JVM of %s (pid %u); it is left "
                            "out",
                            path, header.pid);
            return 0;
        }
        jvm = add_jvm(jvms, process, NULL, 0);
    }
    return jvm ? use_dump(jvm, path) : -ENOMEM;
}

/* ---- Clocks ---- */

/* Can the dump's stamps be compared with the recording's? Sets up the conversion, if one is due. */
static const char *clock_fault(struct jvm *jvm, const struct perf_data *data,
                               const struct time_conversion *conversion)
{
    const struct perf_event_attr *attr = &perf_data_event(data, 0)->attr;
    if (!perf_data_has(data, PERF_SAMPLE_TIME)) {
        return "the recording has no time stamps; record with 'perf record -T -k mono'";
    }
    if (!(code_index_header(jvm->index)->flags & JITDUMP_FLAGS_ARCH_TIMESTAMP)) {
        return attr->use_clockid && attr->clockid == CLOCK_MONOTONIC
                   ? NULL
                   : "the recording's clock is not the dump's; record with 'perf record -k mono'";
    }
    if (attr->use_clockid) {
        return "the dump has the processor's time stamps; record without -k, or run the agent "
               "with clock=monotonic";
    }
    if (!conversion->known) {
        return "the dump has the processor's time stamps and the recording does not say how to "
               "convert them; run the agent with clock=monotonic and record with "
               "'perf record -k mono'";
    }
    jvm->conversion = *conversion;
    return NULL;
}

uint64_t jvm_recording_time(const struct jvm *jvm, uint64_t dump_time)
{
    const struct time_conversion *c = &jvm->conversion;
    if (!c->known) {
        return dump_time;
    }
    uint64_t whole = dump_time >> c->shift;
    uint64_t rest = dump_time & ((UINT64_C(1) << c->shift) - 1);
    return c->zero + whole * c->mult + ((rest * c->mult) >> c->shift);
}

static uint64_t dump_time(const struct jvm *jvm, uint64_t recording_time)
{
    const struct time_conversion *c = &jvm->conversion;
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
#define MAPS_WITHIN (UINT64_C(10) * 1000 * 1000 * 1000) /* of the dump's first records, in ns */

static bool is_of_earlier_run(const struct jvm *jvm)
{
    uint64_t last = code_index_last_stamp(jvm->index);
    if (last == 0) { /* nothing in it, or its writer has no clock */
        return false;
    }
    uint64_t time = jvm_recording_time(jvm, last);
    return time < jvm->process->from || (jvm->from > MAPS_WITHIN && time < jvm->from - MAPS_WITHIN);
}

/* ---- All of it ---- */

static void set_bounds(struct jvm *jvm)
{
    jvm->code_start = UINT64_MAX;
    for (uint32_t i = 0; i < code_index_stay_count(jvm->index); i++) {
        const struct code_stay *stay = code_index_stay(jvm->index, i);
        uint64_t end = stay->address + stay->size;
        jvm->code_start = stay->address < jvm->code_start ? stay->address : jvm->code_start;
        jvm->code_end = end > jvm->code_end ? end : jvm->code_end;
    }
}

/*
 * Chains hold the same addresses again and again. Where code never gave way to other code, the
 * answer for an address is the same for as long as it stays.
 */
#define ANSWERS 8192

struct code_answer {
    uint64_t address;
    uint32_t stay; /* plus one; 0: empty */
};

static int by_address(const void *left, const void *right, void *index)
{
    uint64_t a = code_index_stay(index, *(const uint32_t *)left)->address;
    uint64_t b = code_index_stay(index, *(const uint32_t *)right)->address;
    return (a > b) - (a < b);
}

/* Every stay is marked that begins before an earlier one's end, and the one that reaches furthest:
 * any other that is overlapped began before that one's end itself. */
static int find_lone_stays(struct jvm *jvm)
{
    uint32_t count = code_index_stay_count(jvm->index);
    uint32_t *order = malloc((count + (size_t)1) * sizeof *order);
    jvm->lone_stays = malloc((count / 64 + (size_t)1) * sizeof(uint64_t));
    jvm->answers = calloc(ANSWERS, sizeof *jvm->answers);
    if (!order || !jvm->lone_stays || !jvm->answers) {
        free(order);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < count; i++) {
        order[i] = i;
    }
    if (count) {
        qsort_r(order, count, sizeof *order, by_address, jvm->index);
    }
    memset(jvm->lone_stays, 0xff, (count / 64 + (size_t)1) * sizeof(uint64_t));
    uint64_t end = 0;
    uint32_t furthest = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct code_stay *stay = code_index_stay(jvm->index, order[i]);
        if (i > 0 && stay->address < end) {
            jvm->lone_stays[order[i] / 64] &= ~(UINT64_C(1) << (order[i] % 64));
            jvm->lone_stays[furthest / 64] &= ~(UINT64_C(1) << (furthest % 64));
        }
        if (stay->address + stay->size > end) {
            end = stay->address + stay->size;
            furthest = order[i];
        }
    }
    free(order);
    return 0;
}

/* What code_index_at answers. */
static const struct code_stay *stay_at(const struct jvm *jvm, uint64_t address, uint64_t time)
{
    struct code_answer *answer = &jvm->answers[(address ^ address >> 13) % ANSWERS];
    if (answer->stay && answer->address == address) {
        const struct code_stay *stay = code_index_stay(jvm->index, answer->stay - 1);
        return time >= stay->from && time < stay->until ? stay : NULL;
    }
    const struct code_stay *stay = code_index_at(jvm->index, address, time, NULL);
    if (stay) {
        uint32_t number = stay->number;
        if (jvm->lone_stays[number / 64] >> (number % 64) & 1) {
            *answer = (struct code_answer){address, number + 1};
        }
    }
    return stay;
}

static int prepare(const struct jvms *jvms, struct jvm *jvm, const struct perf_data *data,
                   const struct time_conversion *conversion, const char *const *suffixes)
{
    char path[PATH_MAX];
    int err = 0;
    if (!jvm->dump) {
        if (find_file(jvms, jvm, data, path)) {
            err = use_dump(jvm, path);
        } else {
            warning_message("the dump %s of process %u is not there; name it with --dump, or put "
                            "it beside the recording",
                            jvm->recorded, jvm->process->pid);
            jvm->why = "its dump was not found";
        }
    }
    if (err || !jvm->index) {
        return err;
    }
    const char *fault = clock_fault(jvm, data, conversion);
    if (!fault && is_of_earlier_run(jvm)) {
        fault = "it is the dump of an earlier run that had the same name; name the right one with "
                "--dump";
    }
    if (fault) {
        warning_message("cannot use %s: %s", jvm->dump, fault);
        jvm->why = fault;
        code_index_close(jvm->index);
        jvm->index = NULL;
        return 0;
    }
    set_bounds(jvm);
    err = find_lone_stays(jvm);
    if (err) {
        return err;
    }
    jvm->touched_stays = calloc(code_index_stay_count(jvm->index) / 64 + 1, sizeof(uint64_t));
    jvm->touched_blobs = calloc(code_index_blob_count(jvm->index) / 64 + 1, sizeof(uint64_t));
    jvm->frames = frame_table_new(jvm->number, suffixes);
    return jvm->touched_stays && jvm->touched_blobs && jvm->frames ? 0 : -ENOMEM;
}

int jvms_find(struct perf_data *data, struct processes *processes,
              const struct jvms_options *options, struct jvms *jvms)
{
    struct time_conversion conversion = processes_time_conversion(processes);
    int err = 0;
    *jvms = (struct jvms){0};
    for (uint32_t i = 0; i < processes_count(processes) && !err; i++) {
        err = find_markers(jvms, processes_get(processes, i));
    }
    for (uint32_t i = 0; i < options->dump_count && !err; i++) {
        err = use_named_dump(jvms, processes, options->dumps[i]);
    }
    for (uint32_t i = 0; i < jvms->count && !err; i++) {
        err = prepare(jvms, jvms->list[i], data, &conversion, options->suffixes);
    }
    if (err) {
        if (err == -ENOMEM) {
            error_message("failed to read the dumps: %s", strerror(ENOMEM));
        }
        jvms_free(jvms);
    }
    return err;
}

void jvms_free(struct jvms *jvms)
{
    for (uint32_t i = 0; i < jvms->count; i++) {
        struct jvm *jvm = jvms->list[i];
        code_index_close(jvm->index);
        frame_table_free(jvm->frames);
        free(jvm->lone_stays);
        free(jvm->answers);
        free(jvm->touched_stays);
        free(jvm->touched_blobs);
        free(jvm->dump);
        free(jvm);
    }
    free(jvms->list);
    *jvms = (struct jvms){0};
}

struct jvm *jvms_of(const struct process *process)
{
    while (process && !process->owner) {
        process = process->parent;
    }
    return process ? process->owner : NULL;
}

bool jvms_code_at(const struct process *process, uint64_t address, uint64_t time,
                  struct code_place *place)
{
    while (process && !process->owner) { /* a fork runs with the memory its parent had then */
        if (process->from < time) {
            time = process->from;
        }
        process = process->parent;
    }
    for (struct jvm *jvm = process ? process->owner : NULL; jvm; jvm = jvm->earlier) {
        if (!jvm->index) {
            continue;
        }
        uint64_t dump_clock = dump_time(jvm, time);
        const struct code_stay *stay = NULL;
        if (address >= jvm->code_start && address < jvm->code_end) {
            stay = stay_at(jvm, address, dump_clock);
        }
        if (!stay && dump_clock >= code_index_header(jvm->index)->timestamp) {
            return false; /* an earlier dump did not hear what became of its code since */
        }
        if (stay) {
            *place = (struct code_place){
                .jvm = jvm,
                .stay = stay->number,
                .of = stay,
            };
            return true;
        }
    }
    return false;
}

void jvms_touch(const struct code_place *place)
{
    uint32_t blob = place->of->blob;
    place->jvm->touched_stays[place->stay / 64] |= UINT64_C(1) << (place->stay % 64);
    place->jvm->touched_blobs[blob / 64] |= UINT64_C(1) << (blob % 64);
}

struct jvm *jvms_of_frame(const struct process *process, uint64_t frame)
{
    uint64_t number = (frame - FRAME_BASE) / FRAME_SPACE;
    struct jvm *jvm = jvms_of(process);
    while (jvm && jvm->number != number) {
        jvm = jvm->earlier;
    }
    return jvm && jvm->frames ? jvm : NULL;
}
