#include "jdtool/base/array.h"
#include "jdtool/base/descriptor.h"
#include "jdtool/base/message.h"
#include "jdtool/base/others_file.h"
#include "jdtool/base/output_file.h"
#include "jdtool/base/verb.h"
#include "jdtool/live/ask.h"
#include "jdtool/live/kernel.h"
#include "jdtool/live/verbs.h"
#include "jdtool/record/recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Handing over ---- */

/* A profile that root made under sudo, given to whoever typed the command. */

/* A profile is some four deep. */
#define DEPTH_MAX 32

struct receiver {
    uid_t uid;
    gid_t gid;
};

static int give_contents(int directory, const struct receiver *receiver, int depth);

/* Whoever gets it cannot reach it before the directory is his, which is the last to be given: what
 * was looked at here is what is given. */
static int give_one(int parent, const char *name, const struct receiver *receiver, int depth)
{
    struct stat status = {0};
    int fd = openat(parent, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    int err = fd < 0 || fstat(fd, &status) != 0 ? -errno : 0;
    if (!err && S_ISDIR(status.st_mode)) {
        err = give_contents(fd, receiver, depth - 1);
    }
    bool shared = !S_ISDIR(status.st_mode) && status.st_nlink > 1;
    if (!err && !shared &&
        fchownat(fd, "", receiver->uid, receiver->gid, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) != 0) {
        err = -errno;
    }
    descriptor_close(fd);
    return err;
}

static int give_contents(int directory, const struct receiver *receiver, int depth)
{
    DIR *entries = directory_open(directory, ".");
    const struct dirent *entry;
    int err = !entries ? -errno : depth > 0 ? 0 : -ELOOP;
    while (!err && (entry = directory_next(entries))) {
        err = give_one(dirfd(entries), entry->d_name, receiver, depth);
    }
    directory_close(entries);
    return err;
}

/*
 * Gives the open directory, which is called `path`, and what is in it to SUDO_UID and SUDO_GID,
 * when we are root and sudo has set them. Files that have further names, as the libraries of the
 * machine that perf links into a profile, are left alone. 0, also when there is nobody to give it
 * to, or a negative errno after a message.
 */
static int hand_over(int directory, const char *path)
{
    struct receiver receiver;
    struct stat status;
    if (!output_caller(&receiver.uid, &receiver.gid)) {
        return 0;
    }
    int err = fstat(directory, &status) != 0 ? -errno : 0;
    if (!err && (status.st_uid != 0 || (status.st_mode & 077))) {
        err = -EPERM;
    }
    err = err ? err : give_contents(directory, &receiver, DEPTH_MAX);
    err = err ? err : fchown(directory, receiver.uid, receiver.gid) != 0 ? -errno : 0;
    return failed_to(err, "give %s to user %u, who called sudo", path, (unsigned)receiver.uid);
}

/* What is chosen where the user has not: docs/benchmarks.md tells the cost. */
enum { FREQUENCY_COPIED = 99, FREQUENCY_FP = 997 };

/* ---- Before anything is made ---- */

static void choose_stacks(struct recorder *recorder)
{
    const struct record_options *options = recorder->options;
    recorder->copied = options->stacks != STACKS_FP && options->stacks != STACKS_NONE;
    recorder->piped = recorder->copied && !options->keep_raw && !options->no_inject;
    recorder->discards = options->discard_raw || recorder->piped;
    recorder->frequency = options->frequency ? options->frequency
                          : recorder->copied ? FREQUENCY_COPIED
                                             : FREQUENCY_FP;
}

static int check_agent(void)
{
    if (access(live_agent(), R_OK) != 0) {
        failed_to(-errno, "find the agent at %s", live_agent());
        return STATUS_FAILED;
    }
    return STATUS_DONE;
}

static bool is_among(const struct recorder *recorder, pid_t pid)
{
    for (uint32_t i = 0; i < recorder->jvm_count; i++) {
        if (recorder->jvms[i].target.process.pid == pid) {
            return true;
        }
    }
    return false;
}

/* In the place of one that was left, or behind the others: *place. */
static int add_jvm(struct recorder *recorder, const struct target *target, uint32_t *place)
{
    *place = 0;
    while (*place < recorder->jvm_count && recorder->jvms[*place].target.process.pid) {
        ++*place;
    }
    bool is_new = *place == recorder->jvm_count;
    if (is_new && recorder->start_reader && recorder->jvm_count == RECORDING_LOOKED_AT_MAX) {
        error_message("profiling %d JVMs, the most that are possible", RECORDING_LOOKED_AT_MAX);
        return STATUS_FAILED;
    }
    if (is_new && ARRAY_RESERVE(recorder->jvms, recorder->jvm_count, recorder->jvm_room)) {
        failed_to(-ENOMEM, "start");
        return STATUS_FAILED;
    }
    recorder->jvm_count += is_new;
    recorder->jvms[*place] = (struct running_jvm){
        .target = *target, .joining = NO_JOINING, .guardian = {.ours = -1, .child = NO_CHILD}};
    /* They may have moved. */
    for (uint32_t i = 0; i < recorder->jvm_count; i++) {
        recorder->jvms[i].joining.session.target = &recorder->jvms[i].target;
    }
    return STATUS_DONE;
}

static int find_jvm(struct recorder *recorder, const char *word)
{
    struct target target;
    if (target_find(&target, word, &recorder->waiting)) {
        return STATUS_FAILED;
    }
    if (is_among(recorder, target.process.pid)) {
        target_close(&target);
        return STATUS_DONE;
    }
    int status = ask_prepare(&target) ? STATUS_FAILED : STATUS_DONE;
    uint32_t place;
    status = status ? status : add_jvm(recorder, &target, &place);
    if (status) {
        target_close(&target);
    }
    return status;
}

/* Of -p: "4711,shop". */
static int find_named(struct recorder *recorder)
{
    char *words = strdup(recorder->options->jvm);
    char *rest = words;
    int status = words ? STATUS_DONE : STATUS_FAILED;
    while (!status && rest) {
        status = find_jvm(recorder, strsep(&rest, ","));
    }
    free(words);
    return status;
}

struct match {
    struct recorder *recorder;
    uint32_t refused;
};

/* One that cannot be attached to has said why, and is left out. */
static bool take_match(void *context, pid_t pid, const char *name)
{
    struct match *match = context;
    char word[16];
    snprintf(word, sizeof word, "%d", (int)pid);
    if (target_name_has(name, match->recorder->options->match)) {
        match->refused += find_jvm(match->recorder, word) != STATUS_DONE;
    }
    return !match->recorder->waiting.ended_by;
}

static int find_jvms(struct recorder *recorder)
{
    const struct record_options *options = recorder->options;
    struct match match = {.recorder = recorder};
    if (options->jvm) {
        return find_named(recorder);
    }
    if (options->match) {
        target_walk(take_match, &match);
    }
    if (options->match && !recorder->jvm_count && !match.refused) {
        error_message(**options->match ? "no JVM's name contains '%s' (jdperf jvms lists them)"
                                       : "no JVM runs%s that you have the rights for",
                      *options->match);
    }
    return options->match && !recorder->jvm_count ? STATUS_FAILED : STATUS_DONE;
}

/* What the agent reports is found by the place of its file, and that of libjvm.so: of one JVM. */
static int check_events(const struct recorder *recorder)
{
    if (recorder->jvm_count > 1 && !event_list_is_empty(&recorder->events)) {
        error_message("record: events can be recorded for one JVM at a time: name one, or use -a");
        return STATUS_USAGE;
    }
    return STATUS_DONE;
}

static int create_profile(struct recorder *recorder)
{
    const struct record_options *options = recorder->options;
    struct profile_dir *profile = &recorder->profile;
    char number[16];
    char *pids = recorder_pids(recorder);
    int status = profile_create(profile, &recorder->guardian.shared->profile, options->out);
    int directory = profile->directory;
    if (status) {
        free(pids);
        return status;
    }
    char *command = quoted_command(options->command);
    snprintf(number, sizeof number, "%u", recorder->frequency);
    int err = profile_set(directory, "command", command ? command : "");
    err = err ? err : profile_set(directory, "event", recorder->event);
    err = err ? err : profile_set(directory, "frequency", options->period ? "" : number);
    err = err ? err : profile_set(directory, "stacks", recorder_stacks(recorder));
    if (recorder->jvm_count) {
        err = err ? err : profile_set(directory, "pid", pids ? pids : "");
    }
    free(pids);
    free(command);
    return failed_to(err, "write into %s", profile->path) ? STATUS_FAILED : STATUS_DONE;
}

/* ---- The session in a JVM that runs already ---- */

/* What the agent is told beside what the user says. */
static void agent_options(const struct recorder *recorder, char *text, size_t size)
{
    char duration[48] = "";
    char events[160];
    /* The agent would go on for the command's whole life. */
    if (recorder->options->duration && !recorder->jvm_count) {
        snprintf(duration, sizeof duration, ",duration=%u", recorder->options->duration + 2);
    }
    event_list_agent_options(&recorder->events, recorder->options, events, sizeof events);
    /* Where the recording itself is not kept nothing is left that stock perf could put lines to;
     * and where nothing is, what a JVM leaves on its disk has a bound. */
    snprintf(text, size, "%s%s%s%s%s", recorder->copied ? "methods=on" : "methods=off",
             recorder->piped ? ",lines=tree" : "",
             recorder->start_reader ? ",segment=8M,keep=4" : "", events, duration);
}

static struct guardian *guardian_of(struct recorder *recorder, struct running_jvm *jvm)
{
    bool shares =
        jvm == recorder->jvms && !recorder->start_reader && !recorder->options->command[0];
    return shares ? &recorder->guardian : &jvm->guardian;
}

/* A session that runs already was started for somebody else. */
static void take_what_it_has(struct recorder *recorder, struct running_jvm *jvm)
{
    int pid = (int)jvm->target.process.pid;
    const int *has = jvm->joining.fetch.beside;
    struct event_list *events = &recorder->events;
    fetch_find_rest(&jvm->joining.fetch);
    if (recorder->copied && has[FETCH_METHODS] < 0) {
        error_message("the running session lacks methods: interpreted frames have no names. Run "
                      "jdperf stop %d, then record again",
                      pid);
    }
    if (recorder->options->threads && has[FETCH_THREADS] < 0) {
        error_message("--threads: the running session lacks it");
    }
    if (events->log && has[FETCH_LOG] < 0) {
        error_message("--timeline: the running session lacks the JVM's log");
    }
    if (events->alloc || events->locks || events->virtual_waits) {
        error_message("--alloc, --locks, --off-cpu of virtual threads: the running session lacks "
                      "them; left out. Run jdperf stop %d, then record again",
                      pid);
        events->alloc = events->locks = events->virtual_waits = false;
    }
}

static int attach(struct recorder *recorder, struct running_jvm *jvm)
{
    char more[300];
    struct guardian *guardian = guardian_of(recorder, jvm);
    if (!guardian->shared && guard_start(guardian, &jvm->target, -1)) {
        return STATUS_FAILED;
    }
    agent_options(recorder, more, sizeof more);
    const struct joining_options options = {
        .dir = recorder->start_reader ? NULL : recorder->profile.path,
        .at = recorder->start_reader ? NULL : recorder->profile.at,
        .agent_options = recorder->options->agent_options,
        .more = more,
    };
    int err =
        joining_start(&jvm->joining, &jvm->target, &recorder->waiting, guardian->shared, &options);
    if (!err && jvm->joining.joined) {
        take_what_it_has(recorder, jvm);
    }
    return err ? STATUS_FAILED : STATUS_DONE;
}

/* Leaves the session and brings its files into the profile. */
static int detach(const struct recorder *recorder, struct running_jvm *jvm)
{
    char dump[PATH_MAX];
    bool lives = process_lives(&jvm->target.process);
    if (lives && jvm->joining.joined && !target_dump(&jvm->target, dump)) {
        info_message("the session ended before the recording did: later code has no name");
    }
    fetch_find_rest(&jvm->joining.fetch);
    if (session_leave(&jvm->joining.session)) {
        info_message("continuing with the existing dump");
    }
    /* Others may use the session still: it then writes on, but not into this profile. */
    bool writes_on = process_lives(&jvm->target.process) && target_dump(&jvm->target, dump);
    return fetch_copy(&jvm->joining.fetch, recorder->profile.at, writes_on) ? STATUS_FAILED
                                                                            : STATUS_DONE;
}

static void end_session(struct recorder *recorder, pid_t pid)
{
    struct target target;
    char dump[PATH_MAX];
    size_t length = strlen(recorder->profile.path);
    if (target_open(&target, pid)) {
        return;
    }
    if (target_listens(&target) && target_dump(&target, dump) &&
        strncmp(dump, recorder->profile.path, length) == 0 && dump[length] == '/') {
        struct live_session session;
        session_init(&session, &target, &recorder->waiting, NULL, live_agent());
        if (session_stop(&session) == 0) {
            info_message("process %d lives on without the agent; to record it: jdperf record %d",
                         (int)pid, (int)pid);
        }
    }
    target_close(&target);
}

/* JVMs that outlive the command, such as a build tool's daemon, would write into the profile for
 * as long as they live. Where the time ends the recording, their agents know it. */
static void end_sessions_of_daemons(struct recorder *recorder)
{
    const struct clocks *clocks = &recorder->clocks;
    bool command_ended =
        recorder->command.child.pidfd >= 0 && child_ended(&recorder->command.child);
    for (uint32_t i = 0; command_ended && i < clocks->count; i++) {
        if (!clocks->jvms[i].has_ended) {
            end_session(recorder, clocks->jvms[i].process.pid);
        }
    }
}

/* They end while the naming does: sessions are over, and the profile stays. */
static void release_guardians(struct recorder *recorder)
{
    guard_release(&recorder->guardian);
    for (uint32_t i = 0; i < recorder->jvm_count; i++) {
        guard_release(&recorder->jvms[i].guardian);
    }
}

/* ---- While it records ---- */

/* Ctrl-C has reached the command by itself; other signals are passed on. */
static void take_signal(struct recorder *recorder)
{
    recorder->interrupted |= recorder->waiting.ended_by == SIGINT;
    if (recorder->waiting.ended_by != SIGINT && recorder->command.child.pidfd >= 0) {
        child_signal(&recorder->command.child, recorder->waiting.ended_by);
    }
}

void recorder_samples(struct recorder *recorder)
{
    const struct record_options *options = recorder->options;
    recorder->deadline =
        options->duration ? deadline_in((int64_t)options->duration * 1000) : NO_DEADLINE;
    if (recorder->start_reader || perf_leaves_out(options->perf_options)) {
        return;
    }
    clocks_start(&recorder->clocks, recorder->profile.at, recorder->command.child.pid,
                 options->all);
    for (uint32_t i = 0; i < recorder->jvm_count; i++) {
        clocks_add(&recorder->clocks, recorder->jvms[i].target.process.pid);
    }
}

/* Those that have ended are not waited for any more. Whether all have that ran already. */
static bool jvms_ended(const struct recorder *recorder, struct pollfd *theirs, uint32_t count)
{
    uint32_t ended = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (!process_lives(&recorder->jvms[i].target.process)) {
            theirs[i].fd = -1;
        }
        ended += theirs[i].fd < 0;
    }
    return count > 0 && ended == count;
}

