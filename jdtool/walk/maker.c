#include "jdtool/walk/maker.h"

#include "jdtool/base/array.h"
#include "jdtool/base/clock.h"
#include "jdtool/base/descriptor.h"
#include "jdtool/base/others_file.h"
#include "jdtool/base/processes.h"
#include "jdtool/confined/confined.h"
#include "jdtool/walk/code_feed.h"
#include "jdtool/walk/layout.h"
#include "jdtool/walk/tables.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

/* Dumps are looked at this often, in ms: while JVMs compile, and when they do not, but for when
 * stacks were copied. Those in code that is not known yet are. */
#define EVERY_LEAST 20
#define EVERY_MOST  2000

/* What is no longer true stays so long, in ms, and who has ended: our parent is asked about each
 * process, which costs as much as all else where nothing is new. */
#define SETTLE_EVERY 100
#define FORGET_EVERY 5000

/* A process that maps libjvm.so and a dump may have no code yet: so often it is looked at again;
 * and after so many it is told. */
#define TRIES_MAX  300
#define TRIES_TOLD 20

/* Where nobody asked for walks: the oldest JDK that tests hold against copies. */
#define OLDEST_BY_DEFAULT 17

/* A part of a file that is mapped to be executed; of all processes. */
struct walked_file {
    struct object *object;
    uint64_t from, to; /* its addresses in the file */
    struct file_rows rows;
    bool is_tried;
};

/* What a process has mapped to be executed, as struct walk_mapping is filled from it. */
struct walked_jvm {
    pid_t pid;
    int directory;   /* /proc/PID: of this very process */
    uint32_t number; /* of its struct walk_jvm; it has that while is_walked */
    bool is_new;     /* what it maps is to be read again */
    bool is_walked;
    bool is_unread;    /* it seems to be a JVM, and is not understood */
    uint64_t entry;    /* where Continuation.enterSpecial ends; 0: it is not there */
    bool wants_frozen; /* its dump tells of frozen frames, and its struct walk_jvm not yet */
    unsigned tries;
    bool has_feed;
    struct code_feed feed;        /* of its dump */
    struct hotspot_layout layout; /* with a feed */
    uint32_t half;                /* of its mappings, that is read now */
    uint32_t mapping_count;
    uint32_t files[WALK_MAPPINGS]; /* what these are of */
};

/* Where a blob of the tables comes from, for the day when a walk wants its rows. */
struct blob_source {
    uint64_t load_offset;
    int64_t verified_entry, osr_entry;
    uint32_t jvm; /* its number */
};

struct maker {
    struct walk_program *program;
    struct walk_told *told;
    bool is_default;
    int notices, wishes;
    struct tables tables;
    struct blob_source *sources; /* by number of the blob */
    struct objects *objects;
    struct walked_jvm *jvms[WALK_JVMS];
    struct walked_file *files;
    uint32_t file_count, file_room;
};

/* ---- Code ---- */

static void add_code(struct maker *maker, struct walked_jvm *jvm, struct fed_code *code)
{
    /* The frame that continuations run in is part of the rows of others. */
    if (code->frames.continuation_entry) {
        code_feed_rows(&jvm->feed, code);
        jvm->entry = code->address + code->size;
        jvm->tries = 0;
    }
    uint32_t number = tables_add_code(&maker->tables, &maker->program->jvms[jvm->number],
                                      code->address, code->size, &code->frames);
    maker->sources[number] = (struct blob_source){.load_offset = code->load_offset,
                                                  .verified_entry = code->verified_entry,
                                                  .osr_entry = code->osr_entry,
                                                  .jvm = jvm->number};
    frames_free(&code->frames.frames);
}

/* Virtual threads have begun, so the heap is there; where the first of them goes to is told a
 * moment later than the code is. */
