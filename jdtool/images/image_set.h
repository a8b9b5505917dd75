/*
 * The ELF files of a result: for each JVM those with its code (image_layout.h) and one with frames
 * that have no code of their own (image_frames.h). They stand beside the result:
 *
 *     perf.jit.data  ->  perf.jit-java.so, perf.jit-java-frames.so
 *
 * and further layers as perf.jit-java.2.so and so on. "java" is the JVM that is the only one when
 * it is first touched, so that perf diff finds the same files in two results; others go by their
 * pid.
 *
 * What goes into them is gathered while samples come; they are written at the end, from the dumps.
 */
#ifndef JD_TOOL_IMAGE_SET_H
#define JD_TOOL_IMAGE_SET_H

#include "jdtool/images/image_frames.h"
#include "jdtool/images/image_layout.h"
#include "jdtool/resolve/sample_sink.h"
#include "jdtool/resolve/source_texts.h"

struct image_set_options {
    const char *result; /* the path beside which they go */
    bool inlines;       /* tell of inlined methods in the debugging information */
    bool frame_info;    /* call-frame information for code */
    bool all_code;      /* the bytes of all code, however few samples hit it */
    const char *inlined_suffix;
    const char *interpreted_suffix;
    struct source_path *source_path; /* never NULL */
};

/* What one JVM's dump has in the images. */
struct jvm_images {
    const struct module *module;
    uint32_t number; /* from 0, in the order of first use */
    char *stem;      /* of its files' absolute paths */
    bool frame_info; /* call-frame information is written, and has to be mapped */
    struct image_layout *layout;
    struct image_frames *frames;
    const struct resolved_code **codes; /* by piece of the layout */
    uint32_t code_count;
    uint32_t code_room;
    uint32_t *pieces; /* by the code's id: its piece plus one, 0: not met yet */
    uint32_t piece_room;
    uint32_t *hits; /* by the code's id: how many samples were taken in it */
    uint32_t hit_room;
    uint64_t unplaced; /* pieces of code that no image has */
    struct image_path {
        char *path;     /* made when it is first asked for */
        uint32_t bases; /* how often it was mapped anew (image_maps.c) */
    } * paths;          /* by file of the layout */
    uint32_t path_count;
    uint32_t path_room;
    char *frames_path;
    struct code_index *index;
};

struct image_set;

/* What it is given must live longer. 0 or a negative errno after a message. */
int image_set_open(const struct image_set_options *options, struct image_set **out);

/* Frees it; what was written stays. NULL is fine. */
void image_set_close(struct image_set *set);

/* The images of the JVM whose code that is, made when there are none. NULL after a message. */
struct jvm_images *image_set_of(struct image_set *set, const struct recording *recording,
                                const struct resolved_code *code);

/*
 * The piece of a code in the layout of its JVM's images; *is_new: it was not met before. `lowest`
 * as for image_layout_add. 0 or a negative errno after a message.
 */
int image_set_piece(struct jvm_images *images, const struct resolved_code *code,
                    uint64_t (*lowest)(void *context, uint64_t address), void *context,
                    uint32_t *piece);

/* A sample was taken in that code, or branched there. 0 or -ENOMEM after a message. */
int image_set_hit(struct image_set *set, struct jvm_images *images,
                  const struct resolved_code *code);

/* Absolute paths; NULL after a message. They live as long as the set. */
const char *image_set_path(struct jvm_images *images, uint32_t file);
const char *image_set_frames_path(struct jvm_images *images);

/*
 * Writes all images. Calls `written` with each, its path and build-id. 0 or a negative errno after
 * a message; those written before are then removed.
 *
 * samples: how many there are in the recording. Code that has more than one in 10,000 of them has
 * its bytes, too, which perf annotate shows. Of other code there are names and lines alone: a long
 * recording hits most of what is compiled once or twice, and each takes pages of its own. The dump
 * has the bytes of all.
 */
int image_set_write(struct image_set *set, uint64_t samples,
                    void (*written)(void *context, const char *path,
                                    const uint8_t build_id[BUILD_ID_MAX]),
                    void *context);

/* Calls `tell` for each JVM with code in an image, with its module and the first image's path. */
void image_set_tell(struct image_set *set,
                    void (*tell)(void *context, const struct module *module, const char *path),
                    void *context);

/* Removes what image_set_write wrote: there will be no result. */
void image_set_remove(struct image_set *set);

#endif
