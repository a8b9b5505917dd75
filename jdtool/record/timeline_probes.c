#include "jdtool/record/timeline_probes.h"

#include "format/event_probe.h"
#include "jdtool/base/message.h"
#include "jdtool/confined/confined.h"
#include "jdtool/objects/elf_file.h"
#include "jdtool/record/probes.h"
#include "jdtool/record/usdt_notes.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

struct place {
    uint64_t offset;
    char arguments[1024];
};

/* What a process without rights has found in a JVM's file: to be doubted as that is. */
struct found {
    int file;
    bool parks, is_sound, is_full;
    const struct elf_file *elf; /* its own */
    uint32_t count;
    struct place places[PROBED_PLACES];
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

static void describe(const struct place_rule *rule, const struct usdt_note *note, char text[1024])
{
    enum { SIZE = 1024 };
    char operand[64];
    fetch_number(note, rule->number, operand, sizeof operand);
    int used = snprintf(text, SIZE, " what=\\%d:u32 number=%s:u32", (int)rule->what, operand);
    for (int i = 0; i < TIMELINE_TEXTS; i++) {
        fetch_number(note, rule->texts[i].size, operand, sizeof operand);
        used += snprintf(text + used, SIZE - (size_t)used, " size%d=%s:u32", i, operand);
    }
    for (int i = 0; i < TIMELINE_TEXTS; i++) {
        fetch_text(note, rule->texts[i].text, operand, sizeof operand);
        used += snprintf(text + used, SIZE - (size_t)used, " text%d=%s:string", i, operand);
    }
}

static bool take_note(void *context, const struct usdt_note *note)
{
    struct found *found = context;
    for (size_t i = 0; i < RULE_COUNT; i++) {
        const struct place_rule *rule = &rules[i];
        bool is_park = rule->what == TIMELINE_PARK_BEGIN || rule->what == TIMELINE_PARK_END;
        if (strcmp(rule->name, note->name) != 0 || strcmp(rule->provider, note->provider) != 0 ||
            (is_park && !found->parks)) {
            continue;
        }
        if (found->count == PROBED_PLACES) {
            found->is_full = true;
            return false;
        }
        struct place *place = &found->places[found->count];
        if (probes_offset(found->elf, note->address, &place->offset)) {
            describe(rule, note, place->arguments);
            found->count++;
        }
    }
    return true;
}

static int look(void *context)
{
    struct found *found = context;
    struct elf_file file;
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", found->file);
    if (elf_file_open(-1, path, &file) == OBJECT_SOUND) {
        found->is_sound = true;
        found->elf = &file;
        usdt_notes_walk(&file, take_note, found);
        elf_file_close(&file);
    }
    return 0;
}

/* One line of words, as we write them: the kernel takes a line for each definition. */
static bool is_line(const char *text)
{
    for (; *text; text++) {
        if (*text < ' ' || *text > '~') {
            return false;
        }
    }
    return true;
}

struct definition {
    unsigned defined; /* places */
    int err;          /* the first */
};

static void define_all(const char *group, const struct found *found, struct definition *definition)
{
    uint32_t count = found->count < PROBED_PLACES ? found->count : PROBED_PLACES;
    definition->err = found->is_full ? -E2BIG : 0;
    for (uint32_t i = 0; i < count; i++) {
        struct place place = found->places[i];
        place.arguments[sizeof place.arguments - 1] = '\0';
        int err = is_line(place.arguments)
                      ? probes_define_at(group, EVENT_PROBE_TIMELINE, found->file, place.offset,
                                         place.arguments)
                      : -EINVAL;
        definition->err = definition->err ? definition->err : err;
        definition->defined += !err;
    }
}

/* A JDK that is built without them has no notes at all; one place may be inlined several times. */
static int judge(const struct definition *definition, const char *path)
{
    unsigned count = definition->defined;
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
    struct stat status;
    struct definition definition = {0};
    struct found *found = confined_shared(sizeof *found);
    int file = elf_file_open_only(root, path, &status);
    int err = !found ? -ENOMEM : -ENOENT;
    if (found && file >= 0) {
        found->file = file;
        found->parks = parks;
        confined_look(path, look, found);
        found->file = file;
    }
    if (!found || !found->is_sound) {
        error_message("failed to read %s for --timeline", path);
    } else {
        define_all(group, found, &definition);
        err = judge(&definition, path);
    }
    if (file >= 0) {
        close(file);
    }
    confined_unshare(found, sizeof *found);
    return err;
}
