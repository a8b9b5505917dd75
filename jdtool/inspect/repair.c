#include "jdtool/inspect/repair.h"

#include "jdtool/base/array.h"
#include "jdtool/base/descriptor.h"
#include "jdtool/base/message.h"
#include "jdtool/base/output_file.h"
#include "jdtool/base/text.h"
#include "jdtool/base/verb.h"
#include "jdtool/inspect/repair_parts.h"
#include "jdtool/inspect/verify.h"
#include "jdtool/objects/objects.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Bytes collected before they are written. */
#define WRITE_BYTES ((size_t)256 << 10)

/* More rounds than any cascade of faults has taken; a bound so that a fault of ours cannot spin. */
#define MAX_ROUNDS 100

struct renumbered {
    uint64_t old_index;
    uint32_t unit;
};

struct repair {
    struct jitdump_reader *reader;
    int fd;
    struct repair_output output;
    struct repair_result *result;
    struct repair_parts found;
    struct trailer_names *written; /* what this round's output has defined so far */
    uint32_t *written_parts;       /* in the order of the output */
    uint32_t written_count;
    struct trailer trailer;
    struct bytes buffer;
    uint64_t written_bytes;        /* before those in the buffer */
    uint64_t close_offset;         /* in the output, where it has one */
    struct renumbered *renumbered; /* units with a new code index, sorted */
    uint32_t renumbered_count;
    uint64_t findings;
    bool stuck; /* a finding that nothing can be done about */
};

static int flush(struct repair *repair)
{
    if (repair->buffer.failed) {
        return -ENOMEM;
    }
    int error = descriptor_write(repair->fd, repair->buffer.at, repair->buffer.size);
    repair->written_bytes += repair->buffer.size;
    repair->buffer.size = 0;
    return error;
}

static void add_u32(struct repair *repair, uint32_t value)
{
    bytes_u32(&repair->buffer, jitdump_in_order32(repair->reader, value));
}

static void add_u64(struct repair *repair, uint64_t value)
{
    bytes_u64(&repair->buffer, jitdump_in_order64(repair->reader, value));
}

/* Overwrites a field of the record that starts at `record` in the buffer. */
static void patch(struct repair *repair, size_t record, size_t field, uint64_t value, size_t size)
{
    if (repair->buffer.failed) {
        return;
    }
    uint32_t narrow = jitdump_in_order32(repair->reader, (uint32_t)value);
    value = jitdump_in_order64(repair->reader, value);
    memcpy(repair->buffer.at + record + field, size == sizeof(narrow) ? (void *)&narrow : &value,
           size);
}

static void add_header(struct repair *repair)
{
    const struct jitdump_header *header = jitdump_reader_header(repair->reader);
    add_u32(repair, JITDUMP_MAGIC);
    add_u32(repair, JITDUMP_VERSION);
    add_u32(repair, sizeof(*header));
    add_u32(repair, header->elf_mach ? header->elf_mach : OWN_MACHINE);
    add_u32(repair, 0);
    add_u32(repair, header->pid);
    add_u64(repair, header->timestamp);
    add_u64(repair, header->flags & JITDUMP_FLAGS_ARCH_TIMESTAMP);
}

/* The rows as they are, then the trailer if it is wanted and any good. */
static void add_debug_info(struct repair *repair, const struct repair_part *part,
                           const struct jitdump_record_view *record)
{
    const uint8_t *behind;
    size_t size;
    (void)jitdump_behind_entries(repair->reader, record, &behind, &size);
    const uint8_t *start = record->payload - sizeof(struct jitdump_record);
    size_t rows = (size_t)(behind - start);
    bytes_put(&repair->buffer, start, rows);
    if (!part->without_trailer && part->size > rows) {
        int64_t carried =
            repair_add_trailer(&repair->buffer, repair->reader, behind, part->size - rows,
                               repair->found.names, repair->written, &repair->trailer);
        repair->result->carried += carried > 0 ? (uint64_t)carried : 0;
    }
}

