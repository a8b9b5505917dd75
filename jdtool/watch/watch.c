#include "jdtool/watch/watch.h"

#include "jdtool/base/message.h"
#include "jdtool/base/verb.h"
#include "jdtool/live/verbs.h"
#include "jdtool/record/perf_run.h"
#include "jdtool/watch/shares.h"
#include "jdtool/watch/watch_private.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOOK_EVERY_MS 1000
#define PAUSE_MAX_MS  300000

/* At the end: so long for the last slices, and so long for the servers to take them. */
#define LAST_SLICES_MS 20000
#define LAST_PUSH_MS   5000

/* ---- A JVM's process of ours ---- */

static void add_word(char **words, size_t *count, const char *name, const char *value)
{
    if (value && asprintf(&words[*count], "--%s=%s", name, value) > 0) {
        ++*count;
    }
}

static void add_number(char **words, size_t *count, const char *name, uint64_t value)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRIu64, value);
    add_word(words, count, name, text);
}

/* Its command line; the first five words are fixed. */
static char **child_words(const struct watch_jvm_options *options, int out)
{
    size_t labels = 0;
    while (options->labels[labels]) {
        labels++;
    }
    char **words = calloc(labels + 24, sizeof *words);
    size_t count = 0;
    if (!words) {
        return NULL;
    }
    static const char *const start[] = {"/proc/self/exe", "live", "--agent"};
    for (size_t i = 0; i < 3; i++) {
        words[count++] = strdup(start[i]);
    }
    words[count++] = strdup(live_agent());
    words[count++] = strdup("watch-jvm");
    add_number(words, &count, "pid", strtoull(options->jvm, NULL, 10));
    add_number(words, &count, "out", (uint64_t)out);
    add_number(words, &count, "slice", options->slice);
    add_number(words, &count, "frequency", options->frequency);
    add_number(words, &count, "stack-size", options->stack_size);
    add_number(words, &count, "max-memory", options->memory_max);
    add_number(words, &count, "max-cpu", options->cpu_max);
    if (options->share >= 0) {
        add_number(words, &count, "share", (uint64_t)options->share);
    }
    add_word(words, &count, "service-from", options->service_from);
    add_word(words, &count, "event", options->event);
    add_word(words, &count, "mmap-pages", options->buffer);
    add_word(words, &count, "agent-options",
             *options->agent_options ? options->agent_options : NULL);
    if (options->threads) {
        words[count++] = strdup("--threads");
    }
    for (uint32_t i = 0; i < options->format_count; i++) {
        add_word(words, &count, "format", options->formats[i]->name);
    }
    for (size_t i = 0; i < labels; i++) {
        add_word(words, &count, "label", options->labels[i]);
    }
    return words;
}

static void free_words(char **words)
{
    for (size_t i = 0; words && words[i]; i++) {
        free(words[i]);
    }
    free(words);
}

static int start_child(struct watch *watch, struct watched_process *jvm)
{
    char pid[16];
    int ends[2] = {-1, -1};
    struct watch_jvm_options options = watch->options->jvm;
    snprintf(pid, sizeof pid, "%d", (int)jvm->process.pid);
    options.jvm = pid;
    options.share = jvm->share;
    int err = pipe2(ends, O_CLOEXEC) != 0 ? -errno : 0;
    char **words = err ? NULL : child_words(&options, ends[1]);
    jvm->says = err ? -1 : memfd_create("watch-jvm", MFD_CLOEXEC);
    if (!err) {
        const int keep[] = {ends[1], jvm->share};
        struct child_options child = {
            .arguments = words,
            .in = -1,
            .out = -1,
            .err = jvm->says,
            .keep = keep,
            .keep_count = jvm->share >= 0 ? 2 : 1,
            .own_group = true,       /* Ctrl-C is for us, who then end it */
            .death_signal = SIGTERM, /* it leaves the session */
        };
        err = words ? child_start(&jvm->child, &child) : -ENOMEM;
    }
    free_words(words);
    if (ends[1] >= 0) {
        close(ends[1]);
    }
    if (err) {
        snprintf(jvm->trouble, sizeof jvm->trouble, "%s", strerror(-err));
        if (ends[0] >= 0) {
            close(ends[0]);
        }
        return err;
    }
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    (void)fcntl(ends[0], F_SETPIPE_SZ, 1 << 18);
    jvm->from = ends[0];
    jvm->reader.got = 0;
    return 0;
}

static void close_child(struct watched_process *jvm)
{
    child_end(&jvm->child);
    if (jvm->from >= 0) {
        close(jvm->from);
    }
    if (jvm->says >= 0) {
        close(jvm->says);
    }
    jvm->from = jvm->says = -1;
    slice_reader_free(&jvm->reader);
    jvm->cpu_before = jvm->totals.cpu_ns;
    jvm->lost_before = jvm->totals.lost;
    jvm->paused_before = jvm->totals.paused_ns;
}

