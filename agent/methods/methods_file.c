/*
 * A record is built without a lock, in memory of the callback that builds it; the lock is held for
 * the write and for the map of methods told of. The map is what keeps catching up from telling of a
 * class twice: what was told last of each address. Classes go without a word and their memory is
 * used again, for new classes, which have an event of their own, and for the methods that a
 * redefinition brings, which have none; so what an address means is compared, not only whether it
 * is known. Catching up sees all classes there are, and forgets what it has not seen. What a
 * redefinition brought is soon compiled, at an address that nobody has told of: that is the sign to
 * catch up.
 */
#include "agent/methods/methods_file.h"

#include "agent/methods/proof.h"
#include "agent/methods/source_map.h"
#include "format/methods.h"
#include "writer/buffer.h"
#include "writer/hash_table.h"
#include "writer/invariant.h"
#include "writer/message.h"
#include "writer/pool.h"
#include "writer/stamp.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The largest record: a class with thousands of methods takes some hundred KB. */
#define RECORD_MAX ((size_t)16 << 20)

/* Catching up for a method's sake waits so many times as long as the last time used a processor: at
 * most one hundredth of one goes there, whatever is redefined all the time. */
#define CATCH_UP_SHARE 100

/* So many earlier versions of a class are told of. */
#define VERSIONS_MAX 64

/* A method that has been told of. */
struct told {
    struct hash_table_entry entry; /* key: its address */
    uint64_t identity;             /* hotspot_method's */
    uint32_t round;                /* of catching up, in which it was still there */
};

struct methods_file {
    struct method_cache_options names;
    struct hotspot *hotspot;
    const struct proof *proof;
    bool tsc;
    pthread_mutex_t lock;
    struct record_log *log;
    struct hash_table told;
    struct pool memory; /* of those */
    uint32_t round;     /* of catching up, the one under way or the last */
    bool caught_up;     /* once, since the file began */
    bool is_lacking;    /* a method was not known, and it was too early to catch up */
    uint64_t next;      /* time from which it may be done again for one method's sake */
    uint64_t since;     /* stamp of the time when nothing had been told of; 0: readers know that all
                           has been since */
    atomic_bool closed; /* after a fault */
};

/* What is needed to build a record. */
struct builder {
    struct methods_file *table;
    jvmtiEnv *jvmti;
    JNIEnv *jni;
    struct buffer record;
    struct source_map *map;               /* of the class, NULL: none */
    struct hotspot_methods memory;        /* what has been read, of some classes */
    const struct hotspot_method *methods; /* the class's, in it */
    size_t method_count;
    bool first;        /* next to no class has been told of before */
    bool patient;      /* can wait for a slow disk */
    bool left_out;     /* something could not be told of */
    uint64_t previous; /* Method of the record's last method */
    char name[SYMBOL_MAX];
};

/* ---- The map of methods told of; under the lock ---- */

static struct told *told_at(struct methods_file *table, uint64_t address)
{
    lock_is_held(&table->lock);
    return (struct told *)hash_table_find(&table->told, address);
}

/* Has this very method been told of? If so, it is still there. */
static bool is_told(struct methods_file *table, const struct hotspot_method *method)
{
    struct told *told = told_at(table, method->address);
    if (!told || told->identity != method->identity) {
        return false;
    }
    told->round = table->round;
    return true;
}

/* Without memory the method is forgotten, and perhaps told of once more. */
static void remember(struct methods_file *table, const struct hotspot_method *method)
{
    struct told *told = told_at(table, method->address);
    if (!told && (told = pool_take(&table->memory))) {
        told->entry.key = method->address;
        if (!hash_table_add(&table->told, &told->entry)) {
            pool_give_back(&table->memory, told);
            return;
        }
    }
    if (told) {
        told->identity = method->identity;
        told->round = table->round;
    }
}