/* The index that a MOVE's code has now: that of the last LOAD before it with its old index. */
static uint64_t index_of_move(const struct repair *repair, uint32_t unit)
{
    uint64_t old_index = repair->found.units[unit].code_index;
    const struct renumbered *list = repair->renumbered;
    uint32_t at;
    ARRAY_FIRST(at, repair->renumbered_count,
                list[at].old_index < old_index ||
                    (list[at].old_index == old_index && list[at].unit < unit));
    return at == 0 || list[at - 1].old_index != old_index
               ? old_index
               : repair->found.units[list[at - 1].unit].new_code_index;
}

static int write_part(struct repair *repair, struct repair_part *part)
{
    struct jitdump_record_view record;
    jitdump_reader_seek(repair->reader, part->offset);
    if (jitdump_reader_next(repair->reader, &record) != JITDUMP_RECORD || record.id != part->id) {
        return -EIO; /* it was sound a moment ago */
    }
    const struct repair_unit *unit = &repair->found.units[part->unit];
    size_t start = repair->buffer.size;
    part->new_offset = repair->written_bytes + start;
    repair->written_parts[repair->written_count++] = (uint32_t)(part - repair->found.parts);
    if (part->id == JIT_CODE_DEBUG_INFO) {
        add_debug_info(repair, part, &record);
    } else {
        bytes_put(&repair->buffer, record.payload - sizeof(struct jitdump_record), part->size);
    }
    size_t size = repair->buffer.size - start;
    if (size > UINT32_MAX) {
        return -EFBIG;
    }
    patch(repair, start, offsetof(struct jitdump_record, total_size), size, sizeof(uint32_t));
    patch(repair, start, offsetof(struct jitdump_record, timestamp), unit->stamp, sizeof(uint64_t));
    if (part->id == JIT_CODE_LOAD) {
        patch(repair, start, offsetof(struct jitdump_load, code_index), unit->new_code_index,
              sizeof(uint64_t));
    } else if (part->id == JIT_CODE_MOVE) {
        patch(repair, start, offsetof(struct jitdump_move, code_index),
              index_of_move(repair, part->unit), sizeof(uint64_t));
    }
    return repair->buffer.size >= WRITE_BYTES || repair->buffer.failed ? flush(repair) : 0;
}

static int write_unit(struct repair *repair, const struct repair_unit *unit)
{
    int error = 0;
    for (uint32_t i = 0; i < unit->part_count && !error; i++) {
        struct repair_part *part = &repair->found.parts[unit->first_part + i];
        if (!unit->left_out && !part->left_out) {
            error = write_part(repair, part);
        }
    }
    if (!unit->left_out) {
        bool load =
            repair->found.parts[unit->first_part + unit->part_count - 1].id == JIT_CODE_LOAD;
        repair->result->loads += load;
        repair->result->moves += !load;
    }
    return error;
}

static int by_index(const void *left, const void *right)
{
    const struct renumbered *a = left;
    const struct renumbered *b = right;
    return ORDER(a->old_index, b->old_index) ?: ORDER(a->unit, b->unit);
}

static int list_renumbered(struct repair *repair)
{
    struct repair_parts *found = &repair->found;
    uint32_t count = 0;
    for (uint32_t i = 0; i < found->unit_count; i++) {
        count += found->units[i].new_code_index != found->units[i].code_index;
    }
    free(repair->renumbered);
    repair->renumbered = calloc(count + 1, sizeof(*repair->renumbered));
    repair->renumbered_count = 0;
    if (!repair->renumbered) {
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < found->unit_count; i++) {
        if (found->units[i].new_code_index != found->units[i].code_index) {
            repair->renumbered[repair->renumbered_count++] =
                (struct renumbered){.old_index = found->units[i].code_index, .unit = i};
        }
    }
    qsort(repair->renumbered, repair->renumbered_count, sizeof(*repair->renumbered), by_index);
    return 0;
}

