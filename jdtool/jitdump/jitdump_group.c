#include "jdtool/jitdump/jitdump_group.h"

#include "format/samply.h"

#include <string.h>

static void forget(struct jitdump_group_tracker *tracker, uint32_t index)
{
    tracker->debug_count--;
    memmove(&tracker->debug[index], &tracker->debug[index + 1],
            (tracker->debug_count - index) * sizeof(tracker->debug[0]));
}

static void add_debug_info(struct jitdump_group_tracker *tracker,
                           const struct jitdump_record_view *record)
{
    if (tracker->debug_count == GROUP_PENDING) {
        forget(tracker, 0);
    }
    tracker->debug[tracker->debug_count++] = (struct jitdump_group_pending){
        .offset = record->offset, .address = record->debug_info.code_addr};
}

static struct jitdump_group take(struct jitdump_group_tracker *tracker,
                                 const struct jitdump_record_view *load)
{
    struct jitdump_group group = {.unwinding_offset = tracker->unwinding_offset,
                                  .samply_offset = tracker->samply_offset};
    tracker->unwinding_offset = 0;
    tracker->samply_offset = 0;
    for (uint32_t i = tracker->debug_count; i-- > 0;) {
        uint64_t address = tracker->debug[i].address;
        if (group.debug_offset == 0 &&
            (address == load->load.code_addr || address == load->load.vma)) {
            group.debug_offset = tracker->debug[i].offset;
            forget(tracker, i);
        } else if (++tracker->debug[i].age >= GROUP_PENDING) {
            forget(tracker, i);
        }
    }
    return group;
}

struct jitdump_group jitdump_group_add(struct jitdump_group_tracker *tracker,
                                       const struct jitdump_record_view *record)
{
    switch (record->id) {
    case JIT_CODE_DEBUG_INFO:
        add_debug_info(tracker, record);
        break;
    case JIT_CODE_UNWINDING_INFO:
        tracker->unwinding_offset = record->offset;
        break;
    case SAMPLY_JIT_CODE_DEBUG_INFO2:
        tracker->samply_offset = record->offset;
        break;
    case JIT_CODE_LOAD:
        return take(tracker, record);
    default:
        break;
    }
    return (struct jitdump_group){0};
}
