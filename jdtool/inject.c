/*
 * jdtool inject: a recording and the dumps of its JVMs in, a recording that any perf can read out.
 *
 * The recording is read three times, each time as a stream:
 *   1. everything but the samples: who the JVMs are, where their dumps are;
 *   2. the samples: which code they touch, which inlined methods their chains will show, how many
 *      frames can be named;
 *   3. all of it, while the result is written: with a mapping for each stay of each touched piece
 *      of code, put where its time has come, and with the samples' chains rewritten.
 * Between the second and the third the images are written.
 */
#include "jdtool/inject.h"

#include "jdtool/save.h"

#include "jdtool/base/message.h"
#include "jdtool/base/output_file.h"
#include "jdtool/perf/perf_version.h"
#include "jdtool/sinks/call_chains.h"
#include "jdtool/sinks/image_mappings.h"
#include "jdtool/sinks/scorecard.h"
#include "jdtool/unwind/stack_copies.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct run {
    const struct inject_options *options;
    struct perf_data *data;
    struct processes *processes;
    struct jvms jvms;
    struct native_code *native;
    struct source_path *source_path;
    struct stack_counts stack_counts; /* of the survey */
    struct stack_copies *stacks;      /* NULL: samples have no copies, or those are to stay */
    struct call_chains *chains;
    struct scorecard *scorecard;
    struct image_files *files; /* by jvm */
    struct image_mappings *mappings;
    struct perf_writer *writer;
    uint64_t malformed; /* samples */
    bool has_result;
    uint8_t record[PERF_RECORD_SIZE_MAX];
};

static int no_memory(const struct run *run)
{
    error_message("failed to inject into %s: %s", run->options->input, strerror(ENOMEM));
    return -ENOMEM;
}

/* ---- The samples, read the first time ---- */

static int survey_samples(struct run *run)
{
    struct perf_record record;
    struct perf_sample sample;
    int more;
    perf_data_rewind(run->data);
    while ((more = perf_data_next(run->data, true, &record)) > 0) {
        if (!perf_record_has_sample(&record) || perf_sample_decode(run->data, &record, &sample)) {
            continue;
        }
        const struct process *process = processes_at(run->processes, sample.pid, sample.time);
        if (run->stacks) {
            stack_copies_unwind(run->stacks, process, &sample);
        }
        scorecard_add(run->scorecard, process, &sample);
        int err = jvms_of(process) ? call_chains_collect(run->chains, process, &sample) : 0;
        if (err) {
            return err;
        }
    }
    return more;
}

/* ---- The result ---- */

/*
 * The JVM's own mappings of memory for code: each growth of the code cache is one, and perf would
 * let it hide all methods mapped before (so would the reservation, which --call-graph dwarf records
 * with all other data mappings). And the dump's, or 'perf inject --jit' could be run on the
 * result.
 */
static bool is_dropped(const struct run *run, const struct perf_record *record)
{
    struct mapping mapping;
    uint32_t pid;
    if (!mapping_decode(run->data, record, &mapping, &pid)) {
        return false;
    }
    const struct process *process = processes_at(run->processes, pid, mapping.from);
    const struct jvm *first = NULL;
    for (const struct jvm *jvm = process ? process->owner : NULL; jvm; jvm = jvm->earlier) {
        if (jvm->index) {
            first = jvm;
            if (jvm->recorded && strcmp(jvm->recorded, mapping.path) == 0) {
                return true;
            }
        }
    }
    return first && mapping.anonymous && mapping.from >= first->from;
}

static int put_sample(struct run *run, const struct perf_record *record, struct perf_sample *sample)
{
    const struct process *process = processes_at(run->processes, sample->pid, sample->time);
    bool keep_user = !run->stacks;
    if (run->stacks) {
        stack_copies_unwind(run->stacks, process, sample);
    } else if (!jvms_of(process)) {
        perf_writer_put(run->writer, record->bytes, record->size);
        return 0;
    }
    int err = jvms_of(process) ? call_chains_rewrite(run->chains, process, sample) : 0;
    if (err) {
        return err;
    }
    size_t size = perf_sample_encode(sample, keep_user, run->record);
    while (size == 0 && sample->chain_count > 0) { /* too long: without the outermost frames */
        sample->chain_count -= sample->chain_count > 256 ? 256 : sample->chain_count;
        size = perf_sample_encode(sample, keep_user, run->record);
    }
    perf_writer_put(run->writer, run->record, size);
    return 0;
}

