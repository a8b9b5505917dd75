/* The libraries of a Firefox profile and their symbols, and what the other tables need of them. */
#include "format/fnv1a.h"
#include "jdtool/base/array.h"
#include "jdtool/exports/firefox_tables.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define ADDRESS_MAX INT32_MAX /* readers keep them in an Int32Array */

void firefox_put_or_null(struct json_writer *json, bool has, uint64_t value)
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
    char build_id[EXPORT_BUILD_ID_MAX];
    json_array(&f->json, "libs");
    for (uint32_t i = 0; i < profile->module_count; i++) {
        const struct module *module = profile->modules[i];
        if (f->libs[i] == PROFILE_NONE) {
            continue;
        }
        const char *name = profile_module_name(module);
        firefox_debug_id(module, id);
        export_build_id(module, build_id);
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

int64_t firefox_address(const struct firefox *f, const struct profile_location *location,
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
        symbol =
            (struct firefox_symbol){location->module->id, location, location->code->module_address,
                                    location->code->size, location->code->symbol};
    } else if (method && location->module && method->module == location->module && method->size) {
        symbol = (struct firefox_symbol){location->module->id, location, method->address,
                                         method->size, method->name};
    }
    if (!symbol.name || firefox_address(f, location, symbol.address) < 0) {
        return 0;
    }
    uint64_t hash = hash_pair(symbol.module, symbol.address);
    struct hash_map_cursor cursor = hash_map_start(map, hash);
    uint32_t at;
    while ((at = hash_map_next(map, &cursor)) != HASH_MAP_NONE) {
        if (f->symbol_list[at].module == symbol.module &&
            f->symbol_list[at].address == symbol.address) {
            f->symbols[id] = at;
            return 0;
        }
    }
    if (array_reserve(&f->symbol_list, f->symbol_count, &f->symbol_room, sizeof *f->symbol_list) ||
        hash_map_add(map, hash, f->symbol_count)) {
        return -ENOMEM;
    }
    f->symbols[id] = f->symbol_count;
    f->symbol_list[f->symbol_count++] = symbol;
    return 0;
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

/* One resource a library, of the same number. */
void firefox_put_resources(struct firefox *f)
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

void firefox_put_native_symbols(struct firefox *f)
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
        json_int(json, NULL, firefox_address(f, symbol->location, symbol->address));
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
        firefox_put_or_null(json, size > 0 && size <= ADDRESS_MAX, size);
    }
    json_end(json);
    json_end(json);
}
