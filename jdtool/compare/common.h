/*
 * What the methods of the rest (comparison.h) have in common between runs of one side. Methods that
 * wait for memory take longer together where the machine's other guests use its caches, and all
 * others then have less of the rest: of Shop (tests/shell) on such a machine a method's part varies
 * by 4 % between runs, and by 1.6 % beside what is common. It is the first principal component of
 * the scatter within the sides; difference_beside (statistics.h) takes it out of a method's values.
 */
#ifndef JD_TOOL_COMMON_H
#define JD_TOOL_COMMON_H

#include "jdtool/compare/comparison.h"

/* From so many runs a side on, and so many methods beside the one that is judged. */
#define COMMON_RUNS    4
#define COMMON_METHODS 4

struct common {
    const struct comparison **methods; /* the rest's; the comparisons' */
    uint32_t count, run_count;
    double *apart;    /* by method and run: how far from the method's mean, as a part of it, times
                         the root of the method's share: chance scatters all alike then */
    double *products; /* by two methods: the sum of products of their scatter within the sides */
    double *loads;    /* two rows, by method */
};

/* Of an event, by the values of its comparisons, which stay and outlive it. Without a rest or with
 * too few runs there are no methods. 0 or -ENOMEM; free in both cases. */
int common_init(struct common *common, const struct runs *runs, const struct comparisons *made,
                uint32_t event);
void common_free(struct common *common);

/* Into scores, by run, what a comparison's runs share with the rest but for the comparison itself.
 * False: of too few methods. */
bool common_of(struct common *common, const struct comparison *of, double *scores);

#endif
