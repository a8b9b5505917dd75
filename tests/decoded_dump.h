/*
 * A dump taken apart by offsets alone, written from the specification and not from the structs and
 * helpers that the writer uses, so that both cannot be wrong in the same way. It fails the test on
 * whatever is not well-formed, but for a torn last record, which `torn` tells of.
 */
#ifndef JD_TESTS_DECODED_DUMP_H
#define JD_TESTS_DECODED_DUMP_H

#include "scratch.h"

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { DECODED_LOAD = 0, DECODED_MOVE = 1, DECODED_DEBUG_INFO = 2, DECODED_CLOSE = 3 };

struct decoded_record {
    const uint8_t *at; /* the record's first byte */
    uint32_t id;
    uint32_t size;
    uint64_t stamp;
};

struct decoded_dump {
    uint8_t *bytes;
    size_t size;
    struct decoded_record *records;
    size_t count;
    bool torn;
};

static inline uint64_t decoded_number(const uint8_t *at, size_t bytes)
{
    uint64_t value = 0;
    for (size_t i = bytes; i > 0; i--) {
        value = value << 8 | at[i - 1]; /* the tests run on little-endian machines */
    }
    return value;
}

static inline uint32_t u32_at(const uint8_t *at)
{
    return (uint32_t)decoded_number(at, 4);
}

static inline uint64_t u64_at(const uint8_t *at)
{
    return decoded_number(at, 8);
}

static inline void decoded_dump_read(struct decoded_dump *dump, const char *path)
{
    *dump = (struct decoded_dump){0};
    dump->bytes = scratch_read(path, &dump->size);
    assert_non_null(dump->bytes);
    assert_true(dump->size >= 40);
    assert_int_equal(u32_at(dump->bytes), 0x4A695444);
    assert_int_equal(u32_at(dump->bytes + 4), 1);
    assert_int_equal(u32_at(dump->bytes + 8), 40);
    assert_int_equal(u32_at(dump->bytes + 16), 0);
    uint64_t start = u64_at(dump->bytes + 24);
    dump->records = calloc(dump->size / 16 + 1, sizeof(*dump->records));
    for (size_t at = 40; at < dump->size;) {
        struct decoded_record record = {.at = dump->bytes + at};
        if (dump->size - at < 16 || u32_at(record.at + 4) > dump->size - at) {
            dump->torn = true;
            break;
        }
        record.id = u32_at(record.at);
        record.size = u32_at(record.at + 4);
        record.stamp = u64_at(record.at + 8);
        assert_true(record.size >= 16);
        assert_true(record.stamp >= start);
        dump->records[dump->count++] = record;
        at += record.size;
    }
    /* A kill tears a write at a page's end, which may be where a group's first record ends. */
    if (dump->count > 0 && dump->records[dump->count - 1].id == DECODED_DEBUG_INFO) {
        dump->torn = true;
    }
}

static inline void decoded_dump_free(struct decoded_dump *dump)
{
    free(dump->bytes);
    free(dump->records);
}

/* One that is freed where its scope ends. */
#define OWN_DECODED_DUMP __attribute__((cleanup(decoded_dump_free))) struct decoded_dump

/* Fails unless each DEBUG_INFO stands before a LOAD of the same address and stamp, nothing is
 * behind CLOSE, and each code_index is there once. Returns the number of LOADs. */
static inline size_t decoded_dump_check_groups(const struct decoded_dump *dump)
{
    size_t loads = 0;
    uint64_t last_index = 0;
    for (size_t i = 0; i < dump->count; i++) {
        const struct decoded_record *record = &dump->records[i];
        if (record->id == DECODED_DEBUG_INFO && !(dump->torn && i + 1 == dump->count)) {
            assert_true(i + 1 < dump->count);
            assert_int_equal(record[1].id, DECODED_LOAD);
            assert_int_equal(record[1].stamp, record->stamp);
            assert_int_equal(u64_at(record[1].at + 32), u64_at(record->at + 16));
        } else if (record->id == DECODED_LOAD) {
            /* Given under the lock, so they rise. */
            assert_true(u64_at(record->at + 48) > last_index);
            last_index = u64_at(record->at + 48);
            loads++;
        } else if (record->id == DECODED_CLOSE) {
            assert_int_equal(i + 1, dump->count);
            assert_false(dump->torn);
        }
    }
    return loads;
}

/* Reads LEB128 values and strings of a trailer one after the other. */
struct decoded_bytes {
    const uint8_t *at;
    const uint8_t *end;
};

static inline uint64_t decoded_uleb(struct decoded_bytes *bytes)
{
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
        assert_true(bytes->at < bytes->end);
        uint8_t byte = *bytes->at++;
        value += (uint64_t)(byte % 128) << shift;
        if (byte < 128) {
            return value;
        }
    }
}

static inline int64_t decoded_sleb(struct decoded_bytes *bytes)
{
    int64_t value = 0;
    int64_t weight = 1;
    for (;;) {
        assert_true(bytes->at < bytes->end);
        uint8_t byte = *bytes->at++;
        if (byte < 128) {
            return value + (byte < 64 ? byte : byte - 128) * weight;
        }
        value += (byte - 128) * weight;
        weight *= 128;
    }
}

static inline const char *decoded_string(struct decoded_bytes *bytes)
{
    const char *string = (const char *)bytes->at;
    const uint8_t *nul = bytes->at ? memchr(bytes->at, 0, (size_t)(bytes->end - bytes->at)) : NULL;
    assert_non_null(nul);
    bytes->at = nul + 1;
    return string;
}

/* Walks a DEBUG_INFO's entries; afterwards `rest` is what stands behind them. Fails unless there
 * are as many as the record says. */
struct decoded_entry {
    uint64_t address;
    uint32_t line;
    uint32_t discriminator;
    const char *file;
};

static inline size_t decoded_entries(const struct decoded_record *record,
                                     struct decoded_entry *entries, size_t room,
                                     struct decoded_bytes *rest)
{
    size_t count = u64_at(record->at + 24);
    assert_true(count <= room);
    *rest = (struct decoded_bytes){record->at + 32, record->at + record->size};
    for (size_t i = 0; i < count; i++) {
        assert_true(rest->end - rest->at > 16);
        entries[i].address = u64_at(rest->at);
        entries[i].line = u32_at(rest->at + 8);
        entries[i].discriminator = u32_at(rest->at + 12);
        rest->at += 16;
        entries[i].file = decoded_string(rest);
    }
    return count;
}

/* Finds the section of a tag in the trailer that `rest` is. False: the trailer has none. */
static inline bool decoded_section(struct decoded_bytes rest, uint64_t tag,
                                   struct decoded_bytes *section)
{
    assert_true(rest.end - rest.at >= 12);
    assert_memory_equal(rest.at, "jddr", 4);
    assert_int_equal(u32_at(rest.at + 4), 1);
    assert_int_equal(u32_at(rest.at + 8), rest.end - rest.at);
    rest.at += 12;
    bool found = false;
    *section = (struct decoded_bytes){rest.at, rest.at};
    while (rest.at < rest.end) {
        uint64_t this_tag = decoded_uleb(&rest);
        uint64_t size = decoded_uleb(&rest);
        assert_true(size <= (uint64_t)(rest.end - rest.at));
        if (this_tag == tag) {
            assert_false(found);
            *section = (struct decoded_bytes){rest.at, rest.at + size};
            found = true;
        }
        rest.at += size;
    }
    return found;
}

#endif
