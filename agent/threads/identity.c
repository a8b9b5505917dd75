/*
 * Mounts and unmounts are JVMTI extension events, found by their names (JDK 21 and later). In them
 * a thread may ask JNI for a field of the virtual thread, which is all that we do: the journal is
 * its own memory (agent/threads/journal.c), and no session is looked for.
 */
#include "agent/threads/identity.h"

#include "agent/hotspot/hotspot.h"
#include "agent/methods/method_fetch.h"
#include "agent/threads/journal.h"
#include "agent/threads/virtual_waits.h"
#include "format/threads.h"
#include "writer/message.h"

#include <errno.h>
#include <jvmti.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

/* ---- Labels ---- */

/*
 * Labels that the program sets (java/io/jdagent/Labels.java), told to the journal. The class finds
 * our functions because HotSpot looks into the libraries of agents for native methods; whether it
 * calls them is up to its field `on`, which we set.
 */

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

/*
 * Has all loaded classes of that name call us, or not. In the live phase, on a thread of the
 * JVM's. One that is loaded later asks by itself.
 */
static void labels_switch(jvmtiEnv *jvmti, JNIEnv *jni, bool on)
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

/* ---- Identity ---- */

/* UTF-16 units of a name that are read: one more than the journal keeps of bytes, so that it knows
 * of a name that is longer. Each is three bytes at most. */
#define NAME_UNITS (THREADS_TEXT_MAX + 1)

/* The fields of java.lang.Thread. */
static struct {
    jfieldID id;    /* tid */
    jfieldID name;  /* NULL: unknown */
    jfieldID eetop; /* NULL: unknown */
    bool known;
} fields;

/* Indexes of the extension events; -1: there are none. */
static jint mount_event = -1;
static jint unmount_event = -1;

static bool find_fields(jvmtiEnv *jvmti, JNIEnv *jni)
{
    if (fields.known) {
        return true;
    }
    jclass thread = (*jni)->FindClass(jni, "java/lang/Thread");
    if (!thread) {
        (*jni)->ExceptionClear(jni);
        return false;
    }
    fields.id = field_fetch(jvmti, thread, "tid", "J");
    fields.name = field_fetch(jvmti, thread, "name", "Ljava/lang/String;");
    fields.eetop = field_fetch(jvmti, thread, "eetop", "J");
    (*jni)->DeleteLocalRef(jni, thread);
    fields.known = fields.id != NULL;
    return fields.known;
}

/* ---- Platform threads ---- */

static void tell_name(jvmtiEnv *jvmti, JNIEnv *jni, jthread thread, uint32_t tid)
{
    jvmtiThreadInfo info = {0};
    if ((*jvmti)->GetThreadInfo(jvmti, thread, &info) != JVMTI_ERROR_NONE) {
        return;
    }
    if (info.name) {
        journal_platform_name((uint64_t)(*jni)->GetLongField(jni, thread, fields.id), tid,
                              info.name, strlen(info.name));
        (*jvmti)->Deallocate(jvmti, (unsigned char *)info.name);
    }
    if (info.thread_group) {
        (*jni)->DeleteLocalRef(jni, info.thread_group);
    }
    if (info.context_class_loader) {
        (*jni)->DeleteLocalRef(jni, info.context_class_loader);
    }
}

static void JNICALL thread_start(jvmtiEnv *jvmti, JNIEnv *jni, jthread thread)
{
    if (journal_is_open()) {
        tell_name(jvmti, jni, thread, 0);
    }
}

static void JNICALL thread_end(jvmtiEnv *jvmti, JNIEnv *jni, jthread thread)
{
    if (journal_is_open()) {
        tell_name(jvmti, jni, thread, 0);
        journal_thread_end();
    }
}

/* The kernel's id of a thread that is there; 0: not to be had, or it has ended. */
static uint32_t tid_of(const struct hotspot *hotspot, JNIEnv *jni, jthread thread)
{
    if (!fields.eetop) {
        return 0;
    }
    jlong java_thread = (*jni)->GetLongField(jni, thread, fields.eetop);
    uint32_t tid = hotspot_thread_id(hotspot, (uint64_t)java_thread);
    return (*jni)->GetLongField(jni, thread, fields.eetop) == java_thread ? tid : 0;
}

