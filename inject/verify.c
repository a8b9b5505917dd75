#include "inject/verify.h"

#include "inject/text.h"
#include "inject/trailer.h"
#include "inject/verify_samply.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a DEBUG_INFO says, kept until its LOAD tells how much code there is. */
struct pending_debug {
    uint64_t offset; /* in the file; 0: none waits */
    uint64_t address;
    uint64_t lowest; /* of its rows; lowest > highest: it has none */
    uint64_t highest;
    uint64_t ranges_end; /* bytes that the trailer's ranges cover */
    int64_t facts[JITDUMP_CODE_FRAME_COMPLETE + 1];
};

struct loaded {
    uint64_t code_index;
    uint64_t address; /* where it is now */
    uint64_t size;
};

struct verification {
    struct jitdump_reader *reader;
    verify_report report;
    void *context;
    struct trailer_names *names;
    struct trailer trailer;
    struct pending_debug debug;
    uint64_t unwinding_offset; /* of one that waits for its LOAD; 0: none does */
    struct samply_pending samply;
    uint64_t group_stamp;  /* of the latest record of the group that is being read; 0: none */
    uint64_t close_offset; /* 0: not seen */

    struct loaded *loaded; /* hash table by code_index, open addressing; `used` tells free slots */
    bool *used;
    uint32_t loaded_count;
    uint32_t slot_count;
};

static __attribute__((format(printf, 4, 5))) void broken(struct verification *verification,
                                                         enum verify_rule rule, uint64_t offset,
                                                         const char *format, ...)
{
    char what[320];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof(what), format, args);
    va_end(args);
    verification->report(verification->context, rule, offset, what);
}

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
        broken(verification, RULE_HEADER, 0,
               "the header has %u bytes instead of %zu, which perf does not read right",
               header->total_size, sizeof(*header));
    }
    if (header->elf_mach == 0) {
        broken(verification, RULE_HEADER, 0, "the header names no machine");
    }
    if (header->flags & ~JITDUMP_FLAGS_ARCH_TIMESTAMP) {
        broken(verification, RULE_HEADER, 0, "the header has undefined flags %#" PRIx64,
               header->flags);
    }
}

static void check_pid(struct verification *verification, uint64_t offset, uint32_t pid)
{
    uint32_t expected = jitdump_reader_header(verification->reader)->pid;
    if (pid != expected) {
        broken(verification, RULE_PID, offset, "a record of process %u in the dump of process %u",
               pid, expected);
    }
}

static void check_name(struct verification *verification, uint64_t offset, const char *what,
                       const char *name)
{
    if (!*name) {
        broken(verification, RULE_NAME, offset, "%s has no name", what);
    } else if (!text_is_utf8(name)) {
        broken(verification, RULE_NAME, offset, "%s has a name that is not UTF-8", what);
    }
}

