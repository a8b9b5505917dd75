/*
 * jcmd's way to VM.log leads through a socket and a process; the platform's MBean of diagnostic
 * commands has a native method that runs one in the calling thread. JNI may call it though it is
 * private; its library is loaded by the class that provides the bean.
 */
#include "agent/session/jvm_log.h"

#include "writer/message.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define COMMAND_MAX (PATH_MAX + 256)

/* After this many bytes the JVM begins a new file and keeps the one before it, as PATH.0. */
#define FILE_SIZE "256M"

static jobject diagnostic_commands(JNIEnv *jni, jmethodID *execute)
{
    jclass provider =
        (*jni)->FindClass(jni, "com/sun/management/internal/PlatformMBeanProviderImpl");
    jclass klass = provider
                       ? (*jni)->FindClass(jni, "com/sun/management/internal/DiagnosticCommandImpl")
                       : NULL;
    jmethodID get = klass
                        ? (*jni)->GetStaticMethodID(jni, klass, "getDiagnosticCommandMBean",
                                                    "()Lcom/sun/management/DiagnosticCommandMBean;")
                        : NULL;
    *execute = get ? (*jni)->GetMethodID(jni, klass, "executeDiagnosticCommand",
                                         "(Ljava/lang/String;)Ljava/lang/String;")
                   : NULL;
    return *execute ? (*jni)->CallStaticObjectMethod(jni, klass, get) : NULL;
}

/* Whether the JVM did it without a word, which it says otherwise. */
static bool run(JNIEnv *jni, const char *command)
{
    jmethodID execute = NULL;
    bool done = false;
    if ((*jni)->PushLocalFrame(jni, 16) != 0) {
        (*jni)->ExceptionClear(jni);
        return false;
    }
    jobject commands = diagnostic_commands(jni, &execute);
    jstring text =
        commands && !(*jni)->ExceptionCheck(jni) ? (*jni)->NewStringUTF(jni, command) : NULL;
    jstring answer = text ? (*jni)->CallObjectMethod(jni, commands, execute, text) : NULL;
    if (answer && !(*jni)->ExceptionCheck(jni)) {
        done = (*jni)->GetStringLength(jni, answer) == 0;
    }
    (*jni)->ExceptionClear(jni);
    (void)(*jni)->PopLocalFrame(jni, NULL);
    return done;
}

/* "file=PATH" as VM.log takes it. False: the path has what would be read as something else: a space
 * ends it, %p is the pid. */
static bool name_output(const struct session *session, char output[PATH_MAX + 16])
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "/._+-@";
    char path[PATH_MAX];
    bool is_known = record_log_beside(session->sinks.log, "log", path) >= 0;
    snprintf(output, PATH_MAX + 16, "file=%s", path);
    return is_known && path[strspn(path, plain)] == '\0';
}

/*
 * The JVM makes the file, by its path, readable to all that its umask lets; and makes it anew when
 * one is there that we have made, so it is taken from others afterwards. The one before it (see
 * FILE_SIZE) is its own work as well, and may be the whole session's end.
 */
static void make_private(const struct session *session)
{
    char path[PATH_MAX];
    int directory = record_log_beside(session->sinks.log, "log", path);
    for (int i = 0; directory >= 0 && i < 2; i++) {
        char name[PATH_MAX + 2];
        struct stat status;
        snprintf(name, sizeof(name), "%s%s", strrchr(path, '/') + 1, i ? ".0" : "");
        int fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd >= 0) {
            if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid()) {
                (void)fchmod(fd, 0600);
            }
            close(fd);
        }
    }
}

void jvm_log_begin(struct session *session, JNIEnv *jni)
{
    char output[PATH_MAX + 16];
    char command[COMMAND_MAX];
    if (!session->options.log || session->logs) {
        return;
    }
    if (session->jvm.major < 9) {
        message(MESSAGE_WARNING, "log: JDK %d has no VM.log, JDK 9 and later have",
                session->jvm.major);
        return;
    }
    if (!session->sinks.log || session->options.segment) {
        message(MESSAGE_WARNING,
                "log: it needs a dump in one file, which this session does not write");
        return;
    }
    if (!name_output(session, output)) {
        message(MESSAGE_WARNING, "log: the JVM does not accept this path: '%s'", output);
        return;
    }
    snprintf(command, sizeof(command),
             "VM.log output=%s what=gc=info,safepoint=info decorators=timenanos,tid,tags "
             "output_options=filecount=1,filesize=" FILE_SIZE,
             output);
    session->logs = run(jni, command);
    make_private(session);
    if (!session->logs) {
        message(MESSAGE_WARNING, "log: this JVM does not accept %s (module jdk.management?)",
                command);
    }
}

void jvm_log_end(struct session *session, JNIEnv *jni)
{
    char output[PATH_MAX + 16];
    char command[COMMAND_MAX];
    if (session->logs && name_output(session, output)) {
        session->logs = false;
        make_private(session);
        snprintf(command, sizeof(command), "VM.log output=%s what=all=off", output);
        if (!run(jni, command)) {
            message(MESSAGE_WARNING, "log: this JVM does not accept %s", command);
        }
    }
}
