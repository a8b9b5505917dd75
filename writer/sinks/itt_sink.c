#include "writer/sinks/itt_sink.h"

#include "format/itt.h"
#include "writer/buffer.h"
#include "writer/message.h"
#include "writer/sinks/regions.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

/* Ids are unique in the process, whatever sinks come and go: a collector outlives them. */
static atomic_uint next_method_id = ITT_FIRST_METHOD_ID;

/* Code that was reported and, as far as the collector knows, is still there: whatever a load
 * overlaps it takes for gone as a whole. */
struct reported {
    struct kept kept;
    itt_notify_function notify;
    uint32_t method_id; /* 0: it is not there */
};

/* Code whose tree does not fit is left out. */
enum { SCRATCH_LIMIT = 16 * 1024 * 1024 };

struct itt_sink {
    struct sink sink;
    struct itt_sink_options options;
    itt_notify_function notify;
    struct regions regions;
    struct buffer region_ids; /* uint32_t: the method id of each region */
    struct buffer lines;      /* struct itt_line: room for the longest table */
    uint64_t records;
    uint64_t empty; /* functions */
    bool told;      /* of a failure */
};

/* 0: none are left, as in Intel's own library. */
static uint32_t new_method_id(void)
{
    uint32_t id = atomic_load_explicit(&next_method_id, memory_order_relaxed);
    do {
        if (id == 0) {
            return 0;
        }
    } while (!atomic_compare_exchange_weak_explicit(&next_method_id, &id, id + 1,
                                                    memory_order_relaxed, memory_order_relaxed));
    return id;
}

/* Makes a buffer hold just this many bytes. NULL: no memory. */
static void *resize(struct buffer *buffer, size_t size)
{
    buffer_clear(buffer);
    return buffer_extend(buffer, size);
}

/* Appends a range of the line table, as one with the last where the line goes on. */
static uint32_t add_line(struct itt_line *lines, uint32_t count, uint32_t end, uint32_t line)
{
    if (count > 0 && lines[count - 1].line == line) {
        lines[count - 1].end = end;
        return count;
    }
    lines[count] = (struct itt_line){.end = end, .line = line};
    return count + 1;
}

/*
 * The line that `node`, which code of `inner` lies in, is at there: inner's own, or that of the
 * call that leads to it.
 */
static uint32_t line_in(const struct code *code, uint32_t node, uint32_t inner, uint32_t line)
{
    while (inner != node) {
        line = code->nodes[inner].call_line;
        inner = code->nodes[inner].parent;
    }
    return line;
}

/* The line table of a region, into itt->lines, which has room. Returns the number of entries. */
static uint32_t lines_of_region(struct itt_sink *itt, const struct code *code,
                                const struct region *region)
{
    struct itt_line *lines = (struct itt_line *)itt->lines.bytes;
    uint32_t count = 0;
    for (uint32_t i = region->first_range; i < code->range_count; i++) {
        const struct inline_range *range = &code->ranges[i];
        if (range->offset >= region->end) {
            break;
        }
        uint32_t end = i + 1 < code->range_count ? code->ranges[i + 1].offset : code->ranges_end;
        count = add_line(lines, count, end - region->start,
                         line_in(code, region->node, range->node, range->line));
    }
    return count;
}

/* The line table of code without a tree. Only lines of the method's own file can be told. */
static uint32_t lines_of_rows(struct itt_sink *itt, const struct code *code)
{
    const struct source_file *file = code->method ? code->method->file : NULL;
    struct itt_line *lines = (struct itt_line *)itt->lines.bytes;
    uint32_t count = 0;
    for (uint32_t i = 0; i < code->row_count; i++) {
        const struct code_row *row = &code->rows[i];
        uint32_t end = i + 1 < code->row_count ? code->rows[i + 1].offset : (uint32_t)code->size;
        count = add_line(lines, count, end, row->file == file ? row->line : 0);
    }
    return count;
}

