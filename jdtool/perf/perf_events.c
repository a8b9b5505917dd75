/* The events of a recording: their attributes, the ids the kernel gave them, their names. */
#include "jdtool/perf/perf_data_private.h"

#include "format/event_probe.h"
#include "jdtool/base/array.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static int count_bits(uint64_t bits)
{
    return __builtin_popcountll(bits);
}

/* perf_sample_decode and struct perf_event_attr have the order of the fields. */
static int id_position(uint64_t sample_type)
{
    if (sample_type & PERF_SAMPLE_IDENTIFIER) {
        return 0;
    }
    if (!(sample_type & PERF_SAMPLE_ID)) {
        return -1;
    }
    return count_bits(sample_type &
                      (PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR));
}

static int id_position_from_end(uint64_t sample_type)
{
    if (sample_type & PERF_SAMPLE_IDENTIFIER) {
        return 1;
    }
    if (!(sample_type & PERF_SAMPLE_ID)) {
        return -1;
    }
    return 1 + count_bits(sample_type & (PERF_SAMPLE_CPU | PERF_SAMPLE_STREAM_ID));
}

/* The place of an id in data->ids; HASH_MAP_NONE: unknown. */
static uint32_t find_id(const struct perf_data *data, uint64_t id)
{
    uint32_t at;
    HASH_MAP_FIND(at, &data->by_id, id, data->ids[at] == id);
    return at;
}

const struct perf_event *perf_data_event_by_id(const struct perf_data *data, uint64_t id)
{
    uint32_t at = find_id(data, id);
    return at == HASH_MAP_NONE ? NULL : &data->events[data->id_events[at]];
}

int perf_events_reserve_ids(struct perf_data *data, uint64_t count)
{
    if (count > PERF_IDS_MAX - data->id_count) {
        return perf_data_malformed(data, "its events have more ids than any machine gives");
    }
    uint64_t wanted = data->id_count + count + 1;
    uint64_t *ids = realloc(data->ids, wanted * sizeof *ids);
    data->ids = ids ? ids : data->ids;
    uint32_t *events = ids ? realloc(data->id_events, wanted * sizeof *events) : NULL;
    data->id_events = events ? events : data->id_events;
    return events ? 0 : -ENOMEM;
}

/* Whether the attributes of a recording that follow one another are of one event, in two sizes. */
static bool is_same_event(const struct perf_event *event, const struct perf_event *next)
{
    struct perf_event_attr attr = next->attr;
    if (attr.type != PERF_TYPE_TRACEPOINT || event->attr.sample_stack_user != EVENT_STACK_NEAR ||
        attr.sample_stack_user != EVENT_STACK_FAR) {
        return false;
    }
    attr.sample_stack_user = EVENT_STACK_NEAR;
    return memcmp(&attr, &event->attr, sizeof attr) == 0;
}

int perf_events_add(struct perf_data *data, const uint8_t *attr, size_t attr_size,
                    uint32_t id_count)
{
    if (data->event_count >= PERF_EVENTS_MAX) {
        return perf_data_malformed(data, "it has more events than perf records");
    }
    if (data->header.attr_size == 0) { /* of a pipe: as large as the first one */
        data->header.attr_size = attr_size + sizeof(struct perf_section);
    }
    size_t each = data->header.attr_size;
    size_t known = each - sizeof(struct perf_section);
    known = attr_size < known ? attr_size : known;
    uint8_t *raw = realloc(data->raw_attrs, (data->event_count + (size_t)1) * each);
    data->raw_attrs = raw ? raw : data->raw_attrs;
    if (!raw || ARRAY_RESERVE(data->events, data->event_count, data->event_room)) {
        return -ENOMEM;
    }
    struct perf_event *event = &data->events[data->event_count];
    *event = (struct perf_event){.id_count = id_count, .parts = 1};
    memcpy(&event->attr, attr, known < sizeof event->attr ? known : sizeof event->attr);
    bool is_new = data->event_count == 0 || !is_same_event(event - 1, event);
    if (!is_new) { /* its ids follow those of the other, whose copies are said to be as large */
        event--;
        event->id_count += id_count;
        event->parts++;
        event->attr.sample_stack_user = EVENT_STACK_FAR;
    }
    raw += (size_t)(event - data->events) * each;
    memset(raw, 0, each);
    memcpy(raw, attr, known);

    uint32_t first = data->id_count;
    for (uint32_t i = 0; i < id_count; i++) {
        uint32_t same = find_id(data, data->ids[first + i]);
        if (same == HASH_MAP_NONE) {
            if (hash_map_add(&data->by_id, data->ids[first + i], first + i)) {
                return -ENOMEM;
            }
            same = first + i;
        }
        data->id_events[same] = (uint32_t)(event - data->events);
    }
    data->id_count += id_count;
    data->event_count += is_new;
    data->asks_build_ids |= event->attr.build_id;
    return 0;
}

