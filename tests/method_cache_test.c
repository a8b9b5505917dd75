/* The cache of methods, with a simulated JVM whose method ids end, return and change. */
#include "test.h"

#include "agent/methods/method_cache.h"

#include "agent/hotspot/hotspot_fields.h"
#include "agent/methods/source_map.h"

#include "tests/random.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What an id points to, as in HotSpot: first the pointer to the method. */
struct id {
    const void *vm_method;
    char name[16];
    char source[16]; /* "": none */
    const char *map; /* of its class's source; NULL: none */
    jint line;       /* 0: no table */
    bool native, broken;
    jint more_lines;
    const void *pool; /* what all methods of a class lead to; NULL: this one does not */
};

static atomic_int names_asked, classes_asked, memory;

/* Nobody calls the JVM with a lock held: it may wait for whoever waits for that lock. */
static _Thread_local int locks_held;

int __real_pthread_mutex_lock(pthread_mutex_t *mutex);
int __real_pthread_mutex_unlock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex);

int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex)
{
    locks_held++;
    return __real_pthread_mutex_lock(mutex);
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    locks_held--;
    return __real_pthread_mutex_unlock(mutex);
}

static jmethodID id_of(struct id *id)
{
    return (jmethodID)(void *)id;
}

static uint64_t at(const void *vm_method)
{
    return (uint64_t)(uintptr_t)vm_method;
}

static struct id *of_id(jmethodID id)
{
    return (struct id *)(void *)id;
}

static void *give(size_t size)
{
    atomic_fetch_add(&memory, 1);
    void *given = malloc(size);
    assert_non_null(given);
    return given;
}

static char *give_string(const char *string)
{
    size_t size = strlen(string) + 1;
    return memcpy(give(size), string, size);
}

static jvmtiError JNICALL deallocate(jvmtiEnv *env, unsigned char *given)
{
    (void)env;
    assert_int_equal(locks_held, 0);
    atomic_fetch_sub(&memory, 1);
    free(given);
    return JVMTI_ERROR_NONE;
}

static jvmtiError JNICALL get_method_name(jvmtiEnv *env, jmethodID id, char **name,
                                          char **descriptor, char **generic)
{
    (void)env;
    assert_int_equal(locks_held, 0);
    assert_null(generic);
    if (of_id(id)->broken) {
        return JVMTI_ERROR_INVALID_METHODID;
    }
    atomic_fetch_add(&names_asked, 1);
    *name = give_string(of_id(id)->name);
    *descriptor = give_string("(I)V");
    return JVMTI_ERROR_NONE;
}

/* The class of a method is the id itself. */
static jvmtiError JNICALL get_declaring_class(jvmtiEnv *env, jmethodID id, jclass *klass)
{
    (void)env;
    assert_int_equal(locks_held, 0);
    *klass = (jclass)(void *)id;
    return JVMTI_ERROR_NONE;
}

static jvmtiError JNICALL get_class_signature(jvmtiEnv *env, jclass klass, char **signature,
                                              char **generic)
{
    (void)env;
    assert_int_equal(locks_held, 0);
    (void)klass;
    assert_null(generic);
    atomic_fetch_add(&classes_asked, 1);
    *signature = give_string("Lp/C;");
    return JVMTI_ERROR_NONE;
}

static jvmtiError JNICALL get_source_file(jvmtiEnv *env, jclass klass, char **source)
{
    (void)env;
    assert_int_equal(locks_held, 0);
    const struct id *id = (const struct id *)(void *)klass;
    if (!id->source[0]) {
        return JVMTI_ERROR_ABSENT_INFORMATION;
    }
    *source = give_string(id->source);
    return JVMTI_ERROR_NONE;
}

static jvmtiError JNICALL get_source_map(jvmtiEnv *env, jclass klass, char **map)
{
    (void)env;
    assert_int_equal(locks_held, 0);
    const char *text = ((const struct id *)(void *)klass)->map;
    if (!text) {
        return JVMTI_ERROR_ABSENT_INFORMATION;
    }
    *map = give_string(text);
    return JVMTI_ERROR_NONE;
}

