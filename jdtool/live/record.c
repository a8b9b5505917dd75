#include "jdtool/live/record.h"

#include "jdtool/base/message.h"
#include "jdtool/base/verb.h"
#include "jdtool/live/ask.h"
#include "jdtool/live/command.h"
#include "jdtool/live/event_list.h"
#include "jdtool/live/guard.h"
#include "jdtool/live/joining.h"
#include "jdtool/live/machine.h"
#include "jdtool/live/naming.h"
#include "jdtool/live/perf_run.h"
#include "jdtool/live/profile_dir.h"
#include "jdtool/live/verbs.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <termios.h>
#include <unistd.h>

/* What is chosen where the user has not: docs/benchmarks.md tells the cost. */
enum { FREQUENCY_COPIED = 199, FREQUENCY_FP = 997 };

struct recording {
    const struct record_options *options;
    struct waiting waiting;
    struct target target;
    bool has_target;
    struct guardian guardian;
    struct profile_dir profile;
    struct joining joining;
    struct machine machine; /* of -a */
    char *event;
    bool copied;   /* stacks are copied */
    bool discards; /* perf.data goes when it was named well */
    bool piped;    /* perf writes into a pipe, nothing raw is kept */
    unsigned frequency;
    struct event_list events; /* beside that one */
    struct perf_run perf;
    struct command command;
    struct naming naming;
    int pipe_end; /* ours of the pipe from perf to the naming: its end is told when all is there */
    bool interrupted; /* by Ctrl-C, which is meant for the command, too */
    struct termios terminal;
    bool has_terminal;
};

/* ---- Before anything is made ---- */

static void choose_stacks(struct recording *recording)
{
    const struct record_options *options = recording->options;
    recording->copied = options->stacks == STACKS_AUTO || options->stacks == STACKS_DWARF;
    recording->piped = recording->copied && !options->keep_raw && !options->no_inject;
    recording->discards = options->discard_raw || recording->piped;
    recording->frequency = options->frequency  ? options->frequency
                           : recording->copied ? FREQUENCY_COPIED
                                               : FREQUENCY_FP;
}

static const char *stacks_name(const struct recording *recording)
{
    switch (recording->options->stacks) {
    case STACKS_FP:
        return "fp";
    case STACKS_NONE:
        return "none";
    default:
        return "dwarf";
    }
}

static int check_agent(void)
{
    if (access(live_agent(), R_OK) != 0) {
        error_message("failed to find the agent at %s: %s", live_agent(), strerror(errno));
        return STATUS_FAILED;
    }
    return STATUS_DONE;
}

static int find_jvm(struct recording *recording)
{
    const char *word = recording->options->jvm;
    if (!word) {
        return STATUS_DONE;
    }
    if (target_find(&recording->target, word, &recording->waiting)) {
        return STATUS_FAILED;
    }
    recording->has_target = true;
    return ask_prepare(&recording->target) ? STATUS_FAILED : STATUS_DONE;
}

/* The command as a shell would take it. */
static char *quoted_command(char *const *words)
{
    char *text = strdup("");
    for (; text && *words; words++) {
        size_t quotes = 0;
        for (const char *at = *words; *at; at++) {
            quotes += *at == '\'';
        }
        size_t used = strlen(text);
        char *longer = realloc(text, used + strlen(*words) + quotes * 3 + 4);
        if (!longer) {
            break;
        }
        text = longer;
        char *to = text + used;
        to = stpcpy(to, used ? " '" : "'");
        for (const char *at = *words; *at; at++) {
            if (*at == '\'') {
                to = stpcpy(to, "'\\''");
            } else {
                *to++ = *at;
            }
        }
        memcpy(to, "'", 2);
    }
    return text;
}

static int create_profile(struct recording *recording)
{
    const struct record_options *options = recording->options;
    struct profile_dir *profile = &recording->profile;
    char number[16];
    int status = profile_create(profile, &recording->guardian.shared->profile, options->out);
    if (status) {
        return status;
    }
    char *command = quoted_command(options->command);
    snprintf(number, sizeof number, "%u", recording->frequency);
    int err = profile_set(profile, "command", command ? command : "");
    err = err ? err : profile_set(profile, "event", recording->event);
    err = err ? err : profile_set(profile, "frequency", options->period ? "" : number);
    err = err ? err : profile_set(profile, "stacks", stacks_name(recording));
    if (recording->has_target) {
        snprintf(number, sizeof number, "%d", (int)recording->target.process.pid);
        err = err ? err : profile_set(profile, "pid", number);
    }
    free(command);
    if (err) {
        error_message("failed to write into %s: %s", profile->path, strerror(-err));
    }
    return err ? STATUS_FAILED : STATUS_DONE;
}

