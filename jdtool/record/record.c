#include "jdtool/base/array.h"
#include "jdtool/base/message.h"
#include "jdtool/base/output_file.h"
#include "jdtool/base/verb.h"
#include "jdtool/live/ask.h"
#include "jdtool/live/verbs.h"
#include "jdtool/record/recording.h"

#include <dirent.h>
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

/* A file that has several names: given when all of them were met in the profile, as those of an
 * image, which perf looks for below buildid/. */
struct linked {
    dev_t device;
    ino_t inode;
    nlink_t met;
};

struct giving {
    uid_t uid;
    gid_t gid;
    struct linked *list;
    uint32_t count, room;
};

static int give_contents(int directory, struct giving *giving, int depth);

/* Whether the file has a name that was not met; without memory, too. */
static bool has_further_names(struct giving *giving, const struct stat *status)
{
    uint32_t i = 0;
    while (i < giving->count &&
           (giving->list[i].inode != status->st_ino || giving->list[i].device != status->st_dev)) {
        i++;
    }
    if (i == giving->count) {
        if (array_reserve(&giving->list, giving->count, &giving->room, sizeof *giving->list)) {
            return true;
        }
        giving->list[giving->count++] =
            (struct linked){.device = status->st_dev, .inode = status->st_ino};
    }
    return ++giving->list[i].met < status->st_nlink;
}

/* Whoever gets it cannot reach it before the directory is his, which is the last to be given: what
 * was looked at here is what is given. */
static int give_one(int parent, const char *name, struct giving *giving, int depth)
{
    struct stat status;
    int fd = openat(parent, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    int err = fd < 0 || fstat(fd, &status) != 0 ? -errno : 0;
    if (!err && S_ISDIR(status.st_mode)) {
        int inner = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        err = inner < 0 ? -errno : give_contents(inner, giving, depth - 1);
    }
    bool shared = !err && !S_ISDIR(status.st_mode) && status.st_nlink > 1 &&
                  has_further_names(giving, &status);
    if (!err && !shared &&
        fchownat(fd, "", giving->uid, giving->gid, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) != 0) {
        err = -errno;
    }
    if (fd >= 0) {
        close(fd);
    }
    return err;
}

/* Closes the directory. */
static int give_contents(int directory, struct giving *giving, int depth)
{
    DIR *entries = fdopendir(directory);
    const struct dirent *entry;
    int err = !entries ? -errno : depth > 0 ? 0 : -ELOOP;
    while (!err && (entry = readdir(entries))) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            err = give_one(directory, entry->d_name, giving, depth);
        }
    }
    if (entries) {
        closedir(entries);
    } else {
        close(directory);
    }
    return err;
}

/*
 * Gives the open directory, which is called `path`, and what is in it to SUDO_UID and SUDO_GID,
 * when we are root and sudo has set them. Files that have names elsewhere, as the libraries of the
 * machine that perf links into a profile, are left alone. 0, also when there is nobody to give it
 * to, or a negative errno after a message.
 */
static int hand_over(int directory, const char *path)
{
    struct giving giving = {0};
    struct stat status;
    if (!output_caller(&giving.uid, &giving.gid)) {
        return 0;
    }
    int err = fstat(directory, &status) != 0 ? -errno : 0;
    if (!err && (status.st_uid != 0 || (status.st_mode & 077))) {
        err = -EPERM;
    }
    int inner = err ? -1 : openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    err = err ? err : inner < 0 ? -errno : give_contents(inner, &giving, DEPTH_MAX);
    err = err ? err : fchown(directory, giving.uid, giving.gid) != 0 ? -errno : 0;
    free(giving.list);
    if (err) {
        error_message("failed to give %s to user %u, who called sudo: %s", path,
                      (unsigned)giving.uid, strerror(-err));
    }
    return err;
}

/* What is chosen where the user has not: docs/benchmarks.md tells the cost. */
enum { FREQUENCY_COPIED = 99, FREQUENCY_FP = 997 };

/* ---- Before anything is made ---- */

static void choose_stacks(struct recording *recording)
{
    const struct record_options *options = recording->options;
    recording->copied = options->stacks != STACKS_FP && options->stacks != STACKS_NONE;
    recording->piped = recording->copied && !options->keep_raw && !options->no_inject;
    recording->discards = options->discard_raw || recording->piped;
    recording->frequency = options->frequency  ? options->frequency
                           : recording->copied ? FREQUENCY_COPIED
                                               : FREQUENCY_FP;
}

