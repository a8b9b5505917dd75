/*
 * A collector of Intel's JIT Profiling API for tests: takes every event as a real one would, checks
 * the rules that the API's document sets, and writes one line of tab-separated fields for each to
 * the file that JD_ITT_LOG names:
 *
 *   load     id address size name class source module
 *   inline   id parent address size name class source
 *   line     end line                                    of the region before it
 *   unload   id
 *   BREACH   what                                        a rule was broken by the event before it
 *   end      events breaches                             after SHUTDOWN
 *
 * Unknown strings are "-". Everything an event points to is copied before NotifyEvent returns, and
 * the copies alone are written, after the event's memory could be gone.
 */
#include "format/itt.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

unsigned Initialize(void);
unsigned NotifyEvent(unsigned event, void *data);

/* A region that was reported, deep-copied. */
struct region {
    uint32_t id;
    uint32_t parent; /* 0: a method's own */
    uint64_t address;
    uint32_t size;
    bool live;
    char *name;
    char *class_name;
    char *source;
    char *module;
    struct itt_line *lines;
    uint32_t line_count;
    uint32_t first_child; /* index + 1 of the last region reported inside this one */
    uint32_t next_sibling;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static FILE *log_file;
static bool initialized;
static bool shut_down;
static unsigned long events;
static unsigned long breaches;
static struct region *regions; /* by id - ITT_FIRST_METHOD_ID; id 0: not reported */
static size_t region_room;
/* Live methods (not inlined ones), sorted by address. */
static struct region **live;
static size_t live_count;
static size_t live_room;

static void breach(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void breach(const char *format, ...)
{
    breaches++;
    va_list args;
    va_start(args, format);
    fputs("BREACH\t", log_file);
    vfprintf(log_file, format, args);
    fputc('\n', log_file);
    va_end(args);
}

static void *checked(void *allocated)
{
    if (!allocated) {
        breach("the collector has no memory");
        fflush(log_file);
        abort(); /* a test's own process */
    }
    return allocated;
}

static char *copy(const char *s)
{
    return checked(strdup(s ? s : "-"));
}

/* The slot of an id, or NULL for one that no program may use or this collector has no room for. */
static struct region *region_of(uint32_t id)
{
    if (id < ITT_FIRST_METHOD_ID || id - ITT_FIRST_METHOD_ID >= region_room) {
        return NULL;
    }
    return &regions[id - ITT_FIRST_METHOD_ID];
}

static void check_lines(const struct region *region)
{
    uint32_t before = 0;
    for (uint32_t i = 0; i < region->line_count; i++) {
        uint32_t end = region->lines[i].end;
        if (end <= before) {
            breach("line ranges of %u do not ascend: %u after %u", region->id, end, before);
        }
        if (end > region->size) {
            breach("line range of %u ends at %u, behind its size %u", region->id, end,
                   region->size);
        }
        before = end;
    }
}

static void kill_with_children(struct region *region)
{
    region->live = false;
    for (uint32_t i = region->first_child; i != 0;) {
        struct region *child = &regions[i - 1];
        kill_with_children(child);
        i = child->next_sibling;
    }
}

/* The first live method that ends behind address. */
static size_t live_at(uint64_t address)
{
    size_t low = 0;
    size_t high = live_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (live[middle]->address + live[middle]->size <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static void live_remove(size_t at)
{
    kill_with_children(live[at]);
    memmove(&live[at], &live[at + 1], (live_count - at - 1) * sizeof(struct region *));
    live_count--;
}

/* A load invalidates what it overwrites; that is in order. */
static void live_add(struct region *region)
{
    size_t at = live_at(region->address);
    while (at < live_count && live[at]->address < region->address + region->size) {
        live_remove(at);
    }
    if (live_count == live_room) {
        live_room = live_room ? live_room * 2 : 1024;
        live = checked(realloc(live, live_room * sizeof(struct region *)));
    }
    memmove(&live[at + 1], &live[at], (live_count - at) * sizeof(struct region *));
    live[at] = region;
    live_count++;
}

static void print_lines(const struct region *region)
{
    for (uint32_t i = 0; i < region->line_count; i++) {
        fprintf(log_file, "line\t%u\t%u\n", region->lines[i].end, region->lines[i].line);
    }
}

/* What a method and an inlined call have in common. NULL: refused. */
static struct region *new_region(uint32_t id, const char *name, const void *address, uint32_t size,
                                 const struct itt_line *lines, uint32_t line_count)
{
    struct region *region = region_of(id);
    if (!region) {
        breach("method id %u is out of range", id);
        return NULL;
    }
    if (region->id != 0) {
        breach("method id %u is used again", id);
        return NULL;
    }
    if (!name) {
        breach("method %u has no name", id);
    }
    if (size == 0 || !address) {
        breach("method %u has no code", id);
    }
    if (line_count > 0 && !lines) {
        breach("method %u has %u lines and no table", id, line_count);
        line_count = 0;
    }
    *region = (struct region){
        .id = id,
        .address = (uintptr_t)address,
        .size = size,
        .live = true,
        .name = copy(name),
        .line_count = line_count,
    };
    if (line_count > 0) {
        region->lines = checked(malloc(line_count * sizeof(*lines)));
        memcpy(region->lines, lines, line_count * sizeof(*lines));
    }
    return region;
}

static void on_load(const struct itt_method_load *load)
{
    struct region *region = new_region(load->method_id, load->method_name, load->address,
                                       load->size, load->lines, load->line_count);
    if (!region) {
        return;
    }
    region->class_name = copy(load->class_name);
    region->source = copy(load->source_file);
    region->module = copy(load->module_name);
    live_add(region);
    fprintf(log_file, "load\t%u\t%" PRIx64 "\t%u\t%s\t%s\t%s\t%s\n", region->id, region->address,
            region->size, region->name, region->class_name, region->source, region->module);
    print_lines(region);
    check_lines(region);
}

static void check_place(const struct region *region, struct region *parent)
{
    if (!parent->live) {
        breach("inline %u: its parent %u is no longer loaded", region->id, parent->id);
    }
    if (region->address < parent->address ||
        region->address + region->size > parent->address + parent->size) {
        breach("inline %u lies outside its parent %u", region->id, parent->id);
    }
    for (uint32_t i = parent->first_child; i != 0; i = regions[i - 1].next_sibling) {
        const struct region *sibling = &regions[i - 1];
        if (region->address < sibling->address + sibling->size &&
            sibling->address < region->address + region->size) {
            breach("inline %u overlaps its sibling %u", region->id, sibling->id);
        }
    }
}

static void on_inline(const struct itt_inline_load *load)
{
    struct region *region = new_region(load->method_id, load->method_name, load->address,
                                       load->size, load->lines, load->line_count);
    if (!region) {
        return;
    }
    region->class_name = copy(load->class_name);
    region->source = copy(load->source_file);
    region->parent = load->parent_method_id;
    fprintf(log_file, "inline\t%u\t%u\t%" PRIx64 "\t%u\t%s\t%s\t%s\n", region->id, region->parent,
            region->address, region->size, region->name, region->class_name, region->source);
    print_lines(region);
    check_lines(region);
    struct region *parent = region_of(region->parent);
    if (!parent || parent->id == 0) {
        breach("inline %u: its parent %u was not reported", region->id, region->parent);
        return;
    }
    check_place(region, parent);
    region->next_sibling = parent->first_child;
    parent->first_child = region->id - ITT_FIRST_METHOD_ID + 1;
}

static void on_unload(const struct itt_method_id *data)
{
    fprintf(log_file, "unload\t%u\n", data->method_id);
    struct region *region = region_of(data->method_id);
    if (!region || region->id == 0 || region->parent != 0) {
        breach("unload of %u, which is no method that was loaded", data->method_id);
        return;
    }
    if (!region->live) {
        breach("unload of %u, which is gone already", data->method_id);
        return;
    }
    live_remove(live_at(region->address));
}

EXPORT unsigned Initialize(void)
{
    pthread_mutex_lock(&lock);
    if (!log_file) {
        const char *path = getenv("JD_ITT_LOG");
        log_file = path ? fopen(path, "we") : stderr;
        if (!log_file) {
            log_file = stderr;
        }
        region_room = 4000000; /* the final size: pointers into the table are kept */
        regions = checked(calloc(region_room, sizeof(*regions)));
    }
    initialized = true;
    shut_down = false;
    pthread_mutex_unlock(&lock);
    return getenv("JD_ITT_IDLE") ? 0 : 1;
}

EXPORT unsigned NotifyEvent(unsigned event, void *data)
{
    pthread_mutex_lock(&lock);
    events++;
    if (!initialized) {
        log_file = log_file ? log_file : stderr;
        breach("event %u before Initialize", event);
        pthread_mutex_unlock(&lock);
        return 0;
    }
    if (shut_down) {
        breach("event %u after SHUTDOWN", event);
    }
    if (event != ITT_SHUTDOWN && !data) {
        breach("event %u without data", event);
    } else if (event == ITT_METHOD_LOAD_FINISHED_V2) {
        on_load(data);
    } else if (event == ITT_METHOD_INLINE_LOAD_FINISHED) {
        on_inline(data);
    } else if (event == ITT_METHOD_UNLOAD_START) {
        on_unload(data);
    } else if (event == ITT_SHUTDOWN) {
        if (data) {
            breach("SHUTDOWN with data");
        }
        shut_down = true;
        fprintf(log_file, "end\t%lu\t%lu\n", events, breaches);
        fflush(log_file);
    } else {
        breach("event %u is not one this collector expects", event);
    }
    pthread_mutex_unlock(&lock);
    return 1;
}
