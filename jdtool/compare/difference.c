/*
 * The JSON document: {"version": 1, "measure": "share"|"work", "runs": {"before": N, "after": N},
 * "threshold", "losses", "tested", "events": [{"name", "unit", "changes": [{"what", "method",
 * "file", "before": {"mean", "runs": […]}, "after": …, "change", "low", "high", "p", "q",
 * "impact", "significant", "loss"}]}]}
 */
#include "jdtool/compare/difference.h"

#include "jdtool/base/json_writer.h"
#include "jdtool/view/cells.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define NUMBERS    51 /* columns before the name */
#define NAME_LEAST 24

static const char *const whats[] = {
    [COMPARED_WHOLE] = "all",
    [COMPARED_SELF] = "self",
    [COMPARED_TOTAL] = "total",
    [COMPARED_FRAME] = "frame",
};

static const char *name_of(const struct runs *runs, const struct comparison *of)
{
    return of->what == COMPARED_WHOLE   ? "all samples"
           : of->what == COMPARED_FRAME ? runs->names[runs->nodes[of->id].name].text
                                        : runs->names[of->id].text;
}

/* ---- For people ---- */

/* Values of one event in a unit that suits its largest. */
struct scale {
    double factor;
    const char *unit;
};

static struct scale scale_of(const struct runs *runs, const struct comparisons *methods,
                             uint32_t event)
{
    static const struct scale times[] = {{1e-9, "s"}, {1e-6, "ms"}, {1e-3, "us"}, {1, "ns"}};
    static const struct scale sizes[] = {
        {1.0 / (1 << 30), "GB"}, {1.0 / (1 << 20), "MB"}, {1.0 / 1024, "KB"}, {1, "bytes"}};
    const char *unit = runs->events[event].unit;
    bool is_time = strcmp(unit, "nanoseconds") == 0, is_size = strcmp(unit, "bytes") == 0;
    const struct scale *list = is_time ? times : sizes;
    double most = 0;
    if (!runs_have_work(runs)) {
        return (struct scale){1, runs->events[event].rest ? "percent of all samples before"
                                                          : "percent of all samples"};
    }
    for (uint32_t i = 0; i < methods->count; i++) {
        const struct difference *made = &methods->list[i].difference;
        double larger = made->before > made->after ? made->before : made->after;
        most = methods->list[i].event == event && larger > most ? larger : most;
    }
    for (size_t i = 0; i < 4 && (is_time || is_size); i++) {
        if (most * list[i].factor >= 1 || i == 3) {
            return list[i];
        }
    }
    return (struct scale){1, unit};
}

static void put_change(const struct runs *runs, const struct comparison *of, struct scale scale,
                       const struct difference_look *look, struct packed_output *output)
{
    const struct difference *made = &of->difference;
    char text[CELL_MAX];
    uint32_t width = look->width > NUMBERS + NAME_LEAST ? look->width - NUMBERS : NAME_LEAST;
    packed_output_printf(output, "%8.2f%8.2f%+8.2f  %+7.2f … %+-7.2f  %-5s ",
                         made->before * scale.factor, made->after * scale.factor,
                         made->change * scale.factor, made->low * scale.factor,
                         made->high * scale.factor, whats[of->what]);
    cell_put(output, cell_fit_name(name_of(runs, of), width, text), width, false);
    packed_output_text(output, "\n");
}

static void put_table(const struct runs *runs, const struct comparisons *methods, uint32_t event,
                      bool changes, const struct difference_look *look,
                      struct packed_output *output)
{
    struct scale scale = scale_of(runs, methods, event);
    bool has_head = false;
    for (uint32_t i = 0; i < methods->count; i++) {
        const struct comparison *of = &methods->list[i];
        if (of->event != event || of->is_change != changes) {
            continue;
        }
        if (!has_head) {
            packed_output_printf(output, "\n%s, %s%s: %s\n", runs->events[event].name, scale.unit,
                                 runs_have_work(runs) ? " per unit of work" : "",
                                 changes ? "significant changes" : "within chance");
            packed_output_text(output,
                               "  BEFORE   AFTER  CHANGE  95 % INTERVAL            METHOD\n");
            has_head = true;
        }
        put_change(runs, of, scale, look, output);
    }
}

