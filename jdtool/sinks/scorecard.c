#include "jdtool/sinks/scorecard.h"

#include "jdtool/base/message.h"
#include "jdtool/base/text.h"
#include "jdtool/sinks/safepoint_lines.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Stacks without frame pointers end a frame or two above the compiled method, by chance. */
#define UNROOTED_LIMIT 0.05

/* The kernel's limit of a chain (kernel.perf_event_max_stack): one as long was cut. */
#define KERNEL_MAX_STACK 127

/* A stack's outermost frames are searched for the thread's root: unwinders may go a little too
 * far. */
#define ROOT_DEPTH 3

static const struct reason {
    const char *key;
    const char *text;
} reasons[UNNAMED_REASONS] = {
    [UNNAMED_NO_DUMP] = {"no_dump", "in a JVM without a usable dump"},
    [UNNAMED_BEFORE_DUMP] = {"before_dump", "before the agent was there"},
    [UNNAMED_AFTER_DUMP] = {"after_dump", "behind the end of the dump"},
    [UNNAMED_BEFORE_LOAD] = {"before_load", "before their code's record"},
    [UNNAMED_UNKNOWN] = {"unknown", "in code the dump does not tell of"},
};

struct scorecard {
    struct native_code *native;
    uint64_t samples;      /* all */
    uint64_t jvm_samples;  /* in processes that are JVMs */
    uint64_t java_samples; /* whose own address is in generated code */
    uint64_t java_samples_named;
    uint64_t frames; /* in generated code */
    uint64_t frames_named;
    uint64_t interpreted; /* of those: interpreted, with a method's name */
    uint64_t unnamed[UNNAMED_REASONS];
    uint64_t stacks; /* with a frame in generated code */
    uint64_t stacks_rooted;
    uint64_t stacks_cut;   /* not rooted, and as long as the kernel makes them */
    uint64_t stacks_short; /* not rooted, and two user frames or less */
};

struct scorecard *scorecard_new(struct native_code *native)
{
    struct scorecard *scorecard = calloc(1, sizeof *scorecard);
    if (scorecard) {
        scorecard->native = native;
    }
    return scorecard;
}

void scorecard_free(struct scorecard *scorecard)
{
    free(scorecard);
}

/* ---- Counting ---- */

enum frame_state { FRAME_NATIVE, FRAME_NAMED, FRAME_UNNAMED };

static enum unnamed_reason why_unnamed(const struct process *process, uint64_t address,
                                       uint64_t time)
{
    const struct jvm *jvm = jvms_of(process);
    while (jvm && !jvm->index) {
        jvm = jvm->earlier;
    }
    if (!jvm) {
        return UNNAMED_NO_DUMP;
    }
    uint32_t stays = code_index_stay_count(jvm->index);
    uint64_t first = jvm_recording_time(jvm, code_index_header(jvm->index)->timestamp);
    if (time < first || stays == 0) {
        return UNNAMED_BEFORE_DUMP;
    }
    struct code_place place;
    if (jvms_code_at(process, address, UINT64_MAX - 1, &place)) {
        return UNNAMED_BEFORE_LOAD;
    }
    uint64_t last = jvm_recording_time(jvm, code_index_last_stamp(jvm->index));
    return time > last ? UNNAMED_AFTER_DUMP : UNNAMED_UNKNOWN;
}

static enum frame_state classify(const struct process *process, uint64_t address, uint64_t time,
                                 enum unnamed_reason *reason)
{
    struct code_place place;
    if (is_frame(address) || jvms_code_at(process, address, time, &place)) {
        return FRAME_NAMED;
    }
    const struct mapping *mapping = process_mapping_at(process, address, time);
    if (!mapping || !mapping->anonymous) {
        return FRAME_NATIVE;
    }
    *reason = why_unnamed(process, address, time);
    return FRAME_UNNAMED;
}

static bool is_root(struct scorecard *scorecard, const struct process *process, uint64_t address,
                    uint64_t time)
{
    const struct mapping *mapping = process_mapping_at(process, address, time);
    struct object *object;
    uint64_t file_address = 0;
    if (!mapping || mapping->anonymous) {
        return false;
    }
    (void)native_code_at(scorecard->native, process, mapping, address, &object, &file_address);
    return object_is_root(object, file_address);
}

static void add_stack(struct scorecard *scorecard, const struct process *process,
                      const struct perf_sample *sample, const uint64_t *outermost,
                      uint64_t user_frames)
{
    scorecard->stacks++;
    for (uint64_t i = 0; i < ROOT_DEPTH && i < user_frames; i++) {
        if (is_root(scorecard, process, outermost[(user_frames - 1 - i) % ROOT_DEPTH],
                    sample->time)) {
            scorecard->stacks_rooted++;
            return;
        }
    }
    if (sample->chain_count >= KERNEL_MAX_STACK) {
        scorecard->stacks_cut++;
    } else if (user_frames <= 2) {
        scorecard->stacks_short++;
    }
}

