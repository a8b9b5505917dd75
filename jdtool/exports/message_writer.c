#include "jdtool/exports/message_writer.h"

#include "jdtool/base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void json_uint64(struct json_writer *json, const char *name, uint64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, value);
    json_text(json, name, text);
}

size_t message_begin(struct message_writer *writer, uint32_t field, const char *name)
{
    if (writer->protobuf) {
        return protobuf_begin(writer->protobuf, field);
    }
    json_object(writer->json, name);
    return 0;
}

void message_end(struct message_writer *writer, size_t begun)
{
    if (writer->protobuf) {
        protobuf_end(writer->protobuf, begun);
    } else {
        json_end(writer->json);
    }
}

void message_list(struct message_writer *writer, const char *name)
{
    if (writer->json) {
        json_array(writer->json, name);
    }
}

void message_list_end(struct message_writer *writer)
{
    if (writer->json) {
        json_end(writer->json);
    }
}

void message_uint32(struct message_writer *writer, uint32_t field, const char *name, uint32_t value)
{
    if (writer->protobuf) {
        protobuf_uint(writer->protobuf, field, value);
    } else if (value) {
        json_uint(writer->json, name, value);
    }
}

void message_uint64(struct message_writer *writer, uint32_t field, const char *name, uint64_t value)
{
    if (writer->protobuf) {
        protobuf_uint(writer->protobuf, field, value);
    } else if (value) {
        json_uint64(writer->json, name, value);
    }
}

void message_fixed64(struct message_writer *writer, uint32_t field, const char *name,
                     uint64_t value)
{
    if (writer->protobuf) {
        protobuf_fixed64(writer->protobuf, field, value);
    } else if (value) {
        json_uint64(writer->json, name, value);
    }
}

void message_text(struct message_writer *writer, uint32_t field, const char *name, const char *text)
{
    if (name && !text[0]) {
        return;
    }
    if (writer->json) {
        json_text(writer->json, name, text);
        return;
    }
    char *mended = text_is_utf8(text) ? NULL : text_mended(text);
    text = mended ? mended : text;
    protobuf_bytes(writer->protobuf, field, text, strlen(text));
    free(mended);
}

void message_id(struct message_writer *writer, uint32_t field, const char *name,
                const uint8_t *bytes, size_t size)
{
    char text[65] = "";
    if (writer->protobuf) {
        protobuf_bytes(writer->protobuf, field, bytes, size);
        return;
    }
    for (size_t i = 0; i < size && 2 * i + 2 < sizeof text; i++) {
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    }
    json_text(writer->json, name, text);
}

size_t message_packed(struct message_writer *writer, uint32_t field, const char *name)
{
    if (writer->protobuf) {
        return protobuf_begin(writer->protobuf, field);
    }
    json_array(writer->json, name);
    return 0;
}

void message_packed_uint32(struct message_writer *writer, uint32_t value)
{
    if (writer->protobuf) {
        protobuf_packed_uint(writer->protobuf, value);
    } else {
        json_uint(writer->json, NULL, value);
    }
}

void message_packed_uint64(struct message_writer *writer, uint64_t value)
{
    if (writer->protobuf) {
        protobuf_packed_uint(writer->protobuf, value);
    } else {
        json_uint64(writer->json, NULL, value);
    }
}

void message_packed_fixed64(struct message_writer *writer, uint64_t value)
{
    if (writer->protobuf) {
        protobuf_packed_fixed64(writer->protobuf, value);
    } else {
        json_uint64(writer->json, NULL, value);
    }
}

void message_packed_end(struct message_writer *writer, size_t begun)
{
    message_end(writer, begun);
}