static uint32_t region_id(const struct itt_sink *itt, uint32_t region)
{
    return ((const uint32_t *)itt->region_ids.bytes)[region];
}

static const char *path_of(const struct method *method)
{
    return method && method->file ? method->file->path : NULL;
}

static void report_method(struct itt_sink *itt, const struct code *code)
{
    uint32_t line_count = code->range_count ? lines_of_region(itt, code, &itt->regions.items[0])
                                            : lines_of_rows(itt, code);
    struct itt_method_load load = {
        .method_id = region_id(itt, 0),
        .method_name = code->name,
        .address = (const void *)(uintptr_t)code->address,
        .size = (uint32_t)code->size,
        .line_count = line_count,
        .lines = line_count ? (const struct itt_line *)itt->lines.bytes : NULL,
        .class_name = code->method ? code->method->class_name : NULL,
        .source_file = path_of(code->method),
        .module_name = code->method ? itt->options.method_module : itt->options.stub_module,
    };
    itt->notify(ITT_METHOD_LOAD_FINISHED_V2, &load);
}

static void report_inlined(struct itt_sink *itt, const struct code *code, uint32_t index)
{
    const struct region *region = &itt->regions.items[index];
    const struct method *method = code->nodes[region->node].method;
    uint32_t line_count = lines_of_region(itt, code, region);
    struct itt_inline_load load = {
        .method_id = region_id(itt, index),
        .parent_method_id = region_id(itt, region->parent),
        .method_name = method ? method->name : "?",
        .address = (const void *)(uintptr_t)(code->address + region->start),
        .size = region->end - region->start,
        .line_count = line_count,
        .lines = line_count ? (const struct itt_line *)itt->lines.bytes : NULL,
        .class_name = method ? method->class_name : NULL,
        .source_file = path_of(method),
    };
    itt->notify(ITT_METHOD_INLINE_LOAD_FINISHED, &load);
}

/* Everything that can fail, before the first event goes out. */
static int prepare(struct itt_sink *itt, const struct code *code)
{
    uint32_t most_lines = code->range_count ? code->range_count : code->row_count;
    if (regions_find(&itt->regions, code) < 0 ||
        !resize(&itt->lines, (most_lines + 1) * sizeof(struct itt_line))) {
        return -ENOMEM;
    }
    uint32_t *ids = resize(&itt->region_ids, itt->regions.count * sizeof(*ids));
    if (!ids) {
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < itt->regions.count; i++) {
        ids[i] = new_method_id();
        if (ids[i] == 0) {
            return -EOVERFLOW;
        }
    }
    return 0;
}

/* The collector cannot be told that code moves: there it is gone. */
static void tell(struct kept *kept, enum occupant_event event)
{
    struct reported *reported = (struct reported *)kept;
    if (reported->method_id && (event == OCCUPANT_MOVED || event == OCCUPANT_GONE)) {
        struct itt_method_id data = {.method_id = reported->method_id};
        reported->notify(ITT_METHOD_UNLOAD_START, &data);
    }
    reported->method_id = 0;
    if (event == OCCUPANT_GONE || event == OCCUPANT_OVER) {
        free(reported);
    }
}

static int report(struct itt_sink *itt, const struct code *code, struct occupant *occupant)
{
    struct reported *reported = malloc(sizeof(*reported));
    int status = reported ? prepare(itt, code) : -ENOMEM;
    if (status < 0) {
        free(reported);
        return status;
    }
    report_method(itt, code);
    for (uint32_t i = 1; i < itt->regions.count; i++) {
        report_inlined(itt, code, i);
    }
    *reported =
        (struct reported){.kept.tell = tell, .notify = itt->notify, .method_id = region_id(itt, 0)};
    if (occupant) {
        occupant_keep(occupant, &reported->kept);
    } else {
        free(reported); /* its end will not be known */
    }
    itt->records++;
    return 0;
}

