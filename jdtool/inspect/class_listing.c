/* The format is JVMS chapter 4, ClassFile; numbers are big-endian. */
#include "jdtool/inspect/class_listing.h"

#include "jdtool/inspect/bytecodes.h"

#include <errno.h>
#include <stdio.h>

enum { MAGIC = (int)0xcafebabe, LINES_MAX = 65535 };

/* What is left of a class file; one that ends too early is an empty one. */
struct rest {
    const uint8_t *at;
    const uint8_t *end;
};

static const uint8_t *skip(struct rest *rest, size_t size)
{
    const uint8_t *at = rest->at;
    if ((size_t)(rest->end - at) < size) {
        rest->at = rest->end;
        return NULL;
    }
    rest->at += size;
    return at;
}

static uint32_t u2(struct rest *rest)
{
    const uint8_t *at = skip(rest, 2);
    return at ? (uint32_t)at[0] << 8 | at[1] : 0;
}

static uint32_t u4(struct rest *rest)
{
    uint32_t high = u2(rest);
    return high << 16 | u2(rest);
}

/* An attribute: its name's place in the pool, and its contents. False: there is none. */
static bool next_attribute(struct rest *rest, uint32_t *name, struct rest *contents)
{
    *name = u2(rest);
    uint32_t size = u4(rest);
    const uint8_t *at = skip(rest, size);
    if (!at) {
        return false;
    }
    *contents = (struct rest){at, at + size};
    return true;
}

struct lines {
    struct bytecode_line *at;
    uint32_t count;
};

static int by_bci(const void *a, const void *b)
{
    const struct bytecode_line *left = a;
    const struct bytecode_line *right = b;
    return left->bci < right->bci ? -1 : left->bci > right->bci;
}

/* A LineNumberTable, of which a method may have several. */
static void add_lines(struct lines *lines, struct rest table)
{
    uint32_t count = u2(&table);
    for (uint32_t i = 0; i < count && lines->count < LINES_MAX && table.at < table.end; i++) {
        uint32_t bci = u2(&table);
        lines->at[lines->count++] = (struct bytecode_line){bci, u2(&table)};
    }
}

/* A Code attribute. */
static void list_code(struct bytes *out, struct rest code, const struct constant_pool *pool,
                      struct lines *lines)
{
    skip(&code, 4); /* max_stack, max_locals */
    uint32_t size = u4(&code);
    const uint8_t *bytes = skip(&code, size);
    uint32_t handlers = u2(&code);
    skip(&code, (size_t)handlers * 8);
    uint32_t attributes = u2(&code);
    struct rest contents;
    uint32_t name;
    lines->count = 0;
    while (attributes-- > 0 && next_attribute(&code, &name, &contents)) {
        if (constant_pool_is(pool, name, "LineNumberTable")) {
            add_lines(lines, contents);
        }
    }
    qsort(lines->at, lines->count, sizeof *lines->at, by_bci);
    if (bytes) {
        bytecodes_list(out, bytes, size, lines->at, lines->count, pool, CLASS_LISTING_MAX);
    }
}

/* A field or method. */
static void list_member(struct bytes *out, struct rest *rest, const struct constant_pool *pool,
                        struct lines *lines)
{
    skip(rest, 2); /* access_flags */
    uint32_t name = u2(rest);
    uint32_t descriptor = u2(rest);
    uint32_t attributes = u2(rest);
    struct rest contents;
    uint32_t attribute;
    while (attributes-- > 0 && next_attribute(rest, &attribute, &contents)) {
        if (lines && constant_pool_is(pool, attribute, "Code") && out->size < CLASS_LISTING_MAX) {
            constant_pool_put(out, pool, name);
            constant_pool_put(out, pool, descriptor);
            bytes_u8(out, '\n');
            list_code(out, contents, pool, lines);
        }
    }
}

static void list_members(struct bytes *out, struct rest *rest, const struct constant_pool *pool,
                         struct lines *lines)
{
    uint32_t count = u2(rest);
    while (count-- > 0 && rest->at < rest->end) {
        list_member(out, rest, pool, lines);
    }
}

int class_listing(struct bytes *out, const uint8_t *bytes, size_t size)
{
    struct rest rest = {bytes, bytes + size};
    if (u4(&rest) != (uint32_t)MAGIC) {
        return 0;
    }
    skip(&rest, 4); /* version */
    uint32_t count = u2(&rest);
    struct constant_pool pool;
    struct lines lines = {.at = malloc(LINES_MAX * sizeof *lines.at)};
    if (!lines.at || !constant_pool_open(&pool, rest.at, (size_t)(rest.end - rest.at), count)) {
        free(lines.at);
        return -ENOMEM;
    }
    skip(&rest, pool.used);
    skip(&rest, 6); /* access_flags, this_class, super_class */
    uint32_t interfaces = u2(&rest);
    skip(&rest, (size_t)interfaces * 2);
    list_members(out, &rest, &pool, NULL); /* fields */
    list_members(out, &rest, &pool, &lines);
    constant_pool_close(&pool);
    free(lines.at);
    return out->failed ? -ENOMEM : 0;
}
