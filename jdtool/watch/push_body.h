/* What a server wants a slice in: one request's body for each protocol. */
#ifndef JD_TOOL_WATCH_PUSH_BODY_H
#define JD_TOOL_WATCH_PUSH_BODY_H

#include "jdtool/watch/slice_pipe.h"

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

#endif
