#include "jdtool/view/content.h"

#include "jdtool/base/json_writer.h"
#include "jdtool/base/message.h"
#include "jdtool/base/packed_output.h"
#include "jdtool/base/text.h"
#include "jdtool/exports/firefox_tables.h"
#include "jdtool/jitdump/code_index.h"
#include "jdtool/objects/elf_file.h"
#include "jdtool/profile/code_addresses.h"
#include "jdtool/resolve/source_texts.h"
#include "jdtool/unwind/disassembly.h"
#include "jdtool/view/json_fields.h"

#include <errno.h>
#include <gelf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

/* Machine code of a profile's functions as the front end's /asm/v1 wants it. */

/* More than any method has; a request for more gets this much. */
#define ASSEMBLY_MAX ((uint64_t)1024 * 1024)

struct assembly_wanted {
    const struct module *module;
    uint64_t start; /* an address in the module, as the Firefox profile has it */
    uint64_t size;
    bool to_end; /* of the function, where that is known */
};

/* Code, and where it is. */
struct stretch {
    const uint8_t *bytes;
    size_t size;
    uint64_t address;         /* in the process; of a file in the file */
    struct code_index *index; /* names what is called; NULL: of a file */
    const bool *begins;       /* by offset: an instruction surely begins there; NULL: not known */
};

/* Generated code's own addresses are what the reader sees, and what it calls has a name. */
static void put_instructions(const struct profile *profile, const struct assembly_wanted *wanted,
                             const struct stretch *code, struct json_writer *json)
{
    const char *arch = profile->recording->arch;
    for (uint32_t at = 0; at < code->size;) {
        struct instruction instruction =
            disassemble_in_step(arch, code->bytes, code->size, code->begins, at, code->address);
        bool is_inside =
            instruction.target >= code->address && instruction.target < code->address + code->size;
        char text[INSTRUCTION_TEXT_MAX + 512];
        const struct code_stay *stay = NULL;
        if (instruction.target && !is_inside && code->index) {
            stay = code_index_at(code->index, instruction.target, UINT64_MAX - 1, NULL);
        }
        if (stay) {
            snprintf(text, sizeof text, "%s ; %.400s", instruction.text,
                     code_index_blob(code->index, stay->blob)->name);
        } else if (is_inside && code->index) {
            /* The front end numbers lines by the library's addresses. */
            snprintf(text, sizeof text, "%s ; 0x%" PRIx64, instruction.text,
                     wanted->start + (instruction.target - code->address));
        } else {
            snprintf(text, sizeof text, "%s", instruction.text);
        }
        json_array(json, NULL);
        json_uint(json, NULL, at);
        json_text(json, NULL, text);
        json_end(json);
        at += instruction.size;
    }
}

static void put_answer(const struct profile *profile, const struct assembly_wanted *wanted,
                       const struct stretch *code, struct packed_output *output)
{
    struct json_writer json;
    char text[32];
    json_start(&json, output);
    json_object(&json, NULL);
    snprintf(text, sizeof text, "0x%" PRIx64, wanted->start);
    json_text(&json, "startAddress", text);
    snprintf(text, sizeof text, "0x%zx", code->size);
    json_text(&json, "size", text);
    json_text(&json, "arch", profile->recording->arch ? profile->recording->arch : "x86_64");
    json_array(&json, "syntax");
    json_text(&json, NULL, "Intel");
    json_end(&json);
    json_array(&json, "instructions");
    put_instructions(profile, wanted, code, &json);
    json_end(&json);
    json_end(&json);
}

/* ---- Generated code ---- */

/* By offset in the code from `skipped` on, where samples say that an instruction begins; a caller's
 * address lies in its call. NULL: no memory, which leaves them out. */
static bool *sampled_starts(const struct profile *profile, const struct resolved_code *code,
                            uint64_t skipped, size_t size)
{
    bool *begins = calloc(size + 1, sizeof *begins);
    for (uint32_t i = 0; begins && i < profile->location_count; i++) {
        const struct profile_location *location = &profile->locations[i];
        uint64_t offset = location->address - code->module_address - skipped;
        if (location->code == code && !location->is_caller && offset < size) {
            begins[offset] = true;
        }
    }
    return begins;
}

