/* jdtool stat: what a dump holds, in numbers. */
#include "format/fnv1a.h"
#include "jdtool/base/array.h"
#include "jdtool/base/json_writer.h"
#include "jdtool/base/message.h"
#include "jdtool/base/text.h"
#include "jdtool/base/verb.h"
#include "jdtool/jitdump/jitdump_reader.h"
#include "jdtool/jitdump/samply_reader.h"
#include "jdtool/jitdump/trailer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum kind {
    KIND_LOAD = JIT_CODE_LOAD,
    KIND_UNWINDING_INFO = JIT_CODE_UNWINDING_INFO,
    KIND_SAMPLY_FIRST,
    KIND_UNKNOWN = KIND_SAMPLY_FIRST + 3,
    KIND_COUNT
};

struct totals {
    uint64_t records[KIND_COUNT];
    uint64_t bytes[KIND_COUNT];
    uint64_t code_bytes;
    uint64_t loads_without_code;
    uint64_t rows;
    uint64_t tree_rows; /* records that leave theirs to the tree */
    uint64_t trailers;
    uint64_t trailer_bytes;
    uint64_t inline_nodes;
    uint64_t ranges;
    uint64_t c1; /* compiled methods, by tier */
    uint64_t c2;
    uint64_t graal;
    uint64_t osr; /* of them, for on-stack replacement */
    uint64_t wrappers;
    uint64_t stubs;
    uint64_t methods; /* distinct names of LOADs */
    uint64_t defined_methods;
    uint64_t broken_records;
    uint64_t torn_bytes;
    uint64_t unread_bytes;
    uint64_t first_stamp; /* of a LOAD */
    uint64_t last_stamp;

    uint64_t *name_hashes; /* of each LOAD */
    uint32_t name_room;
};

static void count_methods(struct totals *totals)
{
    uint64_t count = totals->records[KIND_LOAD];
    if (!totals->name_hashes) {
        return;
    }
    qsort(totals->name_hashes, count, sizeof(*totals->name_hashes), compare_u64);
    totals->methods = 1;
    for (uint64_t i = 1; i < count; i++) {
        totals->methods += totals->name_hashes[i] != totals->name_hashes[i - 1];
    }
}

static int add_load(struct totals *totals, const struct jitdump_record_view *record)
{
    uint64_t count = totals->records[KIND_LOAD];
    if (count > UINT32_MAX ||
        ARRAY_RESERVE(totals->name_hashes, (uint32_t)count, totals->name_room)) {
        return -ENOMEM;
    }
    totals->name_hashes[count] = fnv1a(FNV1A_START, record->load.name);
    if (count == 0 || record->timestamp < totals->first_stamp) {
        totals->first_stamp = record->timestamp;
    }
    if (record->timestamp > totals->last_stamp) {
        totals->last_stamp = record->timestamp;
    }
    totals->code_bytes += record->load.code_size;
    totals->loads_without_code += !record->load.bytes && record->load.code_size > 0;
    return 0;
}

static void add_facts(struct totals *totals, const int64_t *facts)
{
    switch (facts[JITDUMP_CODE_KIND]) {
    case JITDUMP_KIND_NMETHOD:
        totals->c1 += facts[JITDUMP_CODE_TIER] >= 1 && facts[JITDUMP_CODE_TIER] <= 3;
        totals->c2 += facts[JITDUMP_CODE_TIER] == 4;
        totals->graal += facts[JITDUMP_CODE_TIER] == JITDUMP_TIER_JVMCI;
        totals->osr += facts[JITDUMP_CODE_OSR_ENTRY] >= 0;
        break;
    case JITDUMP_KIND_NATIVE_WRAPPER:
        totals->wrappers++;
        break;
    case JITDUMP_KIND_STUB:
        totals->stubs++;
        break;
    default:
        break;
    }
}

