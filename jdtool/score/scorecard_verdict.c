/* Good, fair or bad, and why. */
#include "jdtool/score/scorecard_private.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

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
    const struct scorecard_process *process = scorecard_process(card, time->pid);
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

static void judge_names(const struct scorecard *card, struct judgement *judgement)
{
    char text[160];
    double unnamed = scorecard_unnamed_share(card);
    uint64_t outside = card->jvms.nowhere + card->jvms.unreadable;
    const char *what = outside * 2 > card->jvms.frames - card->jvms.frames_named + outside
                           ? "are samples in code of no file or dump that could be read"
                           : "have no name";
    snprintf(text, sizeof text, "%.1f %% of the frames in generated code %s", 100 * unnamed, what);
    add_reason(judgement,
               unnamed > SCORECARD_UNNAMED_LIMIT  ? VERDICT_BAD
               : unnamed > SCORECARD_UNNAMED_GOOD ? VERDICT_FAIR
                                                  : VERDICT_GOOD,
               text);
}

static void judge_roots(const struct scorecard *card, struct judgement *judgement)
{
    char text[160];
    double rooted = scorecard_rooted_share(card);
    snprintf(text, sizeof text, "%.1f %% of the stacks reach their thread's root", 100 * rooted);
    if (scorecard_judged_stacks(card)) {
        add_reason(judgement,
                   rooted < SCORECARD_ROOTED_LIMIT  ? VERDICT_BAD
                   : rooted < SCORECARD_ROOTED_GOOD ? VERDICT_FAIR
                                                    : VERDICT_GOOD,
                   text);
    }
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
        judge_roots(card, judgement);
    }
    if (of_time != VERDICT_EMPTY) {
        snprintf(text, sizeof text, "%.2f of %.2f s of processor time are in the profile",
                 (double)time->weight / 1e9, (double)time->ns / 1e9);
        add_reason(judgement, of_time, text);
    }
}
