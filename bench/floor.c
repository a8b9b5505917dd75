/*
 * The two agents that everything is measured against.
 *
 * floor: an agent with our capabilities and callbacks that do nothing: what the JVM itself takes to
 * tell an agent anything at all.
 *
 * limit: the floor, and one plain write() for each event, of as many bytes as the real agent's
 * record has, the code among them: what no agent can be faster than that puts every record into a
 * file. The sizes come from a dump of the real agent.
 *
 * Options: nothing (floor), or DUMP,FILE (limit): the dump to take sizes from, the file to write.
 * Works loaded at start and attached; when attached it has everything told again (GenerateEvents).
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
#include <unistd.h>

static uint32_t *sizes; /* bytes of each group of the dump, [DEBUG_INFO] LOAD */
static size_t size_count;
static atomic_size_t next_size;
static char *filler;
static int file = -1;
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

static void JNICALL on_load(jvmtiEnv *env, jmethodID method, jint size, const void *address,
                            jint map_length, const jvmtiAddrLocationMap *map, const void *info)
{
    (void)env;
    (void)method;
    (void)map_length;
    (void)map;
    (void)info;
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

static jint start(JavaVM *vm, char *options)
{
    if (options != NULL && *options != '\0') {
        char *path = strchr(options, ',');
        if (path == NULL) {
            return JNI_ERR;
        }
        *path++ = '\0';
        file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        if (file < 0 || !read_sizes(options)) {
            fprintf(stderr, "limit: failed to read %s or to write %s\n", options, path);
            return JNI_ERR;
        }
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
    free(sizes);
    free(filler);
    sizes = NULL;
    filler = NULL;
    size_count = 0;
    next_size = 0;
}