void difference_write_text(const struct runs *runs, const struct comparisons *methods,
                           const struct difference_look *look, struct packed_output *output)
{
    uint32_t before = runs->before_count, after = runs->run_count - before, changes = 0;
    for (uint32_t i = 0; i < methods->count; i++) {
        changes += methods->list[i].is_change;
    }
    packed_output_printf(output, "%" PRIu32 " runs before, %" PRIu32 " after\n", before, after);
    for (uint32_t i = 0; i < runs->event_count; i++) {
        put_table(runs, methods, i, true, look, output);
        if (look->all) {
            put_table(runs, methods, i, false, look, output);
        }
    }
    packed_output_text(output, "\n");
    if (changes == 0) {
        packed_output_printf(
            output, "No change is larger than chance: %" PRIu32 " comparisons were made.\n",
            methods->count);
        return;
    }
    uint32_t losses = comparisons_losses(methods, look->threshold);
    packed_output_printf(output,
                         "%" PRIu32 " of %" PRIu32 " comparisons changed by more than chance, at a "
                         "false discovery rate of %.0f %%.\n",
                         changes, methods->count, 100 * FALSE_DISCOVERIES);
    packed_output_printf(output, "%" PRIu32 " %s a loss", losses, losses == 1 ? "is" : "are");
    if (look->threshold > 0) {
        packed_output_printf(output, " of at least %g %% of all samples", look->threshold);
    }
    packed_output_text(output, ".\n");
}

/* ---- For scripts ---- */

static void put_number(struct json_writer *json, const char *key, double value)
{
    /* Exact to six places, which json_decimal takes as a whole number. */
    double most = 9e12;
    value = value > most ? most : value < -most ? -most : value;
    json_decimal(json, key, llround(value * 1e6), 6);
}

static void put_side(struct json_writer *json, const char *key, double mean, const double *values,
                     uint32_t count)
{
    json_object(json, key);
    put_number(json, "mean", mean);
    json_array(json, "runs");
    for (uint32_t i = 0; i < count; i++) {
        put_number(json, NULL, values[i]);
    }
    json_end(json);
    json_end(json);
}

static void put_comparison(struct json_writer *json, const struct runs *runs,
                           const struct comparison *of, double threshold)
{
    const struct difference *made = &of->difference;
    json_object(json, NULL);
    json_text(json, "what", whats[of->what]);
    if (of->what != COMPARED_WHOLE) {
        json_text(json, "method", name_of(runs, of));
        json_text(json, "file", runs->names[of->id].file);
    }
    put_side(json, "before", made->before, of->adjusted, runs->before_count);
    put_side(json, "after", made->after, of->adjusted + runs->before_count,
             runs->run_count - runs->before_count);
    put_number(json, "change", made->change);
    put_number(json, "low", made->low);
    put_number(json, "high", made->high);
    put_number(json, "p", made->p);
    put_number(json, "q", of->q);
    put_number(json, "impact", of->impact);
    json_bool(json, "significant", of->is_change);
    json_bool(json, "loss", comparison_is_loss(of, threshold));
    json_end(json);
}

void difference_write_json(const struct runs *runs, const struct comparisons *methods,
                           const struct difference_look *look, struct packed_output *output)
{
    struct json_writer json;
    json_start(&json, output);
    json_object(&json, NULL);
    json_uint(&json, "version", 1);
    json_text(&json, "measure", runs_have_work(runs) ? "work" : "share");
    json_object(&json, "runs");
    json_uint(&json, "before", runs->before_count);
    json_uint(&json, "after", runs->run_count - runs->before_count);
    json_end(&json);
    put_number(&json, "threshold", look->threshold);
    json_uint(&json, "losses", comparisons_losses(methods, look->threshold));
    json_uint(&json, "tested", methods->count);
    json_array(&json, "events");
    for (uint32_t i = 0; i < runs->event_count; i++) {
        json_object(&json, NULL);
        json_text(&json, "name", runs->events[i].name);
        json_text(&json, "unit", runs_have_work(runs) ? runs->events[i].unit : "percent");
        json_array(&json, "changes");
        for (uint32_t k = 0; k < methods->count; k++) {
            if (methods->list[k].event == i) {
                put_comparison(&json, runs, &methods->list[k], look->threshold);
            }
        }
        json_end(&json);
        json_end(&json);
    }
    json_end(&json);
    json_end(&json);
    packed_output_text(output, "\n");
}
