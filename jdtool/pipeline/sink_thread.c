#include "jdtool/pipeline/sink_thread.h"

#include "jdtool/base/threads.h"

#include <stdlib.h>

/* As many as a reader's batch has (reader.c). */
#define SAMPLES_MAX 512

struct list {
    struct stack_table stacks; /* as it was when the list was passed */
    uint32_t count;
    struct resolved_sample samples[SAMPLES_MAX];
};

struct sink_thread {
    struct sample_sink *const *sinks;
    uint32_t sink_count;
    struct list lists[2];
    struct list *filled;              /* by the caller */
    const struct stack_table *stacks; /* of its last sample */
    pthread_t thread;
    pthread_mutex_t lock; /* of what is behind it */
    pthread_cond_t changed;
    struct list *passed; /* that the thread works on; NULL: it has nothing to do */
    bool stops;
    int err; /* after which no more is given */
};

static int give_list(const struct sink_thread *thread, const struct list *list)
{
    int err = 0;
    for (uint32_t i = 0; i < list->count && !err; i++) {
        for (uint32_t k = 0; k < thread->sink_count && !err; k++) {
            struct sample_sink *sink = thread->sinks[k];
            err = sink->ops->sample(sink, &list->samples[i]);
        }
    }
    return err;
}

static void *give_lists(void *context)
{
    struct sink_thread *thread = context;
    pthread_mutex_lock(&thread->lock);
    for (;;) {
        while (!thread->passed && !thread->stops) {
            pthread_cond_wait(&thread->changed, &thread->lock);
        }
        if (!thread->passed) {
            break;
        }
        pthread_mutex_unlock(&thread->lock);
        int err = give_list(thread, thread->passed);
        pthread_mutex_lock(&thread->lock);
        thread->err = err;
        thread->passed = NULL;
        pthread_cond_signal(&thread->changed);
    }
    pthread_mutex_unlock(&thread->lock);
    return NULL;
}

struct sink_thread *sink_thread_new(struct sample_sink *const *sinks, uint32_t count)
{
    struct sink_thread *thread = calloc(1, sizeof *thread);
    if (!thread) {
        return NULL;
    }
    thread->sinks = sinks;
    thread->sink_count = count;
    thread->filled = &thread->lists[0];
    (void)pthread_mutex_init(&thread->lock, NULL);
    (void)pthread_cond_init(&thread->changed, NULL);
    if (!threads_start(&thread->thread, give_lists, thread)) {
        (void)pthread_mutex_destroy(&thread->lock);
        (void)pthread_cond_destroy(&thread->changed);
        free(thread);
        return NULL;
    }
    return thread;
}

int sink_thread_free(struct sink_thread *thread)
{
    if (!thread) {
        return 0;
    }
    int err = sink_thread_wait(thread);
    pthread_mutex_lock(&thread->lock);
    thread->stops = true;
    pthread_cond_signal(&thread->changed);
    pthread_mutex_unlock(&thread->lock);
    (void)pthread_join(thread->thread, NULL);
    (void)pthread_mutex_destroy(&thread->lock);
    (void)pthread_cond_destroy(&thread->changed);
    free(thread);
    return err;
}

int sink_thread_give(struct sink_thread *thread, const struct resolved_sample *sample)
{
    int err = thread->filled->count == SAMPLES_MAX ? sink_thread_wait(thread) : 0;
    struct list *list = thread->filled;
    thread->stacks = sample->stacks;
    list->samples[list->count] = *sample;
    list->samples[list->count++].stacks = &list->stacks;
    return err;
}

/* Passes the list; when it returns the thread may work on it, or, `done`, has. */
static int pass(struct sink_thread *thread, bool done)
{
    struct list *list = thread->filled;
    pthread_mutex_lock(&thread->lock);
    while (thread->passed) {
        pthread_cond_wait(&thread->changed, &thread->lock);
    }
    if (list->count && !thread->err) {
        list->stacks = *thread->stacks;
        thread->passed = list;
        thread->filled = list == thread->lists ? list + 1 : thread->lists;
        pthread_cond_signal(&thread->changed);
    }
    while (done && thread->passed) {
        pthread_cond_wait(&thread->changed, &thread->lock);
    }
    int err = thread->err;
    pthread_mutex_unlock(&thread->lock);
    thread->filled->count = 0;
    return err;
}

int sink_thread_pass(struct sink_thread *thread)
{
    return pass(thread, false);
}

int sink_thread_wait(struct sink_thread *thread)
{
    return pass(thread, true);
}
