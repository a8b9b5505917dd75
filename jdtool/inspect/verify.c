#include "jdtool/inspect/verify.h"

#include "jdtool/base/message.h"
#include "jdtool/base/text.h"
#include "jdtool/base/verb.h"
#include "jdtool/jitdump/samply_reader.h"
#include "jdtool/jitdump/trailer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- What is told ---- */

/* Where findings go. */
struct verify_output {
    verify_report report;
    void *context;
};

/* Reports that a rule is broken by the record at an offset. */
__attribute__((format(printf, 4, 5))) static void verify_broken(const struct verify_output *output,
                                                                enum verify_rule rule,
                                                                uint64_t offset, const char *format,
                                                                ...)
{
    char what[320];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof(what), format, args);
    va_end(args);
    output->report(output->context, rule, offset, what);
}

/* RULE_NAME for a name of `what`. */
static void verify_name(const struct verify_output *output, uint64_t offset, const char *what,
                        const char *name)
{
    if (!*name) {
        verify_broken(output, RULE_NAME, offset, "%s has no name", what);
    } else if (!text_is_utf8(name)) {
        verify_broken(output, RULE_NAME, offset, "%s has a name that is not UTF-8", what);
    }
}

const char *verify_rule_text(enum verify_rule rule)
{
    static const char *const texts[RULE_COUNT] = {
        [RULE_HEADER] = "the header is as readers want it",
        [RULE_TORN] = "the file ends at a record's end",
        [RULE_RECORD] = "a record's sizes fit together",
        [RULE_ID] = "a record is of a known kind",
        [RULE_CLOSE] = "CLOSE is the last record, and a bare one",
        [RULE_CLOSE_STAMP] = "CLOSE is stamped later than all code",
        [RULE_GROUP] = "what describes code stands before its LOAD",
        [RULE_ADDRESS] = "a DEBUG_INFO is for the LOAD behind it",
        [RULE_STAMP] = "stamps do not go backwards in a group",
        [RULE_CODE_INDEX] = "each LOAD has a code index of its own",
        [RULE_PID] = "all records are of one process",
        [RULE_NAME] = "names are not empty, and UTF-8",
        [RULE_EXCESS] = "nothing stands behind the code of a LOAD",
        [RULE_MOVE] = "a MOVE moves existing code",
        [RULE_ROW_ORDER] = "rows are sorted",
        [RULE_ROW_INSIDE] = "rows are inside the code",
        [RULE_ROW_LINE] = "lines count from 1",
        [RULE_UNWINDING] = "unwinding information is as perf wants it",
        [RULE_TRAILER] = "a trailer can be decoded",
        [RULE_TRAILER_NAMES] = "a trailer refers to what is defined",
        [RULE_TRAILER_TREE] = "an inline tree is depth-first, its ranges inside the code",
        [RULE_TRAILER_FACTS] = "facts about code are possible",
        [RULE_SAMPLY] = "samply's records keep their rules",
    };
    return texts[rule];
}

/* ---- DEBUG_INFO ---- */

/* The rules of DEBUG_INFO: rows, trailer, and how they fit the LOAD behind. */

/* What a DEBUG_INFO says, kept until its LOAD tells how much code there is. Start zeroed. */
struct debug_pending {
    uint64_t offset; /* in the file; 0: none waits */
    uint64_t address;
    uint64_t lowest; /* of its rows; lowest > highest: it has none */
    uint64_t highest;
    uint64_t ranges_end; /* bytes that the trailer's ranges cover */
    int64_t facts[JITDUMP_CODE_KEYS];
};

/* What goes along from record to record. */
struct debug_rules {
    const struct verify_output *output;
    const struct jitdump_reader *reader;
    struct trailer_names *names;
    struct trailer trailer;
};

/* Returns the bytes that its ranges cover. */
static uint64_t check_tree(struct debug_rules *rules, uint64_t offset)
{
    const struct trailer *trailer = &rules->trailer;
    for (uint32_t i = 0; i < trailer->node_count; i++) {
        uint64_t method = trailer->nodes[i].method;
        if (method && !trailer_names_has_method(rules->names, method)) {
            verify_broken(rules->output, RULE_TRAILER_NAMES, offset,
                          "node %u of the inline tree is method %" PRIu64 ", which is not defined",
                          i, method);
            break;
        }
    }
    /* Depth-first: the parent is the node before, or one of that node's ancestors. Climbing from
     * the node before ends at the parent, and no node is climbed over twice. */
    for (uint32_t i = 1; i < trailer->node_count; i++) {
        uint32_t node = i - 1;
        while (node > trailer->nodes[i].parent) {
            node = trailer->nodes[node].parent;
        }
        if (node != trailer->nodes[i].parent) {
            verify_broken(rules->output, RULE_TRAILER_TREE, offset,
                          "the nodes of the inline tree are not depth-first (node %u)", i);
            break;
        }
    }
    uint64_t end = 0;
    for (uint32_t i = 0; i < trailer->range_count; i++) {
        end += trailer->ranges[i].size;
        if (trailer->ranges[i].size == 0) {
            verify_broken(rules->output, RULE_TRAILER_TREE, offset,
                          "range %u of the inline tree is empty", i);
            break;
        }
    }
    return end;
}

