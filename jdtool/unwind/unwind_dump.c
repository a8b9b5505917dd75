/*
 * jdtool unwind: a dump with call-frame information in it, for perf's own unwinder.
 *
 * What stands in the way is how perf finds the information that `perf inject --jit` puts behind the
 * code into jitted-PID-N.so (tools/perf/util/jitdump.c). There are two forms, for the two libraries
 * that perf is built with.
 *
 * libunwind (perf 6.1, unwind-libunwind-local.c) reads it through the process's mappings, so it
 * needs a mapped range behind the code, where in a code cache the next method is. So each LOAD is
 * told of at an address where nothing else is, code and information together, and a MOVE of the
 * same moment maps the code alone where it really runs; the information is written for the real
 * address. perf takes a file's lowest mapping as the one to count from, so that place has to be
 * below the code, and the 32-bit distances of the tables allow 2 GB.
 *
 * libdw (perf 7, unwind-libdw.c) reads it from the file, so each LOAD stays where it is and the
 * information need not be mapped (mapped_size 0). But perf takes a mapping's start as its file's
 * base only where the file is called /tmp/jitted-*: the dump, beside which perf puts these files,
 * has to be in /tmp itself. A MOVE makes perf inject crash there (7.2, jit_repipe_code_move).
 */
#include "jdtool/base/message.h"
#include "jdtool/base/output_file.h"
#include "jdtool/base/verb.h"
#include "jdtool/jitdump/jitdump_reader.h"
#include "jdtool/unwind/code_frames.h"
#include "jdtool/unwind/eh_frame.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* How far below the highest code the tables go: a little less than the 2 GB limit. */
#define SCRATCH_DISTANCE UINT64_C(0x7c000000)

enum unwinder {
    UNWINDER_LIBUNWIND,
    UNWINDER_LIBDW,
    UNWINDER_OF_PERF, /* whichever perf has */
};

struct unwind_dump {
    enum unwinder unwinder;
    struct code_index *index;
    struct code_frames *frames;
    struct jitdump_reader *reader;  /* the records, one after the other */
    struct jitdump_reader *details; /* goes to the records that belong to a LOAD */
    struct output_file *out;
    struct eh_frame table;
    uint64_t scratch;     /* the next free address for code with its information */
    uint64_t scratch_end; /* the lowest code */
    uint32_t machine;
    uint32_t blob; /* the next LOAD's */
    uint32_t done;
    uint32_t left; /* without information: no bytes, no rows, no room */
};

static void put(struct unwind_dump *dump, const void *bytes, size_t size)
{
    output_file_put(dump->out, bytes, size);
}

static void put_prefix(struct unwind_dump *dump, const struct jitdump_record_view *record)
{
    struct jitdump_record prefix = {
        .id = record->id, .total_size = record->total_size, .timestamp = record->timestamp};
    put(dump, &prefix, sizeof prefix);
}

static void put_record(struct unwind_dump *dump, const struct jitdump_record_view *record)
{
    put_prefix(dump, record);
    put(dump, record->payload, record->payload_size);
}

/* The same rows for code that lies `by` bytes further up. */
static void put_debug_info(struct unwind_dump *dump, const struct jitdump_record_view *record,
                           uint64_t by)
{
    size_t fixed = sizeof(struct jitdump_debug_info) - sizeof(struct jitdump_record);
    uint64_t address = record->debug_info.code_addr + by;
    put_prefix(dump, record);
    put(dump, &address, sizeof address);
    put(dump, &record->debug_info.nr_entry, sizeof record->debug_info.nr_entry);

    const uint8_t *entries = record->payload + fixed;
    size_t size = record->payload_size - fixed;
    size_t at = 0;
    for (uint64_t i = 0; i < record->debug_info.nr_entry; i++) {
        struct jitdump_debug_entry entry;
        if (size - at < sizeof entry) {
            break;
        }
        memcpy(&entry, entries + at, sizeof entry);
        size_t name = strnlen((const char *)entries + at + sizeof entry, size - at - sizeof entry);
        entry.code_addr += by;
        put(dump, &entry, sizeof entry);
        at += sizeof entry;
        size_t rest = name < size - at ? name + 1 : size - at;
        put(dump, entries + at, rest);
        at += rest;
    }
    put(dump, entries + at, size - at);
}

