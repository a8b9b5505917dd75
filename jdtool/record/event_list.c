#include "jdtool/record/event_list.h"

#include "format/event_probe.h"
#include "jdtool/base/descriptor.h"
#include "jdtool/base/message.h"
#include "jdtool/confined/confined.h"
#include "jdtool/objects/elf_file.h"
#include "jdtool/record/probes.h"
#include "jdtool/record/usdt_notes.h"
#include "jdtool/score/processor_time.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- Probes of the timeline ---- */

/* The probes of jdperf record --timeline: which places of libjvm.so tell what the JVM itself does.
 */

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

/* clang-format off */
#define NO_TEXT   {NONE, NONE}
#define NO_TEXTS  {NO_TEXT, NO_TEXT, NO_TEXT, NO_TEXT}
#define NAME_ONLY {{0, 1}, NO_TEXT, NO_TEXT, NO_TEXT}
#define ALL_TEXTS {{0, 1}, {2, 3}, {4, 5}, {6, 7}}
/* clang-format on */

static const struct place_rule rules[] = {
    {"hotspot", "gc__begin", TIMELINE_GC_BEGIN, 0, NO_TEXTS},
    {"hotspot", "gc__end", TIMELINE_GC_END, NONE, NO_TEXTS},
    {"hotspot", "mem__pool__gc__begin", TIMELINE_GC_MEMORY, NONE, NAME_ONLY},
    {"hotspot", "vmops__begin", TIMELINE_OPERATION_BEGIN, 2, NAME_ONLY},
    {"hotspot", "vmops__end", TIMELINE_OPERATION_END, 2, NAME_ONLY},
    {"hs_private", "safepoint__begin", TIMELINE_SAFEPOINT_BEGIN, NONE, NO_TEXTS},
    {"hs_private", "safepoint__end", TIMELINE_SAFEPOINT_END, NONE, NO_TEXTS},
    {"hotspot", "method__compile__begin", TIMELINE_COMPILE_BEGIN, NONE, ALL_TEXTS},
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

/*
 * Defines GROUP:timeline at each of them (format/event_probe.h) in the libjvm.so at `path`, below
 * the directory `root` (-1: as we see it); parks: threads that park as well. 0, or a negative errno
 * after a message: there is none of them.
 */
static int timeline_probes_define(const char *group, int root, const char *path, bool parks)
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
    descriptor_close(file);
    confined_unshare(found, sizeof *found);
    return err;
}

/* ---- The list ---- */

static void keep(struct event_list *events, int fd)
{
    bool is_room = events->held_count < sizeof events->held / sizeof *events->held;
    if (fd >= 0 && is_room) {
        events->held[events->held_count++] = fd;
    } else {
        descriptor_close(fd);
    }
}

void event_list_choose(struct event_list *events, const struct record_options *options)
{
    *events = (struct event_list){
        .alloc = options->alloc != NULL,
        .locks = options->locks != NULL,
        .exceptions = options->exceptions,
        .timeline = options->timeline != NULL,
        .deopts = options->timeline != NULL,
        .parks = options->timeline && strcmp(options->timeline, "parks") == 0,
        .off_cpu = options->off_cpu,
        .wakers = options->wakers,
        .virtual_waits = options->off_cpu && options->threads,
    };
    char probed[96];
    snprintf(probed, sizeof probed, "%s%s%s%s%s", events->alloc ? ", --alloc" : "",
             events->locks ? ", --locks" : "", events->exceptions ? ", --exceptions" : "",
             events->virtual_waits ? ", --off-cpu of virtual threads" : "",
             events->timeline ? ", --timeline" : "");
    if (*probed && probes_check(probed + 2)) {
        events->alloc = events->locks = events->exceptions = events->virtual_waits = false;
        if (events->timeline && !options->all) {
            info_message("--timeline: only pauses and collections, from the JVM's own log");
            events->log = true;
        }
        events->timeline = events->deopts = false;
    }
    if (events->off_cpu) {
        int fd = probes_hold_scheduler("--off-cpu");
        events->off_cpu = fd >= 0;
        keep(events, fd);
    }
    events->wakers &= events->off_cpu;
}

bool event_list_is_empty(const struct event_list *events)
{
    return !events->alloc && !events->locks && !events->exceptions && !events->off_cpu &&
           !events->timeline && !events->deopts && !events->virtual_waits;
}

unsigned event_list_left_out(const struct event_list *events, const struct record_options *options)
{
    return (options->alloc && !events->alloc ? LEFT_OUT_ALLOC : 0) |
           (options->locks && !events->locks ? LEFT_OUT_LOCKS : 0) |
           (options->exceptions && !events->exceptions ? LEFT_OUT_EXCEPTIONS : 0) |
           (options->off_cpu && !events->off_cpu ? LEFT_OUT_OFF_CPU : 0) |
           (options->timeline && !events->timeline && !events->log ? LEFT_OUT_TIMELINE : 0);
}

