/*
 * How a piece of code gets into the dump: everything that belongs to one LOAD (DEBUG_INFO with rows
 * and trailer, then the LOAD itself) is laid out in one buffer that is used again and again, but
 * for the code itself, which is the end of the LOAD and is taken from where the JVM has it; all
 * leaves in one write. Readers bind a DEBUG_INFO to the next LOAD without looking at an address, so
 * nothing may get in between.
 */
#include "writer/jitdump_sink.h"

#include "writer/buffer.h"
#include "writer/dump_place.h"
#include "writer/message.h"
#include "writer/output_file.h"
#include "writer/process.h"
#include "writer/samply_records.h"
#include "writer/trailer_encoder.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* A group larger than this is left out: no JVM makes one, and memory has to have a bound. */
enum { GROUP_LIMIT = 64 * 1024 * 1024 };

struct jitdump_sink {
    struct sink sink;
    uint32_t pid;
    struct output_file file;
    struct buffer group;
    struct trailer_encoder trailer;
    struct samply_records *samply; /* NULL: not wanted */
    uint64_t last_stamp;
    uint64_t max_bytes;
    bool no_debug_info;
    void *marker; /* the mapping that perf looks for */
    size_t marker_size;
    uint64_t records;
};

static struct jitdump_sink *jitdump_of(struct sink *sink)
{
    return (struct jitdump_sink *)sink;
}

/* Our own machine, out of the ELF header that the linker leaves at the start of our image. */
static uint32_t own_machine(void)
{
    extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));
    return __ehdr_start.e_machine;
}

/* Appends room for a record's struct. Where it starts: the struct is filled in when all is known.
 */
static size_t begin(struct buffer *group, size_t size)
{
    size_t start = group->size;
    buffer_extend(group, size);
    return start;
}

static void finish(struct buffer *group, size_t start, const void *record, size_t size)
{
    if (!group->failed) {
        memcpy(group->bytes + start, record, size);
    }
}

/* The size of the record that began at `start` and ends here. */
static uint32_t size_since(const struct buffer *group, size_t start)
{
    return (uint32_t)(group->size - start);
}

static void put_entry(struct buffer *group, uint64_t address, uint32_t line, const char *path,
                      size_t path_size)
{
    uint8_t *at = buffer_extend(group, sizeof(struct jitdump_debug_entry) + path_size);
    if (at) {
        const struct jitdump_debug_entry entry = {.code_addr = address, .line = line};
        memcpy(at, &entry, sizeof(entry));
        memcpy(at + sizeof(entry), path, path_size);
    }
}

/*
 * Appends the rows, and one more at the code's end: consumers end the line table at its last row,
 * which by itself would cover nothing. Returns the number of entries.
 */
static uint64_t put_entries(struct buffer *group, const struct code *code)
{
    if (code->row_count == 0) {
        return 0;
    }
    const struct source_file *file = code->rows[0].file;
    size_t path_size = strlen(file->path) + 1;
    for (uint32_t i = 0; i < code->row_count; i++) {
        const struct code_row *row = &code->rows[i];
        if (row->file != file) {
            file = row->file;
            path_size = strlen(file->path) + 1;
        }
        put_entry(group, code->address + row->offset, row->line, file->path, path_size);
    }
    const struct code_row *last = &code->rows[code->row_count - 1];
    put_entry(group, code->address + code->size, last->line, file->path, path_size);
    return (uint64_t)code->row_count + 1;
}

static void put_debug_info(struct jitdump_sink *dump, const struct code *code, uint64_t stamp)
{
    struct buffer *group = &dump->group;
    size_t start = begin(group, sizeof(struct jitdump_debug_info));
    uint64_t entries = put_entries(group, code);
    trailer_encode(&dump->trailer, code, group);
    if (size_since(group, start) == sizeof(struct jitdump_debug_info)) {
        group->size = start; /* nothing to say */
        return;
    }
    const struct jitdump_debug_info record = {
        .prefix = {JIT_CODE_DEBUG_INFO, size_since(group, start), stamp},
        .code_addr = code->address,
        .nr_entry = entries,
    };
    finish(group, start, &record, sizeof(record));
}

/* Up to the code itself. Readers look for it at the record's end, so there it is, or a hole. */
static void put_load(struct jitdump_sink *dump, const struct code *code, const struct stay *stay)
{
    struct buffer *group = &dump->group;
    size_t start = begin(group, sizeof(struct jitdump_load));
    buffer_put_string(group, code->name);
    const struct jitdump_load record = {
        .prefix = {JIT_CODE_LOAD, size_since(group, start) + (uint32_t)code->size, stay->from},
        .pid = dump->pid,
        .tid = (uint32_t)process_thread_id(),
        .vma = code->address,
        .code_addr = code->address,
        .code_size = code->size,
        .code_index = stay->index,
    };
    finish(group, start, &record, sizeof(record));
}

static int write_close_record(struct jitdump_sink *dump)
{
    const struct jitdump_close record = {
        .prefix = {JIT_CODE_CLOSE, sizeof(record), dump->last_stamp},
    };
    return output_file_append(&dump->file, &record, sizeof(record));
}

/*
 * Writes what is in dump->group and the code behind it (NULL: a hole), or ends the dump when it
 * would grow beyond `max`.
 */
