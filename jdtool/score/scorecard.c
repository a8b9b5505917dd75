#include "format/event_probe.h"
#include "format/methods.h"
#include "jdtool/base/array.h"
#include "jdtool/base/message.h"
#include "jdtool/base/unique.h"
#include "jdtool/jitdump/method_names.h"
#include "jdtool/perf/perf_data.h"
#include "jdtool/score/scorecard_private.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct scorecard *self(struct sample_sink *sink)
{
    return (struct scorecard *)sink;
}

static void free_scorecard(struct scorecard *scorecard)
{
    for (uint32_t i = 0; i < scorecard->image_count; i++) {
        free(scorecard->images[i].path);
    }
    hash_map_free(&scorecard->by_pid);
    stack_notes_free(&scorecard->frames);
    stack_notes_free(&scorecard->own);
    free(scorecard->path);
    free(scorecard->events);
    free(scorecard->images);
    free(scorecard->processes);
    free(scorecard->times);
    free(scorecard);
}

static int no_memory(void)
{
    return failed_to(-ENOMEM, "count the samples");
}

static int begin(struct sample_sink *sink, const struct recording *recording)
{
    struct scorecard *scorecard = self(sink);
    scorecard->recording = recording;
    scorecard->events = calloc((size_t)recording->event_count + 1, sizeof *scorecard->events);
    for (uint32_t i = 0; i < recording->event_count && !scorecard->cpu_event; i++) {
        scorecard->cpu_event =
            recording->events[i].is_processor_time ? &recording->events[i] : NULL;
    }
    return scorecard->events ? 0 : no_memory();
}

/* ---- Counting ---- */

static bool is_generated(const struct location *location)
{
    const struct resolved_frame *frame = location_own(location);
    return location->code || frame->kind == RESOLVED_INTERPRETED || frame->unnamed != UNNAMED_NOT;
}

/* Whether an interpreted frame is named by its method, not by the interpreter. */
static bool is_named_interpreted(const struct resolved_frame *frame)
{
    return frame->method && frame->method->kind == RESOLVED_INTERPRETED;
}

/* The process with that pid, NULL: it has no sample. */
static struct scorecard_process *find_process(const struct scorecard *scorecard, uint32_t pid)
{
    uint32_t at = unique_find(scorecard->processes, sizeof *scorecard->processes,
                              &scorecard->by_pid, &pid, sizeof pid);
    return at == HASH_MAP_NONE ? NULL : &scorecard->processes[at];
}

/* That of a sample's process; NULL: no memory. The last there is room for is that of all others. */
static struct scorecard_process *process_of(struct scorecard *scorecard,
                                            const struct resolved_thread *thread)
{
    const struct scorecard_process made = {.pid = thread->pid};
    struct scorecard_process *found = find_process(scorecard, made.pid);
    if (!found && scorecard->process_count >= SCORECARD_PROCESSES_MAX) {
        found = &scorecard->processes[SCORECARD_PROCESSES_MAX - 1];
    }
    if (!found) {
        uint32_t at =
            unique_add(&scorecard->processes, &scorecard->process_count, &scorecard->process_room,
                       sizeof made, &scorecard->by_pid, &made, sizeof made.pid);
        if (at == HASH_MAP_NONE) {
            (void)no_memory();
            return NULL;
        }
        found = &scorecard->processes[at];
    }
    found->is_jvm |= thread->is_jvm;
    return found;
}

static void count_stack(struct scorecard_tally *tally, struct scorecard_event *event,
                        enum stack_end end, uint32_t user_frames)
{
    tally->stacks++;
    tally->ends[end]++;
    event->stacks++;
    event->stacks_rooted += end == STACK_ROOT;
    event->stacks_frozen += end == STACK_FROZEN;
    if (end == STACK_ROOT) {
        tally->stacks_rooted++;
    } else if (end == STACK_FROZEN) {
        tally->stacks_frozen++;
    } else if (end != STACK_CUT && user_frames <= 2) {
        tally->stacks_short++;
    }
}

static bool is_of_program(const struct resolved_frame *frame)
{
    return frame->kind != RESOLVED_INLINED && frame->kind != RESOLVED_KERNEL &&
           frame->kind != RESOLVED_SUBJECT;
}

