#include "jdtool/view/content.h"

#include "jdtool/base/json_writer.h"
#include "jdtool/base/message.h"
#include "jdtool/exports/firefox_tables.h"
#include "jdtool/resolve/source_texts.h"
#include "jdtool/view/assembly.h"
#include "jdtool/view/json_fields.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

struct content {
    const struct profile *profile;
    const struct export_settings *settings;
    struct code_places codes;
    uint8_t *json; /* gzipped */
    size_t json_size;
    char token[CONTENT_TOKEN_SIZE];
};

extern const struct export_format format_firefox;

static int make_token(struct content *content)
{
    uint8_t random[(CONTENT_TOKEN_SIZE - 1) / 2];
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random) {
        return -errno;
    }
    for (size_t i = 0; i < sizeof random; i++) {
        snprintf(content->token + 2 * i, 3, "%02x", random[i]);
    }
    return 0;
}

static int make_json(struct content *content)
{
    struct packed_output *output;
    int err = packed_output_open_memory(true, &output);
    if (err) {
        return err;
    }
    err = format_firefox.write(content->profile, content->settings, output);
    if (err) {
        packed_output_abort(output);
        return err;
    }
    return packed_output_take(output, &content->json, &content->json_size);
}

int content_new(const struct profile *profile, const struct export_settings *settings,
                struct content **out)
{
    struct content *content = calloc(1, sizeof *content);
    int err = -ENOMEM;
    if (content) {
        content->profile = profile;
        content->settings = settings;
        err = code_places_make(profile, &content->codes);
    }
    if (!err) {
        err = make_token(content);
    }
    if (!err) {
        err = make_json(content);
    }
    if (err) {
        error_message("failed to make what is served: %s", strerror(-err));
        content_free(content);
        return err;
    }
    *out = content;
    return 0;
}

void content_free(struct content *content)
{
    if (content) {
        free(content->json);
        code_places_free(&content->codes);
        free(content);
    }
}

const char *content_token(const struct content *content)
{
    return content->token;
}

/* ---- Answers ---- */

/* The JSON that was written becomes the body. */
static void take_json(struct packed_output *output, struct http_response *response)
{
    size_t size;
    if (packed_output_take(output, &response->owned, &size) == 0) {
        response->status = 200;
        response->content_type = "application/json";
        response->body = response->owned;
        response->body_size = size;
    }
}

/* The API has errors inside of successful answers. */
static void answer_error(struct http_response *response, const char *text)
{
    struct packed_output *output;
    struct json_writer json;
    if (packed_output_open_memory(false, &output) == 0) {
        json_start(&json, output);
        json_object(&json, NULL);
        json_text(&json, "error", text);
        json_end(&json);
        take_json(output, response);
    }
}

static bool names_file(const struct profile *profile, const char *file)
{
    for (uint32_t i = 0; i < profile->function_count; i++) {
        if (profile->functions[i].file && strcmp(profile->functions[i].file, file) == 0) {
            return true;
        }
    }
    return false;
}

static void answer_source(struct content *content, const char *request,
                          struct http_response *response)
{
    char file[4096];
    char *text = NULL;
    size_t size = 0;
    if (!json_field_text(request, "file", file, sizeof file)) {
        response->status = 400;
        return;
    }
    if (content->settings->sources && names_file(content->profile, file)) {
        source_texts_read(content->settings->sources, file, &text, &size);
    }
    struct packed_output *output;
    struct json_writer json;
    if (!text) {
        answer_error(response, "there is no such source: give --source-path, or install the JDK's "
                               "sources");
    } else if (packed_output_open_memory(false, &output) == 0) {
        json_start(&json, output);
        json_object(&json, NULL);
        json_null(&json, "symbolsLastModified");
        json_null(&json, "sourceLastModified");
        json_text(&json, "file", file);
        json_text_sized(&json, "source", text, size);
        json_end(&json);
        take_json(output, response);
    }
    free(text);
}

static const struct module *module_of(const struct content *content, const char *name,
                                      const char *id)
{
    const struct profile *profile = content->profile;
    for (uint32_t i = 0; i < profile->module_count; i++) {
        const struct module *module = profile->modules[i];
        char known[FIREFOX_DEBUG_ID_SIZE];
        if (module && strcmp(profile_module_name(module), name) == 0) {
            firefox_debug_id(module, known);
            if (strcmp(known, id) == 0) {
                return module;
            }
        }
    }
    return NULL;
}

static void answer_assembly(struct content *content, const char *request,
                            struct http_response *response)
{
    char name[1024];
    char id[64];
    char start[32];
    char size[32];
    if (!json_field_text(request, "debugName", name, sizeof name) ||
        !json_field_text(request, "debugId", id, sizeof id) ||
        !json_field_text(request, "startAddress", start, sizeof start) ||
        !json_field_text(request, "size", size, sizeof size)) {
        response->status = 400;
        return;
    }
    const struct module *module = module_of(content, name, id);
    if (!module) {
        answer_error(response, "the profile has no such library");
        return;
    }
    struct assembly_wanted wanted = {
        .module = module,
        .start = strtoull(start, NULL, 16),
        .size = strtoull(size, NULL, 16),
        .to_end = json_field_is_true(request, "continueUntilFunctionEnd"),
    };
    struct packed_output *output;
    if (packed_output_open_memory(false, &output) < 0) {
        return;
    }
    const char *why = assembly_write(content->profile, &content->codes, &wanted, output);
    if (why) {
        packed_output_abort(output);
        answer_error(response, why);
    } else {
        take_json(output, response);
    }
}

void content_answer(void *context, const struct http_request *request,
                    struct http_response *response)
{
    struct content *content = context;
    size_t token = strlen(content->token);
    response->status = 404;
    if (strncmp(request->path + 1, content->token, token) != 0 || request->path[1 + token] != '/') {
        return;
    }
    const char *what = request->path + 1 + token + 1;
    bool is_post = strcmp(request->method, "POST") == 0;
    bool is_get = strcmp(request->method, "GET") == 0 || strcmp(request->method, "HEAD") == 0;
    if (strcmp(request->method, "OPTIONS") == 0) {
        response->status = 204;
        response->is_preflight = true;
    } else if (is_get && strcmp(what, "profile.json") == 0) {
        response->status = 200;
        response->content_type = "application/json";
        response->is_gzip = true;
        response->body = content->json;
        response->body_size = content->json_size;
    } else if (is_post && strcmp(what, "source/v1") == 0) {
        answer_source(content, request->body, response);
    } else if (is_post && strcmp(what, "asm/v1") == 0) {
        answer_assembly(content, request->body, response);
    } else if (!is_get) {
        response->status = 405;
    }
}
