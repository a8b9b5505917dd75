#include "jdtool/record/recorder.h"

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

const char *recorder_stacks(const struct recorder *recorder)
{
    switch (recorder->options->stacks) {
    case STACKS_FP:
        return "fp";
    case STACKS_NONE:
        return "none";
    case STACKS_KERNEL:
    case STACKS_COMPARE:
        return recorder->walks ? "kernel" : "copy";
    case STACKS_AUTO:
        return recorder->walks ? "auto" : "copy";
    default:
        return "copy";
    }
}

/* -F and -c are for all events, and would have perf drop most of those that are to be told each. */
static void add_event(struct recorder *recorder)
{
    const struct record_options *options = recorder->options;
    struct perf_run *perf = &recorder->perf;
    char text[16];
    if (!event_list_is_empty(&recorder->events)) {
        char *event = event_with_rate(recorder->event, recorder->frequency, options->period);
        perf->arguments.failed |= !event;
        WORDS_ADD(&perf->arguments, "-e", event ? event : recorder->event);
        free(event);
        return;
    }
    WORDS_ADD(&perf->arguments, "-e", recorder->event);
    if (options->period) {
        WORDS_ADD(&perf->arguments, "-c", options->period);
    } else {
        snprintf(text, sizeof text, "%u", recorder->frequency);
        WORDS_ADD(&perf->arguments, "-F", text);
    }
}

/* So much is enough for nearly all stacks of events, and each costs what is copied. */
enum { EVENT_STACK_SIZE = 16384 };

unsigned recorder_event_stack(const struct recorder *recorder, bool *by_reach)
{
    const struct record_options *options = recorder->options;
    bool is_less = options->stack_size_given || options->stack_size < EVENT_STACK_SIZE;
    *by_reach = recorder->copied && !options->stack_size_given;
    return !recorder->copied ? 0 : is_less ? options->stack_size : EVENT_STACK_SIZE;
}

static void add_events(struct recorder *recorder)
{
    bool by_reach;
    unsigned size = recorder_event_stack(recorder, &by_reach);
    event_list_arguments(&recorder->events, &recorder->perf, size, by_reach);
}

const char *recorder_buffer(const struct recorder *recorder)
{
    long processors = sysconf(_SC_NPROCESSORS_CONF);
    bool few = event_list_is_empty(&recorder->events) || processors > 32;
    return few ? "4M" : processors > 16 ? "8M" : processors > 8 ? "16M" : "32M";
}

void recorder_define_probes(struct recorder *recorder)
{
    struct event_list *events = &recorder->events;
    struct event_files files = {.root = -1, .agent_root = -1, .agent = live_agent()};
    char agent[PATH_MAX];
    char mapped[PATH_MAX];
    char libjvm[PATH_MAX];
    bool found;
    if (event_list_is_empty(events)) {
        return;
    }
    if (recorder->jvm_count) { /* one: several have no such events */
        const struct target *target = &recorder->jvms->target;
        files.root = target->root;
        if (target_agent(target, agent)) {
            bool gone = target_agent_gone(target, agent, mapped);
            files.agent = gone ? mapped : agent;
            files.agent_root = gone ? -1 : files.root;
        }
        found = target_libjvm(target, libjvm);
    } else {
        found = command_libjvm(recorder->options->command, libjvm);
    }
    files.libjvm = found ? libjvm : NULL;
    if (recorder->options->all && (events->alloc || events->locks)) {
        info_message("--alloc, --locks with -a: only JVMs whose agent has these options report "
                     "them (jdperf attach PID --agent-options alloc,locks)");
    }
    struct guarded *shared = recorder->guardian.shared;
    probes_name_group(events->group);
    memcpy(shared->probes, events->group, sizeof shared->probes);
    atomic_store(&shared->has_probes, true);
    event_list_define(events, &files);
    if (found && !recorder->jvm_count && (events->exceptions || events->timeline)) {
        (void)stat(libjvm, &recorder->clocks.libjvm);
    }
}

char *recorder_pids(const struct recorder *recorder)
{
    char *text = NULL;
    size_t size = 0;
    pid_t *list;
    size_t count = recorder_processes(recorder, &list);
    FILE *out = list ? open_memstream(&text, &size) : NULL;
    for (size_t i = 0; i < count && out; i++) {
        fprintf(out, "%s%d", i > 0 ? "," : "", (int)list[i]);
    }
    if (out) {
        fclose(out);
    }
    free(list);
    return text;
}

