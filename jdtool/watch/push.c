#define CURL_DISABLE_TYPECHECK
#include "jdtool/watch/push.h"

#include "jdtool/base/json_writer.h"
#include "jdtool/base/message.h"
#include "jdtool/base/protobuf.h"
#include "jdtool/base/text.h"
#include "jdtool/live/wait.h"

#include <ctype.h>
#include <curl/curl.h>
#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* ---- Requests' bodies ---- */

/*
 * Pyroscope: push.v1.PusherService/Push as Connect has it, a plain POST of the message; field
 * numbers are those of api/push/v1/push.proto. The metric's name is what Pyroscope's own agents
 * give CPU profiles, so that its pages find them.
 *
 * OpenTelemetry: the export is the request.
 *
 * Parca: profilestore WriteRaw through its gRPC gateway, whose JSON has the profile in base64.
 */

static uint8_t *make_otlp(const struct labels *labels, const uint8_t *profile, size_t size,
                          size_t *made)
{
    uint8_t *body = malloc(size ? size : 1);
    (void)labels;
    if (body) {
        memcpy(body, profile, size);
        *made = size;
    }
    return body;
}

/* ---- Pyroscope ---- */

static void put_label(struct bytes *message, const char *name, const char *value)
{
    size_t begun = protobuf_begin(message, 1);
    protobuf_bytes(message, 1, name, strlen(name));
    protobuf_bytes(message, 2, value, strlen(value));
    protobuf_end(message, begun);
}

/* A random one (version 4 of RFC 9562). */
static void make_uuid(char text[40])
{
    uint8_t b[16] = {0};
    (void)!getrandom(b, sizeof b, 0);
    b[6] = (b[6] & 0x0f) | 0x40;
    b[8] = (b[8] & 0x3f) | 0x80;
    snprintf(text, 40, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0],
             b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13],
             b[14], b[15]);
}

static uint8_t *make_pyroscope(const struct labels *labels, const uint8_t *profile, size_t size,
                               size_t *made)
{
    struct bytes message = {0};
    char id[40];
    make_uuid(id);
    size_t series = protobuf_begin(&message, 1);
    put_label(&message, "__name__", "process_cpu");
    for (uint32_t i = 0; i < labels->count; i++) {
        put_label(&message, labels->names[i], labels->values[i]);
    }
    size_t sample = protobuf_begin(&message, 2);
    protobuf_bytes(&message, 1, profile, size);
    protobuf_bytes(&message, 2, id, strlen(id));
    protobuf_end(&message, sample);
    protobuf_end(&message, series);
    if (message.failed) {
        bytes_free(&message);
        return NULL;
    }
    *made = message.size;
    return message.at;
}

/* ---- Parca ---- */

static void put_json_label(struct json_writer *json, const char *name, const char *value)
{
    json_object(json, NULL);
    json_text(json, "name", name);
    json_text(json, "value", value);
    json_end(json);
}

static uint8_t *make_parca(const struct labels *labels, const uint8_t *profile, size_t size,
                           size_t *made)
{
    struct json_writer json;
    struct packed_output *output;
    uint8_t *body = NULL;
    size_t length = (size + 2) / 3 * 4;
    char *base64 = malloc(length + 1);
    if (!base64 || packed_output_open_memory(false, &output)) {
        free(base64);
        return NULL;
    }
    for (size_t i = 0; i < size; i += 3) {
        text_base64(profile + i, size - i, base64 + i / 3 * 4);
    }
    json_start(&json, output);
    json_object(&json, NULL);
    json_bool(&json, "normalized", true);
    json_array(&json, "series");
    json_object(&json, NULL);
    json_object(&json, "labels");
    json_array(&json, "labels");
    put_json_label(&json, "__name__", "jdagent");
    for (uint32_t i = 0; i < labels->count; i++) {
        put_json_label(&json, labels->names[i], labels->values[i]);
    }
    json_end(&json);
    json_end(&json);
    json_array(&json, "samples");
    json_object(&json, NULL);
    json_text_sized(&json, "rawProfile", base64, length);
    while (json.depth > 0) {
        json_end(&json);
    }
    free(base64);
    return packed_output_take(output, &body, made) ? NULL : body;
}

