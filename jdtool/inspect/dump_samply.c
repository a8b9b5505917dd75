#include "jdtool/inspect/dump_samply.h"

#include "jdtool/base/text.h"

#include <stdio.h>

/* The string at an index that the file gives. */
static void print_indexed(const char **strings, uint32_t count, uint32_t index)
{
    if (index < count) {
        text_print(stdout, strings[index]);
    } else {
        printf("?%u", index);
    }
}

static void print_function(const struct samply_inlines *inlines, uint32_t index)
{
    if (index >= inlines->function_count) {
        printf("?%u", index);
        return;
    }
    const struct samply_function *function = &inlines->functions[index];
    print_indexed(inlines->names, inlines->name_count, function->name_index);
    printf(" (");
    print_indexed(inlines->files, inlines->file_count, function->file_index);
    printf(":%u:%u)", function->start_line, function->start_column);
    if (function->flags) {
        printf(" flags %#x", function->flags);
    }
}

static void print_calls(const struct samply_inlines *inlines)
{
    uint32_t range = 0; /* the next one that no call has taken */
    for (uint32_t i = 0; i < inlines->call_count; i++) {
        const struct samply_inline_call *call = &inlines->calls[i];
        uint32_t indent = call->depth < 64 ? call->depth : 64;
        printf("    call %-4u%*s", i, (int)(indent * 2), "");
        print_function(inlines, call->function_index);
        printf(", called at %u:%u, ranges", call->call_line, call->call_column);
        for (uint32_t k = 0; k < call->range_count && range < inlines->range_count; k++, range++) {
            printf(" +%#x..+%#llx", inlines->ranges[range].offset,
                   (unsigned long long)inlines->ranges[range].offset + inlines->ranges[range].size);
        }
        putchar('\n');
    }
}

static void print_lists(const struct samply_inlines *inlines)
{
    if (inlines->function_count > 0) {
        printf("    function ");
        print_function(inlines, 0);
        putchar('\n');
    }
    print_calls(inlines);
    for (uint32_t i = 0; i < inlines->line_count; i++) {
        const struct samply_line *line = &inlines->lines[i];
        printf("    line +%#-6x ", line->offset);
        print_indexed(inlines->files, inlines->file_count, line->file_index);
        printf(":%u:%u\n", line->line, line->column);
    }
}

static void print_inlines(const struct jitdump_reader *reader,
                          const struct jitdump_record_view *record, bool brief)
{
    struct samply_inlines inlines = {0};
    const char *why;
    if (samply_decode_inlines(reader, record, &inlines, &why) < 0) {
        printf(" broken: %s\n", why);
    } else {
        printf(" functions %u calls %u ranges %u lines %u\n", inlines.function_count,
               inlines.call_count, inlines.range_count, inlines.line_count);
        if (!brief) {
            print_lists(&inlines);
        }
    }
    samply_inlines_free(&inlines);
}

void print_samply_record(const struct jitdump_reader *reader,
                         const struct jitdump_record_view *record, bool brief)
{
    const char *why;
    struct samply_tier_view tier;
    struct samply_source_view source;
    switch (record->id) {
    case SAMPLY_JIT_CODE_DEBUG_INFO2:
        print_inlines(reader, record, brief);
        break;
    case SAMPLY_JIT_TIER:
        if (samply_decode_tier(reader, record, &tier, &why) < 0) {
            printf(" broken: %s\n", why);
            break;
        }
        printf(" color %u name ", tier.color);
        text_print(stdout, tier.name);
        putchar('\n');
        break;
    default:
        if (samply_decode_source(reader, record, &source, &why) < 0) {
            printf(" broken: %s\n", why);
            break;
        }
        printf(" text %u bytes path ", source.text_size);
        text_print(stdout, source.path);
        putchar('\n');
        break;
    }
}
