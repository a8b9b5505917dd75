/*
 * A DEBUG_INFO's rows end where its code does, which only the LOAD behind it tells. So a DEBUG_INFO
 * with a tree waits, its bytes as they are, until the next record: if that is not its LOAD (dumps
 * of others mix them), it goes out unchanged.
 */
#include "jdtool/inspect/convert.h"

#include "format/samply.h"
#include "jdtool/base/bytes.h"
#include "jdtool/base/intern.h"
#include "jdtool/base/message.h"
#include "jdtool/base/output_file.h"
#include "jdtool/base/verb.h"
#include "jdtool/inspect/bytecodes.h"
#include "jdtool/jitdump/samply_reader.h"
#include "jdtool/jitdump/trailer.h"

#include <byteswap.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Sources of samply's dumps ---- */

struct samply_sources {
    struct source_texts *texts;
    struct intern asked; /* paths of sources and of listings, which never are the same */
    uint64_t sources;
    uint64_t listings;
};

struct samply_sources *samply_sources_new(struct source_texts *texts)
{
    struct samply_sources *sources = calloc(1, sizeof *sources);
    if (sources) {
        sources->texts = texts;
    }
    return sources;
}

void samply_sources_free(struct samply_sources *sources)
{
    if (sources) {
        intern_free(&sources->asked);
        free(sources);
    }
}

/* Whether a path is asked for the first time. 1, 0 or -ENOMEM. */
static int first_time(struct samply_sources *sources, const char *path)
{
    uint32_t before = sources->asked.count;
    return intern(&sources->asked, path) ? sources->asked.count > before : -ENOMEM;
}

int samply_sources_have(struct samply_sources *sources, const char *path)
{
    int first = first_time(sources, path);
    return first < 0 ? first : 0;
}

static uint32_t padded(size_t size)
{
    return (uint32_t)((size + SAMPLY_ALIGN - 1) / SAMPLY_ALIGN * SAMPLY_ALIGN);
}

static void put_padded(struct bytes *out, const void *from, size_t size)
{
    static const uint8_t zeros[SAMPLY_ALIGN];
    bytes_put(out, from, size);
    bytes_put(out, zeros, padded(size) - size);
}

static int put_record(struct bytes *out, const char *path, const char *text, size_t size,
                      uint64_t timestamp, bool swapped)
{
    uint32_t path_size = padded(strlen(path) + 1);
    const uint32_t words[] = {
        SAMPLY_EMBEDDED_SOURCE_FILE,
        (uint32_t)sizeof(struct samply_embedded_source) + path_size + padded(size),
        path_size,
        (uint32_t)size,
    };
    for (int i = 0; i < 4; i++) {
        if (i == 2) {
            bytes_u64(out, swapped ? bswap_64(timestamp) : timestamp);
        }
        bytes_u32(out, swapped ? bswap_32(words[i]) : words[i]);
    }
    put_padded(out, path, strlen(path) + 1);
    put_padded(out, text, size);
    return out->failed ? -ENOMEM : 0;
}

/*
 * The path of a method's class, without a suffix, as its source's directory and the last part of
 * the class's name tell it: of java/util/HashMap.java and "java.util.HashMap$Node.getKey()",
 * "HashMap$Node.getKey" or "Ljava/util/HashMap$Node;getKey()…" it is java/util/HashMap$Node. False:
 * they tell of none.
 */
static bool class_path_of(const char *file, const char *method, char path[PATH_MAX])
{
    const char *slash = strrchr(file, '/');
    size_t directory = slash ? (size_t)(slash + 1 - file) : 0;
    const char *arguments = method + strcspn(method, "( ");
    const char *end = memchr(method, ';', (size_t)(arguments - method));
    if (!end) {
        end = memrchr(method, '.', (size_t)(arguments - method));
    }
    if (!end) {
        return false;
    }
    const char *name = end;
    while (name > method && name[-1] != '.' && name[-1] != '/') {
        name--;
    }
    name += name == method && *end == ';' && *name == 'L'; /* a class without a package */
    int size = snprintf(path, PATH_MAX, "%.*s%.*s", (int)directory, file, (int)(end - name), name);
    return name < end && size < PATH_MAX;
}

