/*
 * The JVMs of the whole machine that write dumps (jdperf record -a), and the dumps that a profile
 * has in its directory.
 */
#ifndef JD_TOOL_LIVE_MACHINE_H
#define JD_TOOL_LIVE_MACHINE_H

#include "jdtool/base/text.h"
#include "jdtool/live/fetch.h"

struct machine {
    struct fetch *dumps;
    uint32_t count, room;
};

/* Takes hold of the dumps that are being written now, beside those that it has already. */
void machine_look(struct machine *machine, const char *profile);

/* Copies them into the profile. What cannot be had is told of. */
void machine_fetch(struct machine *machine, const char *profile);

void machine_free(struct machine *machine);

/* Lists the dumps in the profile that is reached by "/proc/PID/fd/N", and called `profile` in the
 * paths. 0 or a negative errno after a message; to be freed in any case. */
int dump_list_read(struct words *list, const char *at, const char *profile);

#endif
