/* jdtool view: serves a profile to Firefox Profiler's front end, with source and assembly. */
#include "jdtool/base/message.h"
#include "jdtool/exports/export.h"
#include "jdtool/pipeline/export_input.h"
#include "jdtool/resolve/source_texts.h"
#include "jdtool/view/content.h"
#include "jdtool/view/server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FRONT_END "https://profiler.firefox.com"

struct view {
    struct export_input input;
    struct export_order order;
    struct server_options options;
    struct server *server;
    const char *front_end;
    uint32_t idle_seconds;
    char origin[256]; /* the front end's: what comes before its path */
};

/* Appends a text as a part of a URL. */
static void put_encoded(char *url, size_t room, const char *text)
{
    size_t size = strlen(url);
    for (; *text && size + 4 < room; text++) {
        bool plain =
            strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~", *text);
        int n = snprintf(url + size, room - size, plain ? "%c" : "%%%02X", (unsigned char)*text);
        size += n > 0 ? (size_t)n : 0;
    }
}

static void tell(const struct view *view, uint16_t port, const char *token)
{
    char base[128];
    char profile[160];
    char url[1024];
    size_t size = strlen(view->front_end);
    while (size > 0 && view->front_end[size - 1] == '/') {
        size--;
    }
    snprintf(base, sizeof base, "http://127.0.0.1:%u/%s", port, token);
    snprintf(profile, sizeof profile, "%s/profile.json", base);
    snprintf(url, sizeof url, "%.*s/from-url/", (int)size, view->front_end);
    put_encoded(url, sizeof url, profile);
    size = strlen(url);
    snprintf(url + size, sizeof url - size, "/?symbolServer=");
    put_encoded(url, sizeof url, base);
    printf("open in a browser:\n  %s\n"
           "from another machine, first:\n  ssh -L %u:127.0.0.1:%u THIS-MACHINE\n"
           "Ctrl-C ends this.\n",
           url, port, port);
    fflush(stdout);
}

/* In the place of an export's writing: the profile is complete, and the dumps are still open. */
static int serve(const struct profile *profile, const struct export_settings *settings,
                 struct packed_output *output)
{
    struct view *view = settings->context;
    struct content *content = NULL;
    (void)output;
    int err = 0;
    for (uint32_t i = 0; settings->sources && !err && i < profile->module_count; i++) {
        err = source_texts_add_jdk(settings->sources, profile->modules[i]);
    }
    if (!err) {
        err = content_new(profile, settings, &content);
    }
    if (!err) {
        view->options.answer = content_answer;
        view->options.context = content;
        view->options.origin = view->origin;
        tell(view, server_port(view->server), content_token(content));
        err = server_run(view->server, view->idle_seconds);
    }
    content_free(content);
    return err;
}

static int take_front_end(const struct verb *verb, void *context, const char *url)
{
    struct view *view = context;
    const char *host = strstr(url, "://");
    size_t size = host ? (size_t)(host - url) + 3 + strcspn(host + 3, "/?#") : 0;
    if (!host || (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0) ||
        size >= sizeof view->origin || strpbrk(url, "\r\n \"'<>")) {
        return wrong_usage(verb, "--front-end takes a URL, not '%s'", url);
    }
    view->front_end = url;
    snprintf(view->origin, sizeof view->origin, "%.*s", (int)size, url);
    return STATUS_DONE;
}

static int take_port(const struct verb *verb, void *context, const char *text)
{
    struct view *view = context;
    char *end;
    unsigned long number = strtoul(text, &end, 10);
    view->options.port = (uint16_t)number;
    return end == text || *end || number > UINT16_MAX
               ? wrong_usage(verb, "--port takes a number up to %u, not '%s'", UINT16_MAX, text)
               : STATUS_DONE;
}

static int parse(const struct verb *verb, int argc, char **argv, struct view *view)
{
    static const struct verb_option options[] = {
        OPTION_TABLE(export_input_options, struct view, input),
        OPTION_TAKE("front-end", 0, take_front_end),
        OPTION_TAKE("port", 0, take_port),
        OPTION_SECONDS("idle", 0, struct view, idle_seconds, UINT32_MAX,
                       "--idle takes a time as 30s or 10m, not "),
        OPTION_END,
    };
    int status = take_front_end(verb, view, FRONT_END);
    status = status ? status : verb_options(verb, argc, argv, options, view);
    if (!status && optind < argc) {
        status = wrong_usage(verb, "unexpected argument '%s'", argv[optind]);
    }
    if (!status && !view->input.input) {
        status = wrong_usage(verb, "-i RECORDING is needed");
    }
    return status;
}

static int view_all(void *context)
{
    struct view *view = context;
    int err = export_input_write(&view->input, &view->order, true);
    return err ? STATUS_FAILED : finish_output();
}

static int run_verb(const struct verb *verb, int argc, char **argv)
{
    static const struct export_format format = {
        .name = "view", .keeps_times = true, .write = serve};
    struct view view = {.input = {.wants_code = true}, .order = {&format, {.path = "-"}}};
    int status = parse(verb, argc, argv, &view);
    /* Who reads the profile may open no socket. */
    if (status == STATUS_DONE && server_open(&view.options, &view.server)) {
        status = STATUS_FAILED;
    }
    if (status == STATUS_DONE) {
        view.order.settings.context = &view;
        status = export_input_confined(&view.input, NULL, NULL, true, view_all, &view);
    }
    server_close(view.server);
    export_input_free(&view.input);
    return status;
}

const struct verb verb_view = {
    .name = "view",
    .run = run_verb,
    .usage = "-i RECORDING|DIR [OPTIONS]",
    .help =
        "Serves a profile to Firefox Profiler's front end in a browser of this machine: threads\n"
        "over time, call tree, flame graph, Java source and machine code with their samples.\n"
        "Nothing but this profile is served, on 127.0.0.1, at a path that nobody can guess.\n"
        "      --front-end URL       where the front end is (default: " FRONT_END ")\n"
        "      --port PORT           to listen on (default: any)\n"
        "      --idle TIME           end after this time without requests\n" //
    EXPORT_INPUT_HELP,
};
