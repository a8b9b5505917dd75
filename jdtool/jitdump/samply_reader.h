/*
 * Decodes samply's record extensions (format/samply.h). As hostile as any other record: all counts
 * are checked against the record's size before memory is asked for.
 */
#ifndef JD_TOOL_SAMPLY_READER_H
#define JD_TOOL_SAMPLY_READER_H

#include "format/samply.h"
#include "jdtool/jitdump/jitdump_reader.h"

/*
 * A DEBUG_INFO2 record in this machine's byte order. Strings point into the record's view; the
 * arrays belong to the struct. Start zeroed, use it again and again, free with samply_inlines_free.
 * Indices inside it are as they are in the file: check them before use.
 */
struct samply_inlines {
    const char **files;
    uint32_t file_count;
    const char **names;
    uint32_t name_count;
    struct samply_function *functions;
    uint32_t function_count;
    struct samply_inline_call *calls;
    uint32_t call_count;
    struct samply_range *ranges;
    uint32_t range_count;
    struct samply_line *lines;
    uint32_t line_count;
};

struct samply_tier_view {
    uint32_t color;
    const char *name;
};

struct samply_source_view {
    const char *path;
    const char *text; /* text_size bytes, without a NUL */
    uint32_t text_size;
};

/* Whether a record's id is one of the three. */
bool samply_knows(uint32_t id);

/* Each decodes a record of its id: 0, or -EINVAL (broken) or -ENOMEM after *why. */
int samply_decode_inlines(const struct jitdump_reader *reader,
                          const struct jitdump_record_view *record, struct samply_inlines *inlines,
                          const char **why);
int samply_decode_tier(const struct jitdump_reader *reader,
                       const struct jitdump_record_view *record, struct samply_tier_view *tier,
                       const char **why);
int samply_decode_source(const struct jitdump_reader *reader,
                         const struct jitdump_record_view *record,
                         struct samply_source_view *source, const char **why);

void samply_inlines_free(struct samply_inlines *inlines);

#endif
