#include "agent/hotspot_fields.h"

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