const struct push_protocol push_protocols[] = {
    {"pyroscope", "pprof", "/push.v1.PusherService/Push", "application/proto", false,
     make_pyroscope},
    {"otlp", "otlp", "/v1development/profiles", "application/x-protobuf", true, make_otlp},
    {"parca", "pprof", "/api/profiles/writeraw", "application/json", false, make_parca},
    {0},
};

/* ---- Pushing ---- */

/* ---- libcurl ---- */

/*
 * libcurl, loaded when something is to be pushed: no other verb pays for it and its TLS, and jdtool
 * runs where it is not installed.
 */

struct curl {
    __typeof__(curl_global_init) *global_init;
    __typeof__(curl_easy_init) *easy_init;
    __typeof__(curl_easy_cleanup) *easy_cleanup;
    __typeof__(curl_easy_reset) *easy_reset;
    __typeof__(curl_easy_setopt) *easy_setopt;
    __typeof__(curl_easy_getinfo) *easy_getinfo;
    __typeof__(curl_easy_strerror) *easy_strerror;
    __typeof__(curl_multi_init) *multi_init;
    __typeof__(curl_multi_cleanup) *multi_cleanup;
    __typeof__(curl_multi_add_handle) *multi_add_handle;
    __typeof__(curl_multi_remove_handle) *multi_remove_handle;
    __typeof__(curl_multi_perform) *multi_perform;
    __typeof__(curl_multi_poll) *multi_poll;
    __typeof__(curl_multi_info_read) *multi_info_read;
    __typeof__(curl_slist_append) *slist_append;
    __typeof__(curl_slist_free_all) *slist_free_all;
};

static struct curl functions;

static const struct {
    const char *name;
    size_t offset;
} names[] = {
    {"curl_global_init", offsetof(struct curl, global_init)},
    {"curl_easy_init", offsetof(struct curl, easy_init)},
    {"curl_easy_cleanup", offsetof(struct curl, easy_cleanup)},
    {"curl_easy_reset", offsetof(struct curl, easy_reset)},
    {"curl_easy_setopt", offsetof(struct curl, easy_setopt)},
    {"curl_easy_getinfo", offsetof(struct curl, easy_getinfo)},
    {"curl_easy_strerror", offsetof(struct curl, easy_strerror)},
    {"curl_multi_init", offsetof(struct curl, multi_init)},
    {"curl_multi_cleanup", offsetof(struct curl, multi_cleanup)},
    {"curl_multi_add_handle", offsetof(struct curl, multi_add_handle)},
    {"curl_multi_remove_handle", offsetof(struct curl, multi_remove_handle)},
    {"curl_multi_perform", offsetof(struct curl, multi_perform)},
    {"curl_multi_poll", offsetof(struct curl, multi_poll)},
    {"curl_multi_info_read", offsetof(struct curl, multi_info_read)},
    {"curl_slist_append", offsetof(struct curl, slist_append)},
    {"curl_slist_free_all", offsetof(struct curl, slist_free_all)},
};

/* NULL after a message: it is not installed, or older than 7.66. */
static const struct curl *curl_load(void)
{
    /* The second has Debian's GnuTLS, with the same interface. */
    static const char *const files[] = {"libcurl.so.4", "libcurl-gnutls.so.4"};
    void *library = NULL;
    for (size_t i = 0; !library && i < sizeof files / sizeof *files; i++) {
        library = dlopen(files[i], RTLD_NOW | RTLD_LOCAL);
    }
    if (!library) {
        error_message("failed to find libcurl, which --push needs: apt-get install libcurl4 "
                      "(Debian, Ubuntu) or libcurl (Fedora, RHEL)");
        return NULL;
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        void *function = dlsym(library, names[i].name);
        if (!function) {
            error_message("failed to use libcurl: it is too old and lacks %s", names[i].name);
            return NULL;
        }
        memcpy((char *)&functions + names[i].offset, &function, sizeof function);
    }
    if (functions.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        error_message("failed to use libcurl: it does not start");
        return NULL;
    }
    return &functions;
}

