/* jdtool convert: line rows for stock perf out of inline trees, and back; sources for samply. */
#include "jdtool/base/message.h"
#include "jdtool/base/output_file.h"
#include "jdtool/base/verb.h"
#include "jdtool/inspect/convert.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static bool same_file(const char *in, const char *out)
{
    struct stat in_status;
    struct stat out_status;
    return stat(in, &in_status) == 0 && stat(out, &out_status) == 0 &&
           in_status.st_dev == out_status.st_dev && in_status.st_ino == out_status.st_ino;
}

static void put(void *context, const void *bytes, size_t size)
{
    output_file_put(context, bytes, size);
}

/* An exit_status. The dump appears under its name when it is complete. */
static int convert_file(const char *in, const char *out, bool to_tree,
                        struct samply_sources *sources)
{
    if (same_file(in, out)) {
        error_message("failed to write %s: it is the input", out);
        return STATUS_FAILED;
    }
    struct jitdump_reader *reader;
    struct output_file *file;
    if (jitdump_reader_open(in, &reader) < 0) {
        return STATUS_FAILED;
    }
    if (output_file_open(out, &file) < 0) {
        jitdump_reader_close(reader);
        return STATUS_FAILED;
    }
    struct convert_result result;
    int error = convert_dump(reader, in, to_tree, sources, put, file, &result);
    jitdump_reader_close(reader);
    if (error) {
        output_file_abort(file);
        return STATUS_FAILED;
    }
    if (output_file_finish(file) < 0) {
        return STATUS_FAILED;
    }
    if (result.torn_bytes) {
        warning_message("%s ends inside a record: its %" PRIu64 " bytes were left out", in,
                        result.torn_bytes);
    }
    if (result.too_large) {
        warning_message(
            "%" PRIu64
            " methods of %s have too many lines for a record: these remain in the inline trees",
            result.too_large, in);
    }
    printf("%s: %" PRIu64 " LOADs, the rows of %" PRIu64 " %s\n", in, result.loads, result.changed,
           to_tree ? "left to their inline trees" : "written out");
    if (sources) {
        printf("%s: %" PRIu64 " sources, and bytecodes of %" PRIu64 " classes without\n", in,
               samply_sources_count(sources), samply_listings_count(sources));
    }
    return finish_output();
}

/* The same, with the sources that are found in the path (NULL: nowhere). */
static int convert_with_sources(const char *in, const char *out, bool to_tree, const char *path)
{
    struct source_texts *texts;
    if (source_texts_open(path, &texts) < 0) {
        return STATUS_FAILED;
    }
    struct samply_sources *sources = samply_sources_new(texts);
    int status = STATUS_FAILED;
    if (sources) {
        status = convert_file(in, out, to_tree, sources);
    } else {
        error_message("failed to convert %s: no memory", in);
    }
    samply_sources_free(sources);
    source_texts_close(texts);
    return status;
}

struct choice {
    const char *out, *source_path;
    bool to_tree, samply;
};

static int take_lines(const struct verb *verb, void *context, const char *value)
{
    struct choice *choice = context;
    choice->to_tree = strcmp(value, "tree") == 0;
    return choice->to_tree || strcmp(value, "on") == 0
               ? STATUS_DONE
               : wrong_usage(verb, "--lines is on or tree, not '%s'", value);
}

static int run(const struct verb *verb, int argc, char **argv)
{
    static const struct verb_option options[] = {
        OPTION_TEXT("output", 'o', struct choice, out),
        OPTION_TAKE("lines", 0, take_lines),
        OPTION_FLAG("samply", 0, struct choice, samply),
        OPTION_TEXT("source-path", 0, struct choice, source_path),
        OPTION_END,
    };
    struct choice choice = {0};
    int status = verb_options(verb, argc, argv, options, &choice);
    if (status) {
        return status;
    }
    if (!choice.out) {
        return wrong_usage(verb, "-o OUT is needed");
    }
    if (choice.samply != (choice.source_path != NULL)) {
        return wrong_usage(verb, "--samply needs --source-path, and is all that does");
    }
    if (argc - optind != 1) {
        return wrong_usage(verb, "one FILE is needed");
    }
    return choice.samply
               ? convert_with_sources(argv[optind], choice.out, choice.to_tree, choice.source_path)
               : convert_file(argv[optind], choice.out, choice.to_tree, NULL);
}

const struct verb verb_convert = {
    .name = "convert",
    .run = run,
    .confined = true,
    .usage = "[--lines on|tree] [--samply --source-path PATH] FILE -o OUT",
    .help =
        "Makes a standard jitdump from one that the agent wrote with lines=tree: writes out the\n"
        "line rows that are only in the inline trees, for stock perf inject --jit. A dump that\n"
        "already has its rows is copied. jdtool itself does not need this.\n"
        "  -o, --output OUT      the file to write; an older one is replaced. perf expects the\n"
        "                        name jit-PID.dump\n"
        "      --lines on|tree   write rows out (default), or keep them in the trees only: a\n"
        "                        smaller dump with the same information\n"
        "      --samply          add the Java sources as samply's records; classes without\n"
        "                        source get their bytecodes as text\n"
        "      --source-path PATH\n"
        "                        directories and archives with sources or classes (src.zip,\n"
        "                        a jar, a jmod), separated by ':'\n",
};
