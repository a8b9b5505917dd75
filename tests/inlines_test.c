/* Makes inline trees and line tables from what HotSpot reports of a compiled method. */
#include "test.h"

#include "agent/methods/inlines.h"
#include "agent/methods/source_map.h"

#include "tests/random.h"
#include "tests/sanitized.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Methods 0 to 25, "A" to "Z": bytecode b of method i has line 100 * (i + 1) + b / 10. */
enum { METHODS = 26, LINES = 8 };
static struct source_file files[METHODS];
static struct line_entry lines[METHODS][LINES];
static struct java_method methods[METHODS];
static const char *const names[METHODS] = {"A", "B", "C", "D", "E", "F", "G", "H", "I",
                                           "J", "K", "L", "M", "N", "O", "P", "Q", "R",
                                           "S", "T", "U", "V", "W", "X", "Y", "Z"};
static int resolved; /* calls of the resolver */

static int make_methods(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < METHODS; i++) {
        for (uint32_t n = 0; n < LINES; n++) {
            lines[i][n] = (struct line_entry){.bci = n * 10, .line = 100 * (i + 1) + n};
        }
        files[i] = (struct source_file){.path = names[i], .id = i + 1};
        methods[i] = (struct java_method){
            .method = {.name = names[i], .file = &files[i], .first_line = 100 * (i + 1)},
            .lines = lines[i],
            .line_count = LINES};
    }
    return 0;
}

static uint64_t id_of(int method)
{
    return (uint64_t)(0x1000 + 8 * method);
}

static int method_of(uint64_t id)
{
    return (int)(((uintptr_t)id - 0x1000) / 8);
}

/* Knows A to Y. */
static const struct java_method *resolve(void *context, method_key key, const void *id)
{
    (void)context;
    assert_null(id);
    resolved++;
    return method_of(key) < METHODS - 1 ? &methods[method_of(key)] : NULL;
}

static struct inline_builder *builder;
static struct code code;

static void begin(enum inline_depth depth, uint32_t size)
{
    inline_builder_begin(builder, depth, size, id_of(0), &methods[0], resolve, NULL);
}

/* "A10 B5 C0": the stack from the compiled method inwards, each method at a bytecode. */
static void add(uint32_t end, const char *stack)
{
    uint64_t ids[64];
    int32_t bcis[64];
    int32_t depth = 0;
    for (const char *p = stack; *p; p += strspn(p, " ")) {
        memmove(ids + 1, ids, (size_t)depth * sizeof(*ids));
        memmove(bcis + 1, bcis, (size_t)depth * sizeof(*bcis));
        ids[0] = id_of(*p - 'A');
        char *next = NULL;
        bcis[0] = (int32_t)strtol(p + 1, &next, 10);
        depth++;
        p = next;
    }
    inline_builder_add(builder, end, ids, bcis, depth);
}

static void finish(void)
{
    assert_int_equal(inline_builder_finish(builder, &code), 0);
}

static void assert_row(uint32_t i, uint32_t offset, const char *file, uint32_t line)
{
    assert_true(i < code.row_count);
    assert_int_equal(code.rows[i].offset, offset);
    assert_string_equal(code.rows[i].file->path, file);
    assert_int_equal(code.rows[i].line, line);
}

static void assert_node(uint32_t i, const char *method, uint32_t parent, uint32_t call_line)
{
    assert_true(i < code.node_count);
    assert_string_equal(code.nodes[i].method->name, method);
    assert_int_equal(code.nodes[i].parent, parent);
    assert_int_equal(code.nodes[i].call_line, call_line);
}

static void assert_range(uint32_t i, uint32_t offset, uint32_t node, uint32_t line)
{
    assert_true(i < code.range_count);
    assert_int_equal(code.ranges[i].offset, offset);
    assert_int_equal(code.ranges[i].node, node);
    assert_int_equal(code.ranges[i].line, line);
}

TEST(a_pc_ends_its_range)
{
    begin(INLINE_FULL, 100);
    add(20, "A0");
    add(30, "A10 B20");
    add(70, "A10");
    finish();
    assert_int_equal(code.row_count, 4);
    assert_row(0, 0, "A", 100);
    assert_row(1, 20, "B", 202);
    assert_row(2, 30, "A", 101);
    assert_row(3, 70, "A", 100); /* code of no bytecode: the compiled method's first line */
    assert_int_equal(code.node_count, 2);
    assert_node(0, "A", 0, 0);
    assert_node(1, "B", 0, 101);
    assert_int_equal(code.range_count, 3);
    assert_range(0, 0, 0, 100);
    assert_range(1, 20, 1, 202);
    assert_range(2, 30, 0, 101);
    assert_int_equal(code.ranges_end, 70);
}

