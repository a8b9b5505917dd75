#include "agent/methods/method_fetch.h"

#include "writer/message.h"

#include <string.h>

/*
 * A class file may have any number of line tables for a method, and HotSpot makes one of all. No
 * method has more lines than bytecodes (JVMS 4.7.3: 65535) but one that is made to do harm.
 */
enum { LINES_MAX = 2 * 65536 };

/* Tells what went wrong, for those who look for it; the method stays without that piece. */
static bool fine(jvmtiError error, const char *what)
{
    if (error == JVMTI_ERROR_NONE) {
        return true;
    }
    message(MESSAGE_DEBUG, "failed to get %s: JVMTI error %d", what, (int)error);
    return false;
}

bool class_fetch(jvmtiEnv *jvmti, jclass klass, struct fetched_class *fetched)
{
    *fetched = (struct fetched_class){0};
    if (!fine((*jvmti)->GetClassSignature(jvmti, klass, &fetched->signature, NULL),
              "a class signature")) {
        fetched->signature = NULL;
        return false;
    }
    jvmtiError error = (*jvmti)->GetSourceFileName(jvmti, klass, &fetched->source_file);
    if (error != JVMTI_ERROR_NONE) {
        fetched->source_file = NULL;
        if (error != JVMTI_ERROR_ABSENT_INFORMATION) {
            fine(error, "a source file's name");
        }
    }
    error = (*jvmti)->GetSourceDebugExtension(jvmti, klass, &fetched->source_map);
    if (error != JVMTI_ERROR_NONE) {
        fetched->source_map = NULL;
        if (error != JVMTI_ERROR_ABSENT_INFORMATION &&
            error != JVMTI_ERROR_MUST_POSSESS_CAPABILITY) {
            fine(error, "a source map");
        }
    }
    return true;
}

bool class_fetch_of_method(jvmtiEnv *jvmti, JNIEnv *jni, jmethodID id,
                           struct fetched_class *fetched)
{
    jclass klass = NULL;
    if (!fine((*jvmti)->GetMethodDeclaringClass(jvmti, id, &klass), "a method's class")) {
        return false;
    }
    bool known = class_fetch(jvmti, klass, fetched);
    /* A replay sends thousands of methods through one callback frame of the attach thread. */
    if (jni) {
        (*jni)->DeleteLocalRef(jni, klass);
    }
    return known;
}

/* See source_name.h, and JVMS 4.6 for the bits. */
static bool is_private_static(jvmtiEnv *jvmti, jmethodID id)
{
    enum { PRIVATE_STATIC = 0x0002 | 0x0008 };
    jint modifiers = 0;
    return fine((*jvmti)->GetMethodModifiers(jvmti, id, &modifiers), "a method's modifiers") &&
           (modifiers & PRIVATE_STATIC) == PRIVATE_STATIC;
}

bool method_fetch(jvmtiEnv *jvmti, jmethodID id, struct fetched_method *fetched)
{
    *fetched = (struct fetched_method){0};
    if (!fine((*jvmti)->GetMethodName(jvmti, id, &fetched->name, &fetched->descriptor, NULL),
              "a method's name")) {
        fetched->name = fetched->descriptor = NULL;
        return false;
    }
    fetched->is_private_static = strchr(fetched->name, '$') && is_private_static(jvmti, id);
    jvmtiError error =
        (*jvmti)->GetLineNumberTable(jvmti, id, &fetched->line_count, &fetched->lines);
    if (error != JVMTI_ERROR_NONE) {
        fetched->line_count = 0;
        fetched->lines = NULL;
        fetched->native = error == JVMTI_ERROR_NATIVE_METHOD;
        if (!fetched->native && error != JVMTI_ERROR_ABSENT_INFORMATION) {
            fine(error, "a line table");
        }
    } else if (fetched->line_count > LINES_MAX) {
        message(MESSAGE_DEBUG, "%s has %d lines, too many: it gets none", fetched->name,
                (int)fetched->line_count);
        fetched->line_count = 0;
    }
    return true;
}

uint32_t method_fetch_lines(const struct fetched_method *fetched, struct line_entry *lines)
{
    uint32_t count = 0;
    for (jint i = 0; i < fetched->line_count; i++) {
        const jvmtiLineNumberEntry *entry = &fetched->lines[i];
        if (entry->start_location >= 0 && entry->line_number >= 0) {
            lines[count++] = (struct line_entry){.bci = (uint32_t)entry->start_location,
                                                 .line = (uint32_t)entry->line_number};
        }
    }
    return line_table_sort(lines, count);
}

static void give_back(jvmtiEnv *jvmti, void *memory)
{
    if (memory) {
        (*jvmti)->Deallocate(jvmti, memory);
    }
}

void class_fetch_free(jvmtiEnv *jvmti, struct fetched_class *fetched)
{
    give_back(jvmti, fetched->signature);
    give_back(jvmti, fetched->source_file);
    give_back(jvmti, fetched->source_map);
    *fetched = (struct fetched_class){0};
}

void method_fetch_free(jvmtiEnv *jvmti, struct fetched_method *fetched)
{
    give_back(jvmti, fetched->name);
    give_back(jvmti, fetched->descriptor);
    give_back(jvmti, fetched->lines);
    *fetched = (struct fetched_method){0};
}

jfieldID field_fetch(jvmtiEnv *jvmti, jclass klass, const char *name, const char *type)
{
    jint count = 0;
    jfieldID *fields = NULL;
    jfieldID found = NULL;
    if ((*jvmti)->GetClassFields(jvmti, klass, &count, &fields) != JVMTI_ERROR_NONE) {
        return NULL;
    }
    for (jint i = 0; i < count && !found; i++) {
        char *its_name = NULL;
        char *its_type = NULL;
        if ((*jvmti)->GetFieldName(jvmti, klass, fields[i], &its_name, &its_type, NULL) ==
                JVMTI_ERROR_NONE &&
            strcmp(its_name, name) == 0 && (!type || strcmp(its_type, type) == 0)) {
            found = fields[i];
        }
        (void)(*jvmti)->Deallocate(jvmti, (unsigned char *)its_name);
        (void)(*jvmti)->Deallocate(jvmti, (unsigned char *)its_type);
    }
    (void)(*jvmti)->Deallocate(jvmti, (unsigned char *)fields);
    return found;
}
