/* Threads as HotSpot has them. */
#include "agent/hotspot/hotspot_fields.h"

uint32_t hotspot_thread_id(const struct hotspot *hotspot, uint64_t java_thread)
{
    uint64_t os_thread = 0;
    int64_t tid = 0;
    return hotspot && hotspot_read_pointer(hotspot, java_thread, THREAD_OSTHREAD, &os_thread) &&
                   hotspot_read_integer(hotspot, os_thread, OSTHREAD_ID, &tid) && tid > 0 &&
                   tid <= INT32_MAX
               ? (uint32_t)tid
               : 0;
}
