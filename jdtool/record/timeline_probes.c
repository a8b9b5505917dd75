#include "jdtool/record/timeline_probes.h"

#include "format/event_probe.h"
#include "jdtool/base/message.h"
#include "jdtool/record/probes.h"
#include "jdtool/record/usdt_notes.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
    NONE = -1,
    PROBED_PLACES = 512, /* HotSpot's builds have some dozens; another's file may say anything */
};

/* Which arguments of a place are wanted: those of its definition in HotSpot's dtrace/hotspot.d. */
struct place_rule {
    const char *provider, *name;
    enum timeline_probe what;
    int number;
    struct {
        int text, size;
    } texts[TIMELINE_TEXTS];
};

#define NO_TEXT                                                                                    \
    {                                                                                              \
        NONE, NONE                                                                                 \
    }
#define NO_TEXTS                                                                                   \
    {                                                                                              \
        NO_TEXT, NO_TEXT, NO_TEXT, NO_TEXT                                                         \
    }
#define NAME_ONLY                                                                                  \
    {                                                                                              \
        {0, 1}, NO_TEXT, NO_TEXT, NO_TEXT                                                          \
    }

static const struct place_rule rules[] = {
    {"hotspot", "gc__begin", TIMELINE_GC_BEGIN, 0, NO_TEXTS},
    {"hotspot", "gc__end", TIMELINE_GC_END, NONE, NO_TEXTS},
    {"hotspot", "mem__pool__gc__begin", TIMELINE_GC_MEMORY, NONE, NAME_ONLY},
    {"hotspot", "vmops__begin", TIMELINE_OPERATION_BEGIN, 2, NAME_ONLY},
    {"hotspot", "vmops__end", TIMELINE_OPERATION_END, 2, NAME_ONLY},
    {"hs_private", "safepoint__begin", TIMELINE_SAFEPOINT_BEGIN, NONE, NO_TEXTS},
    {"hs_private", "safepoint__end", TIMELINE_SAFEPOINT_END, NONE, NO_TEXTS},
    {"hotspot",
     "method__compile__begin",
     TIMELINE_COMPILE_BEGIN,
     NONE,
     {{0, 1}, {2, 3}, {4, 5}, {6, 7}}},
    {"hotspot", "method__compile__end", TIMELINE_COMPILE_END, 8, NO_TEXTS},
    {"hotspot", "thread__start", TIMELINE_THREAD_START, 2, NAME_ONLY},
    {"hotspot", "thread__stop", TIMELINE_THREAD_STOP, 2, NAME_ONLY},
    {"hotspot", "thread__park__begin", TIMELINE_PARK_BEGIN, NONE, NO_TEXTS},
    {"hotspot", "thread__park__end", TIMELINE_PARK_END, NONE, NO_TEXTS},
};
#define RULE_COUNT (sizeof rules / sizeof *rules)

struct definition {
    const char *group;
    const struct elf_file *file;
    bool parks;
    unsigned places;
    unsigned defined[RULE_COUNT]; /* places of each */
    int err;                      /* the first */
};

/* An argument's operand, or a constant in its place: all places have the same arguments. */
static void fetch_number(const struct usdt_note *note, int argument, char *out, size_t size)
{
    if (argument == NONE || !usdt_operand(note->arguments, (unsigned)argument, out, size)) {
        snprintf(out, size, "\\0");
    }
}

static void fetch_text(const struct usdt_note *note, int argument, char *out, size_t size)
{
    char operand[48];
    if (argument == NONE ||
        !usdt_operand(note->arguments, (unsigned)argument, operand, sizeof operand) ||
        *operand == '\\') {
        snprintf(out, size, "\\\"\"");
    } else {
        snprintf(out, size, "+0(%s)", operand);
    }
}

static int define(const struct definition *definition, const struct place_rule *rule,
                  const struct usdt_note *note)
{
    char text[1024];
    char operand[64];
    fetch_number(note, rule->number, operand, sizeof operand);
    int used =
        snprintf(text, sizeof text, " what=\\%d:u32 number=%s:u32", (int)rule->what, operand);
    for (int i = 0; i < TIMELINE_TEXTS; i++) {
        fetch_number(note, rule->texts[i].size, operand, sizeof operand);
        used += snprintf(text + used, sizeof text - (size_t)used, " size%d=%s:u32", i, operand);
    }
    for (int i = 0; i < TIMELINE_TEXTS; i++) {
        fetch_text(note, rule->texts[i].text, operand, sizeof operand);
        used += snprintf(text + used, sizeof text - (size_t)used, " text%d=%s:string", i, operand);
    }
    return probes_define_at(definition->group, EVENT_PROBE_TIMELINE, definition->file,
                            note->address, text);
}

static bool take_note(void *context, const struct usdt_note *note)
{
    struct definition *definition = context;
    for (size_t i = 0; i < RULE_COUNT; i++) {
        const struct place_rule *rule = &rules[i];
        bool is_park = rule->what == TIMELINE_PARK_BEGIN || rule->what == TIMELINE_PARK_END;
        if (strcmp(rule->name, note->name) != 0 || strcmp(rule->provider, note->provider) != 0 ||
            (is_park && !definition->parks)) {
            continue;
        }
        if (definition->places++ == PROBED_PLACES) {
            definition->err = definition->err ? definition->err : -E2BIG;
            return false;
        }
        int err = define(definition, rule, note);
        definition->err = definition->err ? definition->err : err;
        definition->defined[i] += !err;
    }
    return true;
}

/* A JDK that is built without them has no notes at all; one place may be inlined several times. */
static int judge(const struct definition *definition, const char *path)
{
    unsigned count = 0;
    for (size_t i = 0; i < RULE_COUNT; i++) {
        count += definition->defined[i];
    }
    if (count == 0 && !definition->err) {
        error_message(
            "--timeline: %s has no marks for tracers (.note.stapsdt): its JDK was built without "
            "--enable-dtrace; left out. Use a build with them, such as Debian's or Temurin's",
            path);
        return -ENOENT;
    }
    if (definition->err) {
        error_message("failed to define uprobes on %s for --timeline: %s%s", path,
                      strerror(-definition->err),
                      count ? "; some are left out" : "; left out. It needs Linux 5.4");
    }
    return count ? 0 : definition->err;
}

int timeline_probes_define(const char *group, int root, const char *path, bool parks)
{
    struct elf_file file;
    if (elf_file_open(root, path, &file) != OBJECT_SOUND) {
        error_message("failed to read %s for --timeline", path);
        return -ENOENT;
    }
    struct definition definition = {.group = group, .file = &file, .parks = parks};
    usdt_notes_walk(&file, take_note, &definition);
    int err = judge(&definition, path);
    elf_file_close(&file);
    return err;
}
