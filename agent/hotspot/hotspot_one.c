/*
 * One method that living code mentions, read where it is: the way that hotspot_method.c draws, step
 * by step and without a copy but that of the names.
 */
#include "agent/hotspot/hotspot_workspace.h"

/* The text of a Symbol, where it is. */
struct text {
    const char *at;
    size_t size;
};

/* That of the ConstantPool's entry of that number. False: it makes no sense. */
static bool view_symbol(const struct hotspot *hotspot, struct hotspot_nearby *nearby, uint64_t pool,
                        int64_t number, struct text *text)
{
    const struct place *length = &hotspot->layout.places[SYMBOL_LENGTH];
    uint64_t symbol = 0;
    const char *entry = hotspot_view(
        hotspot, nearby, pool + hotspot->layout.pool + (uint64_t)number * sizeof(symbol),
        sizeof(symbol));
    if (!entry) {
        return false;
    }
    memcpy(&symbol, entry, sizeof(symbol));
    const char *at = hotspot_view(hotspot, nearby, symbol + length->offset, length->width);
    int64_t bytes = symbol && at ? hotspot_load_integer(at, length->width, false) : -1;
    if (bytes < 0 || bytes > UINT16_MAX) { /* JVMS 4.4.7 */
        return false;
    }
    text->size = (size_t)bytes;
    text->at = hotspot_view(hotspot, nearby, symbol + hotspot->layout.places[SYMBOL_BODY].offset,
                            text->size);
    return text->at != NULL;
}

/* ConstMethod -> ConstantPool -> name and descriptor. */
static bool view_symbols(const struct hotspot *hotspot, struct hotspot_nearby *nearby,
                         struct raw_method *raw, struct text texts[2])
{
    static const enum field fields[2] = {CONST_NAME, CONST_SIGNATURE};
    const size_t size = hotspot_reach(hotspot, POOL_LENGTH, POOL_HOLDER);
    int64_t length = 0;
    raw->pool = hotspot_pointer(hotspot, raw->copy, raw->size, CONST_POOL);
    const char *pool = hotspot_view(hotspot, nearby, raw->pool, size);
    if (!pool || !hotspot_pointer(hotspot, pool, size, POOL_HOLDER) ||
        !hotspot_integer(hotspot, pool, size, POOL_LENGTH, &length)) {
        return false;
    }
    for (int i = 0; i < 2; i++) {
        int64_t number = 0;
        if (!hotspot_integer(hotspot, raw->copy, raw->size, fields[i], &number) || number < 1 ||
            number >= length || !view_symbol(hotspot, nearby, raw->pool, number, &texts[i])) {
            return false;
        }
    }
    return true;
}

/* Method -> ConstMethod. */
static bool view_const_method(const struct hotspot *hotspot, struct hotspot_nearby *nearby,
                              struct raw_method *raw)
{
    const size_t size = hotspot_reach(hotspot, METHOD_CONST, METHOD_ACCESS);
    const char *method = hotspot_view(hotspot, nearby, raw->address, size);
    if (!method || !hotspot_integer(hotspot, method, size, METHOD_ACCESS, &raw->access)) {
        return false;
    }
    raw->const_method = hotspot_pointer(hotspot, method, size, METHOD_CONST);
    raw->copy = hotspot_view(hotspot, nearby, raw->const_method, hotspot->layout.const_method);
    raw->size = raw->copy ? hotspot_const_method_size(hotspot, raw->copy) : 0;
    return raw->size > 0 && hotspot_view(hotspot, nearby, raw->const_method, raw->size);
}

/* The names, NUL-terminated. */
static bool copy_names(struct hotspot_workspace *space, const struct text texts[2])
{
    if (!ARRAY_RESERVE(space->text, space->text_room, texts[0].size + texts[1].size + 2)) {
        return false;
    }
    char *name = space->text;
    char *descriptor = name + texts[0].size + 1;
    memcpy(name, texts[0].at, texts[0].size);
    name[texts[0].size] = '\0';
    memcpy(descriptor, texts[1].at, texts[1].size);
    descriptor[texts[1].size] = '\0';
    space->methods[0].name = name;
    space->methods[0].descriptor = descriptor;
    return true;
}

static bool view_method(const struct hotspot *hotspot, struct hotspot_nearby *nearby,
                        uint64_t method, struct hotspot_methods *methods)
{
    struct hotspot_workspace *space = hotspot_workspace(methods);
    struct text texts[2];
    methods->count = 0;
    if (!space || !hotspot_has_method_fields(hotspot) || !hotspot_reserve_methods(space, 1)) {
        return false;
    }
    space->raw[0] = (struct raw_method){.address = method};
    space->methods[0] = (struct hotspot_method){.address = method};
    if (!view_const_method(hotspot, nearby, &space->raw[0]) ||
        !view_symbols(hotspot, nearby, &space->raw[0], texts) || !copy_names(space, texts) ||
        !hotspot_finish_methods(hotspot, space, 1)) {
        return false;
    }
    methods->methods = space->methods;
    methods->count = 1;
    return true;
}

bool hotspot_one_method(struct hotspot *hotspot, struct hotspot_nearby *nearby, uint64_t method,
                        struct hotspot_methods *methods)
{
    if (!hotspot_knows_methods(hotspot)) {
        return false;
    }
    return hotspot_nearby_in_place(nearby)
               ? view_method(hotspot, nearby, method, methods)
               : hotspot_read_methods(hotspot, &method, NULL, 1, false, methods);
}