static int put_listing(struct samply_sources *sources, const char *file, const char *method,
                       uint64_t timestamp, bool swapped, struct bytes *out)
{
    char stem[PATH_MAX];
    char path[PATH_MAX + 16];
    char *class = NULL;
    size_t size;
    if (!class_path_of(file, method, stem)) {
        return 0;
    }
    snprintf(path, sizeof path, "%s.bytecode", stem);
    int err = first_time(sources, path);
    if (err <= 0) {
        return err;
    }
    snprintf(path, sizeof path, "%s.class", stem);
    err = source_texts_read(sources->texts, path, &class, &size);
    if (err || !class) {
        return err;
    }
    struct bytes text = {0};
    err = class_listing(&text, (const uint8_t *)class, size);
    if (!err && text.size > 0) {
        snprintf(path, sizeof path, "%s.bytecode", stem);
        err = put_record(out, path, (const char *)text.at, text.size, timestamp, swapped);
        sources->listings++;
    }
    bytes_free(&text);
    free(class);
    return err;
}

int samply_sources_put(struct samply_sources *sources, const char *file, const char *method,
                       uint64_t timestamp, bool swapped, struct bytes *out)
{
    char *text = NULL;
    size_t size;
    int err = first_time(sources, file);
    if (err > 0) {
        err = source_texts_read(sources->texts, file, &text, &size);
    }
    if (!err && text) {
        err = put_record(out, file, text, size, timestamp, swapped);
        sources->sources++;
        free(text);
        return err;
    }
    return err || !method ? err : put_listing(sources, file, method, timestamp, swapped, out);
}

uint64_t samply_sources_count(const struct samply_sources *sources)
{
    return sources->sources;
}

uint64_t samply_listings_count(const struct samply_sources *sources)
{
    return sources->listings;
}

/* ---- Conversion ---- */

/* Rows of one record, in bytes; the longest that real methods have are a hundredth of it. */
#define ROWS_MAX ((uint64_t)256 << 20)

struct conversion {
    struct jitdump_reader *reader;
    convert_put put;
    void *context;
    bool to_tree;
    struct convert_result *result;
    struct trailer_names *names;
    struct samply_sources *sources; /* NULL: not wanted */
    struct bytes embedded;
    struct trailer trailer;
    struct tree_rows rows;
    struct bytes waiting; /* a whole DEBUG_INFO; empty: none waits */
    uint64_t waiting_address;
    size_t waiting_rows_end; /* its offset of what stands behind the entries */
    struct bytes made;
};

static void put_u32(const struct conversion *conversion, struct bytes *bytes, uint32_t value)
{
    bytes_u32(bytes, jitdump_in_order32(conversion->reader, value));
}

static void put_u64(const struct conversion *conversion, struct bytes *bytes, uint64_t value)
{
    bytes_u64(bytes, jitdump_in_order64(conversion->reader, value));
}

static void put_header(struct conversion *conversion)
{
    const struct jitdump_header *header = jitdump_reader_header(conversion->reader);
    struct bytes *made = &conversion->made;
    made->size = 0;
    put_u32(conversion, made, JITDUMP_MAGIC);
    put_u32(conversion, made, header->version);
    put_u32(conversion, made, sizeof(*header));
    put_u32(conversion, made, header->elf_mach);
    put_u32(conversion, made, header->pad1);
    put_u32(conversion, made, header->pid);
    put_u64(conversion, made, header->timestamp);
    put_u64(conversion, made, header->flags);
    if (!made->failed) {
        conversion->put(conversion->context, made->at, made->size);
    }
}

static void put_as_it_is(struct conversion *conversion, const struct jitdump_record_view *record)
{
    conversion->put(conversion->context, record->payload - sizeof(struct jitdump_record),
                    record->total_size);
}

static void let_go(struct conversion *conversion)
{
    conversion->put(conversion->context, conversion->waiting.at, conversion->waiting.size);
    conversion->waiting.size = 0;
}

/* The bytes that the rows take, and that they stay behind ROWS_MAX; 0: they do not. */
static uint64_t rows_size(const struct tree_rows *rows)
{
    uint64_t size = 0;
    for (uint32_t i = 0; i < rows->count && size <= ROWS_MAX; i++) {
        size += sizeof(struct jitdump_debug_entry) + strlen(rows->entries[i].file) + 1;
    }
    return size <= ROWS_MAX ? size : 0;
}

static void put_rows(const struct conversion *conversion, struct bytes *bytes)
{
    for (uint32_t i = 0; i < conversion->rows.count; i++) {
        const struct jitdump_entry *row = &conversion->rows.entries[i];
        put_u64(conversion, bytes, row->address);
        put_u32(conversion, bytes, row->line);
        put_u32(conversion, bytes, row->discrim);
        bytes_string(bytes, row->file);
    }
}

