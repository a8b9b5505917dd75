/*
 * A java.lang.Class holds, as a field that Java does not see, the address of its Klass; where, is
 * told by java_lang_Class::_klass_offset. The object moves, so the JVM has to read the field for
 * us. JNI's GetLongField does, given HotSpot's own form of a field id
 * (runtime/jfieldIDWorkaround.hpp): the offset above two bits, the upper of which says "instance
 * field". In JDK 28 the form is another one. And -Xcheck:jni looks into such an id, finds that the
 * field is not declared, and ends the JVM. In both cases the JDK's own Unsafe reads the field, ten
 * times slower, and tells the offsets of others.
 */
#include "agent/methods/proof.h"

#include "agent/methods/method_fetch.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct proof {
    struct hotspot *hotspot;
    int major; /* version */
    /* How a class's Klass is had. */
    int64_t klass_offset;
    bool by_unsafe;
    jobject unsafe;
    jmethodID get_long;
    jmethodID get_offset; /* of a field; NULL before JDK 10 */

    int32_t frozen[JITDUMP_CODE_FROZEN_COUNT];
    atomic_bool knows_frozen;
    atomic_bool tried;
};

struct proof *proof_new(struct hotspot *hotspot, int major)
{
    struct proof *proof = hotspot ? calloc(1, sizeof(*proof)) : NULL;
    if (proof) {
        proof->hotspot = hotspot;
        proof->major = major;
    }
    return proof;
}

/* ---- From a class to its Klass ---- */

static bool clear_exception(JNIEnv *jni)
{
    bool pending = (*jni)->ExceptionCheck(jni);
    if (pending) {
        (*jni)->ExceptionClear(jni);
    }
    return pending;
}

/* The JDK's Unsafe, for proof_klass. False: there is none. */
static bool find_unsafe(struct proof *proof, JNIEnv *jni)
{
    static const char *const classes[] = {"jdk/internal/misc/Unsafe", "sun/misc/Unsafe"};
    static const char *const types[] = {"Ljdk/internal/misc/Unsafe;", "Lsun/misc/Unsafe;"};
    for (int i = proof->major < 9; i < 2 && !proof->unsafe; i++) {
        jclass klass = (*jni)->FindClass(jni, classes[i]);
        if (clear_exception(jni) || !klass) {
            continue;
        }
        jfieldID field = (*jni)->GetStaticFieldID(jni, klass, "theUnsafe", types[i]);
        if (!clear_exception(jni) && field) {
            jobject unsafe = (*jni)->GetStaticObjectField(jni, klass, field);
            proof->get_long = (*jni)->GetMethodID(jni, klass, "getLong", "(Ljava/lang/Object;J)J");
            if (!clear_exception(jni) && unsafe && proof->get_long) {
                proof->unsafe = (*jni)->NewGlobalRef(jni, unsafe);
                proof->get_offset = (*jni)->GetMethodID(jni, klass, "objectFieldOffset",
                                                        "(Ljava/lang/Class;Ljava/lang/String;)J");
                (void)clear_exception(jni);
            }
            (*jni)->DeleteLocalRef(jni, unsafe);
        }
        (*jni)->DeleteLocalRef(jni, klass);
    }
    return proof->unsafe != NULL;
}

/* The address of a class's Klass; 0: not to be had. */
static uint64_t klass_of(const struct proof *proof, JNIEnv *jni, jclass klass)
{
    jlong value = 0;
    if (!proof->by_unsafe) {
        uintptr_t id = (uintptr_t)proof->klass_offset << 2 | 2;
        value = (*jni)->GetLongField(jni, klass, (jfieldID)id); // NOLINT: an id, no pointer
    } else if (proof->unsafe && !(*jni)->ExceptionCheck(jni)) {
        value = (*jni)->CallLongMethod(jni, proof->unsafe, proof->get_long, klass,
                                       (jlong)proof->klass_offset);
        value = clear_exception(jni) ? 0 : value;
    }
    return (uint64_t)value;
}

/* ---- The proof ---- */

/* Whether we have of this method what JVMTI has. */
static bool is_as_told(struct hotspot *hotspot, const struct hotspot_method *method,
                       const struct fetched_method *fetched, jmethodID id, jlong end)
{
    bool same =
        method->native == fetched->native && method->bytecode_size == (uint32_t)(end + 1) &&
        hotspot_bond_in_class(hotspot, method->address, (uint64_t)(uintptr_t)id) == HOTSPOT_SAME;
    struct line_entry *lines = malloc(((size_t)fetched->line_count + 1) * sizeof(*lines));
    uint32_t count = lines ? method_fetch_lines(fetched, lines) : 0;
    same = same && lines && count == method->line_count;
    for (uint32_t i = 0; same && i < count; i++) {
        same = lines[i].bci == method->lines[i].bci && lines[i].line == method->lines[i].line;
    }
    free(lines);
    return same;
}

/* Whether what JVMTI says of the method of this id is said of one of ours, too. */
static bool is_known(struct hotspot *hotspot, const struct hotspot_methods *methods,
                     jvmtiEnv *jvmti, jmethodID id)
{
    struct fetched_method fetched;
    jlong start = 0;
    jlong end = -1;
    if (!method_fetch(jvmti, id, &fetched)) {
        return false;
    }
    bool known = false;
    if ((*jvmti)->GetMethodLocation(jvmti, id, &start, &end) != JVMTI_ERROR_NONE) {
        end = -1; /* a native method */
    }
    for (size_t i = 0; i < methods->count && !known; i++) {
        const struct hotspot_method *method = &methods->methods[i];
        known = strcmp(method->name, fetched.name) == 0 &&
                strcmp(method->descriptor, fetched.descriptor) == 0 &&
                is_as_told(hotspot, method, &fetched, id, end);
    }
    method_fetch_free(jvmti, &fetched);
    return known;
}