/* JVMs of the command that write no dump, though one is wanted, get the agent now. */
static void attach_more(struct recorder *recorder)
{
    struct target target;
    family_look(&recorder->family);
    while (!recorder->waiting.ended_by && family_next(&recorder->family, &target)) {
        int pid = (int)target.process.pid;
        uint32_t place;
        bool lives = true;
        info_message("process %d started without the agent: attaching to it", pid);
        if (recorder->jvm_count == COMMAND_JVMS_MAX || ask_prepare(&target) ||
            add_jvm(recorder, &target, &place)) {
            target_close(&target);
        } else if (attach(recorder, &recorder->jvms[place])) {
            lives = process_lives(&recorder->jvms[place].target.process);
            recorder_leave(recorder, place);
        } else {
            clocks_add_begun(&recorder->clocks, pid);
            continue;
        }
        if (lives) { /* else there is nothing to be done for it */
            info_message("  its generated code has no names (jdperf doctor %d)", pid);
        }
    }
}

/* How often the command's processes are looked at, in ms: ever less often while none begins. */
enum { LOOK_LEAST = 100, LOOK_MOST = 1000 };

/* Whichever ends first ends the recording: perf, the command, the JVMs, the naming, the time, a
 * signal. */
static void wait_for_the_end(struct recorder *recorder, int64_t deadline)
{
    enum { OURS = 3 };
    const bool has_command =
        recorder->command.child.pidfd >= 0 && !strstr(recorder->options->agent_options, "mode=");
    uint32_t jvm_count = recorder->jvm_count;
    uint32_t count = OURS + jvm_count;
    struct pollfd *ends = calloc(count + 1, sizeof *ends);
    if (!ends) {
        return; /* and the recording ends at once */
    }
    ends[0].fd = recorder->perf.child.pidfd;
    ends[1].fd = recorder->command.child.pidfd;
    ends[2].fd = recorder->naming.child.pidfd;
    for (uint32_t i = 0; i < count; i++) {
        ends[i].fd = i < OURS ? ends[i].fd : recorder->jvms[i - OURS].target.process.pidfd;
        ends[i].events = POLLIN;
    }
    int err;
    int64_t every = LOOK_LEAST;
    int64_t look = has_command ? deadline_in(every) : deadline;
    int64_t pack = recorder->piped ? deadline_in(recorder_pack(recorder)) : deadline;
    do {
        int64_t soon = look < pack ? look : pack;
        err = clocks_wait(&recorder->clocks, &recorder->waiting, ends, count,
                          soon < deadline ? soon : deadline);
        if (err != -ETIMEDOUT || soon >= deadline) {
            continue;
        }
        err = 0;
        if (soon == pack) {
            pack = deadline_in(recorder_pack(recorder));
        } else {
            attach_more(recorder);
            every = !family_is_quiet(&recorder->family) ? LOOK_LEAST
                    : every * 2 < LOOK_MOST             ? every * 2
                                                        : LOOK_MOST;
            look = deadline_in(every);
        }
    } while (!err && !ends[0].revents && !ends[1].revents && !ends[2].revents &&
             !jvms_ended(recorder, ends + OURS, jvm_count));
    free(ends);
    if (err == -EINTR) {
        take_signal(recorder);
        info_message(recorder->interrupted ? "interrupted: the profile ends here"
                                           : "ended by a signal: the profile ends here");
    }
}

