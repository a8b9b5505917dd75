/*
 * The image of a dump: one ELF file with the code that samples or call chains touch, named, with
 * lines and, on request, inlined methods.
 */
#ifndef JD_TOOL_CODE_IMAGE_H
#define JD_TOOL_CODE_IMAGE_H

#include "jdtool/resolve/jvms.h"
#include "jdtool/sinks/source_path.h"

struct code_image_options {
    bool keep_all;                   /* all code of the dump, touched or not */
    bool inlines;                    /* tell of inlined methods in the debugging information */
    struct source_path *source_path; /* never NULL */
};

struct code_image {
    uint64_t *offsets; /* by blob: where its code is in the file; 0: it is not */
    uint32_t count;    /* of blobs in the image */
    uint8_t build_id[BUILD_ID_MAX];
};

/* Writes the image. 0 or a negative errno after a message; free the image with code_image_free. */
int code_image_write(const struct jvm *jvm, const char *path,
                     const struct code_image_options *options, struct code_image *image);
void code_image_free(struct code_image *image);

#endif
