/*
 * OTLP profiles, the shape of OpenTelemetry's protocol since 1.10 (profiles/v1development): an
 * ExportProfilesServiceRequest, which is also a ProfilesData. A resource for each process, a
 * profile for each event. What is sampled by a clock has timestamps alone, as the eBPF profiler
 * sends it, all else weights beside them.
 */
#include "format/fnv1a.h"
#include "jdtool/base/intern.h"
#include "jdtool/base/json_writer.h"
#include "jdtool/base/protobuf.h"
#include "jdtool/base/text.h"
#include "jdtool/base/unique.h"
#include "jdtool/exports/export.h"
#include "jdtool/profile/code_addresses.h"
#include "jdtool/profile/thread_labels.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Messages ---- */

/*
 * Writes one message as protobuf or as protobuf's JSON (lowerCamelCase names, 64-bit integers as
 * strings), so that a format that has both is described once. What is zero or empty is left out,
 * elements of lists apart.
 */

/* One of the two is set. */
struct message_writer {
    struct bytes *protobuf;
    struct json_writer *json;
};

static void json_uint64(struct json_writer *json, const char *name, uint64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, value);
    json_text(json, name, text);
}

/* A submessage; inside a list the name is NULL. What begin returns is for its end. */
static size_t message_begin(struct message_writer *writer, uint32_t field, const char *name)
{
    if (writer->protobuf) {
        return protobuf_begin(writer->protobuf, field);
    }
    json_object(writer->json, name);
    return 0;
}

static void message_end(struct message_writer *writer, size_t begun)
{
    if (writer->protobuf) {
        protobuf_end(writer->protobuf, begun);
    } else {
        json_end(writer->json);
    }
}

/* Around the elements of a repeated field that are submessages or texts. */
static void message_list(struct message_writer *writer, const char *name)
{
    if (writer->json) {
        json_array(writer->json, name);
    }
}

static void message_list_end(struct message_writer *writer)
{
    if (writer->json) {
        json_end(writer->json);
    }
}

static void message_uint32(struct message_writer *writer, uint32_t field, const char *name,
                           uint32_t value)
{
    if (writer->protobuf) {
        protobuf_uint(writer->protobuf, field, value);
    } else if (value) {
        json_uint(writer->json, name, value);
    }
}

static void message_uint64(struct message_writer *writer, uint32_t field, const char *name,
                           uint64_t value)
{
    if (writer->protobuf) {
        protobuf_uint(writer->protobuf, field, value);
    } else if (value) {
        json_uint64(writer->json, name, value);
    }
}

static void message_fixed64(struct message_writer *writer, uint32_t field, const char *name,
                            uint64_t value)
{
    if (writer->protobuf) {
        protobuf_fixed64(writer->protobuf, field, value);
    } else if (value) {
        json_uint64(writer->json, name, value);
    }
}

/* name NULL: an element, written also when it is empty. */
static void message_text(struct message_writer *writer, uint32_t field, const char *name,
                         const char *text)
{
    if (name && !text[0]) {
        return;
    }
    if (writer->json) {
        json_text(writer->json, name, text);
        return;
    }
    char *mended = text_is_utf8(text) ? NULL : text_mended(text);
    text = mended ? mended : text;
    protobuf_bytes(writer->protobuf, field, text, strlen(text));
    free(mended);
}

/* Bytes that JSON has as hexadecimal digits, which is OpenTelemetry's rule for ids. */
static void message_id(struct message_writer *writer, uint32_t field, const char *name,
                       const uint8_t *bytes, size_t size)
{
    char text[65];
    if (writer->protobuf) {
        protobuf_bytes(writer->protobuf, field, bytes, size);
        return;
    }
    text_hex(bytes, size < sizeof text / 2 ? size : sizeof text / 2, text);
    json_text(writer->json, name, text);
}

/* A packed list of integers; it is begun and ended by message_packed and message_packed_end. */
static size_t message_packed(struct message_writer *writer, uint32_t field, const char *name)
{
    if (writer->protobuf) {
        return protobuf_begin(writer->protobuf, field);
    }
    json_array(writer->json, name);
    return 0;
}

