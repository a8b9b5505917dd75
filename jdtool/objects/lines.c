#include "jdtool/objects/lines.h"

#include "jdtool/base/array.h"
#include "jdtool/base/clock.h"
#include "jdtool/base/hash_map.h"
#include "jdtool/base/intern.h"
#include "jdtool/objects/symbols.h"

#include <dwarf.h>
#include <stdlib.h>
#include <time.h>

#define NESTED_MAX  16 /* ranges that hold others */
#define DEPTH_MAX   64 /* of namespaces, and of blocks in a function */
#define CHAIN_MAX   OBJECT_INLINES_MAX
#define STRINGS_MAX 16384

struct range {
    uint64_t start;
    uint64_t end;
    uint64_t of; /* a unit's number, or the offset of a function's DIE */
};

struct ranges {
    struct range *list;
    uint32_t count;
    uint32_t room;
};

struct unit {
    Dwarf_Off die;
    uint64_t size; /* in bytes: no walk in it can meet more DIEs */
    bool loaded;
    struct ranges functions;
};

struct answer {
    uint64_t address;
    uint32_t first; /* in inlines */
    uint32_t count;
};

struct lines {
    Dwarf *dwarf;
    struct unit *units;
    uint32_t unit_count;
    uint32_t unit_room;
    struct ranges unit_ranges;
    uint32_t function_ranges; /* of all units */

    uint64_t patience, spent; /* ns of the processor's time */
    uint64_t began;           /* what is going on; the same */
    bool given_up;

    struct hash_map by_address;
    struct answer *answers;
    uint32_t answer_count;
    uint32_t answer_room;
    struct object_inline *inlines;
    uint32_t inline_count;
    uint32_t inline_room;
    struct intern names;
};

/* ---- Time ---- */

/* Each of many entries may name the same long list of ranges: their number alone is no bound. */
static bool goes_on(struct lines *lines, uint64_t step)
{
    if (step % 64 == 0 &&
        lines->spent + clock_ns(CLOCK_THREAD_CPUTIME_ID) - lines->began > lines->patience) {
        lines->given_up = true;
    }
    return !lines->given_up;
}

static void count_time(struct lines *lines)
{
    uint64_t took = clock_ns(CLOCK_THREAD_CPUTIME_ID) - lines->began;
    lines->spent += took > LINES_QUICK_NS ? took : 0;
}

/* ---- Ranges ---- */

static bool add_range(struct ranges *ranges, uint64_t start, uint64_t end, uint64_t of)
{
    if (start >= end) {
        return true;
    }
    if (ranges->count >= LINES_RANGES_MAX ||
        ARRAY_RESERVE(ranges->list, ranges->count, ranges->room)) {
        return false;
    }
    ranges->list[ranges->count++] = (struct range){start, end, of};
    return true;
}

static int by_start(const void *left, const void *right)
{
    const struct range *a = left;
    const struct range *b = right;
    return ORDER(a->start, b->start) ?: ORDER(a->of, b->of);
}

static void sort_ranges(struct ranges *ranges)
{
    if (ranges->count) {
        qsort(ranges->list, ranges->count, sizeof *ranges->list, by_start);
    }
}

static const struct range *range_at(const struct ranges *ranges, uint64_t address)
{
    uint32_t low;
    ARRAY_FIRST(low, ranges->count, ranges->list[low].start <= address);
    for (uint32_t i = low; i-- > 0 && low - i <= NESTED_MAX;) {
        if (address < ranges->list[i].end) {
            return &ranges->list[i];
        }
    }
    return NULL;
}

/* Adds where a DIE's code is. */
static bool add_die(struct ranges *ranges, Dwarf_Die *die, uint64_t of)
{
    Dwarf_Addr base = 0;
    Dwarf_Addr start;
    Dwarf_Addr end;
    for (ptrdiff_t at = 0; (at = dwarf_ranges(die, at, &base, &start, &end)) > 0;) {
        if (!add_range(ranges, start, end, of)) {
            return false;
        }
    }
    return true;
}

/* ---- Units ---- */

/* Its DWARF is in another file, which libdw would open by a name that is in this one. */
static bool is_split(Dwarf_Die *die)
{
    return dwarf_hasattr(die, DW_AT_GNU_dwo_name) || dwarf_hasattr(die, DW_AT_dwo_name);
}

static void read_units(struct lines *lines)
{
    Dwarf_Off offset = 0;
    Dwarf_Off next;
    size_t header_size;
    while (lines->unit_count < LINES_UNITS_MAX && goes_on(lines, lines->unit_count) &&
           dwarf_nextcu(lines->dwarf, offset, &next, &header_size, NULL, NULL, NULL) == 0 &&
           next > offset) {
        Dwarf_Die die;
        uint32_t number = lines->unit_count;
        if (dwarf_offdie(lines->dwarf, offset + header_size, &die) &&
            dwarf_tag(&die) == DW_TAG_compile_unit && !is_split(&die)) {
            if (ARRAY_RESERVE(lines->units, number, lines->unit_room)) {
                break;
            }
            lines->units[lines->unit_count++] =
                (struct unit){.die = offset + header_size, .size = next - offset};
            if (!add_die(&lines->unit_ranges, &die, number)) {
                break;
            }
        }
        offset = next;
    }
    sort_ranges(&lines->unit_ranges);
}