/* What was not there in that round or later is gone. */
static void forget_before(struct methods_file *table, uint32_t round)
{
    struct hash_table_entry *all = NULL;
    struct hash_table_entry *entry;
    size_t count = table->told.used;
    lock_is_held(&table->lock);
    while ((entry = hash_table_drain(&table->told))) {
        entry->next = all;
        all = entry;
    }
    if (round < UINT32_MAX) {
        (void)hash_table_reserve(&table->told, count); /* without memory it grows as it can */
    }
    while ((entry = all)) {
        struct told *told = (struct told *)entry;
        all = entry->next;
        if (told->round < round || !hash_table_add(&table->told, entry)) {
            pool_give_back(&table->memory, told);
        }
    }
}

/* ---- Records ---- */

static void put_lines(struct builder *builder, const struct hotspot_method *method)
{
    struct line_entry last = {0};
    buffer_put_uleb(&builder->record, method->line_count);
    for (uint32_t i = 0; i < method->line_count; i++) {
        struct line_entry entry = method->lines[i];
        /* A frame has one line here: of inlined code that of its call, which is in the class's
         * file. One that is not known goes on with the line before. */
        uint32_t line = source_map_find(builder->map, entry.line).line;
        entry.line = line ? line : last.line;
        buffer_put_uleb(&builder->record, entry.bci - last.bci);
        buffer_put_sleb(&builder->record, (int64_t)entry.line - last.line);
        last = entry;
    }
}

/* Abstract methods never run. */
static bool can_run(const struct hotspot_method *method)
{
    return method->native || method->bytecode_size > 0;
}

static void put_method(struct builder *builder, const struct fetched_class *klass,
                       const struct hotspot_method *method)
{
    struct buffer *record = &builder->record;
    const struct fetched_method names = {.name = (char *)method->name,
                                         .descriptor = (char *)method->descriptor};
    method_symbol(builder->name, &builder->table->names, klass->signature, klass->source_file,
                  &names);
    buffer_put_sleb(record, (int64_t)(method->address - builder->previous));
    buffer_put_sleb(record, (int64_t)(method->bytecodes - method->address));
    buffer_put_uleb(record, method->native ? 0 : method->bytecode_size);
    buffer_put_string(record, builder->name);
    put_lines(builder, method);
    builder->previous = method->address;
}

/* Whether its own event has told of the class since; the lock is held. */
static bool all_told(const struct builder *builder)
{
    bool told = true;
    for (size_t i = 0; i < builder->method_count; i++) {
        told = is_told(builder->table, &builder->methods[i]) && told;
    }
    return told;
}

/* The class's methods, which have been told of; the lock is held. */
static void remember_all(const struct builder *builder)
{
    for (size_t i = 0; i < builder->method_count; i++) {
        remember(builder->table, &builder->methods[i]);
    }
}

static void write_record(struct builder *builder, enum methods_record_id id)
{
    struct methods_file *table = builder->table;
    struct buffer *record = &builder->record;
    if (record->failed) {
        message(MESSAGE_DEBUG, "no memory for the methods of a class");
        builder->left_out = true;
        return;
    }
    record_log_make_room(table->log, builder->patient); /* without the lock */
    pthread_mutex_lock(&table->lock);
    struct methods_record prefix = {
        .id = id, .total_size = (uint32_t)record->size, .timestamp = stamp_now(table->tsc)};
    memcpy(record->bytes, &prefix, sizeof prefix);
    struct iovec piece = {record->bytes, record->size};
    bool needless = id == METHODS_FOUND && all_told(builder);
    int error = atomic_load(&table->closed) ? -EPIPE
                : needless                  ? 0
                           : record_log_append(table->log, RECORD_LOG_TABLE, NULL, &piece, 1, 0);
    if (!error) {
        remember_all(builder);
    } else if (error != -ENOBUFS) {
        atomic_store(&table->closed, true); /* which has been told */
    }
    builder->left_out = builder->left_out || error;
    pthread_mutex_unlock(&table->lock);
}

/* All that live have been told of, so readers can do without the table before. Where there is no
 * room for this, the log asks to catch up once more. The lock is held. */
static void write_all_told(struct methods_file *table)
{
    struct methods_record record = {
        .id = METHODS_ALL, .total_size = sizeof record, .timestamp = table->since};
    struct iovec piece = {&record, sizeof record};
    lock_is_held(&table->lock);
    if (table->since && record_log_append(table->log, RECORD_LOG_TABLE, NULL, &piece, 1, 0) == 0) {
        table->since = 0;
    }
}

