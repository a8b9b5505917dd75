/* For tests of the unwinder: places made anew at each question, of somebody's `find`. */
#ifndef JD_TESTS_UNWIND_PLACES_H
#define JD_TESTS_UNWIND_PLACES_H

#include "jdtool/unwind/unwind.h"

/* A walk may ask several times a frame. */
#define TEST_PLACES 4096

static inline struct unwind_place *next_place(void)
{
    static struct unwind_place places[TEST_PLACES];
    static unsigned next;
    return &places[next++ % TEST_PLACES];
}

static inline const struct native_row *test_row(void *context, const struct unwind_place *place)
{
    (void)context;
    return object_row(place->object, place->file_address);
}

static inline const struct frame_row *test_code_row(void *context, const struct unwind_place *place)
{
    (void)context;
    return unwind_place_row(place);
}

#endif
