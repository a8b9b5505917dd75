/* jdtool view: serves a profile to Firefox Profiler's front end, with source and assembly. */
#include "jdtool/base/clock.h"
#include "jdtool/base/descriptor.h"
#include "jdtool/base/message.h"
#include "jdtool/exports/export.h"
#include "jdtool/pipeline/export_input.h"
#include "jdtool/resolve/source_texts.h"
#include "jdtool/view/content.h"
#include "jdtool/view/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* ---- The server ---- */

/*
 * A server for one user on this machine: it listens on 127.0.0.1 alone, answers one request a
 * connection, waits for nobody long, and ends with SIGINT or SIGTERM.
 */

struct server_options {
    uint16_t port;      /* 0: any that is free */
    const char *origin; /* "https://profiler.firefox.com": whose pages may read the answers */
    /* Fills the response, which is zeroed. It is asked only for requests whose Host is this
     * server, so that a name that somebody else has pointed here gets nothing. */
    void (*answer)(void *context, const struct http_request *request,
                   struct http_response *response);
    void *context;
};

#define CLIENTS_MAX   32
#define PATIENCE      20 /* seconds for a request to come whole, and for each part of an answer */
#define HEAD_MAX      1024
#define POLL_INTERVAL 1000 /* milliseconds */

struct client {
    int fd; /* -1: the place is free */
    time_t until;
    char *request; /* HTTP_REQUEST_MAX and a NUL */
    size_t received;
    bool is_answering;
    struct http_response response;
    size_t head_size, sent; /* sent: of the head, then of the body */
    char head[HEAD_MAX];    /* the last one: it is not cleared for the next client */
};

struct server {
    const struct server_options *options;
    int fd, signals;
    uint16_t port;
    char hosts[2][32]; /* what a Host header may say */
    struct client clients[CLIENTS_MAX];
};

static void drop(struct client *client)
{
    descriptor_close(client->fd);
    free(client->request);
    free(client->response.owned);
    memset(client, 0, offsetof(struct client, head));
    client->fd = -1;
}

static void server_close(struct server *server)
{
    if (!server) {
        return;
    }
    for (int i = 0; i < CLIENTS_MAX; i++) {
        drop(&server->clients[i]);
    }
    descriptor_close(server->fd);
    descriptor_close(server->signals);
    free(server);
}

static time_t now(void)
{
    return (time_t)(clock_ns(CLOCK_MONOTONIC) / NS_PER_SECOND);
}

static int fail(struct server *server, const char *what)
{
    int err = -errno;
    failed_to(err, "%s", what);
    server_close(server);
    return err;
}

static int open_signals(struct server *server)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    if (sigprocmask(SIG_BLOCK, &set, NULL) < 0) {
        return -1;
    }
    server->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return server->signals < 0 ? -1 : 0;
}

/* Listens. options are kept, not copied. 0 or a negative errno after a message. */
static int server_open(const struct server_options *options, struct server **out)
{
    struct server *server = calloc(1, sizeof *server);
    if (!server) {
        return failed_to(-ENOMEM, "serve");
    }
    server->options = options;
    server->signals = -1;
    for (int i = 0; i < CLIENTS_MAX; i++) {
        server->clients[i].fd = -1;
    }
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(options->port)};
    socklen_t size = sizeof address;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    server->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int on = 1;
    if (server->fd < 0 || setsockopt(server->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0 ||
        bind(server->fd, (struct sockaddr *)&address, sizeof address) < 0 ||
        listen(server->fd, CLIENTS_MAX) < 0 ||
        getsockname(server->fd, (struct sockaddr *)&address, &size) < 0) {
        char what[64];
        snprintf(what, sizeof what, "listen on 127.0.0.1 port %u", options->port);
        return fail(server, what);
    }
    server->port = ntohs(address.sin_port);
    snprintf(server->hosts[0], sizeof server->hosts[0], "127.0.0.1:%u", server->port);
    snprintf(server->hosts[1], sizeof server->hosts[1], "localhost:%u", server->port);
    *out = server;
    return 0;
}

static uint16_t server_port(const struct server *server)
{
    return server->port;
}

static void take_in(struct server *server)
{
    for (;;) {
        int fd = accept4(server->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0) {
            return;
        }
        struct client *client = server->clients;
        while (client < server->clients + CLIENTS_MAX && client->fd >= 0) {
            client++;
        }
        char *request = malloc(HTTP_REQUEST_MAX + 1);
        if (client == server->clients + CLIENTS_MAX || !request) {
            free(request);
            close(fd);
            return;
        }
        drop(client);
        client->fd = fd;
        client->request = request;
        client->until = now() + PATIENCE;
    }
}