static void put_unwinding_info(struct unwind_dump *dump, uint64_t timestamp)
{
    struct jitdump_unwinding_info info = {
        .prefix = {.id = JIT_CODE_UNWINDING_INFO, .timestamp = timestamp},
        .unwind_data_size = dump->table.bytes.size,
        .eh_frame_hdr_size = dump->table.hdr_size,
        .mapped_size = dump->unwinder == UNWINDER_LIBDW ? 0 : dump->table.bytes.size,
    };
    uint32_t bytes = (uint32_t)(sizeof info + dump->table.bytes.size);
    uint32_t padding = (8 - bytes % 8) % 8; /* as V8 and perf's specification have it */
    static const uint8_t zeros[8];
    info.prefix.total_size = bytes + padding;
    put(dump, &info, sizeof info);
    put(dump, dump->table.bytes.at, dump->table.bytes.size);
    put(dump, zeros, padding);
}

static void put_load(struct unwind_dump *dump, const struct jitdump_record_view *record,
                     uint64_t address)
{
    struct jitdump_load load = {
        .prefix = {.id = JIT_CODE_LOAD,
                   .total_size = record->total_size,
                   .timestamp = record->timestamp},
        .pid = record->load.pid,
        .tid = record->load.tid,
        .vma = address,
        .code_addr = address,
        .code_size = record->load.code_size,
        .code_index = record->load.code_index,
    };
    size_t fixed = sizeof load - sizeof(struct jitdump_record);
    put(dump, &load, sizeof load);
    put(dump, record->payload + fixed, record->payload_size - fixed);
}

static void put_move(struct unwind_dump *dump, const struct jitdump_record_view *record,
                     uint64_t from)
{
    struct jitdump_move move = {
        .prefix = {.id = JIT_CODE_MOVE, .total_size = sizeof move, .timestamp = record->timestamp},
        .pid = record->load.pid,
        .tid = record->load.tid,
        .vma = record->load.code_addr,
        .old_code_addr = from,
        .new_code_addr = record->load.code_addr,
        .code_size = record->load.code_size,
        .code_index = record->load.code_index,
    };
    put(dump, &move, sizeof move);
}

/* The record at an offset that the index gave: it was whole when the index read it. */
static int put_belonging(struct unwind_dump *dump, uint64_t offset, uint64_t by)
{
    struct jitdump_record_view record;
    jitdump_reader_seek(dump->details, offset);
    if (jitdump_reader_next(dump->details, &record) != JITDUMP_RECORD) {
        error_message("failed to read a record again: %s", jitdump_reader_error(dump->details));
        return -EIO;
    }
    if (record.id == JIT_CODE_DEBUG_INFO) {
        put_debug_info(dump, &record, by);
    } else {
        put_record(dump, &record);
    }
    return 0;
}

/* Where a LOAD is told to be. False: there is no room for it. */
static bool place(const struct unwind_dump *dump, const struct jitdump_record_view *record,
                  uint64_t *address)
{
    *address = record->load.code_addr;
    if (dump->unwinder == UNWINDER_LIBDW) {
        return true;
    }
    if (*address < dump->scratch_end ||
        record->load.code_size > dump->scratch_end - dump->scratch) {
        return false;
    }
    *address = dump->scratch;
    return true;
}

/* Rows for the code of a LOAD as a table, which stands behind it. False: there are none. */
static bool make_table(struct unwind_dump *dump, const struct jitdump_record_view *record,
                       uint32_t blob, uint64_t *address)
{
    const struct blob_frames *rows = code_frames_of(dump->frames, blob);
    uint64_t size = record->load.code_size;
    if (rows->frames.count == 0 || !place(dump, record, address)) {
        return false;
    }
    uint64_t table = *address + ((size + 7) & ~UINT64_C(7));
    return eh_frame_build(dump->machine, &rows->frames, record->load.code_addr, size, table,
                          &dump->table) == 0 &&
           (dump->unwinder == UNWINDER_LIBDW || dump->table.bytes.size < dump->scratch_end - table);
}

