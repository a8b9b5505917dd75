#include "jdtool/compare/comparison.h"

#include "jdtool/base/array.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- A covariate ---- */

/*
 * What the methods of the rest (comparison.h) have in common between runs of one side. Those that
 * wait for memory, say, take longer together in some runs, and all others then have less of the
 * rest: of Shop (tests/shell) on such a machine a method's part varies by 4 % between runs, and by
 * 1.6 % without what is common. That is the first principal component of the scatter within the
 * sides; difference_adjusted (statistics.h) takes it out of a method's values.
 */

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

/*
 * Of an event, by the values of its comparisons, which stay and outlive it. Without a rest or with
 * too few runs there are no methods. 0 or -ENOMEM; free in both cases.
 */
static int covariate_init(struct covariate *covariate, const struct runs *runs,
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

static void covariate_free(struct covariate *covariate)
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

/*
 * Into scores, by run, what a comparison's runs share with the rest but for the comparison itself.
 * False: of too few methods.
 */
static bool covariate_of(struct covariate *covariate, const struct comparison *of, double *scores)
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

/* ---- The comparison ---- */

void comparisons_free(struct comparisons *made)
{
    for (uint32_t i = 0; i < made->count; i++) {
        free(made->list[i].weights);
    }
    free(made->list);
    *made = (struct comparisons){0};
}

/* Adds one of so much weight by run; what had too little is left out. */
static int add(const struct runs *runs, struct comparisons *made, enum compared what,
               uint32_t event, uint32_t id, const double *weights)
{
    const struct runs_event *of = &runs->events[event];
    double share = 0;
    for (uint32_t i = 0; i < runs->run_count; i++) {
        share += of->whole[i] > 0 ? weights[i] / of->whole[i] / runs->run_count : 0;
    }
    if (share < COMPARED_LEAST) {
        return 0;
    }
    double *kept =
        calloc((size_t)3 * runs->run_count + 1, sizeof *kept); /* weights, values, adjusted */
    if (!kept || ARRAY_RESERVE(made->list, made->count, made->room)) {
        free(kept);
        return -ENOMEM;
    }
    memcpy(kept, weights, runs->run_count * sizeof *kept);
    uint8_t kind = what == COMPARED_SELF ? runs->names[id].kind : RESOLVED_UNKNOWN;
    made->list[made->count++] = (struct comparison){
        .what = what,
        .event = event,
        .id = id,
        .weights = kept,
        .share = share,
        .values = kept + runs->run_count,
        .adjusted = kept + (size_t)2 * runs->run_count,
        .is_rest = kind == RESOLVED_COMPILED || kind == RESOLVED_INLINED,
    };
    return 0;
}

static void measure(const struct runs *runs, struct comparisons *made)
{
    for (uint32_t i = 0; i < made->count; i++) {
        struct comparison *of = &made->list[i];
        const struct runs_event *event = &runs->events[of->event];
        for (uint32_t k = 0; k < runs->run_count; k++) {
            of->values[k] = of->what == COMPARED_FRAME
                                ? runs_share(event, k, of->weights[k])
                                : runs_measure(runs, event, k, of->weights[k]);
        }
    }
}

/* ---- Weights with what was called ---- */

/* By node and run, of the node and all above it. NULL: no memory. */
static double *totals_of(struct runs *runs, struct runs_event *event)
{
    size_t row = runs->run_count;
    double *totals = calloc((size_t)runs->node_count + 1, row * sizeof *totals);
    if (!totals || (runs->node_count && array_reach(&event->weights, runs->node_count - 1,
                                                    &event->room, row * sizeof *totals))) {
        free(totals);
        return NULL;
    }
    for (uint32_t i = runs->node_count; i-- > 0;) {
        uint32_t parent = runs->nodes[i].parent;
        for (size_t k = 0; k < row; k++) {
            totals[i * row + k] += event->weights[i * row + k];
            if (parent != PROFILE_NONE) {
                totals[parent * row + k] += totals[i * row + k];
            }
        }
    }
    return totals;
}

/* A recursion counts once: where it was entered. */
static bool is_outermost(const struct runs *runs, uint32_t node)
{
    uint32_t name = runs->nodes[node].name;
    for (uint32_t at = runs->nodes[node].parent; at != PROFILE_NONE; at = runs->nodes[at].parent) {
        if (runs->nodes[at].name == name) {
            return false;
        }
    }
    return true;
}

static int add_methods(struct runs *runs, uint32_t event, struct comparisons *made)
{
    size_t row = runs->run_count;
    struct runs_event *of = &runs->events[event];
    double *totals = totals_of(runs, of);
    double *selfs = calloc((size_t)runs->name_count + 1, row * sizeof *selfs);
    double *alls = calloc((size_t)runs->name_count + 1, row * sizeof *alls);
    int err = totals && selfs && alls ? 0 : -ENOMEM;
    for (uint32_t i = 0; !err && i < runs->node_count; i++) {
        bool is_counted = is_outermost(runs, i);
        double *self = &selfs[runs->nodes[i].name * row], *all = &alls[runs->nodes[i].name * row];
        for (size_t k = 0; k < row; k++) {
            self[k] += of->weights[i * row + k];
            all[k] += is_counted ? totals[i * row + k] : 0;
        }
    }
    if (!err && runs_have_work(runs)) {
        err = add(runs, made, COMPARED_WHOLE, event, 0, of->whole);
    }
    for (uint32_t i = 0; !err && i < runs->name_count; i++) {
        const double *self = &selfs[i * row], *all = &alls[i * row];
        err = add(runs, made, COMPARED_SELF, event, i, self);
        if (!err && memcmp(self, all, row * sizeof *self) != 0) {
            err = add(runs, made, COMPARED_TOTAL, event, i, all);
        }
    }
    free(totals);
    free(selfs);
    free(alls);
    return err;
}

/* ---- A family ---- */

static int compare_numbers(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return ORDER(*x, *y);
}

/* By run, the middle one of how much each method of an event's rest has, of what it has on average:
 * what has changed, however much, is not in the middle while most have not. False: no memory. */
static bool middle_of_rest(const struct runs *runs, const struct comparisons *made, uint32_t event,
                           double *middle)
{
    double *means = calloc((size_t)made->count + 1, 2 * sizeof *means);
    double *ratios = means ? means + made->count : NULL;
    for (uint32_t i = 0; means && i < made->count; i++) {
        means[i] = mean_of(made->list[i].weights, runs->run_count);
    }
    for (uint32_t k = 0; means && k < runs->run_count; k++) {
        uint32_t count = 0;
        for (uint32_t i = 0; i < made->count; i++) {
            const struct comparison *of = &made->list[i];
            if (of->event == event && of->is_rest) {
                ratios[count++] = of->weights[k] / means[i];
            }
        }
        qsort(ratios, count, sizeof *ratios, compare_numbers);
        middle[k] = (ratios[(count - 1) / 2] + ratios[count / 2]) / 2;
    }
    free(means);
    return means != NULL;
}

/* The rest of an event's methods as its measure: so that one percent is one percent of all samples
 * before, on average. It is their sum, or their middle where what changed may be among them. False:
 * the rest is too little, and the measure remains what it was. */
static bool rest_measures(struct runs *runs, const struct comparisons *made, uint32_t event,
                          bool by_middle)
{
    struct runs_event *of = &runs->events[event];
    uint32_t methods = 0;
    double *rest = calloc(runs->run_count, sizeof *rest);
    double all = 0, whole_before = 0, rest_before = 0;
    bool is_enough = rest != NULL; /* without memory, all samples are the measure */
    for (uint32_t i = 0; rest && i < made->count; i++) {
        if (made->list[i].event == event && made->list[i].is_rest) {
            methods++;
            for (uint32_t k = 0; k < runs->run_count; k++) {
                rest[k] += made->list[i].weights[k];
            }
        }
    }
    for (uint32_t k = 0; is_enough && k < runs->run_count; k++) {
        all += rest[k] / of->whole[k] / runs->run_count;
    }
    is_enough = is_enough && methods >= REST_METHODS && all >= REST_SHARE &&
                (!by_middle || middle_of_rest(runs, made, event, rest));
    for (uint32_t k = 0; is_enough && k < runs->run_count; k++) {
        whole_before += k < runs->before_count ? of->whole[k] : 0;
        rest_before += k < runs->before_count ? rest[k] : 0;
        is_enough = rest[k] > 0;
    }
    if (!is_enough) {
        free(rest);
        return false;
    }
    for (uint32_t k = 0; k < runs->run_count; k++) {
        rest[k] *= whole_before / rest_before / 100;
    }
    free(of->rest);
    of->rest = rest;
    return true;
}

/* Takes what changed out of an event's rest: all of it, or what did so most surely. False: none
 * did. */
static bool rest_shrinks(struct comparisons *made, uint32_t event, bool by_all)
{
    struct comparison *surest = NULL;
    for (uint32_t i = 0; i < made->count; i++) {
        struct comparison *of = &made->list[i];
        if (of->event == event && of->is_rest && of->is_change) {
            surest = !surest || of->difference.p < surest->difference.p ? of : surest;
            of->is_rest = !by_all;
        }
    }
    if (surest) {
        surest->is_rest = false;
    }
    return surest != NULL;
}

static int compare_weights(const void *a, const void *b, void *argument)
{
    const struct comparison *const *x = a, *const *y = b;
    uint32_t count = *(const uint32_t *)argument;
    int order = ORDER((*x)->event, (*y)->event);
    for (uint32_t i = 0; i < count && !order; i++) {
        order = ORDER((*x)->weights[i], (*y)->weights[i]);
    }
    return order;
}

static int compare_impact(const void *a, const void *b)
{
    const struct comparison *x = a, *y = b;
    return ORDER(x->event, y->event)
               ?: ORDER(y->what == COMPARED_WHOLE, x->what == COMPARED_WHOLE)
               ?: ORDER(fabs(y->impact), fabs(x->impact))
               ?: ORDER(x->id, y->id)
               ?: ORDER(x->what, y->what);
}

/* The difference of each in order, which stands by event and weights. Callers of one another with
 * nothing beside have the same weights: that is one test, not many. Into p the chance of each test,
 * into test each one's. How many tests; negative: -ENOMEM. */
static int64_t test_all(const struct runs *runs, const struct comparisons *made,
                        struct comparison **order, double *p, uint32_t *test)
{
    struct covariate covariate = {0};
    uint32_t count = runs->run_count, before = runs->before_count, tests = 0;
    double *scores = calloc((size_t)count + 1, sizeof *scores);
    int err = scores ? 0 : -ENOMEM;
    for (uint32_t i = 0; !err && i < made->count; i++) {
        struct comparison *of = order[i];
        if (i == 0 || order[i - 1]->event != of->event) {
            covariate_free(&covariate);
            err = covariate_init(&covariate, runs, made, of->event);
        }
        if (i && compare_weights(&order[i - 1], &order[i], &count) == 0) {
            of->difference = order[i - 1]->difference;
            memcpy(of->adjusted, order[i - 1]->adjusted, count * sizeof *of->adjusted);
        } else {
            memcpy(of->adjusted, of->values, count * sizeof *of->adjusted);
            of->difference =
                !err && covariate_of(&covariate, of, scores)
                    ? difference_adjusted(of->adjusted, scores, before, count - before)
                    : difference_of(of->values, before, of->values + before, count - before);
            p[tests++] = of->difference.p;
        }
        test[i] = tests - 1;
    }
    covariate_free(&covariate);
    free(scores);
    return err ? err : (int64_t)tests;
}

static int judge(const struct runs *runs, struct comparisons *made)
{
    uint32_t count = made->count, before = runs->before_count;
    struct comparison **order = calloc((size_t)count + 1, sizeof(void *));
    double *rates = calloc((size_t)count + 1, sizeof *rates);
    uint32_t *test = calloc((size_t)count + 1, sizeof *test);
    int64_t tests = order && rates && test ? 0 : -ENOMEM;
    for (uint32_t i = 0; !tests && i < count; i++) {
        order[i] = &made->list[i];
    }
    if (!tests) {
        qsort_r(order, count, sizeof(void *), compare_weights, (void *)&runs->run_count);
        tests = test_all(runs, made, order, rates, test);
    }
    int err = tests < 0 ? (int)tests : false_discovery_rates(rates, (uint32_t)tests, rates);
    for (uint32_t i = 0; !err && i < count; i++) {
        double whole = 0;
        for (uint32_t k = 0; k < before; k++) {
            const struct runs_event *event = &runs->events[order[i]->event];
            whole += runs_measure(runs, event, k, event->whole[k]) / before;
        }
        order[i]->q = rates[test[i]];
        order[i]->is_change = order[i]->q <= FALSE_DISCOVERIES;
        order[i]->impact = whole > 0 ? 100 * order[i]->difference.change / whole : 0;
    }
    free(order);
    free(rates);
    free(test);
    if (!err && count) {
        qsort(made->list, count, sizeof *made->list, compare_impact);
    }
    return err;
}

/* An event that some run lacks was not recorded alike. */
static bool is_of_all_runs(const struct runs *runs, const struct runs_event *event)
{
    for (uint32_t i = 0; i < runs->run_count; i++) {
        if (event->whole[i] <= 0) {
            return false;
        }
    }
    return true;
}

int compare_methods(struct runs *runs, struct comparisons *made)
{
    int err = 0;
    for (uint32_t i = 0; !err && i < runs->event_count; i++) {
        err = is_of_all_runs(runs, &runs->events[i]) ? add_methods(runs, i, made) : 0;
    }
    bool again = !err && !runs_have_work(runs);
    for (uint32_t i = 0; again && i < runs->event_count; i++) {
        (void)rest_measures(runs, made, i, true);
    }
    bool is_first = true;
    do {
        measure(runs, made);
        err = err ? err : judge(runs, made);
        again = again && !err;
        bool is_other = false;
        for (uint32_t i = 0; again && i < runs->event_count; i++) {
            if (runs->events[i].rest && (rest_shrinks(made, i, is_first) || is_first)) {
                is_other |= rest_measures(runs, made, i, false);
            }
        }
        again = is_other;
        is_first = false;
    } while (again);
    return err;
}

int compare_frames(struct runs *runs, uint32_t event, struct comparisons *made)
{
    double *totals = totals_of(runs, &runs->events[event]);
    int err = totals ? 0 : -ENOMEM;
    bool is_of_all = is_of_all_runs(runs, &runs->events[event]);
    for (uint32_t i = 0; !err && is_of_all && i < runs->node_count; i++) {
        err = add(runs, made, COMPARED_FRAME, event, i, &totals[(size_t)i * runs->run_count]);
    }
    free(totals);
    measure(runs, made);
    return err ? err : judge(runs, made);
}

bool comparison_is_loss(const struct comparison *of, double threshold)
{
    return of->is_change && of->impact > 0 && of->impact >= threshold;
}

uint32_t comparisons_losses(const struct comparisons *made, double threshold)
{
    uint32_t losses = 0;
    for (uint32_t i = 0; i < made->count; i++) {
        losses += comparison_is_loss(&made->list[i], threshold);
    }
    return losses;
}
