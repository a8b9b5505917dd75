/*
 * JVMS chapter 6 as a table: each opcode's name and the shape of its operands. All multi-byte
 * numbers are big-endian.
 */
#include "jdtool/inspect/bytecodes.h"

#include "jdtool/base/array.h"
#include "jdtool/base/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The constant pool ---- */

enum {
    CONSTANT_UTF8 = 1,
    CONSTANT_INTEGER = 3,
    CONSTANT_FLOAT = 4,
    CONSTANT_LONG = 5,
    CONSTANT_DOUBLE = 6,
    CONSTANT_CLASS = 7,
    CONSTANT_STRING = 8,
    CONSTANT_FIELD = 9,
    CONSTANT_METHOD = 10,
    CONSTANT_INTERFACE_METHOD = 11,
    CONSTANT_NAME_AND_TYPE = 12,
    CONSTANT_METHOD_HANDLE = 15,
    CONSTANT_METHOD_TYPE = 16,
    CONSTANT_DYNAMIC = 17,
    CONSTANT_INVOKE_DYNAMIC = 18,
    CONSTANT_MODULE = 19,
    CONSTANT_PACKAGE = 20,
};

static uint32_t u2(const uint8_t *p)
{
    return (uint32_t)p[0] << 8 | p[1];
}

static uint32_t u4(const uint8_t *p)
{
    return u2(p) << 16 | u2(p + 2);
}

static int32_t s2(const uint8_t *p)
{
    return (int16_t)u2(p);
}

/* Bytes of an entry at p, its tag included; 0: it is broken. */
static size_t entry_size(const uint8_t *p, size_t left)
{
    static const uint8_t sizes[] = {
        [CONSTANT_INTEGER] = 5,
        [CONSTANT_FLOAT] = 5,
        [CONSTANT_LONG] = 9,
        [CONSTANT_DOUBLE] = 9,
        [CONSTANT_CLASS] = 3,
        [CONSTANT_STRING] = 3,
        [CONSTANT_FIELD] = 5,
        [CONSTANT_METHOD] = 5,
        [CONSTANT_INTERFACE_METHOD] = 5,
        [CONSTANT_NAME_AND_TYPE] = 5,
        [CONSTANT_METHOD_HANDLE] = 4,
        [CONSTANT_METHOD_TYPE] = 3,
        [CONSTANT_DYNAMIC] = 5,
        [CONSTANT_INVOKE_DYNAMIC] = 5,
        [CONSTANT_MODULE] = 3,
        [CONSTANT_PACKAGE] = 3,
    };
    size_t size = 0;
    if (p[0] == CONSTANT_UTF8) {
        size = left >= 3 ? 3 + u2(p + 1) : 0;
    } else if (p[0] < sizeof(sizes)) {
        size = sizes[p[0]];
    }
    return size <= left ? size : 0;
}

bool constant_pool_open(struct constant_pool *pool, const uint8_t *bytes, size_t size,
                        uint32_t count)
{
    *pool = (struct constant_pool){.bytes = bytes, .count = count};
    pool->offsets = calloc(count ? count : 1, sizeof(*pool->offsets));
    if (!pool->offsets) {
        *pool = (struct constant_pool){0};
        return false;
    }
    /* Offset 0 says "none", so offsets are those plus one. */
    size_t at = 0;
    for (uint32_t i = 1; i < count && at < size; i++) {
        size_t entry = entry_size(bytes + at, size - at);
        if (entry == 0) {
            break;
        }
        pool->offsets[i] = (uint32_t)at + 1;
        if (bytes[at] == CONSTANT_LONG || bytes[at] == CONSTANT_DOUBLE) {
            i++; /* takes two numbers */
        }
        at += entry;
    }
    pool->used = at;
    return true;
}

void constant_pool_close(struct constant_pool *pool)
{
    free(pool->offsets);
    *pool = (struct constant_pool){0};
}

/* The entry of that number, at its tag; NULL: none of that tag (0: any). */
static const uint8_t *constant(const struct constant_pool *pool, uint32_t index, uint8_t tag)
{
    if (index >= pool->count || !pool->bytes || pool->offsets[index] == 0) {
        return NULL;
    }
    const uint8_t *entry = pool->bytes + pool->offsets[index] - 1;
    return tag == 0 || entry[0] == tag ? entry : NULL;
}

