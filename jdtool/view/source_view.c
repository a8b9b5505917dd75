#include "jdtool/view/source_view.h"

#include "jdtool/resolve/source_texts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define LINES_MAX (UINT32_C(1) << 20) /* of a file; a line of a higher number is a lie */

struct line_weights {
    uint64_t self, total;
    bool is_its; /* of the function itself */
};

static bool same_file(const char *one, const char *other)
{
    return one && other && strcmp(one, other) == 0;
}

static uint32_t last_line(const struct method_tallies *t, const char *file)
{
    uint32_t last = 0;
    for (uint32_t i = 0; i < t->lines.count; i++) {
        const struct tally *tally = &t->lines.list[i];
        if (same_file(t->profile->functions[tally->function].file, file) &&
            tally->what < LINES_MAX && tally->what > last) {
            last = tally->what;
        }
    }
    return last;
}

/* By line, for the caller to free. NULL: no memory. */
static struct line_weights *weigh(const struct method_tallies *t, uint32_t function, uint32_t event,
                                  uint32_t last)
{
    struct line_weights *lines = calloc((size_t)last + 1, sizeof *lines);
    const char *file = t->profile->functions[function].file;
    for (uint32_t i = 0; lines && i < t->lines.count; i++) {
        const struct tally *tally = &t->lines.list[i];
        if (same_file(t->profile->functions[tally->function].file, file) && tally->what <= last) {
            const uint64_t *weights = method_tally_weights(t, &t->lines, i);
            lines[tally->what].self += weights[event];
            lines[tally->what].total += weights[t->events + event];
            lines[tally->what].is_its |= tally->function == function;
        }
    }
    return lines;
}

static void put_share(struct packed_output *output, uint64_t weight, uint64_t whole)
{
    if (weight) {
        packed_output_printf(output, "%7.2f%%", whole ? 100.0 * (double)weight / (double)whole : 0);
    } else {
        packed_output_text(output, "        ");
    }
}

/* A line of source, tabs as blanks. */
static void put_text(struct packed_output *output, const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '\t') {
            packed_output_text(output, "    ");
        } else {
            packed_output_put(output, &text[i], 1);
        }
    }
}

int source_view_put(const struct method_tallies *tallies, uint32_t function, uint32_t event,
                    uint64_t whole, struct source_texts *sources, struct packed_output *output,
                    uint32_t *hottest)
{
    const char *file = tallies->profile->functions[function].file;
    uint32_t last = last_line(tallies, file);
    struct line_weights *lines = weigh(tallies, function, event, last);
    char *text = NULL;
    size_t size;
    int err = lines ? 0 : -ENOMEM;
    if (!err && file && sources) {
        err = source_texts_read(sources, file, &text, &size);
    }
    *hottest = 0;
    if (!err && !text) {
        packed_output_printf(output, "(no source of %s: name its directory with --source-path)\n",
                             file ? file : "it");
    }
    const char *at = text;
    uint64_t most = 0;
    uint32_t row = text ? 0 : 1;
    for (uint32_t line = 1; !err && (at ? *at != '\0' : line <= last); line++) {
        struct line_weights weights = line <= last ? lines[line] : (struct line_weights){0};
        size_t length = at ? strcspn(at, "\r\n") : 0;
        if (at || weights.total) {
            if (weights.is_its && weights.self > most) {
                most = weights.self;
                *hottest = row;
            }
            row++;
            put_share(output, weights.self, whole);
            put_share(output, weights.total, whole);
            packed_output_printf(output, " %5" PRIu32 "  ", line);
            put_text(output, at, length);
            packed_output_text(output, "\n");
        }
        if (at) {
            at += length;
            at += *at == '\r';
            at += *at == '\n';
        }
    }
    free(text);
    free(lines);
    return err;
}
