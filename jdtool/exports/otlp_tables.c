/* The dictionary: each table begins with an empty element, so that 0 means none. */
#include "jdtool/exports/otlp_tables.h"

#include "jdtool/base/array.h"
#include "jdtool/profile/module_extents.h"

#include <errno.h>
#include <string.h>

uint32_t otlp_attribute(struct otlp *o, const char *key, const char *text, uint64_t number)
{
    struct otlp_attribute made = {.key = string_table_add(&o->strings, key), .number = number};
    if (text) {
        made.text = intern(&o->texts, text);
    }
    uint64_t hash = hash_pair(hash_pair(made.key, (uintptr_t)made.text), number);
    struct hash_map_cursor cursor = hash_map_start(&o->attribute_map, hash);
    uint32_t at;
    while ((at = hash_map_next(&o->attribute_map, &cursor)) != HASH_MAP_NONE) {
        const struct otlp_attribute *known = &o->attributes[at];
        if (known->key == made.key && known->text == made.text && known->number == number) {
            return at;
        }
    }
    if ((text && !made.text) ||
        array_reserve(&o->attributes, o->attribute_count, &o->attribute_room,
                      sizeof *o->attributes) ||
        hash_map_add(&o->attribute_map, hash, o->attribute_count)) {
        o->error = -ENOMEM;
        return 0;
    }
    o->attributes[o->attribute_count] = made;
    return o->attribute_count++;
}

uint32_t otlp_stack(struct otlp *o, uint32_t node)
{
    if (node == PROFILE_NONE) {
        return 0;
    }
    if (!o->stack_of_node[node]) {
        if (array_reserve(&o->stacks, o->stack_count, &o->stack_room, sizeof *o->stacks)) {
            o->error = -ENOMEM;
            return 0;
        }
        o->stacks[o->stack_count] = node;
        o->stack_of_node[node] = o->stack_count++;
    }
    return o->stack_of_node[node];
}

static void put_empty(struct message_writer *w, uint32_t field)
{
    message_end(w, message_begin(w, field, NULL));
}

static void put_attribute_index(struct message_writer *w, uint32_t field, uint32_t index)
{
    size_t list = message_packed(w, field, "attributeIndices");
    message_packed_uint32(w, index);
    message_packed_end(w, list);
}

static void put_mappings(struct otlp *o)
{
    struct message_writer *w = &o->writer;
    const struct profile *profile = o->profile;
    struct module_extent *extents = module_extents(profile);
    o->mapping_ids = calloc((size_t)profile->module_count + 1, sizeof *o->mapping_ids);
    uint32_t count = 0;
    message_list(w, "mappingTable");
    put_empty(w, 1);
    for (uint32_t i = 0; extents && o->mapping_ids && i < profile->module_count; i++) {
        const struct module *module = profile->modules[i];
        char build_id[EXPORT_BUILD_ID_MAX];
        if (!extents[i].limit) {
            continue;
        }
        o->mapping_ids[i] = ++count;
        export_build_id(module, build_id);
        size_t begun = message_begin(w, 1, NULL);
        message_uint64(w, 1, "memoryStart", extents[i].start);
        message_uint64(w, 2, "memoryLimit", extents[i].limit);
        message_uint64(w, 3, "fileOffset", extents[i].start);
        message_uint32(w, 4, "filenameStrindex", string_table_add(&o->strings, module->path));
        if (build_id[0]) {
            put_attribute_index(w, 5,
                                otlp_attribute(o, "process.executable.build_id.gnu", build_id, 0));
        }
        message_end(w, begun);
    }
    message_list_end(w);
    o->error = extents && o->mapping_ids ? o->error : -ENOMEM;
    free(extents);
}

/* OpenTelemetry's profile.frame.type; NULL: none of its values fits. */
static const char *frame_type(const struct profile_line *own)
{
    switch (own->kind) {
    case RESOLVED_KERNEL:
        return "kernel";
    case RESOLVED_NATIVE:
        return "native";
    case RESOLVED_UNKNOWN:
        return NULL;
    default:
        return "jvm";
    }
}

