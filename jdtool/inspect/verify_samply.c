#include "jdtool/inspect/verify_samply.h"

#include "jdtool/base/text.h"

#include <inttypes.h>

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

void samply_check(struct samply_pending *pending, const struct jitdump_reader *reader,
                  const struct jitdump_record_view *record, const struct verify_output *output)
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

void samply_check_load(const struct samply_pending *pending, uint64_t code_size,
                       const struct verify_output *output)
{
    struct check check = {output, pending->offset};
    if (pending->end > code_size) {
        broken(&check, "a DEBUG_INFO2 speaks of offset %" PRIu64 " in code of %" PRIu64 " bytes",
               pending->end, code_size);
    }
}
