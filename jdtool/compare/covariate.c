#include "jdtool/compare/covariate.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define STEPS  200 /* of the power method, at most */
#define CLOSE2 1e-18

static void set_apart(const struct covariate *covariate, uint32_t method)
{
    const struct comparison *of = covariate->methods[method];
    double mean = mean_of(of->values, covariate->run_count);
    for (uint32_t k = 0; k < covariate->run_count; k++) {
        covariate->apart[(size_t)method * covariate->run_count + k] =
            (of->values[k] / mean - 1) * sqrt(of->share);
    }
}

static void set_products(const struct covariate *covariate, uint32_t before)
{
    uint32_t count = covariate->count, runs = covariate->run_count;
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t j = 0; j <= i; j++) {
            const double *x = &covariate->apart[(size_t)i * runs];
            const double *y = &covariate->apart[(size_t)j * runs];
            double sum = scatter_within(x, y, before, runs - before);
            covariate->products[(size_t)i * count + j] =
                covariate->products[(size_t)j * count + i] = sum;
        }
    }
}

int covariate_init(struct covariate *covariate, const struct runs *runs,
                   const struct comparisons *made, uint32_t event)
{
    uint32_t count = 0, before = runs->before_count, after = runs->run_count - before;
    *covariate = (struct covariate){.run_count = runs->run_count};
    if (!runs->events[event].rest || before < COVARIATE_RUNS || after < COVARIATE_RUNS) {
        return 0;
    }
    for (uint32_t i = 0; i < made->count; i++) {
        count += made->list[i].event == event && made->list[i].is_rest;
    }
    covariate->methods = calloc((size_t)count + 1, sizeof(void *));
    covariate->apart = calloc((size_t)count * runs->run_count + 1, sizeof *covariate->apart);
    covariate->products = calloc((size_t)count * count + 1, sizeof *covariate->products);
    covariate->loads = calloc((size_t)count + 1, 2 * sizeof *covariate->loads);
    if (!covariate->methods || !covariate->apart || !covariate->products || !covariate->loads) {
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < made->count; i++) {
        if (made->list[i].event == event && made->list[i].is_rest) {
            covariate->methods[covariate->count] = &made->list[i];
            set_apart(covariate, covariate->count++);
        }
    }
    set_products(covariate, before);
    return 0;
}

void covariate_free(struct covariate *covariate)
{
    free(covariate->methods);
    free(covariate->apart);
    free(covariate->products);
    free(covariate->loads);
    *covariate = (struct covariate){0};
}

/* One step of the power method: to = products * from over the methods that from counts (is not 0
 * of), of length 1. How far that is from where it was, squared; negative: nothing scatters. */
static double step(const struct covariate *covariate, const double *from, double *to)
{
    double length2 = 0, off2 = 0;
    for (uint32_t i = 0; i < covariate->count; i++) {
        to[i] = 0;
        for (uint32_t j = 0; from[i] != 0 && j < covariate->count; j++) {
            to[i] += covariate->products[(size_t)i * covariate->count + j] * from[j];
        }
        length2 += to[i] * to[i];
    }
    if (length2 <= 0) {
        return -1;
    }
    for (uint32_t i = 0; i < covariate->count; i++) {
        to[i] /= sqrt(length2);
        off2 += (to[i] - from[i]) * (to[i] - from[i]);
    }
    return off2;
}

bool covariate_of(struct covariate *covariate, const struct comparison *of, double *scores)
{
    size_t row = covariate->run_count * sizeof *scores;
    uint32_t others = 0;
    if (covariate->count < COVARIATE_METHODS) {
        return false;
    }
    double *from = covariate->loads, *to = from + covariate->count;
    for (uint32_t i = 0; i < covariate->count; i++) {
        bool is_other = memcmp(covariate->methods[i]->weights, of->weights, row) != 0;
        from[i] = is_other;
        others += is_other;
    }
    if (others < COVARIATE_METHODS) {
        return false;
    }
    double off2 = 1;
    for (int i = 0; i < STEPS && off2 > CLOSE2; i++) {
        off2 = step(covariate, from, to);
        if (off2 < 0) {
            return false;
        }
        double *last = from;
        from = to;
        to = last;
    }
    memset(scores, 0, row);
    for (uint32_t i = 0; i < covariate->count; i++) {
        for (uint32_t k = 0; k < covariate->run_count; k++) {
            scores[k] += from[i] * covariate->apart[(size_t)i * covariate->run_count + k];
        }
    }
    return true;
}
