#include "jdtool/events/jfr_events.h"

#include "jdtool/base/array.h"
#include "jdtool/base/descriptor.h"
#include "jdtool/base/hash_map.h"
#include "jdtool/base/message.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEADER_SIZE  68
#define DEPTH_MAX    8   /* of values in values, and of constants that refer to others */
#define TEXT_MAX     400 /* bytes of what an event tells */
#define VALUE_MAX    160 /* of one field */
#define STRINGS_MAX  (1 << 20)
#define TYPES_MAX    (1 << 16)
#define ELEMENTS_MAX (1 << 20)

/* Each value that is read takes one: what claims to have more than its bytes can hold ends. */
#define STEPS_PER_BYTE 16

enum basic { STRUCTURE, BYTE, NUMBER, FLOAT, DOUBLE, STRING };

struct field {
    const char *name;
    uint32_t type; /* index into the types */
    bool is_constant, is_array;
};

struct type {
    uint64_t id;
    const char *name;
    enum basic basic;
    uint32_t first_field, field_count;
    bool is_wanted;
};

/* A constant: where its value begins. */
struct constant {
    uint32_t type;
    uint64_t id;
    size_t at;
};

struct chunk {
    const uint8_t *bytes;
    size_t size;
    uint64_t steps; /* that are left */
    uint64_t start_ns, start_ticks, ticks_per_second;
    uint32_t pid;
    char **strings;
    uint32_t string_count, string_room;
    struct field *fields;
    uint32_t field_count, field_room;
    struct type *types;
    uint32_t type_count, type_room;
    struct hash_map type_map;
    struct constant *constants;
    uint32_t constant_count, constant_room;
    struct hash_map constant_map;
    uint32_t elements;
    jfr_take *take;
    void *context;
};

/* ---- Bytes ---- */

struct cursor {
    const uint8_t *at, *end;
    bool failed;
};

static size_t left_of(const struct cursor *cursor)
{
    return cursor->failed ? 0 : (size_t)(cursor->end - cursor->at);
}

static uint8_t get_byte(struct cursor *cursor)
{
    if (left_of(cursor) == 0) {
        cursor->failed = true;
        return 0;
    }
    return *cursor->at++;
}

/* LEB128 of nine bytes at most, of which the ninth has no mark. */
static uint64_t get_number(struct cursor *cursor)
{
    uint64_t value = 0;
    for (int i = 0; i < 8; i++) {
        uint8_t byte = get_byte(cursor);
        value |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (!(byte & 0x80)) {
            return value;
        }
    }
    return value | (uint64_t)get_byte(cursor) << 56;
}

static void skip(struct cursor *cursor, uint64_t size)
{
    if (size > left_of(cursor)) {
        cursor->failed = true;
    } else {
        cursor->at += size;
    }
}

/* Text into which no more goes than fits. */
struct writer {
    char *text;
    size_t used, room;
};

static void put_bytes(struct writer *out, const void *bytes, size_t size)
{
    for (size_t i = 0; out && i < size && out->used + 1 < out->room; i++) {
        uint8_t byte = ((const uint8_t *)bytes)[i];
        out->text[out->used++] = (char)(byte < ' ' || byte == 0x7f ? '?' : byte);
    }
    if (out && out->room) {
        out->text[out->used] = '\0';
    }
}

static void put_letter(struct writer *out, uint32_t letter)
{
    char bytes[3];
    size_t size = 1;
    if (letter < 0x80) {
        bytes[0] = (char)letter;
    } else if (letter < 0x800) {
        bytes[0] = (char)(0xc0 | letter >> 6);
        bytes[1] = (char)(0x80 | (letter & 0x3f));
        size = 2;
    } else {
        bytes[0] = (char)(0xe0 | (letter >> 12 & 0xf));
        bytes[1] = (char)(0x80 | (letter >> 6 & 0x3f));
        bytes[2] = (char)(0x80 | (letter & 0x3f));
        size = 3;
    }
    put_bytes(out, bytes, size);
}