void scorecard_add(struct scorecard *scorecard, const struct process *process,
                   const struct perf_sample *sample)
{
    struct chain_walk walk = {0};
    struct chain_entry entry;
    uint64_t outermost[ROOT_DEPTH]; /* the last user frames seen */
    uint64_t user_frames = 0;
    bool has_java = false;

    bool is_sample = sample->type == PERF_RECORD_SAMPLE; /* not a late part of another one */
    scorecard->samples += is_sample;
    if (!process || !(process->has_jvm || jvms_of(process))) {
        return;
    }
    scorecard->jvm_samples += is_sample;
    bool in_user =
        is_sample && (sample->misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_USER;
    enum unnamed_reason reason = UNNAMED_UNKNOWN;
    enum frame_state own =
        in_user ? classify(process, sample->ip, sample->time, &reason) : FRAME_NATIVE;
    scorecard->java_samples += own != FRAME_NATIVE;
    scorecard->java_samples_named += own == FRAME_NAMED;

    while (chain_next(sample, &walk, &entry)) {
        if (!entry.is_user || entry.is_marker) {
            continue;
        }
        outermost[user_frames++ % ROOT_DEPTH] = entry.address;
        enum frame_state state = classify(process, entry.address, sample->time, &reason);
        has_java |= state != FRAME_NATIVE;
        scorecard->frames += state != FRAME_NATIVE;
        scorecard->frames_named += state == FRAME_NAMED;
        scorecard->interpreted += is_frame(entry.ip);
        scorecard->unnamed[reason] += state == FRAME_UNNAMED;
    }
    if (has_java && (sample->has & PERF_SAMPLE_CALLCHAIN)) {
        add_stack(scorecard, process, sample, outermost, user_frames);
    }
}

/* ---- Judging ---- */

static double share(uint64_t part, uint64_t whole)
{
    return whole ? (double)part / (double)whole : 0;
}

static double unnamed_share(const struct scorecard *scorecard)
{
    return share(scorecard->frames - scorecard->frames_named, scorecard->frames);
}

static const char *verdict(const struct scorecard *scorecard)
{
    if (scorecard->frames == 0) {
        return "empty";
    }
    bool rooted = scorecard->stacks == 0 ||
                  share(scorecard->stacks_rooted, scorecard->stacks) >= SCORECARD_ROOTED_LIMIT;
    return unnamed_share(scorecard) > SCORECARD_UNNAMED_LIMIT || !rooted ? "bad" : "good";
}

/* Why unwinding a stack copy ended; "root" apart, each is a reason for an unrooted stack. */
static const struct {
    const char *key;
    const char *text;
} stack_ends[STACK_ENDS] = {
    [STACK_ROOT] = {"root", "root"},
    [STACK_COPY_SHORT] = {"copy_too_short", "stack copy too short"},
    [STACK_UNKNOWN_CODE] = {"unknown_code", "in code nobody knows"},
    [STACK_NO_FRAME_INFO] = {"no_frame_information", "no frame information"},
    [STACK_BROKEN] = {"broken", "broken stack"},
    [STACK_TOO_DEEP] = {"too_deep", "too deep for a record"},
    [STACK_COPY_CUT] = {"copy_cut_by_kernel", "copy cut by the kernel"},
};

static uint64_t unnamed_interpreted(const struct stack_counts *unwound)
{
    return unwound ? unwound->interpreted_frames - unwound->interpreted_named : 0;
}

/* Calls tell(...) for each thing that is wrong, with its remedy. */
static void warn(const struct scorecard *scorecard, const struct scorecard_facts *facts,
                 void (*tell)(void *to, const char *text), void *to)
{
    char text[512];
    struct losses losses = processes_losses(facts->processes);
    double unrooted = share(scorecard->stacks - scorecard->stacks_rooted, scorecard->stacks);

    bool all_usable = facts->jvms->count > 0;
    for (uint32_t i = 0; i < facts->jvms->count; i++) {
        const struct jvm *jvm = facts->jvms->list[i];
        all_usable &= jvm->why == NULL;
        if (jvm->why) {
            snprintf(text, sizeof text, "process %u: %s", jvm->process->pid, jvm->why);
            tell(to, text);
            continue;
        }
        if (has_lines_at_safepoints_only(jvm->index)) {
            snprintf(text, sizeof text,
                     "process %u: DebugNonSafepoints is off, so lines and inlined methods of code "
                     "that was there before the agent are known at calls only; start the JVM with "
                     "-XX:+UnlockDiagnosticVMOptions -XX:+DebugNonSafepoints",
                     jvm->process->pid);
            tell(to, text);
        }
        if (code_index_warning(jvm->index)) {
            snprintf(text, sizeof text, "process %u: its dump is damaged: %s", jvm->process->pid,
                     code_index_warning(jvm->index));
            tell(to, text);
        }
    }
    if (facts->jvms->count == 0) {
        tell(to, "no process of this recording mapped a dump; load the agent into the JVM "
                 "(-agentpath:libjdagent.so, or attach) while perf records");
    }
    if (all_usable && scorecard->unnamed[UNNAMED_NO_DUMP] > scorecard->frames / 100) {
        snprintf(text, sizeof text,
                 "%" PRIu64 " frames are of JVMs without a dump; load the agent into them, too",
                 scorecard->unnamed[UNNAMED_NO_DUMP]);
        tell(to, text);
    }
    if (scorecard->unnamed[UNNAMED_BEFORE_DUMP] > scorecard->frames / 100) {
        tell(to, "frames were sampled before the agent was there; start it before perf, or with "
                 "the JVM");
    }
    if (facts->has_chains && scorecard->stacks > 0 && unrooted > UNROOTED_LIMIT) {
        if (scorecard->stacks_cut > (scorecard->stacks - scorecard->stacks_rooted) / 2) {
            tell(to, "many stacks are deeper than the kernel records; raise sysctl "
                     "kernel.perf_event_max_stack");
        } else if (facts->unwound && facts->unwound->java_stacks[STACK_COPY_SHORT] <=
                                         (scorecard->stacks - scorecard->stacks_rooted) / 2) {
            tell(to, "many stacks do not reach their thread's root, and not for want of stack "
                     "copy; see the reasons counted");
        } else if (facts->had_stack_copies) {
            tell(to, "many stacks do not reach their thread's root; record with a larger stack "
                     "copy (--call-graph dwarf,65528; jdperf: --stack-size 65528)");
        } else {
            tell(to, "many stacks do not reach their thread's root; run the JVM with "
                     "-XX:+PreserveFramePointer, or record with --call-graph dwarf (jdperf: "
                     "--stacks dwarf)");
        }
    }
    if (unnamed_interpreted(facts->unwound) > scorecard->frames / 100) {
        snprintf(text, sizeof text,
                 "%" PRIu64 " interpreted frames have no name but Interpreter; start the agent "
                 "with methods=on",
                 unnamed_interpreted(facts->unwound));
        tell(to, text);
    }
    if (!facts->has_chains) {
        tell(to, "samples have no stacks; record with -g");
    }
    if (facts->malformed) {
        snprintf(text, sizeof text,
                 "%" PRIu64 " samples are malformed, or of an event the recording does not list; "
                 "they are left out",
                 facts->malformed);
        tell(to, text);
    }
    if (losses.samples || losses.records) {
        snprintf(text, sizeof text,
                 "%" PRIu64 " samples and %" PRIu64 " records were lost; record with a lower "
                 "frequency (-F) or larger buffers (-m)",
                 losses.samples, losses.records);
        tell(to, text);
    }
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

static void put_jvm(FILE *out, const struct jvm *jvm, const char *image)
{
    fprintf(out, "    {\"pid\": %u, \"dump\": ", jvm->process->pid);
    put_string(out, jvm->dump ? jvm->dump : jvm->recorded);
    fprintf(out, ", \"pieces_of_code\": %u, \"image\": ",
            jvm->index ? code_index_blob_count(jvm->index) : 0);
    put_string(out, image);
    fputs(", \"problem\": ", out);
    put_string(out, jvm->index ? code_index_warning(jvm->index) : jvm->why);
    fputc('}', out);
}

static void put_unwound(const struct stack_counts *unwound, FILE *out)
{
    if (!unwound) {
        return;
    }
    fputs("  \"stack_copies_unwound\": {", out);
    for (int i = 0; i < STACK_ENDS; i++) {
        fprintf(out, "%s\"%s\": %" PRIu64, i ? ", " : "", stack_ends[i].key,
                unwound->java_stacks[i]);
    }
    fprintf(out,
            ", \"above_frozen_frames\": %" PRIu64 "},\n  \"interpreted_frames\": %" PRIu64 ",\n",
            unwound->frozen, unwound->interpreted_frames);
}

static void put_json(const struct scorecard *s, const struct scorecard_facts *facts, FILE *out)
{
    struct losses losses = processes_losses(facts->processes);
    fprintf(out, "{\n  \"version\": 1,\n  \"verdict\": \"%s\",\n", verdict(s));
    fprintf(out, "  \"unnamed_frames_share\": %.6f,\n  \"unnamed_frames_limit\": %.2f,\n",
            unnamed_share(s), SCORECARD_UNNAMED_LIMIT);
    fputs("  \"recording\": ", out);
    put_string(out, facts->recording);
    fputs(",\n  \"result\": ", out);
    put_string(out, facts->result);
    fprintf(out, ",\n  \"samples\": %" PRIu64 ",\n  \"samples_in_jvms\": %" PRIu64 ",\n",
            s->samples, s->jvm_samples);
    fprintf(out,
            "  \"samples_in_generated_code\": %" PRIu64 ",\n"
            "  \"samples_in_generated_code_named\": %" PRIu64 ",\n",
            s->java_samples, s->java_samples_named);
    fprintf(out,
            "  \"frames_in_generated_code\": %" PRIu64 ",\n"
            "  \"frames_in_generated_code_named\": %" PRIu64 ",\n"
            "  \"interpreted_frames_named\": %" PRIu64 ",\n  \"unnamed_frames\": {",
            s->frames, s->frames_named, s->interpreted);
    for (int i = 0; i < UNNAMED_REASONS; i++) {
        fprintf(out, "%s\"%s\": %" PRIu64, i ? ", " : "", reasons[i].key, s->unnamed[i]);
    }
    fprintf(out,
            "},\n  \"stacks\": %" PRIu64 ",\n  \"stacks_rooted\": %" PRIu64
            ",\n  \"rooted_share\": %.6f,\n  \"rooted_limit\": %.2f,\n",
            s->stacks, s->stacks_rooted, share(s->stacks_rooted, s->stacks),
            SCORECARD_ROOTED_LIMIT);
    fprintf(out,
            "  \"stacks_not_rooted\": {\"as_deep_as_the_kernel_records\": %" PRIu64
            ", \"of_two_frames_or_less\": %" PRIu64 ", \"other\": %" PRIu64 "},\n",
            s->stacks_cut, s->stacks_short,
            s->stacks - s->stacks_rooted - s->stacks_cut - s->stacks_short);
    put_unwound(facts->unwound, out);
    fprintf(out, "  \"lost_samples\": %" PRIu64 ",\n  \"lost_records\": %" PRIu64 ",\n",
            losses.samples, losses.records);
    fputs("  \"jvms\": [", out);
    for (uint32_t i = 0; i < facts->jvms->count; i++) {
        fputs(i ? ",\n" : "\n", out);
        put_jvm(out, facts->jvms->list[i], facts->images[i]);
    }
    fputs("\n  ],\n  \"warnings\": [", out);
    struct json_list list = {out, false};
    warn(s, facts, tell_json, &list);
    fputs("\n  ]\n}\n", out);
}

int scorecard_write_json(const struct scorecard *scorecard, const struct scorecard_facts *facts,
                         const char *path)
{
    FILE *out = fopen(path, "we");
    int err = out ? 0 : -errno;
    if (out) {
        put_json(scorecard, facts, out);
        err = ferror(out) ? -EIO : 0;
        if (fclose(out) && !err) {
            err = -errno;
        }
    }
    if (err) {
        error_message("failed to write %s: %s", path, strerror(-err));
    }
    return err;
}

/* ---- For people ---- */

static void tell_line(void *to, const char *text)
{
    fprintf(to, "  ! %s\n", text);
}

void scorecard_print(const struct scorecard *s, const struct scorecard_facts *facts, FILE *out)
{
    fprintf(out, "%" PRIu64 " samples, %" PRIu64 " in JVMs, %" PRIu64 " in generated code\n",
            s->samples, s->jvm_samples, s->java_samples);
    fprintf(out, "  frames in generated code  %10" PRIu64 "\n", s->frames);
    fprintf(out, "    with a name             %10" PRIu64 "  %6.2f %%\n", s->frames_named,
            100 * share(s->frames_named, s->frames));
    for (int i = 0; i < UNNAMED_REASONS; i++) {
        if (s->unnamed[i]) {
            fprintf(out, "    %-24s%10" PRIu64 "  %6.2f %%\n", reasons[i].text, s->unnamed[i],
                    100 * share(s->unnamed[i], s->frames));
        }
    }
    if (facts->has_chains) {
        fprintf(out, "  stacks with such frames   %10" PRIu64 "\n", s->stacks);
        fprintf(out, "    that reach the root     %10" PRIu64 "  %6.2f %%\n", s->stacks_rooted,
                100 * share(s->stacks_rooted, s->stacks));
    }
    for (int i = 0; facts->unwound && i < STACK_ENDS; i++) {
        uint64_t count = facts->unwound->java_stacks[i];
        if (i != STACK_ROOT && count) {
            fprintf(out, "    %-24s%10" PRIu64 "  %6.2f %%\n", stack_ends[i].text, count,
                    100 * share(count, s->stacks));
        }
    }
    warn(s, facts, tell_line, out);
}
