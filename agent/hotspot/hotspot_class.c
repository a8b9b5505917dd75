/*
 * From a class to its methods, without a jmethodID
 *
 * A java.lang.Class holds, as a field that Java does not see, the address of its Klass; where, is
 * told by java_lang_Class::_klass_offset. The object moves, so the JVM has to read the field for
 * us. JNI's GetLongField does, given HotSpot's own form of a field id
 * (runtime/jfieldIDWorkaround.hpp): the offset above two bits, the upper of which says "instance
 * field". In JDK 28 the form is another one. And -Xcheck:jni looks into such an id, finds that the
 * field is not declared, and ends the JVM. In both cases the JDK's own Unsafe reads the field, ten
 * times slower.
 *
 * The Klass has the array of the class's methods. Redefinition, in a safepoint, puts another array
 * in its place, and frees the old one some time; so whoever has read it looks whether it is still
 * the one.
 */
#include "agent/hotspot/hotspot_workspace.h"

#include "agent/methods/method_fetch.h"
#include "writer/message.h"

#include <stdlib.h>

/* What a redefinition has come between is read so often; two in a row are rare. */
enum { TRIES = 4 };

static const char no_names[] = "methods of a class; interpreted frames have no names";

/* ---- The Klass ---- */

static bool clear_exception(JNIEnv *jni)
{
    bool pending = (*jni)->ExceptionCheck(jni);
    if (pending) {
        (*jni)->ExceptionClear(jni);
    }
    return pending;
}

/* The JDK's Unsafe, for klass_of. False: there is none. */
static bool find_unsafe(struct hotspot *hotspot, JNIEnv *jni)
{
    static const char *const classes[] = {"jdk/internal/misc/Unsafe", "sun/misc/Unsafe"};
    static const char *const types[] = {"Ljdk/internal/misc/Unsafe;", "Lsun/misc/Unsafe;"};
    for (int i = hotspot->major < 9; i < 2 && !hotspot->unsafe; i++) {
        jclass klass = (*jni)->FindClass(jni, classes[i]);
        if (clear_exception(jni) || !klass) {
            continue;
        }
        jfieldID field = (*jni)->GetStaticFieldID(jni, klass, "theUnsafe", types[i]);
        if (!clear_exception(jni) && field) {
            jobject unsafe = (*jni)->GetStaticObjectField(jni, klass, field);
            hotspot->get_long =
                (*jni)->GetMethodID(jni, klass, "getLong", "(Ljava/lang/Object;J)J");
            if (!clear_exception(jni) && unsafe && hotspot->get_long) {
                hotspot->unsafe = (*jni)->NewGlobalRef(jni, unsafe);
            }
            (*jni)->DeleteLocalRef(jni, unsafe);
        }
        (*jni)->DeleteLocalRef(jni, klass);
    }
    return hotspot->unsafe != NULL;
}

/* The address of a class's Klass; NULL: not to be had. */
static const char *klass_of(const struct hotspot *hotspot, JNIEnv *jni, jclass klass)
{
    jlong value = 0;
    if (!hotspot->by_unsafe) {
        uintptr_t id = (uintptr_t)hotspot->klass_offset << 2 | 2;
        value = (*jni)->GetLongField(jni, klass, (jfieldID)id); // NOLINT: an id, no pointer
    } else if (hotspot->unsafe && !(*jni)->ExceptionCheck(jni)) {
        value = (*jni)->CallLongMethod(jni, hotspot->unsafe, hotspot->get_long, klass,
                                       (jlong)hotspot->klass_offset);
        value = clear_exception(jni) ? 0 : value;
    }
    return (const char *)(intptr_t)value;
}

