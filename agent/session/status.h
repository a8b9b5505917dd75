/*
 * The answer to `status`.
 */
#ifndef JD_AGENT_STATUS_H
#define JD_AGENT_STATUS_H

#include "agent/session/session.h"

/*
 * Says how a session stands (NULL: there is none), a line of "key=value" words for each place that
 * it reports to, the file last, and one "lease=PATH" where it has a lease: on stderr, or in a new
 * file at `path` unless that is "". Returns 0, or a negative errno after a message.
 */
int status_tell(const struct session *session, const char *path);

#endif