/* A location's own frame: as the machine has it, inlined methods are part of the frame behind
 * them. */
static struct scorecard_frames frame_of(const struct location *location)
{
    const struct resolved_frame *frame = location_own(location);
    if (!is_of_program(frame)) {
        return (struct scorecard_frames){.is_known = true};
    }
    bool generated = is_generated(location);
    bool interpreted =
        frame->kind == RESOLVED_INTERPRETED || (location->code && location->code->is_interpreter);
    bool named = interpreted && is_named_interpreted(frame);
    bool nameless = interpreted && !named;
    return (struct scorecard_frames){
        .is_known = true,
        .all = 1,
        .generated = generated,
        .unnamed = generated && frame->unnamed != UNNAMED_NOT,
        .interpreted = named,
        .nameless = nameless && frame->kind == RESOLVED_INTERPRETED,
        .stubs = nameless && frame->kind != RESOLVED_INTERPRETED,
    };
}

static void add_frames(struct scorecard_frames *sum, const struct scorecard_frames *more)
{
    sum->all = (uint16_t)(sum->all + more->all);
    sum->generated = (uint16_t)(sum->generated + more->generated);
    sum->unnamed = (uint16_t)(sum->unnamed + more->unnamed);
    sum->interpreted = (uint16_t)(sum->interpreted + more->interpreted);
    sum->nameless = (uint16_t)(sum->nameless + more->nameless);
    sum->stubs = (uint16_t)(sum->stubs + more->stubs);
}

/* What is at a node and outwards; counted once, for the nodes between it and one that was known,
 * of which most have a location that others had. NULL: no memory. */
static const struct scorecard_frames *frames_of(struct scorecard *scorecard,
                                                const struct stack_table *stacks, uint32_t node)
{
    if (stack_notes_follow(&scorecard->frames, stacks->epoch, stacks->node_count) ||
        stack_notes_follow(&scorecard->own, stacks->location_epoch, stacks->locations.count)) {
        return NULL;
    }
    struct scorecard_frames *notes = scorecard->frames.list;
    struct scorecard_frames *own = scorecard->own.list;
    uint32_t depth = 0;
    uint32_t at = node;
    for (; at && !notes[at].is_known; at = stacks->nodes[at].caller) {
        if (ARRAY_RESERVE(scorecard->path, depth, scorecard->path_room)) {
            return NULL;
        }
        scorecard->path[depth++] = at;
    }
    for (struct scorecard_frames sum = notes[at]; depth > 0; notes[at] = sum) {
        at = scorecard->path[--depth];
        struct scorecard_frames *its = &own[stacks->nodes[at].location];
        if (!its->is_known) {
            *its = frame_of(stack_table_at(stacks, at));
        }
        add_frames(&sum, its);
        sum.is_known = true;
    }
    return &notes[node];
}

static void count_unnamed(struct scorecard_tally *tally, const struct resolved_sample *sample)
{
    for (uint32_t at = sample->node; at; at = sample->stacks->nodes[at].caller) {
        const struct resolved_frame *frame = location_own(stack_table_at(sample->stacks, at));
        if (is_of_program(frame) && frame->unnamed != UNNAMED_NOT) {
            tally->unnamed[frame->unnamed]++;
        }
    }
}