/* Writes all that is not left out. */
static int write_dump(struct repair *repair)
{
    trailer_names_free(repair->written);
    repair->written = trailer_names_new();
    repair->written_bytes = 0;
    repair->written_count = 0;
    repair->buffer.size = 0;
    repair->result->loads = 0;
    repair->result->moves = 0;
    repair->result->carried = 0;
    if (!repair->written || list_renumbered(repair) < 0) {
        return -ENOMEM;
    }
    if (ftruncate(repair->fd, 0) < 0 || lseek(repair->fd, 0, SEEK_SET) < 0) {
        return -errno;
    }
    add_header(repair);
    int error = 0;
    for (uint32_t i = 0; i < repair->found.unit_count && !error; i++) {
        error = write_unit(repair, &repair->found.units[i]);
    }
    repair->close_offset = repair->written_bytes + repair->buffer.size;
    if (!error && repair->found.closed) {
        add_u32(repair, JIT_CODE_CLOSE);
        add_u32(repair, sizeof(struct jitdump_close));
        add_u64(repair, repair->found.close_stamp);
    }
    return error ? error : flush(repair);
}

/* The part that this round has written at an offset. */
static struct repair_part *part_at(const struct repair *repair, uint64_t new_offset)
{
    struct repair_part *parts = repair->found.parts;
    const uint32_t *written = repair->written_parts;
    uint32_t at;
    ARRAY_FIRST(at, repair->written_count, parts[written[at]].new_offset < new_offset);
    return at < repair->written_count && parts[written[at]].new_offset == new_offset
               ? &parts[written[at]]
               : NULL;
}

static bool is_trailer_rule(enum verify_rule rule)
{
    return rule == RULE_TRAILER || rule == RULE_TRAILER_NAMES || rule == RULE_TRAILER_TREE ||
           rule == RULE_TRAILER_FACTS;
}

/* The least that has to go so that a rule is kept. */
static void leave_out(void *context, enum verify_rule rule, uint64_t offset, const char *what)
{
    struct repair *repair = context;
    repair->findings++;
    struct repair_part *part = part_at(repair, offset);
    if (!part && offset == repair->close_offset) {
        if (repair->found.closed) { /* when the dump ended nobody knows */
            repair_tell(&repair->output, repair->found.close_offset, "left out a CLOSE: %s", what);
        }
        repair->found.closed = false;
        return;
    }
    if (!part) {
        repair_tell(&repair->output, offset, "cannot be mended: %s", what);
        repair->stuck = true;
        return;
    }
    struct repair_unit *unit = &repair->found.units[part->unit];
    if (unit->left_out || part->left_out) {
        return; /* another finding has seen to it */
    }
    if (part->id == JIT_CODE_LOAD && rule == RULE_CODE_INDEX &&
        repair->found.highest_code_index < UINT64_MAX) {
        unit->new_code_index = ++repair->found.highest_code_index;
        repair_tell(&repair->output, part->offset, "gave a LOAD code index %" PRIu64 ": %s",
                    unit->new_code_index, what);
    } else if (part->id == JIT_CODE_LOAD || part->id == JIT_CODE_MOVE) {
        unit->left_out = true;
        repair->result->dropped_loads += part->id == JIT_CODE_LOAD;
        repair_tell(&repair->output, part->offset, "left out a %s and what describes it: %s",
                    text_record_id(part->id), what);
    } else if (is_trailer_rule(rule) && !part->without_trailer) {
        part->without_trailer = true;
        repair_tell(&repair->output, part->offset, "left out an inline tree: %s", what);
    } else {
        part->left_out = true;
        repair_tell(&repair->output, part->offset, "left out a %s: %s", text_record_id(part->id),
                    what);
    }
}

static int verify_output(struct repair *repair)
{
    int fd = dup(repair->fd);
    if (fd < 0) {
        return -errno;
    }
    struct jitdump_reader *output;
    int error = jitdump_reader_open_fd(fd, "the repaired dump", &output);
    if (!error) {
        error = verify_dump(output, leave_out, repair);
        jitdump_reader_close(output);
    }
    return error;
}

