/* jdtool inject from end to end, on recordings and dumps made by hand. */
#include "test.h"

#include "jdtool/base/verb.h"
#include "jdtool/images/image_frames.h"
#include "jdtool/perf/perf_data.h"
#include "tests/recording_files.h"
#include "tests/result_reader.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <gelf.h>
#include <getopt.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

static bool is_frame(uint64_t address)
{
    return address >= IMAGE_FRAMES_BASE && address < IMAGE_FRAMES_BASE * 2;
}

/* ---- A recording ---- */

/* The user part of the call chains of samples with that cookie: m's code, called by the stub. */
static void put_late_part(struct perf_file *file, uint64_t time, uint64_t cookie)
{
    const uint64_t chain[] = {PERF_CONTEXT_USER, CODE + 4, CODE + 65};
    put_late_chain(file, PID, time, cookie, chain, 3);
}

static int inject_words(void **state, const char *recording_name, const char *result, va_list more)
{
    char *argv[16] = {"inject", "-q", "-i"};
    int argc = 3;
    char input[256], output[256];
    snprintf(input, sizeof input, "%s", scratch_path(state, recording_name));
    snprintf(output, sizeof output, "%s", scratch_path(state, result));
    argv[argc++] = input;
    argv[argc++] = "-o";
    argv[argc++] = output;
    for (char *argument; (argument = va_arg(more, char *));) {
        argv[argc++] = argument;
    }
    optind = 0;
    return verb_inject.run(&verb_inject, argc, argv);
}

static int inject(void **state, const char *recording_name, const char *result, ...)
{
    va_list more;
    va_start(more, result);
    int status = inject_words(state, recording_name, result, more);
    va_end(more);
    return status;
}

/* ---- Reading the result ---- */

static struct seen seen[32];
static uint32_t count; /* of them */

static void read_seen(void **state)
{
    memset(seen, 0, sizeof seen);
    count = read_result(scratch_path(state, "r.data"), seen, 32);
}

/* What becomes of the recording with these options is in `seen`. */
static void injected(void **state, const struct perf_file *file, ...)
{
    va_list more;
    perf_file_write(file, scratch_path(state, "p.data"));
    va_start(more, file);
    assert_int_equal(inject_words(state, "p.data", "r.data", more), STATUS_DONE);
    va_end(more);
    read_seen(state);
}

/* The nth record of that type, from 0; of mappings those of code in images. */
static const struct seen *nth(uint32_t type, uint32_t n)
{
    for (uint32_t i = 0; i < count; i++) {
        bool counts = seen[i].type == type && (type != PERF_RECORD_MMAP2 || seen[i].offset > 0);
        if (counts && n-- == 0) {
            return &seen[i];
        }
    }
    return NULL;
}
#define MAPPING(n) nth(PERF_RECORD_MMAP2, n)
#define SAMPLE(n)  nth(PERF_RECORD_SAMPLE, n)

/* The line that a file's line table has for an offset, and the source file's name. */
static int line_at(const char *path, uint64_t offset, char *source, size_t room)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    int number = -1;
    Dwarf *dwarf = dwarf_begin(fd, DWARF_C_READ);
    assert_non_null(dwarf);
    Dwarf_Die unit;
    if (dwarf_addrdie(dwarf, offset, &unit)) {
        Dwarf_Line *line = dwarf_getsrc_die(&unit, offset);
        if (line && dwarf_lineno(line, &number) == 0) {
            snprintf(source, room, "%s", dwarf_linesrc(line, NULL, NULL));
        }
    }
    dwarf_end(dwarf);
    close(fd);
    return number;
}

/* ---- Tests ---- */

TEST(code_is_mapped_when_it_is_touched)
{
    OWN_PERF_FILE file = recording();
    write_simple_dump(state);
    put_mmap2(&file, PID, 1000010, 0x7f0000010000, 0x20000, "//anon");
    put_marker(&file, state);
    put_mmap2(&file, PID, 1000060, 0x7f0000010000, 0x20000, "//anon");
    put_mmap2(&file, PID, 1000061, 0x7f0000100000, 0x1000, "/lib/libc.so");
    put_mmap2(&file, PID + 1, 1000062, 0x7f0000010000, 0x1000, "//anon");
    put_round(&file);
    uint64_t first[] = {PERF_CONTEXT_USER, CODE + 1};
    uint64_t stub[] = {PERF_CONTEXT_USER, CODE + 64};
    uint64_t second[] = {PERF_CONTEXT_USER, CODE + 1};
    put_sample(&file, PID, 1000200, first, 2);
    put_round(&file);
    put_sample(&file, PID, 1000550, second, 2);
    put_sample(&file, PID, 1000400, stub, 2); /* rounds hold records in any order */
    put_round(&file);
    injected(state, &file, "--inline", "off", NULL);
    static const struct {
        uint32_t type;
        uint64_t time;
        const char *symbol; /* of mappings: what is at their start, "" the image's own start */
    } expected[] = {
        {PERF_RECORD_MMAP2, 1000010, NULL}, /* before the dump: kept, as perf does */
        {PERF_RECORD_MMAP2, 1000061, NULL},
        {PERF_RECORD_MMAP2, 1000062, NULL}, /* another process' */
        {PERF_RECORD_MMAP2, 1000200, ""},
        {PERF_RECORD_MMAP2, 1000200, "a.A.m()"},
        {PERF_RECORD_SAMPLE, 1000200, NULL},
        {PERF_RECORD_MMAP2, 1000400, "stub"},
        {PERF_RECORD_SAMPLE, 1000400, NULL},
        {PERF_RECORD_MMAP2, 1000550, ""}, /* code that took a place over is in another image */
        {PERF_RECORD_MMAP2, 1000550, "a.A.later()"},
        {PERF_RECORD_SAMPLE, 1000550, NULL},
    };
    assert_int_equal(count, sizeof expected / sizeof expected[0]);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(seen[i].type, expected[i].type);
        assert_int_equal(seen[i].time, expected[i].time);
        if (expected[i].symbol) {
            assert_string_equal(symbol_at(seen[i].path, seen[i].offset), expected[i].symbol);
            assert_int_equal(seen[i].path[0], '/');
        }
    }
    /* Nothing touched it. */
    for (uint64_t offset = 0; offset < 0x100; offset++) {
        assert_string_not_equal(symbol_at(scratch_path(state, "r-java.so"),
                                          seen[4].offset + (OTHER_CODE - CODE) + offset),
                                "untouched");
    }
}

