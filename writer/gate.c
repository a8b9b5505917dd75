#include "writer/gate.h"

#include "writer/process.h"

#include <errno.h>

int gate_init(struct gate *gate)
{
    int error = process_watch_forks();
    if (error) {
        return error;
    }
    *gate = (struct gate){.generation = process_generation()};
    return -pthread_mutex_init(&gate->lock, NULL);
}

bool gate_is_ours(const struct gate *gate)
{
    return process_generation() == gate->generation;
}

int gate_enter(struct gate *gate)
{
    if (!gate_is_ours(gate)) {
        return -EPIPE;
    }
    pthread_mutex_lock(&gate->lock);
    return gate->failed ? gate_leave(gate, -EPIPE) : 0;
}

int gate_leave(struct gate *gate, int error)
{
    if (error) {
        gate->dropped++;
    }
    pthread_mutex_unlock(&gate->lock);
    return error;
}

void gate_destroy(struct gate *gate)
{
    if (gate_is_ours(gate)) {
        pthread_mutex_destroy(&gate->lock);
    }
}
