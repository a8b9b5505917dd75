#include "jdtool/perf/perf_data_private.h"

#include "jdtool/base/message.h"

#include <errno.h>
#include <string.h>

/* ---- The trailer of records that are not samples ---- */

#define SAMPLE_ID_FIELDS                                                                           \
    (PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID |                 \
     PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER)

static uint64_t word_at(const uint8_t *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

static size_t sample_id_size(const struct perf_event *event)
{
    return (size_t)__builtin_popcountll(event->attr.sample_type & SAMPLE_ID_FIELDS) * 8;
}

struct perf_sample_id perf_record_id(const struct perf_data *data, const struct perf_record *record)
{
    struct perf_sample_id id = {.pid = UINT32_MAX, .tid = UINT32_MAX};
    const struct perf_event *event = &data->events[0];
    const uint8_t *end = record->bytes + record->size;
    if (record->type >= PERF_USER_FIRST || !event->attr.sample_id_all) {
        return id;
    }
    if (data->event_count > 1 && data->id_from_end > 0 &&
        record->size >= sizeof(struct perf_event_header) + (size_t)data->id_from_end * 8) {
        const struct perf_event *found =
            perf_data_event_by_id(data, word_at(end - (size_t)data->id_from_end * 8));
        if (found) { /* records that perf made up itself carry id 0 */
            event = found;
        }
    }
    uint64_t type = event->attr.sample_type;
    size_t size = sample_id_size(event);
    if (record->size < sizeof(struct perf_event_header) + size) {
        return id;
    }
    const uint8_t *at = end - size;
    if (type & PERF_SAMPLE_TID) {
        memcpy(&id.pid, at, sizeof id.pid);
        memcpy(&id.tid, at + 4, sizeof id.tid);
        at += 8;
    }
    if (type & PERF_SAMPLE_TIME) {
        id.time = word_at(at);
        id.has_time = true;
    }
    return id;
}

size_t perf_put_sample_id(const struct perf_data *data, uint32_t pid, uint32_t tid, uint64_t time,
                          uint8_t *out)
{
    const struct perf_event *event = &data->events[0];
    uint64_t type = event->attr.sample_type;
    uint64_t event_id = event->id_count ? event->ids[0] : 0;
    uint64_t words[PERF_SAMPLE_ID_MAX / 8];
    size_t n = 0;
    if (!event->attr.sample_id_all) {
        return 0;
    }
    if (type & PERF_SAMPLE_TID) {
        uint32_t pid_tid[2] = {pid, tid};
        memcpy(&words[n++], pid_tid, sizeof pid_tid);
    }
    if (type & PERF_SAMPLE_TIME) {
        words[n++] = time;
    }
    if (type & PERF_SAMPLE_ID) {
        words[n++] = event_id;
    }
    if (type & PERF_SAMPLE_STREAM_ID) {
        words[n++] = event_id;
    }
    if (type & PERF_SAMPLE_CPU) {
        words[n++] = 0;
    }
    if (type & PERF_SAMPLE_IDENTIFIER) {
        words[n++] = event_id;
    }
    memcpy(out, words, n * 8);
    return n * 8;
}

/* ---- Samples ---- */

/* Newer than Debian 12's headers. */
#define BRANCH_COUNTERS (UINT64_C(1) << 19) /* branch_sample_type, Linux 6.8 */
#define FORMAT_LOST     (UINT64_C(1) << 4)  /* read_format, Linux 6.0 */

/* What is left of a sample while it is decoded. A step too far sets `failed` and gives zeros. */
struct cursor {
    const uint8_t *at;
    const uint8_t *end;
    bool failed;
};

static const uint8_t *take(struct cursor *cursor, uint64_t size)
{
    const uint8_t *at = cursor->at;
    if (size > (uint64_t)(cursor->end - at)) {
        cursor->failed = true;
        return NULL;
    }
    cursor->at += size;
    return at;
}

/* An array of `count` elements, NULL when it is empty or not there. */
static const void *take_array(struct cursor *cursor, uint64_t count, size_t element)
{
    if (count > (uint64_t)(cursor->end - cursor->at) / element) {
        cursor->failed = true;
        return NULL;
    }
    return count ? take(cursor, count * element) : NULL;
}

static uint64_t take_word(struct cursor *cursor)
{
    const uint8_t *at = take(cursor, 8);
    return at ? word_at(at) : 0;
}

static void skip_words(struct cursor *cursor, uint64_t fields)
{
    (void)take(cursor, (uint64_t)__builtin_popcountll(fields) * 8);
}

/* PERF_SAMPLE_READ: one counter, or those of its group. */
static void skip_read(struct cursor *cursor, uint64_t format)
{
    uint64_t times = format & (PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING);
    uint64_t each = format & (PERF_FORMAT_ID | FORMAT_LOST);
    if (!(format & PERF_FORMAT_GROUP)) {
        (void)take(cursor, 8);
        skip_words(cursor, times);
        skip_words(cursor, each);
        return;
    }
    uint64_t count = take_word(cursor);
    skip_words(cursor, times);
    (void)take_array(cursor, count, 8 * (1 + (size_t)__builtin_popcountll(each)));
}

static void take_branches(struct cursor *cursor, struct perf_sample *sample)
{
    uint64_t type = sample->event->attr.branch_sample_type;
    sample->branch_count = take_word(cursor);
    if (type & PERF_SAMPLE_BRANCH_HW_INDEX) {
        (void)take(cursor, 8);
    }
    sample->branches = take_array(cursor, sample->branch_count, sizeof *sample->branches);
    if (type & BRANCH_COUNTERS) {
        (void)take_array(cursor, sample->branch_count, 8);
    }
}

static void take_user(struct cursor *cursor, struct perf_sample *sample)
{
    if (sample->has & PERF_SAMPLE_REGS_USER) {
        sample->regs_abi = take_word(cursor);
        if (sample->regs_abi != PERF_SAMPLE_REGS_ABI_NONE) {
            sample->reg_count =
                (uint32_t)__builtin_popcountll(sample->event->attr.sample_regs_user);
            sample->regs = take_array(cursor, sample->reg_count, 8);
        }
    }
    if (sample->has & PERF_SAMPLE_STACK_USER) {
        sample->stack_size = take_word(cursor);
        if (sample->stack_size) {
            sample->stack = take(cursor, sample->stack_size);
            sample->stack_dyn_size = take_word(cursor);
            if (sample->stack_dyn_size > sample->stack_size) {
                cursor->failed = true;
            }
        }
    }
}

static const struct perf_event *sample_event(const struct perf_data *data,
                                             const struct perf_record *record)
{
    if (data->event_count == 1 || data->id_at < 0) {
        return &data->events[0];
    }
    size_t at = sizeof(struct perf_event_header) + (size_t)data->id_at * 8;
    if (at + 8 > record->size) {
        return NULL;
    }
    return perf_data_event_by_id(data, word_at(record->bytes + at));
}

/* A cookie, the chain, the trailer that all records of the kernel have. */
static int decode_deferred(const struct perf_data *data, const struct perf_record *record,
                           struct perf_sample *sample)
{
    const uint8_t *start = record->bytes + sizeof(struct perf_event_header);
    struct cursor cursor = {start, record->bytes + record->size, false};
    struct perf_sample_id id = perf_record_id(data, record);
    *sample = (struct perf_sample){
        .event = &data->events[0],
        .type = record->type,
        .misc = record->misc,
        .has = PERF_SAMPLE_CALLCHAIN,
        .pid = id.pid,
        .tid = id.tid,
        .time = id.time,
    };
    sample->cookie = take_word(&cursor);
    sample->head = (struct perf_bytes){start, (size_t)(cursor.at - start)};
    sample->chain_count = take_word(&cursor);
    sample->chain = take_array(&cursor, sample->chain_count, 8);
    sample->tail = (struct perf_bytes){cursor.at, (size_t)(cursor.end - cursor.at)};
    return cursor.failed ? -EINVAL : 0;
}

/* The order of the fields is that of perf_output_sample in the kernel's kernel/events/core.c. */
int perf_sample_decode(const struct perf_data *data, const struct perf_record *record,
                       struct perf_sample *sample)
{
    const uint8_t *start = record->bytes + sizeof(struct perf_event_header);
    struct cursor cursor = {start, record->bytes + record->size, false};

    if (record->type == PERF_RECORD_CALLCHAIN_DEFERRED) {
        return decode_deferred(data, record, sample);
    }
    memset(sample, 0, sizeof *sample);
    sample->type = record->type;
    sample->event = sample_event(data, record);
    if (!sample->event) {
        return -EINVAL;
    }
    uint64_t type = sample->event->attr.sample_type;
    sample->misc = record->misc;
    sample->has = type;
    sample->pid = UINT32_MAX;
    sample->tid = UINT32_MAX;

    skip_words(&cursor, type & PERF_SAMPLE_IDENTIFIER);
    sample->ip_at = (size_t)(cursor.at - start);
    if (type & PERF_SAMPLE_IP) {
        sample->ip = take_word(&cursor);
    }
    if (type & PERF_SAMPLE_TID) {
        const uint8_t *at = take(&cursor, 8);
        if (at) {
            memcpy(&sample->pid, at, 4);
            memcpy(&sample->tid, at + 4, 4);
        }
    }
    sample->time_at = (size_t)(cursor.at - start);
    if (type & PERF_SAMPLE_TIME) {
        sample->time = take_word(&cursor);
    }
    skip_words(&cursor, type & (PERF_SAMPLE_ADDR | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID));
    if (type & PERF_SAMPLE_CPU) {
        sample->cpu = (uint32_t)take_word(&cursor);
    }
    sample->period_at = (size_t)(cursor.at - start);
    if (type & PERF_SAMPLE_PERIOD) {
        sample->period = take_word(&cursor);
    }
    if (type & PERF_SAMPLE_READ) {
        skip_read(&cursor, sample->event->attr.read_format);
    }
    sample->head = (struct perf_bytes){start, (size_t)(cursor.at - start)};

    if (type & PERF_SAMPLE_CALLCHAIN) {
        sample->chain_count = take_word(&cursor);
        sample->chain = take_array(&cursor, sample->chain_count, 8);
    }

    const uint8_t *from = cursor.at;
    if (type & PERF_SAMPLE_RAW) {
        const uint8_t *at = take(&cursor, 4);
        uint32_t size = 0;
        if (at) {
            memcpy(&size, at, sizeof size);
        }
        sample->raw = take(&cursor, size);
        sample->raw_size = sample->raw ? size : 0;
        cursor.failed |= (sizeof size + size) % 8 != 0; /* the kernel fills it up to whole words */
    }
    if (type & PERF_SAMPLE_BRANCH_STACK) {
        take_branches(&cursor, sample);
    }
    sample->middle = (struct perf_bytes){from, (size_t)(cursor.at - from)};

    from = cursor.at;
    take_user(&cursor, sample);
    sample->user = (struct perf_bytes){from, (size_t)(cursor.at - from)};
    sample->tail = (struct perf_bytes){cursor.at, (size_t)(cursor.end - cursor.at)};
    if (record->left_at && sample->stack) {
        sample->stack_at = record->left_at + (uint64_t)(sample->stack - record->bytes);
    }
    return cursor.failed ? -EINVAL : 0;
}

/* ---- Samples that outlive their records, and new records of them ---- */

static uint8_t *put(uint8_t *at, struct perf_bytes bytes)
{
    if (bytes.size) {
        memcpy(at, bytes.at, bytes.size);
    }
    return at + bytes.size;
}

static const void *moved(const void *pointer, const uint8_t *from, const uint8_t *to)
{
    return pointer ? to + ((const uint8_t *)pointer - from) : NULL;
}

static bool is_cut(const struct perf_sample *sample)
{
    return sample->stack && !sample->user.at;
}

/* Bytes from the head on that are kept: all, or to the end of what is valid of the stack, or to
 * where it would be, behind which the tail follows; of one that is cut already that is all. */
static size_t first_part(const struct perf_sample *sample, bool cut)
{
    const uint8_t *end = sample->stack_at       ? sample->stack
                         : cut && sample->stack ? sample->stack + sample->stack_dyn_size
                                                : sample->tail.at;
    return (size_t)(end - sample->head.at);
}

size_t perf_sample_kept_size(const struct perf_sample *sample, bool cut)
{
    return sizeof *sample + first_part(sample, cut) + sample->tail.size;
}

/* Copies so many bytes from the head on, and puts the tail so many behind them. */
static struct perf_sample *copy(const struct perf_sample *sample, size_t first, size_t gap,
                                void *to)
{
    struct perf_sample *kept = to;
    const uint8_t *from = sample->head.at;
    uint8_t *bytes = (uint8_t *)(kept + 1);
    uint8_t *tail = bytes + first + gap;
    memcpy(bytes, from, first);
    (void)put(tail, sample->tail);
    *kept = *sample;
    kept->chain = moved(sample->chain, from, bytes);
    kept->branches = moved(sample->branches, from, bytes);
    kept->raw = moved(sample->raw, from, bytes);
    kept->regs = moved(sample->regs, from, bytes);
    kept->stack = moved(sample->stack, from, bytes);
    kept->head.at = bytes;
    kept->middle.at = moved(sample->middle.at, from, bytes);
    kept->user.at = moved(sample->user.at, from, bytes);
    kept->tail.at = tail;
    return kept;
}

struct perf_sample *perf_sample_keep(const struct perf_sample *sample, bool cut, void *to)
{
    struct perf_sample *kept = copy(sample, first_part(sample, cut), 0, to);
    if ((cut || sample->stack_at) && sample->stack) {
        kept->user = (struct perf_bytes){0};
    }
    return kept;
}

int perf_sample_complete(const struct perf_data *data, const struct perf_sample *sample, void *to)
{
    size_t size = (size_t)sample->stack_dyn_size;
    struct perf_sample *whole = copy(sample, first_part(sample, true), size, to);
    int err = perf_input_read_at(data->input, sample->stack_at, (uint8_t *)whole->stack, size);
    whole->user = (struct perf_bytes){0};
    whole->stack_at = 0;
    return failed_to(err, "read %s", data->path);
}

bool perf_sample_awaits_user(const struct perf_sample *sample, uint64_t *cookie)
{
    uint64_t count = sample->chain_count;
    if (sample->type != PERF_RECORD_SAMPLE || is_cut(sample) || count < PERF_DEFERRED_WORDS ||
        sample->chain[count - PERF_DEFERRED_WORDS] != PERF_CONTEXT_USER_DEFERRED) {
        return false;
    }
    *cookie = sample->chain[count - 1];
    return true;
}

size_t perf_sample_encode(const struct perf_sample *sample, bool keep_user, uint8_t *out)
{
    bool has_chain = sample->has & PERF_SAMPLE_CALLCHAIN;
    struct perf_bytes user = keep_user ? sample->user : (struct perf_bytes){NULL, 0};
    struct perf_event_header header = {.type = sample->type, .misc = sample->misc};
    size_t fixed = sizeof header + sample->head.size + (has_chain ? 8 : 0) + sample->middle.size +
                   user.size + sample->tail.size;
    if (fixed > PERF_RECORD_SIZE_MAX || sample->chain_count > (PERF_RECORD_SIZE_MAX - fixed) / 8) {
        return 0;
    }
    size_t chain_size = has_chain ? sample->chain_count * 8 : 0;
    header.size = (uint16_t)(fixed + chain_size);

    memcpy(out, &header, sizeof header);
    uint8_t *at = put(out + sizeof header, sample->head);
    if (sample->has & PERF_SAMPLE_IP) {
        memcpy(out + sizeof header + sample->ip_at, &sample->ip, sizeof sample->ip);
    }
    if (sample->has & PERF_SAMPLE_TIME && sample->type == PERF_RECORD_SAMPLE) {
        memcpy(out + sizeof header + sample->time_at, &sample->time, sizeof sample->time);
    }
    if (sample->has & PERF_SAMPLE_PERIOD) {
        memcpy(out + sizeof header + sample->period_at, &sample->period, sizeof sample->period);
    }
    if (has_chain) {
        memcpy(at, &sample->chain_count, 8);
        at = put(at + 8, (struct perf_bytes){(const uint8_t *)sample->chain, chain_size});
    }
    at = put(at, sample->middle);
    at = put(at, user);
    (void)put(at, sample->tail);
    return header.size;
}