static int write_group(struct jitdump_sink *dump, const void *code, uint64_t code_size)
{
    struct buffer *group = &dump->group;
    if (group->failed || code_size > GROUP_LIMIT - group->size) {
        trailer_encoder_forget(&dump->trailer);
        return -ENOMEM; /* this one only */
    }
    if (dump->max_bytes &&
        dump->file.size + group->size + code_size + sizeof(struct jitdump_close) >
            dump->max_bytes) {
        message(MESSAGE_WARNING, "stopped writing %s: it has reached max=%llu bytes",
                dump->file.path, (unsigned long long)dump->max_bytes);
        write_close_record(dump);
        output_file_close(&dump->file);
        dump->sink.failed = true;
        return -EFBIG;
    }
    int error =
        code ? output_file_append_two(&dump->file, group->bytes, group->size, code, code_size)
             : output_file_append_hole(&dump->file, group->bytes, group->size, code_size);
    if (error) {
        dump->sink.failed = true;
        return error;
    }
    dump->records++;
    return 0;
}

/* Stamps go back in time where code is told of late. */
static void note_stamp(struct jitdump_sink *dump, uint64_t stamp)
{
    dump->last_stamp = stamp > dump->last_stamp ? stamp : dump->last_stamp;
}

static int jitdump_load(struct sink *sink, const struct code *code, const struct stay *stay)
{
    struct jitdump_sink *dump = jitdump_of(sink);
    note_stamp(dump, stay->from);
    buffer_clear(&dump->group);
    if (dump->samply) {
        samply_records_put(dump->samply, &dump->group, code, stay->from);
    }
    if (!dump->no_debug_info) {
        put_debug_info(dump, code, stay->from);
    }
    put_load(dump, code, stay);
    return write_group(dump, code->bytes, code->size);
}

static int jitdump_move(struct sink *sink, uint64_t from, uint64_t to, uint64_t size,
                        const struct stay *stay)
{
    struct jitdump_sink *dump = jitdump_of(sink);
    note_stamp(dump, stay->from);
    const struct jitdump_move record = {
        .prefix = {JIT_CODE_MOVE, sizeof(record), stay->from},
        .pid = dump->pid,
        .tid = (uint32_t)process_thread_id(),
        .vma = to,
        .old_code_addr = from,
        .new_code_addr = to,
        .code_size = size,
        .code_index = stay->index,
    };
    buffer_clear(&dump->group);
    buffer_put(&dump->group, &record, sizeof(record));
    return write_group(dump, NULL, 0);
}

static void jitdump_stats(const struct sink *sink, struct sink_stats *stats)
{
    const struct jitdump_sink *dump = (const struct jitdump_sink *)sink;
    *stats = (struct sink_stats){
        .records = dump->records,
        .bytes = dump->file.size,
        .path = dump->file.path,
    };
}

static void free_dump(struct jitdump_sink *dump)
{
    if (dump->marker) {
        munmap(dump->marker, dump->marker_size);
    }
    output_file_release(&dump->file);
    trailer_encoder_free(&dump->trailer);
    samply_records_free(dump->samply);
    buffer_free(&dump->group);
    free(dump);
}

static void jitdump_close(struct sink *sink, bool in_fork)
{
    struct jitdump_sink *dump = jitdump_of(sink);
    if (!in_fork && !sink->failed) {
        write_close_record(dump);
    }
    free_dump(dump);
}

/* perf learns of the dump from the event of this mapping; nobody reads or runs what it maps. */
static int map_marker(struct jitdump_sink *dump)
{
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    void *marker = mmap(NULL, size, PROT_READ | PROT_EXEC, MAP_PRIVATE, dump->file.fd, 0);
    if (marker == MAP_FAILED) {
        int error = errno;
        message(MESSAGE_ERROR, "failed to map %s executable, which is how perf finds it: %s%s",
                dump->file.path, strerror(error),
                error == EPERM ? "; is its file system mounted noexec?" : "");
        return -error;
    }
    dump->marker = marker;
    dump->marker_size = size;
    return 0;
}

static int write_header(struct jitdump_sink *dump, bool tsc)
{
    const struct jitdump_header header = {
        .magic = JITDUMP_MAGIC,
        .version = JITDUMP_VERSION,
        .total_size = sizeof(header),
        .elf_mach = own_machine(),
        .pid = dump->pid,
        .timestamp = dump->last_stamp,
        .flags = tsc ? JITDUMP_FLAGS_ARCH_TIMESTAMP : 0,
    };
    return output_file_append(&dump->file, &header, sizeof(header));
}

static const struct sink_ops jitdump_ops = {
    .load = jitdump_load,
    .move = jitdump_move,
    .stats = jitdump_stats,
    .close = jitdump_close,
};

int jitdump_sink_open(const struct jitdump_sink_options *options, struct sink **out)
{
#ifndef __x86_64__
    if (options->tsc) {
        message(MESSAGE_ERROR, "failed to use clock=tsc: this processor is not an x86-64");
        return -ENOTSUP;
    }
#endif
    struct jitdump_sink *dump = calloc(1, sizeof(*dump));
    if (!dump) {
        message(MESSAGE_ERROR, "failed to start a dump in %s: out of memory", options->directory);
        return -ENOMEM;
    }
    dump->sink.ops = &jitdump_ops;
    dump->pid = (uint32_t)getpid();
    dump->file.fd = -1;
    dump->group = BUFFER_INIT(GROUP_LIMIT);
    trailer_encoder_init(&dump->trailer);
    dump->last_stamp = options->start;
    dump->max_bytes = options->max_bytes;
    dump->no_debug_info = options->no_debug_info;
    if (options->samply) {
        dump->samply = samply_records_new(options->source_path);
        if (!dump->samply) {
            message(MESSAGE_ERROR, "failed to start samply's records: out of memory");
            free_dump(dump);
            return -ENOMEM;
        }
    }
    int error =
        dump_place_create(options->directory_fd, options->directory, dump->pid, &dump->file);
    if (!error) {
        error = write_header(dump, options->tsc);
    }
    if (!error) {
        error = map_marker(dump);
    }
    if (error) {
        output_file_discard(&dump->file);
        free_dump(dump);
        return error;
    }
    *out = &dump->sink;
    return 0;
}
