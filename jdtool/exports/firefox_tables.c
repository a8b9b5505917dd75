/* The tables that all threads share, each column in one go. */
#include "jdtool/exports/firefox_tables.h"

#include "format/fnv1a.h"
#include "jdtool/base/text.h"
#include "jdtool/base/unique.h"
#include "jdtool/resolve/source_texts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Libraries and symbols ---- */

/* The libraries of a Firefox profile and their symbols, and what the other tables need of them. */

#define ADDRESS_MAX INT32_MAX /* readers keep them in an Int32Array */

/* An element of a column: null where there is no value. */
static void put_or_null(struct json_writer *json, bool has, uint64_t value)
{
    if (has) {
        json_uint(json, NULL, value);
    } else {
        json_null(json, NULL);
    }
}

void firefox_debug_id(const struct module *module, char text[FIREFOX_DEBUG_ID_SIZE])
{
    uint8_t id[16] = {0};
    if (module->build_id_size >= sizeof id) {
        memcpy(id, module->build_id, sizeof id);
    } else {
        /* What has none is told apart by its path. */
        uint64_t hash = fnv1a(FNV1A_START, module->path);
        memcpy(id, &hash, sizeof hash);
    }
    /* A GUID's first three fields are numbers of this machine's (Breakpad's rule). */
    static const uint8_t order[16] = {3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15};
    for (size_t i = 0; i < sizeof id; i++) {
        snprintf(text + 2 * i, 3, "%02X", id[order[i]]);
    }
    memcpy(text + 32, "0", 2);
}

void firefox_put_libs(struct firefox *f)
{
    const struct profile *profile = f->profile;
    char id[FIREFOX_DEBUG_ID_SIZE];
    char build_id[BUILD_ID_TEXT];
    json_array(&f->json, "libs");
    for (uint32_t i = 0; i < profile->module_count; i++) {
        const struct module *module = profile->modules[i];
        if (f->libs[i] == PROFILE_NONE) {
            continue;
        }
        const char *name = profile_module_name(module);
        firefox_debug_id(module, id);
        text_hex(module->build_id, module->build_id_size, build_id);
        json_object(&f->json, NULL);
        json_text(&f->json, "arch", profile->recording->arch);
        json_text(&f->json, "name", name);
        json_text(&f->json, "path", module->path);
        json_text(&f->json, "debugName", name);
        json_text(&f->json, "debugPath", module->path);
        json_text(&f->json, "breakpadId", id);
        json_text(&f->json, "codeId", build_id[0] ? build_id : NULL);
        json_end(&f->json);
    }
    json_end(&f->json);
}

/*
 * An address in a module as the file has it; it lies in the module and code of that location. -1:
 * it does not fit, or there is no module.
 */
static int64_t address_in(const struct firefox *f, const struct profile_location *location,
                          uint64_t address)
{
    const struct module *module = location->module;
    uint64_t relative = UINT64_MAX;
    if (!module) {
        return -1;
    }
    if (module->kind == MODULE_FILE) {
        relative = address;
    } else if (module->kind == MODULE_KERNEL) {
        relative = address - f->extents[module->id].start;
    } else if (location->code) {
        relative =
            f->codes.addresses[location->code_number] + (address - location->code->module_address);
    }
    return relative <= ADDRESS_MAX ? (int64_t)relative : -1;
}

static int find_symbol(struct firefox *f, struct hash_map *map, uint32_t id)
{
    const struct profile_location *location = &f->profile->locations[id];
    const struct profile_line *own =
        &f->profile->lines[location->first_line + location->line_count - 1];
    const struct resolved_method *method = f->profile->functions[own->function].method;
    struct firefox_symbol symbol = {0};
    f->symbols[id] = PROFILE_NONE;
    if (location->code) {
        symbol = (struct firefox_symbol){location->code->module_address, location->module->id,
                                         location, location->code->size, location->code->symbol};
    } else if (method && location->module && method->module == location->module && method->size) {
        symbol = (struct firefox_symbol){method->address, location->module->id, location,
                                         method->size, method->name};
    }
    if (!symbol.name || address_in(f, location, symbol.address) < 0) {
        return 0;
    }
    f->symbols[id] = unique_add(&f->symbol_list, &f->symbol_count, &f->symbol_room, sizeof symbol,
                                map, &symbol, offsetof(struct firefox_symbol, module) + 4);
    return f->symbols[id] == HASH_MAP_NONE ? -ENOMEM : 0;
}

