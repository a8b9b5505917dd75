/* Reads and writes recordings: records, samples, processes, and wrong files. */
#include "test.h"

#include "format/event_probe.h"
#include "jdtool/perf/perf_data.h"
#include "tests/perf_file.h"
#include "tests/scratch.h"

#include <errno.h>
#include <sys/wait.h>

#include <zstd.h>

OWNED(struct perf_data *, perf_data_close)

#define EVERYTHING                                                                                 \
    (PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_READ |   \
     PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD |               \
     PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_RAW | PERF_SAMPLE_BRANCH_STACK | PERF_SAMPLE_REGS_USER |  \
     PERF_SAMPLE_STACK_USER | PERF_SAMPLE_WEIGHT | PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_IDENTIFIER | \
     PERF_SAMPLE_TRANSACTION | PERF_SAMPLE_REGS_INTR | PERF_SAMPLE_PHYS_ADDR |                     \
     PERF_SAMPLE_CGROUP | PERF_SAMPLE_DATA_PAGE_SIZE | PERF_SAMPLE_CODE_PAGE_SIZE)

/* Event 0 samples everything, event 1 next to nothing. */
static struct perf_file two_events(void)
{
    struct perf_file file = {.attr_count = 2};
    file.attrs[0] = (struct perf_event_attr){
        .size = sizeof file.attrs[0],
        .sample_type = EVERYTHING,
        .read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID | PERF_FORMAT_TOTAL_TIME_ENABLED,
        .branch_sample_type = PERF_SAMPLE_BRANCH_ANY | PERF_SAMPLE_BRANCH_HW_INDEX,
        .sample_regs_user = 0x101, /* two registers */
        .sample_regs_intr = 0x7,
        .sample_stack_user = 16,
        .exclude_callchain_user = 1,
        .sample_id_all = 1,
    };
    file.attrs[1] = (struct perf_event_attr){
        .size = sizeof file.attrs[1],
        .sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID,
        .sample_id_all = 1,
    };
    return file;
}

/* The file, written under that name and opened. */
static struct perf_data *open_written(const struct perf_file *file, void **state, const char *name)
{
    struct perf_data *data;
    perf_file_write(file, scratch_path(state, name));
    assert_int_equal(perf_data_open(scratch_path(state, name), &data), 0);
    return data;
}

static const uint64_t full_sample[] = {
    100,          /* identifier */
    0x1234,       /* ip */
    0x2b0000002a, /* pid 42, tid 43 */
    777,          /* time */
    1,
    100,
    2,
    3,      /* addr, id, stream id, cpu */
    250000, /* period */
    2,
    50,
    11,
    100,
    12,
    101, /* read: two counters, time enabled */
    3,
    PERF_CONTEXT_USER,
    0x1234,
    0x99, /* chain */
    0x0000000c | UINT64_C(0xaa) << 32,
    0xbb, /* raw: 12 bytes behind a u32 */
    1,
    0,
    0x10,
    0x20,
    0x30, /* branches: count, hardware index, one entry */
    PERF_SAMPLE_REGS_ABI_64,
    0x71,
    0x72, /* user registers */
    16,
    0x81,
    0x82,
    8, /* stack: size, bytes, valid ones */
    5,
    6,
    7, /* weight, data source, transaction */
    PERF_SAMPLE_REGS_ABI_64,
    1,
    2,
    3, /* registers at interrupt */
    8,
    9,
    4096,
    4096, /* physical address, cgroup, page sizes */
};

static void check_full_sample(const struct perf_sample *sample)
{
    assert_int_equal(sample->ip, 0x1234);
    assert_int_equal(sample->pid, 42);
    assert_int_equal(sample->tid, 43);
    assert_int_equal(sample->time, 777);
    assert_int_equal(sample->period, 250000);
    assert_int_equal(sample->chain_count, 3);
    assert_true(sample->chain[2] == 0x99);
    assert_int_equal(sample->branch_count, 1);
    assert_true(sample->branches[0].from == 0x10);
}

TEST(every_field_is_found_and_kept)
{
    OWN_PERF_FILE file = two_events();
    uint64_t small[] = {101, 0x5555, 0x100000007};
    perf_file_record(&file, PERF_RECORD_SAMPLE, 2, full_sample, sizeof full_sample);
    perf_file_record(&file, PERF_RECORD_SAMPLE, 1, small, sizeof small);

    struct perf_record record;
    struct perf_sample sample;
    uint8_t out[PERF_RECORD_SIZE_MAX];
    OWN(perf_data_close) struct perf_data *data = open_written(&file, state, "all");
    assert_int_equal(perf_data_next(data, &record), 1);
    assert_int_equal(perf_sample_decode(data, &record, &sample), 0);
    check_full_sample(&sample);
    assert_int_equal(sample.reg_count, 2);
    assert_true(sample.regs[1] == 0x72);
    assert_int_equal(sample.stack_size, 16);
    assert_int_equal(sample.stack_dyn_size, 8);
    assert_int_equal(sample.stack[0], 0x81);
    assert_int_equal(perf_sample_encode(&sample, true, out), record.size);
    assert_memory_equal(out, record.bytes, record.size);

    assert_int_equal(perf_data_next(data, &record), 1);
    assert_int_equal(perf_sample_decode(data, &record, &sample), 0);
    assert_ptr_equal(sample.event, perf_data_event(data, 1));
    assert_int_equal(sample.ip, 0x5555);
    assert_int_equal(sample.pid, 7);
    assert_null(sample.chain);
    assert_int_equal(perf_data_next(data, &record), 0);
}

/* A sample with a chain of so many addresses, and bytes behind its copy of a stack. */
static void put_large_sample(struct perf_file *file, uint32_t chain, uint64_t stack, uint64_t valid,
                             uint32_t behind)
{
    static uint64_t words[PERF_RECORD_SIZE_MAX / 8];
    size_t count = 0;
    words[count++] = 0x1234;
    words[count++] = UINT64_C(0x2b0000002a);
    words[count++] = 777;
    words[count++] = chain;
    for (uint32_t i = 0; i < chain; i++) {
        words[count++] = valid + i;
    }
    words[count++] = PERF_SAMPLE_REGS_ABI_64;
    words[count++] = 0x71;
    words[count++] = 0x72;
    words[count++] = stack;
    for (uint64_t i = 0; i < stack / 8; i++) {
        words[count++] = valid * 100000 + i;
    }
    words[count++] = valid;
    for (uint32_t i = 0; i < behind; i++) {
        words[count++] = 0x5000 + i;
    }
    perf_file_record(file, PERF_RECORD_SAMPLE, 2, words, count * 8);
}

