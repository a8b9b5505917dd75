/*
 * What a user can have the agent do, and what the JVM's end does to it. On threads of the JVM's.
 */
#ifndef JD_AGENT_COMMANDS_H
#define JD_AGENT_COMMANDS_H

#include "agent/session/options.h"

#include <jni.h>
#include <stdbool.h>

/*
 * Starts a session; when one is running, says so and leaves it alone. `attached`: in a JVM that
 * runs already, so what it has compiled is asked for. Returns JNI_OK; JNI_EEXIST when a session of
 * its own was asked for (with a lease) and another is running; JNI_EDETACHED when the JVM has not
 * finished starting and is to be asked again; or JNI_ERR: all of them after a message. The JVM is
 * then as it was.
 */
jint command_start(JavaVM *vm, const struct options *options, bool attached);

/*
 * Stops the session that is running, if there is one: events off, callbacks drained, sinks closed,
 * memory freed. In any phase. Unless `lease` is "", only a session of that lease: who began one
 * that has ended since must not end the next one.
 */
void command_stop(const char *lease);

/*
 * Says how the session stands, a line for each place it reports to: on stderr, or in a new file at
 * `path` unless that is "". Returns 0, or a negative errno after a message.
 */
int command_status(const char *path);

/*
 * Stops the session because the library is about to go, which VMDeath has done unless the JVM
 * failed to start. Waits for no other command.
 */
void command_unload(void);

#endif
