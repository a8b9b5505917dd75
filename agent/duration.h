/*
 * The clock of `duration=SECONDS`: a thread of our own that ends the session when its time is over.
 * The JVM does not know it.
 */
#ifndef JD_AGENT_DURATION_H
#define JD_AGENT_DURATION_H

#include <stdint.h>

/*
 * Calls expired(session) on another thread `seconds` from now, unless cancelled. 0 or a negative
 * errno.
 */
int duration_start(uint32_t seconds, void (*expired)(uint64_t session), uint64_t session);

/* Does not wait: a call that is just about to be made may still come. */
void duration_cancel(void);

#endif