static jvmtiError JNICALL get_lines(jvmtiEnv *env, jmethodID id, jint *count,
                                    jvmtiLineNumberEntry **lines)
{
    (void)env;
    assert_int_equal(locks_held, 0);
    if (of_id(id)->native) {
        return JVMTI_ERROR_NATIVE_METHOD;
    }
    if (of_id(id)->line == 0) {
        return JVMTI_ERROR_ABSENT_INFORMATION;
    }
    *count = 2 + of_id(id)->more_lines;
    *lines = give((size_t)*count * sizeof(**lines));
    memset(*lines, 0, (size_t)*count * sizeof(**lines));
    (*lines)[0] = (jvmtiLineNumberEntry){.start_location = 4, .line_number = of_id(id)->line + 1};
    (*lines)[1] = (jvmtiLineNumberEntry){.start_location = 0, .line_number = of_id(id)->line};
    return JVMTI_ERROR_NONE;
}

static const struct jvmtiInterface_1_ functions = {
    .Deallocate = deallocate,
    .GetMethodName = get_method_name,
    .GetMethodDeclaringClass = get_declaring_class,
    .GetClassSignature = get_class_signature,
    .GetSourceFileName = get_source_file,
    .GetSourceDebugExtension = get_source_map,
    .GetLineNumberTable = get_lines,
};
static jvmtiEnv jvmti = &functions;

static const int any_context;

/* HotSpot's view: an id is bound to one of its methods, and others are read as they are. */
static enum hotspot_bond bond(void *context, struct hotspot_nearby *nearby, uint64_t vm_method,
                              jmethodID id, uint64_t *class_key)
{
    (void)nearby;
    assert_ptr_equal(context, &any_context);
    *class_key = at(of_id(id)->pool);
    return vm_method == at(of_id(id)->vm_method) ? HOTSPOT_SAME : HOTSPOT_ANOTHER;
}

/* What the JVM's own structures say of a method that no id leads to; its name is where it is. */
static bool read_method(void *context, struct hotspot_nearby *nearby, uint64_t vm_method,
                        struct hotspot_methods *methods)
{
    static struct line_entry lines[] = {{.bci = 0, .line = 1007}, {.bci = 4, .line = 1008}};
    static struct hotspot_method method;
    const char *name = (const char *)(uintptr_t)vm_method; // NOLINT: it is one
    (void)nearby;
    assert_ptr_equal(context, &any_context);
    method = (struct hotspot_method){
        .name = name,
        .descriptor = strcmp(name, "invokeBasic") == 0 ? "(J)V" : "(I)V",
        .lines = lines,
        .line_count = 2,
        .pool = at(&any_context),
    };
    methods->methods = &method;
    methods->count = 1;
    return strcmp(name, "unreadable") != 0;
}

/* Of a JVM that shows its structures, or of one that does not. */
static struct method_cache *new_cache(bool open)
{
    const struct method_cache_options options = {.names = NAMES_JAVA,
                                                 .bond = open ? bond : NULL,
                                                 .read = open ? read_method : NULL,
                                                 .context = (void *)&any_context};
    struct method_cache *cache = method_cache_new(&options);
    assert_non_null(cache);
    atomic_store(&names_asked, 0);
    atomic_store(&classes_asked, 0);
    return cache;
}

/* What code at a few addresses keeps. */
enum { ADDRESSES = 100 };
static struct kept *kept_at[ADDRESSES];

static void unload(uint64_t address)
{
    if (kept_at[address]) {
        kept_at[address]->tell(kept_at[address], OCCUPANT_GONE);
        kept_at[address] = NULL;
    }
}

/* Code at `address` that mentions one method; what it got to know of it, while the code lives. */
static const struct java_method *load(struct method_cache *cache, uint64_t address, struct id *id)
{
    struct method_set set = {0};
    method_set_begin(&set, cache, &jvmti, NULL, NULL);
    const struct java_method *method = method_set_get(&set, id_of(id), at(id->vm_method));
    struct kept *kept = method_set_hold(&set);
    unload(address);
    kept_at[address] = kept;
    method_set_destroy(&set);
    return method;
}

