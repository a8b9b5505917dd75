/*
 * What jdtool inject exports in its one pass: a sink for each, with what its settings point to.
 */
#ifndef JD_TOOL_INJECT_EXPORTS_H
#define JD_TOOL_INJECT_EXPORTS_H

#include "jdtool/inject.h"
#include "jdtool/sinks/export.h"

struct inject_exports {
    struct source_texts *sources; /* NULL: no format wants them */
    struct inject_export {
        struct export_settings settings;
        char *path; /* beside the result; NULL: the user's */
    } * list;
    uint32_t count;
};

/*
 * Makes options->export_count sinks, the first one at sinks[0]; of those that were made the caller
 * aborts the last *made when it fails. 0 or a negative errno after a message; free it in any case.
 */
int inject_exports_open(struct inject_exports *exports, const struct inject_options *options,
                        struct sample_sink **sinks, uint32_t *made);
void inject_exports_close(struct inject_exports *exports);

#endif