/* ---- Servers ---- */

#define TIMEOUT_MS 30000L
#define PAUSE_MAX  60000
#define URL_MAX    2048

struct spooled {
    struct spooled *next;
    size_t size;
    uint8_t bytes[];
};

struct server {
    const struct push_protocol *protocol;
    char url[URL_MAX];
    char shown[URL_MAX];
    struct curl_slist *headers;
    CURL *handle;
    struct spooled *first, **last;
    bool sending; /* the first */
    int64_t next_try;
    unsigned tries;
    char answer[256]; /* the beginning of what the server says */
    size_t answered;
    char trouble[400];
    struct push_counts counts;
};

struct pusher {
    const struct pusher_options *options;
    const struct curl *curl;
    CURLM *multi;
    struct server *servers;
    size_t count;
};

/* ---- URLs ---- */

const struct push_protocol *push_protocol_of(const char *url)
{
    for (const struct push_protocol *protocol = push_protocols; protocol->name; protocol++) {
        size_t length = strlen(protocol->name);
        if (strncmp(url, protocol->name, length) == 0 && url[length] == '+' &&
            (strncmp(url + length + 1, "http://", 7) == 0 ||
             strncmp(url + length + 1, "https://", 8) == 0) &&
            strlen(url) < URL_MAX - 64 && strlen(strstr(url, "://")) > 3) {
            return protocol;
        }
    }
    return NULL;
}

/* Where what may be a secret ends: behind the last '@' of what stands for the host. */
static const char *behind_credentials(const char *host)
{
    const char *at = memrchr(host, '@', strcspn(host, "/?#"));
    return at ? at + 1 : host;
}

void push_url_shown(const char *url, char *text, size_t size)
{
    const char *scheme = strstr(url, "://");
    const char *host = scheme ? scheme + 3 : url;
    const char *rest = behind_credentials(host);
    if (rest == host && !scheme && strchr(host, '@')) {
        rest = strrchr(host, '@') + 1; /* mistyped: it may begin anywhere */
    }
    size_t length = strcspn(rest, "?#");
    snprintf(text, size, "%.*s%s%.*s%s", (int)(host - url), url, rest == host ? "" : "***@",
             (int)length, rest, rest[length] ? "?***" : "");
}

bool push_url_is_open(const char *url, bool has_secret)
{
    static const char plain[] = "+http://";
    const char *at = strstr(url, plain);
    if (!at) {
        return false;
    }
    const char *host = behind_credentials(at + sizeof plain - 1);
    has_secret |= host != at + sizeof plain - 1;
    size_t name = strcspn(host, ":/");
    bool stays_here = strncmp(host, "127.", 4) == 0 || strncmp(host, "[::1]", 5) == 0 ||
                      (name == 9 && strncmp(host, "localhost", 9) == 0);
    return has_secret && !stays_here;
}

static void set_urls(struct server *server, const char *url)
{
    const char *plain = strchr(url, '+') + 1;
    size_t length = strlen(plain);
    while (length > 0 && plain[length - 1] == '/') {
        length--;
    }
    snprintf(server->url, sizeof server->url, "%.*s%s", (int)length, plain, server->protocol->path);
    push_url_shown(url, server->shown, sizeof server->shown);
    server->counts.url = server->shown;
    server->counts.trouble = server->trouble;
}

/* ---- The spool ---- */

static void drop_first(struct server *server)
{
    struct spooled *first = server->first;
    server->first = first->next;
    if (!server->first) {
        server->last = &server->first;
    }
    server->counts.waiting--;
    server->counts.waiting_bytes -= first->size;
    free(first);
}