/* The session ends. */
static void free_cache(struct method_cache *cache)
{
    for (uint64_t address = 0; address < ADDRESSES; address++) {
        if (kept_at[address]) {
            kept_at[address]->tell(kept_at[address], OCCUPANT_OVER);
            kept_at[address] = NULL;
        }
    }
    method_cache_free(cache);
    assert_int_equal(memory, 0);
}

/* The first look. */
static uint32_t line_of(const struct java_method *method, int32_t bci)
{
    uint32_t near = 0;
    return line_table_find(method->lines, method->line_count, bci, &near);
}

TEST(a_method_is_described)
{
    struct method_cache *cache = new_cache(true);
    struct id id = {.vm_method = &id, .name = "m", .source = "C.java", .line = 7};
    const struct java_method *method = load(cache, 1, &id);
    assert_non_null(method);
    assert_string_equal(method->method.name, "p.C.m(int)");
    assert_string_equal(method->method.class_name, "p.C");
    assert_string_equal(method->method.file->path, "p/C.java");
    assert_int_equal(method->method.first_line, 7);
    assert_int_equal(line_of(method, 5), 8);
    assert_false(method->native);
    assert_int_not_equal(method->method.id, 0);

    struct id native = {.vm_method = &native, .name = "n", .source = "C.java", .native = true};
    const struct java_method *other = load(cache, 2, &native);
    assert_true(other->native);
    assert_int_equal(other->line_count, 0);
    assert_ptr_equal(other->method.file, method->method.file); /* one file, one object */
    assert_int_not_equal(other->method.id, method->method.id);

    struct id bare = {.vm_method = &bare, .name = "b"};
    other = load(cache, 3, &bare);
    assert_null(other->method.file);
    assert_int_equal(other->method.first_line, 0);
    assert_false(other->native);
    free_cache(cache);
}

TEST(lines_are_where_the_source_map_has_them)
{
    struct method_cache *cache = new_cache(true);
    struct id id = {
        .vm_method = &id,
        .name = "m",
        .source = "C.kt",
        .line = 7,
        .map = "SMAP\nC.kt\nKotlin\n*S Kotlin\n*F\n+ 1 C.kt\np/C\n+ 2 Util.kt\nq/UtilKt\n*L\n"
               "1#1,7:1\n30#2:8\n*S KotlinDebug\n*F\n+ 1 C.kt\np/C\n*L\n5#1:8\n*E\n"};
    const struct java_method *method = load(cache, 1, &id);
    assert_non_null(method);
    struct source_line line = source_map_find(method->map, line_of(method, 5));
    assert_int_equal(line.line, 5);
    assert_int_equal(line.inlined_line, 30);
    assert_non_null(line.inlined);
    assert_string_equal(line.inlined->method.name, "q.UtilKt.{inline}");
    assert_string_equal(line.inlined->method.class_name, "q.UtilKt");
    assert_string_equal(line.inlined->method.file->path, "q/Util.kt");
    assert_int_not_equal(line.inlined->method.id, 0);
    assert_int_not_equal(line.inlined->method.id, method->method.id);

    struct id page = {.vm_method = &page,
                      .name = "page",
                      .source = "a_jsp.java",
                      .line = 8,
                      .map = "SMAP\na_jsp.java\nJSP\n*S JSP\n*F\n+ 0 a.jsp\nshop/a.jsp\n*L\n"
                             "3:8,2\n*E\n"};
    method = load(cache, 2, &page);
    assert_string_equal(method->method.file->path, "shop/a.jsp");
    assert_int_equal(method->method.first_line, 3);
    free_cache(cache);
}

TEST(the_jvm_is_asked_once_while_code_lives)
{
    struct method_cache *cache = new_cache(true);
    struct id id = {.vm_method = &id, .name = "m", .source = "C.java", .line = 7};
    const struct java_method *method = load(cache, 1, &id);
    for (uint64_t address = 2; address < 100; address++) {
        assert_ptr_equal(load(cache, address, &id), method);
        unload(address - 1);
    }
    assert_int_equal(names_asked, 1);
    free_cache(cache);
}