static int itt_load(struct sink *sink, const struct code *code, const struct stay *stay)
{
    struct itt_sink *itt = (struct itt_sink *)sink;
    if (code->size == 0 || code->size > UINT32_MAX || code->address + code->size < code->address) {
        itt->empty++; /* nothing that the API could tell, and nothing wrong */
        return 0;
    }
    int error = report(itt, code, stay->occupant);
    if (error && !itt->told) {
        itt->told = true;
        message(MESSAGE_ERROR, "failed to report %s to the collector: %s; more may be missing",
                code->name, error == -ENOMEM ? "out of memory" : "no method ids are left");
    }
    return error;
}

static int itt_move(struct sink *sink, uint64_t from, uint64_t to, uint64_t size,
                    const struct stay *stay)
{
    (void)sink;
    (void)from;
    (void)to;
    (void)size;
    (void)stay;
    return -ENOTSUP;
}

static void itt_stats(struct sink *sink, struct sink_stats *stats)
{
    const struct itt_sink *itt = (const struct itt_sink *)sink;
    *stats = (struct sink_stats){.records = itt->records, .dropped = itt->empty};
}

static void itt_free(struct itt_sink *itt)
{
    regions_free(&itt->regions);
    buffer_free(&itt->region_ids);
    buffer_free(&itt->lines);
    free(itt);
}

static void itt_close(struct sink *sink, bool in_fork)
{
    struct itt_sink *itt = (struct itt_sink *)sink;
    if (!in_fork) {
        /* The library stays loaded: a collector may have threads in it. */
        itt->notify(ITT_SHUTDOWN, NULL);
    }
    itt_free(itt);
}

static const struct sink_ops itt_ops = {
    .load = itt_load,
    .move = itt_move,
    .stats = itt_stats,
    .close = itt_close,
};

/* Finds the collector's two functions. 0 or a negative errno, after a message. */
static int collector_load(itt_initialize_function *initialize, itt_notify_function *notify)
{
    const char *path = getenv(ITT_COLLECTOR_VARIABLE);
    if (!path || !*path) {
        message(MESSAGE_ERROR, "failed to find a collector for mode itt: %s is not set",
                ITT_COLLECTOR_VARIABLE);
        return -ENOENT;
    }
    void *library = dlopen(path, RTLD_LAZY);
    if (!library) {
        message(MESSAGE_ERROR, "failed to load the collector that %s names: %s",
                ITT_COLLECTOR_VARIABLE, dlerror());
        return -ELIBBAD;
    }
    /* POSIX's way around ISO C, which knows no conversion from an object to a function pointer. */
    *(void **)notify = dlsym(library, ITT_NOTIFY_SYMBOL);
    *(void **)initialize = dlsym(library, ITT_INITIALIZE_SYMBOL);
    if (!*notify || !*initialize) {
        message(MESSAGE_ERROR, "failed to use the collector %s: it has no %s", path,
                *notify ? ITT_INITIALIZE_SYMBOL : ITT_NOTIFY_SYMBOL);
        dlclose(library);
        return -ELIBBAD;
    }
    return 0;
}

int itt_sink_open(const struct itt_sink_options *options, struct sink **out)
{
    itt_initialize_function initialize;
    itt_notify_function notify;
    int status = collector_load(&initialize, &notify);
    if (status < 0) {
        return status;
    }
    struct itt_sink *itt = calloc(1, sizeof(*itt));
    if (!itt) {
        message(MESSAGE_ERROR, "failed to start mode itt: out of memory");
        return -ENOMEM;
    }
    itt->sink.ops = &itt_ops;
    itt->options = *options;
    itt->notify = notify;
    itt->region_ids = BUFFER_INIT(SCRATCH_LIMIT);
    itt->lines = BUFFER_INIT(SCRATCH_LIMIT);
    if (initialize() == 0) {
        message(MESSAGE_ERROR, "failed to start mode itt: the collector %s does not collect",
                getenv(ITT_COLLECTOR_VARIABLE));
        itt_free(itt);
        return -EBUSY;
    }
    *out = &itt->sink;
    return 0;
}