static void add_debug_info(struct totals *totals, const struct jitdump_reader *reader,
                           const struct jitdump_record_view *record, struct trailer_names *names,
                           struct trailer *trailer)
{
    totals->rows += record->debug_info.nr_entry;
    const uint8_t *bytes;
    size_t size;
    if (jitdump_behind_entries(reader, record, &bytes, &size) < 0) {
        totals->broken_records++;
        return;
    }
    const uint8_t *at;
    const uint8_t *end;
    const char *why;
    if (trailer_find(reader, bytes, size, &at, &end, &why) > 0) {
        totals->trailers++;
        totals->trailer_bytes += (uint64_t)(end - bytes);
        if (trailer_decode(reader, bytes, size, names, trailer, &why) < 0) {
            totals->broken_records++;
        }
        totals->inline_nodes += trailer->node_count;
        totals->ranges += trailer->range_count;
        totals->tree_rows += trailer->tree_rows;
        add_facts(totals, trailer->facts);
    }
}

static int add_record(struct totals *totals, const struct jitdump_reader *reader,
                      const struct jitdump_record_view *record, struct trailer_names *names,
                      struct trailer *trailer)
{
    if (record->id == JIT_CODE_LOAD && add_load(totals, record) < 0) {
        return -ENOMEM;
    }
    if (record->id == JIT_CODE_DEBUG_INFO) {
        add_debug_info(totals, reader, record, names, trailer);
    }
    uint32_t kind = record->id;
    if (samply_knows(kind)) {
        kind = KIND_SAMPLY_FIRST + (kind - SAMPLY_JIT_CODE_DEBUG_INFO2);
    } else if (kind > KIND_UNWINDING_INFO) {
        kind = KIND_UNKNOWN;
    }
    totals->records[kind]++;
    totals->bytes[kind] += record->total_size;
    return 0;
}

/* 0 or -ENOMEM. */
static int add_records(struct totals *totals, struct jitdump_reader *reader)
{
    struct trailer_names *names = trailer_names_new();
    struct trailer trailer = {0};
    struct jitdump_record_view record;
    enum jitdump_status status = JITDUMP_END;
    int error = names ? 0 : -ENOMEM;
    while (!error) {
        status = jitdump_reader_next(reader, &record);
        if (status == JITDUMP_RECORD) {
            error = add_record(totals, reader, &record, names, &trailer);
        } else if (status == JITDUMP_BROKEN) {
            totals->broken_records++;
        } else {
            break;
        }
    }
    uint64_t rest = jitdump_reader_file_size(reader) - jitdump_reader_offset(reader);
    totals->torn_bytes = status == JITDUMP_TORN ? rest : 0;
    totals->unread_bytes = status == JITDUMP_BAD ? rest : 0;
    if (!error) {
        totals->defined_methods = trailer_names_method_count(names);
        count_methods(totals);
    }
    trailer_names_free(names);
    trailer_free(&trailer);
    return error;
}

static const char *kind_name(int kind)
{
    if (kind == KIND_UNKNOWN) {
        return "unknown";
    }
    return text_record_id(kind < KIND_SAMPLY_FIRST
                              ? (uint32_t)kind
                              : SAMPLY_JIT_CODE_DEBUG_INFO2 + (uint32_t)(kind - KIND_SAMPLY_FIRST));
}

struct field {
    const char *key;   /* in JSON */
    const char *label; /* in the text */
    uint64_t value;
};

static int print_json(const char *path, const struct jitdump_reader *reader,
                      const struct totals *totals, const struct field *fields, size_t count)
{
    const struct jitdump_header *header = jitdump_reader_header(reader);
    struct packed_output *output;
    struct json_writer json;
    if (packed_output_open("-", false, &output)) {
        return STATUS_FAILED;
    }
    json_start(&json, output);
    json_object_lines(&json, NULL);
    json_text(&json, "file", path);
    json_uint(&json, "pid", header->pid);
    json_uint(&json, "elf_machine", header->elf_mach);
    json_text(&json, "machine", text_machine(header->elf_mach));
    json_bool(&json, "foreign_byte_order", jitdump_reader_swapped(reader));
    json_bool(&json, "arch_timestamp", header->flags & JITDUMP_FLAGS_ARCH_TIMESTAMP);
    json_uint(&json, "stamp", header->timestamp);
    json_object_lines(&json, "records");
    for (int kind = 0; kind < KIND_COUNT; kind++) {
        if (totals->records[kind]) {
            json_object(&json, kind_name(kind));
            json_uint(&json, "count", totals->records[kind]);
            json_uint(&json, "bytes", totals->bytes[kind]);
            json_end(&json);
        }
    }
    json_end(&json);
    for (size_t i = 0; i < count; i++) {
        json_uint(&json, fields[i].key, fields[i].value);
    }
    json_end(&json);
    return packed_output_finish(output) ? STATUS_FAILED : STATUS_DONE;
}