int firefox_prepare(struct firefox *f)
{
    const struct profile *profile = f->profile;
    f->extents = module_extents(profile);
    f->libs = calloc((size_t)profile->module_count + 1, sizeof *f->libs);
    f->stack_of_node = calloc((size_t)profile->node_count + 1, sizeof *f->stack_of_node);
    f->symbols = calloc((size_t)profile->location_count + 1, sizeof *f->symbols);
    if (!f->extents || !f->libs || !f->stack_of_node || !f->symbols) {
        return -ENOMEM;
    }
    int err = code_addresses_make(profile, &f->codes);
    uint32_t count = 0;
    for (uint32_t i = 0; i < profile->module_count; i++) {
        f->libs[i] = profile->modules[i] && f->extents[i].limit ? count++ : PROFILE_NONE;
    }
    uint32_t row = 0;
    for (uint32_t i = 0; i < profile->node_count; i++) {
        row += profile->locations[profile->nodes[i].location].line_count;
        f->stack_of_node[i] = row - 1;
    }
    struct hash_map map = {0};
    for (uint32_t i = 0; !err && i < profile->location_count; i++) {
        err = find_symbol(f, &map, i);
    }
    hash_map_free(&map);
    return err;
}

void firefox_release(struct firefox *f)
{
    free(f->extents);
    code_addresses_free(&f->codes);
    free(f->libs);
    free(f->stack_of_node);
    free(f->symbols);
    free(f->symbol_list);
    string_table_free(&f->strings);
    string_table_free(&f->files);
}

/*
 * one a library, of the same number
 *
 * One resource a library, of the same number.
 */
static void put_resources(struct firefox *f)
{
    struct json_writer *json = &f->json;
    const struct profile *profile = f->profile;
    uint32_t count = 0;
    json_object(json, "resourceTable");
    json_array(json, "name");
    for (uint32_t i = 0; i < profile->module_count; i++) {
        if (f->libs[i] != PROFILE_NONE) {
            const char *name = profile_module_name(profile->modules[i]);
            json_uint(json, NULL, string_table_add(&f->strings, name));
            count++;
        }
    }
    json_end(json);
    json_uint(json, "length", count);
    json_array(json, "lib");
    for (uint32_t i = 0; i < count; i++) {
        json_uint(json, NULL, i);
    }
    json_end(json);
    json_fill(json, "host", "null", count);
    json_fill(json, "type", "1", count);
    json_end(json);
}

static void put_native_symbols(struct firefox *f)
{
    struct json_writer *json = &f->json;
    json_object(json, "nativeSymbols");
    json_uint(json, "length", f->symbol_count);
    json_array(json, "libIndex");
    for (uint32_t i = 0; i < f->symbol_count; i++) {
        json_uint(json, NULL, f->libs[f->symbol_list[i].module]);
    }
    json_end(json);
    json_array(json, "address");
    for (uint32_t i = 0; i < f->symbol_count; i++) {
        const struct firefox_symbol *symbol = &f->symbol_list[i];
        json_int(json, NULL, address_in(f, symbol->location, symbol->address));
    }
    json_end(json);
    json_array(json, "name");
    for (uint32_t i = 0; i < f->symbol_count; i++) {
        json_uint(json, NULL, string_table_add(&f->strings, f->symbol_list[i].name));
    }
    json_end(json);
    json_array(json, "functionSize");
    for (uint32_t i = 0; i < f->symbol_count; i++) {
        uint64_t size = f->symbol_list[i].size;
        put_or_null(json, size > 0 && size <= ADDRESS_MAX, size);
    }
    json_end(json);
    json_end(json);
}

/* ---- The tables ---- */

enum category {
    CATEGORY_OTHER,
    CATEGORY_JAVA,
    CATEGORY_C1,
    CATEGORY_C2,
    CATEGORY_GRAAL,
    CATEGORY_INTERPRETED,
    CATEGORY_STUB,
    CATEGORY_JVM,
    CATEGORY_NATIVE,
    CATEGORY_KERNEL,
    CATEGORY_SUBJECT,
    CATEGORIES,
};

enum subcategory { SUBCATEGORY_OTHER, SUBCATEGORY_INLINED, SUBCATEGORY_OSR };

void firefox_put_categories(struct json_writer *json)
{
    /* The first one is the default, and has to be grey. */
    static const struct {
        const char *name, *color;
    } categories[CATEGORIES] = {
        [CATEGORY_OTHER] = {"Other", "grey"},
        [CATEGORY_JAVA] = {"Java, compiled", "green"},
        [CATEGORY_C1] = {"Java, C1", "lightblue"},
        [CATEGORY_C2] = {"Java, C2", "green"},
        [CATEGORY_GRAAL] = {"Java, Graal", "green"},
        [CATEGORY_INTERPRETED] = {"Java, interpreted", "yellow"},
        [CATEGORY_STUB] = {"JVM stub", "brown"},
        [CATEGORY_JVM] = {"JVM", "purple"},
        [CATEGORY_NATIVE] = {"Native", "blue"},
        [CATEGORY_KERNEL] = {"Kernel", "orange"},
        [CATEGORY_SUBJECT] = {"What an event is about", "magenta"},
    };
    json_array(json, "categories");
    for (size_t i = 0; i < CATEGORIES; i++) {
        json_object(json, NULL);
        json_text(json, "name", categories[i].name);
        json_text(json, "color", categories[i].color);
        json_array(json, "subcategories");
        json_text(json, NULL, "Other");
        json_text(json, NULL, "Inlined");
        json_text(json, NULL, "OSR");
        json_end(json);
        json_end(json);
    }
    json_end(json);
}

