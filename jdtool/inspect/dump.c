/* jdtool dump: a dump as a readable listing, record by record as they stand in the file. */
#include "jdtool/base/message.h"
#include "jdtool/base/text.h"
#include "jdtool/base/verb.h"
#include "jdtool/jitdump/jitdump_reader.h"
#include "jdtool/jitdump/samply_reader.h"
#include "jdtool/jitdump/trailer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* samply's records in the listing of jdtool dump. */

/* The string at an index that the file gives. */
static void print_indexed(const char **strings, uint32_t count, uint32_t index)
{
    if (index < count) {
        text_print(stdout, strings[index]);
    } else {
        printf("?%u", index);
    }
}

static void print_function(const struct samply_inlines *inlines, uint32_t index)
{
    if (index >= inlines->function_count) {
        printf("?%u", index);
        return;
    }
    const struct samply_function *function = &inlines->functions[index];
    print_indexed(inlines->names, inlines->name_count, function->name_index);
    printf(" (");
    print_indexed(inlines->files, inlines->file_count, function->file_index);
    printf(":%u:%u)", function->start_line, function->start_column);
    if (function->flags) {
        printf(" flags %#x", function->flags);
    }
}

static void print_calls(const struct samply_inlines *inlines)
{
    uint32_t range = 0; /* the next one that no call has taken */
    for (uint32_t i = 0; i < inlines->call_count; i++) {
        const struct samply_inline_call *call = &inlines->calls[i];
        uint32_t indent = call->depth < 64 ? call->depth : 64;
        printf("    call %-4u%*s", i, (int)(indent * 2), "");
        print_function(inlines, call->function_index);
        printf(", called at %u:%u, ranges", call->call_line, call->call_column);
        for (uint32_t k = 0; k < call->range_count && range < inlines->range_count; k++, range++) {
            printf(" +%#x..+%#llx", inlines->ranges[range].offset,
                   (unsigned long long)inlines->ranges[range].offset + inlines->ranges[range].size);
        }
        putchar('\n');
    }
}

static void print_lists(const struct samply_inlines *inlines)
{
    if (inlines->function_count > 0) {
        printf("    function ");
        print_function(inlines, 0);
        putchar('\n');
    }
    print_calls(inlines);
    for (uint32_t i = 0; i < inlines->line_count; i++) {
        const struct samply_line *line = &inlines->lines[i];
        printf("    line +%#-6x ", line->offset);
        print_indexed(inlines->files, inlines->file_count, line->file_index);
        printf(":%u:%u\n", line->line, line->column);
    }
}

static void print_inlines(const struct jitdump_reader *reader,
                          const struct jitdump_record_view *record, bool brief)
{
    struct samply_inlines inlines = {0};
    const char *why;
    if (samply_decode_inlines(reader, record, &inlines, &why) < 0) {
        printf(" broken: %s\n", why);
    } else {
        printf(" functions %u calls %u ranges %u lines %u\n", inlines.function_count,
               inlines.call_count, inlines.range_count, inlines.line_count);
        if (!brief) {
            print_lists(&inlines);
        }
    }
    samply_inlines_free(&inlines);
}

/* Prints what stands behind the record's own line start; brief: one line and no more. */
static void print_samply_record(const struct jitdump_reader *reader,
                                const struct jitdump_record_view *record, bool brief)
{
    const char *why;
    struct samply_tier_view tier;
    struct samply_source_view source;
    switch (record->id) {
    case SAMPLY_JIT_CODE_DEBUG_INFO2:
        print_inlines(reader, record, brief);
        break;
    case SAMPLY_JIT_TIER:
        if (samply_decode_tier(reader, record, &tier, &why) < 0) {
            printf(" broken: %s\n", why);
            break;
        }
        printf(" color %u name ", tier.color);
        text_print(stdout, tier.name);
        putchar('\n');
        break;
    default:
        if (samply_decode_source(reader, record, &source, &why) < 0) {
            printf(" broken: %s\n", why);
            break;
        }
        printf(" text %u bytes path ", source.text_size);
        text_print(stdout, source.path);
        putchar('\n');
        break;
    }
}

struct listing {
    struct jitdump_reader *reader;
    struct trailer_names *names;
    struct trailer trailer;
    uint32_t *depth; /* of each node of the inline tree */
    uint32_t depth_room;
    bool brief;
    bool code;
    const char *name;     /* only groups whose LOAD has this in its name; NULL: everything */
    uint64_t group_start; /* then: of the group that is being read; 0: none is */
};

