#include "writer/log/living_records.h"

#include "writer/invariant.h"

#include <stdlib.h>

static void give_up(struct living_record *record)
{
    unsigned holders = atomic_fetch_sub_explicit(&record->holders, 1, memory_order_acq_rel);
    invariant(holders, holders == 1 || holders == 2);
    if (holders == 1) {
        free(record);
    }
}

/* Code that is overlapped in a part is still named by its record in the others. */
static void tell(struct kept *kept, enum occupant_event event)
{
    if (event == OCCUPANT_GONE || event == OCCUPANT_OVER) {
        give_up((struct living_record *)kept);
    }
}

struct living_record *living_record_new(void)
{
    struct living_record *record = calloc(1, sizeof(*record));
    if (record) {
        record->kept.tell = tell;
        atomic_init(&record->holders, 2);
    }
    return record;
}

void living_record_drop(struct living_record *record)
{
    if (record) {
        give_up(record);
    }
}

void living_records_add(struct living_records *living, struct living_record *record,
                        uint64_t offset, uint64_t size)
{
    if (!record) {
        return;
    }
    invariant(order, !living->last || living->last->offset + living->last->size <= offset);
    record->offset = offset;
    record->size = size;
    record->next = NULL;
    *(living->last ? &living->last->next : &living->first) = record;
    living->last = record;
}

uint64_t living_records_prune(struct living_records *living)
{
    uint64_t bytes = 0;
    struct living_record **link = &living->first;
    living->last = NULL;
    while (*link) {
        struct living_record *record = *link;
        if (atomic_load_explicit(&record->holders, memory_order_acquire) == 1) {
            *link = record->next;
            free(record);
        } else {
            bytes += record->size;
            living->last = record;
            link = &record->next;
        }
    }
    return bytes;
}

bool living_records_stretch(const struct living_record **record, uint64_t *offset, uint64_t *size)
{
    const struct living_record *at = *record;
    if (!at) {
        return false;
    }
    *offset = at->offset;
    *size = 0;
    while (at && at->offset == *offset + *size) {
        *size += at->size;
        at = at->next;
    }
    *record = at;
    return true;
}

void living_records_move(struct living_records *living, uint64_t offset)
{
    for (struct living_record *record = living->first; record; record = record->next) {
        record->offset = offset;
        offset += record->size;
    }
}

void living_records_free(struct living_records *living)
{
    while (living->first) {
        struct living_record *record = living->first;
        living->first = record->next;
        give_up(record);
    }
    living->last = NULL;
}
