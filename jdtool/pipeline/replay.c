#include "jdtool/pipeline/replay.h"

#include "jdtool/base/chunks.h"
#include "jdtool/base/message.h"
#include "jdtool/base/numbered.h"
#include "jdtool/base/packed_input.h"
#include "jdtool/jitdump/code_index.h"
#include "jdtool/profile/saved.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What a process' JVM runs. */
struct program {
    uint64_t pid;
    const char *name; /* NULL: not known */
};

/* What samples refer to: everything of a file of them but the samples. */
struct things {
    char **texts;
    struct recorded_event *events;
    struct chunks modules, methods, codes; /* struct module, resolved_method, resolved_code */
    const struct resolved_method **functions;
    struct code_index **indexes; /* by module; NULL: none */
    struct stack_table *stacks; /* its locations and nodes are the file's; a node's ref there is its
                                   number here */
    uint32_t *depths;           /* of nodes: how many lines a stack has */
    struct resolved_frame *lines; /* of the location that is read */
    struct resolved_thread *threads;
    struct numbered programs; /* of struct program */
    uint32_t text_count, event_count, function_count, index_count;
    uint32_t thread_count;
    uint32_t text_room, event_room, function_room, index_room;
    uint32_t depth_room, line_room, thread_room;
};

struct reading {
    const struct replay_options *options;
    struct sample_sink *sink;
    struct packed_input *input;
    struct things things;
    struct recording recording;
    bool has_begun;
    bool has_ended;
    uint64_t time; /* of the sample before */
    int err;       /* the first one, which has been told: fields need no check each */
};

static int things_start(struct things *things)
{
    *things = (struct things){
        .modules = {.element = sizeof(struct module)},
        .methods = {.element = sizeof(struct resolved_method)},
        .codes = {.element = sizeof(struct resolved_code)},
        .programs = NUMBERED(struct program),
        .stacks = stack_table_new(),
    };
    return things->stacks ? 0 : -ENOMEM;
}

static void things_free(struct things *things)
{
    for (uint32_t i = 0; i < things->text_count; i++) {
        free(things->texts[i]);
    }
    for (uint32_t i = 0; i < things->index_count; i++) {
        code_index_close(things->indexes[i]);
    }
    free(things->texts);
    free(things->events);
    free(things->functions);
    free(things->indexes);
    free(things->lines);
    free(things->depths);
    stack_table_free(things->stacks);
    free(things->threads);
    numbered_free(&things->programs);
    chunks_free(&things->modules);
    chunks_free(&things->methods);
    chunks_free(&things->codes);
}

/* ---- Fields ---- */

static void fault(struct reading *reading, const char *what)
{
    const char *path = reading->options->input;
    int err = packed_input_error(reading->input);
    if (reading->err) {
        return;
    }
    if (err && err != -EBADMSG) {
        failed_to(err, "read %s", path);
        reading->err = err;
        return;
    }
    error_message("failed to read %s: it is damaged: %s", path,
                  err ? "it is cut or changed" : what);
    reading->err = -EBADMSG;
}

static void no_memory(struct reading *reading)
{
    if (!reading->err) {
        failed_to(-ENOMEM, "read %s", reading->options->input);
        reading->err = -ENOMEM;
    }
}

static uint64_t number(struct reading *reading)
{
    uint64_t value = 0;
    if (!reading->err && !packed_input_number(reading->input, &value)) {
        fault(reading, "a number is none");
    }
    return reading->err ? 0 : value;
}

/* One of `count`, which is 0 after a fault, too, unless there is none at all. */
static uint32_t below(struct reading *reading, uint64_t count)
{
    uint64_t value = number(reading);
    if (value >= count) {
        fault(reading, "a record refers to what is not there");
        return 0;
    }
    return (uint32_t)value;
}

static const char *text(struct reading *reading)
{
    uint32_t value = below(reading, (uint64_t)reading->things.text_count + 1);
    return value ? reading->things.texts[value - 1] : NULL;
}

