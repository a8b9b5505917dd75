#include "jdtool/view/http.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* The value of a header line "Name: value", its end cut; NULL: it is another header. */
static char *value_of(char *line, const char *name)
{
    size_t size = strlen(name);
    if (strncasecmp(line, name, size) != 0 || line[size] != ':') {
        return NULL;
    }
    char *value = line + size + 1;
    value += strspn(value, " \t");
    size_t length = strlen(value);
    while (length > 0 && strchr(" \t\r", value[length - 1])) {
        value[--length] = '\0';
    }
    return value;
}

/* "GET /path HTTP/1.1" */
static bool take_first_line(char *line, struct http_request *request)
{
    char *path = strchr(line, ' ');
    char *version = path ? strchr(path + 1, ' ') : NULL;
    if (!version || strncmp(version + 1, "HTTP/1.", 7) != 0 || path[1] != '/') {
        return false;
    }
    *path = *version = '\0';
    request->method = line;
    request->path = path + 1;
    path[1 + strcspn(path + 1, "?#")] = '\0';
    return true;
}

/* How much the body has; -1: that cannot be read. */
static long body_size_of(const char *head, size_t size)
{
    static const char name[] = "\ncontent-length:";
    for (size_t at = 0; at + sizeof name < size; at++) {
        if (strncasecmp(head + at, name, sizeof name - 1) == 0) {
            char *end;
            const char *value = head + at + sizeof name - 1;
            long wanted = strtol(value, &end, 10);
            return end == value || wanted < 0 ? -1 : wanted;
        }
    }
    return 0;
}

enum http_parsed http_parse(char *bytes, size_t size, struct http_request *request)
{
    if (memchr(bytes, '\0', size) && !strstr(bytes, "\r\n\r\n")) {
        return HTTP_MALFORMED;
    }
    bytes[size] = '\0';
    char *end = strstr(bytes, "\r\n\r\n");
    if (!end) {
        return size >= HTTP_REQUEST_MAX ? HTTP_TOO_LARGE : HTTP_INCOMPLETE;
    }
    size_t head = (size_t)(end - bytes) + 4;
    long body_size = body_size_of(bytes, head);
    if (body_size < 0) {
        return HTTP_MALFORMED;
    }
    if ((size_t)body_size > HTTP_REQUEST_MAX - head) {
        return HTTP_TOO_LARGE;
    }
    if (size - head < (size_t)body_size) {
        return HTTP_INCOMPLETE;
    }
    *request =
        (struct http_request){.host = "", .body = bytes + head, .body_size = (size_t)body_size};
    bytes[head + (size_t)body_size] = '\0';
    *end = '\0';
    char *rest = bytes;
    char *line = strsep(&rest, "\n");
    if (!take_first_line(line, request)) {
        return HTTP_MALFORMED;
    }
    while ((line = strsep(&rest, "\n"))) {
        const char *host = value_of(line, "host");
        request->host = host ? host : request->host;
    }
    return HTTP_COMPLETE;
}

static const char *reason(int status)
{
    switch (status) {
    case 200:
        return "OK";
    case 204:
        return "No Content";
    case 403:
        return "Forbidden";
    case 404:
        return "Not Found";
    case 405:
        return "Method Not Allowed";
    case 413:
        return "Content Too Large";
    default:
        return "Bad Request";
    }
}

size_t http_put_head(const struct http_response *response, const char *origin, char *text,
                     size_t room)
{
    /* A page of the web may ask 127.0.0.1 only if it is let (Private Network Access). */
    int size = snprintf(
        text, room,
        "HTTP/1.1 %d %s\r\nConnection: close\r\nContent-Length: %zu\r\nCache-Control: no-store\r\n"
        "X-Content-Type-Options: nosniff\r\nAccess-Control-Allow-Origin: %s\r\nVary: Origin\r\n"
        "%s%s%s%s%s\r\n",
        response->status, reason(response->status), response->body_size, origin,
        response->content_type ? "Content-Type: " : "",
        response->content_type ? response->content_type : "", response->content_type ? "\r\n" : "",
        response->is_gzip ? "Content-Encoding: gzip\r\n" : "",
        response->is_preflight ? "Access-Control-Allow-Methods: GET, POST, OPTIONS\r\n"
                                 "Access-Control-Allow-Headers: Content-Type\r\n"
                                 "Access-Control-Allow-Private-Network: true\r\n"
                                 "Access-Control-Max-Age: 600\r\n"
                               : "");
    return size > 0 && (size_t)size < room ? (size_t)size : 0;
}