TEST(keep_all_keeps_all)
{
    OWN_PERF_FILE file = recording_of_jvm(state);
    uint64_t chain[] = {PERF_CONTEXT_USER, CODE + 1};
    put_sample(&file, PID, 1000200, chain, 2);
    put_round(&file);
    injected(state, &file, "--keep-all", NULL);
    static const char *const names[] = {"a.A.m()", "stub", "a.A.later()", "untouched"};
    for (uint32_t i = 0; i < 4; i++) {
        assert_non_null(MAPPING(i));
        assert_string_equal(symbol_at(MAPPING(i)->path, MAPPING(i)->offset), names[i]);
    }
    assert_null(MAPPING(4));
    assert_true(SAMPLE(0) < MAPPING(1)); /* by time */
}

TEST(inlined_methods_are_frames)
{
    OWN_PERF_FILE file = recording_of_jvm(state);
    /* Leaf in the inlined part; the caller's return address is its first byte: the call is not. */
    uint64_t leaf[] = {PERF_CONTEXT_KERNEL, 0xffffffff81000000, PERF_CONTEXT_USER, CODE + 4,
                       0x400000};
    uint64_t caller[] = {PERF_CONTEXT_USER, CODE + 65, CODE + 4, CODE + 5};
    put_sample(&file, PID, 1000350, leaf, 5);
    put_sample(&file, PID, 1000351, caller, 4);
    put_round(&file);
    injected(state, &file, "--inline", "expand", NULL);
    assert_int_equal(SAMPLE(0)->chain_count, 6);
    uint64_t frame = SAMPLE(0)->chain[3];
    assert_true(is_frame(frame));
    assert_true(SAMPLE(0)->chain[4] == CODE + 4);
    assert_int_equal(SAMPLE(0)->address, leaf[1]);
    assert_int_equal(SAMPLE(1)->chain_count, 5);
    assert_true(SAMPLE(1)->chain[2] == CODE + 3); /* in the call */
    assert_true(SAMPLE(1)->chain[3] == frame);
    assert_true(SAMPLE(1)->chain[4] == CODE + 4);

    bool mapped = false;
    char source[64];
    for (uint32_t i = 0; i < count; i++) {
        if (seen[i].type == PERF_RECORD_MMAP2 && seen[i].address == IMAGE_FRAMES_BASE) {
            uint64_t offset = frame - seen[i].address + seen[i].offset;
            assert_string_equal(symbol_at(seen[i].path, offset), "b.B.inlined() (inlined)");
            assert_int_equal(line_at(seen[i].path, offset, source, sizeof source), 11);
            assert_string_equal(source, "b/B.java");
            mapped = true;
        }
    }
    assert_true(mapped);

    /* --leaf: the sample's own address as well, where it is in user code. */
    uint64_t user[] = {PERF_CONTEXT_USER, CODE + 4};
    put_sample(&file, PID, 1000352, user, 2);
    injected(state, &file, "--inline", "expand", "--leaf", "--inlined-suffix", "_[i]", NULL);
    for (uint32_t i = 0; i < count; i++) {
        if (seen[i].type == PERF_RECORD_SAMPLE && seen[i].time == 1000352) {
            assert_true(is_frame(seen[i].address));
            assert_true(seen[i].chain[1] == seen[i].address);
        }
    }
    assert_string_equal(symbol_at(scratch_path(state, "r-java-frames.so"), 0x1000),
                        "b.B.inlined()_[i]");

    /* What the result no longer needs does not stay behind. */
    assert_int_equal(inject(state, "p.data", "r.data", "--inline", "off", NULL), STATUS_DONE);
    assert_int_not_equal(access(scratch_path(state, "r-java-frames.so"), F_OK), 0);
    assert_int_equal(inject(state, "p.data", "absent/r.data", NULL), STATUS_FAILED);
}

/* HotSpot's method_entry_barrier pushes -1 where a walk by frame pointers looks for a return
 * address; perf throws a chain with such a word away. Another number could have a method's name. */
TEST(garbage_in_chains_is_no_frame)
{
    OWN_PERF_FILE file = recording_of_jvm(state);
    const uint64_t garbage = IMAGE_FRAMES_BASE + 0x3000000; /* where frames have addresses */
    uint64_t chain[] = {PERF_CONTEXT_USER, CODE + 65, (uint64_t)-1, CODE + 4, CODE + 5, garbage};
    put_sample(&file, PID, 1000351, chain, 6);
    put_sample(&file, PID, 1000352, chain, 6);
    injected(state, &file, "--inline", "off", NULL);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(SAMPLE(i)->chain_count, 5);
        assert_true(SAMPLE(i)->chain[1] == CODE + 65);
        assert_true(SAMPLE(i)->chain[2] == CODE + 3); /* generated code all the same: in the call */
        assert_true(SAMPLE(i)->chain[3] == CODE + 4);
        assert_true(SAMPLE(i)->chain[4] == garbage + IMAGE_FRAMES_BASE);
    }
}

