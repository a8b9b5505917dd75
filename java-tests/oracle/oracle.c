/*
 * The oracle: a tiny JVMTI agent that writes down what HotSpot says about generated code, so that
 * the tests can hold a dump against it. It shares nothing with the real agent and is as simple as
 * can be: no cache, no merging, every name and line table is asked for anew for every frame.
 *
 * Options: FILE            every fact (buffered; `oracle-check` reads it)
 *          FILE,log        only L, U and D lines, each in a write() of its own: what a line says
 *                          has happened even when the JVM is killed right behind it
 *
 * The file, fields separated by tabs, addresses in hex, times in ns of CLOCK_MONOTONIC:
 *   L time address size class method signature        CompiledMethodLoad
 *   p offset depth                                    a PCStackInfo of the L above, then, innermost
 *   f class method signature file line bci            first, its frames; line as HotSpot's own
 *                                                     stack traces have it, 0: none
 *   U time address                                    CompiledMethodUnload
 *   D time address size name                          DynamicCodeGenerated
 *   X time                                            VMDeath: nothing counts from here on
 */
#include <jvmti.h>
#include <jvmticmlr.h>

#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static FILE *out;
static JavaVM *the_vm;
static bool log_only;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static unsigned long long now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (unsigned long long)t.tv_sec * 1000000000ULL + (unsigned long long)t.tv_nsec;
}

struct method_names {
    char *class_signature;
    char *name;
    char *signature;
    jclass holder;
};

static bool names_get(jvmtiEnv *jvmti, jmethodID method, struct method_names *names)
{
    memset(names, 0, sizeof *names);
    if ((*jvmti)->GetMethodName(jvmti, method, &names->name, &names->signature, NULL) != 0) {
        return false;
    }
    if ((*jvmti)->GetMethodDeclaringClass(jvmti, method, &names->holder) != 0) {
        return false;
    }
    return (*jvmti)->GetClassSignature(jvmti, names->holder, &names->class_signature, NULL) == 0;
}

static void names_free(jvmtiEnv *jvmti, struct method_names *names)
{
    (*jvmti)->Deallocate(jvmti, (unsigned char *)names->class_signature);
    (*jvmti)->Deallocate(jvmti, (unsigned char *)names->name);
    (*jvmti)->Deallocate(jvmti, (unsigned char *)names->signature);
}

/*
 * Method::line_number_from_bci of HotSpot: an exact entry wins, else the one with the largest bci
 * below; a bci of -1 (SynchronizationEntryBCI) counts as 0.
 */
static int line_of(jvmtiEnv *jvmti, jmethodID method, int bci)
{
    jvmtiLineNumberEntry *table = NULL;
    jint count = 0;
    if ((*jvmti)->GetLineNumberTable(jvmti, method, &count, &table) != 0) {
        return 0;
    }
    int line = 0;
    jlocation best = 0;
    if (bci == -1) {
        bci = 0;
    }
    for (jint i = 0; i < count; i++) {
        if (table[i].start_location == bci) {
            line = table[i].line_number;
            break;
        }
        if (table[i].start_location < bci && table[i].start_location >= best) {
            best = table[i].start_location;
            line = table[i].line_number;
        }
    }
    (*jvmti)->Deallocate(jvmti, (unsigned char *)table);
    return line;
}

static void print_frame(jvmtiEnv *jvmti, JNIEnv *jni, jmethodID method, int bci)
{
    struct method_names names;
    if (!names_get(jvmti, method, &names)) {
        fprintf(out, "f\t?\t?\t?\t?\t0\t%d\n", bci);
        names_free(jvmti, &names);
        return;
    }
    char *source = NULL;
    if ((*jvmti)->GetSourceFileName(jvmti, names.holder, &source) != 0) {
        source = NULL;
    }
    const char *package_end = strrchr(names.class_signature, '/');
    int package = source != NULL && package_end != NULL
                      ? (int)(package_end - names.class_signature) /* up to and with the slash */
                      : 0;
    fprintf(out, "f\t%s\t%s\t%s\t%.*s%s\t%d\t%d\n", names.class_signature, names.name,
            names.signature, package, names.class_signature + 1, source != NULL ? source : "?",
            line_of(jvmti, method, bci), bci);
    (*jvmti)->Deallocate(jvmti, (unsigned char *)source);
    names_free(jvmti, &names);
    (*jni)->DeleteLocalRef(jni, names.holder);
}

