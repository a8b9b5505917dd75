/* Our own sampler in the place of perf record: when, and its start. */
#include "jdtool/base/clock.h"
#include "jdtool/base/descriptor.h"
#include "jdtool/record/recorder.h"

#include "jdtool/base/message.h"
#include "jdtool/base/text.h"
#include "jdtool/base/units.h"
#include "jdtool/base/verb.h"
#include "jdtool/walk/walker.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

/* What only perf has; NULL: nothing of it is asked for. */
static const char *perf_alone(struct recorder *recorder)
{
    const struct record_options *options = recorder->options;
    if (options->perf_options[0] || (options->period && !units_number(options->period, UINT32_MAX,
                                                                      &recorder->sampler.period))) {
        return "there are options of perf's";
    }
    const struct counter *event = &recorder->sampler.event;
    if (!event->is_known) {
        return "only perf has the event";
    }
    if (counter_is_software(event) &&
        (options->all || recorder->start_reader || !event_list_is_empty(&recorder->events))) {
        return "of what software counts it samples JVMs alone, and nothing else then";
    }
    if (options->stacks == STACKS_NONE) {
        return "--stacks none is perf's";
    }
    return NULL;
}

size_t recorder_processes(const struct recorder *recorder, pid_t **list)
{
    size_t count = 0;
    *list = calloc(recorder->jvm_count + 1, sizeof **list);
    for (uint32_t i = 0; i < recorder->jvm_count && *list; i++) {
        pid_t pid = recorder->jvms[i].target.process.pid;
        (*list)[count] = pid;
        count += pid != 0;
    }
    if (*list && !recorder->options->all && recorder->command.child.pid) {
        (*list)[count++] = recorder->command.child.pid;
    }
    return count;
}

/* By --stacks; what cannot be had is told then. */
static bool walks_are_wanted(const struct recorder *recorder)
{
    enum stacks stacks = recorder->options->stacks;
    return stacks == STACKS_KERNEL || stacks == STACKS_COMPARE;
}

/* perf knows copies of stacks, and no stack that was walked. */
static bool is_kept_for_perf(const struct recorder *recorder)
{
    return recorder->options->keep_raw || recorder->options->no_inject;
}

static bool walks_by_default(const struct recorder *recorder)
{
    const struct record_options *options = recorder->options;
    return options->stacks == STACKS_AUTO && !options->stack_size_given && !options->all &&
           !is_kept_for_perf(recorder) && !recorder->start_reader;
}

/* Events of Java code have smaller copies than the clock's samples (recorder_event_stack), which
 * end too early in what a program runs as it starts (an APM agent): 300 of them are many then. */
static bool has_small_copies(const struct event_list *events)
{
    return events->alloc || events->locks || events->exceptions || events->deopts;
}

/* What walks stacks, if that is asked for. Where that cannot be they are copied. */
static struct walker *new_walker(struct recorder *recorder)
{
    const struct record_options *options = recorder->options;
    bool at_once = walks_are_wanted(recorder) || has_small_copies(&recorder->events);
    const struct walker_options wanted = {.depth =
                                              options->depth ? options->depth : WALK_DEPTH_DEFAULT,
                                          .copied = options->depth ? 0 : options->stack_size,
                                          .after = at_once ? 0 : WALK_AFTER,
                                          .is_default = !walks_are_wanted(recorder),
                                          .compares = options->stacks == STACKS_COMPARE};
    const char *lacks = options->all                 ? "with -a that is not done"
                        : is_kept_for_perf(recorder) ? "perf could not read them"
                                                     : NULL;
    if (!recorder->walks) {
        return NULL;
    }
    struct walker *walker = lacks ? NULL : walker_new(&wanted);
    if (!walker) {
        recorder->walks = false;
        (void)profile_set(recorder->profile.directory, "stacks", recorder_stacks(recorder));
        tell_not_walked(lacks ? lacks : "there is no memory");
    }
    return walker;
}

/* Threads are sampled that often at least: half a period of a thread that is started is lost. */
enum { BY_THREAD_HZ = 990 };

/* How many times as often as asked for threads are sampled, one of which is kept. */
static unsigned times_by_thread(const struct recorder *recorder)
{
    unsigned wanted = recorder->frequency ? recorder->frequency : BY_THREAD_HZ;
    unsigned times = (BY_THREAD_HZ + wanted - 1) / wanted;
    unsigned allowed = perf_allowed_frequency(times * wanted) / wanted;
    return allowed ? allowed : 1;
}