TEST(debugging_information_tells_of_inlined_methods)
{
    OWN_PERF_FILE file = recording_of_jvm(state);
    uint64_t chain[] = {PERF_CONTEXT_USER, CODE + 4};
    put_sample(&file, PID, 1000350, chain, 2);
    mkdir(scratch_path(state, "src"), 0700);
    injected(state, &file, "--inline", "dwarf", "--source-path", scratch_path(state, "src"), NULL);
    assert_int_equal(SAMPLE(0)->chain_count, 2);
    uint64_t address = MAPPING(0)->offset;

    int fd = open(MAPPING(0)->path, O_RDONLY | O_CLOEXEC);
    Dwarf *dwarf = dwarf_begin(fd, DWARF_C_READ);
    Dwarf_Die unit;
    Dwarf_Die *scopes;
    assert_non_null(dwarf);
    assert_non_null(dwarf_addrdie(dwarf, address + 5, &unit));
    assert_string_equal(dwarf_diename(&unit), "a/A.java");
    Dwarf_Die *found;
    assert_true(dwarf_getscopes(&unit, address + 5, &found) > 0);
    assert_int_equal(dwarf_getscopes_die(&found[0], &scopes), 3);
    free(found);
    assert_int_equal(dwarf_tag(&scopes[0]), DW_TAG_inlined_subroutine);
    assert_string_equal(dwarf_diename(&scopes[0]), "b.B.inlined()");
    assert_int_equal(dwarf_tag(&scopes[1]), DW_TAG_subprogram);
    assert_string_equal(dwarf_diename(&scopes[1]), "a.A.m()");
    Dwarf_Attribute attribute;
    Dwarf_Word line;
    assert_non_null(dwarf_attr(&scopes[0], DW_AT_call_line, &attribute));
    assert_int_equal(dwarf_formudata(&attribute, &line), 0);
    assert_int_equal(line, 10);
    assert_non_null(dwarf_attr_integrate(&unit, DW_AT_comp_dir, &attribute));
    assert_string_equal(dwarf_formstring(&attribute), scratch_path(state, "src"));
    free(scopes);
    assert_int_equal(dwarf_getscopes(&unit, address + 3, &scopes), 2);
    free(scopes);
    dwarf_end(dwarf);
    close(fd);
    rmdir(scratch_path(state, "src"));
}

/* Other names or lines over equal code must not pass for the same file. */
TEST(the_build_id_is_that_of_code_names_and_lines)
{
    uint8_t ids[3][BUILD_ID_MAX];
    static const char *const modes[] = {"off", "dwarf", "off"};
    for (int i = 0; i < 3; i++) {
        OWN_PERF_FILE file = recording();
        write_simple_dump(state);
        put_marker(&file, state);
        uint64_t chain[] = {PERF_CONTEXT_USER, CODE + 4};
        put_sample(&file, PID, 1000350, chain, 2);
        injected(state, &file, "--inline", modes[i], NULL);
        struct perf_data *data;
        size_t size;
        assert_int_equal(perf_data_open(scratch_path(state, "r.data"), &data), 0);
        const uint8_t *entry = perf_data_feature(data, PERF_FEATURE_BUILD_ID, &size);
        assert_true(entry && size >= 36);
        memcpy(ids[i], entry + 12, BUILD_ID_MAX);
        perf_data_close(data);
    }
    assert_memory_not_equal(ids[0], ids[1], BUILD_ID_MAX);
    assert_memory_equal(ids[0], ids[2], BUILD_ID_MAX);
}

/* What a fork runs before it executes something else is its parent's code as of then. */
TEST(a_fork_has_its_parents_code)
{
    OWN_PERF_FILE file = recording_of_jvm(state);
    put_task(&file, PERF_RECORD_FORK, PID + 1, PID, PID + 1, 1000450);
    uint64_t chain[] = {PERF_CONTEXT_USER, CODE + 5};
    put_sample(&file, PID + 1, 1000700, chain, 2);
    put_round(&file);
    injected(state, &file, "--inline", "expand", NULL);
    assert_int_equal(SAMPLE(0)->chain_count, 3);
    assert_string_equal(symbol_at(MAPPING(0)->path, MAPPING(0)->offset), "a.A.m()");
    assert_int_equal(MAPPING(0)->pid, PID + 1); /* its parent has not touched it */
    assert_null(MAPPING(1));
}

TEST(the_scorecard_tells_why)
{
    OWN_PERF_FILE file = recording();
    struct dump_builder dump = {0};
    build_simple_dump(&dump);
    dump_close(&dump, 1000800);
    write_dump(state, &dump, "jit-4242.dump");
    put_mmap2(&file, PID, 0, CODE, 0x20000, "//anon");
    put_mmap2(&file, PID, 0, 0x7f0000100000, 0x1000, "/no/libc.so.6");
    put_mmap2(&file, PID, 0, 0x7f0000300000, 0x1000, "/no/libjvm.so");
    put_mmap2(&file, PID + 7, 0, CODE, 0x20000, "/anon_hugepage (deleted)");
    put_mmap2(&file, PID + 7, 0, 0x7f0000200000, 0x1000, "/no/libjvm.so");
    put_marker(&file, state);
    static const struct {
        uint32_t pid;
        uint64_t time;
        uint64_t address;
    } samples[] = {
        {PID, 1000200, CODE},        /* named */
        {PID, 1000200, CODE},        /* named */
        {PID, 999000, CODE},         /* before the dump */
        {PID, 1000200, CODE + 64},   /* before its LOAD */
        {PID, 1000200, CODE + 1024}, /* never heard of */
        {PID, 1000700, CODE + 1024}, /* nor behind the dump's last code */
        {PID, 1000900, CODE + 1024}, /* behind its end */
        {PID + 7, 1000200, CODE},    /* a JVM without a dump */
        {PID + 8, 1000200, CODE},    /* no JVM at all */
    };
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
        uint64_t chain[] = {PERF_CONTEXT_USER, samples[i].address, 0x7f0000100010};
        put_sample(&file, samples[i].pid, samples[i].time, chain, i == 0 ? 3 : 2);
    }
    perf_file_record(&file, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, samples, 8); /* cut short */
    injected(state, &file, "--scorecard", scratch_path(state, "card.json"), NULL);
    static char text[8192];
    scratch_read_text(scratch_path(state, "card.json"), text, sizeof text);
    assert_non_null(strstr(text, "\"verdict\": \"bad\""));
    assert_non_null(strstr(text, "\"samples\": 9"));
    assert_non_null(strstr(text, "\"samples_in_jvms\": 8"));
    assert_non_null(strstr(text, "\"frames_in_generated_code\": 8,"));
    assert_non_null(strstr(text, "\"frames_in_generated_code_named\": 2,"));
    assert_non_null(strstr(text, "{\"no_dump\": 1, \"before_dump\": 1, \"after_dump\": 1, "
                                 "\"before_load\": 1, \"unknown\": 2}"));
    assert_non_null(strstr(text, "\"stacks\": 8,"));
    assert_non_null(strstr(text, "\"stacks_rooted\": 1,"));
    assert_non_null(strstr(text, "PreserveFramePointer"));
    assert_non_null(strstr(text, "left out 1 samples that are malformed"));
}

