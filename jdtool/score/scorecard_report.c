/* The scorecard for people, and as JSON for scripts. */
#include "format/event_probe.h"
#include "jdtool/base/json_writer.h"
#include "jdtool/base/text.h"
#include "jdtool/jitdump/code_index.h"
#include "jdtool/jitdump/safepoint_lines.h"
#include "jdtool/perf/perf_data.h"
#include "jdtool/score/scorecard_private.h"

#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <string.h>

/* Stacks without frame pointers end a frame or two above the compiled method, by chance. */
#define UNROOTED_LIMIT 0.05

/* The largest copy of a stack that perf record takes. */
#define LARGEST_COPY 65528

static const struct reason {
    const char *key;
    const char *text;
} reasons[UNNAMED_REASONS] = {
    [UNNAMED_NO_DUMP] = {"no_dump", "in a JVM without a usable dump"},
    [UNNAMED_BEFORE_DUMP] = {"before_dump", "before the agent was loaded"},
    [UNNAMED_AFTER_DUMP] = {"after_dump", "after the end of the dump"},
    [UNNAMED_BEFORE_LOAD] = {"before_load", "before their code's record"},
    [UNNAMED_UNKNOWN] = {"unknown", "in code that the dump lacks"},
};

/* Why unwinding a stack copy ended; "root" apart, each is a reason for an unrooted stack. */
static const struct {
    enum stack_end end;
    const char *key;
    const char *text;
} stack_ends[] = {
    {STACK_ROOT, "root", "root"},
    {STACK_COPY_ENDS, "copy_too_short", "stack copy too short"},
    {STACK_UNKNOWN, "unknown_code", "in unknown code"},
    {STACK_NO_INFO, "no_frame_information", "no frame information"},
    {STACK_BROKEN, "broken", "broken stack"},
    {STACK_CUT, "too_deep", "too deep for a record"},
    {STACK_COPY_CUT, "copy_cut_by_kernel", "copy cut by the kernel"},
};
#define END_COUNT (sizeof stack_ends / sizeof stack_ends[0])

static double share(uint64_t part, uint64_t whole)
{
    return whole ? (double)part / (double)whole : 0;
}

/* ---- What is wrong ---- */

struct warnings {
    void (*tell)(void *to, const char *text);
    void *to;
};

