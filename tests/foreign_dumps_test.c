/*
 * Reads dumps of other runtimes: .NET and GraalVM native images. What is unlike ours is said at
 * each.
 */
#include "test.h"

#include "jdtool/base/verb.h"
#include "tests/recording_builder.h"
#include "tests/scratch.h"

#include <getopt.h>

/* The recording's stacks in a format that is text; the caller frees. */
static char *exported(void **state, struct perf_file *file, char *format)
{
    char input[256], output[256];
    snprintf(input, sizeof input, "%s", scratch_path(state, "p.data"));
    snprintf(output, sizeof output, "%s", scratch_path(state, "stacks"));
    perf_file_write(file, input);
    free(file->records);
    char *argv[] = {"export", "-i", input, "--format", format, "-o", output, NULL};
    optind = 0;
    assert_int_equal(verb_export.run(&verb_export, sizeof argv / sizeof *argv - 1, argv),
                     STATUS_DONE);
    size_t size;
    char *text = (char *)scratch_read(output, &size);
    assert_non_null(text);
    return text;
}

static void write_dump(void **state, struct dump_builder *dump)
{
    write_bytes(scratch_path(state, "jit-4242.dump"), dump->bytes, dump->size);
    dump_free(dump);
}

static void put_leaf(struct perf_file *file, uint64_t time, uint64_t address)
{
    uint64_t chain[] = {PERF_CONTEXT_USER, address};
    put_sample(file, PID, time, chain, 2);
}

/*
 * .NET (since 5; seen: 10): records end where their code does, at any byte; names have blanks and
 * brackets; nothing closes the dump; code is executed through a mapping of a memfd, which has a
 * path like a file's. A group of stubs whose memory is committed in part cannot be written whole:
 * writev(2) stops at the first page that is not there, the runtime gives the dump up, and what it
 * told of before is to keep its names.
 */
TEST_WITH(dotnet, scratch_create, scratch_remove)
{
    static const char name[] = "int32 [Spin] Spin::Fib(int32)[OptimizedTier1]";
    struct dump_builder dump = dump_start();
    dump_load(&dump, 1000100, CODE, 17, 1, "stub<1> GenerateResolveStub");
    dump_load(&dump, 1000101, CODE + 32, 21, 2, name);
    dump_load(&dump, 1000102, CODE + 64, 17, 3, "void [a] A`1[System.__Canon]::M()[Tier0]");
    dump_load(&dump, 1000103, OTHER_CODE, 600, 4, "stub<4> AllocateLoaderHeap");
    dump.size -= 500;
    write_dump(state, &dump);

    struct perf_file file = recording();
    put_comm(&file, PID, PID, 1000001, "dotnet", true);
    put_mmap2(&file, PID, 1000040, 0x7f0000000000, 4096, scratch_path(state, "jit-4242.dump"));
    put_mmap2(&file, PID, 1000050, CODE, 0x10000, "/memfd:doublemapper (deleted)");
    put_round(&file);
    put_leaf(&file, 1000200, CODE + 1);
    put_leaf(&file, 1000201, CODE + 32 + 20);
    put_leaf(&file, 1000202, CODE + 64);
    put_round(&file);
    char *stacks = exported(state, &file, "collapsed");
    assert_non_null(strstr(stacks, "dotnet;stub<1> GenerateResolveStub 1\n"));
    assert_non_null(strstr(stacks, "dotnet;int32 [Spin] Spin::Fib(int32)[OptimizedTier1] 1\n"));
    assert_non_null(strstr(stacks, "dotnet;void [a] A`1[System.__Canon]::M()[Tier0] 1\n"));
    assert_null(strstr(stacks, "unknown"));
    free(stacks);
}

/*
 * A native image's code that was compiled at run time (-H:RuntimeDebugInfoFormat=jitdump): the file
 * is mapped before it has a header; code indexes begin with 0; a DEBUG_INFO has a stamp of its own,
 * before its LOAD's; the ranges of its inline tree are entries in order of descent, so that one
 * place has its caller's line first and its own behind it; a CLOSE ends the dump.
 */
TEST_WITH(native_image, scratch_create, scratch_remove)
{
    struct dump_builder dump = dump_start();
    dump_begin_debug(&dump, 1000100, CODE, 4);
    dump_entry(&dump, CODE, 10, "org/x/Root.java");
    dump_entry(&dump, CODE + 4, 11, "org/x/Root.java");
    dump_entry(&dump, CODE + 4, 77, "org/x/Inlined.java");
    dump_entry(&dump, CODE + 9, 12, "org/x/Root.java");
    dump_end(&dump);
    dump_load(&dump, 1000107, CODE, 19, 0, "org.x.Root::call(java.lang.Object[])");
    dump_begin_debug(&dump, 1000110, CODE + 48, 1);
    dump_entry(&dump, CODE + 48, 5, "org/x/Other.java");
    dump_end(&dump);
    dump_load(&dump, 1000117, CODE + 48, 3, 1, "org.x.Other::call()");
    dump_close(&dump, 1000900);
    write_dump(state, &dump);
    char path[256];
    snprintf(path, sizeof path, "%s", scratch_path(state, "jit-4242.dump"));
    char *argv[] = {"verify", path, NULL};
    optind = 0;
    assert_int_equal(verb_verify.run(&verb_verify, 2, argv), STATUS_DONE);

    struct perf_file file = recording();
    put_comm(&file, PID, PID, BUILDER_START - 9, "image", true);
    put_mmap2(&file, PID, BUILDER_START - 5, 0x7f0000000000, 4096, path);
    put_mmap2(&file, PID, 1000050, CODE, 0x10000, "//anon");
    put_round(&file);
    put_leaf(&file, 1000200, CODE + 5);
    put_leaf(&file, 1000201, CODE + 48);
    put_round(&file);
    char *frames = exported(state, &file, "speedscope");
    assert_non_null(
        strstr(frames, "\"org.x.Root::call(java.lang.Object[])\",\"file\":\"org/x/Root.java\""));
    assert_non_null(strstr(frames, "\"org.x.Other::call()\",\"file\":\"org/x/Other.java\""));
    assert_non_null(strstr(frames, "\"samples\":[[0],[1]]"));
    free(frames);
}

TEST_MAIN(NULL, NULL)