/* The last that it has said, without "jdperf: " in front. */
static void note_words(struct watched_process *jvm)
{
    char *words = perf_words(jvm->says);
    char trouble[sizeof jvm->trouble] = "it ended without a word";
    for (char *line = words; line && *line;) {
        size_t length = strcspn(line, "\n");
        const char *from = strncmp(line, "jdperf: ", 8) == 0 ? line + 8 : line;
        /* A line that belongs to the one before it is put behind it. */
        size_t used = strncmp(line, "    ", 4) == 0 ? strlen(trouble) : 0;
        from += used ? strspn(from, " ") - 1 : 0;
        if (length > 0) {
            snprintf(trouble + used, sizeof trouble - used, "%.*s", (int)(line + length - from),
                     from);
        }
        line += length + (line[length] == '\n');
    }
    free(words);
    if (strcmp(trouble, jvm->trouble) != 0) {
        snprintf(jvm->trouble, sizeof jvm->trouble, "%s", trouble);
        warning_message("JVM %d is not watched now: %s", (int)jvm->process.pid, trouble);
    }
}

/* Its process has ended: with the JVM, or it is to be started again, sooner or later. */
static void take_end(struct watched_process *jvm, bool ending)
{
    int status = jvm->child.status;
    bool lives = !ending && process_lives(&jvm->process);
    if (lives && status != STATUS_DONE && status != STATUS_GROWN) {
        note_words(jvm);
        int64_t pause = INT64_C(5000) << (jvm->tries < 7 ? jvm->tries : 7);
        jvm->next_try = deadline_in(pause > PAUSE_MAX_MS ? PAUSE_MAX_MS : pause);
        jvm->tries++;
    } else {
        jvm->next_try = now_ms() + (status == STATUS_GROWN ? 0 : 1000);
    }
    close_child(jvm);
}

/* ---- Slices ---- */

static void take_slice(struct watch *watch, struct watched_process *jvm)
{
    struct slice_reader *reader = &jvm->reader;
    const struct slice_message *message = &reader->message;
    const struct watch_jvm_options *options = &watch->options->jvm;
    struct watched_totals *totals = &jvm->totals;
    totals->slices++;
    totals->samples += message->slice.samples;
    totals->frames += message->slice.frames;
    totals->unnamed += message->slice.unnamed;
    totals->lost = jvm->lost_before + message->slice.lost;
    jvm->tries = 0;
    jvm->trouble[0] = '\0';
    for (uint32_t i = 0; watch->files && i < options->format_count; i++) {
        if (strcmp(options->formats[i]->name, "pprof") == 0 &&
            slice_files_give(watch->files, &reader->labels, (int)jvm->process.pid,
                             message->slice.from, reader->bodies[i], message->slice.sizes[i])) {
            watch->file_failures++;
        }
    }
    pusher_give(watch->pusher, &reader->labels, message, (const uint8_t *const *)reader->bodies,
                options->formats);
    slice_reader_free(reader);
}

