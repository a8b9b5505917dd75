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

/* A frame with what is its location's: stacks are written down frame by frame. */
struct test_frame {
    const struct resolved_method *method;
    uint32_t line;
    uint8_t kind, tier;
    bool is_osr, is_caller;
    const struct module *module;
    const struct resolved_code *code;
    uint64_t address, module_address;
};

/* The number of the location of these frames, which have all but their lines in common. */
static inline uint32_t test_location(struct stack_table *stacks, const struct test_frame *frames,
                                     uint32_t count)
{
    struct resolved_frame lines[64] = {{0}};
    for (uint32_t i = 0; i < count && i < 64; i++) {
        lines[i] = (struct resolved_frame){.method = frames[i].method,
                                           .line = frames[i].line,
                                           .kind = frames[i].kind,
                                           .tier = frames[i].tier,
                                           .is_osr = frames[i].is_osr};
    }
    const struct location wanted = {.module = frames->module,
                                    .code = frames->code,
                                    .address = frames->address,
                                    .module_address = frames->module_address,
                                    .lines = lines,
                                    .line_count = count < 64 ? count : 64,
                                    .is_caller = frames->is_caller};
    return stack_table_location(stacks, &wanted);
}

/* The stack of frames, innermost first: inlined ones and the one behind them are one location. */
static inline uint32_t test_stack(const struct test_frame *frames, uint32_t count)
{
    uint32_t node = 0;
    for (uint32_t end = count; end > 0;) {
        uint32_t first = end - 1;
        while (first > 0 && frames[first - 1].kind == RESOLVED_INLINED) {
            first--;
        }
        uint32_t location = test_location(test_stacks(), &frames[first], end - first);
        node = stack_table_node(test_stacks(), node, location);
        end = first;
    }
    return node;
}

#endif
