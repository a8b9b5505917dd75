/*
 * Methods, read many at a time: each step follows the pointers of all of them at once.
 *
 *   Method -> ConstMethod, access flags
 *   ConstMethod -> ConstantPool, sizes, numbers of name and descriptor, and in the same piece of
 *       memory the bytecodes and behind them the line table
 *   ConstantPool -> class that it belongs to; its entries stand behind it, two of them Symbols
 *   Symbol -> text
 *
 * A method's name is in the ConstantPool of the version of its class that it is of, so all this is
 * right for methods of a class that was redefined, which JVMTI cannot tell of.
 */
#include "agent/hotspot/hotspot_workspace.h"
#include "agent/hotspot/unsigned5.h"

#include <stdlib.h>

enum { LINES_MAX = 2 * 65536, /* as in agent/methods/method_fetch.c */ };

struct hotspot_workspace *hotspot_workspace(struct hotspot_methods *methods)
{
    if (!methods->workspace) {
        methods->workspace = calloc(1, sizeof(*methods->workspace));
    }
    return methods->workspace;
}

void hotspot_methods_free(struct hotspot_methods *methods)
{
    struct hotspot_workspace *space = methods->workspace;
    if (space) {
        free(space->methods);
        free(space->raw);
        free(space->pieces);
        free(space->small);
        free(space->array);
        free(space->holders);
        free(space->copies);
        free(space->text);
        free(space->lines);
        free(space);
    }
    *methods = (struct hotspot_methods){0};
}

bool hotspot_reserve_methods(struct hotspot_workspace *space, size_t count)
{
    return ARRAY_RESERVE(space->methods, space->room, count) &&
           ARRAY_RESERVE(space->raw, space->raw_room, count) &&
           ARRAY_RESERVE(space->pieces, space->piece_room, 2 * count) && /* two a method at most */
           ARRAY_RESERVE(space->small, space->small_room, 2 * count * SMALL_PIECE);
}

/* Copies `size` bytes of each method's object into its small piece. */
static bool read_small(const struct hotspot *hotspot, struct hotspot_workspace *space, size_t count,
                       uint64_t (*object)(const struct raw_method *), size_t size)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t from = object(&space->raw[i]);
        if (!from) {
            return false;
        }
        space->pieces[i] = (struct memory_piece){from, space->small + i * SMALL_PIECE, size};
    }
    return size <= SMALL_PIECE && memory_read_pieces(hotspot->memory, space->pieces, count);
}

static uint64_t the_method(const struct raw_method *raw)
{
    return raw->address;
}

static uint64_t the_const_method(const struct raw_method *raw)
{
    return raw->const_method;
}

size_t hotspot_reach(const struct hotspot *hotspot, enum field one, enum field other)
{
    size_t a = hotspot->layout.places[one].offset + hotspot->layout.places[one].width;
    size_t b = hotspot->layout.places[other].offset + hotspot->layout.places[other].width;
    return a > b ? a : b;
}

/* Method -> ConstMethod. */
static bool read_heads(const struct hotspot *hotspot, struct hotspot_workspace *space, size_t count)
{
    size_t size = hotspot_reach(hotspot, METHOD_CONST, METHOD_ACCESS);
    if (!read_small(hotspot, space, count, the_method, size)) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        struct raw_method *raw = &space->raw[i];
        const char *copy = space->small + i * SMALL_PIECE;
        raw->const_method = hotspot_pointer(hotspot, copy, size, METHOD_CONST);
        if (!hotspot_integer(hotspot, copy, size, METHOD_ACCESS, &raw->access)) {
            return false;
        }
    }
    return true;
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

/*
 * Of what tells a method from another one that is at its address later: where its ConstMethod and
 * its ConstantPool are, and the numbers of its names in that. All that can be had without reading
 * more than the ConstMethod's head, a copy of which this takes.
 */
static uint64_t identity_of(const struct hotspot *hotspot, const struct raw_method *raw,
                            const char *head)
{
    static const enum field fields[] = {CONST_POOL, CONST_SIZE,      CONST_CODE_SIZE,
                                        CONST_NAME, CONST_SIGNATURE, CONST_IDNUM};
    uint64_t hash = mix(0, raw->const_method);
    for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
        int64_t value = 0;
        (void)hotspot_integer(hotspot, head, hotspot->layout.const_method, fields[i], &value);
        hash = mix(hash, (uint64_t)value);
    }
    return hash;
}