/* How a string is written. */
enum { TEXT_NULL, TEXT_EMPTY, TEXT_CONSTANT, TEXT_UTF8, TEXT_LETTERS, TEXT_LATIN1 };

/* A constant string is left out; the JDK has them for long ones of programs. */
static void get_string(struct cursor *cursor, struct writer *out)
{
    uint8_t kind = get_byte(cursor);
    if (kind == TEXT_CONSTANT) {
        (void)get_number(cursor);
        return;
    }
    uint64_t size = kind > TEXT_CONSTANT ? get_number(cursor) : 0;
    if (kind > TEXT_LATIN1 || size > left_of(cursor)) {
        cursor->failed = true;
        return;
    }
    if (kind == TEXT_UTF8) {
        put_bytes(out, cursor->at, (size_t)size);
        skip(cursor, size);
        return;
    }
    for (uint64_t i = 0; i < size && !cursor->failed; i++) {
        put_letter(out, kind == TEXT_LATIN1 ? get_byte(cursor)
                                            : (uint32_t)(get_number(cursor) & 0xffff));
    }
}

/* ---- Metadata ---- */

static int add_string(struct chunk *chunk, struct cursor *cursor)
{
    char text[256] = "";
    struct writer out = {text, 0, sizeof text};
    if (ARRAY_RESERVE(chunk->strings, chunk->string_count, chunk->string_room)) {
        return -ENOMEM;
    }
    get_string(cursor, &out);
    char *copy = strdup(text);
    chunk->strings[chunk->string_count] = copy;
    chunk->string_count += copy != NULL;
    return copy ? 0 : -ENOMEM;
}

static const char *string_at(const struct chunk *chunk, uint64_t index)
{
    return index < chunk->string_count ? chunk->strings[index] : "";
}

static enum basic basic_of(const char *name)
{
    static const struct {
        const char *name;
        enum basic basic;
    } basics[] = {{"boolean", BYTE}, {"byte", BYTE},     {"char", NUMBER},
                  {"short", NUMBER}, {"int", NUMBER},    {"long", NUMBER},
                  {"float", FLOAT},  {"double", DOUBLE}, {"java.lang.String", STRING}};
    for (size_t i = 0; i < sizeof basics / sizeof *basics; i++) {
        if (strcmp(basics[i].name, name) == 0) {
            return basics[i].basic;
        }
    }
    return STRUCTURE;
}

/* What of the JDK's events is told; of others all, but async-profiler's samples. */
static bool is_wanted(const char *name)
{
    static const char *const events[] = {
        "GarbageCollection",
        "GCPhasePause",
        "GCPhaseConcurrent",
        "SystemGC",
        "ZAllocationStall",
        "EvacuationFailed",
        "PromotionFailed",
        "ConcurrentModeFailure",
        "ClassLoad",
        "ClassDefine",
        "ClassUnload",
        "SocketRead",
        "SocketWrite",
        "FileRead",
        "FileWrite",
        "FileForce",
        "JavaMonitorEnter",
        "JavaMonitorWait",
        "ThreadPark",
        "ThreadSleep",
        "ThreadStart",
        "ThreadEnd",
        "VirtualThreadPinned",
        "Compilation",
        "CompilationFailure",
        "Deoptimization",
        "ExecuteVMOperation",
        "SafepointBegin",
        "JavaExceptionThrow",
        "JavaErrorThrow",
        "Shutdown",
        "ContainerCPUThrottling",
        "DataLoss",
        "ProcessStart",
        "TLSHandshake",
        "RedefineClasses",
    };
    static const char jdk[] = "jdk.";
    if (strncmp(name, jdk, sizeof jdk - 1) != 0) {
        return strncmp(name, "profiler.", 9) != 0;
    }
    for (size_t i = 0; i < sizeof events / sizeof *events; i++) {
        if (strcmp(events[i], name + sizeof jdk - 1) == 0) {
            return true;
        }
    }
    return false;
}

