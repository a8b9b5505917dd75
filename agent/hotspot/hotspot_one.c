/*
 * One method that living code mentions, read where it is: the way that hotspot_method.c draws, step
 * by step and without a copy but that of the names. Each step's memory is asked for while another
 * one's is worked on: the caches have next to none of it.
 */
#include "agent/hotspot/hotspot_workspace.h"

/* The text of a Symbol, where it is. */
struct text {
    const char *at;
    size_t size;
};

/* Has the processor fetch what is there, if anything is: such an address may be any. */
static void fetch(uint64_t address)
{
    __builtin_prefetch((const void *)(uintptr_t)address); // NOLINT: not followed
}

/* Symbol -> text. False: it makes no sense. */
static bool view_text(const struct hotspot *hotspot, struct hotspot_nearby *nearby, uint64_t symbol,
                      struct text *text)
{
    const struct place *length = &hotspot->places[SYMBOL_LENGTH];
    const char *at = hotspot_view(hotspot, nearby, symbol + length->offset, length->width);
    int64_t bytes = symbol && at ? hotspot_load_integer(at, length->width, false) : -1;
    if (bytes < 0 || bytes > UINT16_MAX) { /* JVMS 4.4.7 */
        return false;
    }
    text->size = (size_t)bytes;
    text->at =
        hotspot_view(hotspot, nearby, symbol + hotspot->places[SYMBOL_BODY].offset, text->size);
    return text->at != NULL;
}

/* ConstMethod -> ConstantPool -> Symbols of name and descriptor. */
static bool find_symbols(const struct hotspot *hotspot, struct hotspot_nearby *nearby,
                         struct raw_method *raw)
{
    static const enum field fields[2] = {CONST_NAME, CONST_SIGNATURE};
    const size_t size = hotspot_reach(hotspot, POOL_LENGTH, POOL_HOLDER);
    int64_t length = 0;
    uint64_t entries[2];
    raw->pool = hotspot_pointer(hotspot, raw->copy, raw->size, CONST_POOL);
    for (int i = 0; i < 2; i++) {
        int64_t number = 0;
        if (!hotspot_integer(hotspot, raw->copy, raw->size, fields[i], &number) || number < 1 ||
            number > UINT16_MAX) {
            return false;
        }
        entries[i] = raw->pool + hotspot->pool + (uint64_t)number * sizeof(uint64_t);
        fetch(entries[i]);
    }
    const char *pool = hotspot_view(hotspot, nearby, raw->pool, size);
    if (!pool || !hotspot_pointer(hotspot, pool, size, POOL_HOLDER) ||
        !hotspot_integer(hotspot, pool, size, POOL_LENGTH, &length)) {
        return false;
    }
    const uint64_t end = raw->pool + hotspot->pool + (uint64_t)length * sizeof(uint64_t);
    for (int i = 0; i < 2; i++) {
        const char *entry =
            entries[i] < end ? hotspot_view(hotspot, nearby, entries[i], sizeof(uint64_t)) : NULL;
        if (!entry) {
            return false;
        }
        memcpy(&raw->symbols[i], entry, sizeof(uint64_t));
        fetch(raw->symbols[i]);
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
    raw->copy = hotspot_view(hotspot, nearby, raw->const_method, hotspot->const_method);
    raw->size = raw->copy ? hotspot_const_method_size(hotspot, raw->copy) : 0;
    if (raw->size > hotspot->const_method) {
        fetch(raw->const_method + raw->size - 1); /* where line tables are */
    }
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
        !find_symbols(hotspot, nearby, &space->raw[0]) ||
        !hotspot_finish_methods(hotspot, space, 1) ||
        !view_text(hotspot, nearby, space->raw[0].symbols[0], &texts[0]) ||
        !view_text(hotspot, nearby, space->raw[0].symbols[1], &texts[1]) ||
        !copy_names(space, texts)) {
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