static void perf_arguments(struct recorder *recorder)
{
    const struct record_options *options = recorder->options;
    struct perf_run *perf = &recorder->perf;
    char text[PATH_MAX + 32];
    snprintf(text, sizeof text, "%s/buildid", recorder->profile.at);
    WORDS_ADD(&perf->arguments, perf_program());
    if (!recorder->start_reader) {
        WORDS_ADD(&perf->arguments, "--buildid-dir", text);
    }
    WORDS_ADD(&perf->arguments, "record");
    /* A named clock is what ties samples to the stamps in the dump. */
    WORDS_ADD(&perf->arguments, "-k", "mono");
    add_event(recorder);
    snprintf(text, sizeof text, "%s/perf.data", recorder->profile.at);
    WORDS_ADD(&perf->arguments, "-o", recorder->piped ? "-" : text);
    if (recorder->piped && !options->all) {
        /* Into a pipe perf tells of no build-ids but these, by which files are known again. Of all
         * processes nobody asks for them: see describe_events of the sampler for what that does to
         * others' recordings. Files are read while they are mapped, and known by their inodes;
         * so they are where the kernel cannot tell build-ids. */
        perf_add_build_ids(perf);
    }
    char *pids = recorder_pids(recorder);
    perf->arguments.failed |= !pids;
    if (options->all) {
        WORDS_ADD(&perf->arguments, "-a");
    } else {
        WORDS_ADD(&perf->arguments, PERF_OF_TASKS, "-p", pids ? pids : "");
    }
    free(pids);
    WORDS_ADD(&perf->arguments, "--proc-map-timeout", PERF_MAPS_TIMEOUT);
    if (options->stacks == STACKS_FP) {
        WORDS_ADD(&perf->arguments, "--call-graph", "fp");
    }
    if (recorder->copied) {
        snprintf(text, sizeof text, "dwarf,%u", options->stack_size);
        WORDS_ADD(&perf->arguments, "--call-graph", text);
    }
    bool others_files = false;
    for (uint32_t i = 0; i < recorder->jvm_count; i++) {
        others_files |= !recorder->jvms[i].target.same_files;
    }
    if (recorder->copied && !recorder->piped && others_files) {
        /* Stacks lead through files that no sample hits, and a container's are gone with it. */
        WORDS_ADD(&perf->arguments, "--buildid-all");
    }
    /* perf's own 512K hold eight copied stacks. Only root may have more than perf_event_mlock_kb.
     */
    if (options->buffer) {
        WORDS_ADD(&perf->arguments, "-m", options->buffer);
    } else if (recorder->copied && geteuid() == 0) {
        WORDS_ADD(&perf->arguments, "-m", recorder_buffer(recorder));
    }
    words_add_list(&perf->arguments, (const char *const *)options->perf_options);
    add_events(recorder); /* last: a filter of the user's is for his event */
}

void recorder_estimate(const struct recorder *recorder)
{
    const struct record_options *options = recorder->options;
    struct statvfs status;
    if (!recorder->copied || recorder->piped || statvfs(recorder->profile.at, &status) != 0) {
        return;
    }
    double rate = (double)sysconf(_SC_NPROCESSORS_ONLN) * recorder->frequency * options->stack_size;
    double space = (double)status.f_bavail * (double)status.f_frsize;
    if (rate * (options->duration ? options->duration : 60) >= space) {
        info_message("this may fill the disk, which has %.1f GB free: lower -d, -F or "
                     "--stack-size, omit --keep-raw, or use another -o DIR",
                     space / 1e9);
    }
}

static int start_perf(struct recorder *recorder)
{
    int status = STATUS_FAILED;
    /* The user's own perfconfig does not matter. The command has its environment already. */
    setenv("PERF_CONFIG", "/dev/null", 1);
    perf_arguments(recorder);
    if (perf_start(&recorder->perf, recorder->pipe_end)) {
        return STATUS_FAILED;
    }
    int err = perf_wait_until_it_samples(&recorder->perf, &recorder->waiting);
    if (err == -EINTR) {
        info_message("interrupted before the recording began");
        return 128 + recorder->waiting.ended_by;
    }
    if (err) {
        perf_end(&recorder->perf, &recorder->waiting);
        const struct live_process *process =
            recorder->jvm_count ? &recorder->jvms->target.process : NULL;
        if (process && !process_lives(process)) {
            error_message("process %d has ended before the recording began", (int)process->pid);
        } else {
            status = perf_explain_failure(&recorder->perf, recorder->event);
        }
        return status;
    }
    recorder_samples(recorder);
    return STATUS_DONE;
}

int recorder_start_perf(struct recorder *recorder)
{
    bool is_ready = recorder->perf.work != NULL;
    int status = is_ready ? STATUS_DONE : recorder_open_pipe(recorder);
    if (!status && recorder->own && !is_ready) {
        status = recorder_ready_sampler(recorder);
    }
    /* Ours says so before it writes, and fills no pipe that nobody reads yet; but not where a
     * command is held. */
    bool is_first = recorder->own && !recorder->command.child.pid;
    if (!status && is_first) {
        status = recorder_start_sampler(recorder);
    }
    status = status ? status : recorder_start_naming(recorder);
    if (!status && recorder->own && !is_first) {
        status = recorder_start_sampler(recorder);
    }
    return status || recorder->own ? status : start_perf(recorder);
}

void recorder_tell(const struct recorder *recorder)
{
    const struct record_options *options = recorder->options;
    char rate[64];
    char duration[48] = "";
    if (options->period) {
        snprintf(rate, sizeof rate, "every %s", options->period);
    } else {
        snprintf(rate, sizeof rate, "at %u Hz", recorder->frequency);
    }
    if (options->duration) {
        snprintf(duration, sizeof duration, ", for %u s", options->duration);
    }
    const struct event_list *events = &recorder->events;
    info_message("recording %s %s%s%s%s%s%s, stacks: %s%s%s", recorder->event, rate,
                 events->alloc ? ", allocations" : "", events->locks ? ", contended monitors" : "",
                 events->exceptions ? ", exceptions" : "", events->off_cpu ? ", waits" : "",
                 events->timeline || events->deopts ? ", the JVM's activity" : "",
                 recorder_stacks(recorder), recorder->piped ? " (unwound as they arrive)" : "",
                 duration);
    if (!options->command[0] && !options->duration) {
        info_message("Ctrl-C ends the recording");
    }
}

/* Children of the command that outlive it (daemons) would keep perf going. */
int recorder_end_perf(struct recorder *recorder)
{
    struct stat status;
    char path[PATH_MAX + 16];
    perf_end(&recorder->perf, &recorder->waiting);
    snprintf(path, sizeof path, "%s/perf.data", recorder->profile.at);
    if (!recorder->piped && (stat(path, &status) != 0 || status.st_size == 0)) {
        return perf_explain_failure(&recorder->perf, recorder->event);
    }
    perf_tell_words(&recorder->perf);
    return STATUS_DONE;
}