TEST(neighbours_share_rows_ranges_and_nodes)
{
    begin(INLINE_FULL, 60);
    add(10, "A10 B20");
    add(20, "A10 B21"); /* the same lines */
    add(30, "A11 B20"); /* called by another bytecode of the same line */
    add(40, "A10 C0");
    add(50, "A20 B20"); /* another call */
    add(60, "A10 B20"); /* the first node again */
    finish();
    assert_int_equal(code.range_count, 4);
    assert_int_equal(code.node_count, 4);
    assert_node(1, "B", 0, 101);
    assert_node(2, "C", 0, 101);
    assert_node(3, "B", 0, 102);
    assert_range(0, 0, 1, 202);
    assert_range(1, 30, 2, 300);
    assert_range(2, 40, 3, 202);
    assert_range(3, 50, 1, 202);
    assert_int_equal(code.row_count, 3); /* B at line 202 is one row, wherever it was called */
    assert_int_equal(code.ranges_end, 60);
}

TEST(nodes_come_depth_first)
{
    begin(INLINE_FULL, 60);
    add(10, "A0 B0 C0");
    add(20, "A10 D0");
    add(30, "A0 B10 E0"); /* back under B */
    add(40, "A0 B0 C0 F0");
    add(50, "A10 D0 G0");
    finish();
    assert_int_equal(code.node_count, 7);
    assert_node(0, "A", 0, 0);
    assert_node(1, "B", 0, 100);
    assert_node(2, "C", 1, 200);
    assert_node(3, "F", 2, 300);
    assert_node(4, "E", 1, 201);
    assert_node(5, "D", 0, 101);
    assert_node(6, "G", 5, 400);
    assert_range(0, 0, 2, 300);
    assert_range(1, 10, 5, 400);
    assert_range(2, 20, 4, 500);
    assert_range(3, 30, 3, 600);
    assert_range(4, 40, 6, 700);
}

/* The only node that is out of order comes back below a node that has children. */
TEST(a_node_that_comes_back_is_put_in_order)
{
    begin(INLINE_FULL, 40);
    add(10, "A0 B0");
    add(20, "A0 C0");
    add(30, "A0 B0 D0");
    add(40, "A0 B0 E0");
    finish();
    assert_int_equal(code.node_count, 5);
    assert_node(0, "A", 0, 0);
    assert_node(1, "B", 0, 100);
    assert_node(2, "D", 1, 200);
    assert_node(3, "E", 1, 200);
    assert_node(4, "C", 0, 100);
    assert_range(1, 10, 4, 300);
    assert_range(3, 30, 3, 500);
    /* A second child, of a node that is not the last one's way up. */
    begin(INLINE_FULL, 50);
    add(10, "A0 B0");
    add(20, "A0 B10 C0");
    add(30, "A0 D0");
    add(40, "A0 B10 E0");
    finish();
    assert_node(1, "B", 0, 100);
    assert_node(2, "C", 1, 201);
    assert_node(3, "E", 1, 201);
    assert_node(4, "D", 0, 100);
}

TEST(rows_differ_by_their_files_too)
{
    lines[1][0].line = 101; /* A's line, in another file */
    begin(INLINE_FULL, 30);
    add(10, "A10");
    add(20, "A10 B0");
    add(30, "A10");
    finish();
    assert_int_equal(code.row_count, 3);
    assert_row(0, 0, "A", 101);
    assert_row(1, 10, "B", 101);
    assert_row(2, 20, "A", 101);
    make_methods(NULL);
}

/* The first row that is known counts from the code's start: readers look below no row. */
TEST(the_first_row_is_at_the_start)
{
    methods[0].method.file = NULL;
    begin(INLINE_FULL, 30);
    add(10, "A10");
    add(20, "A10 B0");
    finish();
    assert_int_equal(code.row_count, 1);
    assert_row(0, 0, "B", 200);
    make_methods(NULL);
}

TEST(no_place_is_behind_the_end)
{
    begin(INLINE_FULL, 30);
    add(10, "A10");
    add(31, "A10 B0");
    finish();
    assert_int_equal(code.ranges_end, 30);
}

