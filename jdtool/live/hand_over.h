/* A profile that root made under sudo, given to whoever typed the command. */
#ifndef JD_TOOL_LIVE_HAND_OVER_H
#define JD_TOOL_LIVE_HAND_OVER_H

#include <sys/stat.h>

/*
 * Gives the directory `path` and what is in it to SUDO_UID and SUDO_GID, when we are root and sudo
 * has set them. `made` is what the directory was when we made it: another one that stands there by
 * now is left alone, and so are files that have further names, as the libraries of the machine that
 * perf links into a profile. 0, also when there is nobody to give it to, or a negative errno after
 * a message.
 */
int hand_over(const char *path, const struct stat *made);

#endif
