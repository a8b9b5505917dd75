#include "jdtool/inject_exports.h"

#include "jdtool/base/message.h"
#include "jdtool/sinks/source_texts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int no_memory(const struct inject_options *options)
{
    error_message("failed to export %s: %s", options->input, strerror(ENOMEM));
    return -ENOMEM;
}

/* The format's own name in the directory of the result. */
static int place_beside(struct inject_export *made, const struct inject_options *options,
                        const struct export_format *format)
{
    const char *slash = strrchr(options->output, '/');
    int size = slash ? (int)(slash - options->output) + 1 : 0;
    if (asprintf(&made->path, "%.*s%s", size, options->output, format->file) < 0) {
        made->path = NULL;
        return no_memory(options);
    }
    made->settings.path = made->path;
    return 0;
}

int inject_exports_open(struct inject_exports *exports, const struct inject_options *options,
                        struct sample_sink **sinks, uint32_t *made)
{
    *exports = (struct inject_exports){
        .list = calloc((size_t)options->export_count + 1, sizeof *exports->list)};
    *made = 0;
    if (!exports->list) {
        return no_memory(options);
    }
    int err =
        options->export_count ? source_texts_open(options->source_path, &exports->sources) : 0;
    for (uint32_t i = 0; i < options->export_count && !err; i++) {
        struct inject_export *export = &exports->list[i];
        const struct export_format *format =
            export_choose(options->exports[i], &export->settings.path);
        exports->count++;
        export->settings.sources = exports->sources;
        err = export->settings.path ? 0 : place_beside(export, options, format);
        if (!err) {
            err = export_sink_new(format, &export->settings, &sinks[i]);
        }
        *made += !err;
    }
    return err;
}

void inject_exports_close(struct inject_exports *exports)
{
    for (uint32_t i = 0; i < exports->count; i++) {
        free(exports->list[i].path);
    }
    free(exports->list);
    source_texts_close(exports->sources);
}
