/*
 * Two looks at what jdtool builds stacks on, for the tests:
 *
 *   stack-check frames DUMP   is every reachable instruction decoded, and does the frame size that
 *                             the analysis finds agree with the JVM's own for every method?
 *   stack-check calls DATA    the calls of interpreted methods that the stacks of a recording show,
 *                             each once: caller, bci, callee, and how often
 *   stack-check ends DATA     how many stacks with Java frames there are, and how many reach the
 *                             root or were cut off by the kernel
 *   stack-check stacks DATA   every sample, one in a line; "-" is a pipe, as for jdtool inject
 */
#include "jdtool/perf/perf_data.h"
#include "jdtool/pipeline/stream.h"
#include "jdtool/resolve/resolver.h"
#include "jdtool/unwind/code_frames.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int check_frames(const char *path)
{
    struct code_index *index;
    if (code_index_open(path, &index) != 0) {
        return 1;
    }
    struct code_frames *frames = code_frames_new(index);
    uint32_t told = 0;
    uint32_t differ = 0;
    uint32_t undecodable = 0;
    for (uint32_t i = 0; frames && i < code_index_blob_count(index); i++) {
        const struct blob_frames *blob = code_frames_of(frames, i);
        const char *name = code_index_blob(index, i)->name;
        if (blob->shape == FRAMES_COMPILED && blob->frames.undecodable) {
            undecodable++;
            printf("does not decode: %s\n", name);
        }
        if (blob->shape == FRAMES_COMPILED && blob->told_frame_size > 0) {
            told++;
            if (blob->told_frame_size != blob->frames.frame_size) {
                differ++;
                printf("frame size %u, the JVM says %" PRId64 ": %s\n", blob->frames.frame_size,
                       blob->told_frame_size, name);
            }
        }
    }
    printf("%u methods: %u frame sizes differ, %u do not decode\n", told, differ, undecodable);
    code_frames_free(frames);
    code_index_close(index);
    return told == 0 || differ || undecodable;
}

/* ---- Stacks: a sample sink ---- */

struct checker {
    struct sample_sink sink;
    bool calls;
    uint64_t stacks; /* with frames in Java code */
    uint64_t rooted;
    uint64_t cut; /* by the kernel */
};

static int begin(struct sample_sink *sink, const struct recording *recording)
{
    (void)sink;
    (void)recording;
    return 0;
}

/* The name of a frame in Java code; NULL: it is none. */
static const char *java_name(const struct location *location)
{
    const struct resolved_frame *frame = location_own(location);
    if (frame->kind == RESOLVED_INTERPRETED) {
        return frame->method->kind == RESOLVED_INTERPRETED ? frame->method->name : NULL;
    }
    const struct resolved_code *code = location->code;
    return code && strchr(code->symbol, '.') ? code->symbol : NULL;
}

static void print_calls(const struct resolved_sample *sample)
{
    const struct location *callee = NULL;
    for (uint32_t at = sample->node; at; at = sample->stacks->nodes[at].caller) {
        const struct location *location = stack_table_at(sample->stacks, at);
        const struct resolved_frame *frame = location_own(location);
        if (frame->kind == RESOLVED_INLINED || frame->kind == RESOLVED_KERNEL) {
            continue;
        }
        if (callee && frame->kind == RESOLVED_INTERPRETED && java_name(location) &&
            frame->bci_ref && java_name(callee)) {
            printf("%s\t%d\t%s\n", java_name(location), frame->bci_ref - 1, java_name(callee));
        }
        callee = location;
    }
}

static int take_sample(struct sample_sink *sink, const struct resolved_sample *sample)
{
    struct checker *checker = (struct checker *)sink;
    bool java = false;
    if (!sample->recorded->unwound) {
        return 0;
    }
    if (checker->calls) {
        print_calls(sample);
    }
    for (uint32_t at = sample->node; at; at = sample->stacks->nodes[at].caller) {
        const struct location *location = stack_table_at(sample->stacks, at);
        java |= location->code || location_own(location)->kind == RESOLVED_INTERPRETED;
    }
    checker->stacks += java;
    checker->rooted += java && (sample->end == STACK_ROOT || sample->end == STACK_FROZEN);
    checker->cut += java && sample->end == STACK_COPY_CUT;
    return 0;
}

/* One sample in a line: thread, time, how the stack ends, and the frames. */
static int print_stack(struct sample_sink *sink, const struct resolved_sample *sample)
{
    (void)sink;
    printf("%u %u %" PRIu64 " %d", sample->thread.pid, sample->thread.tid, sample->time,
           sample->end);
    for (uint32_t at = sample->node; at; at = sample->stacks->nodes[at].caller) {
        const struct location *location = stack_table_at(sample->stacks, at);
        const char *where = location->module ? location->module->path : "?";
        for (uint32_t i = 0; i < location->line_count; i++) {
            const struct resolved_frame *frame = &location->lines[i];
            printf("\t%d %" PRIx64 " %s:%u", frame->kind, location->address,
                   frame->method ? frame->method->name : where, frame->line);
        }
    }
    putchar('\n');
    return 0;
}

static int end_printing(struct sample_sink *sink)
{
    (void)sink;
    return 0;
}

static int end(struct sample_sink *sink)
{
    struct checker *checker = (struct checker *)sink;
    if (!checker->calls) {
        printf("%" PRIu64 " %" PRIu64 " %" PRIu64 "\n", checker->stacks, checker->rooted,
               checker->cut);
    }
    return 0;
}

static void abort_checker(struct sample_sink *sink)
{
    (void)sink;
}

static int read_samples(const char *path, const struct sample_sink_ops *ops, bool calls)
{
    struct checker checker = {.sink = {ops}, .calls = calls};
    struct sample_sink *const sinks[] = {&checker.sink};
    const struct stream_options options = {.input = path};
    struct stream_result result;
    return stream_run(&options, sinks, 1, &result) != 0;
}

int main(int argc, char **argv)
{
    static const struct sample_sink_ops check = {
        .begin = begin, .sample = take_sample, .end = end, .abort = abort_checker};
    static const struct sample_sink_ops print = {
        .begin = begin, .sample = print_stack, .end = end_printing, .abort = abort_checker};
    if (argc == 3 && strcmp(argv[1], "frames") == 0) {
        return check_frames(argv[2]);
    }
    if (argc == 3 && strcmp(argv[1], "calls") == 0) {
        return read_samples(argv[2], &check, true);
    }
    if (argc == 3 && strcmp(argv[1], "ends") == 0) {
        return read_samples(argv[2], &check, false);
    }
    if (argc == 3 && strcmp(argv[1], "stacks") == 0) {
        return read_samples(argv[2], &print, false);
    }
    fputs("usage: stack-check frames DUMP | calls|ends|stacks DATA\n", stderr);
    return 2;
}
