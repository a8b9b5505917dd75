/* Which instructions were sampled, how often. */
#include "jdtool/base/array.h"
#include "jdtool/base/hash_map.h"
#include "jdtool/view/annotate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int find_code(struct annotation *a, const struct profile_location *location, uint32_t *id)
{
    uint32_t *number = &a->numbers[location->code_number];
    if (*number == 0) {
        if (array_reserve(&a->codes, a->code_count, &a->code_room, sizeof *a->codes)) {
            return -ENOMEM;
        }
        a->codes[a->code_count++] = (struct annotated_code){.code = location->code};
        *number = a->code_count;
    }
    *id = *number - 1;
    return 0;
}

static int find_place(struct annotation *a, struct hash_map *map, uint32_t code, uint64_t offset,
                      uint32_t *id)
{
    uint64_t hash = hash_pair(code, offset);
    struct hash_map_cursor cursor = hash_map_start(map, hash);
    while ((*id = hash_map_next(map, &cursor)) != HASH_MAP_NONE) {
        if (a->places[*id].code == code && a->places[*id].offset == offset) {
            return 0;
        }
    }
    if (array_reserve(&a->places, a->place_count, &a->place_room, sizeof *a->places) ||
        hash_map_add(map, hash, a->place_count)) {
        return -ENOMEM;
    }
    *id = a->place_count++;
    a->places[*id] = (struct annotated_place){.code = code, .offset = offset};
    return 0;
}

/* The code and place of a sample's own address; *place PROFILE_NONE: it is in no generated code. */
static int locate(struct annotation *a, struct hash_map *map, const struct profile_sample *sample,
                  uint32_t *code, uint32_t *place)
{
    *place = PROFILE_NONE;
    if (sample->node == PROFILE_NONE) {
        return 0;
    }
    const struct profile_location *location =
        &a->profile->locations[a->profile->nodes[sample->node].location];
    if (!location->code) {
        return 0;
    }
    int err = find_code(a, location, code);
    return err ? err
               : find_place(a, map, *code, location->address - location->code->module_address,
                            place);
}

/* One block of memory for all weights. */
static int give_weights(struct annotation *a)
{
    size_t lists = (size_t)a->code_count + a->place_count + 1;
    a->weights = calloc(lists * a->events + 1, sizeof *a->weights);
    if (!a->weights) {
        return -ENOMEM;
    }
    uint64_t *next = a->weights;
    a->totals = next;
    for (uint32_t i = 0; i < a->code_count; i++) {
        a->codes[i].weights = next += a->events;
    }
    for (uint32_t i = 0; i < a->place_count; i++) {
        a->places[i].weights = next += a->events;
    }
    return 0;
}

static int count(struct annotation *a, struct hash_map *map, const struct profile_sample *sample)
{
    uint32_t code = 0;
    uint32_t place;
    int err = locate(a, map, sample, &code, &place);
    if (err) {
        return err;
    }
    a->totals[sample->event] += sample->weight;
    if (place != PROFILE_NONE && a->codes && a->places) {
        uint64_t *of_code = a->codes[code].weights;
        uint64_t *of_place = a->places[place].weights;
        a->codes[code].samples += sample->count;
        if (of_code && of_place) {
            of_code[sample->event] += sample->weight;
            of_place[sample->event] += sample->weight;
        }
    }
    return 0;
}

static int compare_places(const void *a, const void *b)
{
    const struct annotated_place *first = a;
    const struct annotated_place *second = b;
    if (first->code != second->code) {
        return first->code < second->code ? -1 : 1;
    }
    return first->offset < second->offset ? -1 : first->offset > second->offset;
}

int annotation_count(const struct profile *profile, struct annotation *a)
{
    struct hash_map map = {0};
    *a = (struct annotation){.profile = profile, .events = profile->recording->event_count};
    a->numbers = calloc((size_t)profile->code_count + 1, sizeof *a->numbers);
    int err = a->numbers ? 0 : -ENOMEM;
    for (uint32_t i = 0; i < profile->sample_count && !err; i++) {
        uint32_t code;
        uint32_t place;
        err = locate(a, &map, &profile->samples[i], &code, &place);
    }
    if (!err) {
        err = give_weights(a);
    }
    for (uint32_t i = 0; i < profile->sample_count && !err; i++) {
        err = count(a, &map, &profile->samples[i]);
    }
    hash_map_free(&map);
    if (!err && a->place_count) {
        qsort(a->places, a->place_count, sizeof *a->places, compare_places);
    }
    return err;
}

void annotation_free(struct annotation *a)
{
    free(a->numbers);
    free(a->codes);
    free(a->places);
    free(a->weights);
    *a = (struct annotation){0};
}