static enum category category_of(const struct profile_location *location,
                                 const struct profile_line *own)
{
    switch (own->kind) {
    case RESOLVED_KERNEL:
        return CATEGORY_KERNEL;
    case RESOLVED_SUBJECT:
        return CATEGORY_SUBJECT;
    case RESOLVED_STUB:
        return CATEGORY_STUB;
    case RESOLVED_INTERPRETED:
        return CATEGORY_INTERPRETED;
    case RESOLVED_COMPILED:
    case RESOLVED_INLINED:
        return own->tier == 0   ? CATEGORY_JAVA
               : own->tier < 4  ? CATEGORY_C1
               : own->tier == 4 ? CATEGORY_C2
                                : CATEGORY_GRAAL;
    case RESOLVED_NATIVE:
        return strcmp(profile_module_name(location->module), "libjvm.so") == 0 ? CATEGORY_JVM
                                                                               : CATEGORY_NATIVE;
    default:
        return CATEGORY_OTHER;
    }
}

/* Rows of a node from its outermost method in; the first hangs on the parent's last. */
static void put_stack_table(struct firefox *f)
{
    struct json_writer *json = &f->json;
    const struct profile *profile = f->profile;
    uint32_t count = profile->node_count;
    json_object(json, "stackTable");
    json_uint(json, "length", count ? (uint64_t)f->stack_of_node[count - 1] + 1 : 0);
    json_array(json, "prefix");
    for (uint32_t i = 0; i < count; i++) {
        const struct profile_node *node = &profile->nodes[i];
        uint32_t lines = profile->locations[node->location].line_count;
        bool has_parent = node->parent != PROFILE_NONE;
        put_or_null(json, has_parent, has_parent ? f->stack_of_node[node->parent] : 0);
        for (uint32_t k = 1; k < lines; k++) {
            json_uint(json, NULL, f->stack_of_node[i] - lines + k);
        }
    }
    json_end(json);
    json_array(json, "frame");
    for (uint32_t i = 0; i < count; i++) {
        const struct profile_location *location = &profile->locations[profile->nodes[i].location];
        for (uint32_t k = location->line_count; k-- > 0;) {
            json_uint(json, NULL, (uint64_t)location->first_line + k);
        }
    }
    json_end(json);
    json_end(json);
}

enum frame_column {
    FRAME_ADDRESS,
    FRAME_INLINE_DEPTH,
    FRAME_CATEGORY,
    FRAME_SUBCATEGORY,
    FRAME_FUNC,
    FRAME_NATIVE_SYMBOL,
    FRAME_LINE,
    FRAME_COLUMNS,
};

static void put_frame_cell(struct firefox *f, enum frame_column column, uint32_t id, uint32_t k)
{
    struct json_writer *json = &f->json;
    const struct profile_location *location = &f->profile->locations[id];
    const struct profile_line *line = &f->profile->lines[location->first_line + k];
    const struct profile_line *own =
        &f->profile->lines[location->first_line + location->line_count - 1];
    switch (column) {
    case FRAME_ADDRESS:
        json_int(json, NULL, address_in(f, location, location->address));
        break;
    case FRAME_INLINE_DEPTH:
        json_uint(json, NULL, location->line_count - 1 - k);
        break;
    case FRAME_CATEGORY:
        json_uint(json, NULL, category_of(location, own));
        break;
    case FRAME_SUBCATEGORY:
        json_uint(json, NULL,
                  line != own   ? SUBCATEGORY_INLINED
                  : own->is_osr ? SUBCATEGORY_OSR
                                : SUBCATEGORY_OTHER);
        break;
    case FRAME_FUNC:
        json_uint(json, NULL, line->function);
        break;
    case FRAME_NATIVE_SYMBOL:
        put_or_null(json, f->symbols[id] != PROFILE_NONE, f->symbols[id]);
        break;
    default:
        put_or_null(json, line->line > 0, line->line);
    }
}