void event_list_agent_options(const struct event_list *events, const struct record_options *options,
                              char *text, size_t size)
{
    char alloc[64] = "";
    char locks[64] = "";
    if (events->alloc) {
        snprintf(alloc, sizeof alloc, ",alloc=%s", *options->alloc ? options->alloc : "on");
    }
    if (events->locks) {
        snprintf(locks, sizeof locks, ",locks=%s", *options->locks ? options->locks : "on");
    }
    snprintf(text, size, "%s%s%s%s", alloc, locks, events->log ? ",log=on" : "",
             events->virtual_waits ? ",threads=waits"
             : options->threads    ? ",threads=on"
                                   : "");
}

/* Leaves out what needs the JVM's library, where it is not known. */
static void need_libjvm(struct event_list *events)
{
    if (!events->exceptions && !events->timeline) {
        return;
    }
    error_message("%s%s%s: left out, because the libjvm.so of the JVM was not found. Set "
                  "JAVA_HOME, or record it with jdperf record PID",
                  events->exceptions ? "--exceptions" : "",
                  events->exceptions && events->timeline ? ", " : "",
                  events->timeline ? "--timeline" : "");
    events->exceptions = events->timeline = events->deopts = false;
}

void event_list_define(struct event_list *events, const struct event_files *files)
{
    const struct {
        bool *wanted;
        const char *event, *path, *function;
        int root;
        enum probe_arguments arguments;
    } probes[] = {
        {&events->alloc, EVENT_PROBE_ALLOC, files->agent, EVENT_PROBE_ALLOC_FUNCTION,
         files->agent_root, PROBE_ALLOC},
        {&events->locks, EVENT_PROBE_LOCK, files->agent, EVENT_PROBE_LOCK_FUNCTION,
         files->agent_root, PROBE_EVENT},
        {&events->virtual_waits, EVENT_PROBE_UNMOUNT, files->agent, EVENT_PROBE_UNMOUNT_FUNCTION,
         files->agent_root, PROBE_EVENT},
        {&events->virtual_waits, EVENT_PROBE_MOUNT, files->agent, EVENT_PROBE_MOUNT_FUNCTION,
         files->agent_root, PROBE_EVENT},
        {&events->exceptions, EVENT_PROBE_EXCEPTION, files->libjvm, EVENT_PROBE_EXCEPTION_FUNCTION,
         files->root, PROBE_NOTHING},
        {&events->deopts, EVENT_PROBE_DEOPT, files->libjvm, EVENT_PROBE_DEOPT_FUNCTION, files->root,
         PROBE_DEOPT},
    };
    if (!files->libjvm) {
        need_libjvm(events);
    }
    for (size_t i = 0; i < sizeof probes / sizeof *probes; i++) {
        if (!*probes[i].wanted) {
            continue;
        }
        if (probes_define(events->group, probes[i].event, probes[i].root, probes[i].path,
                          probes[i].function, probes[i].arguments)) {
            *probes[i].wanted = false;
        } else {
            keep(events, probes_hold(events->group, probes[i].event));
        }
    }
    if (events->timeline) {
        events->timeline =
            timeline_probes_define(events->group, files->root, files->libjvm, events->parks) == 0;
        if (events->timeline) {
            keep(events, probes_hold(events->group, EVENT_PROBE_TIMELINE));
        }
    }
}

