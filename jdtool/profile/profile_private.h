/* Between the files that fill a profile. */
#ifndef JD_TOOL_PROFILE_PRIVATE_H
#define JD_TOOL_PROFILE_PRIVATE_H

#include "jdtool/base/hash_map.h"
#include "jdtool/base/intern.h"
#include "jdtool/profile/profile.h"

struct profile_private {
    struct intern
        strings; /* names that do not live as long as the recording, or have many owners */
    struct hash_map functions, codes, locations, nodes, threads, plain_threads, tracks, samples;
    uint32_t *method_function; /* by method id: a number + 1; 0: not seen yet */
    uint32_t *module_function; /* by module id, for what has no method; the same */
    uint32_t method_room, module_function_room;
    uint32_t unknown_function;
    uint32_t function_room, line_room, code_room, location_room, node_room;
    uint32_t thread_room, plain_thread_room, track_room, mark_room, sample_room, module_room;
    struct profile_line *group; /* the lines of the location that is being looked up */
    uint32_t group_room;
    struct stack_notes of_nodes, of_locations; /* a number here + 1, 32 bits wide */
    uint32_t *path; /* of a new stack: its nodes there, innermost first */
    uint32_t path_room;
};

/* The text, kept once; what is no UTF-8 in it becomes U+FFFD, which all formats demand. NULL: no
 * memory. */
const char *profile_text(struct profile *profile, const char *text);

/* Sets *node to that of the sample's stack. 0 or -ENOMEM. */
int profile_stack_of(struct profile *profile, const struct resolved_sample *sample, uint32_t *node);

#endif
