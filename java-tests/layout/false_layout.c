/*
 * An agent that makes the layout tables of its JVM lie: libfalse_layout.so=OWNER::FIELD,CHANGE
 * tells of one field what is not so, for whoever looks at the tables later; with `all` it looks
 * itself, in VMInit, through the code of our own agent, once for every field that this reads and
 * every lie. What is to be seen is that the JVM lives, and what is said: a line "-- OWNER::FIELD
 * CHANGE" on stderr comes before each attempt, and behind it come that attempt's messages.
 * Meanwhile a thread maps pages and unmaps them a thousand times a second, beside malloc's own:
 * what a lie leads to may be gone a moment later.
 */
#include "agent/hotspot/hotspot_fields.h"
#include "agent/methods/inline_record.h"
#include "agent/methods/proof.h"

#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* What is told instead of an offset, a size or a constant. */
static const struct {
    const char *name;
    enum { ADD, SET, RETYPE, REMOVE } kind;
    int64_t by;
} changes[] = {
    {"+8", ADD, 8},         {"+4", ADD, 4},      {"-8", ADD, -8},       {"+64", ADD, 64},
    {"+4096", ADD, 4096},   {"0", SET, 0},       {"far", SET, 1 << 15}, {"absurd", SET, 1L << 40},
    {"negative", SET, -16}, {"type", RETYPE, 0}, {"gone", REMOVE, 0},
};
enum { CHANGES = sizeof(changes) / sizeof(*changes) };

/* An entry of one of the tables, and how it was. */
struct entry {
    char *at;
    size_t name, other_name, value, type, is_static, address; /* offsets in it; 0: has none */
    char before[256];
    size_t size;
};

static JavaVM *the_vm;
static void *libjvm;
static int major;

static size_t number(const char *name)
{
    const uint64_t *symbol = (const uint64_t *)dlsym(libjvm, name);
    return symbol ? (size_t)*symbol : 0;
}

static char *pointer_at(const char *at)
{
    char *value;
    memcpy(&value, at, sizeof(value));
    return value;
}

static bool is_called(const char *at, const char *name)
{
    return pointer_at(at) && strcmp(pointer_at(at), name) == 0;
}

/* Finds OWNER::FIELD among the fields, else NAME among the types, else among the constants. */
static bool find(const char *what, struct entry *entry)
{
    char owner[128];
    const char *field = strrchr(what, ':');
    snprintf(owner, sizeof(owner), "%.*s", field ? (int)(field - 1 - what) : 0, what);
    char *at = pointer_at((char *)dlsym(libjvm, "gHotSpotVMStructs"));
    *entry = (struct entry){.size = number("gHotSpotVMStructEntryArrayStride"),
                            .name = number("gHotSpotVMStructEntryTypeNameOffset"),
                            .other_name = number("gHotSpotVMStructEntryFieldNameOffset"),
                            .value = number("gHotSpotVMStructEntryOffsetOffset"),
                            .type = number("gHotSpotVMStructEntryTypeStringOffset"),
                            .is_static = number("gHotSpotVMStructEntryIsStaticOffset"),
                            .address = number("gHotSpotVMStructEntryAddressOffset")};
    for (; field && pointer_at(at + entry->name); at += entry->size) {
        if (is_called(at + entry->name, owner) && is_called(at + entry->other_name, field + 1)) {
            entry->at = at;
            return true;
        }
    }
    at = pointer_at((char *)dlsym(libjvm, "gHotSpotVMTypes"));
    *entry = (struct entry){.size = number("gHotSpotVMTypeEntryArrayStride"),
                            .name = number("gHotSpotVMTypeEntryTypeNameOffset"),
                            .value = number("gHotSpotVMTypeEntrySizeOffset")};
    for (; pointer_at(at + entry->name); at += entry->size) {
        if (is_called(at + entry->name, what)) {
            entry->at = at;
            return true;
        }
    }
    at = pointer_at((char *)dlsym(libjvm, "gHotSpotVMIntConstants"));
    *entry = (struct entry){.size = number("gHotSpotVMIntConstantEntryArrayStride"),
                            .name = number("gHotSpotVMIntConstantEntryNameOffset"),
                            .value = number("gHotSpotVMIntConstantEntryValueOffset")};
    for (; pointer_at(at + entry->name); at += entry->size) {
        if (is_called(at + entry->name, what)) {
            entry->at = at;
            return true;
        }
    }
    return false;
}