/* ---- The session in a JVM that runs already ---- */

/* What the agent is told beside what the user says. */
static void agent_options(const struct recording *recording, char *text, size_t size)
{
    char duration[48] = "";
    char events[160];
    /* The agent would go on for the command's whole life. */
    if (recording->options->duration && !recording->has_target) {
        snprintf(duration, sizeof duration, ",duration=%u", recording->options->duration + 2);
    }
    event_list_agent_options(&recording->events, recording->options, events, sizeof events);
    snprintf(text, size, "%s%s%s", recording->copied ? "methods=on" : "methods=off", events,
             duration);
}

static int attach(struct recording *recording)
{
    char more[288];
    if (!recording->has_target) {
        return STATUS_DONE;
    }
    agent_options(recording, more, sizeof more);
    const struct joining_options options = {
        .dir = recording->profile.path,
        .agent_options = recording->options->agent_options,
        .more = more,
    };
    int err = joining_start(&recording->joining, &recording->target, &recording->waiting,
                            recording->guardian.shared, &options);
    if (!err && recording->joining.joined && (recording->events.alloc || recording->events.locks)) {
        error_message("--alloc, --locks: the session that runs was not asked for them; left out. "
                      "jdperf stop %d first, then record again",
                      (int)recording->target.process.pid);
        recording->events.alloc = recording->events.locks = false;
    }
    return err ? STATUS_FAILED : STATUS_DONE;
}

/* Leaves the session and brings its files into the profile. */
static int detach(struct recording *recording)
{
    char dump[PATH_MAX];
    if (!recording->has_target) {
        return STATUS_DONE;
    }
    bool lives = process_lives(&recording->target.process);
    if (lives && recording->joining.joined && !target_dump(&recording->target, dump)) {
        info_message("the session that was used ended before the recording did: code made after "
                     "that has no name");
    }
    fetch_find_methods(&recording->joining.fetch);
    if (session_leave(&recording->joining.session)) {
        info_message("going on with what the dump holds");
    }
    /* Others may use the session still: it then writes on, but not into this profile. */
    bool writes_on =
        process_lives(&recording->target.process) && target_dump(&recording->target, dump);
    return fetch_copy(&recording->joining.fetch, recording->profile.path, writes_on) ? STATUS_FAILED
                                                                                     : STATUS_DONE;
}

/* ---- perf ---- */

/* -F and -c are for all events, and would have perf drop most of those that are to be told each. */
static void add_event(struct recording *recording)
{
    const struct record_options *options = recording->options;
    struct perf_run *perf = &recording->perf;
    char text[16];
    if (!event_list_is_empty(&recording->events)) {
        char *event = event_with_rate(recording->event, recording->frequency, options->period);
        perf->failed |= !event;
        perf_add(perf, "-e", event ? event : recording->event, NULL);
        free(event);
        return;
    }
    perf_add(perf, "-e", recording->event, NULL);
    if (options->period) {
        perf_add(perf, "-c", options->period, NULL);
    } else {
        snprintf(text, sizeof text, "%u", recording->frequency);
        perf_add(perf, "-F", text, NULL);
    }
}

/* So much is enough for nearly all stacks of events, and each costs what is copied. */
enum { EVENT_STACK_SIZE = 16384 };

static void add_events(struct recording *recording)
{
    const struct record_options *options = recording->options;
    unsigned size = options->stack_size;
    if (!options->stack_size_given && size > EVENT_STACK_SIZE) {
        size = EVENT_STACK_SIZE;
    }
    event_list_arguments(&recording->events, &recording->perf, recording->copied ? size : 0);
}

/* Each event is to be told, also in a burst, and on a machine so busy that perf has to wait for a
 * processor; but all buffers together take 256 MB at most. */
static const char *buffer_size(const struct recording *recording)
{
    long processors = sysconf(_SC_NPROCESSORS_CONF);
    bool few = event_list_is_empty(&recording->events) || processors > 32;
    return few ? "4M" : processors > 16 ? "8M" : processors > 8 ? "16M" : "32M";
}

