/*
 * Which pieces of code people mean by a method's name: its own, the heaviest first, or where it has
 * none that was sampled, those that it was inlined into.
 */
#ifndef JD_TOOL_ANNOTATE_CHOICE_H
#define JD_TOOL_ANNOTATE_CHOICE_H

#include "jdtool/view/annotate.h"

/* Codes are told by their index in the annotation. */
struct annotation_choice {
    uint32_t *order;  /* all of them, the heaviest first */
    uint32_t *picked; /* those that are meant, in that order */
    uint32_t count;   /* 0: none fits */
    bool are_hosts;   /* those into which the method was inlined */
    uint64_t *hosted; /* by code: samples of the method as it was inlined there */
};

/* wanted: as of method_match. Free the choice on failure, too. 0 or -ENOMEM. */
int annotation_choose(const struct annotation *annotation, const char *wanted,
                      struct annotation_choice *choice);
void annotation_choice_free(struct annotation_choice *choice);

/* What its method is called. */
const char *annotated_name(const struct annotation *annotation, uint32_t code);

/* Its weight of the first event of which it has any. */
uint64_t annotated_weight(const struct annotation *annotation, uint32_t code);

#endif
