#include "jdtool/pipeline/export_input.h"

#include "jdtool/base/message.h"
#include "jdtool/base/units.h"
#include "jdtool/pipeline/replay.h"
#include "jdtool/pipeline/stream.h"
#include "jdtool/resolve/source_texts.h"
#include "jdtool/score/processor_time.h"
#include "jdtool/score/scorecard.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int add_word(const struct verb *verb, struct sample_filter_words *words, const char *option,
                    const char *value)
{
    if (words->count == SAMPLE_FILTER_WORDS_MAX) {
        return wrong_usage(verb, "--%s can be given %d times", option, SAMPLE_FILTER_WORDS_MAX);
    }
    words->list[words->count++] = value;
    return STATUS_DONE;
}

#define TAKE_WORD(list, option)                                                                    \
    static int take_##option(const struct verb *verb, void *context, const char *value)            \
    {                                                                                              \
        struct export_input *input = context;                                                      \
        return add_word(verb, &input->filter.list, #option, value);                                \
    }
TAKE_WORD(threads, thread)
TAKE_WORD(labels, label)
TAKE_WORD(comms, comm)
TAKE_WORD(pids, pid)
TAKE_WORD(includes, include)
TAKE_WORD(excludes, exclude)

static int take_grouping(const struct verb *verb, void *context, const char *value)
{
    struct export_input *input = context;
    struct sample_filter_options *filter = &input->filter;
    static const char label[] = "label:";
    if (strcmp(value, "thread") == 0) {
        filter->grouping = GROUP_BY_THREAD;
    } else if (strcmp(value, "virtual") == 0) {
        filter->grouping = GROUP_BY_VIRTUAL;
    } else if (strcmp(value, "process") == 0) {
        filter->grouping = GROUP_BY_PROCESS;
    } else if (strncmp(value, label, sizeof label - 1) == 0 && value[sizeof label - 1]) {
        filter->grouping = GROUP_BY_LABEL;
        filter->group_label = value + sizeof label - 1;
    } else {
        return wrong_usage(verb, "--by takes thread, virtual, process or label:KEY, not '%s'",
                           value);
    }
    input->is_grouped = true;
    return STATUS_DONE;
}

int export_input_time(const struct verb *verb, const char *value, uint64_t *time)
{
    return units_time(value, time)
               ? STATUS_DONE
               : wrong_usage(verb, "a time is seconds, or as 300ms, 5m, not '%s'", value);
}

static int take_from(const struct verb *verb, void *context, const char *value)
{
    return export_input_time(verb, value, &((struct export_input *)context)->filter.from);
}

static int take_to(const struct verb *verb, void *context, const char *value)
{
    return export_input_time(verb, value, &((struct export_input *)context)->filter.until);
}

const struct verb_option export_input_options[] = {
    OPTION_TEXT("input", 'i', struct export_input, input),
    OPTION_TEXTS("dump", 0, struct export_input, dumps),
    OPTION_TEXT("buildid-dir", 0, struct export_input, build_id_dir),
    OPTION_TEXT("source-path", 0, struct export_input, source_path),
    OPTION_TAKE("from", 0, take_from),
    OPTION_TAKE("to", 0, take_to),
    OPTION_TAKE("thread", 0, take_thread),
    OPTION_TAKE("label", 0, take_label),
    OPTION_TAKE("by", 0, take_grouping),
    OPTION_TAKE("comm", 0, take_comm),
    OPTION_TAKE("pid", 0, take_pid),
    OPTION_TAKE("include", 0, take_include),
    OPTION_TAKE("exclude", 0, take_exclude),
    OPTION_TEXT("event", 0, struct export_input, filter.event),
    OPTION_TABLE(jfr_files_options, struct export_input, jfr),
    OPTION_TEXTS("held", 0, struct export_input, helds),
    OPTION_END,
};

static bool filters(const struct sample_filter_options *filter)
{
    return filter->from || filter->until || filter->threads.count || filter->comms.count ||
           filter->labels.count || filter->grouping != GROUP_BY_THREAD || filter->pids.count ||
           filter->includes.count || filter->excludes.count || filter->event;
}

/* Sets *path to `name` in the directory, if that can be read. 0 or a negative errno. */
static int look_into(struct export_input *input, const char *name)
{
    free(input->file);
    if (asprintf(&input->file, "%s/%s", input->input, name) < 0) {
        input->file = NULL;
        return -ENOMEM;
    }
    return access(input->file, R_OK) == 0 ? 0 : -errno;
}

static int is_dump(const struct dirent *entry)
{
    return fnmatch("jit-*.dump", entry->d_name, 0) == 0;
}

/* The dumps of a profile that was carried elsewhere are not where its recording says. */
static int add_dumps_of(struct export_input *input)
{
    struct dirent **found;
    int count = scandir(input->input, &found, is_dump, alphasort);
    if (count < 0) {
        return errno == ENOMEM ? -ENOMEM : 0;
    }
    for (int i = 0; i < count; i++) {
        char path[PATH_MAX + NAME_MAX + 2];
        snprintf(path, sizeof path, "%s/%s", input->input, found[i]->d_name);
        words_add(&input->dumps, "%s", path);
        free(found[i]);
    }
    free(found);
    return input->dumps.failed ? -ENOMEM : 0;
}

/* A directory's samples: saved ones, or else the recording. */
static int open_directory(struct export_input *input)
{
    int err = look_into(input, "samples.saved");
    if (err && err != -ENOMEM) {
        err = look_into(input, "perf.data");
        if (asprintf(&input->times, "%s/" PROCESSOR_TIME_FILE, input->input) < 0) {
            input->times = NULL;
            err = -ENOMEM;
        }
        if (!err) {
            err = add_dumps_of(input);
        }
    }
    if (err == -ENOMEM) {
        failed_to(-ENOMEM, "read %s", input->input);
    } else if (err) {
        error_message("failed to read %s: there is neither samples.saved nor perf.data in it",
                      input->input);
    }
    return err;
}

/* Saved samples have their verdict with them, a recording gets one: of all of it, whatever part the
 * sink is shown. */
static int run_recording(const struct export_input *input, const char *file,
                         struct sample_sink *sink)
{
    char verdict[SCORECARD_WORDS_MAX] = "";
    const struct scorecard_options card = {.processor_time = input->times, .verdict = verdict};
    struct stream_options options = {
        .input = file,
        .build_id_dir = input->build_id_dir,
        .dumps = input->dumps.list,
        .dump_count = input->dumps.count,
        .symbolize = true,
        .verdict = verdict,
    };
    struct stream_result result;
    struct sample_sink *sinks[] = {scorecard_sink_new(&card), sink};
    if (!sinks[0]) {
        sink->ops->abort(sink);
        return -ENOMEM;
    }
    return stream_run(&options, sinks, 2, &result);
}

static int run(struct export_input *input, struct sample_sink *sink)
{
    struct stat status;
    const char *file = input->input;
    if (strcmp(file, "-") != 0 && stat(file, &status) == 0 && S_ISDIR(status.st_mode)) {
        int err = open_directory(input);
        if (err) {
            sink->ops->abort(sink);
            return err;
        }
        file = input->file;
    }
    if (strcmp(file, "-") != 0 && replay_knows(file)) {
        struct replay_options options = {.input = file, .wants_code = input->wants_code};
        return replay_run(&options, sink);
    }
    return run_recording(input, file, sink);
}

/* The sink is used up on failure, too. */
static int run_chosen(struct export_input *input, struct sample_sink *sink)
{
    int err = filters(&input->filter) ? sample_filter_new(&input->filter, sink, &sink) : 0;
    if (!err && input->jfr.count) {
        err = jfr_marks_new(&input->jfr, sink, &sink);
    }
    return err ? err : run(input, sink);
}

int export_input_write(struct export_input *input, struct export_order *order, bool with_sources)
{
    struct sample_sink *sink;
    int err = with_sources ? source_texts_open(input->source_path, &order->settings.sources) : 0;
    err = err ? err : export_sink_new(order, 1, &sink);
    err = err ? err : run_chosen(input, sink);
    source_texts_close(order->settings.sources);
    return err;
}

int export_input_write_other(const struct export_input *input, const char *path,
                             struct export_order *order)
{
    char *copies;
    if (asprintf(&copies, "%s/buildid", path) < 0) {
        return failed_to(-ENOMEM, "read %s", path);
    }
    struct export_input other = {.input = path,
                                 .source_path = input->source_path,
                                 .build_id_dir = copies,
                                 .filter = input->filter};
    int err = export_input_write(&other, order, false);
    export_input_free(&other);
    free(copies);
    return err;
}

int export_input_hold(const struct export_input *input, struct rights *rights)
{
    for (uint32_t i = 0; i < input->helds.count; i++) {
        if (!rights_hold_word(rights, input->helds.list[i])) {
            error_message("--held takes FD:PATH, not %s", input->helds.list[i]);
            return STATUS_USAGE;
        }
    }
    return STATUS_DONE;
}

int export_input_confined(const struct export_input *input, const char *out, const char *before,
                          bool lasting, int (*work)(void *), void *context)
{
    struct rights *rights = rights_new();
    bool piped = strcmp(input->input, "-") == 0;
    if (!rights || input->dumps.failed || input->helds.failed) {
        rights_free(rights);
        failed_to(-ENOMEM, "read %s", input->input);
        return STATUS_FAILED;
    }
    int status = export_input_hold(input, rights);
    if (status) {
        rights_free(rights);
        return status;
    }
    rights_read(rights, input->input);
    rights_read(rights, before);
    rights_read_list(rights, input->source_path);
    rights_read_objects(rights, input->build_id_dir);
    for (uint32_t i = 0; i < input->dumps.count; i++) {
        rights_read(rights, input->dumps.list[i]);
    }
    for (uint32_t i = 0; i < input->jfr.count; i++) {
        rights_read(rights, input->jfr.list[i]);
    }
    rights_write(rights, out);
    status = confined_run(&(struct confined_options){
        .rights = rights,
        .what = piped ? "the recording" : input->input,
        .cpu_seconds = piped || lasting ? 0 : CONFINED_SECONDS,
        .work = work,
        .context = context,
    });
    rights_free(rights);
    return status;
}

void export_input_free(struct export_input *input)
{
    words_free(&input->dumps);
    words_free(&input->helds);
    free(input->file);
    free(input->times);
}
