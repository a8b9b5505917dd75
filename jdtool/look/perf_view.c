#include "jdtool/look/perf_view.h"

#include "jdtool/base/descriptor.h"
#include "jdtool/base/message.h"
#include "jdtool/base/output_file.h"
#include "jdtool/base/text.h"
#include "jdtool/live/child.h"
#include "jdtool/live/staging.h"
#include "jdtool/look/image_cache.h"
#include "jdtool/record/perf_run.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- What perf needs ---- */

/*
 * perf asks addr2line for every address, which takes some 20 ms for each in a libjvm.so that has no
 * line information at all. Such a file is answered for at once.
 */
static const char quick_addr2line[] =
    "#!/bin/sh\n"
    "if [ \"$1\" = -e ] && ! readelf -SW \"$2\" 2>/dev/null | grep -q '\\.z\\{0,1\\}debug_line'\n"
    "then\n"
    "    while read -r _; do printf '??\\n??:0\\n'; done\n"
    "    exit 0\n"
    "fi\n"
    "exec \"$JDPERF_ADDR2LINE\" \"$@\"\n";

/* Puts it first on PATH. Without it perf is slower. */
static void add_addr2line(const struct perf_view *view)
{
    char found[PATH_MAX];
    const char *before = getenv("PATH");
    char *path = NULL;
    if (!program_find("addr2line", found)) {
        return;
    }
    int fd = openat(view->scratch, "addr2line", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
    size_t size = sizeof quick_addr2line - 1;
    if (fd >= 0 && write(fd, quick_addr2line, size) == (ssize_t)size && fchmod(fd, 0755) == 0 &&
        asprintf(&path, "%s:%s", view->path, before ? before : "/usr/bin:/bin") >= 0) {
        setenv("JDPERF_ADDR2LINE", found, 1);
        setenv("PATH", path, 1);
    }
    free(path);
    descriptor_close(fd);
}

static int make_scratch(struct perf_view *view)
{
    const char *directory = getenv("TMPDIR");
    directory = directory && *directory ? directory : "/tmp";
    view->place = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    snprintf(view->path, sizeof view->path, "%s/jdperf.XXXXXXXX", directory);
    if (view->place < 0 || !mkdtemp(view->path)) {
        failed_to(-errno, "make a directory in %s", directory);
        view->path[0] = '\0';
        return STATUS_FAILED;
    }
    view->scratch = open(view->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (view->scratch < 0) {
        failed_to(-errno, "open %s", view->path);
        return STATUS_FAILED;
    }
    add_addr2line(view);
    if (view->drop) {
        (void)!fchown(view->scratch, view->uid, view->gid);
    }
    setenv("TMPDIR", view->path, 1);
    return STATUS_DONE;
}

void perf_view_allow(struct perf_view *view, const char *paths)
{
    char *copy = paths ? strdup(paths) : NULL;
    for (char *rest = copy, *path; (path = path_list_next(&rest));) {
        confined_allow_path(&view->confined, *path ? path : ".");
    }
    free(copy);
}

/* The user has typed them: a file of that name is one that perf may read. */
static void allow_words(struct perf_view *view, char *const *words)
{
    for (; *words; words++) {
        const char *value = **words == '-' ? strchr(*words, '=') : NULL;
        confined_allow_path(&view->confined, value ? value + 1 : *words);
    }
}

static int list_files(struct perf_view *view)
{
    view->files = perf_files_list(view->profile, "perf.jit.data");
    if (!view->files) {
        failed_to(-ENOMEM, "look at %s", view->profile->path);
    }
    return view->files ? STATUS_DONE : STATUS_FAILED;
}

int perf_view_open(struct perf_view *view, struct look *look, const char *given, char *const *words)
{
    *view = (struct perf_view){.profile = &look->profile,
                               .held = -1,
                               .place = -1,
                               .scratch = -1,
                               .directory = -1,
                               .confined = {.rules = -1}};
    int status = perf_check() ? STATUS_FAILED : look_open_data(look, given);
    if (status) {
        return status;
    }
    opened_profile_tell_doubts(&look->profile);
    view->held = fcntl(look->profile.directory, F_DUPFD_CLOEXEC, 10);
    snprintf(view->data, sizeof view->data, "/proc/self/fd/%d/perf.jit.data", view->held);
    view->drop = output_caller(&view->uid, &view->gid) && look->profile.owner == view->uid;
    (void)signal(SIGPIPE, SIG_IGN); /* what is ours is removed, whoever reads what we print */
    (void)prctl(PR_SET_KEEPCAPS, view->drop, 0, 0, 0);
    /* The user's own configuration (percent-limit, order=caller) changes nothing here. */
    setenv("PERF_CONFIG", "/dev/null", 1);
    status = view->held < 0 || waiting_start(&view->waiting) ? STATUS_FAILED : make_scratch(view);
    status = status ? status : list_files(view);
    if (!status && opened_profile_is_ours(&look->profile)) {
        opened_profile_be_owner(&look->profile);
        image_cache_add(look->profile.directory);
        opened_profile_be_ourselves();
    }
    /* Who made it may be anybody: then it may be opened, and no more. */
    view->is_confined = !getenv(TRUST_VARIABLE) || !opened_profile_is_ours(&look->profile);
    if (!status && view->is_confined) {
        perf_files_allow(view->files, &look->profile, view->scratch, &view->confined);
        allow_words(view, words);
    }
    return status;
}

void perf_view_close(struct perf_view *view)
{
    if (view->place >= 0 && view->path[0]) {
        (void)remove_tree(view->place, strrchr(view->path, '/') + 1);
    }
    int all[] = {view->held, view->place, view->scratch, view->directory};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        descriptor_close(all[i]);
    }
    perf_files_free(view->files);
    confined_program_end(&view->confined);
}

/* ---- Running it ---- */

/* In perf's process. */
static int prepare(void *context)
{
    struct perf_view *view = context;
    if (view->directory >= 0 && fchdir(view->directory) != 0) {
        return STATUS_FAILED;
    }
    return view->is_confined ? confined_prepare(&view->confined) : 0;
}

static struct child_options options_of(struct perf_view *view, int out, int err)
{
    return (struct child_options){.in = STDIN_FILENO,
                                  .out = out,
                                  .err = err,
                                  .keep = &view->held,
                                  .keep_count = 1,
                                  .death_signal = SIGTERM,
                                  .drop = view->drop,
                                  .uid = view->uid,
                                  .gid = view->gid,
                                  .prepare = prepare,
                                  .context = view};
}

/* Inlined frames make stacks longer than perf's default limit of 127. */
static void put_words(const struct perf_view *view, const char *verb, const struct words *more,
                      struct words *words)
{
    char buildid[64];
    snprintf(buildid, sizeof buildid, "/proc/self/fd/%d/buildid", view->held);
    WORDS_ADD(words, perf_program(), "--buildid-dir", buildid, verb, "-i", view->data);
    if (strcmp(verb, "annotate") != 0) {
        WORDS_ADD(words, "--max-stack=1000");
    }
    words_add_list(words, (const char *const *)more->list);
    words->failed |= more->failed;
}

static bool begin(struct perf_view *view, const char *verb, struct words *more, struct words *words)
{
    put_words(view, verb, more, words);
    words_free(more);
    if (words->failed) {
        failed_to(-ENOMEM, "run perf %s", verb);
    }
    return !words->failed;
}

/*
 * Runs a verb of perf's on the recording, with further words, which are freed; what it says goes
 * to these descriptors. Its exit status, or one after a message.
 */
static int run_view(struct perf_view *view, const char *verb, struct words *more, int out, int err)
{
    struct words words = {0};
    struct child_options options = options_of(view, out, err);
    int status = STATUS_FAILED;
    if (begin(view, verb, more, &words)) {
        options.arguments = words.list;
        status = child_run(&options, &view->waiting);
    }
    words_free(&words);
    return status;
}

struct job {
    struct perf_view *view;
    int (*work)(void *context);
    void *context;
};

static int prepare_and_work(void *context)
{
    struct job *job = context;
    int status = prepare(job->view);
    return status ? status : job->work(job->context);
}

int perf_view_work(struct perf_view *view, int (*work)(void *context), void *context)
{
    char *const name[] = {(char *)"perf's helper", NULL};
    struct job job = {view, work, context};
    struct child_options options = options_of(view, STDOUT_FILENO, STDERR_FILENO);
    options.arguments = name;
    options.prepare = NULL;
    options.work = prepare_and_work;
    options.context = &job;
    return child_run(&options, &view->waiting);
}

/* ---- Reading what it prints ---- */

/* What is complete of the text goes to `take`. False: that has seen enough. */
static bool take_lines(char *text, size_t *size, perf_view_take *take, void *context)
{
    char *line = text;
    bool wants = true;
    for (char *end; wants && (end = memchr(line, '\n', *size - (size_t)(line - text)));) {
        *end = '\0';
        wants = take(context, line);
        line = end + 1;
    }
    *size -= (size_t)(line - text);
    memmove(text, line, *size);
    return wants;
}

/* A longer line than this is given in parts. */
#define LINE_MAX_SIZE ((size_t)256 * 1024)

/* Up to the end of what it prints. False: `take` has seen enough. */
static bool read_lines(struct perf_view *view, const struct child *child, int from,
                       perf_view_take *take, void *context)
{
    char *text = malloc(LINE_MAX_SIZE + 1);
    size_t size = 0;
    ssize_t n = 1;
    bool wants = text != NULL;
    while (wants && n > 0) {
        struct pollfd says = {.fd = from, .events = POLLIN};
        if (wait_for(&view->waiting, &says, 1, NO_DEADLINE, false) == -EINTR) {
            if (view->waiting.ended_by != SIGINT && view->waiting.ended_by != SIGQUIT) {
                child_signal(child, view->waiting.ended_by);
            }
            continue; /* it ends, and with it what it says */
        }
        n = read(from, text + size, LINE_MAX_SIZE - size);
        size += n > 0 ? (size_t)n : 0;
        if ((n <= 0 && size) || size == LINE_MAX_SIZE) {
            text[size++] = '\n';
        }
        wants = take_lines(text, &size, take, context);
    }
    free(text);
    return wants;
}

int perf_view_read(struct perf_view *view, const char *verb, struct words *more,
                   perf_view_take *take, void *context, int err)
{
    struct words words = {0};
    struct child child = NO_CHILD;
    int says[2] = {-1, -1};
    int failed = 0;
    bool wants = true;
    if (!begin(view, verb, more, &words) || pipe2(says, O_CLOEXEC) != 0) {
        failed = words.failed ? -ENOMEM : -errno;
    } else {
        struct child_options options = options_of(view, says[1], err);
        options.arguments = words.list;
        failed = child_start(&child, &options);
        close(says[1]);
    }
    if (!failed) {
        wants = read_lines(view, &child, says[0], take, context);
        failed = wants ? child_wait(&child, &view->waiting, NO_DEADLINE, true) : 0;
    }
    int status = !wants ? STATUS_DONE : failed ? STATUS_FAILED : child.status;
    child_end(&child);
    descriptor_close(says[0]);
    failed_to(failed, "run perf %s", verb);
    words_free(&words);
    return status;
}

/* ---- For the user ---- */

/* perf fills its columns with blanks. */
static bool print_trimmed(void *context, char *line)
{
    size_t size = strlen(line);
    (void)context;
    while (size > 0 && line[size - 1] == ' ') {
        size--;
    }
    return printf("%.*s\n", (int)size, line) >= 0;
}

/* What it complains about where it goes on with its usage, NUL-terminated in place. NULL: it does
 * not. */
static char *complaint(char *said)
{
    const char *usage = strstr(said, "Usage: perf");
    while (usage && usage > said && usage[-1] == ' ') {
        usage--;
    }
    if (!usage || (usage > said && usage[-1] != '\n')) {
        return NULL;
    }
    for (char *line; (line = strsep(&said, "\n"));) {
        line += strspn(line, " ");
        if (text_begins(line, "Error:")) {
            line += strlen("Error:");
            line += strspn(line, " ");
        }
        if (*line) {
            return line;
        }
    }
    return NULL;
}

int perf_view_show(struct perf_view *view, const char *verb, struct words *more, bool as_text)
{
    int says = memfd_create("perf", MFD_CLOEXEC);
    int status = as_text ? perf_view_read(view, verb, more, print_trimmed, NULL, says)
                         : run_view(view, verb, more, STDOUT_FILENO, says);
    char *said = perf_words(says);
    char *shown = said ? strdup(said) : NULL;
    const char *what = shown ? complaint(shown) : NULL;
    (void)fflush(stdout);
    if (what) {
        error_message("%s: perf %s says: %s (%s %s -h lists its options)", verb, verb, what,
                      perf_program(), verb);
        status = STATUS_USAGE;
    } else if (said) {
        fputs(said, stderr);
    }
    int number = status - 128;
    if (number == SIGILL || number == SIGABRT || number == SIGBUS || number == SIGFPE ||
        number == SIGSEGV) {
        /* 7.2.13 does at samples in a library whose debug package is installed (docs/jdks.md). */
        error_message("perf crashed; the profile is intact. Use jdperf report, flame, view or "
                      "export, which do not need perf");
    }
    free(shown);
    free(said);
    descriptor_close(says);
    return status;
}