/* The attributes of an element that matter, "": it has none of that name. */
struct attributes {
    const char *name, *id, *type, *super, *dimension, *constant;
};

static struct attributes get_attributes(const struct chunk *chunk, struct cursor *cursor)
{
    struct attributes found = {"", "", "", "", "", ""};
    const struct {
        const char *key;
        const char **value;
    } known[] = {{"name", &found.name},           {"id", &found.id},
                 {"class", &found.type},          {"superType", &found.super},
                 {"dimension", &found.dimension}, {"constantPool", &found.constant}};
    uint64_t count = get_number(cursor);
    for (uint64_t i = 0; i < count && !cursor->failed; i++) {
        const char *key = string_at(chunk, get_number(cursor));
        const char *value = string_at(chunk, get_number(cursor));
        for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
            if (strcmp(known[k].key, key) == 0) {
                *known[k].value = value;
            }
        }
    }
    return found;
}

static int add_type(struct chunk *chunk, const struct attributes *attributes)
{
    uint64_t id = strtoull(attributes->id, NULL, 10);
    if (chunk->type_count == TYPES_MAX) {
        return -EBADMSG;
    }
    if (ARRAY_RESERVE(chunk->types, chunk->type_count, chunk->type_room) ||
        hash_map_add(&chunk->type_map, id, chunk->type_count)) {
        return -ENOMEM;
    }
    bool is_event = strcmp(attributes->super, "jdk.jfr.Event") == 0;
    chunk->types[chunk->type_count++] = (struct type){
        .id = id,
        .name = attributes->name,
        .basic = basic_of(attributes->name),
        .first_field = chunk->field_count,
        .is_wanted = is_event && *attributes->name && is_wanted(attributes->name),
    };
    return 0;
}

/* Its type is known by its id until all types are there. */
static int add_field(struct chunk *chunk, const struct attributes *attributes)
{
    if (chunk->type_count == 0) {
        return -EBADMSG;
    }
    if (ARRAY_RESERVE(chunk->fields, chunk->field_count, chunk->field_room)) {
        return -ENOMEM;
    }
    uint64_t id = strtoull(attributes->type, NULL, 10);
    chunk->fields[chunk->field_count++] = (struct field){
        .name = attributes->name,
        .type = id < UINT32_MAX ? (uint32_t)id : UINT32_MAX,
        .is_constant = strcmp(attributes->constant, "true") == 0,
        .is_array = strcmp(attributes->dimension, "1") == 0,
    };
    chunk->types[chunk->type_count - 1].field_count++;
    return 0;
}

/* Elements in elements: "root" has "metadata", that has classes, those have fields. What is in a
 * field is of no use. */
static int read_element(struct chunk *chunk, struct cursor *cursor, int depth, bool in_field)
{
    const char *name = string_at(chunk, get_number(cursor));
    struct attributes attributes = get_attributes(chunk, cursor);
    uint64_t children = get_number(cursor);
    bool is_field = strcmp(name, "field") == 0;
    int err = 0;
    if (cursor->failed || depth > DEPTH_MAX || ++chunk->elements > ELEMENTS_MAX) {
        return -EBADMSG;
    }
    if (strcmp(name, "class") == 0 && !in_field) {
        err = add_type(chunk, &attributes);
    } else if (is_field && !in_field) {
        err = add_field(chunk, &attributes);
    }
    for (uint64_t i = 0; i < children && !err; i++) {
        err = read_element(chunk, cursor, depth + 1, in_field || is_field);
    }
    return err;
}

static uint32_t find_type(const struct chunk *chunk, uint64_t id)
{
    uint32_t index;
    HASH_MAP_FIND(index, &chunk->type_map, id, chunk->types[index].id == id);
    return index;
}

