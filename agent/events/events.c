/*
 * HotSpot sends CompiledMethodLoad and Unload on its Service Thread, some time after the code went
 * live; DynamicCodeGenerated comes on the thread that made the code, from the primordial phase on,
 * when next to no JVMTI function may be called yet: its callback calls none.
 *
 * What is asked for during a replay comes on the thread that asked, what happens meanwhile on the
 * others, and both may tell of the same code. So replayed events are marked, and the sinks drop
 * what they know already.
 *
 * The Service Thread may be far behind when processors are busy, and since JDK 20 the place of
 * freed code may have been used again by the time its unloading is told. But since then, too, code
 * is freed in garbage collections only: it has not run since the last one's end. Earlier JVMs' code
 * cache sweeper frees code at any time, but a pass or more after it has put the end into the queue.
 * JDK 8 and 11 keep the code until the event has been sent (nmethodLocker); 17 does not, so there a
 * Service Thread that waits for a processor for long may still be too late.
 */
#include "agent/events/events.h"

#include "agent/events/probes.h"
#include "agent/methods/inline_record.h"
#include "agent/methods/symbol_name.h"
#include "agent/session/errands.h"
#include "agent/session/jvm_log.h"
#include "agent/threads/identity.h"
#include "writer/message.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* A stub's name; HotSpot's are short. */
enum { MAX_STUB_NAME = 512 };

static void (*at_live)(void);
static void (*at_death)(void);

/*
 * For callbacks that found no session to work for: has the JVM send no more of them. Under control,
 * for a session that is about to start wants its events.
 */
static void stray_event(jvmtiEnv *jvmti)
{
    if (!session_try_control()) {
        return;
    }
    const struct session *session = session_current();
    if (!session || atomic_load(&session->failed)) {
        events_disable(jvmti);
    }
    session_release_control();
}

static bool is_replay(const struct session *session)
{
    return atomic_load(&session->replaying) && pthread_equal(session->replayer, pthread_self());
}

/* See inline_record.h: the key is HotSpot's Method, or the id itself. */
static const struct java_method *resolve(void *context, method_key key, const void *id)
{
    struct method_set *set = context;
    return id ? method_set_get(set, *(const jmethodID *)id, key)
              : method_set_get(set, (jmethodID)(uintptr_t)key, 0); // NOLINT: a jmethodID
}

/*
 * The map has the compiled method's own bytecodes only. Its start_address means what it says in
 * JVMTI's specification, and HotSpot, whose pcs end their range here as well, always has an inline
 * record; so it is taken as specified.
 */
static void add_location_map(struct inline_builder *builder, method_key method,
                             const jvmtiAddrLocationMap *map, jint length, const void *address,
                             uint32_t size)
{
    for (jint i = 0; i < length; i++) {
        const void *end = i + 1 < length ? map[i + 1].start_address : (const char *)address + size;
        jint bci = map[i].location < 0 || map[i].location > INT32_MAX ? -1 : (jint)map[i].location;
        inline_builder_add(builder, inline_record_offset(end, address, size), &method, &bci, 1);
    }
}

/* The symbol: the method's name and, with tier=on, how it was compiled. */
static const char *symbol_of(const struct session *session, struct scratch *scratch,
                             const struct java_method *method, const struct code_facts *facts)
{
    const char *name = method ? method->method.name : "unknown Java method";
    if (!session->options.tier || facts->tier < 1) {
        return name;
    }
    snprintf(scratch->name, sizeof(scratch->name), "%s%s%s", name,
             facts->tier == JITDUMP_TIER_JVMCI ? " [Graal]"
             : facts->tier == 4                ? " [C2]"
                                               : " [C1]",
             facts->osr_bci >= 0 ? " [OSR]" : "");
    return scratch->name;
}

/* Finds the method that code was compiled from, and its name. True: nothing else tells this code
 * from other code at its place. */