/* The waiting record's trailer with or without the mark that its rows are in the tree. */
static void put_trailer(const struct conversion *conversion, struct bytes *bytes)
{
    const struct bytes *waiting = &conversion->waiting;
    const uint8_t *from = waiting->at + conversion->waiting_rows_end;
    const uint8_t *at;
    const uint8_t *end;
    const char *why;
    size_t start = bytes->size;
    if (trailer_find(conversion->reader, from, waiting->size - conversion->waiting_rows_end, &at,
                     &end, &why) <= 0) {
        return; /* it was found, and decoded, when it came */
    }
    const uint8_t *behind = end;
    struct trailer_section section;
    bytes_put(bytes, from, sizeof(struct jitdump_trailer));
    for (const uint8_t *was = at; trailer_section_next(&at, end, &section, &why) > 0; was = at) {
        if (section.tag != JITDUMP_TRAILER_TREE_ROWS) {
            bytes_put(bytes, was, (size_t)(at - was));
        }
    }
    if (conversion->to_tree) {
        bytes_uleb(bytes, JITDUMP_TRAILER_TREE_ROWS);
        bytes_uleb(bytes, 0);
    }
    uint32_t size = (uint32_t)(bytes->size - start);
    bytes_patch_u32(bytes, start + offsetof(struct jitdump_trailer, size),
                    jitdump_in_order32(conversion->reader, size));
    bytes_put(bytes, behind, (size_t)(waiting->at + waiting->size - behind));
}

/* The waiting record, with its rows or without them. */
static void put_converted(struct conversion *conversion)
{
    struct bytes *made = &conversion->made;
    bool to_tree = conversion->to_tree;
    made->size = 0;
    bytes_put(made, conversion->waiting.at, offsetof(struct jitdump_debug_info, nr_entry));
    put_u64(conversion, made, to_tree ? 0 : conversion->rows.count);
    if (!to_tree) {
        put_rows(conversion, made);
    }
    put_trailer(conversion, made);
    uint32_t size = (uint32_t)made->size;
    bytes_patch_u32(made, offsetof(struct jitdump_record, total_size),
                    jitdump_in_order32(conversion->reader, size));
    if (!made->failed) {
        conversion->put(conversion->context, made->at, made->size);
        conversion->result->changed++;
    }
    conversion->waiting.size = 0;
}

/* Whether the waiting record's rows are just those of its tree. */
static bool has_rows_of_tree(struct conversion *conversion)
{
    struct bytes *made = &conversion->made;
    size_t size = conversion->waiting_rows_end - sizeof(struct jitdump_debug_info);
    made->size = 0;
    put_rows(conversion, made);
    return !made->failed && made->size == size &&
           memcmp(made->at, conversion->waiting.at + sizeof(struct jitdump_debug_info), size) == 0;
}

/* The waiting record's LOAD has come, and tells how far the rows go. 0 or -ENOMEM. */
static int convert_waiting(struct conversion *conversion, const struct jitdump_record_view *load)
{
    if (tree_rows_make(&conversion->trailer, conversion->names, load->load.code_addr,
                       load->load.code_size, &conversion->rows) < 0) {
        return -ENOMEM;
    }
    uint64_t size = rows_size(&conversion->rows);
    if (size == 0 && conversion->rows.count > 0) {
        conversion->result->too_large++;
        let_go(conversion);
    } else if (conversion->to_tree && !has_rows_of_tree(conversion)) {
        let_go(conversion);
    } else {
        put_converted(conversion);
    }
    return 0;
}

/* The source of a file that a record names, where it is the first. */
static void need_source(struct conversion *conversion, const struct jitdump_record_view *record,
                        const char *file, const char *method)
{
    if (samply_sources_put(conversion->sources, file, method, record->timestamp,
                           jitdump_reader_swapped(conversion->reader), &conversion->embedded) < 0) {
        conversion->embedded.failed = true;
    }
}

/* The sources that a DEBUG_INFO, whose trailer is decoded, is the first to name. */
static void put_sources(struct conversion *conversion, const struct jitdump_record_view *record)
{
    struct jitdump_entry_walk walk = {0};
    struct jitdump_entry entry;
    conversion->embedded.size = 0;
    for (uint32_t i = 0; i < conversion->trailer.node_count; i++) {
        const struct trailer_method *method =
            trailer_names_method(conversion->names, conversion->trailer.nodes[i].method);
        if (method->file) {
            need_source(conversion, record, method->file, method->name);
        }
    }
    while (jitdump_entry_next(conversion->reader, record, &walk, &entry) > 0) {
        need_source(conversion, record, entry.file, NULL);
    }
    if (!conversion->embedded.failed) {
        conversion->put(conversion->context, conversion->embedded.at, conversion->embedded.size);
    }
}