static void make_writable(struct entry *entry)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *start = entry->at - (uintptr_t)entry->at % page;
    if (mprotect(start, (size_t)(entry->at - start) + entry->size, PROT_READ | PROT_WRITE) != 0 ||
        entry->size > sizeof(entry->before)) {
        fprintf(stderr, "false_layout: the tables cannot be changed\n");
        exit(1);
    }
}

static void lie(struct entry *entry, int change)
{
    static const char *nonsense = "nonsense";
    int is_static = 0;
    int64_t value = 0;
    if (entry->is_static) {
        memcpy(&is_static, entry->at + entry->is_static, sizeof(is_static));
    }
    char *at = entry->at + (is_static ? entry->address : entry->value);
    make_writable(entry);
    memcpy(entry->before, entry->at, entry->size);
    switch (changes[change].kind) {
    case ADD:
        memcpy(&value, at, sizeof(int32_t)); /* a constant has no more */
        if (is_static) {
            memcpy(&value, at, sizeof(value));
        }
        value += changes[change].by;
        memcpy(at, &value, is_static || entry->is_static ? 8 : 4);
        break;
    case SET:
        value = changes[change].by;
        memcpy(at, &value, is_static || entry->is_static ? 8 : 4);
        break;
    case RETYPE:
        if (entry->type) {
            memcpy(entry->at + entry->type, &nonsense, sizeof(nonsense));
        }
        break;
    case REMOVE:
        memcpy(entry->at + entry->name, &nonsense, sizeof(nonsense));
        break;
    }
}

static void tell_the_truth(const struct entry *entry)
{
    memcpy(entry->at, entry->before, entry->size);
}

/* ---- All of them ---- */

static struct hotspot *hotspot; /* of the attempt */
static struct inline_scopes scopes;
static struct inline_builder *builder;
static struct hotspot_nearby *nearby;
static uint64_t attempts;
static atomic_bool vanished; /* enough of it */
static unsigned long turns;  /* pages were unmapped so often */
static pthread_t replayer;   /* the thread of the attempt */
static struct {
    unsigned long codes, facts, methods, scoped, same, classes, named, placed;
} counts;

static const struct java_method any_method;

static const struct java_method *resolve(void *unused, method_key key, const void *id)
{
    (void)unused;
    return key && id ? &any_method : NULL;
}

static void JNICALL compiled_method_load(jvmtiEnv *jvmti, jmethodID id, jint size,
                                         const void *address, jint map_length,
                                         const jvmtiAddrLocationMap *map, const void *info)
{
    (void)jvmti;
    (void)map_length;
    (void)map;
    /* What is compiled meanwhile is told of on another thread: it is not of the replay. */
    if (!pthread_equal(pthread_self(), replayer)) {
        return;
    }
    struct code_facts facts = CODE_FACTS_UNKNOWN;
    struct hotspot_nmethod nmethod;
    uint64_t class_key;
    const uint64_t at = (uint64_t)(uintptr_t)address;
    hotspot_nearby_begin(hotspot, nearby, attempts, at, (uint64_t)size);
    hotspot_compiled_facts(hotspot, nearby, at, (uint64_t)size, &facts, &nmethod);
    counts.codes++;
    counts.facts += facts.tier >= 0;
    counts.methods += nmethod.method != 0;
    counts.same += hotspot_bond(hotspot, nearby, nmethod.method, (uint64_t)(uintptr_t)id,
                                &class_key) == HOTSPOT_SAME;
    struct hotspot_methods methods = {0};
    if (hotspot_one_method(hotspot, nearby, nmethod.method, &methods)) {
        counts.placed += hotspot_nearby_in_place(nearby);
    }
    hotspot_methods_free(&methods);
    const jvmtiCompiledMethodLoadInlineRecord *record = inline_record_of(info);
    const struct inline_code code = {.address = address,
                                     .size = (uint32_t)size,
                                     .method = id,
                                     .record = record,
                                     .nmethod = &nmethod};
    inline_builder_begin(builder, INLINE_FULL, code.size, (method_key)(uintptr_t)id, &any_method,
                         resolve, NULL);
    counts.scoped += record && inline_record_add_scopes(hotspot, nearby, &code, &scopes, builder);
}