static void tell_all_names(const struct session *session, JNIEnv *jni)
{
    jvmtiEnv *jvmti = session->jvm.jvmti;
    jint count = 0;
    jthread *threads = NULL;
    if ((*jvmti)->GetAllThreads(jvmti, &count, &threads) != JVMTI_ERROR_NONE) {
        return;
    }
    for (jint i = 0; i < count; i++) {
        uint32_t tid = tid_of(session->jvm.hotspot, jni, threads[i]);
        if (tid) {
            tell_name(jvmti, jni, threads[i], tid);
        }
        (*jni)->DeleteLocalRef(jni, threads[i]);
    }
    (*jvmti)->Deallocate(jvmti, (unsigned char *)threads);
}

/* ---- Virtual threads ---- */

static void tell_virtual_name(JNIEnv *jni, jthread thread, uint64_t id)
{
    char text[3 * NAME_UNITS + 1];
    jstring name = (*jni)->GetObjectField(jni, thread, fields.name);
    if (!name) {
        return;
    }
    jsize length = (*jni)->GetStringLength(jni, name);
    if (length > 0) {
        jsize taken = length < NAME_UNITS ? length : NAME_UNITS;
        memset(text, 0, sizeof(text)); /* the JVM need not end it */
        (*jni)->GetStringUTFRegion(jni, name, 0, taken, text);
        journal_virtual_name(id, text, strlen(text));
    }
    (*jni)->DeleteLocalRef(jni, name);
}

/* What a mount or an unmount is of. */
struct transition {
    JNIEnv *jni;
    jthread thread;
    uint64_t id;
};

/* False: there is no journal. */
static bool read_transition(va_list arguments, struct transition *transition)
{
    if (!journal_is_open()) {
        return false;
    }
    transition->jni = va_arg(arguments, JNIEnv *);
    transition->thread = va_arg(arguments, jthread);
    transition->id =
        (uint64_t)(*transition->jni)->GetLongField(transition->jni, transition->thread, fields.id);
    return true;
}

/* These two are called through a type with `...`, whatever their arguments are. */
static void JNICALL virtual_mount(jvmtiEnv *jvmti, ...)
{
    struct transition mount;
    va_list arguments;
    va_start(arguments, jvmti);
    bool is_told = read_transition(arguments, &mount);
    va_end(arguments);
    if (is_told) {
        journal_mount(mount.id);
        if (fields.name && !journal_knows_virtual(mount.id)) {
            tell_virtual_name(mount.jni, mount.thread, mount.id);
        }
        virtual_waits_end(mount.id);
    }
}

static void JNICALL virtual_unmount(jvmtiEnv *jvmti, ...)
{
    struct transition unmount;
    va_list arguments;
    va_start(arguments, jvmti);
    if (read_transition(arguments, &unmount)) {
        journal_unmount(unmount.id);
        virtual_waits_begin(jvmti, unmount.jni, unmount.thread, unmount.id);
    }
    va_end(arguments);
}

static void free_parameters(jvmtiEnv *jvmti, jvmtiExtensionEventInfo *event)
{
    for (jint i = 0; i < event->param_count; i++) {
        (*jvmti)->Deallocate(jvmti, (unsigned char *)event->params[i].name);
    }
    (*jvmti)->Deallocate(jvmti, (unsigned char *)event->params);
    (*jvmti)->Deallocate(jvmti, (unsigned char *)event->id);
    (*jvmti)->Deallocate(jvmti, (unsigned char *)event->short_description);
}

static void find_extension_events(jvmtiEnv *jvmti)
{
    jint count = 0;
    jvmtiExtensionEventInfo *events = NULL;
    if (mount_event >= 0 ||
        (*jvmti)->GetExtensionEvents(jvmti, &count, &events) != JVMTI_ERROR_NONE) {
        return;
    }
    for (jint i = 0; i < count; i++) {
        if (strcmp(events[i].id, "com.sun.hotspot.events.VirtualThreadMount") == 0) {
            mount_event = events[i].extension_event_index;
        } else if (strcmp(events[i].id, "com.sun.hotspot.events.VirtualThreadUnmount") == 0) {
            unmount_event = events[i].extension_event_index;
        }
        free_parameters(jvmti, &events[i]);
    }
    (*jvmti)->Deallocate(jvmti, (unsigned char *)events);
}