static int check_agent(void)
{
    if (access(live_agent(), R_OK) != 0) {
        error_message("failed to find the agent at %s: %s", live_agent(), strerror(errno));
        return STATUS_FAILED;
    }
    return STATUS_DONE;
}

static bool is_among(const struct recording *recording, pid_t pid)
{
    for (uint32_t i = 0; i < recording->jvm_count; i++) {
        if (recording->jvms[i].target.process.pid == pid) {
            return true;
        }
    }
    return false;
}

/* Whom sessions point to stays where it is: one that is not kept has all its places from its
 * beginning, and a profile finds its JVMs before it attaches. */
static int add_jvm(struct recording *recording, const struct target *target)
{
    struct recorded_jvm *place = NULL;
    for (uint32_t i = 0; i < recording->jvm_count && !place; i++) {
        place = recording->jvms[i].target.process.pid ? NULL : &recording->jvms[i];
    }
    if (!place && recording->start_reader && recording->jvm_count == RECORDING_LOOKED_AT_MAX) {
        error_message("profiling %d JVMs, the most that are possible", RECORDING_LOOKED_AT_MAX);
        return STATUS_FAILED;
    }
    if (!place && array_reserve(&recording->jvms, recording->jvm_count, &recording->jvm_room,
                                sizeof *recording->jvms)) {
        error_message("failed to start: %s", strerror(ENOMEM));
        return STATUS_FAILED;
    }
    place = place ? place : &recording->jvms[recording->jvm_count++];
    *place = (struct recorded_jvm){
        .target = *target, .joining = NO_JOINING, .guardian = {.ours = -1, .child = NO_CHILD}};
    return STATUS_DONE;
}

static int find_jvm(struct recording *recording, const char *word)
{
    struct target target;
    if (target_find(&target, word, &recording->waiting)) {
        return STATUS_FAILED;
    }
    if (is_among(recording, target.process.pid)) {
        target_close(&target);
        return STATUS_DONE;
    }
    int status = ask_prepare(&target) ? STATUS_FAILED : STATUS_DONE;
    status = status ? status : add_jvm(recording, &target);
    if (status) {
        target_close(&target);
    }
    return status;
}

/* Of -p: "4711,shop". */
static int find_named(struct recording *recording)
{
    char *words = strdup(recording->options->jvm);
    char *rest = words;
    int status = words ? STATUS_DONE : STATUS_FAILED;
    while (!status && rest) {
        status = find_jvm(recording, strsep(&rest, ","));
    }
    free(words);
    return status;
}

struct match {
    struct recording *recording;
    uint32_t refused;
};

/* One that cannot be attached to has said why, and is left out. */
static bool take_match(void *context, pid_t pid, const char *name)
{
    struct match *match = context;
    char word[16];
    snprintf(word, sizeof word, "%d", (int)pid);
    if (strstr(name, match->recording->options->match)) {
        match->refused += find_jvm(match->recording, word) != STATUS_DONE;
    }
    return !match->recording->waiting.ended_by;
}

static int find_jvms(struct recording *recording)
{
    const struct record_options *options = recording->options;
    struct match match = {.recording = recording};
    if (options->jvm) {
        return find_named(recording);
    }
    if (options->match) {
        target_walk(take_match, &match);
    }
    if (options->match && !recording->jvm_count && !match.refused) {
        error_message(*options->match ? "no JVM's name contains '%s' (jdperf jvms lists them)"
                                      : "no JVM runs%s that you have the rights for",
                      options->match);
    }
    return options->match && !recording->jvm_count ? STATUS_FAILED : STATUS_DONE;
}

/* What the agent reports is found by the place of its file, and that of libjvm.so: of one JVM. */
static int check_events(const struct recording *recording)
{
    if (recording->jvm_count > 1 && !event_list_is_empty(&recording->events)) {
        error_message("record: events can be recorded for one JVM at a time: name one, or use -a");
        return STATUS_USAGE;
    }
    return STATUS_DONE;
}

