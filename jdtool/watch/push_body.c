/*
 * Pyroscope: push.v1.PusherService/Push as Connect has it, a plain POST of the message; field
 * numbers are those of api/push/v1/push.proto. The metric's name is what Pyroscope's own agents
 * give CPU profiles, so that its pages find them.
 *
 * OpenTelemetry: the export is the request.
 *
 * Parca: profilestore WriteRaw through its gRPC gateway, whose JSON has the profile in base64.
 */
#include "jdtool/watch/push_body.h"

#include "jdtool/base/protobuf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

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

static void put_label(struct protobuf *message, const char *name, const char *value)
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
    struct protobuf message = {0};
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
    if (message.error) {
        protobuf_free(&message);
        return NULL;
    }
    *made = message.size;
    return message.bytes;
}

/* ---- Parca ---- */

static char *put_base64(char *to, const uint8_t *from, size_t size)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < size; i += 3) {
        uint32_t group = (uint32_t)from[i] << 16;
        group |= i + 1 < size ? (uint32_t)from[i + 1] << 8 : 0;
        group |= i + 2 < size ? from[i + 2] : 0;
        *to++ = digits[group >> 18];
        *to++ = digits[group >> 12 & 63];
        *to++ = (char)(i + 1 < size ? digits[group >> 6 & 63] : '=');
        *to++ = (char)(i + 2 < size ? digits[group & 63] : '=');
    }
    return to;
}

/* Labels have no control characters (labels_set). */
static char *put_json_text(char *to, const char *text)
{
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') {
            *to++ = '\\';
        }
        *to++ = *text;
    }
    return to;
}

static char *put_json_label(char *to, const char *before, const char *name, const char *value)
{
    to = stpcpy(to, before);
    to = stpcpy(to, "{\"name\":\"");
    to = put_json_text(to, name);
    to = stpcpy(to, "\",\"value\":\"");
    to = put_json_text(to, value);
    return stpcpy(to, "\"}");
}

static uint8_t *make_parca(const struct labels *labels, const uint8_t *profile, size_t size,
                           size_t *made)
{
    size_t room = 512 + (size + 2) / 3 * 4 +
                  (size_t)labels->count * (2 * (LABEL_NAME_MAX + LABEL_VALUE_MAX) + 32);
    char *body = malloc(room);
    if (!body) {
        return NULL;
    }
    char *to = stpcpy(body, "{\"normalized\":true,\"series\":[{\"labels\":{\"labels\":[");
    to = put_json_label(to, "", "__name__", "jdagent");
    for (uint32_t i = 0; i < labels->count; i++) {
        to = put_json_label(to, ",", labels->names[i], labels->values[i]);
    }
    to = stpcpy(to, "]},\"samples\":[{\"rawProfile\":\"");
    to = put_base64(to, profile, size);
    to = stpcpy(to, "\"}]}]}");
    *made = (size_t)(to - body);
    return (uint8_t *)body;
}

const struct push_protocol push_protocols[] = {
    {"pyroscope", "pprof", "/push.v1.PusherService/Push", "application/proto", false,
     make_pyroscope},
    {"otlp", "otlp", "/v1development/profiles", "application/x-protobuf", true, make_otlp},
    {"parca", "pprof", "/api/profiles/writeraw", "application/json", false, make_parca},
    {0},
};