/* Whether the JVM's flag of that name is on, as far as can be told; else what is said here. */
static bool flag_is_on(const struct hotspot *hotspot, const char *name, bool otherwise)
{
    static const enum field needed[] = {FLAGS, FLAG_COUNT, FLAG_NAME, FLAG_ADDRESS, FIELD_COUNT};
    enum { MOST = 10000 };
    static const size_t name_room = 24;
    int64_t array = 0;
    int64_t count = 0;
    size_t size = hotspot->flag;
    size_t length = strlen(name) + 1;
    if (!hotspot_has_fields(hotspot, needed) || size == 0 || length > name_room ||
        !hotspot_read_static(hotspot, FLAGS, &array) ||
        !hotspot_read_static(hotspot, FLAG_COUNT, &count) || count < 1 || count > MOST) {
        return otherwise;
    }
    bool on = otherwise;
    char *flags = malloc((size_t)count * size);
    char *names = malloc((size_t)count * name_room);
    struct memory_piece *pieces = calloc((size_t)count, sizeof(*pieces));
    if (flags && names && pieces &&
        memory_read(hotspot->memory, (const void *)(intptr_t)array, flags, (size_t)count * size)) {
        size_t used = 0;
        for (size_t i = 0; i < (size_t)count; i++) {
            const char *at = hotspot_pointer(hotspot, flags + i * size, size, FLAG_NAME);
            if (at) { /* the last one has none */
                pieces[used++] = (struct memory_piece){at, names + i * name_room, length};
            } else {
                names[i * name_room] = '\0';
            }
        }
        bool read = memory_read_pieces(hotspot->memory, pieces, used);
        for (size_t i = 0; i < (size_t)count && read; i++) {
            if (memcmp(names + i * name_room, name, length) == 0) {
                const char *at = hotspot_pointer(hotspot, flags + i * size, size, FLAG_ADDRESS);
                char value = 0;
                on = memory_read(hotspot->memory, at, &value, 1) ? value != 0 : otherwise;
                break;
            }
        }
    }
    free(flags);
    free(names);
    free(pieces);
    return on;
}

/* ---- Its methods ---- */

/* What is read of one class on the way to its methods. */
struct class_array {
    const char *klass;
    const char *at;    /* the Array<Method*> */
    const char *later; /* the same, when all has been read */
    char length[sizeof(int64_t)];
};

static bool reserve_array(struct hotspot_workspace *space, size_t count)
{
    if (count > space->array_room) {
        const char **array = realloc((void *)space->array, count * sizeof(*array));
        space->array = array ? array : space->array;
        const char **holders = realloc((void *)space->holders, count * sizeof(*holders));
        space->holders = holders ? holders : space->holders;
        if (!array || !holders) {
            return false;
        }
        space->array_room = count;
    }
    return true;
}

/* The addresses of the methods in the arrays. False: there is no such array. */
static bool read_arrays(const struct hotspot *hotspot, struct class_array *arrays, size_t count,
                        struct hotspot_workspace *space, size_t *counts, size_t *all)
{
    const struct place *place = &hotspot->places[METHODS_LENGTH];
    struct memory_piece pieces[HOTSPOT_CLASSES_MAX];
    for (size_t i = 0; i < count; i++) {
        if (!arrays[i].at) {
            return false;
        }
        pieces[i] =
            (struct memory_piece){arrays[i].at + place->offset, arrays[i].length, place->width};
    }
    if (!memory_read_pieces(hotspot->memory, pieces, count)) {
        return false;
    }
    *all = 0;
    for (size_t i = 0; i < count; i++) {
        int64_t length = hotspot_load_integer(arrays[i].length, place->width, true);
        if (length < 0 || length > 2 * (int64_t)UINT16_MAX) { /* JVMS 4.1, and overpass methods */
            return false;
        }
        counts[i] = (size_t)length;
        *all += counts[i];
    }
    if (!reserve_array(space, *all)) {
        return false;
    }
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        pieces[i] =
            (struct memory_piece){arrays[i].at + hotspot->places[METHODS_DATA].offset,
                                  (void *)(space->array + used), counts[i] * sizeof(char *)};
        for (size_t k = 0; k < counts[i]; k++) {
            space->holders[used++] = arrays[i].klass;
        }
    }
    return memory_read_pieces(hotspot->memory, pieces, count);
}

