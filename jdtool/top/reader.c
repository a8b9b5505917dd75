#include "jdtool/top/reader.h"

#include "jdtool/base/message.h"
#include "jdtool/base/verb.h"
#include "jdtool/confined/confined.h"
#include "jdtool/pipeline/stream.h"
#include "jdtool/resolve/source_texts.h"
#include "jdtool/top/screen.h"
#include "jdtool/top/terminal.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

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
        error_message("failed to show samples: %s", strerror(ENOMEM));
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
        error_message("failed to start: %s", strerror(ENOMEM));
        return STATUS_FAILED;
    }
    int err = stream_run(&stream, &sink, 1, &result);
    screen_free(reader->screen);
    return err && !reader->is_over ? STATUS_FAILED : STATUS_DONE;
}

int reader_run(const struct reader_options *options)
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
