/*
 * Makes the seeds of the inject and the pipe fuzzer: recordings with samples of different shapes,
 * with a dump.
 * usage: make_inject_corpus DIRECTORY [pipe]
 */
#include "../dump_builder.h"
#include "../perf_file.h"

#include <time.h>

#define CODE UINT64_C(0x7f0000010000)

static int pipes; /* as perf record -o - writes them */

static void save(const char *directory, const char *name, uint8_t options,
                 const struct perf_file *file, struct dump_builder *dump)
{
    char path[4096], part[4096];
    snprintf(path, sizeof path, "%s/%s.bin", directory, name);
    snprintf(part, sizeof part, "%s/%s.part", directory, name);
    if (pipes) {
        FILE *made = fopen(part, "we");
        perf_file_write_pipe(file, made);
        fclose(made);
    } else {
        perf_file_write(file, part);
    }
    static uint8_t bytes[65536];
    FILE *in = fopen(part, "re");
    FILE *out = fopen(path, "we");
    if (!in || !out) {
        perror(path);
        exit(1);
    }
    size_t size = fread(bytes, 1, sizeof bytes, in);
    uint8_t head[3] = {options, (uint8_t)size, (uint8_t)(size >> 8)};
    fwrite(head, 1, sizeof head, out);
    fwrite(bytes, 1, size, out);
    fwrite(dump->bytes, 1, dump->size, out);
    fclose(in);
    fclose(out);
    remove(part);
    dump_free(dump);
    free(file->records);
}

static struct perf_file recording(uint64_t extra)
{
    struct perf_file file = {.attr_count = 1};
    file.attrs[0] = (struct perf_event_attr){
        .size = sizeof file.attrs[0],
        .sample_type =
            PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CALLCHAIN | extra,
        .sample_regs_user = UINT64_C(0xff0fff), /* x86-64's, with ip and sp */
        .sample_stack_user = 64,
        .sample_id_all = 1,
        .use_clockid = 1,
        .clockid = CLOCK_MONOTONIC,
    };
    return file;
}

static void put_mapping(struct perf_file *file, const char *path)
{
    uint64_t payload[16] = {BUILDER_PID | (uint64_t)BUILDER_PID << 32,
                            CODE,
                            0x10000,
                            0,
                            0,
                            0,
                            0,
                            4 | UINT64_C(2) << 32};
    memcpy(payload + 8, path, strlen(path) + 1);
    payload[11] = payload[0];
    payload[12] = 1000050;
    perf_file_record(file, PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER, payload, 13 * 8);
}

static void put_sample(struct perf_file *file, uint64_t time, const uint64_t *rest, size_t words)
{
    uint64_t payload[128] = {
        CODE + 5, BUILDER_PID | (uint64_t)BUILDER_PID << 32, time, 3, PERF_CONTEXT_USER, CODE + 5,
        CODE + 70};
    if (words) {
        memcpy(payload + 7, rest, words * 8);
    }
    perf_file_record(file, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, payload, (7 + words) * 8);
}

static struct dump_builder dump(void)
{
    struct dump_builder dump = {0};
    dump_header(&dump);
    dump_group(&dump, 1000100, CODE, 16, 2, "a.A.m()");
    dump_load(&dump, 1000300, CODE + 64, 16, 3, "stub");
    dump_group(&dump, 1000500, CODE, 16, 4, "a.A.later()");
    dump_move(&dump, 1000600, CODE + 64, CODE + 128, 16, 3);
    dump_close(&dump, 1000700);
    return dump;
}

int main(int argc, char **argv)
{
    if (argc != 2 && argc != 3) {
        return 2;
    }
    pipes = argc == 3;
    struct dump_builder code = dump();
    struct perf_file file = recording(0);
    put_mapping(&file, "/x/jit-4242.dump");
    put_mapping(&file, "//anon");
    put_sample(&file, 1000200, NULL, 0);
    perf_file_record(&file, PERF_USER_FINISHED_ROUND, 0, NULL, 0);
    put_sample(&file, 1000550, NULL, 0);
    save(argv[1], "chains", 4, &file, &code);

    /* registers, then the copy with room for a frame */
    uint64_t stack[19 + 1 + 8 + 2] = {PERF_SAMPLE_REGS_ABI_64};
    stack[7] = CODE + 0x1000; /* rbp */
    stack[8] = CODE + 0x2000; /* rsp */
    stack[9] = CODE + 5;      /* rip */
    stack[21] = 64;
    stack[22] = CODE + 70;
    stack[30 - 1] = 64;
    code = dump();
    file = recording(PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER);
    put_mapping(&file, "/x/jit-4242.dump");
    put_sample(&file, 1000200, stack, 30);
    save(argv[1], "stacks", 1, &file, &code);

    uint64_t branches[] = {1, CODE, CODE + 64, 0, 8, 0};
    code = dump();
    file = recording(PERF_SAMPLE_BRANCH_STACK | PERF_SAMPLE_RAW | PERF_SAMPLE_IDENTIFIER);
    put_mapping(&file, "/x/jit-4242.dump");
    put_sample(&file, 1000200, branches, 6);
    save(argv[1], "branches", 8, &file, &code);
    return 0;
}
