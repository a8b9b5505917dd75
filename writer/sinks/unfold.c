#include "writer/sinks/unfold.h"

#include <errno.h>
#include <string.h>

static void put_text(struct buffer *names, const char *text)
{
    buffer_put(names, text, strlen(text));
}

static void put_number(struct buffer *names, uint32_t number)
{
    char digits[10];
    size_t at = sizeof(digits);
    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    buffer_put(names, digits + at, sizeof(digits) - at);
}

static void put_position(struct buffer *names, const struct method *method)
{
    if (!method || !method->file || method->first_line == 0) {
        return;
    }
    const char *slash = strrchr(method->file->path, '/');
    put_text(names, "(");
    put_text(names, slash ? slash + 1 : method->file->path);
    put_text(names, ":");
    put_number(names, method->first_line);
    put_text(names, ")");
}

static const char *suffix_of(const struct code *code)
{
    if (code->facts.kind == JITDUMP_KIND_INTERPRETER) {
        return "_[0]";
    }
    if (!code->method) {
        return "";
    }
    return code->facts.tier >= 1 && code->facts.tier <= 3 ? "_[1]" : "_[j]";
}

static void put_compiled(struct buffer *names, const struct code *code,
                         const struct unfold_style *style)
{
    put_text(names, code->name);
    if (style->positions) {
        put_position(names, code->method);
    }
}

static void put_inlined(struct buffer *names, const struct method *method,
                        const struct unfold_style *style)
{
    put_text(names, method->name);
    if (style->positions) {
        put_position(names, method);
    }
}

/* From the compiled method down; the tree tells the way up, so this one recurses. */
static void put_chain(struct buffer *names, const struct code *code, uint32_t node,
                      const struct unfold_style *style)
{
    if (node == 0) {
        put_compiled(names, code, style);
        put_text(names, style->suffixes ? suffix_of(code) : "");
        return;
    }
    put_chain(names, code, code->nodes[node].parent, style);
    put_text(names, "->");
    put_inlined(names, code->nodes[node].method, style);
    put_text(names, style->suffixes ? "_[i]" : "");
}

static void put_name(struct buffer *names, const struct code *code, uint32_t node,
                     const struct unfold_style *style)
{
    if (node == 0 || style->mode == UNFOLD_ALL) {
        put_chain(names, code, node, style);
    } else {
        put_inlined(names, code->nodes[node].method, style);
        if (style->mode == UNFOLD_LEAF) {
            put_text(names, " in ");
            put_compiled(names, code, style);
        }
        put_text(names, style->suffixes ? "_[i]" : "");
    }
    buffer_put(names, "", 1);
}

/* Appends an entry that begins here, unless the one before is of the same name and goes on. */
static void begin_entry(struct unfold *unfold, const struct code *code, uint32_t offset,
                        uint32_t node, const struct unfold_style *style)
{
    size_t name = unfold->names.size;
    put_name(&unfold->names, code, node, style);
    size_t count = unfold->entries.size / sizeof(struct unfold_entry);
    if (count > 0 && !unfold->names.failed) {
        const struct unfold_entry *last = unfold_entry(unfold, (int)count - 1);
        const char *names = (const char *)unfold->names.bytes;
        if (strcmp(names + last->name, names + name) == 0) {
            unfold->names.size = name;
            return;
        }
    }
    struct unfold_entry entry = {.offset = offset, .name = (uint32_t)name};
    buffer_put(&unfold->entries, &entry, sizeof(entry));
}

int unfold_code(struct unfold *unfold, const struct code *code, const struct unfold_style *style)
{
    buffer_clear(&unfold->entries);
    buffer_clear(&unfold->names);
    bool fold = style->mode == UNFOLD_OFF || code->range_count == 0;
    if (fold) {
        begin_entry(unfold, code, 0, 0, style);
    }
    for (uint32_t i = 0; i < code->range_count && !fold; i++) {
        const struct inline_range *range = &code->ranges[i];
        if (i == 0 || range->node != range[-1].node) {
            begin_entry(unfold, code, range->offset, range->node, style);
        }
    }
    if (!fold && code->ranges_end < code->size) {
        begin_entry(unfold, code, code->ranges_end, 0, style);
    }
    if (unfold->entries.failed || unfold->names.failed) {
        return -ENOMEM;
    }
    size_t count = unfold->entries.size / sizeof(struct unfold_entry);
    struct unfold_entry *entries = (struct unfold_entry *)unfold->entries.bytes;
    for (size_t i = 0; i < count; i++) {
        uint32_t end = i + 1 < count ? entries[i + 1].offset : (uint32_t)code->size;
        entries[i].size = end - entries[i].offset;
    }
    return (int)count;
}

void unfold_free(struct unfold *unfold)
{
    buffer_free(&unfold->entries);
    buffer_free(&unfold->names);
}
