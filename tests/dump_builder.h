/*
 * Builds jitdumps byte by byte, in either byte order, sound ones and others. Independent of the
 * writer on purpose: a fault in the writer must not be the reader's idea of the format.
 */
#ifndef JD_TESTS_DUMP_BUILDER_H
#define JD_TESTS_DUMP_BUILDER_H

#include "format/jitdump.h"
#include "format/leb128.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define BUILDER_PID   4242
#define BUILDER_START UINT64_C(1000000)

struct dump_builder {
    uint8_t *bytes;
    size_t size;
    size_t room;
    size_t record;  /* where the record that is being built starts */
    size_t trailer; /* and its trailer */
    bool swapped;
};

static inline void dump_free(struct dump_builder *dump)
{
    free(dump->bytes);
    memset(dump, 0, sizeof(*dump));
}

/* One that is freed where its scope ends. */
#define OWN_DUMP_BUILDER __attribute__((cleanup(dump_free))) struct dump_builder

static inline void dump_bytes(struct dump_builder *dump, const void *bytes, size_t size)
{
    if (dump->size + size > dump->room) {
        dump->room = (dump->size + size) * 2 + 256;
        dump->bytes = realloc(dump->bytes, dump->room);
        if (!dump->bytes) {
            abort();
        }
    }
    if (size) {
        memcpy(dump->bytes + dump->size, bytes, size);
    }
    dump->size += size;
}

static inline void dump_u32(struct dump_builder *dump, uint32_t value)
{
    value = dump->swapped ? __builtin_bswap32(value) : value;
    dump_bytes(dump, &value, sizeof(value));
}

static inline void dump_u64(struct dump_builder *dump, uint64_t value)
{
    value = dump->swapped ? __builtin_bswap64(value) : value;
    dump_bytes(dump, &value, sizeof(value));
}

static inline void dump_string(struct dump_builder *dump, const char *string)
{
    dump_bytes(dump, string, strlen(string) + 1);
}

static inline void dump_uleb(struct dump_builder *dump, uint64_t value)
{
    uint8_t bytes[LEB128_MAX];
    dump_bytes(dump, bytes, uleb128_put(bytes, value));
}

static inline void dump_sleb(struct dump_builder *dump, int64_t value)
{
    uint8_t bytes[LEB128_MAX];
    dump_bytes(dump, bytes, sleb128_put(bytes, value));
}

static inline void dump_patch32(struct dump_builder *dump, size_t at, uint32_t value)
{
    value = dump->swapped ? __builtin_bswap32(value) : value;
    memcpy(dump->bytes + at, &value, sizeof(value));
}

static inline void dump_header(struct dump_builder *dump)
{
    dump_u32(dump, JITDUMP_MAGIC);
    dump_u32(dump, JITDUMP_VERSION);
    dump_u32(dump, sizeof(struct jitdump_header));
    dump_u32(dump, 62); /* EM_X86_64 */
    dump_u32(dump, 0);
    dump_u32(dump, BUILDER_PID);
    dump_u64(dump, BUILDER_START);
    dump_u64(dump, 0);
}

/* One with its header. */
static inline struct dump_builder dump_start(void)
{
    struct dump_builder dump = {0};
    dump_header(&dump);
    return dump;
}

static inline void dump_begin(struct dump_builder *dump, uint32_t id, uint64_t stamp)
{
    dump->record = dump->size;
    dump_u32(dump, id);
    dump_u32(dump, 0);
    dump_u64(dump, stamp);
}

static inline void dump_end(struct dump_builder *dump)
{
    dump_patch32(dump, dump->record + 4, (uint32_t)(dump->size - dump->record));
}

static inline void dump_load_fields(struct dump_builder *dump, uint64_t address, uint64_t size,
                                    uint64_t code_index)
{
    dump_u32(dump, BUILDER_PID);
    dump_u32(dump, BUILDER_PID + 1);
    dump_u64(dump, address);
    dump_u64(dump, address);
    dump_u64(dump, size);
    dump_u64(dump, code_index);
}

/* A LOAD whose code is the low bytes of its own offsets. */
static inline void dump_load(struct dump_builder *dump, uint64_t stamp, uint64_t address,
                             uint64_t size, uint64_t code_index, const char *name)
{
    dump_begin(dump, JIT_CODE_LOAD, stamp);
    dump_load_fields(dump, address, size, code_index);
    dump_string(dump, name);
    for (uint64_t i = 0; i < size; i++) {
        uint8_t byte = (uint8_t)i;
        dump_bytes(dump, &byte, 1);
    }
    dump_end(dump);
}

static inline void dump_move(struct dump_builder *dump, uint64_t stamp, uint64_t from, uint64_t to,
                             uint64_t size, uint64_t code_index)
{
    dump_begin(dump, JIT_CODE_MOVE, stamp);
    dump_u32(dump, BUILDER_PID);
    dump_u32(dump, BUILDER_PID + 1);
    dump_u64(dump, to);
    dump_u64(dump, from);
    dump_u64(dump, to);
    dump_u64(dump, size);
    dump_u64(dump, code_index);
    dump_end(dump);
}

static inline void dump_close(struct dump_builder *dump, uint64_t stamp)
{
    dump_begin(dump, JIT_CODE_CLOSE, stamp);
    dump_end(dump);
}

