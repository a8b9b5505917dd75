#include "jdtool/resolve/recording.h"

#include "jdtool/base/bytes.h"

#include <errno.h>

/* How many strings, then each: bytes, 32 bits wide, and the text padded with NULs. */
static char *read_command_line(struct perf_data *data)
{
    size_t size;
    const uint8_t *section = perf_data_feature(data, PERF_FEATURE_CMDLINE, &size);
    struct bytes line = {0};
    uint32_t count = 0;
    size_t at = sizeof count;
    if (!section || size < sizeof count) {
        return NULL;
    }
    memcpy(&count, section, sizeof count);
    for (uint32_t i = 0; i < count && size - at >= sizeof(uint32_t); i++) {
        uint32_t length;
        memcpy(&length, section + at, sizeof length);
        at += sizeof length;
        if (length > size - at) {
            break;
        }
        if (i > 0) {
            bytes_u8(&line, ' ');
        }
        bytes_put(&line, section + at, strnlen((const char *)section + at, length));
        at += length;
    }
    bytes_u8(&line, 0);
    if (line.failed) {
        bytes_free(&line);
        return NULL;
    }
    return (char *)line.at;
}

static uint32_t read_cpu_count(struct perf_data *data)
{
    size_t size;
    uint32_t counts[2] = {0, 0}; /* there, and online */
    const uint8_t *section = perf_data_feature(data, PERF_FEATURE_NRCPUS, &size);
    if (section && size >= sizeof counts) {
        memcpy(counts, section, sizeof counts);
    }
    return counts[1];
}

/* Version, clock, then one moment by the wall and by that clock. */
static void read_clock(struct perf_data *data, struct recording *recording)
{
    struct {
        uint32_t version, clock;
        uint64_t wall, time;
    } clock;
    size_t size;
    const uint8_t *section = perf_data_feature(data, PERF_FEATURE_CLOCK_DATA, &size);
    if (section && size >= sizeof clock) {
        memcpy(&clock, section, sizeof clock);
        recording->has_wall = clock.version == 1;
        recording->wall_offset = (int64_t)(clock.wall - clock.time);
    }
}

static bool counts_time(const struct perf_event_attr *attr)
{
    return attr->type == PERF_TYPE_SOFTWARE &&
           (attr->config == PERF_COUNT_SW_CPU_CLOCK || attr->config == PERF_COUNT_SW_TASK_CLOCK);
}

/* Whether it tells when threads get and lose a processor. */
static bool has_switches(const struct perf_data *data)
{
    for (uint32_t i = 0; i < perf_data_event_count(data); i++) {
        if (perf_data_event(data, i)->attr.context_switch) {
            return true;
        }
    }
    return false;
}

int recording_describe(struct recording_facts *facts, struct perf_data *data)
{
    struct recording *recording = &facts->recording;
    uint32_t count = perf_data_event_count(data);
    if (!facts->events) {
        facts->events = calloc(count, sizeof *facts->events);
        facts->rules = calloc(count, sizeof *facts->rules);
        if (!facts->events || !facts->rules) {
            return -ENOMEM;
        }
    }
    bool switches = has_switches(data);
    for (uint32_t i = 0; i < count; i++) {
        const struct perf_event_attr *attr = &perf_data_event(data, i)->attr;
        const char *name = perf_data_event_name(data, i);
        facts->rules[i] = event_rule_of(name, switches);
        for (uint32_t k = 0; k < i && facts->rules[i].kind == EVENT_OFF_CPU; k++) {
            if (facts->rules[k].kind == EVENT_OFF_CPU) {
                facts->rules[i] = event_runnable;
            }
        }
        const struct event_rule *rule = &facts->rules[i];
        facts->events[i] = (struct recorded_event){
            .id = i,
            .name = rule->name ? rule->name
                    : name     ? name
                               : "event",
            .unit = rule->unit          ? rule->unit
                    : counts_time(attr) ? "nanoseconds"
                                        : "count",
            .frequency = attr->freq ? attr->sample_freq : 0,
            .period = attr->freq ? 0 : attr->sample_period,
            .is_processor_time = rule->kind == EVENT_SAMPLED && counts_time(attr) &&
                                 !attr->exclude_kernel && !attr->exclude_user,
        };
    }
    if (!facts->command_line) {
        facts->command_line = read_command_line(data);
    }
    recording->path = perf_data_path(data);
    recording->hostname = perf_data_string(data, PERF_FEATURE_HOSTNAME);
    recording->os_release = perf_data_string(data, PERF_FEATURE_OSRELEASE);
    recording->arch = perf_data_string(data, PERF_FEATURE_ARCH);
    recording->cpu = perf_data_string(data, PERF_FEATURE_CPUDESC);
    recording->perf_version = perf_data_string(data, PERF_FEATURE_VERSION);
    recording->command_line = facts->command_line;
    recording->cpu_count = read_cpu_count(data);
    recording->events = facts->events;
    /* What becomes marks, or ends waits, has no samples; it is recorded last. */
    while (count > 1 && (facts->rules[count - 1].kind == EVENT_TIMELINE ||
                         facts->rules[count - 1].kind == EVENT_MOUNT ||
                         facts->rules[count - 1].kind == EVENT_WOKEN)) {
        count--;
    }
    recording->event_count = count;
    recording->has_chains = perf_data_has(data, PERF_SAMPLE_CALLCHAIN);
    recording->has_copies = perf_data_has(data, PERF_SAMPLE_STACK_USER);
    recording->data = data;
    read_clock(data, recording);
    return 0;
}

void recording_forget(struct recording_facts *facts)
{
    free(facts->events);
    free(facts->rules);
    free(facts->command_line);
    *facts = (struct recording_facts){0};
}

const struct recorded_event *recording_event(const struct recording_facts *facts,
                                             const struct perf_sample *sample)
{
    const struct perf_event *first = perf_data_event(facts->recording.data, 0);
    return &facts->events[sample->event - first];
}

const struct recorded_event *recording_runnable(const struct recording_facts *facts)
{
    for (uint32_t i = 0; i < facts->recording.event_count; i++) {
        if (facts->rules[i].kind == EVENT_RUNNABLE) {
            return &facts->events[i];
        }
    }
    return NULL;
}

enum event_kind recording_kind(const struct recording_facts *facts,
                               const struct perf_sample *sample)
{
    const struct perf_event *first = perf_data_event(facts->recording.data, 0);
    return facts->rules[sample->event - first].kind;
}

uint64_t recording_weight(const struct perf_sample *sample)
{
    const struct perf_event_attr *attr = &sample->event->attr;
    if (sample->type != PERF_RECORD_SAMPLE) {
        return 0;
    }
    if (sample->has & PERF_SAMPLE_PERIOD) {
        return sample->period;
    }
    return attr->freq || attr->sample_period == 0 ? 1 : attr->sample_period;
}