static const struct module *module_ref(struct reading *reading)
{
    uint32_t value = below(reading, (uint64_t)reading->things.modules.count + 1);
    return value ? chunks_at(&reading->things.modules, value - 1) : NULL;
}

/* There is room for one more of a sort. */
static void bound(struct reading *reading, uint32_t count)
{
    if (count >= SAVED_THINGS_MAX) {
        fault(reading, "there is too much of one sort");
    }
}

static void *make_room(struct reading *reading, void *array, uint32_t count, uint32_t *room,
                       size_t element)
{
    bound(reading, count);
    if (!reading->err && array_reserve(array, count, room, element)) {
        no_memory(reading);
    }
    void **list = array;
    return reading->err ? NULL : (char *)*list + (size_t)count * element;
}

static void *add_to(struct reading *reading, struct chunks *chunks)
{
    bound(reading, chunks->count);
    void *added = reading->err ? NULL : chunks_add(chunks);
    if (!added) {
        no_memory(reading); /* unless something was told before */
    }
    return added;
}

/* ---- Records ---- */

static void take_text(struct reading *reading)
{
    struct things *things = &reading->things;
    uint64_t size = number(reading);
    if (size > SAVED_TEXT_MAX) {
        fault(reading, "a text is too long");
    }
    char **place =
        make_room(reading, &things->texts, things->text_count, &things->text_room, sizeof *place);
    if (!place) {
        return;
    }
    *place = malloc((size_t)size + 1);
    if (!*place) {
        no_memory(reading);
        return;
    }
    things->text_count++;
    (*place)[size] = '\0';
    if (!packed_input_bytes(reading->input, *place, (size_t)size)) {
        fault(reading, "a text is cut");
    }
}

static void take_event(struct reading *reading)
{
    struct things *things = &reading->things;
    struct recorded_event event = {.id = things->event_count};
    const char *name = text(reading);
    const char *unit = text(reading);
    event.name = name ? name : "event";
    event.unit = unit ? unit : "count";
    event.frequency = number(reading);
    event.period = number(reading);
    struct recorded_event *place = make_room(reading, &things->events, things->event_count,
                                             &things->event_room, sizeof *place);
    if (place) {
        *place = event;
        things->event_count++;
    }
}

static void take_module(struct reading *reading)
{
    struct things *things = &reading->things;
    struct module made = {.id = things->modules.count};
    made.kind = (enum module_kind)below(reading, MODULE_JVM + 1);
    const char *path = text(reading);
    made.path = path ? path : "[unknown]";
    made.pid = (uint32_t)number(reading);
    made.build_id_size = (uint8_t)below(reading, BUILD_ID_MAX + 1);
    if (!reading->err && !packed_input_bytes(reading->input, made.build_id, made.build_id_size)) {
        fault(reading, "a build-id is cut");
    }
    struct code_index **index = make_room(reading, &things->indexes, things->index_count,
                                          &things->index_room, sizeof(struct code_index *));
    struct module *module = add_to(reading, &things->modules);
    if (index && module) {
        *module = made;
        *index = NULL;
        things->index_count++;
    }
}

/* A dump beside the file, as in a profile's directory, or else where it was. */
static struct code_index *open_dump(const char *saved, const char *path)
{
    struct code_index *index = NULL;
    const char *slash = strrchr(saved, '/');
    const char *name = strrchr(path, '/');
    char beside[4096];
    int size = snprintf(beside, sizeof beside, "%.*s%s", slash ? (int)(slash - saved) + 1 : 0,
                        saved, name ? name + 1 : path);
    if (size > 0 && size < (int)sizeof beside && access(beside, R_OK) == 0) {
        return code_index_open(beside, &index) == 0 ? index : NULL;
    }
    if (access(path, R_OK) == 0 && code_index_open(path, &index) == 0) {
        return index;
    }
    return NULL;
}

static void take_dump(struct reading *reading)
{
    struct things *things = &reading->things;
    uint32_t number_of = below(reading, things->modules.count);
    const char *path = text(reading);
    if (!reading->err && reading->options->wants_code && path && !things->indexes[number_of]) {
        things->indexes[number_of] = open_dump(reading->options->input, path);
    }
}