static void warn(const struct warnings *warnings, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void warn(const struct warnings *warnings, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    warnings->tell(warnings->to, text);
}

/* Of the recording's events those that the JVM does not provide: what misses them for one reason is
 * one warning. */
static void warn_of_lacks(const struct scorecard *card, const struct recorded_jvm *jvm,
                          const struct warnings *to)
{
    char of_agent[64] = "";
    char of_libjvm[64] = "";
    for (uint32_t i = 0; i < card->recording->event_count; i++) {
        const char *event = card->recording->events[i].name;
        if (scorecard_lacks(card, jvm, event)) {
            bool is_agent =
                strcmp(event, EVENT_PROBE_ALLOC) == 0 || strcmp(event, EVENT_PROBE_LOCK) == 0;
            char *list = is_agent ? of_agent : of_libjvm;
            size_t used = strlen(list);
            snprintf(list + used, sizeof of_agent - used, "%s%s", used ? ", " : "", event);
        }
    }
    if (*of_libjvm) {
        warn(to,
             "process %u: no %s events: it runs another JDK than the one that they were asked "
             "of, which JAVA_HOME and PATH name; set JAVA_HOME to its JDK, or record it with "
             "jdperf record PID",
             jvm->pid, of_libjvm);
    }
    if (*of_agent) {
        warn(to,
             "process %u: no %s events: another agent in the JVM has them (the profiler of an "
             "APM agent: switch that off), or the JVM has none (before JDK 11)",
             jvm->pid, of_agent);
    }
}

static void warn_of_jvms(const struct scorecard *card, const struct warnings *to)
{
    const struct recording *recording = card->recording;
    bool all_usable = recording->jvm_count > 0;
    for (uint32_t i = 0; i < recording->jvm_count; i++) {
        const struct recorded_jvm *jvm = recording->jvms[i];
        all_usable &= jvm->problem == NULL;
        if (jvm->problem) {
            warn(to, "process %u: %s", jvm->pid, jvm->problem);
            continue;
        }
        if (jvm->index && safepoint_lines_first(jvm->index)) {
            warn(to,
                 "process %u: code compiled before jdperf attached has exact lines only at calls; "
                 "for all lines, start the JVM with -XX:+UnlockDiagnosticVMOptions "
                 "-XX:+DebugNonSafepoints",
                 jvm->pid);
        }
        warn_of_lacks(card, jvm, to);
        if (jvm->warning) {
            warn(to, "process %u: its dump is damaged: %s", jvm->pid, jvm->warning);
        }
    }
    if (card->samples == 0) {
        warn(to, "there are no samples: the processes used no processor time, or the kernel denied "
                 "access to them; as root it does not");
    } else if (recording->jvm_count == 0) {
        warn(to, "no process of this recording mapped a dump: only native and kernel code has "
                 "names (a GraalVM native image has no other); load the agent into a JVM "
                 "(-agentpath:libjdagent.so, or attach) while perf records");
    }
    if (all_usable && card->jvms.unnamed[UNNAMED_NO_DUMP] > card->jvms.frames / 100) {
        warn(to, "%" PRIu64 " frames are of JVMs without a dump; load the agent into them, too",
             card->jvms.unnamed[UNNAMED_NO_DUMP]);
    }
    if (card->jvms.unnamed[UNNAMED_UNKNOWN] > card->jvms.frames / 100) {
        warn(to,
             "%" PRIu64 " frames are in code that the JVM did not report. HotSpot reports code of "
             "GraalVM's languages (Truffle) only when an agent attaches: start the program, wait "
             "until it is warm, then jdperf record PID",
             card->jvms.unnamed[UNNAMED_UNKNOWN]);
    }
    if (card->jvms.unnamed[UNNAMED_BEFORE_DUMP] > card->jvms.frames / 100) {
        warn(to, "frames were sampled before the agent was loaded; load it before perf starts, or "
                 "when the JVM starts");
    }
}

/* The size of the copies that were asked for. */
static uint32_t copy_size(const struct recording *recording)
{
    uint32_t size = 0;
    for (uint32_t i = 0; i < perf_data_event_count(recording->data); i++) {
        uint32_t of_event = perf_data_event(recording->data, i)->attr.sample_stack_user;
        size = of_event > size ? of_event : size;
    }
    return size;
}

/* Of which a buffer holds four times as many: without rights it is too small for more, and samples
 * of threads are taken at one frequency whatever was asked for. */
#define SMALL_COPY     16384
#define SMALLER_COPIES "smaller copies of the stack (--stack-size 16384), "

static uint64_t unrooted_of(const struct scorecard_event *event)
{
    return event->stacks - event->stacks_frozen - event->stacks_rooted;
}

/* The event of which most stacks do not reach their root: its copies may be smaller than others'.
 */
static uint32_t least_rooted(const struct scorecard *card)
{
    uint32_t least = 0;
    for (uint32_t i = 1; i < card->recording->event_count; i++) {
        least = unrooted_of(&card->events[i]) > unrooted_of(&card->events[least]) ? i : least;
    }
    return least;
}

/* The file in which most stacks end for want of call-frame information; NULL: none. */
static const char *barest(const struct scorecard *card)
{
    const struct scorecard_bare *most = &card->bare[0];
    for (size_t i = 1; i < sizeof card->bare / sizeof *card->bare; i++) {
        most = card->bare[i].stacks > most->stacks ? &card->bare[i] : most;
    }
    return most->module ? basename(most->module->path) : NULL;
}

/* Most of them end for one reason, and so there is one remedy. */
static void warn_of_stacks(const struct scorecard *card, const struct warnings *to)
{
    const struct recording *recording = card->recording;
    uint64_t unrooted = scorecard_judged_stacks(card) - card->jvms.stacks_rooted;
    if (!recording->has_chains) {
        warn(to, "samples have no stacks: record with -g");
    }
    if (card->jvms.stacks_frozen > card->jvms.stacks / 100) {
        warn(to,
             "%" PRIu64 " stacks are of virtual threads that resumed: HotSpot restores only their "
             "innermost frames, the callers are in the heap. %s",
             card->jvms.stacks_frozen,
             card->recording->counts.walked
                 ? "Copied stacks lack them: the first ones, those of new code, and all with ZGC "
                   "and Shenandoah (--stacks kernel copies fewer at the start)"
                 : "Only --stacks kernel finds them (not with ZGC and Shenandoah)");
    }
    uint32_t least = least_rooted(card);
    const struct scorecard_event *event = &card->events[least];
    uint64_t judged = event->stacks - event->stacks_frozen;
    bool is_judged = judged >= SCORECARD_EVENT_STACKS; /* for itself */
    if (share(unrooted, scorecard_judged_stacks(card)) <= UNROOTED_LIMIT &&
        (!is_judged || share(unrooted_of(event), judged) <= UNROOTED_LIMIT)) {
        return;
    }
    if (!recording->unwound) {
        if (card->jvms.ends[STACK_CUT] > unrooted / 2) {
            warn(to, "many stacks are deeper than the kernel records; raise sysctl "
                     "kernel.perf_event_max_stack");
        } else if (recording->has_copies) {
            warn(to, "many stacks do not reach their thread's root: the copies were not unwound");
        } else {
            warn(to, "many stacks do not reach their thread's root; run the JVM with "
                     "-XX:+PreserveFramePointer, or record with --call-graph dwarf (jdperf: "
                     "--stacks copy)");
        }
    } else if (card->jvms.ends[STACK_NO_INFO] > unrooted / 2 && barest(card)) {
        warn(to,
             "many stacks end in %s, in code without call-frame information, such as functions "
             "written in assembly: who called it is unknown",
             barest(card));
    } else if (card->jvms.ends[STACK_COPY_ENDS] <= unrooted / 2) {
        warn(to, "many stacks do not reach their thread's root; the lines above count the "
                 "reasons");
    } else if (recording->counts.walked) {
        warn(to, "many stacks are deeper than their copies, which the first ones have; record with "
                 "--stacks kernel, which walks them from the start");
    } else if (perf_data_event(recording->data, least)->attr.sample_stack_user < LARGEST_COPY) {
        warn(to,
             "many stacks do not reach their thread's root; record with a larger stack copy "
             "(--call-graph dwarf,%d; jdperf: --stack-size %d)",
             LARGEST_COPY, LARGEST_COPY);
    } else {
        warn(to, "many stacks are deeper than the largest copy of a stack; record as root with "
                 "--stacks kernel, or run the JVM with -XX:+PreserveFramePointer and record with "
                 "-g (jdperf: --stacks fp)");
    }
}

/* Of too many events one of several is recorded, with a larger weight. */
static void warn_of_limits(const struct scorecard *card, const struct warnings *to)
{
    for (uint32_t i = 0; i < card->recording->event_count; i++) {
        const struct scorecard_event *event = &card->events[i];
        if (event->left_out) {
            warn(to,
                 "%" PRIu64 " of %" PRIu64 " events %s were recorded, chosen at random, to limit "
                 "the cost; their weights count for all",
                 event->samples, event->samples + event->left_out, card->recording->events[i].name);
        }
    }
}

/* Waits and parts of them. */
static uint64_t waits_of(const struct scorecard *card)
{
    uint64_t waits = 0;
    for (uint32_t i = 0; i < card->recording->event_count; i++) {
        const char *name = card->recording->events[i].name;
        bool is_wait = strcmp(name, "off-cpu") == 0 || strcmp(name, "virtual-wait") == 0;
        waits += is_wait ? card->events[i].samples : 0;
    }
    return waits;
}

static void warn_of_losses(const struct scorecard *card, const struct warnings *to)
{
    const struct recording_counts *counts = &card->recording->counts;
    if (card->jvms.interpreted_stubs > card->jvms.frames / 100) {
        warn(to, "%" PRIu64 " interpreted frames have no other name than Interpreter: %s",
             card->jvms.interpreted_stubs,
             card->recording->unwound
                 ? "they ran before the agent had told of their methods, it could not write all "
                   "(a full disk, max=), or it runs without methods=on"
                 : "frame pointers do not tell their methods; record copied stacks "
                   "(--call-graph dwarf and methods=on; jdperf: --stacks copy)");
    }
    if (counts->malformed) {
        warn(to,
             "left out %" PRIu64 " samples that are malformed or of an event that the recording "
             "does not list",
             counts->malformed);
    }
    if (counts->lost_samples || counts->lost_records) {
        warn(to,
             "%" PRIu64 " samples and %" PRIu64 " records were lost; record with %sa lower "
             "frequency (-F) or larger buffers (-m)",
             counts->lost_samples, counts->lost_records,
             copy_size(card->recording) > SMALL_COPY ? SMALLER_COPIES : "");
    }
    if (counts->throttled) {
        warn(to,
             "the kernel throttled sampling %" PRIu64 " times: lower the frequency (-F), or raise "
             "kernel.perf_cpu_time_max_percent",
             counts->throttled);
    }
    bool is_lost = counts->lost_samples || counts->lost_records;
    if (counts->waits_lost > waits_of(card) / 100) {
        warn(to, "left out %" PRIu64 " waits whose end %s", counts->waits_lost,
             is_lost ? "was lost; record with larger buffers (-m)"
                     : "the kernel did not report (nothing was lost, larger buffers do not help)");
    }
    if (counts->marks_lost) {
        warn(to, "left out %" PRIu64 " events of the JVM's time line whose end %s",
             counts->marks_lost,
             is_lost ? "was lost; record with larger buffers (-m)" : "was not reported");
    }
    warn_of_limits(card, to);
    if (counts->frames_cut) {
        warn(to,
             "%" PRIu64 " outermost frames were left out, because their stacks are too deep; these "
             "stacks do not reach the root",
             counts->frames_cut);
    }
    if (counts->inlines_cut) {
        warn(to, "%" PRIu64 " addresses have more inlined methods than are shown",
             counts->inlines_cut);
    }
    if (counts->let_go_early) {
        warn(to,
             "%" PRIu64 " samples were resolved before the JVM reported its code, and may lack "
             "names; record with a lower frequency (-F)",
             counts->let_go_early);
    }
    if (counts->late) {
        warn(to,
             "%" PRIu64 " records arrived too late to be sorted by time; they may take effect a "
             "moment later",
             counts->late);
    }
    if (counts->mappings_cut) {
        warn(to, "%" PRIu64 " mappings or processes were left out: too many", counts->mappings_cut);
    }
}

/*
 * A thread's clock begins when it is woken: the run queue keeps that time for the switch that
 * follows (rq_clock_skip_update). Until an idle processor has switched to it, samples are of the
 * idle task, which has none: 4 us a wake (6.12). Two threads that send each other messages had 94 %
 * of their time where other processors were idle, 100 to 101 % where they were busy.
 */
static const char *why_time_differs(const struct recording *recording,
                                    const struct time_account *time)
{
    if (time->weight > time->ns) {
        return "the weights of the samples are too large";
    }
    if (recording->counts.lost_samples) {
        return "samples were lost";
    }
    return recording->perf_version /* or our own sampler made it */
               ? "perf takes too few samples of threads that live for a few milliseconds; record "
                 "with --sampler own or -a"
               : "the kernel took fewer samples than asked for (it limits what they may cost, and "
                 "takes none while a virtual machine stands still), or threads often woke idle "
                 "processors, which is time of theirs without samples";
}

/* What is missing of the time, and where. */
static void warn_of_time(const struct scorecard *card, const struct warnings *to)
{
    for (uint32_t i = 0; i < card->time_count; i++) {
        struct time_account time = scorecard_time(card, card->times[i].pid);
        enum verdict verdict = judge_time(&time);
        if (verdict == VERDICT_GOOD || verdict == VERDICT_EMPTY) {
            continue;
        }
        warn(to, "process %u: %.2f of %.2f s of processor time are in the profile: %s",
             card->times[i].pid, (double)time.weight / 1e9, (double)time.ns / 1e9,
             why_time_differs(card->recording, &time));
    }
}

/* Stacks that end at once, in files or memory that cannot be read. */
static void warn_of_places(const struct scorecard *card, const struct warnings *to)
{
    const struct scorecard_tally *jvms = &card->jvms;
    if (jvms->unreadable > jvms->stacks / 100) {
        warn(to,
             "%" PRIu64 " samples are in files that cannot be read or were replaced: they have "
             "neither names nor callers",
             jvms->unreadable);
    }
    if (jvms->nowhere > jvms->stacks / 100) {
        warn(to,
             "%" PRIu64 " samples of JVMs are at addresses that belong to no file and no dump: "
             "the recording lacks the mapping",
             jvms->nowhere);
    }
}

static void warn_of_all(const struct scorecard *card, const struct warnings *to)
{
    warn_of_jvms(card, to);
    warn_of_stacks(card, to);
    warn_of_places(card, to);
    warn_of_time(card, to);
    warn_of_losses(card, to);
}

/* ---- JSON ---- */

static void tell_json(void *json, const char *text)
{
    json_text(json, NULL, text);
}

static const char *image_of(const struct scorecard *card, const struct recorded_jvm *jvm)
{
    for (uint32_t i = 0; jvm->module && i < card->image_count; i++) {
        if (card->images[i].module == jvm->module) {
            return card->images[i].path;
        }
    }
    return NULL;
}

/* One that was read by a descriptor lies in the profile, as the result does. */
static const char *name_dump(const struct scorecard *card, const char *dump, char path[PATH_MAX])
{
    static const char held[] = "/proc/self/fd/";
    const char *result = card->options.result;
    const char *end = result ? strrchr(result, '/') : NULL;
    if (!dump || !end || strncmp(dump, held, sizeof held - 1) != 0) {
        return dump;
    }
    snprintf(path, PATH_MAX, "%.*s/%s", (int)(end - result), result, basename(dump));
    return path;
}

static void put_jvm(struct json_writer *json, const struct scorecard *card,
                    const struct recorded_jvm *jvm)
{
    char dump[PATH_MAX];
    struct time_account time = scorecard_time(card, jvm->pid);
    json_object(json, NULL);
    json_uint(json, "pid", jvm->pid);
    json_real(json, "time_accounted_share", time_accounted_share(&time), 6);
    json_text(json, "dump", name_dump(card, jvm->dump ? jvm->dump : jvm->recorded, dump));
    json_uint(json, "pieces_of_code", jvm->index ? code_index_blob_count(jvm->index) : 0);
    json_text(json, "image", image_of(card, jvm));
    json_text(json, "problem", jvm->problem ? jvm->problem : jvm->warning);
    json_end(json);
}

static void put_frames(struct json_writer *json, const struct scorecard *card)
{
    json_uint(json, "samples", card->samples);
    json_uint(json, "samples_in_jvms", card->jvms.samples);
    json_uint(json, "samples_in_generated_code", card->jvms.generated);
    json_uint(json, "samples_in_generated_code_named", card->jvms.generated_named);
    json_uint(json, "frames_in_generated_code", card->jvms.frames);
    json_uint(json, "frames_in_generated_code_named", card->jvms.frames_named);
    json_uint(json, "interpreted_frames_named", card->jvms.interpreted);
    json_uint(json, "interpreted_frames", card->jvms.interpreted + card->jvms.interpreted_stubs);
    json_object(json, "threads");
    json_uint(json, "samples", card->jvms.journal);
    json_uint(json, "virtual", card->jvms.on_virtual);
    json_uint(json, "labelled", card->jvms.labelled);
    json_uint(json, "unknown", card->jvms.unknown);
    json_end(json);
    json_object(json, "unnamed_frames");
    for (int i = UNNAMED_NOT + 1; i < UNNAMED_REASONS; i++) {
        json_uint(json, reasons[i].key, card->jvms.unnamed[i]);
    }
    json_end(json);
    json_uint(json, "samples_in_no_file_or_dump", card->jvms.nowhere);
    json_uint(json, "samples_in_unreadable_files", card->jvms.unreadable);
}

static void put_stacks(struct json_writer *json, const struct scorecard *card)
{
    uint64_t cut = card->jvms.ends[STACK_CUT];
    json_uint(json, "stacks", card->jvms.stacks);
    json_uint(json, "stacks_rooted", card->jvms.stacks_rooted);
    json_real(json, "rooted_share", scorecard_rooted_share(card), 6);
    json_real(json, "rooted_limit", SCORECARD_ROOTED_LIMIT, 2);
    json_uint(json, "stacks_frozen", card->jvms.stacks_frozen);
    json_object(json, "stacks_not_rooted");
    json_uint(json, "as_deep_as_the_kernel_records", cut);
    json_uint(json, "of_two_frames_or_less", card->jvms.stacks_short);
    json_uint(json, "other",
              scorecard_judged_stacks(card) - card->jvms.stacks_rooted - cut -
                  card->jvms.stacks_short);
    json_end(json);
    if (card->recording->unwound) {
        json_object(json, "stack_copies_unwound");
        for (size_t i = 0; i < END_COUNT; i++) {
            json_uint(json, stack_ends[i].key, card->jvms.ends[stack_ends[i].end]);
        }
        json_uint(json, "above_frozen_frames", card->jvms.ends[STACK_FROZEN]);
        json_end(json);
    }
}

static void put_event(struct json_writer *json, const struct recorded_event *recorded,
                      const struct scorecard_event *event)
{
    json_object(json, NULL);
    json_text(json, "name", recorded->name);
    json_text(json, "unit", recorded->unit);
    json_uint(json, "samples", event->samples);
    json_uint(json, "weight", event->weight);
    json_uint(json, "left_out", event->left_out);
    json_uint(json, "frames", event->frames);
    json_uint(json, "frames_named", event->frames_named);
    json_uint(json, "stacks", event->stacks);
    json_uint(json, "stacks_rooted", event->stacks_rooted);
    json_uint(json, "stacks_frozen", event->stacks_frozen);
    json_end(json);
}

static void put_time(struct json_writer *json, const struct scorecard *card,
                     const struct time_account *time)
{
    uint32_t unknown = 0;
    for (uint32_t i = 0; i < card->time_count; i++) {
        unknown += !card->times[i].is_known;
    }
    json_real(json, "time_accounted_share", time_accounted_share(time), 6);
    json_object(json, "processor_time");
    json_uint(json, "accounted", time->ns);
    json_uint(json, "at_most_more", time->more);
    json_uint(json, "in_profile", time->weight);
    json_uint(json, "samples", time->samples);
    json_uint(json, "jvms_unknown", unknown);
    json_end(json);
}

static void put_counts(struct json_writer *json, const struct recording_counts *counts)
{
    json_uint(json, "waits_lost", counts->waits_lost);
    json_uint(json, "marks_lost", counts->marks_lost);
    json_uint(json, "lost_samples", counts->lost_samples);
    json_uint(json, "lost_records", counts->lost_records);
    json_uint(json, "throttled", counts->throttled);
    json_uint(json, "filtered_samples", counts->filtered_samples);
    json_uint(json, "samples_let_go_early", counts->let_go_early);
    json_uint(json, "late_records", counts->late);
    json_uint(json, "frames_cut", counts->frames_cut);
    json_uint(json, "inlines_cut", counts->inlines_cut);
    json_uint(json, "walked", counts->walked);
    json_uint(json, "walked_refuted", counts->refuted);
    if (counts->compared) {
        json_uint(json, "compared", counts->compared);
        json_uint(json, "compared_short", counts->compared_short);
        json_uint(json, "compared_differing", counts->compared_differing);
    }
    json_uint(json, "mappings_cut", counts->mappings_cut);
}

static void put_json(struct json_writer *json, const struct scorecard *card,
                     const struct judgement *judgement)
{
    const struct recording *recording = card->recording;
    json_object_lines(json, NULL);
    json_uint(json, "version", 1);
    json_text(json, "verdict", verdict_name(judgement->verdict));
    json_text(json, "verdict_reason", judgement->reason);
    json_real(json, "unnamed_frames_share", scorecard_unnamed_share(card), 6);
    json_real(json, "unnamed_frames_limit", SCORECARD_UNNAMED_LIMIT, 2);
    put_time(json, card, &judgement->time);
    json_text(json, "recording", recording->path);
    json_text(json, "result", card->options.result);
    put_frames(json, card);
    put_stacks(json, card);
    json_array_lines(json, "events");
    for (uint32_t i = 0; i < recording->event_count; i++) {
        put_event(json, &recording->events[i], &card->events[i]);
    }
    json_end(json);
    put_counts(json, &recording->counts);
    json_array_lines(json, "jvms");
    for (uint32_t i = 0; i < recording->jvm_count; i++) {
        put_jvm(json, card, recording->jvms[i]);
    }
    json_end(json);
    json_array_lines(json, "warnings");
    struct warnings warnings = {tell_json, json};
    warn_of_all(card, &warnings);
    json_end(json);
    json_end(json);
}

static int write_json(const struct scorecard *card, const struct judgement *judgement)
{
    struct packed_output *output;
    struct json_writer json;
    int err = packed_output_open(card->options.json, false, &output);
    if (!err) {
        json_start(&json, output);
        put_json(&json, card, judgement);
        err = packed_output_finish(output);
    }
    return err;
}

/* ---- For people ---- */

static void tell_line(void *to, const char *text)
{
    fprintf(to, "  ! %s\n", text);
}

static void print_line(FILE *out, const char *text, uint64_t count, uint64_t whole)
{
    fprintf(out, "    %-24s%10" PRIu64 "  %6.2f %%\n", text, count, 100 * share(count, whole));
}

/* Of one event the lines above tell all. */
static void print_events(FILE *out, const struct scorecard *card)
{
    const struct recording *recording = card->recording;
    for (uint32_t i = 0; recording->event_count > 1 && i < recording->event_count; i++) {
        const struct scorecard_event *event = &card->events[i];
        uint64_t judged = event->stacks - event->stacks_frozen;
        if (event->samples) {
            const char *unit = recording->events[i].unit;
            char weight[TEXT_SIZE_MAX];
            bool has_unit = text_weight(event->weight, unit, weight);
            fprintf(out, "  %-24s  %10" PRIu64 " samples, %s%s%s, ", recording->events[i].name,
                    event->samples, weight, has_unit ? "" : " ", has_unit ? "" : unit);
            if (event->frames) {
                fprintf(out, "names %.2f %%, ", 100 * share(event->frames_named, event->frames));
            }
            if (judged == 0 && event->stacks_frozen) {
                fprintf(out, "all callers frozen\n");
            } else {
                fprintf(out, "rooted %.2f %%\n", 100 * share(event->stacks_rooted, judged));
            }
        }
    }
}

static void print_threads(FILE *out, const struct scorecard *card)
{
    if (card->jvms.journal) {
        fprintf(out, "  samples of known threads  %10" PRIu64 "\n", card->jvms.journal);
        print_line(out, "on virtual threads", card->jvms.on_virtual, card->jvms.journal);
    }
    if (card->jvms.labelled) {
        print_line(out, "with labels", card->jvms.labelled, card->jvms.journal);
    }
    if (card->jvms.unknown) {
        print_line(out, "in a gap of the journal", card->jvms.unknown, card->jvms.journal);
    }
}

static void print_time(FILE *out, const struct scorecard *card, const struct judgement *judgement)
{
    const struct time_account *time = &judgement->time;
    if (time->is_known && time->ns) {
        fprintf(out, "  seconds of processor time %10.2f\n", (double)time->ns / 1e9);
        fprintf(out, "    %-24s%10.2f  %6.2f %%\n", "in the profile", (double)time->weight / 1e9,
                100 * time_accounted_share(time));
        if (time->more > time->ns / 20) { /* somebody else has waited for the JVMs' ends */
            fprintf(out, "    %-24s%10.2f\n", "may be unknown, at most", (double)time->more / 1e9);
        }
    } else if (!card->jvms.samples) {
        return; /* there is nothing to miss */
    } else if (!card->cpu_event) {
        fprintf(out, "  seconds of processor time    unknown: no event measures it\n");
    } else {
        fprintf(out, "  seconds of processor time    unknown: the recording lacks the JVMs' "
                     "clocks\n");
    }
}

static void print(FILE *out, const struct scorecard *card, const struct judgement *judgement,
                  const char *words)
{
    fprintf(out, "%" PRIu64 " samples, %" PRIu64 " in JVMs, %" PRIu64 " in generated code\n",
            card->samples, card->jvms.samples, card->jvms.generated);
    fprintf(out, "  frames in generated code  %10" PRIu64 "\n", card->jvms.frames);
    print_line(out, "with a name", card->jvms.frames_named, card->jvms.frames);
    if (card->jvms.interpreted_stubs) {
        print_line(out, "  only Interpreter", card->jvms.interpreted_stubs, card->jvms.frames);
    }
    for (int i = UNNAMED_NOT + 1; i < UNNAMED_REASONS; i++) {
        if (card->jvms.unnamed[i]) {
            print_line(out, reasons[i].text, card->jvms.unnamed[i], card->jvms.frames);
        }
    }
    if (card->recording->has_chains) {
        fprintf(out, "  stacks of JVMs            %10" PRIu64 "\n", card->jvms.stacks);
        print_line(out, "that reach the root", card->jvms.stacks_rooted, card->jvms.stacks);
    }
    if (card->jvms.stacks_frozen) {
        print_line(out, "callers frozen in heap", card->jvms.stacks_frozen, card->jvms.stacks);
    }
    for (size_t i = 1; card->recording->unwound && i < END_COUNT; i++) {
        uint64_t count = card->jvms.ends[stack_ends[i].end];
        if (count) {
            print_line(out, stack_ends[i].text, count, card->jvms.stacks);
        }
    }
    print_time(out, card, judgement);
    print_threads(out, card);
    print_events(out, card);
    struct warnings warnings = {tell_line, out};
    warn_of_all(card, &warnings);
    fprintf(out, "  the profile is %s\n",
            words[0]        ? words
            : card->samples ? "of native code alone: no JVM's code was sampled"
                            : verdict_name(judgement->verdict));
}

int scorecard_report(const struct scorecard *card)
{
    struct judgement judgement;
    char words[SCORECARD_WORDS_MAX];
    scorecard_judge(card, &judgement);
    verdict_words(&judgement, words);
    if (card->options.verdict) {
        memcpy(card->options.verdict, words, sizeof words);
    }
    int err = card->options.json ? write_json(card, &judgement) : 0;
    if (!err && card->options.print) {
        print(stdout, card, &judgement, words);
    }
    return err;
}
