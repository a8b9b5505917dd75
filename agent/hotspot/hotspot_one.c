/*
 * One method that living code mentions, read where it is: the way that hotspot_method.c draws, step
 * by step and without a copy but that of the names.
 */
#include "agent/hotspot/hotspot_workspace.h"

/* One of the method's two Symbols; false: it makes no sense. */
static bool view_symbol(const struct hotspot *hotspot, struct hotspot_nearby *nearby,
                        struct raw_method *raw, int which, int64_t number, int64_t pool_length)
{
    const struct place *length = &hotspot->places[SYMBOL_LENGTH];
    if (number < 1 || number >= pool_length) {
        return false;
    }
    const char *entry = raw->pool + hotspot->pool + (size_t)number * sizeof(char *);
    if (!hotspot_view(hotspot, nearby, entry, sizeof(char *))) {
        return false;
    }
    memcpy(&raw->symbols[which], entry, sizeof(char *));
    const char *symbol = raw->symbols[which];
    const char *at = hotspot_view(hotspot, nearby, symbol + length->offset, length->width);
    if (!symbol || !at) {
        return false;
    }
    int64_t bytes = hotspot_load_integer(at, length->width, false);
    raw->lengths[which] = bytes;
    return bytes >= 0 && bytes <= UINT16_MAX && /* JVMS 4.4.7 */
           hotspot_view(hotspot, nearby, symbol + hotspot->places[SYMBOL_BODY].offset,
                        (size_t)bytes);
}

/* ConstMethod -> ConstantPool -> Symbols. */
static bool view_symbols(const struct hotspot *hotspot, struct hotspot_nearby *nearby,
                         struct raw_method *raw)
{
    const size_t size = hotspot_reach(hotspot, POOL_LENGTH, POOL_HOLDER);
    int64_t length = 0;
    int64_t name = 0;
    int64_t descriptor = 0;
    raw->pool = hotspot_pointer(hotspot, raw->copy, raw->size, CONST_POOL);
    return hotspot_view(hotspot, nearby, raw->pool, size) &&
           hotspot_pointer(hotspot, raw->pool, size, POOL_HOLDER) &&
           hotspot_integer(hotspot, raw->pool, size, POOL_LENGTH, &length) &&
           hotspot_integer(hotspot, raw->copy, raw->size, CONST_NAME, &name) &&
           hotspot_integer(hotspot, raw->copy, raw->size, CONST_SIGNATURE, &descriptor) &&
           view_symbol(hotspot, nearby, raw, 0, name, length) &&
           view_symbol(hotspot, nearby, raw, 1, descriptor, length);
}

/* Method -> ConstMethod. */
static bool view_const_method(const struct hotspot *hotspot, struct hotspot_nearby *nearby,
                              struct raw_method *raw)
{
    const size_t size = hotspot_reach(hotspot, METHOD_CONST, METHOD_ACCESS);
    if (!hotspot_view(hotspot, nearby, raw->address, size) ||
        !hotspot_integer(hotspot, raw->address, size, METHOD_ACCESS, &raw->access)) {
        return false;
    }
    raw->copy = raw->const_method = hotspot_pointer(hotspot, raw->address, size, METHOD_CONST);
    if (!hotspot_view(hotspot, nearby, raw->copy, hotspot->const_method)) {
        return false;
    }
    raw->size = hotspot_const_method_size(hotspot, raw->copy);
    return raw->size > 0 && hotspot_view(hotspot, nearby, raw->copy, raw->size);
}

/* The names, NUL-terminated. */
static bool copy_names(const struct hotspot *hotspot, struct hotspot_workspace *space)
{
    const struct raw_method *raw = &space->raw[0];
    const size_t body = hotspot->places[SYMBOL_BODY].offset;
    const size_t name = (size_t)raw->lengths[0];
    const size_t descriptor = (size_t)raw->lengths[1];
    if (!hotspot_reserve_bytes(&space->text, &space->text_room, name + descriptor + 2)) {
        return false;
    }
    char *text = space->text;
    memcpy(text, raw->symbols[0] + body, name);
    text[name] = '\0';
    space->methods[0].name = text;
    text += name + 1;
    memcpy(text, raw->symbols[1] + body, descriptor);
    text[descriptor] = '\0';
    space->methods[0].descriptor = text;
    return true;
}

static bool view_method(const struct hotspot *hotspot, struct hotspot_nearby *nearby,
                        const void *method, struct hotspot_methods *methods)
{
    struct hotspot_workspace *space = hotspot_workspace(methods);
    methods->count = 0;
    if (!space || !hotspot_has_method_fields(hotspot) || !hotspot_reserve_methods(space, 1)) {
        return false;
    }
    space->raw[0] = (struct raw_method){.address = method};
    space->methods[0] = (struct hotspot_method){.address = (uint64_t)(uintptr_t)method};
    if (!view_const_method(hotspot, nearby, &space->raw[0]) ||
        !view_symbols(hotspot, nearby, &space->raw[0]) || !copy_names(hotspot, space) ||
        !hotspot_finish_methods(hotspot, space, 1)) {
        return false;
    }
    methods->methods = space->methods;
    methods->count = 1;
    return true;
}

bool hotspot_one_method(struct hotspot *hotspot, struct hotspot_nearby *nearby, const void *method,
                        struct hotspot_methods *methods)
{
    const char *address = method;
    if (!hotspot_knows_methods(hotspot)) {
        return false;
    }
    return hotspot_nearby_in_place(nearby)
               ? view_method(hotspot, nearby, method, methods)
               : hotspot_read_methods(hotspot, &address, NULL, 1, false, methods);
}
