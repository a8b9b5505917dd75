#include "jdtool/watch/doors.h"

#include "jdtool/base/descriptor.h"
#include "jdtool/base/message.h"
#include "jdtool/base/others_file.h"
#include "jdtool/live/runtime_dir.h"
#include "jdtool/live/wait.h"
#include "jdtool/view/http.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <netdb.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define CLIENTS_MAX      8
#define REQUEST_MAX      4096
#define PATIENCE_MS      5000
#define ANSWER_WITHIN_MS 2000

struct client {
    int fd; /* -1: the place is free */
    int64_t until;
    size_t received;
    char request[REQUEST_MAX + 1];
};

struct doors {
    const struct doors_options *options;
    int directory, status, metrics;
    bool listens; /* the socket in the directory is ours */
    unsigned port;
    struct client clients[CLIENTS_MAX];
};

/* ---- Where it is asked ---- */

static const char *file_of(const char *name, char file[64])
{
    snprintf(file, 64, "watch%s%.40s", *name ? "-" : "", name);
    return file;
}

/* By the descriptor: the directory is the one that was checked, and its path may be of any length.
 */
static struct sockaddr_un address_in(int directory, const char *name)
{
    char file[64];
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s", directory,
             file_of(name, file));
    return address;
}

/* Who listens and does not answer is waited for as long as for an answer. */
static int connect_to(const struct sockaddr_un *address)
{
    const struct timeval within = {.tv_sec = ANSWER_WITHIN_MS / 1000};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &within, sizeof within);
    int err =
        fd < 0 || connect(fd, (const struct sockaddr *)address, sizeof *address) != 0 ? -errno : 0;
    if (err && fd >= 0) {
        close(fd);
    }
    return err ? err : fd;
}

static bool is_ours(int fd)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
           (peer.uid == geteuid() || peer.uid == 0);
}

/* Removes the socket of a watch that was killed. Whether one that lives listens there. */
static bool is_in_use(const struct sockaddr_un *address)
{
    int there = connect_to(address);
    if (there >= 0) {
        close(there);
    } else if (there == -ECONNREFUSED) {
        (void)unlink(address->sun_path);
    }
    return there != -ENOENT && there != -ECONNREFUSED;
}

/* Those of other names, too: nobody else would ever remove them. */
static void remove_dead(int directory)
{
    DIR *entries = directory_open(directory, ".");
    const struct dirent *entry;
    while ((entry = directory_next(entries))) {
        if (strncmp(entry->d_name, "watch-", 6) == 0) {
            struct sockaddr_un address = address_in(directory, entry->d_name + 6);
            (void)is_in_use(&address);
        }
    }
    directory_close(entries);
}

static int listen_there(struct doors *doors, const struct sockaddr_un *address)
{
    if (is_in_use(address)) {
        return -EADDRINUSE;
    }
    remove_dead(doors->directory);
    mode_t before = umask(0177);
    int err = bind(doors->status, (const struct sockaddr *)address, sizeof *address) != 0 ||
                      listen(doors->status, CLIENTS_MAX) != 0
                  ? -errno
                  : 0;
    umask(before);
    return err;
}

static int open_status(struct doors *doors)
{
    doors->directory = runtime_dir_open(true);
    int err = doors->directory < 0 ? doors->directory : 0;
    if (err) {
        char path[PATH_MAX];
        info_message("jdperf watch --status cannot ask this watch: %s: %s",
                     *runtime_dir_path(path) ? path : "XDG_RUNTIME_DIR is not set", strerror(-err));
        return 0;
    }
    struct sockaddr_un address = address_in(doors->directory, doors->options->name);
    doors->status = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    /* One at a time looks who is there. */
    err = doors->status < 0 || flock(doors->directory, LOCK_EX) != 0 ? -errno : 0;
    err = err ? err : listen_there(doors, &address);
    (void)flock(doors->directory, LOCK_UN);
    doors->listens = !err;
    if (err == -EADDRINUSE) {
        error_message(
            "a watch%s%s already runs: see jdperf watch --status, or start another one with --name",
            *doors->options->name ? " named " : "", doors->options->name);
    } else if (err) {
        failed_to(err, "listen for jdperf watch --status");
    }
    return err;
}

/* "9111", "0.0.0.0:9111", "[::1]:9111" */
static int open_metrics(struct doors *doors)
{
    char host[128] = "127.0.0.1";
    const char *port = doors->options->listen;
    const char *colon = port ? strrchr(port, ':') : NULL;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE};
    struct addrinfo *found = NULL;
    if (!port) {
        return 0;
    }
    if (colon) {
        bool bracket = *port == '[' && colon > port && colon[-1] == ']';
        snprintf(host, sizeof host, "%.*s", (int)(colon - port) - (bracket ? 2 : 0),
                 port + bracket);
        port = colon + 1;
    }
    int on = 1;
    int err = getaddrinfo(host, port, &hints, &found) == 0 ? 0 : -EINVAL;
    if (!err) {
        doors->metrics = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        err = doors->metrics < 0 ||
                      setsockopt(doors->metrics, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
                      bind(doors->metrics, found->ai_addr, found->ai_addrlen) != 0 ||
                      listen(doors->metrics, CLIENTS_MAX) != 0
                  ? -errno
                  : 0;
        freeaddrinfo(found);
    }
    if (err) {
        return failed_to(err, "listen on %s", doors->options->listen);
    }
    union {
        struct sockaddr any;
        struct sockaddr_in four;
        struct sockaddr_in6 six;
    } bound = {.six = {0}};
    socklen_t size = sizeof bound;
    if (getsockname(doors->metrics, &bound.any, &size) == 0) {
        bool six = bound.any.sa_family == AF_INET6;
        doors->port = ntohs(six ? bound.six.sin6_port : bound.four.sin_port);
    }
    return 0;
}