static void print_text(const char *path, const struct jitdump_reader *reader,
                       const struct totals *totals, const struct field *fields, size_t count)
{
    const struct jitdump_header *header = jitdump_reader_header(reader);
    text_print(stdout, path);
    printf(": pid %u, %s%s%s\n", header->pid, text_machine(header->elf_mach),
           jitdump_reader_swapped(reader) ? ", foreign byte order" : "",
           header->flags & JITDUMP_FLAGS_ARCH_TIMESTAMP ? ", processor's time stamps" : "");
    printf("  %-24s %12s %14s\n", "records", "count", "bytes");
    for (int kind = 0; kind < KIND_COUNT; kind++) {
        if (totals->records[kind]) {
            printf("  %-24s %12" PRIu64 " %14" PRIu64 "\n", kind_name(kind), totals->records[kind],
                   totals->bytes[kind]);
        }
    }
    for (size_t i = 0; i < count; i++) {
        printf("  %-24s %27" PRIu64 "\n", fields[i].label, fields[i].value);
    }
}

static int run(const struct verb *verb, int argc, char **argv)
{
    static const struct verb_option options[] = {{OPTION("json", 'j', OPTION_SETS)}, OPTION_END};
    bool json = false;
    int status = verb_options(verb, argc, argv, options, &json);
    if (status) {
        return status;
    }
    const char *path = argv[optind];
    struct jitdump_reader *reader;
    if (jitdump_reader_open(path, &reader) < 0) {
        return STATUS_FAILED;
    }
    struct totals totals = {0};
    int error = add_records(&totals, reader);
    const struct field fields[] = {
        {"file_bytes", "bytes in the file", jitdump_reader_file_size(reader)},
        {"code_bytes", "bytes of code", totals.code_bytes},
        {"loads_without_code", "LOADs without code", totals.loads_without_code},
        {"methods", "distinct names of code", totals.methods},
        {"defined_methods", "methods in trailers", totals.defined_methods},
        {"c1", "compiled by C1", totals.c1},
        {"c2", "compiled by C2", totals.c2},
        {"graal", "compiled by Graal", totals.graal},
        {"osr", "for on-stack replacement", totals.osr},
        {"native_wrappers", "native wrappers", totals.wrappers},
        {"stubs", "stubs", totals.stubs},
        {"rows", "rows of line tables", totals.rows},
        {"tree_rows", "line tables left to trees", totals.tree_rows},
        {"trailers", "trailers", totals.trailers},
        {"trailer_bytes", "bytes of trailers", totals.trailer_bytes},
        {"inline_nodes", "nodes of inline trees", totals.inline_nodes},
        {"ranges", "ranges of inline trees", totals.ranges},
        {"first_load", "first LOAD's stamp", totals.first_stamp},
        {"last_load", "last LOAD's stamp", totals.last_stamp},
        {"broken_records", "broken records", totals.broken_records},
        {"torn_bytes", "bytes of a torn tail", totals.torn_bytes},
        {"unread_bytes", "bytes not readable", totals.unread_bytes},
    };
    status = STATUS_FAILED;
    if (error) {
        error_message("failed to count %s: no memory", path);
    } else if (json) {
        status = print_json(path, reader, &totals, fields, sizeof(fields) / sizeof(*fields));
    } else {
        print_text(path, reader, &totals, fields, sizeof(fields) / sizeof(*fields));
        status = finish_output();
    }
    free(totals.name_hashes);
    jitdump_reader_close(reader);
    return status;
}

const struct verb verb_stat = {
    .name = "stat",
    .words = VERB_HAS_ONE_FILE,
    .run = run,
    .confined = true,
    .usage = "[--json] FILE",
    .help =
        "Counts what a jitdump holds: records and bytes of each kind, code, rows of line tables,\n"
        "methods, trailers, inline trees, and what of it cannot be read.\n"
        "  -j, --json   as a JSON object\n",
};