/* An event's body, behind its size and type. */
static int read_metadata(struct chunk *chunk, size_t at)
{
    if (at < HEADER_SIZE || at >= chunk->size) {
        return -EBADMSG;
    }
    struct cursor cursor = {chunk->bytes + at, chunk->bytes + chunk->size, false};
    for (int i = 0; i < 5; i++) {
        (void)get_number(&cursor); /* size, type 0, start, duration, id */
    }
    uint64_t strings = get_number(&cursor);
    int err = cursor.failed || strings > STRINGS_MAX ? -EBADMSG : 0;
    for (uint64_t i = 0; i < strings && !err; i++) {
        err = add_string(chunk, &cursor);
        err = err ? err : cursor.failed ? -EBADMSG : 0;
    }
    err = err ? err : read_element(chunk, &cursor, 0, false);
    for (uint32_t i = 0; i < chunk->field_count && !err; i++) {
        chunk->fields[i].type = find_type(chunk, chunk->fields[i].type);
        err = chunk->fields[i].type == HASH_MAP_NONE ? -EBADMSG : 0;
    }
    return err;
}

/* ---- Values ---- */

static void get_value(struct chunk *chunk, struct cursor *cursor, const struct field *field,
                      int depth, struct writer *out);

/* Which of a structure's fields says what it is. */
static bool is_telling(const char *name)
{
    static const char *const names[] = {"name",     "javaName",    "string", "cause",
                                        "type",     "description", "path",   "reason",
                                        "compiler", "when",        NULL};
    for (size_t i = 0; names[i]; i++) {
        if (strcmp(names[i], name) == 0) {
            return true;
        }
    }
    return false;
}

static void get_structure(struct chunk *chunk, struct cursor *cursor, uint32_t type, int depth,
                          struct writer *out)
{
    const struct type *its = &chunk->types[type];
    bool told = false;
    for (uint32_t i = 0; i < its->field_count && !cursor->failed; i++) {
        const struct field *field = &chunk->fields[its->first_field + i];
        bool tells = out && !told && is_telling(field->name);
        get_value(chunk, cursor, field, depth + 1, tells ? out : NULL);
        told |= tells;
    }
}

static void get_plain(struct chunk *chunk, struct cursor *cursor, uint32_t type, int depth,
                      struct writer *out)
{
    char text[32] = "";
    uint64_t bits = 0;
    switch (chunk->types[type].basic) {
    case BYTE:
        bits = get_byte(cursor);
        snprintf(text, sizeof text, "%s",
                 strcmp(chunk->types[type].name, "boolean") != 0 ? ""
                 : bits                                          ? "true"
                                                                 : "false");
        break;
    case NUMBER:
        snprintf(text, sizeof text, "%" PRId64, (int64_t)get_number(cursor));
        break;
    case FLOAT:
        skip(cursor, 4);
        break;
    case DOUBLE:
        skip(cursor, 8);
        break;
    case STRING:
        get_string(cursor, out);
        break;
    default:
        get_structure(chunk, cursor, type, depth, out);
        break;
    }
    put_bytes(out, text, strlen(text));
}

static const struct constant *find_constant(const struct chunk *chunk, uint32_t type, uint64_t id)
{
    const struct constant *constants = chunk->constants;
    uint32_t index;
    HASH_MAP_FIND(index, &chunk->constant_map, id ^ (uint64_t)type << 48,
                  constants[index].type == type && constants[index].id == id);
    return index == HASH_MAP_NONE ? NULL : &constants[index];
}

static void put_constant(struct chunk *chunk, uint32_t type, uint64_t id, int depth,
                         struct writer *out)
{
    const struct constant *constant = find_constant(chunk, type, id);
    if (constant && out && depth < DEPTH_MAX) {
        struct cursor cursor = {chunk->bytes + constant->at, chunk->bytes + chunk->size, false};
        get_plain(chunk, &cursor, type, depth + 1, out);
    }
}