static void message_packed_uint32(struct message_writer *writer, uint32_t value)
{
    if (writer->protobuf) {
        bytes_uleb(writer->protobuf, value);
    } else {
        json_uint(writer->json, NULL, value);
    }
}

static void message_packed_uint64(struct message_writer *writer, uint64_t value)
{
    if (writer->protobuf) {
        bytes_uleb(writer->protobuf, value);
    } else {
        json_uint64(writer->json, NULL, value);
    }
}

static void message_packed_fixed64(struct message_writer *writer, uint64_t value)
{
    if (writer->protobuf) {
        bytes_u64(writer->protobuf, value);
    } else {
        json_uint64(writer->json, NULL, value);
    }
}

static void message_packed_end(struct message_writer *writer, size_t begun)
{
    message_end(writer, begun);
}

/* ---- The profile ---- */

/* ---- The dictionary ---- */

/* The dictionary: each table begins with an empty element, so that 0 means none. */

/* Of a sample, a location or a mapping; text or, where that is NULL, a number. */
struct otlp_attribute {
    const char *text;
    uint64_t number;
    uint32_t key; /* number of its string */
};

#define ATTRIBUTE_KEY (offsetof(struct otlp_attribute, key) + sizeof(uint32_t))

struct otlp {
    const struct profile *profile;
    const struct export_settings *settings;
    struct message_writer writer;
    struct bytes message;    /* what writer writes into: the one */
    struct json_writer json; /* or the other */
    struct string_table strings;
    struct otlp_attribute *attributes; /* [0] is the empty one, as in all tables */
    uint32_t attribute_count, attribute_room;
    struct hash_map attribute_map;
    struct intern texts; /* of the attributes: they are not in the string table */
    uint32_t *stacks;    /* nodes; [0] is none */
    uint32_t stack_count, stack_room;
    uint32_t *stack_of_node; /* 0: not in the table yet */
    uint32_t *mapping_ids;   /* by module id; 0: none */
    int error;               /* 0 or -ENOMEM */
};

/* The number of an attribute in the table; text NULL: it is a number. */
static uint32_t otlp_attribute(struct otlp *o, const char *key, const char *text, uint64_t number)
{
    struct otlp_attribute made = {.key = string_table_add(&o->strings, key), .number = number};
    if (text) {
        made.text = intern(&o->texts, text);
    }
    uint32_t at = unique_add(&o->attributes, &o->attribute_count, &o->attribute_room, sizeof made,
                             &o->attribute_map, &made, ATTRIBUTE_KEY);
    if ((text && !made.text) || at == HASH_MAP_NONE) {
        o->error = -ENOMEM;
        return 0;
    }
    return at;
}

/* The number of a stack in the table; PROFILE_NONE has 0. */
static uint32_t otlp_stack(struct otlp *o, uint32_t node)
{
    if (node == PROFILE_NONE) {
        return 0;
    }
    if (!o->stack_of_node[node]) {
        if (ARRAY_RESERVE(o->stacks, o->stack_count, o->stack_room)) {
            o->error = -ENOMEM;
            return 0;
        }
        o->stacks[o->stack_count] = node;
        o->stack_of_node[node] = o->stack_count++;
    }
    return o->stack_of_node[node];
}

static void put_empty(struct message_writer *w, uint32_t field)
{
    message_end(w, message_begin(w, field, NULL));
}

static void put_attribute_index(struct message_writer *w, uint32_t field, uint32_t index)
{
    size_t list = message_packed(w, field, "attributeIndices");
    message_packed_uint32(w, index);
    message_packed_end(w, list);
}

