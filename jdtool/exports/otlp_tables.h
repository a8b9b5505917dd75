/* Between the two files that write OTLP profiles. */
#ifndef JD_TOOL_OTLP_TABLES_H
#define JD_TOOL_OTLP_TABLES_H

#include "jdtool/exports/export.h"
#include "jdtool/exports/message_writer.h"
#include "jdtool/profile/string_table.h"

/* Of a sample, a location or a mapping; text or, where that is NULL, a number. */
struct otlp_attribute {
    uint32_t key; /* number of its string */
    const char *text;
    uint64_t number;
};

struct otlp {
    const struct profile *profile;
    const struct export_settings *settings;
    struct message_writer writer;
    struct protobuf message; /* what writer writes into: the one */
    struct json_writer json; /* or the other */
    struct string_table strings;
    struct otlp_attribute *attributes; /* [0] is the empty one, as in all tables */
    uint32_t attribute_count, attribute_room;
    struct hash_map attribute_map;
    struct intern texts; /* of the attributes: they are not in the string table */
    uint32_t *stacks;    /* nodes; [0] is none */
    uint32_t stack_count, stack_room;
    uint32_t *stack_of_node; /* 0: not in the table yet */
    uint32_t *mapping_ids;   /* by module id; 0: none */
    int error;               /* 0 or -ENOMEM */
};

/* The number of an attribute in the table; text NULL: it is a number. */
uint32_t otlp_attribute(struct otlp *o, const char *key, const char *text, uint64_t number);

/* The number of a stack in the table; PROFILE_NONE has 0. */
uint32_t otlp_stack(struct otlp *o, uint32_t node);

/* Everything that was used, the last part of the request. */
void otlp_put_dictionary(struct otlp *o);

#endif
