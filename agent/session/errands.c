/*
 * `wanted` keeps an errand until somebody has control and has taken it up, however long that takes:
 * a wish that is lost is code without a name until the program ends. `runs` keeps the threads to
 * one; who clears it looks once more, for what came meanwhile found a thread that was about to end.
 */
#include "agent/session/errands.h"

#include "agent/events/probes.h"
#include "agent/session/session.h"
#include "writer/own_thread.h"

#include <stdatomic.h>
#include <time.h>

enum { FIRST_NAP_MS = 2, LONGEST_NAP_MS = 256 };

static JavaVM *vm;
static errands_runner *runner;
static atomic_bool live;
static atomic_uint wanted;
static atomic_bool runs;

bool errands_are_live(void)
{
    return atomic_load(&live);
}

bool errands_attach(const char *name)
{
    void *jni = NULL;
    JavaVMAttachArgs arguments = {.version = JNI_VERSION_1_6, .name = (char *)name};
    probes_at_work(true);
    return errands_are_live() && (*vm)->AttachCurrentThreadAsDaemon(vm, &jni, &arguments) == JNI_OK;
}

static void nap(long ms)
{
    const struct timespec time = {.tv_nsec = ms * 1000000};
    nanosleep(&time, NULL);
}

/* Control is not waited for in one go: who ends the session has it, and forgets what was wanted. */
static void run_all(void)
{
    for (long ms = FIRST_NAP_MS; atomic_load(&wanted);) {
        errands left = 0;
        bool tried = session_try_control();
        if (tried) {
            left = runner(atomic_exchange(&wanted, 0));
            atomic_fetch_or(&wanted, left);
            session_release_control();
        }
        if (!tried || left) {
            nap(ms);
            ms = ms < LONGEST_NAP_MS ? ms * 2 : ms;
        }
    }
}

static void *run(void *unused)
{
    bool attached;
    bool more = true;
    while (!(attached = errands_attach("jdagent errands")) && atomic_load(&wanted)) {
        nap(LONGEST_NAP_MS); /* the JVM has no memory for a thread now */
    }
    while (more) {
        if (attached) {
            run_all();
        }
        atomic_store(&runs, false);
        more = atomic_load(&wanted) && !atomic_exchange(&runs, true);
    }
    if (attached) {
        (*vm)->DetachCurrentThread(vm);
    }
    return unused;
}

/* Has a thread see to what is wanted, unless one does already or it is too early. */
static bool start(void)
{
    if (!errands_are_live() || atomic_exchange(&runs, true)) {
        return true;
    }
    if (own_thread_start(run, NULL, OWN_THREAD_JAVA_STACK, NULL) != 0) {
        atomic_store(&runs, false);
        return false;
    }
    return true;
}

void errands_prepare(JavaVM *of, errands_runner *run_them)
{
    vm = of;
    runner = run_them;
}

void errands_live(void)
{
    atomic_store(&live, true);
    if (atomic_load(&wanted)) {
        (void)start(); /* else the next one who wants something does */
    }
}

bool errands_want(enum errand errand)
{
    atomic_fetch_or(&wanted, 1U << errand);
    return start();
}

void errands_forget(void)
{
    atomic_store(&wanted, 0);
}