/* Threads alone may be sampled where processors may not: those of the JVMs that run, or of the
 * command, by the clock. False: neither; or perf alone, by capabilities of its file, sees what they
 * do in the kernel. */
static bool choose_threads(struct recorder *recorder, const pid_t *processes, size_t count,
                           const char *why)
{
    bool is_better_by_perf =
        recorder->options->sampler == SAMPLER_AUTO && !sampler_sees_kernel() && perf_sees_kernel();
    recorder->by_thread = !is_better_by_perf && !recorder->options->all &&
                          !recorder->sampler.period && !recorder->start_reader &&
                          event_list_is_empty(&recorder->events) &&
                          !counter_is_software(&recorder->sampler.event) &&
                          !sampler_lacks_by_thread(processes, count);
    if (recorder->by_thread) {
        info_message("each thread is sampled by itself, which costs more: %s", why);
    }
    return recorder->by_thread;
}

static void choose_rate(struct recorder *recorder, const struct counter *event)
{
    unsigned period;
    unsigned allowed = perf_allowed_frequency(recorder->frequency);
    if (recorder->options->period) {
        if (units_number(recorder->options->period, UINT32_MAX, &period) &&
            counter_is_in_step(event, period, NS_PER_SECOND)) {
            info_message("a sample every %u ns is in step with the kernel's tick, and shares can "
                         "be wrong: rather -c %u",
                         period, period - period / 50 + 1);
        }
        return;
    }
    if (recorder->own && allowed < recorder->frequency) { /* perf says so itself */
        info_message("the kernel allows %u Hz (kernel.perf_event_max_sample_rate), not %u", allowed,
                     recorder->frequency);
        recorder->frequency = allowed;
    }
    unsigned apart = counter_frequency(event, recorder->frequency);
    if (apart < recorder->frequency) {
        info_message("%u Hz is in step with the kernel's tick, and shares would be wrong: %u Hz",
                     recorder->frequency, apart);
        recorder->frequency = apart;
    }
}

void recorder_choose_sampler(struct recorder *recorder)
{
    enum sampler_kind kind = recorder->options->sampler;
    const struct counter *event = &recorder->sampler.event;
    (void)counter_parse(recorder->event, &recorder->sampler.event);
    const char *why = kind == SAMPLER_PERF ? "" : perf_alone(recorder);
    if (!why) {
        pid_t *processes;
        size_t count = recorder_processes(recorder, &processes);
        why = processes ? sampler_lacks(processes, count) : "there is no memory";
        if (why && processes && choose_threads(recorder, processes, count, why)) {
            why = NULL;
        } else if (why && kind == SAMPLER_AUTO && !recorder->options->all) {
            info_message("threads that live for a few milliseconds have too few samples: %s", why);
        }
        free(processes);
    }
    recorder->own = !why;
    if (why && counter_is_software(event) && !recorder->options->period) {
        info_message("how many %s a sample stands for is the kernel's guess, and can be many times "
                     "wrong; with a period (-c 100) it is exact",
                     event->name);
    }
    recorder->is_user_alone =
        why ? !perf_sees_kernel() : recorder->by_thread && !sampler_sees_kernel();
    choose_rate(recorder, event);
    if (kind == SAMPLER_OWN && why) {
        info_message("--sampler own: %s; perf samples instead", why);
    }
    recorder->walks = (walks_are_wanted(recorder) || walks_by_default(recorder)) && recorder->own &&
                      !recorder->by_thread && !counter_is_software(event);
    if (walks_are_wanted(recorder) && !recorder->walks) {
        tell_not_walked(!recorder->own               ? "that needs our own sampler"
                        : counter_is_software(event) ? "that needs a clock, or the hardware's event"
                                                     : "that needs root or CAP_PERFMON");
    }
}

static int work(void *context)
{
    struct recorder *recorder = context;
    prctl(PR_SET_NAME, "jdperf-sampler");
    if (recorder->more) {
        close(recorder->more); /* that end is our parent's */
    }
    if (recorder->pipe_end >= 0) {
        close(recorder->pipe_end);  /* whose end is told by closing `out` */
        close(recorder->naming_in); /* and who reads ends when he likes */
    }
    recorder->sampler.go = recorder->perf.child_control;
    recorder->sampler.begun = recorder->perf.child_ack;
    recorder->sampler.out = STDOUT_FILENO;
    return sampler_run(&recorder->sampler) ? STATUS_FAILED : STATUS_DONE;
}