static const char *write_generated(const struct profile *profile,
                                   const struct code_addresses *codes,
                                   const struct assembly_wanted *wanted,
                                   struct packed_output *output)
{
    uint64_t skipped = 0;
    const struct resolved_code *code =
        code_addresses_at(codes, wanted->module, wanted->start, &skipped);
    struct code_details details = {0};
    const char *why = NULL;
    if (!code || !code->index || code_index_fetch(code->index, code->blob, &details) < 0) {
        why = "no code of the profile lies there";
    } else if (!details.bytes) {
        why = "the dump has no bytes of this code: the agent ran with code=off";
    } else {
        uint64_t left = code->size - skipped;
        struct stretch stretch = {
            .bytes = details.bytes + skipped,
            .size = (size_t)(wanted->to_end || wanted->size > left ? left : wanted->size),
            .address = code->address + skipped,
            .index = code->index,
        };
        bool *begins = sampled_starts(profile, code, skipped, stretch.size);
        stretch.begins = begins;
        put_answer(profile, wanted, &stretch, output);
        free(begins);
    }
    code_details_free(&details);
    return why;
}

/* ---- Code of files ---- */

/* Where in the file an address is, and how much of its segment is left; false: in none. */
static bool find_segment(Elf *elf, uint64_t address, uint64_t *offset, uint64_t *left)
{
    size_t count = 0;
    elf_getphdrnum(elf, &count);
    for (size_t i = 0; i < count && i < INT32_MAX; i++) {
        GElf_Phdr segment;
        if (gelf_getphdr(elf, (int)i, &segment) && segment.p_type == PT_LOAD &&
            (segment.p_flags & PF_X) && address >= segment.p_vaddr &&
            address - segment.p_vaddr < segment.p_filesz) {
            *offset = segment.p_offset + (address - segment.p_vaddr);
            *left = segment.p_filesz - (address - segment.p_vaddr);
            return true;
        }
    }
    return false;
}

static const char *write_of_file(const struct profile *profile,
                                 const struct assembly_wanted *wanted, struct packed_output *output)
{
    const struct module *module = wanted->module;
    struct elf_file file = ELF_FILE_NONE;
    uint8_t id[BUILD_ID_MAX];
    uint64_t address = wanted->start;
    uint64_t offset = 0;
    uint64_t left = 0;
    const char *why = NULL;
    uint8_t *bytes = NULL;
    if (elf_file_open(-1, module->path, &file) != OBJECT_SOUND) {
        return "the file cannot be read here";
    }
    size_t id_size = elf_file_build_id(&file, id);
    if (module->build_id_size && (id_size < module->build_id_size ||
                                  memcmp(id, module->build_id, module->build_id_size) != 0)) {
        why = "the file that is here is not the one that was recorded: its build-id differs";
    } else if (!find_segment(file.elf, address, &offset, &left)) {
        why = "the file has no code there";
    } else {
        uint64_t size = wanted->size < left ? wanted->size : left;
        size = size < ASSEMBLY_MAX ? size : ASSEMBLY_MAX;
        bytes = malloc((size_t)size + 1);
        ssize_t got = bytes ? pread(file.fd, bytes, (size_t)size, (off_t)offset) : -1;
        if (got <= 0) {
            why = "the file cannot be read here";
        } else {
            struct stretch stretch = {.bytes = bytes, .size = (size_t)got, .address = address};
            put_answer(profile, wanted, &stretch, output);
        }
    }
    free(bytes);
    elf_file_close(&file);
    return why;
}

/* Writes the answer. NULL, or why there is none, in words. */
static const char *assembly_write(const struct profile *profile, const struct code_addresses *codes,
                                  const struct assembly_wanted *wanted,
                                  struct packed_output *output)
{
    switch (wanted->module->kind) {
    case MODULE_JVM:
        return write_generated(profile, codes, wanted, output);
    case MODULE_FILE:
        return write_of_file(profile, wanted, output);
    default:
        return "the kernel's code is not at hand";
    }
}

struct content {
    const struct profile *profile;
    const struct export_settings *settings;
    struct code_addresses codes;
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
    text_hex(random, sizeof random, content->token);
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
        err = code_addresses_make(profile, &content->codes);
    }
    if (!err) {
        err = make_token(content);
    }
    if (!err) {
        err = make_json(content);
    }
    if (err) {
        failed_to(err, "make what is served");
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
        code_addresses_free(&content->codes);
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