size_t hotspot_const_method_size(const struct hotspot *hotspot, const char *head)
{
    /* JVMS 4.7.3: code_length is less than 65536. Line tables are compressed. */
    enum { CONST_METHOD_MAX = 4 << 20 };
    int64_t words = 0;
    int64_t code = 0;
    (void)hotspot_integer(hotspot, head, hotspot->layout.const_method, CONST_SIZE, &words);
    (void)hotspot_integer(hotspot, head, hotspot->layout.const_method, CONST_CODE_SIZE, &code);
    bool sane = words > 0 && words <= CONST_METHOD_MAX / (int64_t)sizeof(void *) && code >= 0 &&
                code <= UINT16_MAX &&
                (size_t)words * sizeof(void *) >= hotspot->layout.const_method + (size_t)code;
    return sane ? (size_t)words * sizeof(void *) : 0;
}

/* The ConstMethods' heads, and what they tell. */
static bool read_const_heads(const struct hotspot *hotspot, struct hotspot_workspace *space,
                             size_t count)
{
    if (!read_small(hotspot, space, count, the_const_method, hotspot->layout.const_method)) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        const char *copy = space->small + i * SMALL_PIECE;
        space->methods[i] = (struct hotspot_method){
            .address = space->raw[i].address,
            .identity = identity_of(hotspot, &space->raw[i], copy),
        };
        space->raw[i].size = hotspot_const_method_size(hotspot, copy);
        if (space->raw[i].size == 0) {
            return false;
        }
    }
    return true;
}

/* The whole ConstMethods. */
static bool read_const_methods(const struct hotspot *hotspot, struct hotspot_workspace *space,
                               size_t count)
{
    size_t total = 0;
    for (size_t i = 0; i < count; i++) {
        total += space->raw[i].size;
    }
    if (!ARRAY_RESERVE(space->copies, space->copies_room, total)) {
        return false;
    }
    char *copy = space->copies;
    for (size_t i = 0; i < count; i++) {
        struct raw_method *raw = &space->raw[i];
        raw->copy = copy;
        space->pieces[i] = (struct memory_piece){raw->const_method, copy, raw->size};
        copy += raw->size;
    }
    return memory_read_pieces(hotspot->memory, space->pieces, count);
}

/* The heads of the ConstantPools: but for a redefined class's all methods have the same. */
static bool read_pools(const struct hotspot *hotspot, struct hotspot_workspace *space, size_t count,
                       size_t size)
{
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        struct raw_method *raw = &space->raw[i];
        raw->pool = hotspot_pointer(hotspot, raw->copy, raw->size, CONST_POOL);
        if (!raw->pool) {
            return false;
        }
        if (i == 0 || raw->pool != space->raw[i - 1].pool) {
            space->pieces[used] =
                (struct memory_piece){raw->pool, space->small + used * SMALL_PIECE, size};
            used++;
        }
        raw->pool_copy = used - 1;
    }
    return size <= SMALL_PIECE && memory_read_pieces(hotspot->memory, space->pieces, used);
}

/* ConstMethod -> ConstantPool -> Symbols. */
static bool read_symbols(const struct hotspot *hotspot, struct hotspot_workspace *space,
                         size_t count, const uint64_t *holders)
{
    static const enum field fields[2] = {CONST_NAME, CONST_SIGNATURE};
    size_t size = hotspot_reach(hotspot, POOL_LENGTH, POOL_HOLDER);
    if (!read_pools(hotspot, space, count, size)) {
        return false;
    }
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        struct raw_method *raw = &space->raw[i];
        const char *copy = space->small + raw->pool_copy * SMALL_PIECE;
        uint64_t holder = hotspot_pointer(hotspot, copy, size, POOL_HOLDER);
        int64_t length = 0;
        int64_t numbers[2] = {0};
        (void)hotspot_integer(hotspot, copy, size, POOL_LENGTH, &length);
        if (!holder || (holders && holder != holders[i])) {
            return false;
        }
        for (int k = 0; k < 2; k++) {
            if (!hotspot_integer(hotspot, raw->copy, raw->size, fields[k], &numbers[k]) ||
                numbers[k] < 1 || numbers[k] >= length) {
                return false;
            }
        }
        uint64_t entries = raw->pool + hotspot->layout.pool;
        bool neighbours = numbers[1] == numbers[0] + 1;
        space->pieces[used++] =
            (struct memory_piece){entries + (size_t)numbers[0] * sizeof(uint64_t), raw->symbols,
                                  (neighbours ? 2 : 1) * sizeof(uint64_t)};
        if (!neighbours) {
            space->pieces[used++] =
                (struct memory_piece){entries + (size_t)numbers[1] * sizeof(uint64_t),
                                      &raw->symbols[1], sizeof(uint64_t)};
        }
    }
    return memory_read_pieces(hotspot->memory, space->pieces, used);
}

