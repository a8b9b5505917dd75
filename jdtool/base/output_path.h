/* Where a verb may write: results are made beside their place and renamed into it. */
#ifndef JD_TOOL_OUTPUT_PATH_H
#define JD_TOOL_OUTPUT_PATH_H

/*
 * Whether a file may be renamed to this path: nothing is there, or a regular file (a link to one
 * included, which is replaced). Anything else would be lost, /dev/null above all. 0 or a negative
 * errno after a message.
 */
int output_path_check(const char *path);

#endif
