/*
 * The basis of jdtool live: waits, child processes, leases, files of other users, the doctor's
 * findings.
 */
#include "test.h"

#include "jdtool/base/text.h"
#include "jdtool/doctor/doctor.h"
#include "jdtool/live/ask.h"
#include "jdtool/live/child.h"
#include "jdtool/live/fetch.h"
#include "jdtool/live/kernel.h"
#include "jdtool/live/session.h"
#include "jdtool/live/staging.h"
#include "jdtool/live/target.h"
#include "jdtool/live/wait.h"
#include "jdtool/look/image_cache.h"
#include "scratch.h"

#include <errno.h>
#include <glob.h>
#include <linux/openat2.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static struct waiting waiting;

/* ---- Waits ---- */

TEST_WITH(a_wait_ends_at_its_deadline, scratch_create, scratch_remove)
{
    struct waiting patient = {.signals = -1};
    int64_t from = now_ms();
    assert_int_equal(wait_for(&patient, NULL, 0, deadline_in(50), true), -ETIMEDOUT);
    assert_true(now_ms() - from >= 50);
    assert_int_equal(wait_for(&patient, NULL, 0, now_ms() - 1000, true), -ETIMEDOUT);
    assert_int_equal(wait_ms(&patient, 1), 0);
}

TEST_WITH(a_wait_tells_which_descriptor, scratch_create, scratch_remove)
{
    struct waiting patient = {.signals = -1};
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(write(ends[1], "x", 1), 1);
    struct pollfd both[] = {{.fd = -1, .events = POLLIN}, {.fd = ends[0], .events = POLLIN}};
    assert_int_equal(wait_for(&patient, both, 2, deadline_in(5000), true), 0);
    assert_int_equal(both[0].revents, 0);
    assert_true(both[1].revents & POLLIN);
    close(ends[0]);
    close(ends[1]);
}

/* Whether it came during the wait or before it. */
TEST_WITH(a_signal_is_not_missed, scratch_create, scratch_remove)
{
    raise(SIGTERM);
    assert_int_equal(wait_for(&waiting, NULL, 0, deadline_in(5000), false), -EINTR);
    assert_int_equal(waiting.ended_by, SIGTERM);
    assert_int_equal(waiting.count, 1);
    assert_int_equal(wait_ms(&waiting, 5000), -EINTR); /* it is remembered */
    assert_int_equal(wait_for(&waiting, NULL, 0, deadline_in(20), false), -ETIMEDOUT);
    raise(SIGINT);
    assert_int_equal(wait_for(&waiting, NULL, 0, deadline_in(5000), false), -EINTR);
    assert_int_equal(waiting.ended_by, SIGTERM); /* the first one counts */
    assert_int_equal(waiting.count, 2);
    waiting.ended_by = waiting.count = 0;
}

/* ---- Children ---- */

static int talk(const char *program, int64_t ms, char *answer, size_t size, int *status)
{
    char *const arguments[] = {"sh", "-c", (char *)program, NULL};
    struct child_options options = {.arguments = arguments};
    return child_talk(&options, &waiting, deadline_in(ms), answer, size, status);
}

TEST_WITH(a_child_is_heard_to_its_end, scratch_create, scratch_remove)
{
    char answer[32];
    int status;
    assert_int_equal(talk("echo one; echo two >&2; exit 7", 20000, answer, sizeof answer, &status),
                     0);
    assert_string_equal(answer, "one\ntwo\n");
    assert_int_equal(status, 7);
    /* What there is no room for is read all the same: nobody hangs in a write. */
    assert_int_equal(talk("i=0; while [ $i -lt 20000 ]; do echo 0123456789; i=$((i+1)); done",
                          60000, answer, sizeof answer, &status),
                     0);
    assert_int_equal(strlen(answer), sizeof answer - 1);
    assert_int_equal(talk("kill -9 $$", 20000, answer, sizeof answer, &status), 0);
    assert_int_equal(status, 128 + SIGKILL);
}

