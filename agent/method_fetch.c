#include "agent/method_fetch.h"

#include "writer/message.h"

#include <string.h>

/* Tells what went wrong, for those who look for it; the method stays without that piece. */
static bool fine(jvmtiError error, const char *what)
{
    if (error == JVMTI_ERROR_NONE) {
        return true;
    }
    message(MESSAGE_DEBUG, "failed to get %s: JVMTI error %d", what, (int)error);
    return false;
}

static void fetch_class(jvmtiEnv *jvmti, jclass klass, struct fetched_method *fetched)
{
    if (!fine((*jvmti)->GetClassSignature(jvmti, klass, &fetched->class_signature, NULL),
              "a class signature")) {
        fetched->class_signature = NULL;
        return;
    }
    jvmtiError error = (*jvmti)->GetSourceFileName(jvmti, klass, &fetched->source_file);
    if (error != JVMTI_ERROR_NONE) {
        fetched->source_file = NULL;
        if (error != JVMTI_ERROR_ABSENT_INFORMATION) {
            fine(error, "a source file's name");
        }
    }
}

bool method_fetch(jvmtiEnv *jvmti, JNIEnv *jni, jmethodID id, struct fetched_method *fetched)
{
    memset(fetched, 0, sizeof(*fetched));
    if (!fine((*jvmti)->GetMethodName(jvmti, id, &fetched->name, &fetched->descriptor, NULL),
              "a method's name")) {
        fetched->name = fetched->descriptor = NULL;
        return false;
    }
    jclass klass = NULL;
    if (fine((*jvmti)->GetMethodDeclaringClass(jvmti, id, &klass), "a method's class")) {
        fetch_class(jvmti, klass, fetched);
        /* A replay sends thousands of methods through one callback frame of the attach thread. */
        if (jni) {
            (*jni)->DeleteLocalRef(jni, klass);
        }
    }
    if (!fetched->class_signature) {
        method_fetch_free(jvmti, fetched);
        return false;
    }
    jvmtiError error =
        (*jvmti)->GetLineNumberTable(jvmti, id, &fetched->line_count, &fetched->lines);
    if (error != JVMTI_ERROR_NONE) {
        fetched->line_count = 0;
        fetched->lines = NULL;
        fetched->native = error == JVMTI_ERROR_NATIVE_METHOD;
        if (!fetched->native && error != JVMTI_ERROR_ABSENT_INFORMATION) {
            fine(error, "a line table");
        }
    }
    return true;
}

static void give_back(jvmtiEnv *jvmti, void *memory)
{
    if (memory) {
        (*jvmti)->Deallocate(jvmti, memory);
    }
}

void method_fetch_free(jvmtiEnv *jvmti, struct fetched_method *fetched)
{
    give_back(jvmti, fetched->name);
    give_back(jvmti, fetched->descriptor);
    give_back(jvmti, fetched->class_signature);
    give_back(jvmti, fetched->source_file);
    give_back(jvmti, fetched->lines);
    memset(fetched, 0, sizeof(*fetched));
}