static void describe_frozen(const struct maker *maker, struct walked_jvm *jvm)
{
    struct walk_frozen frozen;
    struct walk_frozen *its = &maker->program->jvms[jvm->number].frozen;
    int err = layout_frozen(jvm->directory, &jvm->layout, jvm->feed.frozen, &frozen);
    jvm->wants_frozen = err == -EAGAIN && ++jvm->tries < TRIES_MAX;
    if (!err && !its->stack) {
        uint32_t stack = frozen.stack;
        frozen.entry_pc = frozen.entry_pc ? frozen.entry_pc : jvm->entry;
        frozen.stack = 0;
        *its = frozen;
        __atomic_store_n(&its->stack, stack, __ATOMIC_RELEASE);
    }
}

/* What its dump tells of now. True: it was something new. */
static bool follow_code(struct maker *maker, struct walked_jvm *jvm)
{
    struct fed_code code;
    bool is_more = false;
    jitdump_reader_refresh(jvm->feed.reader);
    while (code_feed_next(&jvm->feed, &code)) {
        add_code(maker, jvm, &code);
        is_more = true;
    }
    if (!is_more) {
        jitdump_reader_rest(jvm->feed.reader);
    }
    if (is_more && jvm->entry && !maker->program->jvms[jvm->number].frozen.stack &&
        jvm->tries < TRIES_MAX &&
        jvm->feed.frozen[JITDUMP_CODE_FROZEN_STACK - JITDUMP_CODE_FROZEN_FIRST] > 0) {
        jvm->wants_frozen = true;
    }
    bool wants_frozen = jvm->wants_frozen;
    if (wants_frozen) {
        describe_frozen(maker, jvm);
    }
    return is_more || wants_frozen;
}

/* The rows of a blob that a walk came to. */
static void add_wanted_rows(struct maker *maker, uint32_t number)
{
    const struct blob_source *source = &maker->sources[number];
    const struct walk_blob *blob = &maker->program->blobs[number];
    struct walked_jvm *jvm = maker->jvms[source->jvm];
    bool is_in_continuation = blob->shape == FRAMES_CONTINUATION;
    if (!number || !jvm || !jvm->has_feed || blob->rows ||
        (is_in_continuation && !jvm->feed.entry_frame)) {
        return;
    }
    struct fed_code code = {
        .address = blob->start,
        .size = blob->size,
        .load_offset = source->load_offset,
        .verified_entry = source->verified_entry,
        .osr_entry = source->osr_entry,
        .frames = {.shape = (enum frames_shape)blob->shape,
                   .told_frame_size = blob->flags & WALK_BLOB_TOLD ? (int64_t)blob->frame : -1,
                   .continuation_entry = blob->flags & WALK_BLOB_ENTRY,
                   .return_barrier = blob->flags & WALK_BLOB_BARRIER},
    };
    code_feed_rows(&jvm->feed, &code);
    tables_add_rows(&maker->tables, number, &code.frames);
    frames_free(&code.frames.frames);
}

/* True: there were some. Bits that are set meanwhile are set again by the next walk. */
static bool add_all_wanted_rows(struct maker *maker)
{
    uint64_t *bits = (uint64_t *)maker->program->wanted->bits;
    bool is_some = false;
    for (uint32_t i = 0; i < (maker->tables.blobs + 63) / 64; i++) {
        uint64_t these = bits[i] ? __atomic_exchange_n(&bits[i], 0, __ATOMIC_ACQUIRE) : 0;
        for (; these; these &= these - 1) {
            add_wanted_rows(maker, i * 64 + (uint32_t)__builtin_ctzll(these));
            is_some = true;
        }
    }
    return is_some;
}

