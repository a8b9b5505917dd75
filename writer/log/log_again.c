#include "writer/log/log_again.h"

#include "writer/disk_room.h"
#include "writer/stamp.h"

enum { LOOK_AGAIN_MS = 500, ASK_AGAIN_MS = 1000, ASK_AGAIN_MAX_MS = 64000 };

bool log_again_ask(struct log_again *again, bool wanted)
{
    uint64_t now = stamp_monotonic();
    if (!wanted || now - again->at < again->ms * 1000000) {
        return false;
    }
    again->at = now;
    again->ms = again->ms ? again->ms * 2 : ASK_AGAIN_MS;
    again->ms = again->ms < ASK_AGAIN_MAX_MS ? again->ms : ASK_AGAIN_MAX_MS;
    return true;
}

bool log_again_has_room(struct log_queue *queue, int fd, uint64_t reserve)
{
    bool go_on;
    do {
        go_on = log_queue_nap(queue, LOOK_AGAIN_MS);
    } while (go_on && disk_room(fd, reserve) < disk_room_to_go_on(fd));
    return go_on;
}
