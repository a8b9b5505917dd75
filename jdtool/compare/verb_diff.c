/* jdtool diff: what changed from some runs of a program to others, beyond chance. */
#include "jdtool/base/json_writer.h"
#include "jdtool/base/message.h"
#include "jdtool/base/packed_output.h"
#include "jdtool/compare/comparison.h"
#include "jdtool/compare/runs.h"
#include "jdtool/confined/confined.h"
#include "jdtool/exports/export.h"
#include "jdtool/pipeline/export_input.h"
#include "jdtool/view/cells.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The comparison as text and JSON ---- */

/* What changed between two groups of runs, for people and for scripts. */

struct difference_look {
    double threshold; /* percent of all samples before; see comparison_is_loss */
    uint32_t width;   /* columns of the terminal */
    bool all;         /* what did not change as well */
};

/*
 * The JSON document: {"version": 1, "measure": "share"|"work", "runs": {"before": N, "after": N},
 * "threshold", "losses", "tested", "events": [{"name", "unit", "changes": [{"what", "method",
 * "file", "before": {"mean", "runs": […]}, "after": …, "change", "low", "high", "p", "q",
 * "impact", "significant", "loss"}]}]}
 */

#define NUMBERS    51 /* columns before the name */
#define NAME_LEAST 24

static const char *const whats[] = {
    [COMPARED_WHOLE] = "all",
    [COMPARED_SELF] = "self",
    [COMPARED_TOTAL] = "total",
    [COMPARED_FRAME] = "frame",
};

static const char *name_of(const struct runs *runs, const struct comparison *of)
{
    return of->what == COMPARED_WHOLE   ? "all samples"
           : of->what == COMPARED_FRAME ? runs->names[runs->nodes[of->id].name].text
                                        : runs->names[of->id].text;
}

/* ---- For people ---- */

/* Values of one event in a unit that suits its largest. */
struct scale {
    double factor;
    const char *unit;
};

static struct scale scale_of(const struct runs *runs, const struct comparisons *methods,
                             uint32_t event)
{
    static const struct scale times[] = {{1e-9, "s"}, {1e-6, "ms"}, {1e-3, "us"}, {1, "ns"}};
    static const struct scale sizes[] = {
        {1.0 / (1 << 30), "GB"}, {1.0 / (1 << 20), "MB"}, {1.0 / 1024, "KB"}, {1, "bytes"}};
    const char *unit = runs->events[event].unit;
    bool is_time = strcmp(unit, "nanoseconds") == 0, is_size = strcmp(unit, "bytes") == 0;
    const struct scale *list = is_time ? times : sizes;
    double most = 0;
    if (!runs_have_work(runs)) {
        return (struct scale){1, runs->events[event].rest ? "percent of all samples before"
                                                          : "percent of all samples"};
    }
    for (uint32_t i = 0; i < methods->count; i++) {
        const struct difference *made = &methods->list[i].difference;
        double larger = made->before > made->after ? made->before : made->after;
        most = methods->list[i].event == event && larger > most ? larger : most;
    }
    for (size_t i = 0; i < 4 && (is_time || is_size); i++) {
        if (most * list[i].factor >= 1 || i == 3) {
            return list[i];
        }
    }
    return (struct scale){1, unit};
}

static void put_change(const struct runs *runs, const struct comparison *of, struct scale scale,
                       const struct difference_look *look, struct packed_output *output)
{
    const struct difference *made = &of->difference;
    char text[CELL_MAX];
    uint32_t width = look->width > NUMBERS + NAME_LEAST ? look->width - NUMBERS : NAME_LEAST;
    packed_output_printf(output, "%8.2f%8.2f%+8.2f  %+7.2f … %+-7.2f  %-5s ",
                         made->before * scale.factor, made->after * scale.factor,
                         made->change * scale.factor, made->low * scale.factor,
                         made->high * scale.factor, whats[of->what]);
    cell_put(output, cell_fit_name(name_of(runs, of), width, text), width, false);
    packed_output_text(output, "\n");
}