static void put_mappings(struct otlp *o)
{
    struct message_writer *w = &o->writer;
    const struct profile *profile = o->profile;
    struct module_extent *extents = module_extents(profile);
    o->mapping_ids = calloc((size_t)profile->module_count + 1, sizeof *o->mapping_ids);
    uint32_t count = 0;
    message_list(w, "mappingTable");
    put_empty(w, 1);
    for (uint32_t i = 0; extents && o->mapping_ids && i < profile->module_count; i++) {
        const struct module *module = profile->modules[i];
        char build_id[BUILD_ID_TEXT];
        if (!extents[i].limit) {
            continue;
        }
        o->mapping_ids[i] = ++count;
        text_hex(module->build_id, module->build_id_size, build_id);
        size_t begun = message_begin(w, 1, NULL);
        message_uint64(w, 1, "memoryStart", extents[i].start);
        message_uint64(w, 2, "memoryLimit", extents[i].limit);
        message_uint64(w, 3, "fileOffset", extents[i].start);
        message_uint32(w, 4, "filenameStrindex", string_table_add(&o->strings, module->path));
        if (build_id[0]) {
            put_attribute_index(w, 5,
                                otlp_attribute(o, "process.executable.build_id.gnu", build_id, 0));
        }
        message_end(w, begun);
    }
    message_list_end(w);
    o->error = extents && o->mapping_ids ? o->error : -ENOMEM;
    free(extents);
}

/* OpenTelemetry's profile.frame.type; NULL: none of its values fits. */
static const char *frame_type(const struct profile_line *own)
{
    switch (own->kind) {
    case RESOLVED_KERNEL:
        return "kernel";
    case RESOLVED_NATIVE:
        return "native";
    case RESOLVED_UNKNOWN:
        return NULL;
    default:
        return "jvm";
    }
}

static void put_location(struct otlp *o, const struct profile_location *location)
{
    struct message_writer *w = &o->writer;
    const struct profile_line *lines = &o->profile->lines[location->first_line];
    const char *type = frame_type(&lines[location->line_count - 1]);
    size_t begun = message_begin(w, 2, NULL);
    message_uint32(w, 1, "mappingIndex",
                   location->module ? o->mapping_ids[location->module->id] : 0);
    message_uint64(w, 2, "address", location->address);
    message_list(w, "lines");
    for (uint32_t k = 0; k < location->line_count; k++) {
        size_t line = message_begin(w, 3, NULL);
        message_uint32(w, 1, "functionIndex", lines[k].function + 1);
        message_uint64(w, 2, "line", lines[k].line);
        message_end(w, line);
    }
    message_list_end(w);
    if (type) {
        put_attribute_index(w, 4, otlp_attribute(o, "profile.frame.type", type, 0));
    }
    message_end(w, begun);
}

static void put_locations(struct otlp *o)
{
    struct message_writer *w = &o->writer;
    message_list(w, "locationTable");
    put_empty(w, 2);
    for (uint32_t i = 0; !o->error && i < o->profile->location_count; i++) {
        put_location(o, &o->profile->locations[i]);
    }
    message_list_end(w);
}

static void put_functions(struct otlp *o)
{
    struct message_writer *w = &o->writer;
    message_list(w, "functionTable");
    put_empty(w, 3);
    for (uint32_t i = 0; i < o->profile->function_count; i++) {
        const struct profile_function *function = &o->profile->functions[i];
        size_t begun = message_begin(w, 3, NULL);
        message_uint32(w, 1, "nameStrindex", string_table_add(&o->strings, function->name));
        message_uint32(w, 2, "systemNameStrindex",
                       string_table_add(&o->strings, function->system_name));
        message_uint32(w, 3, "filenameStrindex", string_table_add(&o->strings, function->file));
        message_uint64(w, 4, "startLine", function->first_line);
        message_end(w, begun);
    }
    message_list_end(w);
}

static void put_stacks(struct otlp *o)
{
    struct message_writer *w = &o->writer;
    message_list(w, "stackTable");
    put_empty(w, 7);
    for (uint32_t i = 1; i < o->stack_count; i++) {
        size_t begun = message_begin(w, 7, NULL);
        size_t list = message_packed(w, 1, "locationIndices");
        for (uint32_t at = o->stacks[i]; at != PROFILE_NONE; at = o->profile->nodes[at].parent) {
            message_packed_uint32(w, o->profile->nodes[at].location + 1);
        }
        message_packed_end(w, list);
        message_end(w, begun);
    }
    message_list_end(w);
}