TEST_WITH(a_child_that_is_silent_is_killed, scratch_create, scratch_remove)
{
    char program[PATH_MAX + 64];
    char answer[32];
    int status;
    const char *file = scratch_path(state, "pid");
    snprintf(program, sizeof program, "echo $$ >%s; exec sleep 600", file);
    assert_int_equal(talk(program, 300, answer, sizeof answer, &status), -ETIMEDOUT);
    FILE *pid = fopen(file, "re");
    if (pid) { /* on a busy machine it had not the time to begin */
        long number = 0;
        if (fscanf(pid, "%ld", &number) == 1) { /* NOLINT(cert-err34-c) */
            assert_int_equal(kill((pid_t)number, 0), -1);
        }
        (void)fclose(pid);
    }
    char *const arguments[] = {"/nonexistent/program", NULL};
    struct child_options options = {.arguments = arguments};
    assert_int_not_equal(
        child_talk(&options, &waiting, deadline_in(5000), answer, sizeof answer, &status), 0);
}

/* Who asks another process waits no longer than that lives, but hears what was said before. */
TEST_WITH(a_child_ends_with_whom_it_asks, scratch_create, scratch_remove)
{
    char answer[32];
    int status;
    pid_t other = fork();
    if (other == 0) {
        (void)usleep(100000);
        _exit(0);
    }
    struct live_process process;
    assert_int_equal(process_open(other, &process), 0);
    char *const arguments[] = {"sh", "-c", "echo hello; exec sleep 600", NULL};
    struct child_options options = {.arguments = arguments, .others_end = process.pidfd};
    int64_t deadline = deadline_in(300000);
    assert_int_equal(child_talk(&options, &waiting, deadline, answer, sizeof answer, &status),
                     -ETIMEDOUT);
    assert_true(now_ms() < deadline - 200000);
    process_close(&process);
    assert_int_equal(waitpid(other, NULL, 0), other);
}

TEST_WITH(programs_are_found_as_a_shell_does, scratch_create, scratch_remove)
{
    char found[PATH_MAX];
    assert_true(program_find("sh", found));
    assert_int_equal(access(found, X_OK), 0);
    assert_false(program_exists("no-such-program-anywhere"));
    assert_false(program_exists(*state)); /* a directory */
    assert_true(program_exists("/bin/sh"));
}

/* Its number may be another process' by then. */
TEST_WITH(nobody_is_asked_in_place_of_one_that_ended, scratch_create, scratch_remove)
{
    char before[PATH_MAX], path[2 * PATH_MAX], program[2 * PATH_MAX];
    struct target target = NO_TARGET;
    const char *asked = scratch_path(state, "asked");
    snprintf(before, sizeof before, "%s", getenv("PATH"));
    snprintf(path, sizeof path, "%s:%s", (const char *)*state, before);
    snprintf(program, sizeof program, "#!/bin/sh\n: >%s\n", asked);
    scratch_write(scratch_path(state, "jattach"), program);
    assert_int_equal(chmod(scratch_path(state, "jattach"), 0700), 0);
    setenv("PATH", path, 1);
    pid_t pid = fork();
    if (pid == 0) {
        pause();
        _exit(0);
    }
    assert_int_equal(process_open(pid, &target.process), 0);
    target.uid = geteuid();
    assert_int_not_equal(ask_flag(&target, "AFlag", &waiting), -ESRCH);
    assert_int_equal(unlink(asked), 0);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(ask_flag(&target, "AFlag", &waiting), -ESRCH);
    assert_int_equal(access(asked, F_OK), -1);
    process_close(&target.process);
    setenv("PATH", before, 1);
}

/* ---- Leases ---- */