static void take_function(struct reading *reading)
{
    struct things *things = &reading->things;
    struct resolved_method made = {.id = things->function_count};
    made.kind = (enum resolved_kind)below(reading, RESOLVED_KINDS);
    made.name = text(reading);
    made.class_name = text(reading);
    made.method_name = text(reading);
    made.descriptor = text(reading);
    made.file = text(reading);
    made.first_line = (uint32_t)number(reading);
    made.module = module_ref(reading);
    made.address = number(reading);
    made.size = number(reading);
    const struct resolved_method **place =
        make_room(reading, &things->functions, things->function_count, &things->function_room,
                  sizeof(struct resolved_method *));
    struct resolved_method *method = made.name ? add_to(reading, &things->methods) : NULL;
    if (place && !reading->err) {
        if (method) {
            *method = made;
        }
        *place = method;
        things->function_count++;
    }
}

static void take_code(struct reading *reading)
{
    struct things *things = &reading->things;
    uint32_t module = below(reading, things->modules.count);
    struct resolved_code made = {.id = things->codes.count};
    made.address = number(reading);
    made.size = number(reading);
    made.module_address = number(reading);
    made.from = number(reading);
    const char *symbol = text(reading);
    made.symbol = symbol ? symbol : "?";
    uint32_t function = below(reading, (uint64_t)things->function_count + 1);
    made.blob = (uint32_t)number(reading);
    struct resolved_code *code = add_to(reading, &things->codes);
    if (!code) {
        return;
    }
    made.method = function ? things->functions[function - 1] : NULL;
    made.module = chunks_at(&things->modules, module);
    struct code_index *index = things->indexes[module];
    /* Another dump of that name is no use. */
    if (index && made.blob < code_index_blob_count(index) &&
        code_index_blob(index, made.blob)->size == made.size) {
        made.index = index;
    }
    *code = made;
}

static void take_line(struct reading *reading, uint32_t number_of)
{
    struct things *things = &reading->things;
    struct resolved_frame made = {0};
    made.kind = (uint8_t)below(reading, RESOLVED_KINDS);
    uint32_t tier = below(reading, 512);
    made.tier = (uint8_t)(tier >> 1);
    made.is_osr = tier & 1;
    made.line = (uint32_t)number(reading);
    uint32_t function = below(reading, things->function_count);
    struct resolved_frame *place =
        make_room(reading, &things->lines, number_of, &things->line_room, sizeof *place);
    if (place) {
        made.method = things->functions[function];
        *place = made;
    }
}

/* What the table has made has the number that the file gives it, unless it was there before. */
static void is_next(struct reading *reading, uint32_t made, uint32_t next)
{
    if (made == HASH_MAP_NONE) {
        no_memory(reading);
    } else if (made != next) {
        fault(reading, "a location or a node is told twice");
    } else {
        bound(reading, made);
    }
}

static void take_location(struct reading *reading)
{
    struct things *things = &reading->things;
    struct location made = {.module = module_ref(reading)};
    uint64_t address = number(reading);
    uint32_t code_number = below(reading, (uint64_t)things->codes.count + 1);
    made.code = code_number ? chunks_at(&things->codes, code_number - 1) : NULL;
    made.is_caller = number(reading) != 0;
    made.line_count = below(reading, SAVED_LINES_MAX + 1);
    if (made.line_count == 0) {
        fault(reading, "a location has no line");
    } else if (made.code && made.code->module != made.module) {
        fault(reading, "a location is in another module than its code");
    }
    for (uint32_t i = 0; i < made.line_count && !reading->err; i++) {
        take_line(reading, i);
    }
    if (reading->err) {
        return;
    }
    made.lines = things->lines;
    made.module_address = made.module ? address : 0;
    made.address = made.code ? made.code->address + (address - made.code->module_address) : address;
    uint32_t next = things->stacks->locations.count;
    is_next(reading, stack_table_location(things->stacks, &made), next);
}

