/* Between the files that write Firefox Profiler's format. */
#ifndef JD_TOOL_FIREFOX_TABLES_H
#define JD_TOOL_FIREFOX_TABLES_H

#include "jdtool/base/intern.h"
#include "jdtool/base/json_writer.h"
#include "jdtool/exports/export.h"
#include "jdtool/profile/code_addresses.h"

struct firefox_symbol {
    uint64_t address;                        /* this and its module are its key */
    uint32_t module;                         /* its id */
    const struct profile_location *location; /* the first one in it */
    uint64_t size;
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

void firefox_put_categories(struct json_writer *json);
void firefox_put_libs(struct firefox *f);

/* The tables that all threads share. 0 or -ENOMEM. */
int firefox_put_shared(struct firefox *f);

/* What a module is called in the list of libraries, for those who look it up by what the front end
 * sends back: its debugId, 33 hexadecimal digits. */
#define FIREFOX_DEBUG_ID_SIZE 34
void firefox_debug_id(const struct module *module, char text[FIREFOX_DEBUG_ID_SIZE]);

#endif
