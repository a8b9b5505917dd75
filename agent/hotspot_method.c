#include "agent/hotspot_fields.h"

#include <stdlib.h>

/* So many methods are looked at with care; if ids were something else, it would have shown. */
enum { METHODS_TO_CHECK = 64 };

bool hotspot_knows_methods(const struct hotspot *hotspot)
{
    return hotspot && hotspot->const_method > 0 && hotspot->places[METHOD_CONST].known &&
           hotspot->places[CONST_CODE_SIZE].known;
}

/*
 * To JDK 25 a jmethodID is the address of a pointer to the Method. It is to become a number, which
 * is seen by its being too small for an address, or by there being no memory where it points to.
 */
bool hotspot_method(struct hotspot *hotspot, jmethodID id, struct hotspot_method *method)
{
    const char *at = (const char *)id;
    if ((uintptr_t)at < 65536 || (uintptr_t)at % sizeof(char *) != 0) {
        return false;
    }
    bool check = atomic_load(&hotspot->methods_checked) < METHODS_TO_CHECK;
    if (check && !hotspot_is_mapped(at)) {
        return false;
    }
    const char *address = hotspot_load(at);
    if (!address || (check && !hotspot_is_mapped(address))) {
        return false;
    }
    const char *const_method = hotspot_pointer(hotspot, address, METHOD_CONST);
    int64_t size = 0;
    if (!const_method || (check && !hotspot_is_mapped(const_method)) ||
        !hotspot_integer(hotspot, const_method, CONST_CODE_SIZE, &size) || size < 0 ||
        size > UINT16_MAX) { /* JVMS 4.7.3: code_length is less than 65536 */
        return false;
    }
    if (check) {
        atomic_fetch_add(&hotspot->methods_checked, 1);
    }
    *method = (struct hotspot_method){
        .address = (uint64_t)(uintptr_t)address,
        .bytecodes = (uint64_t)(uintptr_t)const_method + hotspot->const_method,
        .bytecode_size = (uint32_t)size,
        .constant_pool = hotspot->places[CONST_POOL].known
                             ? hotspot_pointer(hotspot, const_method, CONST_POOL)
                             : NULL,
    };
    return true;
}

/* A symbol's text, not NUL-terminated, and its length; NULL: it cannot be told. */
static const char *symbol_text_of(const struct hotspot *hotspot, const char *const_method,
                                  const char *pool, enum field index_field, size_t *length)
{
    int64_t entries = 0;
    int64_t index = 0;
    int64_t bytes = 0;
    if (!hotspot_integer(hotspot, pool, POOL_LENGTH, &entries) ||
        !hotspot_integer(hotspot, const_method, index_field, &index) || index < 1 ||
        index >= entries) {
        return NULL;
    }
    const char *entry = pool + hotspot->pool + (size_t)index * sizeof(char *);
    const char *symbol = hotspot_is_mapped(entry) ? hotspot_load(entry) : NULL;
    if (!hotspot_is_mapped(symbol) || !hotspot_integer(hotspot, symbol, SYMBOL_LENGTH, &bytes) ||
        bytes < 0 || bytes > UINT16_MAX) {
        return NULL;
    }
    const char *text = symbol + hotspot->places[SYMBOL_BODY].offset;
    *length = (size_t)bytes;
    return hotspot_is_mapped(text + *length) ? text : NULL;
}

/* For few methods, so every pointer is looked at with care. */
bool hotspot_names(const struct hotspot *hotspot, const void *method, struct hotspot_names *names)
{
    if (!hotspot_knows_methods(hotspot) || hotspot->pool == 0 ||
        !hotspot->places[CONST_POOL].known || !hotspot->places[SYMBOL_BODY].known ||
        !hotspot_is_mapped(method)) {
        return false;
    }
    const char *const_method = hotspot_pointer(hotspot, method, METHOD_CONST);
    const char *pool =
        hotspot_is_mapped(const_method) ? hotspot_pointer(hotspot, const_method, CONST_POOL) : NULL;
    if (!hotspot_is_mapped(pool)) {
        return false;
    }
    size_t name_size = 0;
    size_t descriptor_size = 0;
    const char *name = symbol_text_of(hotspot, const_method, pool, CONST_NAME, &name_size);
    const char *descriptor =
        symbol_text_of(hotspot, const_method, pool, CONST_SIGNATURE, &descriptor_size);
    char *memory = name && descriptor ? malloc(name_size + descriptor_size + 2) : NULL;
    if (!memory) {
        return false;
    }
    memcpy(memory, name, name_size);
    memory[name_size] = '\0';
    char *second = memory + name_size + 1;
    memcpy(second, descriptor, descriptor_size);
    second[descriptor_size] = '\0';
    *names = (struct hotspot_names){.name = memory, .descriptor = second};
    return true;
}