TEST(an_id_used_again_is_another_method)
{
    struct method_cache *cache = new_cache(true);
    struct id id = {.vm_method = &id, .name = "old", .source = "C.java", .line = 7};
    load(cache, 1, &id);
    load(cache, 2, &id);
    unload(1);
    unload(1); /* gone already */
    assert_string_equal(load(cache, 3, &id)->method.name, "p.C.old(int)");
    unload(2);
    unload(3); /* the last code that mentions it: its class may be gone now */
    id = (struct id){.vm_method = &id, .name = "new", .source = "D.java", .line = 9};
    const struct java_method *method = load(cache, 1, &id);
    assert_string_equal(method->method.name, "p.C.new(int)");
    assert_string_equal(method->method.file->path, "p/D.java");
    free_cache(cache);
}

TEST(code_in_the_place_of_other_code)
{
    struct method_cache *cache = new_cache(true);
    struct id first = {.vm_method = &first, .name = "first"};
    struct id second = {.vm_method = &second, .name = "second"};
    load(cache, 1, &first);
    load(cache, 1, &first); /* told of again, by a replay */
    assert_int_equal(names_asked, 1);
    load(cache, 1, &second); /* no unload was heard */
    load(cache, 2, &first);
    assert_int_equal(names_asked, 3); /* first was forgotten */
    struct id unknown = {.vm_method = &unknown, .broken = true};
    assert_null(load(cache, 2, &unknown)); /* mentions nothing */
    load(cache, 3, &first);
    assert_int_equal(names_asked, 4);
    free_cache(cache);
}

TEST(a_redefined_class_has_new_lines)
{
    struct method_cache *cache = new_cache(true);
    static const char old_method, new_method;
    struct id id = {.vm_method = &old_method, .name = "m", .source = "C.java", .line = 7};
    const struct java_method *before = load(cache, 1, &id);
    id.vm_method = &new_method;
    id.line = 107;
    const struct java_method *after = load(cache, 2, &id);
    assert_int_equal(after->method.first_line, 107);
    assert_int_equal(before->method.first_line, 7); /* its code is still there */
    assert_int_not_equal(before->method.id, after->method.id);
    assert_ptr_equal(load(cache, 3, &id), after);
    unload(1);
    assert_ptr_equal(load(cache, 4, &id), after);
    assert_int_equal(names_asked, 2);
    free_cache(cache);
}

/* As method handle intrinsics, and old code of redefined classes. */
TEST(the_id_of_code_may_be_another_method_s)
{
    struct method_cache *cache = new_cache(true);
    static const char first[] = "linkToStatic";
    static const char second[] = "invokeBasic";
    struct id id = {.vm_method = first, .name = "linkToStatic", .source = "C.java", .line = 7};
    struct method_set set = {0};
    method_set_begin(&set, cache, &jvmti, NULL, NULL);
    const struct java_method *a = method_set_get(&set, id_of(&id), at(first));
    const struct java_method *b = method_set_get(&set, id_of(&id), at(second));
    const struct java_method *c = method_set_get(&set, id_of(&id), at("unreadable"));
    assert_string_equal(a->method.name, "p.C.linkToStatic(int)");
    assert_int_equal(a->line_count, 2);
    assert_string_equal(b->method.name, "p.C.invokeBasic(long)");
    assert_int_equal(b->method.first_line, 1007); /* its own lines, not those of the id's */
    assert_int_equal(line_of(b, 5), 1008);
    assert_string_equal(c->method.name, "p.C.linkToStatic(int)");
    assert_int_equal(c->line_count, 0);
    assert_ptr_equal(method_set_get(&set, id_of(&id), at(second)), b);
    assert_ptr_equal(method_set_get(&set, id_of(&id), at(first)), a);
    assert_int_equal(names_asked, 3);
    method_set_empty(&set);
    method_set_destroy(&set);
    free_cache(cache);

    /* Where the structures say nothing, what the JVM says is taken. */
    cache = new_cache(false);
    method_set_begin(&set, cache, &jvmti, NULL, NULL);
    a = method_set_get(&set, id_of(&id), at(first));
    b = method_set_get(&set, id_of(&id), 0);
    assert_string_equal(a->method.name, "p.C.linkToStatic(int)");
    assert_int_equal(a->line_count, 2);
    assert_string_equal(b->method.name, "p.C.linkToStatic(int)");
    method_set_empty(&set);
    method_set_destroy(&set);
    free_cache(cache);
}