int doors_open(const struct doors_options *options, struct doors **out)
{
    struct doors *doors = calloc(1, sizeof *doors);
    if (!doors) {
        return failed_to(-ENOMEM, "start");
    }
    doors->options = options;
    doors->directory = doors->status = doors->metrics = -1;
    for (size_t i = 0; i < CLIENTS_MAX; i++) {
        doors->clients[i].fd = -1;
    }
    int err = open_status(doors);
    err = err ? err : open_metrics(doors);
    if (err) {
        doors_close(doors);
        return err;
    }
    *out = doors;
    return 0;
}

static void drop(struct client *client)
{
    descriptor_close(client->fd);
    client->fd = -1;
}

void doors_close(struct doors *doors)
{
    if (!doors) {
        return;
    }
    for (size_t i = 0; i < CLIENTS_MAX; i++) {
        drop(&doors->clients[i]);
    }
    if (doors->listens) {
        struct sockaddr_un address = address_in(doors->directory, doors->options->name);
        (void)unlink(address.sun_path);
    }
    descriptor_close(doors->status);
    descriptor_close(doors->directory);
    descriptor_close(doors->metrics);
    free(doors);
}

unsigned doors_port(const struct doors *doors)
{
    return doors->port;
}

size_t doors_descriptors(const struct doors *doors, struct pollfd *descriptors)
{
    size_t count = 0;
    if (doors->status >= 0) {
        descriptors[count++] = (struct pollfd){.fd = doors->status, .events = POLLIN};
    }
    if (doors->metrics >= 0) {
        descriptors[count++] = (struct pollfd){.fd = doors->metrics, .events = POLLIN};
    }
    for (size_t i = 0; i < CLIENTS_MAX; i++) {
        if (doors->clients[i].fd >= 0) {
            descriptors[count++] = (struct pollfd){.fd = doors->clients[i].fd, .events = POLLIN};
        }
    }
    return count;
}

/* The socket's buffer takes it whole, or who does not read it has himself to blame. */
static void send_all(int fd, const char *text, size_t size)
{
    while (size > 0) {
        ssize_t n = send(fd, text, size, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n <= 0) {
            return;
        }
        text += n;
        size -= (size_t)n;
    }
}

static void answer_status(struct doors *doors)
{
    int fd;
    while (doors->status >= 0 && (fd = accept4(doors->status, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        char *text = is_ours(fd) ? doors->options->status(doors->options->context) : NULL;
        if (text) {
            send_all(fd, text, strlen(text));
        }
        free(text);
        close(fd);
    }
}

static void answer_metrics(struct doors *doors, struct client *client,
                           const struct http_request *request)
{
    char head[1024];
    bool is_get = strcmp(request->method, "GET") == 0 || strcmp(request->method, "HEAD") == 0;
    bool is_known = strcmp(request->path, "/metrics") == 0;
    char *text = is_get && is_known ? doors->options->metrics(doors->options->context) : NULL;
    struct http_response response = {
        .status = text     ? 200
                  : is_get ? 404
                           : 405,
        .content_type = text ? "text/plain; version=0.0.4; charset=utf-8" : NULL,
        .body_size = text ? strlen(text) : 0,
    };
    size_t size = http_put_head(&response, "null", head, sizeof head);
    send_all(client->fd, head, size);
    if (text && strcmp(request->method, "GET") == 0) {
        send_all(client->fd, text, response.body_size);
    }
    free(text);
}

static void read_request(struct doors *doors, struct client *client)
{
    struct http_request request;
    ssize_t n = recv(client->fd, client->request + client->received, REQUEST_MAX - client->received,
                     MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    client->received += n > 0 ? (size_t)n : 0;
    enum http_parsed parsed =
        n > 0 ? http_parse(client->request, client->received, &request) : HTTP_MALFORMED;
    if (parsed == HTTP_COMPLETE) {
        answer_metrics(doors, client, &request);
    }
    if (parsed != HTTP_INCOMPLETE || client->received == REQUEST_MAX) {
        drop(client);
    }
}

void doors_turn(struct doors *doors)
{
    int fd;
    answer_status(doors);
    while (doors->metrics >= 0 && (fd = accept4(doors->metrics, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        struct client *client = doors->clients;
        while (client < doors->clients + CLIENTS_MAX && client->fd >= 0) {
            client++;
        }
        if (client == doors->clients + CLIENTS_MAX) {
            close(fd);
            continue;
        }
        client->fd = fd;
        client->received = 0;
        client->until = deadline_in(PATIENCE_MS);
    }
    for (size_t i = 0; i < CLIENTS_MAX; i++) {
        struct client *client = &doors->clients[i];
        if (client->fd >= 0) {
            read_request(doors, client);
        }
        if (client->fd >= 0 && now_ms() > client->until) {
            drop(client);
        }
    }
}

int doors_ask(const char *name)
{
    char text[4096];
    ssize_t n = -1;
    int directory = runtime_dir_open(false);
    struct sockaddr_un address = address_in(directory, name);
    int fd = directory < 0 ? -1 : connect_to(&address);
    descriptor_close(directory);
    if (fd < 0 || !is_ours(fd)) {
        error_message("no watch%s%s runs here", *name ? " named " : "", name);
        descriptor_close(fd);
        return -ECONNREFUSED;
    }
    struct timeval within = {.tv_sec = ANSWER_WITHIN_MS / 1000};
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &within, sizeof within);
    while ((n = read(fd, text, sizeof text)) > 0) {
        (void)fwrite(text, 1, (size_t)n, stdout);
    }
    int err = n < 0 ? -errno : 0;
    close(fd);
    if (err) {
        error_message("the watch does not answer: %s", strerror(-err));
    }
    return err;
}