static void put_attributes(struct otlp *o)
{
    struct message_writer *w = &o->writer;
    message_list(w, "attributeTable");
    put_empty(w, 6);
    for (uint32_t i = 1; i < o->attribute_count; i++) {
        const struct otlp_attribute *attribute = &o->attributes[i];
        size_t begun = message_begin(w, 6, NULL);
        message_uint32(w, 1, "keyStrindex", attribute->key);
        size_t value = message_begin(w, 2, "value");
        if (attribute->text) {
            message_text(w, 1, "stringValue", attribute->text);
        } else {
            message_uint64(w, 3, "intValue", attribute->number);
        }
        message_end(w, value);
        message_end(w, begun);
    }
    message_list_end(w);
}

/* Everything that was used, the last part of the request. */
static void otlp_put_dictionary(struct otlp *o)
{
    struct message_writer *w = &o->writer;
    size_t begun = message_begin(w, 2, "dictionary");
    put_mappings(o);
    put_locations(o);
    put_functions(o);
    /* The proto recommends zero bytes in it; profcheck and Parca want it empty. */
    message_list(w, "linkTable");
    put_empty(w, 4);
    message_list_end(w);
    put_stacks(o);
    put_attributes(o);
    message_list(w, "stringTable");
    for (uint32_t i = 0; i < o->strings.count; i++) {
        message_text(w, 5, NULL, o->strings.list[i]);
    }
    message_list_end(w);
    message_end(w, begun);
}

/* ---- Samples ---- */

static void put_value_type(struct otlp *o, uint32_t field, const char *name, const char *type,
                           const char *unit)
{
    struct message_writer *w = &o->writer;
    size_t begun = message_begin(w, field, name);
    message_uint32(w, 1, "typeStrindex", string_table_add(&o->strings, type));
    message_uint32(w, 2, "unitStrindex", string_table_add(&o->strings, unit));
    message_end(w, begun);
}

static int put_program_label(void *context, const char *key, const char *value)
{
    struct otlp *o = context;
    message_packed_uint32(&o->writer, otlp_attribute(o, key, value, 0));
    return 0;
}

/* order[0, count): samples of one thread and stack. */
static void put_sample(struct otlp *o, const uint32_t *order, uint32_t count, bool weights)
{
    struct message_writer *w = &o->writer;
    const struct profile *profile = o->profile;
    const struct profile_sample *first = &profile->samples[order[0]];
    const struct profile_thread *thread = &profile->threads[first->thread];
    size_t begun = message_begin(w, 2, NULL);
    message_uint32(w, 1, "stackIndex", otlp_stack(o, first->node));
    size_t list = message_packed(w, 2, "attributeIndices");
    if (thread->comm[0]) {
        message_packed_uint32(w, otlp_attribute(o, "thread.name", thread->comm, 0));
    }
    message_packed_uint32(w, otlp_attribute(o, "thread.id", NULL, thread->tid));
    if (thread->virtual_id) {
        if (thread->virtual_name[0]) {
            message_packed_uint32(
                w, otlp_attribute(o, "jvm.virtual_thread.name", thread->virtual_name, 0));
        }
        message_packed_uint32(w,
                              otlp_attribute(o, "jvm.virtual_thread.id", NULL, thread->virtual_id));
    }
    (void)labels_each(thread->labels, put_program_label, o);
    message_packed_end(w, list);
    if (weights) {
        list = message_packed(w, 4, "values");
        for (uint32_t i = 0; i < count; i++) {
            message_packed_uint64(w, profile->samples[order[i]].weight);
        }
        message_packed_end(w, list);
    }
    list = message_packed(w, 5, "timestampsUnixNano");
    for (uint32_t i = 0; i < count; i++) {
        uint64_t time = profile->samples[order[i]].time;
        message_packed_fixed64(w, export_wall_time(profile, time));
    }
    message_packed_end(w, list);
    message_end(w, begun);
}

