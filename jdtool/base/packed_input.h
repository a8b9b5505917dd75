/* Reads a file that is gzipped, or not, from its beginning to its end. */
#ifndef JD_TOOL_PACKED_INPUT_H
#define JD_TOOL_PACKED_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct packed_input;

/* A regular file. 0 or a negative errno after a message. */
int packed_input_open(const char *path, struct packed_input **out);
void packed_input_close(struct packed_input *input); /* NULL is fine */

/* Both: false at the end of the file, or at a fault of it, which packed_input_error tells. */
bool packed_input_byte(struct packed_input *input, uint8_t *byte);
bool packed_input_bytes(struct packed_input *input, void *to, size_t size);

/* An unsigned LEB128 number of at most 64 bits. */
bool packed_input_number(struct packed_input *input, uint64_t *number);

/* Unpacks a whole deflate stream, bare or in zlib's wrapping, which fills `size` bytes. False: it
 * is damaged, or fills fewer or more. */
bool packed_input_whole(void *packed, size_t packed_size, bool zlib, void *bytes, size_t size);

/* 0: it was read to its end without a fault so far; -EBADMSG: the gzip is damaged or cut; or
 * another negative errno. */
int packed_input_error(const struct packed_input *input);

#endif
