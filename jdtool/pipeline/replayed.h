/* What saved samples refer to: everything of a file of them but the samples. For replay.c. */
#ifndef JD_TOOL_REPLAYED_H
#define JD_TOOL_REPLAYED_H

#include "jdtool/base/chunks.h"
#include "jdtool/base/packed_input.h"
#include "jdtool/resolve/sample_sink.h"

struct replayed {
    const char *path;
    bool wants_code;
    char **texts;
    struct recorded_event *events;
    struct chunks modules, methods, codes; /* struct module, resolved_method, resolved_code */
    const struct resolved_method **functions;
    struct code_index **indexes; /* by module; NULL: none */
    struct stack_table *stacks; /* its locations and nodes are the file's; a node's ref there is its
                                   number here */
    uint32_t *depths;           /* of nodes: how many lines a stack has */
    struct resolved_frame *lines; /* of the location that is read */
    struct resolved_thread *threads;
    uint32_t text_count, event_count, function_count, index_count;
    uint32_t thread_count;
    uint32_t text_room, event_room, function_room, index_room;
    uint32_t depth_room, line_room, thread_room;
};

/* 0 or -ENOMEM; free it in any case. */
int replayed_start(struct replayed *things, const char *path, bool wants_code);
void replayed_free(struct replayed *things);

/* Reads the record of that tag, which is not the end and no sample. 0, -ENOMEM, or -EBADMSG with
 * *why in words. */
int replayed_take(struct replayed *things, uint8_t tag, struct packed_input *input,
                  const char **why);

#endif