static int put_group(struct unwind_dump *dump, const struct jitdump_record_view *record)
{
    uint32_t number = dump->blob++;
    const struct code_blob *blob = code_index_blob(dump->index, number);
    uint64_t address = 0;
    bool unwound = make_table(dump, record, number, &address);
    int error = 0;
    if (!unwound) {
        address = record->load.code_addr;
    }
    if (blob->debug_offset) {
        error = put_belonging(dump, blob->debug_offset, address - record->load.code_addr);
    }
    if (error) {
        return error;
    }
    if (unwound) {
        put_unwinding_info(dump, record->timestamp);
    } else if (blob->unwinding_offset) {
        error = put_belonging(dump, blob->unwinding_offset, 0);
    }
    put_load(dump, record, address);
    if (unwound && dump->unwinder == UNWINDER_LIBUNWIND) {
        put_move(dump, record, address);
        dump->scratch += (record->load.code_size + dump->table.bytes.size + 31) & ~UINT64_C(15);
    }
    *(unwound ? &dump->done : &dump->left) += 1;
    return error;
}

static bool is_of_group(const struct unwind_dump *dump, const struct jitdump_record_view *record)
{
    return (record->id == JIT_CODE_DEBUG_INFO || record->id == JIT_CODE_UNWINDING_INFO) &&
           dump->blob < code_index_blob_count(dump->index);
}

static int copy_records(struct unwind_dump *dump)
{
    struct jitdump_record_view record;
    int error = 0;
    while (!error && jitdump_reader_next(dump->reader, &record) == JITDUMP_RECORD) {
        if (record.id == JIT_CODE_LOAD && dump->blob < code_index_blob_count(dump->index) &&
            code_index_blob(dump->index, dump->blob)->load_offset == record.offset) {
            error = put_group(dump, &record);
        } else if (!is_of_group(dump, &record)) {
            put_record(dump, &record);
        }
    }
    return error;
}

static void place_scratch(struct unwind_dump *dump)
{
    uint64_t low = UINT64_MAX;
    uint64_t high = 0;
    for (uint32_t i = 0; i < code_index_blob_count(dump->index); i++) {
        const struct code_blob *blob = code_index_blob(dump->index, i);
        if (blob->size && blob->size <= FRAMES_CODE_MAX) {
            low = blob->address < low ? blob->address : low;
            high = blob->address + blob->size > high ? blob->address + blob->size : high;
        }
    }
    dump->scratch_end = low;
    dump->scratch = high > SCRATCH_DISTANCE ? (high - SCRATCH_DISTANCE) & ~UINT64_C(4095) : low;
    if (dump->scratch > low) {
        dump->scratch = low; /* the code is spread too widely: no room */
    }
}

static int write_dump(struct unwind_dump *dump, const char *path)
{
    int error = output_file_open(path, &dump->out);
    if (!error) {
        put(dump, jitdump_reader_header(dump->reader), sizeof(struct jitdump_header));
        error = copy_records(dump);
        if (error) {
            output_file_fail(dump->out, error);
        }
        error = output_file_finish(dump->out);
    }
    return error;
}

/* By which perf walks stack copies. */
static enum unwinder perfs_unwinder = UNWINDER_LIBUNWIND;

/* Builds without libunwind have libdw do it. No perf may be here that tells. */
static void ask_perf(void)
{
    /* The shell takes the variable's value as one word, whatever is in it. */
    /* NOLINTNEXTLINE(cert-env33-c) */
    FILE *perf = popen("\"${PERF:-perf}\" version --build-options 2>/dev/null", "re");
    if (!perf) {
        return;
    }
    char line[256];
    while (fgets(line, sizeof line, perf)) {
        /* "libunwind: [ on ]"; another line is about libunwind for other architectures. */
        const char *option = line + strspn(line, " ");
        if (strncmp(option, "libunwind:", strlen("libunwind:")) == 0) {
            perfs_unwinder = strstr(option, "[ on") ? UNWINDER_LIBUNWIND : UNWINDER_LIBDW;
        }
    }
    pclose(perf);
}