/* Takes the definitions in, and keeps the record back if it is one to be converted. */
static void take_debug_info(struct conversion *conversion, const struct jitdump_record_view *record)
{
    const uint8_t *behind;
    size_t size;
    const char *why;
    struct trailer *trailer = &conversion->trailer;
    trailer_clear(trailer);
    if (jitdump_behind_entries(conversion->reader, record, &behind, &size) == 0) {
        trailer_decode(conversion->reader, behind, size, conversion->names, trailer, &why);
    }
    if (conversion->sources) {
        put_sources(conversion, record);
    }
    if (conversion->to_tree ? trailer->range_count > 0 && !trailer->tree_rows
                            : trailer->tree_rows && record->debug_info.nr_entry == 0) {
        bytes_put(&conversion->waiting, record->payload - sizeof(struct jitdump_record),
                  record->total_size);
        conversion->waiting_address = record->debug_info.code_addr;
        conversion->waiting_rows_end = record->total_size - size;
    } else {
        put_as_it_is(conversion, record);
    }
}

/* A source that the dump had before. 0 or -ENOMEM. */
static int take_source(struct conversion *conversion, const struct jitdump_record_view *record)
{
    struct samply_source_view source;
    const char *why;
    return samply_decode_source(conversion->reader, record, &source, &why) == 0
               ? samply_sources_have(conversion->sources, source.path)
               : 0;
}

static int take(struct conversion *conversion, const struct jitdump_record_view *record)
{
    int error = 0;
    if (conversion->waiting.size > 0) {
        if (record->id == JIT_CODE_LOAD && record->load.code_addr == conversion->waiting_address) {
            error = convert_waiting(conversion, record);
        } else {
            let_go(conversion);
        }
    }
    if (conversion->sources && record->id == SAMPLY_EMBEDDED_SOURCE_FILE) {
        error = take_source(conversion, record);
    }
    conversion->result->loads += record->id == JIT_CODE_LOAD;
    if (record->id == JIT_CODE_DEBUG_INFO) {
        take_debug_info(conversion, record);
    } else {
        put_as_it_is(conversion, record);
    }
    return conversion->waiting.failed || conversion->made.failed || conversion->embedded.failed
               ? -ENOMEM
               : error;
}

static int take_all(struct conversion *conversion, const char *name)
{
    for (;;) {
        struct jitdump_record_view record;
        enum jitdump_status status = jitdump_reader_next(conversion->reader, &record);
        int error = 0;
        switch (status) {
        case JITDUMP_RECORD:
            error = take(conversion, &record);
            break;
        case JITDUMP_TORN:
            conversion->result->torn_bytes = jitdump_reader_file_size(conversion->reader) -
                                             jitdump_reader_offset(conversion->reader);
            return 0;
        case JITDUMP_END:
            return 0;
        default:
            error_message("failed to convert %s: %s at offset %#llx; jdtool repair fixes it", name,
                          jitdump_reader_error(conversion->reader),
                          (unsigned long long)jitdump_reader_offset(conversion->reader));
            return -EINVAL;
        }
        if (error) {
            error_message("failed to convert %s: no memory", name);
            return error;
        }
    }
}

int convert_dump(struct jitdump_reader *reader, const char *name, bool to_tree,
                 struct samply_sources *sources, convert_put put, void *context,
                 struct convert_result *result)
{
    *result = (struct convert_result){0};
    struct conversion conversion = {
        .reader = reader,
        .put = put,
        .context = context,
        .to_tree = to_tree,
        .sources = sources,
        .result = result,
        .names = trailer_names_new(),
    };
    int error = -ENOMEM;
    if (conversion.names) {
        put_header(&conversion);
        error = take_all(&conversion, name);
        if (!error && conversion.waiting.size > 0) {
            let_go(&conversion); /* its LOAD is missing */
        }
    } else {
        error_message("failed to convert %s: no memory", name);
    }
    trailer_names_free(conversion.names);
    trailer_free(&conversion.trailer);
    free(conversion.rows.entries);
    bytes_free(&conversion.waiting);
    bytes_free(&conversion.made);
    bytes_free(&conversion.embedded);
    return error;
}

/* ---- The verb ---- */

/* jdtool convert: line rows for stock perf out of inline trees, and back; sources for samply. */

static void put(void *context, const void *bytes, size_t size)
{
    output_file_put(context, bytes, size);
}

