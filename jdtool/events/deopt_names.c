#include "jdtool/events/deopt_names.h"

#include <stdio.h>
#include <string.h>

#define REASON_TABLE "_ZN14Deoptimization17_trap_reason_nameE"

static struct deopt_file *file_of(struct deopt_names *names, const struct object *libjvm)
{
    uint32_t i = 0;
    while (i < names->count && names->files[i].object != object_id(libjvm)) {
        i++;
    }
    if (i == DEOPT_FILES) {
        i = 0;
        names->files[0] = (struct deopt_file){0};
    }
    names->count = i == names->count ? i + 1 : names->count;
    names->files[i].object = object_id(libjvm);
    return &names->files[i];
}

/* The action's numbers have been these since JDK 8. */
void deopt_name(struct deopt_names *names, struct object *libjvm, int32_t request, char *out,
                size_t size)
{
    static const char *const actions[] = {"none", "maybe_recompile", "reinterpret",
                                          "make_not_entrant", "make_not_compilable"};
    uint32_t bits = ~(uint32_t)request;
    uint32_t action = bits & 7;
    uint32_t reason = bits >> 3 & (DEOPT_REASONS - 1);
    const char *action_name =
        action < sizeof actions / sizeof *actions ? actions[action] : "unknown";
    struct deopt_file *file = libjvm ? file_of(names, libjvm) : NULL;
    if (file && !file->asked[reason]) {
        char *name = file->names[reason];
        file->asked[reason] = true;
        if (!object_table_text(libjvm, REASON_TABLE, reason, name, sizeof file->names[reason]) ||
            strspn(name, "abcdefghijklmnopqrstuvwxyz_0123456789") != strlen(name)) {
            name[0] = '\0';
        }
    }
    if (request >= 0 || !file || !file->names[reason][0]) {
        snprintf(out, size, "[reason %u, %s]", reason, action_name);
    } else {
        snprintf(out, size, "[%s, %s]", file->names[reason], action_name);
    }
}
