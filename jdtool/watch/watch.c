#include "jdtool/watch/watch.h"

#include "jdtool/base/message.h"
#include "jdtool/base/text.h"
#include "jdtool/base/verb.h"
#include "jdtool/live/kernel.h"
#include "jdtool/live/verbs.h"
#include "jdtool/record/perf_run.h"
#include "jdtool/watch/shares.h"
#include "jdtool/watch/watch_private.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define LOOK_EVERY_MS 1000
#define PAUSE_MAX_MS  300000

/* At the end: so long for the last slices, and so long for the servers to take them. */
#define LAST_SLICES_MS 20000
#define LAST_PUSH_MS   5000

/* Shares of a processor are held over so long. */
#define WINDOW_MS 15000

/* What a sample costs before it reaches the slicer: the kernel's interrupt and our ring, in ns. */
#define SAMPLE_NS 15000

/* So long a slicer is left alone, however large it is: it has the JVMs' files to read. */
#define SLICER_GROWS_MS 5000

/* ---- Words ---- */

void watch_last_words(int says, char *why, size_t size)
{
    char *words = perf_words(says);
    why[0] = '\0';
    const char *rest = words ? words : "";
    size_t length;
    for (const char *line; (line = text_line(&rest, &length));) {
        const char *from = strncmp(line, "jdperf: ", 8) == 0 ? line + 8 : line;
        /* A line that belongs to the one before it is put behind it. */
        size_t used = strncmp(line, "    ", 4) == 0 ? strlen(why) : 0;
        from += used ? strspn(from, " ") - 1 : 0;
        if (length > 0) {
            snprintf(why + used, size - used, "%.*s", (int)(line + length - from), from);
        }
    }
    if (!why[0]) {
        snprintf(why, size, "it ended without a word");
    }
    free(words);
}

/* ---- A JVM's states ---- */

static struct watched_process *find_jvm(const struct watch *watch, pid_t pid)
{
    for (size_t i = 0; i < watch->count; i++) {
        if (watch->jvms[i]->process.pid == pid) {
            return watch->jvms[i];
        }
    }
    return NULL;
}

static int64_t pause_after(unsigned tries)
{
    int64_t pause = INT64_C(5000) << (tries < 7 ? tries : 7);
    return pause > PAUSE_MAX_MS ? PAUSE_MAX_MS : pause;
}

/* It waits for another try; the same reason is told once. */
static void drop_jvm(struct watched_process *jvm, const char *why)
{
    if (strcmp(why, jvm->trouble) != 0) {
        snprintf(jvm->trouble, sizeof jvm->trouble, "%s", why);
        warning_message("JVM %d is not watched now: %s", (int)jvm->process.pid, why);
    }
    jvm->state = WATCHED_WAITS;
    jvm->next_try = deadline_in(pause_after(jvm->tries));
    jvm->tries++;
}

static void begin_in_slicer(struct watch *watch, struct watched_process *jvm)
{
    jvm->samples = jvm->window_samples = 0;
    jvm->cpu_before = jvm->window_cpu = jvm->totals.cpu_ns;
    jvm->is_settled = false;
    slicing_order(&watch->slicing, ORDER_BEGIN, jvm->process.pid, 0, &jvm->labels);
    if (jvm->one_in > 1) {
        slicing_order(&watch->slicing, ORDER_THIN, jvm->process.pid, jvm->one_in, NULL);
    }
}

/* The keeper has attached to it. Orders go before samples. */
static void watch_jvm(struct watch *watch, struct watched_process *jvm)
{
    labels_of_process(&jvm->labels, &jvm->process, watch->options->jvm.service_from,
                      watch->options->jvm.labels);
    jvm->state = WATCHED;
    jvm->one_in = 1;
    begin_in_slicer(watch, jvm);
    int err = feed_add(watch->feed, jvm->process.pid);
    if (err) {
        slicing_order(&watch->slicing, ORDER_END, jvm->process.pid, 0, NULL);
        (void)keeper_leave(&watch->keeper, jvm->process.pid);
        drop_jvm(jvm, err == -EXDEV ? "it is in another PID namespace, and we are not in the first"
                                    : strerror(-err));
    }
}