/* Another kind of record comes in between. */
static void end_group(struct verification *verification)
{
    if (verification->debug.offset) {
        broken(verification, RULE_GROUP, verification->debug.offset,
               "a DEBUG_INFO without a LOAD behind it");
    }
    if (verification->unwinding_offset) {
        broken(verification, RULE_GROUP, verification->unwinding_offset,
               "an UNWINDING_INFO without a LOAD behind it");
    }
    if (verification->samply.offset) {
        broken(verification, RULE_GROUP, verification->samply.offset,
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
        broken(verification, RULE_STAMP, record->offset,
               "a %s is stamped %" PRIu64 ", before the header's %" PRIu64,
               text_record_id(record->id), record->timestamp, start);
    }
    if (record->timestamp < verification->group_stamp) {
        broken(verification, RULE_STAMP, record->offset,
               "a %s is stamped %" PRIu64 ", before the %" PRIu64 " of its group",
               text_record_id(record->id), record->timestamp, verification->group_stamp);
    }
    verification->group_stamp = record->timestamp;
}

static void check_tree(struct verification *verification, uint64_t offset)
{
    const struct trailer *trailer = &verification->trailer;
    for (uint32_t i = 0; i < trailer->node_count; i++) {
        uint64_t method = trailer->nodes[i].method;
        if (method && !trailer_names_has_method(verification->names, method)) {
            broken(verification, RULE_TRAILER_NAMES, offset,
                   "node %u of the inline tree is method %" PRIu64 ", which is not defined", i,
                   method);
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
            broken(verification, RULE_TRAILER_TREE, offset,
                   "the nodes of the inline tree are not depth-first (node %u)", i);
            break;
        }
    }
    uint64_t end = 0;
    for (uint32_t i = 0; i < trailer->range_count; i++) {
        end += trailer->ranges[i].size;
        if (trailer->ranges[i].size == 0) {
            broken(verification, RULE_TRAILER_TREE, offset, "range %u of the inline tree is empty",
                   i);
            break;
        }
    }
    verification->debug.ranges_end = end;
}

static void check_facts(struct verification *verification, uint64_t offset)
{
    const int64_t *facts = verification->trailer.facts;
    int64_t kind = facts[JITDUMP_CODE_KIND];
    if (kind == 0 || kind > JITDUMP_KIND_INTERPRETER) {
        broken(verification, RULE_TRAILER_FACTS, offset, "code of an unknown kind %" PRId64, kind);
    }
    if (facts[JITDUMP_CODE_TIER] > 4) {
        broken(verification, RULE_TRAILER_FACTS, offset, "code of an unknown tier %" PRId64,
               facts[JITDUMP_CODE_TIER]);
    }
}

/* The strings of a trailer that decodes. */
static void check_definitions(struct verification *verification, uint64_t offset,
                              const uint8_t *bytes, size_t size)
{
    const uint8_t *at;
    const uint8_t *end;
    const char *why;
    if (trailer_find(verification->reader, bytes, size, &at, &end, &why) <= 0) {
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
                broken(verification, RULE_TRAILER_NAMES, offset,
                       "file %" PRIu64 " of the trailer has a path that is not UTF-8", id);
            }
        }
        while (section.tag == JITDUMP_TRAILER_METHODS &&
               trailer_method_next(&section, &id, &method, &why) > 0) {
            if (!*method.name || !text_is_utf8(method.name)) {
                broken(verification, RULE_TRAILER_NAMES, offset,
                       "method %" PRIu64 " of the trailer has a name that is empty or not UTF-8",
                       id);
            }
        }
    }
}

static void check_trailer(struct verification *verification, uint64_t offset, const uint8_t *bytes,
                          size_t size)
{
    const char *why;
    if (trailer_decode(verification->reader, bytes, size, verification->names,
                       &verification->trailer, &why) < 0) {
        broken(verification, RULE_TRAILER, offset, "a broken trailer: %s", why);
    } else {
        check_definitions(verification, offset, bytes, size);
    }
    if (verification->trailer.undefined_files) {
        broken(verification, RULE_TRAILER_NAMES, offset,
               "the trailer's methods name %u files that are not defined",
               verification->trailer.undefined_files);
    }
    check_tree(verification, offset);
    check_facts(verification, offset);
    memcpy(verification->debug.facts, verification->trailer.facts,
           sizeof(verification->debug.facts));
}

static void check_debug_info(struct verification *verification,
                             const struct jitdump_record_view *record)
{
    struct pending_debug *debug = &verification->debug;
    if (debug->offset) {
        end_group(verification);
    }
    check_stamp(verification, record);
    *debug = (struct pending_debug){
        .offset = record->offset, .address = record->debug_info.code_addr, .lowest = UINT64_MAX};
    for (size_t i = 0; i < sizeof(debug->facts) / sizeof(*debug->facts); i++) {
        debug->facts[i] = -1;
    }

    struct jitdump_entry_walk walk = {0};
    struct jitdump_entry entry;
    bool sorted = true;
    bool lines = true;
    const char *checked = NULL;
    int more;
    while ((more = jitdump_entry_next(verification->reader, record, &walk, &entry)) > 0) {
        if (sorted && walk.index > 1 && entry.address < debug->highest) {
            sorted = false;
            broken(verification, RULE_ROW_ORDER, record->offset,
                   "row %" PRIu64 " starts before the one ahead of it", walk.index - 1);
        }
        if (lines && entry.line == 0) {
            lines = false;
            broken(verification, RULE_ROW_LINE, record->offset, "row %" PRIu64 " has line 0",
                   walk.index - 1);
        }
        if (!checked || strcmp(checked, entry.file) != 0) {
            check_name(verification, record->offset, "the file of a row", entry.file);
            checked = entry.file;
        }
        debug->lowest = entry.address < debug->lowest ? entry.address : debug->lowest;
        debug->highest = entry.address > debug->highest ? entry.address : debug->highest;
    }
    if (more < 0) {
        broken(verification, RULE_RECORD, record->offset, "a DEBUG_INFO ends inside row %" PRIu64,
               walk.index);
        return;
    }
    check_trailer(verification, record->offset, record->debug_info.entries + walk.at,
                  record->debug_info.entries_size - walk.at);
}

