/*
 * Our side of the leases of agent/session/session_clock.h: who uses a session holds a lock on its
 * lease, and the last one to leave ends it. The kernel counts.
 */
#ifndef JD_TOOL_LIVE_LEASE_H
#define JD_TOOL_LIVE_LEASE_H

#include <stdbool.h>

#define LEASE_NAME "lease" /* in its staging directory */

/* Takes a share in a lease. 0; -EAGAIN: whoever is last is just ending the session; or another
 * negative errno. */
int lease_take(int lease);

/* Makes us the only one, for good: true, and the session is ours to end; false: others use it. */
bool lease_take_over(int lease);

/* Whether anybody else holds it. */
bool lease_is_held(int lease);

#endif