/* Reads a value; what it says goes to out, NULL: nowhere. */
static void get_value(struct chunk *chunk, struct cursor *cursor, const struct field *field,
                      int depth, struct writer *out)
{
    uint64_t count = field->is_array ? get_number(cursor) : 1;
    if (depth > DEPTH_MAX || count > left_of(cursor) + 1) {
        cursor->failed = true;
    }
    for (uint64_t i = 0; i < count && !cursor->failed; i++) {
        if (chunk->steps == 0) {
            cursor->failed = true;
            return;
        }
        chunk->steps--;
        if (field->is_constant) {
            put_constant(chunk, field->type, get_number(cursor), depth, i ? NULL : out);
        } else {
            get_plain(chunk, cursor, field->type, depth, i ? NULL : out);
        }
    }
}

/* ---- Constants ---- */

static int add_constant(struct chunk *chunk, uint32_t type, uint64_t id, size_t at)
{
    if (ARRAY_RESERVE(chunk->constants, chunk->constant_count, chunk->constant_room) ||
        hash_map_add(&chunk->constant_map, id ^ (uint64_t)type << 48, chunk->constant_count)) {
        return -ENOMEM;
    }
    chunk->constants[chunk->constant_count++] = (struct constant){type, id, at};
    return 0;
}

static int read_pool(struct chunk *chunk, struct cursor *cursor)
{
    uint32_t type = find_type(chunk, get_number(cursor));
    uint64_t count = get_number(cursor);
    int err = cursor->failed || type == UINT32_MAX || count > left_of(cursor) ? -EBADMSG : 0;
    for (uint64_t i = 0; i < count && !err; i++) {
        uint64_t id = get_number(cursor);
        err = chunk->steps == 0
                  ? -EBADMSG
                  : add_constant(chunk, type, id, (size_t)(cursor->at - chunk->bytes));
        chunk->steps -= chunk->steps > 0;
        if (!err) {
            get_plain(chunk, cursor, type, 0, NULL);
            err = cursor->failed ? -EBADMSG : 0;
        }
    }
    return err;
}

/* The last checkpoint, and those before it. */
static int read_constants(struct chunk *chunk, uint64_t at)
{
    int err = 0;
    for (;;) {
        if (at < HEADER_SIZE || at >= chunk->size) {
            return -EBADMSG;
        }
        struct cursor cursor = {chunk->bytes + at, chunk->bytes + chunk->size, false};
        for (int i = 0; i < 4; i++) {
            (void)get_number(&cursor); /* size, type 1, start, duration */
        }
        int64_t delta = (int64_t)get_number(&cursor);
        (void)get_byte(&cursor); /* of what sort it is */
        uint64_t pools = get_number(&cursor);
        err = cursor.failed ? -EBADMSG : 0;
        for (uint64_t i = 0; i < pools && !err; i++) {
            err = read_pool(chunk, &cursor);
        }
        if (err || delta == 0) {
            return err;
        }
        uint64_t back = -(uint64_t)delta; /* INT64_MIN has no negative of its own type */
        if (delta > 0 || back > at) {     /* they go backwards, and so they end */
            return -EBADMSG;
        }
        at -= back;
    }
}

/* ---- Events ---- */

/* In two parts: a double has not all digits of ns since 1970. 0: it is no time. */
static uint64_t wall_time(const struct chunk *chunk, uint64_t ticks)
{
    double ns =
        ((double)ticks - (double)chunk->start_ticks) * 1e9 / (double)chunk->ticks_per_second;
    double time = (double)chunk->start_ns + ns;
    bool is_time = time >= 0 && time < 9e18 && ns > -9e18 && ns < 9e18;
    return is_time ? chunk->start_ns + (uint64_t)(int64_t)ns : 0;
}

