/*
 * The flame graph as one HTML file for any browser, without network: page/page.html with the
 * scripts beside it and the data (flame.h) of one profile, or of two of which it shows the
 * difference.
 */
#include "jdtool/exports/export.h"
#include "jdtool/exports/flame.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* A file as it is in the sources, and its end: nothing has to be found on the user's machine. */
#define EMBED(name, file)                                                                          \
    __asm__(".pushsection .rodata\n" #name "_begin:\n.incbin \"" PAGE_DIRECTORY "/" file           \
            "\"\n" #name "_end:\n.popsection\n");                                                  \
    extern const char name##_begin[] __attribute__((visibility("hidden")));                        \
    extern const char name##_end[] __attribute__((visibility("hidden")))

EMBED(page_html, "page.html");
EMBED(data_js, "data.js");
EMBED(view_js, "view.js");
EMBED(graph_js, "graph.js");
EMBED(strip_js, "strip.js");
EMBED(heatmap_js, "heatmap.js");
EMBED(main_js, "main.js");

static const struct script {
    const char *begin, *end;
} scripts[] = {{data_js_begin, data_js_end},       {view_js_begin, view_js_end},
               {graph_js_begin, graph_js_end},     {strip_js_begin, strip_js_end},
               {heatmap_js_begin, heatmap_js_end}, {main_js_begin, main_js_end}};

/* Text of others in HTML, in an attribute's quotes, too. */
static void put_escaped(struct packed_output *output, const char *text)
{
    for (; *text; text++) {
        unsigned char letter = (unsigned char)*text;
        switch (letter) {
        case '&':
            packed_output_text(output, "&amp;");
            break;
        case '<':
            packed_output_text(output, "&lt;");
            break;
        case '>':
            packed_output_text(output, "&gt;");
            break;
        case '"':
            packed_output_text(output, "&quot;");
            break;
        default:
            packed_output_put(output, letter < ' ' || letter == 0x7f ? "?" : text, 1);
        }
    }
}

/* ---- What stands above the graph ---- */

static void put_title(struct packed_output *output, const struct profile *profile,
                      const struct export_settings *settings)
{
    const char *command = profile->recording->command_line;
    if (settings->title) {
        put_escaped(output, settings->title);
    } else if (settings->before) {
        put_escaped(output, settings->before->name);
        packed_output_text(output, " and ");
        put_escaped(output, settings->name);
    } else {
        char text[160];
        snprintf(text, sizeof text, "%s", command && *command ? command : "jdperf");
        put_escaped(output, text);
    }
}

/* "cpu-clock at 99 Hz, off-cpu; 2026-11-24 04:13 UTC on host" */
static void put_about(struct packed_output *output, const struct profile *profile)
{
    const struct recording *recording = profile->recording;
    for (uint32_t i = 0; i < recording->event_count; i++) {
        const struct recorded_event *event = &recording->events[i];
        packed_output_text(output, i ? ", " : "");
        put_escaped(output, event->name ? event->name : "event");
        if (event->frequency) {
            packed_output_printf(output, " at %llu Hz", (unsigned long long)event->frequency);
        }
    }
    struct tm parts;
    char text[64];
    time_t seconds = (time_t)(export_wall_time(profile, profile->from) / 1000000000);
    if (recording->has_wall && gmtime_r(&seconds, &parts) &&
        strftime(text, sizeof text, "; %Y-%m-%d %H:%M UTC", &parts)) {
        packed_output_text(output, text);
    }
    if (recording->hostname) {
        packed_output_text(output, " on ");
        put_escaped(output, recording->hostname);
    }
}

/* A graph of a profile that is not good misleads; it says so itself. */
static void put_note(struct packed_output *output, const struct profile *profile)
{
    const struct recording *recording = profile->recording;
    if (!recording->has_chains && !recording->has_copies) {
        packed_output_text(output,
                           "This profile was recorded without stacks: each frame stands alone.");
    }
    if (recording->verdict && *recording->verdict && strncmp(recording->verdict, "good", 4) != 0) {
        packed_output_text(output, "This profile is ");
        put_escaped(output, recording->verdict);
        packed_output_text(output, ".");
    }
}

/* ---- All together ---- */

static int put_data(struct packed_output *output, const struct profile *profile,
                    const struct export_settings *settings)
{
    static const char opens[] = "<script type=\"application/x-jdflame\" data-title=\"";
    const struct export_before *before = settings->before;
    if (before) {
        packed_output_text(output, opens);
        put_escaped(output, before->name);
        packed_output_text(output, "\">");
        packed_output_put(output, before->bytes, before->size);
        packed_output_text(output, "</script>\n");
    }
    packed_output_text(output, opens);
    put_escaped(output, before ? settings->name : "");
    packed_output_text(output, "\">");
    int err = flame_write(profile, settings, output);
    packed_output_text(output, "</script>\n");
    return err;
}

static int write_page(const struct profile *profile, const struct export_settings *settings,
                      struct packed_output *output)
{
    int err = 0;
    for (const char *at = page_html_begin; at < page_html_end && !err;) {
        size_t left = (size_t)(page_html_end - at);
        const char *mark = memmem(at, left, "@@", 2);
        const char *end = mark ? memmem(mark + 2, left - (size_t)(mark - at) - 2, "@@", 2) : NULL;
        packed_output_put(output, at, end ? (size_t)(mark - at) : left);
        if (!end) {
            break;
        }
        size_t size = (size_t)(end - mark) - 2;
        if (size == 5 && memcmp(mark + 2, "title", size) == 0) {
            put_title(output, profile, settings);
        } else if (size == 5 && memcmp(mark + 2, "about", size) == 0) {
            put_about(output, profile);
        } else if (size == 4 && memcmp(mark + 2, "note", size) == 0) {
            put_note(output, profile);
        } else if (size == 4 && memcmp(mark + 2, "data", size) == 0) {
            err = put_data(output, profile, settings);
        } else { /* scripts */
            for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
                packed_output_put(output, scripts[i].begin,
                                  (size_t)(scripts[i].end - scripts[i].begin));
            }
        }
        at = end + 2;
    }
    return err;
}

extern const struct export_format format_html;
const struct export_format format_html = {
    .name = "html",
    .file = "flamegraph.html",
    .about = "a flame graph, one file for any browser",
    .keeps_times = true,
    .write = write_page,
};