/* It has died, and with it all sessions. */
static void replace_keeper(struct watch *watch)
{
    for (size_t i = 0; i < watch->count; i++) {
        struct watched_process *jvm = watch->jvms[i];
        if (jvm->state == WATCHED) {
            feed_remove(watch->feed, jvm->process.pid);
            slicing_order(&watch->slicing, ORDER_END, jvm->process.pid, 0, NULL);
        }
        if (jvm->state == WATCHED || jvm->state == WATCHED_ATTACHES) {
            drop_jvm(jvm, "the process that held its session has died");
        }
    }
    int err = keeper_replace(&watch->keeper, &watch->options->jvm);
    if (err) {
        warning_message("failed to start a keeper of sessions: %s", strerror(-err));
    }
    watch->keeper_next_try = deadline_in(err ? pause_after(0) : 0);
}

static void hear_keeper(struct watch *watch)
{
    struct keeper_answer answer;
    int heard;
    while ((heard = keeper_hear(&watch->keeper, &answer)) == 1) {
        struct watched_process *jvm = find_jvm(watch, answer.jvm);
        if (!jvm || jvm->state != WATCHED_ATTACHES) {
            (void)keeper_leave(&watch->keeper, answer.jvm); /* it has been given up meanwhile */
        } else if (answer.failed && !process_lives(&jvm->process)) {
            jvm->state = WATCHED_WAITS; /* for whoever looks for its end */
        } else if (answer.failed) {
            drop_jvm(jvm, answer.why);
        } else {
            watch_jvm(watch, jvm);
        }
    }
    if (heard == -EPIPE && !watch->is_ending && now_ms() >= watch->keeper_next_try) {
        replace_keeper(watch);
    }
}

/* One is attached to at a time, so that not all JVMs of a machine are busy with it at once. */
static void attach_next(struct watch *watch)
{
    struct watched_process *next = NULL;
    int64_t now = now_ms();
    for (size_t i = 0; i < watch->count; i++) {
        struct watched_process *jvm = watch->jvms[i];
        if (jvm->state == WATCHED_ATTACHES) {
            return;
        }
        bool is_due = jvm->state == WATCHED_WAITS && now >= jvm->next_try;
        next = is_due && (!next || jvm->next_try < next->next_try) ? jvm : next;
    }
    if (next && keeper_attach(&watch->keeper, next->process.pid) == 0) {
        next->state = WATCHED_ATTACHES;
    }
}

/* ---- Slices ---- */

static void take_slice(struct watch *watch, struct watched_process *jvm)
{
    struct slice_reader *reader = &watch->slicing.reader;
    const struct slice_message *message = &reader->message;
    const struct watch_jvm_options *options = &watch->options->jvm;
    struct watched_totals *totals = &jvm->totals;
    totals->slices++;
    totals->samples += message->slice.samples;
    totals->frames += message->slice.frames;
    totals->unnamed += message->slice.unnamed;
    jvm->tries = watch->slicer_tries = 0;
    jvm->trouble[0] = '\0';
    for (uint32_t i = 0; watch->files && i < options->format_count; i++) {
        if (strcmp(options->formats[i]->name, "pprof") == 0 &&
            slice_files_give(watch->files, &jvm->labels, (int)jvm->process.pid, message->slice.from,
                             reader->bodies[i], message->slice.sizes[i])) {
            watch->file_failures++;
        }
    }
    pusher_give(watch->pusher, &jvm->labels, message, (const uint8_t *const *)reader->bodies,
                options->formats);
}

static void forget_jvm(struct watch *watch, struct watched_process *jvm);

