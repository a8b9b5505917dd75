/*
 * What ends a session by itself: `duration=SECONDS`, and a lease that nobody holds any more. One
 * thread of our own watches both; the JVM does not know it.
 */
#ifndef JD_AGENT_SESSION_CLOCK_H
#define JD_AGENT_SESSION_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

enum session_end {
    SESSION_OVER,    /* its duration */
    SESSION_ORPHANED /* nobody holds its lease */
};

struct session_clock {
    uint32_t seconds; /* from now; 0: no end */
    int lease;        /* of lease_open, which the clock closes; -1: none */
    uint64_t session;
    /* On the clock's thread. False: it could not be ended now; called again until it is. */
    bool (*expired)(uint64_t session, enum session_end why);
};

/* Starts the clock of a session. 0 or a negative errno; the lease is closed then. */
int session_clock_start(const struct session_clock *clock);

/* Does not wait: a call that is just about to be made may still come. */
void session_clock_cancel(void);

/* ---- Leases ---- */

/*
 * Who starts a session from outside makes a file, locks it (fcntl, F_OFD_SETLK, F_RDLCK)
 * and says `lease=FILE`; the session ends soon after nobody holds such a lock any more. The kernel
 * takes the lock from a process that dies, however it dies, so nothing has to be renewed: no
 * command comes into the JVM for it, and a suspended machine is no different from a moment. Several
 * may hold the same lease, each for himself.
 */
/* Opens a lease that somebody holds. A descriptor, or a negative errno after a message. */
int lease_open(const char *path);

/* -1 is fine. */
void lease_close(int lease);

#endif
