/* jdperf inject: perf.data and the dumps of a profile become perf.jit.data once more. */
#include "jdtool/base/descriptor.h"
#include "jdtool/base/message.h"
#include "jdtool/base/others_file.h"
#include "jdtool/base/text.h"
#include "jdtool/live/profile_dir.h"
#include "jdtool/live/staging.h"
#include "jdtool/live/verbs.h"
#include "jdtool/look/opened_profile.h"
#include "jdtool/look/perf_files.h"
#include "jdtool/record/naming.h"
#include "jdtool/record/perf_run.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ASIDE "before"

struct work {
    const struct verb *verb;
    struct opened_profile profile;
    struct waiting waiting;
    const char *directory;
    char **more; /* options of jdtool inject */
    bool by_perf;
    bool has_earlier; /* results, which are put aside */
};

/* ---- What an earlier naming has made ---- */

static bool is_result(const char *name)
{
    return strncmp(name, "perf.jit", 8) == 0 || strcmp(name, "scorecard.json") == 0 ||
           (strncmp(name, "jitted-", 7) == 0 && text_ends(name, ".so"));
}

static bool is_saved(const char *name)
{
    return strcmp(name, "samples.saved") == 0;
}

static bool is_any(const char *name)
{
    (void)name;
    return true;
}

/* Moves what is chosen from one directory to another, or removes it (to: -1). 0 or a negative
 * errno; sets *count. */
static int move_all(int from, int to, bool (*is_chosen)(const char *name), unsigned *count)
{
    DIR *entries = directory_open(from, ".");
    const struct dirent *entry;
    int err = entries ? 0 : -errno;
    while (!err && (entry = directory_next(entries))) {
        if (!is_chosen(entry->d_name)) {
            continue;
        }
        if (to < 0 ? unlinkat(from, entry->d_name, 0) != 0
                   : renameat(from, entry->d_name, to, entry->d_name) != 0) {
            err = errno == ENOENT ? 0 : -errno;
        }
        *count += !err;
    }
    directory_close(entries);
    return err;
}