/* Tells profiles apart: of the same recording it is the same again. */
static void put_profile_id(struct otlp *o, const struct profile_sample *first)
{
    const struct recording *recording = o->profile->recording;
    char text[64];
    uint8_t id[16];
    snprintf(text, sizeof text, "%u %u", o->profile->threads[first->thread].pid, first->event);
    uint64_t hash = fnv1a(export_wall_time(o->profile, o->profile->from),
                          recording->hostname ? recording->hostname : "");
    for (size_t i = 0; i < 2; i++) {
        hash = fnv1a(hash, text);
        memcpy(id + i * sizeof hash, &hash, sizeof hash);
    }
    message_id(&o->writer, 7, "profileId", id, sizeof id);
}

/* order[0, count): samples of one process and event. */
static void put_profile(struct otlp *o, const uint32_t *order, uint32_t count)
{
    struct message_writer *w = &o->writer;
    const struct profile *profile = o->profile;
    const struct profile_sample *first = &profile->samples[order[0]];
    const struct recorded_event *event = &profile->recording->events[first->event];
    const char *unit = event->unit;
    char name[64];
    export_event_name(event, name, sizeof name);
    bool is_clock = strcmp(name, "cpu") == 0;

    size_t begun = message_begin(w, 2, NULL);
    put_value_type(o, 1, "sampleType", is_clock ? "samples" : name, is_clock ? "count" : unit);
    message_list(w, "samples");
    for (uint32_t i = 0; i < count;) {
        const struct profile_sample *sample = &profile->samples[order[i]];
        uint32_t end = i + 1;
        while (end < count && profile->samples[order[end]].node == sample->node &&
               profile->samples[order[end]].thread == sample->thread) {
            end++;
        }
        put_sample(o, &order[i], end - i, !is_clock);
        i = end;
    }
    message_list_end(w);
    message_fixed64(w, 3, "timeUnixNano", export_wall_time(profile, profile->from));
    /* Timestamps lie before its end. */
    message_uint64(w, 4, "durationNano", profile->until - profile->from + 1);
    put_value_type(o, 5, "periodType", name, unit);
    /* Beside weights a period would be taken for a factor. */
    message_uint64(w, 6, "period", is_clock ? export_event_period(event) : 0);
    put_profile_id(o, first);
    const char *verdict = profile->recording->verdict;
    if (verdict && verdict[0]) {
        size_t list = message_packed(w, 11, "attributeIndices");
        message_packed_uint32(w, otlp_attribute(o, "jdagent.verdict", verdict, 0));
        message_packed_end(w, list);
    }
    message_end(w, begun);
}

static void put_resource_attribute(struct otlp *o, const char *key, const char *text,
                                   uint64_t number)
{
    struct message_writer *w = &o->writer;
    if (text && !text[0]) {
        return;
    }
    size_t begun = message_begin(w, 1, NULL);
    message_text(w, 1, "key", key);
    size_t value = message_begin(w, 2, "value");
    if (text) {
        message_text(w, 1, "stringValue", text);
    } else {
        message_uint64(w, 3, "intValue", number);
    }
    message_end(w, value);
    message_end(w, begun);
}

static void put_resource(struct otlp *o, const struct profile_thread *thread)
{
    struct message_writer *w = &o->writer;
    const struct recording *recording = o->profile->recording;
    const char *service = o->settings->service ? o->settings->service : profile_process(thread);
    size_t begun = message_begin(w, 1, "resource");
    message_list(w, "attributes");
    put_resource_attribute(o, "service.name", service, 0);
    put_resource_attribute(o, "process.pid", NULL, thread->pid);
    put_resource_attribute(o, "process.executable.name", thread->process_name, 0);
    bool has_host = false;
    for (uint32_t i = 0; i < o->settings->label_count; i++) {
        has_host |= strcmp(o->settings->labels[i].name, "host.name") == 0;
    }
    put_resource_attribute(o, "host.name",
                           recording->hostname && !has_host ? recording->hostname : "", 0);
    for (uint32_t i = 0; i < o->settings->label_count; i++) {
        put_resource_attribute(o, o->settings->labels[i].name, o->settings->labels[i].value, 0);
    }
    message_list_end(w);
    message_end(w, begun);
}