uint32_t event_list_get(const struct event_list *events, unsigned stack_size, bool by_reach,
                        struct sampler_event list[SAMPLER_EVENTS_MAX])
{
    /* TASK_INTERRUPTIBLE and _UNINTERRUPTIBLE; TASK_RUNNING, or TASK_REPORT_MAX where the kernel
     * itself was preempted. Who gives way by itself looks as if preempted, and may do so 100,000
     * times a second: without stacks. */
    static const char blocked[] = "prev_state & 3";
    static const char preempted[] = "prev_state == 0 || prev_state == 0x100";
    const char *ours = events->group;
    by_reach = by_reach && events->alloc;
    /* Those without stacks are the last ones: readers need not list them. */
    const struct {
        bool is;
        struct sampler_event event;
    } all[] = {
        {by_reach,
         {ours, EVENT_PROBE_ALLOC, true, EVENT_STACK_NEAR, "far == 0", FOLLOWS_NOTHING,
          PROBE_ALLOC}},
        {by_reach,
         {ours, EVENT_PROBE_ALLOC, true, EVENT_STACK_FAR, "far != 0", FOLLOWS_NOTHING,
          PROBE_ALLOC}},
        {events->alloc && !by_reach,
         {ours, EVENT_PROBE_ALLOC, true, stack_size, NULL, FOLLOWS_NOTHING, PROBE_ALLOC}},
        {events->locks,
         {ours, EVENT_PROBE_LOCK, true, stack_size, NULL, FOLLOWS_NOTHING, PROBE_EVENT}},
        {events->exceptions,
         {ours, EVENT_PROBE_EXCEPTION, true, stack_size, NULL, FOLLOWS_NOTHING, PROBE_NOTHING}},
        {events->deopts,
         {ours, EVENT_PROBE_DEOPT, true, stack_size, NULL, FOLLOWS_NOTHING, PROBE_DEOPT}},
        {events->off_cpu,
         {"sched", "sched_switch", true, stack_size, blocked, FOLLOWS_BLOCKED, PROBE_NOTHING}},
        {events->off_cpu,
         {"sched", "sched_switch", false, 0, preempted, FOLLOWS_PREEMPTED, PROBE_NOTHING}},
        {events->wakers,
         {"sched", "sched_waking", true, stack_size, NULL, FOLLOWS_WAKING, PROBE_NOTHING}},
        {events->virtual_waits,
         {ours, EVENT_PROBE_UNMOUNT, true, stack_size, NULL, FOLLOWS_NOTHING, PROBE_EVENT}},
        {events->virtual_waits,
         {ours, EVENT_PROBE_MOUNT, false, 0, NULL, FOLLOWS_NOTHING, PROBE_EVENT}},
        {events->off_cpu, {"sched", "sched_wakeup", false, 0, NULL, FOLLOWS_WOKEN, PROBE_NOTHING}},
        {events->timeline,
         {ours, EVENT_PROBE_TIMELINE, false, 0, NULL, FOLLOWS_NOTHING, PROBE_NOTHING}},
    };
    uint32_t count = 0;
    _Static_assert(sizeof all / sizeof *all <= SAMPLER_EVENTS_MAX, "the sampler takes all");
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (all[i].is) {
            list[count++] = all[i].event;
        }
    }
    return count;
}

void event_list_arguments(const struct event_list *events, struct perf_run *perf,
                          unsigned stack_size, bool by_reach)
{
    char text[160];
    struct sampler_event list[SAMPLER_EVENTS_MAX];
    uint32_t count = event_list_get(events, stack_size, by_reach, list);
    for (uint32_t i = 0; i < count; i++) {
        int size = snprintf(text, sizeof text, "%s:%s/call-graph=", list[i].group, list[i].event);
        if (list[i].has_stack && list[i].stack_size) {
            snprintf(text + size, sizeof text - (size_t)size, "dwarf,stack-size=%u/",
                     list[i].stack_size);
        } else {
            snprintf(text + size, sizeof text - (size_t)size, list[i].has_stack ? "fp/" : "no/");
        }
        WORDS_ADD(&perf->arguments, "-e", text);
        if (list[i].filter) {
            WORDS_ADD(&perf->arguments, "--filter", list[i].filter);
        }
    }
    if (events->off_cpu) {
        WORDS_ADD(&perf->arguments, "--switch-events");
    }
}

void event_list_let_go(struct event_list *events)
{
    while (events->held_count) {
        close(events->held[--events->held_count]);
    }
}

char *event_with_rate(const char *event, unsigned frequency, const char *period)
{
    char rate[256];
    char *text = NULL;
    int size;
    /* Named, or it would go by all of this text. */
    if (period) {
        size = snprintf(rate, sizeof rate, "period=%s,name='%s'", period, event);
    } else {
        size = snprintf(rate, sizeof rate, "freq=%u,name='%s'", frequency, event);
    }
    if (size >= (int)sizeof rate || strchr(event, '/')) {
        *strchr(rate, ',') = '\0';
    }
    const char *slash = strrchr(event, '/');
    const char *colon = strrchr(event, ':');
    if (strpbrk(event, "{}") || (strchr(event, ',') && !slash)) {
        return strdup(event); /* of several, the first would get it */
    }
    if (slash) { /* "cpu/event=0x3c/u" */
        bool is_empty = slash > event && slash[-1] == '/';
        size = asprintf(&text, "%.*s%s%s%s", (int)(slash - event), event, is_empty ? "" : ",", rate,
                        slash);
    } else if (colon && strspn(colon + 1, "ukhpPGHSDI") == strlen(colon + 1)) { /* "cycles:u" */
        size = asprintf(&text, "%.*s/%s/%s", (int)(colon - event), event, rate, colon + 1);
    } else if (colon) { /* a tracepoint, which has no such terms */
        return strdup(event);
    } else {
        size = asprintf(&text, "%s/%s/", event, rate);
    }
    return size < 0 ? NULL : text;
}