/* dump_begin_debug, entries, perhaps a trailer, dump_end. */
static inline void dump_begin_debug(struct dump_builder *dump, uint64_t stamp, uint64_t address,
                                    uint64_t entries)
{
    dump_begin(dump, JIT_CODE_DEBUG_INFO, stamp);
    dump_u64(dump, address);
    dump_u64(dump, entries);
}

static inline void dump_entry(struct dump_builder *dump, uint64_t address, uint32_t line,
                              const char *file)
{
    dump_u64(dump, address);
    dump_u32(dump, line);
    dump_u32(dump, 0);
    dump_string(dump, file);
}

static inline void dump_begin_trailer(struct dump_builder *dump)
{
    dump->trailer = dump->size;
    dump_u32(dump, JITDUMP_TRAILER_MAGIC);
    dump_u32(dump, JITDUMP_TRAILER_VERSION);
    dump_u32(dump, 0);
}

/* A section with the bytes that another builder has collected; that one is freed. */
static inline void dump_section(struct dump_builder *dump, uint64_t tag,
                                struct dump_builder *contents)
{
    dump_uleb(dump, tag);
    dump_uleb(dump, contents->size);
    dump_bytes(dump, contents->bytes, contents->size);
    dump_free(contents);
}

static inline void dump_end_trailer(struct dump_builder *dump)
{
    dump_patch32(dump, dump->trailer + 8, (uint32_t)(dump->size - dump->trailer));
}

static inline void dump_file(struct dump_builder *section, uint64_t id, const char *path)
{
    dump_uleb(section, id);
    dump_string(section, path);
}

static inline void dump_method(struct dump_builder *section, uint64_t id, uint64_t file,
                               uint32_t first_line, const char *name)
{
    dump_uleb(section, id);
    dump_uleb(section, file);
    dump_uleb(section, first_line);
    dump_string(section, name);
}

/*
 * A whole sound group: two rows and a trailer in which method `id` (of file `id`) has inlined
 * method `id - 1`, which is defined here only for the first one. The code must have 8 bytes or
 * more.
 */
static inline void dump_group(struct dump_builder *dump, uint64_t stamp, uint64_t address,
                              uint64_t size, uint64_t id, const char *name)
{
    dump_begin_debug(dump, stamp, address, 3);
    dump_entry(dump, address, 10, "a/A.java");
    dump_entry(dump, address + 4, 11, "b/B.java");
    dump_entry(dump, address + size, 11, "b/B.java");
    dump_begin_trailer(dump);
    struct dump_builder section = {0};
    if (id == 2) {
        dump_file(&section, 1, "b/B.java");
    }
    dump_file(&section, id, "a/A.java");
    dump_section(dump, JITDUMP_TRAILER_FILES, &section);
    if (id == 2) {
        dump_method(&section, 1, 1, 5, "b.B.inlined()");
    }
    dump_method(&section, id, id, 9, name);
    dump_section(dump, JITDUMP_TRAILER_METHODS, &section);
    dump_uleb(&section, 2);
    dump_uleb(&section, id);
    dump_uleb(&section, id - 1);
    dump_uleb(&section, 0);
    dump_uleb(&section, 10);
    dump_uleb(&section, 4);
    dump_uleb(&section, 0);
    dump_sleb(&section, 10);
    dump_uleb(&section, size - 4);
    dump_uleb(&section, 1);
    dump_sleb(&section, 1);
    dump_section(dump, JITDUMP_TRAILER_INLINES, &section);
    dump_uleb(&section, JITDUMP_CODE_KIND);
    dump_uleb(&section, JITDUMP_KIND_NMETHOD);
    dump_uleb(&section, JITDUMP_CODE_TIER);
    dump_uleb(&section, 4);
    dump_section(dump, JITDUMP_TRAILER_CODE, &section);
    dump_end_trailer(dump);
    dump_end(dump);
    dump_load(dump, stamp, address, size, id, name);
}

/* Code of x86-64 with a frame of 32 bytes, in which it is from byte 5 on: push rbp; sub rsp,16;
 * nop...; add rsp,16; pop rbp; ret. */
static inline void dump_frame_code(struct dump_builder *dump, uint64_t stamp, uint64_t address,
                                   const char *name)
{
    static const uint8_t code[] = {0x55, 0x48, 0x83, 0xec, 0x10, 0x90, 0x90, 0x90, 0x90, 0x90,
                                   0x90, 0x90, 0x90, 0x48, 0x83, 0xc4, 0x10, 0x5d, 0xc3};
    dump_begin(dump, JIT_CODE_LOAD, stamp);
    dump_load_fields(dump, address, sizeof code, 1);
    dump_string(dump, name);
    dump_bytes(dump, code, sizeof code);
    dump_end(dump);
}

/* An open file with the first `size` bytes. */
static inline int dump_fd_of(const uint8_t *bytes, size_t size)
{
    int fd = memfd_create("dump", MFD_CLOEXEC);
    if (fd < 0 || write(fd, bytes, size) != (ssize_t)size) {
        abort();
    }
    return fd;
}

static inline int dump_fd(const struct dump_builder *dump)
{
    return dump_fd_of(dump->bytes, dump->size);
}

#endif
