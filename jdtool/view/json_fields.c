/* Apart from who asks: json-c has names of json_writer.h's. */
#include "jdtool/view/json_fields.h"

#include <json-c/json.h>
#include <string.h>

/* NULL: it is no JSON. */
static struct json_object *parse(const char *text)
{
    struct json_tokener *tokener = json_tokener_new();
    if (!tokener) {
        return NULL;
    }
    json_tokener_set_flags(tokener, JSON_TOKENER_STRICT);
    struct json_object *object = json_tokener_parse_ex(tokener, text, (int)strlen(text) + 1);
    json_tokener_free(tokener);
    return object;
}

bool json_field_text(const char *object, const char *key, char *value, size_t room)
{
    struct json_object *fields = parse(object);
    struct json_object *field;
    bool fits = json_object_object_get_ex(fields, key, &field) &&
                json_object_is_type(field, json_type_string) &&
                (size_t)json_object_get_string_len(field) < room &&
                strlen(json_object_get_string(field)) == (size_t)json_object_get_string_len(field);
    if (fits) {
        memcpy(value, json_object_get_string(field), strlen(json_object_get_string(field)) + 1);
    }
    json_object_put(fields);
    return fits;
}

bool json_field_is_true(const char *object, const char *key)
{
    struct json_object *fields = parse(object);
    struct json_object *field;
    bool is_true = json_object_object_get_ex(fields, key, &field) &&
                   json_object_is_type(field, json_type_boolean) && json_object_get_boolean(field);
    json_object_put(fields);
    return is_true;
}
