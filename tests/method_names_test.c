/* Tables of methods: which method an address was at a time, and the names of interpreted frames. */
#include "test.h"

#include "jdtool/jitdump/method_names.h"
#include "jdtool/unwind/unwind.h"
#include "methods_builder.h"
#include "scratch.h"

#include <errno.h>

static struct methods_builder builder;
static struct method_names *names;

static int close_all(void **state)
{
    method_names_close(names);
    names = NULL;
    return scratch_remove(state);
}

static void write_built(const char *path)
{
    write_bytes(path, builder.bytes, builder.size);
}

static int open_built(const char *directory)
{
    char path[256];
    snprintf(path, sizeof path, "%s/t.methods", directory);
    write_built(path);
    return method_names_open(path, NULL, NULL, &names);
}

static const uint32_t lines[] = {0, 10, 5, 12, 9, 11, 0, 0};

static void build(void)
{
    methods_start(&builder);
    methods_begin(&builder, METHODS_FOUND, 5000, "java/lang/Object.java");
    methods_add(&builder, 0x1000, 0x9000, 20, "java.lang.Object.wait()", lines);
    methods_add(&builder, 0x800, 0x8800, 0, "java.lang.Object.hashCode()", NULL);
    methods_end(&builder);
    methods_begin(&builder, METHODS_PREPARED, 2000, "");
    methods_add(&builder, 0x2000, 0xa000, 8, "A.first()", NULL);
    methods_end(&builder);
    methods_begin(&builder, METHODS_PREPARED, 3000, "B.java");
    methods_add(&builder, 0x2000, 0xb000, 4, "B.second()", NULL);
    methods_end(&builder);
}

static const char *name_at(uint64_t address, uint64_t time)
{
    struct named_method *method = method_names_at(names, address, time);
    return method ? method_names_detail(names, method)->name : NULL;
}

TEST_WITH(test_what_an_address_meant, scratch_create, close_all)
{
    build();
    assert_int_equal(open_built(*state), 0);
    assert_string_equal(method_names_program(names), ""); /* as older agents have it */
    assert_int_equal(method_names_count(names), 4);
    /* Found: there before, too. */
    assert_string_equal(name_at(0x1000, 1), "java.lang.Object.wait()");
    assert_string_equal(name_at(0x1000, 9000), "java.lang.Object.wait()");
    assert_string_equal(name_at(0x800, 1), "java.lang.Object.hashCode()");
    /* Prepared: not before, and until the next one has the address. */
    assert_null(name_at(0x2000, 1999));
    assert_string_equal(name_at(0x2000, 2000), "A.first()");
    assert_string_equal(name_at(0x2000, 2999), "A.first()");
    assert_string_equal(name_at(0x2000, 3000), "B.second()");
    assert_null(name_at(0x2001, 3000));
    assert_int_equal(method_names_until(names, 0x2000, 1), 2000);
    assert_int_equal(method_names_until(names, 0x2000, 2999), 3000);
    assert_true(method_names_until(names, 0x2000, 3000) == UINT64_MAX);
    assert_true(method_names_until(names, 0x2001, 1) == UINT64_MAX);
    assert_null(name_at(0, 3000));
}

TEST_WITH(test_program, scratch_create, close_all)
{
    static const char program[] = "shop.jar";
    const size_t fixed = sizeof(struct methods_header);
    const uint32_t total = fixed + sizeof program;
    build();
    memmove(builder.bytes + total, builder.bytes + fixed, builder.size - fixed);
    memcpy(builder.bytes + fixed, program, sizeof program);
    memcpy(builder.bytes + offsetof(struct methods_header, total_size), &total, sizeof total);
    builder.size += sizeof program;
    assert_int_equal(open_built(*state), 0);
    assert_string_equal(method_names_program(names), program);
    assert_int_equal(method_names_count(names), 4);
}

TEST_WITH(test_lines_and_files, scratch_create, close_all)
{
    build();
    assert_int_equal(open_built(*state), 0);
    const struct method_detail *wait =
        method_names_detail(names, method_names_at(names, 0x1000, 1));
    assert_string_equal(wait->file, "java/lang/Object.java");
    assert_int_equal(method_detail_line(wait, 0), 10);
    assert_int_equal(method_detail_line(wait, 4), 10);
    assert_int_equal(method_detail_line(wait, 5), 12);
    assert_int_equal(method_detail_line(wait, 100), 11);
    const struct method_detail *first =
        method_names_detail(names, method_names_at(names, 0x2000, 2000));
    assert_null(first->file);
    assert_int_equal(method_detail_line(first, 3), 0);
    assert_ptr_equal(first, method_names_detail(names, method_names_at(names, 0x2000, 2000)));
}