/* What is valid of a copy is read when it is wanted, and then all is as if it had been read. */
TEST(copies_of_stacks_can_be_left_in_the_file)
{
    static const struct {
        uint32_t chain;
        uint64_t stack, valid;
        uint32_t behind;
        bool is_left;
    } samples[] = {
        {3, 32768, 20000, 1, true},   {3, 15000, 8000, 1, false},    {3, 40000, 40000, 0, true},
        {3, 40000, 0, 1, true},       {600, 32768, 8000, 1, false},  {600, 32768, 16000, 1, false},
        {3, 32768, 8000, 100, false}, {3, 32768, 16000, 100, false}, {3, 60000, 48, 1, true},
    };
    enum { COUNT = sizeof samples / sizeof *samples };
    OWN_PERF_FILE file = {.attr_count = 1};
    file.attrs[0] = (struct perf_event_attr){
        .size = sizeof file.attrs[0],
        .sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CALLCHAIN |
                       PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER | PERF_SAMPLE_WEIGHT,
        .sample_regs_user = 0x101,
    };
    for (size_t i = 0; i < COUNT; i++) {
        put_large_sample(&file, samples[i].chain, samples[i].stack, samples[i].valid,
                         samples[i].behind);
    }
    perf_file_write(&file, scratch_path(state, "copies"));
    struct perf_data *whole;
    struct perf_data *left;
    assert_int_equal(perf_data_open(scratch_path(state, "copies"), &whole), 0);
    assert_int_equal(perf_data_open(scratch_path(state, "copies"), &left), 0);
    perf_data_leave_copies(left);
    for (size_t i = 0; i < COUNT; i++) {
        struct perf_record record;
        struct perf_sample sample;
        struct perf_sample *wanted = malloc(PERF_SAMPLE_WHOLE_MAX);
        struct perf_sample *kept = malloc(PERF_SAMPLE_WHOLE_MAX);
        struct perf_sample *got = malloc(PERF_SAMPLE_WHOLE_MAX);
        assert_int_equal(perf_data_next(whole, &record), 1);
        assert_int_equal(perf_sample_decode(whole, &record, &sample), 0);
        (void)perf_sample_keep(&sample, true, wanted);
        assert_int_equal(perf_data_next(left, &record), 1);
        assert_int_equal(record.left_at != 0, samples[i].is_left);
        assert_int_equal(perf_sample_decode(left, &record, &sample), 0);
        (void)perf_sample_keep(&sample, true, kept);
        if (samples[i].is_left) {
            assert_in_range(perf_sample_kept_size(&sample, true), sizeof sample, 4096);
            assert_int_equal(perf_sample_complete(left, kept, got), 0);
            kept = memcpy(kept, got, sizeof *kept); /* it points into `got` */
        }
        assert_int_equal(kept->stack_at, 0);
        assert_null(kept->user.at);
        assert_int_equal(kept->chain_count, samples[i].chain);
        assert_memory_equal(kept->chain, wanted->chain, kept->chain_count * 8);
        assert_memory_equal(kept->regs, wanted->regs, 16);
        assert_int_equal(kept->stack_dyn_size, samples[i].valid);
        assert_memory_equal(kept->stack, wanted->stack, samples[i].valid);
        assert_int_equal(kept->tail.size, wanted->tail.size);
        assert_memory_equal(kept->tail.at, wanted->tail.at, kept->tail.size);
        assert_ptr_equal(kept->head.at + perf_sample_kept_size(kept, false) - sizeof *kept,
                         kept->tail.at + kept->tail.size);
        free(wanted);
        free(kept);
        free(got);
    }
    perf_data_close(whole);
    perf_data_close(left);

    /* Cut off in what would be left. */
    struct perf_record record;
    assert_int_equal(truncate(scratch_path(state, "copies"), 40000), 0);
    assert_int_equal(perf_data_open(scratch_path(state, "copies"), &left), 0);
    perf_data_leave_copies(left);
    assert_int_equal(perf_data_next(left, &record), 1);
    assert_int_equal(perf_data_next(left, &record), 0);
    perf_data_close(left);
}

TEST(a_sample_cut_anywhere_is_malformed)
{
    for (size_t words = 0; words < sizeof full_sample / 8; words++) {
        OWN_PERF_FILE file = two_events();
        struct perf_data *data;
        struct perf_record record;
        struct perf_sample sample;
        if (words > 0 && words < sizeof full_sample / 8 - 11) { /* behind it: the tail, unread */
            perf_file_record(&file, PERF_RECORD_SAMPLE, 2, full_sample, words * 8);
            data = open_written(&file, state, "cut");
            assert_int_equal(perf_data_next(data, &record), 1);
            assert_int_equal(perf_sample_decode(data, &record, &sample), -EINVAL);
            perf_data_close(data);
        }
    }
}

/* A copy has not more valid bytes than bytes. */
TEST(a_copy_that_boasts_is_malformed)
{
    uint64_t words[sizeof full_sample / 8];
    memcpy(words, full_sample, sizeof words);
    size_t at = 0;
    while (words[at] != 0x82) {
        at++;
    }
    for (uint64_t valid = 16; valid <= 17; valid++) {
        OWN_PERF_FILE file = two_events();
        struct perf_record record;
        struct perf_sample sample;
        words[at + 1] = valid;
        perf_file_record(&file, PERF_RECORD_SAMPLE, 2, words, sizeof words);
        OWN(perf_data_close) struct perf_data *data = open_written(&file, state, "copy");
        assert_int_equal(perf_data_next(data, &record), 1);
        assert_int_equal(perf_sample_decode(data, &record, &sample), valid == 16 ? 0 : -EINVAL);
    }
}

/* What follows raw data would not be aligned. */
TEST(raw_data_that_ends_anywhere_is_malformed)
{
    for (uint32_t size = 0; size <= 12; size++) {
        uint64_t words[] = {0x1234, 0x2b0000002a, size, 0};
        OWN_PERF_FILE file = {.attr_count = 1};
        struct perf_record record;
        struct perf_sample sample;
        file.attrs[0] = (struct perf_event_attr){.size = sizeof file.attrs[0],
                                                 .sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID |
                                                                PERF_SAMPLE_RAW};
        perf_file_record(&file, PERF_RECORD_SAMPLE, 2, words, sizeof words);
        OWN(perf_data_close) struct perf_data *data = open_written(&file, state, "raw");
        assert_int_equal(perf_data_next(data, &record), 1);
        int wanted = size == 4 || size == 12 ? 0 : -EINVAL;
        assert_int_equal(perf_sample_decode(data, &record, &sample), wanted);
    }
}

/* Linux 6.0 counts with each value what was lost of it. */
TEST(counts_of_losses_are_stepped_over)
{
    for (int group = 0; group < 2; group++) {
        const uint64_t sample_words[] = {0x1234, 0x2b0000002a,      50,  100, 3,
                                         2,      PERF_CONTEXT_USER, 0x99};
        const uint64_t group_words[] = {0x1234, 0x2b0000002a,      1,   50, 100, 3,
                                        2,      PERF_CONTEXT_USER, 0x99};
        OWN_PERF_FILE file = {.attr_count = 1};
        struct perf_record record;
        struct perf_sample sample;
        file.attrs[0] = (struct perf_event_attr){
            .size = sizeof file.attrs[0],
            .sample_type =
                PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_READ | PERF_SAMPLE_CALLCHAIN,
            .read_format = PERF_FORMAT_ID | 1u << 4 | (group ? PERF_FORMAT_GROUP : 0)};
        perf_file_record(&file, PERF_RECORD_SAMPLE, 2, group ? group_words : sample_words,
                         group ? sizeof group_words : sizeof sample_words);
        OWN(perf_data_close) struct perf_data *data = open_written(&file, state, "lost");
        assert_int_equal(perf_data_next(data, &record), 1);
        assert_int_equal(perf_sample_decode(data, &record, &sample), 0);
        assert_int_equal(sample.chain_count, 2);
        assert_true(sample.chain[1] == 0x99);
    }
}