static bool is_our_host(const struct server *server, const char *host)
{
    return strcasecmp(host, server->hosts[0]) == 0 || strcasecmp(host, server->hosts[1]) == 0;
}

static void answer(struct server *server, struct client *client, enum http_parsed parsed,
                   const struct http_request *request)
{
    struct http_response *response = &client->response;
    *response = (struct http_response){0};
    if (parsed == HTTP_TOO_LARGE) {
        response->status = 413;
    } else if (parsed == HTTP_MALFORMED) {
        response->status = 400;
    } else if (!is_our_host(server, request->host)) {
        response->status = 403;
    } else {
        server->options->answer(server->options->context, request, response);
    }
    client->head_size =
        http_put_head(response, server->options->origin, client->head, sizeof client->head);
    if (parsed == HTTP_COMPLETE && strcmp(request->method, "HEAD") == 0) {
        response->body_size = 0;
    }
    client->is_answering = true;
    client->until = now() + PATIENCE;
}

/* Whether the client is still wanted. */
static bool receive(struct server *server, struct client *client)
{
    ssize_t n = recv(client->fd, client->request + client->received,
                     HTTP_REQUEST_MAX - client->received, 0);
    if (n <= 0) {
        return n < 0 && (errno == EAGAIN || errno == EINTR);
    }
    client->received += (size_t)n;
    struct http_request request;
    enum http_parsed parsed = http_parse(client->request, client->received, &request);
    if (parsed != HTTP_INCOMPLETE) {
        answer(server, client, parsed, &request);
    }
    return true;
}

/* The same. */
static bool deliver(struct client *client)
{
    const struct http_response *response = &client->response;
    while (client->sent < client->head_size + response->body_size) {
        bool in_head = client->sent < client->head_size;
        const void *from =
            in_head ? (const void *)(client->head + client->sent)
                    : (const void *)(response->body + (client->sent - client->head_size));
        size_t left = in_head ? client->head_size - client->sent
                              : response->body_size - (client->sent - client->head_size);
        ssize_t n = send(client->fd, from, left, MSG_NOSIGNAL);
        if (n < 0) {
            return errno == EAGAIN || errno == EINTR;
        }
        client->sent += (size_t)n;
        client->until = now() + PATIENCE;
    }
    return false;
}

static void serve_client(struct server *server, struct client *client, short events)
{
    bool wanted = now() < client->until && !(events & POLLERR);
    if (wanted && (events & (POLLIN | POLLHUP)) && !client->is_answering) {
        wanted = receive(server, client);
    }
    if (wanted && client->is_answering) {
        wanted = deliver(client);
    }
    if (!wanted) {
        drop(client);
    }
}

/* Serves until a signal ends it, or for as many seconds as nobody asks for anything (0: for ever).
 * 0 or a negative errno after a message. */
static int server_run(struct server *server, uint32_t idle_seconds)
{
    time_t last = now();
    /* From now on; while the profile was read Ctrl-C simply ended us. */
    if (open_signals(server) < 0) {
        return failed_to(-errno, "wait for signals");
    }
    for (;;) {
        struct pollfd polls[CLIENTS_MAX + 2] = {{.fd = server->signals, .events = POLLIN},
                                                {.fd = server->fd, .events = POLLIN}};
        for (int i = 0; i < CLIENTS_MAX; i++) {
            const struct client *client = &server->clients[i];
            polls[i + 2] = (struct pollfd){.fd = client->fd,
                                           .events = client->is_answering ? POLLOUT : POLLIN};
        }
        int ready = poll(polls, CLIENTS_MAX + 2, POLL_INTERVAL);
        if (ready < 0 && errno != EINTR) {
            int err = -errno;
            failed_to(-errno, "serve");
            return err;
        }
        if (ready <= 0) {
            memset(polls, 0, sizeof polls);
        }
        if (polls[0].revents) {
            return 0;
        }
        if (polls[1].revents) {
            last = now();
            take_in(server);
        }
        for (int i = 0; i < CLIENTS_MAX; i++) {
            if (server->clients[i].fd >= 0) {
                serve_client(server, &server->clients[i], polls[i + 2].revents);
            }
        }
        if (idle_seconds && now() - last >= (time_t)idle_seconds) {
            return 0;
        }
    }
}

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
    .words = VERB_HAS_NO_WORDS,
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