static void take_node(struct reading *reading)
{
    struct things *things = &reading->things;
    uint32_t next = things->stacks->node_count;
    uint32_t caller = below(reading, next);
    uint32_t location = below(reading, things->stacks->locations.count);
    if (reading->err) {
        return;
    }
    if (ARRAY_REACH(things->depths, next, things->depth_room)) {
        no_memory(reading);
        return;
    }
    things->depths[next] =
        stack_table_location_at(things->stacks, location)->line_count + things->depths[caller];
    if (things->depths[next] > SAVED_DEPTH_MAX) {
        fault(reading, "a stack is too deep");
        return;
    }
    is_next(reading, stack_table_node(things->stacks, caller, location), next);
}

static void take_any_thread(struct reading *reading, bool has_identity)
{
    struct things *things = &reading->things;
    struct resolved_thread made = {0};
    made.pid = (uint32_t)number(reading);
    made.tid = (uint32_t)number(reading);
    const char *comm = text(reading);
    const char *process = text(reading);
    made.comm = comm ? comm : "";
    made.process_name = process ? process : "";
    const struct program *program = numbered_find(&things->programs, made.pid);
    made.program = program ? program->name : NULL;
    if (has_identity) {
        made.has_journal = true;
        made.virtual_id = number(reading);
        const char *name = text(reading);
        const char *labels = text(reading);
        made.virtual_name = made.virtual_id ? (name ? name : "") : NULL;
        made.labels = labels && *labels ? labels : NULL;
    }
    struct resolved_thread *place = make_room(reading, &things->threads, things->thread_count,
                                              &things->thread_room, sizeof *place);
    if (place) {
        *place = made;
        things->thread_count++;
    }
}

static void take_thread(struct reading *reading)
{
    take_any_thread(reading, false);
}

static void take_identity(struct reading *reading)
{
    take_any_thread(reading, true);
}

static void take_program(struct reading *reading)
{
    struct things *things = &reading->things;
    uint64_t pid = number(reading);
    const char *name = text(reading);
    bound(reading, things->programs.list.count);
    struct program *program = reading->err ? NULL : numbered_get(&things->programs, pid, NULL);
    if (!program) {
        no_memory(reading);
        return;
    }
    program->name = name;
    for (uint32_t i = 0; i < things->thread_count; i++) {
        if (things->threads[i].pid == pid) {
            things->threads[i].program = name;
        }
    }
}

/* ---- Samples ---- */

static int64_t signed_number(struct reading *reading)
{
    uint64_t value = number(reading);
    return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}

static void begin(struct reading *reading)
{
    if (reading->err || reading->has_begun) {
        return;
    }
    reading->has_begun = true;
    reading->recording.events = reading->things.events;
    reading->recording.event_count = reading->things.event_count;
    reading->err = reading->sink->ops->begin(reading->sink, &reading->recording);
}

static void take_sample(struct reading *reading)
{
    const struct things *things = &reading->things;
    struct recording *recording = &reading->recording;
    uint64_t time = reading->time + (uint64_t)signed_number(reading);
    uint32_t event = below(reading, things->event_count);
    uint32_t thread = below(reading, things->thread_count);
    struct resolved_sample sample = {.time = time, .stacks = things->stacks};
    sample.node = below(reading, things->stacks->node_count);
    sample.weight = number(reading);
    sample.cpu = (uint32_t)number(reading);
    sample.end = (enum stack_end)below(reading, STACK_ENDS);
    begin(reading);
    if (reading->err) {
        return;
    }
    sample.event = &recording->events[event];
    sample.thread = things->threads[thread];
    reading->time = time;
    if (recording->counts.samples++ == 0 || time < recording->from) {
        recording->from = time;
    }
    recording->until = time > recording->until ? time : recording->until;
    reading->err = reading->sink->ops->sample(reading->sink, &sample);
}