TEST_WITH(test_interpreted_frames, scratch_create, close_all)
{
    build();
    assert_int_equal(open_built(*state), 0);
    struct interpreted_frame out;
    struct unwind_frame caller = {.caller = true, .method = 0x1000, .bcp = 0x9006};
    assert_true(interpreter_name(names, &caller, 1, &out));
    assert_string_equal(out.method->name, "java.lang.Object.wait()");
    assert_int_equal(out.bci, 6);
    assert_int_equal(out.line, 12);

    caller.bcp = 0x9014; /* behind the last bytecode: another method's frame */
    assert_false(interpreter_name(names, &caller, 1, &out));

    struct unwind_frame leaf = {.method = 0x1000, .bcp = 0x9000, .bcp_register = 0x9009};
    assert_true(interpreter_name(names, &leaf, 1, &out));
    assert_int_equal(out.bci, 9); /* the register is newer than the slot */
    leaf.bcp_register = 0x1234;   /* used for something else */
    assert_true(interpreter_name(names, &leaf, 1, &out));
    assert_int_equal(out.bci, 0);

    struct unwind_frame entered = {.method = 0x77, .method_register = 0x2000};
    assert_true(interpreter_name(names, &entered, 2500, &out));
    assert_string_equal(out.method->name, "A.first()");
    assert_int_equal(out.bci, 0);

    struct unwind_frame left = {.bcp_register = 0xb003}; /* its frame is gone */
    assert_true(interpreter_name(names, &left, 3000, &out));
    assert_string_equal(out.method->name, "B.second()");
    assert_int_equal(out.bci, 3);
    assert_false(interpreter_name(names, &left, 2500, &out)); /* not there yet */
    left.bcp_register = 0xb004;
    assert_false(interpreter_name(names, &left, 3000, &out));

    struct unwind_frame native = {.caller = true, .method = 0x800};
    assert_true(interpreter_name(names, &native, 1, &out));
    assert_int_equal(out.bci, -1);
    assert_int_equal(out.line, 0);

    struct unwind_frame unknown = {.caller = true, .method = 0x3333, .bcp = 0x9006};
    assert_false(interpreter_name(names, &unknown, 1, &out));
}

/* JDK 8 has no slot for the mirror, so its bcp is one word further up (frame_x86.hpp). */
TEST_WITH(test_interpreted_frames_of_jdk_8, scratch_create, close_all)
{
    build();
    assert_int_equal(open_built(*state), 0);
    struct interpreted_frame out;
    struct unwind_frame caller = {
        .caller = true, .method = 0x1000, .bcp = 0x7ffc00001000, .bcp_above = 0x9006};
    assert_true(interpreter_name(names, &caller, 1, &out));
    assert_string_equal(out.method->name, "java.lang.Object.wait()");
    assert_int_equal(out.bci, 6);
    caller.bcp_above = 0x9014;
    assert_false(interpreter_name(names, &caller, 1, &out));
    /* What is there from JDK 9 on does not get into the way. */
    caller.bcp = 0x9004;
    caller.bcp_above = 0x7ffc00001000;
    assert_true(interpreter_name(names, &caller, 1, &out));
    assert_int_equal(out.bci, 4);
}

/* A class is gone, and where its method was a redefinition put another one: nobody tells when. */
TEST_WITH(test_redefined_in_a_dead_class_s_place, scratch_create, close_all)
{
    build();
    methods_begin(&builder, METHODS_FOUND, 9000, "Hot.java");
    methods_add(&builder, 0x2000, 0xc000, 10, "Hot.redefined()", NULL);
    methods_end(&builder);
    assert_int_equal(open_built(*state), 0);
    struct interpreted_frame out;
    struct unwind_frame frame = {.caller = true, .method = 0x2000, .bcp = 0xb001};
    assert_true(interpreter_name(names, &frame, 5000, &out));
    assert_string_equal(out.method->name, "B.second()");
    frame.bcp = 0xc003;
    assert_true(interpreter_name(names, &frame, 5000, &out));
    assert_string_equal(out.method->name, "Hot.redefined()");
    assert_int_equal(out.bci, 3);
    frame.caller = false;
    assert_true(interpreter_name(names, &frame, 5000, &out));
    assert_string_equal(out.method->name, "Hot.redefined()");
    frame.bcp = 0xd003; /* nobody's: a leaf on its way in is the one that the time says */
    assert_true(interpreter_name(names, &frame, 5000, &out));
    assert_string_equal(out.method->name, "B.second()");
    frame.caller = true;
    assert_false(interpreter_name(names, &frame, 5000, &out));
}

TEST_WITH(test_torn_tail_keeps_the_rest, scratch_create, close_all)
{
    build();
    builder.size -= 3;
    assert_int_equal(open_built(*state), 0);
    assert_int_equal(method_names_count(names), 3);
}

TEST_WITH(test_broken_records, scratch_create, close_all)
{
    methods_start(&builder);
    methods_begin(&builder, METHODS_PREPARED, 1, "x");
    methods_put(&builder, "\xff\xff\xff", 3); /* a number without an end */
    methods_end(&builder);
    methods_begin(&builder, 99, 1, "of a later version");
    methods_end(&builder);
    methods_begin(&builder, METHODS_PREPARED, 1, "");
    methods_add(&builder, 0x1000, 0x9000, 20, "whole()", NULL);
    methods_end(&builder);
    assert_int_equal(open_built(*state), 0);
    assert_int_equal(method_names_count(names), 1);
    assert_string_equal(name_at(0x1000, 1), "whole()");
}

