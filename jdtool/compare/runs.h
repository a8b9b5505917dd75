/*
 * The runs that are compared, as one tree of stacks: by function alone, under names that all runs
 * have (normal_name). Of each node, how much every run had there itself.
 */
#ifndef JD_TOOL_RUNS_H
#define JD_TOOL_RUNS_H

#include "jdtool/base/hash_map.h"
#include "jdtool/base/intern.h"
#include "jdtool/profile/profile.h"

enum side { SIDE_BEFORE, SIDE_AFTER, SIDES };

#define RUNS_MAX 1000

struct runs_name {
    const char *text;
    const char *file; /* of its source; NULL: not known */
    uint8_t kind;     /* enum resolved_kind, of the first that was seen */
    uint8_t tier;
};

struct runs_node {
    uint32_t parent; /* PROFILE_NONE: outermost. A parent stands before its children */
    uint32_t name;
};

struct runs_event {
    const char *name, *unit;
    double *weights; /* by node and run: weights[node * run_count + run], of the node itself */
    double *whole;   /* by run */
    double *rest;    /* by run: one percent of all samples before, as those that did not change have
                        it (comparison.h); NULL: whole is the measure */
    uint32_t *from;  /* by run: how many samples */
    uint32_t room;   /* of weights, in nodes */
};

/* Start it with runs_init; the sides of the runs stand behind one another, SIDE_BEFORE first. */
struct runs {
    uint32_t run_count, before_count;
    double *work; /* by run: how many units of work it did; 0: not known */
    struct runs_name *names;
    struct runs_node *nodes;
    struct runs_event *events;
    uint32_t name_count, node_count, event_count;
    uint32_t name_room, node_room, event_room;
    struct hash_map name_map, node_map;
    struct intern strings;
};

/* 0 or -ENOMEM; free it in both cases. */
int runs_init(struct runs *runs, uint32_t before_count, uint32_t after_count);
void runs_free(struct runs *runs);

/* Takes in a profile as the run of that number. 0 or -ENOMEM. */
int runs_add(struct runs *runs, uint32_t run, const struct profile *profile);

/* What a run of an event is measured in: percent of all samples, or, where the work of all runs is
 * known, weight for a unit of work. What `weight` of that run comes to. */
bool runs_have_work(const struct runs *runs);
double runs_share(const struct runs_event *event, uint32_t run, double weight);
double runs_measure(const struct runs *runs, const struct runs_event *event, uint32_t run,
                    double weight);

#endif