/* The remedy for copies that are too short is a larger copy, as far as there is one, and not what
 * helps stacks that the kernel walks. */
TEST(short_copies_are_told_as_such)
{
#ifndef __x86_64__
    skip(); /* registers of a recording that names no machine are this one's; these are x86-64's */
#endif
    static const struct {
        uint32_t asked;
        const char *remedy;
    } cases[] = {{16, "larger stack copy"}, {65528, "largest copy"}};
    for (int i = 0; i < 2; i++) {
        OWN_PERF_FILE file = recording();
        struct dump_builder dump = dump_start();
        dump_frame_code(&dump, 1000100, CODE, "a.A.m()");
        write_dump(state, &dump, "jit-4242.dump");
        file.attrs[0].sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
        file.attrs[0].sample_regs_user = 0x1c0; /* bp, sp, ip of x86-64 */
        file.attrs[0].sample_stack_user = cases[i].asked;
        put_marker(&file, state);
        uint64_t payload[] = {CODE + 6,
                              PID | (uint64_t)PID << 32,
                              1000200,
                              0,
                              PERF_SAMPLE_REGS_ABI_64,
                              0,
                              0x1000,
                              CODE + 6,
                              /* 16 bytes: */ 16,
                              0,
                              0,
                              16};
        perf_file_record(&file, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, payload, sizeof payload);
        injected(state, &file, "--scorecard", scratch_path(state, "card.json"), NULL);
        static char text[8192];
        scratch_read_text(scratch_path(state, "card.json"), text, sizeof text);
        assert_non_null(strstr(text, "\"copy_too_short\": 1"));
        assert_non_null(strstr(text, cases[i].remedy));
        assert_null(strstr(text, "perf_event_max_stack"));
    }
}

/* A return address may be the first one that belongs to an inlined method: the call lies before. */
TEST(callers_are_addresses_in_the_call)
{
    static const char *const modes[] = {"off", "dwarf", "expand"};
    for (int i = 0; i < 3; i++) {
        OWN_PERF_FILE file = recording();
        char source[64] = "";
        write_simple_dump(state);
        put_marker(&file, state);
        uint64_t chain[] = {PERF_CONTEXT_USER, CODE + 2, CODE + 4};
        put_sample(&file, PID, 1000350, chain, 3);
        injected(state, &file, "--inline", modes[i], NULL);
        assert_int_equal(SAMPLE(0)->chain_count, 3);
        assert_true(SAMPLE(0)->chain[1] == CODE + 2);
        assert_true(SAMPLE(0)->chain[2] == CODE + 3);
        assert_int_equal(line_at(MAPPING(0)->path, MAPPING(0)->offset + 3, source, sizeof source),
                         10);
    }
}

TEST(the_verdict_wants_names_and_roots)
{
    static const struct {
        uint64_t address; /* of every fourth sample */
        uint64_t frames;  /* 3: up to libc, where threads begin */
        const char *verdict;
    } profiles[] = {{CODE, 3, "\"verdict\": \"good\""},
                    {CODE, 2, "\"verdict\": \"bad\""},
                    {CODE + 1024, 3, "\"verdict\": \"bad\""}};
    for (size_t i = 0; i < sizeof profiles / sizeof profiles[0]; i++) {
        OWN_PERF_FILE file = recording();
        write_simple_dump(state);
        put_mmap2(&file, PID, 0, CODE, 0x20000, "//anon");
        put_mmap2(&file, PID, 0, 0x7f0000100000, 0x1000, "/no/libc.so.6");
        put_mmap2(&file, PID, 0, 0x7f0000300000, 0x1000, "/no/libjvm.so");
        put_marker(&file, state);
        for (uint64_t k = 0; k < 20; k++) {
            uint64_t chain[] = {PERF_CONTEXT_USER, k % 4 ? CODE : profiles[i].address,
                                0x7f0000100010};
            put_sample(&file, PID, 1000200 + k, chain, profiles[i].frames);
        }
        perf_file_write(&file, scratch_path(state, "p.data"));
        (void)inject(state, "p.data", "r.data", "--scorecard", scratch_path(state, "card.json"),
                     NULL);
        static char text[8192];
        scratch_read_text(scratch_path(state, "card.json"), text, sizeof text);
        assert_non_null(strstr(text, profiles[i].verdict));
    }
}