static bool name_code(struct session *session, struct scratch *scratch, jvmtiEnv *jvmti,
                      jmethodID method, const struct hotspot_nmethod *nmethod, struct code *code)
{
    method_set_begin(&scratch->methods, session->methods, jvmti, session->jvm.vm, scratch->nearby);
    scratch->root = method_set_get(&scratch->methods, method, nmethod->method);
    if (scratch->root) {
        code->method = &scratch->root->method;
        code->facts.kind =
            scratch->root->native ? JITDUMP_KIND_NATIVE_WRAPPER : JITDUMP_KIND_NMETHOD;
    }
    code->name = symbol_of(session, scratch, scratch->root, &code->facts);
    return code->facts.compile_id < 0;
}

static void begin_lines(const struct session *session, struct scratch *scratch, jmethodID method,
                        const struct code *code)
{
    inline_builder_begin(scratch->inlines, session->options.inlines, (uint32_t)code->size,
                         (method_key)(uintptr_t)method, scratch->root, resolve, &scratch->methods);
    if (code->facts.tier == 4) {
        inline_builder_of_c2(scratch->inlines, (const uint8_t *)(uintptr_t)code->address);
    }
}

/* Builds the rows and the inline tree. */
static void add_lines(struct session *session, struct scratch *scratch, jmethodID method,
                      const struct hotspot_nmethod *nmethod, struct code *code, jint map_length,
                      const jvmtiAddrLocationMap *map, const void *compile_info)
{
    if (!scratch->root || !session->options.lines) {
        return;
    }
    const struct inline_code inlined = {.address = (const void *)(uintptr_t)code->address,
                                        .size = (uint32_t)code->size,
                                        .method = method,
                                        .record = inline_record_of(compile_info),
                                        .nmethod = nmethod};
    begin_lines(session, scratch, method, code);
    if (inlined.record && !inline_record_add_scopes(session->jvm.hotspot, scratch->nearby, &inlined,
                                                    &scratch->scopes, scratch->inlines)) {
        begin_lines(session, scratch, method, code);
        inline_record_add(&inlined, &scratch->scopes, scratch->inlines);
    } else if (!inlined.record && map) {
        add_location_map(scratch->inlines, (method_key)(uintptr_t)method, map, map_length,
                         inlined.address, inlined.size);
    }
    if (inline_builder_finish(scratch->inlines, code) != 0) {
        message(MESSAGE_DEBUG, "no memory for the lines of %s", code->name);
    }
}

static void JNICALL compiled_method_load(jvmtiEnv *jvmti, jmethodID method, jint size,
                                         const void *address, jint map_length,
                                         const jvmtiAddrLocationMap *map, const void *compile_info)
{
    struct session *session = session_enter();
    if (!session) {
        stray_event(jvmti);
        return;
    }
    struct scratch *scratch = size < 0 ? NULL : session_take_scratch(session);
    if (!scratch) {
        session_leave();
        return;
    }
    const bool replayed = is_replay(session);
    struct code code = {
        .address = (uint64_t)(uintptr_t)address,
        .size = (uint64_t)size,
        .bytes = session->options.code ? address : NULL,
        .replayed = replayed,
        .patient = replayed && session->patient,
        .facts = CODE_FACTS_UNKNOWN,
    };
    struct hotspot_nmethod nmethod;
    hotspot_nearby_begin(session->jvm.hotspot, scratch->nearby, replayed ? session->replay : 0,
                         code.address, code.size);
    hotspot_compiled_facts(session->jvm.hotspot, scratch->nearby, code.address, code.size,
                           &code.facts, &nmethod);
    /* Once by the compilation's number alone, before anything is looked up, and where there is none
     * by the name. */
    struct occupancy *occupancy = session->sinks.occupancy;
    struct timeline_spot spot = {0};
    if (!occupancy_knows(occupancy, &code, &spot) &&
        !(name_code(session, scratch, jvmti, method, &nmethod, &code) &&
          occupancy_knows(occupancy, &code, &spot))) {
        add_lines(session, scratch, method, &nmethod, &code, map_length, map, compile_info);
        message(MESSAGE_EVENT, "load %p, %d bytes: %s", address, (int)size, code.name);
        code.kept = method_set_hold(&scratch->methods);
        session_load(session, &code, &spot);
    }
    method_set_empty(&scratch->methods);
    session_give_scratch(session, scratch);
    if (session->table && !replayed && nmethod.method && code.facts.kind == JITDUMP_KIND_NMETHOD &&
        methods_file_lacks(session->table, nmethod.method)) {
        message(MESSAGE_DEBUG, "a redefinition has brought methods: code at %p is one's", address);
        (void)errands_want(ERRAND_METHODS);
    }
    session_leave();
}