TEST_WITH(a_lease_lives_as_long_as_one_holds_it, scratch_create, scratch_remove)
{
    const char *path = scratch_path(state, "lease");
    int first = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    int second = open(path, O_RDWR | O_CLOEXEC);
    int looker = open(path, O_RDONLY | O_CLOEXEC);
    assert_false(lease_is_held(looker));
    assert_int_equal(lease_take(first), 0);
    assert_int_equal(lease_take(second), 0);
    assert_true(lease_is_held(looker));
    assert_false(lease_take_over(first)); /* the second still has his */
    close(second);
    assert_true(lease_is_held(looker));
    assert_true(lease_take_over(first)); /* the last one */
    int late = open(path, O_RDWR | O_CLOEXEC);
    assert_int_equal(lease_take(late), -EAGAIN); /* it is being ended */
    close(first);
    assert_false(lease_is_held(looker));
    close(late);
    close(looker);
}

/* ---- Files of others ---- */

static void need_openat2(void)
{
    struct open_how how = {.flags = O_PATH};
    int fd = (int)syscall(SYS_openat2, AT_FDCWD, ".", &how, sizeof how);
    if (fd < 0 && errno == ENOSYS) {
        print_message("skipped: openat2(2) is not known here, as to qemu-user before 8\n");
        skip();
    }
    close(fd);
}

