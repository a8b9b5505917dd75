#include "jdtool/base/descriptor.h"
#include "jdtool/base/text.h"
#include "jdtool/watch/watch_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

static double seconds(uint64_t ns)
{
    return (double)ns / 1e9;
}

static uint64_t used(int whose)
{
    struct rusage usage;
    getrusage(whose, &usage);
    return ((uint64_t)usage.ru_utime.tv_sec + (uint64_t)usage.ru_stime.tv_sec) *
               UINT64_C(1000000000) +
           ((uint64_t)usage.ru_utime.tv_usec + (uint64_t)usage.ru_stime.tv_usec) * 1000;
}

/* 0: there is none. */
static uint64_t child_cpu_ns(pid_t pid)
{
    uint64_t ns;
    return pid && process_cpu_time(pid, &ns) ? ns : 0;
}

uint64_t watch_cpu_ns(const struct watch *watch)
{
    return used(RUSAGE_SELF) + used(RUSAGE_CHILDREN) + child_cpu_ns(watch->slicing.child.pid) +
           child_cpu_ns(watch->keeper.child.pid) + child_cpu_ns(feed_process(watch->feed));
}

/* 0: there is none. */
uint64_t watch_rss_of(pid_t pid)
{
    char path[32];
    char text[128] = "";
    char *end;
    snprintf(path, sizeof path, "/proc/%d/statm", (int)pid);
    if (pid) {
        (void)descriptor_text(AT_FDCWD, path, text, sizeof text);
    }
    (void)strtoull(text, &end, 10);
    return strtoull(end, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
}

uint64_t watch_rss(const struct watch *watch)
{
    return watch_rss_of(getpid()) + watch_rss_of(watch->slicing.child.pid) +
           watch_rss_of(watch->keeper.child.pid) + watch_rss_of(feed_process(watch->feed));
}

static const char *service_of(const struct watched_process *jvm)
{
    const char *service = labels_get(&jvm->labels, "service_name");
    return service ? service : "?";
}

static struct watched_totals all_totals(const struct watch *watch)
{
    struct watched_totals all = watch->gone;
    for (size_t i = 0; i < watch->count; i++) {
        const struct watched_totals *totals = &watch->jvms[i]->totals;
        all.slices += totals->slices;
        all.samples += totals->samples;
        all.frames += totals->frames;
        all.unnamed += totals->unnamed;
    }
    return all;
}

static uint64_t paused_ns(const struct watch *watch)
{
    int64_t now = watch->paused_since ? now_ms() - watch->paused_since : 0;
    return watch->paused_ns + (uint64_t)now * 1000000;
}

/* ---- For people ---- */

static const char *plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

static void tell_jvm(FILE *out, const struct watched_process *jvm)
{
    const struct watched_totals *totals = &jvm->totals;
    fprintf(out, "JVM %d ", (int)jvm->process.pid);
    text_print(out, service_of(jvm));
    fprintf(out,
            ": %" PRIu64 " slice%s, %" PRIu64 " sample%s, %.2f %% of frames without a name, "
            "%.1f s of processor",
            totals->slices, plural(totals->slices), totals->samples, plural(totals->samples),
            totals->frames ? 100.0 * (double)totals->unnamed / (double)totals->frames : 0,
            seconds(totals->cpu_ns));
    if (jvm->one_in > 1) {
        fprintf(out, ", one sample in %u taken", jvm->one_in);
    }
    if (jvm->state == WATCHED_WAITS) {
        int64_t left = (jvm->next_try - now_ms()) / 1000;
        fprintf(out, "; not watched now, tried again in %d s", (int)(left > 0 ? left : 0));
    }
    if (jvm->state == WATCHED_ATTACHES) {
        fputs("; being attached to", out);
    }
    if (jvm->trouble[0]) {
        fputs(": ", out);
        text_print(out, jvm->trouble);
    }
    fputc('\n', out);
}

char *watch_status(void *context)
{
    struct watch *watch = context;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out) {
        return NULL;
    }
    double ran = (double)(now_ms() - watch->since) / 1000;
    fprintf(out,
            "watch: process %d, for %.0f s; %zu JVM%s, %" PRIu64 " ended\n"
            "cost: %.2f %% of a processor, %.1f MB; %" PRIu64 " sample%s lost",
            (int)getpid(), ran, watch->count, plural(watch->count), watch->ended,
            ran > 0 ? 100.0 * seconds(watch_cpu_ns(watch)) / ran : 0,
            (double)watch_rss(watch) / 1e6, watch->lost_before + watch->lost,
            plural(watch->lost_before + watch->lost));
    if (paused_ns(watch)) {
        fprintf(out, ", %.0f s paused", seconds(paused_ns(watch)));
    }
    fputc('\n', out);
    for (size_t i = 0; i < watch->count; i++) {
        tell_jvm(out, watch->jvms[i]);
    }
    if (watch->files) {
        uint64_t count;
        uint64_t bytes;
        slice_files_counts(watch->files, &count, &bytes);
        fprintf(out, "files: %" PRIu64 " in ", count);
        text_print(out, watch->options->files.directory);
        fprintf(out, ", %.1f MB; %" PRIu64 " could not be written\n", (double)bytes / 1e6,
                watch->file_failures);
    }
    struct push_counts counts;
    for (size_t i = 0; pusher_counts(watch->pusher, i, &counts); i++) {
        fputs("server: ", out);
        text_print(out, counts.url);
        fprintf(out,
                ": %" PRIu64 " sent, %.1f MB; %zu wait, %.1f MB; %" PRIu64 " dropped, %" PRIu64
                " refused, %" PRIu64 " failures",
                counts.sent, (double)counts.sent_bytes / 1e6, counts.waiting,
                (double)counts.waiting_bytes / 1e6, counts.dropped, counts.refused,
                counts.failures);
        if (counts.trouble[0]) {
            fputs(": ", out);
            text_print(out, counts.trouble);
        }
        fputc('\n', out);
    }
    (void)fclose(out);
    return text;
}

