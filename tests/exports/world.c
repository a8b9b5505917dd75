/*
 * export-world DIR SEED COUNT: writes COUNT made-up samples in every export format into DIR, and
 * into truth.json what they are, for check.py to hold against each other; and as samples.saved.
 */
#include "jdtool/base/json_writer.h"
#include "jdtool/exports/export.h"
#include "tests/resolved_samples.h"

#include <stdlib.h>

enum { ORDERS_MAX = 16 };

static void put_truth(struct json_writer *truth, const struct resolved_sample *sample,
                      const struct world *world)
{
    json_object(truth, NULL);
    json_uint(truth, "time", sample->time);
    json_uint(truth, "event", sample->event->id);
    json_uint(truth, "weight", sample->weight);
    json_uint(truth, "pid", sample->thread.pid);
    json_uint(truth, "tid", sample->thread.tid);
    json_text(truth, "comm", sample->thread.comm);
    json_array(truth, "frames");
    for (uint32_t i = 0; i < world->frame_count; i++) {
        const struct test_frame *frame = &world->frames[i];
        json_array(truth, NULL);
        json_text(truth, NULL, frame->method ? frame->method->name : NULL);
        json_int(truth, NULL, frame->kind);
        json_int(truth, NULL, frame->tier);
        json_uint(truth, NULL, frame->line);
        json_end(truth);
    }
    json_end(truth);
    json_end(truth);
}

int main(int argc, char **argv)
{
    static struct world world;
    static char paths[ORDERS_MAX][512];
    static struct export_order orders[ORDERS_MAX];
    struct sample_sink *sink = NULL;
    char truth_path[512];
    if (argc != 4) {
        fputs("usage: export-world DIR SEED COUNT\n", stderr);
        return 2;
    }
    world_make(&world, strtoull(argv[2], NULL, 0));
    snprintf(truth_path, sizeof truth_path, "%s/truth.json", argv[1]);
    struct packed_output *output;
    struct json_writer truth;
    int err = packed_output_open(truth_path, false, &output);
    uint32_t count = 0;
    for (; export_formats[count]; count++) {
        snprintf(paths[count], sizeof paths[0], "%s/%s", argv[1], export_formats[count]->name);
        orders[count] = (struct export_order){export_formats[count], {.path = paths[count]}};
    }
    snprintf(paths[count], sizeof paths[0], "%s/samples.saved", argv[1]);
    orders[count] = (struct export_order){NULL, {.path = paths[count]}};
    err = err ? err : export_sink_new(orders, count + 1, &sink);
    err = err ? err : sink->ops->begin(sink, &world.recording);
    if (err) {
        return 1;
    }
    json_start(&truth, output);
    json_array(&truth, NULL);
    for (long n = strtol(argv[3], NULL, 0); !err && n > 0; n--) {
        struct resolved_sample sample = world_sample(&world);
        put_truth(&truth, &sample, &world);
        err = sink->ops->sample(sink, &sample);
    }
    json_end(&truth);
    err = err ? err : sink->ops->end(sink);
    return packed_output_finish(output) || err;
}