/* Copies the first `size` bytes from each symbol's length on into its small piece. */
static bool read_lengths(const struct hotspot *hotspot, struct hotspot_workspace *space,
                         size_t count, size_t size)
{
    for (size_t i = 0; i < 2 * count; i++) {
        space->pieces[i] = (struct memory_piece){space->raw[i / 2].symbols[i % 2] +
                                                     hotspot->layout.places[SYMBOL_LENGTH].offset,
                                                 space->small + i * SMALL_PIECE, size};
    }
    return memory_read_pieces(hotspot->memory, space->pieces, 2 * count);
}

/*
 * Symbol -> text, NUL-terminated. Most texts are short and stand right behind their length, and
 * what costs is the number of pieces: so they are read with it, unless that reaches beyond mapped
 * memory.
 */
static bool read_text(const struct hotspot *hotspot, struct hotspot_workspace *space, size_t count)
{
    enum { AHEAD = 64 };
    const struct place *length = &hotspot->layout.places[SYMBOL_LENGTH];
    const size_t body = hotspot->layout.places[SYMBOL_BODY].offset;
    const size_t before = body - length->offset; /* of the text, in the small piece */
    bool ahead =
        body > length->offset && before < AHEAD && read_lengths(hotspot, space, count, AHEAD);
    size_t total = 0;
    size_t used = 0;
    if (!ahead && !read_lengths(hotspot, space, count, length->width)) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        for (int k = 0; k < 2; k++, used++) {
            int64_t bytes =
                hotspot_load_integer(space->small + used * SMALL_PIECE, length->width, false);
            if (bytes < 0 || bytes > UINT16_MAX) { /* JVMS 4.4.7 */
                return false;
            }
            space->raw[i].lengths[k] = bytes;
            total += (size_t)bytes + 1;
        }
    }
    if (!ARRAY_RESERVE(space->text, space->text_room, total)) {
        return false;
    }
    char *text = space->text;
    if (!text) {
        return false; /* it is not: there are two NULs at least */
    }
    used = 0;
    for (size_t i = 0; i < count; i++) {
        const struct raw_method *raw = &space->raw[i];
        struct hotspot_method *method = &space->methods[i];
        for (size_t k = 0; k < 2; k++) {
            size_t bytes = (size_t)raw->lengths[k];
            if (ahead && bytes <= AHEAD - before) {
                memcpy(text, space->small + (2 * i + k) * SMALL_PIECE + before, bytes);
            } else {
                space->pieces[used++] = (struct memory_piece){raw->symbols[k] + body, text, bytes};
            }
            *(k == 0 ? &method->name : &method->descriptor) = text;
            text[bytes] = '\0';
            text += bytes + 1;
        }
    }
    return memory_read_pieces(hotspot->memory, space->pieces, used);
}

/* ---- Line tables: CompressedLineNumberReadStream (oops/method.hpp) ---- */

static int32_t unfold(uint32_t number)
{
    return (int32_t)(number >> 1) ^ -(int32_t)(number & 1);
}

/*
 * A byte an entry: 5 bits of bytecodes and 3 of lines to go on by; 255: both follow as signed
 * numbers; 0 ends the table. It stands behind the bytecodes.
 */
