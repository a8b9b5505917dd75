/* The tables that all threads share, each column in one go. */
#include "jdtool/exports/firefox_tables.h"

#include "jdtool/resolve/source_texts.h"

#include <stdlib.h>
#include <string.h>

enum category {
    CATEGORY_OTHER,
    CATEGORY_JAVA,
    CATEGORY_C1,
    CATEGORY_C2,
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
        return own->tier == 0 ? CATEGORY_JAVA : own->tier < 4 ? CATEGORY_C1 : CATEGORY_C2;
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
        firefox_put_or_null(json, has_parent, has_parent ? f->stack_of_node[node->parent] : 0);
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
        json_int(json, NULL, firefox_address(f, location, location->address));
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
        firefox_put_or_null(json, f->symbols[id] != PROFILE_NONE, f->symbols[id]);
        break;
    default:
        firefox_put_or_null(json, line->line > 0, line->line);
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
        firefox_put_or_null(json, file, file ? string_table_add(&f->files, file) : 0);
    }
    json_end(json);
    json_array(json, "lineNumber");
    for (uint32_t i = 0; i < count; i++) {
        uint32_t line = profile->functions[i].first_line;
        firefox_put_or_null(json, line > 0, line);
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
    firefox_put_resources(f);
    firefox_put_native_symbols(f);
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