/* Where the Klasses have their arrays; into `at` of each, or `later`. */
static bool find_arrays(const struct hotspot *hotspot, struct class_array *arrays, size_t count,
                        bool later)
{
    struct memory_piece pieces[HOTSPOT_CLASSES_MAX];
    for (size_t i = 0; i < count; i++) {
        pieces[i] = (struct memory_piece){arrays[i].klass + hotspot->places[KLASS_METHODS].offset,
                                          later ? &arrays[i].later : &arrays[i].at, sizeof(char *)};
    }
    return hotspot->places[KLASS_METHODS].known &&
           memory_read_pieces(hotspot->memory, pieces, count);
}

static bool read_classes(struct hotspot *hotspot, JNIEnv *jni, const jclass *mirrors, size_t count,
                         bool brief, struct hotspot_methods *methods, size_t *counts)
{
    struct hotspot_workspace *space = hotspot_workspace(methods);
    struct class_array arrays[HOTSPOT_CLASSES_MAX];
    if (!space || count > HOTSPOT_CLASSES_MAX) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        arrays[i] = (struct class_array){.klass = klass_of(hotspot, jni, mirrors[i])};
        if (!arrays[i].klass) {
            return false;
        }
    }
    for (int i = 0; i < TRIES; i++) {
        size_t all = 0;
        bool read =
            find_arrays(hotspot, arrays, count, false) &&
            read_arrays(hotspot, arrays, count, space, counts, &all) &&
            hotspot_read_methods(hotspot, space->array, space->holders, all, brief, methods);
        if (!find_arrays(hotspot, arrays, count, true)) {
            return false;
        }
        bool same = true;
        for (size_t k = 0; k < count; k++) {
            same = same && arrays[k].at == arrays[k].later;
        }
        if (same) {
            return read;
        }
    }
    return false;
}

bool hotspot_class_methods(struct hotspot *hotspot, JNIEnv *jni, const jclass *classes,
                           size_t count, bool brief, struct hotspot_methods *methods,
                           size_t *counts)
{
    return hotspot_knows_methods(hotspot) &&
           read_classes(hotspot, jni, classes, count, brief, methods, counts);
}

/* ---- Which method is an id's ---- */

/*
 * Whether a method is one of its class's. Method handle intrinsics are in no class file and in no
 * class's array; their number is 0, as they were made, so all of them share the id of the method
 * that has it.
 */
static bool is_in_class(const struct hotspot *hotspot, const char *klass, const void *method)
{
    const struct place *place = &hotspot->places[METHODS_LENGTH];
    const char *array = NULL;
    const char *some[256];
    char copy[sizeof(int64_t)];
    if (!hotspot_read_pointer(hotspot, klass, KLASS_METHODS, &array) || !array ||
        !memory_read(hotspot->memory, array + place->offset, copy, place->width)) {
        return false;
    }
    int64_t length = hotspot_load_integer(copy, place->width, true);
    const int64_t most = (int64_t)(sizeof(some) / sizeof(*some));
    array += hotspot->places[METHODS_DATA].offset;
    for (int64_t at = 0; at < length && at <= 2 * (int64_t)UINT16_MAX; at += most) {
        int64_t count = length - at < most ? length - at : most;
        if (!memory_read(hotspot->memory, array + at * (int64_t)sizeof(*some), (void *)some,
                         (size_t)count * sizeof(*some))) {
            return false;
        }
        for (int64_t i = 0; i < count; i++) {
            if (some[i] == method) {
                return true;
            }
        }
    }
    return false;
}

