/*
 * A mount tells nothing but its thread, so it is told only of threads whose unmount was: their ids
 * are kept until then. There is room for a fixed number of them; what finds none is not told, and
 * is counted with the next one that is.
 */
#include "agent/threads/virtual_waits.h"

#include "agent/events/probes.h"
#include "agent/methods/method_fetch.h"
#include "writer/stamp.h"

#include <stdatomic.h>
#include <string.h>

static struct virtual_waits waits;
static struct probe_limit limit;
static _Atomic(uint64_t) without_room;
static atomic_bool is_on;

/* ---- Threads that are waited for ---- */

/* Ids are given one after the other; multiplied by 2^64 over the golden ratio neighbours lie far
 * apart. */
static size_t bucket_of(uint64_t id)
{
    return id * UINT64_C(0x9e3779b97f4a7c15) >> (64 - VIRTUAL_WAITS_BITS);
}

_Atomic(uint32_t) *virtual_waits_add(struct virtual_waits *to, uint64_t id)
{
    size_t bucket = bucket_of(id);
    for (int i = 0; i < VIRTUAL_WAITS_BUCKET; i++) {
        uint64_t was = 0;
        if (atomic_compare_exchange_strong(&to->ids[bucket][i], &was, id) || was == id) {
            return &to->costs[bucket][i];
        }
    }
    return NULL;
}

bool virtual_waits_take(struct virtual_waits *from, uint64_t id, uint32_t *cost)
{
    size_t bucket = bucket_of(id);
    for (int i = 0; i < VIRTUAL_WAITS_BUCKET; i++) {
        _Atomic(uint64_t) *slot = &from->ids[bucket][i];
        if (atomic_load_explicit(slot, memory_order_relaxed) == id) {
            *cost = atomic_load_explicit(&from->costs[bucket][i], memory_order_relaxed);
            atomic_store(slot, 0); /* nobody else takes this one: it is mounted once */
            return true;
        }
    }
    return false;
}

void virtual_waits_switch(bool on)
{
    if (on) { /* of an earlier session */
        for (int bucket = 0; bucket < VIRTUAL_WAITS_BUCKETS; bucket++) {
            for (int i = 0; i < VIRTUAL_WAITS_BUCKET; i++) {
                if (atomic_load_explicit(&waits.ids[bucket][i], memory_order_relaxed)) {
                    atomic_store(&waits.ids[bucket][i], 0);
                }
            }
        }
        atomic_store(&without_room, 0);
    }
    atomic_store(&is_on, on);
}

/* ---- Which unmounts are waits ---- */

/* Of java.lang.VirtualThread, whose states have other numbers in each JDK. */
static struct {
    jfieldID state;
    jint running;
    jint yielding;
} fields;

enum { FIELDS_NOT_ASKED, FIELDS_ASKED, FIELDS_KNOWN, FIELDS_UNKNOWN };
static atomic_int fields_are = FIELDS_NOT_ASKED;

static bool read_constant(jvmtiEnv *jvmti, JNIEnv *jni, jclass klass, const char *name, jint *value)
{
    jfieldID field = field_fetch(jvmti, klass, name, "I");
    if (field) {
        *value = (*jni)->GetStaticIntField(jni, klass, field);
    }
    return field != NULL;
}

/* The thread's own class is initialized. FindClass would do that, in programs that never use it. */
static bool find_fields(jvmtiEnv *jvmti, JNIEnv *jni, jthread thread)
{
    int was = FIELDS_NOT_ASKED;
    if (atomic_load_explicit(&fields_are, memory_order_acquire) != FIELDS_NOT_ASKED ||
        !atomic_compare_exchange_strong(&fields_are, &was, FIELDS_ASKED)) {
        return atomic_load_explicit(&fields_are, memory_order_acquire) == FIELDS_KNOWN;
    }
    jclass klass = (*jni)->GetObjectClass(jni, thread);
    fields.state = field_fetch(jvmti, klass, "state", "I");
    bool known = fields.state && read_constant(jvmti, jni, klass, "RUNNING", &fields.running) &&
                 read_constant(jvmti, jni, klass, "YIELDING", &fields.yielding);
    (*jni)->DeleteLocalRef(jni, klass);
    atomic_store_explicit(&fields_are, known ? FIELDS_KNOWN : FIELDS_UNKNOWN, memory_order_release);
    return known;
}

/*
 * A thread that is running by its state ends, or (JDK 24 and later) waits for a monitor: then the
 * state is set when its frames have gone to the heap. One that ends does so in its class' own code.
 */
static bool is_ending(jvmtiEnv *jvmti, JNIEnv *jni, jthread thread)
{
    static const char own[] = "Ljava/lang/VirtualThread";
    jmethodID method = NULL;
    jclass klass = NULL;
    char *signature = NULL;
    jlocation at;
    bool ends = true;
    if ((*jvmti)->GetFrameLocation(jvmti, thread, 0, &method, &at) == JVMTI_ERROR_NONE &&
        (*jvmti)->GetMethodDeclaringClass(jvmti, method, &klass) == JVMTI_ERROR_NONE &&
        (*jvmti)->GetClassSignature(jvmti, klass, &signature, NULL) == JVMTI_ERROR_NONE) {
        ends = strncmp(signature, own, sizeof(own) - 1) == 0;
        (*jvmti)->Deallocate(jvmti, (unsigned char *)signature);
    }
    if (klass) {
        (*jni)->DeleteLocalRef(jni, klass);
    }
    return ends;
}

static bool is_wait(jvmtiEnv *jvmti, JNIEnv *jni, jthread thread)
{
    if (!find_fields(jvmti, jni, thread)) {
        return false;
    }
    jint state = (*jni)->GetIntField(jni, thread, fields.state);
    return state != fields.yielding && (state != fields.running || !is_ending(jvmti, jni, thread));
}

/* ---- The events ---- */

/*
 * The wait begins when it has been told: the copy of the stack takes some us, and where waits are
 * shorter than that and one of many is told, sums would be of nothing else.
 */
void virtual_waits_begin(jvmtiEnv *jvmti, JNIEnv *jni, jthread thread, uint64_t id)
{
    uint32_t scale;
    if (!atomic_load_explicit(&is_on, memory_order_relaxed) || !is_wait(jvmti, jni, thread)) {
        return;
    }
    uint64_t begin = stamp_monotonic();
    if (!probe_limit_passes(&limit, begin, &scale)) {
        return;
    }
    _Atomic(uint32_t) *cost = virtual_waits_add(&waits, id);
    if (!cost) {
        atomic_fetch_add(&without_room, scale);
        return;
    }
    jdagent_event_unmount(id, atomic_exchange(&without_room, 0), scale, "");
    uint64_t took = stamp_monotonic() - begin;
    atomic_store_explicit(cost, took < UINT32_MAX ? (uint32_t)took : 0, memory_order_relaxed);
}

void virtual_waits_end(uint64_t id)
{
    uint32_t cost;
    if (atomic_load_explicit(&is_on, memory_order_relaxed) &&
        virtual_waits_take(&waits, id, &cost)) {
        jdagent_event_mount(id, cost, 1, "");
    }
}