/* Holds one class against JVMTI. */
static bool prove_class(const struct proof *proof, jvmtiEnv *jvmti, JNIEnv *jni, jclass klass)
{
    const uint64_t address = klass_of(proof, jni, klass);
    struct hotspot_methods methods = {0};
    jmethodID *ids = NULL;
    jint count = 0;
    size_t read = 0;
    /* The ids are made here, if they have not been. */
    if ((*jvmti)->GetClassMethods(jvmti, klass, &count, &ids) != JVMTI_ERROR_NONE) {
        return false;
    }
    bool proven = count > 0 && address &&
                  hotspot_class_methods(proof->hotspot, &address, 1, false, &methods, &read);
    for (jint i = 0; i < count && proven; i++) {
        proven = is_known(proof->hotspot, &methods, jvmti, ids[i]);
    }
    hotspot_methods_free(&methods);
    (*jvmti)->Deallocate(jvmti, (unsigned char *)ids);
    return proven;
}

/* ---- Continuations ---- */

/* The offset of a field; -1: there is none. */
static int32_t field_offset(const struct proof *proof, jvmtiEnv *jvmti, JNIEnv *jni, jclass klass,
                            const char *name)
{
    enum { INSTANCE = 2, FARTHEST = 1024 };
    if (!proof->by_unsafe) { /* its id has it above two bits (see above) */
        const uintptr_t id = (uintptr_t)field_fetch(jvmti, klass, name, NULL);
        return (id & 3) == INSTANCE && id >> 2 < FARTHEST ? (int32_t)(id >> 2) : -1;
    }
    jstring word = (*jni)->NewStringUTF(jni, name);
    jlong offset = clear_exception(jni) || !word
                       ? -1
                       : (*jni)->CallLongMethod(jni, proof->unsafe, proof->get_offset, klass, word);
    offset = clear_exception(jni) ? -1 : offset; /* InternalError: no such field */
    (*jni)->DeleteLocalRef(jni, word);
    return offset >= 0 && offset < FARTHEST ? (int32_t)offset : -1;
}

static void find_frozen(struct proof *proof, jvmtiEnv *jvmti, JNIEnv *jni)
{
    static const char *const fields[] = {"parent", "size", "sp", "bottom", "argsize"};
    enum { FIRST_JDK = 21, STACK = JITDUMP_CODE_FROZEN_STACK - JITDUMP_CODE_FROZEN_FIRST };
    /* Those move objects while threads run. */
    if ((proof->by_unsafe && !proof->get_offset) || proof->major < FIRST_JDK ||
        hotspot_flag_is_on(proof->hotspot, "UseZGC", true) ||
        hotspot_flag_is_on(proof->hotspot, "UseShenandoahGC", false)) {
        return;
    }
    jclass chunk = (*jni)->FindClass(jni, "jdk/internal/vm/StackChunk");
    jclass continuation =
        clear_exception(jni) ? NULL : (*jni)->FindClass(jni, "jdk/internal/vm/Continuation");
    if (!clear_exception(jni) && chunk && continuation) {
        int32_t *frozen = proof->frozen;
        frozen[0] = field_offset(proof, jvmti, jni, continuation, "tail");
        for (int i = 0; i < 5; i++) {
            frozen[i + 1] = field_offset(proof, jvmti, jni, chunk, fields[i]);
        }
        frozen[STACK] = hotspot_object_size(proof->hotspot, klass_of(proof, jni, chunk));
        frozen[STACK + 1] = hotspot_flag_is_on(proof->hotspot, "UseCompressedOops", true) ? 4 : 8;
        atomic_store(&proof->knows_frozen, frozen[STACK] > 0);
    }
    (*jni)->DeleteLocalRef(jni, chunk);
    (*jni)->DeleteLocalRef(jni, continuation);
}

const int32_t *proof_frozen(const struct proof *proof)
{
    return proof && atomic_load(&proof->knows_frozen) ? proof->frozen : NULL;
}

void proof_make(struct proof *proof, jvmtiEnv *jvmti, JNIEnv *jni)
{
    enum { LAST_JDK_OF_THE_FORM = 27 };
    if (!proof || !hotspot_may_know_methods(proof->hotspot) || (*jni)->ExceptionCheck(jni) ||
        atomic_exchange(&proof->tried, true)) {
        return;
    }
    struct hotspot *hotspot = proof->hotspot;
    proof->klass_offset = hotspot_klass_offset(hotspot);
    proof->by_unsafe =
        proof->major > LAST_JDK_OF_THE_FORM || hotspot_flag_is_on(hotspot, "CheckJNICalls", true);
    bool proven = proof->klass_offset > 0 && (!proof->by_unsafe || find_unsafe(proof, jni));
    /* A class with all kinds of methods, which is there in every JVM. */
    jclass klass = proven ? (*jni)->FindClass(jni, "java/lang/Throwable") : NULL;
    proven = !clear_exception(jni) && klass && prove_class(proof, jvmti, jni, klass);
    if (klass) {
        (*jni)->DeleteLocalRef(jni, klass);
    }
    hotspot_methods_were(hotspot, proven);
    if (proven) {
        find_frozen(proof, jvmti, jni);
    }
}

bool proof_klasses(const struct proof *proof, JNIEnv *jni, const jclass *classes, size_t count,
                   uint64_t *klasses)
{
    if (!proof || !hotspot_knows_methods(proof->hotspot) || count > HOTSPOT_CLASSES_MAX) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        klasses[i] = klass_of(proof, jni, classes[i]);
        if (!klasses[i]) {
            return false;
        }
    }
    return true;
}