/* The ConstantPool of a method, and the method's number. */
static bool find_pool(const struct hotspot *hotspot, struct hotspot_nearby *nearby,
                      const void *method, const char **pool, int64_t *number)
{
    const struct place *places = hotspot->places;
    const struct place *number_place = &places[CONST_IDNUM];
    const char *const_method = NULL;
    char copy[sizeof(int64_t)];
    if (!places[METHOD_CONST].known || !places[CONST_POOL].known || !number_place->known ||
        !hotspot_read_near(hotspot, nearby, (const char *)method + places[METHOD_CONST].offset,
                           &const_method, sizeof(const_method)) ||
        !const_method ||
        !hotspot_read_near(hotspot, nearby, const_method + places[CONST_POOL].offset, pool,
                           sizeof(*pool)) ||
        !hotspot_read_near(hotspot, nearby, const_method + number_place->offset, copy,
                           number_place->width)) {
        return false;
    }
    *number = hotspot_load_integer(copy, number_place->width, false);
    return *pool != NULL;
}

/* Whether it is this id that a class's array of ids has under that number. */
static bool has_id(const struct hotspot *hotspot, const char *ids, int64_t number, jmethodID id)
{
    uintptr_t size = 0;
    jmethodID found = NULL;
    const struct memory_piece pieces[] = {
        {ids, &size, sizeof(size)},
        {ids + ((size_t)number + 1) * sizeof(void *), &found, sizeof(void *)},
    };
    return memory_read_pieces(hotspot->memory, pieces, 2) && (uintptr_t)number < size &&
           found == id;
}

/*
 * The same, from the ConstantPool on, for one that leads where it led before: what costs is the
 * number of reads, and so it is one. Nothing in it is taken from before but where to look.
 */
static bool is_as_known(const struct hotspot *hotspot, const struct known_pool *known,
                        int64_t number, jmethodID id)
{
    const struct place *places = hotspot->places;
    const char *klass = NULL;
    const char *ids = NULL;
    uintptr_t size = 0;
    jmethodID found = NULL;
    const struct memory_piece pieces[] = {
        {known->pool + places[POOL_HOLDER].offset, &klass, sizeof(klass)},
        {known->klass + places[KLASS_IDS].offset, &ids, sizeof(ids)},
        {known->ids, &size, sizeof(size)},
        {known->ids + ((size_t)number + 1) * sizeof(void *), &found, sizeof(void *)},
    };
    return memory_read_pieces(hotspot->memory, pieces, 4) && klass == known->klass &&
           ids == known->ids && (uintptr_t)number < size && found == id;
}

/*
 * The class keeps its methods' ids in an array: how many there is room for, then the id of the
 * method whose number is 0, and so on. Of the methods of an old version, whose ConstantPool belongs
 * to a Klass of its own, there are none.
 */
static enum hotspot_bond read_bond(const struct hotspot *hotspot, struct hotspot_nearby *nearby,
                                   const void *method, jmethodID id, const void **class_key)
{
    const char *pool = NULL;
    const char *klass = NULL;
    const char *ids = NULL;
    int64_t number = 0;
    if (!find_pool(hotspot, nearby, method, &pool, &number)) {
        return HOTSPOT_UNKNOWN;
    }
    struct known_pool *known = hotspot_known_pool(nearby, pool);
    if (known && known->pool == pool && is_as_known(hotspot, known, number, id)) {
        *class_key = pool;
        return number != 0 || is_in_class(hotspot, known->klass, method) ? HOTSPOT_SAME
                                                                         : HOTSPOT_ANOTHER;
    }
    if (!hotspot_read_pointer(hotspot, pool, POOL_HOLDER, &klass) ||
        !hotspot_read_pointer(hotspot, klass, KLASS_IDS, &ids)) {
        return HOTSPOT_UNKNOWN;
    }
    *class_key = pool;
    /* When the array is another one by now the class has been redefined just now, or has got more
     * ids, and what was read may be anything. */
    const char *before = NULL;
    for (int i = 0; i < TRIES && ids != before; i++) {
        if (ids && has_id(hotspot, ids, number, id)) {
            if (known) {
                *known = (struct known_pool){.pool = pool, .klass = klass, .ids = ids};
            }
            return number != 0 || is_in_class(hotspot, klass, method) ? HOTSPOT_SAME
                                                                      : HOTSPOT_ANOTHER;
        }
        before = ids;
        if (!hotspot_read_pointer(hotspot, klass, KLASS_IDS, &ids)) {
            return HOTSPOT_UNKNOWN;
        }
    }
    return HOTSPOT_ANOTHER;
}

