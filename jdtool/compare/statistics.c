#include "jdtool/compare/statistics.h"

#include "jdtool/base/array.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define OUTSIDE 0.05 /* how often the change is outside of its interval */

/* The mean of a group and the square of its standard error. */
struct group {
    double mean, error2;
    uint32_t count;
};

double mean_of(const double *values, uint32_t count)
{
    double sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        sum += values[i];
    }
    return sum / count;
}

/* The sum of products of how far the values are from their means. */
static double scatter_of(const double *x, const double *y, uint32_t count)
{
    double sum = 0, x_mean = mean_of(x, count), y_mean = mean_of(y, count);
    for (uint32_t i = 0; i < count; i++) {
        sum += (x[i] - x_mean) * (y[i] - y_mean);
    }
    return sum;
}

static struct group group_of(const double *values, uint32_t count)
{
    return (struct group){mean_of(values, count),
                          scatter_of(values, values, count) / (count - 1) / count, count};
}

/* The continued fraction of the incomplete beta function, by Lentz's method. */
static double beta_fraction(double a, double b, double x)
{
    const double tiny = 1e-300;
    double c = 1, d = 1 - (a + b) * x / (a + 1);
    d = 1 / (fabs(d) < tiny ? tiny : d);
    double product = d;
    for (int m = 1; m < 500; m++) {
        double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        double steps[2] = {even, odd};
        double factor = 1;
        for (int k = 0; k < 2; k++) {
            d = 1 + steps[k] * d;
            c = 1 + steps[k] / c;
            d = 1 / (fabs(d) < tiny ? tiny : d);
            c = fabs(c) < tiny ? tiny : c;
            factor = c * d;
            product *= factor;
        }
        if (fabs(factor - 1) < 1e-14) {
            break;
        }
    }
    return product;
}

/* The regularised incomplete beta function. */
static double beta_share(double a, double b, double x)
{
    if (x <= 0 || x >= 1) {
        return x >= 1;
    }
    /* Of glibc's functions of this name lgamma alone writes a global. */
    int sign;
    double front = exp(lgamma_r(a + b, &sign) - lgamma_r(a, &sign) - lgamma_r(b, &sign) +
                       a * log(x) + b * log1p(-x));
    return x < (a + 1) / (a + b + 2) ? front * beta_fraction(a, b, x) / a
                                     : 1 - front * beta_fraction(b, a, 1 - x) / b;
}

/* How often |t| of Student's distribution is this large or larger. */
static double student_beyond(double t, double freedom)
{
    return beta_share(freedom / 2, 0.5, freedom / (freedom + t * t));
}

/* The t beyond which so much lies, on both sides together. */
static double student_bound(double beyond, double freedom)
{
    double low = 0, high = 1e9;
    for (int i = 0; i < 100; i++) {
        double middle = (low + high) / 2;
        if (student_beyond(middle, freedom) > beyond) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return high;
}

/* Of groups without any scatter all that can be said is how many ways there are to deal their runs
 * out, of which two part them so. */
static double chance_of_parting(uint32_t before, uint32_t after)
{
    double ways = 1;
    for (uint32_t i = 1; i <= before; i++) {
        ways = ways * (after + i) / i;
    }
    return ways > 2 ? 2 / ways : 1;
}

/* Of two groups, by the square of the change's standard error. */
static struct difference judged(const struct group *a, const struct group *b, double error2,
                                double freedom)
{
    struct difference made = {.before = a->mean, .after = b->mean, .change = b->mean - a->mean};
    double size = fabs(a->mean) + fabs(b->mean);
    made.low = made.high = made.change;
    made.p = 1;
    if (sqrt(error2) <= 1e-12 * size) { /* rounding is no scatter */
        made.p = fabs(made.change) > 1e-9 * size ? chance_of_parting(a->count, b->count) : 1;
        return made;
    }
    double reach = student_bound(OUTSIDE, freedom) * sqrt(error2);
    made.low -= reach;
    made.high += reach;
    made.p = student_beyond(made.change / sqrt(error2), freedom);
    return made;
}

struct difference difference_of(const double *before, uint32_t before_count, const double *after,
                                uint32_t after_count)
{
    struct group a = group_of(before, before_count), b = group_of(after, after_count);
    double error2 = a.error2 + b.error2;
    double freedom = error2 * error2 /
                     (a.error2 * a.error2 / (a.count - 1) + b.error2 * b.error2 / (b.count - 1));
    return judged(&a, &b, error2, freedom);
}

double scatter_within(const double *x, const double *y, uint32_t before_count, uint32_t after_count)
{
    return scatter_of(x, y, before_count) +
           scatter_of(x + before_count, y + before_count, after_count);
}

struct difference difference_adjusted(double *values, const double *covariate,
                                      uint32_t before_count, uint32_t after_count)
{
    uint32_t count = before_count + after_count;
    double covariate2 = scatter_within(covariate, covariate, before_count, after_count);
    double slope = covariate2 > 0
                       ? scatter_within(values, covariate, before_count, after_count) / covariate2
                       : 0;
    double middle = mean_of(covariate, count);
    double apart =
        mean_of(covariate + before_count, after_count) - mean_of(covariate, before_count);
    for (uint32_t i = 0; i < count; i++) {
        values[i] -= slope * (covariate[i] - middle);
    }
    struct group a = group_of(values, before_count),
                 b = group_of(values + before_count, after_count);
    double freedom = count - 3; /* two means and the slope */
    double variance = scatter_within(values, values, before_count, after_count) / freedom;
    double error2 = variance * (1.0 / before_count + 1.0 / after_count +
                                (covariate2 > 0 ? apart * apart / covariate2 : 0));
    return judged(&a, &b, error2, freedom);
}

struct ranked {
    double p;
    uint32_t at;
};

static int compare_ranked(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    return ORDER(x->p, y->p) ?: ORDER(x->at, y->at);
}

int false_discovery_rates(const double *p, uint32_t count, double *q)
{
    struct ranked *ranked = malloc(((size_t)count + 1) * sizeof *ranked);
    if (!ranked) {
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < count; i++) {
        ranked[i] = (struct ranked){p[i], i};
    }
    qsort(ranked, count, sizeof *ranked, compare_ranked);
    double least = 1;
    for (uint32_t i = count; i-- > 0;) {
        double rate = ranked[i].p * count / (i + 1);
        least = rate < least ? rate : least;
        q[ranked[i].at] = least;
    }
    free(ranked);
    return 0;
}