static void check_facts(struct debug_rules *rules, uint64_t offset)
{
    const int64_t *facts = rules->trailer.facts;
    int64_t kind = facts[JITDUMP_CODE_KIND];
    if (kind == 0 || kind > JITDUMP_KIND_INTERPRETER) {
        verify_broken(rules->output, RULE_TRAILER_FACTS, offset, "code of an unknown kind %" PRId64,
                      kind);
    }
    if (facts[JITDUMP_CODE_TIER] > JITDUMP_TIER_JVMCI) {
        verify_broken(rules->output, RULE_TRAILER_FACTS, offset, "code of an unknown tier %" PRId64,
                      facts[JITDUMP_CODE_TIER]);
    }
}

/* The strings of a trailer that decodes. */
static void check_definitions(struct debug_rules *rules, uint64_t offset, const uint8_t *bytes,
                              size_t size)
{
    const uint8_t *at;
    const uint8_t *end;
    const char *why;
    if (trailer_find(rules->reader, bytes, size, &at, &end, &why) <= 0) {
        return;
    }
    struct trailer_section section;
    while (trailer_section_next(&at, end, &section, &why) > 0) {
        uint64_t id;
        const char *path;
        struct trailer_method method;
        while (section.tag == JITDUMP_TRAILER_FILES &&
               trailer_file_next(&section, &id, &path, &why) > 0) {
            if (!text_is_utf8(path)) {
                verify_broken(rules->output, RULE_TRAILER_NAMES, offset,
                              "file %" PRIu64 " of the trailer has a path that is not UTF-8", id);
            }
        }
        while (section.tag == JITDUMP_TRAILER_METHODS &&
               trailer_method_next(&section, &id, &method, &why) > 0) {
            if (!*method.name || !text_is_utf8(method.name)) {
                verify_broken(
                    rules->output, RULE_TRAILER_NAMES, offset,
                    "method %" PRIu64 " of the trailer has a name that is empty or not UTF-8", id);
            }
        }
    }
}

static void check_trailer(struct debug_rules *rules, struct debug_pending *pending,
                          const uint8_t *bytes, size_t size)
{
    uint64_t offset = pending->offset;
    const char *why;
    if (trailer_decode(rules->reader, bytes, size, rules->names, &rules->trailer, &why) < 0) {
        verify_broken(rules->output, RULE_TRAILER, offset, "a broken trailer: %s", why);
    } else {
        check_definitions(rules, offset, bytes, size);
    }
    if (rules->trailer.undefined_files) {
        verify_broken(rules->output, RULE_TRAILER_NAMES, offset,
                      "the trailer's methods name %u files that are not defined",
                      rules->trailer.undefined_files);
    }
    if (rules->trailer.tree_rows && rules->trailer.range_count == 0) {
        verify_broken(rules->output, RULE_TRAILER_TREE, offset,
                      "the rows are left to an inline tree without ranges");
    }
    pending->ranges_end = check_tree(rules, offset);
    check_facts(rules, offset);
    memcpy(pending->facts, rules->trailer.facts, sizeof(pending->facts));
}

/* Reports the broken rules of one record, which waits for its LOAD from then on. */
static void debug_check(struct debug_rules *rules, struct debug_pending *pending,
                        const struct jitdump_record_view *record)
{
    *pending = (struct debug_pending){
        .offset = record->offset, .address = record->debug_info.code_addr, .lowest = UINT64_MAX};
    for (size_t i = 0; i < sizeof(pending->facts) / sizeof(*pending->facts); i++) {
        pending->facts[i] = -1;
    }

    struct jitdump_entry_walk walk = {0};
    struct jitdump_entry entry;
    bool sorted = true;
    bool lines = true;
    const char *checked = NULL;
    int more;
    while ((more = jitdump_entry_next(rules->reader, record, &walk, &entry)) > 0) {
        if (sorted && walk.index > 1 && entry.address < pending->highest) {
            sorted = false;
            verify_broken(rules->output, RULE_ROW_ORDER, record->offset,
                          "row %" PRIu64 " starts before the one ahead of it", walk.index - 1);
        }
        if (lines && entry.line == 0) {
            lines = false;
            verify_broken(rules->output, RULE_ROW_LINE, record->offset,
                          "row %" PRIu64 " has line 0", walk.index - 1);
        }
        if (!checked || strcmp(checked, entry.file) != 0) {
            verify_name(rules->output, record->offset, "the file of a row", entry.file);
            checked = entry.file;
        }
        pending->lowest = entry.address < pending->lowest ? entry.address : pending->lowest;
        pending->highest = entry.address > pending->highest ? entry.address : pending->highest;
    }
    if (more < 0) {
        verify_broken(rules->output, RULE_RECORD, record->offset,
                      "a DEBUG_INFO ends inside row %" PRIu64, walk.index);
        return;
    }
    check_trailer(rules, pending, record->debug_info.entries + walk.at,
                  record->debug_info.entries_size - walk.at);
}

