/*
 * pprof's profile.proto, gzipped: what go tool pprof and most fleet systems read. Field numbers are
 * those of google/pprof's proto/profile.proto.
 *
 * A location is one machine address with all its inlined methods. Addresses are those of the
 * module, so that they are the same in every process; each module is mapped at 0.
 */
#include "jdtool/base/intern.h"
#include "jdtool/base/protobuf.h"
#include "jdtool/base/text.h"
#include "jdtool/exports/export.h"
#include "jdtool/profile/code_addresses.h"
#include "jdtool/profile/thread_labels.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum profile_field {
    PROFILE_SAMPLE_TYPE = 1,
    PROFILE_SAMPLE = 2,
    PROFILE_MAPPING = 3,
    PROFILE_LOCATION = 4,
    PROFILE_FUNCTION = 5,
    PROFILE_STRING_TABLE = 6,
    PROFILE_TIME = 9,
    PROFILE_DURATION = 10,
    PROFILE_PERIOD_TYPE = 11,
    PROFILE_PERIOD = 12,
    PROFILE_COMMENT = 13,
    PROFILE_DEFAULT_SAMPLE_TYPE = 14,
};

struct pprof {
    const struct profile *profile;
    const struct export_settings *settings;
    struct packed_output *output;
    struct bytes message;
    struct string_table strings;
    uint32_t *mapping_ids; /* by module id; 0: none */
    struct bytes labels;   /* of each thread, one behind the other */
    size_t *label_ends;    /* by thread: where its own end */
};

/* What is complete leaves the buffer. */
static void flush(struct pprof *p)
{
    packed_output_put(p->output, p->message.at, p->message.size);
    p->message.size = 0;
}

static void put_value_type(struct pprof *p, uint32_t field, const char *type, const char *unit)
{
    size_t begun = protobuf_begin(&p->message, field);
    protobuf_uint(&p->message, 1, string_table_add(&p->strings, type));
    protobuf_uint(&p->message, 2, string_table_add(&p->strings, unit));
    protobuf_end(&p->message, begun);
}

static void put_sample_types(struct pprof *p)
{
    const struct recording *recording = p->profile->recording;
    char name[64] = "";
    put_value_type(p, PROFILE_SAMPLE_TYPE, "samples", "count");
    for (uint32_t i = 0; i < recording->event_count; i++) {
        const struct recorded_event *event = &recording->events[i];
        export_event_name(event, name, sizeof name);
        put_value_type(p, PROFILE_SAMPLE_TYPE, name, event->unit);
    }
    if (recording->event_count == 0) {
        return;
    }
    const struct recorded_event *first = &recording->events[0];
    export_event_name(first, name, sizeof name);
    put_value_type(p, PROFILE_PERIOD_TYPE, name, first->unit);
    protobuf_uint(&p->message, PROFILE_PERIOD, export_event_period(first));
    protobuf_uint(&p->message, PROFILE_DEFAULT_SAMPLE_TYPE, string_table_add(&p->strings, name));
}

static void put_label(struct pprof *p, const char *key, const char *text, uint64_t number)
{
    size_t begun = protobuf_begin(&p->labels, 3);
    protobuf_uint(&p->labels, 1, string_table_add(&p->strings, key));
    protobuf_uint(&p->labels, 2, text ? string_table_add(&p->strings, text) : 0);
    protobuf_uint(&p->labels, 3, number);
    protobuf_end(&p->labels, begun);
}

static int put_program_label(void *context, const char *key, const char *value)
{
    put_label(context, key, value, 0);
    return 0;
}

static void put_thread(struct pprof *p, const struct profile_thread *thread)
{
    if (thread->comm[0]) {
        put_label(p, "thread", thread->comm, 0);
    }
    if (profile_process(thread)[0]) {
        put_label(p, "process", profile_process(thread), 0);
    }
    if (thread->virtual_id) {
        if (thread->virtual_name[0]) {
            put_label(p, "virtual_thread", thread->virtual_name, 0);
        }
        put_label(p, "virtual_thread_id", NULL, thread->virtual_id);
    }
    (void)labels_each(thread->labels, put_program_label, p);
    put_label(p, "pid", NULL, thread->pid);
    put_label(p, "tid", NULL, thread->tid);
}

/* All samples of a thread have the same ones. */
static int make_labels(struct pprof *p)
{
    const struct profile *profile = p->profile;
    p->label_ends = calloc((size_t)profile->thread_count + 1, sizeof *p->label_ends);
    for (uint32_t i = 0; p->label_ends && i < profile->thread_count; i++) {
        if (!p->settings->no_threads) {
            put_thread(p, &profile->threads[i]);
        }
        p->label_ends[i] = p->labels.size;
    }
    return p->label_ends && !p->labels.failed ? 0 : -ENOMEM;
}

