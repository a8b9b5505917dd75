/*
 * As much of HTTP/1.1 as a viewer in a browser on the same machine needs: one request a connection,
 * with a body of a known size or without one.
 */
#ifndef JD_TOOL_HTTP_H
#define JD_TOOL_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HTTP_REQUEST_MAX ((size_t)64 * 1024) /* with its body */

/* Strings point into the request's bytes, which http_parse has changed. */
struct http_request {
    const char *method;
    const char *path; /* without what is behind a '?' */
    const char *host; /* "": none was given */
    const char *body; /* with a NUL behind it */
    size_t body_size;
};

struct http_response {
    int status;               /* 200, 204, 400, 403, 404, 405, 413 */
    const char *content_type; /* NULL: there is no body */
    bool is_gzip;
    bool is_preflight; /* the answer to OPTIONS */
    const uint8_t *body;
    size_t body_size;
    uint8_t *owned; /* the body, where it is to be freed; or NULL */
};

enum http_parsed { HTTP_INCOMPLETE, HTTP_COMPLETE, HTTP_MALFORMED, HTTP_TOO_LARGE };

/* bytes[0, size) is what came so far, with room for a NUL behind it; it is changed only when the
 * request is complete. */
enum http_parsed http_parse(char *bytes, size_t size, struct http_request *request);

/* The response's first lines, up to the empty one, into text; origin: who may read it from another
 * site's page. Returns their size, which is below room. */
size_t http_put_head(const struct http_response *response, const char *origin, char *text,
                     size_t room);

#endif