static bool open_dump(struct walked_jvm *jvm, const char *path)
{
    struct stat owner;
    int root = openat(jvm->directory, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
    int fd = root >= 0 && fstat(jvm->directory, &owner) == 0
                 ? open_file_below(root, path, owner.st_uid, O_RDONLY)
                 : -1;
    descriptor_close(root);
    jvm->has_feed = fd >= 0 && code_feed_open(&jvm->feed, fd, path) == 0;
    return jvm->has_feed && jitdump_reader_header(jvm->feed.reader)->elf_mach == OWN_MACHINE;
}

/* ---- Mappings ---- */

static bool is_libjvm(const char *path)
{
    return strcmp(basename(path), "libjvm.so") == 0;
}

/* jit-4711.dump */
static bool is_dump(const char *path)
{
    const char *name = basename(path);
    size_t digits = strncmp(name, "jit-", 4) == 0 ? strspn(name + 4, "0123456789") : 0;
    return digits > 0 && strcmp(name + 4 + digits, ".dump") == 0;
}

/* What is found among the mappings of a process. */
struct maps {
    struct maker *maker;
    struct walked_jvm *jvm;
    struct process_root root;
    char libjvm[PATH_MAX], dump[PATH_MAX]; /* as the process sees them; "": not there */
    uint64_t bias;                         /* of libjvm */
};

/* The part of a file that is mapped there, which gets a number. -1: it has none. */
static int64_t find_file(struct maker *maker, const struct walked_jvm *jvm,
                         const struct process_mapping *mapping, uint64_t *bias)
{
    const struct object_place place = {.file = mapping->file,
                                       .pid = (uint32_t)jvm->pid,
                                       .start = mapping->start,
                                       .end = mapping->end};
    struct object *object = objects_find(maker->objects, &place);
    uint64_t from;
    if (!object_address(object, mapping->offset, &from)) {
        objects_let_go(maker->objects, object);
        return -1;
    }
    *bias = mapping->start - from;
    uint64_t to = from + (mapping->end - mapping->start);
    for (uint32_t i = 0; i < maker->file_count; i++) {
        const struct walked_file *file = &maker->files[i];
        if (file->object == object && file->from == from && file->to == to) {
            objects_let_go(maker->objects, object);
            return i;
        }
    }
    if (ARRAY_RESERVE(maker->files, maker->file_count, maker->file_room)) {
        objects_let_go(maker->objects, object);
        return -1;
    }
    maker->files[maker->file_count] =
        (struct walked_file){.object = object, .from = from, .to = to};
    return maker->file_count++;
}

static struct walk_mapping *mappings_of(const struct maker *maker, const struct walked_jvm *jvm)
{
    return maker->program->mappings + ((size_t)jvm->number * 2 + jvm->half) * (size_t)WALK_MAPPINGS;
}

static void fill_mapping(struct walk_mapping *mapping, const struct file_rows *rows)
{
    mapping->base = rows->base;
    mapping->page = rows->page;
    __atomic_store_n(&mapping->grains, rows->grains, __ATOMIC_RELEASE);
}

/* Into the half that is not read. */
static void put_mapping(struct maker *maker, struct walked_jvm *jvm,
                        const struct process_mapping *mapping)
{
    const char *path = mapping->file.path;
    uint64_t bias;
    bool is_file = path[0] == '/' || strcmp(path, "[vdso]") == 0;
    int64_t file = mapping->rights[2] == 'x' && is_file && !is_dump(path)
                       ? find_file(maker, jvm, mapping, &bias)
                       : -1;
    if (file < 0) {
        return;
    }
    if (jvm->mapping_count == WALK_MAPPINGS) {
        maker->tables.is_full = true;
        return;
    }
    struct walk_mapping *its = &mappings_of(maker, jvm)[jvm->mapping_count];
    *its = (struct walk_mapping){.start = mapping->start, .end = mapping->end, .bias = bias};
    fill_mapping(its, &maker->files[file].rows);
    jvm->files[jvm->mapping_count++] = (uint32_t)file;
}

static void find_part(struct maps *maps, const struct process_mapping *mapping)
{
    const char *path = mapping->file.path;
    if (!maps->libjvm[0] && mapping->offset == 0 && is_libjvm(path)) {
        snprintf(maps->libjvm, PATH_MAX, "%s", path);
        maps->bias = mapping->start;
    }
    if (mapping->rights[2] == 'x' && is_dump(path)) {
        snprintf(maps->dump, PATH_MAX, "%s", path);
    }
}

static bool take_mapping(void *context, struct process_mapping *mapping)
{
    struct maps *maps = context;
    mapping->file.path = process_path(&maps->root, mapping->file.path);
    find_part(maps, mapping);
    if (maps->jvm->has_feed) {
        put_mapping(maps->maker, maps->jvm, mapping);
    }
    return true;
}

/* Whether it is a JVM with a dump. One that was known as such has its mappings put then. */
static bool read_maps(struct maps *maps)
{
    struct walked_jvm *jvm = maps->jvm;
    process_root_read(jvm->directory, &maps->root);
    jvm->half ^= jvm->has_feed;
    jvm->mapping_count = 0;
    process_mappings(openat(jvm->directory, "maps", O_RDONLY | O_CLOEXEC), take_mapping, maps);
    return maps->libjvm[0] && maps->dump[0];
}

/* The rows of files that walks came to. One at a time, each costs some 10 ms. */
static bool add_wanted_file(struct maker *maker, const struct walked_jvm *jvm)
{
    struct walk_mapping *list = mappings_of(maker, jvm);
    for (uint32_t i = 0; i < jvm->mapping_count; i++) {
        struct walked_file *file = &maker->files[jvm->files[i]];
        if (list[i].grains || !list[i].wanted || (file->is_tried && !file->rows.grains)) {
            continue;
        }
        if (!file->is_tried) {
            file->is_tried = true;
            file->rows = tables_add_file(&maker->tables, file->object, file->from, file->to);
        }
        fill_mapping(&list[i], &file->rows);
        return true;
    }
    return false;
}

/* ---- Processes ---- */

/* Only our parent may tell the program. False: the process is no longer sampled. */
static bool walk(const struct maker *maker, const struct walked_jvm *jvm, uint32_t value)
{
    const struct walk_wish wish = {.process = (uint32_t)jvm->pid, .value = value};
    int err;
    return write(maker->wishes, &wish, sizeof wish) == sizeof wish &&
           read(maker->wishes, &err, sizeof err) == sizeof err && !err;
}

static void stop_walking(struct maker *maker, struct walked_jvm *jvm)
{
    if (jvm->is_walked) {
        (void)walk(maker, jvm, WALK_COPY);
        jvm->is_walked = false;
    }
}

static void forget_code(struct maker *maker, struct walked_jvm *jvm)
{
    tables_remove_code(&maker->tables, &maker->program->jvms[jvm->number]);
    code_feed_close(&jvm->feed);
    jvm->has_feed = false;
    jvm->entry = 0;
    jvm->wants_frozen = false;
}

static void forget_jvm(struct maker *maker, uint32_t at)
{
    struct walked_jvm *jvm = maker->jvms[at];
    stop_walking(maker, jvm);
    forget_code(maker, jvm);
    close(jvm->directory);
    free(jvm);
    maker->jvms[at] = NULL;
}

/* Its struct walk_jvm with what is known of it, not yet walked by. False: it is not there yet. */
static bool describe(const struct maps *maps)
{
    struct maker *maker = maps->maker;
    struct walked_jvm *jvm = maps->jvm;
    struct walk_layout layout;
    uint32_t version = UINT32_MAX;
    /* A dump has a head at first, and code when all heaps of the code cache are made. */
    struct fed_code first;
    bool is_known = open_dump(jvm, maps->dump) && code_feed_next(&jvm->feed, &first) &&
                    layout_read(jvm->directory, maps->libjvm, maps->bias, &jvm->layout) == 0 &&
                    layout_code_cache(jvm->directory, &jvm->layout, &layout, &version) == 0;
    bool is_too_old = maker->is_default && version < OLDEST_BY_DEFAULT;
    if (!is_known || is_too_old) {
        jvm->tries = is_too_old ? TRIES_MAX : jvm->tries;
        forget_code(maker, jvm);
        return false;
    }
    struct walk_jvm *its = &maker->program->jvms[jvm->number];
    *its = (struct walk_jvm){.layout = layout, .code_low = UINT64_MAX};
    for (int i = 0; i < WALK_HEAPS; i++) {
        if (layout.heaps[i].low && layout.heaps[i].low < its->code_low) {
            its->code_low = layout.heaps[i].low;
        }
    }
    add_code(maker, jvm, &first);
    return true;
}

/* What it maps has changed, or is not known. */
static void look(struct maker *maker, struct walked_jvm *jvm)
{
    struct maps maps = {.maker = maker, .jvm = jvm};
    bool is_jvm = read_maps(&maps);
    jvm->is_new = false;
    if (jvm->has_feed && !is_jvm) { /* it runs another program */
        stop_walking(maker, jvm);
        forget_code(maker, jvm);
    } else if (!jvm->has_feed && is_jvm) {
        if (describe(&maps)) {
            (void)read_maps(&maps);
        } else {
            jvm->is_new = jvm->tries < TRIES_MAX && ++jvm->tries < TRIES_MAX;
        }
    }
    bool is_unread = !jvm->has_feed && (jvm->is_unread || jvm->tries == TRIES_TOLD);
    maker->told->unread += (uint32_t)is_unread - (uint32_t)jvm->is_unread;
    jvm->is_unread = is_unread;
    if (jvm->has_feed) {
        __atomic_store_n(&maker->program->jvms[jvm->number].mappings,
                         (uint64_t)jvm->half << 32 | jvm->mapping_count, __ATOMIC_RELEASE);
        (void)follow_code(maker, jvm);
        if (!jvm->is_walked) {
            jvm->is_walked = walk(maker, jvm, jvm->number + WALK_FIRST_JVM);
        }
    }
}

/* Whether there was something to do. */
static bool look_after(struct maker *maker, struct walked_jvm *jvm)
{
    bool was_new = jvm->is_new;
    if (was_new) {
        look(maker, jvm);
    }
    bool is_more = jvm->is_walked && follow_code(maker, jvm);
    bool is_file = jvm->is_walked && add_wanted_file(maker, jvm);
    return was_new || is_more || is_file;
}

static void forget_ended(struct maker *maker)
{
    for (uint32_t i = 0; i < WALK_JVMS; i++) {
        if (maker->jvms[i] && faccessat(maker->jvms[i]->directory, "maps", F_OK, 0) != 0) {
            forget_jvm(maker, i);
        }
    }
}

/* As above, of all. Who is no JVM, as most children of one, leaves his place to others: should he
 * become one, he maps more code, and is noticed again. */
static bool look_after_all(struct maker *maker)
{
    bool is_busy = false;
    for (uint32_t i = 0; i < WALK_JVMS; i++) {
        struct walked_jvm *jvm = maker->jvms[i];
        is_busy |= jvm && look_after(maker, jvm);
        if (jvm && !jvm->is_new && !jvm->has_feed && !jvm->is_unread) {
            forget_jvm(maker, i);
        }
    }
    return is_busy;
}

/* Its place among those that are looked after; or else one that is free, or `most`. */
static uint32_t place_of(const struct maker *maker, pid_t pid, uint32_t most)
{
    uint32_t unused = most;
    for (uint32_t i = 0; i < most; i++) {
        if (maker->jvms[i] && maker->jvms[i]->pid == pid) {
            return i;
        }
        unused = !maker->jvms[i] && unused == most ? i : unused;
    }
    return unused;
}

static void take_notice(struct maker *maker, pid_t pid)
{
    const uint32_t most = maker->program->room.jvms;
    uint32_t place = place_of(maker, pid, most);
    if (place == most) {
        forget_ended(maker);
        (void)look_after_all(maker);
        place = place_of(maker, pid, most);
    }
    if (place < most && maker->jvms[place]) {
        maker->jvms[place]->is_new = true;
        return;
    }
    struct walked_jvm *jvm = place < most ? calloc(1, sizeof *jvm) : NULL;
    maker->told->is_out_of_jvms |= !jvm;
    if (jvm && (jvm->directory = process_directory_open(pid)) >= 0) {
        jvm->pid = pid;
        jvm->number = place;
        jvm->is_new = true;
        maker->jvms[place] = jvm;
        return;
    }
    free(jvm);
}

static uint64_t now(void)
{
    return clock_ns(CLOCK_MONOTONIC) / 1000000;
}

/* Looks after the tables until our parent has ended. */
static void make_tables(struct maker *maker)
{
    int every = EVERY_LEAST;
    uint64_t settled = now();
    uint64_t forgotten = settled;
    for (;;) {
        uint64_t time = now();
        if (time - forgotten >= FORGET_EVERY) {
            forgotten = time;
            forget_ended(maker);
        }
        if (time - settled >= SETTLE_EVERY) {
            settled = time;
            tables_settle(&maker->tables);
        }
        bool is_busy = look_after_all(maker);
        is_busy |= add_all_wanted_rows(maker);
        maker->told->is_full |= maker->tables.is_full;
        every = is_busy ? EVERY_LEAST : every * 2 < EVERY_MOST ? every * 2 : EVERY_MOST;
        struct pollfd woken = {.fd = maker->notices, .events = POLLIN};
        pid_t noticed[64];
        if (poll(&woken, 1, every) <= 0) {
            continue;
        }
        ssize_t got = read(maker->notices, noticed, sizeof noticed);
        if (got <= 0) {
            return;
        }
        for (size_t i = 0; i < (size_t)got / sizeof *noticed; i++) {
            if (noticed[i] != MAKER_NOBODY) {
                take_notice(maker, noticed[i]);
            }
        }
    }
}

/* Nothing is open in it but what it says, and these two. */
static void close_others(struct maker *maker, int notices, int wishes)
{
    enum { NOTICES = 3, WISHES, OTHERS };
    int nowhere = open("/dev/null", O_RDWR);
    int kept[] = {fcntl(nowhere, F_DUPFD, OTHERS), fcntl(notices, F_DUPFD, OTHERS),
                  fcntl(wishes, F_DUPFD, OTHERS)};
    if (dup2(kept[0], STDIN_FILENO) < 0 || dup2(kept[0], STDOUT_FILENO) < 0 ||
        dup2(kept[1], NOTICES) < 0 || dup2(kept[2], WISHES) < 0) {
        _exit(EXIT_FAILURE);
    }
    closefrom(OTHERS);
    maker->notices = NOTICES;
    maker->wishes = WISHES;
}

void maker_run(struct walk_program *program, struct walk_told *told, bool is_default, int notices,
               int wishes)
{
    static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT}; /* our parent's concern */
    struct maker maker = {.program = program, .told = told, .is_default = is_default};
    struct utsname name = {0};
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++) {
        (void)signal(ignored[i], SIG_IGN);
    }
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)prctl(PR_SET_NAME, "jdperf-walker");
    bool is_mapped = walk_program_map(program);
    close_others(&maker, notices, wishes);
    (void)uname(&name);
    const struct objects_options objects = {
        .machine = OWN_MACHINE, .here = true, .os_release = name.release, .sparing = true};
    tables_new(&maker.tables, program, OWN_MACHINE);
    maker.sources = calloc(program->room.blobs, sizeof *maker.sources);
    if (is_mapped && maker.sources && objects_new(&objects, &maker.objects) == 0 &&
        confined_enter(dup(maker.wishes))) {
        make_tables(&maker);
    }
    _exit(EXIT_SUCCESS);
}