static void put_table(const struct runs *runs, const struct comparisons *methods, uint32_t event,
                      bool changes, const struct difference_look *look,
                      struct packed_output *output)
{
    struct scale scale = scale_of(runs, methods, event);
    bool has_head = false;
    for (uint32_t i = 0; i < methods->count; i++) {
        const struct comparison *of = &methods->list[i];
        if (of->event != event || of->is_change != changes) {
            continue;
        }
        if (!has_head) {
            packed_output_printf(output, "\n%s, %s%s: %s\n", runs->events[event].name, scale.unit,
                                 runs_have_work(runs) ? " per unit of work" : "",
                                 changes ? "significant changes" : "within chance");
            packed_output_text(output,
                               "  BEFORE   AFTER  CHANGE  95 % INTERVAL            METHOD\n");
            has_head = true;
        }
        put_change(runs, of, scale, look, output);
    }
}

static void difference_write_text(const struct runs *runs, const struct comparisons *methods,
                                  const struct difference_look *look, struct packed_output *output)
{
    uint32_t before = runs->before_count, after = runs->run_count - before, changes = 0;
    for (uint32_t i = 0; i < methods->count; i++) {
        changes += methods->list[i].is_change;
    }
    packed_output_printf(output, "%" PRIu32 " runs before, %" PRIu32 " after\n", before, after);
    for (uint32_t i = 0; i < runs->event_count; i++) {
        put_table(runs, methods, i, true, look, output);
        if (look->all) {
            put_table(runs, methods, i, false, look, output);
        }
    }
    packed_output_text(output, "\n");
    if (changes == 0) {
        packed_output_printf(
            output, "No change is larger than chance: %" PRIu32 " comparisons were made.\n",
            methods->count);
        return;
    }
    uint32_t losses = comparisons_losses(methods, look->threshold);
    packed_output_printf(output,
                         "%" PRIu32 " of %" PRIu32 " comparisons changed by more than chance, at a "
                         "false discovery rate of %.0f %%.\n",
                         changes, methods->count, 100 * FALSE_DISCOVERIES);
    packed_output_printf(output, "%" PRIu32 " %s a loss", losses, losses == 1 ? "is" : "are");
    if (look->threshold > 0) {
        packed_output_printf(output, " of at least %g %% of all samples", look->threshold);
    }
    packed_output_text(output, ".\n");
}

/* ---- For scripts ---- */

static void put_number(struct json_writer *json, const char *key, double value)
{
    /* Exact to six places, which json_decimal takes as a whole number. */
    double most = 9e12;
    value = value > most ? most : value < -most ? -most : value;
    json_decimal(json, key, llround(value * 1e6), 6);
}

static void put_side(struct json_writer *json, const char *key, double mean, const double *values,
                     uint32_t count)
{
    json_object(json, key);
    put_number(json, "mean", mean);
    json_array(json, "runs");
    for (uint32_t i = 0; i < count; i++) {
        put_number(json, NULL, values[i]);
    }
    json_end(json);
    json_end(json);
}

static void put_comparison(struct json_writer *json, const struct runs *runs,
                           const struct comparison *of, double threshold)
{
    const struct difference *made = &of->difference;
    json_object(json, NULL);
    json_text(json, "what", whats[of->what]);
    if (of->what != COMPARED_WHOLE) {
        json_text(json, "method", name_of(runs, of));
        json_text(json, "file", runs->names[of->id].file);
    }
    put_side(json, "before", made->before, of->adjusted, runs->before_count);
    put_side(json, "after", made->after, of->adjusted + runs->before_count,
             runs->run_count - runs->before_count);
    put_number(json, "change", made->change);
    put_number(json, "low", made->low);
    put_number(json, "high", made->high);
    put_number(json, "p", made->p);
    put_number(json, "q", of->q);
    put_number(json, "impact", of->impact);
    json_bool(json, "significant", of->is_change);
    json_bool(json, "loss", comparison_is_loss(of, threshold));
    json_end(json);
}

