#include "jdtool/inspect/verify.h"

#include "jdtool/base/text.h"
#include "jdtool/inspect/verify_debug.h"
#include "jdtool/inspect/verify_report.h"
#include "jdtool/jitdump/samply_reader.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

/* The rules of samply's records (format/samply.h), for verify.c. */

/* What the records of a group said, until the LOAD tells how much code there is. Start zeroed. */
struct samply_pending {
    uint64_t offset; /* of the first one in the file; 0: none */
    uint64_t end;    /* no offset into the code is above it */
    bool has_inlines;
    bool has_tier;
};

struct check {
    const struct verify_output *output;
    uint64_t offset;
};

#define broken(check, ...) verify_broken((check)->output, RULE_SAMPLY, (check)->offset, __VA_ARGS__)

static void check_strings(const struct check *check, const char *what, const char **strings,
                          uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (!text_is_utf8(strings[i])) {
            broken(check, "%s %u of DEBUG_INFO2 is not UTF-8", what, i);
            return;
        }
    }
}

static void check_functions(const struct check *check, const struct samply_inlines *inlines)
{
    if (inlines->function_count == 0) {
        broken(check, "a DEBUG_INFO2 without the outer function");
    }
    for (uint32_t i = 0; i < inlines->function_count; i++) {
        const struct samply_function *function = &inlines->functions[i];
        if (function->name_index >= inlines->name_count ||
            function->file_index >= inlines->file_count) {
            broken(check, "function %u of DEBUG_INFO2 refers to a name or file that is not there",
                   i);
            return;
        }
    }
}

static void check_calls(const struct check *check, const struct samply_inlines *inlines)
{
    uint64_t ranges = 0;
    for (uint32_t i = 0; i < inlines->call_count; i++) {
        const struct samply_inline_call *call = &inlines->calls[i];
        uint64_t deepest = i == 0 ? 0 : (uint64_t)inlines->calls[i - 1].depth + 1;
        if (call->depth > deepest) {
            broken(check, "inline call %u of DEBUG_INFO2 has depth %u behind one of %" PRIu64, i,
                   call->depth, deepest ? deepest - 1 : 0);
            return;
        }
        if (call->range_count == 0) {
            broken(check, "inline call %u of DEBUG_INFO2 has no range", i);
            return;
        }
        if (call->function_index >= inlines->function_count) {
            broken(check, "inline call %u of DEBUG_INFO2 is of a function that is not there", i);
            return;
        }
        ranges += call->range_count;
    }
    if (ranges != inlines->range_count) {
        broken(check, "the inline calls of DEBUG_INFO2 use %" PRIu64 " ranges of %u", ranges,
               inlines->range_count);
    }
}

static void check_lines(const struct check *check, const struct samply_inlines *inlines)
{
    for (uint32_t i = 0; i < inlines->line_count; i++) {
        if (inlines->lines[i].file_index >= inlines->file_count) {
            broken(check, "line record %u of DEBUG_INFO2 is of a file that is not there", i);
            return;
        }
        if (i > 0 && inlines->lines[i].offset < inlines->lines[i - 1].offset) {
            broken(check, "line record %u of DEBUG_INFO2 starts before the one ahead of it", i);
            return;
        }
    }
}

static void note_end(struct samply_pending *pending, uint64_t end)
{
    pending->end = end > pending->end ? end : pending->end;
}

static void check_inlines(struct samply_pending *pending, const struct check *check,
                          const struct jitdump_reader *reader,
                          const struct jitdump_record_view *record)
{
    if (pending->has_inlines) {
        broken(check, "two DEBUG_INFO2s for one LOAD");
    }
    pending->has_inlines = true;
    struct samply_inlines inlines = {0};
    const char *why;
    if (samply_decode_inlines(reader, record, &inlines, &why) < 0) {
        broken(check, "a broken DEBUG_INFO2: %s", why);
    } else {
        check_strings(check, "file", inlines.files, inlines.file_count);
        check_strings(check, "function name", inlines.names, inlines.name_count);
        check_functions(check, &inlines);
        check_calls(check, &inlines);
        check_lines(check, &inlines);
        for (uint32_t i = 0; i < inlines.range_count; i++) {
            note_end(pending, (uint64_t)inlines.ranges[i].offset + inlines.ranges[i].size);
        }
        for (uint32_t i = 0; i < inlines.line_count; i++) {
            note_end(pending, inlines.lines[i].offset);
        }
    }
    samply_inlines_free(&inlines);
}

