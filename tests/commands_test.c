/* Start, stop and the JVM's end, with a simulated JVM. */
#include "test.h"

#include "agent/events/events.h"
#include "agent/hotspot/hotspot_fields.h"
#include "agent/session/commands.h"
#include "agent/session/errands.h"
#include "agent/session/session.h"
#include "agent/threads/journal.h"

#include "scratch.h"
#include "writer/message.h"

#include <fcntl.h>
#include <jvmti.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>

static jvmtiEventCallbacks callbacks;
static _Atomic bool enabled[JVMTI_MAX_EVENT_TYPE_VAL + 1];
static _Thread_local int calls; /* of a JVMTI function that not every callback may call */
static void (*replay)(void);    /* what a replay of compiled methods does */
static atomic_int stub_replays;
static atomic_int attached_threads; /* now */
static atomic_int attachments;      /* ever */
static const char code[4096];       /* "generated" */

static double now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

static void sleep_ms(long ms)
{
    const struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

/* ---- The JVM ---- */

extern jvmtiEnv jvmti;

static jvmtiCapabilities capabilities;
static pthread_mutex_t capabilities_lock = PTHREAD_MUTEX_INITIALIZER; /* errands run on a thread */
static jint sampling_interval;

static jvmtiError JNICALL add_capabilities(jvmtiEnv *env, const jvmtiCapabilities *more)
{
    (void)env;
    pthread_mutex_lock(&capabilities_lock);
    for (size_t i = 0; i < sizeof(capabilities); i++) {
        ((uint8_t *)&capabilities)[i] |= ((const uint8_t *)more)[i];
    }
    pthread_mutex_unlock(&capabilities_lock);
    return JVMTI_ERROR_NONE;
}

static jvmtiError JNICALL get_capabilities(jvmtiEnv *env, jvmtiCapabilities *all)
{
    (void)env;
    pthread_mutex_lock(&capabilities_lock);
    *all = capabilities;
    pthread_mutex_unlock(&capabilities_lock);
    return JVMTI_ERROR_NONE;
}

static jvmtiError JNICALL relinquish_capabilities(jvmtiEnv *env, const jvmtiCapabilities *less)
{
    (void)env;
    pthread_mutex_lock(&capabilities_lock);
    for (size_t i = 0; i < sizeof(capabilities); i++) {
        ((uint8_t *)&capabilities)[i] &= (uint8_t) ~((const uint8_t *)less)[i];
    }
    pthread_mutex_unlock(&capabilities_lock);
    return JVMTI_ERROR_NONE;
}

static jvmtiError JNICALL set_interval(jvmtiEnv *env, jint interval)
{
    (void)env;
    assert_true(capabilities.can_generate_sampled_object_alloc_events);
    sampling_interval = interval;
    return JVMTI_ERROR_NONE;
}

static jvmtiError JNICALL set_callbacks(jvmtiEnv *env, const jvmtiEventCallbacks *set, jint size)
{
    (void)env;
    assert_int_equal(size, sizeof(callbacks));
    callbacks = *set;
    return JVMTI_ERROR_NONE;
}

static jvmtiError JNICALL set_mode(jvmtiEnv *env, jvmtiEventMode mode, jvmtiEvent event,
                                   jthread thread, ...)
{
    (void)env;
    (void)thread;
    calls++;
    enabled[event] = mode == JVMTI_ENABLE;
    return JVMTI_ERROR_NONE;
}

static jvmtiError JNICALL get_version(jvmtiEnv *env, jint *version)
{
    (void)env;
    *version = 25 << JVMTI_VERSION_SHIFT_MAJOR;
    return JVMTI_ERROR_NONE;
}

static jvmtiError JNICALL generate(jvmtiEnv *env, jvmtiEvent event)
{
    (void)env;
    stub_replays += event == JVMTI_EVENT_DYNAMIC_CODE_GENERATED;
    if (event == JVMTI_EVENT_COMPILED_METHOD_LOAD && replay) {
        replay();
    }
    return JVMTI_ERROR_NONE;
}

static jvmtiError JNICALL get_method_name(jvmtiEnv *env, jmethodID id, char **name,
                                          char **descriptor, char **generic)
{
    (void)env;
    (void)id;
    (void)name;
    (void)descriptor;
    (void)generic;
    return JVMTI_ERROR_INVALID_METHODID;
}

static jvmtiError JNICALL get_class(jvmtiEnv *env, jmethodID id, jclass *klass)
{
    (void)env;
    (void)id;
    (void)klass;
    return JVMTI_ERROR_INVALID_METHODID;
}

static atomic_int signatures; /* that were asked for: what is told of an allocation has one */

static jvmtiError JNICALL get_signature(jvmtiEnv *env, jclass klass, char **signature,
                                        char **generic)
{
    (void)env;
    (void)klass;
    (void)signature;
    (void)generic;
    atomic_fetch_add(&signatures, 1);
    return JVMTI_ERROR_INVALID_CLASS;
}

static jvmtiPhase phase = JVMTI_PHASE_LIVE;

static jvmtiError JNICALL get_phase(jvmtiEnv *env, jvmtiPhase *now)
{
    (void)env;
    *now = phase;
    return JVMTI_ERROR_NONE;
}

static const struct jvmtiInterface_1_ functions = {
    .GetPhase = get_phase,
    .SetEventNotificationMode = set_mode,
    .SetEventCallbacks = set_callbacks,
    .AddCapabilities = add_capabilities,
    .GetCapabilities = get_capabilities,
    .RelinquishCapabilities = relinquish_capabilities,
    .SetHeapSamplingInterval = set_interval,
    .GetVersionNumber = get_version,
    .GenerateEvents = generate,
    .GetMethodName = get_method_name,
    .GetMethodDeclaringClass = get_class,
    .GetClassSignature = get_signature,
};
jvmtiEnv jvmti = &functions;

static bool starting; /* between Agent_OnLoad and the live phase */

static jint JNICALL get_env(JavaVM *vm, void **env, jint version)
{
    (void)vm;
    *env = version == JVMTI_VERSION_1_1 && !starting ? (void *)&jvmti : NULL;
    return *env ? JNI_OK : starting ? JNI_EDETACHED : JNI_EVERSION;
}

static jint JNICALL attach_thread(JavaVM *vm, void **env, void *args)
{
    (void)vm;
    (void)args;
    *env = NULL;
    attached_threads++;
    attachments++;
    return JNI_OK;
}

static jint JNICALL detach_thread(JavaVM *vm)
{
    (void)vm;
    attached_threads--;
    return JNI_OK;
}

static const struct JNIInvokeInterface_ invoke = {
    .GetEnv = get_env,
    .AttachCurrentThreadAsDaemon = attach_thread,
    .DetachCurrentThread = detach_thread,
};
static JavaVM vm = &invoke;

static void compiled(void)
{
    callbacks.CompiledMethodLoad(&jvmti, NULL, sizeof(code), code, 0, NULL, NULL);
}

static void stub(size_t at)
{
    callbacks.DynamicCodeGenerated(&jvmti, "stub", code + at, 16);
}

/* ---- Tests ---- */

static struct options options_for(void **state, const char *more)
{
    char text[256];
    char error[OPTIONS_ERROR_MAX];
    struct options options;
    snprintf(text, sizeof(text), "dir=%s%s", (const char *)*state, more);
    assert_int_equal(options_parse(text, &options, error), 0);
    options.verbose = -1; /* the faults are ours */
    return options;
}

static void start(void **state, const char *more, bool attached)
{
    const struct options options = options_for(state, more);
    assert_int_equal(command_start(&vm, &options, attached), 0);
}

/* The dump of the session that runs, a directory of its own below the first one's. */
static void dump_path(char path[PATH_MAX])
{
    assert_true(session_try_control());
    struct sink_stats stats;
    occupancy_stats(session_current()->sinks.occupancy, 0, &stats);
    snprintf(path, PATH_MAX, "%s", stats.path);
    session_release_control();
}

static void assert_ended(const char *path)
{
    size_t size = 0;
    uint8_t *bytes = scratch_read(path, &size);
    assert_non_null(bytes);
    struct jitdump_close last;
    assert_true(size > sizeof(last));
    memcpy(&last, bytes + size - sizeof(last), sizeof(last));
    assert_int_equal(last.prefix.id, JIT_CODE_CLOSE);
    free(bytes);
}

/* Ahead of the others: the environment, once had, is kept. */
TEST_WITH(a_jvm_that_starts_is_asked_again, scratch_create, scratch_remove)
{
    const struct options options = options_for(state, "");
    starting = true;
    assert_int_equal(command_start(&vm, &options, true), JNI_EDETACHED);
    starting = false;
    assert_int_equal(command_start(&vm, &options, true), JNI_OK);
    command_stop("");
    /* Of a JVM that the agent could not begin in when it was loaded. */
    const jvmtiPhase early[] = {JVMTI_PHASE_PRIMORDIAL, JVMTI_PHASE_START};
    for (size_t i = 0; i < sizeof(early) / sizeof(*early); i++) {
        phase = early[i];
        assert_int_equal(command_start(&vm, &options, true), JNI_EDETACHED);
    }
    phase = JVMTI_PHASE_LIVE;
    assert_int_equal(command_start(&vm, &options, true), JNI_OK);
    command_stop("");
}

TEST_WITH(stop_ends_the_dump, scratch_create, scratch_remove)
{
    char path[PATH_MAX];
    start(state, "", false);
    dump_path(path);
    assert_true(enabled[JVMTI_EVENT_COMPILED_METHOD_LOAD]);
    stub(0);
    compiled();
    command_stop("");
    assert_false(enabled[JVMTI_EVENT_COMPILED_METHOD_LOAD]);
    assert_ended(path);
}

/* As HotSpot tells of one whose end is still NULL: nothing of it may be read, nor be missed. */
TEST_WITH(a_stub_in_the_making_is_left_for_later, scratch_create, scratch_remove)
{
    const uintptr_t starts[] = {UINT64_C(0x7ffffffff000), UINT64_C(0x7f90b49fed00)};
    char path[PATH_MAX];
    start(state, "", false);
    dump_path(path);
    for (size_t i = 0; i < sizeof(starts) / sizeof(*starts); i++) {
        jint length = (jint)(0 - (uint32_t)starts[i]);
        assert_true(length > 0);
        callbacks.DynamicCodeGenerated(&jvmti, "half a stub", (const void *)starts[i], length);
    }
    stub(0);
    assert_true(session_try_control());
    struct sink_stats stats;
    occupancy_stats(session_current()->sinks.occupancy, 0, &stats);
    session_release_control();
    assert_false(stats.failed);
    assert_int_equal(stats.dropped, 0);
    assert_int_equal(stats.records, 1);
    command_stop("");
    assert_ended(path);
}

static atomic_bool replaying;
static atomic_int replayed;

/* Ten seconds of replay. */
static void replay_slowly(void)
{
    atomic_store(&replaying, true);
    for (int i = 0; i < 1000; i++) {
        struct session *session = session_enter();
        if (session) {
            sleep_ms(10);
            session_leave();
            atomic_fetch_add(&replayed, 1);
        }
    }
    atomic_store(&replaying, false);
}

static void *attach(void *state)
{
    start(state, "", true);
    return NULL;
}

TEST_WITH(death_does_not_wait_for_a_replay, scratch_create, scratch_remove)
{
    pthread_t thread;
    replay = replay_slowly;
    assert_int_equal(pthread_create(&thread, NULL, attach, state), 0);
    while (!atomic_load(&replaying)) {
        sleep_ms(1);
    }
    double before = now();
    callbacks.VMDeath(&jvmti, NULL);
    assert_true(now() - before < 4);
    pthread_join(thread, NULL);
    replay = NULL;
    assert_true(session_try_control());
    assert_null(session_current());
    session_release_control();
    assert_true(atomic_load(&replayed) < 900);
}

static bool some_are_enabled(void)
{
    for (int event = 0; event <= JVMTI_MAX_EVENT_TYPE_VAL; event++) {
        if (enabled[event]) {
            return true;
        }
    }
    return false;
}

static bool has_capabilities(void)
{
    static const jvmtiCapabilities none;
    jvmtiCapabilities all;
    get_capabilities(NULL, &all);
    return memcmp(&all, &none, sizeof(none)) != 0;
}

static void assert_soon(bool (*is)(void), bool wanted)
{
    for (double since = now(); is() != wanted;) {
        assert_true(now() - since < 30);
        sleep_ms(1);
    }
}

/* DynamicCodeGenerated comes in phases and under locks that forbid JVMTI. */
TEST_WITH(failure_turns_events_off_where_it_may, scratch_create, scratch_remove)
{
    start(state, ",max=4K", false);
    calls = 0;
    for (size_t i = 0; i < sizeof(code) / 16; i++) {
        stub(16 * i);
    }
    assert_true(session_take_control());
    assert_true(atomic_load(&session_current()->failed));
    session_release_control();
    assert_int_equal(calls, 0);
    compiled();
    assert_soon(some_are_enabled, false);
    start(state, "", false); /* a failed session is in nobody's way */
    assert_true(enabled[JVMTI_EVENT_DYNAMIC_CODE_GENERATED]);
    char path[PATH_MAX];
    dump_path(path);
    command_stop("");
    assert_int_equal(unlink(path), 0);
}

/* Though the JVM has no further event for us: the journal would grow on, where nothing is that it
 * belongs to. */
TEST_WITH(a_failed_session_ends_whole, scratch_create, scratch_remove)
{
    start(state, ",max=4K,threads,alloc=64K", true);
    assert_true(journal_is_open());
    assert_true(enabled[JVMTI_EVENT_SAMPLED_OBJECT_ALLOC]);
    for (size_t i = 0; i < sizeof(code) / 16; i++) {
        stub(16 * i);
    }
    assert_soon(journal_is_open, false);
    assert_soon(has_capabilities, false);
    assert_false(some_are_enabled());
    assert_true(session_take_control());
    assert_true(atomic_load(&session_current()->failed)); /* whoever asks is told */
    session_release_control();
    command_stop("");
    assert_null(session_current());
}

/* Nor does a start that fails keep any. */
TEST_WITH(a_failed_start_gives_all_back, scratch_create, scratch_remove)
{
    assert_int_equal(close(open(scratch_path(state, "file"), O_CREAT | O_WRONLY | O_CLOEXEC, 0600)),
                     0);
    const struct options options = options_for(state, "/file");
    assert_int_equal(command_start(&vm, &options, true), -1);
    assert_false(has_capabilities());
}

/* For other agents: some capabilities only one can have, and the interval is one for all. */
TEST_WITH(capabilities_are_given_back, scratch_create, scratch_remove)
{
    for (int round = 0; round < 2; round++) {
        start(state, ",alloc=64K,locks=1ms", round > 0);
        assert_true(capabilities.can_generate_sampled_object_alloc_events);
        assert_true(capabilities.can_generate_monitor_events);
        assert_true(capabilities.can_generate_compiled_method_load_events);
        assert_int_equal(sampling_interval, 64 * 1024);
        command_stop("");
        assert_false(has_capabilities());
        assert_false(some_are_enabled());
        assert_int_equal(sampling_interval, 512 * 1024);
    }
}

static int attachments_before;

static bool somebody_came_and_went(void)
{
    return atomic_load(&attachments) > attachments_before && atomic_load(&attached_threads) == 0;
}

static void allocate(void)
{
    callbacks.SampledObjectAlloc(&jvmti, NULL, NULL, NULL, NULL, 16);
}

/* A replay stands for all that makes the JVM allocate on our behalf. */
TEST_WITH(what_we_have_the_jvm_allocate_is_not_told, scratch_create, scratch_remove)
{
    atomic_store(&signatures, 0);
    replay = allocate;
    start(state, ",alloc=64K", false);
    callbacks.VMInit(&jvmti, NULL, NULL);
    assert_int_equal(atomic_load(&signatures), 0);
    allocate(); /* the program */
    assert_int_equal(atomic_load(&signatures), 1);
    command_stop("");
    start(state, ",alloc=64K", true);
    assert_int_equal(atomic_load(&signatures), 1);
    allocate();
    assert_int_equal(atomic_load(&signatures), 2);
    attachments_before = atomic_load(&attachments);
    assert_true(errands_want(ERRAND_ALL));
    assert_soon(somebody_came_and_went, true);
    assert_int_equal(atomic_load(&signatures), 2);
    command_stop("");
    replay = NULL;
}

static atomic_int full_replays;
static atomic_bool goes_on;

/* The first one waits. */
static void count_replays(void)
{
    if (atomic_fetch_add(&full_replays, 1) == 0) {
        while (!atomic_load(&goes_on)) {
            sleep_ms(1);
        }
    }
}

static void *replay_now(void *unused)
{
    struct session *session = session_enter();
    assert_non_null(session);
    assert_int_equal(events_replay(session, false), 0);
    session_leave();
    return unused;
}

static bool was_replayed_again(void)
{
    return atomic_load(&full_replays) == 2;
}

/* A replay may have passed what is missing already, so another one is needed. */
TEST_WITH(what_is_missing_outlives_a_replay, scratch_create, scratch_remove)
{
    pthread_t thread;
    start(state, "", true);
    atomic_store(&full_replays, 0);
    atomic_store(&goes_on, false);
    replay = count_replays;
    assert_int_equal(pthread_create(&thread, NULL, replay_now, NULL), 0);
    while (atomic_load(&full_replays) == 0) {
        sleep_ms(1);
    }
    assert_true(errands_want(ERRAND_ALL));
    while (atomic_load(&attached_threads) == 0) {
        sleep_ms(1);
    }
    sleep_ms(20); /* it has seen that another one is at it, most likely */
    atomic_store(&goes_on, true);
    assert_soon(was_replayed_again, true);
    pthread_join(thread, NULL);
    command_stop("");
    replay = NULL;
}

static void replay_much(void)
{
    for (size_t i = 0; i < sizeof(code) / 16; i++) {
        stub(16 * i);
    }
}

/* Nobody is to believe that he has a profile. */
TEST_WITH(attach_fails_where_the_session_dies_in_the_replay, scratch_create, scratch_remove)
{
    replay = replay_much;
    const struct options options = options_for(state, ",max=4K");
    assert_int_equal(command_start(&vm, &options, true), -1);
    replay = NULL;
    assert_true(session_try_control());
    assert_null(session_current());
    session_release_control();
    assert_false(enabled[JVMTI_EVENT_COMPILED_METHOD_LOAD]);
}

/* One of two outputs is enough to go on with, unless the user said strict. */
TEST_WITH(strict_wants_all_outputs, scratch_create, scratch_remove)
{
    char map[64];
    snprintf(map, sizeof(map), "/tmp/perf-%d.map", (int)getpid());
    replay = replay_much;
    struct options options = options_for(state, ",max=8K,mode=jitdump+map");
    assert_int_equal(command_start(&vm, &options, true), 0);
    command_stop("");
    options = options_for(state, ",max=8K,mode=jitdump+map,strict");
    assert_int_equal(command_start(&vm, &options, true), -1);
    replay = NULL;
    assert_true(session_try_control());
    assert_null(session_current());
    session_release_control();
    (void)unlink(map);
}

static int own_stderr;

/* What is said from here on goes into a file, up to heard. */
static void hear(void **state)
{
    own_stderr = dup(STDERR_FILENO);
    int file = open(scratch_path(state, "said"), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(own_stderr >= 0 && file >= 0);
    message_set_level(MESSAGE_WARNING);
    dup2(file, STDERR_FILENO);
    close(file);
}

/* The file, to be freed. */
static char *heard(void **state)
{
    dup2(own_stderr, STDERR_FILENO);
    close(own_stderr);
    char *text = (char *)scratch_read(scratch_path(state, "said"), NULL);
    assert_non_null(text);
    return text;
}

/* Code that could not be written, though the session lives, is told of when it ends. */
TEST_WITH(what_was_dropped_is_told, scratch_create, scratch_remove)
{
    char path[PATH_MAX];
    start(state, ",code=off", false);
    dump_path(path);
    callbacks.DynamicCodeGenerated(&jvmti, "giant", code, INT32_MAX);
    hear(state);
    command_stop("");
    char *text = heard(state);
    assert_non_null(strstr(text, " times a piece of code could not be written to "));
    free(text);
    assert_ended(path);
}

/* As every other end of a session does; some stubs are told of at no other time. */
TEST_WITH(duration_asks_for_the_stubs_once_more, scratch_create, scratch_remove)
{
    char path[PATH_MAX];
    start(state, ",duration=1", false);
    dump_path(path);
    atomic_store(&stub_replays, 0);
    for (double since = now(); enabled[JVMTI_EVENT_COMPILED_METHOD_LOAD] && now() - since < 30;) {
        sleep_ms(10);
    }
    command_stop(""); /* waits until the clock's thread is done */
    assert_int_equal(atomic_load(&stub_replays), 1);
    for (double since = now(); atomic_load(&attached_threads) && now() - since < 30;) {
        sleep_ms(1);
    }
    assert_int_equal(atomic_load(&attached_threads), 0);
    assert_ended(path);
}

static atomic_bool left;

static void *stay_for_a_while(void *unused)
{
    struct session *session = session_enter();
    atomic_store(&replaying, session != NULL);
    sleep_ms(300);
    atomic_store(&left, true);
    session_leave();
    return unused;
}

TEST_WITH(stop_waits_for_callbacks, scratch_create, scratch_remove)
{
    pthread_t thread;
    start(state, "", false);
    assert_int_equal(pthread_create(&thread, NULL, stay_for_a_while, NULL), 0);
    while (!atomic_load(&replaying)) {
        sleep_ms(1);
    }
    command_stop("");
    assert_true(atomic_load(&left));
    pthread_join(thread, NULL);
}

TEST_WITH(fork_finds_no_session, scratch_create, scratch_remove)
{
    start(state, "", false);
    pid_t child = fork();
    if (child == 0) {
        _exit(session_enter() ? 1 : 0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_non_null(session_enter());
    session_leave();
    command_stop("");
}

/* Said at once, not by a table that stays empty. */
TEST_WITH(a_jvm_that_hides_its_methods_makes_no_table, scratch_create, scratch_remove)
{
    static const enum field needed[] = {MIRROR_KLASS, KLASS_METHODS,  KLASS_IDS,
                                        CONST_IDNUM,  METHODS_LENGTH, METHODS_DATA};
    struct hotspot hotspot = {0};
    const struct record_log_options log_options = {
        .directory = *state, .directory_fd = AT_FDCWD, .pid = 1};
    const struct record_log_header header = {.size = 40};
    struct methods_file_options options = {.hotspot = &hotspot, .program = ""};
    assert_int_equal(record_log_open(&log_options, &header, &options.log), 0);
    struct methods_file *table = NULL;
    assert_true(methods_file_open(&options, &table) < 0);
    assert_null(table);
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        hotspot.layout.places[needed[i]].known = true;
    }
    assert_int_equal(methods_file_open(&options, &table), 0);
    methods_file_close(table);
    table = NULL;
    options.hotspot = NULL;
    assert_true(methods_file_open(&options, &table) < 0);
    record_log_close(options.log);
}

static jvmtiError JNICALL list_no_classes(jvmtiEnv *env, jint *count, jclass **classes)
{
    (void)env;
    *count = 0;
    *classes = NULL;
    sleep_ms(30); /* on a busy machine, or at a safepoint */
    return JVMTI_ERROR_NONE;
}

static jvmtiError JNICALL list_no_classes_busily(jvmtiEnv *env, jint *count, jclass **classes)
{
    const clock_t until = clock() + CLOCKS_PER_SEC / 500;
    while (clock() < until) {
    }
    return list_no_classes(env, count, classes);
}

static jvmtiError JNICALL deallocate_nothing(jvmtiEnv *env, unsigned char *memory)
{
    (void)env;
    assert_null(memory);
    return JVMTI_ERROR_NONE;
}

static jint JNICALL ensure_capacity(JNIEnv *env, jint capacity)
{
    (void)env;
    (void)capacity;
    return JNI_OK;
}

/* What a redefinition brought while it was too early to look is looked for afterwards, without a
 * further sign; and how early that is depends on the processor time that it takes. */
TEST_WITH(a_redefinition_is_kept_in_mind, scratch_create, scratch_remove)
{
    struct jvmtiInterface_1_ for_jvmti = {.GetLoadedClasses = list_no_classes,
                                          .Deallocate = deallocate_nothing};
    const struct JNINativeInterface_ for_jni = {.EnsureLocalCapacity = ensure_capacity};
    jvmtiEnv env = &for_jvmti;
    JNIEnv jni = &for_jni;
    struct hotspot hotspot;
    memset(&hotspot, 0, sizeof hotspot);
    for (size_t i = 0; i < sizeof hotspot.layout.places / sizeof *hotspot.layout.places; i++) {
        hotspot.layout.places[i].known = true;
    }
    const struct record_log_options log_options = {
        .directory = *state, .directory_fd = AT_FDCWD, .pid = 1};
    const struct record_log_header header = {.size = 40};
    struct methods_file_options options = {.hotspot = &hotspot, .program = ""};
    struct methods_file *table = NULL;
    assert_int_equal(record_log_open(&log_options, &header, &options.log), 0);
    assert_int_equal(methods_file_open(&options, &table), 0);
    assert_false(methods_file_lacks(table, 0x1000)); /* nothing has been told of */
    methods_file_catch_up(table, &env, &jni, false, false);
    assert_true(methods_file_lacks(table, 0x1000));
    assert_false(methods_file_lacks(table, 0x2000)); /* the errand is under way */
    for_jvmti.GetLoadedClasses = list_no_classes_busily;
    methods_file_catch_up(table, &env, &jni, false, false);
    double begin = now();
    assert_false(methods_file_lacks(table, 0x3000));                    /* too early */
    while (!methods_file_lacks(table, 0x3000) && now() < begin + 2.5) { /* 30 ms would be 3 s */
        sleep_ms(10);
    }
    assert_true(now() < begin + 2.5);
    methods_file_close(table);
    record_log_close(options.log);
}

/* ---- Leases ---- */

static int hold(const char *path)
{
    struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(fcntl(fd, F_OFD_SETLK, &lock), 0);
    return fd;
}

static bool runs(void)
{
    assert_true(session_take_control());
    bool is = session_current() != NULL;
    session_release_control();
    return is;
}

TEST_WITH(lives_while_its_lease_is_held, scratch_create, scratch_remove)
{
    char path[160];
    char more[sizeof(path) + sizeof(",lease=")];
    snprintf(path, sizeof(path), "%s", scratch_path(state, "lease"));
    snprintf(more, sizeof(more), ",lease=%s", path);
    struct options options = options_for(state, more);
    int first = hold(path);
    int second = hold(path);
    assert_int_equal(command_start(&vm, &options, true), 0);
    /* Not for one who brings his own, and who cannot end it either. He says so himself. */
    options.verbose = MESSAGE_WARNING;
    hear(state);
    assert_int_equal(command_start(&vm, &options, true), JNI_EEXIST);
    char *text = heard(state);
    assert_string_equal(text, "");
    free(text);
    options.verbose = -1;
    command_stop("/tmp/another/lease");
    assert_true(runs());
    close(first);
    sleep_ms(2500);
    assert_true(runs()); /* the second one still holds it */
    close(second);
    double from = now();
    while (runs()) {
        assert_true(now() - from < 10);
        sleep_ms(20);
    }
    /* In a JVM that is still starting he asks again, without a word. */
    options.verbose = MESSAGE_WARNING;
    phase = JVMTI_PHASE_START;
    first = hold(path);
    hear(state);
    assert_int_equal(command_start(&vm, &options, true), JNI_EDETACHED);
    text = heard(state);
    assert_string_equal(text, "");
    free(text);
    close(first);
    phase = JVMTI_PHASE_LIVE;
    options.verbose = -1;
    /* And nothing is started for nobody. */
    assert_int_equal(command_start(&vm, &options, true), -1);
    assert_false(runs());
    first = hold(path);
    assert_int_equal(command_start(&vm, &options, true), 0);
    command_stop(path);
    assert_false(runs());
    close(first);
}

TEST_MAIN(NULL, NULL)
