/*
 * When a thread that writes tries again: for room on its disk, and to have its owner tell once more
 * of what found no room.
 */
#ifndef JD_WRITER_LOG_AGAIN_H
#define JD_WRITER_LOG_AGAIN_H

#include "writer/log/log_queue.h"

#include <stdbool.h>
#include <stdint.h>

/* When the owner was asked last, and how long it is left alone: a second, and twice that each time,
 * up to a minute. Zeroed to start. */
struct log_again {
    uint64_t at;
    uint64_t ms;
};

/* Whether it may be asked now; counts as asked where `wanted` is set as well, which is returned. */
bool log_again_ask(struct log_again *again, bool wanted);

/* Naps until the file's disk has room again beyond `reserve` (writer/disk_room.h). False:
 * log_queue_stop was called. */
bool log_again_has_room(struct log_queue *queue, int fd, uint64_t reserve);

#endif