/* Makes room; what is under way stays. */
static void make_room(struct server *server, size_t spool, size_t wanted)
{
    while (server->first && server->counts.waiting_bytes + wanted > spool) {
        struct spooled *oldest = server->sending ? server->first->next : server->first;
        if (!oldest) {
            return;
        }
        if (server->counts.dropped++ == 0) {
            warning_message("the spool for %s is full: dropping the oldest profiles",
                            server->shown);
        }
        if (!server->sending) {
            drop_first(server);
            continue;
        }
        server->first->next = oldest->next;
        if (!oldest->next) {
            server->last = &server->first->next;
        }
        server->counts.waiting--;
        server->counts.waiting_bytes -= oldest->size;
        free(oldest);
    }
}

static void spool(struct server *server, size_t room, const struct labels *labels,
                  const uint8_t *profile, size_t size)
{
    size_t made = 0;
    uint8_t *body = server->protocol->make(labels, profile, size, &made);
    struct spooled *spooled = body && made <= room ? malloc(sizeof *spooled + made) : NULL;
    if (!spooled) {
        server->counts.dropped++;
        free(body);
        return;
    }
    make_room(server, room, made);
    spooled->next = NULL;
    spooled->size = made;
    memcpy(spooled->bytes, body, made);
    free(body);
    *server->last = spooled;
    server->last = &spooled->next;
    server->counts.waiting++;
    server->counts.waiting_bytes += made;
}

void pusher_give(struct pusher *pusher, const struct labels *labels,
                 const struct slice_message *message, const uint8_t *const *bodies,
                 const struct export_format *const *formats)
{
    for (size_t i = 0; pusher && i < pusher->count; i++) {
        struct server *server = &pusher->servers[i];
        for (uint32_t k = 0; k < SLICE_FORMATS_MAX; k++) {
            if (formats[k] && bodies[k] &&
                strcmp(formats[k]->name, server->protocol->format) == 0) {
                spool(server, pusher->options->spool, labels, bodies[k], message->slice.sizes[k]);
            }
        }
    }
}

/* ---- Requests ---- */

static size_t take_answer(char *bytes, size_t size, size_t count, void *context)
{
    struct server *server = context;
    size_t all = size * count;
    size_t room = sizeof server->answer - 1 - server->answered;
    size_t kept = all < room ? all : room;
    memcpy(server->answer + server->answered, bytes, kept);
    server->answered += kept;
    return all;
}

static void begin(struct pusher *pusher, struct server *server)
{
    const struct curl *curl = pusher->curl;
    CURL *handle = server->handle;
    curl->easy_reset(handle); /* the connection stays */
    server->answered = 0;
    memset(server->answer, 0, sizeof server->answer);
    curl->easy_setopt(handle, CURLOPT_URL, server->url);
    curl->easy_setopt(handle, CURLOPT_POST, 1L);
    curl->easy_setopt(handle, CURLOPT_POSTFIELDS, server->first->bytes);
    curl->easy_setopt(handle, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)server->first->size);
    curl->easy_setopt(handle, CURLOPT_HTTPHEADER, server->headers);
    curl->easy_setopt(handle, CURLOPT_USERAGENT, "jdperf");
    curl->easy_setopt(handle, CURLOPT_WRITEFUNCTION, take_answer);
    curl->easy_setopt(handle, CURLOPT_WRITEDATA, server);
    curl->easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
    curl->easy_setopt(handle, CURLOPT_TIMEOUT_MS, TIMEOUT_MS);
    curl->easy_setopt(handle, CURLOPT_CONNECTTIMEOUT_MS, TIMEOUT_MS / 3);
    curl->easy_setopt(handle, CURLOPT_PRIVATE, server);
    if (pusher->options->ca) {
        curl->easy_setopt(handle, CURLOPT_CAINFO, pusher->options->ca);
    }
    server->sending = curl->multi_add_handle(pusher->multi, handle) == CURLM_OK;
}

