/*
 * jdtool inject: a recording and the dumps of its JVMs in, a recording that any perf can read out,
 * with images of the code and a scorecard.
 */
#include "jdtool/base/message.h"
#include "jdtool/base/output_file.h"
#include "jdtool/base/text.h"
#include "jdtool/base/verb.h"
#include "jdtool/confined/confined.h"
#include "jdtool/confined/rights.h"
#include "jdtool/exports/export.h"
#include "jdtool/images/perf_data_sink.h"
#include "jdtool/pipeline/jfr_marks.h"
#include "jdtool/pipeline/stream.h"
#include "jdtool/resolve/source_texts.h"
#include "jdtool/score/scorecard.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct inject_options {
    struct stream_options stream;
    struct perf_data_sink_options result;
    struct scorecard_options card;
    const char *source_path;
    const char *held; /* "FD:PATH": that directory is open already; NULL: none */
    const char *save; /* the samples with their names (saved.h); NULL: no */
    struct words dumps;
    struct words exports; /* "FORMAT[=FILE]", as of export_choose; without FILE: beside output */
    struct jfr_files jfr; /* the JVMs' own recordings, for what is saved and exported */
    bool quiet;
};

/*
 * One JVM of several may have died before it wrote its dump. But where all dumps are missing or
 * refused, nothing has become of what was asked for, and scripts must be able to tell.
 */
static int check_dumps(const struct inject_options *options, const struct stream_result *result)
{
    if (result->usable || (result->jvms == 0 && options->dumps.count == 0)) {
        return 0;
    }
    error_message("failed to name the generated code of %s: none of its dumps can be used; %s has "
                  "everything else",
                  options->stream.input, options->result.output);
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
    return failed_to(-ENOMEM, "export %s", options->stream.input);
}

/* The format's own name in the directory of the result. */
static int place_beside(const struct inject_options *options, struct export_order *order,
                        char **path)
{
    const char *slash = strrchr(options->result.output, '/');
    int size = slash ? (int)(slash - options->result.output) + 1 : 0;
    if (asprintf(path, "%.*s%s", size, options->result.output, order->format->file) < 0) {
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
    uint32_t most = options->exports.count + 1;
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
        options->exports.count ? source_texts_open(options->source_path, &exports->sources) : 0;
    for (uint32_t i = 0; i < options->exports.count && !err; i++) {
        struct export_order *order = &exports->orders[exports->count];
        order->format = export_choose(options->exports.list[i], &order->settings.path);
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
static int run_sinks(const struct inject_options *options, struct sample_sink **sinks,
                     uint32_t count)
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
        err = stream_run(&options->stream, sinks, count + (sinks[count] != NULL), &dumps);
        err = err ? err : check_dumps(options, &dumps);
    }
    close_exports(&exports);
    return err;
}

static int run_options(struct inject_options *options)
{
    char verdict[SCORECARD_WORDS_MAX] = "";
    options->card.print = !options->quiet;
    options->card.result = options->result.output;
    options->card.verdict = verdict;
    options->stream.verdict = verdict;
    options->stream.dumps = options->dumps.list;
    options->stream.dump_count = options->dumps.count;
    options->stream.symbolize = options->save || options->exports.count;
    options->stream.keep_stacks = options->result.keep_stacks;
    struct sample_sink *card = scorecard_sink_new(&options->card);
    options->result.written = scorecard_sink_image;
    options->result.written_context = card;
    struct sample_sink *result = card ? perf_data_sink_new(&options->result) : NULL;
    if (!result) {
        return give_up(&card, card ? 1 : 0);
    }
    /* The result ends first: the scorecard tells where its images are. Exports tell its verdict. */
    struct sample_sink *sinks[3] = {result, card};
    return run_sinks(options, sinks, 2);
}

/* What it reads and makes, for confined_run. */
static void ask_rights(const struct inject_options *options, struct rights *rights)
{
    const char *file;
    if (options->held) {
        (void)rights_hold_word(rights, options->held);
    }
    rights_read(rights, options->stream.input);
    rights_read(rights, options->card.processor_time);
    rights_read_list(rights, options->source_path);
    rights_read_objects(rights, options->stream.build_id_dir);
    for (uint32_t i = 0; i < options->dumps.count; i++) {
        rights_read(rights, options->dumps.list[i]);
    }
    for (uint32_t i = 0; i < options->jfr.count; i++) {
        rights_read(rights, options->jfr.list[i]);
    }
    rights_write_images(rights, options->result.output);
    rights_write(rights, options->card.json);
    rights_write(rights, options->save);
    for (uint32_t i = 0; i < options->exports.count; i++) {
        struct export_order order = {.format = export_choose(options->exports.list[i], &file)};
        char *path = NULL;
        if (!file && place_beside(options, &order, &path) == 0) {
            file = path;
        }
        rights_write(rights, file);
        free(path);
    }
}

/*
 * Does all of it. 0 or a negative errno after a message; there is then no result, but for -ENODATA:
 * there are dumps, not one of them could be used, and the result is the recording without names for
 * generated code.
 */
static int inject(struct inject_options *options)
{
    int err = output_path_check(options->result.output);
    if (!err) {
        err = source_path_open(options->source_path, &options->result.source_path);
    }
    if (!err) {
        err = run_options(options);
    }
    source_path_close(options->result.source_path);
    return err;
}

/* ---- The command line ---- */

static int take_inline_mode(const struct verb *verb, void *context, const char *text)
{
    struct inject_options *options = context;
    static const struct {
        const char *name;
        bool expand, inlines; /* which perf 7 and later expand */
    } modes[] = {{"auto", true, false},
                 {"expand", true, false},
                 {"dwarf", false, true},
                 {"off", false, false}};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        if (strcmp(modes[i].name, text) == 0) {
            options->result.expand = modes[i].expand;
            options->result.inlines = modes[i].inlines;
            return STATUS_DONE;
        }
    }
    return wrong_usage(verb, "--inline takes auto, expand, dwarf or off, not '%s'", text);
}