static void put_location(struct otlp *o, const struct profile_location *location)
{
    struct message_writer *w = &o->writer;
    const struct profile_line *lines = &o->profile->lines[location->first_line];
    const char *type = frame_type(&lines[location->line_count - 1]);
    size_t begun = message_begin(w, 2, NULL);
    message_uint32(w, 1, "mappingIndex",
                   location->module ? o->mapping_ids[location->module->id] : 0);
    message_uint64(w, 2, "address", location->address);
    message_list(w, "lines");
    for (uint32_t k = 0; k < location->line_count; k++) {
        size_t line = message_begin(w, 3, NULL);
        message_uint32(w, 1, "functionIndex", lines[k].function + 1);
        message_uint64(w, 2, "line", lines[k].line);
        message_end(w, line);
    }
    message_list_end(w);
    if (type) {
        put_attribute_index(w, 4, otlp_attribute(o, "profile.frame.type", type, 0));
    }
    message_end(w, begun);
}

static void put_locations(struct otlp *o)
{
    struct message_writer *w = &o->writer;
    message_list(w, "locationTable");
    put_empty(w, 2);
    for (uint32_t i = 0; !o->error && i < o->profile->location_count; i++) {
        put_location(o, &o->profile->locations[i]);
    }
    message_list_end(w);
}

static void put_functions(struct otlp *o)
{
    struct message_writer *w = &o->writer;
    message_list(w, "functionTable");
    put_empty(w, 3);
    for (uint32_t i = 0; i < o->profile->function_count; i++) {
        const struct profile_function *function = &o->profile->functions[i];
        size_t begun = message_begin(w, 3, NULL);
        message_uint32(w, 1, "nameStrindex", string_table_add(&o->strings, function->name));
        message_uint32(w, 2, "systemNameStrindex",
                       string_table_add(&o->strings, function->system_name));
        message_uint32(w, 3, "filenameStrindex", string_table_add(&o->strings, function->file));
        message_uint64(w, 4, "startLine", function->first_line);
        message_end(w, begun);
    }
    message_list_end(w);
}

static void put_stacks(struct otlp *o)
{
    struct message_writer *w = &o->writer;
    message_list(w, "stackTable");
    put_empty(w, 7);
    for (uint32_t i = 1; i < o->stack_count; i++) {
        size_t begun = message_begin(w, 7, NULL);
        size_t list = message_packed(w, 1, "locationIndices");
        for (uint32_t at = o->stacks[i]; at != PROFILE_NONE; at = o->profile->nodes[at].parent) {
            message_packed_uint32(w, o->profile->nodes[at].location + 1);
        }
        message_packed_end(w, list);
        message_end(w, begun);
    }
    message_list_end(w);
}

static void put_attributes(struct otlp *o)
{
    struct message_writer *w = &o->writer;
    message_list(w, "attributeTable");
    put_empty(w, 6);
    for (uint32_t i = 1; i < o->attribute_count; i++) {
        const struct otlp_attribute *attribute = &o->attributes[i];
        size_t begun = message_begin(w, 6, NULL);
        message_uint32(w, 1, "keyStrindex", attribute->key);
        size_t value = message_begin(w, 2, "value");
        if (attribute->text) {
            message_text(w, 1, "stringValue", attribute->text);
        } else {
            message_uint64(w, 3, "intValue", attribute->number);
        }
        message_end(w, value);
        message_end(w, begun);
    }
    message_list_end(w);
}

void otlp_put_dictionary(struct otlp *o)
{
    struct message_writer *w = &o->writer;
    size_t begun = message_begin(w, 2, "dictionary");
    put_mappings(o);
    put_locations(o);
    put_functions(o);
    /* The proto recommends zero bytes in it; profcheck and Parca want it empty. */
    message_list(w, "linkTable");
    put_empty(w, 4);
    message_list_end(w);
    put_stacks(o);
    put_attributes(o);
    message_list(w, "stringTable");
    for (uint32_t i = 0; i < o->strings.count; i++) {
        message_text(w, 5, NULL, o->strings.list[i]);
    }
    message_list_end(w);
    message_end(w, begun);
}
