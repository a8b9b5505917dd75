/*
 * The one way to wait: for descriptors, until a deadline, and for the signals that end us, which
 * come through a descriptor as well. So nothing is missed between a look and a wait, no wait is
 * without end unless it says so, and no code runs in a signal handler.
 *
 * A signal that has come is remembered: from then on whoever waits for it is told at once.
 */
#ifndef JD_TOOL_LIVE_WAIT_H
#define JD_TOOL_LIVE_WAIT_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#define NO_DEADLINE INT64_MAX

struct waiting {
    int signals;  /* the signalfd */
    int ended_by; /* the first signal that came: SIGINT, SIGTERM, SIGHUP, SIGQUIT; 0: none yet */
    int count;    /* of those that came */
};

/* Milliseconds on CLOCK_MONOTONIC; a deadline is such a time. */
int64_t now_ms(void);
int64_t deadline_in(int64_t ms);

/*
 * Turns the signals that end us into events, from here on for the whole process; children that are
 * started by child_start have them as they were. 0 or a negative errno after a message.
 */
int waiting_start(struct waiting *waiting);

/*
 * Waits until one of the descriptors has an event (their `revents` tell; a negative descriptor has
 * none). 0: one has; -ETIMEDOUT: the deadline is over; -EINTR: a signal has come, now, or before if
 * `until_ended`.
 */
int wait_for(struct waiting *waiting, struct pollfd *descriptors, unsigned count, int64_t deadline,
             bool until_ended);

/* Waits that long, unless a signal has come: 0 or -EINTR. */
int wait_ms(struct waiting *waiting, int64_t ms);

#endif