static void check_tier(struct samply_pending *pending, const struct check *check,
                       const struct jitdump_reader *reader,
                       const struct jitdump_record_view *record)
{
    if (pending->has_tier) {
        broken(check, "two TIERs for one LOAD");
    }
    pending->has_tier = true;
    struct samply_tier_view tier;
    const char *why;
    if (samply_decode_tier(reader, record, &tier, &why) < 0) {
        broken(check, "a broken TIER: %s", why);
    } else if (tier.color >= SAMPLY_COLOR_COUNT || !text_is_utf8(tier.name)) {
        broken(check, "a TIER of an unknown color, or with a name that is not UTF-8");
    }
}

static void check_source(const struct check *check, const struct jitdump_reader *reader,
                         const struct jitdump_record_view *record)
{
    struct samply_source_view source;
    const char *why;
    if (samply_decode_source(reader, record, &source, &why) < 0) {
        broken(check, "a broken SOURCE_FILE: %s", why);
    } else if (!*source.path || !text_is_utf8(source.path)) {
        broken(check, "a SOURCE_FILE whose path is empty or not UTF-8");
    }
}

/* Reports the broken rules of one record. */
static void samply_check(struct samply_pending *pending, const struct jitdump_reader *reader,
                         const struct jitdump_record_view *record,
                         const struct verify_output *output)
{
    struct check check = {output, record->offset};
    if (!pending->offset) {
        pending->offset = record->offset;
    }
    switch (record->id) {
    case SAMPLY_JIT_CODE_DEBUG_INFO2:
        check_inlines(pending, &check, reader, record);
        break;
    case SAMPLY_JIT_TIER:
        check_tier(pending, &check, reader, record);
        break;
    default:
        check_source(&check, reader, record);
        break;
    }
}

/* The same once the group's LOAD is there. */
static void samply_check_load(const struct samply_pending *pending, uint64_t code_size,
                              const struct verify_output *output)
{
    struct check check = {output, pending->offset};
    if (pending->end > code_size) {
        broken(&check, "a DEBUG_INFO2 speaks of offset %" PRIu64 " in code of %" PRIu64 " bytes",
               pending->end, code_size);
    }
}

struct loaded {
    uint64_t code_index;
    uint64_t address; /* where it is now */
    uint64_t size;
};

struct verification {
    struct jitdump_reader *reader;
    struct verify_output output;
    struct debug_rules debug_rules;
    struct debug_pending debug;
    uint64_t unwinding_offset; /* of one that waits for its LOAD; 0: none does */
    struct samply_pending samply;
    uint64_t group_stamp;  /* of the latest record of the group that is being read; 0: none */
    uint64_t close_offset; /* 0: not seen */
    uint64_t last_stamp;   /* the latest of a LOAD or MOVE; 0: there was none */

    struct loaded *loaded; /* hash table by code_index, open addressing; `used` tells free slots */
    bool *used;
    uint32_t loaded_count;
    uint32_t slot_count;
};

static struct loaded *find_slot(const struct verification *verification, uint64_t code_index,
                                bool **used)
{
    uint32_t mask = verification->slot_count - 1;
    uint32_t slot = (uint32_t)((code_index * UINT64_C(0x9E3779B97F4A7C15)) >> 32) & mask;
    while (verification->used[slot] && verification->loaded[slot].code_index != code_index) {
        slot = (slot + 1) & mask;
    }
    *used = &verification->used[slot];
    return &verification->loaded[slot];
}

static int reserve_slot(struct verification *verification)
{
    if (verification->loaded_count < verification->slot_count / 2) {
        return 0;
    }
    struct verification grown = *verification;
    grown.slot_count = verification->slot_count ? verification->slot_count * 2 : 64;
    grown.loaded = calloc(grown.slot_count, sizeof(*grown.loaded));
    grown.used = calloc(grown.slot_count, sizeof(*grown.used));
    if (!grown.loaded || !grown.used) {
        free(grown.loaded);
        free(grown.used);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < verification->slot_count; i++) {
        if (verification->used[i]) {
            bool *used;
            *find_slot(&grown, verification->loaded[i].code_index, &used) = verification->loaded[i];
            *used = true;
        }
    }
    free(verification->loaded);
    free(verification->used);
    *verification = grown;
    return 0;
}

static void check_header(struct verification *verification)
{
    const struct jitdump_header *header = jitdump_reader_header(verification->reader);
    if (header->total_size != sizeof(*header)) {
        verify_broken(&verification->output, RULE_HEADER, 0,
                      "the header has %u bytes instead of %zu, which perf does not read right",
                      header->total_size, sizeof(*header));
    }
    if (header->elf_mach == 0) {
        verify_broken(&verification->output, RULE_HEADER, 0, "the header names no machine");
    }
    if (header->flags & ~JITDUMP_FLAGS_ARCH_TIMESTAMP) {
        verify_broken(&verification->output, RULE_HEADER, 0,
                      "the header has undefined flags %#" PRIx64, header->flags);
    }
}

