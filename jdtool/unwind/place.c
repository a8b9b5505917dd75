/* What a pc is in: unwind_place_of. */
#include "jdtool/unwind/unwind.h"

#include <string.h>

/* HotSpot keeps exception, deoptimization and call stubs behind the code that JVMTI reports. */
#define STUB_SECTION_MAX 512

/* The method whose stub section an address lies in: nothing is in between. */
static bool find_stub_section(unwind_find_fn *find, void *context, uint64_t address,
                              struct unwind_place *place)
{
    struct unwind_place before;
    for (uint64_t back = 16; back <= STUB_SECTION_MAX && back < address; back += 16) {
        memset(&before, 0, sizeof before);
        find(context, address - back, &before);
        if (before.code) {
            if (before.code->shape != FRAMES_COMPILED || blob_frame_size(before.code) == 0) {
                return false;
            }
            *place = before;
            place->stub_section = true;
            return true;
        }
        if (before.mapped) {
            return false;
        }
    }
    return false;
}

void unwind_place_of(unwind_find_fn *find, void *context, uint64_t pc, bool caller,
                     struct unwind_place *place)
{
    uint64_t address = pc - caller;
    memset(place, 0, sizeof *place);
    if (caller) {
        find(context, pc, place);
        place->barrier = place->code && place->code->return_barrier && place->code_start == pc;
    }
    if (place->barrier) {
        place->address = pc;
        return;
    }
    memset(place, 0, sizeof *place);
    find(context, address, place);
    if (!place->code && !place->mapped && find_stub_section(find, context, address, place)) {
        /* Reported as the end of the method, so that it gets the method's name. */
        place->address = place->code_start + place->code_size - 1;
        return;
    }
    place->address = address;
}

const struct frame_row *unwind_place_row(const struct unwind_place *place)
{
    uint64_t offset = place->barrier ? 0 : place->address - place->code_start;
    return frames_at(&place->code->frames, (uint32_t)offset);
}