/* Puts the kernel's probes where the JVM's files are. */
static void define_probes(struct recording *recording)
{
    struct event_list *events = &recording->events;
    struct event_files files = {.root = -1, .agent = live_agent()};
    char agent[PATH_MAX];
    char libjvm[PATH_MAX];
    bool found;
    if (event_list_is_empty(events)) {
        return;
    }
    if (recording->has_target) {
        files.root = recording->target.root;
        if (target_agent(&recording->target, agent)) {
            files.agent = agent;
        }
        found = target_libjvm(&recording->target, libjvm);
    } else {
        found = command_libjvm(recording->options->command, libjvm);
    }
    files.libjvm = found ? libjvm : NULL;
    if (recording->options->all && (events->alloc || events->locks)) {
        info_message("--alloc, --locks with -a: those JVMs tell whose agent has the options alloc "
                     "and locks (jdperf attach PID --agent-options alloc,locks)");
    }
    struct guarded *shared = recording->guardian.shared;
    probes_name_group(events->group);
    memcpy(shared->probes, events->group, sizeof shared->probes);
    atomic_store(&shared->has_probes, true);
    event_list_define(events, &files);
}

static void perf_arguments(struct recording *recording)
{
    const struct record_options *options = recording->options;
    struct perf_run *perf = &recording->perf;
    char text[PATH_MAX + 32];
    snprintf(text, sizeof text, "%s/buildid", recording->profile.path);
    perf_add(perf, perf_program(), "--buildid-dir", text, "record", NULL);
    /* A named clock is what ties samples to the stamps in the dump. */
    perf_add(perf, "-k", "mono", NULL);
    add_event(recording);
    snprintf(text, sizeof text, "%s/perf.data", recording->profile.path);
    perf_add(perf, "-o", recording->piped ? "-" : text, NULL);
    if (recording->piped) {
        /* Into a pipe perf tells of no build-ids but these, by which files are known again. */
        perf_add(perf, "--buildid-mmap", NULL);
    }
    pid_t pid =
        recording->has_target ? recording->target.process.pid : recording->command.child.pid;
    snprintf(text, sizeof text, "%d", (int)pid);
    if (options->all) {
        perf_add(perf, "-a", NULL);
    } else {
        perf_add(perf, "-p", text, NULL);
    }
    if (options->stacks == STACKS_FP) {
        perf_add(perf, "--call-graph", "fp", NULL);
    }
    if (recording->copied) {
        snprintf(text, sizeof text, "dwarf,%u", options->stack_size);
        perf_add(perf, "--call-graph", text, NULL);
    }
    if (recording->copied && !recording->piped && recording->has_target &&
        !recording->target.same_files) {
        /* Stacks lead through files that no sample hits, and a container's are gone with it. */
        perf_add(perf, "--buildid-all", NULL);
    }
    /* perf's own 512K hold eight copied stacks. Only root may have more than perf_event_mlock_kb.
     */
    if (options->buffer) {
        perf_add(perf, "-m", options->buffer, NULL);
    } else if (recording->copied && geteuid() == 0) {
        perf_add(perf, "-m", buffer_size(recording), NULL);
    }
    for (char **more = options->perf_options; *more; more++) {
        perf_add(perf, *more, NULL);
    }
    add_events(recording); /* last: a filter of the user's is for his event */
}

/* Warns where copied stacks that are kept could fill the disk. */
static void estimate(const struct recording *recording)
{
    const struct record_options *options = recording->options;
    struct statvfs status;
    if (!recording->copied || recording->piped || statvfs(recording->profile.path, &status) != 0) {
        return;
    }
    double rate =
        (double)sysconf(_SC_NPROCESSORS_ONLN) * recording->frequency * options->stack_size;
    double space = (double)status.f_bavail * (double)status.f_frsize;
    if (rate * (options->duration ? options->duration : 60) >= space) {
        info_message("this may fill the disk, which has %.1f GB: lower -d, -F or --stack-size, "
                     "leave --keep-raw out, or give another -o DIR",
                     space / 1e9);
    }
}