static void JNICALL compiled_method_unload(jvmtiEnv *jvmti, jmethodID method, const void *address)
{
    struct session *session = session_enter();
    if (!session) {
        stray_event(jvmti);
        return;
    }
    message(MESSAGE_EVENT, "unload %p", address);
    /* The id does not tell whose code this was: once its class is redefined HotSpot gives the old
     * method, and so the end of its code, another one (check_methods_and_mark_as_obsolete). */
    (void)method;
    const uint64_t at = (uint64_t)(uintptr_t)address;
    occupancy_unload(session->sinks.occupancy, at,
                     hotspot_compilation_in_use(session->jvm.hotspot, at));
    session_leave();
}

/* In a safepoint: neither JVMTI nor JNI may be called, and no lock is taken. */
static void JNICALL garbage_collection_finish(jvmtiEnv *jvmti)
{
    (void)jvmti;
    struct session *session = session_enter();
    if (session) {
        occupancy_swept(session->sinks.occupancy);
        session_leave();
    }
}

/*
 * A stub that another thread is making (C2's come with its first thread) is in the list that a
 * replay goes through, but its end is NULL yet (HotSpot: StubCodeMark), and the length what is left
 * of a difference in 32 bits. It is told of once more when it is whole.
 */
static bool is_unfinished(const void *address, jint length)
{
    return (uint32_t)(uintptr_t)address + (uint32_t)length == 0;
}

/*
 * HotSpot names an adapter "I2C/C2I adapters(0xbba)". One from an AOT cache has its arguments'
 * types in the place of that (JDK 25: AdapterFingerPrint::as_basic_args_string): "LLI(0xbba)"; from
 * JDK 28 on "LLI({no_ro_adapter, {long, -1}, {int, -1}})".
 */
static bool is_cached_adapter(const char *name)
{
    const char *print = name + strspn(name, "DFIJL");
    return strncmp(print, "(0x", 3) == 0 || strncmp(print, "({", 2) == 0;
}

/* The name of a stub as HotSpot gives it. text: MAX_STUB_NAME bytes. */
static void name_stub(char *text, const char *name)
{
    char adapter[MAX_STUB_NAME];
    if (name && is_cached_adapter(name)) {
        snprintf(adapter, sizeof adapter, "I2C/C2I adapters%s", strchr(name, '('));
        name = adapter;
    }
    symbol_text(text, MAX_STUB_NAME, name ? name : "unknown stub");
}

static void JNICALL dynamic_code_generated(jvmtiEnv *jvmti, const char *name, const void *address,
                                           jint length)
{
    (void)jvmti;
    struct session *session = session_enter();
    if (!session) {
        return;
    }
    if (length >= 0 && !is_unfinished(address, length)) {
        char text[MAX_STUB_NAME];
        name_stub(text, name);
        const bool replayed = is_replay(session);
        struct code code = {
            .address = (uint64_t)(uintptr_t)address,
            .size = (uint64_t)length,
            .bytes = session->options.code ? address : NULL,
            .name = text,
            .replayed = replayed,
            .patient = replayed && session->patient,
            .facts = CODE_FACTS_UNKNOWN,
        };
        code.facts.kind =
            strcmp(text, "Interpreter") == 0 ? JITDUMP_KIND_INTERPRETER : JITDUMP_KIND_STUB;
        struct scratch *scratch = session_take_scratch(session);
        if (scratch) {
            hotspot_nearby_begin(session->jvm.hotspot, scratch->nearby,
                                 replayed ? session->replay : 0, code.address, code.size);
        }
        hotspot_facts(session->jvm.hotspot, scratch ? scratch->nearby : NULL, code.address,
                      code.size, &code.facts);
        if (scratch) {
            session_give_scratch(session, scratch);
        }
        message(MESSAGE_EVENT, "stub %p, %d bytes: %s", address, (int)length, text);
        session_load(session, &code, NULL);
    }
    session_leave();
}

