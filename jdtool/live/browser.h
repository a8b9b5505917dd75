/* Showing a page in the user's browser. */
#ifndef JD_TOOL_LIVE_BROWSER_H
#define JD_TOOL_LIVE_BROWSER_H

#include "jdtool/live/wait.h"

/* Has xdg-open show a file: as the user who called sudo, if one did. Says where the page is where
 * that cannot be done. */
void browser_open(const char *path, struct waiting *waiting);

#endif