static void put_frame_table(struct firefox *f)
{
    static const char *const names[FRAME_COLUMNS] = {
        [FRAME_ADDRESS] = "address",   [FRAME_INLINE_DEPTH] = "inlineDepth",
        [FRAME_CATEGORY] = "category", [FRAME_SUBCATEGORY] = "subcategory",
        [FRAME_FUNC] = "func",         [FRAME_NATIVE_SYMBOL] = "nativeSymbol",
        [FRAME_LINE] = "line",
    };
    struct json_writer *json = &f->json;
    const struct profile *profile = f->profile;
    json_object(json, "frameTable");
    json_uint(json, "length", profile->line_count);
    for (int column = 0; column < FRAME_COLUMNS; column++) {
        json_array(json, names[column]);
        for (uint32_t i = 0; i < profile->location_count; i++) {
            for (uint32_t k = 0; k < profile->locations[i].line_count; k++) {
                put_frame_cell(f, (enum frame_column)column, i, k);
            }
        }
        json_end(json);
    }
    json_fill(json, "innerWindowID", "0", profile->line_count);
    json_fill(json, "column", "null", profile->line_count);
    json_fill(json, "originalLocation", "null", profile->line_count);
    json_end(json);
}

static void put_func_table(struct firefox *f)
{
    struct json_writer *json = &f->json;
    const struct profile *profile = f->profile;
    uint32_t count = profile->function_count;
    json_object(json, "funcTable");
    json_uint(json, "length", count);
    json_array(json, "name");
    for (uint32_t i = 0; i < count; i++) {
        json_uint(json, NULL, string_table_add(&f->strings, profile->functions[i].name));
    }
    json_end(json);
    json_array(json, "resource");
    for (uint32_t i = 0; i < count; i++) {
        const struct module *module = profile->functions[i].module;
        uint32_t lib =
            module && module->id < profile->module_count ? f->libs[module->id] : PROFILE_NONE;
        json_int(json, NULL, lib == PROFILE_NONE ? -1 : (int64_t)lib);
    }
    json_end(json);
    json_array(json, "source");
    for (uint32_t i = 0; i < count; i++) {
        const char *file = profile->functions[i].file;
        put_or_null(json, file, file ? string_table_add(&f->files, file) : 0);
    }
    json_end(json);
    json_array(json, "lineNumber");
    for (uint32_t i = 0; i < count; i++) {
        uint32_t line = profile->functions[i].first_line;
        put_or_null(json, line > 0, line);
    }
    json_end(json);
    json_fill(json, "isJS", "false", count);
    json_fill(json, "relevantForJS", "false", count);
    json_fill(json, "columnNumber", "null", count);
    json_fill(json, "originalLocation", "null", count);
    json_end(json);
}

static int put_sources(struct firefox *f)
{
    struct json_writer *json = &f->json;
    uint32_t count = f->files.count;
    json_object(json, "sources");
    json_uint(json, "length", count);
    json_array(json, "filename");
    for (uint32_t i = 0; i < count; i++) {
        json_uint(json, NULL, string_table_add(&f->strings, f->files.list[i]));
    }
    json_end(json);
    int err = 0;
    for (uint32_t i = 0; f->settings->sources && !err && i < f->profile->module_count; i++) {
        err = source_texts_add_jdk(f->settings->sources, f->profile->modules[i]);
    }
    json_array(json, "content");
    for (uint32_t i = 0; i < count; i++) {
        char *text = NULL;
        size_t size = 0;
        if (f->settings->sources && !err) {
            err = source_texts_read(f->settings->sources, f->files.list[i], &text, &size);
        }
        if (text) {
            json_text_sized(json, NULL, text, size);
        } else {
            json_null(json, NULL);
        }
        free(text);
    }
    json_end(json);
    json_fill(json, "id", "null", count);
    json_fill(json, "startLine", "1", count);
    json_fill(json, "startColumn", "1", count);
    json_fill(json, "sourceMapURL", "null", count);
    json_end(json);
    return err;
}

int firefox_put_shared(struct firefox *f)
{
    struct json_writer *json = &f->json;
    json_object(json, "shared");
    put_stack_table(f);
    put_frame_table(f);
    put_func_table(f);
    put_resources(f);
    put_native_symbols(f);
    int err = put_sources(f);
    json_object(json, "sourceLocationTable");
    json_uint(json, "length", 0);
    json_fill(json, "source", "", 0);
    json_fill(json, "line", "", 0);
    json_fill(json, "column", "", 0);
    json_end(json);
    json_array(json, "stringArray");
    for (uint32_t i = 0; i < f->strings.count; i++) {
        json_text(json, NULL, f->strings.list[i]);
    }
    json_end(json);
    json_end(json);
    err = err ? err : f->strings.error;
    return err ? err : f->files.error;
}