int repair_dump(struct jitdump_reader *reader, int fd, repair_say say, void *context,
                struct repair_result *result)
{
    struct repair repair = {.reader = reader, .fd = fd, .output = {say, context}, .result = result};
    *result = (struct repair_result){0};
    int error = repair_find_parts(reader, &repair.output, result, &repair.found);
    if (!error) {
        repair.written_parts =
            malloc(((size_t)repair.found.part_count + 1) * sizeof(*repair.written_parts));
        error = repair.written_parts ? 0 : -ENOMEM;
    }
    for (int round = 0; !error && round < MAX_ROUNDS; round++) {
        repair.findings = 0;
        error = write_dump(&repair);
        if (!error) {
            error = verify_output(&repair);
        }
        if (repair.findings == 0 || repair.stuck) {
            break;
        }
    }
    if (!error && repair.findings > 0) {
        error = -EINVAL;
    }
    repair_parts_free(&repair.found);
    trailer_names_free(repair.written);
    trailer_free(&repair.trailer);
    bytes_free(&repair.buffer);
    free(repair.renumbered);
    free(repair.written_parts);
    return error;
}

/* ---- The verb ---- */

/* jdtool repair: a sound dump made of a torn, broken or mixed-up one. */

/* A dump in pieces has thousands of faults of one kind; what is behind these is counted. */
#define MAX_LINES 100

struct report {
    const char *path;
    uint64_t lines;
};

static void print_line(void *context, uint64_t offset, const char *what)
{
    struct report *report = context;
    if (report->lines++ < MAX_LINES) {
        printf("%s: offset %#" PRIx64 ": %s\n", report->path, offset, what);
    }
}

/* An exit_status. The dump appears under its name when it is complete. */
static int repair_file(const char *in, const char *out)
{
    struct jitdump_reader *reader;
    struct output_file *file;
    if (jitdump_reader_open(in, &reader) < 0) {
        return STATUS_FAILED;
    }
    if (output_file_open_of(in, out, &file) < 0) {
        jitdump_reader_close(reader);
        return STATUS_FAILED;
    }
    struct report report = {.path = in};
    struct repair_result result;
    int error = repair_dump(reader, output_file_descriptor(file), print_line, &report, &result);
    jitdump_reader_close(reader);
    if (error) {
        output_file_abort(file);
        failed_to(error, "repair %s as %s", in, out);
        return STATUS_FAILED;
    }
    if (output_file_finish(file) < 0) {
        return STATUS_FAILED;
    }
    if (report.lines > MAX_LINES) {
        printf("%s: %" PRIu64 " more lines\n", in, report.lines - MAX_LINES);
    }
    printf("%s: kept %" PRIu64 " LOADs and %" PRIu64 " MOVEs; left out %" PRIu64
           " LOADs and %" PRIu64 " bytes that are no record\n",
           in, result.loads, result.moves, result.dropped_loads, result.dropped_bytes);
    return finish_output();
}

static int run(const struct verb *verb, int argc, char **argv)
{
    static const struct verb_option options[] = {{OPTION("output", 'o', OPTION_KEEPS)}, OPTION_END};
    const char *out = NULL;
    int status = verb_options(verb, argc, argv, options, &out);
    if (status) {
        return status;
    }
    if (!out) {
        return wrong_usage(verb, "-o OUT is needed");
    }
    return repair_file(argv[optind], out);
}

const struct verb verb_repair = {
    .name = "repair",
    .words = VERB_HAS_ONE_FILE,
    .run = run,
    .confined = true,
    .usage = "FILE -o OUT",
    .help =
        "Makes a sound jitdump of a torn or broken one, or of one that two processes wrote into:\n"
        "keeps every method whose records are sound, behind broken bytes too, and says what is\n"
        "left out and why. OUT passes jdtool verify. perf wants it to be named jit-PID.dump.\n"
        "  -o, --output OUT   the file to write; an older one is replaced\n",
};