static void check_pid(struct verification *verification, uint64_t offset, uint32_t pid)
{
    uint32_t expected = jitdump_reader_header(verification->reader)->pid;
    if (pid != expected) {
        verify_broken(&verification->output, RULE_PID, offset,
                      "a record of process %u in the dump of process %u", pid, expected);
    }
}

/* Another kind of record comes in between. */
static void end_group(struct verification *verification)
{
    if (verification->debug.offset) {
        verify_broken(&verification->output, RULE_GROUP, verification->debug.offset,
                      "a DEBUG_INFO without a LOAD behind it");
    }
    if (verification->unwinding_offset) {
        verify_broken(&verification->output, RULE_GROUP, verification->unwinding_offset,
                      "an UNWINDING_INFO without a LOAD behind it");
    }
    if (verification->samply.offset) {
        verify_broken(&verification->output, RULE_GROUP, verification->samply.offset,
                      "a record of samply's without a LOAD behind it");
    }
    verification->debug.offset = 0;
    verification->unwinding_offset = 0;
    verification->samply = (struct samply_pending){0};
    verification->group_stamp = 0;
}

static void check_stamp(struct verification *verification, const struct jitdump_record_view *record)
{
    uint64_t start = jitdump_reader_header(verification->reader)->timestamp;
    if (record->timestamp < start) {
        verify_broken(&verification->output, RULE_STAMP, record->offset,
                      "a %s is stamped %" PRIu64 ", before the header's %" PRIu64,
                      text_record_id(record->id), record->timestamp, start);
    }
    if (record->timestamp < verification->group_stamp) {
        verify_broken(&verification->output, RULE_STAMP, record->offset,
                      "a %s is stamped %" PRIu64 ", before the %" PRIu64 " of its group",
                      text_record_id(record->id), record->timestamp, verification->group_stamp);
    }
    verification->group_stamp = record->timestamp;
}

/* The same for code that appears. */
static void check_code_stamp(struct verification *verification,
                             const struct jitdump_record_view *record)
{
    check_stamp(verification, record);
    verification->group_stamp = 0;
    if (record->timestamp > verification->last_stamp) {
        verification->last_stamp = record->timestamp;
    }
}

static void check_close(struct verification *verification, const struct jitdump_record_view *record)
{
    end_group(verification);
    check_stamp(verification, record);
    verification->group_stamp = 0;
    verification->close_offset = record->offset;
    if (record->payload_size) {
        verify_broken(&verification->output, RULE_CLOSE, record->offset, "a CLOSE of %u bytes",
                      record->total_size);
    }
    if (record->timestamp <= verification->last_stamp) {
        verify_broken(&verification->output, RULE_CLOSE_STAMP, record->offset,
                      "CLOSE is stamped %" PRIu64 ", no later than code at %" PRIu64
                      ": samply names nothing that ran behind it",
                      record->timestamp, verification->last_stamp);
    }
}

static void check_debug_info(struct verification *verification,
                             const struct jitdump_record_view *record)
{
    if (verification->debug.offset) {
        end_group(verification);
    }
    check_stamp(verification, record);
    debug_check(&verification->debug_rules, &verification->debug, record);
}

static int check_load(struct verification *verification, const struct jitdump_record_view *record)
{
    check_code_stamp(verification, record);
    check_pid(verification, record->offset, record->load.pid);
    verify_name(&verification->output, record->offset, "a LOAD", record->load.name);
    if (record->load.excess) {
        verify_broken(&verification->output, RULE_EXCESS, record->offset,
                      "%zu bytes behind the code belong to nothing", record->load.excess);
    }
    debug_check_load(&verification->debug_rules, &verification->debug, record);
    samply_check_load(&verification->samply, record->load.code_size, &verification->output);
    verification->unwinding_offset = 0;
    verification->samply = (struct samply_pending){0};

    if (reserve_slot(verification) < 0) {
        return -ENOMEM;
    }
    bool *used;
    struct loaded *loaded = find_slot(verification, record->load.code_index, &used);
    if (*used) {
        verify_broken(&verification->output, RULE_CODE_INDEX, record->offset,
                      "code index %" PRIu64 " was used before", record->load.code_index);
    } else {
        verification->loaded_count++;
    }
    *used = true;
    *loaded = (struct loaded){.code_index = record->load.code_index,
                              .address = record->load.code_addr,
                              .size = record->load.code_size};
    return 0;
}