static void read_slices(struct watch *watch)
{
    struct slicing *slicing = &watch->slicing;
    int result = 0;
    while (slicing->from >= 0 && (result = slice_read(&slicing->reader, slicing->from)) == 1) {
        const struct slice_message *message = &slicing->reader.message;
        struct watched_process *jvm = find_jvm(watch, (pid_t)message->pid);
        watch->lost = message->lost;
        if (jvm && (jvm->state == WATCHED || jvm->state == WATCHED_ENDS)) {
            jvm->totals.cpu_ns = jvm->cpu_before + message->cpu_ns;
            jvm->samples = message->samples;
            if (message->kind == SLICE_PROFILE) {
                take_slice(watch, jvm);
            } else if (message->kind == SLICE_ENDED && jvm->state == WATCHED_ENDS) {
                forget_jvm(watch, jvm);
            }
        }
        slice_reader_free(&slicing->reader);
    }
    if (result < 0) {
        close(slicing->from); /* its end, which the process' own follows */
        slicing->from = -1;
    }
}

/* ---- The slicer ---- */

static bool has_watched(const struct watch *watch)
{
    for (size_t i = 0; i < watch->count; i++) {
        if (watch->jvms[i]->state == WATCHED) {
            return true;
        }
    }
    return false;
}

static void slicer_failed(struct watch *watch, const char *why)
{
    watch->slicer_next_try = deadline_in(pause_after(watch->slicer_tries));
    if (watch->slicer_tries++ == 0) {
        warning_message("nothing is watched now: %s", why);
    }
}

static void start_slicer(struct watch *watch)
{
    int err = slicing_start(&watch->slicing, &watch->options->jvm);
    if (!err) {
        watch->slicer_is_to_end = false;
        for (size_t i = 0; i < watch->count; i++) {
            if (watch->jvms[i]->state == WATCHED) {
                begin_in_slicer(watch, watch->jvms[i]);
            }
        }
        err = feed_begin(watch->feed, watch->slicing.recording);
        if (!feed_is_own(watch->feed)) {
            slicing_end_recording(&watch->slicing);
        }
    }
    if (err) {
        (void)feed_begin(watch->feed, -1);
        slicing_close(&watch->slicing);
        slicer_failed(watch, strerror(-err));
    }
}

/* It gives what it has, and another one begins. */
static void renew_slicer(struct watch *watch)
{
    watch->slicer_is_to_end = true;
    if (feed_is_own(watch->feed)) {
        (void)feed_begin(watch->feed, -1);
        slicing_end_recording(&watch->slicing);
    } else {
        feed_stop(watch->feed);
    }
}

/* It is not sampled, until it is tried again. */
static void leave_out(struct watch *watch, struct watched_process *jvm, const char *why)
{
    feed_remove(watch->feed, jvm->process.pid);
    (void)keeper_leave(&watch->keeper, jvm->process.pid);
    drop_jvm(jvm, why);
}

/* It has ended as it should, or died of what a JVM has written. */
static void take_slicer_end(struct watch *watch)
{
    struct slicing *slicing = &watch->slicing;
    int status = slicing->child.status;
    char why[256];
    char perf_says[256];
    pid_t worked_on = slicing_worked_on(slicing);
    bool was_to_end = watch->slicer_is_to_end && status == STATUS_DONE;
    feed_words(watch->feed, perf_says, sizeof perf_says);
    if (child_killed_by(status)) {
        snprintf(why, sizeof why, "the process that reads what it has written died (%s)",
                 strsignal(child_killed_by(status)));
    } else {
        watch_last_words(slicing->says, why, sizeof why);
    }
    watch->lost_before += watch->lost;
    watch->lost = 0;
    (void)feed_begin(watch->feed, -1);
    slicing_close(slicing);
    for (size_t i = watch->count; i-- > 0;) {
        if (watch->jvms[i]->state == WATCHED_ENDS) {
            forget_jvm(watch, watch->jvms[i]);
        }
    }
    struct watched_process *culprit = find_jvm(watch, worked_on);
    if (was_to_end || watch->is_ending || (worked_on && !culprit)) { /* it has ended, too */
        watch->slicer_next_try = 0;
    } else if (culprit && culprit->state == WATCHED) {
        leave_out(watch, culprit, why);
    } else if (has_watched(watch)) {
        slicer_failed(watch, *perf_says ? perf_says : why);
    }
}

