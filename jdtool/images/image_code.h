/* Writes the images with code, one file of a layout at a time, for image_set.c. */
#ifndef JD_TOOL_IMAGE_CODE_H
#define JD_TOOL_IMAGE_CODE_H

#include "jdtool/images/image_set.h"

/*
 * Writes the image of one file of the layout: its code as the dump has it, named, with lines and,
 * by the options, inlined methods and call-frame information. 0 or a negative errno after a
 * message.
 */
int image_code_write(struct jvm_images *images, uint32_t file,
                     const struct image_set_options *options, uint8_t build_id[BUILD_ID_MAX]);

#endif