static bool decode_lines(const struct hotspot *hotspot, const struct raw_method *raw,
                         size_t code_size, struct hotspot_workspace *space, uint32_t *count)
{
    const uint8_t *at = (const uint8_t *)raw->copy + hotspot->layout.const_method + code_size;
    const uint8_t *end = (const uint8_t *)raw->copy + raw->size;
    const unsigned excluded = unsigned5_excluded(hotspot->major);
    int64_t bci = 0;
    int64_t line = 0;
    *count = 0;
    while (at < end && *at != 0) {
        uint8_t byte = *at++;
        if (byte == 255) {
            uint32_t bci_by = 0;
            uint32_t line_by = 0;
            if (!unsigned5_get(&at, end, excluded, &bci_by) ||
                !unsigned5_get(&at, end, excluded, &line_by)) {
                return false;
            }
            bci += unfold(bci_by);
            line += unfold(line_by);
        } else {
            bci += byte >> 3;
            line += byte & 7;
        }
        if (bci < 0 || bci > UINT16_MAX || line < 0 || line > UINT16_MAX ||
            *count == LINES_MAX) { /* JVMS 4.7.12: 16 bits each */
            return false;
        }
        if (!ARRAY_RESERVE(space->lines, space->line_room, space->line_count + 1)) {
            return false;
        }
        space->lines[space->line_count++] =
            (struct line_entry){.bci = (uint32_t)bci, .line = (uint32_t)line};
        ++*count;
    }
    return at < end;
}

bool hotspot_finish_methods(const struct hotspot *hotspot, struct hotspot_workspace *space,
                            size_t count)
{
    enum { ACC_PRIVATE_STATIC = 0x0002 | 0x0008, ACC_NATIVE = 0x100 }; /* JVMS 4.6 */
    space->line_count = 0;
    for (size_t i = 0; i < count; i++) {
        const struct raw_method *raw = &space->raw[i];
        struct hotspot_method *method = &space->methods[i];
        int64_t code = 0;
        int64_t flags = 0;
        (void)hotspot_integer(hotspot, raw->copy, raw->size, CONST_CODE_SIZE, &code);
        method->bytecodes = raw->const_method + hotspot->layout.const_method;
        method->bytecode_size = (uint32_t)code;
        method->native = (raw->access & ACC_NATIVE) != 0;
        method->private_static = (raw->access & ACC_PRIVATE_STATIC) == ACC_PRIVATE_STATIC;
        method->pool = raw->pool;
        method->line_count = 0;
        if (hotspot_integer(hotspot, raw->copy, raw->size, CONST_FLAGS, &flags) &&
            (flags & hotspot->layout.has_lines) &&
            !decode_lines(hotspot, raw, (size_t)code, space, &method->line_count)) {
            return false;
        }
    }
    /* Only now are the lines where they stay. */
    struct line_entry *lines = space->lines;
    for (size_t i = 0; i < count; i++) {
        struct hotspot_method *method = &space->methods[i];
        uint32_t all = method->line_count;
        method->lines = lines;
        method->line_count = all ? line_table_sort(lines, all) : 0;
        lines += all;
    }
    return true;
}

bool hotspot_has_method_fields(const struct hotspot *hotspot)
{
    static const enum field needed[] = {
        METHOD_CONST,  METHOD_ACCESS,   CONST_SIZE,  CONST_CODE_SIZE, CONST_POOL,
        CONST_NAME,    CONST_SIGNATURE, CONST_FLAGS, POOL_LENGTH,     POOL_HOLDER,
        SYMBOL_LENGTH, SYMBOL_BODY,     FIELD_COUNT};
    return hotspot_layout_has(&hotspot->layout, needed) && hotspot->layout.const_method > 0 &&
           hotspot->layout.const_method <= SMALL_PIECE && hotspot->layout.pool > 0 &&
           hotspot->layout.has_lines != 0;
}

bool hotspot_read_methods(struct hotspot *hotspot, const uint64_t *addresses,
                          const uint64_t *holders, size_t count, bool brief,
                          struct hotspot_methods *methods)
{
    struct hotspot_workspace *space = hotspot_workspace(methods);
    methods->count = 0;
    if (count == 0) {
        return true;
    }
    if (!space || !hotspot_has_method_fields(hotspot) || !hotspot_reserve_methods(space, count)) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        space->raw[i] = (struct raw_method){.address = addresses[i]};
    }
    if (!read_heads(hotspot, space, count) || !read_const_heads(hotspot, space, count)) {
        return false;
    }
    if (!brief &&
        (!read_const_methods(hotspot, space, count) ||
         !read_symbols(hotspot, space, count, holders) || !read_text(hotspot, space, count) ||
         !hotspot_finish_methods(hotspot, space, count))) {
        return false;
    }
    methods->methods = space->methods;
    methods->count = count;
    return true;
}