struct lines *lines_new(Dwarf *dwarf, uint64_t patience)
{
    struct lines *lines = calloc(1, sizeof *lines);
    if (lines) {
        lines->dwarf = dwarf;
        lines->patience = patience;
        lines->began = clock_ns(CLOCK_THREAD_CPUTIME_ID);
        read_units(lines);
        count_time(lines);
    }
    return lines;
}

static void forget_functions(struct lines *lines)
{
    for (uint32_t i = 0; i < lines->unit_count; i++) {
        free(lines->units[i].functions.list);
        lines->units[i].functions = (struct ranges){0};
        lines->units[i].loaded = false;
    }
    lines->function_ranges = 0;
}

static void forget_answers(struct lines *lines)
{
    hash_map_clear(&lines->by_address);
    lines->answer_count = 0;
    lines->inline_count = 0;
    intern_free(&lines->names);
    lines->names = (struct intern){0};
}

void lines_free(struct lines *lines)
{
    if (!lines) {
        return;
    }
    forget_functions(lines);
    forget_answers(lines);
    hash_map_free(&lines->by_address);
    free(lines->answers);
    free(lines->inlines);
    free(lines->unit_ranges.list);
    free(lines->units);
    free(lines);
}

static bool holds_functions(int tag)
{
    return tag == DW_TAG_namespace || tag == DW_TAG_module || tag == DW_TAG_structure_type ||
           tag == DW_TAG_class_type || tag == DW_TAG_union_type;
}

/* All functions of a unit, those in namespaces and classes included. */
static void load_functions(struct lines *lines, struct unit *unit, Dwarf_Die *unit_die)
{
    Dwarf_Die path[DEPTH_MAX];
    unsigned depth = 0;
    uint64_t left = unit->size;
    unit->loaded = true;
    bool more = dwarf_child(unit_die, &path[0]) == 0;
    while (more && left-- > 0 && goes_on(lines, left)) {
        Dwarf_Die *die = &path[depth];
        int tag = dwarf_tag(die);
        if (tag == DW_TAG_subprogram && !add_die(&unit->functions, die, dwarf_dieoffset(die))) {
            break;
        }
        if (holds_functions(tag) && depth + 1 < DEPTH_MAX && dwarf_child(die, die + 1) == 0) {
            depth++;
            continue;
        }
        while ((more = dwarf_siblingof(&path[depth], &path[depth]) == 0) == false && depth > 0) {
            depth--;
        }
    }
    sort_ranges(&unit->functions);
    lines->function_ranges += unit->functions.count;
}

/* ---- One address ---- */

/* The functions an address lies in, outermost first. */
struct chain {
    Dwarf_Die dies[CHAIN_MAX];
    unsigned count;
};

/* Goes down from a function into what was inlined at the address. */
static void descend(struct lines *lines, struct chain *chain, uint64_t address, uint64_t left)
{
    Dwarf_Die die;
    unsigned depth = 0;
    bool more = dwarf_child(&chain->dies[0], &die) == 0;
    while (more && left-- > 0 && goes_on(lines, left)) {
        int tag = dwarf_tag(&die);
        bool code = tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block ||
                    tag == DW_TAG_try_block || tag == DW_TAG_catch_block;
        if (code && dwarf_haspc(&die, address) > 0) {
            if (tag == DW_TAG_inlined_subroutine) {
                if (chain->count == CHAIN_MAX) {
                    return;
                }
                chain->dies[chain->count++] = die;
            }
            Dwarf_Die child = {0};
            more = ++depth < DEPTH_MAX * 4 && dwarf_child(&die, &child) == 0;
            die = child;
        } else {
            more = dwarf_siblingof(&die, &die) == 0;
        }
    }
}

/* The attribute of the DIE, or of the one it is an instance of. */
static uint32_t number_of(Dwarf_Die *die, unsigned name)
{
    Dwarf_Attribute attribute;
    Dwarf_Word value;
    if (!dwarf_attr_integrate(die, name, &attribute) || dwarf_formudata(&attribute, &value) != 0 ||
        value > UINT32_MAX) {
        return 0;
    }
    return (uint32_t)value;
}

static const char *string_of(Dwarf_Die *die, unsigned name)
{
    Dwarf_Attribute attribute;
    return dwarf_attr_integrate(die, name, &attribute) ? dwarf_formstring(&attribute) : NULL;
}