static void take_mark(struct reading *reading)
{
    struct resolved_mark mark = {.kind = (enum mark_kind)below(reading, MARK_KINDS)};
    mark.from = reading->time + (uint64_t)signed_number(reading);
    uint64_t duration = number(reading);
    mark.until = duration <= UINT64_MAX - mark.from ? mark.from + duration : UINT64_MAX;
    mark.is_open = number(reading) != 0;
    mark.number = number(reading);
    uint32_t thread = below(reading, reading->things.thread_count);
    mark.text = text(reading);
    mark.subject = text(reading);
    begin(reading);
    if (!reading->err && reading->sink->ops->mark) {
        mark.thread = &reading->things.threads[thread];
        reading->err = reading->sink->ops->mark(reading->sink, &mark);
    }
}

/* ---- The end ---- */

static void take_verdict(struct reading *reading)
{
    reading->recording.verdict = text(reading);
    if (!reading->recording.verdict) {
        fault(reading, "a verdict has no words");
    }
}

static void take_end(struct reading *reading)
{
    struct recording *recording = &reading->recording;
    recording->hostname = text(reading);
    recording->os_release = text(reading);
    recording->arch = text(reading);
    recording->cpu = text(reading);
    recording->command_line = text(reading);
    recording->perf_version = text(reading);
    recording->cpu_count = (uint32_t)number(reading);
    recording->has_wall = number(reading) != 0;
    recording->wall_offset = signed_number(reading);
    if (number(reading) != recording->counts.samples) {
        fault(reading, "its end does not fit to what came before");
    }
    reading->has_ended = true;
    begin(reading);
}

/* ---- All of it ---- */

static void take_record(struct reading *reading)
{
    static void (*const takers[])(struct reading *) = {
        [SAVED_END] = take_end,           [SAVED_TEXT] = take_text,
        [SAVED_EVENT] = take_event,       [SAVED_MODULE] = take_module,
        [SAVED_DUMP] = take_dump,         [SAVED_FUNCTION] = take_function,
        [SAVED_CODE] = take_code,         [SAVED_LOCATION] = take_location,
        [SAVED_NODE] = take_node,         [SAVED_THREAD] = take_thread,
        [SAVED_SAMPLE] = take_sample,     [SAVED_MARK] = take_mark,
        [SAVED_IDENTITY] = take_identity, [SAVED_VERDICT] = take_verdict,
        [SAVED_PROGRAM] = take_program,
    };
    uint8_t tag;
    if (!packed_input_byte(reading->input, &tag)) {
        fault(reading, "it ends too early");
    } else if (tag >= sizeof takers / sizeof *takers) {
        fault(reading, "a record of unknown sort");
    } else if (tag == SAVED_EVENT && reading->has_begun) {
        fault(reading, "an event comes behind samples");
    } else {
        takers[tag](reading);
    }
}

static void read_all(struct reading *reading)
{
    char magic[SAVED_MAGIC_SIZE];
    if (!packed_input_bytes(reading->input, magic, sizeof magic) ||
        memcmp(magic, SAVED_MAGIC, sizeof magic) != 0) {
        error_message("failed to read %s: these are no saved samples", reading->options->input);
        reading->err = -EBADMSG;
    }
    while (!reading->err && !reading->has_ended) {
        take_record(reading);
    }
}

bool replay_knows(const char *path)
{
    /* The gzip's first two bytes: perf's files have others, and pipes are never asked. */
    uint8_t first[2] = {0};
    struct stat status = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return false;
    }
    bool known = fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
                 pread(fd, first, sizeof first, 0) == (ssize_t)sizeof first && first[0] == 0x1f &&
                 first[1] == 0x8b;
    close(fd);
    return known;
}

int replay_run(const struct replay_options *options, struct sample_sink *sink)
{
    struct reading reading = {.options = options, .sink = sink};
    reading.recording.path = options->input;
    reading.recording.has_chains = true;
    if (things_start(&reading.things)) {
        no_memory(&reading);
    } else {
        reading.err = packed_input_open(options->input, &reading.input);
    }
    if (!reading.err) {
        read_all(&reading);
    }
    int err = reading.err;
    if (err) {
        sink->ops->abort(sink);
    } else {
        err = sink->ops->end(sink);
    }
    packed_input_close(reading.input);
    things_free(&reading.things);
    return err;
}