/* The offsets that a trailer gives must lie in the code. */
static void check_fact_offsets(const struct debug_rules *rules, const struct debug_pending *pending,
                               uint64_t code_size)
{
    static const struct {
        enum jitdump_code_key key;
        const char *what;
    } offsets[] = {
        {JITDUMP_CODE_VERIFIED_ENTRY, "verified entry"},
        {JITDUMP_CODE_OSR_ENTRY, "OSR entry"},
        {JITDUMP_CODE_FRAME_COMPLETE, "end of frame set-up"},
    };
    for (size_t i = 0; i < sizeof(offsets) / sizeof(*offsets); i++) {
        int64_t at = pending->facts[offsets[i].key];
        if (at >= 0 && (uint64_t)at > code_size) {
            verify_broken(rules->output, RULE_TRAILER_FACTS, pending->offset,
                          "the %s is behind the code", offsets[i].what);
        }
    }
}

/* The rest once the LOAD is there; none waits afterwards. */
static void debug_check_load(const struct debug_rules *rules, struct debug_pending *pending,
                             const struct jitdump_record_view *load)
{
    if (!pending->offset) {
        return;
    }
    if (pending->address != load->load.code_addr) {
        verify_broken(rules->output, RULE_ADDRESS, pending->offset,
                      "a DEBUG_INFO for %#" PRIx64 " stands before the LOAD of %#" PRIx64,
                      pending->address, load->load.code_addr);
    } else if (pending->lowest <= pending->highest &&
               (pending->lowest < load->load.code_addr ||
                pending->highest - load->load.code_addr > load->load.code_size)) {
        verify_broken(rules->output, RULE_ROW_INSIDE, pending->offset,
                      "rows from %#" PRIx64 " to %#" PRIx64 " are not inside the code at %#" PRIx64
                      "..%#" PRIx64,
                      pending->lowest, pending->highest, load->load.code_addr,
                      load->load.code_addr + load->load.code_size);
    }
    if (pending->ranges_end > load->load.code_size) {
        verify_broken(rules->output, RULE_TRAILER_TREE, pending->offset,
                      "the inline tree covers %" PRIu64 " bytes of %" PRIu64, pending->ranges_end,
                      load->load.code_size);
    }
    check_fact_offsets(rules, pending, load->load.code_size);
    pending->offset = 0;
}

/* ---- Records ---- */

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

/* ---- The verb ---- */

/* jdtool verify: one line for each broken rule, nothing for a sound dump. */

/* A rule that is broken more often is counted from there on. */
#define LINES_PER_RULE 20

struct findings {
    const char *path;
    uint64_t count[RULE_COUNT];
};

static void print_finding(void *context, enum verify_rule rule, uint64_t offset, const char *what)
{
    struct findings *findings = context;
    if (++findings->count[rule] <= LINES_PER_RULE) {
        printf("%s: offset %#" PRIx64 ": %s\n", findings->path, offset, what);
    }
}

/* An exit_status. */
static int verify_file(const char *path)
{
    struct jitdump_reader *reader;
    if (jitdump_reader_open(path, &reader) < 0) {
        return STATUS_FAILED;
    }
    struct findings findings = {.path = path};
    int status = STATUS_DONE;
    int error = verify_dump(reader, print_finding, &findings);
    if (error) {
        failed_to(error, "verify %s", path);
        status = STATUS_FAILED;
    }
    for (int rule = 0; rule < RULE_COUNT; rule++) {
        if (findings.count[rule] > 0) {
            status = STATUS_FAILED;
        }
        if (findings.count[rule] > LINES_PER_RULE) {
            printf("%s: %" PRIu64 " more of: %s\n", path, findings.count[rule] - LINES_PER_RULE,
                   verify_rule_text(rule));
        }
    }
    jitdump_reader_close(reader);
    return status;
}

static int run(const struct verb *verb, int argc, char **argv)
{
    int status = verb_options(verb, argc, argv, NULL, NULL);
    if (status) {
        return status;
    }
    if (optind == argc) {
        return wrong_usage(verb, "a FILE is needed");
    }
    for (int i = optind; i < argc; i++) {
        int one = verify_file(argv[i]);
        status = one ? one : status;
    }
    int output = finish_output();
    return output ? output : status;
}

const struct verb verb_verify = {
    .name = "verify",
    .run = run,
    .confined = true,
    .usage = "FILE...",
    .help =
        "Checks jitdumps against the rules of the specification, of its readers and of the "
        "trailer.\n"
        "Says nothing and exits with 0 when all are kept, else prints a line for each broken rule\n"
        "and exits with 1.\n",
};