/*
 * perf sorts records by time within what it has read when a round ends, then lets go of all that
 * are not later than the end of the round before. So a mapping has to come before the end of the
 * first round in which its time is reached.
 */
static int put_records(struct run *run)
{
    struct perf_record record;
    struct perf_sample sample;
    uint64_t latest = 0;
    int more;
    int err = 0;
    perf_data_rewind(run->data);
    while (!err && (more = perf_data_next(run->data, true, &record)) > 0) {
        if (perf_record_has_sample(&record)) {
            if (perf_sample_decode(run->data, &record, &sample) == 0) {
                latest = sample.time > latest ? sample.time : latest;
                err = put_sample(run, &record, &sample);
            } else {
                run->malformed++; /* perf, too, makes nothing of one */
            }
            continue;
        }
        if (record.type == PERF_USER_FINISHED_ROUND) {
            image_mappings_put(run->mappings, latest, run->writer);
        } else {
            uint64_t time = perf_record_id(run->data, &record).time;
            latest = time > latest ? time : latest;
        }
        if (!is_dropped(run, &record)) {
            perf_writer_put(run->writer, record.bytes, record.size);
        }
    }
    image_mappings_put(run->mappings, UINT64_MAX, run->writer);
    return err ? err : more;
}

static int write_result(struct run *run)
{
    run->mappings = image_mappings_new(run->data, &run->jvms, run->files, run->options->keep_all);
    if (!run->mappings) {
        return no_memory(run);
    }
    int err = perf_writer_open(run->options->output, run->data, run->stacks != NULL, &run->writer);
    if (!err) {
        err = put_records(run);
    }
    if (err) {
        return err;
    }
    images_add_build_ids(run->files, run->jvms.count, run->writer);
    err = perf_writer_finish(run->writer);
    run->writer = NULL;
    run->has_result = err == 0;
    return err;
}

static int write_scorecard(struct run *run)
{
    const char **images = calloc(run->jvms.count + (size_t)1, sizeof *images);
    if (!images) {
        return no_memory(run);
    }
    for (uint32_t i = 0; i < run->jvms.count; i++) {
        images[i] = run->files[i].code_path;
    }
    struct scorecard_facts facts = {
        .recording = run->options->input,
        .result = run->options->output,
        .processes = run->processes,
        .jvms = &run->jvms,
        .images = images,
        .unwound = run->stacks ? &run->stack_counts : NULL,
        .had_stack_copies = perf_data_has(run->data, PERF_SAMPLE_STACK_USER),
        .has_chains = perf_data_has(run->data, PERF_SAMPLE_CALLCHAIN),
        .malformed = run->malformed,
    };
    int err = 0;
    if (run->options->scorecard) {
        err = scorecard_write_json(run->scorecard, &facts, run->options->scorecard);
    }
    if (!run->options->quiet) {
        scorecard_print(run->scorecard, &facts, stdout);
    }
    free(images);
    return err;
}

/*
 * One JVM of several may have died before it wrote its dump. But where all dumps are missing or
 * refused, nothing has become of what was asked for, and scripts must be able to tell.
 */
static int check_dumps(const struct run *run)
{
    for (uint32_t i = 0; i < run->jvms.count; i++) {
        if (run->jvms.list[i]->index) {
            return 0;
        }
    }
    if (run->jvms.count == 0 && run->options->dump_count == 0) {
        return 0;
    }
    error_message("failed to name the generated code of %s: not one of its dumps could be used; %s "
                  "has the rest",
                  run->options->input, run->options->output);
    return -ENODATA;
}