static void difference_write_json(const struct runs *runs, const struct comparisons *methods,
                                  const struct difference_look *look, struct packed_output *output)
{
    struct json_writer json;
    json_start(&json, output);
    json_object(&json, NULL);
    json_uint(&json, "version", 1);
    json_text(&json, "measure", runs_have_work(runs) ? "work" : "share");
    json_object(&json, "runs");
    json_uint(&json, "before", runs->before_count);
    json_uint(&json, "after", runs->run_count - runs->before_count);
    json_end(&json);
    put_number(&json, "threshold", look->threshold);
    json_uint(&json, "losses", comparisons_losses(methods, look->threshold));
    json_uint(&json, "tested", methods->count);
    json_array(&json, "events");
    for (uint32_t i = 0; i < runs->event_count; i++) {
        json_object(&json, NULL);
        json_text(&json, "name", runs->events[i].name);
        json_text(&json, "unit", runs_have_work(runs) ? runs->events[i].unit : "percent");
        json_array(&json, "changes");
        for (uint32_t k = 0; k < methods->count; k++) {
            if (methods->list[k].event == i) {
                put_comparison(&json, runs, &methods->list[k], look->threshold);
            }
        }
        json_end(&json);
        json_end(&json);
    }
    json_end(&json);
    json_end(&json);
    packed_output_text(output, "\n");
}

/* ---- The command line ---- */

/* The JIT compiler's part of all samples from which on its chance is told. */
#define WARM_UP_TOLD 0.05

/*
 * Unless told otherwise the start of each run is left out, in which the JIT compiles: what it does
 * then is chance, the largest there is between runs of some seconds. All of a run counts where that
 * would leave less of one of them, and where time is compared for work that is told for all of it.
 */
#define START_LEFT_OUT UINT64_C(2000000000)
#define LEAST_LEFT     UINT64_C(2000000000)

/* The flame page of several runs: what they had on average, and which frames changed. */

/* A side's runs as one profile, without times: a function, a line and a location a name, a sample
 * a node and event. */
struct pooled {
    struct recording recording;
    struct recorded_event *events;
    struct profile profile;
    struct profile_thread thread;
    struct profile_track track;
    char name[64];
};

static void pooled_free(struct pooled *pooled)
{
    free(pooled->events);
    free(pooled->profile.functions);
    free(pooled->profile.lines);
    free(pooled->profile.locations);
    free(pooled->profile.nodes);
    free(pooled->profile.samples);
}

static void put_names(const struct runs *runs, struct profile *profile)
{
    for (uint32_t i = 0; i < runs->name_count; i++) {
        const struct runs_name *name = &runs->names[i];
        profile->functions[i] = (struct profile_function){
            .name = name->text, .system_name = name->text, .file = name->file};
        profile->lines[i] =
            (struct profile_line){.function = i, .kind = name->kind, .tier = name->tier};
        profile->locations[i] = (struct profile_location){.first_line = i, .line_count = 1};
    }
    for (uint32_t i = 0; i < runs->node_count; i++) {
        profile->nodes[i] = (struct profile_node){runs->nodes[i].parent, runs->nodes[i].name};
    }
}

/* Each run counts alike, however much it took: what is shown are means of shares. */
static void put_samples(const struct runs *runs, uint32_t from, uint32_t until,
                        struct profile *profile)
{
    for (uint32_t e = 0; e < runs->event_count; e++) {
        const struct runs_event *event = &runs->events[e];
        double whole = 0;
        for (uint32_t k = from; k < until; k++) {
            whole += event->whole[k] / (until - from);
        }
        for (uint32_t i = 0; i < runs->node_count && i < event->room; i++) {
            double share = 0;
            for (uint32_t k = from; k < until; k++) {
                double weight = event->weights[(size_t)i * runs->run_count + k];
                share += event->whole[k] > 0 ? weight / event->whole[k] / (until - from) : 0;
            }
            if (share > 0) {
                profile->samples[profile->sample_count++] = (struct profile_sample){
                    .weight = (uint64_t)llround(share * whole), .count = 1, .node = i, .event = e};
            }
        }
    }
    profile->total_count = profile->sample_count;
}

