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
#include "inject/call_chains.h"
#include "inject/code_image.h"
#include "inject/message.h"
#include "inject/perf_version.h"
#include "inject/scorecard.h"
#include "inject/stack_copies.h"
#include "inject/verb.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum inline_mode { INLINE_AUTO, INLINE_EXPAND, INLINE_DWARF, INLINE_OFF };

struct options {
    const char *input;
    const char *output;
    const char *source_path;
    const char *scorecard;
    char **dumps;
    uint32_t dump_count;
    enum inline_mode inline_mode;
    const char *suffixes[FRAME_KINDS];
    bool leaf;
    bool keep_all;
    bool keep_stacks;
    bool quiet;
};

/* A mapping that has to be put into the result. */
struct insertion {
    uint64_t time;
    uint32_t jvm;
    uint32_t stay; /* FRAMES: the image of its frames */
};
#define FRAMES UINT32_MAX

/* The files of one JVM, by their absolute paths; NULL: there is none. */
struct files {
    char *code_path;
    char *frames_path;
    struct code_image code;
    uint8_t frames_build_id[BUILD_ID_MAX];
};

struct run {
    const struct options *options;
    struct perf_data *data;
    struct processes *processes;
    struct jvms jvms;
    struct source_path *source_path;
    struct stack_counts stack_counts; /* of the survey */
    struct stack_copies *stacks;      /* NULL: samples have no copies, or those are to stay */
    struct call_chains *chains;
    struct scorecard *scorecard;
    struct files *files; /* by jvm */
    struct perf_writer *writer;
    struct insertion *insertions; /* by time */
    uint32_t insertion_count;
    uint32_t insertion_next;
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
        if (record.type != PERF_RECORD_SAMPLE || perf_sample_decode(run->data, &record, &sample)) {
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

/* ---- Images ---- */

/*
 * Where an image goes: beside the result, under an absolute path, for perf report is run anywhere.
 * perf takes files under /tmp/perf- for perf maps, so such a path gets a detour.
 */
static char *image_path(const struct run *run, const struct jvm *jvm, const char *suffix)
{
    const char *output = run->options->output;
    const char *slash = strrchr(output, '/');
    const char *name = slash ? slash + 1 : output;
    size_t stem = strlen(name);
    char directory[PATH_MAX];
    char *given = slash ? strndup(output, (size_t)(slash - output) + 1) : strdup(".");
    bool found = given && realpath(given, directory);
    char *path = NULL;
    unsigned number = 1; /* of the dumps with this pid */
    free(given);
    if (!found) {
        error_message("failed to find the directory of %s: %s", output, strerror(errno));
        return NULL;
    }
    for (uint32_t i = 0; run->jvms.list[i] != jvm; i++) {
        number += run->jvms.list[i]->process->pid == jvm->process->pid;
    }
    if (stem > 5 && strcmp(name + stem - 5, ".data") == 0) {
        stem -= 5;
    }
    char ordinal[16] = "";
    if (number > 1) {
        snprintf(ordinal, sizeof ordinal, "-%u", number);
    }
    const char *detour = "";
    const char *rest = strcmp(directory, "/") == 0 ? "" : directory;
    if (strncmp(directory, "/tmp/perf-", 10) == 0 ||
        (strcmp(directory, "/tmp") == 0 && strncmp(name, "perf-", 5) == 0)) {
        detour = "/tmp/.";
        rest = directory + 4;
    }
    if (asprintf(&path, "%s%s/%.*s-%u%s%s.so", detour, rest, (int)stem, name, jvm->process->pid,
                 ordinal, suffix) < 0) {
        (void)no_memory(run);
        return NULL;
    }
    return path;
}

static int write_images(struct run *run, const struct jvm *jvm, struct files *files,
                        const struct code_image_options *image_options)
{
    files->code_path = image_path(run, jvm, "");
    if (!files->code_path) {
        return -EIO;
    }
    int err = code_image_write(jvm, files->code_path, image_options, &files->code);
    if (err) {
        return err;
    }
    if (frame_table_lay_out(jvm->frames)) {
        return no_memory(run);
    }
    if (frame_table_count(jvm->frames) == 0) {
        return 0;
    }
    files->frames_path = image_path(run, jvm, "-frames");
    if (!files->frames_path) {
        return -EIO;
    }
    return frame_table_write(jvm->frames, (uint16_t)code_index_header(jvm->index)->elf_mach,
                             run->source_path, files->frames_path, files->frames_build_id);
}

static int write_all_images(struct run *run, bool inlines)
{
    struct code_image_options image_options = {
        .keep_all = run->options->keep_all,
        .inlines = inlines,
        .source_path = run->source_path,
    };
    int err = 0;
    run->files = calloc(run->jvms.count + (size_t)1, sizeof *run->files);
    if (!run->files) {
        return no_memory(run);
    }
    for (uint32_t i = 0; i < run->jvms.count && !err; i++) {
        if (run->jvms.list[i]->index) {
            err = write_images(run, run->jvms.list[i], &run->files[i], &image_options);
        }
    }
    return err;
}

/* ---- Insertions ---- */

static bool is_mapped(const struct run *run, uint32_t jvm, uint32_t stay)
{
    const struct code_index *index = run->jvms.list[jvm]->index;
    bool touched = run->jvms.list[jvm]->touched_stays[stay / 64] >> (stay % 64) & 1;
    return (touched || run->options->keep_all) &&
           run->files[jvm].code.offsets[code_index_stay(index, stay)->blob] != 0;
}

static int by_time(const void *left, const void *right)
{
    const struct insertion *a = left;
    const struct insertion *b = right;
    if (a->time != b->time) {
        return a->time < b->time ? -1 : 1;
    }
    return (a->stay > b->stay) - (a->stay < b->stay);
}

static int list_insertions(struct run *run)
{
    size_t room = 0;
    for (uint32_t i = 0; i < run->jvms.count; i++) {
        const struct code_index *index = run->jvms.list[i]->index;
        room += index ? code_index_stay_count(index) + (size_t)1 : 0;
    }
    run->insertions = calloc(room + 1, sizeof *run->insertions);
    if (!run->insertions) {
        return no_memory(run);
    }
    for (uint32_t i = 0; i < run->jvms.count; i++) {
        const struct jvm *jvm = run->jvms.list[i];
        if (run->files[i].frames_path) {
            run->insertions[run->insertion_count++] = (struct insertion){jvm->from, i, FRAMES};
        }
        uint32_t stays = jvm->index ? code_index_stay_count(jvm->index) : 0;
        for (uint32_t stay = 0; stay < stays; stay++) {
            if (is_mapped(run, i, stay)) {
                uint64_t from = code_index_stay(jvm->index, stay)->from;
                run->insertions[run->insertion_count++] =
                    (struct insertion){jvm_recording_time(jvm, from), i, stay};
            }
        }
    }
    if (run->insertion_count) {
        qsort(run->insertions, run->insertion_count, sizeof *run->insertions, by_time);
    }
    return 0;
}

/* PERF_RECORD_MMAP2 up to the file's name. */
struct mmap2_record {
    struct perf_event_header header;
    uint32_t pid;
    uint32_t tid;
    uint64_t address;
    uint64_t size;
    uint64_t file_offset;
    uint8_t build_id_size;
    uint8_t reserved[3];
    uint8_t build_id[BUILD_ID_MAX];
    uint32_t protection;
    uint32_t flags;
};
_Static_assert(sizeof(struct mmap2_record) == 72, "mmap2_record");

static void put_insertion(struct run *run, const struct insertion *insertion)
{
    const struct jvm *jvm = run->jvms.list[insertion->jvm];
    const struct files *files = &run->files[insertion->jvm];
    const char *path = files->code_path;
    struct mmap2_record mmap = {
        .pid = jvm->process->pid,
        .tid = jvm->process->pid,
        .build_id_size = BUILD_ID_MAX,
        .protection = PROT_READ | PROT_EXEC,
        .flags = MAP_PRIVATE,
    };
    if (insertion->stay == FRAMES) {
        struct frame_mapping frames = frame_table_mapping(jvm->frames);
        mmap.address = frames.address;
        mmap.size = frames.size;
        mmap.file_offset = frames.file_offset;
        memcpy(mmap.build_id, files->frames_build_id, BUILD_ID_MAX);
        path = files->frames_path;
    } else {
        const struct code_stay *stay = code_index_stay(jvm->index, insertion->stay);
        mmap.address = stay->address;
        mmap.size = stay->size;
        mmap.file_offset = files->code.offsets[stay->blob];
        memcpy(mmap.build_id, files->code.build_id, BUILD_ID_MAX);
    }
    size_t path_size = (strlen(path) + 8) / 8 * 8; /* with its NUL */
    uint8_t *at = run->record + sizeof mmap;
    memset(at, 0, path_size);
    memcpy(at, path, strlen(path));
    size_t id_size =
        perf_put_sample_id(run->data, mmap.pid, mmap.tid, insertion->time, at + path_size);
    mmap.header = (struct perf_event_header){
        .type = PERF_RECORD_MMAP2,
        .misc = PERF_RECORD_MISC_USER | PERF_RECORD_MISC_MMAP_BUILD_ID,
        .size = (uint16_t)(sizeof mmap + path_size + id_size),
    };
    memcpy(run->record, &mmap, sizeof mmap);
    perf_writer_put(run->writer, run->record, mmap.header.size);
}

static void put_insertions_up_to(struct run *run, uint64_t time)
{
    while (run->insertion_next < run->insertion_count &&
           run->insertions[run->insertion_next].time <= time) {
        put_insertion(run, &run->insertions[run->insertion_next++]);
    }
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
        if (record.type == PERF_RECORD_SAMPLE &&
            perf_sample_decode(run->data, &record, &sample) == 0) {
            latest = sample.time > latest ? sample.time : latest;
            err = put_sample(run, &record, &sample);
            continue;
        }
        if (record.type == PERF_USER_FINISHED_ROUND) {
            put_insertions_up_to(run, latest);
        } else {
            uint64_t time = perf_record_id(run->data, &record).time;
            latest = time > latest ? time : latest;
        }
        if (!is_dropped(run, &record)) {
            perf_writer_put(run->writer, record.bytes, record.size);
        }
    }
    put_insertions_up_to(run, UINT64_MAX);
    return err ? err : more;
}

static int write_result(struct run *run)
{
    int err = list_insertions(run);
    if (!err) {
        err = perf_writer_open(run->options->output, run->data, run->stacks != NULL, &run->writer);
    }
    if (!err) {
        err = put_records(run);
    }
    if (err) {
        return err;
    }
    for (uint32_t i = 0; i < run->jvms.count; i++) {
        if (run->files[i].code_path && run->files[i].code.count) {
            perf_writer_add_build_id(run->writer, run->files[i].code_path,
                                     run->files[i].code.build_id);
        }
        if (run->files[i].frames_path) {
            perf_writer_add_build_id(run->writer, run->files[i].frames_path,
                                     run->files[i].frames_build_id);
        }
    }
    err = perf_writer_finish(run->writer);
    run->writer = NULL;
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

/* ---- All together ---- */

static bool wants_expansion(const struct options *options)
{
    if (options->inline_mode == INLINE_AUTO) {
        return perf_major_version() < PERF_EXPANDS_INLINED;
    }
    return options->inline_mode == INLINE_EXPAND;
}

static int inject(struct run *run)
{
    const struct options *options = run->options;
    bool expand = wants_expansion(options);
    bool inlines = !expand && options->inline_mode != INLINE_OFF;
    struct jvms_options jvms_options = {.dumps = options->dumps, .dump_count = options->dump_count};
    struct call_chains_options chains_options = {.expand = expand, .leaf = options->leaf};
    memcpy(jvms_options.suffixes, options->suffixes, sizeof jvms_options.suffixes);

    int err = source_path_open(options->source_path, &run->source_path);
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
    run->scorecard = scorecard_new();
    if (!run->chains || !run->scorecard) {
        return no_memory(run);
    }
    if (perf_data_has(run->data, PERF_SAMPLE_STACK_USER) && !options->keep_stacks) {
        run->stacks = stack_copies_new(run->data, &run->jvms);
        if (!run->stacks) {
            return no_memory(run);
        }
    }
    err = survey_samples(run);
    if (run->stacks) {
        run->stack_counts = *stack_copies_counts(run->stacks);
    }
    if (!err) {
        err = write_all_images(run, inlines);
    }
    if (!err) {
        err = write_result(run);
    }
    return err ? err : write_scorecard(run);
}

static void clean_up(struct run *run)
{
    perf_writer_abort(run->writer);
    for (uint32_t i = 0; run->files && i < run->jvms.count; i++) {
        code_image_free(&run->files[i].code);
        free(run->files[i].code_path);
        free(run->files[i].frames_path);
    }
    free(run->files);
    free(run->insertions);
    call_chains_free(run->chains);
    stack_copies_free(run->stacks);
    scorecard_free(run->scorecard);
    jvms_free(&run->jvms);
    processes_free(run->processes);
    perf_data_close(run->data);
    source_path_close(run->source_path);
}

/* ---- The command line ---- */

static int parse_inline_mode(const char *text, enum inline_mode *mode)
{
    static const char *const names[] = {[INLINE_AUTO] = "auto",
                                        [INLINE_EXPAND] = "expand",
                                        [INLINE_DWARF] = "dwarf",
                                        [INLINE_OFF] = "off"};
    for (int i = INLINE_AUTO; i <= INLINE_OFF; i++) {
        if (strcmp(names[i], text) == 0) {
            *mode = (enum inline_mode)i;
            return STATUS_DONE;
        }
    }
    return wrong_usage(&verb_inject, "--inline takes auto, expand, dwarf or off, not '%s'", text);
}

static int parse(int argc, char **argv, struct options *options)
{
    static const struct option table[] = {
        {"input", required_argument, NULL, 'i'},
        {"output", required_argument, NULL, 'o'},
        {"dump", required_argument, NULL, 'd'},
        {"inline", required_argument, NULL, 'I'},
        {"inlined-suffix", required_argument, NULL, 'S'},
        {"interpreted-suffix", required_argument, NULL, 'T'},
        {"leaf", no_argument, NULL, 'l'},
        {"source-path", required_argument, NULL, 's'},
        {"keep-all", no_argument, NULL, 'k'},
        {"keep-stacks", no_argument, NULL, 'K'},
        {"scorecard", required_argument, NULL, 'c'},
        {"quiet", no_argument, NULL, 'q'},
        {0},
    };
    int letter;
    while ((letter = next_option(&verb_inject, argc, argv, "i:o:q", table)) != -1) {
        switch (letter) {
        case 'i':
            options->input = optarg;
            break;
        case 'o':
            options->output = optarg;
            break;
        case 'd':
            options->dumps[options->dump_count++] = optarg;
            break;
        case 'I':
            if (parse_inline_mode(optarg, &options->inline_mode)) {
                return STATUS_USAGE;
            }
            break;
        case 'S':
            options->suffixes[FRAME_INLINED] = optarg;
            break;
        case 'T':
            options->suffixes[FRAME_INTERPRETED] = optarg;
            break;
        case 'l':
            options->leaf = true;
            break;
        case 's':
            options->source_path = optarg;
            break;
        case 'k':
            options->keep_all = true;
            break;
        case 'K':
            options->keep_stacks = true;
            break;
        case 'c':
            options->scorecard = optarg;
            break;
        case 'q':
            options->quiet = true;
            break;
        default:
            return STATUS_USAGE;
        }
    }
    if (optind < argc) {
        return wrong_usage(&verb_inject, "unexpected argument '%s'", argv[optind]);
    }
    if (!options->input || !options->output) {
        return wrong_usage(&verb_inject, "-i RECORDING and -o RESULT are needed");
    }
    return STATUS_DONE;
}

static int run_verb(int argc, char **argv)
{
    struct options options = {.suffixes = {" (inlined)", " (interpreted)"}};
    struct run *run = calloc(1, sizeof *run);
    options.dumps = calloc((size_t)argc + 1, sizeof *options.dumps);
    int status = STATUS_FAILED;
    if (!run || !options.dumps) {
        error_message("failed to inject: %s", strerror(ENOMEM));
    } else {
        run->options = &options;
        status = parse(argc, argv, &options);
        if (status == STATUS_DONE && inject(run) != 0) {
            status = STATUS_FAILED;
        }
        clean_up(run);
    }
    free(options.dumps);
    free(run);
    return status == STATUS_DONE ? finish_output() : status;
}

const struct verb verb_inject = {
    .name = "inject",
    .run = run_verb,
    .usage = "-i RECORDING -o RESULT [OPTIONS]",
    .help =
        "Names a recording's frames in generated code. Dumps are found as perf finds them; each\n"
        "JVM's code goes into one ELF file beside the result, inlined methods become frames.\n"
        "  -i, --input FILE          what perf record wrote\n"
        "  -o, --output FILE         the result, for perf report, script, annotate\n"
        "      --dump FILE           use this dump for its JVM (may be repeated)\n"
        "      --inline MODE         expand: put inlined methods into the call chains; dwarf: "
        "leave\n"
        "                            that to perf 7 and later; off; auto (default): by perf's "
        "version\n"
        "      --inlined-suffix TEXT, --interpreted-suffix TEXT\n"
        "                            put behind such methods' names (default: ' (inlined)',\n"
        "                            ' (interpreted)')\n"
        "      --leaf                self time goes to the innermost inlined method\n"
        "      --source-path DIRS    where Java sources are, separated by ':', for perf annotate\n"
        "      --keep-all            all code of the dump, not only what samples touch\n"
        "      --keep-stacks         leave stack copies (--call-graph dwarf) as they are, for "
        "perf\n"
        "                            to unwind; default: each is unwound once, here\n"
        "      --scorecard FILE      how good the profile is, as JSON\n"
        "  -q, --quiet               do not print the scorecard\n",
};