/* An exit_status. The dump appears under its name when it is complete. */
static int convert_file(const char *in, const char *out, bool to_tree,
                        struct samply_sources *sources)
{
    struct jitdump_reader *reader;
    struct output_file *file;
    if (jitdump_reader_open(in, &reader) < 0) {
        return STATUS_FAILED;
    }
    if (output_file_open_of(in, out, &file) < 0) {
        jitdump_reader_close(reader);
        return STATUS_FAILED;
    }
    struct convert_result result;
    int error = convert_dump(reader, in, to_tree, sources, put, file, &result);
    jitdump_reader_close(reader);
    if (error) {
        output_file_abort(file);
        return STATUS_FAILED;
    }
    if (output_file_finish(file) < 0) {
        return STATUS_FAILED;
    }
    if (result.torn_bytes) {
        warning_message("%s ends inside a record: its %" PRIu64 " bytes were left out", in,
                        result.torn_bytes);
    }
    if (result.too_large) {
        warning_message(
            "%" PRIu64
            " methods of %s have too many lines for a record: these remain in the inline trees",
            result.too_large, in);
    }
    printf("%s: %" PRIu64 " LOADs, the rows of %" PRIu64 " %s\n", in, result.loads, result.changed,
           to_tree ? "left to their inline trees" : "written out");
    if (sources) {
        printf("%s: %" PRIu64 " sources, and bytecodes of %" PRIu64 " classes without\n", in,
               samply_sources_count(sources), samply_listings_count(sources));
    }
    return finish_output();
}

/* The same, with the sources that are found in the path (NULL: nowhere). */
static int convert_with_sources(const char *in, const char *out, bool to_tree, const char *path)
{
    struct source_texts *texts;
    if (source_texts_open(path, &texts) < 0) {
        return STATUS_FAILED;
    }
    struct samply_sources *sources = samply_sources_new(texts);
    int status = STATUS_FAILED;
    if (sources) {
        status = convert_file(in, out, to_tree, sources);
    } else {
        error_message("failed to convert %s: no memory", in);
    }
    samply_sources_free(sources);
    source_texts_close(texts);
    return status;
}

struct choice {
    const char *out, *source_path;
    bool to_tree, samply;
};

static int take_lines(const struct verb *verb, void *context, const char *value)
{
    struct choice *choice = context;
    choice->to_tree = strcmp(value, "tree") == 0;
    return choice->to_tree || strcmp(value, "on") == 0
               ? STATUS_DONE
               : wrong_usage(verb, "--lines is on or tree, not '%s'", value);
}

static int run(const struct verb *verb, int argc, char **argv)
{
    static const struct verb_option options[] = {
        OPTION_TEXT("output", 'o', struct choice, out),
        OPTION_TAKE("lines", 0, take_lines),
        OPTION_FLAG("samply", 0, struct choice, samply),
        OPTION_TEXT("source-path", 0, struct choice, source_path),
        OPTION_END,
    };
    struct choice choice = {0};
    int status = verb_options(verb, argc, argv, options, &choice);
    if (status) {
        return status;
    }
    if (!choice.out) {
        return wrong_usage(verb, "-o OUT is needed");
    }
    if (choice.samply != (choice.source_path != NULL)) {
        return wrong_usage(verb, "--samply needs --source-path, and is all that does");
    }
    return choice.samply
               ? convert_with_sources(argv[optind], choice.out, choice.to_tree, choice.source_path)
               : convert_file(argv[optind], choice.out, choice.to_tree, NULL);
}

const struct verb verb_convert = {
    .name = "convert",
    .words = VERB_HAS_ONE_FILE,
    .run = run,
    .confined = true,
    .usage = "[--lines on|tree] [--samply --source-path PATH] FILE -o OUT",
    .help =
        "Makes a standard jitdump from one that the agent wrote with lines=tree: writes out the\n"
        "line rows that are only in the inline trees, for stock perf inject --jit. A dump that\n"
        "already has its rows is copied. jdtool itself does not need this.\n"
        "  -o, --output OUT      the file to write; an older one is replaced. perf expects the\n"
        "                        name jit-PID.dump\n"
        "      --lines on|tree   write rows out (default), or keep them in the trees only: a\n"
        "                        smaller dump with the same information\n"
        "      --samply          add the Java sources as samply's records; classes without\n"
        "                        source get their bytecodes as text\n"
        "      --source-path PATH\n"
        "                        directories and archives with sources or classes (src.zip,\n"
        "                        a jar, a jmod), separated by ':'\n",
};
