/*
 * Another agent in the same JVM, as profilers and APM agents are: it wants capabilities that only
 * one can have, and counts the events that it is sent.
 *
 * Loaded with the name of a file as its option, at the start or later, it gets what it lacks yet;
 * each time that it is loaded in a JVM that runs it has the JVM tell of all compiled methods and
 * appends a line: "error=E allocs=N loads=N", of the JVMTI error that it has (0: none), and of the
 * events since the last line. As "slow" it gets nothing, and the JVM's start takes half a second
 * longer.
 */
#include <jvmti.h>

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static jvmtiEnv *jvmti;
static atomic_ulong allocs;
static atomic_ulong loads;

static void JNICALL sampled(jvmtiEnv *env, JNIEnv *jni, jthread thread, jobject object,
                            jclass klass, jlong size)
{
    (void)env, (void)jni, (void)thread, (void)object, (void)klass, (void)size;
    atomic_fetch_add(&allocs, 1);
}

static void JNICALL compiled(jvmtiEnv *env, jmethodID method, jint size, const void *address,
                             jint count, const jvmtiAddrLocationMap *map, const void *info)
{
    (void)env, (void)method, (void)size, (void)address, (void)count, (void)map, (void)info;
    atomic_fetch_add(&loads, 1);
}

static jvmtiError get(JavaVM *vm)
{
    const jvmtiCapabilities capabilities = {.can_generate_compiled_method_load_events = 1,
                                            .can_generate_sampled_object_alloc_events = 1,
                                            .can_generate_monitor_events = 1};
    const jvmtiEventCallbacks callbacks = {.SampledObjectAlloc = sampled,
                                           .CompiledMethodLoad = compiled};
    if (!jvmti && (*vm)->GetEnv(vm, (void **)&jvmti, JVMTI_VERSION_11) != JNI_OK) {
        return JVMTI_ERROR_INTERNAL;
    }
    jvmtiError error = (*jvmti)->AddCapabilities(jvmti, &capabilities);
    if (error == JVMTI_ERROR_NONE) {
        (void)(*jvmti)->SetEventCallbacks(jvmti, &callbacks, (jint)sizeof callbacks);
        error = (*jvmti)->SetEventNotificationMode(jvmti, JVMTI_ENABLE,
                                                   JVMTI_EVENT_SAMPLED_OBJECT_ALLOC, NULL);
    }
    if (error == JVMTI_ERROR_NONE) {
        error = (*jvmti)->SetEventNotificationMode(jvmti, JVMTI_ENABLE,
                                                   JVMTI_EVENT_COMPILED_METHOD_LOAD, NULL);
    }
    return error;
}

JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM *vm, char *options, void *reserved)
{
    (void)reserved;
    if (options && strcmp(options, "slow") == 0) {
        const struct timespec half_a_second = {.tv_nsec = 500000000};
        return nanosleep(&half_a_second, NULL) == 0 ? JNI_OK : JNI_ERR;
    }
    return get(vm) == JVMTI_ERROR_NONE ? JNI_OK : JNI_ERR;
}

JNIEXPORT jint JNICALL Agent_OnAttach(JavaVM *vm, char *options, void *reserved)
{
    (void)reserved;
    unsigned long told = atomic_exchange(&allocs, 0);
    jvmtiError error = get(vm);
    if (error == JVMTI_ERROR_NONE) {
        (void)(*jvmti)->GenerateEvents(jvmti, JVMTI_EVENT_COMPILED_METHOD_LOAD);
    }
    FILE *file = fopen(options, "ae");
    if (file) {
        fprintf(file, "error=%d allocs=%lu loads=%lu\n", (int)error, told,
                atomic_exchange(&loads, 0));
        fclose(file);
    }
    return file ? JNI_OK : JNI_ERR;
}