void methods_file_tell_lacks(struct methods_file *table, unsigned events)
{
    uint8_t lacks = (uint8_t)events;
    struct methods_record record = {.id = METHODS_LACKS,
                                    .total_size = sizeof record + sizeof lacks,
                                    .timestamp = stamp_now(table->tsc)};
    struct iovec pieces[] = {{&record, sizeof record}, {&lacks, sizeof lacks}};
    (void)record_log_append(table->log, RECORD_LOG_TABLE, NULL, pieces, 2, 0);
}

static void put_source_path(struct builder *builder, const struct fetched_class *klass)
{
    builder->name[0] = 0;
    if (klass->source_file && builder->map && !builder->map->inlines) {
        source_map_path(builder->name, sizeof builder->name, builder->map);
    } else if (klass->source_file) {
        symbol_source_path(builder->name, sizeof builder->name, klass->signature,
                           klass->source_file);
    }
    buffer_put_string(&builder->record, builder->name);
}

/* Tells of the class whose methods these are. */
static void add_methods(struct builder *builder, jclass klass, enum methods_record_id id,
                        const struct hotspot_method *methods, size_t count)
{
    struct fetched_class fetched;
    bool any = false;
    if (!class_fetch(builder->jvmti, klass, &fetched)) {
        return;
    }
    builder->methods = methods;
    builder->method_count = count;
    builder->map = source_map_new(fetched.source_map, fetched.signature);
    buffer_clear(&builder->record);
    (void)buffer_extend(&builder->record, sizeof(struct methods_record));
    builder->previous = 0;
    put_source_path(builder, &fetched);
    for (size_t i = 0; i < count; i++) {
        if (can_run(&methods[i])) {
            put_method(builder, &fetched, &methods[i]);
            any = true;
        }
    }
    if (any) {
        write_record(builder, id);
    } else {
        pthread_mutex_lock(&builder->table->lock);
        remember_all(builder); /* all of them abstract: nothing to tell */
        pthread_mutex_unlock(&builder->table->lock);
    }
    source_map_free(builder->map);
    builder->map = NULL;
    class_fetch_free(builder->jvmti, &fetched);
}

static void add_class(struct builder *builder, jclass klass, enum methods_record_id id)
{
    const struct methods_file *table = builder->table;
    uint64_t address;
    size_t count = 0;
    if (proof_klasses(table->proof, builder->jni, &klass, 1, &address) &&
        hotspot_class_methods(table->hotspot, &address, 1, false, &builder->memory, &count)) {
        add_methods(builder, klass, id, builder->memory.methods, count);
    }
}

/* Which of the classes have methods that have not been told of? Marks all those that have been.
 * The classes' methods, counts[i] each, are in builder->memory. */
static void find_news(struct builder *builder, const size_t *counts, size_t count, bool *news)
{
    const struct hotspot_method *method = builder->memory.methods;
    pthread_mutex_lock(&builder->table->lock);
    for (size_t i = 0; i < count; i++) {
        news[i] = false;
        for (const struct hotspot_method *end = method + counts[i]; method < end; method++) {
            news[i] |= !is_told(builder->table, method);
        }
    }
    pthread_mutex_unlock(&builder->table->lock);
}

/*
 * Tells of the versions of these classes that a redefinition has replaced and threads still run,
 * which those do that were in them: loops that serve requests, above all. JVMTI knows none of them.
 */
static void add_versions_before(struct builder *builder, const jclass *classes,
                                const uint64_t *klasses, size_t count)
{
    struct hotspot *hotspot = builder->table->hotspot;
    uint64_t versions[HOTSPOT_CLASSES_MAX];
    if (!hotspot_versions_before(hotspot, klasses, count, versions)) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        uint64_t next = versions[i];
        for (int told = 0; next && told < VERSIONS_MAX; told++) {
            const uint64_t version = next;
            if (!hotspot_version_methods(hotspot, version, klasses[i], &builder->memory) ||
                !hotspot_versions_before(hotspot, &version, 1, &next)) {
                break;
            }
            add_methods(builder, classes[i], METHODS_FOUND, builder->memory.methods,
                        builder->memory.count);
        }
    }
}

