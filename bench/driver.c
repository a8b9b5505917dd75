/*
 * Measures what an agent takes to describe everything that a running JVM has compiled. Attached to
 * the JVM with the options "RESULT,WHAT,LIBRARY,MEASURE,OPTIONS", it loads the library, starts it
 * as an attaching tool would, measures, and stops it. What it appends to RESULT depends on MEASURE:
 *
 *   time    WHAT WALL CPU: microseconds of the clock and of the processors, of all of the JVM's
 *           threads: our agent's records leave on a thread of its own, and its start returns when
 *           all are in the file. The JVM should be idle, or its own work is in the figure. On a
 *           busy machine the processors' time is the one to trust.
 *   memory  WHAT HELD PEAK, KiB: how much more anonymous memory the JVM has when everything is
 *           described and the session still on, and how much more memory of any kind it had at
 *           most meanwhile. The JVM should be idle, or its own memory is in both.
 *
 * Memory that an earlier session gave back to malloc would be reused without being seen to grow, so
 * malloc gives it back to the kernel first. That makes a session slower, hence two ways to measure.
 *
 * An agent that cannot attach (perf's own) is started through its Agent_OnLoad, with a JavaVM whose
 * GetEnv tells us the JVMTI environment it gets; GenerateEvents for that is then called from here.
 * Every agent's whole start is timed, opening files included.
 */
#include <jvmti.h>

#include <dlfcn.h>
#include <malloc.h>
#include <stdbool.h>
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

struct usage {
    double wall, cpu;       /* microseconds */
    double anonymous, peak; /* KiB */
};

static double read_clock(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* The KiB that a line of FILE gives behind FIELD, or 0. */
static double read_field(const char *file, const char *field)
{
    FILE *in = fopen(file, "re");
    if (in == NULL) {
        return 0;
    }
    char line[256];
    double kib = 0;
    while (fgets(line, sizeof line, in) != NULL) {
        if (strncmp(line, field, strlen(field)) == 0) {
            kib = strtod(line + strlen(field), NULL);
            break;
        }
    }
    fclose(in);
    return kib;
}

/*
 * What malloc keeps goes back to the kernel: malloc_trim() does so with all but the end of an arena
 * that is not the main one. That goes when a block above 64 KiB is freed, of this thread's arena,
 * which is the one that matters.
 */
static void give_back(void)
{
    mallopt(M_TRIM_THRESHOLD, 0);
    mallopt(M_TOP_PAD, 0);
    void *volatile block = malloc(100000);
    free(block);
    malloc_trim(0);
}

/* VmHWM becomes what is resident now (proc(5), clear_refs). */
static void reset_peak(void)
{
    FILE *out = fopen("/proc/self/clear_refs", "we");
    if (out == NULL || fputs("5", out) < 0 || fclose(out) != 0) {
        perror("driver: failed to reset VmHWM");
    }
}

/*
 * The kernel counts resident pages per processor and adds them up now and then, so VmHWM may be a
 * few hundred KiB off; smaps_rollup goes through the page tables and is exact.
 */
static struct usage read_usage(bool memory)
{
    struct usage usage = {.wall = read_clock(CLOCK_MONOTONIC),
                          .cpu = read_clock(CLOCK_PROCESS_CPUTIME_ID)};
    if (memory) {
        usage.anonymous = read_field("/proc/self/smaps_rollup", "Anonymous:");
        usage.peak = read_field("/proc/self/status", "VmHWM:");
    }
    return usage;
}

static struct usage begin(bool memory)
{
    if (memory) {
        give_back();
        reset_peak();
    }
    return read_usage(memory);
}

static struct usage since(struct usage start, bool memory)
{
    struct usage end = read_usage(memory);
    return (struct usage){end.wall - start.wall, end.cpu - start.cpu,
                          end.anonymous - start.anonymous, end.peak - start.peak};
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
        /* A callback that another thread is in has to end before the library goes. */
        usleep(100 * 1000);
        (*captured)->DisposeEnvironment(captured);
    }
    captured = NULL;
}

/* One start and stop, and what the start took; false when it failed. */
static bool measure(JavaVM *vm, const char *library, const char *given, bool memory,
                    struct usage *usage)
{
    struct JNIInvokeInterface_ functions = **vm;
    functions.GetEnv = capturing_get_env;
    const struct JNIInvokeInterface_ *fake = &functions;

    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
        fprintf(stderr, "driver: failed to load %s: %s\n", library, dlerror());
        return false;
    }
    agent_start attach = (agent_start)dlsym(handle, "Agent_OnAttach");
    agent_start load = (agent_start)dlsym(handle, "Agent_OnLoad");
    agent_unload unload = (agent_unload)dlsym(handle, "Agent_OnUnload");
    char options[4096];
    snprintf(options, sizeof options, "%s", given);
    bool done = false;
    struct usage start = begin(memory);
    if (strstr(library, "libjdagent") != NULL) {
        /* Our own finds its JVM's symbols through the JavaVM, which therefore has to be real. */
        if (attach(vm, options, NULL) == JNI_OK) {
            *usage = since(start, memory);
            done = true;
        }
        char stop[] = "stop";
        attach(vm, stop, NULL);
        return done; /* stays loaded, as it would after an attach */
    }
    if (attach != NULL) {
        if (attach((JavaVM *)&fake, options, NULL) == JNI_OK) {
            *usage = since(start, memory);
            done = true;
        }
    } else if (load((JavaVM *)&fake, options, NULL) == JNI_OK && captured != NULL) {
        (*captured)->GenerateEvents(captured, JVMTI_EVENT_DYNAMIC_CODE_GENERATED);
        (*captured)->GenerateEvents(captured, JVMTI_EVENT_COMPILED_METHOD_LOAD);
        *usage = since(start, memory);
        done = true;
    }
    dispose();
    if (unload != NULL) {
        unload(vm);
    }
    dlclose(handle);
    return done;
}

JNIEXPORT jint JNICALL Agent_OnAttach(JavaVM *vm, char *options, void *reserved)
{
    (void)reserved;
    real_vm = vm;
    char *rest = options;
    const char *result = strsep(&rest, ",");
    const char *what = strsep(&rest, ",");
    const char *library = strsep(&rest, ",");
    const char *measured = strsep(&rest, ",");
    bool memory = measured != NULL && strcmp(measured, "memory") == 0;
    if (measured == NULL || (!memory && strcmp(measured, "time") != 0)) {
        fprintf(stderr, "driver: failed to read its options\n");
        return JNI_ERR;
    }
    struct usage usage;
    if (!measure(vm, library, rest != NULL ? rest : "", memory, &usage)) {
        return JNI_ERR;
    }
    FILE *out = fopen(result, "ae");
    if (out == NULL) {
        return JNI_ERR;
    }
    fprintf(out, "%s\t%.1f\t%.1f\n", what, memory ? usage.anonymous : usage.wall,
            memory ? usage.peak : usage.cpu);
    return fclose(out) == 0 ? JNI_OK : JNI_ERR;
}