int perf_events_finish(struct perf_data *data)
{
    if (data->event_count == 0) {
        return perf_data_malformed(data, "it has no sound list of events");
    }
    uint64_t type = data->events[0].attr.sample_type;
    data->id_at = id_position(type);
    data->id_from_end = id_position_from_end(type);
    uint32_t first = 0;
    for (uint32_t i = 0; i < data->event_count; i++) {
        struct perf_event *event = &data->events[i];
        uint64_t other = event->attr.sample_type;
        if (id_position(other) != data->id_at || (data->id_at < 0 && other != type)) {
            return perf_data_malformed(data,
                                       "its events cannot be told apart (ids at different places)");
        }
        event->ids = data->ids + first;
        first += event->id_count;
    }
    return 0;
}

/* ---- Names ---- */

/* The first name stays: whoever asked for it has it still, and who reads the records may find one
 * meanwhile. A pipe tells of the same name twice. */
static void set_name(struct perf_data *data, uint32_t event, const uint8_t *text, size_t size)
{
    size = strnlen((const char *)text, size);
    char *copy = size ? strndup((const char *)text, size) : NULL;
    char *none = NULL;
    if (!atomic_compare_exchange_strong(&data->events[event].name, &none, copy)) {
        free(copy);
    }
}

void perf_events_update(struct perf_data *data, const struct perf_record *record)
{
    enum { NAME = 2 }; /* PERF_EVENT_UPDATE__NAME */
    uint64_t head[2];  /* what it tells, of the event with which id */
    size_t at = sizeof(struct perf_event_header) + sizeof head;
    if (record->size <= at) {
        return;
    }
    memcpy(head, record->bytes + sizeof(struct perf_event_header), sizeof head);
    const struct perf_event *event = perf_data_event_by_id(data, head[1]);
    if (head[0] == NAME && event) {
        set_name(data, (uint32_t)(event - data->events), record->bytes + at, record->size - at);
    }
}

/*
 * HEADER_EVENT_DESC: u32 number of events, u32 bytes of an attribute, and for each event the
 * attribute, u32 number of ids, u32 bytes of the name and the name, the ids. Events stand in the
 * order of the attributes.
 */
static void take_names(struct perf_data *data)
{
    uint32_t head[2];
    size_t size;
    const uint8_t *section = perf_data_feature(data, PERF_FEATURE_EVENT_DESC, &size);
    if (!section || size < sizeof head) {
        return;
    }
    memcpy(head, section, sizeof head);
    size_t at = sizeof head;
    uint32_t event = 0;
    uint32_t part = 0;
    for (uint32_t i = 0; i < head[0] && event < data->event_count; i++) {
        uint32_t counts[2]; /* ids, bytes of the name */
        if (head[1] > size - at || sizeof counts > size - at - head[1]) {
            return;
        }
        memcpy(counts, section + at + head[1], sizeof counts);
        at += head[1] + sizeof counts;
        uint64_t rest = counts[1] + (uint64_t)counts[0] * sizeof(uint64_t);
        if (rest > size - at) {
            return;
        }
        set_name(data, event, section + at, counts[1]);
        at += rest;
        if (++part == data->events[event].parts) {
            event++;
            part = 0;
        }
    }
}

const char *perf_data_event_name(struct perf_data *data, uint32_t index)
{
    if (!data->events[index].name) {
        take_names(data);
    }
    return data->events[index].name;
}

uint32_t perf_data_event_count(const struct perf_data *data)
{
    return data->event_count;
}

const struct perf_event *perf_data_event(const struct perf_data *data, uint32_t index)
{
    return &data->events[index];
}

bool perf_data_has(const struct perf_data *data, uint64_t sample_type)
{
    for (uint32_t i = 0; i < data->event_count; i++) {
        if (data->events[i].attr.sample_type & sample_type) {
            return true;
        }
    }
    return false;
}

void perf_events_free(struct perf_data *data)
{
    for (uint32_t i = 0; i < data->event_count; i++) {
        free(data->events[i].name);
    }
    hash_map_free(&data->by_id);
    free(data->ids);
    free(data->id_events);
    free(data->events);
    free(data->raw_attrs);
}
