/*
 * What the flame page draws of a profile, as a line of base64. flame.c describes it.
 */
#ifndef JD_TOOL_FLAME_H
#define JD_TOOL_FLAME_H

#include "jdtool/base/packed_output.h"
#include "jdtool/exports/profile.h"

/* Puts the line. 0 or a negative errno without a message. */
int flame_write(const struct profile *profile, struct packed_output *output);

#endif
