/* Threads as HotSpot has them. */
#include "agent/hotspot/hotspot_fields.h"
#include "agent/hotspot/hotspot_memory.h"

uint32_t hotspot_thread_id(const struct hotspot *hotspot, const void *java_thread)
{
    const char *os_thread = NULL;
    char copy[sizeof(int64_t)];
    if (!hotspot || !java_thread || !hotspot->places[OSTHREAD_ID].known ||
        !hotspot_read_pointer(hotspot, java_thread, THREAD_OSTHREAD, &os_thread) || !os_thread) {
        return 0;
    }
    const struct place *id = &hotspot->places[OSTHREAD_ID];
    if (!memory_read(hotspot->memory, os_thread + id->offset, copy, id->width)) {
        return 0;
    }
    int64_t tid = hotspot_load_integer(copy, id->width, id->is_signed);
    return tid > 0 && tid <= INT32_MAX ? (uint32_t)tid : 0;
}
