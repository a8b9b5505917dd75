/*
 * The ELF files of a result: for each dump one with its code, and one with frames that have no code
 * of their own, when there are any. They stand beside the result:
 *   perf.jit.data  ->  perf.jit-java.so, perf.jit-java-frames.so
 * and with several JVMs the pid takes the place of "java". With one the name does not depend on the
 * pid, so that perf diff finds the same files in two results.
 */
#ifndef JD_TOOL_IMAGES_H
#define JD_TOOL_IMAGES_H

#include "jdtool/sinks/code_image.h"

struct images_options {
    const char *result; /* the path beside which they go */
    struct code_image_options code;
};

/* The files of one dump, by their absolute paths; NULL: there is none. */
struct image_files {
    char *code_path;
    char *frames_path;
    struct code_image code;
    uint8_t frames_build_id[BUILD_ID_MAX];
};

/*
 * Lays the frame tables out and writes all images. *out gets an array, one for each of the jvms.
 * 0 or a negative errno after a message.
 */
int images_write(const struct jvms *jvms, const struct images_options *options,
                 struct image_files **out);
void images_free(struct image_files *files, uint32_t count); /* NULL is fine */

/* Removes the files: there will be no result. NULL is fine. */
void images_remove(const struct image_files *files, uint32_t count);

/* Enters the files in the result's list of build-ids. */
void images_add_build_ids(const struct image_files *files, uint32_t count,
                          struct perf_writer *writer);

#endif