/* Whether who takes the samples has ended before he was told to, and not well: killed for want of
 * memory, say. What he took until then is there. */
static bool sampler_failed(struct recorder *recorder)
{
    struct child *sampler = &recorder->perf.child;
    struct child *reader = &recorder->naming.child;
    bool reader_failed = child_ended(reader) && reader->status; /* which is told elsewhere */
    if (recorder->waiting.ended_by || !child_ended(sampler) || !sampler->status || reader_failed) {
        return false;
    }
    int signal = child_killed_by(sampler->status);
    error_message(signal
                      ? "signal %d ended the process that takes the samples: the profile ends here"
                      : "the process that takes the samples ended with status %d: the profile "
                        "ends here",
                  signal ? signal : sampler->status);
    return true;
}

/* ---- Afterwards ---- */

/* Waits for the command, which may outlive the recording. Its status, but 0 when the user ended
 * it. */
static int command_status(struct recorder *recorder)
{
    struct child *child = &recorder->command.child;
    char number[16];
    if (child->pidfd < 0) {
        return STATUS_DONE;
    }
    if (!child_ended(child)) {
        info_message("the command continues; jdperf ends with it");
    }
    while (child_wait(child, &recorder->waiting, NO_DEADLINE, false) != 0) {
        take_signal(recorder);
    }
    if (recorder->interrupted) {
        return STATUS_DONE;
    }
    snprintf(number, sizeof number, "%d", child->status);
    (void)profile_set(recorder->profile.directory, "command_status", number);
    if (child->status) {
        info_message("the command ended with status %d", child->status);
    }
    return child->status;
}

