/* Reads one blob's records again, for code_index.c. */
#ifndef JD_TOOL_CODE_DETAILS_H
#define JD_TOOL_CODE_DETAILS_H

#include "jdtool/jitdump/code_index.h"

/* What code_index_fetch does; names have all of the dump's definitions. reader NULL: the records
 * are gone, and so there is nothing. */
int code_details_read(struct jitdump_reader *reader, const char *path, struct trailer_names *names,
                      const struct code_blob *blob, struct code_details *details);

#endif