/* perf looks for what it is to unwind by libdw in /tmp alone. */
static void check_directory(const char *to)
{
    char *real = realpath(to, NULL);
    const char *name = real ? strrchr(real, '/') : NULL;
    if (name && (name - real != 4 || strncmp(real, "/tmp", 4) != 0)) {
        warning_message("%s: perf, built with libdw, unwinds code of dumps in /tmp only: record "
                        "with dir=/tmp",
                        to);
    }
    free(real);
}

static int unwind_dump(const char *from, const char *to, enum unwinder unwinder)
{
    struct unwind_dump dump = {.unwinder = unwinder};
    if (unwinder == UNWINDER_OF_PERF) {
        dump.unwinder = perfs_unwinder;
    }
    int error = output_path_check(to);
    error = error ? error : code_index_open(from, &dump.index);
    error = error ? error : jitdump_reader_open(from, &dump.reader);
    error = error ? error : jitdump_reader_open(from, &dump.details);
    if (!error) {
        dump.machine = code_index_header(dump.index)->elf_mach;
        if (jitdump_reader_swapped(dump.reader) ||
            (dump.machine != EM_X86_64 && dump.machine != EM_AARCH64)) {
            error_message("failed to unwind %s: neither x86-64 nor aarch64 code", from);
            error = -ENOTSUP;
        }
    }
    if (!error) {
        if (code_index_warning(dump.index)) {
            warning_message("%s: %s", from, code_index_warning(dump.index));
        }
        dump.frames = code_frames_new(dump.index);
        if (!dump.frames) {
            error_message("failed to unwind %s: out of memory", from);
            error = -ENOMEM;
        }
    }
    if (!error) {
        place_scratch(&dump);
        error = write_dump(&dump, to);
    }
    if (!error) {
        printf("%" PRIu32 " pieces of code with call-frame information for %s, %" PRIu32
               " without\n",
               dump.done, dump.unwinder == UNWINDER_LIBDW ? "libdw" : "libunwind", dump.left);
        if (dump.unwinder == UNWINDER_LIBDW) {
            check_directory(to);
        }
    }
    eh_frame_free(&dump.table);
    code_frames_free(dump.frames);
    jitdump_reader_close(dump.details);
    jitdump_reader_close(dump.reader);
    code_index_close(dump.index);
    return error;
}

struct choice {
    const char *output;
    enum unwinder unwinder;
};

static int take_unwinder(const struct verb *verb, void *context, const char *value)
{
    struct choice *choice = context;
    choice->unwinder = strcmp(value, "libdw") == 0 ? UNWINDER_LIBDW : UNWINDER_LIBUNWIND;
    return choice->unwinder == UNWINDER_LIBDW || strcmp(value, "libunwind") == 0
               ? STATUS_DONE
               : wrong_usage(verb, "--unwinder takes libunwind or libdw, not %s", value);
}

static int run(const struct verb *verb, int argc, char **argv)
{
    static const struct verb_option options[] = {
        OPTION_TEXT("output", 'o', struct choice, output),
        OPTION_TAKE("unwinder", 0, take_unwinder),
        OPTION_END,
    };
    struct choice choice = {.unwinder = UNWINDER_OF_PERF};
    int status = verb_options(verb, argc, argv, options, &choice);
    if (status) {
        return status;
    }
    if (!choice.output) {
        return wrong_usage(verb, "-o FILE is needed");
    }
    return unwind_dump(argv[optind], choice.output, choice.unwinder) == 0 ? finish_output()
                                                                          : STATUS_FAILED;
}

const struct verb verb_unwind = {
    .name = "unwind",
    .words = VERB_HAS_ONE_FILE,
    .run = run,
    .confined = true,
    .prepare = ask_perf,
    .usage = "FILE -o FILE [--unwinder NAME]",
    .help =
        "Writes the dump FILE with call-frame information for all of its code, so that perf's own\n"
        "unwinder walks the stacks of a `perf record --call-graph dwarf` recording after\n"
        "`perf inject --jit`. perf finds a dump by the name it had in the recording: put the\n"
        "result in its place. (jdtool inject needs no such preparation.)\n"
        "  -o, --output FILE   the new dump; may be FILE itself\n"
        "      --unwinder NAME libunwind or libdw: what perf unwinds by (default: what perf\n"
        "                      here says it does). For libdw the dump has to be in /tmp.\n",
};
