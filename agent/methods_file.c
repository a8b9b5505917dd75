/*
 * A record is built without a lock, in memory of the callback that builds it; the lock is held for
 * the write and for the set of methods told of. The set is what keeps catching up from telling of a
 * class twice; it holds addresses, which the JVM uses again, so it grows with the classes that are
 * there at a time, not with those that come and go.
 */
#include "agent/methods_file.h"

#include "agent/source_map.h"
#include "format/methods.h"
#include "writer/buffer.h"
#include "writer/message.h"
#include "writer/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The largest record: a class with thousands of methods takes some hundred KB. */
#define RECORD_MAX ((size_t)16 << 20)

struct methods_file {
    struct method_cache_options names;
    struct hotspot *hotspot;
    bool tsc;
    uint64_t max_bytes;
    pthread_mutex_t lock;
    struct output_file file;
    uint64_t *seen; /* open addressing, a power of two; 0: free */
    size_t seen_count;
    size_t seen_room;
    atomic_bool closed; /* after a fault */
};

/* What is needed to build a record. */
struct builder {
    struct methods_file *table;
    jvmtiEnv *jvmti;
    JNIEnv *jni;
    struct buffer record;
    struct source_map *map; /* of the class, NULL: none */
    uint64_t previous;      /* Method of the record's last method */
    uint64_t *methods;      /* those of the record */
    size_t count;
    char name[SYMBOL_MAX];
};