enum hotspot_bond hotspot_bond(struct hotspot *hotspot, struct hotspot_nearby *nearby,
                               const void *method, jmethodID id, const void **class_key)
{
    enum { FIRST_JDK_THAT_KEEPS = 17 }; /* what an event on its way is about: hotspot_nearby.c */
    *class_key = NULL;
    if (!hotspot_knows_methods(hotspot) || !method) {
        return HOTSPOT_UNKNOWN;
    }
    enum hotspot_bond bond = read_bond(hotspot, nearby, method, id, class_key);
    if (bond == HOTSPOT_SAME && hotspot->major >= FIRST_JDK_THAT_KEEPS) {
        int unproven = TRUST_UNPROVEN;
        (void)atomic_compare_exchange_strong(&hotspot->nmethods, &unproven, TRUST_PROVEN);
    }
    return bond;
}

/* ---- The proof ---- */

bool hotspot_knows_methods(const struct hotspot *hotspot)
{
    return hotspot && atomic_load(&hotspot->methods) == TRUST_PROVEN;
}

bool hotspot_may_know_methods(const struct hotspot *hotspot)
{
    static const enum field needed[] = {MIRROR_KLASS,   KLASS_METHODS, KLASS_IDS,  CONST_IDNUM,
                                        METHODS_LENGTH, METHODS_DATA,  FIELD_COUNT};
    return hotspot && atomic_load(&hotspot->methods) != TRUST_BROKEN &&
           hotspot_has_fields(hotspot, needed);
}

