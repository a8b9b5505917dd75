/*
 * The callbacks run on the thread that allocates or waits, so that its stack is what the uprobe
 * finds. They take no lock; while they call into the JVM they are counted in (session.c), no more.
 *
 * The exported functions' bodies are the one place where the agent needs assembler: compiled, an
 * empty function is a lone `ret`, or begins with endbr64, and the kernel single-steps both.
 */
#include "agent/events/probes.h"

#include "agent/methods/method_fetch.h"
#include "format/event_probe.h"
#include "writer/message.h"
#include "writer/own_thread.h"
#include "writer/stamp.h"

#include <pthread.h>

/* HotSpot's mean distance of sampled allocations (ThreadHeapSampler::_sampling_interval). */
enum { DEFAULT_INTERVAL = 512 * 1024 };

/* Bytes: a JavaThread has some 2,000, and the frames of a thaw some 1,000. */
enum { JAVA_THREAD_MAX = 1 << 16, THAW_DEPTH_MAX = 1 << 16 };

#if defined(__x86_64__) || defined(__aarch64__)
#ifdef __x86_64__
#define NOP_AND_RETURN ".byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n\tret\n"
#else
#define NOP_AND_RETURN "nop\n\tret\n"
#endif
#define PROBE_FUNCTION(name)                                                                       \
    __asm__(".pushsection .text." name ", \"ax\", %progbits\n"                                     \
            "\t.balign 16\n"                                                                       \
            "\t.globl " name "\n"                                                                  \
            "\t.protected " name "\n"                                                              \
            "\t.type " name ", %function\n" name ":\n"                                             \
            "\t" NOP_AND_RETURN "\t.size " name ", . - " name "\n"                                 \
            ".popsection\n")
PROBE_FUNCTION(EVENT_PROBE_ALLOC_FUNCTION);
PROBE_FUNCTION(EVENT_PROBE_LOCK_FUNCTION);
PROBE_FUNCTION(EVENT_PROBE_UNMOUNT_FUNCTION);
PROBE_FUNCTION(EVENT_PROBE_MOUNT_FUNCTION);

/* Calls the lock's function as if from the Java frame that a frame record leads to: its frame
 * pointer is there meanwhile, and whoever unwinds by frame pointers or call-frame information goes
 * on behind it. */
__attribute__((visibility("hidden"))) void jdagent_event_lock_from(uint64_t value, uint64_t base,
                                                                   uint32_t scale, const char *name,
                                                                   uint64_t record);
__asm__(".pushsection .text.jdagent_event_lock_from, \"ax\", %progbits\n"
        "\t.balign 16\n"
        "\t.globl jdagent_event_lock_from\n"
        "\t.hidden jdagent_event_lock_from\n"
        "\t.type jdagent_event_lock_from, %function\n"
        "jdagent_event_lock_from:\n"
        "\t.cfi_startproc\n"
#ifdef __x86_64__
        "\tpush %rbx\n"
        "\t.cfi_adjust_cfa_offset 8\n"
        "\t.cfi_offset %rbx, -16\n"
        "\tmov %rbp, %rbx\n"
        "\t.cfi_remember_state\n"
        "\tmov %r8, %rbp\n"
        "\t.cfi_def_cfa %rbp, 16\n"
        "\t.cfi_offset %rbp, -16\n"
        "\t.cfi_restore %rbx\n"
        "\tcall " EVENT_PROBE_LOCK_FUNCTION "\n"
        "\tmov %rbx, %rbp\n"
        "\t.cfi_restore_state\n"
        "\tpop %rbx\n"
        "\t.cfi_adjust_cfa_offset -8\n"
        "\t.cfi_restore %rbx\n"
#else
        "\tstp x19, x30, [sp, #-16]!\n"
        "\t.cfi_adjust_cfa_offset 16\n"
        "\t.cfi_offset x19, -16\n"
        "\t.cfi_offset x30, -8\n"
        "\tmov x19, x29\n"
        "\t.cfi_remember_state\n"
        "\tmov x29, x4\n"
        "\t.cfi_def_cfa x29, 16\n"
        "\t.cfi_offset x29, -16\n"
        "\t.cfi_restore x19\n"
        "\tbl " EVENT_PROBE_LOCK_FUNCTION "\n"
        "\tmov x29, x19\n"
        "\t.cfi_restore_state\n"
        "\tldp x19, x30, [sp], #16\n"
        "\t.cfi_adjust_cfa_offset -16\n"
        "\t.cfi_restore x19\n"
        "\t.cfi_restore x30\n"
#endif
        "\tret\n"
        "\t.cfi_endproc\n"
        "\t.size jdagent_event_lock_from, . - jdagent_event_lock_from\n"
        ".popsection\n");