static void look_after_slicer(struct watch *watch)
{
    struct slicing *slicing = &watch->slicing;
    slicing_turn(slicing);
    read_slices(watch);
    if (slicing->child.pidfd >= 0 && slicing->from < 0 && child_ended(&slicing->child)) {
        take_slicer_end(watch);
    }
    bool runs = slicing->child.pidfd >= 0;
    if (runs && !watch->slicer_is_to_end && !watch->is_ending && feed_is_stale(watch->feed) &&
        now_ms() >= slicing->began + LOOK_EVERY_MS) {
        renew_slicer(watch);
    }
    if (!runs && !watch->is_ending && now_ms() >= watch->slicer_next_try && has_watched(watch)) {
        start_slicer(watch);
    }
}

/* ---- Shares ---- */

/* One JVM's data alone must not cost all the others: it is dropped where the slicer has grown by
 * half of what all may have, for its sake. */
static void drop_grower(struct watch *watch)
{
    char why[128];
    const struct slicing *slicing = &watch->slicing;
    uint64_t least = watch->options->memory_max / 2;
    pid_t grower = slicing_grower(slicing, watch_rss_of(slicing->child.pid), least);
    struct watched_process *culprit = grower ? find_jvm(watch, grower) : NULL;
    if (culprit && culprit->state == WATCHED && watch->count > 1) {
        snprintf(why, sizeof why, "what it has written takes more than %.0f MB to read",
                 (double)least / 1e6);
        leave_out(watch, culprit, why);
    }
}

/* What each may use, after one has come or gone. */
static void share_processor(struct watch *watch)
{
    const struct watch_options *options = watch->options;
    for (size_t i = 0; i < watch->count; i++) {
        struct watched_process *jvm = watch->jvms[i];
        size_t of_user = 0;
        for (size_t k = 0; k < watch->count; k++) {
            of_user += watch->jvms[k]->uid == jvm->uid;
        }
        uint32_t of_his = shares_of_processor(options->cpu_max, options->user_cpu_max, of_user);
        uint32_t of_all = shares_of_processor(0, options->all_cpu_max, watch->count);
        jvm->share = of_all && (!of_his || of_all < of_his) ? of_all : of_his;
    }
}

static uint64_t window_limit(uint32_t share)
{
    return (uint64_t)WINDOW_MS * 100 * share; /* ns, of hundredths of a percent */
}

/* Each JVM's samples are thinned as far as its share wants it. */
static void hold_shares(struct watch *watch)
{
    for (size_t i = 0; i < watch->count; i++) {
        struct watched_process *jvm = watch->jvms[i];
        if (jvm->state != WATCHED) {
            continue;
        }
        uint64_t cost =
            jvm->totals.cpu_ns - jvm->window_cpu + (jvm->samples - jvm->window_samples) * SAMPLE_NS;
        uint32_t one_in = shares_thinning(jvm->one_in, cost, window_limit(jvm->share));
        if (jvm->is_settled && one_in != jvm->one_in &&
            feed_thin(watch->feed, jvm->process.pid, one_in)) {
            jvm->one_in = one_in;
            slicing_order(&watch->slicing, ORDER_THIN, jvm->process.pid, one_in, NULL);
        }
        jvm->is_settled = true;
        jvm->window_cpu = jvm->totals.cpu_ns;
        jvm->window_samples = jvm->samples;
    }
}

/* perf samples all or none: it stops when what all may use together in a window is used up. */
static void hold_perf(struct watch *watch, int64_t now, bool is_over)
{
    uint64_t limit = 0;
    bool has_limit = true;
    for (size_t i = 0; i < watch->count; i++) {
        if (watch->jvms[i]->state == WATCHED) {
            limit += window_limit(watch->jvms[i]->share);
            has_limit &= watch->jvms[i]->share != 0;
        }
    }
    if (is_over && watch->paused_since) {
        feed_pause(watch->feed, false);
        watch->paused_ns += (uint64_t)(now - watch->paused_since) * 1000000;
        watch->paused_since = 0;
    } else if (!is_over && limit && has_limit && !watch->paused_since && watch->window_cpu &&
               watch_cpu_ns(watch) - watch->window_cpu > limit) {
        feed_pause(watch->feed, true);
        watch->paused_since = now;
    }
}

