/*
 * Two looks at what jdtool builds stacks on, for the tests:
 *
 *   stack-check frames DUMP     is every reachable instruction decoded, and does the frame size
 * that the analysis finds agree with the JVM's own for every method? stack-check calls DATA the
 * calls of interpreted methods that the stacks of a recording show, each once: caller, bci, callee,
 * and how often stack-check ends DATA       how many stacks with Java frames there are, and how
 * many reach the root or were cut off by the kernel
 */
#include "jdtool/perf/perf_data.h"
#include "jdtool/perf/processes.h"
#include "jdtool/unwind/code_frames.h"
#include "jdtool/unwind/stack_copies.h"

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

struct recording {
    struct perf_data *data;
    struct processes *processes;
    struct jvms jvms;
    struct native_code *native;
    struct stack_copies *stacks;
};

static int open_recording(const char *path, struct recording *recording)
{
    struct jvms_options options = {.suffixes = {"", ""}};
    if (perf_data_open(path, &recording->data) != 0 ||
        processes_read(recording->data, &recording->processes) != 0 ||
        jvms_find(recording->data, recording->processes, &options, &recording->jvms) != 0) {
        return -1;
    }
    unsigned machine = stack_copies_machine(recording->data, &recording->jvms);
    if (native_code_new(recording->data, machine, NULL, &recording->native)) {
        return -1;
    }
    recording->stacks = stack_copies_new(machine, &recording->jvms, recording->native);
    perf_data_rewind(recording->data);
    return recording->stacks ? 0 : -1;
}

static void close_recording(struct recording *recording)
{
    stack_copies_free(recording->stacks);
    native_code_free(recording->native);
    jvms_free(&recording->jvms);
    processes_free(recording->processes);
    perf_data_close(recording->data);
}

/* The name of a frame in Java code; NULL: it is none. */
static const char *java_name(struct recording *recording, const struct process *process,
                             uint64_t time, const struct unwind_frame *frame)
{
    struct interpreted_frame named;
    struct code_place place;
    if (frame->kind == UNWIND_INTERPRETED) {
        return stack_copies_interpreted(recording->stacks, frame, &named) ? named.method->name
                                                                          : NULL;
    }
    if (frame->kind != UNWIND_GENERATED || !jvms_code_at(process, frame->ip, time, &place)) {
        return NULL;
    }
    const char *name = code_index_blob(place.jvm->index, place.of->blob)->name;
    return strchr(name, '.') ? name : NULL;
}

static void print_calls(struct recording *recording, const struct process *process, uint64_t time)
{
    uint32_t count;
    struct interpreted_frame caller;
    const struct unwind_frame *frames = stack_copies_frames(recording->stacks, &count);
    for (uint32_t i = 1; i < count; i++) {
        if (frames[i].kind == UNWIND_INTERPRETED &&
            stack_copies_interpreted(recording->stacks, &frames[i], &caller) && caller.bci >= 0) {
            const char *callee = java_name(recording, process, time, &frames[i - 1]);
            if (callee) {
                printf("%s\t%" PRId64 "\t%s\n", caller.method->name, caller.bci, callee);
            }
        }
    }
}

static int read_samples(const char *path, bool calls)
{
    struct recording recording = {0};
    struct perf_record record;
    struct perf_sample sample;
    int more = -1;
    if (open_recording(path, &recording) == 0) {
        while ((more = perf_data_next(recording.data, true, &record)) > 0) {
            if (record.type == PERF_RECORD_SAMPLE &&
                perf_sample_decode(recording.data, &record, &sample) == 0 && sample.stack) {
                const struct process *process =
                    processes_at(recording.processes, sample.pid, sample.time);
                stack_copies_unwind(recording.stacks, process, &sample);
                if (calls && sample.unwound) {
                    print_calls(&recording, process, sample.time);
                }
            }
        }
        if (!calls) {
            const struct stack_counts *counts = stack_copies_counts(recording.stacks);
            uint64_t stacks = 0;
            for (int i = 0; i < STACK_ENDS; i++) {
                stacks += counts->java_stacks[i];
            }
            printf("%" PRIu64 " %" PRIu64 " %" PRIu64 "\n", stacks, counts->java_stacks[STACK_ROOT],
                   counts->java_stacks[STACK_COPY_CUT]);
        }
    }
    close_recording(&recording);
    return more < 0;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "frames") == 0) {
        return check_frames(argv[2]);
    }
    if (argc == 3 && strcmp(argv[1], "calls") == 0) {
        return read_samples(argv[2], true);
    }
    if (argc == 3 && strcmp(argv[1], "ends") == 0) {
        return read_samples(argv[2], false);
    }
    fputs("usage: stack-check frames DUMP | calls DATA | ends DATA\n", stderr);
    return 2;
}