/* A JVM in a container has put a link where its dump is recorded to be: to a file of ours. */
TEST_WITH(a_link_below_another_root_is_not_followed, scratch_create, scratch_remove)
{
    if (geteuid() != 0) {
        print_message("skipped: only root may change its root\n");
        skip();
    }
    int talk[2];
    char root[256], dump[256], name[64];
    snprintf(root, sizeof root, "%s", scratch_path(state, "root"));
    snprintf(dump, sizeof dump, "%s", scratch_path(state, "jit-4242.dump"));
    assert_int_equal(mkdir(root, 0700), 0);
    assert_int_equal(mkdir(scratch_path(state, "root/d"), 0700), 0);
    write_simple_dump(state);
    assert_int_equal(pipe(talk), 0);
    pid_t child = fork();
    if (child == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* also when a check fails */
        _exit(chroot(root) != 0 || write(talk[1], "r", 1) != 1 || pause());
    }
    assert_int_equal(read(talk[0], name, 1), 1);
    for (int linked = 0; linked < 2; linked++) {
        if (linked) {
            assert_int_equal(symlink(dump, scratch_path(state, "root/d/jit-4242.dump")), 0);
        } else {
            assert_int_equal(link(dump, scratch_path(state, "root/d/jit-4242.dump")), 0);
        }
        OWN_PERF_FILE file = recording();
        put_mmap2(&file, (uint32_t)child, 0, CODE, 0x20000, "//anon");
        put_mmap2(&file, (uint32_t)child, 1000050, 0x7f0000000000, 4096, "/d/jit-4242.dump");
        uint64_t chain[] = {PERF_CONTEXT_USER, CODE};
        put_sample(&file, (uint32_t)child, 1000200, chain, 2);
        mkdir(scratch_path(state, "p"), 0700);
        perf_file_write(&file, scratch_path(state, "p/p.data"));
        assert_int_equal(inject(state, "p/p.data", "r.data", NULL),
                         linked ? STATUS_FAILED : STATUS_DONE);
        assert_int_equal(unlink(scratch_path(state, "root/d/jit-4242.dump")), 0);
    }
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    close(talk[0]);
    close(talk[1]);
}

/* The status is that of a failure: nothing was named. But the rest is there. */
TEST(a_wrong_clock_is_told_and_costs_the_names_only)
{
    OWN_PERF_FILE file = recording();
    file.attrs[0].use_clockid = 0;
    write_simple_dump(state);
    put_marker(&file, state);
    put_mmap2(&file, PID, 1000060, CODE, 0x20000, "//anon");
    uint64_t chain[] = {PERF_CONTEXT_USER, CODE};
    put_sample(&file, PID, 1000200, chain, 2);
    perf_file_write(&file, scratch_path(state, "p.data"));
    assert_int_equal(
        inject(state, "p.data", "r.data", "--scorecard", scratch_path(state, "card.json"), NULL),
        STATUS_FAILED);
    static char text[8192];
    scratch_read_text(scratch_path(state, "card.json"), text, sizeof text);
    assert_non_null(strstr(text, "-k mono"));
    assert_non_null(strstr(text, "\"verdict\": \"bad\""));
    read_seen(state);
    assert_int_equal(count, 3);
}

/* A JVM that was killed before its dump had a header costs the other one nothing. */
TEST(an_empty_dump_costs_its_own_names_only)
{
    OWN_PERF_FILE file = recording();
    write_simple_dump(state);
    scratch_write(scratch_path(state, "jit-4243.dump"), "");
    put_marker(&file, state);
    put_mmap2(&file, PID + 1, 1000050, 0x7f0000000000, 4096, scratch_path(state, "jit-4243.dump"));
    uint64_t chain[] = {PERF_CONTEXT_USER, CODE};
    put_sample(&file, PID, 1000200, chain, 2);
    perf_file_write(&file, scratch_path(state, "p.data"));
    char empty[256];
    snprintf(empty, sizeof empty, "%s", scratch_path(state, "jit-4243.dump"));
    assert_int_equal(inject(state, "p.data", "r.data", NULL), STATUS_DONE);
    assert_int_equal(inject(state, "p.data", "r.data", "--dump", empty, NULL), STATUS_DONE);
    read_seen(state);
    assert_string_equal(symbol_at(MAPPING(0)->path, MAPPING(0)->offset), "a.A.m()");
    assert_null(MAPPING(1));

    /* With no other dump it is a failure; one that is not there was named by mistake. */
    scratch_write(scratch_path(state, "jit-4242.dump"), "");
    unlink(scratch_path(state, "r.data"));
    assert_int_equal(inject(state, "p.data", "r.data", NULL), STATUS_FAILED);
    assert_int_equal(access(scratch_path(state, "r.data"), R_OK), 0);
    unlink(scratch_path(state, "r.data"));
    assert_int_equal(inject(state, "p.data", "r.data", "--dump", "/no/jit-1.dump", NULL),
                     STATUS_FAILED);
    assert_int_equal(access(scratch_path(state, "r.data"), R_OK), -1);
}