static int pooled_make(const struct runs *runs, enum side side, struct pooled *pooled)
{
    uint32_t from = side == SIDE_BEFORE ? 0 : runs->before_count;
    uint32_t until = side == SIDE_BEFORE ? runs->before_count : runs->run_count;
    struct profile *profile = &pooled->profile;
    size_t samples = (size_t)runs->node_count * runs->event_count + 1;
    snprintf(pooled->name, sizeof pooled->name, "%u runs %s", until - from,
             side == SIDE_BEFORE ? "before" : "after");
    pooled->events = calloc((size_t)runs->event_count + 1, sizeof *pooled->events);
    profile->functions = calloc((size_t)runs->name_count + 1, sizeof *profile->functions);
    profile->lines = calloc((size_t)runs->name_count + 1, sizeof *profile->lines);
    profile->locations = calloc((size_t)runs->name_count + 1, sizeof *profile->locations);
    profile->nodes = calloc((size_t)runs->node_count + 1, sizeof *profile->nodes);
    profile->samples = calloc(samples, sizeof *profile->samples);
    if (!pooled->events || !profile->functions || !profile->lines || !profile->locations ||
        !profile->nodes || !profile->samples) {
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < runs->event_count; i++) {
        pooled->events[i] = (struct recorded_event){
            .id = i, .name = runs->events[i].name, .unit = runs->events[i].unit};
    }
    pooled->recording = (struct recording){.path = pooled->name,
                                           .events = pooled->events,
                                           .event_count = runs->event_count,
                                           .has_chains = true};
    pooled->thread = (struct profile_thread){
        .comm = "", .process_name = "", .program = "", .virtual_name = "", .labels = ""};
    profile->recording = &pooled->recording;
    profile->threads = &pooled->thread;
    profile->tracks = &pooled->track;
    profile->function_count = profile->line_count = profile->location_count = runs->name_count;
    profile->node_count = runs->node_count;
    profile->thread_count = profile->track_count = 1;
    put_names(runs, profile);
    put_samples(runs, from, until, profile);
    return 0;
}

/* By node: a bit for each event of which it changed. NULL: no memory. */
static uint32_t *find_changed(struct runs *runs)
{
    uint32_t *changed = calloc((size_t)runs->node_count + 1, sizeof *changed);
    int err = changed ? 0 : -ENOMEM;
    for (uint32_t e = 0; !err && e < runs->event_count && e < 32; e++) {
        struct comparisons frames = {0};
        err = compare_frames(runs, e, &frames);
        for (uint32_t i = 0; !err && i < frames.count; i++) {
            changed[frames.list[i].id] |= (uint32_t)frames.list[i].is_change << e;
        }
        comparisons_free(&frames);
    }
    if (err) {
        free(changed);
        changed = NULL;
    }
    return changed;
}

static int write_before(const struct profile *profile, const struct export_settings *settings,
                        struct export_before *before)
{
    struct packed_output *output;
    uint8_t *bytes = NULL;
    int err = packed_output_open_memory(false, &output);
    if (err) {
        return err;
    }
    err = export_format_of("flame")->write(profile, settings, output);
    int taken = packed_output_take(output, &bytes, &before->size);
    before->bytes = bytes;
    return err ? err : taken;
}

/* Writes the page, on which only frames that changed by more than chance have a colour. title NULL:
 * one that says how many runs there are. 0 or a negative errno after a message. */
static int pooled_write_page(struct runs *runs, const char *path, const char *title)
{
    struct pooled sides[SIDES] = {0};
    uint32_t *changed = find_changed(runs);
    struct export_settings settings = {
        .path = path, .title = title, .changed = changed, .runs = runs->run_count};
    struct export_before before = {.name = sides[SIDE_BEFORE].name};
    struct packed_output *output;
    int err = changed ? 0 : -ENOMEM;
    for (uint32_t i = 0; !err && i < SIDES; i++) {
        err = pooled_make(runs, i, &sides[i]);
    }
    err = err ? err : write_before(&sides[SIDE_BEFORE].profile, &settings, &before);
    if (!err) {
        settings.before = &before;
        settings.name = sides[SIDE_AFTER].name;
        err = packed_output_open(path, false, &output);
        if (!err) {
            err = export_format_of("html")->write(&sides[SIDE_AFTER].profile, &settings, output);
            packed_output_fail(output, err);
            err = packed_output_finish(output);
        }
    } else {
        failed_to(err, "write %s", path);
    }
    free((void *)before.bytes);
    pooled_free(&sides[SIDE_BEFORE]);
    pooled_free(&sides[SIDE_AFTER]);
    free(changed);
    return err;
}