/* A callback alone brings no events: they have to be asked for as well. */
static bool ask_extension(jvmtiEnv *jvmti, jint event, jvmtiExtensionEvent callback)
{
    jvmtiError error = (*jvmti)->SetExtensionEventCallback(jvmti, event, callback);
    if (error == JVMTI_ERROR_NONE) {
        error = (*jvmti)->SetEventNotificationMode(jvmti, JVMTI_ENABLE, (jvmtiEvent)event, NULL);
    }
    if (error != JVMTI_ERROR_NONE) {
        message(MESSAGE_WARNING,
                "threads: failed to ask for the mounts of virtual threads: JVMTI error %d",
                (int)error);
    }
    return error == JVMTI_ERROR_NONE;
}

static void begin_virtual(const struct session *session)
{
    jvmtiEnv *jvmti = session->jvm.jvmti;
    if (session->jvm.major < 21) {
        return; /* there are none */
    }
    find_extension_events(jvmti);
    if (mount_event < 0 || unmount_event < 0) {
        message(MESSAGE_WARNING, "threads: this JVM does not report virtual threads");
        return;
    }
    virtual_waits_switch(session->options.waits);
    if (ask_extension(jvmti, unmount_event, virtual_unmount)) {
        (void)ask_extension(jvmti, mount_event, virtual_mount);
    }
}

static void end_virtual(jvmtiEnv *jvmti)
{
    const jint events[] = {mount_event, unmount_event};
    for (int i = 0; i < 2; i++) {
        if (events[i] >= 0) {
            (void)(*jvmti)->SetEventNotificationMode(jvmti, JVMTI_DISABLE, (jvmtiEvent)events[i],
                                                     NULL);
            (void)(*jvmti)->SetExtensionEventCallback(jvmti, events[i], NULL);
        }
    }
    virtual_waits_switch(false);
}

/* ---- On and off ---- */

void identity_callbacks(jvmtiEventCallbacks *callbacks)
{
    callbacks->ThreadStart = thread_start;
    callbacks->ThreadEnd = thread_end;
}

int identity_open(struct session *session)
{
    char path[PATH_MAX];
    if (!session->sinks.log) {
        return -EINVAL; /* without a dump, of which has been told */
    }
    int directory = record_log_beside(session->sinks.log, "threads", path);
    if (directory < 0) {
        message(MESSAGE_ERROR, "failed to start %s: %s", path, strerror(-directory));
        return directory;
    }
    const struct journal_options options = {
        .directory = directory,
        .path = path,
        .pid = (uint32_t)getpid(),
        .tsc = session->options.tsc,
        .max_bytes = session->options.max_bytes,
        .endless = session->options.segment != 0,
        .reserve = session->options.reserve,
    };
    int error = journal_open(&options);
    session->journal = error == 0;
    return error;
}

static const jvmtiEvent events[] = {JVMTI_EVENT_THREAD_START, JVMTI_EVENT_THREAD_END};

void identity_begin(struct session *session, JNIEnv *jni)
{
    jvmtiEnv *jvmti = session->jvm.jvmti;
    if (!session->journal || session->identified) {
        return;
    }
    session->identified = true;
    if (!find_fields(jvmti, jni)) {
        message(MESSAGE_WARNING, "threads: this JVM's java.lang.Thread is not the expected one");
        return;
    }
    for (size_t i = 0; i < sizeof(events) / sizeof(*events); i++) {
        jvmtiError error = (*jvmti)->SetEventNotificationMode(jvmti, JVMTI_ENABLE, events[i], NULL);
        if (error != JVMTI_ERROR_NONE) {
            message(MESSAGE_WARNING, "threads: failed to ask for JVMTI event %d: JVMTI error %d",
                    (int)events[i], (int)error);
        }
    }
    begin_virtual(session);
    labels_switch(jvmti, jni, true);
    tell_all_names(session, jni); /* those that start from now on tell theirs */
}

void identity_end(struct session *session, JNIEnv *jni)
{
    jvmtiEnv *jvmti = session->jvm.jvmti;
    if (!session->identified || !fields.known) {
        return;
    }
    end_virtual(jvmti);
    labels_switch(jvmti, jni, false);
    for (size_t i = 0; i < sizeof(events) / sizeof(*events); i++) {
        (void)(*jvmti)->SetEventNotificationMode(jvmti, JVMTI_DISABLE, events[i], NULL);
    }
    tell_all_names(session, jni);
}

void identity_close(struct session *session)
{
    if (session->journal) {
        journal_close();
        session->journal = false;
    }
}
