/*
 * What a profile that is carried elsewhere has to have with it: the files whose code was sampled,
 * where perf's tools look for them by build-id.
 */
#ifndef JD_TOOL_LOOK_BUNDLE_FILES_H
#define JD_TOOL_LOOK_BUNDLE_FILES_H

#include "jdtool/look/opened_profile.h"

/* Adds those that are not there, of this machine. What fails is not told: it has no names there. */
void bundle_add_files(const struct opened_profile *profile);

#endif