TEST_WITH(test_not_a_table, scratch_create, close_all)
{
    methods_start(&builder);
    builder.bytes[0] ^= 1;
    assert_int_equal(open_built(*state), -EINVAL);
    builder.size = 3;
    assert_int_equal(open_built(*state), -EINVAL);
    assert_int_equal(method_names_open("/nonexistent", NULL, NULL, &names), -ENOENT);
}

/* Living methods are told of once more in each segment's table, a while after it has begun. */
TEST_WITH(test_tables_of_segments_are_closed, scratch_create, close_all)
{
    build();
    assert_int_equal(open_built(*state), 0);
    int fd = dup(STDERR_FILENO); /* the next ones are above */
    close(fd);
    const char *path = scratch_path(state, "t.methods");
    for (uint64_t end = 10000; end < 40000; end += 1000) {
        methods_start(&builder);
        unlink(path); /* the one before is open still */
        write_built(path);
        assert_int_equal(method_names_continue(names, path, end, false), 1);
        method_names_let_go(names, UINT64_MAX);
        assert_string_equal(name_at(0x1000, end), "java.lang.Object.wait()");
        methods_begin(&builder, METHODS_FOUND, end, "java/lang/Object.java");
        methods_add(&builder, 0x1000, 0x9000, 20, "java.lang.Object.wait()", lines);
        methods_end(&builder);
        methods_all(&builder, end == 10000 ? 5000 : end - 1000); /* part of it was told before */
        write_built(path);                                       /* it begins with what is there */
        assert_int_equal(method_names_update(names, false), 0);
        method_names_let_go(names, UINT64_MAX);
        assert_string_equal(name_at(0x800, end), "java.lang.Object.hashCode()");
        methods_begin(&builder, METHODS_FOUND, end, "java/lang/Object.java");
        methods_add(&builder, 0x800, 0x8800, 0, "java.lang.Object.hashCode()", NULL);
        methods_end(&builder);
        methods_all(&builder, end == 10000 ? 5001 : end - 999);
        write_built(path);
        assert_int_equal(method_names_update(names, false), 0);
        method_names_let_go(names, end); /* too early */
        method_names_let_go(names, end + 1);
        int next = dup(STDERR_FILENO);
        close(next);
        assert_true(next <= fd);
    }
    assert_string_equal(name_at(0x1000, 50000), "java.lang.Object.wait()");
    assert_null(method_names_detail(names, method_names_at(names, 0x2000, 2000)));
    assert_int_equal(method_names_count(names), 4);

    /* What lives was told of by the last two tables, and is read from these again; what was gone is
     * forgotten. */
    assert_false(method_names_outgrown(names));
    assert_int_equal(method_names_forget(names), 0);
    assert_int_equal(method_names_count(names), 2);
    assert_null(method_names_at(names, 0x2000, 50000));
    assert_string_equal(name_at(0x1000, 50000), "java.lang.Object.wait()");
    methods_start(&builder);
    methods_begin(&builder, METHODS_PREPARED, 60000, "a/B.java");
    methods_add(&builder, 0x3000, 0xa000, 20, "a.B.late()", lines);
    methods_end(&builder);
    unlink(path);
    write_built(path);
    assert_int_equal(method_names_continue(names, path, 55000, false), 1);
    assert_string_equal(name_at(0x3000, 60000), "a.B.late()");
}

/* Classes that come and go while one lives: what is kept of them is bounded. */
TEST_WITH(test_what_is_gone_is_forgotten_in_time, scratch_create, close_all)
{
    enum { SEGMENTS = 400, EACH = 100, MOST = 2000 };
    const char *path = scratch_path(state, "t.methods");
    uint32_t most = 0;
    build();
    assert_int_equal(open_built(*state), 0);
    for (uint64_t segment = 1; segment <= SEGMENTS; segment++) {
        uint64_t begin = 10000 * segment;
        methods_start(&builder);
        methods_begin(&builder, METHODS_FOUND, begin, "java/lang/Object.java");
        methods_add(&builder, 0x1000, 0x9000, 20, "java.lang.Object.wait()", lines);
        methods_end(&builder);
        methods_begin(&builder, METHODS_PREPARED, begin + 1, "a/B.java");
        for (uint64_t i = 0; i < EACH; i++) {
            uint64_t address = 0x100000 + (segment * EACH + i) * 0x100;
            methods_add(&builder, address, address + 0x80, 20, "a.B.gone()", lines);
        }
        methods_end(&builder);
        methods_all(&builder, begin);
        unlink(path); /* the one before is open still */
        write_built(path);
        assert_int_equal(method_names_continue(names, path, begin, false), 1);
        method_names_let_go(names, begin + 1);
        uint32_t count = method_names_count(names);
        most = count > most ? count : most;
        if (method_names_outgrown(names)) {
            assert_int_equal(method_names_forget(names), 0);
            assert_in_range(method_names_count(names), 1 + EACH, 1 + 2 * EACH);
        }
        assert_string_equal(name_at(0x1000, begin + 1), "java.lang.Object.wait()");
    }
    assert_in_range(most, 1000, MOST);
}

TEST_MAIN(NULL, NULL)