/* A long outage asks once a minute; not all watches of a fleet at the same moment. */
static void pause_server(struct server *server, int64_t asked)
{
    int64_t pause = INT64_C(1000) << (server->tries < 6 ? server->tries : 6);
    pause = pause > PAUSE_MAX ? PAUSE_MAX : pause;
    pause = asked > pause ? asked : pause;
    pause = pause > 10 * (int64_t)PAUSE_MAX ? 10 * (int64_t)PAUSE_MAX : pause;
    server->next_try = deadline_in(pause + random() % (pause / 4 + 1));
    server->tries++;
}

static void note_trouble(struct server *server, bool waits, const char *words)
{
    bool first = !server->trouble[0];
    snprintf(server->trouble, sizeof server->trouble, "%s", words);
    for (char *at = server->trouble; *at; at++) {
        *at = (char)(iscntrl((unsigned char)*at) ? ' ' : *at);
    }
    if (first) {
        warning_message(waits ? "%s takes no profiles now, they wait: %s"
                              : "%s rejects profiles, they are dropped: %s",
                        server->shown, server->trouble);
    }
}

static bool asks_to_wait(long code)
{
    return code == 408 || code == 425 || code == 429 || code >= 500;
}

static void take_result(struct pusher *pusher, struct server *server, CURLcode result)
{
    long code = 0;
    curl_off_t seconds = 0;
    char words[300];
    (void)pusher->curl->easy_getinfo(server->handle, CURLINFO_RESPONSE_CODE, &code);
    (void)pusher->curl->easy_getinfo(server->handle, CURLINFO_RETRY_AFTER, &seconds);
    pusher->curl->multi_remove_handle(pusher->multi, server->handle);
    server->sending = false;
    if (result == CURLE_OK && code >= 200 && code < 300) {
        if (server->trouble[0]) {
            info_message("%s takes profiles again", server->shown);
        }
        server->trouble[0] = '\0';
        server->tries = 0;
        server->counts.sent++;
        server->counts.sent_bytes += server->first->size;
        drop_first(server);
        return;
    }
    if (result != CURLE_OK) {
        server->counts.failures++;
        note_trouble(server, true, pusher->curl->easy_strerror(result));
        pause_server(server, 0);
        return;
    }
    snprintf(words, sizeof words, "status %ld: %s", code, server->answer);
    const bool waits = asks_to_wait(code);
    note_trouble(server, waits, words);
    if (waits) {
        server->counts.failures++;
        pause_server(server, (int64_t)seconds * 1000);
    } else {
        server->counts.refused++;
        drop_first(server);
    }
}

void pusher_turn(struct pusher *pusher)
{
    if (!pusher) {
        return;
    }
    int running;
    int left;
    CURLMsg *told;
    (void)pusher->curl->multi_perform(pusher->multi, &running);
    while ((told = pusher->curl->multi_info_read(pusher->multi, &left)) != NULL) {
        char *server = NULL;
        CURLcode result = told->data.result;
        if (told->msg == CURLMSG_DONE &&
            pusher->curl->easy_getinfo(told->easy_handle, CURLINFO_PRIVATE, &server) == CURLE_OK) {
            take_result(pusher, (struct server *)(void *)server, result);
        }
    }
    for (size_t i = 0; i < pusher->count; i++) {
        struct server *server = &pusher->servers[i];
        if (!server->sending && server->first && now_ms() >= server->next_try) {
            begin(pusher, server);
        }
    }
    (void)pusher->curl->multi_perform(pusher->multi, &running);
}

bool pusher_is_busy(const struct pusher *pusher)
{
    bool busy = false;
    for (size_t i = 0; pusher && i < pusher->count; i++) {
        busy |= pusher->servers[i].first != NULL;
    }
    return busy;
}

