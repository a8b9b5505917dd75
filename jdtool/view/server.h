/*
 * A server for one user on this machine: it listens on 127.0.0.1 alone, answers one request a
 * connection, waits for nobody long, and ends with SIGINT or SIGTERM.
 */
#ifndef JD_TOOL_SERVER_H
#define JD_TOOL_SERVER_H

#include "jdtool/view/http.h"

struct server;

struct server_options {
    uint16_t port;      /* 0: any that is free */
    const char *origin; /* "https://profiler.firefox.com": whose pages may read the answers */
    /* Fills the response, which is zeroed. It is asked only for requests whose Host is this
     * server, so that a name that somebody else has pointed here gets nothing. */
    void (*answer)(void *context, const struct http_request *request,
                   struct http_response *response);
    void *context;
};

/* Listens. options are kept, not copied. 0 or a negative errno after a message. */
int server_open(const struct server_options *options, struct server **out);
uint16_t server_port(const struct server *server);

/* Serves until a signal ends it, or for as many seconds as nobody asks for anything (0: for ever).
 * 0 or a negative errno after a message. */
int server_run(struct server *server, uint32_t idle_seconds);

void server_close(struct server *server); /* NULL is fine */

#endif