/* ---- All of it ---- */

static int start_command(struct recorder *recorder)
{
    const struct record_options *options = recorder->options;
    if (!options->command[0]) {
        return STATUS_DONE;
    }
    char more[300];
    char *text = calloc(1, SESSION_OPTIONS_MAX);
    int err = -ENOMEM;
    if (text) {
        agent_options(recorder, more, sizeof more);
        session_compose_options(text, options->agent_options, recorder->profile.path, more);
        err = command_start(&recorder->command, options->command, live_agent(), text,
                            options->stacks == STACKS_FP);
    }
    free(text);
    return err ? STATUS_FAILED : STATUS_DONE;
}

/* A JVM that could not be attached to is left out where others can be. */
static int attach_all(struct recorder *recorder)
{
    int status = STATUS_DONE;
    uint32_t attached = 0;
    for (uint32_t i = 0; i < recorder->jvm_count && !status; i++) {
        status = attach(recorder, &recorder->jvms[i]);
        attached += !status;
        if (status && recorder->start_reader && !recorder->waiting.ended_by) {
            recorder_leave(recorder, i);
            status = STATUS_DONE;
        }
    }
    return recorder->start_reader && !attached ? STATUS_FAILED : status;
}

/* Our own sampler, while JVMs get the agent: unless it samples probes, of which some are in the
 * agent, or threads, whose events count from when they are opened. */