#define STATUS_LOSS 3

struct diff {
    struct export_order order; /* of the run in hand */
    struct export_input input; /* what of every run is wanted */
    struct difference_look look;
    struct runs runs;
    uint32_t run; /* in hand */
    const char *paths[SIDES][RUNS_MAX];
    uint32_t counts[SIDES];
    const char *work, *page, *title;
    bool json;
    bool leaves_start; /* out, because nothing was asked for */
    bool is_short;     /* a run is, without its start */
    int argc;
    char **argv;
};

/* ---- The command line ---- */

/* An option's value and all words behind it, up to the next option. */
static int take_side(const struct verb *verb, struct diff *diff, enum side side, const char *path)
{
    do {
        if (diff->counts[side] == RUNS_MAX / 2) {
            return wrong_usage(verb, "more than %d runs on one side", RUNS_MAX / 2);
        }
        diff->paths[side][diff->counts[side]++] = path;
        path = optind < diff->argc ? diff->argv[optind] : NULL;
        optind += path && path[0] != '-';
    } while (path && path[0] != '-');
    return STATUS_DONE;
}

static int take_before(const struct verb *verb, void *diff, const char *path)
{
    return take_side(verb, diff, SIDE_BEFORE, path);
}

static int take_after(const struct verb *verb, void *diff, const char *path)
{
    return take_side(verb, diff, SIDE_AFTER, path);
}

static int refuse_input(const struct verb *verb, void *diff, const char *path)
{
    (void)diff;
    (void)path;
    return wrong_usage(verb, "profiles are named behind --before and --after");
}

static int take_from(const struct verb *verb, void *context, const char *value)
{
    struct diff *diff = context;
    diff->leaves_start = false;
    return export_input_time(verb, value, &diff->input.filter.from);
}

static int take_threshold(const struct verb *verb, void *context, const char *word)
{
    struct diff *diff = context;
    char *end;
    diff->look.threshold = strtod(word, &end);
    if (end == word || *end || !(diff->look.threshold >= 0 && diff->look.threshold <= 100)) {
        return wrong_usage(verb, "--threshold is a percentage of all samples, not '%s'", word);
    }
    return STATUS_DONE;
}

/* "N,N,…", of the runs before, then of those after, or one number for all. */
static int take_work(struct diff *diff)
{
    const char *at = diff->work;
    uint32_t count = 0, wanted = diff->counts[SIDE_BEFORE] + diff->counts[SIDE_AFTER];
    while (at && count < wanted) {
        char *end;
        double work = strtod(at, &end);
        if (end == at || !isfinite(work) || work <= 0 || (*end && *end != ',')) {
            return wrong_usage(&verb_diff, "--work is a number for each run, not '%s'", diff->work);
        }
        diff->runs.work[count++] = work;
        at = *end ? end + 1 : NULL;
    }
    if (at || (count > 1 && count < wanted)) {
        return wrong_usage(&verb_diff, "--work needs one number, or one for each of %u runs",
                           wanted);
    }
    for (; count && count < wanted; count++) {
        diff->runs.work[count] = diff->runs.work[0];
    }
    return STATUS_DONE;
}

static int parse(const struct verb *verb, int argc, char **argv, struct diff *diff)
{
    static const struct verb_option options[] = {
        OPTION_TAKE("input", 'i', refuse_input),
        OPTION_TAKE("dump", 0, refuse_input),
        OPTION_TAKE("buildid-dir", 0, refuse_input),
        OPTION_TAKE("from", 0, take_from),
        OPTION_TAKE("before", 0, take_before),
        OPTION_TAKE("after", 0, take_after),
        OPTION_TEXT("work", 0, struct diff, work),
        OPTION_TAKE("threshold", 0, take_threshold),
        OPTION_TEXT("output", 'o', struct diff, page),
        OPTION_TEXT("title", 0, struct diff, title),
        OPTION_FLAG("all", 0, struct diff, look.all),
        OPTION_FLAG("json", 0, struct diff, json),
        OPTION_TABLE(export_input_options, struct diff, input),
        OPTION_END,
    };
    diff->leaves_start = true;
    diff->argc = argc;
    diff->argv = argv;
    int status = verb_options(verb, argc, argv, options, diff);
    diff->leaves_start &= !diff->work;
    if (status == STATUS_DONE &&
        (diff->counts[SIDE_BEFORE] < RUNS_LEAST || diff->counts[SIDE_AFTER] < RUNS_LEAST)) {
        status = wrong_usage(verb,
                             "at least %d runs are needed on each side: one says "
                             "nothing of chance",
                             RUNS_LEAST);
    }
    return status;
}