static void print_header(const struct jitdump_reader *reader)
{
    const struct jitdump_header *header = jitdump_reader_header(reader);
    printf("jitdump version %u, %s (e_machine %u), pid %u, stamp %" PRIu64
           ", %s byte order, header %u bytes, flags %#" PRIx64 "%s\n",
           header->version, text_machine(header->elf_mach), header->elf_mach, header->pid,
           header->timestamp, jitdump_reader_swapped(reader) ? "foreign" : "native",
           header->total_size, header->flags,
           header->flags & JITDUMP_FLAGS_ARCH_TIMESTAMP ? " (ARCH_TIMESTAMP)" : "");
}

static void print_bytes(const uint8_t *bytes, uint64_t size)
{
    for (uint64_t at = 0; at < size; at += 16) {
        printf("    +%#-8" PRIx64, at);
        for (uint64_t i = at; i < size && i < at + 16; i++) {
            printf(" %02x", bytes[i]);
        }
        putchar('\n');
    }
}

static void print_load(const struct listing *listing, const struct jitdump_record_view *record)
{
    printf(" address %#" PRIx64 " size %#" PRIx64 " index %" PRIu64 " pid %u tid %u",
           record->load.code_addr, record->load.code_size, record->load.code_index,
           record->load.pid, record->load.tid);
    if (record->load.vma != record->load.code_addr) {
        printf(" vma %#" PRIx64, record->load.vma);
    }
    if (!record->load.bytes && record->load.code_size > 0) {
        printf(" without code");
    }
    printf(" name ");
    text_print(stdout, record->load.name);
    putchar('\n');
    if (listing->code && record->load.bytes) {
        print_bytes(record->load.bytes, record->load.code_size);
    }
}

static void print_move(const struct jitdump_record_view *record)
{
    printf(" address %#" PRIx64 " from %#" PRIx64 " size %#" PRIx64 " index %" PRIu64
           " pid %u tid %u",
           record->move.new_code_addr, record->move.old_code_addr, record->move.code_size,
           record->move.code_index, record->move.pid, record->move.tid);
    if (record->move.vma != record->move.new_code_addr) {
        printf(" vma %#" PRIx64, record->move.vma);
    }
    putchar('\n');
}

static void print_method(const struct trailer_names *names, uint64_t id)
{
    const struct trailer_method *method = trailer_names_method(names, id);
    text_print(stdout, method->name);
    if (method->file) {
        printf(" (");
        text_print(stdout, method->file);
        if (method->first_line) {
            printf(":%u", method->first_line);
        }
        printf(")");
    }
}

static void print_tree(struct listing *listing)
{
    const struct trailer *trailer = &listing->trailer;
    if (trailer->node_count > listing->depth_room) {
        uint32_t *depth = realloc(listing->depth, trailer->node_count * sizeof(*depth));
        if (!depth) {
            printf("    inline tree of %u nodes: no memory to print it\n", trailer->node_count);
            return;
        }
        listing->depth = depth;
        listing->depth_room = trailer->node_count;
    }
    for (uint32_t i = 0; i < trailer->node_count; i++) {
        const struct trailer_node *node = &trailer->nodes[i];
        listing->depth[i] = i == 0 ? 0 : listing->depth[node->parent] + 1;
        /* Deeper than anybody reads, and a hostile tree could make the listing's size explode. */
        uint32_t indent = listing->depth[i] < 64 ? listing->depth[i] : 64;
        printf("    node %-4u%*s", i, (int)(indent * 2), "");
        print_method(listing->names, node->method);
        if (i > 0) {
            printf(", called by node %u", node->parent);
            if (node->call_line) {
                printf(" at line %u", node->call_line);
            }
        }
        putchar('\n');
    }
    for (uint32_t i = 0; i < trailer->range_count; i++) {
        const struct trailer_range *range = &trailer->ranges[i];
        printf("    range +%#x..+%#x node %u line %u ", range->offset, range->offset + range->size,
               range->node, range->line);
        text_print(stdout,
                   trailer_names_method(listing->names, trailer->nodes[range->node].method)->name);
        putchar('\n');
    }
}

static const char *kind_name(int64_t kind)
{
    switch (kind) {
    case JITDUMP_KIND_NMETHOD:
        return "nmethod";
    case JITDUMP_KIND_NATIVE_WRAPPER:
        return "native wrapper";
    case JITDUMP_KIND_STUB:
        return "stub";
    case JITDUMP_KIND_INTERPRETER:
        return "interpreter";
    default:
        return "unknown";
    }
}

