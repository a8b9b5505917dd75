/*
 * How a piece of code gets into the dump: everything that belongs to one LOAD (DEBUG_INFO with rows
 * and trailer, then the LOAD itself) is laid out in one buffer that is used again and again, but
 * for the code itself, which is the end of the LOAD and is taken from where the JVM has it; all
 * goes to the log (record_log.h) as one. Readers bind a DEBUG_INFO to the next LOAD without looking
 * at an address, so nothing may get in between.
 */
#include "writer/sinks/jitdump_sink.h"

#include "writer/buffer.h"
#include "writer/message.h"
#include "writer/process.h"
#include "writer/sinks/samply_records.h"
#include "writer/sinks/trailer_encoder.h"
#include "writer/stamp.h"

#include <errno.h>
#include <link.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A group larger than this is left out: no JVM makes one, and memory has to have a bound. */
enum { GROUP_LIMIT = 64 * 1024 * 1024 };

struct jitdump_sink {
    struct sink sink;
    uint32_t pid;
    struct record_log *log;
    char path[PATH_MAX]; /* of the file at the last look */
    struct buffer group;
    struct trailer_encoder trailer;
    struct samply_records *samply; /* NULL: not wanted */
    uint64_t lost;                 /* records, at the last look */
    bool tsc;                      /* the clock of the stamps */
    bool tree_lines;
    bool segments; /* each record has to be understood by itself */
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

/* By how many ms a method's stamp is dated back; what is told of again was there before. */
static uint64_t late_by(const struct jitdump_sink *dump, const struct code *code, uint64_t stamp)
{
    bool is_new = code->method && !code->replayed && !dump->tsc;
    uint64_t now = is_new ? stamp_now(false) : 0;
    return now > stamp ? (now - stamp) / 1000000 : 0;
}

static void put_debug_info(struct jitdump_sink *dump, const struct code *code, uint64_t stamp)
{
    struct buffer *group = &dump->group;
    size_t start = begin(group, sizeof(struct jitdump_debug_info));
    bool in_tree = dump->tree_lines && tree_gives_rows(code);
    uint64_t entries = in_tree ? 0 : put_entries(group, code);
    trailer_encode(&dump->trailer, code, in_tree, late_by(dump, code, stamp), group);
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

/* Hands over what is in dump->group and the code behind it (NULL: a hole). `living`: its place in
 * the segments to come, or NULL. */
static int write_group(struct jitdump_sink *dump, struct living_record *living, const void *code,
                       uint64_t code_size)
{
    struct buffer *group = &dump->group;
    if (group->failed || code_size > GROUP_LIMIT - group->size) {
        trailer_encoder_forget(&dump->trailer);
        living_record_drop(living);
        return -ENOMEM; /* this one only */
    }
    struct iovec pieces[] = {{group->bytes, group->size},
                             {(void *)code, code ? (size_t)code_size : 0}};
    int error =
        record_log_append(dump->log, RECORD_LOG_DUMP, living, pieces, 2, code ? 0 : code_size);
    if (error) {
        trailer_encoder_forget(&dump->trailer);
        dump->sink.failed = error != -ENOBUFS;
        return error;
    }
    dump->records++;
    return 0;
}

/* What was defined in records that are not in the dump has to be defined again. */
static void look_for_losses(struct jitdump_sink *dump)
{
    uint64_t lost = record_log_lost(dump->log, RECORD_LOG_DUMP);
    if (dump->segments || lost != dump->lost) {
        dump->lost = lost;
        trailer_encoder_forget(&dump->trailer);
    }
}

static void jitdump_make_room(struct sink *sink, bool patient)
{
    record_log_make_room(jitdump_of(sink)->log, patient);
}

static bool jitdump_settle(struct sink *sink)
{
    return record_log_settle(jitdump_of(sink)->log);
}

static int jitdump_load(struct sink *sink, const struct code *code, const struct stay *stay)
{
    struct jitdump_sink *dump = jitdump_of(sink);
    look_for_losses(dump);
    buffer_clear(&dump->group);
    if (dump->samply) {
        samply_records_put(dump->samply, &dump->group, code, stay->from);
    }
    put_debug_info(dump, code, stay->from);
    put_load(dump, code, stay);
    struct living_record *living = dump->segments ? living_record_new() : NULL;
    int error = write_group(dump, living, code->bytes, code->size);
    if (living) {
        occupant_keep(error ? NULL : stay->occupant, &living->kept);
    }
    return error;
}

static int jitdump_move(struct sink *sink, uint64_t from, uint64_t to, uint64_t size,
                        const struct stay *stay)
{
    struct jitdump_sink *dump = jitdump_of(sink);
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
    return write_group(dump, NULL, NULL, 0);
}

static void jitdump_stats(struct sink *sink, struct sink_stats *stats)
{
    struct jitdump_sink *dump = jitdump_of(sink);
    struct record_log_stats log;
    record_log_stats(dump->log, RECORD_LOG_DUMP, &log);
    record_log_path(dump->log, dump->path);
    *stats = (struct sink_stats){
        .records = dump->records - log.lost,
        .dropped = log.lost,
        .bytes = log.bytes,
        .path = dump->path,
        .segments = log.segments,
        .failed = log.failed,
        .paused = log.paused,
        .has_paused = log.has_paused,
    };
}

static void free_dump(struct jitdump_sink *dump)
{
    trailer_encoder_free(&dump->trailer);
    samply_records_free(dump->samply);
    buffer_free(&dump->group);
    free(dump);
}

static void jitdump_close(struct sink *sink, bool in_fork)
{
    struct jitdump_sink *dump = jitdump_of(sink);
    if (in_fork) {
        record_log_abandon(dump->log);
    } else {
        record_log_close(dump->log);
    }
    free_dump(dump);
}

static int open_log(struct jitdump_sink *dump, const struct jitdump_sink_options *options)
{
    const struct jitdump_header dump_header = {
        .magic = JITDUMP_MAGIC,
        .version = JITDUMP_VERSION,
        .total_size = sizeof(dump_header),
        .elf_mach = own_machine(),
        .pid = dump->pid,
        .timestamp = options->log.start,
        .flags = options->log.tsc ? JITDUMP_FLAGS_ARCH_TIMESTAMP : 0,
    };
    struct record_log_header header = {.size = sizeof(dump_header)};
    memcpy(header.bytes, &dump_header, sizeof(dump_header));
    struct record_log_options log = options->log;
    log.pid = dump->pid;
    return record_log_open(&log, &header, &dump->log);
}

static const struct sink_ops jitdump_ops = {
    .make_room = jitdump_make_room,
    .load = jitdump_load,
    .move = jitdump_move,
    .stats = jitdump_stats,
    .settle = jitdump_settle,
    .close = jitdump_close,
};

int jitdump_sink_open(const struct jitdump_sink_options *options, struct sink **out)
{
#ifndef __x86_64__
    if (options->log.tsc) {
        message(MESSAGE_ERROR, "failed to use clock=tsc: it needs an x86-64 processor");
        return -ENOTSUP;
    }
#endif
    struct jitdump_sink *dump = calloc(1, sizeof(*dump));
    if (!dump) {
        message(MESSAGE_ERROR, "failed to start a dump in %s: out of memory",
                options->log.directory);
        return -ENOMEM;
    }
    dump->sink.ops = &jitdump_ops;
    dump->pid = (uint32_t)getpid();
    dump->group = BUFFER_INIT(GROUP_LIMIT);
    trailer_encoder_init(&dump->trailer);
    dump->segments = options->log.segment > 0;
    dump->tsc = options->log.tsc;
    dump->tree_lines = options->tree_lines;
    if (options->samply) {
        dump->samply = samply_records_new();
        if (!dump->samply) {
            message(MESSAGE_ERROR, "failed to start samply's records: out of memory");
            free_dump(dump);
            return -ENOMEM;
        }
    }
    int error = open_log(dump, options);
    if (error) {
        free_dump(dump);
        return error;
    }
    *out = &dump->sink;
    return 0;
}

struct record_log *jitdump_sink_log(struct sink *sink)
{
    return jitdump_of(sink)->log;
}