static int take_export(const struct verb *verb, void *context, const char *word)
{
    struct inject_options *options = context;
    char names[256];
    const char *file;
    if (export_choose(word, &file)) {
        words_add(&options->exports, "%s", word);
        return STATUS_DONE;
    }
    export_format_names(false, names, sizeof names);
    return wrong_usage(verb, "--export takes FORMAT[=FILE], not '%s' (%s)", word, names);
}

static int parse(const struct verb *verb, int argc, char **argv, struct inject_options *options)
{
    static const struct verb_option table[] = {
        OPTION_TEXT("input", 'i', struct inject_options, stream.input),
        OPTION_TEXT("output", 'o', struct inject_options, result.output),
        OPTION_TEXTS("dump", 0, struct inject_options, dumps),
        OPTION_TAKE("inline", 0, take_inline_mode),
        OPTION_TEXT("inlined-suffix", 0, struct inject_options, result.inlined_suffix),
        OPTION_TEXT("interpreted-suffix", 0, struct inject_options, result.interpreted_suffix),
        OPTION_FLAG("leaf", 0, struct inject_options, result.leaf),
        OPTION_TEXT("source-path", 0, struct inject_options, source_path),
        OPTION_TEXT("buildid-dir", 0, struct inject_options, stream.build_id_dir),
        OPTION_FLAG("keep-all", 0, struct inject_options, result.keep_all),
        OPTION_FLAG("compress", 'z', struct inject_options, result.pack),
        OPTION_FLAG("keep-stacks", 0, struct inject_options, result.keep_stacks),
        OPTION_TEXT("scorecard", 0, struct inject_options, card.json),
        OPTION_TEXT("processor-time", 0, struct inject_options, card.processor_time),
        OPTION_TEXT("save", 0, struct inject_options, save),
        OPTION_TAKE("export", 0, take_export),
        OPTION_TABLE(jfr_files_options, struct inject_options, jfr),
        OPTION_TEXT("held", 0, struct inject_options, held),
        OPTION_FLAG("quiet", 'q', struct inject_options, quiet),
        OPTION_END,
    };
    int status = verb_options(verb, argc, argv, table, options);
    if (status) {
        return status;
    }
    if (!options->stream.input || !options->result.output) {
        return wrong_usage(verb, "-i RECORDING and -o RESULT are needed");
    }
    if (strcmp(options->result.output, "-") == 0) {
        return wrong_usage(verb, "the result is a file, it cannot go to a pipe");
    }
    return STATUS_DONE;
}