static void print_facts(const int64_t *facts)
{
    static const char *const labels[] = {
        [JITDUMP_CODE_KIND] = "kind",
        [JITDUMP_CODE_TIER] = "tier",
        [JITDUMP_CODE_FRAME_SIZE] = "frame size",
        [JITDUMP_CODE_VERIFIED_ENTRY] = "verified entry +",
        [JITDUMP_CODE_OSR_ENTRY] = "OSR entry +",
        [JITDUMP_CODE_OSR_BCI] = "OSR bci",
        [JITDUMP_CODE_COMPILE_ID] = "compile id",
        [JITDUMP_CODE_FRAME_COMPLETE] = "frame complete +",
        [JITDUMP_CODE_FROZEN_TAIL] = "Continuation.tail +",
        [JITDUMP_CODE_FROZEN_PARENT] = "StackChunk.parent +",
        [JITDUMP_CODE_FROZEN_SIZE] = "size +",
        [JITDUMP_CODE_FROZEN_SP] = "sp +",
        [JITDUMP_CODE_FROZEN_BOTTOM] = "bottom +",
        [JITDUMP_CODE_FROZEN_ARGSIZE] = "argsize +",
        [JITDUMP_CODE_FROZEN_STACK] = "stack +",
        [JITDUMP_CODE_FROZEN_OOP] = "bytes of a reference",
        [JITDUMP_CODE_LATE] = "ms late",
    };
    const char *between = "    facts ";
    for (int key = JITDUMP_CODE_KIND; key < JITDUMP_CODE_KEYS; key++) {
        if (facts[key] < 0) {
            continue;
        }
        bool offset = labels[key][strlen(labels[key]) - 1] == '+';
        printf(offset ? "%s%s%#" PRIx64 : "%s%s %" PRId64, between, labels[key], facts[key]);
        if (key == JITDUMP_CODE_KIND) {
            printf(" (%s)", kind_name(facts[key]));
        }
        between = ", ";
    }
    if (*between == ',') {
        putchar('\n');
    }
}

/* Takes in what later trailers refer to, of a record that may never be printed. */
static void take_definitions(struct listing *listing, const struct jitdump_record_view *record)
{
    const uint8_t *behind;
    size_t size;
    const char *why;
    (void)jitdump_behind_entries(listing->reader, record, &behind, &size);
    trailer_decode(listing->reader, behind, size, listing->names, &listing->trailer, &why);
}

static void print_trailer(struct listing *listing, const uint8_t *bytes, size_t size)
{
    const char *why;
    if (trailer_decode(listing->reader, bytes, size, listing->names, &listing->trailer, &why) < 0) {
        printf("    trailer broken: %s\n", why);
        return;
    }
    if (!listing->brief) {
        print_tree(listing);
        print_facts(listing->trailer.facts);
        if (listing->trailer.tree_rows) {
            printf("    rows are in the tree\n");
        }
    }
}

static void print_debug_info(struct listing *listing, const struct jitdump_record_view *record)
{
    uint64_t code = record->debug_info.code_addr;
    printf(" address %#" PRIx64 " rows %" PRIu64 "\n", code, record->debug_info.nr_entry);
    struct jitdump_entry_walk walk = {0};
    struct jitdump_entry entry;
    int more;
    while ((more = jitdump_entry_next(listing->reader, record, &walk, &entry)) > 0) {
        if (listing->brief) {
            continue;
        }
        if (entry.address >= code) {
            printf("    row +%#-6" PRIx64 " ", entry.address - code);
        } else {
            printf("    row %#" PRIx64 " ", entry.address);
        }
        text_print(stdout, entry.file);
        printf(":%u", entry.line);
        printf(entry.discrim ? " discriminator %u\n" : "\n", entry.discrim);
    }
    if (more < 0) {
        printf("    broken: the record ends inside row %" PRIu64 "\n", walk.index);
        return;
    }
    print_trailer(listing, record->debug_info.entries + walk.at,
                  record->debug_info.entries_size - walk.at);
}

static void print_record(struct listing *listing, const struct jitdump_record_view *record)
{
    printf("%#010" PRIx64 " %-18s %" PRIu64 " %u bytes", record->offset, text_record_id(record->id),
           record->timestamp, record->total_size);
    switch (record->id) {
    case JIT_CODE_LOAD:
        print_load(listing, record);
        break;
    case JIT_CODE_MOVE:
        print_move(record);
        break;
    case JIT_CODE_DEBUG_INFO:
        print_debug_info(listing, record);
        break;
    case JIT_CODE_UNWINDING_INFO:
        printf(" unwinding %" PRIu64 " header %" PRIu64 " mapped %" PRIu64 "\n",
               record->unwinding_info.data_size, record->unwinding_info.eh_frame_hdr_size,
               record->unwinding_info.mapped_size);
        break;
    case JIT_CODE_CLOSE:
        putchar('\n');
        break;
    default:
        if (samply_knows(record->id)) {
            print_samply_record(listing->reader, record, listing->brief);
        } else {
            printf(" id %u (%#x)\n", record->id, record->id);
        }
        break;
    }
}