static uint64_t stamp(const struct methods_file *table)
{
#ifdef __x86_64__
    if (table->tsc) {
        return __builtin_ia32_rdtsc();
    }
#else
    (void)table;
#endif
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* ---- The set of methods told of; under the lock ---- */

static size_t slot_of(const struct methods_file *table, uint64_t method)
{
    size_t mask = table->seen_room - 1;
    size_t slot = (size_t)(method * UINT64_C(0x9e3779b97f4a7c15) >> 32) & mask;
    while (table->seen[slot] && table->seen[slot] != method) {
        slot = (slot + 1) & mask;
    }
    return slot;
}

static bool is_seen(const struct methods_file *table, uint64_t method)
{
    return table->seen_room && table->seen[slot_of(table, method)];
}

/* Without memory the method is forgotten, and perhaps told of once more. */
static void remember(struct methods_file *table, uint64_t method)
{
    if (table->seen_count * 2 >= table->seen_room) {
        struct methods_file bigger = {.seen_room = table->seen_room ? table->seen_room * 2 : 4096};
        bigger.seen = calloc(bigger.seen_room, sizeof *bigger.seen);
        if (!bigger.seen) {
            return;
        }
        for (size_t i = 0; i < table->seen_room; i++) {
            if (table->seen[i]) {
                bigger.seen[slot_of(&bigger, table->seen[i])] = table->seen[i];
            }
        }
        free(table->seen);
        table->seen = bigger.seen;
        table->seen_room = bigger.seen_room;
    }
    size_t slot = slot_of(table, method);
    table->seen_count += table->seen[slot] == 0;
    table->seen[slot] = method;
}

/* ---- Records ---- */

static void give_back(const struct builder *builder, void *memory)
{
    if (memory) {
        (*builder->jvmti)->Deallocate(builder->jvmti, memory);
    }
}

static void put_lines(struct builder *builder, const struct fetched_method *fetched)
{
    struct line_entry stack[256];
    struct line_entry *lines = stack;
    uint32_t count = 0;
    if (fetched->line_count > 256) {
        lines = malloc((size_t)fetched->line_count * sizeof *lines);
    }
    if (lines) {
        count = method_fetch_lines(fetched, lines);
    }
    buffer_put_uleb(&builder->record, count);
    struct line_entry last = {0};
    for (uint32_t i = 0; i < count; i++) {
        /* A frame has one line here: of inlined code that of its call, which is in the class's
         * file. One that is not known goes on with the line before. */
        uint32_t line = source_map_find(builder->map, lines[i].line).line;
        lines[i].line = line ? line : last.line;
        buffer_put_uleb(&builder->record, lines[i].bci - last.bci);
        buffer_put_sleb(&builder->record, (int64_t)lines[i].line - last.line);
        last = lines[i];
    }
    if (lines != stack) {
        free(lines);
    }
}

static void put_method(struct builder *builder, const struct hotspot_method *method,
                       const struct fetched_class *klass, const struct fetched_method *fetched)
{
    struct buffer *record = &builder->record;
    method_symbol(builder->name, &builder->table->names, klass->signature, klass->source_file,
                  fetched);
    buffer_put_sleb(record, (int64_t)(method->address - builder->previous));
    buffer_put_sleb(record, (int64_t)(method->bytecodes - method->address));
    buffer_put_uleb(record, fetched->native ? 0 : method->bytecode_size);
    buffer_put_string(record, builder->name);
    put_lines(builder, fetched);
    builder->previous = method->address;
    builder->methods[builder->count++] = method->address;
}

static void add_method(struct builder *builder, const struct fetched_class *klass, jmethodID id)
{
    struct hotspot_method method;
    struct fetched_method fetched;
    if (!hotspot_method(builder->table->hotspot, id, &method) ||
        !method_fetch(builder->jvmti, id, &fetched)) {
        return;
    }
    if (fetched.native || method.bytecode_size > 0) { /* abstract methods never run */
        put_method(builder, &method, klass, &fetched);
    }
    method_fetch_free(builder->jvmti, &fetched);
}

/* Closes the table for good; the lock is held. The reason has been told. */
static void give_up(struct methods_file *table)
{
    atomic_store(&table->closed, true);
    output_file_close(&table->file);
}

static void write_record(struct builder *builder, enum methods_record_id id)
{
    struct methods_file *table = builder->table;
    struct buffer *record = &builder->record;
    if (record->failed) {
        message(MESSAGE_DEBUG, "no memory for the methods of a class");
        return;
    }
    pthread_mutex_lock(&table->lock);
    struct methods_record prefix = {
        .id = id, .total_size = (uint32_t)record->size, .timestamp = stamp(table)};
    memcpy(record->bytes, &prefix, sizeof prefix);
    if (atomic_load(&table->closed)) {
        /* nothing */
    } else if (table->max_bytes && table->file.size + record->size > table->max_bytes) {
        message(MESSAGE_WARNING,
                "%s stops at max=%" PRIu64 ": later interpreted frames stay unnamed",
                table->file.path, table->max_bytes);
        give_up(table);
    } else if (output_file_append(&table->file, record->bytes, record->size) != 0) {
        give_up(table);
    } else {
        for (size_t i = 0; i < builder->count; i++) {
            remember(table, builder->methods[i]);
        }
    }
    pthread_mutex_unlock(&table->lock);
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

/* Has any of these methods not been told of? */
static bool has_news(const struct builder *builder, const jmethodID *ids, jint count)
{
    bool news = false;
    struct hotspot_method method;
    pthread_mutex_lock(&builder->table->lock);
    for (jint i = 0; i < count && !news; i++) {
        news = hotspot_method(builder->table->hotspot, ids[i], &method) &&
               method.bytecode_size > 0 && !is_seen(builder->table, method.address);
    }
    pthread_mutex_unlock(&builder->table->lock);
    return news;
}

static void add_class(struct builder *builder, jclass klass, enum methods_record_id id)
{
    jvmtiEnv *jvmti = builder->jvmti;
    struct fetched_class fetched;
    jmethodID *ids = NULL;
    jint count = 0;
    /* Classes that are not prepared yet fail here; their event is still to come. */
    if ((*jvmti)->GetClassMethods(jvmti, klass, &count, &ids) != JVMTI_ERROR_NONE) {
        return;
    }
    builder->methods = count > 0 ? malloc((size_t)count * sizeof *builder->methods) : NULL;
    if (builder->methods && (id == METHODS_PREPARED || has_news(builder, ids, count)) &&
        class_fetch(jvmti, klass, &fetched)) {
        builder->map = source_map_new(fetched.source_map, fetched.signature);
        buffer_clear(&builder->record);
        (void)buffer_extend(&builder->record, sizeof(struct methods_record));
        builder->previous = 0;
        builder->count = 0;
        put_source_path(builder, &fetched);
        for (jint i = 0; i < count; i++) {
            add_method(builder, &fetched, ids[i]);
        }
        if (builder->count) {
            write_record(builder, id);
        }
        source_map_free(builder->map);
        builder->map = NULL;
        class_fetch_free(jvmti, &fetched);
    }
    free(builder->methods);
    give_back(builder, ids);
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

void methods_file_catch_up(struct methods_file *table, jvmtiEnv *jvmti, JNIEnv *jni)
{
    jint count = 0;
    jclass *classes = NULL;
    struct builder *builder = new_builder(table, jvmti, jni);
    if (!builder) {
        return;
    }
    if ((*jvmti)->GetLoadedClasses(jvmti, &count, &classes) == JVMTI_ERROR_NONE) {
        for (jint i = 0; i < count; i++) {
            if (!atomic_load(&table->closed)) {
                add_class(builder, classes[i], METHODS_FOUND);
            }
            (*jni)->DeleteLocalRef(jni, classes[i]);
        }
        give_back(builder, classes);
    }
    free_builder(builder);
}

/* ---- The file ---- */

static int write_header(struct methods_file *table)
{
    struct methods_header header = {
        .magic = METHODS_MAGIC,
        .version = METHODS_VERSION,
        .total_size = sizeof header,
        .pid = (uint32_t)getpid(),
        .timestamp = stamp(table),
        .flags = table->tsc ? METHODS_FLAGS_ARCH_TIMESTAMP : 0,
    };
    return output_file_append(&table->file, &header, sizeof header);
}

int methods_file_open(const struct methods_file_options *options, struct methods_file **out)
{
    static const char dump_suffix[] = ".dump";
    char path[PATH_MAX];
    size_t stem = strlen(options->dump);
    size_t suffix = sizeof dump_suffix - 1;
    if (!options->names.ids_are_pointers || !hotspot_knows_methods(options->hotspot)) {
        message(MESSAGE_WARNING, "failed to start the table of methods: this JVM does not tell "
                                 "where it keeps them; interpreted frames stay unnamed");
        return -1;
    }
    if (stem > suffix && strcmp(options->dump + stem - suffix, dump_suffix) == 0) {
        stem -= suffix;
    }
    if (snprintf(path, sizeof path, "%.*s.methods", (int)stem, options->dump) >= (int)sizeof path) {
        message(MESSAGE_ERROR, "failed to start the table of methods: the path is too long");
        return -1;
    }
    struct methods_file *table = calloc(1, sizeof *table);
    if (!table) {
        message(MESSAGE_ERROR, "failed to start %s: no memory", path);
        return -1;
    }
    table->names = options->names;
    table->hotspot = options->hotspot;
    table->tsc = options->tsc;
    table->max_bytes = options->max_bytes;
    pthread_mutex_init(&table->lock, NULL);
    if (output_file_create(&table->file, AT_FDCWD, path, OUTPUT_FILE_REFUSE) != 0 ||
        write_header(table) != 0) {
        methods_file_close(table);
        return -1;
    }
    *out = table;
    return 0;
}

void methods_file_close(struct methods_file *table)
{
    if (table) {
        output_file_release(&table->file);
        pthread_mutex_destroy(&table->lock);
        free(table->seen);
        free(table);
    }
}
