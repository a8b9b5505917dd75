/* Threads that may not ask the JVM have it asked later: never before VMInit, and never lost. */
#include "test.h"

#include "agent/session/errands.h"
#include "agent/session/session.h"

#include <stdatomic.h>
#include <time.h>

static atomic_uint attached; /* threads that are */
static atomic_int attempts;
static atomic_int refusals; /* attempts to be refused from now on */
static atomic_uint done;    /* errands */
static atomic_uint delayed; /* errands that cannot be done at the first try */

static jint JNICALL attach_thread(JavaVM *vm, void **env, void *arguments)
{
    (void)vm;
    (void)arguments;
    *env = NULL;
    attempts++;
    if (refusals > 0) {
        refusals--;
        return JNI_ERR;
    }
    attached++;
    return JNI_OK;
}

static jint JNICALL detach_thread(JavaVM *vm)
{
    (void)vm;
    attached--;
    return JNI_OK;
}

static const struct JNIInvokeInterface_ invoke = {
    .AttachCurrentThreadAsDaemon = attach_thread,
    .DetachCurrentThread = detach_thread,
};
static JavaVM vm = &invoke;

static errands run(errands wanted)
{
    errands now = wanted & ~delayed;
    done |= now;
    errands left = wanted & delayed;
    delayed = 0;
    return attached == 1 ? left : wanted;
}

static void wait_for(atomic_uint *number, unsigned value)
{
    const struct timespec millisecond = {.tv_nsec = 1000000};
    for (int ms = 0; atomic_load(number) != value; ms++) {
        assert_true(ms < 30000);
        nanosleep(&millisecond, NULL);
    }
}

static void wait_until_idle(void)
{
    wait_for(&attached, 0);
}

static int begin(void **state)
{
    (void)state;
    wait_until_idle();
    attempts = refusals = 0;
    done = delayed = 0;
    return 0;
}

#define ALL   (1U << ERRAND_ALL)
#define TABLE (1U << ERRAND_TABLE)

/* The first one: a JVM that is live stays so. */
TEST_WITH(nobody_is_attached_before_vm_init, begin, NULL)
{
    errands_prepare(&vm, run);
    assert_false(errands_are_live());
    assert_true(errands_want(ERRAND_ALL));
    assert_true(errands_want(ERRAND_TABLE));
    assert_false(errands_attach("somebody"));
    assert_int_equal(attempts, 0);
    errands_live();
    wait_for(&done, ALL | TABLE);
    wait_until_idle();
    assert_int_equal(attempts, 1);
    assert_true(errands_attach("somebody"));
    vm->DetachCurrentThread(&vm);
}

TEST_WITH(errands_wait_for_control, begin, NULL)
{
    assert_true(session_take_control());
    assert_true(errands_want(ERRAND_ALL));
    wait_for(&attached, 1); /* it tries, again and again */
    assert_int_equal(done, 0);
    assert_true(errands_want(ERRAND_TABLE));
    session_release_control();
    wait_for(&done, ALL | TABLE);
}

TEST_WITH(what_cannot_be_done_yet_is_done_later, begin, NULL)
{
    delayed = ALL;
    assert_true(errands_want(ERRAND_ALL));
    wait_for(&done, ALL);
}

TEST_WITH(a_jvm_that_refuses_is_asked_again, begin, NULL)
{
    refusals = 2;
    assert_true(errands_want(ERRAND_ALL));
    wait_for(&done, ALL);
    assert_int_equal(attempts, 3);
}

TEST_WITH(those_of_an_ended_session_are_forgotten, begin, NULL)
{
    assert_true(session_take_control());
    assert_true(errands_want(ERRAND_ALL));
    errands_forget();
    session_release_control();
    wait_until_idle();
    assert_true(errands_want(ERRAND_TABLE));
    wait_for(&done, TABLE);
    wait_until_idle();
    assert_int_equal(done, TABLE);
}

TEST_MAIN(NULL, NULL)