void pusher_poll(struct pusher *pusher, struct pollfd *descriptors, size_t count, int ms)
{
    bool sending = false;
    for (size_t i = 0; pusher && i < pusher->count; i++) {
        sending |= pusher->servers[i].sending;
    }
    struct curl_waitfd *all = sending ? calloc(count + 1, sizeof *all) : NULL;
    if (!all) {
        (void)poll(descriptors, count, ms);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        /* A negative one is none to poll(), but not to libcurl. */
        all[i].fd = descriptors[i].fd >= 0 ? descriptors[i].fd : descriptors[0].fd;
        all[i].events = CURL_WAIT_POLLIN;
    }
    (void)pusher->curl->multi_poll(pusher->multi, all, (unsigned)count, ms, NULL);
    free(all);
    (void)poll(descriptors, count, 0); /* which of them it was, and ends of pipes */
}

bool pusher_counts(const struct pusher *pusher, size_t number, struct push_counts *counts)
{
    if (!pusher || number >= pusher->count) {
        return false;
    }
    *counts = pusher->servers[number].counts;
    return true;
}

/* ---- Opening, closing ---- */

static int add_header(struct pusher *pusher, struct server *server, const char *header)
{
    struct curl_slist *longer = pusher->curl->slist_append(server->headers, header);
    server->headers = longer ? longer : server->headers;
    return longer ? 0 : -ENOMEM;
}

static int open_server(struct pusher *pusher, struct server *server, const char *url)
{
    char type[128];
    server->last = &server->first;
    server->protocol = push_protocol_of(url);
    set_urls(server, url);
    server->handle = pusher->curl->easy_init();
    snprintf(type, sizeof type, "Content-Type: %s", server->protocol->content_type);
    int err = server->handle ? add_header(pusher, server, type) : -ENOMEM;
    /* A body of some size would wait a second for a "100 Continue" that few servers send. */
    err = err ? err : add_header(pusher, server, "Expect:");
    if (!err && server->protocol->gzip) {
        err = add_header(pusher, server, "Content-Encoding: gzip");
    }
    for (const char *const *at = pusher->options->headers; !err && *at; at++) {
        err = add_header(pusher, server, *at);
    }
    return err;
}

int pusher_new(const struct pusher_options *options, struct pusher **out)
{
    *out = NULL;
    if (!options->urls[0]) {
        return 0;
    }
    const struct curl *curl = curl_load();
    if (!curl) {
        return -ENOENT;
    }
    struct pusher *pusher = calloc(1, sizeof *pusher);
    size_t count = 0;
    while (options->urls[count]) {
        count++;
    }
    int err = pusher ? 0 : -ENOMEM;
    if (!err) {
        pusher->options = options;
        pusher->curl = curl;
        pusher->multi = curl->multi_init();
        pusher->servers = calloc(count, sizeof *pusher->servers);
        err = pusher->multi && pusher->servers ? 0 : -ENOMEM;
    }
    for (size_t i = 0; !err && i < count; i++) {
        pusher->count++;
        err = open_server(pusher, &pusher->servers[i], options->urls[i]);
    }
    if (err) {
        failed_to(err, "start");
        pusher_free(pusher);
        return err;
    }
    srandom((unsigned)now_ms());
    *out = pusher;
    return 0;
}

void pusher_free(struct pusher *pusher)
{
    if (!pusher) {
        return;
    }
    for (size_t i = 0; i < pusher->count; i++) {
        struct server *server = &pusher->servers[i];
        if (server->sending) {
            pusher->curl->multi_remove_handle(pusher->multi, server->handle);
        }
        if (server->first) {
            warning_message("profiles that have not reached %s: %zu", server->shown,
                            server->counts.waiting);
        }
        while (server->first) {
            drop_first(server);
        }
        pusher->curl->slist_free_all(server->headers);
        if (server->handle) {
            pusher->curl->easy_cleanup(server->handle);
        }
    }
    if (pusher->multi) {
        pusher->curl->multi_cleanup(pusher->multi);
    }
    free(pusher->servers);
    free(pusher);
}