/* ---- All together ---- */

static bool wants_expansion(const struct inject_options *options)
{
    if (options->inline_mode == INLINE_AUTO) {
        return perf_major_version() < PERF_EXPANDS_INLINED;
    }
    return options->inline_mode == INLINE_EXPAND;
}

/* Finds out who is in the recording, and makes ready for reading the samples. */
static int prepare(struct run *run, bool expand)
{
    const struct inject_options *options = run->options;
    struct jvms_options jvms_options = {.dumps = options->dumps, .dump_count = options->dump_count};
    struct call_chains_options chains_options = {
        .expand = expand,
        .at_calls = options->inline_mode != INLINE_OFF,
        .leaf = options->leaf,
    };
    memcpy(jvms_options.suffixes, options->suffixes, sizeof jvms_options.suffixes);

    int err = output_path_check(options->output);
    if (!err) {
        err = source_path_open(options->source_path, &run->source_path);
    }
    if (!err) {
        err = perf_data_open(options->input, &run->data);
    }
    if (!err) {
        err = processes_read(run->data, &run->processes);
    }
    if (!err) {
        err = jvms_find(run->data, run->processes, &jvms_options, &run->jvms);
    }
    if (err) {
        return err;
    }
    run->chains = call_chains_new(&run->jvms, &chains_options);
    unsigned machine = stack_copies_machine(run->data, &run->jvms);
    if (native_code_new(run->data, machine, options->build_id_dir, &run->native)) {
        return no_memory(run);
    }
    run->scorecard = scorecard_new(run->native);
    if (!run->chains || !run->scorecard) {
        return no_memory(run);
    }
    bool has_copies = perf_data_has(run->data, PERF_SAMPLE_STACK_USER);
    if (has_copies && !options->keep_stacks && machine == EM_NONE) {
        warning_message("the stack copies of %s are of a machine that is neither x86-64 nor "
                        "aarch64; they are left as they are",
                        options->input);
    } else if (has_copies && !options->keep_stacks) {
        run->stacks = stack_copies_new(machine, &run->jvms, run->native);
        if (!run->stacks) {
            return no_memory(run);
        }
    }
    return 0;
}

static int run_all(struct run *run)
{
    const struct inject_options *options = run->options;
    bool expand = wants_expansion(options);
    int err = prepare(run, expand);
    if (err) {
        return err;
    }
    err = survey_samples(run);
    if (run->stacks) {
        run->stack_counts = *stack_copies_counts(run->stacks);
    }
    struct images_options images_options = {
        .result = options->output,
        .code = {.keep_all = options->keep_all,
                 .inlines = !expand && options->inline_mode != INLINE_OFF,
                 .source_path = run->source_path},
    };
    if (!err) {
        err = images_write(&run->jvms, &images_options, &run->files);
    }
    if (!err) {
        err = write_result(run);
    }
    if (!err) {
        err = write_scorecard(run);
    }
    if (!options->quiet) {
        objects_tell(native_code_objects(run->native));
    }
    return err ? err : check_dumps(run);
}

static void clean_up(struct run *run)
{
    perf_writer_abort(run->writer);
    image_mappings_free(run->mappings);
    images_free(run->files, run->jvms.count);
    call_chains_free(run->chains);
    stack_copies_free(run->stacks);
    scorecard_free(run->scorecard);
    native_code_free(run->native);
    jvms_free(&run->jvms);
    processes_free(run->processes);
    perf_data_close(run->data);
    source_path_close(run->source_path);
}

int inject(const struct inject_options *options)
{
    struct run *run = calloc(1, sizeof *run);
    if (!run) {
        error_message("failed to inject into %s: %s", options->input, strerror(ENOMEM));
        return -ENOMEM;
    }
    run->options = options;
    int err = run_all(run);
    if (!err && options->save) {
        err = save_samples(options);
    }
    if (err && !run->has_result) {
        images_remove(run->files, run->jvms.count);
    }
    clean_up(run);
    free(run);
    return err;
}
