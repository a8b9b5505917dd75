#include "jdtool/view/server.h"

#include "jdtool/base/clock.h"
#include "jdtool/base/message.h"

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

static time_t now(void)
{
    return (time_t)(clock_ns(CLOCK_MONOTONIC) / NS_PER_SECOND);
}

static int fail(struct server *server, const char *what)
{
    int err = -errno;
    error_message("failed to %s: %s", what, strerror(-err));
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

int server_open(const struct server_options *options, struct server **out)
{
    struct server *server = calloc(1, sizeof *server);
    if (!server) {
        error_message("failed to serve: %s", strerror(ENOMEM));
        return -ENOMEM;
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

uint16_t server_port(const struct server *server)
{
    return server->port;
}

static void drop(struct client *client)
{
    if (client->fd >= 0) {
        close(client->fd);
    }
    free(client->request);
    free(client->response.owned);
    memset(client, 0, offsetof(struct client, head));
    client->fd = -1;
}

void server_close(struct server *server)
{
    if (!server) {
        return;
    }
    for (int i = 0; i < CLIENTS_MAX; i++) {
        drop(&server->clients[i]);
    }
    if (server->fd >= 0) {
        close(server->fd);
    }
    if (server->signals >= 0) {
        close(server->signals);
    }
    free(server);
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

static void serve(struct server *server, struct client *client, short events)
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

int server_run(struct server *server, uint32_t idle_seconds)
{
    time_t last = now();
    /* From now on; while the profile was read Ctrl-C simply ended us. */
    if (open_signals(server) < 0) {
        int err = -errno;
        error_message("failed to wait for signals: %s", strerror(-err));
        return err;
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
            error_message("failed to serve: %s", strerror(errno));
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
                serve(server, &server->clients[i], polls[i + 2].revents);
            }
        }
        if (idle_seconds && now() - last >= (time_t)idle_seconds) {
            return 0;
        }
    }
}
