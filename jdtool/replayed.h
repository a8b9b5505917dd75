/* What saved samples refer to: everything of a file of them but the samples. For replay.c. */
#ifndef JD_TOOL_REPLAYED_H
#define JD_TOOL_REPLAYED_H

#include "jdtool/base/chunks.h"
#include "jdtool/base/packed_input.h"
#include "jdtool/sinks/sample_sink.h"

struct replayed_line {
    uint8_t kind, tier;
    bool is_osr;
    uint32_t line;
    const struct resolved_method *method; /* NULL: only the module is known */
};

struct replayed_location {
    const struct module *module;
    const struct resolved_code *code;
    uint64_t address;
    bool is_caller;
    uint32_t first_line, line_count;
};

struct replayed_node {
    uint32_t parent; /* its number + 1; 0: outermost */
    uint32_t location;
};

struct replayed {
    const char *path;
    bool wants_code;
    char **texts;
    struct recorded_event *events;
    struct chunks modules, methods, codes; /* struct module, resolved_method, resolved_code */
    const struct resolved_method **functions;
    struct code_index **indexes; /* by module; NULL: none */
    struct replayed_line *lines;
    struct replayed_location *locations;
    struct replayed_node *nodes;
    struct resolved_thread *threads;
    uint32_t text_count, event_count, function_count, index_count, line_count;
    uint32_t location_count, node_count, thread_count;
    uint32_t text_room, event_room, function_room, index_room, line_room;
    uint32_t location_room, node_room, thread_room;
};

void replayed_start(struct replayed *things, const char *path, bool wants_code);
void replayed_free(struct replayed *things);

/* Reads the record of that tag, which is not the end and no sample. 0, -ENOMEM, or -EBADMSG with
 * *why in words. */
int replayed_take(struct replayed *things, uint8_t tag, struct packed_input *input,
                  const char **why);

/* The frame of a location's line, the innermost first. */
struct resolved_frame replayed_frame(const struct replayed *things,
                                     const struct replayed_location *location, uint32_t line);

#endif