static void hold_budgets(struct watch *watch)
{
    int64_t now = now_ms();
    bool is_over = now >= watch->window_end;
    if (now < watch->next_hold) {
        return;
    }
    watch->next_hold = now + LOOK_EVERY_MS;
    if (!feed_is_own(watch->feed)) {
        hold_perf(watch, now, is_over);
    } else if (is_over) {
        hold_shares(watch);
    }
    if (is_over) {
        /* The first one has files to read, and is left out. */
        watch->window_cpu = watch->window_end ? watch_cpu_ns(watch) : 0;
        watch->window_end = now + WINDOW_MS;
    }
    if (watch->slicing.child.pidfd >= 0 && !watch->slicer_is_to_end &&
        now >= watch->slicing.began + SLICER_GROWS_MS &&
        watch_rss(watch) > watch->options->memory_max) {
        drop_grower(watch);
        renew_slicer(watch);
    }
}

/* ---- JVMs come and go ---- */

static bool is_wanted(const struct watch_options *options, pid_t pid, const char *name)
{
    for (const int *at = options->pids; at; at++) {
        if (!*at) {
            return false;
        }
        if (*at == pid) {
            return true;
        }
    }
    return !options->match || target_name_has(name, options->match);
}

/* It has ended, or its place is another's: nothing more of it is wanted than what is under way. */
static void end_jvm(struct watch *watch, struct watched_process *jvm)
{
    enum watched_state state = jvm->state;
    if (state == WATCHED) {
        feed_remove(watch->feed, jvm->process.pid);
        slicing_order(&watch->slicing, ORDER_END, jvm->process.pid, 0, NULL);
        (void)keeper_leave(&watch->keeper, jvm->process.pid);
    }
    jvm->state = WATCHED_ENDS;
    if (state != WATCHED || watch->slicing.child.pidfd < 0) {
        forget_jvm(watch, jvm);
    }
}

/* Whether there is a place for a JVM of that user, which another user's may have to leave. */
static bool find_place(struct watch *watch, uid_t uid)
{
    uid_t users[WATCHED_MAX];
    if (watch->count < WATCHED_MAX) {
        return true;
    }
    for (size_t i = 0; i < WATCHED_MAX; i++) {
        users[i] = watch->jvms[i]->uid;
    }
    if (!watch->told_full) {
        watch->told_full = true;
        warning_message("watching %d JVMs, the most that are possible; each user has a share",
                        WATCHED_MAX);
    }
    size_t place = shares_place_for(users, WATCHED_MAX, uid);
    if (place == NO_PLACE) {
        return false;
    }
    if (watch->jvms[place]->state != WATCHED_ENDS) {
        end_jvm(watch, watch->jvms[place]);
        watch->ended--; /* it has not */
        watch->refused++;
    }
    return watch->count < WATCHED_MAX; /* or when its last slice has come */
}

/* True: it is ours, or will never be. */
static bool take_jvm(void *context, pid_t pid, const char *name)
{
    struct watch *watch = context;
    struct target target;
    if (!is_wanted(watch->options, pid, name)) {
        return true;
    }
    if (target_open(&target, pid) != 0) {
        return false;
    }
    /* Requests to attach end a JVM that does not listen yet; others' and containers' JVMs are for
     * root alone. */
    bool ready = target_listens(&target);
    bool allowed = geteuid() == 0 || target_is_like_us(&target);
    uid_t uid = target.uid;
    target_close(&target);
    if (ready && allowed && !find_place(watch, uid)) {
        watch->refused++;
        return false;
    }
    struct watched_process *jvm = ready && allowed ? calloc(1, sizeof *jvm) : NULL;
    if (!jvm || process_open(pid, &jvm->process) != 0) {
        free(jvm);
        return false;
    }
    jvm->uid = uid;
    jvm->one_in = 1;
    watch->jvms[watch->count++] = jvm;
    share_processor(watch);
    info_message("watching JVM %d: %.100s", (int)pid, name);
    return true;
}