/* Rewritten: without user stacks, with a longer chain; in place, features and build-ids intact. */
TEST(rewriting)
{
    OWN_PERF_FILE file = two_events();
    uint8_t desc[8 + sizeof file.attrs[0] + 8 + 8 + 8] = {0};
    uint32_t head[2] = {1, sizeof file.attrs[0]}, counts[2] = {1, 8};
    memcpy(desc, head, sizeof head);
    memcpy(desc + 8, &file.attrs[0], sizeof file.attrs[0]);
    memcpy(desc + 8 + sizeof file.attrs[0], counts, sizeof counts);
    struct {
        uint32_t size;
        char text[12];
    } version = {12, "6.1.99"};
    perf_file_feature(&file, PERF_FEATURE_EVENT_DESC, desc, sizeof desc);
    perf_file_feature(&file, PERF_FEATURE_VERSION, &version, sizeof version);
    perf_file_record(&file, PERF_RECORD_SAMPLE, 2, full_sample, sizeof full_sample);
    perf_file_record(&file, PERF_USER_FINISHED_ROUND, 0, NULL, 0);

    struct perf_writer *writer;
    struct perf_record record;
    struct perf_sample sample;
    uint8_t out[PERF_RECORD_SIZE_MAX];
    uint8_t build_id[BUILD_ID_MAX] = {1, 2, 3};
    uint64_t chain[] = {PERF_CONTEXT_USER, 5, 6, 7};
    struct perf_data *data = open_written(&file, state, "file");
    assert_int_equal(perf_writer_open(scratch_path(state, "file"), data, true, &writer), 0);
    assert_int_equal(perf_data_next(data, &record), 1);
    assert_int_equal(perf_sample_decode(data, &record, &sample), 0);
    sample.chain = chain;
    sample.chain_count = 4;
    sample.ip = 0x4321;
    perf_writer_put(writer, out, perf_sample_encode(&sample, false, out));
    assert_int_equal(perf_data_next(data, &record), 1);
    perf_writer_put(writer, record.bytes, record.size);
    perf_writer_add_build_id(writer, "/somewhere/java.so", build_id);
    assert_int_equal(perf_writer_finish(writer), 0);
    perf_data_close(data);

    struct stat status;
    assert_int_equal(stat(scratch_path(state, "file"), &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    assert_int_equal(perf_data_open(scratch_path(state, "file"), &data), 0);
    assert_string_equal(perf_data_string(data, PERF_FEATURE_VERSION), "6.1.99");
    assert_int_equal(perf_data_next(data, &record), 1);
    assert_int_equal(perf_sample_decode(data, &record, &sample), 0);
    assert_int_equal(sample.ip, 0x4321);
    assert_int_equal(sample.chain_count, 4);
    assert_true(sample.chain[3] == 7);
    assert_null(sample.regs);
    assert_null(sample.stack);
    assert_false(perf_data_has(data, PERF_SAMPLE_REGS_USER));
    assert_int_equal(sample.event->attr.sample_stack_user, 0);
    assert_int_equal(sample.event->attr.sample_regs_user, 0);
    assert_int_equal(sample.event->attr.exclude_callchain_user, 0);
    assert_int_equal(sample.tail.size, 11 * 8);
    assert_int_equal(perf_data_next(data, &record), 1);
    assert_int_equal(record.type, PERF_USER_FINISHED_ROUND);
    assert_int_equal(perf_data_next(data, &record), 0);

    struct perf_section *section = &data->features[PERF_FEATURE_BUILD_ID];
    assert_int_equal(section->size, 36 + 64);
    assert_int_equal(perf_data_read(data, section->offset, out, section->size), 0);
    assert_int_equal(out[12], 1);
    assert_int_equal(out[32], BUILD_ID_MAX);
    assert_string_equal((char *)out + 36, "/somewhere/java.so");
    struct perf_event_attr attr;
    section = &data->features[PERF_FEATURE_EVENT_DESC];
    assert_int_equal(section->size, sizeof desc);
    assert_int_equal(perf_data_read(data, section->offset + 8, &attr, sizeof attr), 0);
    assert_int_equal(attr.sample_type & PERF_SAMPLE_STACK_USER, 0);
    perf_data_close(data);
}

/* Allocations come in two sizes of stacks: one event, here and in what is written. */
TEST(two_sizes_of_stacks_are_one_event)
{
    OWN_PERF_FILE file = {.attr_count = 3};
    file.attrs[0] = (struct perf_event_attr){.size = sizeof file.attrs[0],
                                             .type = PERF_TYPE_TRACEPOINT,
                                             .config = 77,
                                             .sample_type = PERF_SAMPLE_IDENTIFIER |
                                                            PERF_SAMPLE_IP | PERF_SAMPLE_STACK_USER,
                                             .sample_stack_user = EVENT_STACK_NEAR};
    file.attrs[1] = file.attrs[0];
    file.attrs[1].sample_stack_user = EVENT_STACK_FAR;
    file.attrs[2] = file.attrs[1]; /* as large as that one: another event */
    static const char names[3][8] = {"near", "far", "other"};
    enum { EACH = sizeof file.attrs[0] + 8 + 8 + 8 };
    uint8_t desc[8 + 3 * EACH] = {0};
    uint32_t head[2] = {3, sizeof file.attrs[0]}, counts[2] = {1, 8};
    memcpy(desc, head, sizeof head);
    for (size_t i = 0; i < 3; i++) {
        uint8_t *at = desc + 8 + i * EACH;
        memcpy(at, &file.attrs[i], sizeof file.attrs[i]);
        memcpy(at + sizeof file.attrs[i], counts, sizeof counts);
        memcpy(at + sizeof file.attrs[i] + sizeof counts, names[i], 8);
    }
    perf_file_feature(&file, PERF_FEATURE_EVENT_DESC, desc, sizeof desc);
    for (uint64_t id = 100; id < 103; id++) {
        const uint64_t words[] = {id, 0x1234, 8, 0x81, 8};
        perf_file_record(&file, PERF_RECORD_SAMPLE, 2, words, sizeof words);
    }
    perf_file_write(&file, scratch_path(state, "sizes"));
    for (int round = 0; round < 2; round++) { /* as recorded, and as written */
        struct perf_data *data;
        struct perf_writer *writer = NULL;
        struct perf_record record;
        struct perf_sample sample;
        assert_int_equal(perf_data_open(scratch_path(state, "sizes"), &data), 0);
        assert_int_equal(perf_data_event_count(data), 2);
        assert_int_equal(perf_data_event(data, 0)->id_count, 2);
        assert_int_equal(perf_data_event(data, 0)->attr.sample_stack_user, EVENT_STACK_FAR);
        assert_string_equal(perf_data_event_name(data, 1), "other");
        assert_non_null(perf_data_event_name(data, 0));
        size_t size;
        const uint8_t *kept = perf_data_feature(data, PERF_FEATURE_EVENT_DESC, &size);
        assert_int_equal(kept[0], 3 - round);
        assert_int_equal(size, 8 + (3 - round) * EACH);
        if (round == 0) {
            assert_int_equal(perf_writer_open(scratch_path(state, "sizes"), data, false, &writer),
                             0);
        }
        for (uint64_t id = 100; id < 103; id++) {
            assert_int_equal(perf_data_next(data, &record), 1);
            assert_int_equal(perf_sample_decode(data, &record, &sample), 0);
            assert_ptr_equal(sample.event, perf_data_event(data, id == 102));
            if (writer) {
                perf_writer_put(writer, record.bytes, record.size);
            }
        }
        assert_true(!writer || perf_writer_finish(writer) == 0);
        perf_data_close(data);
    }
}

/* More than one packed record holds; each has something by itself, as perf wants it. */
TEST(packed_records_come_back)
{
    enum { COUNT = 3000 };
    OWN_PERF_FILE file = two_events();
    struct perf_writer *writer;
    struct perf_record record;
    uint64_t words[5] = {0};
    uint32_t random = 1;
    struct perf_data *data = open_written(&file, state, "source");
    assert_int_equal(perf_writer_open(scratch_path(state, "packed"), data, false, &writer), 0);
    assert_int_equal(perf_writer_pack(writer), 0);
    for (uint64_t i = 0; i < COUNT; i++) {
        struct perf_event_header header = {.type = PERF_RECORD_LOST, .size = sizeof words};
        memcpy(words, &header, sizeof header);
        words[1] = i;
        for (int j = 2; j < 5; j++) { /* what zstd can do nothing with */
            random = random * 1664525 + 1013904223;
            words[j] = (uint64_t)random << 32 | (random * 2654435761U);
        }
        perf_writer_put(writer, words, sizeof words);
    }
    assert_int_equal(perf_writer_finish(writer), 0);
    perf_data_close(data);

    FILE *in = fopen(scratch_path(state, "packed"), "re");
    struct perf_file_header head;
    assert_non_null(in);
    assert_int_equal(fread(&head, 1, sizeof head, in), sizeof head);
    assert_true(head.features[0] & UINT64_C(1) << PERF_FEATURE_COMPRESSED);
    unsigned packed = 0;
    for (uint64_t at = head.data.offset; at < head.data.offset + head.data.size; packed++) {
        struct perf_event_header header;
        assert_int_equal(fseek(in, (long)at, SEEK_SET), 0);
        assert_int_equal(fread(&header, 1, sizeof header, in), sizeof header);
        assert_int_equal(header.type, PERF_USER_COMPRESSED);
        assert_true(header.size > sizeof header);
        at += header.size;
    }
    fclose(in);
    assert_int_equal(packed, 3); /* 120,000 bytes by 56 KB */

    assert_int_equal(perf_data_open(scratch_path(state, "packed"), &data), 0);
    for (uint64_t i = 0; i < COUNT; i++) {
        uint64_t number;
        assert_int_equal(perf_data_next(data, &record), 1);
        assert_int_equal(record.type, PERF_RECORD_LOST);
        memcpy(&number, record.bytes + 8, sizeof number);
        assert_int_equal(number, i);
    }
    assert_int_equal(perf_data_next(data, &record), 0);
    perf_data_close(data);
}

/* perf would make user frames of a result of --call-graph lbr from the branches, which know
 * neither inlined nor interpreted methods. */
TEST(the_chain_is_what_perf_reads_of_branch_stacks)
{
    OWN_PERF_FILE file = two_events();
    file.attrs[0].branch_sample_type |= PERF_SAMPLE_BRANCH_CALL_STACK;
    struct perf_writer *writer;
    struct perf_data *data = open_written(&file, state, "lbr");
    assert_true(data->events[0].attr.branch_sample_type & PERF_SAMPLE_BRANCH_CALL_STACK);
    assert_int_equal(perf_writer_open(scratch_path(state, "result"), data, false, &writer), 0);
    assert_int_equal(perf_writer_finish(writer), 0);
    uint64_t sample_type = data->events[0].attr.sample_type;
    perf_data_close(data);
    assert_int_equal(perf_data_open(scratch_path(state, "result"), &data), 0);
    assert_int_equal(data->events[0].attr.branch_sample_type,
                     PERF_SAMPLE_BRANCH_ANY | PERF_SAMPLE_BRANCH_HW_INDEX);
    assert_int_equal(data->events[0].attr.sample_type, sample_type);
    perf_data_close(data);
}

TEST(a_sample_too_long_is_not_encoded)
{
    OWN_PERF_FILE file = two_events();
    struct perf_record record;
    struct perf_sample sample;
    uint8_t out[PERF_RECORD_SIZE_MAX];
    uint64_t *chain = calloc(9000, sizeof *chain);
    perf_file_record(&file, PERF_RECORD_SAMPLE, 2, full_sample, sizeof full_sample);
    OWN(perf_data_close) struct perf_data *data = open_written(&file, state, "long");
    assert_int_equal(perf_data_next(data, &record), 1);
    assert_int_equal(perf_sample_decode(data, &record, &sample), 0);
    sample.chain = chain;
    sample.chain_count = 9000;
    assert_int_equal(perf_sample_encode(&sample, true, out), 0);
    size_t without = (sizeof full_sample / 8 - 3) * 8 + sizeof(struct perf_event_header);
    sample.chain_count = (PERF_RECORD_SIZE_MAX - without) / 8;
    assert_int_equal(perf_sample_encode(&sample, true, out), PERF_RECORD_SIZE_MAX);
    sample.chain_count++;
    assert_int_equal(perf_sample_encode(&sample, true, out), 0);
    free(chain);
}

TEST(records_tell_their_time)
{
    OWN_PERF_FILE file = two_events();
    uint64_t comm[] = {0, 0, 0x2b0000002a, 777, 100, 100, 3, 100};
    uint64_t other[] = {0, 0, 0x2b0000002a, 101};
    uint64_t made_up[] = {0, 0, 0, 0, 0, 0, 0, 0};
    perf_file_record(&file, PERF_RECORD_COMM, 0, comm, sizeof comm);
    perf_file_record(&file, PERF_RECORD_COMM, 0, other, sizeof other);
    perf_file_record(&file, PERF_RECORD_COMM, 0, made_up, sizeof made_up);
    perf_file_record(&file, PERF_RECORD_COMM, 0, comm, 16); /* too short to have any of it */
    struct perf_record record;
    OWN(perf_data_close) struct perf_data *data = open_written(&file, state, "times");
    assert_int_equal(perf_data_next(data, &record), 1);
    assert_int_equal(record.id.time, 777);
    assert_int_equal(record.id.tid, 43);
    assert_int_equal(perf_data_next(data, &record), 1);
    assert_false(record.id.has_time);
    assert_int_equal(record.id.pid, 42);
    assert_int_equal(perf_data_next(data, &record), 1);
    assert_true(record.id.has_time);
    assert_int_equal(record.id.time, 0);
    assert_int_equal(perf_data_next(data, &record), 1);
    assert_false(record.id.has_time);
    assert_int_equal(record.id.pid, UINT32_MAX);

    uint8_t out[PERF_SAMPLE_ID_MAX];
    assert_int_equal(perf_put_sample_id(data, 42, 43, 777, out), 48);
    uint64_t expected[] = {0x2b0000002a, 777, 100, 100, 0, 100};
    assert_memory_equal(out, expected, sizeof expected);
}

TEST(large_records_are_read)
{
    OWN_PERF_FILE file = two_events();
    uint64_t comm[] = {0, 0, 0x2b0000002a, 777, 100, 100, 3, 100};
    uint8_t *big = calloc(1, 60000);
    for (int i = 0; i < 10; i++) {
        perf_file_record(&file, PERF_RECORD_SAMPLE, 0, big, 60000);
    }
    perf_file_record(&file, PERF_RECORD_COMM, 0, comm, sizeof comm);
    struct perf_record record;
    OWN(perf_data_close) struct perf_data *data = open_written(&file, state, "big");
    int count = 0;
    while (perf_data_next(data, &record) == 1) {
        assert_int_equal(record.type, count < 10 ? PERF_RECORD_SAMPLE : PERF_RECORD_COMM);
        count++;
    }
    assert_int_equal(count, 11);
    assert_int_equal(perf_data_next(data, &record), 0);
    free(big);
}

static int open_and_read(const char *path)
{
    struct perf_data *data;
    struct perf_record record;
    int err = perf_data_open(path, &data);
    if (err) {
        assert_null(data);
        return err;
    }
    do {
        err = perf_data_next(data, &record);
    } while (err == 1);
    perf_data_close(data);
    return err;
}

TEST(what_we_cannot_take_is_refused)
{
    static const uint32_t records[] = {PERF_RECORD_AUX, PERF_USER_AUXTRACE,
                                       PERF_USER_AUXTRACE_INFO};
    static const unsigned features[] = {PERF_FEATURE_AUXTRACE, PERF_FEATURE_DIR_FORMAT};
    uint64_t zeros[8] = {0};
    for (size_t i = 0; i < sizeof records / sizeof records[0]; i++) {
        struct perf_file file = two_events();
        perf_file_record(&file, records[i], 0, zeros, sizeof zeros);
        perf_file_write(&file, scratch_path(state, "refused"));
        assert_int_equal(open_and_read(scratch_path(state, "refused")), -ENOTSUP);
        free(file.records);
    }
    for (size_t i = 0; i < sizeof features / sizeof features[0]; i++) {
        OWN_PERF_FILE file = two_events();
        perf_file_record(&file, PERF_RECORD_COMM, 0, zeros, sizeof zeros);
        perf_file_feature(&file, features[i], zeros, sizeof zeros);
        perf_file_write(&file, scratch_path(state, "refused"));
        assert_int_equal(open_and_read(scratch_path(state, "refused")), -ENOTSUP);
    }
    uint64_t pipe_header[2] = {PERF_FILE_MAGIC, 16};
    uint64_t foreign[13] = {__builtin_bswap64(PERF_FILE_MAGIC), __builtin_bswap64(104)};
    write_bytes(scratch_path(state, "refused"), pipe_header, sizeof pipe_header);
    assert_int_equal(open_and_read(scratch_path(state, "refused")), -EINVAL);
    write_bytes(scratch_path(state, "refused"), foreign, sizeof foreign);
    assert_int_equal(open_and_read(scratch_path(state, "refused")), -ENOTSUP);
    assert_int_equal(open_and_read(*state), -ENOTSUP); /* a directory */
    assert_int_equal(open_and_read(scratch_path(state, "absent")), -ENOENT);
}

/* perf record -z: one zstd stream over several records, which cuts the kernel's records anywhere.
 */
static void put_packed(struct perf_file *file, ZSTD_CCtx *stream, const uint8_t *bytes, size_t size,
                       uint32_t type)
{
    static uint8_t packed[8 + 60000];
    ZSTD_inBuffer in = {bytes, size, 0};
    ZSTD_outBuffer out = {packed + 8, sizeof packed - 8, 0};
    assert_int_equal(ZSTD_compressStream2(stream, &out, &in, ZSTD_e_flush), 0);
    if (type == PERF_USER_COMPRESSED) {
        perf_file_record(file, type, 0, packed + 8, out.pos);
        return;
    }
    uint64_t length = out.pos;
    memcpy(packed, &length, 8);
    memset(packed + 8 + out.pos, 0xff, 8); /* the padding must not be taken for the stream */
    perf_file_record(file, type, 0, packed, (8 + out.pos + 7) / 8 * 8);
}

TEST(packed_records_are_unpacked)
{
    OWN_PERF_FILE plain = two_events();
    OWN_PERF_FILE file = two_events();
    uint64_t comm[] = {0, 0, 0x2b0000002a, 777, 100, 100, 3, 100};
    uint8_t *big = calloc(1, 60000);
    for (int i = 0; i < 40; i++) { /* more than the unpacker keeps at a time */
        perf_file_record(&plain, PERF_RECORD_SAMPLE, 0, big, 60000);
        perf_file_record(&plain, PERF_RECORD_COMM, 0, comm, sizeof comm);
    }
    ZSTD_CCtx *stream = ZSTD_createCCtx();
    size_t cut = plain.size / 2 + 4;
    put_packed(&file, stream, plain.records, cut, PERF_USER_COMPRESSED);
    perf_file_record(&file, PERF_USER_FINISHED_ROUND, 0, NULL, 0);
    put_packed(&file, stream, plain.records + cut, plain.size - cut, PERF_USER_COMPRESSED2);
    perf_file_feature(&file, PERF_FEATURE_COMPRESSED, comm, 20);

    struct perf_record record;
    struct perf_data *data = open_written(&file, state, "packed");
    int comms = 0, samples = 0, rounds = 0;
    while (perf_data_next(data, &record) == 1) {
        comms +=
            record.type == PERF_RECORD_COMM && memcmp(record.bytes + 8, comm, sizeof comm) == 0;
        samples += record.type == PERF_RECORD_SAMPLE;
        rounds += record.type == PERF_USER_FINISHED_ROUND;
    }
    assert_int_equal(comms, 40);
    assert_int_equal(samples, 40);
    assert_int_equal(rounds, 1);
    struct perf_writer *writer;
    assert_int_equal(perf_writer_open(scratch_path(state, "result"), data, false, &writer), 0);
    assert_int_equal(perf_writer_finish(writer), 0);
    perf_data_close(data);
    assert_int_equal(perf_data_open(scratch_path(state, "result"), &data), 0);
    assert_int_equal(data->features[PERF_FEATURE_COMPRESSED].size, 0);
    perf_data_close(data);

    /* A stream of something else, and a stream that ends inside a record. */
    file.size = 0;
    perf_file_record(&file, PERF_USER_COMPRESSED, 0, plain.records, 100);
    perf_file_write(&file, scratch_path(state, "packed"));
    assert_int_equal(open_and_read(scratch_path(state, "packed")), -EINVAL);
    file.size = 0;
    ZSTD_CCtx_reset(stream, ZSTD_reset_session_only);
    put_packed(&file, stream, plain.records, 1000, PERF_USER_COMPRESSED);
    perf_file_write(&file, scratch_path(state, "packed"));
    assert_int_equal(open_and_read(scratch_path(state, "packed")), 0);
    ZSTD_freeCCtx(stream);
    free(big);
}

TEST(records_outlive_lost_features)
{
    OWN_PERF_FILE file = two_events();
    uint64_t zeros[8] = {0};
    static const struct {
        uint32_t size;
        char text[12];
    } arch = {12, "x86_64"};
    perf_file_record(&file, PERF_RECORD_COMM, 0, zeros, sizeof zeros);
    perf_file_feature(&file, PERF_FEATURE_ARCH, &arch, sizeof arch);
    perf_file_feature(&file, PERF_FEATURE_CMDLINE, zeros, sizeof zeros);
    struct stat status;
    assert_int_equal(stat(scratch_path(state, "cut"), &status), 0);
    assert_int_equal(truncate(scratch_path(state, "cut"), status.st_size - 8), 0);
    struct perf_writer *writer;
    struct perf_record record;
    struct perf_data *data = open_written(&file, state, "cut");
    assert_string_equal(perf_data_string(data, PERF_FEATURE_ARCH), "x86_64");
    assert_int_equal(perf_data_next(data, &record), 1);
    assert_int_equal(perf_writer_open(scratch_path(state, "result"), data, false, &writer), 0);
    perf_writer_put(writer, record.bytes, record.size);
    assert_int_equal(perf_writer_finish(writer), 0);
    perf_data_close(data);
    assert_int_equal(perf_data_open(scratch_path(state, "result"), &data), 0);
    assert_string_equal(perf_data_string(data, PERF_FEATURE_ARCH), "x86_64");
    perf_data_close(data);
}

TEST(a_file_cut_anywhere_does_no_harm)
{
    OWN_PERF_FILE file = two_events();
    perf_file_record(&file, PERF_RECORD_SAMPLE, 2, full_sample, sizeof full_sample);
    perf_file_record(&file, PERF_RECORD_SAMPLE, 2, full_sample, sizeof full_sample);
    perf_file_feature(&file, PERF_FEATURE_VERSION, full_sample, 16);
    perf_file_write(&file, scratch_path(state, "whole"));
    struct stat status;
    assert_int_equal(stat(scratch_path(state, "whole"), &status), 0);
    for (off_t size = status.st_size - 1; size >= 0; size -= 4) {
        assert_int_equal(truncate(scratch_path(state, "whole"), size), 0);
        int err = open_and_read(scratch_path(state, "whole"));
        assert_true(err == 0 || err == -EINVAL);
    }
}

/* perf record --buildid-mmap, which perf 7 does by itself: an id where the inode would be. */
TEST(a_mapping_tells_its_build_id)
{
    OWN_PERF_FILE file = two_events();
    file.attrs[0].build_id = 1;
    struct {
        uint32_t pid, tid;
        uint64_t start, size, offset;
        union {
            struct {
                uint8_t size, reserved[3], id[20];
            } build_id;
            struct {
                uint32_t major, minor;
                uint64_t inode, generation;
            } inode;
        } of;
        uint32_t protection, flags;
        char path[16];
    } mmap = {.pid = 42, .start = 0x1000, .size = 0x1000, .protection = 5, .path = "/lib/x.so"};
    static const uint8_t sizes[] = {20, 8, 21, 0};
    for (int i = 0; i < 4; i++) {
        mmap.of.build_id.size = sizes[i];
        for (int k = 0; k < 20; k++) {
            mmap.of.build_id.id[k] = (uint8_t)(k + 1);
        }
        perf_file_record(&file, PERF_RECORD_MMAP2,
                         PERF_RECORD_MISC_USER | PERF_RECORD_MISC_MMAP_BUILD_ID, &mmap,
                         sizeof mmap);
    }
    mmap.of.inode.major = 8;
    mmap.of.inode.minor = 2;
    mmap.of.inode.inode = 77;
    perf_file_record(&file, PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER, &mmap, sizeof mmap);
    struct perf_record record;
    OWN(perf_data_close) struct perf_data *data = open_written(&file, state, "mapped");
    for (int i = 0; i < 5; i++) {
        assert_int_equal(perf_data_next(data, &record), 1);
        assert_non_null(record.mapping);
        struct mapping mapping = *record.mapping;
        assert_string_equal(mapping.file.path, "/lib/x.so");
        uint8_t size = i < 2 ? sizes[i] : 0; /* a size that cannot be is none */
        assert_int_equal(mapping.file.build_id_size, size);
        for (uint8_t k = 0; k < 20; k++) {
            assert_int_equal(mapping.file.build_id[k], k < size ? k + 1 : 0);
        }
        assert_int_equal(mapping.file.inode, i == 4 ? 77 : 0);
        assert_int_equal(mapping.file.major, i == 4 ? 8 : 0);
        assert_int_equal(mapping.file.minor, i == 4 ? 2 : 0);
    }
}

/* Of records that map something, and of those that do not, once the reader has gone. */
TEST(what_is_kept_outlives_the_reader)
{
    enum { RECORDS = 3 };
    OWN_PERF_FILE file = two_events();
    struct {
        uint32_t pid, tid;
        uint64_t start, size, offset;
        char path[16];
    } mmap = {.pid = 42, .tid = 43, .size = 0x1000};
    struct perf_record *kept[RECORDS];
    for (int i = 0; i < RECORDS; i++) {
        snprintf(mmap.path, sizeof mmap.path, "/lib/%d.so", i);
        mmap.start = 0x1000 * (uint64_t)(i + 1);
        perf_file_record(&file, i == 1 ? PERF_RECORD_COMM : PERF_RECORD_MMAP, PERF_RECORD_MISC_USER,
                         &mmap, sizeof mmap);
    }
    struct perf_record record;
    struct perf_data *data = open_written(&file, state, "kept");
    for (int i = 0; i < RECORDS; i++) {
        assert_int_equal(perf_data_next(data, &record), 1);
        size_t size = perf_record_kept_size(&record);
        uint8_t *to = malloc(size); /* where a sanitizer sees one byte too many */
        assert_non_null(to);
        kept[i] = perf_record_keep(&record, to);
        assert_ptr_equal(kept[i], to);
        assert_true(kept[i]->bytes > to && kept[i]->bytes + record.size == to + size);
    }
    perf_data_close(data);
    for (int i = 0; i < RECORDS; i++) {
        assert_int_equal(kept[i]->type, i == 1 ? PERF_RECORD_COMM : PERF_RECORD_MMAP);
        assert_int_equal(perf_record_u32(kept[i], 8), 42);
        assert_int_equal(kept[i]->mapping != NULL, i != 1);
        if (kept[i]->mapping) {
            snprintf(mmap.path, sizeof mmap.path, "/lib/%d.so", i);
            assert_int_equal(kept[i]->mapping->start, 0x1000 * (i + 1));
            assert_string_equal(kept[i]->mapping->file.path, mmap.path);
        }
        free(kept[i]);
    }
}

/* Another session's event asked for build-ids, and the kernel left its flag on our record. */
TEST(a_build_id_that_nobody_asked_for_is_an_inode)
{
    OWN_PERF_FILE file = two_events();
    struct {
        uint32_t pid, tid;
        uint64_t start, size, offset;
        uint32_t major, minor;
        uint64_t inode, generation;
        uint32_t protection, flags;
        char path[16];
    } mmap = {.pid = 42, .start = 0x1000, .size = 0x1000, .minor = 2, .inode = 77, .protection = 5};
    static const uint32_t majors[] = {254, 8, 0, 259, 20 /* perf inject: an id's size */};
    for (int i = 0; i < 5; i++) {
        mmap.major = majors[i];
        memcpy(mmap.path, "/lib/x.so", sizeof "/lib/x.so");
        perf_file_record(&file, PERF_RECORD_MMAP2,
                         PERF_RECORD_MISC_USER | PERF_RECORD_MISC_MMAP_BUILD_ID, &mmap,
                         sizeof mmap);
    }
    struct perf_record record;
    OWN(perf_data_close) struct perf_data *data = open_written(&file, state, "claimed");
    for (int i = 0; i < 5; i++) {
        bool is_id = i == 4;
        assert_int_equal(perf_data_next(data, &record), 1);
        assert_non_null(record.mapping);
        assert_int_equal(record.mapping->file.build_id_size, is_id ? 20 : 0);
        assert_int_equal(record.mapping->file.inode, is_id ? 0 : 77);
        assert_int_equal(record.mapping->file.major, is_id ? 0 : majors[i]);
        struct perf_event_header header; /* as it is written again */
        memcpy(&header, record.bytes, sizeof header);
        assert_int_equal(header.misc, record.misc);
        assert_int_equal(header.misc & PERF_RECORD_MISC_MMAP_BUILD_ID,
                         is_id ? PERF_RECORD_MISC_MMAP_BUILD_ID : 0);
        assert_string_equal((const char *)record.bytes + 72, "/lib/x.so");
    }
}

/* What a pipe and what a file of the same records give, must be equal. */
static void check_equal(struct perf_data *a, struct perf_data *b)
{
    static uint8_t bytes[PERF_RECORD_SIZE_MAX];
    struct perf_record one;
    struct perf_record other;
    assert_int_equal(perf_data_event_count(a), perf_data_event_count(b));
    for (uint32_t i = 0; i < perf_data_event_count(a); i++) {
        const struct perf_event *event = perf_data_event(a, i);
        assert_memory_equal(&event->attr, &perf_data_event(b, i)->attr, sizeof event->attr);
        assert_int_equal(event->id_count, perf_data_event(b, i)->id_count);
        assert_memory_equal(event->ids, perf_data_event(b, i)->ids, event->id_count * 8);
    }
    int more;
    do {
        more = perf_data_next(a, &one);
        if (more > 0) {
            memcpy(bytes, one.bytes, one.size);
        }
        assert_int_equal(perf_data_next(b, &other), more);
        if (more > 0) {
            assert_int_equal((uintptr_t)one.bytes % 8, 0);
            assert_int_equal((uintptr_t)other.bytes % 8, 0);
            assert_int_equal(one.size, other.size);
            assert_memory_equal(bytes, other.bytes, one.size);
        }
    } while (more > 0);
    assert_int_equal(more, 0);
    for (unsigned i = 0; i < PERF_FEATURE_BITS; i++) {
        size_t size;
        size_t other_size;
        const uint8_t *feature = perf_data_feature(a, i, &size);
        const uint8_t *other_feature = perf_data_feature(b, i, &other_size);
        assert_int_equal(size, other_size);
        assert_int_equal(perf_data_has_feature(a, i), perf_data_has_feature(b, i));
        assert_int_equal(feature != NULL, other_feature != NULL);
        if (feature) {
            assert_memory_equal(feature, other_feature, size);
        }
    }
}

static struct perf_file with_everything(void)
{
    static const struct {
        uint32_t size;
        char text[12];
    } arch = {12, "x86_64"};
    static uint8_t formats[3000];
    struct perf_file file = two_events();
    uint64_t comm[] = {0, 0, 0x2b0000002a, 777, 100, 100, 3, 100};
    uint64_t small[] = {101, 0x5555, 0x100000007};
    memset(formats, 7, sizeof formats);
    perf_file_feature(&file, PERF_FEATURE_TRACING_DATA, formats, sizeof formats);
    perf_file_feature(&file, PERF_FEATURE_ARCH, &arch, sizeof arch);
    for (int i = 0; i < 3000; i++) {
        perf_file_record(&file, PERF_RECORD_SAMPLE, 2, full_sample, sizeof full_sample);
        perf_file_record(&file, PERF_RECORD_COMM, 0, comm, sizeof comm);
        perf_file_record(&file, PERF_RECORD_SAMPLE, 1, small, sizeof small);
    }
    return file;
}

TEST(a_pipe_is_read_as_a_file_is)
{
    OWN_PERF_FILE file = with_everything();
    perf_file_write(&file, scratch_path(state, "file"));
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        FILE *out = fdopen(ends[1], "w");
        close(ends[0]);
        perf_file_write_pipe(&file, out);
        _exit(fclose(out) ? 1 : 0);
    }
    close(ends[1]);
    int saved = dup(STDIN_FILENO);
    assert_int_equal(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
    close(ends[0]);
    struct perf_data *from_file;
    struct perf_data *from_pipe;
    assert_int_equal(perf_data_open(scratch_path(state, "file"), &from_file), 0);
    assert_int_equal(perf_data_open("-", &from_pipe), 0);
    assert_true(perf_data_is_live(from_pipe));
    assert_false(perf_data_is_live(from_file));
    check_equal(from_file, from_pipe);
    perf_data_close(from_file);
    perf_data_close(from_pipe);
    dup2(saved, STDIN_FILENO);
    close(saved);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

TEST(a_kept_pipe_is_read_as_a_file_is)
{
    OWN_PERF_FILE file = with_everything();
    perf_file_write(&file, scratch_path(state, "file"));
    FILE *out = fopen(scratch_path(state, "kept"), "w");
    perf_file_write_pipe(&file, out);
    fclose(out);
    struct perf_data *from_file;
    struct perf_data *kept;
    assert_int_equal(perf_data_open(scratch_path(state, "file"), &from_file), 0);
    assert_int_equal(perf_data_open(scratch_path(state, "kept"), &kept), 0);
    check_equal(from_file, kept);
    perf_data_close(from_file);
    perf_data_close(kept);
    struct stat status;
    assert_int_equal(stat(scratch_path(state, "kept"), &status), 0);
    for (off_t size = 16; size < 5000; size += 4) { /* cut anywhere */
        assert_int_equal(truncate(scratch_path(state, "kept"), 5000 - size), 0);
        int err = open_and_read(scratch_path(state, "kept"));
        assert_true(err == 0 || err == -EINVAL);
    }
}

/* Whatever the first record is, even one of a type that there is not. */
TEST(events_stand_before_all_records)
{
    for (uint32_t type = 0; type <= PERF_RECORD_COMM; type += PERF_RECORD_COMM) {
        OWN_PERF_FILE file = two_events();
        struct perf_data *data;
        struct perf_record record;
        uint64_t comm[] = {0, 0, 0x2b0000002a, 777, 100, 100, 3, 100};
        perf_file_record(&file, type, 0, comm, sizeof comm);
        perf_file_record(&file, PERF_USER_ATTR, 0, &file.attrs[1], sizeof file.attrs[1]);
        FILE *out = fopen(scratch_path(state, "kept"), "w");
        perf_file_write_pipe(&file, out);
        fclose(out);
        assert_int_equal(perf_data_open(scratch_path(state, "kept"), &data), 0);
        assert_int_equal(perf_data_next(data, &record), 1);
        assert_int_equal(record.type, type);
        assert_int_equal(perf_data_next(data, &record), -EINVAL);
        assert_int_equal(perf_data_event_count(data), 2);
        perf_data_close(data);
    }
}

TEST(build_ids_of_a_pipe_are_a_feature)
{
    OWN_PERF_FILE file = two_events();
    struct {
        int32_t pid;
        uint8_t id[20];
        uint8_t size, reserved[3];
        char path[64];
    } listed = {.pid = -1, .id = {1, 2, 3}, .size = 20, .path = "/lib/somewhere.so"};
    perf_file_record(&file, PERF_USER_BUILD_ID, 0x8002, &listed, sizeof listed);
    perf_file_record(&file, PERF_USER_BUILD_ID, 0x8002, &listed, sizeof listed);
    FILE *out = fopen(scratch_path(state, "kept"), "w");
    perf_file_write_pipe(&file, out);
    fclose(out);
    struct perf_data *data;
    struct perf_record record;
    size_t size;
    assert_int_equal(perf_data_open(scratch_path(state, "kept"), &data), 0);
    assert_int_equal(perf_data_next(data, &record), 0);
    const uint8_t *list = perf_data_feature(data, PERF_FEATURE_BUILD_ID, &size);
    assert_int_equal(size, 2 * (8 + sizeof listed));
    assert_memory_equal(list + 8, &listed, sizeof listed);
    assert_memory_equal(list + 16 + sizeof listed, &listed, sizeof listed);
    perf_data_close(data);
}

TEST(events_have_names)
{
    OWN_PERF_FILE file = two_events();
    struct {
        uint64_t kind, id;
        char name[16];
    } update = {2, 101, "sched:switch"};
    perf_file_record(&file, PERF_USER_EVENT_UPDATE, 0, &update, sizeof update);
    uint8_t desc[2][8 + sizeof file.attrs[0] + 16];
    memset(desc, 0, sizeof desc);
    uint32_t head[2] = {1, sizeof file.attrs[0]};
    uint32_t counts[2] = {0, 8};
    memcpy(desc, head, sizeof head);
    memcpy(desc[0] + 8 + sizeof file.attrs[0], counts, sizeof counts);
    memcpy(desc[0] + 16 + sizeof file.attrs[0], "cycles", 7);
    perf_file_feature(&file, PERF_FEATURE_EVENT_DESC, desc, sizeof desc[0]);
    struct perf_record record;
    OWN(perf_data_close) struct perf_data *data = open_written(&file, state, "named");
    assert_string_equal(perf_data_event_name(data, 0), "cycles");
    assert_null(perf_data_event_name(data, 1));
    assert_int_equal(perf_data_next(data, &record), 1);
    assert_string_equal(perf_data_event_name(data, 1), "sched:switch");
}

/* A sparse file of 32 GiB, all of it ids of one event; and two events that share 16 GiB. */
TEST(ids_without_end_are_refused)
{
    for (uint32_t events = 1; events <= 2; events++) {
        struct perf_event_attr attr = {.size = sizeof attr};
        struct perf_section ids = {4096, (UINT64_C(32) << 30) / events};
        struct perf_file_header header = {
            .magic = PERF_FILE_MAGIC,
            .size = sizeof header,
            .attr_size = sizeof attr + sizeof ids,
            .attrs = {sizeof header, events * (sizeof attr + sizeof ids)},
            .data = {sizeof header, 0},
        };
        FILE *out = fopen(scratch_path(state, "sparse"), "w");
        fwrite(&header, 1, sizeof header, out);
        for (uint32_t i = 0; i < events; i++) {
            fwrite(&attr, 1, sizeof attr, out);
            fwrite(&ids, 1, sizeof ids, out);
        }
        fclose(out);
        assert_int_equal(truncate(scratch_path(state, "sparse"), (INT64_C(32) << 30) + 4096), 0);
        assert_int_equal(open_and_read(scratch_path(state, "sparse")), -EINVAL);
    }
}

/* HEADER_BUILD_ID, whole and cut off in the second entry. */
static int take_listed(void *context, const struct listed_build_id *listed)
{
    uint32_t *count = context;
    static const char *const paths[] = {"/lib/one.so", "[kernel.kallsyms]", "/lib/two.so"};
    assert_true(*count < 3);
    assert_string_equal(listed->path, paths[*count]);
    assert_int_equal(listed->kernel, *count == 1);
    assert_int_equal(listed->id_size, *count == 2 ? BUILD_ID_MAX : 3);
    assert_int_equal(listed->id[2], *count);
    return ++*count == 3 ? -ECANCELED : 0;
}

TEST(the_list_of_build_ids_is_read)
{
    static const char *const paths[] = {"/lib/one.so", "[kernel.kallsyms]", "/lib/two.so"};
    struct {
        struct perf_build_id_entry entry;
        char path[28];
    } list[3] = {0};
    for (uint8_t i = 0; i < 3; i++) {
        uint32_t misc = i == 1 ? PERF_RECORD_MISC_KERNEL : PERF_RECORD_MISC_USER;
        list[i].entry = (struct perf_build_id_entry){
            .header = {.misc = (uint16_t)(misc | (i < 2 ? PERF_BUILD_ID_SIZE : 0)),
                       .size = sizeof list[i]},
            .pid = -1,
            .build_id = {0xab, 0xcd, i},
            .size = 3,
        };
        strcpy(list[i].path, paths[i]);
    }
    for (int cut = 0; cut < 2; cut++) {
        OWN_PERF_FILE file = two_events();
        uint64_t small[] = {101, 0x5555, 0x100000007};
        perf_file_record(&file, PERF_RECORD_SAMPLE, 1, small, sizeof small);
        perf_file_feature(&file, PERF_FEATURE_BUILD_ID, list, cut ? 100 : sizeof list);
        uint32_t count = 0;
        OWN(perf_data_close) struct perf_data *data = open_written(&file, state, "listed");
        assert_int_equal(perf_data_build_ids(data, take_listed, &count), cut ? 0 : -ECANCELED);
        assert_int_equal(count, cut ? 1 : 3);
    }
}

TEST_MAIN(scratch_create, scratch_remove)