static int create_profile(struct recording *recording)
{
    const struct record_options *options = recording->options;
    struct profile_dir *profile = &recording->profile;
    char number[16];
    char *pids = recording_pids(recording);
    int status = profile_create(profile, &recording->guardian.shared->profile, options->out);
    int directory = profile->directory;
    if (status) {
        free(pids);
        return status;
    }
    char *command = quoted_command(options->command);
    snprintf(number, sizeof number, "%u", recording->frequency);
    int err = profile_set(directory, "command", command ? command : "");
    err = err ? err : profile_set(directory, "event", recording->event);
    err = err ? err : profile_set(directory, "frequency", options->period ? "" : number);
    err = err ? err : profile_set(directory, "stacks", recording_stacks(recording));
    if (recording->jvm_count) {
        err = err ? err : profile_set(directory, "pid", pids ? pids : "");
    }
    free(pids);
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
    if (recording->options->duration && !recording->jvm_count) {
        snprintf(duration, sizeof duration, ",duration=%u", recording->options->duration + 2);
    }
    event_list_agent_options(&recording->events, recording->options, events, sizeof events);
    /* Where the recording itself is not kept nothing is left that stock perf could put lines to;
     * and where nothing is, what a JVM leaves on its disk has a bound. */
    snprintf(text, size, "%s%s%s%s%s", recording->copied ? "methods=on" : "methods=off",
             recording->piped ? ",lines=tree" : "",
             recording->start_reader ? ",segment=8M,keep=4" : "", events, duration);
}

static struct guardian *guardian_of(struct recording *recording, struct recorded_jvm *jvm)
{
    bool shares = jvm == recording->jvms && !recording->start_reader;
    return shares ? &recording->guardian : &jvm->guardian;
}

static int attach(struct recording *recording, struct recorded_jvm *jvm)
{
    char more[300];
    struct guardian *guardian = guardian_of(recording, jvm);
    if (!guardian->shared && guard_start(guardian, &jvm->target)) {
        return STATUS_FAILED;
    }
    agent_options(recording, more, sizeof more);
    const struct joining_options options = {
        .dir = recording->start_reader ? NULL : recording->profile.path,
        .at = recording->start_reader ? NULL : recording->profile.at,
        .agent_options = recording->options->agent_options,
        .more = more,
    };
    int err =
        joining_start(&jvm->joining, &jvm->target, &recording->waiting, guardian->shared, &options);
    if (!err && jvm->joining.joined && recording->options->threads) {
        error_message("--threads: the running session may lack it");
    }
    struct event_list *events = &recording->events;
    if (!err && jvm->joining.joined && events->log) {
        error_message("--timeline: the running session may lack the JVM's log");
    }
    if (!err && jvm->joining.joined && (events->alloc || events->locks || events->virtual_waits)) {
        error_message("--alloc, --locks, --off-cpu of virtual threads: the running session lacks "
                      "them; left out. Run jdperf stop %d, then record again",
                      (int)jvm->target.process.pid);
        events->alloc = events->locks = events->virtual_waits = false;
    }
    return err ? STATUS_FAILED : STATUS_DONE;
}

/* Leaves the session and brings its files into the profile. */
static int detach(const struct recording *recording, struct recorded_jvm *jvm)
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
    return fetch_copy(&jvm->joining.fetch, recording->profile.at, writes_on) ? STATUS_FAILED
                                                                             : STATUS_DONE;
}