/* The thread's number in the system, of a constant thread. */
static uint32_t thread_id(struct chunk *chunk, uint32_t type, uint64_t id)
{
    const struct constant *constant = find_constant(chunk, type, id);
    const struct type *its = &chunk->types[type];
    struct cursor cursor = {NULL, NULL, constant == NULL};
    if (constant) {
        cursor = (struct cursor){chunk->bytes + constant->at, chunk->bytes + chunk->size, false};
    }
    for (uint32_t i = 0; i < its->field_count && !cursor.failed; i++) {
        const struct field *field = &chunk->fields[its->first_field + i];
        bool is_it = strcmp(field->name, "osThreadId") == 0 && !field->is_array &&
                     !field->is_constant && chunk->types[field->type].basic == NUMBER;
        if (is_it) {
            uint64_t number = get_number(&cursor);
            return cursor.failed || number > UINT32_MAX ? 0 : (uint32_t)number;
        }
        get_value(chunk, &cursor, field, 0, NULL);
    }
    return 0;
}

static int read_event(struct chunk *chunk, const struct type *type, struct cursor *cursor)
{
    char text[TEXT_MAX] = "";
    struct writer out = {text, 0, sizeof text};
    uint64_t start = 0, duration = 0;
    uint32_t tid = 0;
    bool is_jvm = strcmp(type->name, "jdk.JVMInformation") == 0;
    for (uint32_t i = 0; i < type->field_count && !cursor->failed; i++) {
        const struct field *field = &chunk->fields[type->first_field + i];
        bool is_number =
            !field->is_array && !field->is_constant && chunk->types[field->type].basic == NUMBER;
        if (is_number && strcmp(field->name, "startTime") == 0) {
            start = get_number(cursor);
        } else if (is_number && strcmp(field->name, "duration") == 0) {
            duration = get_number(cursor);
        } else if (is_number && is_jvm && strcmp(field->name, "pid") == 0) {
            uint64_t pid = get_number(cursor);
            chunk->pid = pid <= UINT32_MAX ? (uint32_t)pid : 0;
        } else if (field->is_constant && !field->is_array &&
                   strcmp(field->name, "eventThread") == 0) {
            tid = thread_id(chunk, field->type, get_number(cursor));
        } else if (strcmp(field->name, "stackTrace") == 0) {
            get_value(chunk, cursor, field, 0, NULL);
        } else {
            char value[VALUE_MAX] = "";
            struct writer its = {value, 0, sizeof value};
            get_value(chunk, cursor, field, 0, &its);
            if (*value) {
                put_bytes(&out, ", ", out.used ? 2 : 0);
                put_bytes(&out, field->name, strlen(field->name));
                put_bytes(&out, ": ", 2);
                put_bytes(&out, value, its.used);
            }
        }
    }
    if (cursor->failed || is_jvm) {
        return cursor->failed ? -EBADMSG : 0;
    }
    const char *dot = strncmp(type->name, "jdk.", 4) == 0 ? type->name + 4 : type->name;
    uint64_t from = wall_time(chunk, start);
    uint64_t until = wall_time(chunk, start + duration);
    struct resolved_mark mark = {.kind = MARK_JFR,
                                 .from = from,
                                 .until = until > from ? until : from,
                                 .text = dot,
                                 .subject = text};
    return chunk->take(chunk->context, chunk->pid, tid, &mark);
}

/* Those of all types that are wanted, or of the JVM itself. */
static int read_events(struct chunk *chunk, bool of_jvm)
{
    size_t at = HEADER_SIZE;
    int err = 0;
    while (!err && at < chunk->size) {
        struct cursor cursor = {chunk->bytes + at, chunk->bytes + chunk->size, false};
        uint64_t size = get_number(&cursor);
        uint64_t id = get_number(&cursor);
        if (cursor.failed || size == 0 || size > chunk->size - at ||
            size < (size_t)(cursor.at - chunk->bytes) - at) {
            return -EBADMSG;
        }
        cursor.end = chunk->bytes + at + size;
        uint32_t type = id > 1 ? find_type(chunk, id) : UINT32_MAX;
        bool is_jvm =
            type != UINT32_MAX && strcmp(chunk->types[type].name, "jdk.JVMInformation") == 0;
        if (type != UINT32_MAX && (of_jvm ? is_jvm : chunk->types[type].is_wanted)) {
            err = read_event(chunk, &chunk->types[type], &cursor);
        }
        at += (size_t)size;
    }
    return err;
}

