/* Times and sizes as people write them on a command line: "30s", "1.5m", "64M". */
#ifndef JD_TOOL_UNITS_H
#define JD_TOOL_UNITS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * A time: seconds, or a number with ns, us, ms, s, m, h or d behind it; to *ns, at most 10^18.
 * False: it is none.
 */
bool units_time(const char *text, uint64_t *ns);

/* The same for what counts whole seconds, from 1 to `most`; a fraction of one is no such time. */
bool units_seconds(const char *text, unsigned most, unsigned *seconds);

/*
 * A size from 1 on: bytes, or a whole number with K, M, G or T behind it, in powers of 1024, either
 * case. False: it is none, or more than half of what 64 bits hold.
 */
bool units_size(const char *text, uint64_t *bytes);

/* A number from 1 to `most`. False: it is none. */
bool units_number(const char *text, uint64_t most, unsigned *number);

#endif