/* order[0, count): samples of one process. */
static void put_process(struct otlp *o, const uint32_t *order, uint32_t count)
{
    struct message_writer *w = &o->writer;
    const struct profile *profile = o->profile;
    size_t begun = message_begin(w, 1, NULL);
    put_resource(o, &profile->threads[profile->samples[order[0]].thread]);
    message_list(w, "scopeProfiles");
    size_t scope_profiles = message_begin(w, 2, NULL);
    size_t scope = message_begin(w, 1, "scope");
    message_text(w, 1, "name", "jdagent");
    message_end(w, scope);
    message_list(w, "profiles");
    for (uint32_t i = 0; i < count;) {
        uint32_t event = profile->samples[order[i]].event;
        uint32_t end = i + 1;
        while (end < count && profile->samples[order[end]].event == event) {
            end++;
        }
        put_profile(o, &order[i], end - i);
        i = end;
    }
    message_list_end(w);
    message_end(w, scope_profiles);
    message_list_end(w);
    message_end(w, begun);
}

static void put_request(struct otlp *o, const uint32_t *order)
{
    struct message_writer *w = &o->writer;
    const struct profile *profile = o->profile;
    message_list(w, "resourceProfiles");
    for (uint32_t i = 0; i < profile->sample_count;) {
        uint32_t pid = profile->threads[profile->samples[order[i]].thread].pid;
        uint32_t end = i + 1;
        while (end < profile->sample_count &&
               profile->threads[profile->samples[order[end]].thread].pid == pid) {
            end++;
        }
        put_process(o, &order[i], end - i);
        i = end;
    }
    message_list_end(w);
    otlp_put_dictionary(o);
}

static int put_all(struct otlp *o)
{
    const struct profile *profile = o->profile;
    static const enum sample_key keys[] = {BY_PROCESS, BY_EVENT, BY_THREAD,
                                           BY_NODE,    BY_TIME,  BY_NUMBER};
    uint32_t *order = profile_order(profile, keys);
    o->stack_of_node = calloc((size_t)profile->node_count + 1, sizeof *o->stack_of_node);
    if (!order || !o->stack_of_node || ARRAY_RESERVE(o->stacks, 0, o->stack_room) ||
        ARRAY_RESERVE(o->attributes, 0, o->attribute_room)) {
        free(order);
        return -ENOMEM;
    }
    /* Number 0 of each table. */
    o->stacks[0] = PROFILE_NONE;
    o->attributes[0] = (struct otlp_attribute){0};
    o->stack_count = o->attribute_count = 1;
    string_table_add(&o->strings, "");
    put_request(o, order);
    free(order);
    int err = o->error ? o->error : o->strings.error;
    return err || !o->message.failed ? err : -ENOMEM;
}

static void release(struct otlp *o)
{
    bytes_free(&o->message);
    string_table_free(&o->strings);
    hash_map_free(&o->attribute_map);
    intern_free(&o->texts);
    free(o->attributes);
    free(o->stacks);
    free(o->stack_of_node);
    free(o->mapping_ids);
}

static int write_otlp(const struct profile *profile, const struct export_settings *settings,
                      struct packed_output *output)
{
    struct otlp o = {.profile = profile, .settings = settings};
    o.writer.protobuf = &o.message;
    int err = put_all(&o);
    packed_output_put(output, o.message.at, o.message.size);
    release(&o);
    return err;
}

static int write_otlp_json(const struct profile *profile, const struct export_settings *settings,
                           struct packed_output *output)
{
    struct otlp o = {.profile = profile, .settings = settings};
    json_start(&o.json, output);
    o.writer.json = &o.json;
    json_object(&o.json, NULL);
    int err = put_all(&o);
    json_end(&o.json);
    release(&o);
    return err;
}

extern const struct export_format format_otlp, format_otlp_json;
const struct export_format format_otlp = {
    .name = "otlp",
    .file = "profile.otlp.pb",
    .about = "OpenTelemetry's profiles, for POST to /v1development/profiles",
    .keeps_times = true,
    .identities = true,
    .write = write_otlp,
};
const struct export_format format_otlp_json = {
    .name = "otlp-json",
    .file = "profile.otlp.json",
    .about = "the same as JSON",
    .keeps_times = true,
    .identities = true,
    .write = write_otlp_json,
};
