/*
 * Talking with a JVM through jattach, or where there is none through jcmd (JDK 8: jrunscript). A
 * JVM answers when it has the time; each question has a deadline, and who is silent is told of with
 * the likely reason.
 */
#ifndef JD_TOOL_LIVE_ASK_H
#define JD_TOOL_LIVE_ASK_H

#include "jdtool/live/target.h"
#include "jdtool/live/wait.h"

/* 0, or a negative errno after a message: there is neither jattach nor a program of
 * the JDK's that can reach it. */
int ask_prepare(const struct target *target);

/*
 * Whether the JVM answers at all, within some seconds: a cheap question, which needs no safepoint.
 * 0, or a negative errno after a message that says why it may be silent.
 */
int ask_whether_it_answers(const struct target *target, struct waiting *waiting);

/* A large code cache is described before the agent answers, on a loaded machine slowly. */
#define ASK_LOAD_MS 120000

/* Has the JVM load the agent (its path as the JVM sees it) with these options, within `ms`. 0; or
 * -EEXIST without a message: a session of its own was asked for, and another is running; or another
 * negative errno after a message with the JVM's and the agent's own words. */
int ask_to_load(const struct target *target, const char *agent, const char *options,
                struct waiting *waiting, int64_t ms);

/* The value of a flag -XX:NAME: 1 on, 0 off, -ENOENT the JVM does not know it, or another negative
 * errno without a message. */
int ask_flag(const struct target *target, const char *name, struct waiting *waiting);

#endif
