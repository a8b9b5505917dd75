/* A profile that root made under sudo, given to whoever typed the command. */
#ifndef JD_TOOL_LIVE_HAND_OVER_H
#define JD_TOOL_LIVE_HAND_OVER_H

/*
 * Gives the open directory, which is called `path`, and what is in it to SUDO_UID and SUDO_GID,
 * when we are root and sudo has set them. Files that have further names, as the libraries of the
 * machine that perf links into a profile, are left alone. 0, also when there is nobody to give it
 * to, or a negative errno after a message.
 */
int hand_over(int directory, const char *path);

#endif