static int open_aside(const struct work *work)
{
    return openat(work->profile.directory, ASIDE, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Unless the naming has succeeded; that of another one that was killed, too. */
static void put_back(const struct work *work)
{
    int profile = work->profile.directory;
    int aside = open_aside(work);
    unsigned count = 0;
    if (aside < 0) {
        return;
    }
    (void)move_all(profile, -1, is_result, &count);
    if (faccessat(aside, "samples.saved", F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
        (void)move_all(profile, -1, is_saved, &count);
    }
    (void)move_all(aside, profile, is_any, &count);
    close(aside);
    (void)unlinkat(profile, ASIDE, AT_REMOVEDIR);
}

/* perf saves no samples: those that are there stay. */
static int put_aside(struct work *work)
{
    int profile = work->profile.directory;
    unsigned count = 0;
    put_back(work);
    int err = mkdirat(profile, ASIDE, 0700) != 0 ? -errno : 0;
    int aside = err ? -1 : open_aside(work);
    err = !err && aside < 0 ? -errno : err;
    err = err ? err : move_all(profile, aside, is_result, &count);
    if (!err && !work->by_perf) {
        err = move_all(profile, aside, is_saved, &count);
    }
    descriptor_close(aside);
    failed_to(err, "write into %s", work->profile.path);
    work->has_earlier = count > 0;
    return err ? STATUS_FAILED : STATUS_DONE;
}

/* ---- Naming ---- */

static int by_jdtool(struct work *work)
{
    struct naming naming;
    size_t dump_count;
    int status = naming_of_file(&naming,
                                (struct naming_options){.profile = work->profile.path,
                                                        .directory = work->profile.directory,
                                                        .more = work->more},
                                &work->waiting, NULL, &dump_count);
    if (status == STATUS_BAD_PROFILE && dump_count == 0 && work->has_earlier) {
        error_message("the dumps of this profile are missing: its names are unchanged");
        status = STATUS_FAILED;
    }
    return status;
}

static int run_perf(struct work *work)
{
    char buildid[64];
    char in[64];
    char out[64];
    int fd = work->profile.directory;
    snprintf(buildid, sizeof buildid, "/proc/self/fd/%d/buildid", fd);
    snprintf(in, sizeof in, "/proc/self/fd/%d/perf.data", fd);
    snprintf(out, sizeof out, "/proc/self/fd/%d/perf.jit.data", fd);
    struct confined_program confined;
    struct perf_files *files = perf_files_list(&work->profile, "perf.data");
    if (!files) {
        failed_to(-ENOMEM, "look at %s", work->profile.path);
        return STATUS_FAILED;
    }
    perf_files_allow(files, &work->profile, fd, &confined);
    const char *const arguments[] = {
        perf_program(), "--buildid-dir", buildid, "inject", "--jit", "-i", in, "-o", out, NULL};
    const struct child_options options = {.arguments = (char *const *)arguments,
                                          .in = STDIN_FILENO,
                                          .out = STDOUT_FILENO,
                                          .err = STDERR_FILENO,
                                          .keep = &fd,
                                          .keep_count = 1,
                                          .death_signal = SIGKILL,
                                          .prepare = confined_prepare,
                                          .context = &confined};
    struct child child = NO_CHILD;
    setenv("PERF_CONFIG", "/dev/null", 1);
    int err = child_start(&child, &options);
    err = err ? err : child_wait(&child, &work->waiting, NO_DEADLINE, true);
    int status = err ? STATUS_FAILED : child.status;
    child_end(&child);
    confined_program_end(&confined);
    perf_files_free(files);
    return status;
}

static int by_perf(struct work *work)
{
    info_message("naming generated code with perf inject --jit");
    if (run_perf(work)) {
        (void)unlinkat(work->profile.directory, "perf.jit.data", 0);
        return STATUS_FAILED;
    }
    return STATUS_DONE;
}

static int name_again(struct work *work)
{
    char source[PATH_MAX + 8];
    int profile = work->profile.directory;
    int status = put_aside(work);
    if (!status) {
        status = work->by_perf ? by_perf(work) : by_jdtool(work);
    }
    if (status && status != STATUS_BAD_PROFILE) {
        put_back(work);
        return status;
    }
    (void)remove_tree(profile, ASIDE);
    snprintf(source, sizeof source, "%s/src", work->profile.path);
    (void)profile_set(profile, "injector", work->by_perf ? "perf" : "jdtool");
    if (!work->by_perf) {
        (void)profile_set(profile, "source_root", source);
    }
    return status;
}

/* ---- The command line ---- */

static int take_injector(const struct verb *verb, void *context, const char *name)
{
    struct work *work = context;
    (void)verb;
    work->by_perf = strcmp(name, "perf") == 0;
    if (!work->by_perf && strcmp(name, "jdtool") != 0) {
        error_message("unknown injector: %s (jdtool, perf)", name);
        return STATUS_USAGE;
    }
    return STATUS_DONE;
}

static int parse(struct work *work, int argc, char **argv)
{
    static char *nothing[] = {NULL};
    static const struct verb_option options[] = {OPTION_TAKE("injector", 0, take_injector),
                                                 OPTION_END};
    work->more = nothing;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--") == 0) { /* getopt would mix what is behind with the words */
            work->more = argv + i + 1;
            argc = i;
        }
    }
    int status = verb_options(work->verb, argc, argv, options, work);
    if (status) {
        return status;
    }
    if (argc - optind > 1) {
        return wrong_usage(work->verb, "one profile at a time: %s", argv[optind + 1]);
    }
    work->directory = optind < argc ? argv[optind] : PROFILE_DEFAULT_DIR;
    return STATUS_DONE;
}

static int run(const struct verb *verb, int argc, char **argv)
{
    struct work work = {.verb = verb, .profile = NO_PROFILE};
    int status = parse(&work, argc, argv);
    if (!status && work.by_perf && perf_check()) {
        status = STATUS_FAILED;
    }
    status = status ? status : opened_profile_open(work.directory, &work.profile);
    if (!status && !opened_profile_has(&work.profile, "perf.data")) {
        error_message("this profile has no perf.data: it was discarded; record again");
        status = STATUS_FAILED;
    }
    if (!status) {
        status = waiting_start(&work.waiting) ? STATUS_FAILED : name_again(&work);
    }
    opened_profile_close(&work.profile);
    return status;
}

const struct verb live_inject = {
    .name = "inject",
    .run = run,
    .hint = " (options of jdtool inject stand behind --)",
    .help = "usage: jdperf inject [DIR] [OPTION…] [-- JDTOOL-INJECT-OPTION…]\n"
            "\n"
            "Names the generated code of a recording: DIR/perf.data and the dumps become\n"
            "DIR/perf.jit.data. jdperf record does this by itself; repeat it to use other\n"
            "options.\n"
            "\n"
            "      --injector jdtool|perf  jdtool inject (default: one file for all code,\n"
            "                      inlined frames, a scorecard) or perf inject --jit\n"
            "\n"
            "Some options of jdtool inject: -- --leaf attributes self time to the innermost\n"
            "inlined method, -- --inline off leaves out inlined methods.\n",
};