static int work(void *options)
{
    return inject(options) ? STATUS_FAILED : finish_output();
}

/* In a process without rights. */
static int run_confined(struct inject_options *options)
{
    struct rights *rights = rights_new();
    if (!rights || options->dumps.failed || options->exports.failed) {
        rights_free(rights);
        failed_to(-ENOMEM, "inject");
        return STATUS_FAILED;
    }
    ask_rights(options, rights);
    int status = confined_run(&(struct confined_options){
        .rights = rights,
        .what = strcmp(options->stream.input, "-") == 0 ? "the recording" : options->stream.input,
        .cpu_seconds = strcmp(options->stream.input, "-") == 0 ? 0 : CONFINED_SECONDS,
        .work = work,
        .context = options,
    });
    rights_free(rights);
    return status;
}

static int run_verb(const struct verb *verb, int argc, char **argv)
{
    struct inject_options options = {.result = {.expand = true,
                                                .inlined_suffix = " (inlined)",
                                                .interpreted_suffix = " (interpreted)"}};
    int status = parse(verb, argc, argv, &options);
    if (status == STATUS_DONE) {
        status = run_confined(&options);
    }
    words_free(&options.dumps);
    words_free(&options.exports);
    return status;
}

const struct verb verb_inject = {
    .name = "inject",
    .words = VERB_HAS_NO_WORDS,
    .run = run_verb,
    .usage = "-i RECORDING -o RESULT [OPTIONS]",
    .help =
        "Names a recording's frames in generated code. Dumps are found as perf finds them; each\n"
        "JVM's code goes into one ELF file next to the result; inlined methods become frames.\n"
        "  -i, --input FILE          what perf record wrote; -: from a pipe (perf record -o -)\n"
        "  -o, --output FILE         the result, for perf report, script, annotate\n"
        "      --dump FILE           use this dump for its JVM (may be repeated)\n"
        "      --jfr FILE            also the events of a JVM's own recording (.jfr), for --save "
        "and\n"
        "                            --export (may be repeated)\n"
        "      --inline MODE         expand (default): put inlined methods into the call chains;\n"
        "                            dwarf: leave that to perf 7 and later; off\n"
        "      --inlined-suffix TEXT, --interpreted-suffix TEXT\n"
        "                            put behind such methods' names (default: ' (inlined)',\n"
        "                            ' (interpreted)')\n"
        "      --leaf                self time goes to the innermost inlined method\n"
        "      --source-path DIRS    where Java sources are, separated by ':', for perf annotate\n"
        "      --buildid-dir DIR     where perf record left copies of files (default: ~/.debug), "
        "for\n"
        "                            stacks of containers that have ended\n"
        "      --keep-all            all code of the dump, not only what samples touch\n"
        "      --keep-stacks         leave stack copies (--call-graph dwarf) as they are, for "
        "perf\n"
        "                            to unwind; default: each is unwound once, here\n"
        "      --scorecard FILE      how good the profile is, as JSON\n"
        "      --processor-time FILE     what the kernel accounted to the JVMs, as jdperf record "
        "leaves it\n"
        "                            in a profile: the samples are held against it\n"
        "      --save FILE           the samples with their names, for jdtool export, annotate, "
        "view\n"
        "      --export FORMAT[=FILE]  and in this format, in the same pass (see jdtool export; "
        "may be\n"
        "                            repeated); without FILE next to the result\n"
        "  -z, --compress            pack the result's records with zstd, as perf record -z does\n"
        "  -q, --quiet               do not print the scorecard\n",
};