/* Tells of what no event has told of these classes: all of it the first time. */
static void catch_up_group(struct builder *builder, const jclass *classes, size_t count)
{
    const struct methods_file *table = builder->table;
    uint64_t klasses[HOTSPOT_CLASSES_MAX];
    size_t counts[HOTSPOT_CLASSES_MAX];
    bool news[HOTSPOT_CLASSES_MAX];
    bool first = builder->first;
    bool read =
        proof_klasses(table->proof, builder->jni, classes, count, klasses) &&
        hotspot_class_methods(table->hotspot, klasses, count, !first, &builder->memory, counts);
    const struct hotspot_method *method = builder->memory.methods;
    if (!read) {
        for (size_t i = 0; i < count && count > 1; i++) {
            catch_up_group(builder, &classes[i], 1); /* one of them is not to be had */
        }
        return;
    }
    if (!first) {
        find_news(builder, counts, count, news);
    }
    const size_t told = builder->memory.count > 0 ? count : 0;
    for (size_t i = 0; i < told; i++) {
        if (first) {
            add_methods(builder, classes[i], METHODS_FOUND, method, counts[i]);
            method += counts[i];
        } else if (news[i]) {
            add_class(builder, classes[i], METHODS_FOUND);
        }
    }
    add_versions_before(builder, classes, klasses, count);
}

/* Whether a loaded class has methods that can run: it is prepared, and no array. */
static bool is_ready(jvmtiEnv *jvmti, jclass klass)
{
    jint status = 0;
    return (*jvmti)->GetClassStatus(jvmti, klass, &status) == JVMTI_ERROR_NONE &&
           (status & JVMTI_CLASS_STATUS_PREPARED) != 0 &&
           (status & (JVMTI_CLASS_STATUS_ARRAY | JVMTI_CLASS_STATUS_PRIMITIVE)) == 0;
}

static struct builder *new_builder(struct methods_file *table, jvmtiEnv *jvmti, JNIEnv *jni)
{
    struct builder *builder = atomic_load(&table->closed) ? NULL : calloc(1, sizeof *builder);
    if (builder) {
        builder->table = table;
        builder->jvmti = jvmti;
        builder->jni = jni;
        builder->record = BUFFER_INIT(RECORD_MAX);
    }
    return builder;
}

static void free_builder(struct builder *builder)
{
    hotspot_methods_free(&builder->memory);
    buffer_free(&builder->record);
    free(builder);
}

void methods_file_prepared(struct methods_file *table, jvmtiEnv *jvmti, JNIEnv *jni, jclass klass)
{
    struct builder *builder = new_builder(table, jvmti, jni);
    if (builder) {
        add_class(builder, klass, METHODS_PREPARED);
        free_builder(builder);
    }
}

bool methods_file_lacks(struct methods_file *table, uint64_t method)
{
    pthread_mutex_lock(&table->lock);
    bool may = table->caught_up && !atomic_load(&table->closed);
    if (may &&
        !told_at(table, method)) { /* no method has this identity: it is still to be told of */
        remember(table, &(struct hotspot_method){.address = method});
        table->is_lacking = true;
    }
    bool lacks = may && table->is_lacking && stamp_now(false) >= table->next;
    if (lacks) {
        table->next = UINT64_MAX; /* the errand is one at a time */
    }
    pthread_mutex_unlock(&table->lock);
    return lacks;
}

void methods_file_forget(struct methods_file *table)
{
    pthread_mutex_lock(&table->lock);
    forget_before(table, UINT32_MAX);
    table->caught_up = false;
    table->is_lacking = false;
    table->since = stamp_now(table->tsc);
    pthread_mutex_unlock(&table->lock);
}