/* Starts the naming on the other end of perf's pipe. */
static int start_naming(struct recording *recording, int *out)
{
    int ends[2];
    char dump[128];
    const char *dumps[] = {dump};
    const struct fetch *fetch = &recording->joining.fetch;
    if (!recording->piped) {
        return STATUS_DONE;
    }
    if (pipe2(ends, O_CLOEXEC) != 0) {
        error_message("failed to make a pipe: %s", strerror(errno));
        return STATUS_FAILED;
    }
    (void)fcntl(ends[1], F_SETPIPE_SZ, 1 << 20); /* as much as anybody may have */
    snprintf(dump, sizeof dump, "/proc/self/fd/%d/%s", fetch->directory, fetch->name);
    struct naming_options options = {
        .profile = recording->profile.path,
        .in = ends[0],
        .dumps = dumps,
        .dump_count = fetch->dump >= 0,
        .keep = &fetch->directory,
        .keep_count = fetch->dump >= 0,
        .more = recording->options->inject_options,
    };
    int err = naming_start(&recording->naming, &options);
    close(ends[0]);
    recording->pipe_end = *out = ends[1];
    return err ? STATUS_FAILED : STATUS_DONE;
}

static int start_perf(struct recording *recording)
{
    int out = -1;
    int status = start_naming(recording, &out);
    if (status) {
        return status;
    }
    /* The user's own perfconfig does not matter. The command has its environment already. */
    setenv("PERF_CONFIG", "/dev/null", 1);
    perf_arguments(recording);
    if (perf_start(&recording->perf, out)) {
        return STATUS_FAILED;
    }
    int err = perf_wait_until_it_samples(&recording->perf, &recording->waiting);
    if (err == -EINTR) {
        info_message("interrupted before the recording began");
        return 128 + recording->waiting.ended_by;
    }
    if (err) {
        perf_end(&recording->perf, &recording->waiting);
        char *words = perf_words(recording->perf.says);
        if (recording->has_target && !process_lives(&recording->target.process)) {
            error_message("process %d has ended before the recording began",
                          (int)recording->target.process.pid);
            status = STATUS_FAILED;
        } else {
            status = perf_explain_failure(words, recording->event);
        }
        free(words);
    }
    return status;
}

static void tell_what_is_recorded(const struct recording *recording)
{
    const struct record_options *options = recording->options;
    char rate[64];
    char duration[48] = "";
    if (options->period) {
        snprintf(rate, sizeof rate, "every %s", options->period);
    } else {
        snprintf(rate, sizeof rate, "at %u Hz", recording->frequency);
    }
    if (options->duration) {
        snprintf(duration, sizeof duration, ", for %u s", options->duration);
    }
    const struct event_list *events = &recording->events;
    info_message("recording %s %s%s%s%s%s, stacks: %s%s%s", recording->event, rate,
                 events->alloc ? ", allocations" : "", events->locks ? ", contended monitors" : "",
                 events->exceptions ? ", exceptions" : "", events->off_cpu ? ", waits" : "",
                 stacks_name(recording), recording->piped ? " (unwound as they arrive)" : "",
                 duration);
    if (!options->command[0] && !options->duration) {
        info_message("Ctrl-C ends the recording");
    }
}

/* ---- While it records ---- */

/* Ctrl-C has reached the command by itself; other signals are passed on. */
static void take_signal(struct recording *recording)
{
    recording->interrupted |= recording->waiting.ended_by == SIGINT;
    if (recording->waiting.ended_by != SIGINT && recording->command.child.pidfd >= 0) {
        child_signal(&recording->command.child, recording->waiting.ended_by);
    }
}

/* Whichever ends first ends the recording: perf, the command, the JVM, the naming, the time, a
 * signal. */
static void wait_for_the_end(struct recording *recording)
{
    int64_t deadline = recording->options->duration
                           ? deadline_in((int64_t)recording->options->duration * 1000)
                           : NO_DEADLINE;
    struct pollfd ends[] = {
        {.fd = recording->perf.child.pidfd, .events = POLLIN},
        {.fd = recording->command.child.pidfd, .events = POLLIN},
        {.fd = recording->has_target ? recording->target.process.pidfd : -1, .events = POLLIN},
        {.fd = recording->naming.child.pidfd, .events = POLLIN},
    };
    if (wait_for(&recording->waiting, ends, 4, deadline, true) == -EINTR) {
        take_signal(recording);
        info_message(recording->interrupted ? "interrupted: the profile ends here"
                                            : "ended by a signal: the profile ends here");
    }
}

