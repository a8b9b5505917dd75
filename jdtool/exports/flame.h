/*
 * What the flame page draws of a profile, as a line of base64. flame.c describes it.
 */
#ifndef JD_TOOL_FLAME_H
#define JD_TOOL_FLAME_H

#include "jdtool/exports/export.h"

/* Puts the line; of the settings, `changed` and `runs` matter. 0 or a negative errno without a
 * message. */
int flame_write(const struct profile *profile, const struct export_settings *settings,
                struct packed_output *output);

#endif
