/* CPU time of processes counts from the recording's start, and time that was missed is reported. */
#include "test.h"

#include "jdtool/base/clock.h"
#include "jdtool/record/clocks.h"
#include "jdtool/score/processor_time.h"

#include "tests/scratch.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static uint64_t own_time(void)
{
    return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

/* One that has had 20 ms, and stands still. */
static pid_t burnt(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        while (own_time() < 20000000) {
        }
        raise(SIGSTOP);
        _exit(0);
    }
    int status = 0;
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    assert_true(WIFSTOPPED(status));
    return pid;
}

static void kill_it(pid_t pid)
{
    siginfo_t info;
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
}

/* What the profile says of the one process that was looked at. */
static struct processor_time left(void **state, struct clocks *clocks)
{
    struct processor_time *times = NULL;
    unsigned left_out;
    clocks_finish(clocks);
    clocks_free(clocks);
    assert_int_equal(
        processor_times_read(scratch_path(state, PROCESSOR_TIME_FILE), &times, &left_out), 1);
    struct processor_time time = times[0];
    free(times);
    return time;
}

static struct clocks look_at_one(void **state, pid_t pid)
{
    struct clocks clocks = {0};
    clocks_start(&clocks, *state, 0, false);
    clocks_add(&clocks, pid);
    return clocks;
}

TEST_WITH(time_before_does_not_count, scratch_create, scratch_remove)
{
    pid_t pid = burnt();
    struct clocks clocks = look_at_one(state, pid);
    struct processor_time time = left(state, &clocks);
    kill_it(pid);
    waitpid(pid, NULL, 0);
    assert_int_equal(time.pid, pid);
    assert_true(time.is_known);
    assert_true(time.ns < 20000000);
    assert_int_equal(time.more, 0);
}

TEST_WITH(ended_and_not_reaped_is_exact, scratch_create, scratch_remove)
{
    pid_t pid = burnt();
    struct clocks clocks = look_at_one(state, pid);
    kill_it(pid);
    struct processor_time time = left(state, &clocks);
    waitpid(pid, NULL, 0);
    assert_true(time.is_known);
    assert_int_equal(time.more, 0);
}

TEST_WITH(reaped_tells_what_was_missed, scratch_create, scratch_remove)
{
    pid_t pid = burnt();
    struct clocks clocks = look_at_one(state, pid);
    kill_it(pid);
    waitpid(pid, NULL, 0);
    struct processor_time time = left(state, &clocks);
    assert_true(time.is_known);
    assert_true(time.more >= 1000000); /* a millisecond of one processor at least */
}

/* What it may have had until it was found gone; not until the recording's end, minutes later. */
TEST_WITH(nothing_is_missed_once_it_is_gone, scratch_create, scratch_remove)
{
    struct waiting waiting = {.signals = -1};
    struct pollfd descriptor;
    pid_t pid = burnt();
    int64_t before = now_ms();
    struct clocks clocks = look_at_one(state, pid);
    kill_it(pid);
    waitpid(pid, NULL, 0);
    while (!clocks.jvms[0].has_ended) {
        (void)clocks_wait(&clocks, &waiting, &descriptor, 0, deadline_in(200));
    }
    uint64_t most = (uint64_t)(now_ms() - before + 2) * 1000000;
    (void)clocks_wait(&clocks, &waiting, &descriptor, 0, deadline_in(200));
    struct processor_time time = left(state, &clocks);
    assert_true(time.is_known);
    assert_true(time.more <= most * (uint64_t)sysconf(_SC_NPROCESSORS_ONLN));
}

/* The command is held back until the recording begins, so it has begun before. */
TEST_WITH(the_command_is_the_jvm, scratch_create, scratch_remove)
{
    struct clocks clocks = {0};
    char path[256];
    pid_t pid = burnt();
    snprintf(path, sizeof path, "%s/jit-%d.dump", (const char *)*state, (int)pid);
    clocks_start(&clocks, *state, pid, false);
    FILE *dump = fopen(path, "we");
    assert_non_null(dump);
    assert_int_equal(fclose(dump), 0);
    struct processor_time time = left(state, &clocks);
    kill_it(pid);
    waitpid(pid, NULL, 0);
    assert_int_equal(time.pid, pid);
    assert_true(time.is_known);
    assert_true(time.ns >= 20000000);
}

/* The longer a recording has lasted, the less often are clocks looked at, but when a dump comes. */
TEST_WITH(a_dump_is_noticed, scratch_create, scratch_remove)
{
    struct clocks clocks = {0};
    struct waiting waiting = {.signals = -1};
    const struct itimerspec soon = {.it_value.tv_nsec = 300000000};
    struct pollfd ends[2] = {{.fd = timerfd_create(CLOCK_MONOTONIC, 0), .events = POLLIN}};
    char path[256];
    struct stat status;
    pid_t pid = burnt();
    snprintf(path, sizeof path, "%s/jit-%d.dump", (const char *)*state, (int)pid);
    clocks_start(&clocks, *state, pid, false);
    clocks.begun = clocks.jvms[0].since = now_ms() - 600000;
    assert_int_equal(stat(*state, &status), 0);
    clocks.listed = (uint64_t)status.st_mtim.tv_sec * NS_PER_SECOND;
    FILE *dump = fopen(path, "we");
    assert_non_null(dump);
    assert_int_equal(fclose(dump), 0);
    assert_int_equal(timerfd_settime(ends[0].fd, 0, &soon, NULL), 0);
    assert_int_equal(clocks_wait(&clocks, &waiting, ends, 1, NO_DEADLINE), 0);
    assert_true(clocks.jvms[0].dump != 0);
    clocks_free(&clocks);
    close(ends[0].fd);
    kill_it(pid);
    waitpid(pid, NULL, 0);
}

/* A JVM in a PID namespace that the command has made: its dump bears another number than ours. */
TEST_WITH(one_in_a_namespace, scratch_create, scratch_remove)
{
    struct clocks clocks = {0};
    char path[256];
    int says[2];
    pid_t pids[2] = {0};
    snprintf(path, sizeof path, "%s/jit-1.dump", (const char *)*state);
    assert_int_equal(pipe(says), 0);
    clocks_start(&clocks, *state, getpid(), false);
    pid_t helper = fork();
    if (helper == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        bool can = unshare(CLONE_NEWPID) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWPID) == 0;
        pid_t pid = can ? fork() : 0;
        if (can && pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
            bool is = fd >= 0 && mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0) != MAP_FAILED;
            while (own_time() < 20000000) {
            }
            pid = is ? getpid() : 0;
        }
        (void)!write(says[1], &pid, sizeof pid);
        pause();
        _exit(0);
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(read(says[0], &pids[i], sizeof pids[i]), sizeof pids[i]);
        if (pids[i] == 0) {
            kill(helper, SIGKILL);
            waitpid(helper, NULL, 0);
            clocks_free(&clocks);
            skip();
        }
    }
    struct processor_time time = left(state, &clocks);
    kill(helper, SIGKILL);
    waitpid(helper, NULL, 0);
    assert_int_equal(time.pid, pids[0] == 1 ? pids[1] : pids[0]);
    assert_true(time.is_known);
    assert_true(time.ns >= 20000000);
    close(says[0]);
    close(says[1]);
}

TEST_MAIN(NULL, NULL)
