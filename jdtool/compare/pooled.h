/* The flame page of several runs: what they had on average, and which frames changed. */
#ifndef JD_TOOL_POOLED_H
#define JD_TOOL_POOLED_H

#include "jdtool/compare/runs.h"

/* Writes the page, on which only frames that changed by more than chance have a colour. title NULL:
 * one that says how many runs there are. 0 or a negative errno after a message. */
int pooled_write_page(struct runs *runs, const char *path, const char *title);

#endif