/* Of the innermost frame of the program. */
static void count_innermost(struct scorecard_tally *tally, const struct resolved_sample *sample)
{
    const struct stack_table *stacks = sample->stacks;
    bool in_user =
        (sample->recorded->misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_USER;
    /* An event's own place is the JVM's, and cut off. */
    bool has_subject = stack_table_innermost(stacks, sample->node)->kind == RESOLVED_SUBJECT;
    uint32_t at = sample->node;
    while (!is_of_program(location_own(stack_table_at(stacks, at)))) {
        at = stacks->nodes[at].caller;
    }
    const struct location *location = stack_table_at(stacks, at);
    const struct resolved_frame *frame = location_own(location);
    if (is_generated(location)) {
        bool counts = in_user && !has_subject && !sample->is_late_part;
        tally->generated += counts;
        tally->generated_named += counts && frame->unnamed == UNNAMED_NOT;
        return;
    }
    /* The frames behind it may be what was on the stack by chance; this one is not. */
    tally->nowhere += frame->kind == RESOLVED_UNKNOWN && !location->module;
    /* Whose stack is whole is the kernel's, which steps over what a uprobe stands on ([uprobes]).
     */
    tally->unreadable += frame->kind == RESOLVED_NATIVE && location->module_address == 0 &&
                         sample->end != STACK_ROOT;
}

/* Of a stack that ends in code without call-frame information: in which file. */
static void note_bare(struct scorecard *scorecard, const struct resolved_sample *sample)
{
    const struct module *module = NULL;
    for (uint32_t at = sample->node; at; at = sample->stacks->nodes[at].caller) {
        module = stack_table_at(sample->stacks, at)->module;
    }
    struct scorecard_bare *bare = scorecard->bare;
    struct scorecard_bare *end = bare + sizeof scorecard->bare / sizeof *bare;
    while (bare < end && bare->module && bare->module != module) {
        bare++;
    }
    if (module && bare < end) {
        bare->module = module;
        bare->stacks++;
    }
}

/* Sets *user_frames to the number of frames of the program. 0 or -ENOMEM after a message. */
static int count_frames(struct scorecard *scorecard, struct scorecard_tally *tally,
                        struct scorecard_event *event, const struct resolved_sample *sample,
                        uint32_t *user_frames)
{
    *user_frames = 0;
    if (!sample->node) {
        return 0;
    }
    const struct scorecard_frames *frames = frames_of(scorecard, sample->stacks, sample->node);
    if (!frames) {
        return no_memory();
    }
    tally->frames += frames->generated;
    tally->frames_named += frames->generated - frames->unnamed;
    tally->interpreted += frames->interpreted;
    /* Where stacks are unwound, what is a stub has no method: it was looked for. */
    uint32_t nameless = frames->nameless + (sample->recorded->unwound ? 0U : frames->stubs);
    tally->interpreted_stubs += nameless;
    event->frames += frames->generated;
    event->frames_named += frames->generated - frames->unnamed;
    event->interpreted_stubs += nameless;
    if (frames->unnamed) {
        count_unnamed(tally, sample);
    }
    if (frames->all) {
        count_innermost(tally, sample);
    }
    *user_frames = frames->all;
    return 0;
}

static int take_sample(struct sample_sink *sink, const struct resolved_sample *sample)
{
    struct scorecard *scorecard = self(sink);
    struct scorecard_event *event = &scorecard->events[sample->event->id];
    bool is_whole = !sample->is_late_part;
    struct scorecard_process *process = process_of(scorecard, &sample->thread);
    if (!process) {
        return -ENOMEM;
    }
    struct scorecard_tally *tally = &process->tally;
    struct scorecard_event elsewhere = {0};
    scorecard->samples += is_whole;
    event->samples += is_whole;
    event->weight += sample->weight;
    event->left_out += sample->left_out;
    tally->samples += is_whole;
    if (sample->event == scorecard->cpu_event) {
        tally->cpu_samples += is_whole;
        tally->cpu_weight += sample->weight;
    }
    if (sample->thread.has_journal && is_whole) {
        tally->journal++;
        tally->on_virtual += sample->thread.virtual_id != 0;
        tally->labelled += sample->thread.labels != NULL;
        tally->unknown += sample->thread.is_unknown;
    }
    event = process->is_jvm ? event : &elsewhere;
    uint32_t user_frames;
    if (count_frames(scorecard, tally, event, sample, &user_frames)) {
        return -ENOMEM;
    }
    if (user_frames && sample->end != STACK_NONE && sample->end != STACK_KERNEL_ONLY) {
        count_stack(tally, event, sample->end, user_frames);
        if (sample->end == STACK_NO_INFO) {
            note_bare(scorecard, sample);
        }
    }
    return 0;
}

/* ---- The end ---- */

static bool has_dump(const struct scorecard *scorecard, uint32_t pid)
{
    const struct recording *recording = scorecard->recording;
    for (uint32_t i = 0; i < recording->jvm_count; i++) {
        if (recording->jvms[i]->pid == pid && recording->jvms[i]->index) {
            return true;
        }
    }
    return false;
}

/* A JVM is what the recording, a dump or who read the clocks says is one. */
static void find_jvms(struct scorecard *scorecard)
{
    const struct recording *recording = scorecard->recording;
    for (uint32_t i = 0; i < recording->jvm_count + scorecard->time_count; i++) {
        uint32_t pid = i < recording->jvm_count ? recording->jvms[i]->pid
                                                : scorecard->times[i - recording->jvm_count].pid;
        struct scorecard_process *process = find_process(scorecard, pid);
        if (process) {
            process->is_jvm = true;
        }
    }
}

static void add_up(struct scorecard *scorecard)
{
    enum { FIELDS = sizeof(struct scorecard_tally) / sizeof(uint64_t) };
    uint64_t sum[FIELDS] = {0};
    for (uint32_t i = 0; i < scorecard->process_count; i++) {
        const struct scorecard_process *process = &scorecard->processes[i];
        uint64_t fields[FIELDS];
        memcpy(fields, &process->tally, sizeof fields);
        for (size_t k = 0; k < FIELDS && process->is_jvm; k++) {
            sum[k] += fields[k];
        }
    }
    memcpy(&scorecard->jvms, sum, sizeof sum);
}

/* A process without a dump has none still, or its frames were sampled before it. */
static void settle(struct scorecard *scorecard)
{
    for (uint32_t i = 0; i < scorecard->process_count; i++) {
        struct scorecard_process *process = &scorecard->processes[i];
        uint64_t *unnamed = process->tally.unnamed;
        if (unnamed[UNNAMED_NO_DUMP] && has_dump(scorecard, process->pid)) {
            unnamed[UNNAMED_BEFORE_DUMP] += unnamed[UNNAMED_NO_DUMP];
            unnamed[UNNAMED_NO_DUMP] = 0;
        }
    }
    find_jvms(scorecard);
    add_up(scorecard);
}

static void read_times(struct scorecard *scorecard)
{
    const char *path = scorecard->options.processor_time;
    int64_t count = path ? processor_times_read(path, &scorecard->times, &scorecard->left_out) : 0;
    if (count < 0 && count != -ENOENT) {
        error_message("failed to read %s: %s", path, strerror((int)-count));
    }
    scorecard->time_count = count > 0 ? (uint32_t)count : 0;
}

static int end(struct sample_sink *sink)
{
    struct scorecard *scorecard = self(sink);
    read_times(scorecard);
    settle(scorecard);
    int err = scorecard_report(scorecard);
    free_scorecard(scorecard);
    return err;
}

static void abort_scorecard(struct sample_sink *sink)
{
    free_scorecard(self(sink));
}

void scorecard_sink_image(void *sink, const struct module *module, const char *path)
{
    struct scorecard *scorecard = self(sink);
    char *copy = strdup(path);
    if (!copy || array_reserve(&scorecard->images, scorecard->image_count, &scorecard->image_room,
                               sizeof *scorecard->images) < 0) {
        free(copy); /* the report does without */
        return;
    }
    scorecard->images[scorecard->image_count++] = (struct scorecard_image){module, copy};
}

struct sample_sink *scorecard_sink_new(const struct scorecard_options *options)
{
    static const struct sample_sink_ops ops = {
        .begin = begin,
        .sample = take_sample,
        .end = end,
        .abort = abort_scorecard,
    };
    struct scorecard *scorecard = calloc(1, sizeof *scorecard);
    if (!scorecard) {
        (void)no_memory();
        return NULL;
    }
    scorecard->sink.ops = &ops;
    scorecard->frames.element = scorecard->own.element = sizeof(struct scorecard_frames);
    scorecard->options = *options;
    return &scorecard->sink;
}

/* ---- The verdict: good, fair or bad, and why ---- */

static double share(uint64_t part, uint64_t whole)
{
    return whole ? (double)part / (double)whole : 0;
}

const char *verdict_name(enum verdict verdict)
{
    static const char *const names[] = {[VERDICT_GOOD] = "good",
                                        [VERDICT_FAIR] = "fair",
                                        [VERDICT_BAD] = "bad",
                                        [VERDICT_EMPTY] = "empty"};
    return names[verdict];
}

void verdict_words(const struct judgement *judgement, char words[SCORECARD_WORDS_MAX])
{
    words[0] = '\0';
    if (judgement->verdict != VERDICT_EMPTY) {
        snprintf(words, SCORECARD_WORDS_MAX, "%s%s%s%s", verdict_name(judgement->verdict),
                 judgement->reason[0] ? ": " : "", judgement->reason,
                 judgement->time.is_known ? "" : "; the missing processor time is unknown");
    }
}

double scorecard_unnamed_share(const struct scorecard *card)
{
    const struct scorecard_tally *jvms = &card->jvms;
    uint64_t outside = jvms->nowhere + jvms->unreadable;
    return share(jvms->frames - jvms->frames_named + outside, jvms->frames + outside);
}

uint64_t scorecard_judged_stacks(const struct scorecard *card)
{
    return card->jvms.stacks - card->jvms.stacks_frozen;
}

double scorecard_rooted_share(const struct scorecard *card)
{
    return share(card->jvms.stacks_rooted, scorecard_judged_stacks(card));
}

/* ---- Time ---- */

static void add_time(const struct scorecard *card, const struct processor_time *time,
                     struct time_account *account)
{
    const struct scorecard_process *process = find_process(card, time->pid);
    account->is_known = true;
    account->ns += time->ns;
    account->more += time->more;
    account->weight += process ? process->tally.cpu_weight : 0;
    account->samples += process ? process->tally.cpu_samples : 0;
}

struct time_account scorecard_time(const struct scorecard *card, uint32_t pid)
{
    struct time_account account = {0};
    /* A filter of the user's drops samples as wanted. */
    for (uint32_t i = 0; i < card->time_count && card->cpu_event; i++) {
        const struct processor_time *time = &card->times[i];
        if (time->is_known && (pid == 0 || pid == time->pid) &&
            card->recording->counts.filtered_samples == 0) {
            add_time(card, time, &account);
        }
    }
    if (account.samples) {
        account.period = (double)account.weight / (double)account.samples;
    } else if (card->cpu_event && card->cpu_event->frequency) {
        account.period = 1e9 / (double)card->cpu_event->frequency;
    } else if (card->cpu_event) {
        account.period = (double)card->cpu_event->period;
    }
    return account;
}

double time_accounted_share(const struct time_account *time)
{
    return time->is_known && time->ns ? (double)time->weight / (double)time->ns : NAN;
}

/* Three standard deviations of the share, where `truth` is the true one: of so many samples that
 * are expected (a Poisson count) the root is one. */
static double chance(const struct time_account *time, double truth)
{
    double expected = time->period > 0 ? (double)time->ns / time->period : 0;
    return expected > 0 ? 3 * sqrt(truth / expected) : INFINITY;
}

/* The share at its largest: what was missed of the time would make it less. */
static bool is_below(const struct time_account *time, double limit)
{
    return (double)time->weight / (double)time->ns < limit;
}

static bool is_above(const struct time_account *time, double limit)
{
    double most = (double)time->ns + (double)time->more;
    return (double)time->weight / most > limit;
}

enum verdict judge_time(const struct time_account *time)
{
    if (!time->is_known || time->ns == 0) {
        return VERDICT_EMPTY;
    }
    /* Bad for certain, and not good where a profile that has everything would not look so. */
    if (is_below(time, SCORECARD_TIME_LIMIT - chance(time, SCORECARD_TIME_LIMIT)) ||
        is_above(time, SCORECARD_TIME_TWICE + chance(time, SCORECARD_TIME_TWICE))) {
        return VERDICT_BAD;
    }
    return is_below(time, fmin(SCORECARD_TIME_GOOD, 1 - chance(time, 1))) ||
                   is_above(time, fmax(SCORECARD_TIME_ABOVE, 1 + chance(time, 1)))
               ? VERDICT_FAIR
               : VERDICT_GOOD;
}

/* ---- All together ---- */

static void add_reason(struct judgement *judgement, enum verdict verdict, const char *reason)
{
    size_t used = strlen(judgement->reason);
    if (verdict == VERDICT_GOOD) {
        return;
    }
    judgement->verdict = verdict > judgement->verdict ? verdict : judgement->verdict;
    snprintf(judgement->reason + used, sizeof judgement->reason - used, "%s%s", used ? "; " : "",
             reason);
}

/* The one of several events that lacks the largest share, of those with stacks enough to tell;
 * NULL: all together lack more. */
static const struct recorded_event *worst_of(const struct scorecard *card,
                                             double (*lacks)(const struct scorecard_event *),
                                             double *share)
{
    const struct recording *recording = card->recording;
    const struct recorded_event *worst = NULL;
    for (uint32_t i = 0; recording->event_count > 1 && i < recording->event_count; i++) {
        const struct scorecard_event *event = &card->events[i];
        if (event->stacks - event->stacks_frozen >= SCORECARD_EVENT_STACKS &&
            lacks(event) > *share) {
            *share = lacks(event);
            worst = &recording->events[i];
        }
    }
    return worst;
}

static double lacks_names(const struct scorecard_event *event)
{
    return share(event->frames - event->frames_named, event->frames);
}

static double lacks_roots(const struct scorecard_event *event)
{
    return 1 - share(event->stacks_rooted, event->stacks - event->stacks_frozen);
}

static void judge_names(const struct scorecard *card, struct judgement *judgement)
{
    char text[160];
    double unnamed = scorecard_unnamed_share(card);
    const struct recorded_event *worst = worst_of(card, lacks_names, &unnamed);
    uint64_t outside = card->jvms.nowhere + card->jvms.unreadable;
    const char *what = outside * 2 > card->jvms.frames - card->jvms.frames_named + outside
                           ? "are samples in code of no file or dump that could be read"
                           : "have no name";
    snprintf(text, sizeof text, "%.1f %% of the frames in generated code%s%s %s", 100 * unnamed,
             worst ? " of " : "", worst ? worst->name : "", worst ? "have no name" : what);
    add_reason(judgement,
               unnamed > SCORECARD_UNNAMED_LIMIT  ? VERDICT_BAD
               : unnamed > SCORECARD_UNNAMED_GOOD ? VERDICT_FAIR
                                                  : VERDICT_GOOD,
               text);
}

static double lacks_methods(const struct scorecard_event *event)
{
    return share(event->interpreted_stubs, event->frames);
}

/* Frame pointers never tell what the interpreter runs: who asks for them gets no bad profile. */
static void judge_interpreted(const struct scorecard *card, struct judgement *judgement)
{
    char text[160];
    double nameless = share(card->jvms.interpreted_stubs, card->jvms.frames);
    const struct recorded_event *worst = worst_of(card, lacks_methods, &nameless);
    bool can_be_named = card->recording->unwound;
    snprintf(text, sizeof text,
             "%.1f %% of the frames in generated code%s%s are Interpreter, without a method",
             100 * nameless, worst ? " of " : "", worst ? worst->name : "");
    add_reason(judgement,
               nameless > SCORECARD_UNNAMED_LIMIT ? can_be_named ? VERDICT_BAD : VERDICT_FAIR
               : nameless > SCORECARD_UNNAMED_GOOD && can_be_named ? VERDICT_FAIR
                                                                   : VERDICT_GOOD,
               text);
}

static void judge_roots(const struct scorecard *card, struct judgement *judgement)
{
    char text[160];
    double unrooted = 1 - scorecard_rooted_share(card);
    const struct recorded_event *worst = worst_of(card, lacks_roots, &unrooted);
    double rooted = 1 - unrooted;
    snprintf(text, sizeof text, "%.1f %% of the stacks%s%s reach their thread's root", 100 * rooted,
             worst ? " of " : "", worst ? worst->name : "");
    if (scorecard_judged_stacks(card)) {
        add_reason(judgement,
                   rooted < SCORECARD_ROOTED_LIMIT  ? VERDICT_BAD
                   : rooted < SCORECARD_ROOTED_GOOD ? VERDICT_FAIR
                                                    : VERDICT_GOOD,
                   text);
    }
    /* With some collectors nobody can have them. */
    double frozen = share(card->jvms.stacks_frozen, card->jvms.stacks);
    snprintf(text, sizeof text, "%.1f %% of the stacks lack callers, which are frozen in the heap",
             100 * frozen);
    add_reason(judgement, frozen > 1 - SCORECARD_ROOTED_GOOD ? VERDICT_FAIR : VERDICT_GOOD, text);
}

bool scorecard_is_unprobed(const struct scorecard *card, uint32_t pid)
{
    bool is = false;
    for (uint32_t i = 0; i < card->time_count; i++) {
        is |= card->times[i].pid == pid && card->times[i].is_unprobed;
    }
    return is;
}

bool scorecard_lacks(const struct scorecard *card, const struct recorded_jvm *jvm,
                     const char *event)
{
    unsigned lacks = jvm->names ? method_names_lacks(jvm->names) : 0;
    bool is_probe = strcmp(event, EVENT_PROBE_EXCEPTION) == 0 ||
                    strcmp(event, EVENT_PROBE_TIMELINE) == 0 ||
                    strcmp(event, EVENT_PROBE_DEOPT) == 0;
    return (is_probe && scorecard_is_unprobed(card, jvm->pid)) ||
           (lacks & METHODS_LACKS_ALLOC && strcmp(event, EVENT_PROBE_ALLOC) == 0) ||
           (lacks & METHODS_LACKS_LOCK && strcmp(event, EVENT_PROBE_LOCK) == 0);
}

/* The user asked for these. */
static void judge_events(const struct scorecard *card, struct judgement *judgement)
{
    const struct recording *recording = card->recording;
    char text[160];
    char left_out[LEFT_OUT_WORDS_MAX];
    left_out_words(card->left_out, left_out);
    snprintf(text, sizeof text, "asked for, but not recorded:%s", left_out);
    add_reason(judgement, *left_out ? VERDICT_FAIR : VERDICT_GOOD, text);
    for (uint32_t i = 0; i < recording->event_count; i++) {
        const char *event = recording->events[i].name;
        uint32_t lacking = 0;
        for (uint32_t j = 0; j < recording->jvm_count; j++) {
            lacking += scorecard_lacks(card, recording->jvms[j], event);
        }
        snprintf(text, sizeof text, "%" PRIu32 " of %" PRIu32 " JVMs report no %s events", lacking,
                 recording->jvm_count, event);
        add_reason(judgement, lacking ? VERDICT_FAIR : VERDICT_GOOD, text);
    }
}

/* What the kernel had no room for: of events no time tells it, and nothing where that is not known.
 */
static void judge_losses(const struct scorecard *card, enum verdict of_time,
                         struct judgement *judgement)
{
    char text[160];
    uint64_t lost = card->recording->counts.lost_samples;
    double kept = lost ? (double)card->samples / (double)(card->samples + lost) : 1;
    snprintf(text, sizeof text, "%" PRIu64 " of %" PRIu64 " samples were lost", lost,
             card->samples + lost);
    add_reason(judgement,
               kept >= SCORECARD_TIME_GOOD                               ? VERDICT_GOOD
               : of_time == VERDICT_GOOD || kept >= SCORECARD_TIME_LIMIT ? VERDICT_FAIR
                                                                         : VERDICT_BAD,
               text);
}

void scorecard_judge(const struct scorecard *card, struct judgement *judgement)
{
    char text[160];
    *judgement = (struct judgement){.time = scorecard_time(card, 0)};
    const struct time_account *time = &judgement->time;
    enum verdict of_time = judge_time(time);
    bool has_code = card->jvms.frames + card->jvms.nowhere + card->jvms.unreadable > 0;
    if (!has_code && of_time != VERDICT_BAD) {
        judgement->verdict = VERDICT_EMPTY;
        return;
    }
    if (has_code) {
        judge_names(card, judgement);
        judge_interpreted(card, judgement);
        judge_roots(card, judgement);
        judge_events(card, judgement);
    }
    if (of_time != VERDICT_EMPTY) {
        snprintf(text, sizeof text, "%.2f of %.2f s of processor time are in the profile",
                 (double)time->weight / 1e9, (double)time->ns / 1e9);
        add_reason(judgement, of_time, text);
    }
    if (of_time == VERDICT_EMPTY || of_time == VERDICT_GOOD) { /* else they are why */
        judge_losses(card, of_time, judgement);
    }
}