/* What the kernel cannot tell while others rename (EAGAIN) is asked again. */
TEST_WITH(renames_elsewhere_refuse_nothing, scratch_create, scratch_remove)
{
    need_openat2();
    int directory = open(*state, O_PATH | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(mkdir(scratch_path(state, "in"), 0700), 0);
    assert_int_equal(mkdir(scratch_path(state, "in/first"), 0700), 0);
    pid_t renaming = fork();
    if (renaming == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        while (renameat(directory, "in/first", directory, "in/second") == 0 &&
               renameat(directory, "in/second", directory, "in/first") == 0) {
        }
        _exit(1);
    }
    int err = 0;
    for (int i = 0; i < 100000 && !err; i++) {
        int fd = open_resolved(directory, "in/../in/..", O_PATH | O_DIRECTORY, RESOLVE_BENEATH);
        err = fd < 0 ? fd : close(fd);
    }
    kill(renaming, SIGKILL);
    waitpid(renaming, NULL, 0);
    close(directory);
    assert_int_equal(err, 0);
}

TEST_WITH(only_regular_files_are_opened_and_through_no_link, scratch_create, scratch_remove)
{
    need_openat2();
    int directory = open(*state, O_PATH | O_DIRECTORY | O_CLOEXEC);
    close(open(scratch_path(state, "file"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    assert_int_equal(symlink("file", scratch_path(state, "link")), 0);
    assert_int_equal(symlink(".", scratch_path(state, "below")), 0);
    assert_int_equal(mkfifo(scratch_path(state, "fifo"), 0600), 0);
    int file = open_file_below(directory, "file", geteuid(), O_RDONLY);
    assert_true(file >= 0);
    close(file);
    assert_int_equal(open_file_below(directory, "link", geteuid(), O_RDONLY), -ELOOP);
    assert_int_equal(open_file_below(directory, "below/file", geteuid(), O_RDONLY), -ELOOP);
    assert_int_equal(open_file_below(directory, "../etc/passwd", geteuid(), O_RDONLY), -EXDEV);
    assert_int_equal(open_file_below(directory, "fifo", geteuid(), O_RDONLY), -EINVAL);
    assert_int_equal(open_file_below(directory, ".", geteuid(), O_RDONLY), -EINVAL);
    assert_int_equal(open_file_below(directory, "nothing", geteuid(), O_RDONLY), -ENOENT);
    if (geteuid() == 0) {
        assert_int_equal(chown(scratch_path(state, "file"), 65533, 65533), 0);
        assert_int_equal(open_file_below(directory, "file", 65534, O_RDONLY), -EPERM);
    }
    /* Where the kernel has no openat2. */
    assert_int_equal(open_below_by_steps(directory, "link", O_RDONLY), -ELOOP);
    assert_int_equal(open_below_by_steps(directory, "below/file", O_RDONLY), -ENOTDIR);
    assert_int_equal(open_below_by_steps(directory, "../etc/passwd", O_RDONLY), -EXDEV);
    assert_int_equal(open_below_by_steps(directory, "..", O_RDONLY), -EXDEV);
    assert_int_equal(open_below_by_steps(directory, "file/", O_RDONLY), -ENOTDIR);
    assert_int_equal(open_below_by_steps(directory, "nothing", O_RDONLY), -ENOENT);
    assert_int_equal(mkdir(scratch_path(state, "inner"), 0700), 0);
    assert_int_equal(rename(scratch_path(state, "file"), scratch_path(state, "inner/file")), 0);
    file = open_below_by_steps(directory, ".//inner/./file", O_RDONLY);
    assert_true(file >= 0);
    close(file);
    file = open_directory_in_by_mount(directory, "inner");
    assert_true(file >= 0);
    close(file);
    assert_int_equal(open_directory_in_by_mount(directory, "below"), -ENOTDIR);
    assert_int_equal(open_directory_in_by_mount(directory, "link"), -ENOTDIR);
    assert_int_equal(open_directory_in_by_mount(directory, ".."), -EXDEV);
    close(directory);
    directory = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(open_directory_in(directory, "proc"), -EXDEV);
    assert_int_equal(open_directory_in_by_mount(directory, "proc"), -EXDEV);
    close(directory);
}

/* 3 GB by its size, 8 KB by what it holds: so much is copied, and written. */
TEST_WITH(a_size_that_is_claimed_costs_nothing, scratch_create, scratch_remove)
{
    static const char end[] = "end";
    const off_t far = (off_t)3 << 30;
    struct stat status;
    char text[8] = "";
    struct fetch fetch = {
        .dump = open(scratch_path(state, "sparse"), O_RDWR | O_CREAT | O_CLOEXEC, 0600),
        .directory = open(*state, O_PATH | O_DIRECTORY | O_CLOEXEC),
        .beside = {-1, -1, -1},
        .name = "jit-7.dump",
        .owner = geteuid()};
    assert_int_equal(pwrite(fetch.dump, "head", 4, 0), 4);
    assert_int_equal(pwrite(fetch.dump, end, sizeof end, far), sizeof end);
    assert_int_equal(ftruncate(fetch.dump, far + far), 0);
    assert_int_equal(mkdir(scratch_path(state, "profile"), 0700), 0);
    assert_int_equal(fetch_copy(&fetch, scratch_path(state, "profile"), false), 0);
    fetch_close(&fetch);
    int fd = open(scratch_path(state, "profile/jit-7.dump"), O_RDONLY | O_CLOEXEC);
    assert_int_equal(fstat(fd, &status), 0);
    assert_true(status.st_blocks * 512 < 1 << 20);
    assert_true(pread(fd, text, sizeof text, far) >= (ssize_t)sizeof end);
    assert_string_equal(text, end);
    close(fd);
}

TEST_WITH(what_a_file_holds_is_copied_up_to_a_limit, scratch_create, scratch_remove)
{
    static char text[10000];
    static char back[sizeof text];
    int from = open(scratch_path(state, "from"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    int to = open(scratch_path(state, "to"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    memset(text, 'x', sizeof text);
    assert_int_equal(pwrite(from, text, sizeof text, 0), sizeof text);
    assert_int_equal(copy_file_data(from, to, sizeof text), 0);
    assert_int_equal(pread(to, back, sizeof back, 0), sizeof back);
    assert_memory_equal(text, back, sizeof text);
    assert_int_equal(ftruncate(to, 0), 0);
    assert_int_equal(copy_file_data(from, to, 100), -EFBIG);
    assert_int_equal(lseek(to, 0, SEEK_END), 100);
    close(from);
    close(to);
}

TEST_WITH(staging_directories_are_known_by_name, scratch_create, scratch_remove)
{
    assert_true(staging_is_name("jdperf-123.abcdEF09"));
    static const char *const others[] = {"jdperf-.abcdefgh",   "jdperf-12x.abcdefgh",
                                         "jdperf-123.",        "jdperf-123.../../etc",
                                         "jdperf-test.abcdef", "",
                                         "jdperf-123.ab/defgh"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (staging_is_name(others[i])) {
            fail_msg("taken for ours: %s", others[i]);
        }
    }
}

TEST_WITH(a_tree_is_removed_but_not_what_its_links_lead_to, scratch_create, scratch_remove)
{
    need_openat2();
    int directory = open(*state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(mkdir(scratch_path(state, "tree"), 0700), 0);
    assert_int_equal(mkdir(scratch_path(state, "kept"), 0700), 0);
    close(open(scratch_path(state, "kept/file"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    assert_int_equal(mkdir(scratch_path(state, "tree/below"), 0700), 0);
    assert_int_equal(symlink("../../kept", scratch_path(state, "tree/below/link")), 0);
    assert_int_equal(remove_tree(directory, "tree"), 0);
    assert_int_equal(access(scratch_path(state, "tree"), F_OK), -1);
    assert_int_equal(access(scratch_path(state, "kept/file"), F_OK), 0);
    close(directory);
}

/* ---- Options for the agent ---- */

static void compose(char *text, const char *options, const char *dir, const char *more)
{
    memset(text, 0, SESSION_OPTIONS_MAX);
    session_compose_options(text, options, dir, more);
}

TEST_WITH(the_users_options_come_first, scratch_create, scratch_remove)
{
    static char text[SESSION_OPTIONS_MAX];
    compose(text, "", "/p", "methods=on");
    assert_string_equal(text, "dir=/p,methods=on");
    compose(text, "methods=off,names=short", "/p", "methods=on,duration=3");
    assert_string_equal(text, "methods=off,names=short,dir=/p,duration=3");
    compose(text, "dir=/mine,methods", "/p", "methods=on");
    assert_string_equal(text, "dir=/mine,methods");
    compose(text, "method=x", NULL, "methods=on"); /* another key */
    assert_string_equal(text, "method=x,methods=on");
}

/* ---- The doctor ---- */

static const char *told(void (*tell)(struct doctor *doctor), bool bad)
{
    static char line[2048];
    char *text = NULL;
    size_t size = 0;
    struct doctor doctor = {.out = open_memstream(&text, &size), .check = "check"};
    tell(&doctor);
    (void)fclose(doctor.out);
    assert_int_equal(doctor.bad, bad);
    snprintf(line, sizeof line, "%s", text);
    free(text);
    return line;
}

#define STARTS(text, start) assert_int_equal(strncmp(text, start, strlen(start)), 0)
#define TELLS(name, call)                                                                          \
    static void name(struct doctor *doctor)                                                        \
    {                                                                                              \
        call;                                                                                      \
    }
TELLS(full_disk, doctor_tell_space(doctor, 99 << 20, "/d"))
TELLS(small_disk, doctor_tell_space(doctor, UINT64_C(2047) << 20, "/d"))
TELLS(big_disk, doctor_tell_space(doctor, UINT64_C(2) << 30, "/d"))
TELLS(small_cache, doctor_tell_cache(doctor, 1 << 30, "/c"))
TELLS(big_cache, doctor_tell_cache(doctor, (UINT64_C(1) << 30) + 1, "/c"))
TELLS(old_perf, doctor_tell_perf(doctor, "perf version 5.10.3\n"))
TELLS(perf_6, doctor_tell_perf(doctor, "perf version 6.1.192\n"))
TELLS(perf_7, doctor_tell_perf(doctor, "perf version 7.2\n"))
TELLS(no_perf, doctor_tell_perf(doctor, "WARNING: perf not found for kernel 6.1\n  more\n"))
TELLS(jdk_17, doctor_tell_jdk(doctor, 17))
TELLS(jdk_19, doctor_tell_jdk(doctor, 19))
TELLS(jdk_99, doctor_tell_jdk(doctor, 99))
TELLS(jdk_unknown, doctor_tell_jdk(doctor, 0))
TELLS(hostile, doctor_poor(doctor, "mend\033[2J it", "%s", "a\nBAD   check \033[2J"))

TEST_WITH(the_doctor_judges, scratch_create, scratch_remove)
{
    STARTS(told(full_disk, true), "BAD   check            99MB in /d -> free some space");
    STARTS(told(small_disk, false), "poor  check            2.0GB in /d");
    STARTS(told(big_disk, false), "ok    check            2.0GB in /d");
    STARTS(told(small_cache, false), "ok    check            /c holds 1.0GB\n");
    STARTS(told(big_cache, false), "poor ");
    STARTS(told(old_perf, false), "poor  check            5.10 cannot report");
    STARTS(told(perf_6, false), "ok    check            6.1; ");
    STARTS(told(perf_7, false), "ok    check            7.2\n");
    STARTS(told(no_perf, false),
           "poor  check            WARNING: perf not found for kernel 6.1: no");
    STARTS(told(jdk_17, false), "ok    check            JDK 17, tested: names, lines");
    STARTS(told(jdk_19, false), "ok    check            JDK 19; neighbouring versions are tested");
    STARTS(told(jdk_99, false), "poor ");
    STARTS(told(jdk_unknown, false), "poor ");
    const char *line = told(hostile, false);
    assert_null(strchr(line, '\033'));
    assert_ptr_equal(strchr(line, '\n'), line + strlen(line) - 1);
}

TEST_WITH(what_the_kernel_tells_is_read, scratch_create, scratch_remove)
{
    assert_int_equal(mkdir(scratch_path(state, "sys"), 0700), 0);
    assert_int_equal(mkdir(scratch_path(state, "sys/kernel"), 0700), 0);
    assert_int_equal(mkdir(scratch_path(state, "self"), 0700), 0);
    setenv("JDPERF_PROC", *state, 1);
    assert_int_equal(kernel_number("perf_event_paranoid", 4), 4); /* there is none */
    scratch_write(scratch_path(state, "sys/kernel/perf_event_paranoid"), "-1\n");
    assert_int_equal(kernel_number("perf_event_paranoid", 4), -1);
    assert_false(kernel_filters());
    scratch_write(scratch_path(state, "self/status"),
                  "NoNewPrivs:\t0\nSeccomp:\t2\nSeccomp_filters:\t1\n");
    assert_true(kernel_filters());
    unsetenv("JDPERF_PROC");
}

TEST_WITH(sizes_are_readable, scratch_create, scratch_remove)
{
    static const struct {
        uint64_t bytes;
        const char *text;
    } sizes[] = {
        {0, "0B"}, {1023, "1023B"}, {1536, "1.5KB"}, {20 << 20, "20MB"}, {UINT64_MAX, "16384PB"}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char text[TEXT_SIZE_MAX];
        text_size(sizes[i].bytes, text);
        assert_string_equal(text, sizes[i].text);
    }
}

TEST_WITH(weights_are_readable, scratch_create, scratch_remove)
{
    static const struct {
        const char *unit, *text;
        uint64_t weight;
        bool has_unit;
    } weights[] = {{"nanoseconds", "1.86 s", 1858585840, true},
                   {"bytes", "20MB", 20 << 20, true},
                   {"count", "20971520", 20 << 20, false}};
    for (size_t i = 0; i < sizeof weights / sizeof *weights; i++) {
        char text[TEXT_SIZE_MAX];
        assert_int_equal(text_weight(weights[i].weight, weights[i].unit, text),
                         weights[i].has_unit);
        assert_string_equal(text, weights[i].text);
    }
}

/* Where perf's tools look for a build-id stands a second link to the image; never outside of the
 * profile, where somebody has put a link in the way. */
TEST_WITH(images_are_found_by_build_id, scratch_create, scratch_remove)
{
    const char *profile = *state;
    const char *image = scratch_path(state, "perf.jit-java.so");
    glob_t found = {0};
    struct stat status;
    struct stat its;
    int directory = open(profile, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    int to = open(image, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(fstat(from, &status), 0);
    assert_int_equal(sendfile(to, from, NULL, (size_t)status.st_size), status.st_size);
    assert_int_equal(fstat(to, &status), 0);
    close(from);
    close(to);
    assert_int_equal(mkdir(scratch_path(state, "elsewhere"), 0700), 0);
    assert_int_equal(symlink("elsewhere", scratch_path(state, "buildid")), 0);
    image_cache_add(directory);
    assert_int_equal(glob(scratch_path(state, "elsewhere/*"), GLOB_PERIOD, NULL, &found), 0);
    assert_int_equal(found.gl_pathc, 2); /* . and .. */
    globfree(&found);

    assert_int_equal(unlink(scratch_path(state, "buildid")), 0);
    image_cache_add(directory);
    image_cache_add(directory); /* once more does nothing */
    const char *pattern = scratch_path(state, "buildid/.build-id/[0-9a-f][0-9a-f]/*/elf");
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    assert_int_equal(found.gl_pathc, 1);
    assert_int_equal(stat(found.gl_pathv[0], &its), 0);
    assert_int_equal(its.st_ino, status.st_ino);
    globfree(&found);

    /* A recording can call a file as it likes. */
    static const uint8_t id[20] = {1, 2, 3};
    struct image_copy copy = {.path = "/../escaped", .name = "elf", .id = id, .size = sizeof id};
    int elf = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    assert_int_not_equal(image_cache_copy(directory, elf, &copy), 0);
    assert_int_not_equal(access(scratch_path(state, "escaped"), F_OK), 0);
    assert_false(image_cache_has(directory, id, sizeof id));
    copy.path = "/lib/named";
    assert_int_equal(image_cache_copy(directory, elf, &copy), 0);
    assert_true(image_cache_has(directory, id, sizeof id));
    close(elf);
    close(directory);
}

/* ---- Names of JVMs ---- */

/* A program that holds a JVM goes by its own name, whatever it is called with. */
TEST_WITH(a_jvm_is_called_by_main_class_or_program, scratch_create, scratch_remove)
{
    char path[20000]; /* of Solr's class path */
    memset(path, '/', sizeof path);
    path[sizeof path - 1] = '\0';
    const struct {
        const char *program, *name;
        const char *option, *value; /* behind which the class is */
    } cases[] = {
        {"java", "Main x", "-cp", "classes"},
        {"/usr/lib/jvm/bin/java", "Main x", "-Xint", "-ea"},
        {"java-21", "Main x", "--enable-native-access", "ALL-UNNAMED"},
        {"java", "Main x", "-cp", path},
        {"java", "Main x", "@/tmp/cp_4fe1.argfile", "-ea"},
        {"java", "shop/Main Main x", "--module", "shop/Main"},
        {"javac", "javac -s -- -d out Main x", "-d", "out"},
        {"/opt/shop/bin/shop", "shop -s -- -d out Main x", "-d", "out"},
        {"bigsrv", "bigsrv -s -- -d out Main x", "-d", "out"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int ends[2];
        int executed[2];
        assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
        assert_int_equal(pipe2(executed, O_CLOEXEC), 0);
        pid_t pid = fork();
        if (pid == 0) {
            dup2(ends[0], 0);
            execl("/bin/sh", cases[i].program, "-s", "--", cases[i].option, cases[i].value, "Main",
                  "x", (char *)NULL); /* it waits for its commands */
            _exit(1);
        }
        char name[256];
        close(executed[1]);
        assert_int_equal(read(executed[0], name, 1), 0); /* it runs that program by now */
        struct live_process process;
        assert_int_equal(process_open(pid, &process), 0);
        process_java_name(&process, name, sizeof name);
        assert_string_equal(name, cases[i].name);
        process_close(&process);
        close(executed[0]);
        close(ends[0]);
        close(ends[1]);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
    }
}

int main(void)
{
    if (waiting_start(&waiting)) {
        return 1;
    }
    return tests_run(NULL, NULL);
}
