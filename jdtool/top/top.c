#include "jdtool/top/top.h"

#include "jdtool/base/descriptor.h"
#include "jdtool/base/message.h"
#include "jdtool/base/verb.h"
#include "jdtool/confined/confined.h"
#include "jdtool/pipeline/stream.h"
#include "jdtool/record/recorder.h"
#include "jdtool/resolve/source_texts.h"
#include "jdtool/top/screen.h"
#include "jdtool/top/terminal.h"
#include "jdtool/watch/finder.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

/* ---- The reader ---- */

/* A process without rights that resolves the samples, keeps the last seconds of them and draws, and
 * its parent that answers it (confined.h). */
struct reader_options {
    const struct top_shared *shared;
    unsigned window;         /* seconds */
    const char *source_path; /* NULL: none but the JDKs' */
    const char *about;       /* the event and its rate, in words */
    bool one_jvm;            /* it begins with that one's methods, else with the JVMs */
};

struct reader {
    const struct reader_options *options;
    struct source_texts *sources;
    struct screen *screen;
    bool is_over; /* the user has seen enough */
};

static int turn(void *context)
{
    struct reader *reader = context;
    int err = screen_turn(reader->screen);
    reader->is_over = err == -ECANCELED;
    if (err == -ENOMEM) {
        failed_to(-ENOMEM, "show samples");
    }
    return err;
}

static int read_stream(void *context)
{
    struct reader *reader = context;
    const struct reader_options *options = reader->options;
    const struct stream_options stream = {
        .input = "-", .symbolize = true, .sparing = true, .turn = turn, .context = reader};
    struct window *window;
    struct stream_result result;
    struct sample_sink *sink;
    if (window_new(options->window * UINT64_C(1000000000), &window, &sink)) {
        return STATUS_FAILED;
    }
    const struct screen_options screen = {
        .window = window,
        .shared = options->shared,
        .sources = reader->sources,
        .one_jvm = options->one_jvm,
        .about = options->about,
    };
    reader->screen = screen_new(&screen);
    if (!reader->screen) {
        sink->ops->abort(sink);
        failed_to(-ENOMEM, "start");
        return STATUS_FAILED;
    }
    int err = stream_run(&stream, &sink, 1, &result);
    screen_free(reader->screen);
    return err && !reader->is_over ? STATUS_FAILED : STATUS_DONE;
}

/* Reads from standard input until it ends or the user has seen enough. For a process of its own,
 * which then ends. An exit status, after a message unless 0. */
static int reader_run(const struct reader_options *options)
{
    struct reader reader = {.options = options};
    pid_t parent = getppid();
    struct rights *rights = rights_new();
    prctl(PR_SET_NAME, "jdperf-reader");
    sigset_t resized; /* the one signal that is for whoever draws */
    sigemptyset(&resized);
    sigaddset(&resized, SIGWINCH);
    sigprocmask(SIG_UNBLOCK, &resized, NULL);
    if (!rights || source_texts_open(options->source_path, &reader.sources)) {
        rights_free(rights);
        return STATUS_FAILED;
    }
    rights_read_list(rights, options->source_path);
    rights_read_objects(rights, NULL);
    const struct confined_options confined = {
        .rights = rights, .what = "the samples", .work = read_stream, .context = &reader};
    int status = confined_run(&confined);
    if (getppid() != parent) {
        terminal_close(); /* nobody else is there to do it */
    }
    source_texts_close(reader.sources);
    rights_free(rights);
    return status;
}

#define LOOK_EVERY_MS 1000
#define READER_END_MS 5000 /* so long it may take to end, or it is killed */

struct top {
    const struct top_options *options;
    struct recorder *recorder;
    struct top_shared *shared;
    struct reader_options reads;
    struct child reader;
    struct finder *finder; /* of JVMs that begin later; NULL: not wanted, or not possible */
    char about[128];
    int said;       /* what is said meanwhile, a file in memory */
    int own_stderr; /* for the time after */
    bool has_terminal;
};

/* ---- Starting it ---- */

/* What else of ours is open would keep the recording's pipe, and the guardians, from ending. */
static int read_samples(void *context)
{
    const int keyboard = terminal_keyboard();
    descriptors_close_but(&keyboard, 1);
    return reader_run(context);
}

