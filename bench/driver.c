/*
 * Measures how long an agent takes to describe everything that a running JVM has compiled. Attached
 * to the JVM with the options "RESULT,WHAT,LIBRARY,ROUNDS,OPTIONS", it loads the library, starts it
 * as an attaching tool would, takes the time, stops it, and appends "WHAT WALL CPU", microseconds
 * of the clock and of this thread's processor, to RESULT once for each round. All work is done on
 * this thread; on a busy machine the processor's time is the one to trust.
 *
 * An agent that cannot attach (perf's own) is started through its Agent_OnLoad, with a JavaVM whose
 * GetEnv tells us the JVMTI environment it gets; GenerateEvents for that is then called from here.
 * Every agent's whole start is timed, opening files included.
 */
#include <jvmti.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef jint (*agent_start)(JavaVM *vm, char *options, void *reserved);
typedef void (*agent_unload)(JavaVM *vm);

static JavaVM *real_vm;
static jvmtiEnv *captured;

static jint JNICALL capturing_get_env(JavaVM *vm, void **env, jint version)
{
    (void)vm;
    jint status = (*real_vm)->GetEnv(real_vm, env, version);
    if (status == JNI_OK &&
        (version & JVMTI_VERSION_MASK_INTERFACE_TYPE) == JVMTI_VERSION_INTERFACE_JVMTI) {
        captured = *env;
    }
    return status;
}

struct times {
    double wall;
    double cpu;
};

static double read_clock(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static struct times now(void)
{
    return (struct times){read_clock(CLOCK_MONOTONIC), read_clock(CLOCK_THREAD_CPUTIME_ID)};
}

static struct times since(struct times start)
{
    struct times end = now();
    return (struct times){end.wall - start.wall, end.cpu - start.cpu};
}

static void dispose(void)
{
    static const jvmtiEvent events[] = {JVMTI_EVENT_COMPILED_METHOD_LOAD,
                                        JVMTI_EVENT_COMPILED_METHOD_UNLOAD,
                                        JVMTI_EVENT_DYNAMIC_CODE_GENERATED};
    for (size_t i = 0; captured != NULL && i < sizeof events / sizeof events[0]; i++) {
        (*captured)->SetEventNotificationMode(captured, JVMTI_DISABLE, events[i], NULL);
    }
    if (captured != NULL) {
        (*captured)->DisposeEnvironment(captured);
    }
    captured = NULL;
}

/* One start and stop; what the start took, or below 0. */
static struct times measure(JavaVM *vm, const char *library, const char *given)
{
    struct JNIInvokeInterface_ functions = **vm;
    functions.GetEnv = capturing_get_env;
    const struct JNIInvokeInterface_ *fake = &functions;

    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
        fprintf(stderr, "driver: failed to load %s: %s\n", library, dlerror());
        return (struct times){-1, -1};
    }
    agent_start attach = (agent_start)dlsym(handle, "Agent_OnAttach");
    agent_start load = (agent_start)dlsym(handle, "Agent_OnLoad");
    agent_unload unload = (agent_unload)dlsym(handle, "Agent_OnUnload");
    char options[4096];
    snprintf(options, sizeof options, "%s", given);
    struct times start = now();
    struct times time = {-1, -1};
    if (strstr(library, "libjdagent") != NULL) {
        /* Our own finds its JVM's symbols through the JavaVM, which therefore has to be real. */
        if (attach(vm, options, NULL) == JNI_OK) {
            time = since(start);
        }
        char stop[] = "stop";
        attach(vm, stop, NULL);
        return time; /* stays loaded, as it would after an attach */
    }
    if (attach != NULL) {
        if (attach((JavaVM *)&fake, options, NULL) == JNI_OK) {
            time = since(start);
        }
    } else if (load((JavaVM *)&fake, options, NULL) == JNI_OK && captured != NULL) {
        (*captured)->GenerateEvents(captured, JVMTI_EVENT_DYNAMIC_CODE_GENERATED);
        (*captured)->GenerateEvents(captured, JVMTI_EVENT_COMPILED_METHOD_LOAD);
        time = since(start);
    }
    dispose();
    if (unload != NULL) {
        unload(vm);
    }
    dlclose(handle);
    return time;
}

JNIEXPORT jint JNICALL Agent_OnAttach(JavaVM *vm, char *options, void *reserved)
{
    (void)reserved;
    real_vm = vm;
    char *rest = options;
    const char *result = strsep(&rest, ",");
    const char *what = strsep(&rest, ",");
    const char *library = strsep(&rest, ",");
    const char *rounds = strsep(&rest, ",");
    if (rounds == NULL) {
        fprintf(stderr, "driver: failed to read its options\n");
        return JNI_ERR;
    }
    FILE *out = fopen(result, "ae");
    if (out == NULL) {
        return JNI_ERR;
    }
    jint status = JNI_OK;
    for (long i = strtol(rounds, NULL, 10); i > 0 && status == JNI_OK; i--) {
        struct times time = measure(vm, library, rest != NULL ? rest : "");
        if (time.wall >= 0) {
            fprintf(out, "%s\t%.1f\t%.1f\n", what, time.wall, time.cpu);
        } else {
            status = JNI_ERR;
        }
    }
    fclose(out);
    return status;
}