static void add_totals(struct watched_totals *sum, const struct watched_totals *totals)
{
    sum->slices += totals->slices;
    sum->samples += totals->samples;
    sum->frames += totals->frames;
    sum->unnamed += totals->unnamed;
    sum->cpu_ns += totals->cpu_ns;
}

static void forget_jvm(struct watch *watch, struct watched_process *jvm)
{
    add_totals(&watch->gone, &jvm->totals);
    watch->ended++;
    finder_forget(watch->finder, jvm->process.pid);
    process_close(&jvm->process);
    for (size_t i = 0; i < watch->count; i++) {
        if (watch->jvms[i] == jvm) {
            watch->jvms[i] = watch->jvms[--watch->count];
        }
    }
    free(jvm);
    share_processor(watch);
}

static void look_for_ends(struct watch *watch)
{
    for (size_t i = watch->count; i-- > 0;) {
        struct watched_process *jvm = watch->jvms[i];
        if (jvm->state != WATCHED_ENDS && !process_lives(&jvm->process)) {
            end_jvm(watch, jvm);
        }
    }
}

/* ---- The loop ---- */

static void take_turn(struct watch *watch)
{
    (void)feed_turn(watch->feed); /* whether somebody reads it, the slicer's end tells */
    look_after_slicer(watch);
    hear_keeper(watch);
    if (!watch->is_ending) {
        attach_next(watch);
        hold_budgets(watch);
    }
    pusher_turn(watch->pusher);
    doors_turn(watch->doors);
}

static void wait_for_something(struct watch *watch, int ms)
{
    struct pollfd *all = watch->polled;
    size_t count = 0;
    int within = feed_turn_within(watch->feed);
    all[count++] = (struct pollfd){.fd = watch->waiting.signals, .events = POLLIN};
    all[count++] = (struct pollfd){.fd = watch->keeper.orders, .events = POLLIN};
    if (watch->doors) {
        count += doors_descriptors(watch->doors, &all[count]);
    }
    count += slicing_descriptors(&watch->slicing, &all[count]);
    count += feed_descriptors(watch->feed, &all[count]);
    pusher_poll(watch->pusher, all, count, ms < within ? ms : within);
}

static bool is_over(struct watch *watch)
{
    const struct watch_options *options = watch->options;
    if (options->duration && now_ms() >= watch->since + (int64_t)options->duration * 1000) {
        return true;
    }
    /* Named JVMs that have all ended. */
    for (const int *pid = options->pids; pid && *pid; pid++) {
        struct live_process process;
        if (process_open((pid_t)*pid, &process) == 0) {
            process_close(&process);
            return false;
        }
    }
    return options->pids && watch->count == 0;
}

static void loop(struct watch *watch)
{
    int64_t next_look = 0;
    while (wait_for(&watch->waiting, NULL, 0, 0, true) != -EINTR) {
        if (now_ms() >= next_look) {
            next_look = deadline_in(LOOK_EVERY_MS);
            look_for_ends(watch);
            finder_look(watch->finder, take_jvm, watch);
            if (is_over(watch)) {
                return;
            }
        }
        take_turn(watch);
        int64_t left = next_look - now_ms();
        wait_for_something(watch, (int)(left > 0 ? left : 0));
    }
}