static const char *name_of(struct lines *lines, Dwarf_Die *die)
{
    char text[DEMANGLE_INPUT_MAX];
    const char *name = string_of(die, DW_AT_linkage_name);
    name = name ? name : string_of(die, DW_AT_MIPS_linkage_name);
    if (name && demangle(name, text, sizeof text)) {
        return intern(&lines->names, text);
    }
    return name ? name : string_of(die, DW_AT_name);
}

static const char *call_file(Dwarf_Die *unit, Dwarf_Die *inlined)
{
    Dwarf_Files *files;
    size_t count;
    uint32_t number = number_of(inlined, DW_AT_call_file);
    Dwarf_Half version = 0;
    (void)dwarf_cu_info(unit->cu, &version, NULL, NULL, NULL, NULL, NULL, NULL);
    /* Number 0 is no file before DWARF 5, and since then the unit's own, which clang makes use of.
     */
    if ((!number && version < 5) || !dwarf_hasattr(inlined, DW_AT_call_file) ||
        dwarf_getsrcfiles(unit, &files, &count) != 0 || number >= count) {
        return NULL;
    }
    return dwarf_filesrc(files, number, NULL, NULL);
}

static bool add_inline(struct lines *lines, const struct object_inline *one)
{
    if (ARRAY_RESERVE(lines->inlines, lines->inline_count, lines->inline_room)) {
        return false;
    }
    lines->inlines[lines->inline_count++] = *one;
    return true;
}

/* Writes the frames of an address behind those that are there. */
static void look_up(struct lines *lines, uint64_t address)
{
    const struct range *in_unit = range_at(&lines->unit_ranges, address);
    struct unit *unit = in_unit ? &lines->units[in_unit->of] : NULL;
    Dwarf_Die die;
    if (!unit || !dwarf_offdie(lines->dwarf, unit->die, &die)) {
        return;
    }
    if (!unit->loaded) {
        if (lines->function_ranges > LINES_RANGES_MAX) {
            forget_functions(lines);
        }
        load_functions(lines, unit, &die);
    }
    struct chain chain = {.count = 0};
    const struct range *function = range_at(&unit->functions, address);
    if (function && dwarf_offdie(lines->dwarf, function->of, &chain.dies[0])) {
        chain.count = 1;
        descend(lines, &chain, address, unit->size);
    }
    int line = 0;
    Dwarf_Line *row = dwarf_getsrc_die(&die, address);
    struct object_inline one = {.file = row ? dwarf_linesrc(row, NULL, NULL) : NULL};
    if (row && dwarf_lineno(row, &line) == 0 && line > 0) {
        one.line = (uint32_t)line;
    }
    if (chain.count == 0 && one.file) {
        (void)add_inline(lines, &one);
    }
    for (unsigned i = chain.count; i-- > 0;) {
        one.name = name_of(lines, &chain.dies[i]);
        one.first_line = number_of(&chain.dies[i], DW_AT_decl_line);
        if (!add_inline(lines, &one)) {
            return;
        }
        /* Where its caller was: at the call. */
        one.file = call_file(&die, &chain.dies[i]);
        one.line = number_of(&chain.dies[i], DW_AT_call_line);
    }
}

static size_t give(const struct lines *lines, const struct answer *answer,
                   const struct object_inline **inlines)
{
    *inlines = answer->count ? lines->inlines + answer->first : NULL;
    return answer->count;
}

size_t lines_at(struct lines *lines, uint64_t address, const struct object_inline **inlines)
{
    uint32_t at;
    HASH_MAP_FIND(at, &lines->by_address, address, lines->answers[at].address == address);
    if (at != HASH_MAP_NONE) {
        return give(lines, &lines->answers[at], inlines);
    }
    if (lines->given_up) {
        return 0;
    }
    if (lines->answer_count == LINES_ANSWERS_MAX || lines->names.count > STRINGS_MAX) {
        forget_answers(lines);
    }
    if (ARRAY_RESERVE(lines->answers, lines->answer_count, lines->answer_room) ||
        hash_map_add(&lines->by_address, address, lines->answer_count)) {
        return 0;
    }
    struct answer *answer = &lines->answers[lines->answer_count++];
    *answer = (struct answer){.address = address, .first = lines->inline_count};
    lines->began = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    look_up(lines, address);
    count_time(lines);
    answer->count = lines->inline_count - answer->first;
    return give(lines, answer, inlines);
}

bool lines_given_up(const struct lines *lines)
{
    return lines->given_up;
}

uint64_t lines_bytes(const struct lines *lines)
{
    return sizeof *lines + (uint64_t)lines->unit_room * sizeof *lines->units +
           ((uint64_t)lines->unit_ranges.room + lines->function_ranges) * sizeof(struct range) +
           (uint64_t)lines->answer_room * sizeof *lines->answers +
           (uint64_t)lines->inline_room * sizeof *lines->inlines +
           lines->by_address.room * sizeof *lines->by_address.slots;
}
