/* jdtool report: where the time went, as a table. */
#include "jdtool/exports/export.h"
#include "jdtool/pipeline/export_input.h"
#include "jdtool/view/cells.h"
#include "jdtool/view/report_text.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#define DEFAULT_LIMIT 40

struct report_verb {
    struct export_order order;
    struct export_input input;
    struct report_look look;
    bool json;
};

static int write_text(const struct profile *profile, const struct export_settings *settings,
                      struct packed_output *output)
{
    const struct report_verb *report = settings->context;
    return report_text_write(profile, &report->look, output);
}

static int take_rows(const struct verb *verb, struct report_verb *report, enum report_rows rows,
                     const char *method)
{
    if (report->look.rows != REPORT_METHODS) {
        return wrong_usage(verb, "one of --lines, --threads, --callers and --callees at a "
                                 "time");
    }
    report->look.rows = rows;
    report->look.method = method;
    return STATUS_DONE;
}

static int take_lines(const struct verb *verb, void *report, const char *value)
{
    return take_rows(verb, report, REPORT_LINES, value);
}

static int take_threads(const struct verb *verb, void *report, const char *value)
{
    return take_rows(verb, report, REPORT_THREADS, value);
}

static int take_callers(const struct verb *verb, void *report, const char *method)
{
    return take_rows(verb, report, REPORT_CALLERS, method);
}

static int take_callees(const struct verb *verb, void *report, const char *method)
{
    return take_rows(verb, report, REPORT_CALLEES, method);
}

static int take_limit(const struct verb *verb, void *context, const char *word)
{
    struct report_verb *report = context;
    char *end;
    errno = 0;
    unsigned long limit = strtoul(word, &end, 10);
    if (word[0] < '0' || word[0] > '9' || *end || errno || limit > UINT32_MAX) {
        return wrong_usage(verb, "--limit is a number of rows, not '%s'", word);
    }
    report->look.limit = (uint32_t)limit;
    return STATUS_DONE;
}

static int parse(const struct verb *verb, int argc, char **argv, struct report_verb *report)
{
    static const struct verb_option options[] = {
        OPTION_TABLE(export_input_options, struct report_verb, input),
        OPTION_DO("lines", 0, take_lines),
        OPTION_DO("threads", 0, take_threads),
        OPTION_TAKE("callers", 0, take_callers),
        OPTION_TAKE("callees", 0, take_callees),
        OPTION_TAKE("limit", 0, take_limit),
        OPTION_FLAG("json", 0, struct report_verb, json),
        OPTION_END,
    };
    int status = verb_options(verb, argc, argv, options, report);
    if (status == STATUS_DONE && !report->input.input) {
        status = wrong_usage(verb, "-i RECORDING is needed");
    }
    bool is_by_thread = report->look.rows == REPORT_METHODS || report->look.rows == REPORT_THREADS;
    if (status == STATUS_DONE && report->input.is_grouped && !is_by_thread) {
        status =
            wrong_usage(verb, "--by prints one row for each group: leave out --lines, --callers "
                              "and --callees");
    }
    if (report->input.is_grouped && is_by_thread) {
        report->look.rows = REPORT_THREADS; /* of which there is one for each group */
    }
    return status;
}

static int report_all(void *context)
{
    struct report_verb *report = context;
    report->order.settings.context = report;
    return export_input_write(&report->input, &report->order, false) ? STATUS_FAILED
                                                                     : finish_output();
}

static int run_verb(const struct verb *verb, int argc, char **argv)
{
    static const struct export_format text = {.name = "report", .write = write_text};
    struct report_verb report = {
        .order = {.settings = {.path = "-"}},
        .look = {.limit = DEFAULT_LIMIT,
                 .width = cell_terminal_width(),
                 .colors = isatty(STDOUT_FILENO) && !getenv("NO_COLOR")},
    };
    int status = parse(verb, argc, argv, &report);
    if (status == STATUS_DONE) {
        report.order.format = report.json ? export_format_of("report") : &text;
        status = export_input_confined(&report.input, NULL, NULL, false, report_all, &report);
    }
    export_input_free(&report.input);
    return status;
}

const struct verb verb_report = {
    .name = "report",
    .words = VERB_HAS_NO_WORDS,
    .run = run_verb,
    .usage = "-i RECORDING|DIR [OPTIONS]",
    .help = "Prints the methods that took the most, a table for each event: the share of the\n"
            "method itself, the share with what it called, its hottest line, and how it ran.\n"
            "However often the JVM compiled it, a method is one row.\n"
            "      --lines               one row for each source line\n"
            "      --threads             one row for each thread; --by alone: for each group\n"
            "      --callers METHOD      who called METHOD, as a tree\n"
            "      --callees METHOD      what METHOD called, as a tree\n"
            "      --limit N             rows for each event (default: 40; 0: all)\n"
            "      --json                for scripts: every method with its lines and callers\n" //
    EXPORT_INPUT_HELP,
};