/* Pids repeat: of two dumps of one name, each goes to the JVM that mapped it. */
TEST(dumps_of_one_name_go_to_their_own_jvms)
{
    OWN_PERF_FILE file = recording();
    struct dump_builder dump = {0};
    char path[2][256];
    static const char *const names[] = {"late", "early"};
    for (int i = 0; i < 2; i++) {
        uint64_t began = i ? 1000000 : 900000000;
        mkdir(scratch_path(state, names[i]), 0700);
        dump_header(&dump);
        memcpy(dump.bytes + 24, &began, 8);
        dump_load(&dump, began + 100, CODE, 16, 1, names[i]);
        snprintf(path[i], sizeof path[i], "%s/jit-1.dump", names[i]);
        write_dump(state, &dump, path[i]);
        snprintf(path[i], sizeof path[i], "%s/%s/jit-1.dump", (char *)*state, names[i]);
        put_mmap2(&file, i ? PID : PID + 1, began + 50, 0x7f0000000000, 4096, "/inside/jit-1.dump");
        uint64_t chain[] = {PERF_CONTEXT_USER, CODE};
        put_sample(&file, i ? PID : PID + 1, began + 200, chain, 2);
    }
    injected(state, &file, "--dump", path[0], "--dump", path[1], NULL);
    for (uint32_t i = 0; i < 2; i++) {
        assert_string_equal(symbol_at(MAPPING(i)->path, MAPPING(i)->offset),
                            MAPPING(i)->pid == PID ? "early" : "late");
    }
    assert_null(MAPPING(2));
    for (int i = 0; i < 2; i++) {
        unlink(path[i]);
        rmdir(scratch_path(state, names[i]));
    }
}

/* Its names are those of code that is long gone. */
TEST(the_dump_of_an_earlier_run_is_refused)
{
    for (int from = 0; from < 2; from++) {
        uint64_t mapped = from ? 20000000000 : 1000800; /* long after the last record, or soon */
        OWN_PERF_FILE file = recording();
        write_simple_dump(state); /* from 1000000 to 1000600 */
        if (!from) {
            put_task(&file, PERF_RECORD_FORK, PID, 1, PID, 1000700);
        }
        put_mmap2(&file, PID, mapped, 0x7f0000000000, 4096, scratch_path(state, "jit-4242.dump"));
        uint64_t chain[] = {PERF_CONTEXT_USER, CODE};
        put_sample(&file, PID, mapped + 100, chain, 2);
        perf_file_write(&file, scratch_path(state, "p.data"));
        assert_int_equal(inject(state, "p.data", "r.data", "--scorecard",
                                scratch_path(state, "card.json"), NULL),
                         STATUS_FAILED);
        static char text[8192];
        scratch_read_text(scratch_path(state, "card.json"), text, sizeof text);
        assert_non_null(strstr(text, "of an earlier run"));
        read_seen(state);
        assert_int_equal(count, from ? 2 : 3);
    }
}

/* Two containers whose JVMs share a directory: the second one's jit-1.dump took the first one's
 * place. */
TEST(a_replaced_dump_is_not_taken_for_the_first_ones)
{
    OWN_PERF_FILE file = recording();
    write_simple_dump(state);
    struct stat status;
    assert_int_equal(stat(scratch_path(state, "jit-4242.dump"), &status), 0);
    for (uint32_t i = 0; i < 2; i++) {
        put_marker(&file, state);
        uint8_t *record = file.records + file.size;
        record -= ((struct perf_event_header *)file.records)->size;
        uint64_t inode = i ? status.st_ino : status.st_ino + 1;
        uint32_t pid = PID + i;
        memcpy(record + 8, &pid, sizeof pid);
        memcpy(record + 48, &inode, sizeof inode);
    }
    for (uint32_t i = 0; i < 2; i++) {
        uint64_t chain[] = {PERF_CONTEXT_USER, CODE};
        put_sample(&file, PID + i, 1000200, chain, 2);
    }
    injected(state, &file, NULL);
    assert_int_equal(count, 5); /* the first one's marker, two samples, an image and its code */
    assert_int_equal(MAPPING(0)->pid, PID + 1);
}

/* A pid that was given twice while perf recorded: --dump finds the process by the dump's time. */
TEST(a_named_dump_goes_to_the_process_of_its_time)
{
    OWN_PERF_FILE file = recording();
    write_simple_dump(state);
    put_task(&file, PERF_RECORD_FORK, PID, 1, PID, 900000);
    put_task(&file, PERF_RECORD_FORK, PID, 1, PID, 2000000);
    uint64_t chain[] = {PERF_CONTEXT_USER, CODE};
    put_sample(&file, PID, 1000200, chain, 2);
    put_sample(&file, PID, 2000200, chain, 2);
    perf_file_write(&file, scratch_path(state, "p.data"));
    char dump[256];
    snprintf(dump, sizeof dump, "%s", scratch_path(state, "jit-4242.dump"));
    assert_int_equal(inject(state, "p.data", "r.data", "--dump", dump, NULL), STATUS_DONE);
    read_seen(state);
    assert_int_equal(MAPPING(0)->time, 1000200);
    assert_string_equal(symbol_at(MAPPING(0)->path, MAPPING(0)->offset), "a.A.m()");
    assert_null(MAPPING(1)); /* the second process has none */
}

/* The code before it has nothing to do with the stack; other callers' addresses lie in the call. */
TEST(the_return_barrier_is_no_return_address)
{
    struct dump_builder dump = dump_start();
    dump_load(&dump, 1000100, CODE, 16, 1, "cont_thaw");
    dump_load(&dump, 1000100, CODE + 16, 16, 2, "cont_returnBarrier");
    dump_load(&dump, 1000100, CODE + 32, 16, 3, "a.A.m()");
    write_dump(state, &dump, "jit-4242.dump");
    OWN_PERF_FILE file = recording();
    put_marker(&file, state);
    uint64_t chain[] = {PERF_CONTEXT_USER, CODE + 40, CODE + 16, CODE + 32};
    put_sample(&file, PID, 1000200, chain, 4);
    injected(state, &file, NULL);
    assert_true(SAMPLE(0)->chain[1] == CODE + 40);
    assert_true(SAMPLE(0)->chain[2] == CODE + 16);
    assert_true(SAMPLE(0)->chain[3] == CODE + 31); /* a call as the last instruction */
}

/* --call-graph fp,defer: the user's part of a chain comes in a record of its own, and is put where
 * it belongs. One that belongs to no sample stays what it is. */
