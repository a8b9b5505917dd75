#include "jdtool/inspect/verify_debug.h"

#include "jdtool/base/text.h"

#include <inttypes.h>
#include <string.h>

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
    if (facts[JITDUMP_CODE_TIER] > 4) {
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

void debug_check(struct debug_rules *rules, struct debug_pending *pending,
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

void debug_check_load(const struct debug_rules *rules, struct debug_pending *pending,
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