TEST(in_place_the_jvm_is_asked_for_classes_only)
{
    struct method_cache *cache = new_cache(true);
    struct hotspot_nearby *nearby = hotspot_nearby_new();
    struct method_set set = {0};
    /* The ids mean another method each: whom they mean is not asked. */
    struct id id = {.vm_method = &id, .name = "newer", .source = "C.java", .line = 7};
    struct id other = {.vm_method = &other, .name = "newer", .source = "C.java", .line = 7};
    struct hotspot hotspot = {.memory = memory_own_new(), .nmethods = TRUST_PROVEN};
    hotspot_nearby_begin(&hotspot, nearby, 1, at(&id), sizeof(id));
    assert_true(hotspot_nearby_in_place(nearby));
    method_set_begin(&set, cache, &jvmti, NULL, nearby);
    const struct java_method *method = method_set_get(&set, id_of(&id), at("own"));
    assert_string_equal(method->method.name, "p.C.own(int)");
    assert_string_equal(method->method.file->path, "p/C.java");
    assert_int_equal(line_of(method, 5), 1008);
    method = method_set_get(&set, id_of(&other), at("invokeBasic"));
    assert_string_equal(method->method.name, "p.C.invokeBasic(long)");
    assert_int_equal(names_asked, 0);
    assert_int_equal(classes_asked, 1);
    method = method_set_get(&set, id_of(&id), at("unreadable"));
    assert_string_equal(method->method.name, "p.C.newer(int)");
    assert_int_equal(names_asked, 1);
    method_set_empty(&set);
    atomic_store(&hotspot.nmethods, TRUST_UNPROVEN);
    hotspot_nearby_begin(&hotspot, nearby, 0, at(&id), sizeof(id));
    assert_false(hotspot_nearby_in_place(nearby));
    method = method_set_get(&set, id_of(&id), at(id.vm_method));
    assert_string_equal(method->method.name, "p.C.newer(int)");
    assert_int_equal(line_of(method, 5), 8);
    assert_int_equal(names_asked, 2);
    method_set_empty(&set);
    method_set_destroy(&set);
    hotspot_nearby_free(nearby);
    memory_free(hotspot.memory);
    free_cache(cache);
}

TEST(no_id_is_no_method)
{
    struct method_cache *cache = new_cache(true);
    struct method_set set = {0};
    method_set_begin(&set, cache, &jvmti, NULL, NULL);
    assert_null(method_set_get(&set, NULL, 0));
    method_set_destroy(&set);
    free_cache(cache);
}

TEST(a_class_is_asked_for_once)
{
    struct method_cache *cache = new_cache(true);
    static const char pool, pool_of_redefined;
    struct id first = {.vm_method = &first, .name = "a", .source = "C.java", .pool = &pool};
    struct id second = {.vm_method = &second, .name = "b", .source = "C.java", .pool = &pool};
    struct id redefined = {
        .vm_method = &redefined, .name = "b", .source = "D.java", .pool = &pool_of_redefined};
    const struct java_method *a = load(cache, 1, &first);
    const struct java_method *b = load(cache, 2, &second);
    const struct java_method *c = load(cache, 3, &redefined);
    assert_int_equal(classes_asked, 2);
    assert_string_equal(a->method.name, "p.C.a(int)");
    assert_string_equal(b->method.name, "p.C.b(int)");
    assert_ptr_equal(a->method.class_name, b->method.class_name);
    assert_ptr_equal(a->method.file, b->method.file);
    assert_string_equal(c->method.file->path, "p/D.java");
    unload(1);
    load(cache, 1, &first); /* its class is still there */
    assert_int_equal(classes_asked, 2);
    unload(1);
    unload(2);
    load(cache, 2, &second); /* the last one had gone: the place of its pool may be another's */
    assert_int_equal(classes_asked, 3);
    free_cache(cache);
}

TEST(what_the_jvm_does_not_tell)
{
    struct method_cache *cache = new_cache(true);
    struct id id = {.vm_method = &id, .name = "m", .broken = true};
    assert_null(load(cache, 1, &id));
    id.broken = false;
    assert_non_null(load(cache, 1, &id));
    free_cache(cache);
}

