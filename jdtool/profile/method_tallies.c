#include "jdtool/profile/method_tallies.h"

#include "jdtool/base/array.h"
#include "jdtool/base/unique.h"

#include <errno.h>
#include <string.h>

static uint64_t *weights_of(const struct method_tallies *r, const struct tallies *tallies,
                            uint32_t id)
{
    return &tallies->weights[(size_t)id * 2 * r->events];
}

/* NULL: no memory. */
static struct tally *tally_of(const struct method_tallies *r, struct tallies *tallies,
                              uint32_t function, uint32_t what)
{
    const struct tally made = {.function = function, .what = what, .stamp = PROFILE_NONE};
    uint32_t id = unique_add(&tallies->list, &tallies->count, &tallies->room, sizeof made,
                             &tallies->map, &made, TALLY_KEY);
    bool failed =
        id == HASH_MAP_NONE || array_reach(&tallies->weights, id, &tallies->weights_room,
                                           2 * (size_t)r->events * sizeof *tallies->weights);
    return failed ? NULL : &tallies->list[id];
}

static int count(const struct method_tallies *r, struct tallies *tallies, uint32_t function,
                 uint32_t what, uint32_t sample_id, bool is_self)
{
    const struct profile_sample *sample = &r->profile->samples[sample_id];
    struct tally *tally = tally_of(r, tallies, function, what);
    if (!tally) {
        return -ENOMEM;
    }
    uint64_t *weights = weights_of(r, tallies, (uint32_t)(tally - tallies->list));
    if (is_self) {
        tally->self_samples += sample->count;
        weights[sample->event] += sample->weight;
    }
    if (tally->stamp != sample_id) {
        tally->stamp = sample_id;
        tally->total_samples += sample->count;
        weights[r->events + sample->event] += sample->weight;
    }
    return 0;
}

/* The lines of a stack, innermost first. */
struct stack_lines {
    const struct profile *profile;
    uint32_t node, given; /* so many of its lines were given */
};

/* NULL: there are no more. */
static const struct profile_line *next_line(struct stack_lines *lines)
{
    const struct profile *profile = lines->profile;
    while (lines->node != PROFILE_NONE) {
        const struct profile_location *location =
            &profile->locations[profile->nodes[lines->node].location];
        if (lines->given < location->line_count) {
            return &profile->lines[location->first_line + lines->given++];
        }
        lines->node = profile->nodes[lines->node].parent;
        lines->given = 0;
    }
    return NULL;
}

/* Inlined native functions are taken for it, too. */
static bool is_java(const struct profile_line *line)
{
    return line->kind == RESOLVED_COMPILED || line->kind == RESOLVED_INLINED ||
           line->kind == RESOLVED_INTERPRETED;
}

/* Of a stack that ends in the scheduler. */
static uint32_t depth_of_wait(struct stack_lines lines)
{
    uint32_t depth = 0;
    uint32_t in_kernel = 0;
    uint32_t java = PROFILE_NONE;
    const struct profile_line *line;
    for (; (line = next_line(&lines)) != NULL; depth++) {
        if (line->kind == RESOLVED_SUBJECT &&
            strcmp(lines.profile->functions[line->function].name, "[idle]") == 0) {
            return depth;
        }
        if (java == PROFILE_NONE && is_java(line)) {
            java = depth;
        }
        in_kernel += line->kind == RESOLVED_KERNEL && in_kernel == depth;
    }
    return java != PROFILE_NONE ? java : in_kernel < depth ? in_kernel : 0;
}

/* Behind the constructors of an exception of that class, from which its stack was filled in, and
 * behind the JVM's functions, where native code made it: its native method throws. */
static uint32_t depth_of_throw(struct stack_lines lines, const char *class)
{
    static const char constructor[] = ".<init>(";
    size_t size = strlen(class);
    uint32_t found = 1; /* behind the class */
    bool has_constructor = false;
    const struct profile_line *line;
    for (uint32_t depth = 1; (line = next_line(&lines)) != NULL; depth++) {
        const char *name = lines.profile->functions[line->function].name;
        if (strncmp(name, class, size) == 0 &&
            strncmp(name + size, constructor, sizeof constructor - 1) == 0) {
            found = depth + 1;
            has_constructor = true;
        } else if (has_constructor && is_java(line)) {
            return depth;
        }
    }
    return found;
}

