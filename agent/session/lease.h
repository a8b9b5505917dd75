/*
 * Leases. Who starts a session from outside makes a file, locks it (fcntl, F_OFD_SETLK, F_RDLCK)
 * and says `lease=FILE`; the session ends soon after nobody holds such a lock any more. The kernel
 * takes the lock from a process that dies, however it dies, so nothing has to be renewed: no
 * command comes into the JVM for it, and a suspended machine is no different from a moment. Several
 * may hold the same lease, each for himself.
 */
#ifndef JD_AGENT_LEASE_H
#define JD_AGENT_LEASE_H

#include <stdbool.h>

/* Opens a lease that somebody holds. A descriptor, or a negative errno after a message. */
int lease_open(const char *path);

/* -1 is fine. */
void lease_close(int lease);

/* Whether anybody holds it. Takes no lock itself. */
bool lease_is_held(int lease);

#endif
