/*
 * A class file's methods as text: a line with name and descriptor, then their bytecodes
 * (bytecodes.h). Class files are taken for whatever they may be.
 */
#ifndef JD_TOOL_CLASS_LISTING_H
#define JD_TOOL_CLASS_LISTING_H

#include "jdtool/base/bytes.h"

/* Appends the text, as far as the file makes sense; of CLASS_LISTING_MAX bytes and one instruction
 * at most. 0 or -ENOMEM. */
int class_listing(struct bytes *out, const uint8_t *bytes, size_t size);

#define CLASS_LISTING_MAX ((size_t)4 * 1024 * 1024)

#endif
