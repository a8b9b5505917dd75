#include "jdtool/compare/runs.h"

#include "jdtool/base/tree.h"
#include "jdtool/base/unique.h"
#include "jdtool/profile/normal_name.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

int runs_init(struct runs *runs, uint32_t before_count, uint32_t after_count)
{
    *runs = (struct runs){.run_count = before_count + after_count, .before_count = before_count};
    runs->work = calloc((size_t)runs->run_count + 1, sizeof *runs->work);
    return runs->work ? 0 : -ENOMEM;
}

void runs_free(struct runs *runs)
{
    for (uint32_t i = 0; i < runs->event_count; i++) {
        free(runs->events[i].weights);
        free(runs->events[i].whole);
        free(runs->events[i].rest);
        free(runs->events[i].from);
    }
    free(runs->events);
    free(runs->names);
    free(runs->nodes);
    free(runs->work);
    hash_map_free(&runs->name_map);
    hash_map_free(&runs->node_map);
    intern_free(&runs->strings);
}

/* ---- What runs have in common ---- */

static int name_of(struct runs *runs, const char *text, const char *file, uint32_t *id)
{
    char *normal = strdup(text);
    const char *kept = NULL, *kept_file = NULL;
    if (normal) {
        normal_name(normal);
        kept = intern(&runs->strings, normal);
        kept_file = file ? intern(&runs->strings, file) : NULL;
    }
    free(normal);
    if (!kept || (file && !kept_file)) {
        return -ENOMEM;
    }
    const struct runs_name made = {.text = kept, .file = kept_file};
    *id = unique_add(&runs->names, &runs->name_count, &runs->name_room, sizeof made,
                     &runs->name_map, &made, sizeof made.text);
    return *id == HASH_MAP_NONE ? -ENOMEM : 0;
}

static int node_of(struct runs *runs, uint32_t parent, uint32_t name, uint32_t *id)
{
    *id = tree_child(&runs->nodes, &runs->node_count, &runs->node_room, sizeof *runs->nodes,
                     TREE_MOST, &runs->node_map, parent, name);
    return *id == HASH_MAP_NONE ? -ENOMEM : 0;
}

static int event_of(struct runs *runs, const struct recorded_event *event, uint32_t *id)
{
    for (*id = 0; *id < runs->event_count; (*id)++) {
        if (strcmp(runs->events[*id].name, event->name) == 0) {
            return 0;
        }
    }
    struct runs_event made = {
        .name = intern(&runs->strings, event->name),
        .unit = intern(&runs->strings, event->unit),
        .whole = calloc(runs->run_count, sizeof *made.whole),
        .from = calloc(runs->run_count, sizeof *made.from),
    };
    if (!made.name || !made.unit || !made.whole || !made.from ||
        ARRAY_RESERVE(runs->events, runs->event_count, runs->event_room)) {
        free(made.whole);
        free(made.from);
        return -ENOMEM;
    }
    runs->events[runs->event_count++] = made;
    return 0;
}

/* ---- One run ---- */

/* By the profile's function and event: which they are here. */
struct numbers {
    uint32_t *names, *nodes, *events;
};

static int number_names(struct runs *runs, const struct profile *profile, struct numbers *numbers)
{
    int err = 0;
    for (uint32_t i = 0; !err && i < profile->function_count; i++) {
        const struct profile_function *function = &profile->functions[i];
        err = name_of(runs, function->name, function->file, &numbers->names[i]);
    }
    for (uint32_t i = 0; !err && i < profile->recording->event_count; i++) {
        err = event_of(runs, &profile->recording->events[i], &numbers->events[i]);
    }
    return err;
}

/* The node of each of the profile's nodes: of its innermost line. */
static int number_nodes(struct runs *runs, const struct profile *profile, struct numbers *numbers)
{
    int err = 0;
    for (uint32_t i = 0; !err && i < profile->node_count; i++) {
        const struct profile_node *node = &profile->nodes[i];
        const struct profile_location *location = &profile->locations[node->location];
        uint32_t at = node->parent == PROFILE_NONE ? PROFILE_NONE : numbers->nodes[node->parent];
        for (uint32_t k = location->line_count; !err && k-- > 0;) {
            const struct profile_line *line = &profile->lines[location->first_line + k];
            struct runs_name *name = &runs->names[numbers->names[line->function]];
            /* Most are interpreted first. */
            bool is_compiled = line->kind == RESOLVED_COMPILED || line->kind == RESOLVED_INLINED;
            if (!name->kind || (is_compiled && name->kind == RESOLVED_INTERPRETED)) {
                name->kind = line->kind;
                name->tier = line->tier;
            }
            err = node_of(runs, at, numbers->names[line->function], &at);
        }
        numbers->nodes[i] = at;
    }
    return err;
}

static int add_weight(struct runs *runs, struct runs_event *event, uint32_t run, uint32_t node,
                      const struct profile_sample *sample)
{
    size_t element = runs->run_count * sizeof *event->weights;
    if (array_reach(&event->weights, node, &event->room, element)) {
        return -ENOMEM;
    }
    event->weights[(size_t)node * runs->run_count + run] += (double)sample->weight;
    event->whole[run] += (double)sample->weight;
    event->from[run] += sample->count;
    return 0;
}

static int add_samples(struct runs *runs, uint32_t run, const struct profile *profile,
                       const struct numbers *numbers)
{
    uint32_t nowhere = PROFILE_NONE; /* the node of what has no stack */
    int err = 0;
    for (uint32_t i = 0; !err && i < profile->sample_count; i++) {
        const struct profile_sample *sample = &profile->samples[i];
        uint32_t node = sample->node == PROFILE_NONE ? nowhere : numbers->nodes[sample->node];
        if (node == PROFILE_NONE) {
            uint32_t name;
            err = name_of(runs, "[no stack]", NULL, &name);
            err = err ? err : node_of(runs, PROFILE_NONE, name, &nowhere);
            node = nowhere;
        }
        err = err ? err
                  : add_weight(runs, &runs->events[numbers->events[sample->event]], run, node,
                               sample);
    }
    return err;
}

int runs_add(struct runs *runs, uint32_t run, const struct profile *profile)
{
    struct numbers numbers = {
        .names = calloc((size_t)profile->function_count + 1, sizeof *numbers.names),
        .nodes = calloc((size_t)profile->node_count + 1, sizeof *numbers.nodes),
        .events = calloc((size_t)profile->recording->event_count + 1, sizeof *numbers.events),
    };
    int err = numbers.names && numbers.nodes && numbers.events ? 0 : -ENOMEM;
    err = err ? err : number_names(runs, profile, &numbers);
    err = err ? err : number_nodes(runs, profile, &numbers);
    err = err ? err : add_samples(runs, run, profile, &numbers);
    free(numbers.names);
    free(numbers.nodes);
    free(numbers.events);
    return err;
}

/* ---- Measures ---- */

bool runs_have_work(const struct runs *runs)
{
    return runs->run_count && runs->work[0] > 0;
}

double runs_share(const struct runs_event *event, uint32_t run, double weight)
{
    double per = event->rest ? event->rest[run] : event->whole[run] / 100;
    return per > 0 ? weight / per : 0;
}

double runs_measure(const struct runs *runs, const struct runs_event *event, uint32_t run,
                    double weight)
{
    if (!runs_have_work(runs)) {
        return runs_share(event, run, weight);
    }
    return runs->work[run] > 0 ? weight / runs->work[run] : 0;
}
