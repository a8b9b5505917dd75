/*
 * export-world DIR SEED COUNT: writes COUNT made-up samples in every export format into DIR, and
 * into truth.json what they are, for check.py to hold against each other; and as samples.saved.
 */
#include "jdtool/base/text.h"
#include "jdtool/exports/export.h"
#include "tests/resolved_samples.h"

#include <inttypes.h>
#include <stdlib.h>

enum { ORDERS_MAX = 16 };

static void put_frame(FILE *truth, const struct test_frame *frame)
{
    fputs("[", truth);
    if (frame->method) {
        text_print_json(truth, frame->method->name);
    } else {
        fputs("null", truth);
    }
    fprintf(truth, ",%d,%d,%u]", frame->kind, frame->tier, frame->line);
}

static void put_truth(FILE *truth, const struct resolved_sample *sample, const struct world *world)
{
    static bool started;
    fputs(started ? ",\n" : "", truth);
    started = true;
    fprintf(
        truth, "{\"time\":%" PRIu64 ",\"event\":%u,\"weight\":%" PRIu64 ",\"pid\":%u,\"tid\":%u,",
        sample->time, sample->event->id, sample->weight, sample->thread.pid, sample->thread.tid);
    fputs("\"comm\":", truth);
    text_print_json(truth, sample->thread.comm);
    fputs(",\"frames\":[", truth);
    for (uint32_t i = 0; i < world->frame_count; i++) {
        fputs(i ? "," : "", truth);
        put_frame(truth, &world->frames[i]);
    }
    fputs("]}", truth);
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
    FILE *truth = fopen(truth_path, "we");
    int err = truth ? 0 : -1;
    uint32_t count = 0;
    for (; export_formats[count]; count++) {
        snprintf(paths[count], sizeof paths[0], "%s/%s", argv[1], export_formats[count]->name);
        orders[count] = (struct export_order){export_formats[count], {.path = paths[count]}};
    }
    snprintf(paths[count], sizeof paths[0], "%s/samples.saved", argv[1]);
    orders[count] = (struct export_order){NULL, {.path = paths[count]}};
    err = err ? err : export_sink_new(orders, count + 1, &sink);
    err = err ? err : sink->ops->begin(sink, &world.recording);
    fputs("[", truth);
    for (long n = strtol(argv[3], NULL, 0); !err && n > 0; n--) {
        struct resolved_sample sample = world_sample(&world);
        put_truth(truth, &sample, &world);
        err = sink->ops->sample(sink, &sample);
    }
    fputs("]\n", truth);
    err = err ? err : sink->ops->end(sink);
    return err || fclose(truth) != 0;
}
