/*
 * Pushing slices to servers. Each server has a spool of its own in memory: what it did not take yet
 * waits there, and the oldest goes when the spool is full. One request at a time; a server that
 * does not answer, or asks to wait, is asked again after 1 s, 2 s, 4 s, at most a minute. What it
 * refuses as wrong is dropped: it would refuse it again.
 */
#ifndef JD_TOOL_WATCH_PUSH_H
#define JD_TOOL_WATCH_PUSH_H

#include "jdtool/watch/slice_pipe.h"

#include <poll.h>

/* ---- Requests' bodies ---- */

/* What a server wants a slice in: one request's body for each protocol. */

struct push_protocol {
    const char *name;   /* before the '+' of a URL */
    const char *format; /* of the exports */
    const char *path;   /* behind the URL's own */
    const char *content_type;
    bool gzip; /* the body is, which a header tells */
    /* Makes the body, which the caller frees. NULL: no memory. */
    uint8_t *(*make)(const struct labels *labels, const uint8_t *profile, size_t size,
                     size_t *made);
};

extern const struct push_protocol push_protocols[]; /* ends with a NULL name */

struct pusher; /* all servers */

struct pusher_options {
    const char *const *urls;    /* "pyroscope+https://host:4040/base", NULL-terminated */
    const char *const *headers; /* "Name: value" for every request, NULL-terminated */
    const char *ca;             /* a file of certificates; NULL: the system's */
    size_t spool;               /* bytes for each server */
};

/* How a server takes it. */
struct push_counts {
    const char *url; /* without a password */
    uint64_t sent, sent_bytes, refused, dropped, failures;
    size_t waiting, waiting_bytes;
    const char *trouble; /* the last one, "": none since it last took something */
};

/* Whether it is a URL that can be pushed to; its protocol. NULL: none. */
const struct push_protocol *push_protocol_of(const char *url);

/* The URL for people, right or mistyped: without what may be a user's name, a password or a token
 * in it. */
void push_url_shown(const char *url, char *text, size_t size);

/* Whether anybody on the way can read a secret of the requests: one in the URL, or in a header
 * (has_secret), sent by plain http to another machine. */
bool push_url_is_open(const char *url, bool has_secret);

/* Options are kept, not copied. 0 or a negative errno after a message. */
int pusher_new(const struct pusher_options *options, struct pusher **out);
void pusher_free(struct pusher *pusher); /* NULL is fine */

/* Puts a slice into all spools: bodies by format of the exports, as `formats` names them. */
void pusher_give(struct pusher *pusher, const struct labels *labels,
                 const struct slice_message *message, const uint8_t *const *bodies,
                 const struct export_format *const *formats);

/* Goes on with what is under way, and begins what is due. */
void pusher_turn(struct pusher *pusher);

/* Whether anything waits or is under way. */
bool pusher_is_busy(const struct pusher *pusher);

/* poll(), and for what is under way as well; NULL: poll() alone. */
void pusher_poll(struct pusher *pusher, struct pollfd *descriptors, size_t count, int ms);

/* How the server of that number stands; false: there is none. */
bool pusher_counts(const struct pusher *pusher, size_t number, struct push_counts *counts);

#endif
