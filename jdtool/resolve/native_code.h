/*
 * From an address in a process to the file that its code is of: the mappings of a recording joined
 * with the objects.
 */
#ifndef JD_TOOL_NATIVE_CODE_H
#define JD_TOOL_NATIVE_CODE_H

#include "jdtool/objects/objects.h"
#include "jdtool/perf/processes.h"

struct native_code;

/* The recording's machine, as e_machine; EM_NONE when it does not tell. */
unsigned native_code_machine(struct perf_data *data);

/*
 * machine: e_machine of the recording. build_id_dir: where perf record left copies of files; NULL:
 * where it does by default. 0 or a negative errno.
 */
int native_code_new(struct perf_data *data, unsigned machine, const char *build_id_dir,
                    struct native_code **out);
void native_code_free(struct native_code *native); /* NULL is fine */

struct objects *native_code_objects(const struct native_code *native);

/*
 * The object that the mapping of a process has mapped, and the file's address of one of its bytes.
 * False: the file cannot be read, or has nothing there; *object then is set all the same.
 */
bool native_code_at(struct native_code *native, const struct process *process,
                    const struct mapping *mapping, uint64_t address, struct object **object,
                    uint64_t *file_address);

#endif
