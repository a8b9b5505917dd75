/* Finds the thread numbers inside a container from /proc outside. */
#include "test.h"

#include "jdtool/base/clock.h"
#include "jdtool/resolve/inner_threads.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static uint64_t now(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

static uint32_t ask(struct inner_threads *threads, uint32_t tid, uint32_t number, uint64_t time)
{
    uint32_t inner = UINT32_MAX;
    assert_int_equal(inner_threads_tid(threads, tid, number, time, &inner), 0);
    return inner;
}

struct sleeper {
    pthread_t thread;
    uint32_t tid;
    int said[2], told[2];
};

static void *sleep_until_told(void *context)
{
    struct sleeper *sleeper = context;
    char byte;
    sleeper->tid = (uint32_t)syscall(SYS_gettid);
    (void)!write(sleeper->said[1], "", 1);
    (void)!read(sleeper->told[0], &byte, 1);
    return NULL;
}

static void begin(struct sleeper *sleeper)
{
    char byte;
    assert_int_equal(pipe(sleeper->said) | pipe(sleeper->told), 0);
    assert_int_equal(pthread_create(&sleeper->thread, NULL, sleep_until_told, sleeper), 0);
    assert_int_equal(read(sleeper->said[0], &byte, 1), 1);
}

static void end(struct sleeper *sleeper)
{
    assert_int_equal(write(sleeper->told[1], "", 1), 1);
    assert_int_equal(pthread_join(sleeper->thread, NULL), 0);
    /* The kernel tells who joins a moment before /proc lacks the thread. */
    for (int ms = 0; syscall(SYS_tgkill, getpid(), sleeper->tid, 0) == 0; ms++) {
        assert_true(ms < 30000);
        usleep(1000);
    }
    for (int i = 0; i < 2; i++) {
        close(sleeper->said[i]);
        close(sleeper->told[i]);
    }
}

TEST(is_asked_while_it_lives)
{
    struct sleeper sleeper;
    struct inner_threads threads;
    struct inner_threads others;
    inner_threads_init(&threads, (uint32_t)getpid(), (uint32_t)getpid());
    inner_threads_init(&others, (uint32_t)getpid(), 1); /* this process is not that one */
    begin(&sleeper);
    uint32_t tid = sleeper.tid;
    assert_int_equal(ask(&threads, tid, 1, now()), tid);
    assert_int_equal(ask(&others, tid, 1, now()), 0);
    end(&sleeper);
    assert_int_equal(ask(&threads, tid, 1, now()), tid); /* is known */
    assert_int_equal(ask(&threads, tid, 2, now()), 0);   /* another one had this tid, and is gone */
    inner_threads_free(&threads);
    inner_threads_free(&others);
}

/* It has ended when its samples come. */
TEST(is_noticed_when_it_begins)
{
    struct sleeper sleeper;
    struct inner_threads threads;
    uint64_t before = now() - 1000000000 / (uint64_t)sysconf(_SC_CLK_TCK) - 1;
    inner_threads_init(&threads, (uint32_t)getpid(), (uint32_t)getpid());
    begin(&sleeper);
    uint32_t tid = sleeper.tid;
    assert_int_equal(inner_threads_notice(&threads, tid), 0);
    uint64_t during = now();
    end(&sleeper);
    assert_int_equal(ask(&threads, tid, 1, before), 0);
    assert_int_equal(ask(&threads, tid, 2, during), tid);
    assert_int_equal(inner_threads_notice(&threads, tid),
                     0); /* of another one, which is gone, too */
    assert_int_equal(ask(&threads, tid, 3, now()), 0);
    inner_threads_free(&threads);
}

/* The number may have been another thread's, which ran before this one began. */
TEST(what_began_later_is_another)
{
    struct sleeper sleeper;
    struct inner_threads threads;
    uint64_t before = now() - 1000000000 / (uint64_t)sysconf(_SC_CLK_TCK) - 1;
    inner_threads_init(&threads, (uint32_t)getpid(), (uint32_t)getpid());
    begin(&sleeper);
    assert_int_equal(ask(&threads, sleeper.tid, 1, before), 0);
    end(&sleeper);
    inner_threads_free(&threads);
}

/* As the first process of a namespace. */
static int contained(void *context)
{
    (void)context;
    pause();
    return 0;
}

TEST(is_of_the_innermost_namespace)
{
    static char stack[65536] __attribute__((aligned(16)));
    int pid = clone(contained, stack + sizeof stack, CLONE_NEWPID | SIGCHLD, NULL);
    if (pid < 0) {
        skip(); /* who is not root may make none */
    }
    struct inner_threads threads;
    inner_threads_init(&threads, (uint32_t)pid, 1);
    assert_int_equal(ask(&threads, (uint32_t)pid, 1, now()), 1);
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_false(threads.told);
    assert_int_equal(ask(&threads, (uint32_t)pid, 2, now()), 0);
    assert_true(threads.told); /* the whole process is gone */
    inner_threads_free(&threads);
}

TEST_MAIN(NULL, NULL)