TEST(late_call_chains_are_rewritten)
{
    OWN_PERF_FILE file = recording_of_jvm(state);
    uint64_t kernel[] = {PERF_CONTEXT_KERNEL, 0xffffffff81000000, PERF_CONTEXT_USER_DEFERRED, 77};
    put_sample(&file, PID, 1000350, kernel, 4);
    put_late_part(&file, 1000351, 77);
    put_late_part(&file, 1000352, 78);
    injected(state, &file, "--inline", "expand", "--scorecard", scratch_path(state, "card.json"),
             NULL);
    static char json[8192];
    scratch_read_text(scratch_path(state, "card.json"), json, sizeof json);
    assert_non_null(strstr(json, "\"samples\": 1,"));
    assert_non_null(strstr(json, "\"frames_in_generated_code_named\": 4,"));

    read_seen(state);
    assert_null(SAMPLE(1));
    assert_int_equal(SAMPLE(0)->time, 1000350);
    assert_int_equal(SAMPLE(0)->chain_count, 6);
    assert_true(SAMPLE(0)->chain[2] == PERF_CONTEXT_USER);
    assert_true(is_frame(SAMPLE(0)->chain[3])); /* the inlined method */
    assert_true(SAMPLE(0)->chain[4] == CODE + 4);
    assert_true(SAMPLE(0)->chain[5] == CODE + 64); /* in the call */

    struct perf_data *data;
    struct perf_record record;
    assert_int_equal(perf_data_open(scratch_path(state, "r.data"), &data), 0);
    do {
        assert_int_equal(perf_data_next(data, &record), 1);
    } while (record.type != PERF_RECORD_CALLCHAIN_DEFERRED);
    uint64_t words[8];
    assert_int_equal(record.size, 8 + sizeof words);
    memcpy(words, record.bytes + 8, sizeof words);
    assert_int_equal(words[0], 78);
    assert_int_equal(words[1], 4);
    assert_true(is_frame(words[3]));
    assert_true(words[4] == CODE + 4);
    assert_true(words[5] == CODE + 64);
    assert_int_equal(words[7], 1000352);
    perf_data_close(data);
}

/* One sample with registers and a stack copy; the stack itself is all zeros. */
static struct perf_file recording_with_copy(uint64_t abi)
{
    struct perf_file file = recording();
    file.attrs[0].sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
    file.attrs[0].sample_regs_user = 0x1c0; /* bp, sp, ip of x86-64 */
    uint64_t payload[] = {CODE + 5,
                          PID | (uint64_t)PID << 32,
                          1000200,
                          0,
                          abi,
                          CODE + 0x1000,
                          CODE + 0x2000,
                          CODE + 5,
                          16,
                          0,
                          0,
                          16};
    perf_file_record(&file, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, payload, sizeof payload);
    return file;
}

/* Their copies are dropped with the others', so what is known must be in the chain. */
TEST(samples_that_cannot_be_unwound_keep_their_own_address)
{
    static const uint64_t abis[] = {PERF_SAMPLE_REGS_ABI_32, PERF_SAMPLE_REGS_ABI_64};
    for (int i = 0; i < 2; i++) { /* a 32-bit program; a process that nobody heard of */
        OWN_PERF_FILE file = recording_with_copy(abis[i]);
        injected(state, &file, NULL);
        assert_int_equal(count, 1);
        assert_int_equal(seen[0].chain_count, 2);
        assert_true(seen[0].chain[0] == PERF_CONTEXT_USER);
        assert_true(seen[0].chain[1] == CODE + 5);
    }
}

TEST(copies_of_other_machines_are_left_alone)
{
    static const struct {
        uint32_t size;
        char text[12];
    } arch = {12, "riscv64"};
    OWN_PERF_FILE file = recording_with_copy(PERF_SAMPLE_REGS_ABI_64);
    perf_file_feature(&file, PERF_FEATURE_ARCH, &arch, sizeof arch);
    injected(state, &file, NULL);
    struct perf_data *data;
    struct perf_record record;
    assert_int_equal(perf_data_open(scratch_path(state, "r.data"), &data), 0);
    assert_true(perf_data_has(data, PERF_SAMPLE_STACK_USER));
    assert_int_equal(perf_data_next(data, &record), 1);
    assert_int_equal(record.size, file.size);
    assert_memory_equal(record.bytes, file.records, file.size);
    perf_data_close(data);
}

/* clock=tsc: the recording's clock is perf's own, and it tells how to convert. */
TEST(processor_time_stamps_are_converted)
{
    OWN_PERF_FILE file = recording();
    file.attrs[0].use_clockid = 0;
    struct dump_builder dump = dump_start();
    memcpy(dump.bytes + 32, (uint64_t[]){JITDUMP_FLAGS_ARCH_TIMESTAMP}, 8);
    dump_load(&dump, 3000000, CODE, 16, 1, "first");
    dump_load(&dump, 5000000, CODE, 16, 2, "second");
    write_dump(state, &dump, "jit-4242.dump");
    uint64_t conversion[] = {1, 1, 500}; /* time = 500 + stamp / 2 */
    perf_file_record(&file, PERF_USER_TIME_CONV, 0, conversion, sizeof conversion);
    put_mmap2(&file, PID, 400, 0x7f0000000000, 4096, scratch_path(state, "jit-4242.dump"));
    uint64_t chain[] = {PERF_CONTEXT_USER, CODE};
    put_sample(&file, PID, 1500600, chain, 2);
    put_sample(&file, PID, 2500600, chain, 2);
    injected(state, &file, NULL);
    assert_int_equal(MAPPING(0)->time, 1500600);
    assert_string_equal(symbol_at(MAPPING(0)->path, MAPPING(0)->offset), "first");
    assert_int_equal(MAPPING(1)->time, 2500600);
    assert_string_equal(symbol_at(MAPPING(1)->path, MAPPING(1)->offset), "second");
}

