/*
 * The command that is recorded: started by us, held back until perf watches it, and let go. So its
 * exit status, its terminal and its signals are its own, and perf can stop before it does.
 */
#ifndef JD_TOOL_LIVE_COMMAND_H
#define JD_TOOL_LIVE_COMMAND_H

#include "jdtool/live/child.h"
#include "jdtool/live/process.h"

#include <limits.h>
#include <stdbool.h>

struct command {
    struct child child;
    int go;             /* a byte in it lets the command go, its end ends it */
    char **arguments;   /* with the agent in them */
    char *tool_options; /* else: JAVA_TOOL_OPTIONS */
    char *option_words[4];
};

/* 0, or a negative errno after a message: there is no such program. */
int command_check(char *const *arguments);

/*
 * Starts it, held back. The agent with these options goes to a java command as arguments, to any
 * other through JAVA_TOOL_OPTIONS, which all JVMs it starts take up; a java that writes a CDS
 * archive or an AOT cache runs without it, after a message. `frame_pointers`: these JVMs are to
 * keep them. 0 or a negative errno after a message.
 */
int command_start(struct command *command, char *const *arguments, const char *agent,
                  const char *agent_options, bool frame_pointers);

/* Whether a JVM that runs is such a java: an agent would end it. */
bool command_writes_archive(const struct live_process *process);

/* The libjvm.so of the java that it names, else of JAVA_HOME's, else of the one in PATH: a script
 * may still take another. False: not found. */
bool command_libjvm(char *const *arguments, char path[PATH_MAX]);

void command_let_go(struct command *command);

/* Frees it; one that was never let go ends. */
void command_free(struct command *command);

#endif