/* ---- Chunks ---- */

static uint64_t big_endian(const uint8_t *bytes)
{
    uint64_t value;
    memcpy(&value, bytes, sizeof value);
    return be64toh(value);
}

/* Offsets in the header. */
enum {
    SIZE_AT = 8,
    CONSTANTS_AT = 16,
    METADATA_AT = 24,
    START_NS_AT = 32,
    START_TICKS_AT = 48,
    TICKS_AT = 56,
    FEATURES_AT = 64,
    FEATURE_COMPRESSED = 1,
};

static bool is_header(const uint8_t *bytes)
{
    return memcmp(bytes, "FLR", 4) == 0 && (bytes[FEATURES_AT + 3] & FEATURE_COMPRESSED) &&
           big_endian(bytes + TICKS_AT) != 0;
}

static void release(struct chunk *chunk)
{
    for (uint32_t i = 0; i < chunk->string_count; i++) {
        free(chunk->strings[i]);
    }
    free(chunk->strings);
    free(chunk->fields);
    free(chunk->types);
    free(chunk->constants);
    hash_map_free(&chunk->type_map);
    hash_map_free(&chunk->constant_map);
}

int jfr_chunk_read(const uint8_t *bytes, size_t size, jfr_take *take, void *context)
{
    if (size < HEADER_SIZE || !is_header(bytes)) {
        return -EBADMSG;
    }
    struct chunk chunk = {
        .bytes = bytes,
        .size = size,
        .steps = (uint64_t)size * STEPS_PER_BYTE,
        .start_ns = big_endian(bytes + START_NS_AT),
        .start_ticks = big_endian(bytes + START_TICKS_AT),
        .ticks_per_second = big_endian(bytes + TICKS_AT),
        .take = take,
        .context = context,
    };
    int err = read_metadata(&chunk, (size_t)big_endian(bytes + METADATA_AT));
    err = err ? err : read_constants(&chunk, big_endian(bytes + CONSTANTS_AT));
    err = err ? err : read_events(&chunk, true);
    err = err ? err : read_events(&chunk, false);
    release(&chunk);
    return err;
}

static int read_chunk(int fd, uint64_t at, uint64_t size, jfr_take *take, void *context)
{
    uint8_t *bytes = size >= HEADER_SIZE && size <= JFR_CHUNK_MAX ? malloc((size_t)size) : NULL;
    int err = bytes ? 0 : size < HEADER_SIZE || size > JFR_CHUNK_MAX ? -EBADMSG : -ENOMEM;
    ssize_t n = err ? 0 : descriptor_read_at(fd, bytes, (size_t)size, at);
    err = err ? err : n < 0 ? (int)n : (uint64_t)n < size ? -EBADMSG : 0;
    err = err ? err : jfr_chunk_read(bytes, (size_t)size, take, context);
    free(bytes);
    return err;
}

int jfr_file_read(const char *path, jfr_take *take, void *context)
{
    uint8_t header[HEADER_SIZE];
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    int err = fd < 0 || fstat(fd, &status) != 0 ? -errno : S_ISREG(status.st_mode) ? 0 : -EINVAL;
    for (uint64_t at = 0; !err && at < (uint64_t)status.st_size;) {
        ssize_t n = pread(fd, header, sizeof header, (off_t)at);
        uint64_t size = n == HEADER_SIZE && is_header(header) ? big_endian(header + SIZE_AT) : 0;
        bool is_whole = size >= HEADER_SIZE && size <= (uint64_t)status.st_size - at;
        err = is_whole ? read_chunk(fd, at, size, take, context) : -EBADMSG;
        at += size;
    }
    descriptor_close(fd);
    if (err == -EBADMSG) {
        error_message("failed to read all of %s: it is not a complete recording of a JVM (.jfr)",
                      path);
    } else if (err) {
        failed_to(err, "read %s", path);
    }
    return err;
}