/* Whether we have of this method what JVMTI has. */
static bool is_as_told(const struct hotspot *hotspot, const struct hotspot_method *method,
                       const struct fetched_method *fetched, jmethodID id, jlong end)
{
    const void *class_key = NULL;
    const void *address = (const void *)(uintptr_t)method->address; // NOLINT: HotSpot's
    bool same = method->native == fetched->native && method->bytecode_size == (uint32_t)(end + 1) &&
                read_bond(hotspot, NULL, address, id, &class_key) == HOTSPOT_SAME;
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
static bool is_known(const struct hotspot *hotspot, const struct hotspot_methods *methods,
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
static bool prove_class(struct hotspot *hotspot, jvmtiEnv *jvmti, JNIEnv *jni, jclass klass)
{
    struct hotspot_methods methods = {0};
    jmethodID *ids = NULL;
    jint count = 0;
    size_t read = 0;
    /* The ids are made here, if they have not been. */
    if ((*jvmti)->GetClassMethods(jvmti, klass, &count, &ids) != JVMTI_ERROR_NONE) {
        return false;
    }
    bool proven = count > 0 && read_classes(hotspot, jni, &klass, 1, false, &methods, &read);
    for (jint i = 0; i < count && proven; i++) {
        proven = is_known(hotspot, &methods, jvmti, ids[i]);
    }
    hotspot_methods_free(&methods);
    (*jvmti)->Deallocate(jvmti, (unsigned char *)ids);
    return proven;
}

/* ---- Continuations ---- */

/* The offset of a field, which its id has above two bits (see above); -1: there is none. */
static int32_t field_offset(jvmtiEnv *jvmti, jclass klass, const char *name)
{
    enum { INSTANCE = 2, FARTHEST = 1024 };
    const uintptr_t id = (uintptr_t)field_fetch(jvmti, klass, name, NULL);
    return (id & 3) == INSTANCE && id >> 2 < FARTHEST ? (int32_t)(id >> 2) : -1;
}

/* Bytes of an object of that class, which are the upper bits of that word; -1: not to be had. */
static int32_t object_size(const struct hotspot *hotspot, JNIEnv *jni, jclass mirror)
{
    enum { LARGEST = 1024, PRECISE = ~7 };
    const struct place *place = &hotspot->places[KLASS_LAYOUT];
    const char *klass = klass_of(hotspot, jni, mirror);
    char copy[sizeof(int64_t)];
    if (!klass || !place->known ||
        !memory_read(hotspot->memory, klass + place->offset, copy, place->width)) {
        return -1;
    }
    int64_t size = hotspot_load_integer(copy, place->width, true) & PRECISE;
    return size > 0 && size <= LARGEST ? (int32_t)size : -1;
}

static void find_frozen(struct hotspot *hotspot, jvmtiEnv *jvmti, JNIEnv *jni)
{
    static const char *const fields[] = {"parent", "size", "sp", "bottom", "argsize"};
    enum { FIRST_JDK = 21, STACK = JITDUMP_CODE_FROZEN_STACK - JITDUMP_CODE_FROZEN_FIRST };
    /* Those move objects while threads run. */
    if (hotspot->by_unsafe || hotspot->major < FIRST_JDK || flag_is_on(hotspot, "UseZGC", true) ||
        flag_is_on(hotspot, "UseShenandoahGC", false)) {
        return;
    }
    jclass chunk = (*jni)->FindClass(jni, "jdk/internal/vm/StackChunk");
    jclass continuation =
        clear_exception(jni) ? NULL : (*jni)->FindClass(jni, "jdk/internal/vm/Continuation");
    if (!clear_exception(jni) && chunk && continuation) {
        int32_t *frozen = hotspot->frozen;
        frozen[0] = field_offset(jvmti, continuation, "tail");
        for (int i = 0; i < 5; i++) {
            frozen[i + 1] = field_offset(jvmti, chunk, fields[i]);
        }
        frozen[STACK] = object_size(hotspot, jni, chunk);
        frozen[STACK + 1] = flag_is_on(hotspot, "UseCompressedOops", true) ? 4 : 8;
        atomic_store(&hotspot->knows_frozen, frozen[STACK] > 0);
    }
    (*jni)->DeleteLocalRef(jni, chunk);
    (*jni)->DeleteLocalRef(jni, continuation);
}

const int32_t *hotspot_frozen(const struct hotspot *hotspot)
{
    return hotspot && atomic_load(&hotspot->knows_frozen) ? hotspot->frozen : NULL;
}

void hotspot_prove(struct hotspot *hotspot, jvmtiEnv *jvmti, JNIEnv *jni)
{
    enum {
        FARTHEST = 1024, /* java.lang.Class is a tenth of that */
        LAST_JDK_OF_THE_FORM = 27,
    };
    if (!hotspot_may_know_methods(hotspot) || atomic_load(&hotspot->methods) != TRUST_UNPROVEN ||
        (*jni)->ExceptionCheck(jni)) {
        return;
    }
    int64_t offset = 0;
    bool proven = hotspot_read_static(hotspot, MIRROR_KLASS, &offset) && offset > 0 &&
                  offset < FARTHEST && offset % (int64_t)sizeof(void *) == 0;
    hotspot->klass_offset = offset;
    hotspot->by_unsafe =
        hotspot->major > LAST_JDK_OF_THE_FORM || flag_is_on(hotspot, "CheckJNICalls", true);
    if (proven && hotspot->by_unsafe) {
        proven = find_unsafe(hotspot, jni);
    }
    /* A class with all kinds of methods, which is there in every JVM. */
    jclass klass = proven ? (*jni)->FindClass(jni, "java/lang/Throwable") : NULL;
    proven = !clear_exception(jni) && klass && prove_class(hotspot, jvmti, jni, klass);
    if (klass) {
        (*jni)->DeleteLocalRef(jni, klass);
    }
    int unproven = TRUST_UNPROVEN;
    if (!proven) {
        hotspot_distrust(hotspot, &hotspot->methods, no_names);
    } else {
        (void)atomic_compare_exchange_strong(&hotspot->methods, &unproven, TRUST_PROVEN);
        find_frozen(hotspot, jvmti, jni);
    }
}