static int ready_sampler(struct recorder *recorder)
{
    if (!recorder->own || recorder->by_thread || recorder->start_reader ||
        !event_list_is_empty(&recorder->events)) {
        return STATUS_DONE;
    }
    int status = recorder_open_pipe(recorder);
    return status ? status : recorder_ready_sampler(recorder);
}

int recorder_begin(struct recorder *recorder)
{
    const struct record_options *options = recorder->options;
    const struct target *guarded = NULL;
    recorder->has_terminal = tcgetattr(STDIN_FILENO, &recorder->terminal) == 0;
    if (waiting_start(&recorder->waiting) || (options->sampler == SAMPLER_PERF && perf_check()) ||
        (options->command[0] && command_check(options->command))) {
        return STATUS_FAILED;
    }
    int status = kernel_check_clock() ? STATUS_FAILED : check_agent();
    status = status ? status : find_jvms(recorder);
    if (status) {
        return status;
    }
    choose_stacks(recorder);
    event_list_choose(&recorder->events, options);
    status = check_events(recorder);
    if (status) {
        return status;
    }
    recorder->event = perf_choose_event(options->event);
    if (!recorder->event) {
        return STATUS_FAILED;
    }
    recorder_choose_sampler(recorder);
    if (recorder->is_user_alone) {
        tell_of_no_kernel();
    }
    if (!recorder->own && perf_check()) {
        return STATUS_FAILED;
    }
    if (!recorder->start_reader) {
        status = profile_choose(&recorder->profile, options->out);
        guarded = recorder->jvm_count ? &recorder->jvms->target : NULL;
    }
    if (status) {
        return status;
    }
    if (guard_start(&recorder->guardian, guarded, recorder->profile.parent)) {
        return STATUS_FAILED;
    }
    if (!recorder->start_reader) {
        status = create_profile(recorder);
        if (!status) {
            recorder_estimate(recorder);
            status = start_command(recorder);
        }
    }
    status = status ? status : ready_sampler(recorder);
    status = status ? status : attach_all(recorder);
    if (!status && options->all) {
        machine_look(&recorder->machine, recorder->profile.at);
    }
    if (!status) {
        recorder_define_probes(recorder);
    }
    return status ? status : recorder_start_perf(recorder);
}