/* How many lines lie inside that which took it by itself. */
static uint32_t depth_of_self(struct stack_lines lines, const struct recorded_event *event,
                              bool is_of_scheduler)
{
    if (is_of_scheduler) {
        return depth_of_wait(lines);
    }
    const struct profile_line *first = next_line(&lines);
    if (!first || first->kind != RESOLVED_SUBJECT) {
        return 0;
    }
    return strcmp(event->name, "exception") == 0
               ? depth_of_throw(lines, lines.profile->functions[first->function].name)
               : 1;
}

static int count_sample(struct method_tallies *r, uint32_t id)
{
    const struct profile *profile = r->profile;
    const struct profile_sample *sample = &profile->samples[id];
    const struct recorded_event *event = &profile->recording->events[sample->event];
    struct stack_lines lines = {profile, sample->node, 0};
    bool is_of_scheduler = event_is_of_scheduler(event);
    uint32_t self = depth_of_self(lines, event, is_of_scheduler);
    uint32_t callee = PROFILE_NONE;
    const struct profile_line *line;
    int err = 0;
    for (uint32_t depth = 0; !err && (line = next_line(&lines)) != NULL; depth++) {
        bool is_self = depth == self || (line->kind == RESOLVED_SUBJECT && !is_of_scheduler);
        err = count(r, &r->methods, line->function, 0, id, is_self);
        if (!err) {
            bool is_compiled = line->kind == RESOLVED_COMPILED;
            uint32_t form =
                METHOD_FORM(line->kind, is_compiled ? line->tier : 0, is_compiled && line->is_osr);
            err = count(r, &r->forms, line->function, form, id, is_self);
        }
        if (!err && line->line) {
            err = count(r, &r->lines, line->function, line->line, id, is_self);
        }
        if (!err && callee != PROFILE_NONE) {
            err = count(r, &r->callers, callee, line->function, id, false);
        }
        callee = line->function;
    }
    return err;
}

static void release(struct tallies *tallies)
{
    free(tallies->list);
    free(tallies->weights);
    hash_map_free(&tallies->map);
}

int method_tallies_make(const struct profile *profile, struct method_tallies *made)
{
    *made = (struct method_tallies){.profile = profile, .events = profile->recording->event_count};
    int err = 0;
    for (uint32_t i = 0; !err && i < profile->sample_count; i++) {
        err = count_sample(made, i);
    }
    return err;
}

void method_tallies_free(struct method_tallies *made)
{
    release(&made->methods);
    release(&made->lines);
    release(&made->callers);
    release(&made->forms);
}

const uint64_t *method_tally_weights(const struct method_tallies *made,
                                     const struct tallies *tallies, uint32_t id)
{
    return weights_of(made, tallies, id);
}

/* The order in which tallies are written: of a method behind one another, the heaviest first. */
struct sorting {
    const struct method_tallies *made;
    const struct tallies *tallies;
    uint32_t event;
    bool by_function;
};

static int compare(const void *a, const void *b, void *argument)
{
    const struct sorting *sorting = argument;
    uint32_t ids[2] = {*(const uint32_t *)a, *(const uint32_t *)b};
    const struct tally *tallies[2];
    const uint64_t *weights[2];
    for (int i = 0; i < 2; i++) {
        tallies[i] = &sorting->tallies->list[ids[i]];
        weights[i] = weights_of(sorting->made, sorting->tallies, ids[i]);
    }
    int order = sorting->by_function ? ORDER(tallies[0]->function, tallies[1]->function) : 0;
    uint32_t events = sorting->made->events;
    for (uint32_t i = 0; i < 2 * events && !order; i++) {
        /* Self and total of that event, so that what has nothing of it is last; then the others'.
         */
        uint32_t at = (i / 2 + sorting->event) % events + i % 2 * events;
        order = ORDER(weights[1][at], weights[0][at]);
    }
    return order ?: ORDER(ids[0], ids[1]);
}

int method_tallies_order(const struct method_tallies *r, const struct tallies *tallies,
                         uint32_t event, bool by_function, struct tallies_order *order)
{
    const struct sorting sorting = {r, tallies, event, by_function};
    uint32_t functions = by_function ? r->profile->function_count : 0;
    *order = (struct tallies_order){array_sorted(tallies->count, compare, &sorting),
                                    malloc(((size_t)functions + 1) * sizeof *order->first)};
    if (!order->list || !order->first) {
        return -ENOMEM;
    }
    for (uint32_t i = 0; i <= functions; i++) {
        order->first[i] = tallies->count;
    }
    for (uint32_t i = by_function ? tallies->count : 0; i-- > 0;) {
        order->first[tallies->list[order->list[i]].function] = i;
    }
    return 0;
}

void tallies_order_free(struct tallies_order *order)
{
    free(order->list);
    free(order->first);
}