/*
 * Some blobs are made in silence (adapters, jni_fast_GetIntField…) and only GenerateEvents tells of
 * them; this is the first moment when it may be called. The sinks know the rest already. Nor have
 * the classes of the JVM's own start had an event.
 */
static void JNICALL vm_init(jvmtiEnv *jvmti, JNIEnv *jni, jthread thread)
{
    (void)thread;
    struct session *session = session_enter();
    probes_at_work(true);
    at_live(); /* now: what is wanted is done beside this thread, not after it */
    if (session) {
        proof_make(session->jvm.proof, jvmti, jni);
        if (session->table) { /* a short program need not wait for it */
            (void)errands_want(ERRAND_METHODS);
        }
        probes_begin(session, jni);
        identity_begin(session, jni);
        jvm_log_begin(session, jni);
        events_replay(session, false);
        session_leave();
    }
    probes_at_work(false);
}

static void JNICALL class_prepare(jvmtiEnv *jvmti, JNIEnv *jni, jthread thread, jclass klass)
{
    (void)thread;
    struct session *session = session_enter();
    if (!session) {
        stray_event(jvmti);
        return;
    }
    if (session->table) {
        methods_file_prepared(session->table, jvmti, jni, klass);
    }
    session_leave();
}

static void JNICALL vm_death(jvmtiEnv *jvmti, JNIEnv *jni)
{
    (void)jvmti;
    (void)jni;
    at_death();
}

static int failed(jvmtiEnv *jvmti, jvmtiError error, const char *what)
{
    if (error == JVMTI_ERROR_NONE) {
        return 0;
    }
    char *name = NULL;
    if ((*jvmti)->GetErrorName(jvmti, error, &name) != JVMTI_ERROR_NONE) {
        name = NULL;
    }
    message(MESSAGE_ERROR, "failed to %s: %s (JVMTI error %d)", what, name ? name : "unknown",
            (int)error);
    if (name) {
        (*jvmti)->Deallocate(jvmti, (unsigned char *)name);
    }
    return -EIO;
}

int events_jvm_major(jvmtiEnv *jvmti)
{
    jint version = 0;
    if ((*jvmti)->GetVersionNumber(jvmti, &version) != JVMTI_ERROR_NONE) {
        return INT_MAX;
    }
    int major = (version & JVMTI_VERSION_MASK_MAJOR) >> JVMTI_VERSION_SHIFT_MAJOR;
    return major == 1 ? 8 : major; /* JVMTI 1.0 to 1.2 were JDK 5 to 8 */
}

/* From JDK 20 on all code is freed in garbage collections. */
static bool frees_in_collections(jvmtiEnv *jvmti)
{
    return events_jvm_major(jvmti) >= 20;
}

int events_prepare(jvmtiEnv *jvmti, void (*live)(void), void (*death)(void))
{
    at_live = live;
    at_death = death;
    jvmtiEventCallbacks callbacks = {
        .VMInit = vm_init,
        .VMDeath = vm_death,
        .ClassPrepare = class_prepare,
        .CompiledMethodLoad = compiled_method_load,
        .CompiledMethodUnload = compiled_method_unload,
        .DynamicCodeGenerated = dynamic_code_generated,
        .GarbageCollectionFinish = frees_in_collections(jvmti) ? garbage_collection_finish : NULL,
    };
    probes_callbacks(&callbacks);
    identity_callbacks(&callbacks);
    return failed(jvmti, (*jvmti)->SetEventCallbacks(jvmti, &callbacks, (jint)sizeof(callbacks)),
                  "set the JVMTI callbacks");
}

/* Each session gets them anew. */
int events_acquire(jvmtiEnv *jvmti)
{
    const jvmtiCapabilities capabilities = {
        .can_generate_garbage_collection_events = frees_in_collections(jvmti),
        .can_generate_compiled_method_load_events = 1,
        .can_get_source_file_name = 1,
        .can_get_line_numbers = 1,
    };
    if (failed(jvmti, (*jvmti)->AddCapabilities(jvmti, &capabilities),
               "get the JVMTI capabilities for compiled methods")) {
        return -EIO;
    }
    /* Not worth a start that fails: Kotlin's inlined lines are as the line tables have them then.
     */
    const jvmtiCapabilities maps = {.can_get_source_debug_extension = 1};
    if ((*jvmti)->AddCapabilities(jvmti, &maps) != JVMTI_ERROR_NONE) {
        message(MESSAGE_DEBUG, "this JVM does not provide the source maps of classes");
    }
    return 0;
}