/* The offsets that a trailer gives must lie in the code. */
static void check_fact_offsets(struct verification *verification, uint64_t code_size)
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
        int64_t at = verification->debug.facts[offsets[i].key];
        if (at >= 0 && (uint64_t)at > code_size) {
            broken(verification, RULE_TRAILER_FACTS, verification->debug.offset,
                   "the %s is behind the code", offsets[i].what);
        }
    }
}

static void check_debug_of_load(struct verification *verification,
                                const struct jitdump_record_view *load)
{
    struct pending_debug *debug = &verification->debug;
    if (!debug->offset) {
        return;
    }
    if (debug->address != load->load.code_addr) {
        broken(verification, RULE_ADDRESS, debug->offset,
               "a DEBUG_INFO for %#" PRIx64 " stands before the LOAD of %#" PRIx64, debug->address,
               load->load.code_addr);
    } else if (debug->lowest <= debug->highest &&
               (debug->lowest < load->load.code_addr ||
                debug->highest - load->load.code_addr > load->load.code_size)) {
        broken(verification, RULE_ROW_INSIDE, debug->offset,
               "rows from %#" PRIx64 " to %#" PRIx64 " are not inside the code at %#" PRIx64
               "..%#" PRIx64,
               debug->lowest, debug->highest, load->load.code_addr,
               load->load.code_addr + load->load.code_size);
    }
    if (debug->ranges_end > load->load.code_size) {
        broken(verification, RULE_TRAILER_TREE, debug->offset,
               "the inline tree covers %" PRIu64 " bytes of %" PRIu64, debug->ranges_end,
               load->load.code_size);
    }
    check_fact_offsets(verification, load->load.code_size);
    debug->offset = 0;
}

