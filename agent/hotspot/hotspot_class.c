/*
 * From a class to its methods, without a jmethodID
 *
 * The Klass has the array of the class's methods. Redefinition, in a safepoint, puts another array
 * in its place, and frees the old one some time; so whoever has read it looks whether it is still
 * the one.
 */
#include "agent/hotspot/hotspot_workspace.h"

#include <stdlib.h>

/* What a redefinition has come between is read so often; two in a row are rare. */
enum { TRIES = 4 };

/* ---- Flags, and objects of classes ---- */

bool hotspot_flag_is_on(const struct hotspot *hotspot, const char *name, bool otherwise)
{
    static const enum field needed[] = {FLAGS, FLAG_COUNT, FLAG_NAME, FLAG_ADDRESS, FIELD_COUNT};
    enum { MOST = 10000 };
    static const size_t name_room = 24;
    int64_t array = 0;
    int64_t count = 0;
    size_t size = hotspot->layout.flag;
    size_t length = strlen(name) + 1;
    if (!hotspot_layout_has(&hotspot->layout, needed) || size == 0 || length > name_room ||
        !hotspot_read_static(hotspot, FLAGS, &array) ||
        !hotspot_read_static(hotspot, FLAG_COUNT, &count) || count < 1 || count > MOST) {
        return otherwise;
    }
    bool on = otherwise;
    char *flags = malloc((size_t)count * size);
    char *names = malloc((size_t)count * name_room);
    struct memory_piece *pieces = calloc((size_t)count, sizeof(*pieces));
    if (flags && names && pieces &&
        memory_read(hotspot->memory, (uint64_t)array, flags, (size_t)count * size)) {
        size_t used = 0;
        for (size_t i = 0; i < (size_t)count; i++) {
            uint64_t at = hotspot_pointer(hotspot, flags + i * size, size, FLAG_NAME);
            if (at) { /* the last one has none */
                pieces[used++] = (struct memory_piece){at, names + i * name_room, length};
            } else {
                names[i * name_room] = '\0';
            }
        }
        bool read = memory_read_pieces(hotspot->memory, pieces, used);
        for (size_t i = 0; i < (size_t)count && read; i++) {
            if (memcmp(names + i * name_room, name, length) == 0) {
                uint64_t at = hotspot_pointer(hotspot, flags + i * size, size, FLAG_ADDRESS);
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

int64_t hotspot_klass_offset(const struct hotspot *hotspot)
{
    enum { FARTHEST = 1024 }; /* java.lang.Class is a tenth of that */
    int64_t offset = 0;
    bool sane = hotspot_read_static(hotspot, MIRROR_KLASS, &offset) && offset > 0 &&
                offset < FARTHEST && offset % (int64_t)sizeof(uint64_t) == 0;
    return sane ? offset : 0;
}

/* The upper bits of that word are it. */
int32_t hotspot_object_size(const struct hotspot *hotspot, uint64_t klass)
{
    enum { LARGEST = 1024, PRECISE = ~7 };
    int64_t size = 0;
    (void)hotspot_read_integer(hotspot, klass, KLASS_LAYOUT, &size);
    size &= PRECISE;
    return size > 0 && size <= LARGEST ? (int32_t)size : -1;
}

/* ---- A class's methods ---- */

/* What is read of one class on the way to its methods. */
struct class_array {
    uint64_t klass;
    uint64_t holder; /* what the methods' ConstantPools belong to */
    uint64_t at;     /* the Array<Method*> */
    uint64_t later;  /* the same, when all has been read */
    char length[sizeof(int64_t)];
};

/* The addresses of the methods in the arrays. False: there is no such array. */
static bool read_arrays(const struct hotspot *hotspot, struct class_array *arrays, size_t count,
                        struct hotspot_workspace *space, size_t *counts, size_t *all)
{
    const struct place *place = &hotspot->layout.places[METHODS_LENGTH];
    struct memory_piece pieces[HOTSPOT_CLASSES_MAX] = {{0}}; /* gcc: a count of 0? */
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
    if (!ARRAY_RESERVE(space->array, space->array_room, *all) ||
        !ARRAY_RESERVE(space->holders, space->holder_room, *all)) {
        return false;
    }
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        pieces[i] =
            (struct memory_piece){arrays[i].at + hotspot->layout.places[METHODS_DATA].offset,
                                  space->array + used, counts[i] * sizeof(uint64_t)};
        for (size_t k = 0; k < counts[i]; k++) {
            space->holders[used++] = arrays[i].holder;
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
        pieces[i] =
            (struct memory_piece){arrays[i].klass + hotspot->layout.places[KLASS_METHODS].offset,
                                  later ? &arrays[i].later : &arrays[i].at, sizeof(uint64_t)};
    }
    return hotspot->layout.places[KLASS_METHODS].known &&
           memory_read_pieces(hotspot->memory, pieces, count);
}

/* The methods of the classes in `arrays`, of which klass and holder are given. */
static bool read_classes(struct hotspot *hotspot, struct class_array *arrays, size_t count,
                         bool brief, struct hotspot_methods *methods, size_t *counts)
{
    struct hotspot_workspace *space = hotspot_workspace(methods);
    if (!hotspot_may_know_methods(hotspot) || !space) {
        return false;
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

bool hotspot_class_methods(struct hotspot *hotspot, const uint64_t *klasses, size_t count,
                           bool brief, struct hotspot_methods *methods, size_t *counts)
{
    struct class_array arrays[HOTSPOT_CLASSES_MAX];
    if (count > HOTSPOT_CLASSES_MAX) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        arrays[i] = (struct class_array){.klass = klasses[i], .holder = klasses[i]};
        if (!arrays[i].klass) {
            return false;
        }
    }
    return read_classes(hotspot, arrays, count, brief, methods, counts);
}

/* ---- Earlier versions of a class ---- */

/* Their ConstantPools still belong to the class (VM_RedefineClasses::redefine_single_class). */
bool hotspot_version_methods(struct hotspot *hotspot, uint64_t version, uint64_t klass,
                             struct hotspot_methods *methods)
{
    size_t count = 0;
    struct class_array array = {.klass = version, .holder = klass};
    return read_classes(hotspot, &array, 1, false, methods, &count);
}

/*
 * InstanceKlass::_previous_versions is in no table. It stands behind _breakpoints, which is, from
 * JDK 8 to 28 (oops/instanceKlass.hpp), and what it leads to is of the same type, by the pointer to
 * its virtual functions, and has the same name: nothing else in a Klass leads to such a thing.
 */
bool hotspot_versions_before(struct hotspot *hotspot, const uint64_t *klasses, size_t count,
                             uint64_t *versions)
{
    static const enum field needed[] = {KLASS_NAME, KLASS_BREAKPOINTS, FIELD_COUNT};
    struct memory_piece pieces[HOTSPOT_CLASSES_MAX] = {{0}}; /* gcc: a count of 0? */
    if (!hotspot_knows_methods(hotspot) || !hotspot_layout_has(&hotspot->layout, needed) ||
        count > HOTSPOT_CLASSES_MAX) {
        return false;
    }
    const size_t at = hotspot->layout.places[KLASS_BREAKPOINTS].offset + sizeof(uint64_t);
    const size_t name = hotspot->layout.places[KLASS_NAME].offset;
    for (size_t i = 0; i < count; i++) {
        pieces[i] = (struct memory_piece){klasses[i] + at, &versions[i], sizeof versions[i]};
    }
    if (!memory_read_pieces(hotspot->memory, pieces, count)) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        uint64_t types[2];
        uint64_t names[2];
        const struct memory_piece both[] = {
            {klasses[i], &types[0], sizeof types[0]},
            {versions[i], &types[1], sizeof types[1]},
            {klasses[i] + name, &names[0], sizeof names[0]},
            {versions[i] + name, &names[1], sizeof names[1]},
        };
        if (versions[i] && (versions[i] == klasses[i] || versions[i] % sizeof(uint64_t) != 0 ||
                            !memory_read_pieces(hotspot->memory, both, 4) || types[0] != types[1] ||
                            names[0] != names[1])) {
            versions[i] = 0;
        }
    }
    return true;
}

/* ---- Which method is an id's ---- */

/*
 * Whether a method is one of its class's. Method handle intrinsics are in no class file and in no
 * class's array; their number is 0, as they were made, so all of them share the id of the method
 * that has it.
 */
static bool is_in_class(const struct hotspot *hotspot, uint64_t klass, uint64_t method)
{
    uint64_t array = 0;
    uint64_t some[256];
    int64_t length = 0;
    if (!hotspot_read_pointer(hotspot, klass, KLASS_METHODS, &array) ||
        !hotspot_read_integer(hotspot, array, METHODS_LENGTH, &length)) {
        return false;
    }
    const int64_t most = (int64_t)(sizeof(some) / sizeof(*some));
    array += hotspot->layout.places[METHODS_DATA].offset;
    for (int64_t at = 0; at < length && at <= 2 * (int64_t)UINT16_MAX; at += most) {
        int64_t count = length - at < most ? length - at : most;
        if (!memory_read(hotspot->memory, array + (uint64_t)at * sizeof(*some), some,
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
static bool find_pool(const struct hotspot *hotspot, struct hotspot_nearby *nearby, uint64_t method,
                      uint64_t *pool, int64_t *number)
{
    const struct place *places = hotspot->layout.places;
    const struct place *number_place = &places[CONST_IDNUM];
    uint64_t const_method = 0;
    char copy[sizeof(int64_t)];
    if (!places[METHOD_CONST].known || !places[CONST_POOL].known || !number_place->known ||
        !hotspot_read_near(hotspot, nearby, method + places[METHOD_CONST].offset, &const_method,
                           sizeof(const_method)) ||
        !const_method ||
        !hotspot_read_near(hotspot, nearby, const_method + places[CONST_POOL].offset, pool,
                           sizeof(*pool)) ||
        !hotspot_read_near(hotspot, nearby, const_method + number_place->offset, copy,
                           number_place->width)) {
        return false;
    }
    *number = hotspot_load_integer(copy, number_place->width, false);
    return *pool != 0;
}

/* Whether it is this id that a class's array of ids has under that number. */
static bool has_id(const struct hotspot *hotspot, uint64_t ids, int64_t number, uint64_t id)
{
    uint64_t size = 0;
    uint64_t found = 0;
    const struct memory_piece pieces[] = {
        {ids, &size, sizeof(size)},
        {ids + ((size_t)number + 1) * sizeof(uint64_t), &found, sizeof(uint64_t)},
    };
    return memory_read_pieces(hotspot->memory, pieces, 2) && (uint64_t)number < size && found == id;
}

/*
 * The same, from the ConstantPool on, for one that leads where it led before: what costs is the
 * number of reads, and so it is one. Nothing in it is taken from before but where to look.
 */
static bool is_as_known(const struct hotspot *hotspot, const struct known_pool *known,
                        int64_t number, uint64_t id)
{
    const struct place *places = hotspot->layout.places;
    uint64_t klass = 0;
    uint64_t ids = 0;
    uint64_t size = 0;
    uint64_t found = 0;
    const struct memory_piece pieces[] = {
        {known->pool + places[POOL_HOLDER].offset, &klass, sizeof(klass)},
        {known->klass + places[KLASS_IDS].offset, &ids, sizeof(ids)},
        {known->ids, &size, sizeof(size)},
        {known->ids + ((size_t)number + 1) * sizeof(uint64_t), &found, sizeof(uint64_t)},
    };
    return memory_read_pieces(hotspot->memory, pieces, 4) && klass == known->klass &&
           ids == known->ids && (uint64_t)number < size && found == id;
}

/*
 * The class keeps its methods' ids in an array: how many there is room for, then the id of the
 * method whose number is 0, and so on. Of the methods of an old version, whose ConstantPool belongs
 * to a Klass of its own, there are none.
 */
static enum hotspot_bond read_bond(const struct hotspot *hotspot, struct hotspot_nearby *nearby,
                                   uint64_t method, uint64_t id, uint64_t *class_key)
{
    uint64_t pool = 0;
    uint64_t klass = 0;
    uint64_t ids = 0;
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
    uint64_t before = 0;
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
                               uint64_t method, uint64_t id, uint64_t *class_key)
{
    enum { FIRST_JDK_THAT_KEEPS = 17 }; /* what an event on its way is about: hotspot_nearby.c */
    *class_key = 0;
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

enum hotspot_bond hotspot_bond_in_class(struct hotspot *hotspot, uint64_t method, uint64_t id)
{
    uint64_t class_key = 0;
    return hotspot_may_know_methods(hotspot) ? read_bond(hotspot, NULL, method, id, &class_key)
                                             : HOTSPOT_UNKNOWN;
}

/* ---- What is believed of methods ---- */

bool hotspot_knows_methods(const struct hotspot *hotspot)
{
    return hotspot && atomic_load(&hotspot->methods) == TRUST_PROVEN;
}

bool hotspot_may_know_methods(const struct hotspot *hotspot)
{
    static const enum field needed[] = {MIRROR_KLASS,   KLASS_METHODS, KLASS_IDS,  CONST_IDNUM,
                                        METHODS_LENGTH, METHODS_DATA,  FIELD_COUNT};
    return hotspot && atomic_load(&hotspot->methods) != TRUST_BROKEN &&
           hotspot_layout_has(&hotspot->layout, needed);
}

/* Where nearly all classes are that a JVM starts with: its archives stay mapped. */
static void find_archive(const struct hotspot *hotspot)
{
    int64_t base = 0;
    int64_t top = 0;
    if (hotspot_read_static(hotspot, ARCHIVE_BASE, &base) &&
        hotspot_read_static(hotspot, ARCHIVE_TOP, &top)) {
        memory_lasts(hotspot->memory, (uint64_t)base, (uint64_t)top);
    }
}

void hotspot_methods_were(struct hotspot *hotspot, bool as_told)
{
    int unproven = TRUST_UNPROVEN;
    if (!as_told) {
        hotspot_distrust(hotspot, &hotspot->methods,
                         "methods of a class; interpreted frames have no names");
    } else {
        (void)atomic_compare_exchange_strong(&hotspot->methods, &unproven, TRUST_PROVEN);
        find_archive(hotspot);
    }
}
