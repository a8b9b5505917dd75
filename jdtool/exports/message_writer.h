/*
 * Writes one message as protobuf or as protobuf's JSON (lowerCamelCase names, 64-bit integers as
 * strings), so that a format that has both is described once. What is zero or empty is left out,
 * elements of lists apart.
 */
#ifndef JD_TOOL_MESSAGE_WRITER_H
#define JD_TOOL_MESSAGE_WRITER_H

#include "jdtool/base/json_writer.h"
#include "jdtool/base/protobuf.h"

/* One of the two is set. */
struct message_writer {
    struct protobuf *protobuf;
    struct json_writer *json;
};

/* A submessage; inside a list the name is NULL. What begin returns is for its end. */
size_t message_begin(struct message_writer *writer, uint32_t field, const char *name);
void message_end(struct message_writer *writer, size_t begun);

/* Around the elements of a repeated field that are submessages or texts. */
void message_list(struct message_writer *writer, const char *name);
void message_list_end(struct message_writer *writer);

void message_uint32(struct message_writer *writer, uint32_t field, const char *name,
                    uint32_t value);
void message_uint64(struct message_writer *writer, uint32_t field, const char *name,
                    uint64_t value);
void message_fixed64(struct message_writer *writer, uint32_t field, const char *name,
                     uint64_t value);
/* name NULL: an element, written also when it is empty. */
void message_text(struct message_writer *writer, uint32_t field, const char *name,
                  const char *text);
/* Bytes that JSON has as hexadecimal digits, which is OpenTelemetry's rule for ids. */
void message_id(struct message_writer *writer, uint32_t field, const char *name,
                const uint8_t *bytes, size_t size);

/* A packed list of integers; it is begun and ended by message_packed and message_packed_end. */
size_t message_packed(struct message_writer *writer, uint32_t field, const char *name);
void message_packed_uint32(struct message_writer *writer, uint32_t value);
void message_packed_uint64(struct message_writer *writer, uint64_t value);
void message_packed_fixed64(struct message_writer *writer, uint64_t value);
void message_packed_end(struct message_writer *writer, size_t begun);

#endif
