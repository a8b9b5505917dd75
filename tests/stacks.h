/* Stacks out of frames, for tests that tell sinks of samples. */
#ifndef JD_TESTS_STACKS_H
#define JD_TESTS_STACKS_H

#include "jdtool/resolve/stack_table.h"

/* One table for all of a test's stacks. */
static inline struct stack_table *test_stacks(void)
{
    static struct stack_table *stacks;
    if (!stacks) {
        stacks = stack_table_new();
    }
    return stacks;
}

/* The stack of frames, innermost first: inlined ones and the one behind them are one location. */
static inline uint32_t test_stack(const struct resolved_frame *frames, uint32_t count)
{
    uint32_t node = 0;
    for (uint32_t end = count; end > 0;) {
        uint32_t first = end - 1;
        while (first > 0 && frames[first - 1].kind == RESOLVED_INLINED) {
            first--;
        }
        uint32_t location = stack_table_location(test_stacks(), &frames[first], end - first);
        node = stack_table_node(test_stacks(), node, location);
        end = first;
    }
    return node;
}

#endif
