#include "jdtool/record/recording.h"

#include "jdtool/base/message.h"
#include "jdtool/base/verb.h"
#include "jdtool/live/verbs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

const char *recording_stacks(const struct recording *recording)
{
    switch (recording->options->stacks) {
    case STACKS_FP:
        return "fp";
    case STACKS_NONE:
        return "none";
    case STACKS_KERNEL:
    case STACKS_COMPARE:
        return recording->walks ? "kernel" : "copy";
    case STACKS_AUTO:
        return recording->walks ? "auto" : "copy";
    default:
        return "copy";
    }
}

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

unsigned recording_event_stack(const struct recording *recording, bool *by_reach)
{
    const struct record_options *options = recording->options;
    bool is_less = options->stack_size_given || options->stack_size < EVENT_STACK_SIZE;
    *by_reach = recording->copied && !options->stack_size_given;
    return !recording->copied ? 0 : is_less ? options->stack_size : EVENT_STACK_SIZE;
}

static void add_events(struct recording *recording)
{
    bool by_reach;
    unsigned size = recording_event_stack(recording, &by_reach);
    event_list_arguments(&recording->events, &recording->perf, size, by_reach);
}

const char *recording_buffer(const struct recording *recording)
{
    long processors = sysconf(_SC_NPROCESSORS_CONF);
    bool few = event_list_is_empty(&recording->events) || processors > 32;
    return few ? "4M" : processors > 16 ? "8M" : processors > 8 ? "16M" : "32M";
}

void recording_define_probes(struct recording *recording)
{
    struct event_list *events = &recording->events;
    struct event_files files = {.root = -1, .agent_root = -1, .agent = live_agent()};
    char agent[PATH_MAX];
    char mapped[PATH_MAX];
    char libjvm[PATH_MAX];
    bool found;
    if (event_list_is_empty(events)) {
        return;
    }
    if (recording->jvm_count) { /* one: several have no such events */
        const struct target *target = &recording->jvms->target;
        files.root = target->root;
        if (target_agent(target, agent)) {
            bool gone = target_agent_gone(target, agent, mapped);
            files.agent = gone ? mapped : agent;
            files.agent_root = gone ? -1 : files.root;
        }
        found = target_libjvm(target, libjvm);
    } else {
        found = command_libjvm(recording->options->command, libjvm);
    }
    files.libjvm = found ? libjvm : NULL;
    if (recording->options->all && (events->alloc || events->locks)) {
        info_message("--alloc, --locks with -a: only JVMs whose agent has these options report "
                     "them (jdperf attach PID --agent-options alloc,locks)");
    }
    struct guarded *shared = recording->guardian.shared;
    probes_name_group(events->group);
    memcpy(shared->probes, events->group, sizeof shared->probes);
    atomic_store(&shared->has_probes, true);
    event_list_define(events, &files);
}

char *recording_pids(const struct recording *recording)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    for (uint32_t i = 0; i < recording->jvm_count && out; i++) {
        pid_t pid = recording->jvms[i].target.process.pid;
        if (pid) {
            fprintf(out, "%s%d", ftell(out) > 0 ? "," : "", (int)pid);
        }
    }
    if (out && !recording->jvm_count) {
        fprintf(out, "%d", (int)recording->command.child.pid);
    }
    if (out) {
        fclose(out);
    }
    return text;
}

