/*
 * The agent's entry points.
 *
 * At the JVM's start a wrong option ends the start, for it is the user's to mend; what the
 * environment does (no directory, disk full) leaves the JVM without a profile, but running, unless
 * strict=on asks otherwise. On attach either is the command's failure, and the JVM goes on.
 */
#include "agent/session/commands.h"
#include "writer/message.h"

#include <jvmti.h>
#include <pthread.h>
#include <stdint.h>
#include <unistd.h>

/*
 * Reads a byte of each page from here to where this thread's stack began, so that all are there.
 * While HotSpot creates the JVM one of them never was touched (a large array in a frame of its),
 * and perf, which may not fault, ends its copy of the stack at such a page: callers were missing
 * from every sample of the JVM's start.
 */
__attribute__((no_sanitize_address, no_sanitize_thread)) static void touch_stack(void)
{
    enum { MOST = 256 }; /* pages; an application that embeds a JVM may be deep in its own calls */
    pthread_attr_t attributes;
    void *end;
    size_t size;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) {
        return;
    }
    if (pthread_attr_getstack(&attributes, &end, &size) == 0) {
        uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
        uintptr_t at = (uintptr_t)__builtin_frame_address(0);
        uintptr_t top = (uintptr_t)end + size;
        for (int i = 0; i < MOST && at < top && top - at < size; i++, at += page) {
            (void)*(const volatile char *)at;
        }
    }
    pthread_attr_destroy(&attributes);
}

JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM *vm, char *text, void *reserved)
{
    (void)reserved;
    struct options options;
    char error[OPTIONS_ERROR_MAX];
    if (options_parse(text, &options, error) != 0) {
        message(MESSAGE_ERROR, "%s", error);
        return JNI_ERR;
    }
    if (options.command != COMMAND_START) {
        message(MESSAGE_ERROR, "'%s' is a command for a running JVM, not for its start",
                options.command == COMMAND_STOP ? "stop" : "status");
        return JNI_ERR;
    }
    touch_stack();
    if (command_start(vm, &options, false) != 0) {
        /* The fault has been told; one message is enough for a JVM that runs all the same. */
        message(options.strict ? MESSAGE_ERROR : MESSAGE_INFO,
                options.strict ? "strict=on: the JVM does not start"
                               : "the JVM starts without a profile");
        return options.strict ? JNI_ERR : JNI_OK;
    }
    return JNI_OK;
}

JNIEXPORT jint JNICALL Agent_OnAttach(JavaVM *vm, char *text, void *reserved)
{
    (void)reserved;
    struct options options;
    char error[OPTIONS_ERROR_MAX];
    if (options_parse(text, &options, error) != 0) {
        message(MESSAGE_ERROR, "%s", error);
        return JNI_ERR;
    }
    if (options.verbose >= 0) {
        message_set_level(options.verbose);
    }
    switch (options.command) {
    case COMMAND_START:
        return command_start(vm, &options, true);
    case COMMAND_STOP:
        command_stop(options.lease);
        break;
    case COMMAND_STATUS:
        return command_status(options.status_path) == 0 ? JNI_OK : JNI_ERR;
    }
    return JNI_OK;
}

JNIEXPORT void JNICALL Agent_OnUnload(JavaVM *vm)
{
    (void)vm;
    command_unload();
}