/* ---- The runs ---- */

static int take_run(const struct profile *profile, const struct export_settings *settings,
                    struct packed_output *output)
{
    struct diff *diff = settings->context;
    (void)output;
    diff->is_short |= profile->until - profile->from < LEAST_LEFT;
    if (profile->total_count == 0 && diff->leaves_start) {
        return 0; /* that one is shorter yet */
    }
    if (profile->total_count == 0) {
        error_message("failed to compare %s: there are no samples, or the selection matches none",
                      settings->path);
        return -ENODATA;
    }
    return runs_add(&diff->runs, diff->run, profile);
}

static int read_run(struct diff *diff, const char *path)
{
    static const struct export_format format = {.name = "diff", .of_none = true, .write = take_run};
    struct export_memory memory = {0};
    diff->order =
        (struct export_order){&format, {.path = path, .memory = &memory, .context = diff}};
    int err = export_input_write_other(&diff->input, path, &diff->order);
    free(memory.bytes);
    return err;
}

static int read_all(struct diff *diff)
{
    int err = 0;
    diff->run = 0;
    for (uint32_t side = 0; side < SIDES; side++) {
        for (uint32_t i = 0; !err && i < diff->counts[side]; i++, diff->run++) {
            err = read_run(diff, diff->paths[side][i]);
        }
    }
    return err;
}

static int read_runs(struct diff *diff)
{
    diff->input.filter.from = diff->leaves_start ? START_LEFT_OUT : diff->input.filter.from;
    int err = read_all(diff);
    if (err || !diff->leaves_start) {
        return err;
    }
    if (!diff->is_short) {
        info_message("the first %d s of each run are left out, because the JIT compiles then "
                     "(--from 0: compare all)",
                     (int)(START_LEFT_OUT / 1000000000));
        return 0;
    }
    diff->input.filter.from = 0;
    diff->leaves_start = false;
    runs_free(&diff->runs);
    err = runs_init(&diff->runs, diff->counts[SIDE_BEFORE], diff->counts[SIDE_AFTER]);
    return failed_to(err, "compare the runs") ? err : read_all(diff);
}

/* An event that only some runs have would be compared with nothing. */
static void tell_partial_events(const struct runs *runs)
{
    for (uint32_t i = 0; i < runs->event_count; i++) {
        uint32_t have = 0;
        for (uint32_t k = 0; k < runs->run_count; k++) {
            have += runs->events[i].whole[k] > 0;
        }
        if (have < runs->run_count) {
            warning_message("%s is left out: only %u of %u runs have samples of it",
                            runs->events[i].name, have, runs->run_count);
        }
    }
}

/* How much the JIT compiler does in its threads, and which code a method has until it is done, is
 * chance: the largest there is between runs of some seconds. */
static void tell_warm_up(const struct runs *runs, const struct comparisons *methods)
{
    for (uint32_t i = 0; !runs_have_work(runs) && i < methods->count; i++) {
        const struct comparison *of = &methods->list[i];
        if (of->what == COMPARED_TOTAL && of->share >= WARM_UP_TOLD &&
            strcmp(runs->names[of->id].text, "CompileBroker::compiler_thread_loop") == 0) {
            warning_message(
                "%.0f %% of the samples are of the JIT compiler: longer runs find smaller changes",
                100 * of->share);
            return;
        }
    }
}

