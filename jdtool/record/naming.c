#include "jdtool/record/naming.h"

#include "jdtool/base/descriptor.h"
#include "jdtool/base/message.h"
#include "jdtool/base/text.h"
#include "jdtool/base/verb.h"
#include "jdtool/live/verbs.h"
#include "jdtool/record/machine.h"
#include "jdtool/record/perf_run.h"
#include "jdtool/score/processor_time.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Starting ---- */

int naming_start(struct naming *naming, const struct naming_options *options)
{
    struct words words = {0};
    const char *profile = options->profile;
    char held[PATH_MAX + 16];
    *naming = NO_NAMING;
    naming->profile = profile;
    naming->directory = options->directory;
    naming->from_pipe = options->in >= 0;
    (void)mkdirat(options->directory, "src", 0700);
    snprintf(held, sizeof held, "%d:%s", options->directory, profile);
    int *keep = calloc(options->keep_count + 1, sizeof *keep);
    if (keep) {
        keep[0] = options->directory;
        for (size_t i = 0; i < options->keep_count; i++) {
            keep[i + 1] = options->keep[i];
        }
    }
    WORDS_ADD(&words, "/proc/self/exe", "inject");
    words_add(&words, "--held=%s", held);
    WORDS_ADD(&words, "-i");
    words_add(&words, options->in >= 0 ? "-" : "%s/perf.data", profile);
    WORDS_ADD(&words, "-o");
    words_add(&words, "%s/perf.jit.data", profile);
    WORDS_ADD(&words, "--compress");
    char *sources = path_list_with(NULL, profile, "src");
    words_add(&words, "--source-path=%s", sources ? sources : "");
    words.failed |= !sources;
    free(sources);
    WORDS_ADD(&words, "--buildid-dir");
    words_add(&words, "%s/buildid", profile);
    WORDS_ADD(&words, "--scorecard");
    words_add(&words, "%s/scorecard.json", profile);
    WORDS_ADD(&words, "--processor-time");
    words_add(&words, "%s/" PROCESSOR_TIME_FILE, profile);
    WORDS_ADD(&words, "--save");
    words_add(&words, "%s/samples.saved", profile);
    for (size_t i = 0; i < options->dump_count; i++) {
        words_add(&words, "--dump=%s", options->dumps[i]);
    }
    words_add_list(&words, (const char *const *)options->more);
    naming->says = memfd_create("inject", MFD_CLOEXEC);
    int err = words.failed || !keep ? -ENOMEM : naming->says < 0 ? -errno : 0;
    if (!err) {
        struct child_options child_options = {
            .arguments = words.list,
            .in = options->in,
            .out = naming->says,
            .err = naming->says,
            .keep = keep,
            .keep_count = options->keep_count + 1,
            .own_group = true, /* it ends when what it reads does */
        };
        err = child_start(&naming->child, &child_options);
    }
    words_free(&words);
    free(keep);
    if (err) {
        failed_to(err, "start jdtool inject");
        naming_abort(naming);
    }
    return err;
}

/* ---- Its end ---- */

static void tell(const char *words)
{
    size_t length;
    for (const char *line; (line = text_line(&words, &length));) {
        size_t skipped = text_begins(line, "jdtool: ") ? 8 : 0;
        length -= skipped;
        detail_message("", "%.*s", (int)(length > 2000 ? 2000 : length), line + skipped);
    }
}

/* Waits, and shows the time on a terminal. -EINTR: it is to be broken off. */
static int wait_for_end(struct naming *naming, struct waiting *waiting, struct child *others)
{
    bool terminal = isatty(STDERR_FILENO);
    int64_t from = now_ms();
    int err = -ETIMEDOUT;
    bool shown = false;
    while (err == -ETIMEDOUT) {
        err = child_wait(&naming->child, waiting, deadline_in(terminal ? 200 : 60000), false);
        if (err == -EINTR && others && others->pidfd >= 0 && !child_ended(others)) {
            err = -ETIMEDOUT;
        } else if (err == -EINTR && naming->from_pipe && waiting->count == 1) {
            /* What came through a pipe cannot be named later. */
            info_message("naming generated code; press Ctrl-C again to skip it");
            err = -ETIMEDOUT;
        }
        if (err == -ETIMEDOUT && terminal && now_ms() - from > 400) {
            fprintf(stderr, "\rjdperf: naming generated code … %d s",
                    (int)((now_ms() - from) / 1000));
            fflush(stderr);
            shown = true;
        }
    }
    if (shown) {
        fputs("\r\033[K", stderr);
    }
    return err;
}

static bool is_bad(const struct naming *naming)
{
    char text[1024];
    (void)descriptor_text(naming->directory, "scorecard.json", text, sizeof text);
    return strstr(text, "\"verdict\": \"bad\"") != NULL;
}

static bool has_result(const struct naming *naming)
{
    struct stat status;
    return fstatat(naming->directory, "perf.jit.data", &status, AT_SYMLINK_NOFOLLOW) == 0 &&
           status.st_size > 0;
}

static int judge(struct naming *naming, const char *words, int64_t from)
{
    int status = naming->child.status;
    if (status == 0) {
        info_message("naming generated code: done in %d s", (int)((now_ms() - from) / 1000));
        tell(words);
        if (is_bad(naming)) {
            info_message("the profile is bad; see the scorecard above");
            return STATUS_BAD_PROFILE;
        }
        return STATUS_DONE;
    }
    error_message("failed to name generated code");
    tell(words);
    if (strstr(words, "No space left")) {
        error_message("the disk is full: free some space, then run jdperf inject %s",
                      naming->profile);
    }
    if (status == STATUS_USAGE) {
        return status;
    }
    /* There is a result all the same when no dump could be used. */
    return has_result(naming) ? STATUS_BAD_PROFILE : STATUS_FAILED;
}

int naming_finish(struct naming *naming, struct waiting *waiting, struct child *others)
{
    int64_t from = now_ms();
    int status = STATUS_FAILED;
    if (naming->child.pidfd < 0) {
        return status;
    }
    if (wait_for_end(naming, waiting, others) == 0) {
        char *words = perf_words(naming->says);
        status = judge(naming, words ? words : "", from);
        free(words);
    } else {
        status = 128 + waiting->ended_by;
        if (naming->from_pipe) {
            error_message("interrupted: the recording is lost");
        } else {
            info_message("interrupted; jdperf inject %s completes the profile", naming->profile);
        }
    }
    naming_abort(naming);
    return status;
}

int naming_of_file(struct naming *naming, struct naming_options options, struct waiting *waiting,
                   struct child *others, size_t *dump_count)
{
    char at[32];
    struct words dumps;
    int status = STATUS_FAILED;
    snprintf(at, sizeof at, "/proc/self/fd/%d", options.directory);
    if (dump_list_read(&dumps, at, options.profile) == 0) {
        options.in = -1;
        options.dumps = (const char *const *)dumps.list;
        options.dump_count = dumps.count;
        status =
            naming_start(naming, &options) ? STATUS_FAILED : naming_finish(naming, waiting, others);
    }
    *dump_count = dumps.count;
    words_free(&dumps);
    return status;
}

void naming_abort(struct naming *naming)
{
    child_end(&naming->child);
    descriptor_close(naming->says);
    naming->says = -1;
}
