/*
 * The agents that everything is measured against.
 *
 * floor: an agent with our capabilities and callbacks that do nothing: what the JVM itself takes to
 * tell an agent anything at all.
 *
 * limit: the floor, and one plain write() for each event, of as many bytes as the real agent's
 * record has, the code among them: what no agent can be faster than that puts every record into a
 * file. The sizes come from a dump of the real agent.
 *
 * told: when the JVM tells an agent of a method at all. Its callback takes the time and writes a
 * line as bench/readable does for a LOAD.
 *
 * Options: nothing (floor); DUMP,FILE (limit): the dump to take sizes from, the file to write;
 * told,FILE (told). Works loaded at start and attached; when attached it has everything told again
 * (GenerateEvents).
 */
#include "format/jitdump.h"

#include <jvmti.h>

#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static uint32_t *sizes; /* bytes of each group of the dump, [DEBUG_INFO] LOAD */
static size_t size_count;
static atomic_size_t next_size;
static char *filler;
static int file = -1;
static FILE *told;
static jvmtiEnv *jvmti;

static bool read_sizes(const char *dump)
{
    FILE *in = fopen(dump, "re");
    if (in == NULL || fseek(in, sizeof(struct jitdump_header), SEEK_SET) != 0) {
        return false;
    }
    struct jitdump_record record;
    uint32_t group = 0;
    uint32_t most = 0;
    size_t room = 0;
    while (fread(&record, sizeof record, 1, in) == 1) {
        group += record.total_size;
        if (record.id == JIT_CODE_LOAD) {
            if (size_count == room) {
                room = room == 0 ? 1024 : 2 * room;
                uint32_t *more = realloc(sizes, room * sizeof *sizes);
                if (more == NULL) {
                    break;
                }
                sizes = more;
            }
            most = group > most ? group : most;
            sizes[size_count++] = group;
            group = 0;
        }
        if (fseek(in, (long)record.total_size - (long)sizeof record, SEEK_CUR) != 0) {
            break;
        }
    }
    fclose(in);
    filler = calloc(1, most + 1);
    return size_count > 0 && filler != NULL;
}

static void one_write(const void *code, size_t code_size)
{
    if (file < 0) {
        return;
    }
    size_t size = sizes[atomic_fetch_add(&next_size, 1) % size_count];
    if (code_size > size) {
        code_size = size;
    }
    struct iovec parts[2] = {{filler, size - code_size}, {(void *)code, code_size}};
    if (writev(file, parts, 2) != (ssize_t)size) {
        perror("limit: failed to write");
        file = -1;
    }
}

static void tell(jmethodID method, const void *address)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    unsigned long long now =
        (unsigned long long)t.tv_sec * 1000000000 + (unsigned long long)t.tv_nsec;
    jclass class = NULL;
    char *class_signature = NULL;
    char *name = NULL;
    char *signature = NULL;
    if ((*jvmti)->GetMethodDeclaringClass(jvmti, method, &class) == 0 &&
        (*jvmti)->GetClassSignature(jvmti, class, &class_signature, NULL) == 0 &&
        (*jvmti)->GetMethodName(jvmti, method, &name, &signature, NULL) == 0) {
        fprintf(told, "%llu %llu %p %s%s%s\n", now, now, address, class_signature, name, signature);
    }
    (*jvmti)->Deallocate(jvmti, (unsigned char *)class_signature);
    (*jvmti)->Deallocate(jvmti, (unsigned char *)name);
    (*jvmti)->Deallocate(jvmti, (unsigned char *)signature);
}

static void JNICALL on_load(jvmtiEnv *env, jmethodID method, jint size, const void *address,
                            jint map_length, const jvmtiAddrLocationMap *map, const void *info)
{
    (void)env;
    (void)map_length;
    (void)map;
    (void)info;
    if (told != NULL) {
        tell(method, address);
        return;
    }
    one_write(address, (size_t)size);
}

static void JNICALL on_unload(jvmtiEnv *env, jmethodID method, const void *address)
{
    (void)env;
    (void)method;
    (void)address;
}

static void JNICALL on_dynamic(jvmtiEnv *env, const char *name, const void *address, jint size)
{
    (void)env;
    (void)name;
    one_write(address, (size_t)size);
}

static const jvmtiEvent events[] = {JVMTI_EVENT_COMPILED_METHOD_LOAD,
                                    JVMTI_EVENT_COMPILED_METHOD_UNLOAD,
                                    JVMTI_EVENT_DYNAMIC_CODE_GENERATED};
#define EVENT_COUNT (sizeof events / sizeof events[0])

static bool read_options(char *options)
{
    if (options == NULL || *options == '\0') {
        return true;
    }
    const char *first = strsep(&options, ",");
    const char *path = options;
    if (path == NULL) {
        return false;
    }
    if (strcmp(first, "told") == 0) {
        told = fopen(path, "we");
        return told != NULL;
    }
    file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    return file >= 0 && read_sizes(first);
}

static jint start(JavaVM *vm, char *options)
{
    if (!read_options(options)) {
        fprintf(stderr, "floor: failed to read its options or the files they name\n");
        return JNI_ERR;
    }
    if ((*vm)->GetEnv(vm, (void **)&jvmti, JVMTI_VERSION_1_2) != JNI_OK) {
        return JNI_ERR;
    }
    jvmtiCapabilities capabilities = {0};
    capabilities.can_generate_compiled_method_load_events = 1;
    capabilities.can_get_line_numbers = 1;
    capabilities.can_get_source_file_name = 1;
    jvmtiEventCallbacks callbacks = {0};
    callbacks.CompiledMethodLoad = on_load;
    callbacks.CompiledMethodUnload = on_unload;
    callbacks.DynamicCodeGenerated = on_dynamic;
    if ((*jvmti)->AddCapabilities(jvmti, &capabilities) != 0 ||
        (*jvmti)->SetEventCallbacks(jvmti, &callbacks, sizeof callbacks) != 0) {
        return JNI_ERR;
    }
    for (size_t i = 0; i < EVENT_COUNT; i++) {
        if ((*jvmti)->SetEventNotificationMode(jvmti, JVMTI_ENABLE, events[i], NULL) != 0) {
            return JNI_ERR;
        }
    }
    return JNI_OK;
}

JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM *vm, char *options, void *reserved)
{
    (void)reserved;
    return start(vm, options);
}

JNIEXPORT jint JNICALL Agent_OnAttach(JavaVM *vm, char *options, void *reserved)
{
    (void)reserved;
    if (start(vm, options) != JNI_OK) {
        return JNI_ERR;
    }
    (*jvmti)->GenerateEvents(jvmti, JVMTI_EVENT_DYNAMIC_CODE_GENERATED);
    (*jvmti)->GenerateEvents(jvmti, JVMTI_EVENT_COMPILED_METHOD_LOAD);
    return JNI_OK;
}

JNIEXPORT void JNICALL Agent_OnUnload(JavaVM *vm)
{
    (void)vm;
    if (file >= 0) {
        close(file);
        file = -1;
    }
    if (told != NULL) {
        fclose(told);
        told = NULL;
    }
    free(sizes);
    free(filler);
    sizes = NULL;
    filler = NULL;
    size_count = 0;
    next_size = 0;
}
