#include "jdtool/objects/row_set.h"

static bool has_expression(const struct native_place *place)
{
    return place->rule == NATIVE_EXPRESSION || place->rule == NATIVE_AT_EXPRESSION;
}

static uint64_t hash_of_place(uint64_t hash, const struct native_place *place)
{
    return hash_pair(hash, (uint64_t)(uint32_t)place->offset << 32 | (uint64_t)place->reg << 8 |
                               place->rule);
}

static bool is_same_place(const struct native_place *a, const struct native_place *b)
{
    return a->rule == b->rule && a->reg == b->reg && a->offset == b->offset;
}

static bool is_same(const struct native_row *a, const struct native_row *b)
{
    bool same = is_same_place(&a->cfa, &b->cfa) && a->found == b->found && a->signal == b->signal;
    for (unsigned i = 0; i < NATIVE_PLACES && same; i++) {
        same = is_same_place(&a->places[i], &b->places[i]);
    }
    return same;
}

const struct native_row *row_set_keep(struct row_set *set, const struct native_row *row)
{
    uint64_t hash = hash_of_place((uint64_t)row->found << 1 | row->signal, &row->cfa);
    bool whole = !has_expression(&row->cfa);
    for (unsigned i = 0; i < NATIVE_PLACES; i++) {
        hash = hash_of_place(hash, &row->places[i]);
        whole &= !has_expression(&row->places[i]);
    }
    if (!whole) {
        return NULL;
    }
    struct hash_map_cursor cursor = hash_map_start(&set->by_content, hash);
    for (uint32_t at; (at = hash_map_next(&set->by_content, &cursor)) != HASH_MAP_NONE;) {
        const struct native_row *known = chunks_at(&set->list, at);
        if (is_same(known, row)) {
            return known;
        }
    }
    struct native_row *kept = set->list.count < ROW_SET_MAX ? chunks_add(&set->list) : NULL;
    if (!kept || hash_map_add(&set->by_content, hash, set->list.count - 1)) {
        return NULL;
    }
    *kept = *row;
    kept->lasts = true;
    return kept;
}

void row_set_free(struct row_set *set)
{
    chunks_free(&set->list);
    hash_map_free(&set->by_content);
}