static int write_result(struct diff *diff, const struct comparisons *methods)
{
    struct packed_output *output;
    int err = packed_output_open("-", false, &output);
    if (!err) {
        (diff->json ? difference_write_json : difference_write_text)(&diff->runs, methods,
                                                                     &diff->look, output);
        err = packed_output_finish(output);
    }
    return err;
}

static int compare_runs(void *context)
{
    struct diff *diff = context;
    struct comparisons methods = {0};
    int err = read_runs(diff);
    int status = STATUS_FAILED;
    if (!err) {
        tell_partial_events(&diff->runs);
        err = compare_methods(&diff->runs, &methods);
        failed_to(err, "compare the runs");
    }
    if (!err) {
        tell_warm_up(&diff->runs, &methods);
    }
    if (!err && diff->page) {
        err = pooled_write_page(&diff->runs, diff->page, diff->title);
    }
    if (!err && write_result(diff, &methods) == 0) {
        status = finish_output();
    }
    if (status == STATUS_DONE && comparisons_losses(&methods, diff->look.threshold)) {
        status = STATUS_LOSS;
    }
    comparisons_free(&methods);
    return status;
}

/* Profiles may be others': they are read without rights. */
static int compare_confined(struct diff *diff)
{
    struct rights *rights = rights_new();
    int status = STATUS_FAILED;
    if (!rights) {
        failed_to(-ENOMEM, "compare the runs");
        return status;
    }
    status = export_input_hold(&diff->input, rights);
    if (status) {
        rights_free(rights);
        return status;
    }
    for (uint32_t side = 0; side < SIDES; side++) {
        for (uint32_t i = 0; i < diff->counts[side]; i++) {
            rights_read(rights, diff->paths[side][i]);
        }
    }
    rights_read_list(rights, diff->input.source_path);
    rights_write(rights, diff->page);
    status = confined_run(&(struct confined_options){.rights = rights,
                                                     .what = diff->paths[SIDE_BEFORE][0],
                                                     .cpu_seconds = CONFINED_SECONDS,
                                                     .work = compare_runs,
                                                     .context = diff});
    rights_free(rights);
    return status;
}

static int run_verb(const struct verb *verb, int argc, char **argv)
{
    struct diff *diff = calloc(1, sizeof *diff);
    if (!diff) {
        failed_to(-ENOMEM, "compare the runs");
        return STATUS_FAILED;
    }
    diff->look.width = cell_terminal_width();
    int status = parse(verb, argc, argv, diff);
    if (status == STATUS_DONE &&
        runs_init(&diff->runs, diff->counts[SIDE_BEFORE], diff->counts[SIDE_AFTER])) {
        failed_to(-ENOMEM, "compare the runs");
        status = STATUS_FAILED;
    }
    status = status == STATUS_DONE ? take_work(diff) : status;
    status = status == STATUS_DONE ? compare_confined(diff) : status;
    runs_free(&diff->runs);
    export_input_free(&diff->input);
    free(diff);
    return status;
}

const struct verb verb_diff = {
    .name = "diff",
    .words = VERB_HAS_NO_WORDS,
    .run = run_verb,
    .usage = "--before DIR... --after DIR... [OPTIONS]",
    .help =
        "Compares several runs of a program before a change with several after it. Lists the\n"
        "methods that changed by more than chance: the method itself and including its callees.\n"
        "One in twenty of them may be chance. Methods with less than 1 % of all samples are not\n"
        "compared. The first 2 s of each run are left out, because the JIT compiles then; not if\n"
        "a run is shorter than 4 s, or with --work or --from. The exit status is 3 if something\n"
        "became slower.\n"
        "      --before DIR..., --after DIR...\n"
        "                            profiles, at least 2 on each side; 5 or more are better\n"
        "      --work N[,N...]       how much work each run did, in order of the profiles; 1 if\n"
        "                            all did the same: compares time per unit of work\n"
        "      --threshold PERCENT   ignore smaller losses (default: 0)\n"
        "      --all                 also list what did not change beyond chance\n"
        "      --json                for scripts: every comparison with the values of each run\n"
        "  -o, --output FILE         also write a flame graph; frames that changed have colours\n"
        "      --title TEXT          of the flame graph\n" //
    EXPORT_INPUT_HELP,
};