TEST(lines_that_are_unknown)
{
    methods[1].line_count = 0; /* B has no table */
    methods[2].method.file = NULL;
    begin(INLINE_FULL, 60);
    add(10, "A10 B5");
    add(20, "A10 B5 C10");
    add(30, "A20 D-1"); /* the way into D */
    finish();
    assert_range(0, 0, 1, 0);
    assert_range(1, 10, 2, 301);
    assert_node(2, "C", 1, 0);
    assert_range(2, 20, 3, 400);
    assert_row(0, 0, "A", 101); /* outwards, to the first that is known */
    assert_row(1, 20, "D", 400);
    assert_row(2, 30, "A", 100);
    assert_int_equal(code.row_count, 3);
    make_methods(NULL);
}

TEST(methods_that_are_unknown)
{
    begin(INLINE_FULL, 60);
    add(10, "A10 Z5 B10"); /* what an unknown method called counts as its caller's */
    add(20, "B10 C10");    /* not a stack of A's */
    add(30, "");
    finish();
    assert_int_equal(code.node_count, 1);
    assert_range(0, 0, 0, 101);
    assert_range(1, 10, 0, 0);
    assert_int_equal(code.range_count, 2);
    assert_row(0, 0, "A", 101);
    assert_row(1, 10, "A", 100);
    assert_int_equal(code.ranges_end, 30);
}

TEST(places_out_of_order_or_outside)
{
    begin(INLINE_FULL, 60);
    add(0, "A10");
    add(20, "A20");
    add(20, "A30");
    add(10, "A40");
    add(100, "A50");
    add(200, "A60");
    finish();
    assert_int_equal(code.range_count, 2);
    assert_range(0, 0, 0, 102);
    assert_range(1, 20, 0, 105);
    assert_int_equal(code.ranges_end, 60);
    assert_int_equal(code.row_count, 2);

    begin(INLINE_FULL, 0);
    add(10, "A10");
    finish();
    assert_int_equal(code.row_count + code.range_count + code.node_count, 0);
}

/* Of C2's code, a place at a call that was inlined is where those around it are; not where it ends
 * behind a call, nor where nothing more is known. */
TEST(a_late_inlined_call_has_no_code_of_others)
{
    static const uint8_t bytes[100] = {[65] = 0xe8};
    begin(INLINE_FULL, 100);
    inline_builder_of_c2(builder, bytes);
    add(10, "A0 B10");      /* the loop */
    add(20, "A20 C20");     /* its unrolled part, said to be at the call of D */
    add(30, "A0 B30");      /* the loop's end */
    add(40, "A20 C20");     /* again, before the method that it is in */
    add(50, "A20 C20 D10"); /* what was inlined there */
    add(60, "A20 C30");     /* another bytecode */
    add(70, "A20 C20");     /* a call: where the type is another one */
    add(80, "A0");          /* the same in the compiled method itself */
    add(90, "A20 C20");     /* nothing behind it */
    finish();
    assert_range(0, 0, 1, 201);
    assert_range(1, 10, 1, 203);
    assert_range(2, 30, 0, 102);
    assert_range(3, 40, 3, 401);
    assert_range(4, 50, 2, 303);
    assert_range(5, 60, 2, 302);
    assert_range(6, 70, 0, 100);
    assert_range(7, 80, 2, 302);
    assert_int_equal(code.range_count, 8);
    assert_row(1, 10, "B", 203);
    assert_row(2, 30, "A", 102);
}

TEST(nothing_known_at_all)
{
    begin(INLINE_FULL, 60);
    finish();
    assert_int_equal(code.row_count, 1);
    assert_row(0, 0, "A", 100);
    assert_int_equal(code.node_count, 0);
    begin(INLINE_FULL, 60);
    assert_int_equal(inline_builder_finish(builder, &code), 0);
}

TEST(leaf_and_off_have_rows_only)
{
    begin(INLINE_LEAF, 60);
    add(10, "A10 B20");
    add(20, "A10");
    finish();
    assert_row(0, 0, "B", 202);
    assert_row(1, 10, "A", 101);
    assert_int_equal(code.node_count + code.range_count, 0);

    resolved = 0;
    begin(INLINE_OFF, 60);
    add(10, "A10 B20");
    add(20, "A10");
    add(60, "A20 C0 D0");
    finish();
    assert_row(0, 0, "A", 101);
    assert_row(1, 20, "A", 102);
    assert_int_equal(code.row_count, 2);
    assert_int_equal(code.node_count + code.range_count, 0);
    assert_int_equal(resolved, 0); /* nobody asks for methods that nobody wants */
}

