/* The library's own face: plain structs in, struct code to the sinks. */
#include "writer/jdwriter.h"

#include "writer/message.h"
#include "writer/occupancy/occupancy.h"
#include "writer/sinks/jitdump_sink.h"
#include "writer/sinks/perf_map_sink.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define PUBLIC __attribute__((visibility("default")))

struct jdwriter {
    struct occupancy *occupancy;
    bool has_dump; /* as its first sink */
};

static int open_sinks(struct jdwriter *writer, const struct jdwriter_options *options)
{
    struct sink *sink;
    int error = 0;
    if (options->outputs & JDWRITER_JITDUMP) {
        struct jitdump_sink_options dump = {
            .log = {.directory = options->directory ? options->directory : ".",
                    .directory_fd = AT_FDCWD,
                    .start = occupancy_start(writer->occupancy),
                    .max_bytes = options->max_bytes},
        };
        error = jitdump_sink_open(&dump, &sink);
        if (!error) {
            writer->has_dump = true;
            occupancy_add(writer->occupancy, sink);
        }
    }
    if (!error && options->outputs & JDWRITER_MAP) {
        struct perf_map_sink_options map = {0};
        error = perf_map_sink_open(&map, &sink);
        if (!error) {
            occupancy_add(writer->occupancy, sink);
        }
    }
    return error;
}

PUBLIC int jdwriter_open(const struct jdwriter_options *options, struct jdwriter **writer)
{
    const unsigned all = JDWRITER_JITDUMP | JDWRITER_MAP;
    if (options->outputs == 0 || options->outputs & ~all) {
        return -EINVAL;
    }
    message_set_program("jdwriter");
    struct jdwriter *opened = calloc(1, sizeof(*opened));
    if (!opened) {
        return -ENOMEM;
    }
    int error = occupancy_new(false, &opened->occupancy);
    error = error ? error : open_sinks(opened, options);
    if (error) {
        jdwriter_close(opened);
        return error;
    }
    *writer = opened;
    return 0;
}

/*
 * Checks the rows and writes them as the sinks want them: the first at 0, neighbours different, a
 * file struct for each change of the file. Returns how many are left, or -EINVAL.
 */
static int64_t convert_rows(const struct jdwriter_code *code, struct code_row *rows,
                            struct source_file *files)
{
    uint32_t count = 0;
    struct source_file *file = NULL;
    for (size_t i = 0; i < code->row_count; i++) {
        const struct jdwriter_row *row = &code->rows[i];
        if (row->line == 0 || row->offset >= code->size ||
            (i > 0 && row->offset <= row[-1].offset) || (!row->file && !file)) {
            return -EINVAL;
        }
        if (row->file && (!file || strcmp(file->path, row->file) != 0)) {
            file = file ? file + 1 : files;
            *file = (struct source_file){.path = row->file};
        }
        if (count > 0 && rows[count - 1].file == file && rows[count - 1].line == row->line) {
            continue;
        }
        rows[count] = (struct code_row){
            .offset = count > 0 ? row->offset : 0, .line = row->line, .file = file};
        count++;
    }
    return count;
}

PUBLIC int jdwriter_load(struct jdwriter *writer, const struct jdwriter_code *code)
{
    if (!code->name || !*code->name || strchr(code->name, '\n') || code->size > UINT32_MAX ||
        code->row_count > code->size) {
        return -EINVAL;
    }
    struct code described = {
        .address = (uintptr_t)code->address,
        .size = code->size,
        .bytes = code->bytes,
        .name = code->name,
        .facts = CODE_FACTS_UNKNOWN,
    };
    if (code->row_count == 0) {
        return occupancy_load(writer->occupancy, &described, NULL);
    }
    struct code_row *rows = malloc(code->row_count * sizeof(*rows));
    struct source_file *files = malloc(code->row_count * sizeof(*files));
    int error = -ENOMEM;
    if (rows && files) {
        int64_t count = convert_rows(code, rows, files);
        if (count >= 0) {
            described.rows = rows;
            described.row_count = (uint32_t)count;
            error = occupancy_load(writer->occupancy, &described, NULL);
        } else {
            error = (int)count;
        }
    }
    free(rows);
    free(files);
    return error;
}

PUBLIC int jdwriter_move(struct jdwriter *writer, const void *from, const void *to, size_t size)
{
    return occupancy_move(writer->occupancy, (uintptr_t)from, (uintptr_t)to, size);
}

PUBLIC int jdwriter_unload(struct jdwriter *writer, const void *address)
{
    occupancy_unload(writer->occupancy, (uintptr_t)address, -1);
    return occupancy_is_dead(writer->occupancy) ? -EPIPE : 0;
}

PUBLIC const char *jdwriter_dump_path(const struct jdwriter *writer)
{
    struct sink_stats stats = {0};
    if (writer->has_dump) {
        occupancy_stats(writer->occupancy, 0, &stats);
    }
    return stats.path;
}

PUBLIC void jdwriter_close(struct jdwriter *writer)
{
    if (writer) {
        occupancy_close(writer->occupancy);
        free(writer);
    }
}