static void check_move(struct verification *verification, const struct jitdump_record_view *record)
{
    end_group(verification);
    check_code_stamp(verification, record);
    check_pid(verification, record->offset, record->move.pid);
    bool *used = NULL;
    struct loaded *loaded =
        verification->slot_count ? find_slot(verification, record->move.code_index, &used) : NULL;
    if (!loaded || !*used) {
        verify_broken(&verification->output, RULE_MOVE, record->offset,
                      "a MOVE of code index %" PRIu64 ", which was never loaded",
                      record->move.code_index);
        return;
    }
    if (loaded->address != record->move.old_code_addr) {
        verify_broken(&verification->output, RULE_MOVE, record->offset,
                      "a MOVE from %#" PRIx64 " of code that is at %#" PRIx64,
                      record->move.old_code_addr, loaded->address);
    }
    if (loaded->size != record->move.code_size) {
        verify_broken(&verification->output, RULE_MOVE, record->offset,
                      "a MOVE of %" PRIu64 " bytes of code that has %" PRIu64,
                      record->move.code_size, loaded->size);
    }
    loaded->address = record->move.new_code_addr;
}

static void check_unwinding_info(struct verification *verification,
                                 const struct jitdump_record_view *record)
{
    if (verification->unwinding_offset) {
        verify_broken(&verification->output, RULE_GROUP, record->offset,
                      "two UNWINDING_INFOs for one LOAD");
    }
    check_stamp(verification, record);
    verification->unwinding_offset = record->offset;
    if (record->unwinding_info.eh_frame_hdr_size == 0) {
        verify_broken(
            &verification->output, RULE_UNWINDING, record->offset,
            "an UNWINDING_INFO without a header table, which perf gives to the next LOAD too");
    }
    if (record->unwinding_info.mapped_size != 0 &&
        record->unwinding_info.mapped_size != record->unwinding_info.data_size) {
        verify_broken(&verification->output, RULE_UNWINDING, record->offset,
                      "an UNWINDING_INFO of %" PRIu64 " bytes says that %" PRIu64 " are mapped",
                      record->unwinding_info.data_size, record->unwinding_info.mapped_size);
    }
}

static int check_record(struct verification *verification, const struct jitdump_record_view *record)
{
    if (verification->close_offset) {
        verify_broken(&verification->output, RULE_CLOSE, record->offset, "a %s behind CLOSE",
                      text_record_id(record->id));
        verification->close_offset = 0; /* once is enough */
    }
    switch (record->id) {
    case JIT_CODE_LOAD:
        return check_load(verification, record);
    case JIT_CODE_MOVE:
        check_move(verification, record);
        break;
    case JIT_CODE_DEBUG_INFO:
        check_debug_info(verification, record);
        break;
    case JIT_CODE_UNWINDING_INFO:
        check_unwinding_info(verification, record);
        break;
    case JIT_CODE_CLOSE:
        check_close(verification, record);
        break;
    default:
        if (samply_knows(record->id)) {
            check_stamp(verification, record);
            samply_check(&verification->samply, verification->reader, record,
                         &verification->output);
        } else {
            verify_broken(&verification->output, RULE_ID, record->offset,
                          "a record of an unknown kind %u, at which some readers stop", record->id);
        }
        break;
    }
    return 0;
}

static bool group_is_open(const struct verification *verification)
{
    return verification->debug.offset || verification->unwinding_offset ||
           verification->samply.offset;
}

static int check_records(struct verification *verification)
{
    for (;;) {
        struct jitdump_record_view record;
        int error;
        switch (jitdump_reader_next(verification->reader, &record)) {
        case JITDUMP_RECORD:
            error = check_record(verification, &record);
            if (error) {
                return error;
            }
            break;
        case JITDUMP_BROKEN:
            verify_broken(&verification->output, RULE_RECORD, record.offset, "%s",
                          jitdump_reader_error(verification->reader));
            break;
        case JITDUMP_TORN:
            verify_broken(&verification->output, RULE_TORN, record.offset, "torn tail: %s",
                          jitdump_reader_error(verification->reader));
            return 0;
        case JITDUMP_BAD:
            verify_broken(&verification->output, RULE_RECORD, record.offset,
                          "%s; what follows was not looked at",
                          jitdump_reader_error(verification->reader));
            return 0;
        case JITDUMP_END:
            if (group_is_open(verification)) {
                verify_broken(&verification->output, RULE_TORN, record.offset,
                              "torn tail: the file ends before the LOAD of a group");
            }
            return 0;
        }
    }
}

int verify_dump(struct jitdump_reader *reader, verify_report report, void *context)
{
    struct verification verification = {.reader = reader, .output = {report, context}};
    verification.debug_rules = (struct debug_rules){
        .output = &verification.output, .reader = reader, .names = trailer_names_new()};
    int error = -ENOMEM;
    if (verification.debug_rules.names) {
        check_header(&verification);
        error = check_records(&verification);
    }
    trailer_names_free(verification.debug_rules.names);
    trailer_free(&verification.debug_rules.trailer);
    free(verification.loaded);
    free(verification.used);
    return error;
}
