#include "writer/log/gate.h"

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
    return 0;
}

void gate_leave(struct gate *gate)
{
    pthread_mutex_unlock(&gate->lock);
}

void gate_destroy(struct gate *gate)
{
    if (gate_is_ours(gate)) {
        pthread_mutex_destroy(&gate->lock);
    }
}