static int check_load(struct verification *verification, const struct jitdump_record_view *record)
{
    check_stamp(verification, record);
    check_pid(verification, record->offset, record->load.pid);
    check_name(verification, record->offset, "a LOAD", record->load.name);
    if (record->load.excess) {
        broken(verification, RULE_EXCESS, record->offset,
               "%zu bytes behind the code belong to nothing", record->load.excess);
    }
    check_debug_of_load(verification, record);
    samply_check_load(&verification->samply, record->load.code_size, verification->report,
                      verification->context);
    verification->unwinding_offset = 0;
    verification->samply = (struct samply_pending){0};
    verification->group_stamp = 0;

    if (reserve_slot(verification) < 0) {
        return -ENOMEM;
    }
    bool *used;
    struct loaded *loaded = find_slot(verification, record->load.code_index, &used);
    if (*used) {
        broken(verification, RULE_CODE_INDEX, record->offset,
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
    check_stamp(verification, record);
    verification->group_stamp = 0;
    check_pid(verification, record->offset, record->move.pid);
    bool *used = NULL;
    struct loaded *loaded =
        verification->slot_count ? find_slot(verification, record->move.code_index, &used) : NULL;
    if (!loaded || !*used) {
        broken(verification, RULE_MOVE, record->offset,
               "a MOVE of code index %" PRIu64 ", which was never loaded", record->move.code_index);
        return;
    }
    if (loaded->address != record->move.old_code_addr) {
        broken(verification, RULE_MOVE, record->offset,
               "a MOVE from %#" PRIx64 " of code that is at %#" PRIx64, record->move.old_code_addr,
               loaded->address);
    }
    if (loaded->size != record->move.code_size) {
        broken(verification, RULE_MOVE, record->offset,
               "a MOVE of %" PRIu64 " bytes of code that has %" PRIu64, record->move.code_size,
               loaded->size);
    }
    loaded->address = record->move.new_code_addr;
}

static void check_unwinding_info(struct verification *verification,
                                 const struct jitdump_record_view *record)
{
    if (verification->unwinding_offset) {
        broken(verification, RULE_GROUP, record->offset, "two UNWINDING_INFOs for one LOAD");
    }
    check_stamp(verification, record);
    verification->unwinding_offset = record->offset;
    if (record->unwinding_info.eh_frame_hdr_size == 0) {
        broken(verification, RULE_UNWINDING, record->offset,
               "an UNWINDING_INFO without a header table, which perf gives to the next LOAD too");
    }
    if (record->unwinding_info.mapped_size != 0 &&
        record->unwinding_info.mapped_size != record->unwinding_info.data_size) {
        broken(verification, RULE_UNWINDING, record->offset,
               "an UNWINDING_INFO of %" PRIu64 " bytes says that %" PRIu64 " are mapped",
               record->unwinding_info.data_size, record->unwinding_info.mapped_size);
    }
}

static int check_record(struct verification *verification, const struct jitdump_record_view *record)
{
    if (verification->close_offset) {
        broken(verification, RULE_CLOSE, record->offset, "a %s behind CLOSE",
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
        end_group(verification);
        check_stamp(verification, record);
        verification->group_stamp = 0;
        verification->close_offset = record->offset;
        if (record->payload_size) {
            broken(verification, RULE_CLOSE, record->offset, "a CLOSE of %u bytes",
                   record->total_size);
        }
        break;
    default:
        if (samply_knows(record->id)) {
            check_stamp(verification, record);
            samply_check(&verification->samply, verification->reader, record, verification->report,
                         verification->context);
        } else {
            broken(verification, RULE_ID, record->offset,
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
            broken(verification, RULE_RECORD, record.offset, "%s",
                   jitdump_reader_error(verification->reader));
            break;
        case JITDUMP_TORN:
            broken(verification, RULE_TORN, record.offset, "torn tail: %s",
                   jitdump_reader_error(verification->reader));
            return 0;
        case JITDUMP_BAD:
            broken(verification, RULE_RECORD, record.offset, "%s; what follows was not looked at",
                   jitdump_reader_error(verification->reader));
            return 0;
        case JITDUMP_END:
            if (group_is_open(verification)) {
                broken(verification, RULE_TORN, record.offset,
                       "torn tail: the file ends before the LOAD of a group");
            }
            return 0;
        }
    }
}

int verify_dump(struct jitdump_reader *reader, verify_report report, void *context)
{
    struct verification verification = {
        .reader = reader, .report = report, .context = context, .names = trailer_names_new()};
    int error = -ENOMEM;
    if (verification.names) {
        check_header(&verification);
        error = check_records(&verification);
    }
    trailer_names_free(verification.names);
    trailer_free(&verification.trailer);
    free(verification.loaded);
    free(verification.used);
    return error;
}

const char *verify_rule_text(enum verify_rule rule)
{
    static const char *const texts[RULE_COUNT] = {
        [RULE_HEADER] = "the header is as readers want it",
        [RULE_TORN] = "the file ends at a record's end",
        [RULE_RECORD] = "a record's sizes fit together",
        [RULE_ID] = "a record is of a known kind",
        [RULE_CLOSE] = "CLOSE is the last record, and a bare one",
        [RULE_GROUP] = "what describes code stands before its LOAD",
        [RULE_ADDRESS] = "a DEBUG_INFO is for the LOAD behind it",
        [RULE_STAMP] = "stamps do not go backwards in a group",
        [RULE_CODE_INDEX] = "each LOAD has a code index of its own",
        [RULE_PID] = "all records are of one process",
        [RULE_NAME] = "names are not empty, and UTF-8",
        [RULE_EXCESS] = "nothing stands behind the code of a LOAD",
        [RULE_MOVE] = "a MOVE moves code that is there",
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
