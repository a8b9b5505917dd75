/*
 * What stands in the tables is believed no further than it goes: the structures themselves are read
 * through hotspot/memory.h, and what is found has to make sense.
 */
#include "agent/hotspot/hotspot_fields.h"

#include "writer/message.h"

#include <dlfcn.h>

/* What finding a blob takes; the rest is a gain each. */
static bool is_usable(const struct hotspot *hotspot)
{
    static const enum field needed[] = {HEAP_MEMORY, HEAP_SEGMAP, HEAP_LOG2_SEGMENT, SPACE_LOW,
                                        SPACE_END,   BLOCK_USED,  BLOB_SIZE,         FIELD_COUNT};
    const struct place *places = hotspot->layout.places;
    bool heaps = places[HEAPS].known && places[HEAPS].static_address &&
                 places[ARRAY_LENGTH].known && places[ARRAY_DATA].known;
    bool heap = places[HEAP].known && places[HEAP].static_address;
    return hotspot_layout_has(&hotspot->layout, needed) && (heaps || heap) &&
           (places[BLOB_CODE_BEGIN].known || places[BLOB_CODE_OFFSET].known) &&
           hotspot->layout.block_header > 0;
}

/* How far into a blob the fields reach that we may ever look at. */
static size_t head_of(const struct hotspot *hotspot)
{
    size_t head = 0;
    for (enum field field = BLOB_SIZE; field <= NMETHOD_IMMUTABLE_SIZE; field++) {
        const struct place *place = &hotspot->layout.places[field];
        if (place->known && place->offset + place->width > head) {
            head = place->offset + place->width;
        }
    }
    return head;
}

static bool find_symbol(const struct libjvm *libjvm, const char *name, uint64_t *address)
{
    *address = (uintptr_t)dlsym((void *)libjvm->context, name);
    return *address != 0;
}

/* The tables are the library's own data, which is there. */
static bool copy_data(struct memory *memory, const struct memory_piece *pieces, size_t count)
{
    (void)memory;
    for (size_t i = 0; i < count; i++) {
        const void *from = (const void *)(uintptr_t)pieces[i].from; // NOLINT: it is there
        memcpy(pieces[i].to, from, pieces[i].size);
    }
    return true;
}

bool hotspot_find_fields(struct hotspot *hotspot, const void *function)
{
    /* A function of the JVM's own tells which library it is; dlopen just counts it once more. */
    Dl_info info;
    if (!dladdr(function, &info) || !info.dli_fname) {
        return false;
    }
    void *library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    if (!library) {
        return false;
    }
    struct memory data = {.read = copy_data};
    const struct libjvm libjvm = {.memory = &data, .symbol = find_symbol, .context = library};
    bool found = hotspot_layout_read(&libjvm, &hotspot->layout);
    hotspot->head = head_of(hotspot);
    dlclose(library); /* the JVM keeps it for as long as we live */
    return found && is_usable(hotspot);
}

bool hotspot_read_integer(const struct hotspot *hotspot, uint64_t object, enum field field,
                          int64_t *value)
{
    return object && place_read(hotspot->memory, &hotspot->layout.places[field], object, value);
}

bool hotspot_read_pointer(const struct hotspot *hotspot, uint64_t object, enum field field,
                          uint64_t *value)
{
    int64_t pointer = 0;
    bool read = hotspot_read_integer(hotspot, object, field, &pointer);
    *value = read ? (uint64_t)pointer : *value;
    return read;
}

bool hotspot_read_static(const struct hotspot *hotspot, enum field field, int64_t *value)
{
    const struct place *place = &hotspot->layout.places[field];
    return place->static_address && place_read(hotspot->memory, place, 0, value);
}

void hotspot_distrust(struct hotspot *hotspot, atomic_int *part, const char *what)
{
    (void)hotspot;
    if (atomic_exchange(part, TRUST_BROKEN) != TRUST_BROKEN) {
        message(MESSAGE_WARNING, "this JVM's structures differ from its own description: %s", what);
    }
}
