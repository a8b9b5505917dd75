/* jdtool inject: the stream of resolved samples into perf.data with its images, and a scorecard. */
#include "jdtool/inject.h"

#include "jdtool/base/message.h"
#include "jdtool/base/output_file.h"
#include "jdtool/inject_exports.h"
#include "jdtool/perf/perf_version.h"
#include "jdtool/sinks/perf_data_sink.h"
#include "jdtool/sinks/saved_sink.h"
#include "jdtool/sinks/scorecard.h"
#include "jdtool/stream.h"

#include <errno.h>
#include <stdlib.h>

static bool wants_expansion(const struct inject_options *options)
{
    if (options->inline_mode == INLINE_AUTO) {
        return perf_major_version() < PERF_EXPANDS_INLINED;
    }
    return options->inline_mode == INLINE_EXPAND;
}

/*
 * One JVM of several may have died before it wrote its dump. But where all dumps are missing or
 * refused, nothing has become of what was asked for, and scripts must be able to tell.
 */
static int check_dumps(const struct inject_options *options, const struct stream_result *result)
{
    if (result->usable || (result->jvms == 0 && options->dump_count == 0)) {
        return 0;
    }
    error_message("failed to name the generated code of %s: not one of its dumps could be used; %s "
                  "has the rest",
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

/* With the sinks that were asked for behind the first `count`, which are there. */
static int run_sinks(const struct inject_options *options, const struct stream_options *stream,
                     struct sample_sink **sinks, uint32_t count)
{
    struct inject_exports exports;
    struct stream_result dumps;
    uint32_t made;
    if (options->save && saved_sink_new(options->save, &sinks[count])) {
        return give_up(sinks, count);
    }
    count += options->save != NULL;
    int err = inject_exports_open(&exports, options, &sinks[count], &made);
    count += made;
    if (err) {
        (void)give_up(sinks, count);
    } else {
        err = stream_run(stream, sinks, count, &dumps);
        err = err ? err : check_dumps(options, &dumps);
    }
    inject_exports_close(&exports);
    return err;
}

static int run(const struct inject_options *options, struct source_path *source_path)
{
    const struct stream_options stream = {.input = options->input,
                                          .build_id_dir = options->build_id_dir,
                                          .dumps = options->dumps,
                                          .dump_count = options->dump_count,
                                          .symbolize = options->save || options->export_count,
                                          .keep_stacks = options->keep_stacks};
    const struct scorecard_options scorecard = {
        .json = options->scorecard, .print = !options->quiet, .result = options->output};
    struct sample_sink *card = scorecard_sink_new(&scorecard);
    bool expand = wants_expansion(options);
    const struct perf_data_sink_options perf_data = {
        .output = options->output,
        .expand = expand,
        .inlines = !expand && options->inline_mode != INLINE_OFF,
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
    /* The result ends first: the scorecard tells where its images are. */
    struct sample_sink **sinks =
        calloc(options->export_count + (size_t)3, sizeof(struct sample_sink *));
    if (!sinks) {
        struct sample_sink *made[] = {result, card};
        return give_up(made, 2);
    }
    sinks[0] = result;
    sinks[1] = card;
    int err = run_sinks(options, &stream, sinks, 2);
    free((void *)sinks);
    return err;
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