/* Room for so many locations is asked for at once: they are most of what is written. */
#define LOCATIONS_AT_ONCE 64

static void put_stack(struct bytes *message, const struct profile_node *nodes, uint32_t node)
{
    while (node != PROFILE_NONE) {
        uint8_t *to = bytes_grow(message, (size_t)LOCATIONS_AT_ONCE * LEB128_MAX);
        if (!to) {
            return;
        }
        for (uint32_t i = 0; i < LOCATIONS_AT_ONCE && node != PROFILE_NONE; i++) {
            to += uleb128_put(to, (uint64_t)nodes[node].location + 1);
            node = nodes[node].parent;
        }
        message->size = (size_t)(to - message->at);
    }
}

static void put_sample(struct pprof *p, const struct profile_sample *sample)
{
    const struct profile *profile = p->profile;
    size_t labels = sample->thread ? p->label_ends[sample->thread - 1] : 0;
    size_t begun = protobuf_begin(&p->message, PROFILE_SAMPLE);
    size_t list = protobuf_begin(&p->message, 1);
    put_stack(&p->message, profile->nodes, sample->node);
    protobuf_end(&p->message, list);
    list = protobuf_begin(&p->message, 2);
    bytes_uleb(&p->message, sample->count);
    for (uint32_t i = 0; i < profile->recording->event_count; i++) {
        bytes_uleb(&p->message, i == sample->event ? sample->weight : 0);
    }
    protobuf_end(&p->message, list);
    if (p->label_ends[sample->thread] >
        labels) { /* none at all: there are no bytes to point into */
        bytes_put(&p->message, p->labels.at + labels, p->label_ends[sample->thread] - labels);
    }
    protobuf_end(&p->message, begun);
}

static void put_mapping(struct pprof *p, uint32_t id, const char *path, const char *build_id,
                        const struct module_extent *extent)
{
    size_t begun = protobuf_begin(&p->message, PROFILE_MAPPING);
    protobuf_uint(&p->message, 1, id);
    protobuf_uint(&p->message, 2, extent->start);
    protobuf_uint(&p->message, 3, extent->limit);
    protobuf_uint(&p->message, 4, extent->start);
    protobuf_uint(&p->message, 5, string_table_add(&p->strings, path));
    protobuf_uint(&p->message, 6, string_table_add(&p->strings, build_id));
    protobuf_uint(&p->message, 7, 1); /* has_functions: every location has a name */
    protobuf_uint(&p->message, 8, extent->has_lines);
    protobuf_uint(&p->message, 9, extent->has_lines);
    protobuf_uint(&p->message, 10, extent->has_inlined);
    protobuf_end(&p->message, begun);
}

static void put_module(struct pprof *p, uint32_t id, const struct module *module,
                       const struct module_extent *of)
{
    struct module_extent extent = *of;
    char build_id[BUILD_ID_TEXT];
    text_hex(module->build_id, module->build_id_size, build_id);
    extent.has_lines |= module->kind == MODULE_JVM;
    extent.has_inlined |= module->kind == MODULE_JVM;
    put_mapping(p, id, module->path, build_id, &extent);
    p->mapping_ids[module->id] = id;
}

/* What the process is called that has the most samples; "": there is none. */
static const char *program_name(const struct profile *profile)
{
    uint64_t *counts = calloc((size_t)profile->thread_count + 1, sizeof *counts);
    uint32_t most = 0;
    for (uint32_t i = 0; counts && i < profile->sample_count; i++) {
        counts[profile->samples[i].thread] += profile->samples[i].count;
    }
    for (uint32_t i = 0; counts && i < profile->thread_count; i++) {
        most = counts[i] > counts[most] ? i : most;
    }
    free(counts);
    return profile->thread_count ? profile->threads[most].process_name : "";
}

/* The module of the program of that name, which the kernel has cut; NULL: nothing of it was seen.
 */
static const struct module *find_program(const struct profile *profile, const char *name,
                                         const struct module_extent *extents)
{
    for (uint32_t i = 0; name[0] && i < profile->module_count; i++) {
        const char *slash = extents[i].limit ? strrchr(profile->modules[i]->path, '/') : NULL;
        if (slash && strncmp(slash + 1, name, strlen(name)) == 0) {
            return profile->modules[i];
        }
    }
    return NULL;
}

/* The first one is the program, by which pprof calls the profile; where no sample lies in it, as in
 * java, which only starts the JVM, it is an empty page. */