/* ---- Text ---- */

static void put_format(struct bytes *out, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void put_format(struct bytes *out, const char *format, ...)
{
    char text[96];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (n > 0) {
        bytes_put(out, text, (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1);
    }
}

/* Appends the text of that number, on one line and not endlessly long; "?": it is none. */
static void constant_pool_put(struct bytes *out, const struct constant_pool *pool, uint32_t index)
{
    enum { LONGEST = 200 };
    const uint8_t *entry = constant(pool, index, CONSTANT_UTF8);
    if (!entry) {
        put_format(out, "?");
        return;
    }
    const char *text = (const char *)entry + 3;
    size_t size = u2(entry + 1);
    for (size_t at = 0; at < size;) {
        size_t character = text_utf8_size(text + at, size - at);
        if (at >= LONGEST) {
            put_format(out, "...");
            return;
        }
        if (character == 0 || (uint8_t)text[at] < ' ' || text[at] == 0x7f) {
            put_format(out, "\\x%02x", (uint8_t)text[at++]);
        } else {
            bytes_put(out, text + at, character);
            at += character;
        }
    }
}

/* Whether the entry of that number is this text. */
static bool constant_pool_is(const struct constant_pool *pool, uint32_t index, const char *text)
{
    const uint8_t *entry = constant(pool, index, CONSTANT_UTF8);
    return entry && u2(entry + 1) == strlen(text) && memcmp(entry + 3, text, strlen(text)) == 0;
}

/* The string that an entry of one reference leads to: a class's name, a String's text. */
static void put_referred(struct bytes *out, const struct constant_pool *pool, uint32_t index,
                         uint8_t tag)
{
    const uint8_t *entry = constant(pool, index, tag);
    constant_pool_put(out, pool, entry ? u2(entry + 1) : 0);
}

static void put_name_and_type(struct bytes *out, const struct constant_pool *pool, uint32_t index)
{
    const uint8_t *entry = constant(pool, index, CONSTANT_NAME_AND_TYPE);
    constant_pool_put(out, pool, entry ? u2(entry + 1) : 0);
    put_format(out, ":");
    constant_pool_put(out, pool, entry ? u2(entry + 3) : 0);
}

static void put_constant(struct bytes *out, const struct constant_pool *pool, uint32_t index)
{
    put_format(out, " #%u", index);
    const uint8_t *entry = constant(pool, index, 0);
    if (!entry) {
        return;
    }
    put_format(out, "  // ");
    switch (entry[0]) {
    case CONSTANT_INTEGER:
        put_format(out, "int %d", (int)u4(entry + 1));
        break;
    case CONSTANT_LONG:
        put_format(out, "long %lld", (long long)((uint64_t)u4(entry + 1) << 32 | u4(entry + 5)));
        break;
    case CONSTANT_FLOAT: {
        uint32_t bits = u4(entry + 1);
        float value;
        memcpy(&value, &bits, sizeof(value));
        put_format(out, "float %g", (double)value);
        break;
    }
    case CONSTANT_DOUBLE: {
        uint64_t bits = (uint64_t)u4(entry + 1) << 32 | u4(entry + 5);
        double value;
        memcpy(&value, &bits, sizeof(value));
        put_format(out, "double %g", value);
        break;
    }
    case CONSTANT_CLASS:
        constant_pool_put(out, pool, u2(entry + 1));
        break;
    case CONSTANT_STRING:
        put_format(out, "\"");
        constant_pool_put(out, pool, u2(entry + 1));
        put_format(out, "\"");
        break;
    case CONSTANT_FIELD:
    case CONSTANT_METHOD:
    case CONSTANT_INTERFACE_METHOD:
        put_referred(out, pool, u2(entry + 1), CONSTANT_CLASS);
        put_format(out, ".");
        put_name_and_type(out, pool, u2(entry + 3));
        break;
    case CONSTANT_DYNAMIC:
    case CONSTANT_INVOKE_DYNAMIC:
        put_name_and_type(out, pool, u2(entry + 3));
        break;
    default:
        put_format(out, "constant of tag %u", entry[0]);
        break;
    }
}

/* ---- Instructions ---- */

enum shape {
    PLAIN,
    BYTE,             /* s1 */
    SHORT,            /* s2 */
    LOCAL,            /* u1, u2 behind wide */
    CONSTANT1,        /* u1, an entry of the constant pool */
    CONSTANT2,        /* u2 */
    BRANCH,           /* s2, relative to the instruction */
    BRANCH_WIDE,      /* s4 */
    INCREMENT,        /* local and s1, both twice as long behind wide */
    INVOKE_INTERFACE, /* u2, count, 0 */
    INVOKE_DYNAMIC,   /* u2, 0, 0 */
    NEW_ARRAY,        /* u1, a primitive type */
    MULTI_ARRAY,      /* u2, dimensions */
    TABLE_SWITCH,
    LOOKUP_SWITCH,
    WIDE,
};

static const struct opcode {
    const char *name;
    enum shape shape;
} opcodes[] = {
    /* clang-format off */
    {"nop", PLAIN}, {"aconst_null", PLAIN}, {"iconst_m1", PLAIN}, {"iconst_0", PLAIN},
    {"iconst_1", PLAIN}, {"iconst_2", PLAIN}, {"iconst_3", PLAIN}, {"iconst_4", PLAIN},
    {"iconst_5", PLAIN}, {"lconst_0", PLAIN}, {"lconst_1", PLAIN}, {"fconst_0", PLAIN},
    {"fconst_1", PLAIN}, {"fconst_2", PLAIN}, {"dconst_0", PLAIN}, {"dconst_1", PLAIN},
    {"bipush", BYTE}, {"sipush", SHORT}, {"ldc", CONSTANT1}, {"ldc_w", CONSTANT2},
    {"ldc2_w", CONSTANT2}, {"iload", LOCAL}, {"lload", LOCAL}, {"fload", LOCAL}, {"dload", LOCAL},
    {"aload", LOCAL}, {"iload_0", PLAIN}, {"iload_1", PLAIN}, {"iload_2", PLAIN},
    {"iload_3", PLAIN}, {"lload_0", PLAIN}, {"lload_1", PLAIN}, {"lload_2", PLAIN},
    {"lload_3", PLAIN}, {"fload_0", PLAIN}, {"fload_1", PLAIN}, {"fload_2", PLAIN},
    {"fload_3", PLAIN}, {"dload_0", PLAIN}, {"dload_1", PLAIN}, {"dload_2", PLAIN},
    {"dload_3", PLAIN}, {"aload_0", PLAIN}, {"aload_1", PLAIN}, {"aload_2", PLAIN},
    {"aload_3", PLAIN}, {"iaload", PLAIN}, {"laload", PLAIN}, {"faload", PLAIN}, {"daload", PLAIN},
    {"aaload", PLAIN}, {"baload", PLAIN}, {"caload", PLAIN}, {"saload", PLAIN}, {"istore", LOCAL},
    {"lstore", LOCAL}, {"fstore", LOCAL}, {"dstore", LOCAL}, {"astore", LOCAL}, {"istore_0", PLAIN},
    {"istore_1", PLAIN}, {"istore_2", PLAIN}, {"istore_3", PLAIN}, {"lstore_0", PLAIN},
    {"lstore_1", PLAIN}, {"lstore_2", PLAIN}, {"lstore_3", PLAIN}, {"fstore_0", PLAIN},
    {"fstore_1", PLAIN}, {"fstore_2", PLAIN}, {"fstore_3", PLAIN}, {"dstore_0", PLAIN},
    {"dstore_1", PLAIN}, {"dstore_2", PLAIN}, {"dstore_3", PLAIN}, {"astore_0", PLAIN},
    {"astore_1", PLAIN}, {"astore_2", PLAIN}, {"astore_3", PLAIN}, {"iastore", PLAIN},
    {"lastore", PLAIN}, {"fastore", PLAIN}, {"dastore", PLAIN}, {"aastore", PLAIN},
    {"bastore", PLAIN}, {"castore", PLAIN}, {"sastore", PLAIN}, {"pop", PLAIN}, {"pop2", PLAIN},
    {"dup", PLAIN}, {"dup_x1", PLAIN}, {"dup_x2", PLAIN}, {"dup2", PLAIN}, {"dup2_x1", PLAIN},
    {"dup2_x2", PLAIN}, {"swap", PLAIN}, {"iadd", PLAIN}, {"ladd", PLAIN}, {"fadd", PLAIN},
    {"dadd", PLAIN}, {"isub", PLAIN}, {"lsub", PLAIN}, {"fsub", PLAIN}, {"dsub", PLAIN},
    {"imul", PLAIN}, {"lmul", PLAIN}, {"fmul", PLAIN}, {"dmul", PLAIN}, {"idiv", PLAIN},
    {"ldiv", PLAIN}, {"fdiv", PLAIN}, {"ddiv", PLAIN}, {"irem", PLAIN}, {"lrem", PLAIN},
    {"frem", PLAIN}, {"drem", PLAIN}, {"ineg", PLAIN}, {"lneg", PLAIN}, {"fneg", PLAIN},
    {"dneg", PLAIN}, {"ishl", PLAIN}, {"lshl", PLAIN}, {"ishr", PLAIN}, {"lshr", PLAIN},
    {"iushr", PLAIN}, {"lushr", PLAIN}, {"iand", PLAIN}, {"land", PLAIN}, {"ior", PLAIN},
    {"lor", PLAIN}, {"ixor", PLAIN}, {"lxor", PLAIN}, {"iinc", INCREMENT}, {"i2l", PLAIN},
    {"i2f", PLAIN}, {"i2d", PLAIN}, {"l2i", PLAIN}, {"l2f", PLAIN}, {"l2d", PLAIN}, {"f2i", PLAIN},
    {"f2l", PLAIN}, {"f2d", PLAIN}, {"d2i", PLAIN}, {"d2l", PLAIN}, {"d2f", PLAIN}, {"i2b", PLAIN},
    {"i2c", PLAIN}, {"i2s", PLAIN}, {"lcmp", PLAIN}, {"fcmpl", PLAIN}, {"fcmpg", PLAIN},
    {"dcmpl", PLAIN}, {"dcmpg", PLAIN}, {"ifeq", BRANCH}, {"ifne", BRANCH}, {"iflt", BRANCH},
    {"ifge", BRANCH}, {"ifgt", BRANCH}, {"ifle", BRANCH}, {"if_icmpeq", BRANCH},
    {"if_icmpne", BRANCH}, {"if_icmplt", BRANCH}, {"if_icmpge", BRANCH}, {"if_icmpgt", BRANCH},
    {"if_icmple", BRANCH}, {"if_acmpeq", BRANCH}, {"if_acmpne", BRANCH}, {"goto", BRANCH},
    {"jsr", BRANCH}, {"ret", LOCAL}, {"tableswitch", TABLE_SWITCH}, {"lookupswitch", LOOKUP_SWITCH},
    {"ireturn", PLAIN}, {"lreturn", PLAIN}, {"freturn", PLAIN}, {"dreturn", PLAIN},
    {"areturn", PLAIN}, {"return", PLAIN}, {"getstatic", CONSTANT2}, {"putstatic", CONSTANT2},
    {"getfield", CONSTANT2}, {"putfield", CONSTANT2}, {"invokevirtual", CONSTANT2},
    {"invokespecial", CONSTANT2}, {"invokestatic", CONSTANT2},
    {"invokeinterface", INVOKE_INTERFACE}, {"invokedynamic", INVOKE_DYNAMIC}, {"new", CONSTANT2},
    {"newarray", NEW_ARRAY}, {"anewarray", CONSTANT2}, {"arraylength", PLAIN}, {"athrow", PLAIN},
    {"checkcast", CONSTANT2}, {"instanceof", CONSTANT2}, {"monitorenter", PLAIN},
    {"monitorexit", PLAIN}, {"wide", WIDE}, {"multianewarray", MULTI_ARRAY}, {"ifnull", BRANCH},
    {"ifnonnull", BRANCH}, {"goto_w", BRANCH_WIDE}, {"jsr_w", BRANCH_WIDE},
    /* clang-format on */
};
_Static_assert(sizeof(opcodes) / sizeof(*opcodes) == 0xca, "every opcode up to jsr_w");

/* Bytes of operands behind the opcode, switches and wide aside. */
static const uint8_t operand_bytes[] = {
    [PLAIN] = 0,          [BYTE] = 1,
    [SHORT] = 2,          [LOCAL] = 1,
    [CONSTANT1] = 1,      [CONSTANT2] = 2,
    [BRANCH] = 2,         [BRANCH_WIDE] = 4,
    [INCREMENT] = 2,      [INVOKE_INTERFACE] = 4,
    [INVOKE_DYNAMIC] = 4, [NEW_ARRAY] = 1,
    [MULTI_ARRAY] = 3,
};

/* A place to jump to: an offset from the instruction at bci, modulo what a bci can be. */
static unsigned target(size_t bci, uint32_t offset)
{
    return (unsigned)((uint32_t)bci + offset);
}

static void put_operands(struct bytes *out, const struct opcode *opcode, const uint8_t *p,
                         size_t bci, const struct constant_pool *pool)
{
    static const char *const types[] = {"boolean", "char",  "float", "double",
                                        "byte",    "short", "int",   "long"};
    switch (opcode->shape) {
    case BYTE:
        put_format(out, " %d", (int8_t)p[0]);
        break;
    case SHORT:
        put_format(out, " %d", s2(p));
        break;
    case LOCAL:
        put_format(out, " %u", p[0]);
        break;
    case CONSTANT1:
        put_constant(out, pool, p[0]);
        break;
    case CONSTANT2:
    case INVOKE_INTERFACE:
    case INVOKE_DYNAMIC:
        put_constant(out, pool, u2(p));
        break;
    case BRANCH:
        put_format(out, " %u", target(bci, (uint32_t)s2(p)));
        break;
    case BRANCH_WIDE:
        put_format(out, " %u", target(bci, u4(p)));
        break;
    case INCREMENT:
        put_format(out, " %u, %d", p[0], (int8_t)p[1]);
        break;
    case NEW_ARRAY:
        put_format(out, " %s", p[0] >= 4 && p[0] <= 11 ? types[p[0] - 4] : "?");
        break;
    case MULTI_ARRAY:
        put_format(out, " %u", p[2]);
        put_constant(out, pool, u2(p));
        break;
    default:
        break;
    }
}

/* Both kinds of switch, whose tables are aligned to four from the method's start. Returns the
 * instruction's size, 0: it does not fit. */
static size_t put_switch(struct bytes *out, const uint8_t *code, size_t size, size_t bci,
                         bool lookup)
{
    size_t at = (bci + 4) & ~(size_t)3;
    size_t header = lookup ? 8 : 12;
    if (at > size || size - at < header) {
        return 0;
    }
    const uint8_t *p = code + at;
    uint32_t low = lookup ? 0 : u4(p + 4);
    uint64_t count = lookup ? u4(p + 4) : (uint64_t)(int32_t)u4(p + 8) - (int32_t)low + 1;
    size_t entry = lookup ? 8 : 4;
    if (count > (size - at - header) / entry) {
        return 0;
    }
    for (size_t i = 0; i < count; i++) {
        const uint8_t *e = p + header + i * entry;
        put_format(out, " %d: %u,", (int)(lookup ? u4(e) : low + (uint32_t)i),
                   target(bci, u4(e + entry - 4)));
    }
    put_format(out, " default: %u", target(bci, u4(p)));
    return at + header + count * entry - bci;
}

/* wide LOAD u2, wide iinc u2 s2. Returns the instruction's size, 0: it does not fit. */
static size_t put_wide(struct bytes *out, const uint8_t *p, size_t left)
{
    if (left < 2 || p[1] >= sizeof(opcodes) / sizeof(*opcodes)) {
        return 0;
    }
    const struct opcode *opcode = &opcodes[p[1]];
    size_t bytes = opcode->shape == INCREMENT ? 6 : opcode->shape == LOCAL ? 4 : 0;
    if (bytes == 0 || bytes > left) {
        return 0;
    }
    put_format(out, " %s %u", opcode->name, u2(p + 2));
    if (bytes == 6) {
        put_format(out, ", %d", s2(p + 4));
    }
    return bytes;
}

/* Appends one instruction. Returns its size, 0: it does not fit, or is none. */
static size_t put_instruction(struct bytes *out, const uint8_t *code, size_t size, size_t bci,
                              const struct constant_pool *pool)
{
    uint8_t byte = code[bci];
    if (byte >= sizeof(opcodes) / sizeof(*opcodes)) {
        put_format(out, "0x%02x", byte);
        return 0;
    }
    const struct opcode *opcode = &opcodes[byte];
    put_format(out, "%s", opcode->name);
    switch (opcode->shape) {
    case TABLE_SWITCH:
    case LOOKUP_SWITCH:
        return put_switch(out, code, size, bci, opcode->shape == LOOKUP_SWITCH);
    case WIDE:
        return put_wide(out, code + bci, size - bci);
    default:
        if (operand_bytes[opcode->shape] > size - bci - 1) {
            return 0;
        }
        put_operands(out, opcode, code + bci + 1, bci, pool);
        return 1 + (size_t)operand_bytes[opcode->shape];
    }
}

void bytecodes_list(struct bytes *out, const uint8_t *code, size_t size,
                    const struct bytecode_line *lines, uint32_t line_count,
                    const struct constant_pool *pool, size_t limit)
{
    uint32_t line = 0;
    for (size_t bci = 0; bci < size && out->size < limit && !out->failed;) {
        put_format(out, "%5zu: ", bci);
        size_t bytes = put_instruction(out, code, size, bci, pool);
        for (; line < line_count && lines[line].bci <= bci; line++) {
            if (line + 1 == line_count || lines[line + 1].bci > bci) {
                put_format(out, "  // line %u", lines[line].line);
            }
        }
        put_format(out, bytes == 0 ? " (cut off)\n" : "\n");
        if (bytes == 0) {
            break;
        }
        bci += bytes;
    }
}

/* ---- Class files ---- */

/* The format is JVMS chapter 4, ClassFile; numbers are big-endian. */

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

static uint32_t take_u2(struct rest *rest)
{
    const uint8_t *at = skip(rest, 2);
    return at ? u2(at) : 0;
}

static uint32_t take_u4(struct rest *rest)
{
    uint32_t high = take_u2(rest);
    return high << 16 | take_u2(rest);
}

/* An attribute: its name's place in the pool, and its contents. False: there is none. */
static bool next_attribute(struct rest *rest, uint32_t *name, struct rest *contents)
{
    *name = take_u2(rest);
    uint32_t size = take_u4(rest);
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
    return ORDER(left->bci, right->bci);
}

/* A LineNumberTable, of which a method may have several. */
static void add_lines(struct lines *lines, struct rest table)
{
    uint32_t count = take_u2(&table);
    for (uint32_t i = 0; i < count && lines->count < LINES_MAX && table.at < table.end; i++) {
        uint32_t bci = take_u2(&table);
        lines->at[lines->count++] = (struct bytecode_line){bci, take_u2(&table)};
    }
}

/* A Code attribute. */
static void list_code(struct bytes *out, struct rest code, const struct constant_pool *pool,
                      struct lines *lines)
{
    skip(&code, 4); /* max_stack, max_locals */
    uint32_t size = take_u4(&code);
    const uint8_t *bytes = skip(&code, size);
    uint32_t handlers = take_u2(&code);
    skip(&code, (size_t)handlers * 8);
    uint32_t attributes = take_u2(&code);
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
    uint32_t name = take_u2(rest);
    uint32_t descriptor = take_u2(rest);
    uint32_t attributes = take_u2(rest);
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
    uint32_t count = take_u2(rest);
    while (count-- > 0 && rest->at < rest->end) {
        list_member(out, rest, pool, lines);
    }
}

int class_listing(struct bytes *out, const uint8_t *bytes, size_t size)
{
    struct rest rest = {bytes, bytes + size};
    if (take_u4(&rest) != (uint32_t)MAGIC) {
        return 0;
    }
    skip(&rest, 4); /* version */
    uint32_t count = take_u2(&rest);
    struct constant_pool pool;
    struct lines lines = {.at = malloc(LINES_MAX * sizeof *lines.at)};
    if (!lines.at || !constant_pool_open(&pool, rest.at, (size_t)(rest.end - rest.at), count)) {
        free(lines.at);
        return -ENOMEM;
    }
    skip(&rest, pool.used);
    skip(&rest, 6); /* access_flags, this_class, super_class */
    uint32_t interfaces = take_u2(&rest);
    skip(&rest, (size_t)interfaces * 2);
    list_members(out, &rest, &pool, NULL); /* fields */
    list_members(out, &rest, &pool, &lines);
    constant_pool_close(&pool);
    free(lines.at);
    return out->failed ? -ENOMEM : 0;
}