/* The last slices come, and servers get a moment to take them. A second signal ends it at once. */
static void finish(struct watch *watch)
{
    int signals = watch->waiting.count;
    int64_t deadline = deadline_in(LAST_SLICES_MS);
    watch->is_ending = true;
    feed_stop(watch->feed);
    while (watch->slicing.child.pidfd >= 0 && now_ms() < deadline &&
           watch->waiting.count == signals) {
        if (watch->slicing.recording >= 0 && feed_has_ended(watch->feed)) {
            (void)feed_begin(watch->feed, -1);
            slicing_end_recording(&watch->slicing);
        }
        take_turn(watch);
        wait_for_something(watch, 50);
        (void)wait_for(&watch->waiting, NULL, 0, 0, false);
    }
    deadline = deadline_in(LAST_PUSH_MS);
    while (pusher_is_busy(watch->pusher) && now_ms() < deadline &&
           watch->waiting.count == signals) {
        pusher_turn(watch->pusher);
        wait_for_something(watch, 50);
        (void)wait_for(&watch->waiting, NULL, 0, 0, false);
    }
    (void)feed_begin(watch->feed, -1);
    slicing_close(&watch->slicing);
    while (watch->count > 0) {
        forget_jvm(watch, watch->jvms[0]);
    }
}

static int check(const struct watch_options *options)
{
    if (access(live_agent(), R_OK) != 0) {
        failed_to(-errno, "find the agent at %s", live_agent());
        return STATUS_FAILED;
    }
    for (const int *pid = options->pids; pid && *pid; pid++) {
        struct live_process process;
        if (process_open((pid_t)*pid, &process) != 0) {
            error_message("there is no process %d", *pid);
            return STATUS_FAILED;
        }
        process_close(&process);
    }
    return STATUS_DONE;
}

/* Some descriptors for each JVM, in each process. */
static void raise_limits(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < 65536) {
        files.rlim_cur = files.rlim_max < 65536 ? files.rlim_max : 65536;
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
}

static int open_all(struct watch *watch)
{
    const struct watch_options *options = watch->options;
    static struct doors_options doors;
    doors = (struct doors_options){
        .name = options->name,
        .listen = options->listen,
        .status = watch_status,
        .metrics = watch_metrics,
        .context = watch,
    };
    /* First, so that it has nothing of what comes behind it. */
    int err = keeper_start(&watch->keeper, &options->jvm);
    if (err) {
        return failed_to(err, "start a keeper of sessions");
    }
    watch->finder = finder_new();
    err = watch->finder ? 0 : -ENOMEM;
    err = err ? err : pusher_new(&options->push, &watch->pusher);
    if (!err && options->files.directory) {
        err = slice_files_new(&options->files, &watch->files);
    }
    err = err ? err : doors_open(&doors, &watch->doors);
    err = err ? err : feed_new(&options->jvm, &watch->feed);
    if (!err) {
        watch->polled = calloc(DOORS_MAX + SLICING_POLLED + feed_polled_max(watch->feed) + 2,
                               sizeof *watch->polled);
        err = watch->polled ? 0 : -ENOMEM;
    }
    return err;
}

static void tell_what_is_watched(const struct watch *watch)
{
    const struct watch_options *options = watch->options;
    info_message("watching at %u Hz, a profile of each JVM every %u s%s%s",
                 feed_frequency(watch->feed), options->jvm.slice,
                 options->files.directory ? ", into " : "",
                 options->files.directory ? options->files.directory : "");
    if (doors_port(watch->doors)) {
        info_message("metrics on port %u, /metrics", doors_port(watch->doors));
    }
}

int watch(const struct watch_options *options)
{
    static struct watch watch;
    watch = (struct watch){
        .options = options, .since = now_ms(), .keeper = NO_KEEPER, .slicing = NO_SLICING};
    if (kernel_check_clock() || check(options) || waiting_start(&watch.waiting)) {
        return STATUS_FAILED;
    }
    signal(SIGPIPE, SIG_IGN); /* a slicer may end at any time */
    raise_limits();
    int err = open_all(&watch);
    if (!err) {
        tell_what_is_watched(&watch);
        loop(&watch);
        finish(&watch);
    }
    keeper_end(&watch.keeper);
    feed_free(watch.feed);
    free(watch.polled);
    doors_close(watch.doors);
    pusher_free(watch.pusher);
    slice_files_free(watch.files);
    finder_free(watch.finder);
    return err ? STATUS_FAILED : STATUS_DONE;
}