static void JNICALL dynamic_code_generated(jvmtiEnv *jvmti, const char *name, const void *address,
                                           jint length)
{
    (void)jvmti;
    (void)name;
    if (!pthread_equal(pthread_self(), replayer)) {
        return;
    }
    struct code_facts facts = CODE_FACTS_UNKNOWN;
    hotspot_facts(hotspot, NULL, (uint64_t)(uintptr_t)address, (uint64_t)length, &facts);
}

/* Where libc and malloc put theirs, holes open and close. */
static void *let_pages_vanish(void *unused)
{
    enum { REGIONS = 64, LARGEST = 64 };
    static struct {
        char *at;
        size_t size;
    } regions[REGIONS];
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint64_t random = 1;
    while (!atomic_load(&vanished)) {
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
        size_t i = random >> 33 & (REGIONS - 1);
        if (regions[i].at) {
            munmap(regions[i].at, regions[i].size);
            turns++;
        }
        regions[i].size = (1 + (random >> 40) % LARGEST) * page;
        regions[i].at = mmap(NULL, regions[i].size, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        regions[i].at = regions[i].at == MAP_FAILED ? NULL : regions[i].at;
        free(malloc(regions[i].size)); // NOLINT: grows and trims malloc's own
        malloc_trim(0);
        usleep(500); /* else it takes half of the processor from who looks */
    }
    return unused;
}

/* Everything that the agent would do, with what the tables say now. */
static void attempt(jvmtiEnv *jvmti, JNIEnv *jni, jclass *classes, jint class_count)
{
    memset(&counts, 0, sizeof(counts));
    hotspot = hotspot_new((const void *)(*the_vm)->GetEnv, major);
    struct proof *proof = proof_new(hotspot, major);
    nearby = hotspot_nearby_new();
    attempts++;
    replayer = pthread_self();
    proof_make(proof, jvmti, jni);
    struct hotspot_methods methods = {0};
    for (jint i = 0; i < class_count; i++) {
        uint64_t klass;
        size_t read = 0;
        if (proof_klasses(proof, jni, &classes[i], 1, &klass) &&
            hotspot_class_methods(hotspot, &klass, 1, false, &methods, &read)) {
            counts.classes++;
            counts.named += methods.count;
        }
    }
    hotspot_methods_free(&methods);
    (*jvmti)->GenerateEvents(jvmti, JVMTI_EVENT_DYNAMIC_CODE_GENERATED);
    (*jvmti)->GenerateEvents(jvmti, JVMTI_EVENT_COMPILED_METHOD_LOAD);
    hotspot_nearby_free(nearby);
    free(proof);
    hotspot_free(hotspot);
    hotspot = NULL;
    fprintf(
        stderr,
        "   codes %lu facts %lu methods %lu same %lu scoped %lu classes %lu named %lu placed %lu\n",
        counts.codes, counts.facts, counts.methods, counts.same, counts.scoped, counts.classes,
        counts.named, counts.placed);
}

/* Some classes that can be looked at. */
static jint choose_classes(jvmtiEnv *jvmti, jclass *classes, jint count)
{
    enum { WANTED = 200 };
    jint chosen = 0;
    for (jint i = 0; i < count && chosen < WANTED; i++) {
        jint status = 0;
        if ((*jvmti)->GetClassStatus(jvmti, classes[i], &status) == JVMTI_ERROR_NONE &&
            (status & JVMTI_CLASS_STATUS_PREPARED) != 0 &&
            (status & (JVMTI_CLASS_STATUS_ARRAY | JVMTI_CLASS_STATUS_PRIMITIVE)) == 0) {
            classes[chosen++] = classes[i];
        }
    }
    return chosen;
}

/* The main thread's end: the program has run, and there are still events (from JDK 26 on VMDeath is
 * too late for them). */
static void JNICALL thread_end(jvmtiEnv *jvmti, JNIEnv *jni, jthread thread)
{
    jvmtiThreadInfo info;
    if ((*jvmti)->GetThreadInfo(jvmti, thread, &info) != JVMTI_ERROR_NONE ||
        strcmp(info.name, "main") != 0) {
        return;
    }
    jclass *classes = NULL;
    jint count = 0;
    if ((*jvmti)->GetLoadedClasses(jvmti, &count, &classes) != JVMTI_ERROR_NONE) {
        return;
    }
    count = choose_classes(jvmti, classes, count);
    pthread_t vanishing;
    bool vanishes = pthread_create(&vanishing, NULL, let_pages_vanish, NULL) == 0;
    builder = inline_builder_new();
    if (!builder || !inline_scopes_init(&scopes)) {
        return;
    }
    fprintf(stderr, "-- truth\n");
    attempt(jvmti, jni, classes, count);
    size_t names = 0;
    const char *name;
    while ((name = hotspot_wanted_name(names++))) {
        struct entry entry;
        for (int change = 0; change < CHANGES && find(name, &entry); change++) {
            fprintf(stderr, "-- %s %s\n", name, changes[change].name);
            lie(&entry, change);
            attempt(jvmti, jni, classes, count);
            tell_the_truth(&entry);
        }
    }
    fprintf(stderr, "-- truth again\n");
    attempt(jvmti, jni, classes, count);
    atomic_store(&vanished, true);
    if (vanishes) {
        pthread_join(vanishing, NULL);
    }
    fprintf(stderr, "-- vanished %lu\n", turns);
    inline_scopes_free(&scopes);
    inline_builder_free(builder);
    (*jvmti)->Deallocate(jvmti, (unsigned char *)classes);
}

JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM *vm, char *options, void *reserved)
{
    (void)reserved;
    Dl_info info;
    jvmtiEnv *jvmti = NULL;
    jint version = 0;
    void *function = NULL;
    the_vm = vm;
    memcpy(&function, (const char *)*vm + offsetof(struct JNIInvokeInterface_, GetEnv),
           sizeof(function));
    if (!dladdr(function, &info) || !(libjvm = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD)) ||
        (*vm)->GetEnv(vm, (void **)&jvmti, JVMTI_VERSION_1_1) != JNI_OK ||
        (*jvmti)->GetVersionNumber(jvmti, &version) != JVMTI_ERROR_NONE) {
        return JNI_ERR;
    }
    major = (version & JVMTI_VERSION_MASK_MAJOR) >> JVMTI_VERSION_SHIFT_MAJOR;
    major = major == 1 ? 8 : major;
    if (strcmp(options, "all") != 0) {
        static struct entry entry;
        char name[128];
        const char *comma = strrchr(options, ',');
        snprintf(name, sizeof(name), "%.*s", comma ? (int)(comma - options) : 0, options);
        for (int change = 0; change < CHANGES; change++) {
            if (comma && strcmp(comma + 1, changes[change].name) == 0 && find(name, &entry)) {
                lie(&entry, change);
                return JNI_OK;
            }
        }
        fprintf(stderr, "false_layout: no such field or change: %s\n", options);
        return JNI_ERR;
    }
    const jvmtiCapabilities capabilities = {.can_generate_compiled_method_load_events = 1,
                                            .can_get_source_file_name = 1,
                                            .can_get_line_numbers = 1};
    const jvmtiEventCallbacks callbacks = {.ThreadEnd = thread_end,
                                           .CompiledMethodLoad = compiled_method_load,
                                           .DynamicCodeGenerated = dynamic_code_generated};
    (*jvmti)->AddCapabilities(jvmti, &capabilities);
    (*jvmti)->SetEventCallbacks(jvmti, &callbacks, (jint)sizeof(callbacks));
    (*jvmti)->SetEventNotificationMode(jvmti, JVMTI_ENABLE, JVMTI_EVENT_THREAD_END, NULL);
    (*jvmti)->SetEventNotificationMode(jvmti, JVMTI_ENABLE, JVMTI_EVENT_COMPILED_METHOD_LOAD, NULL);
    (*jvmti)->SetEventNotificationMode(jvmti, JVMTI_ENABLE, JVMTI_EVENT_DYNAMIC_CODE_GENERATED,
                                       NULL);
    return JNI_OK;
}
