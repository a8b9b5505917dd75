/*
 * The processes of a recorded command: JVMs among them get the agent by JAVA_TOOL_OPTIONS or by an
 * argument, and those are looked for here that write no dump all the same. Who starts them clears
 * the environment (su -, sudo, env -i, jsvc, a script), or they run as somebody who may not write
 * into the profile, or where the agent's file is not (chroot).
 */
#ifndef JD_TOOL_RECORD_FAMILY_H
#define JD_TOOL_RECORD_FAMILY_H

#include "jdtool/live/target.h"

#include <stdint.h>

/* More processes that live at one time are not looked at. */
#define FAMILY_MAX 256

struct family {
    pid_t before, last; /* the newest process of the machine at the last two looks */
    struct relative {
        struct live_process process;
        dev_t device; /* of the program that was judged, and */
        ino_t inode;  /* 0: none was */
    } list[FAMILY_MAX];
    uint32_t count;
};

/* The command has not run yet. */
void family_start(struct family *family, pid_t command);

/* Looks which processes there are by now. It costs little where no process was started since the
 * last look. */
void family_look(struct family *family);

/* Whether no process or thread of the machine began between the last two looks. */
bool family_is_quiet(const struct family *family);

/*
 * A JVM that accepts attach requests, writes no dump, and can have the agent: each once. The caller
 * closes it. False: there is none. A java that the kernel does not let us see is reported.
 */
bool family_next(struct family *family, struct target *target);

void family_free(struct family *family);

#endif