/* Children of the command that outlive it (daemons) would keep perf going. */
static int end_perf(struct recording *recording)
{
    struct stat status;
    char path[PATH_MAX + 16];
    perf_end(&recording->perf, &recording->waiting);
    snprintf(path, sizeof path, "%s/perf.data", recording->profile.path);
    if (!recording->piped && (stat(path, &status) != 0 || status.st_size == 0)) {
        char *words = perf_words(recording->perf.says);
        int explained = perf_explain_failure(words, recording->event);
        free(words);
        return explained;
    }
    perf_tell_words(&recording->perf);
    event_list_end(&recording->events);
    return STATUS_DONE;
}

/* ---- Afterwards ---- */

static int name_from_file(struct recording *recording)
{
    struct dump_list dumps;
    int status = STATUS_FAILED;
    if (dump_list_read(&dumps, recording->profile.path) == 0) {
        struct naming_options options = {
            .profile = recording->profile.path,
            .in = -1,
            .dumps = (const char *const *)dumps.paths,
            .dump_count = dumps.count,
            .more = recording->options->inject_options,
        };
        status = naming_start(&recording->naming, &options) ? STATUS_FAILED : STATUS_DONE;
    }
    dump_list_free(&dumps);
    return status ? status
                  : naming_finish(&recording->naming, &recording->waiting,
                                  &recording->command.child, false);
}

static void tell_missing_dumps(const struct recording *recording)
{
    struct dump_list dumps;
    if (!recording->options->command[0] || dump_list_read(&dumps, recording->profile.path) != 0) {
        return;
    }
    if (dumps.count == 0) {
        info_message("there is no dump in %s: no JVM took the agent up, so no generated code can "
                     "be named",
                     recording->profile.path);
        info_message("  if it was a JVM that ran: a script that sets JAVA_TOOL_OPTIONS has to keep "
                     "what is in it (JAVA_TOOL_OPTIONS=\"$JAVA_TOOL_OPTIONS …\"), and one that "
                     "clears its environment to keep the variable; a daemon that runs already "
                     "(gradle) is recorded with jdperf record -p PID");
    }
    dump_list_free(&dumps);
}

static int name(struct recording *recording)
{
    const struct record_options *options = recording->options;
    char path[PATH_MAX + 16];
    if (recording->pipe_end >= 0) {
        close(recording->pipe_end);
        recording->pipe_end = -1;
    }
    if (options->no_inject) {
        return STATUS_DONE;
    }
    tell_missing_dumps(recording);
    int status = recording->piped ? naming_finish(&recording->naming, &recording->waiting,
                                                  &recording->command.child, false)
                                  : name_from_file(recording);
    snprintf(path, sizeof path, "%s/src", recording->profile.path);
    (void)profile_set(&recording->profile, "injector", "jdtool");
    (void)profile_set(&recording->profile, "source_root", path);
    snprintf(path, sizeof path, "%s/perf.data", recording->profile.path);
    if (recording->discards && !recording->piped) {
        if (status == STATUS_DONE) {
            (void)unlink(path);
        } else {
            info_message("perf.data is kept: jdperf inject %s names it once the cause is mended",
                         options->out);
        }
    }
    if (status == STATUS_DONE || status == STATUS_BAD_PROFILE) {
        char *quoted = quoted_command((char *const[]){(char *)options->out, NULL});
        bool plain = strspn(options->out, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                          "0123456789_./-+=@") == strlen(options->out);
        info_message("look at it with: jdperf report %s", plain || !quoted ? options->out : quoted);
        free(quoted);
    }
    return status;
}

/* Waits for the command, which may outlive the recording. Its status, but 0 when the user ended
 * it. */
static int command_status(struct recording *recording)
{
    struct child *child = &recording->command.child;
    char number[16];
    if (child->pidfd < 0) {
        return STATUS_DONE;
    }
    if (!child_ended(child)) {
        info_message("the command goes on; jdperf ends with it");
    }
    while (child_wait(child, &recording->waiting, NO_DEADLINE, false) != 0) {
        take_signal(recording);
    }
    if (recording->interrupted) {
        return STATUS_DONE;
    }
    snprintf(number, sizeof number, "%d", child->status);
    (void)profile_set(&recording->profile, "command_status", number);
    if (child->status) {
        info_message("the command ended with status %d", child->status);
    }
    return child->status;
}