/* ---- For Prometheus ---- */

/* Values of labels: its text format escapes these three. */
static void put_value(FILE *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') {
            fputc('\\', out);
        }
        fputc(*text == '\n' ? ' ' : *text, out);
    }
}

static void put_family(FILE *out, const char *name, const char *type, const char *help)
{
    fprintf(out, "# HELP jdperf_watch_%s %s\n# TYPE jdperf_watch_%s %s\n", name, help, name, type);
}

static void put_one(FILE *out, const char *name, const char *type, const char *help, double value)
{
    put_family(out, name, type, help);
    fprintf(out, "jdperf_watch_%s %.17g\n", name, value);
}

enum server_number {
    SENT,
    SENT_BYTES,
    WAITING,
    WAITING_BYTES,
    DROPPED,
    REFUSED,
    FAILURES,
    NUMBERS
};

static double number_of(const struct push_counts *counts, enum server_number number)
{
    const double all[NUMBERS] = {
        [SENT] = (double)counts->sent,         [SENT_BYTES] = (double)counts->sent_bytes,
        [WAITING] = (double)counts->waiting,   [WAITING_BYTES] = (double)counts->waiting_bytes,
        [DROPPED] = (double)counts->dropped,   [REFUSED] = (double)counts->refused,
        [FAILURES] = (double)counts->failures,
    };
    return all[number];
}

static void put_servers(FILE *out, const struct watch *watch)
{
    static const struct {
        const char *name, *type, *help;
    } families[NUMBERS] = {
        [SENT] = {"pushed_total", "counter", "Profiles that the server took."},
        [SENT_BYTES] = {"pushed_bytes_total", "counter", "Bytes of them."},
        [WAITING] = {"spool_profiles", "gauge", "Profiles that wait for the server."},
        [WAITING_BYTES] = {"spool_bytes", "gauge", "Bytes of them."},
        [DROPPED] = {"dropped_total", "counter", "Profiles dropped since the spool was full."},
        [REFUSED] = {"refused_total", "counter", "Profiles that the server refused."},
        [FAILURES] = {"push_failures_total", "counter", "Requests that failed and are repeated."},
    };
    struct push_counts counts;
    for (int k = 0; watch->pusher && k < NUMBERS; k++) {
        put_family(out, families[k].name, families[k].type, families[k].help);
        for (size_t i = 0; pusher_counts(watch->pusher, i, &counts); i++) {
            fprintf(out, "jdperf_watch_%s{server=\"", families[k].name);
            put_value(out, counts.url);
            fprintf(out, "\"} %.17g\n", number_of(&counts, (enum server_number)k));
        }
    }
}

char *watch_metrics(void *context)
{
    struct watch *watch = context;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out) {
        return NULL;
    }
    uint64_t file_count;
    uint64_t file_bytes;
    struct watched_totals all = all_totals(watch);
    size_t watched = 0;
    size_t thinned = 0;
    for (size_t i = 0; i < watch->count; i++) {
        watched += watch->jvms[i]->state == WATCHED;
        thinned += watch->jvms[i]->state == WATCHED && watch->jvms[i]->one_in > 1;
    }
    slice_files_counts(watch->files, &file_count, &file_bytes);
    put_one(out, "jvms", "gauge", "JVMs that are watched.", (double)watched);
    put_one(out, "jvms_waiting", "gauge", "JVMs that could not be watched, and are tried again.",
            (double)(watch->count - watched));
    put_one(out, "jvms_thinned", "gauge",
            "JVMs of whose samples a part is taken, since their share of a processor was used up.",
            (double)thinned);
    put_one(out, "jvms_ended_total", "counter", "JVMs that have ended.", (double)watch->ended);
    put_one(out, "slices_total", "counter", "Profiles made.", (double)all.slices);
    put_one(out, "samples_total", "counter", "Samples in them.", (double)all.samples);
    put_one(out, "frames_total", "counter", "Frames of all samples.", (double)all.frames);
    put_one(out, "frames_unnamed_total", "counter", "Frames without a name.", (double)all.unnamed);
    put_one(out, "samples_lost_total", "counter", "Samples that the kernel had no room for.",
            (double)(watch->lost_before + watch->lost));
    put_one(out, "paused_seconds_total", "counter",
            "Time not sampled since the share of a processor was used up.",
            seconds(paused_ns(watch)));
    put_one(out, "cpu_seconds_total", "counter", "Processor time of all parts of the watch.",
            seconds(watch_cpu_ns(watch)));
    put_one(out, "resident_bytes", "gauge", "Memory of all parts of the watch.",
            (double)watch_rss(watch));
    put_one(out, "files", "gauge", "Profiles kept as files.", (double)file_count);
    put_one(out, "files_bytes", "gauge", "Bytes of them.", (double)file_bytes);
    put_servers(out, watch);
    (void)fclose(out);
    return text;
}
