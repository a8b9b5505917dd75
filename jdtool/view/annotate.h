/*
 * A method's machine code as text: each instruction with its share of the samples, a column for
 * each event, and before it, where they change, the Java lines that it was made of, those of
 * inlined methods indented by how deep they are.
 */
#ifndef JD_TOOL_ANNOTATE_H
#define JD_TOOL_ANNOTATE_H

#include "jdtool/exports/export.h"

/* Code that was sampled, and how much. */
struct annotated_code {
    const struct resolved_code *code;
    uint64_t *weights; /* by event */
    uint64_t samples;
};

/* A place in it that was sampled. */
struct annotated_place {
    uint64_t offset;   /* this and its code are its key */
    uint32_t code;     /* index into the codes */
    bool is_caller;    /* it lies in a call: no instruction begins there */
    uint64_t *weights; /* by event */
};

struct annotation {
    const struct profile *profile;
    uint32_t events;
    uint64_t *totals; /* of all samples of the profile, by event */
    struct annotated_code *codes;
    uint32_t *numbers; /* by number of the profile's code: which it is here + 1; 0: not sampled */
    struct annotated_place *places; /* by code, then by offset */
    uint32_t code_count, code_room, place_count, place_room;
    uint64_t *weights; /* what the pointers above point into */
};

/* Counts the samples of generated code. annotation is zeroed first; free it on failure, too. 0 or
 * -ENOMEM. */
int annotation_count(const struct profile *profile, struct annotation *annotation);
void annotation_free(struct annotation *annotation);

/* Writes one code of the annotation: all of it, or its instructions that were sampled and some
 * around them. 0 or -ENOMEM. */
int annotation_put(const struct annotation *annotation, uint32_t code, bool is_whole,
                   struct source_texts *sources, struct packed_output *output);

/* ---- Choosing ---- */

/*
 * Which pieces of code people mean by a method's name: its own, the heaviest first, or where it has
 * none that was sampled, those that it was inlined into.
 */

/* Codes are told by their index in the annotation. */
struct annotation_choice {
    uint32_t *order;  /* all of them by annotated_event, of each the heaviest first */
    uint32_t *picked; /* those that are meant, in that order */
    uint32_t count;   /* 0: none fits */
    bool are_hosts;   /* those into which the method was inlined */
    uint64_t *hosted; /* by code: what of its event's weight is the method's, inlined there */
};

/* wanted: as of method_match. Free the choice on failure, too. 0 or -ENOMEM. */
int annotation_choose(const struct annotation *annotation, const char *wanted,
                      struct annotation_choice *choice);
void annotation_choice_free(struct annotation_choice *choice);

/* What its method is called. */
const char *annotated_name(const struct annotation *annotation, uint32_t code);

/* The first event of which it has samples. */
uint32_t annotated_event(const struct annotation *annotation, uint32_t code);

#endif
