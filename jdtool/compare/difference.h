/* What changed between two groups of runs, for people and for scripts. */
#ifndef JD_TOOL_DIFFERENCE_H
#define JD_TOOL_DIFFERENCE_H

#include "jdtool/base/packed_output.h"
#include "jdtool/compare/comparison.h"

struct difference_look {
    double threshold; /* percent of all samples before; see comparison_is_loss */
    uint32_t width;   /* columns of the terminal */
    bool all;         /* what did not change as well */
};

void difference_write_text(const struct runs *runs, const struct comparisons *methods,
                           const struct difference_look *look, struct packed_output *output);
void difference_write_json(const struct runs *runs, const struct comparisons *methods,
                           const struct difference_look *look, struct packed_output *output);

#endif