void events_relinquish(jvmtiEnv *jvmti)
{
    jvmtiCapabilities all;
    if ((*jvmti)->GetCapabilities(jvmti, &all) == JVMTI_ERROR_NONE) {
        (void)(*jvmti)->RelinquishCapabilities(jvmti, &all);
    }
}

static const jvmtiEvent events[] = {
    JVMTI_EVENT_VM_INIT,
    JVMTI_EVENT_VM_DEATH,
    JVMTI_EVENT_DYNAMIC_CODE_GENERATED,
    JVMTI_EVENT_COMPILED_METHOD_UNLOAD,
    JVMTI_EVENT_COMPILED_METHOD_LOAD,
    JVMTI_EVENT_GARBAGE_COLLECTION_FINISH,
    JVMTI_EVENT_CLASS_PREPARE, /* the last one: only on request */
};
#define EVENT_COUNT (sizeof(events) / sizeof(*events))

int events_enable(jvmtiEnv *jvmti, bool classes)
{
    for (size_t i = 0; i < EVENT_COUNT - (classes ? 0 : 1); i++) {
        jvmtiError error = (*jvmti)->SetEventNotificationMode(jvmti, JVMTI_ENABLE, events[i], NULL);
        if (error == JVMTI_ERROR_MUST_POSSESS_CAPABILITY &&
            events[i] == JVMTI_EVENT_GARBAGE_COLLECTION_FINISH) {
            continue; /* see frees_in_collections */
        }
        if (failed(jvmti, error, "ask for JVMTI events")) {
            return -EIO;
        }
    }
    return 0;
}

void events_disable(jvmtiEnv *jvmti)
{
    for (size_t i = 0; i < EVENT_COUNT; i++) {
        /* At the JVM's end it is too late, and needless. */
        (*jvmti)->SetEventNotificationMode(jvmti, JVMTI_DISABLE, events[i], NULL);
    }
}

/* GenerateEvents, on this thread. */
static jvmtiError replay(struct session *session, jvmtiEvent event)
{
    /* JDK 8 looks for the next code when it has told of one, which the next may be newer than. From
     * 17 on, at the latest, it has a list of all before (prims/jvmtiCodeBlobEvents.cpp). */
    static atomic_uint_least64_t last_replay;
    session->replay = session->jvm.major >= 17 ? atomic_fetch_add(&last_replay, 1) + 1 : 0;
    session->replayer = pthread_self();
    atomic_store(&session->replaying, true);
    jvmtiError error = (*session->jvm.jvmti)->GenerateEvents(session->jvm.jvmti, event);
    atomic_store(&session->replaying, false);
    struct scratch *scratch = session_take_scratch(session);
    if (scratch) { /* what was read goes */
        hotspot_nearby_begin(NULL, scratch->nearby, 0, 0, 0);
        session_give_scratch(session, scratch);
    }
    return error;
}

int events_replay(struct session *session, bool patient)
{
    jvmtiEnv *jvmti = session->jvm.jvmti;
    if (atomic_flag_test_and_set(&session->replay_taken)) {
        return -EBUSY;
    }
    session->patient = patient;
    /* Stubs first: some of them lie inside of blobs that are reported as a whole later on. */
    int result = failed(jvmti, replay(session, JVMTI_EVENT_DYNAMIC_CODE_GENERATED),
                        "have the JVM report its stubs");
    if (result == 0) {
        result = failed(jvmti, replay(session, JVMTI_EVENT_COMPILED_METHOD_LOAD),
                        "have the JVM report its compiled methods");
    }
    atomic_flag_clear(&session->replay_taken);
    return result;
}

void events_replay_stubs(struct session *session)
{
    if (!atomic_flag_test_and_set(&session->replay_taken)) {
        session->patient = false;
        (void)replay(session, JVMTI_EVENT_DYNAMIC_CODE_GENERATED);
        atomic_flag_clear(&session->replay_taken);
    }
}
