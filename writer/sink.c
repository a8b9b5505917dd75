#include "writer/sink.h"

#include <stddef.h>

int sink_load(struct sink *sink, const struct code *code)
{
    return sink->ops->load(sink, code);
}

int sink_move(struct sink *sink, uint64_t from, uint64_t to, uint64_t size)
{
    return sink->ops->move(sink, from, to, size);
}

int sink_unload(struct sink *sink, uint64_t address)
{
    return sink->ops->unload(sink, address);
}

void sink_swept(struct sink *sink)
{
    if (sink->ops->swept) {
        sink->ops->swept(sink);
    }
}

void sink_stats(struct sink *sink, struct sink_stats *stats)
{
    sink->ops->stats(sink, stats);
}

void sink_close(struct sink *sink)
{
    if (sink) {
        sink->ops->close(sink);
    }
}