static int put_mappings(struct pprof *p)
{
    const struct profile *profile = p->profile;
    const struct module_extent nowhere = {.limit = 4096};
    struct module_extent *extents = module_extents(profile);
    p->mapping_ids = calloc((size_t)profile->module_count + 1, sizeof *p->mapping_ids);
    if (extents && p->mapping_ids) {
        const char *name = program_name(profile);
        const struct module *program = find_program(profile, name, extents);
        uint32_t id = program || name[0];
        if (program) {
            put_module(p, id, program, &extents[program->id]);
        } else if (name[0]) {
            put_mapping(p, id, name, "", &nowhere);
        }
        for (uint32_t i = 0; i < profile->module_count; i++) {
            if (extents[i].limit && profile->modules[i] != program) {
                put_module(p, ++id, profile->modules[i], &extents[i]);
            }
        }
    }
    int err = extents && p->mapping_ids ? 0 : -ENOMEM;
    free(extents);
    return err;
}

static void put_location(struct pprof *p, uint32_t id)
{
    const struct profile_location *location = &p->profile->locations[id];
    size_t begun = protobuf_begin(&p->message, PROFILE_LOCATION);
    protobuf_uint(&p->message, 1, (uint64_t)id + 1);
    protobuf_uint(&p->message, 2, location->module ? p->mapping_ids[location->module->id] : 0);
    protobuf_uint(&p->message, 3, location->address);
    for (uint32_t i = 0; i < location->line_count; i++) {
        const struct profile_line *line = &p->profile->lines[location->first_line + i];
        size_t inner = protobuf_begin(&p->message, 4);
        protobuf_uint(&p->message, 1, (uint64_t)line->function + 1);
        protobuf_uint(&p->message, 2, line->line);
        protobuf_end(&p->message, inner);
    }
    protobuf_end(&p->message, begun);
}

static void put_function(struct pprof *p, uint32_t id)
{
    const struct profile_function *function = &p->profile->functions[id];
    size_t begun = protobuf_begin(&p->message, PROFILE_FUNCTION);
    protobuf_uint(&p->message, 1, (uint64_t)id + 1);
    protobuf_uint(&p->message, 2, string_table_add(&p->strings, function->name));
    protobuf_uint(&p->message, 3, string_table_add(&p->strings, function->system_name));
    protobuf_uint(&p->message, 4, string_table_add(&p->strings, function->file));
    protobuf_uint(&p->message, 5, function->first_line);
    protobuf_end(&p->message, begun);
}

static void put_comment(struct pprof *p, const char *what, const char *text)
{
    if (text && text[0]) {
        char comment[4096];
        snprintf(comment, sizeof comment, "%s: %s", what, text);
        size_t begun = protobuf_begin(&p->message, PROFILE_COMMENT);
        bytes_uleb(&p->message, string_table_add(&p->strings, comment));
        protobuf_end(&p->message, begun);
    }
}

static void put_strings(struct pprof *p)
{
    for (uint32_t i = 0; i < p->strings.count; i++) {
        const char *text = p->strings.list[i];
        protobuf_bytes(&p->message, PROFILE_STRING_TABLE, text, strlen(text));
        flush(p);
    }
}

static int put_all(struct pprof *p)
{
    const struct profile *profile = p->profile;
    const struct recording *recording = profile->recording;
    string_table_add(&p->strings, ""); /* number 0 */
    put_sample_types(p);
    if (recording->has_wall) {
        protobuf_uint(&p->message, PROFILE_TIME, export_wall_time(profile, profile->from));
    }
    protobuf_uint(&p->message, PROFILE_DURATION, profile->until - profile->from);
    put_comment(p, "command", recording->command_line);
    put_comment(p, "host", recording->hostname);
    put_comment(p, "perf", recording->perf_version);
    put_comment(p, "verdict", recording->verdict);
    int err = make_labels(p);
    for (uint32_t i = 0; !err && i < profile->sample_count; i++) {
        put_sample(p, &profile->samples[i]);
        flush(p);
    }
    err = err ? err : put_mappings(p);
    for (uint32_t i = 0; !err && i < profile->location_count; i++) {
        put_location(p, i);
        flush(p);
    }
    for (uint32_t i = 0; !err && i < profile->function_count; i++) {
        put_function(p, i);
        flush(p);
    }
    put_strings(p);
    err = err || !p->message.failed ? err : -ENOMEM;
    return err ? err : p->strings.error;
}

static int write_pprof(const struct profile *profile, const struct export_settings *settings,
                       struct packed_output *output)
{
    struct pprof p = {.profile = profile, .settings = settings, .output = output};
    int err = put_all(&p);
    bytes_free(&p.message);
    string_table_free(&p.strings);
    bytes_free(&p.labels);
    free(p.label_ends);
    free(p.mapping_ids);
    return err;
}

extern const struct export_format format_pprof;
const struct export_format format_pprof = {
    .name = "pprof",
    .file = "profile.pb.gz",
    .about = "for go tool pprof, Pyroscope, Parca and others",
    .identities = true,
    .gzip = true,
    .write = write_pprof,
};
