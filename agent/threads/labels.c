#include "agent/threads/labels.h"

#include "agent/threads/journal.h"
#include "format/threads.h"

#include <string.h>

/* One UTF-16 unit more than the journal keeps bytes; each is three bytes at most. */
#define TEXT_UNITS (THREADS_TEXT_MAX + 1)

JNIEXPORT jboolean JNICALL Java_io_jdagent_Labels_register0(JNIEnv *jni, jclass klass);
JNIEXPORT jboolean JNICALL Java_io_jdagent_Labels_set0(JNIEnv *jni, jclass klass, jlong id);
JNIEXPORT void JNICALL Java_io_jdagent_Labels_text0(JNIEnv *jni, jclass klass, jlong id,
                                                    jstring text);

JNIEXPORT jboolean JNICALL Java_io_jdagent_Labels_register0(JNIEnv *jni, jclass klass)
{
    (void)jni;
    (void)klass;
    return journal_is_open() ? JNI_TRUE : JNI_FALSE;
}

JNIEXPORT jboolean JNICALL Java_io_jdagent_Labels_set0(JNIEnv *jni, jclass klass, jlong id)
{
    (void)jni;
    (void)klass;
    journal_label((uint64_t)id);
    return id != 0 && journal_is_open() && !journal_knows_label((uint64_t)id) ? JNI_TRUE
                                                                              : JNI_FALSE;
}

JNIEXPORT void JNICALL Java_io_jdagent_Labels_text0(JNIEnv *jni, jclass klass, jlong id,
                                                    jstring text)
{
    char bytes[3 * TEXT_UNITS + 1];
    (void)klass;
    if (!text) {
        return;
    }
    jsize length = (*jni)->GetStringLength(jni, text);
    memset(bytes, 0, sizeof(bytes)); /* the JVM need not end it */
    (*jni)->GetStringUTFRegion(jni, text, 0, length < TEXT_UNITS ? length : TEXT_UNITS, bytes);
    journal_label_text((uint64_t)id, bytes, strlen(bytes));
}

/* One that is not initialized is on its way to ask by itself. */
static bool is_ours(jvmtiEnv *jvmti, jclass klass)
{
    char *signature = NULL;
    jint status = 0;
    if ((*jvmti)->GetClassSignature(jvmti, klass, &signature, NULL) != JVMTI_ERROR_NONE) {
        return false;
    }
    bool is = strcmp(signature, "Lio/jdagent/Labels;") == 0;
    (*jvmti)->Deallocate(jvmti, (unsigned char *)signature);
    return is && (*jvmti)->GetClassStatus(jvmti, klass, &status) == JVMTI_ERROR_NONE &&
           (status & JVMTI_CLASS_STATUS_INITIALIZED) != 0;
}

void labels_switch(jvmtiEnv *jvmti, JNIEnv *jni, bool on)
{
    jint count = 0;
    jclass *classes = NULL;
    if ((*jvmti)->GetLoadedClasses(jvmti, &count, &classes) != JVMTI_ERROR_NONE) {
        return;
    }
    for (jint i = 0; i < count; i++) {
        if (is_ours(jvmti, classes[i])) {
            jfieldID field = (*jni)->GetStaticFieldID(jni, classes[i], "on", "Z");
            if (field) {
                (*jni)->SetStaticBooleanField(jni, classes[i], field, on ? JNI_TRUE : JNI_FALSE);
            } else {
                (*jni)->ExceptionClear(jni); /* somebody else's class of that name */
            }
        }
        (*jni)->DeleteLocalRef(jni, classes[i]);
    }
    (*jvmti)->Deallocate(jvmti, (unsigned char *)classes);
}