/* Prints the records from the group's start to the LOAD, which has just been read. */
static void print_group(struct listing *listing, const struct jitdump_record_view *load)
{
    uint64_t end = load->offset + load->total_size;
    jitdump_reader_seek(listing->reader,
                        listing->group_start ? listing->group_start : load->offset);
    while (jitdump_reader_offset(listing->reader) < end) {
        struct jitdump_record_view record;
        if (jitdump_reader_next(listing->reader, &record) == JITDUMP_RECORD) {
            print_record(listing, &record);
        }
    }
}

/* What --name asks for: a group is printed when its LOAD has come. */
static void search_record(struct listing *listing, const struct jitdump_record_view *record)
{
    switch (record->id) {
    case JIT_CODE_LOAD:
        if (strstr(record->load.name, listing->name)) {
            print_group(listing, record);
        }
        listing->group_start = 0;
        return;
    case JIT_CODE_MOVE:
    case JIT_CODE_CLOSE:
        listing->group_start = 0;
        return;
    case JIT_CODE_DEBUG_INFO:
        take_definitions(listing, record);
        break;
    default:
        break;
    }
    if (!listing->group_start) {
        listing->group_start = record->offset;
    }
}

/* An exit_status: broken places are shown where they are, and make the verb fail at the end. */
static int print_records(struct listing *listing)
{
    int status = STATUS_DONE;
    for (;;) {
        struct jitdump_record_view record;
        switch (jitdump_reader_next(listing->reader, &record)) {
        case JITDUMP_RECORD:
            if (listing->name) {
                search_record(listing, &record);
            } else {
                print_record(listing, &record);
            }
            break;
        case JITDUMP_BROKEN:
            printf("%#010" PRIx64 " broken: %s\n", record.offset,
                   jitdump_reader_error(listing->reader));
            status = STATUS_FAILED;
            break;
        case JITDUMP_TORN:
            printf("%#010" PRIx64 " torn: %s\n", record.offset,
                   jitdump_reader_error(listing->reader));
            return STATUS_FAILED;
        case JITDUMP_BAD:
            printf("%#010" PRIx64 " broken: %s; the rest cannot be read (see jdtool repair)\n",
                   record.offset, jitdump_reader_error(listing->reader));
            return STATUS_FAILED;
        case JITDUMP_END:
            return status;
        }
    }
}

static int run(const struct verb *verb, int argc, char **argv)
{
    static const struct verb_option options[] = {
        OPTION_FLAG("brief", 'b', struct listing, brief),
        OPTION_FLAG("code", 'c', struct listing, code),
        OPTION_TEXT("name", 'n', struct listing, name),
        OPTION_END,
    };
    struct listing listing = {0};
    int status = verb_options(verb, argc, argv, options, &listing);
    if (status) {
        return status;
    }
    if (jitdump_reader_open(argv[optind], &listing.reader) < 0) {
        return STATUS_FAILED;
    }
    status = STATUS_FAILED;
    listing.names = trailer_names_new();
    if (listing.names) {
        print_header(listing.reader);
        status = print_records(&listing);
    } else {
        error_message("failed to list %s: no memory", argv[optind]);
    }
    trailer_free(&listing.trailer);
    trailer_names_free(listing.names);
    free(listing.depth);
    jitdump_reader_close(listing.reader);
    int output = finish_output();
    return output ? output : status;
}

const struct verb verb_dump = {
    .name = "dump",
    .words = VERB_HAS_ONE_FILE,
    .run = run,
    .confined = true,
    .usage = "[--brief] [--code] [--name TEXT] FILE",
    .help =
        "Lists the records of a jitdump: for each its offset in the file, kind, time stamp and "
        "size,\n"
        "then what it says; with source lines, the tree of inlined methods and what the JVM knew\n"
        "of the code. Torn and broken places are shown where they are, and make the exit status "
        "1.\n"
        "  -b, --brief   one line a record: no source lines, no inline tree\n"
        "  -c, --code    the code bytes as well\n"
        "  -n, --name TEXT   only code whose name contains TEXT\n",
};