static void perf_arguments(struct recording *recording)
{
    const struct record_options *options = recording->options;
    struct perf_run *perf = &recording->perf;
    char text[PATH_MAX + 32];
    snprintf(text, sizeof text, "%s/buildid", recording->profile.at);
    perf_add(perf, perf_program(), NULL);
    if (!recording->start_reader) {
        perf_add(perf, "--buildid-dir", text, NULL);
    }
    perf_add(perf, "record", NULL);
    /* A named clock is what ties samples to the stamps in the dump. */
    perf_add(perf, "-k", "mono", NULL);
    add_event(recording);
    snprintf(text, sizeof text, "%s/perf.data", recording->profile.at);
    perf_add(perf, "-o", recording->piped ? "-" : text, NULL);
    if (recording->piped && !options->all) {
        /* Into a pipe perf tells of no build-ids but these, by which files are known again. Of all
         * processes nobody asks for them: see describe_events of the sampler for what that does to
         * others' recordings. Files are read while they are mapped, and known by their inodes;
         * so they are where the kernel cannot tell build-ids. */
        perf_add_build_ids(perf);
    }
    char *pids = recording_pids(recording);
    perf->failed |= !pids;
    if (options->all) {
        perf_add(perf, "-a", NULL);
    } else {
        perf_add(perf, PERF_OF_TASKS, "-p", pids ? pids : "", NULL);
    }
    free(pids);
    perf_add(perf, "--proc-map-timeout", PERF_MAPS_TIMEOUT, NULL);
    if (options->stacks == STACKS_FP) {
        perf_add(perf, "--call-graph", "fp", NULL);
    }
    if (recording->copied) {
        snprintf(text, sizeof text, "dwarf,%u", options->stack_size);
        perf_add(perf, "--call-graph", text, NULL);
    }
    bool others_files = false;
    for (uint32_t i = 0; i < recording->jvm_count; i++) {
        others_files |= !recording->jvms[i].target.same_files;
    }
    if (recording->copied && !recording->piped && others_files) {
        /* Stacks lead through files that no sample hits, and a container's are gone with it. */
        perf_add(perf, "--buildid-all", NULL);
    }
    /* perf's own 512K hold eight copied stacks. Only root may have more than perf_event_mlock_kb.
     */
    if (options->buffer) {
        perf_add(perf, "-m", options->buffer, NULL);
    } else if (recording->copied && geteuid() == 0) {
        perf_add(perf, "-m", recording_buffer(recording), NULL);
    }
    for (char **more = options->perf_options; *more; more++) {
        perf_add(perf, *more, NULL);
    }
    add_events(recording); /* last: a filter of the user's is for his event */
}

void recording_estimate(const struct recording *recording)
{
    const struct record_options *options = recording->options;
    struct statvfs status;
    if (!recording->copied || recording->piped || statvfs(recording->profile.at, &status) != 0) {
        return;
    }
    double rate =
        (double)sysconf(_SC_NPROCESSORS_ONLN) * recording->frequency * options->stack_size;
    double space = (double)status.f_bavail * (double)status.f_frsize;
    if (rate * (options->duration ? options->duration : 60) >= space) {
        info_message("this may fill the disk, which has %.1f GB free: lower -d, -F or "
                     "--stack-size, omit --keep-raw, or use another -o DIR",
                     space / 1e9);
    }
}

static int start_perf(struct recording *recording)
{
    int status = STATUS_FAILED;
    /* The user's own perfconfig does not matter. The command has its environment already. */
    setenv("PERF_CONFIG", "/dev/null", 1);
    perf_arguments(recording);
    if (perf_start(&recording->perf, recording->pipe_end)) {
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
        const struct live_process *process =
            recording->jvm_count ? &recording->jvms->target.process : NULL;
        if (process && !process_lives(process)) {
            error_message("process %d has ended before the recording began", (int)process->pid);
        } else {
            status = perf_explain_failure(words, recording->event);
        }
        free(words);
        return status;
    }
    return STATUS_DONE;
}

int recording_start_perf(struct recording *recording)
{
    bool is_ready = recording->perf.work != NULL;
    int status = is_ready ? STATUS_DONE : recording_open_pipe(recording);
    if (!status && recording->own && !is_ready) {
        status = recording_ready_sampler(recording);
    }
    status = status ? status : recording_start_naming(recording);
    if (!status && recording->own) {
        status = recording_start_sampler(recording);
    }
    return status || recording->own ? status : start_perf(recording);
}

void recording_tell(const struct recording *recording)
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
    info_message("recording %s %s%s%s%s%s%s, stacks: %s%s%s", recording->event, rate,
                 events->alloc ? ", allocations" : "", events->locks ? ", contended monitors" : "",
                 events->exceptions ? ", exceptions" : "", events->off_cpu ? ", waits" : "",
                 events->timeline || events->deopts ? ", the JVM's activity" : "",
                 recording_stacks(recording), recording->piped ? " (unwound as they arrive)" : "",
                 duration);
    if (!options->command[0] && !options->duration) {
        info_message("Ctrl-C ends the recording");
    }
}

/* Children of the command that outlive it (daemons) would keep perf going. */
int recording_end_perf(struct recording *recording)
{
    struct stat status;
    char path[PATH_MAX + 16];
    perf_end(&recording->perf, &recording->waiting);
    snprintf(path, sizeof path, "%s/perf.data", recording->profile.at);
    if (!recording->piped && (stat(path, &status) != 0 || status.st_size == 0)) {
        char *words = perf_words(recording->perf.says);
        int explained = perf_explain_failure(words, recording->event);
        free(words);
        return explained;
    }
    perf_tell_words(&recording->perf);
    return STATUS_DONE;
}
