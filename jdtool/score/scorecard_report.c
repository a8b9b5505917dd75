/* The scorecard for people, and as JSON for scripts. */
#include "jdtool/base/message.h"
#include "jdtool/base/output_file.h"
#include "jdtool/base/text.h"
#include "jdtool/jitdump/code_index.h"
#include "jdtool/jitdump/safepoint_lines.h"
#include "jdtool/perf/perf_data.h"
#include "jdtool/score/scorecard_private.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
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
        if (jvm->warning) {
            warn(to, "process %u: its dump is damaged: %s", jvm->pid, jvm->warning);
        }
    }
    if (card->samples == 0) {
        warn(to, "there are no samples: the processes used no processor time, or the kernel denied "
                 "access to them; as root it does not");
    } else if (recording->jvm_count == 0) {
        warn(to, "no process of this recording mapped a dump; load the agent into the JVM "
                 "(-agentpath:libjdagent.so, or attach) while perf records");
    }
    if (all_usable && card->jvms.unnamed[UNNAMED_NO_DUMP] > card->jvms.frames / 100) {
        warn(to, "%" PRIu64 " frames are of JVMs without a dump; load the agent into them, too",
             card->jvms.unnamed[UNNAMED_NO_DUMP]);
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

/* Most of them end for one reason, and so there is one remedy. */
static void warn_of_stacks(const struct scorecard *card, const struct warnings *to)
{
    const struct recording *recording = card->recording;
    uint64_t unrooted = scorecard_judged_stacks(card) - card->jvms.stacks_rooted;
    if (!recording->has_chains) {
        warn(to, "samples have no stacks: record with -g");
    }
    if (card->jvms.stacks_frozen) {
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
    } else if (card->jvms.ends[STACK_COPY_ENDS] <= unrooted / 2) {
        warn(to, "many stacks do not reach their thread's root; the lines above count the "
                 "reasons");
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
    if (counts->waits_lost) {
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
               : "the kernel took fewer samples than asked for; it limits what they may cost, and "
                 "takes none while a virtual machine stands still";
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

static void put_string(FILE *out, const char *text)
{
    if (text) {
        text_print_json(out, text);
    } else {
        fputs("null", out);
    }
}

static void put_count(FILE *out, const char *key, uint64_t count)
{
    fprintf(out, "  \"%s\": %" PRIu64 ",\n", key, count);
}

static void put_share(FILE *out, const char *key, double value)
{
    if (isnan(value)) {
        fprintf(out, "\"%s\": null", key);
    } else {
        fprintf(out, "\"%s\": %.6f", key, value);
    }
}

struct json_list {
    FILE *out;
    bool started;
};

static void tell_json(void *to, const char *text)
{
    struct json_list *list = to;
    fputs(list->started ? ",\n    " : "\n    ", list->out);
    put_string(list->out, text);
    list->started = true;
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

static void put_jvm(FILE *out, const struct scorecard *card, const struct recorded_jvm *jvm)
{
    struct time_account time = scorecard_time(card, jvm->pid);
    fprintf(out, "    {\"pid\": %u, ", jvm->pid);
    put_share(out, "time_accounted_share", time_accounted_share(&time));
    fputs(", \"dump\": ", out);
    put_string(out, jvm->dump ? jvm->dump : jvm->recorded);
    fprintf(out, ", \"pieces_of_code\": %u, \"image\": ",
            jvm->index ? code_index_blob_count(jvm->index) : 0);
    put_string(out, image_of(card, jvm));
    fputs(", \"problem\": ", out);
    put_string(out, jvm->problem ? jvm->problem : jvm->warning);
    fputc('}', out);
}

static void put_unwound(FILE *out, const struct scorecard *card)
{
    fputs("  \"stack_copies_unwound\": {", out);
    for (size_t i = 0; i < END_COUNT; i++) {
        fprintf(out, "%s\"%s\": %" PRIu64, i ? ", " : "", stack_ends[i].key,
                card->jvms.ends[stack_ends[i].end]);
    }
    fprintf(out, ", \"above_frozen_frames\": %" PRIu64 "},\n", card->jvms.ends[STACK_FROZEN]);
}

static void put_frames(FILE *out, const struct scorecard *card)
{
    put_count(out, "samples", card->samples);
    put_count(out, "samples_in_jvms", card->jvms.samples);
    put_count(out, "samples_in_generated_code", card->jvms.generated);
    put_count(out, "samples_in_generated_code_named", card->jvms.generated_named);
    put_count(out, "frames_in_generated_code", card->jvms.frames);
    put_count(out, "frames_in_generated_code_named", card->jvms.frames_named);
    put_count(out, "interpreted_frames_named", card->jvms.interpreted);
    put_count(out, "interpreted_frames", card->jvms.interpreted + card->jvms.interpreted_stubs);
    fprintf(out,
            "  \"threads\": {\"samples\": %" PRIu64 ", \"virtual\": %" PRIu64
            ", \"labelled\": %" PRIu64 ", \"unknown\": %" PRIu64 "},\n",
            card->jvms.journal, card->jvms.on_virtual, card->jvms.labelled, card->jvms.unknown);
    fputs("  \"unnamed_frames\": {", out);
    for (int i = UNNAMED_NOT + 1; i < UNNAMED_REASONS; i++) {
        fprintf(out, "%s\"%s\": %" PRIu64, i > UNNAMED_NOT + 1 ? ", " : "", reasons[i].key,
                card->jvms.unnamed[i]);
    }
    fputs("},\n", out);
    put_count(out, "samples_in_no_file_or_dump", card->jvms.nowhere);
    put_count(out, "samples_in_unreadable_files", card->jvms.unreadable);
}

static void put_stacks(FILE *out, const struct scorecard *card)
{
    uint64_t cut = card->jvms.ends[STACK_CUT];
    put_count(out, "stacks", card->jvms.stacks);
    put_count(out, "stacks_rooted", card->jvms.stacks_rooted);
    fprintf(out, "  \"rooted_share\": %.6f,\n  \"rooted_limit\": %.2f,\n",
            scorecard_rooted_share(card), SCORECARD_ROOTED_LIMIT);
    put_count(out, "stacks_frozen", card->jvms.stacks_frozen);
    fprintf(out,
            "  \"stacks_not_rooted\": {\"as_deep_as_the_kernel_records\": %" PRIu64
            ", \"of_two_frames_or_less\": %" PRIu64 ", \"other\": %" PRIu64 "},\n",
            cut, card->jvms.stacks_short,
            scorecard_judged_stacks(card) - card->jvms.stacks_rooted - cut -
                card->jvms.stacks_short);
    if (card->recording->unwound) {
        put_unwound(out, card);
    }
}

static void put_events(FILE *out, const struct scorecard *card)
{
    const struct recording *recording = card->recording;
    fputs("  \"events\": [", out);
    for (uint32_t i = 0; i < recording->event_count; i++) {
        const struct scorecard_event *event = &card->events[i];
        fputs(i ? ",\n    {\"name\": " : "\n    {\"name\": ", out);
        put_string(out, recording->events[i].name);
        fputs(", \"unit\": ", out);
        put_string(out, recording->events[i].unit);
        fprintf(out,
                ", \"samples\": %" PRIu64 ", \"weight\": %" PRIu64 ", \"left_out\": %" PRIu64
                ", \"frames\": %" PRIu64 ", \"frames_named\": %" PRIu64 ", \"stacks\": %" PRIu64
                ", \"stacks_rooted\": %" PRIu64 ", \"stacks_frozen\": %" PRIu64 "}",
                event->samples, event->weight, event->left_out, event->frames, event->frames_named,
                event->stacks, event->stacks_rooted, event->stacks_frozen);
    }
    fputs("\n  ],\n", out);
}

static void put_time(FILE *out, const struct scorecard *card, const struct time_account *time)
{
    uint32_t unknown = 0;
    for (uint32_t i = 0; i < card->time_count; i++) {
        unknown += !card->times[i].is_known;
    }
    fputs("  ", out);
    put_share(out, "time_accounted_share", time_accounted_share(time));
    fprintf(out,
            ",\n  \"processor_time\": {\"accounted\": %" PRIu64 ", \"at_most_more\": %" PRIu64
            ", \"in_profile\": %" PRIu64 ", \"samples\": %" PRIu64 ", \"jvms_unknown\": %" PRIu32
            "},\n",
            time->ns, time->more, time->weight, time->samples, unknown);
}

static void put_json(FILE *out, const struct scorecard *card, const struct judgement *judgement)
{
    const struct recording *recording = card->recording;
    const struct recording_counts *counts = &recording->counts;
    fprintf(out, "{\n  \"version\": 1,\n  \"verdict\": \"%s\",\n  \"verdict_reason\": ",
            verdict_name(judgement->verdict));
    put_string(out, judgement->reason);
    fputs(",\n", out);
    fprintf(out, "  \"unnamed_frames_share\": %.6f,\n  \"unnamed_frames_limit\": %.2f,\n",
            scorecard_unnamed_share(card), SCORECARD_UNNAMED_LIMIT);
    put_time(out, card, &judgement->time);
    fputs("  \"recording\": ", out);
    put_string(out, recording->path);
    fputs(",\n  \"result\": ", out);
    put_string(out, card->options.result);
    fputs(",\n", out);
    put_frames(out, card);
    put_stacks(out, card);
    put_events(out, card);
    put_count(out, "waits_lost", counts->waits_lost);
    put_count(out, "marks_lost", counts->marks_lost);
    put_count(out, "lost_samples", counts->lost_samples);
    put_count(out, "lost_records", counts->lost_records);
    put_count(out, "throttled", counts->throttled);
    put_count(out, "filtered_samples", counts->filtered_samples);
    put_count(out, "samples_let_go_early", counts->let_go_early);
    put_count(out, "late_records", counts->late);
    put_count(out, "frames_cut", counts->frames_cut);
    put_count(out, "inlines_cut", counts->inlines_cut);
    put_count(out, "walked", counts->walked);
    put_count(out, "walked_refuted", counts->refuted);
    if (counts->compared) {
        put_count(out, "compared", counts->compared);
        put_count(out, "compared_short", counts->compared_short);
        put_count(out, "compared_differing", counts->compared_differing);
    }
    put_count(out, "mappings_cut", counts->mappings_cut);
    fputs("  \"jvms\": [", out);
    for (uint32_t i = 0; i < recording->jvm_count; i++) {
        fputs(i ? ",\n" : "\n", out);
        put_jvm(out, card, recording->jvms[i]);
    }
    fputs("\n  ],\n  \"warnings\": [", out);
    struct json_list list = {out, false};
    struct warnings warnings = {tell_json, &list};
    warn_of_all(card, &warnings);
    fputs("\n  ]\n}\n", out);
}

static int write_json(const struct scorecard *card, const struct judgement *judgement)
{
    struct output_file *file;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (out) {
        put_json(out, card, judgement);
    }
    if (!out || fclose(out)) {
        error_message("failed to write %s: %s", card->options.json, strerror(ENOMEM));
        free(text);
        return -ENOMEM;
    }
    int err = output_file_open(card->options.json, &file);
    if (!err) {
        output_file_put(file, text, size);
        err = output_file_finish(file);
    }
    free(text);
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
            fprintf(out, "  %-24s  %10" PRIu64 " samples, %s%s%s, names %.2f %%, ",
                    recording->events[i].name, event->samples, weight, has_unit ? "" : " ",
                    has_unit ? "" : unit, 100 * share(event->frames_named, event->frames));
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
    fprintf(out, "  the profile is %s\n", words[0] ? words : verdict_name(judgement->verdict));
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
