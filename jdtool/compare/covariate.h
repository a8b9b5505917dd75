/*
 * What the methods of the rest (comparison.h) have in common between runs of one side. Those that
 * wait for memory, say, take longer together in some runs, and all others then have less of the
 * rest: of Shop (tests/shell) on such a machine a method's part varies by 4 % between runs, and by
 * 1.6 % without what is common. That is the first principal component of the scatter within the
 * sides; difference_adjusted (statistics.h) takes it out of a method's values.
 */
#ifndef JD_TOOL_COVARIATE_H
#define JD_TOOL_COVARIATE_H

#include "jdtool/compare/comparison.h"

/* From so many runs a side on, and so many methods beside the one that is judged. */
#define COVARIATE_RUNS    4
#define COVARIATE_METHODS 4

struct covariate {
    const struct comparison **methods; /* the rest's; the comparisons' */
    uint32_t count, run_count;
    double *apart;    /* by method and run: how far from the method's mean, as a part of it, times
                         the root of the method's share: chance scatters all alike then */
    double *products; /* by two methods: the sum of products of their scatter within the sides */
    double *loads;    /* two rows, by method */
};

/* Of an event, by the values of its comparisons, which stay and outlive it. Without a rest or with
 * too few runs there are no methods. 0 or -ENOMEM; free in both cases. */
int covariate_init(struct covariate *covariate, const struct runs *runs,
                   const struct comparisons *made, uint32_t event);
void covariate_free(struct covariate *covariate);

/* Into scores, by run, what a comparison's runs share with the rest but for the comparison itself.
 * False: of too few methods. */
bool covariate_of(struct covariate *covariate, const struct comparison *of, double *scores);

#endif