TEST(a_method_is_resolved_once_a_node)
{
    resolved = 0;
    begin(INLINE_FULL, 100000);
    for (uint32_t i = 1; i <= 1000; i++) {
        add(i * 100, i & 1 ? "A10 B0 C20" : "A10 B0 D0");
    }
    finish();
    assert_int_equal(code.node_count, 4);
    assert_int_equal(code.range_count, 1000);
    assert_int_equal(resolved, 3);
}

/* A random stack and, the slow way, the claim that the tree tells the same one at each offset. */
TEST(random_stacks_come_back)
{
    enum { PLACES = 400, DEPTH = 6 };
    static char stacks[PLACES][64];
    uint64_t seed = 42;
    for (int round = 0; round < (SANITIZED ? 10 : 50); round++) {
        begin(INLINE_FULL, PLACES * 4);
        for (int i = 0; i < PLACES; i++) {
            char *p = stacks[i];
            int depth = 1 + (int)(random_next(&seed) % DEPTH);
            for (int d = 0; d < depth; d++) {
                int method = d ? 1 + (int)(random_next(&seed) % 5) : 0;
                p += snprintf(p, 16, "%c%d ", 'A' + method, (int)(random_next(&seed) % 3) * 10);
            }
            add((uint32_t)(i + 1) * 4, stacks[i]);
        }
        finish();
        uint32_t range = 0;
        for (uint32_t i = 1; i < code.node_count; i++) {
            /* Depth-first: the parent is the node before or one of its ancestors. */
            uint32_t above = i - 1;
            while (above != code.nodes[i].parent && above > 0) {
                above = code.nodes[above].parent;
            }
            assert_int_equal(above, code.nodes[i].parent);
        }
        for (uint32_t i = 0; i < PLACES; i++) {
            while (range + 1 < code.range_count && code.ranges[range + 1].offset <= i * 4) {
                range++;
            }
            char told[64] = "";
            uint32_t node = code.ranges[range].node;
            uint32_t line = code.ranges[range].line;
            for (;;) {
                char frame[64];
                snprintf(frame, sizeof(frame), "%s%u ", code.nodes[node].method->name,
                         line % 100 * 10);
                strcat(frame, told);
                strcpy(told, frame);
                if (node == 0) {
                    break;
                }
                line = code.nodes[node].call_line;
                node = code.nodes[node].parent;
            }
            assert_string_equal(told, stacks[i]);
        }
    }
}

/* The first look. */
static uint32_t line_of(const struct java_method *method, int32_t bci)
{
    uint32_t near = 0;
    return line_table_find(method->lines, method->line_count, bci, &near);
}

TEST(line_tables_as_hotspot_reads_them)
{
    struct line_entry unsorted[] = {{10, 2}, {0, 1}, {10, 3}, {20, 4}, {5, 9}, {10, 5}};
    struct java_method method = {.lines = unsorted, .line_count = line_table_sort(unsorted, 6)};
    assert_int_equal(method.line_count, 5); /* the second of three says nothing */
    assert_int_equal(line_of(&method, -1), 1);
    assert_int_equal(line_of(&method, -2), 0);
    assert_int_equal(line_of(&method, 0), 1);
    assert_int_equal(line_of(&method, 4), 1);
    assert_int_equal(line_of(&method, 5), 9);
    assert_int_equal(line_of(&method, 10), 2); /* the first of that very bytecode */
    assert_int_equal(line_of(&method, 11), 5); /* the last for those behind */
    assert_int_equal(line_of(&method, 1000), 4);
    method.lines++;
    method.line_count--;
    assert_int_equal(line_of(&method, 3), 0);
    method.line_count = 0;
    assert_int_equal(line_of(&method, 3), 0);
}