/* What is said while the terminal is drawn on is told behind it. */
static void hold_words(struct top *top)
{
    top->said = memfd_create("top", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    top->own_stderr = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    if (top->said >= 0 && top->own_stderr >= 0) {
        (void)dup2(top->said, STDERR_FILENO);
    }
}

static void tell_words(struct top *top)
{
    char *words = perf_words(top->said);
    if (top->own_stderr >= 0) {
        (void)dup2(top->own_stderr, STDERR_FILENO);
        close(top->own_stderr);
    }
    descriptor_close(top->said);
    top->said = top->own_stderr = -1;
    fputs(words ? words : "", stderr);
    free(words);
}

static int start_reader(struct recorder *recorder, int in)
{
    struct top *top = recorder->reader;
    top->has_terminal = true; /* or half of it */
    if (!terminal_open()) {
        error_message("failed to set up the terminal");
        return STATUS_FAILED;
    }
    hold_words(top);
    snprintf(top->about, sizeof top->about, "%.60s at %u Hz", recorder->options->event,
             recorder->frequency);
    top->reads = (struct reader_options){
        .shared = top->shared,
        .window = top->options->window,
        .source_path = top->options->source_path,
        .about = top->about,
        .one_jvm = recorder->options->jvm && recorder->jvm_count == 1,
    };
    const struct child_options options = {
        .in = in,
        .out = STDOUT_FILENO,
        .err = top->said,
        .work = read_samples,
        .context = &top->reads,
    };
    int err = child_start(&top->reader, &options);
    return failed_to(err, "start") ? STATUS_FAILED : STATUS_DONE;
}

/* ---- The JVMs ---- */

/* A name is there before its number is. */
static void tell_jvm(struct top *top, uint32_t place)
{
    const struct target *target = &top->recorder->jvms[place].target;
    struct top_jvm *jvm = &top->shared->jvms[place];
    uint32_t pid = (uint32_t)target->process.pid;
    if (atomic_load(&jvm->pid) == pid) {
        return;
    }
    atomic_store(&jvm->pid, 0);
    if (pid) {
        process_java_name(&target->process, jvm->name, sizeof jvm->name);
        atomic_store(&jvm->pid, pid);
    }
}

static void look_at_jvms(struct top *top)
{
    struct recorder *recorder = top->recorder;
    uint32_t count = 0;
    for (uint32_t i = 0; i < recorder->jvm_count; i++) {
        const struct live_process *process = &recorder->jvms[i].target.process;
        if (process->pid && !process_lives(process)) {
            if (top->finder) {
                finder_forget(top->finder, process->pid);
            }
            recorder_leave(recorder, i);
        }
        tell_jvm(top, i);
        count += recorder->jvms[i].target.process.pid != 0;
    }
    atomic_store(&top->shared->has_ended, count == 0 && !top->finder);
}

/* Requests to attach end a JVM that does not listen yet. */
static bool take_jvm(void *context, pid_t pid, const char *name)
{
    struct top *top = context;
    struct target target;
    if (!target_name_has(name, top->recorder->options->match)) {
        return true;
    }
    if (target_open(&target, pid) != 0) {
        return false;
    }
    bool listens = target_listens(&target);
    target_close(&target);
    if (listens) {
        (void)recorder_join(top->recorder, pid);
    }
    return listens;
}

static void watch(struct top *top)
{
    struct recorder *recorder = top->recorder;
    int err;
    do {
        look_at_jvms(top);
        if (top->finder) {
            finder_look(top->finder, take_jvm, top);
        }
        struct pollfd ends[] = {{.fd = top->reader.pidfd, .events = POLLIN},
                                {.fd = recorder->perf.child.pidfd, .events = POLLIN}};
        err = wait_for(&recorder->waiting, ends, 2, deadline_in(LOOK_EVERY_MS), true);
    } while (err == -ETIMEDOUT);
}

/* ---- All of it ---- */

static int run(struct top *top)
{
    struct recorder *recorder = top->recorder;
    int status = recorder_begin(recorder);
    if (status) {
        return recorder->waiting.ended_by && status == STATUS_FAILED
                   ? 128 + recorder->waiting.ended_by
                   : status;
    }
    /* The reader's pipe ends with who samples. */
    close(recorder->pipe_end);
    recorder->pipe_end = -1;
    if (recorder->options->match && recorder->own && recorder->more) {
        top->finder = finder_new();
    }
    watch(top);
    int by_signal = recorder->waiting.ended_by;
    if (!by_signal && !child_ended(&top->reader)) {
        error_message("the sampler has ended");
        perf_tell_words(&recorder->perf);
        status = STATUS_FAILED;
    }
    perf_end(&recorder->perf, &recorder->waiting);
    struct waiting patient = {.signals = -1};
    (void)child_wait(&top->reader, &patient, deadline_in(READER_END_MS), false);
    if (!status) {
        status = child_ended(&top->reader) ? top->reader.status : STATUS_FAILED;
    }
    if (child_killed_by(status) && !by_signal) {
        error_message("the process that shows the samples was killed by signal %d",
                      child_killed_by(status));
        status = STATUS_FAILED;
    }
    return by_signal ? 128 + by_signal : status;
}

int top(const struct top_options *options)
{
    struct top top = {.options = options, .reader = NO_CHILD, .said = -1, .own_stderr = -1};
    const char *why = terminal_check(); /* before anything is done to a JVM */
    if (why) {
        error_message("top: %s; jdperf record and jdperf report need none", why);
        return STATUS_FAILED;
    }
    top.shared = confined_shared(sizeof *top.shared);
    top.recorder = top.shared ? recorder_new(&options->record) : NULL;
    if (!top.shared) {
        failed_to(-ENOMEM, "start");
    }
    int status = STATUS_FAILED;
    if (top.recorder) {
        top.recorder->start_reader = start_reader;
        top.recorder->reader = &top;
        status = run(&top);
        child_end(&top.reader);
        if (top.has_terminal) {
            terminal_close();
            tell_words(&top);
        }
        recorder_free(top.recorder);
    }
    finder_free(top.finder);
    confined_unshare(top.shared, sizeof *top.shared);
    return status;
}