/* Copied stacks go through the pipe; what is not copied is kept, as perf.data. */
static int open_file(const struct recorder *recorder)
{
    return openat(recorder->profile.directory, "perf.data",
                  O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
}

/* Of what a sampler of ours has said, "jdperf: what failed\n"; NULL: nothing. */
static const char *last_line(char *said)
{
    size_t length = said ? strlen(said) : 0;
    if (length > 0 && said[length - 1] == '\n') {
        said[length - 1] = '\0';
    }
    char *line = said ? strrchr(said, '\n') : NULL;
    line = line ? line + 1 : said;
    return line && strncmp(line, "jdperf: ", 8) == 0 ? line + 8 : NULL;
}

/* What the recording says that it was made by, and pages are called: the command, or the main class
 * or jar of the JVM, without its arguments. */
static void describe(const struct recorder *recorder, struct words *words)
{
    char name[256] = "";
    WORDS_ADD(words, "jdperf", "record");
    words_add_list(words, (const char *const *)recorder->options->command);
    if (recorder->jvm_count == 1 && !recorder->start_reader) {
        process_java_name(&recorder->jvms->target.process, name, sizeof name);
        name[strcspn(name, " ")] = '\0';
    }
    if (*name) {
        words_add(words, "%s", basename(name));
    }
}

int recorder_ready_sampler(struct recorder *recorder)
{
    struct words words = {0};
    const struct record_options *options = recorder->options;
    struct perf_run *perf = &recorder->perf;
    size_t count = recorder_processes(recorder, &recorder->sampled);
    describe(recorder, &words);
    if (!recorder->sampled || words.failed) {
        words_free(&words);
        failed_to(-ENOMEM, "start");
        return STATUS_FAILED;
    }
    struct walker *walker = new_walker(recorder);
    const char *buffer = options->buffer                          ? options->buffer
                         : event_list_is_empty(&recorder->events) ? NULL
                                                                  : recorder_buffer(recorder);
    bool by_reach;
    unsigned event_stack = recorder_event_stack(recorder, &by_reach);
    recorder->sampler = (struct sampler_options){
        .processes = options->all ? NULL : recorder->sampled,
        .process_count = count,
        /* top shows JVMs, and need not wake whenever another program on the machine forks. */
        .is_for_each = recorder->start_reader != NULL,
        .is_held = recorder->command.child.pid != 0,
        .event = recorder->sampler.event,
        .period = recorder->sampler.period,
        .frequency = recorder->frequency,
        .by_thread = recorder->by_thread ? times_by_thread(recorder) : 0,
        .is_user_alone = recorder->is_user_alone,
        .stack_size = recorder->copied ? options->stack_size : 0,
        .walker = walker,
        .buffer = perf_buffer_bytes(buffer),
        .events = recorder->sampled_events,
        .event_count =
            event_list_get(&recorder->events, event_stack, by_reach, recorder->sampled_events),
        .command = words.list,
    };
    int more[2] = {-1, 0};
    if (recorder->start_reader && pipe2(more, O_CLOEXEC) == 0) {
        recorder->sampler.more = more[0];
        recorder->more = more[1];
    }
    perf->work = work;
    perf->context = recorder;
    int file = recorder->piped ? -1 : open_file(recorder);
    if (recorder->piped || file >= 0) {
        (void)perf_start(perf, recorder->piped ? recorder->pipe_end : file);
    }
    descriptor_close(file);
    descriptor_close(more[0]);
    walker_free(walker); /* the sampler has its own */
    words_free(&words);
    recorder->sampler.command = NULL;
    return STATUS_DONE;
}

int recorder_start_sampler(struct recorder *recorder)
{
    struct perf_run *perf = &recorder->perf;
    int err = perf_wait_until_it_samples(perf, &recorder->waiting);
    if (err == -EINTR) {
        info_message("interrupted before the recording began");
        return 128 + recorder->waiting.ended_by;
    }
    if (err) {
        char *said = perf_words(perf->says);
        const char *reason = last_line(said);
        info_message("%s; perf samples instead", reason ? reason : "our own sampler ended");
        free(said);
        perf_free(perf);
        recorder->own = recorder->walks = recorder->by_thread = false;
        if (recorder->more) {
            close(recorder->more);
            recorder->more = 0;
        }
    } else {
        event_list_let_go(&recorder->events);
        recorder_samples(recorder);
    }
    return STATUS_DONE;
}
