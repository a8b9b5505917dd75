/* Between the files that write Firefox Profiler's format. */
#ifndef JD_TOOL_FIREFOX_TABLES_H
#define JD_TOOL_FIREFOX_TABLES_H

#include "jdtool/base/json_writer.h"
#include "jdtool/exports/export.h"
#include "jdtool/profile/code_addresses.h"
#include "jdtool/profile/module_extents.h"
#include "jdtool/profile/string_table.h"

struct firefox_symbol {
    uint32_t module;                         /* its id */
    const struct profile_location *location; /* the first one in it */
    uint64_t address, size;
    const char *name;
};

struct firefox {
    struct json_writer json;
    const struct profile *profile;
    const struct export_settings *settings;
    uint32_t first_event; /* of the first track */
    struct module_extent *extents;
    struct code_addresses codes;
    uint32_t *libs;          /* by module id: its place in the list; PROFILE_NONE: not in it */
    uint32_t *stack_of_node; /* a node's innermost row in the stack table */
    uint32_t *symbols;       /* by location: its native symbol; PROFILE_NONE: none */
    struct firefox_symbol *symbol_list;
    uint32_t symbol_count, symbol_room;
    struct string_table strings;
    struct string_table files;
    uint32_t marker_names[MARK_KINDS];
};

/* Works out what the tables need. 0 or -ENOMEM; release it on failure, too. */
int firefox_prepare(struct firefox *f);
void firefox_release(struct firefox *f);

/* An address in a module as the file has it; it lies in the module and code of that location.
 * -1: it does not fit, or there is no module. */
int64_t firefox_address(const struct firefox *f, const struct profile_location *location,
                        uint64_t address);

/* An element of a column: null where there is no value. */
void firefox_put_or_null(struct json_writer *json, bool has, uint64_t value);

void firefox_put_categories(struct json_writer *json);
void firefox_put_libs(struct firefox *f);

void firefox_put_resources(struct firefox *f); /* one a library, of the same number */
void firefox_put_native_symbols(struct firefox *f);

/* Markers (firefox_markers.c). Their names are among the strings, and so come before these are
 * written. wanted: those of the process; else there are none. */
void firefox_put_marker_schema(struct json_writer *json);
void firefox_add_marker_names(struct firefox *f);
void firefox_put_markers(struct firefox *f, uint32_t pid, bool wanted);

/* The tables that all threads share. 0 or -ENOMEM. */
int firefox_put_shared(struct firefox *f);

/* What a module is called in the list of libraries, for those who look it up by what the front end
 * sends back: its debugId, 33 hexadecimal digits. */
#define FIREFOX_DEBUG_ID_SIZE 34
void firefox_debug_id(const struct module *module, char text[FIREFOX_DEBUG_ID_SIZE]);

#endif
