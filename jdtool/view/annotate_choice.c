#include "jdtool/view/annotate_choice.h"

#include "jdtool/view/method_match.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *annotated_name(const struct annotation *a, uint32_t code)
{
    const struct resolved_code *its = a->codes[code].code;
    return its->method ? its->method->name : its->symbol;
}

uint64_t annotated_weight(const struct annotation *a, uint32_t code)
{
    uint64_t weight = 0;
    for (uint32_t i = 0; i < a->events && weight == 0; i++) {
        weight = a->codes[code].weights[i];
    }
    return weight;
}

/* Codes by weight, the heaviest first. */
static int compare_codes(const void *x, const void *y, void *argument)
{
    const struct annotation *a = argument;
    uint64_t first = annotated_weight(a, *(const uint32_t *)x);
    uint64_t second = annotated_weight(a, *(const uint32_t *)y);
    if (first != second) {
        return first > second ? -1 : 1;
    }
    return *(const uint32_t *)x < *(const uint32_t *)y ? -1 : 1;
}

/* Whether a location of generated code has the wanted method inlined. */
static bool has_inlined(const struct profile *profile, const struct profile_location *location,
                        const char *wanted)
{
    for (uint32_t i = 0; location->code && i + 1 < location->line_count; i++) {
        const struct profile_line *line = &profile->lines[location->first_line + i];
        if (method_match(profile->functions[line->function].name, wanted) > 0) {
            return true;
        }
    }
    return false;
}

/* The codes of which instructions of the wanted method, inlined there, were sampled: picks them, in
 * that order, and sets their shares of those samples in `hosted`, by code. Returns their number. */
static uint32_t pick_hosts(const struct annotation *a, const char *wanted, const uint32_t *order,
                           uint32_t *picked, uint64_t *hosted)
{
    const struct profile *profile = a->profile;
    uint32_t count = 0;
    for (uint32_t i = 0; i < a->code_count; i++) {
        hosted[i] = 0;
    }
    for (uint32_t i = 0; i < profile->sample_count; i++) {
        const struct profile_sample *sample = &profile->samples[i];
        const struct profile_location *location =
            sample->node == PROFILE_NONE
                ? NULL
                : &profile->locations[profile->nodes[sample->node].location];
        if (!location || !has_inlined(profile, location, wanted)) {
            continue;
        }
        hosted[a->numbers[location->code_number] - 1] += sample->weight;
    }
    for (uint32_t i = 0; i < a->code_count; i++) {
        if (hosted[order[i]]) {
            picked[count++] = order[i];
        }
    }
    /* Of a method that calls, only what it called may have been sampled. */
    for (uint32_t i = 0; profile->locations && count == 0 && i < profile->location_count; i++) {
        const struct profile_location *location = &profile->locations[i];
        if (has_inlined(profile, location, wanted) && a->numbers[location->code_number]) {
            picked[count++] = a->numbers[location->code_number] - 1;
        }
    }
    return count;
}

static uint32_t pick_codes(const struct annotation *a, const char *wanted, const uint32_t *order,
                           uint32_t *picked)
{
    uint32_t count = 0;
    for (int rank = 3; rank > 0 && count == 0; rank--) {
        for (uint32_t i = 0; i < a->code_count; i++) {
            if (method_match(annotated_name(a, order[i]), wanted) == rank) {
                picked[count++] = order[i];
            }
        }
    }
    return count;
}

int annotation_choose(const struct annotation *a, const char *wanted,
                      struct annotation_choice *choice)
{
    size_t count = (size_t)a->code_count + 1;
    *choice = (struct annotation_choice){.order = calloc(count, sizeof *choice->order),
                                         .picked = calloc(count, sizeof *choice->picked),
                                         .hosted = calloc(count, sizeof *choice->hosted)};
    uint32_t *hosts = calloc(count, sizeof *hosts);
    if (!choice->order || !choice->picked || !choice->hosted || !hosts) {
        free(hosts);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < a->code_count; i++) {
        choice->order[i] = i;
    }
    qsort_r(choice->order, a->code_count, sizeof *choice->order, compare_codes, (void *)a);
    choice->count = pick_codes(a, wanted, choice->order, choice->picked);
    uint32_t host_count = pick_hosts(a, wanted, choice->order, hosts, choice->hosted);
    if (choice->count == 0 && host_count > 0) {
        choice->are_hosts = true;
        memcpy(choice->picked, hosts, host_count * sizeof *hosts);
        choice->count = host_count;
    }
    free(hosts);
    return 0;
}

void annotation_choice_free(struct annotation_choice *choice)
{
    free(choice->order);
    free(choice->picked);
    free(choice->hosted);
}
