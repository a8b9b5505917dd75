/*
 * Writes protobuf messages: fields go into growing bytes, a submessage's length is put in front of
 * it when it ends. Only what the formats here need: varints, 64-bit fixed, bytes, submessages,
 * packed lists. Elements of these are put by bytes_uleb and bytes_u64, fields that were encoded
 * elsewhere by bytes_put.
 */
#ifndef JD_TOOL_PROTOBUF_H
#define JD_TOOL_PROTOBUF_H

#include "jdtool/base/bytes.h"

/* A field of an integer type; negative ones are given as (uint64_t)value. Zero is left out, as
 * proto3 does. */
void protobuf_uint(struct bytes *message, uint32_t field, uint64_t value);

/* A fixed64 field. */
void protobuf_fixed64(struct bytes *message, uint32_t field, uint64_t value);

/* A field of bytes or a string; also when it is empty, for an element of a repeated one. */
void protobuf_bytes(struct bytes *message, uint32_t field, const void *bytes, size_t size);

/* Starts a submessage or a packed list; returns what protobuf_end wants. They may nest. */
size_t protobuf_begin(struct bytes *message, uint32_t field);
void protobuf_end(struct bytes *message, size_t begun);

#endif
