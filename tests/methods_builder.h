/* Builds tables of methods (format/methods.h) for tests, sound ones and others. */
#ifndef JD_TESTS_METHODS_BUILDER_H
#define JD_TESTS_METHODS_BUILDER_H

#include "format/leb128.h"
#include "format/methods.h"

#include <stdlib.h>
#include <string.h>

struct methods_builder {
    uint8_t bytes[4096];
    size_t size;
    size_t record; /* where the open one starts */
    uint64_t previous;
};

static inline void methods_put(struct methods_builder *builder, const void *bytes, size_t size)
{
    if (size > sizeof(builder->bytes) - builder->size) {
        abort();
    }
    memcpy(builder->bytes + builder->size, bytes, size);
    builder->size += size;
}

static inline void methods_uleb(struct methods_builder *builder, uint64_t value)
{
    uint8_t bytes[LEB128_MAX];
    methods_put(builder, bytes, uleb128_put(bytes, value));
}

static inline void methods_sleb(struct methods_builder *builder, int64_t value)
{
    uint8_t bytes[LEB128_MAX];
    methods_put(builder, bytes, sleb128_put(bytes, value));
}

static inline void methods_start(struct methods_builder *builder)
{
    struct methods_header header = {.magic = METHODS_MAGIC,
                                    .version = METHODS_VERSION,
                                    .total_size = sizeof(header),
                                    .pid = 42,
                                    .timestamp = 1000};
    builder->size = 0;
    methods_put(builder, &header, sizeof(header));
}

static inline void methods_begin(struct methods_builder *builder, uint32_t id, uint64_t stamp,
                                 const char *source)
{
    struct methods_record record = {.id = id, .timestamp = stamp};
    builder->record = builder->size;
    builder->previous = 0;
    methods_put(builder, &record, sizeof(record));
    methods_put(builder, source, strlen(source) + 1);
}

/* lines: pairs of bci and line, until a line of 0. */
static inline void methods_add(struct methods_builder *builder, uint64_t address,
                               uint64_t bytecodes, uint32_t size, const char *name,
                               const uint32_t *lines)
{
    uint32_t count = 0;
    methods_sleb(builder, (int64_t)(address - builder->previous));
    methods_sleb(builder, (int64_t)(bytecodes - address));
    methods_uleb(builder, size);
    methods_put(builder, name, strlen(name) + 1);
    while (lines && lines[count * 2 + 1]) {
        count++;
    }
    methods_uleb(builder, count);
    for (uint32_t i = 0; i < count; i++) {
        methods_uleb(builder, lines[i * 2] - (i ? lines[i * 2 - 2] : 0));
        methods_sleb(builder, (int64_t)lines[i * 2 + 1] - (i ? lines[i * 2 - 1] : 0));
    }
    builder->previous = address;
}

static inline void methods_end(struct methods_builder *builder)
{
    uint32_t size = (uint32_t)(builder->size - builder->record);
    memcpy(builder->bytes + builder->record + offsetof(struct methods_record, total_size), &size,
           sizeof(size));
}

/* All that live have been told of since. */
static inline void methods_all(struct methods_builder *builder, uint64_t since)
{
    struct methods_record record = {METHODS_ALL, sizeof(record), since};
    methods_put(builder, &record, sizeof(record));
}

#endif
