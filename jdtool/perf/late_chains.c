#include "jdtool/perf/late_chains.h"

#include "jdtool/base/numbered.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The marker and the cookie behind it. */
#define MARKER_WORDS 2

struct thread {
    uint64_t tid;
    uint64_t cookie;
    struct late_sample *first;
    struct late_sample *last;
};

/* A slot for each thread that ever had one: a recording has some thousands at most. */
struct late_chains {
    size_t budget;
    size_t used;
    struct numbered threads; /* of struct thread */
    uint64_t *chain;         /* the one that was joined last */
    size_t chain_room;
};

struct late_chains *late_chains_new(size_t budget)
{
    struct late_chains *chains = calloc(1, sizeof *chains);
    if (chains) {
        chains->budget = budget;
        chains->threads = NUMBERED(struct thread);
    }
    return chains;
}

void late_chains_free(struct late_chains *chains)
{
    if (!chains) {
        return;
    }
    for (uint32_t i = 0; i < chains->threads.list.count; i++) {
        const struct thread *thread = chunks_at(&chains->threads.list, i);
        struct late_sample *next;
        for (struct late_sample *sample = thread->first; sample; sample = next) {
            next = sample->next;
            free(sample);
        }
    }
    numbered_free(&chains->threads);
    free(chains->chain);
    free(chains);
}

bool late_chain_awaits(const struct perf_sample *sample, uint64_t *cookie)
{
    uint64_t count = sample->chain_count;
    if (sample->type != PERF_RECORD_SAMPLE || count < MARKER_WORDS ||
        sample->chain[count - MARKER_WORDS] != PERF_CONTEXT_USER_DEFERRED) {
        return false;
    }
    *cookie = sample->chain[count - 1];
    return true;
}

static size_t size_of(const struct queued_record *queued)
{
    return sizeof(struct late_sample) + queued->size;
}

bool late_chains_keep(struct late_chains *chains, uint32_t tid, uint64_t cookie,
                      const struct queued_record *queued, uint64_t weight)
{
    size_t size = size_of(queued);
    struct thread *thread = numbered_get(&chains->threads, tid, NULL);
    struct late_sample *sample = NULL;
    if (thread && size <= chains->budget - chains->used) {
        sample = malloc(size);
    }
    if (!sample) {
        return false;
    }
    sample->next = NULL;
    sample->queued = *queued;
    sample->queued.bytes = sample->bytes;
    sample->weight = weight;
    memcpy(sample->bytes, queued->bytes, queued->size);
    *(thread->first ? &thread->last->next : &thread->first) = sample;
    thread->last = sample;
    thread->cookie = cookie;
    chains->used += size;
    return true;
}

static struct late_sample *take(struct late_chains *chains, struct thread *thread)
{
    struct late_sample *first = thread->first;
    for (const struct late_sample *sample = first; sample; sample = sample->next) {
        chains->used -= size_of(&sample->queued);
    }
    thread->first = NULL;
    thread->last = NULL;
    return first;
}

struct late_sample *late_chains_take(struct late_chains *chains, uint32_t tid, uint64_t cookie)
{
    struct thread *thread = numbered_find(&chains->threads, tid);
    return thread && thread->cookie == cookie ? take(chains, thread) : NULL;
}

struct late_sample *late_chains_take_others(struct late_chains *chains, uint32_t tid,
                                            uint64_t cookie)
{
    struct thread *thread = numbered_find(&chains->threads, tid);
    return thread && thread->cookie != cookie ? take(chains, thread) : NULL;
}

struct late_sample *late_chains_take_any(struct late_chains *chains)
{
    for (uint32_t i = 0; i < chains->threads.list.count; i++) {
        struct thread *thread = chunks_at(&chains->threads.list, i);
        if (thread->first) {
            return take(chains, thread);
        }
    }
    return NULL;
}

int late_chain_join(struct late_chains *chains, struct perf_sample *sample,
                    const struct perf_sample *part)
{
    size_t own = sample->chain_count - MARKER_WORDS;
    size_t count = own + part->chain_count;
    if (count > chains->chain_room) {
        uint64_t *grown = realloc(chains->chain, count * sizeof *grown);
        if (!grown) {
            return -ENOMEM;
        }
        chains->chain = grown;
        chains->chain_room = count;
    }
    memcpy(chains->chain, sample->chain, own * sizeof *chains->chain);
    memcpy(chains->chain + own, part->chain, part->chain_count * sizeof *chains->chain);
    sample->chain = chains->chain;
    sample->chain_count = count;
    return 0;
}