static void put_path(struct perf_file *file, uint64_t time, const char *path)
{
    put_mmap2(file, PID, time, 0x7f0000000000 + time, 4096, path);
}

/* The agent was stopped and started again: the second dump knows what the first did not hear of. */
TEST(a_second_dump_takes_over)
{
    OWN_PERF_FILE file = recording();
    struct dump_builder dump = {0};
    mkdir(scratch_path(state, "2"), 0700);
    dump_header(&dump);
    dump_load(&dump, 1000100, CODE, 16, 1, "old");
    dump_load(&dump, 1000100, CODE + 64, 16, 2, "gone");
    write_dump(state, &dump, "jit-4242.dump");
    dump_header(&dump);
    memcpy(dump.bytes + 24, (uint64_t[]){2000000}, 8); /* of the header: when it began */
    dump_load(&dump, 2000100, CODE, 16, 1, "new");
    write_dump(state, &dump, "2/jit-4242.dump");
    put_path(&file, 1000050, scratch_path(state, "jit-4242.dump"));
    put_path(&file, 2000050, scratch_path(state, "2/jit-4242.dump"));
    static const uint64_t times[] = {1500000, 2500000, 2500000};
    for (int i = 0; i < 3; i++) {
        uint64_t chain[] = {PERF_CONTEXT_USER, CODE + (i == 2 ? 64 : 0)};
        put_sample(&file, PID, times[i], chain, 2);
    }
    injected(state, &file, NULL);
    assert_string_equal(symbol_at(MAPPING(0)->path, MAPPING(0)->offset), "old");
    assert_string_equal(symbol_at(MAPPING(1)->path, MAPPING(1)->offset), "new");
    assert_string_not_equal(MAPPING(0)->path, MAPPING(1)->path);
    assert_null(MAPPING(2));
    unlink(scratch_path(state, "2/jit-4242.dump"));
    rmdir(scratch_path(state, "2"));
}

/* Renaming a result to /dev/null would take that away from the whole machine. */
TEST(only_a_file_is_replaced)
{
    OWN_PERF_FILE file = recording_of_jvm(state);
    uint64_t chain[] = {PERF_CONTEXT_USER, CODE};
    put_sample(&file, PID, 1000200, chain, 2);
    perf_file_write(&file, scratch_path(state, "p.data"));
    assert_int_equal(mkfifo(scratch_path(state, "pipe"), 0600), 0);
    assert_int_equal(inject(state, "p.data", "pipe", NULL), STATUS_FAILED);
    struct stat status;
    assert_int_equal(stat(scratch_path(state, "pipe"), &status), 0);
    assert_true(S_ISFIFO(status.st_mode));
    assert_int_equal(stat(scratch_path(state, "pipe-java.so"), &status), -1);
}

/* Calls of read, or of write, and their like, that this process has made: syscr or syscw. 0: the
 * kernel does not count them (CONFIG_TASK_IO_ACCOUNTING). */
static uint64_t count_calls(const char *name)
{
    char line[64];
    uint64_t calls = 0;
    size_t length = strlen(name);
    FILE *io = fopen("/proc/self/io", "re");
    while (io && fgets(line, sizeof line, io)) {
        if (strncmp(line, name, length) == 0 && line[length] == ':') {
            calls = strtoull(line + length + 1, NULL, 10);
        }
    }
    if (io) {
        fclose(io);
    }
    return calls;
}

/* Input comes by 1 MB, output goes by 256 KB: a call for each record or page was 9 s of 24 s. */
TEST(a_large_recording_goes_in_large_pieces)
{
    enum { SAMPLES = 20000, DEPTH = 120 };
    struct perf_file file = recording_of_jvm(state);
    uint64_t chain[DEPTH] = {PERF_CONTEXT_USER};
    for (uint64_t i = 1; i < DEPTH; i++) {
        chain[i] = CODE + 64 + i % 16;
    }
    for (uint64_t i = 0; i < SAMPLES; i++) {
        put_sample(&file, PID, 1000400 + i, chain, DEPTH);
        if (i % 1000 == 0) {
            put_round(&file);
        }
    }
    perf_file_write(&file, scratch_path(state, "p.data"));
    uint64_t reads = count_calls("syscr");
    uint64_t writes = count_calls("syscw");
    if (!writes) {
        free(file.records);
        print_message("/proc/self/io does not count\n");
        skip();
    }
    assert_int_equal(inject(state, "p.data", "r.data", NULL), STATUS_DONE);
    reads = count_calls("syscr") - reads;
    writes = count_calls("syscw") - writes;
    struct stat status;
    assert_int_equal(stat(scratch_path(state, "r.data"), &status), 0);
    assert_true(status.st_size > (off_t)SAMPLES * DEPTH * 8);
    uint64_t pieces = (uint64_t)status.st_size >> 16; /* 64 KB would do */
    assert_in_range(reads, 1, pieces);
    assert_in_range(writes, 1, pieces);
    free(file.records);
}

TEST(wrong_usage_is_told)
{
    char *none[] = {"inject", NULL};
    optind = 0;
    assert_int_equal(verb_inject.run(&verb_inject, 1, none), STATUS_USAGE);
    assert_int_equal(inject(state, "absent", "r.data", "--inline", "on", NULL), STATUS_USAGE);
    assert_int_equal(inject(state, "absent", "r.data", "rest", NULL), STATUS_USAGE);
    assert_int_equal(inject(state, "absent", "r.data", NULL), STATUS_FAILED);
    char *to_a_pipe[] = {"inject", "-i", "absent", "-o", "-", NULL};
    optind = 0;
    assert_int_equal(verb_inject.run(&verb_inject, 5, to_a_pipe), STATUS_USAGE);
}

TEST_MAIN(scratch_create, scratch_remove)