/* On a thread of the JVM's, so in no time. */
TEST(line_tables_made_to_do_harm)
{
    enum { COUNT = 1 << (SANITIZED ? 18 : 21) };
    struct line_entry *hostile = malloc(COUNT * sizeof(*hostile));
    assert_non_null(hostile);
    for (uint32_t i = 0; i < COUNT; i++) {
        hostile[i] = (struct line_entry){.bci = COUNT - 1 - i, .line = i};
    }
    assert_int_equal(line_table_sort(hostile, COUNT), COUNT);
    for (uint32_t i = 0; i < COUNT; i++) {
        assert_int_equal(hostile[i].bci, i);
        hostile[i].bci = i % 2;
    }
    assert_int_equal(line_table_sort(hostile, COUNT), 4);
    struct java_method method = {.lines = hostile, .line_count = 4};
    assert_int_equal(line_of(&method, 0), COUNT - 1);
    assert_int_equal(line_of(&method, 1), COUNT - 2);
    assert_int_equal(line_of(&method, 2), 0);

    /* Any order and number, against looking at all. */
    uint64_t random = 1;
    for (int round = 0; round < (SANITIZED ? 500 : 2000); round++) {
        struct line_entry original[40];
        uint32_t count = random_below(&random, 40);
        for (uint32_t i = 0; i < count; i++) {
            original[i] = (struct line_entry){.bci = random_below(&random, 12), .line = i + 1};
        }
        memcpy(hostile, original, sizeof(original));
        method.line_count = line_table_sort(hostile, count);
        for (uint32_t bci = 0; bci < 13; bci++) {
            const struct line_entry *best = NULL;
            for (uint32_t i = 0; i < count; i++) {
                const struct line_entry *entry = &original[i];
                if (entry->bci <= bci && (!best || entry->bci > best->bci ||
                                          (entry->bci == best->bci && entry->bci < bci))) {
                    best = entry;
                }
            }
            uint32_t near = count ? random_below(&random, method.line_count) : 0; /* whatever */
            assert_int_equal(line_table_find(hostile, method.line_count, (int32_t)bci, &near),
                             best ? best->line : 0);
            assert_int_equal(line_table_find(hostile, method.line_count, (int32_t)bci, &near),
                             best ? best->line : 0);
        }
    }
    free(hostile);
}

static int make_builder(void **state)
{
    builder = inline_builder_new();
    return builder ? make_methods(state) : -1;
}

static int free_builder(void **state)
{
    (void)state;
    inline_builder_free(builder);
    return 0;
}

/*
 * A's and B's lines are Kotlin's: 102 is line 5 of a function in X.kt, called from line 90; 103
 * line 6 there; 203 is line 7 of Y.kt, called from 91.
 */
TEST(what_another_compiler_inlined)
{
    static const char text[] = "SMAP\na\nKotlin\n*S Kotlin\n*F\n+ 1 a\np/A\n+ 2 X.kt\np/X\n"
                               "+ 3 Y.kt\np/Y\n*L\n1#1,101:1\n5#2,2:102\n7#3:203\n*S KotlinDebug\n"
                               "*F\n+ 1 a\np/A\n*L\n90#1:102,2\n91#1:203\n*E\n";
    struct source_map *map = source_map_new(text, "Lp/A;");
    assert_non_null(map);
    struct source_file x = {.path = "X.kt", .id = 100};
    struct source_file y = {.path = "Y.kt", .id = 101};
    map->places[1].method.method = (struct method){.name = "p.X.{inline}", .file = &x, .id = 100};
    map->places[2].method.method = (struct method){.name = "p.Y.{inline}", .file = &y, .id = 101};
    methods[0].map = methods[1].map = map;

    begin(INLINE_FULL, 60);
    add(10, "A0");
    add(20, "A20");        /* X.kt:5 */
    add(30, "A30 B0");     /* B is called in X.kt:6 */
    add(40, "A30 B30 C0"); /* and C in what B inlined of Y.kt */
    add(50, "A20");
    add(60, "A0");
    finish();
    assert_int_equal(code.node_count, 5);
    assert_node(0, "A", 0, 0);
    assert_node(1, "p.X.{inline}", 0, 90);
    assert_node(2, "B", 1, 6);
    assert_node(3, "p.Y.{inline}", 2, 91);
    assert_node(4, "C", 3, 7);
    assert_int_equal(code.range_count, 6);
    assert_range(1, 10, 1, 5);
    assert_range(2, 20, 2, 200);
    assert_range(3, 30, 4, 300);
    assert_range(4, 40, 1, 5);
    assert_range(5, 50, 0, 100);
    assert_row(1, 10, "X.kt", 5);
    assert_row(3, 30, "C", 300);

    begin(INLINE_LEAF, 60);
    add(20, "A20");
    finish();
    assert_row(0, 0, "X.kt", 5);

    begin(INLINE_OFF, 60); /* the compiled method's own lines: where the call is */
    add(20, "A20");
    add(30, "A30 B0");
    finish();
    assert_row(0, 0, "A", 90);
    assert_int_equal(code.rows[code.row_count - 1].line, 100);
    methods[0].map = methods[1].map = NULL;
    source_map_free(map);
}

TEST_MAIN(make_builder, free_builder)