TEST(a_class_file_made_to_do_harm)
{
    struct method_cache *cache = new_cache(true);
    struct id id = {.vm_method = &id, .name = "m", .line = 7, .more_lines = 200000};
    const struct java_method *method = load(cache, 1, &id);
    assert_string_equal(method->method.name, "p.C.m(int)");
    assert_int_equal(method->line_count, 0);
    free_cache(cache);
}

TEST(a_set_can_be_emptied)
{
    struct method_cache *cache = new_cache(true);
    struct id ids[200];
    struct method_set set = {0};
    method_set_begin(&set, cache, &jvmti, NULL, NULL);
    for (size_t i = 0; i < 200; i++) {
        ids[i] = (struct id){.vm_method = &ids[i], .line = 1};
        snprintf(ids[i].name, sizeof(ids[i].name), "m%zu", i);
        assert_non_null(method_set_get(&set, id_of(&ids[i]), at(&ids[i])));
    }
    method_set_empty(&set);
    method_set_empty(&set);
    load(cache, 1, &ids[0]);
    assert_int_equal(names_asked, 201); /* nobody had held it */
    method_set_destroy(&set);
    free_cache(cache);
}

/* Overlapped code is gone, whoever says so later. */
TEST(overlapped_code_holds_nothing)
{
    struct method_cache *cache = new_cache(true);
    struct id id = {.vm_method = &id, .name = "m", .source = "C.java", .line = 7};
    load(cache, 1, &id);
    kept_at[1]->tell(kept_at[1], OCCUPANT_MOVED);
    load(cache, 2, &id);
    assert_int_equal(names_asked, 1);
    unload(2);
    kept_at[1]->tell(kept_at[1], OCCUPANT_OVERLAPPED);
    load(cache, 2, &id);
    assert_int_equal(names_asked, 2);
    unload(1);
    load(cache, 3, &id);
    assert_int_equal(names_asked, 2);
    free_cache(cache);
}

enum { THREADS = 8, IDS = 40, ROUNDS = 3000, OWN = 20 };
static struct id shared_ids[IDS];

/* Each thread has code of its own; the methods are everybody's. */
static void *churn(void *argument)
{
    struct method_cache *cache = argument;
    static atomic_uint number;
    uint64_t random = (uint64_t)atomic_fetch_add(&number, 1) * 100 + 1;
    struct kept *kept[OWN] = {NULL};
    struct method_set set = {0};
    for (int round = 0; round < ROUNDS; round++) {
        method_set_begin(&set, cache, &jvmti, NULL, NULL);
        for (uint32_t n = random_below(&random, 6); n > 0; n--) {
            struct id *id = &shared_ids[random_below(&random, IDS)];
            const struct java_method *method = method_set_get(&set, id_of(id), at(id));
            if (!method || !strstr(method->method.name, id->name)) {
                return (void *)"a wrong method";
            }
        }
        uint32_t at = random_below(&random, OWN);
        if (kept[at]) {
            kept[at]->tell(kept[at], OCCUPANT_GONE);
            kept[at] = NULL;
        }
        if (round % 7 == 0) {
            method_set_empty(&set);
        } else {
            kept[at] = method_set_hold(&set);
        }
    }
    for (uint32_t at = 0; at < OWN; at++) {
        if (kept[at]) {
            kept[at]->tell(kept[at], OCCUPANT_GONE);
        }
    }
    method_set_destroy(&set);
    return NULL;
}

TEST(threads_share_the_cache)
{
    struct method_cache *cache = new_cache(true);
    for (size_t i = 0; i < IDS; i++) {
        shared_ids[i] = (struct id){
            .vm_method = &shared_ids[i], .line = 1, .pool = i % 2 ? &shared_ids[i % 5] : NULL};
        snprintf(shared_ids[i].name, sizeof(shared_ids[i].name), ".m%zu(", i);
        snprintf(shared_ids[i].source, sizeof(shared_ids[i].source), "F%zu.java", i % 5);
    }
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, churn, cache), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        void *complaint = NULL;
        pthread_join(threads[i], &complaint);
        assert_null(complaint);
    }
    free_cache(cache);
}

TEST_MAIN(NULL, NULL)