/* ---- All of it ---- */

static int start_command(struct recording *recording)
{
    const struct record_options *options = recording->options;
    if (!options->command[0]) {
        return STATUS_DONE;
    }
    char more[288];
    char *text = calloc(1, SESSION_OPTIONS_MAX);
    int err = -ENOMEM;
    if (text) {
        agent_options(recording, more, sizeof more);
        session_compose_options(text, options->agent_options, recording->profile.path, more);
        err = command_start(&recording->command, options->command, live_agent(), text,
                            options->stacks == STACKS_FP);
    }
    free(text);
    return err ? STATUS_FAILED : STATUS_DONE;
}

/* Until it records. What fails here leaves nothing behind. */
static int begin(struct recording *recording)
{
    const struct record_options *options = recording->options;
    recording->has_terminal = tcgetattr(STDIN_FILENO, &recording->terminal) == 0;
    if (waiting_start(&recording->waiting) || perf_check() ||
        (options->command[0] && command_check(options->command))) {
        return STATUS_FAILED;
    }
    int status = check_agent();
    status = status ? status : find_jvm(recording);
    if (status) {
        return status;
    }
    choose_stacks(recording);
    recording->event = perf_choose_event(options->event);
    if (!recording->event ||
        guard_start(&recording->guardian, recording->has_target ? &recording->target : NULL)) {
        return STATUS_FAILED;
    }
    event_list_choose(&recording->events, options);
    status = create_profile(recording);
    if (!status) {
        estimate(recording);
        status = start_command(recording);
    }
    status = status ? status : attach(recording);
    if (!status && options->all) {
        machine_look(&recording->machine, recording->profile.path);
    }
    if (!status) {
        define_probes(recording);
    }
    return status ? status : start_perf(recording);
}

static int run(struct recording *recording)
{
    int status = begin(recording);
    if (status) {
        bool by_signal = recording->waiting.ended_by && status == STATUS_FAILED;
        return by_signal ? 128 + recording->waiting.ended_by : status;
    }
    profile_settle(&recording->profile);
    tell_what_is_recorded(recording);
    if (recording->command.child.pidfd >= 0) {
        command_let_go(&recording->command);
    }
    wait_for_the_end(recording);
    status = end_perf(recording);
    int fetched = detach(recording);
    status = status ? status : fetched;
    if (recording->options->all) {
        machine_look(&recording->machine, recording->profile.path);
        machine_fetch(&recording->machine, recording->profile.path);
    }
    if (status == STATUS_DONE) {
        status = name(recording);
    }
    int ended = command_status(recording);
    return ended ? ended : status;
}

/* Whatever is still there goes, in the order that nobody is left waiting. */
static void clean_up(struct recording *recording)
{
    perf_free(&recording->perf);
    event_list_end(&recording->events);
    if (recording->pipe_end >= 0) {
        close(recording->pipe_end);
    }
    naming_abort(&recording->naming);
    command_free(&recording->command);
    if (recording->has_target) {
        (void)session_leave(&recording->joining.session);
    }
    if (recording->guardian.shared) {
        profile_undo(&recording->guardian.shared->profile);
    }
    guard_end(&recording->guardian);
    fetch_close(&recording->joining.fetch);
    machine_free(&recording->machine);
    target_close(&recording->target);
    free(recording->event);
    /* A command that was ended may have left the terminal without echo. */
    if (recording->has_terminal && recording->waiting.ended_by) {
        (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &recording->terminal);
    }
}

int record(const struct record_options *options)
{
    struct recording *recording = calloc(1, sizeof *recording);
    if (!recording) {
        error_message("failed to start: %s", strerror(ENOMEM));
        return STATUS_FAILED;
    }
    recording->options = options;
    recording->target.root = recording->target.process.pidfd = recording->target.process.directory =
        -1;
    recording->joining = NO_JOINING;
    recording->perf = (struct perf_run){.says = -1, .control = -1, .ack = -1, .child = NO_CHILD};
    recording->command = (struct command){.child = NO_CHILD, .go = -1};
    recording->naming = NO_NAMING;
    recording->pipe_end = -1;
    int status = run(recording);
    clean_up(recording);
    free(recording);
    return status;
}
