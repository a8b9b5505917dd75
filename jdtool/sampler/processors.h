/* The processors that are on line, which come and go. */
#ifndef JD_TOOL_SAMPLER_PROCESSORS_H
#define JD_TOOL_SAMPLER_PROCESSORS_H

#include <stdbool.h>
#include <stdint.h>

/* Takes the first `count` of a list as the kernel writes them, "0-3,8,10-11\n": online[n] for
 * each. False: it is none, and nothing is known. */
bool processors_parse(const char *list, bool *online, uint32_t count);

/* The same of the machine's own. */
bool processors_read(bool *online, uint32_t count);

#endif
