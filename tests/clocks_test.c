/* CPU time of processes counts from the recording's start, and time that was missed is reported. */
#include "test.h"

#include "jdtool/base/clock.h"
#include "jdtool/record/clocks.h"
#include "jdtool/score/processor_time.h"

#include "tests/scratch.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

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
    clocks_finish(clocks);
    clocks_free(clocks);
    assert_int_equal(processor_times_read(scratch_path(state, PROCESSOR_TIME_FILE), &times), 1);
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

TEST_MAIN(NULL, NULL)
