/*
 * Whether what differs between two groups of runs is more than chance. A run is one value: samples
 * of one run depend on one another (one JVM, its compilations, the machine at that time), runs do
 * not.
 *
 * Welch's t-test, which needs no equal scatter. Ways that were tried on resampled pairs of equal
 * runs, 7 a side and 116 methods, each with false_discovery_rates at 5 %: a plain bootstrap over
 * runs is too narrow and alarms in 14 % of pairs (of 3 runs: 89 %); a bootstrap of the change in
 * its own standard error holds its rate but finds a fifth less; permutations cannot reach a small p
 * with 5 runs. Welch's test alarms in 2 %, with 3 runs as well.
 */
#ifndef JD_TOOL_STATISTICS_H
#define JD_TOOL_STATISTICS_H

#include <stdint.h>

/* Fewer runs than this tell nothing of chance. */
#define RUNS_LEAST 2

struct difference {
    double before, after; /* means */
    double change;        /* after - before */
    double low, high;     /* the change's interval, which holds it in 95 of 100 comparisons */
    double p;             /* how often chance alone makes a change as large as this; 0 to 1 */
};

/* Compares two groups of at least RUNS_LEAST runs each. */
struct difference difference_of(const double *before, uint32_t before_count, const double *after,
                                uint32_t after_count);

/* The same with a covariate, a value for each run, taken out (analysis of covariance: one slope
 * within both groups, which scatter alike). The values become adjusted ones, whose mean over all
 * runs is as before. Both hold the runs before, then those after: 4 at least. */
struct difference difference_adjusted(double *values, const double *covariate,
                                      uint32_t before_count, uint32_t after_count);

double mean_of(const double *values, uint32_t count);

/* The sum of products of how far the values of two rows are from their means within the groups. */
double scatter_within(const double *x, const double *y, uint32_t before_count,
                      uint32_t after_count);

/* The rates of false discovery (Benjamini and Hochberg, 1995): those with q at most 0.05 can be
 * called changes, and one in twenty of them is chance. q may be p. 0 or -ENOMEM. */
int false_discovery_rates(const double *p, uint32_t count, double *q);

#endif