/* Of this thread, ns. */
static uint64_t processor_time(void)
{
    struct timespec time = {0};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

void methods_file_catch_up(struct methods_file *table, jvmtiEnv *jvmti, JNIEnv *jni, bool patient,
                           bool is_last)
{
    jint count = 0;
    jclass *classes = NULL;
    const uint64_t begin = processor_time();
    struct builder *builder = new_builder(table, jvmti, jni);
    if (!builder) {
        return;
    }
    builder->patient = patient;
    pthread_mutex_lock(&table->lock);
    const bool first = builder->first = !table->caught_up;
    table->caught_up = true;
    table->is_lacking = false;
    table->next = UINT64_MAX; /* until it is done */
    table->round++; /* before the JVM lists its classes: those that come meanwhile are of this round
                     */
    pthread_mutex_unlock(&table->lock);
    if ((*jvmti)->GetLoadedClasses(jvmti, &count, &classes) == JVMTI_ERROR_NONE) {
        /* -Xcheck:jni warns of more local references than were announced; this is that late. */
        (void)(*jni)->EnsureLocalCapacity(jni, count + 32);
        jint at = 0;
        while (at < count) {
            jclass group[HOTSPOT_CLASSES_MAX];
            size_t used = 0;
            jint start = at;
            for (; at < count && used < HOTSPOT_CLASSES_MAX; at++) {
                if (is_ready(jvmti, classes[at])) {
                    group[used++] = classes[at];
                }
            }
            if (used > 0 && !atomic_load(&table->closed)) {
                catch_up_group(builder, group, used);
            }
            for (jint i = start; i < at; i++) {
                (*jni)->DeleteLocalRef(jni, classes[i]);
            }
        }
        (*jvmti)->Deallocate(jvmti, (unsigned char *)classes);
        pthread_mutex_lock(&table->lock);
        if (!first && !is_last) { /* else there is nothing to forget yet, or nobody asks any more */
            forget_before(table, table->round);
        }
        if (!builder->left_out && !atomic_load(&table->closed)) {
            write_all_told(table);
        }
        pthread_mutex_unlock(&table->lock);
    }
    free_builder(builder);
    const uint64_t used = processor_time() - begin;
    pthread_mutex_lock(&table->lock);
    table->next = first ? 0 : stamp_now(false) + CATCH_UP_SHARE * used;
    pthread_mutex_unlock(&table->lock);
}

/* ---- The file ---- */

int methods_file_open(const struct methods_file_options *options, struct methods_file **out)
{
    if (!hotspot_may_know_methods(options->hotspot)) {
        message(MESSAGE_WARNING, "failed to start the table of methods: this JVM does not say "
                                 "where it keeps them; interpreted frames have no names");
        return -ENOTSUP;
    }
    struct methods_file *table = calloc(1, sizeof *table);
    if (!table) {
        message(MESSAGE_ERROR, "failed to start the table of methods: no memory");
        return -ENOMEM;
    }
    table->told.grain = 3;
    table->memory = POOL_INIT(sizeof(struct told));
    table->names = options->names;
    table->hotspot = options->hotspot;
    table->proof = options->proof;
    table->tsc = options->tsc;
    table->log = options->log;
    table->since = stamp_now(table->tsc);
    pthread_mutex_init(&table->lock, NULL);
    size_t program = options->program && *options->program
                         ? strnlen(options->program, METHODS_PROGRAM_MAX - 1) + 1
                         : 0;
    const struct methods_header head = {
        .magic = METHODS_MAGIC,
        .version = METHODS_VERSION,
        .total_size = (uint32_t)(sizeof head + program),
        .pid = (uint32_t)getpid(),
        .timestamp = stamp_now(table->tsc),
        .flags = table->tsc ? METHODS_FLAGS_ARCH_TIMESTAMP : 0,
    };
    struct record_log_header header = {.size = head.total_size};
    _Static_assert(sizeof head + METHODS_PROGRAM_MAX <= sizeof header.bytes, "room for a header");
    memcpy(header.bytes, &head, sizeof head);
    if (program) {
        memcpy(header.bytes + sizeof head, options->program, program - 1);
    }
    int error = record_log_add_table(table->log, &header);
    if (error != 0) {
        methods_file_close(table);
        return error;
    }
    *out = table;
    return 0;
}

void methods_file_close(struct methods_file *table)
{
    if (table) {
        hash_table_free(&table->told);
        pool_free(&table->memory);
        pthread_mutex_destroy(&table->lock);
        free(table);
    }
}
