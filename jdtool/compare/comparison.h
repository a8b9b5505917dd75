/*
 * What of the runs changed beyond chance: each method's own part and its part with what it called,
 * or each frame of the tree of stacks.
 *
 * Where the work of the runs is not known, methods are measured by the rest: by the compiled
 * methods that did not change, together. Of all samples, the compiler, the collector and the kernel
 * take more in one run and less in another, on a busy machine above all, and all methods less and
 * more; and a method that became slower would make all others look faster. Which methods are the
 * rest is found in steps: at first all are measured by the one in the middle, and what changed is
 * left out; then the sum of the others is the measure, without the one whose change is surest,
 * until no more change. What the rest has in common between runs is taken out.
 */
#ifndef JD_TOOL_COMPARISON_H
#define JD_TOOL_COMPARISON_H

#include "jdtool/compare/runs.h"
#include "jdtool/compare/statistics.h"

/* What had less of all samples, on average over the runs, is not compared. */
#define COMPARED_LEAST 0.01

/* The rest is so many methods and such a part of all samples at least; else all samples are the
 * measure. */
#define REST_METHODS 3
#define REST_SHARE   0.1

/* Of what is called a change, so much may be chance. */
#define FALSE_DISCOVERIES 0.05

enum compared {
    COMPARED_WHOLE, /* all samples: only where the work is known */
    COMPARED_SELF,  /* a method alone */
    COMPARED_TOTAL, /* with what it called */
    COMPARED_FRAME, /* a node of the tree, with all above it */
};

struct comparison {
    enum compared what;
    uint32_t event;
    uint32_t id;      /* of the name; COMPARED_FRAME: of the node */
    double *weights;  /* by run */
    double share;     /* of all samples, on average over the runs: 0 to 1 */
    double *values;   /* by run, in what runs_measure gives; of frames always shares */
    double *adjusted; /* the same without what the rest has in common (covariate.h) */
    struct difference difference;
    double q;       /* see false_discovery_rates */
    double impact;  /* the change in percent of all samples before */
    bool is_change; /* q is at most FALSE_DISCOVERIES */
    bool is_rest;   /* one of the methods that the others are measured by */
};

/* Those of one family: q is held over all of them. */
struct comparisons {
    struct comparison *list; /* by event, the largest impact first, up or down */
    uint32_t count, room;
};

/* Methods of all events (COMPARED_WHOLE, _SELF, _TOTAL), or frames of one of them. Both sides need
 * RUNS_LEAST runs. 0 or -ENOMEM; free in both cases. Start zeroed. */
int compare_methods(struct runs *runs, struct comparisons *made);
int compare_frames(struct runs *runs, uint32_t event, struct comparisons *made);
void comparisons_free(struct comparisons *made);

/* How many are a loss: a change upwards of at least so many percent of all samples before. */
uint32_t comparisons_losses(const struct comparisons *made, double threshold);
bool comparison_is_loss(const struct comparison *of, double threshold);

#endif