static int run(struct recorder *recorder)
{
    int status = recorder_begin(recorder);
    if (status) {
        bool by_signal = recorder->waiting.ended_by && status == STATUS_FAILED;
        return by_signal ? 128 + recorder->waiting.ended_by : status;
    }
    profile_settle(&recorder->profile);
    recorder_tell(recorder);
    if (recorder->command.child.pidfd >= 0) {
        family_start(&recorder->family, recorder->command.child.pid);
        command_let_go(&recorder->command);
    }
    profile_remove_older(&recorder->profile); /* nobody waits for it */
    wait_for_the_end(recorder, recorder->deadline);
    bool is_cut = sampler_failed(recorder);
    perf_stop_sampling(&recorder->perf, &recorder->waiting);
    recorder->clocks.left_out = event_list_left_out(&recorder->events, recorder->options);
    clocks_finish(&recorder->clocks);
    /* While it writes what it has. */
    for (uint32_t i = 0; i < recorder->jvm_count; i++) {
        int fetched = detach(recorder, &recorder->jvms[i]);
        status = status ? status : fetched;
    }
    end_sessions_of_daemons(recorder);
    int ended_well = recorder_end_perf(recorder);
    status = ended_well ? ended_well : status;
    release_guardians(recorder);
    if (recorder->options->all) {
        machine_look(&recorder->machine, recorder->profile.at);
        machine_fetch(&recorder->machine, recorder->profile.at);
    }
    if (status == STATUS_DONE) {
        status = recorder_name(recorder);
    }
    int ended = command_status(recorder);
    if (hand_over(recorder->profile.directory, recorder->profile.path)) {
        info_message("going on: it stays root's");
    }
    status = status == STATUS_DONE && is_cut ? STATUS_FAILED : status;
    return ended ? ended : status;
}

