/* The files that mappings are of: equal ones are one object, which lives as long as the table. */
#ifndef JD_TOOL_MAPPED_FILES_H
#define JD_TOOL_MAPPED_FILES_H

#include "jdtool/base/chunks.h"
#include "jdtool/base/hash_map.h"
#include "jdtool/base/intern.h"
#include "jdtool/perf/process_table.h"

/* Start with {.list.element = sizeof(struct mapped_file)}. */
struct mapped_files {
    struct chunks list; /* of struct mapped_file */
    struct hash_map by_file;
    struct intern paths;
};

/* The file of a mapping, kept when it is new. NULL: no memory. */
struct mapped_file *mapped_files_of(struct mapped_files *files, const struct mapping *mapping);

void mapped_files_free(struct mapped_files *files);

#endif
