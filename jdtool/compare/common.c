#include "jdtool/compare/common.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define STEPS  200 /* of the power method, at most */
#define CLOSE2 1e-18

static double sum_of(const double *values, uint32_t count)
{
    double sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        sum += values[i];
    }
    return sum;
}

static void set_apart(const struct common *common, uint32_t method)
{
    const struct comparison *of = common->methods[method];
    double mean = sum_of(of->values, common->run_count) / common->run_count;
    for (uint32_t k = 0; k < common->run_count; k++) {
        common->apart[(size_t)method * common->run_count + k] =
            (of->values[k] / mean - 1) * sqrt(of->share);
    }
}

static void set_products(const struct common *common, uint32_t before)
{
    uint32_t count = common->count, runs = common->run_count;
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t j = 0; j <= i; j++) {
            const double *x = &common->apart[(size_t)i * runs];
            const double *y = &common->apart[(size_t)j * runs];
            double sum =
                scatter_of(x, y, before) + scatter_of(x + before, y + before, runs - before);
            common->products[(size_t)i * count + j] = common->products[(size_t)j * count + i] = sum;
        }
    }
}

int common_init(struct common *common, const struct runs *runs, const struct comparisons *made,
                uint32_t event)
{
    uint32_t count = 0, before = runs->before_count, after = runs->run_count - before;
    *common = (struct common){.run_count = runs->run_count};
    if (!runs->events[event].rest || before < COMMON_RUNS || after < COMMON_RUNS) {
        return 0;
    }
    for (uint32_t i = 0; i < made->count; i++) {
        count += made->list[i].event == event && made->list[i].is_rest;
    }
    common->methods = calloc((size_t)count + 1, sizeof(void *));
    common->apart = calloc((size_t)count * runs->run_count + 1, sizeof *common->apart);
    common->products = calloc((size_t)count * count + 1, sizeof *common->products);
    common->loads = calloc((size_t)count + 1, 2 * sizeof *common->loads);
    if (!common->methods || !common->apart || !common->products || !common->loads) {
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < made->count; i++) {
        if (made->list[i].event == event && made->list[i].is_rest) {
            common->methods[common->count] = &made->list[i];
            set_apart(common, common->count++);
        }
    }
    set_products(common, before);
    return 0;
}

void common_free(struct common *common)
{
    free(common->methods);
    free(common->apart);
    free(common->products);
    free(common->loads);
    *common = (struct common){0};
}

/* One step of the power method: to = products * from over the methods that from counts (is not 0
 * of), of length 1. How far that is from where it was, squared; negative: nothing scatters. */
static double step(const struct common *common, const double *from, double *to)
{
    double length2 = 0, off2 = 0;
    for (uint32_t i = 0; i < common->count; i++) {
        to[i] = 0;
        for (uint32_t j = 0; from[i] != 0 && j < common->count; j++) {
            to[i] += common->products[(size_t)i * common->count + j] * from[j];
        }
        length2 += to[i] * to[i];
    }
    if (length2 <= 0) {
        return -1;
    }
    for (uint32_t i = 0; i < common->count; i++) {
        to[i] /= sqrt(length2);
        off2 += (to[i] - from[i]) * (to[i] - from[i]);
    }
    return off2;
}

bool common_of(struct common *common, const struct comparison *of, double *scores)
{
    size_t row = common->run_count * sizeof *scores;
    uint32_t others = 0;
    if (common->count < COMMON_METHODS) {
        return false;
    }
    double *from = common->loads, *to = from + common->count;
    for (uint32_t i = 0; i < common->count; i++) {
        bool is_other = memcmp(common->methods[i]->weights, of->weights, row) != 0;
        from[i] = is_other;
        others += is_other;
    }
    if (others < COMMON_METHODS) {
        return false;
    }
    double off2 = 1;
    for (int i = 0; i < STEPS && off2 > CLOSE2; i++) {
        off2 = step(common, from, to);
        if (off2 < 0) {
            return false;
        }
        double *last = from;
        from = to;
        to = last;
    }
    memset(scores, 0, row);
    for (uint32_t i = 0; i < common->count; i++) {
        for (uint32_t k = 0; k < common->run_count; k++) {
            scores[k] += from[i] * common->apart[(size_t)i * common->run_count + k];
        }
    }
    return true;
}