int recorder_join(struct recorder *recorder, pid_t pid)
{
    char word[16];
    snprintf(word, sizeof word, "%d", (int)pid);
    if (find_jvm(recorder, word)) {
        return -ESRCH;
    }
    for (uint32_t i = 0; i < recorder->jvm_count; i++) {
        struct running_jvm *jvm = &recorder->jvms[i];
        if (jvm->target.process.pid != pid || jvm->guardian.shared) {
            continue;
        }
        if (attach(recorder, jvm) || write(recorder->more, &pid, sizeof pid) != sizeof pid) {
            recorder_leave(recorder, i);
            return -EIO;
        }
    }
    return 0;
}

void recorder_leave(struct recorder *recorder, uint32_t place)
{
    struct running_jvm *jvm = &recorder->jvms[place];
    (void)session_leave(&jvm->joining.session);
    guard_end(&jvm->guardian);
    fetch_close(&jvm->joining.fetch);
    target_close(&jvm->target);
    *jvm = (struct running_jvm){
        .target = NO_TARGET, .joining = NO_JOINING, .guardian = {.ours = -1, .child = NO_CHILD}};
}

void recorder_free(struct recorder *recorder)
{
    perf_free(&recorder->perf);
    event_list_let_go(&recorder->events);
    descriptor_close(recorder->naming_in);
    descriptor_close(recorder->pipe_end);
    if (recorder->more) {
        close(recorder->more);
    }
    naming_abort(&recorder->naming);
    command_free(&recorder->command);
    for (uint32_t i = 0; i < recorder->jvm_count; i++) {
        (void)session_leave(&recorder->jvms[i].joining.session);
    }
    if (recorder->guardian.shared) {
        profile_undo(&recorder->guardian.shared->profile);
    }
    guard_end(&recorder->guardian);
    for (uint32_t i = 0; i < recorder->jvm_count; i++) {
        guard_end(&recorder->jvms[i].guardian);
        fetch_close(&recorder->jvms[i].joining.fetch);
        target_close(&recorder->jvms[i].target);
    }
    for (uint32_t i = 0; i < recorder->packing_count; i++) {
        packing_free(recorder->packing[i]);
    }
    free((void *)recorder->packing);
    free(recorder->jvms);
    free(recorder->sampled);
    profile_dir_close(&recorder->profile);
    machine_free(&recorder->machine);
    clocks_free(&recorder->clocks);
    family_free(&recorder->family);
    free(recorder->event);
    /* A command that was ended may have left the terminal without echo. */
    if (recorder->has_terminal && recorder->waiting.ended_by) {
        (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &recorder->terminal);
    }
    free(recorder);
}

struct recorder *recorder_new(const struct record_options *options)
{
    struct recorder *recorder = calloc(1, sizeof *recorder);
    if (!recorder) {
        failed_to(-ENOMEM, "start");
        return NULL;
    }
    recorder->options = options;
    recorder->perf = NO_PERF;
    recorder->command = (struct command){.child = NO_CHILD, .go = -1};
    recorder->naming = NO_NAMING;
    recorder->profile = NO_PROFILE_DIR;
    recorder->naming_in = recorder->pipe_end = -1;
    return recorder;
}

int record(const struct record_options *options)
{
    struct recorder *recorder = recorder_new(options);
    int status = recorder ? run(recorder) : STATUS_FAILED;
    if (recorder) {
        recorder_free(recorder);
    }
    return status;
}