static void read_slices(struct watch *watch, struct watched_process *jvm)
{
    int result;
    while ((result = slice_read(&jvm->reader, jvm->from)) == 1) {
        const struct slice_message *message = &jvm->reader.message;
        jvm->totals.cpu_ns = jvm->cpu_before + message->cpu_ns;
        jvm->totals.paused_ns = jvm->paused_before + message->paused_ns;
        jvm->rss = message->rss;
        if (message->kind == SLICE_PROFILE) {
            take_slice(watch, jvm);
        }
    }
    if (result < 0) {
        close(jvm->from); /* its end, which the process' own follows */
        jvm->from = -1;
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
    return !options->match || strstr(name, options->match);
}

static void forget_jvm(struct watch *watch, size_t index);

/* What each may use, after one has come or gone. */
static void share_processor(struct watch *watch)
{
    for (size_t i = 0; i < watch->count; i++) {
        struct watched_process *jvm = watch->jvms[i];
        size_t of_user = 0;
        for (size_t k = 0; k < watch->count; k++) {
            of_user += watch->jvms[k]->uid == jvm->uid;
        }
        uint32_t share =
            shares_of_processor(watch->options->jvm.cpu_max, watch->options->user_cpu_max, of_user);
        if (jvm->share >= 0 && pwrite(jvm->share, &share, sizeof share, 0) != sizeof share) {
            close(jvm->share); /* it goes on with what it was told, and its next process without */
            jvm->share = -1;
        }
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
        warning_message("%d JVMs are watched, and no more can be: each user has his share of them",
                        WATCHED_MAX);
    }
    size_t place = shares_place_for(users, WATCHED_MAX, uid);
    if (place == NO_PLACE) {
        return false;
    }
    forget_jvm(watch, place);
    watch->ended--; /* it has not */
    watch->refused++;
    return true;
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
    jvm->child = NO_CHILD;
    jvm->from = jvm->says = -1;
    jvm->uid = uid;
    jvm->share = memfd_create("watch-share", MFD_CLOEXEC);
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
    sum->lost += totals->lost;
    sum->cpu_ns += totals->cpu_ns;
    sum->paused_ns += totals->paused_ns;
}

static void forget_jvm(struct watch *watch, size_t index)
{
    struct watched_process *jvm = watch->jvms[index];
    add_totals(&watch->gone, &jvm->totals);
    watch->ended++;
    finder_forget(watch->finder, jvm->process.pid);
    close_child(jvm);
    process_close(&jvm->process);
    if (jvm->share >= 0) {
        close(jvm->share);
    }
    free(jvm);
    watch->jvms[index] = watch->jvms[--watch->count];
    share_processor(watch);
}

/* Takes what has come from them; starts what is due. */
static void take_turn(struct watch *watch, bool ending)
{
    for (size_t i = 0; i < watch->count;) {
        struct watched_process *jvm = watch->jvms[i];
        if (jvm->from >= 0) {
            read_slices(watch, jvm);
        }
        if (jvm->child.pidfd >= 0 && jvm->from < 0 && child_ended(&jvm->child)) {
            take_end(jvm, ending);
        }
        bool runs = jvm->child.pidfd >= 0;
        if (!runs && (ending || !process_lives(&jvm->process))) {
            forget_jvm(watch, i);
            continue;
        }
        if (!runs && now_ms() >= jvm->next_try && start_child(watch, jvm)) {
            jvm->next_try = deadline_in(PAUSE_MAX_MS);
        }
        i++;
    }
}

/* ---- The loop ---- */

static void wait_for_something(struct watch *watch, int ms)
{
    struct pollfd all[2 * WATCHED_MAX + DOORS_MAX + 1];
    size_t count = 0;
    all[count++] = (struct pollfd){.fd = watch->waiting.signals, .events = POLLIN};
    if (watch->doors) {
        count += doors_descriptors(watch->doors, &all[count]);
    }
    for (size_t i = 0; i < watch->count; i++) {
        /* The process' end matters only when its pipe has ended. */
        const struct watched_process *jvm = watch->jvms[i];
        int fd = jvm->from >= 0 ? jvm->from : jvm->child.pidfd;
        if (fd >= 0) {
            all[count++] = (struct pollfd){.fd = fd, .events = POLLIN};
        }
    }
    pusher_poll(watch->pusher, all, count, ms);
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
            finder_look(watch->finder, take_jvm, watch);
            if (is_over(watch)) {
                return;
            }
        }
        take_turn(watch, false);
        pusher_turn(watch->pusher);
        doors_turn(watch->doors);
        int64_t left = next_look - now_ms();
        wait_for_something(watch, (int)(left > 0 ? left : 0));
    }
}

/* The last slices come, and servers get a moment to take them. A second signal ends it at once. */
static void finish(struct watch *watch)
{
    int signals = watch->waiting.count;
    int64_t deadline = deadline_in(LAST_SLICES_MS);
    for (size_t i = 0; i < watch->count; i++) {
        child_signal(&watch->jvms[i]->child, SIGTERM);
    }
    while (watch->count > 0 && now_ms() < deadline && watch->waiting.count == signals) {
        take_turn(watch, true);
        pusher_turn(watch->pusher);
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
    while (watch->count > 0) {
        forget_jvm(watch, 0);
    }
}

static int check(const struct watch_options *options)
{
    if (perf_check()) {
        return STATUS_FAILED;
    }
    if (access(live_agent(), R_OK) != 0) {
        error_message("failed to find the agent at %s: %s", live_agent(), strerror(errno));
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
    watch->finder = finder_new();
    int err = watch->finder ? 0 : -ENOMEM;
    err = err ? err : pusher_new(&options->push, &watch->pusher);
    if (!err && options->files.directory) {
        err = slice_files_new(&options->files, &watch->files);
    }
    return err ? err : doors_open(&doors, &watch->doors);
}

static void tell_what_is_watched(const struct watch *watch)
{
    const struct watch_options *options = watch->options;
    info_message("watching at %u Hz, a profile of each JVM every %u s%s%s", options->jvm.frequency,
                 options->jvm.slice, options->files.directory ? ", into " : "",
                 options->files.directory ? options->files.directory : "");
    if (doors_port(watch->doors)) {
        info_message("metrics on port %u, /metrics", doors_port(watch->doors));
    }
}

int watch(const struct watch_options *options)
{
    static struct watch watch;
    watch = (struct watch){.options = options, .since = now_ms()};
    if (check(options) || waiting_start(&watch.waiting)) {
        return STATUS_FAILED;
    }
    int err = open_all(&watch);
    if (!err) {
        tell_what_is_watched(&watch);
        loop(&watch);
        finish(&watch);
    }
    doors_close(watch.doors);
    pusher_free(watch.pusher);
    slice_files_free(watch.files);
    finder_free(watch.finder);
    return err ? STATUS_FAILED : STATUS_DONE;
}
