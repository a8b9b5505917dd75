/*
 * jcmd's way to VM.log leads through a socket and a process; the platform's MBean of diagnostic
 * commands has a native method that runs one in the calling thread. JNI may call it though it is
 * private; its library is loaded by the class that provides the bean.
 */
#include "agent/jvm_log.h"

#include "writer/message.h"

#include <stdio.h>
#include <string.h>

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
    static const char from[] = ".dump";
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "/._+-@";
    static const char word[] = "file=";
    char path[PATH_MAX];
    record_log_path(session->sinks.log, path);
    size_t stem = strlen(path) - (sizeof(from) - 1);
    path[stem] = '\0';
    snprintf(output, PATH_MAX + 16, "%s%s.log", word, path);
    return strspn(path, plain) == stem;
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
        message(MESSAGE_WARNING, "log: it would stand beside a dump of one file, which is not "
                                 "written here");
        return;
    }
    if (!name_output(session, output)) {
        message(MESSAGE_WARNING, "log: the JVM cannot be told of such a path: '%s'", output);
        return;
    }
    snprintf(command, sizeof(command),
             "VM.log output=%s what=gc=info,safepoint=info decorators=timenanos,tid,tags "
             "output_options=filecount=1,filesize=" FILE_SIZE,
             output);
    session->logs = run(jni, command);
    if (!session->logs) {
        message(MESSAGE_WARNING, "log: this JVM does not take %s (module jdk.management?)",
                command);
    }
}

void jvm_log_end(struct session *session, JNIEnv *jni)
{
    char output[PATH_MAX + 16];
    char command[COMMAND_MAX];
    if (session->logs && name_output(session, output)) {
        session->logs = false;
        snprintf(command, sizeof(command), "VM.log output=%s what=all=off", output);
        if (!run(jni, command)) {
            message(MESSAGE_WARNING, "log: this JVM does not take %s", command);
        }
    }
}