/* They end while the naming does: sessions are over, and the profile stays. */
static void release_guardians(struct recording *recording)
{
    guard_release(&recording->guardian);
    for (uint32_t i = 0; i < recording->jvm_count; i++) {
        guard_release(&recording->jvms[i].guardian);
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

/* perf samples by now. Where it looks at a part of the JVMs only, their time says nothing. */
static void start_clocks(struct recording *recording)
{
    const struct record_options *options = recording->options;
    if (perf_leaves_out(options->perf_options)) {
        return;
    }
    clocks_start(&recording->clocks, recording->profile.at, recording->command.child.pid,
                 options->all);
    for (uint32_t i = 0; i < recording->jvm_count; i++) {
        clocks_add(&recording->clocks, recording->jvms[i].target.process.pid);
    }
}

/* Those that have ended are not waited for any more. Whether all have. */
static bool jvms_ended(const struct recording *recording, struct pollfd *theirs)
{
    uint32_t ended = 0;
    for (uint32_t i = 0; i < recording->jvm_count; i++) {
        if (!process_lives(&recording->jvms[i].target.process)) {
            theirs[i].fd = -1;
        }
        ended += theirs[i].fd < 0;
    }
    return recording->jvm_count > 0 && ended == recording->jvm_count;
}

/* Whichever ends first ends the recording: perf, the command, the JVMs, the naming, the time, a
 * signal. */
static void wait_for_the_end(struct recording *recording, int64_t deadline)
{
    enum { OURS = 3 };
    uint32_t count = OURS + recording->jvm_count;
    struct pollfd *ends = calloc(count, sizeof *ends);
    if (!ends) {
        return; /* and the recording ends at once */
    }
    ends[0].fd = recording->perf.child.pidfd;
    ends[1].fd = recording->command.child.pidfd;
    ends[2].fd = recording->naming.child.pidfd;
    for (uint32_t i = 0; i < count; i++) {
        ends[i].fd = i < OURS ? ends[i].fd : recording->jvms[i - OURS].target.process.pidfd;
        ends[i].events = POLLIN;
    }
    int err;
    do {
        err = clocks_wait(&recording->clocks, &recording->waiting, ends, count, deadline);
    } while (!err && !ends[0].revents && !ends[1].revents && !ends[2].revents &&
             !jvms_ended(recording, ends + OURS));
    free(ends);
    if (err == -EINTR) {
        take_signal(recording);
        info_message(recording->interrupted ? "interrupted: the profile ends here"
                                            : "ended by a signal: the profile ends here");
    }
}

/* ---- Afterwards ---- */

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
        info_message("the command continues; jdperf ends with it");
    }
    while (child_wait(child, &recording->waiting, NO_DEADLINE, false) != 0) {
        take_signal(recording);
    }
    if (recording->interrupted) {
        return STATUS_DONE;
    }
    snprintf(number, sizeof number, "%d", child->status);
    (void)profile_set(recording->profile.directory, "command_status", number);
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
    char more[300];
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

/* A JVM that could not be attached to is left out where others can be. */
static int attach_all(struct recording *recording)
{
    int status = STATUS_DONE;
    uint32_t attached = 0;
    for (uint32_t i = 0; i < recording->jvm_count && !status; i++) {
        status = attach(recording, &recording->jvms[i]);
        attached += !status;
        if (status && recording->start_reader && !recording->waiting.ended_by) {
            recording_leave(recording, i);
            status = STATUS_DONE;
        }
    }
    return recording->start_reader && !attached ? STATUS_FAILED : status;
}

/* Our own sampler, while JVMs get the agent: unless it samples probes, of which some are in the
 * agent, or threads, whose events count from when they are opened. */
static int ready_sampler(struct recording *recording)
{
    if (!recording->own || recording->by_thread || recording->start_reader ||
        !event_list_is_empty(&recording->events)) {
        return STATUS_DONE;
    }
    int status = recording_open_pipe(recording);
    return status ? status : recording_ready_sampler(recording);
}

int recording_begin(struct recording *recording)
{
    const struct record_options *options = recording->options;
    const struct target *guarded = NULL;
    recording->has_terminal = tcgetattr(STDIN_FILENO, &recording->terminal) == 0;
    if (waiting_start(&recording->waiting) || (options->sampler == SAMPLER_PERF && perf_check()) ||
        (options->command[0] && command_check(options->command))) {
        return STATUS_FAILED;
    }
    int status = check_agent();
    status = status ? status : find_jvms(recording);
    if (status) {
        return status;
    }
    choose_stacks(recording);
    event_list_choose(&recording->events, options);
    status = check_events(recording);
    if (status) {
        return status;
    }
    recording->event = perf_choose_event(options->event);
    if (!recording->event) {
        return STATUS_FAILED;
    }
    recording_choose_sampler(recording);
    if (!recording->own || recording->by_thread) {
        perf_tell_of_kernel();
    }
    if (!recording->own && perf_check()) {
        return STATUS_FAILED;
    }
    if (!recording->start_reader) {
        status = profile_choose(&recording->profile, options->out);
        guarded = recording->jvm_count ? &recording->jvms->target : NULL;
    }
    if (status) {
        return status;
    }
    if (guard_start(&recording->guardian, guarded)) {
        return STATUS_FAILED;
    }
    if (!recording->start_reader) {
        status = create_profile(recording);
        if (!status) {
            recording_estimate(recording);
            status = start_command(recording);
        }
    }
    status = status ? status : ready_sampler(recording);
    status = status ? status : attach_all(recording);
    if (!status && options->all) {
        machine_look(&recording->machine, recording->profile.at);
    }
    if (!status) {
        recording_define_probes(recording);
    }
    return status ? status : recording_start_perf(recording);
}

static int run(struct recording *recording)
{
    int status = recording_begin(recording);
    if (status) {
        bool by_signal = recording->waiting.ended_by && status == STATUS_FAILED;
        return by_signal ? 128 + recording->waiting.ended_by : status;
    }
    int64_t deadline = recording->options->duration
                           ? deadline_in((int64_t)recording->options->duration * 1000)
                           : NO_DEADLINE;
    profile_settle(&recording->profile);
    start_clocks(recording);
    recording_tell(recording);
    if (recording->command.child.pidfd >= 0) {
        command_let_go(&recording->command);
    }
    profile_remove_older(&recording->profile); /* nobody waits for it */
    wait_for_the_end(recording, deadline);
    perf_stop_sampling(&recording->perf, &recording->waiting);
    clocks_finish(&recording->clocks);
    /* While it writes what it has. */
    for (uint32_t i = 0; i < recording->jvm_count; i++) {
        int fetched = detach(recording, &recording->jvms[i]);
        status = status ? status : fetched;
    }
    int ended_well = recording_end_perf(recording);
    status = ended_well ? ended_well : status;
    release_guardians(recording);
    if (recording->options->all) {
        machine_look(&recording->machine, recording->profile.at);
        machine_fetch(&recording->machine, recording->profile.at);
    }
    if (status == STATUS_DONE) {
        status = recording_name(recording);
    }
    int ended = command_status(recording);
    if (hand_over(recording->profile.directory, recording->profile.path)) {
        info_message("going on: it stays root's");
    }
    return ended ? ended : status;
}

int recording_join(struct recording *recording, pid_t pid)
{
    char word[16];
    snprintf(word, sizeof word, "%d", (int)pid);
    if (find_jvm(recording, word)) {
        return -ESRCH;
    }
    for (uint32_t i = 0; i < recording->jvm_count; i++) {
        struct recorded_jvm *jvm = &recording->jvms[i];
        if (jvm->target.process.pid != pid || jvm->guardian.shared) {
            continue;
        }
        if (attach(recording, jvm) || write(recording->more, &pid, sizeof pid) != sizeof pid) {
            recording_leave(recording, i);
            return -EIO;
        }
    }
    return 0;
}

void recording_leave(struct recording *recording, uint32_t place)
{
    struct recorded_jvm *jvm = &recording->jvms[place];
    (void)session_leave(&jvm->joining.session);
    guard_end(&jvm->guardian);
    fetch_close(&jvm->joining.fetch);
    target_close(&jvm->target);
    *jvm = (struct recorded_jvm){
        .target = NO_TARGET, .joining = NO_JOINING, .guardian = {.ours = -1, .child = NO_CHILD}};
}

void recording_free(struct recording *recording)
{
    perf_free(&recording->perf);
    event_list_let_go(&recording->events);
    if (recording->naming_in >= 0) {
        close(recording->naming_in);
    }
    if (recording->pipe_end >= 0) {
        close(recording->pipe_end);
    }
    if (recording->more) {
        close(recording->more);
    }
    naming_abort(&recording->naming);
    command_free(&recording->command);
    for (uint32_t i = 0; i < recording->jvm_count; i++) {
        (void)session_leave(&recording->jvms[i].joining.session);
    }
    if (recording->guardian.shared) {
        profile_undo(&recording->guardian.shared->profile);
    }
    guard_end(&recording->guardian);
    for (uint32_t i = 0; i < recording->jvm_count; i++) {
        guard_end(&recording->jvms[i].guardian);
        fetch_close(&recording->jvms[i].joining.fetch);
        target_close(&recording->jvms[i].target);
    }
    free(recording->jvms);
    free(recording->sampled);
    profile_dir_close(&recording->profile);
    machine_free(&recording->machine);
    clocks_free(&recording->clocks);
    free(recording->event);
    /* A command that was ended may have left the terminal without echo. */
    if (recording->has_terminal && recording->waiting.ended_by) {
        (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &recording->terminal);
    }
    free(recording);
}

struct recording *recording_new(const struct record_options *options)
{
    struct recording *recording = calloc(1, sizeof *recording);
    if (!recording) {
        error_message("failed to start: %s", strerror(ENOMEM));
        return NULL;
    }
    recording->options = options;
    recording->perf = (struct perf_run){.says = -1, .control = -1, .ack = -1, .child = NO_CHILD};
    recording->command = (struct command){.child = NO_CHILD, .go = -1};
    recording->naming = NO_NAMING;
    recording->profile = NO_PROFILE_DIR;
    recording->naming_in = recording->pipe_end = -1;
    return recording;
}

int record(const struct record_options *options)
{
    struct recording *recording = recording_new(options);
    int status = recording ? run(recording) : STATUS_FAILED;
    if (recording) {
        recording_free(recording);
    }
    return status;
}
