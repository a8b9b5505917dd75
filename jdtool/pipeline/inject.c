/* jdtool inject: the stream of resolved samples into perf.data with its images, and a scorecard. */
#include "jdtool/pipeline/inject.h"

#include "jdtool/base/message.h"
#include "jdtool/base/output_file.h"
#include "jdtool/confined/rights.h"
#include "jdtool/exports/export.h"
#include "jdtool/images/perf_data_sink.h"
#include "jdtool/pipeline/stream.h"
#include "jdtool/resolve/source_texts.h"
#include "jdtool/score/scorecard.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * One JVM of several may have died before it wrote its dump. But where all dumps are missing or
 * refused, nothing has become of what was asked for, and scripts must be able to tell.
 */
static int check_dumps(const struct inject_options *options, const struct stream_result *result)
{
    if (result->usable || (result->jvms == 0 && options->dump_count == 0)) {
        return 0;
    }
    error_message("failed to name the generated code of %s: none of its dumps can be used; %s has "
                  "everything else",
                  options->input, options->output);
    return -ENODATA;
}

/* Ends what was made when not all sinks could be. */
static int give_up(struct sample_sink *const *sinks, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        sinks[i]->ops->abort(sinks[i]);
    }
    return -EIO; /* told */
}

/* ---- Exports in the same pass ---- */

/* What is made of the samples beside the result; one profile is gathered for all of it. */
struct inject_exports {
    struct source_texts *sources; /* NULL: no format wants them */
    struct export_order *orders;
    char **paths; /* of those beside the result; NULL: the user's */
    uint32_t count;
};

static int no_memory(const struct inject_options *options)
{
    error_message("failed to export %s: %s", options->input, strerror(ENOMEM));
    return -ENOMEM;
}

/* The format's own name in the directory of the result. */
static int place_beside(const struct inject_options *options, struct export_order *order,
                        char **path)
{
    const char *slash = strrchr(options->output, '/');
    int size = slash ? (int)(slash - options->output) + 1 : 0;
    if (asprintf(path, "%.*s%s", size, options->output, order->format->file) < 0) {
        *path = NULL;
        return no_memory(options);
    }
    order->settings.path = *path;
    return 0;
}

/* Sets *sink to the one that makes them all; NULL: nothing is wanted. Close it in any case. */
static int open_exports(const struct inject_options *options, struct inject_exports *exports,
                        struct sample_sink **sink)
{
    uint32_t most = options->export_count + 1;
    *sink = NULL;
    exports->orders = calloc(most, sizeof *exports->orders);
    exports->paths = calloc(most, sizeof *exports->paths);
    if (!exports->orders || !exports->paths) {
        return no_memory(options);
    }
    if (options->save) {
        exports->orders[exports->count++].settings.path = options->save;
    }
    int err =
        options->export_count ? source_texts_open(options->source_path, &exports->sources) : 0;
    for (uint32_t i = 0; i < options->export_count && !err; i++) {
        struct export_order *order = &exports->orders[exports->count];
        order->format = export_choose(options->exports[i], &order->settings.path);
        order->settings.sources = exports->sources;
        err = order->settings.path ? 0
                                   : place_beside(options, order, &exports->paths[exports->count]);
        exports->count++;
    }
    return !err && exports->count ? export_sink_new(exports->orders, exports->count, sink) : err;
}

static void close_exports(struct inject_exports *exports)
{
    for (uint32_t i = 0; i < exports->count; i++) {
        free(exports->paths[i]);
    }
    free((void *)exports->paths);
    free(exports->orders);
    source_texts_close(exports->sources);
}

/* ---- All of it ---- */

/* With a sink for the exports behind the first `count`, which are there. */
static int run_sinks(const struct inject_options *options, const struct stream_options *stream,
                     struct sample_sink **sinks, uint32_t count)
{
    struct inject_exports exports = {0};
    struct stream_result dumps;
    int err = open_exports(options, &exports, &sinks[count]);
    if (!err && sinks[count] && options->jfr.count) {
        err = jfr_marks_new(&options->jfr, sinks[count], &sinks[count]);
    }
    if (err) {
        (void)give_up(sinks, count);
    } else {
        err = stream_run(stream, sinks, count + (sinks[count] != NULL), &dumps);
        err = err ? err : check_dumps(options, &dumps);
    }
    close_exports(&exports);
    return err;
}

static int run(const struct inject_options *options, struct source_path *source_path)
{
    char verdict[SCORECARD_WORDS_MAX] = "";
    const struct stream_options stream = {.input = options->input,
                                          .verdict = verdict,
                                          .build_id_dir = options->build_id_dir,
                                          .dumps = options->dumps,
                                          .dump_count = options->dump_count,
                                          .symbolize = options->save || options->export_count,
                                          .keep_stacks = options->keep_stacks};
    const struct scorecard_options scorecard = {.json = options->scorecard,
                                                .print = !options->quiet,
                                                .result = options->output,
                                                .processor_time = options->processor_time,
                                                .verdict = verdict};
    struct sample_sink *card = scorecard_sink_new(&scorecard);
    const struct perf_data_sink_options perf_data = {
        .output = options->output,
        .expand = options->inline_mode == INLINE_EXPAND,
        .inlines = options->inline_mode == INLINE_DWARF,
        .leaf = options->leaf,
        .keep_all = options->keep_all,
        .keep_stacks = options->keep_stacks,
        .inlined_suffix = options->inlined_suffix,
        .interpreted_suffix = options->interpreted_suffix,
        .source_path = source_path,
        .written = scorecard_sink_image,
        .written_context = card,
    };
    struct sample_sink *result = card ? perf_data_sink_new(&perf_data) : NULL;
    if (!result) {
        return give_up(&card, card ? 1 : 0);
    }
    /* The result ends first: the scorecard tells where its images are. Exports tell its verdict. */
    struct sample_sink *sinks[3] = {result, card};
    return run_sinks(options, &stream, sinks, 2);
}

void inject_rights(const struct inject_options *options, struct rights *rights)
{
    const char *file;
    if (options->held) {
        (void)rights_hold_word(rights, options->held);
    }
    rights_read(rights, options->input);
    rights_read(rights, options->processor_time);
    rights_read_list(rights, options->source_path);
    rights_read_objects(rights, options->build_id_dir);
    for (uint32_t i = 0; i < options->dump_count; i++) {
        rights_read(rights, options->dumps[i]);
    }
    for (uint32_t i = 0; i < options->jfr.count; i++) {
        rights_read(rights, options->jfr.list[i]);
    }
    rights_write_images(rights, options->output);
    rights_write(rights, options->scorecard);
    rights_write(rights, options->save);
    for (uint32_t i = 0; i < options->export_count; i++) {
        struct export_order order = {.format = export_choose(options->exports[i], &file)};
        char *path = NULL;
        if (!file && place_beside(options, &order, &path) == 0) {
            file = path;
        }
        rights_write(rights, file);
        free(path);
    }
}

int inject(const struct inject_options *options)
{
    struct source_path *source_path = NULL;
    int err = output_path_check(options->output);
    if (!err) {
        err = source_path_open(options->source_path, &source_path);
    }
    if (!err) {
        err = run(options, source_path);
    }
    source_path_close(source_path);
    return err;
}