#else
#define jdagent_event_lock_from(value, base, scale, name, record)                                  \
    jdagent_event_lock(value, base, scale, name)
#define PROBE_FUNCTION(name)                                                                       \
    __attribute__((noinline)) void name(uint64_t value, uint64_t base, uint32_t scale,             \
                                        const char *text)                                          \
    {                                                                                              \
        __asm__ volatile("" : : "r"(value), "r"(base), "r"(scale), "r"(text));                     \
    }
__attribute__((noinline)) void jdagent_event_alloc(uint64_t value, uint64_t base, uint32_t scale,
                                                   const char *text, uint32_t far)
{
    __asm__ volatile("" : : "r"(value), "r"(base), "r"(scale), "r"(text), "r"(far));
}
PROBE_FUNCTION(jdagent_event_lock)
PROBE_FUNCTION(jdagent_event_unmount)
PROBE_FUNCTION(jdagent_event_mount)
#endif

/* ---- How many are told ---- */

/* A number as good as a random one, of any other (the mixer of splitmix64). */
static uint64_t mix(uint64_t number)
{
    number += UINT64_C(0x9e3779b97f4a7c15);
    number = (number ^ number >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    number = (number ^ number >> 27) * UINT64_C(0x94d049bb133111eb);
    return number ^ number >> 31;
}

/* A new window goes on with the last one's scale, but with half of it where few were told. */
static void start_window(struct probe_limit *limit, uint64_t from, uint64_t window)
{
    if (!atomic_compare_exchange_strong(&limit->window, &from, window)) {
        return; /* another thread has */
    }
    uint32_t told = atomic_exchange(&limit->told, 0);
    uint32_t scale = atomic_load(&limit->scale);
    if (scale > 1 && (told < PROBE_LIMIT_TOLD / 2 || window > from + 1)) {
        atomic_store(&limit->scale, scale / 2);
    }
}

bool probe_limit_passes(struct probe_limit *limit, uint64_t at, uint32_t *scale)
{
    uint64_t window = at / PROBE_LIMIT_WINDOW;
    uint64_t current = atomic_load_explicit(&limit->window, memory_order_relaxed);
    if (current != window) {
        start_window(limit, current, window);
    }
    uint64_t number = atomic_fetch_add_explicit(&limit->asked, 1, memory_order_relaxed);
    uint32_t one_of = atomic_load_explicit(&limit->scale, memory_order_relaxed);
    one_of = one_of ? one_of : 1;
    *scale = one_of;
    if (one_of > 1 && mix(number) % one_of != 0) {
        return false;
    }
    if (atomic_fetch_add_explicit(&limit->told, 1, memory_order_relaxed) == PROBE_LIMIT_TOLD &&
        one_of < UINT32_MAX / 2) {
        atomic_store(&limit->told, 0);
        atomic_store(&limit->scale, one_of * 2);
    }
    return true;
}

bool probe_wait_passes(uint64_t duration, uint64_t always, uint64_t chance)
{
    return duration >= always || mix(chance) % always < duration;
}

/* ---- How far a stack reaches ---- */

/*
 * A thread's root lies below what its library keeps at the stack's upper end: its descriptor, which
 * is what pthread_self points to (glibc, musl), and the static thread-local storage of the process.
 * How much that is a thread of ours tells. Of a thread whose descriptor is elsewhere, the program's
 * first, the difference is huge or negative: it counts as far.
 */
static _Atomic(uintptr_t) root_gap; /* 0: not known yet */

static void *measure_gap(void *unused)
{
    (void)unused;
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    uintptr_t gap = (uintptr_t)pthread_self() - here;
    atomic_store(&root_gap, gap <= EVENT_STACK_FAR ? gap : 0);
    return NULL;
}

static void find_root(void)
{
    pthread_t thread;
    if (!atomic_load(&root_gap) &&
        own_thread_start(measure_gap, NULL, OWN_THREAD_JAVA_STACK, &thread) == 0) {
        (void)pthread_join(thread, NULL);
    }
}

bool probe_stack_is_far(uintptr_t thread, uintptr_t gap, uintptr_t frame)
{
    enum {
        ABOVE = 512, /* the library's frames, which call a thread's first function */
        BELOW = 512, /* of our callback, from its frame's address to the probe */
    };
    return thread - gap + ABOVE - frame > EVENT_STACK_NEAR - BELOW;
}

/* ---- Allocations ---- */

static struct probe_limit allocations;
static _Thread_local bool at_work;

void probes_at_work(bool ours)
{
    at_work = ours;
}

static void JNICALL sampled_object_alloc(jvmtiEnv *jvmti, JNIEnv *jni, jthread thread,
                                         jobject object, jclass klass, jlong size)
{
    (void)jni;
    (void)thread;
    (void)object;
    struct session *session = at_work ? NULL : session_enter();
    uint32_t scale;
    if (!session) {
        return;
    }
    if (session->options.alloc_bytes &&
        probe_limit_passes(&allocations, stamp_monotonic(), &scale)) {
        char *signature = NULL;
        if ((*jvmti)->GetClassSignature(jvmti, klass, &signature, NULL) != JVMTI_ERROR_NONE) {
            signature = NULL;
        }
        bool is_far = probe_stack_is_far((uintptr_t)pthread_self(), atomic_load(&root_gap),
                                         (uintptr_t)__builtin_frame_address(0));
        jdagent_event_alloc((uint64_t)size, session->options.alloc_bytes, scale,
                            signature ? signature : "", is_far);
        if (signature) {
            (*jvmti)->Deallocate(jvmti, (unsigned char *)signature);
        }
    }
    session_leave();
}

/* ---- Contended monitors ---- */

static struct probe_limit waits;
static _Atomic(uint64_t) wait_number;
static _Atomic(uint64_t) waits_from; /* when this session asked for the events */

/*
 * When the wait began is kept in JVMTI's storage for the thread, which follows a virtual thread
 * from carrier to carrier; the thread itself is the only one to touch it.
 */
static void JNICALL monitor_contended_enter(jvmtiEnv *jvmti, JNIEnv *jni, jthread thread,
                                            jobject object)
{
    (void)jni;
    (void)object;
    struct session *session = session_enter();
    if (!session) {
        return;
    }
    if (session->options.lock_ns) {
        const void *begin =
            (const void *)(uintptr_t)stamp_monotonic(); /* a number, not an address */
        (void)(*jvmti)->SetThreadLocalStorage(jvmti, thread, begin);
    }
    session_leave();
}

/*
 * From JDK 24 on a virtual thread leaves its carrier while it waits for a monitor (JEP 491).
 * HotSpot tells that it has entered when it has thawed its frames: they stand above ours on the
 * stack, but whoever called us is cont_thaw, which knows nothing of them
 * (ThawBase::handle_preempted_continuation). The carrier's frame anchor has their place.
 */
static _Atomic(uintptr_t) env_offset; /* of its JNIEnv in a JavaThread; 0: not known */

void probes_begin(struct session *session, JNIEnv *jni)
{
    jvmtiEnv *jvmti = session->jvm.jvmti;
    jthread self = NULL;
    if (!session->options.lock_ns || session->jvm.major < 24 || atomic_load(&env_offset) ||
        (*jvmti)->GetCurrentThread(jvmti, &self) != JVMTI_ERROR_NONE) {
        return;
    }
    jclass thread = (*jni)->FindClass(jni, "java/lang/Thread");
    jfieldID eetop = thread ? field_fetch(jvmti, thread, "eetop", "J") : NULL;
    if (eetop) {
        uintptr_t its = (uintptr_t)(*jni)->GetLongField(jni, self, eetop);
        uintptr_t offset = (uintptr_t)jni - its;
        atomic_store(&env_offset, its && offset < JAVA_THREAD_MAX ? offset : 0);
    }
    (*jni)->ExceptionClear(jni);
    (*jni)->DeleteLocalRef(jni, thread);
    (*jni)->DeleteLocalRef(jni, self);
}

/* The record that leads to the innermost Java frame, above ours on the same stack; 0: whoever
 * called us does. */
static uint64_t find_record(const struct session *session, JNIEnv *jni)
{
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    uintptr_t offset = atomic_load(&env_offset);
    uint64_t record =
        offset ? hotspot_thread_record(session->jvm.hotspot, (uintptr_t)jni - offset) : 0;
    return record > here && record - here < THAW_DEPTH_MAX ? record : 0;
}

static void tell_wait(jvmtiEnv *jvmti, JNIEnv *jni, jobject object, uint64_t duration,
                      uint64_t always, uint32_t scale, uint64_t record)
{
    char *signature = NULL;
    jclass klass = (*jni)->GetObjectClass(jni, object);
    if (klass) {
        if ((*jvmti)->GetClassSignature(jvmti, klass, &signature, NULL) != JVMTI_ERROR_NONE) {
            signature = NULL;
        }
        (*jni)->DeleteLocalRef(jni, klass);
    }
    if (record) {
        jdagent_event_lock_from(duration, always, scale, signature ? signature : "", record);
    } else {
        jdagent_event_lock(duration, always, scale, signature ? signature : "");
    }
    if (signature) {
        (*jvmti)->Deallocate(jvmti, (unsigned char *)signature);
    }
}

static void JNICALL monitor_contended_entered(jvmtiEnv *jvmti, JNIEnv *jni, jthread thread,
                                              jobject object)
{
    struct session *session = session_enter();
    void *begin = NULL;
    uint32_t scale;
    if (!session) {
        return;
    }
    uint64_t always = session->options.lock_ns;
    /* A wait that began before the events were on has a beginning of some earlier one, or none. */
    if (always && (*jvmti)->GetThreadLocalStorage(jvmti, thread, &begin) == JVMTI_ERROR_NONE &&
        (uint64_t)(uintptr_t)begin >= atomic_load(&waits_from)) {
        uint64_t end = stamp_monotonic();
        uint64_t duration = end - (uint64_t)(uintptr_t)begin;
        if (probe_wait_passes(duration, always, atomic_fetch_add(&wait_number, 1)) &&
            probe_limit_passes(&waits, end, &scale)) {
            tell_wait(jvmti, jni, object, duration, always, scale, find_record(session, jni));
        }
        (void)(*jvmti)->SetThreadLocalStorage(jvmti, thread, NULL);
    }
    session_leave();
}

/* ---- On and off ---- */

void probes_callbacks(jvmtiEventCallbacks *callbacks)
{
    callbacks->SampledObjectAlloc = sampled_object_alloc;
    callbacks->MonitorContendedEnter = monitor_contended_enter;
    callbacks->MonitorContendedEntered = monitor_contended_entered;
}

/* Without a word of ours where the option is not given. */
static bool get(jvmtiEnv *jvmti, const jvmtiCapabilities *capabilities, const char *option,
                const char *remedy)
{
    jvmtiError error = (*jvmti)->AddCapabilities(jvmti, capabilities);
    if (error != JVMTI_ERROR_NONE) {
        message(MESSAGE_WARNING, "%s: this JVM does not provide such events (JVMTI error %d): %s",
                option, (int)error, remedy);
    }
    return error == JVMTI_ERROR_NONE;
}

static bool ask(jvmtiEnv *jvmti, jvmtiEvent event, const char *option)
{
    jvmtiError error = (*jvmti)->SetEventNotificationMode(jvmti, JVMTI_ENABLE, event, NULL);
    if (error != JVMTI_ERROR_NONE) {
        message(MESSAGE_WARNING, "%s: failed to ask for JVMTI event %d: JVMTI error %d", option,
                (int)event, (int)error);
    }
    return error == JVMTI_ERROR_NONE;
}

/* Whether they come; else after a message. */
static bool enable_allocations(const struct session *session)
{
    jvmtiEnv *jvmti = session->jvm.jvmti;
    const jvmtiCapabilities capabilities = {.can_generate_sampled_object_alloc_events = 1};
    find_root();
    /* Earlier JVMs' table of functions ends before SetHeapSamplingInterval. */
    if (session->jvm.major < 11) {
        message(MESSAGE_WARNING, "alloc: JDK %d does not sample allocations, JDK 11 and later do",
                session->jvm.major);
        return false;
    }
    if (!get(jvmti, &capabilities, "alloc", "another agent may have it, or it is no HotSpot") ||
        !ask(jvmti, JVMTI_EVENT_SAMPLED_OBJECT_ALLOC, "alloc")) {
        return false;
    }
    jvmtiError error = (*jvmti)->SetHeapSamplingInterval(jvmti, (jint)session->options.alloc_bytes);
    if (error != JVMTI_ERROR_NONE) {
        message(MESSAGE_WARNING, "alloc: failed to set the interval: JVMTI error %d", (int)error);
    }
    return true;
}

/* Whether they come; else after a message. */
static bool enable_locks(jvmtiEnv *jvmti)
{
    const jvmtiCapabilities capabilities = {.can_generate_monitor_events = 1};
    atomic_store(&waits_from, stamp_monotonic());
    return get(jvmti, &capabilities, "locks", "record --off-cpu, which needs nothing of the JVM") &&
           ask(jvmti, JVMTI_EVENT_MONITOR_CONTENDED_ENTERED, "locks") &&
           ask(jvmti, JVMTI_EVENT_MONITOR_CONTENDED_ENTER, "locks");
}

void probes_enable(const struct session *session)
{
    bool no_alloc = session->options.alloc_bytes && !enable_allocations(session);
    bool no_lock = session->options.lock_ns && !enable_locks(session->jvm.jvmti);
    if (session->table && (no_alloc || no_lock)) {
        methods_file_tell_lacks(session->table, (no_alloc ? METHODS_LACKS_ALLOC : 0) |
                                                    (no_lock ? METHODS_LACKS_LOCK : 0));
    }
}

void probes_stop(const struct session *session)
{
    jvmtiEnv *jvmti = session->jvm.jvmti;
    static const jvmtiEvent events[] = {
        JVMTI_EVENT_SAMPLED_OBJECT_ALLOC,
        JVMTI_EVENT_MONITOR_CONTENDED_ENTER,
        JVMTI_EVENT_MONITOR_CONTENDED_ENTERED,
    };
    bool any = session->options.alloc_bytes || session->options.lock_ns;
    jvmtiCapabilities had = {0};
    for (size_t i = 0; any && i < sizeof(events) / sizeof(*events); i++) {
        (void)(*jvmti)->SetEventNotificationMode(jvmti, JVMTI_DISABLE, events[i], NULL);
    }
    /* One for all agents, and there is no asking for it: so what it is before anybody sets it. */
    if (session->options.alloc_bytes && session->jvm.major >= 11 &&
        (*jvmti)->GetCapabilities(jvmti, &had) == JVMTI_ERROR_NONE &&
        had.can_generate_sampled_object_alloc_events) {
        (void)(*jvmti)->SetHeapSamplingInterval(jvmti, DEFAULT_INTERVAL);
    }
}