static void print_stacks(jvmtiEnv *jvmti, JNIEnv *jni, const char *start, const void *compile_info)
{
    const jvmtiCompiledMethodLoadRecordHeader *header = compile_info;
    while (header != NULL && header->kind != JVMTI_CMLR_INLINE_INFO) {
        header = header->next;
    }
    if (header == NULL) {
        return;
    }
    const jvmtiCompiledMethodLoadInlineRecord *record =
        (const jvmtiCompiledMethodLoadInlineRecord *)header;
    for (jint i = 0; i < record->numpcs; i++) {
        const PCStackInfo *info = &record->pcinfo[i];
        fprintf(out, "p\t%lx\t%d\n", (unsigned long)((const char *)info->pc - start),
                (int)info->numstackframes);
        for (jint k = 0; k < info->numstackframes; k++) {
            print_frame(jvmti, jni, info->methods[k], info->bcis[k]);
        }
    }
}

/* Prints a line; in a log, which has to outlive a SIGKILL, at once. */
static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vfprintf(out, format, arguments);
    va_end(arguments);
    if (log_only) {
        fflush(out); /* the stream's buffer is longer than any line: one write() */
    }
}

static void JNICALL on_load(jvmtiEnv *jvmti, jmethodID method, jint size, const void *address,
                            jint map_length, const jvmtiAddrLocationMap *map, const void *info)
{
    (void)map_length;
    (void)map;
    struct method_names names;
    JNIEnv *jni = NULL;
    if ((*the_vm)->GetEnv(the_vm, (void **)&jni, JNI_VERSION_1_6) != JNI_OK) {
        return;
    }
    bool named = names_get(jvmti, method, &names);
    pthread_mutex_lock(&lock);
    if (named) {
        say("L\t%llu\t%lx\t%d\t%s\t%s\t%s\n", now(), (unsigned long)address, (int)size,
            names.class_signature, names.name, names.signature);
    }
    if (named && !log_only) {
        print_stacks(jvmti, jni, address, info);
    }
    pthread_mutex_unlock(&lock);
    names_free(jvmti, &names);
}

static void JNICALL on_unload(jvmtiEnv *jvmti, jmethodID method, const void *address)
{
    (void)jvmti;
    (void)method;
    pthread_mutex_lock(&lock);
    say("U\t%llu\t%lx\n", now(), (unsigned long)address);
    pthread_mutex_unlock(&lock);
}

static void JNICALL on_dynamic(jvmtiEnv *jvmti, const char *name, const void *address, jint size)
{
    (void)jvmti;
    pthread_mutex_lock(&lock);
    say("D\t%llu\t%lx\t%d\t%s\n", now(), (unsigned long)address, (int)size, name);
    pthread_mutex_unlock(&lock);
}

static void JNICALL on_death(jvmtiEnv *jvmti, JNIEnv *jni)
{
    (void)jvmti;
    (void)jni;
    pthread_mutex_lock(&lock);
    say("X\t%llu\n", now());
    fflush(out);
    pthread_mutex_unlock(&lock);
}

static jint fail(const char *what)
{
    fprintf(stderr, "oracle: failed to %s\n", what);
    return JNI_ERR;
}

JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM *vm, char *options, void *reserved)
{
    (void)reserved;
    jvmtiEnv *jvmti = NULL;
    the_vm = vm;
    if (options == NULL || (*vm)->GetEnv(vm, (void **)&jvmti, JVMTI_VERSION_1_2) != JNI_OK) {
        return fail("start: it needs a file name, and JVMTI");
    }
    char *mode = strchr(options, ',');
    if (mode != NULL) {
        *mode++ = '\0';
        log_only = strcmp(mode, "log") == 0;
    }
    out = fopen(options, "we");
    if (out == NULL) {
        return fail("create its file");
    }

    jvmtiCapabilities capabilities = {0};
    capabilities.can_generate_compiled_method_load_events = 1;
    capabilities.can_get_line_numbers = 1;
    capabilities.can_get_source_file_name = 1;
    jvmtiEventCallbacks callbacks = {0};
    callbacks.CompiledMethodLoad = on_load;
    callbacks.CompiledMethodUnload = on_unload;
    callbacks.DynamicCodeGenerated = on_dynamic;
    callbacks.VMDeath = on_death;
    static const jvmtiEvent events[] = {JVMTI_EVENT_COMPILED_METHOD_LOAD,
                                        JVMTI_EVENT_COMPILED_METHOD_UNLOAD,
                                        JVMTI_EVENT_DYNAMIC_CODE_GENERATED, JVMTI_EVENT_VM_DEATH};
    if ((*jvmti)->AddCapabilities(jvmti, &capabilities) != 0 ||
        (*jvmti)->SetEventCallbacks(jvmti, &callbacks, sizeof callbacks) != 0) {
        return fail("set itself up");
    }
    for (size_t i = 0; i < sizeof events / sizeof events[0]; i++) {
        if ((*jvmti)->SetEventNotificationMode(jvmti, JVMTI_ENABLE, events[i], NULL) != 0) {
            return fail("enable an event");
        }
    }
    return JNI_OK;
}
