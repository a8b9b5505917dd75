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

uint64_t hotspot_thread_record(const struct hotspot *hotspot, uint64_t java_thread)
{
    uint64_t sp = 0;
    uint64_t pc = 0;
    uint64_t fp = 0;
    uint64_t below[2] = {0};
    if (!hotspot || !hotspot->places[THREAD_ANCHOR].known) {
        return 0;
    }
    uint64_t anchor = java_thread + hotspot->places[THREAD_ANCHOR].offset;
    bool is = hotspot_read_pointer(hotspot, anchor, ANCHOR_SP, &sp) &&
              hotspot_read_pointer(hotspot, anchor, ANCHOR_PC, &pc) &&
              hotspot_read_pointer(hotspot, anchor, ANCHOR_FP, &fp) && sp > sizeof(below) && pc &&
              memory_read(hotspot->memory, sp - sizeof(below), below, sizeof(below));
    return is && below[0] == fp && below[1] == pc ? sp - sizeof(below) : 0;
}
