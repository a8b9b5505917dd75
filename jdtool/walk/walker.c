#include "jdtool/walk/walker.h"

#include "jdtool/base/array.h"
#include "jdtool/base/bytes.h"
#include "jdtool/base/clock.h"
#include "jdtool/base/descriptor.h"
#include "jdtool/base/message.h"
#include "jdtool/base/others_file.h"
#include "jdtool/base/processes.h"
#include "jdtool/base/threads.h"
#include "jdtool/confined/confined.h"
#include "jdtool/walk/code_feed.h"
#include "jdtool/walk/layout.h"
#include "jdtool/walk/libbpf.h"
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
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Dumps are looked at this often, in ms: while JVMs compile, and when they do not. Stacks in code
 * that is not known yet are copied meanwhile. */
#define EVERY_LEAST 20
#define EVERY_MOST  200

#define NICE (-10)

/* What is no longer true stays so long, in ms, and who has ended: our parent is asked about each
 * process, which costs as much as all else where nothing is new. */
#define SETTLE_EVERY 100
#define FORGET_EVERY 1000

/* A process that maps libjvm.so and a dump may have no code yet: so often it is looked at again;
 * and after so many it is told. */
#define TRIES_MAX  300
#define TRIES_TOLD 20

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
    struct code_feed feed; /* of its dump */
    uint32_t half;         /* of its mappings, that is read now */
    uint32_t mapping_count;
    uint32_t files[WALK_MAPPINGS]; /* what these are of */
};

/* Where a blob of the tables comes from, for the day when a walk wants its rows. */
struct blob_source {
    uint64_t load_offset;
    int64_t verified_entry, osr_entry;
    uint32_t jvm; /* its number */
};

/* What the process that makes the tables asks of us: a value for the program's map of processes.
 * Answered by an int, 0 or a negative errno. */
struct walk_wish {
    uint32_t process, value;
};

/* What it tells, to be doubted. */
struct walk_told {
    bool is_full, is_out_of_jvms;
    uint32_t unread; /* JVMs whose dump or libjvm.so could not be read */
};

/* A process that is sampled: the one that makes the tables may look into this very one. */
struct held_process {
    pid_t pid;
    int directory; /* /proc/PID */
};

struct walker {
    struct walk_program program;
    struct walk_told *told; /* shared by both */
    int notices;            /* numbers of processes: written by us, read by it */
    int wishes;             /* a socket */

    /* Ours. */
    struct walker_options options;
    struct walk_maps maps;
    bool has_begun, has_thread;
    _Atomic bool is_loaded; /* set by our thread, as has_died */
    bool has_died;
    pid_t maker;
    pthread_t thread;
    int wake; /* an eventfd */
    pthread_mutex_t lock;
    pid_t *noticed; /* under the lock, as what follows */
    uint32_t noticed_count, noticed_room;
    bool ends;

    /* Our thread's. */
    struct rights *rights;
    struct confined *confined;
    struct held_process *held;
    uint32_t held_count, held_room;

    /* That process'. */
    struct tables tables;
    struct blob_source *sources; /* by number of the blob */
    struct objects *objects;
    struct walked_jvm *jvms[WALK_JVMS];
    struct walked_file *files;
    uint32_t file_count, file_room;
};

/* ---- Code ---- */

static void add_code(struct walker *walker, struct walked_jvm *jvm, struct fed_code *code)
{
    /* The frame that continuations run in is part of the rows of others. */
    if (code->frames.continuation_entry) {
        code_feed_rows(&jvm->feed, code);
        jvm->entry = code->address + code->size;
        jvm->tries = 0;
    }
    uint32_t number = tables_add_code(&walker->tables, &walker->program.jvms[jvm->number],
                                      code->address, code->size, &code->frames);
    walker->sources[number] = (struct blob_source){.load_offset = code->load_offset,
                                                   .verified_entry = code->verified_entry,
                                                   .osr_entry = code->osr_entry,
                                                   .jvm = jvm->number};
    frames_free(&code->frames.frames);
}

/* What its dump tells of now. True: it was something new. */
static bool follow_code(struct walker *walker, struct walked_jvm *jvm)
{
    struct fed_code code;
    bool is_more = false;
    jitdump_reader_refresh(jvm->feed.reader);
    while (code_feed_next(&jvm->feed, &code)) {
        add_code(walker, jvm, &code);
        is_more = true;
    }
    if (!is_more) {
        jitdump_reader_rest(jvm->feed.reader);
    }
    if (is_more && jvm->entry && !walker->program.jvms[jvm->number].frozen.stack &&
        jvm->tries < TRIES_MAX &&
        jvm->feed.frozen[JITDUMP_CODE_FROZEN_STACK - JITDUMP_CODE_FROZEN_FIRST] > 0) {
        jvm->is_new = jvm->wants_frozen = true;
    }
    return is_more;
}

/* The rows of a blob that a walk came to. */
static void add_wanted_rows(struct walker *walker, uint32_t number)
{
    const struct blob_source *source = &walker->sources[number];
    const struct walk_blob *blob = &walker->program.blobs[number];
    struct walked_jvm *jvm = walker->jvms[source->jvm];
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
    tables_add_rows(&walker->tables, number, &code.frames);
    frames_free(&code.frames.frames);
}

/* True: there were some. Bits that are set meanwhile are set again by the next walk. */
static bool add_all_wanted_rows(struct walker *walker)
{
    uint64_t *bits = (uint64_t *)walker->program.wanted->bits;
    bool is_some = false;
    for (uint32_t i = 0; i < (walker->tables.blobs + 63) / 64; i++) {
        uint64_t these = bits[i] ? __atomic_exchange_n(&bits[i], 0, __ATOMIC_ACQUIRE) : 0;
        for (; these; these &= these - 1) {
            add_wanted_rows(walker, i * 64 + (uint32_t)__builtin_ctzll(these));
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
    if (root >= 0) {
        close(root);
    }
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

/* What a process maps: whoever needs its mappings reads them. */
struct maps {
    struct walker *walker;
    struct walked_jvm *jvm;
    struct process_root root;
    char libjvm[PATH_MAX], dump[PATH_MAX]; /* as the process sees them; "": not there */
    uint64_t bias;                         /* of libjvm */
};

static void read_maps(struct maps *maps, bool (*take)(void *, struct process_mapping *))
{
    process_mappings(openat(maps->jvm->directory, "maps", O_RDONLY | O_CLOEXEC), take, maps);
}

/* The part of a file that is mapped there, which gets a number. -1: it has none. */
static int64_t find_file(struct walker *walker, const struct walked_jvm *jvm,
                         const struct process_mapping *mapping, uint64_t *bias)
{
    const struct object_place place = {.file = mapping->file,
                                       .pid = (uint32_t)jvm->pid,
                                       .start = mapping->start,
                                       .end = mapping->end};
    struct object *object = objects_find(walker->objects, &place);
    uint64_t from;
    if (!object_address(object, mapping->offset, &from)) {
        objects_let_go(walker->objects, object);
        return -1;
    }
    *bias = mapping->start - from;
    uint64_t to = from + (mapping->end - mapping->start);
    for (uint32_t i = 0; i < walker->file_count; i++) {
        const struct walked_file *file = &walker->files[i];
        if (file->object == object && file->from == from && file->to == to) {
            objects_let_go(walker->objects, object);
            return i;
        }
    }
    if (ARRAY_RESERVE(walker->files, walker->file_count, walker->file_room)) {
        objects_let_go(walker->objects, object);
        return -1;
    }
    walker->files[walker->file_count] =
        (struct walked_file){.object = object, .from = from, .to = to};
    return walker->file_count++;
}

static struct walk_mapping *mappings_of(const struct walker *walker, const struct walked_jvm *jvm)
{
    return walker->program.mappings + ((size_t)jvm->number * 2 + jvm->half) * (size_t)WALK_MAPPINGS;
}

static void fill_mapping(struct walk_mapping *mapping, const struct file_rows *rows)
{
    mapping->base = rows->base;
    mapping->page = rows->page;
    __atomic_store_n(&mapping->grains, rows->grains, __ATOMIC_RELEASE);
}

static bool put_mapping(void *context, struct process_mapping *mapping)
{
    const struct maps *maps = context;
    struct walker *walker = maps->walker;
    struct walked_jvm *jvm = maps->jvm;
    const char *path = mapping->file.path = process_path(&maps->root, mapping->file.path);
    uint64_t bias;
    bool is_file = path[0] == '/' || strcmp(path, "[vdso]") == 0;
    int64_t file = mapping->rights[2] == 'x' && is_file && !is_dump(path)
                       ? find_file(walker, jvm, mapping, &bias)
                       : -1;
    if (file < 0) {
        return true;
    }
    if (jvm->mapping_count == WALK_MAPPINGS) {
        walker->tables.is_full = true;
        return false;
    }
    struct walk_mapping *its = &mappings_of(walker, jvm)[jvm->mapping_count];
    *its = (struct walk_mapping){.start = mapping->start, .end = mapping->end, .bias = bias};
    fill_mapping(its, &walker->files[file].rows);
    jvm->files[jvm->mapping_count++] = (uint32_t)file;
    return true;
}

/* Into the half that is not read. */
static void put_mappings(struct walker *walker, struct walked_jvm *jvm, struct maps *maps)
{
    jvm->half ^= 1;
    jvm->mapping_count = 0;
    read_maps(maps, put_mapping);
    __atomic_store_n(&walker->program.jvms[jvm->number].mappings,
                     (uint64_t)jvm->half << 32 | jvm->mapping_count, __ATOMIC_RELEASE);
}

/* The rows of files that walks came to. One at a time, each costs some 10 ms. */
static bool add_wanted_file(struct walker *walker, const struct walked_jvm *jvm)
{
    struct walk_mapping *list = mappings_of(walker, jvm);
    for (uint32_t i = 0; i < jvm->mapping_count; i++) {
        struct walked_file *file = &walker->files[jvm->files[i]];
        if (list[i].grains || !list[i].wanted || (file->is_tried && !file->rows.grains)) {
            continue;
        }
        if (!file->is_tried) {
            file->is_tried = true;
            file->rows = tables_add_file(&walker->tables, file->object, file->from, file->to);
        }
        fill_mapping(&list[i], &file->rows);
        return true;
    }
    return false;
}

/* ---- Processes ---- */

/* Only our parent may tell the program. False: the process is no longer sampled. */
static bool walk(const struct walker *walker, const struct walked_jvm *jvm, uint32_t value)
{
    const struct walk_wish wish = {.process = (uint32_t)jvm->pid, .value = value};
    int err;
    return write(walker->wishes, &wish, sizeof wish) == sizeof wish &&
           read(walker->wishes, &err, sizeof err) == sizeof err && !err;
}

static void stop_walking(struct walker *walker, struct walked_jvm *jvm)
{
    if (jvm->is_walked) {
        (void)walk(walker, jvm, WALK_COPY);
        jvm->is_walked = false;
    }
}

static void forget_code(struct walker *walker, struct walked_jvm *jvm)
{
    tables_remove_code(&walker->tables, &walker->program.jvms[jvm->number]);
    code_feed_close(&jvm->feed);
    jvm->has_feed = false;
    jvm->entry = 0;
    jvm->wants_frozen = false;
}

static void forget_jvm(struct walker *walker, uint32_t at)
{
    struct walked_jvm *jvm = walker->jvms[at];
    stop_walking(walker, jvm);
    forget_code(walker, jvm);
    close(jvm->directory);
    free(jvm);
    walker->jvms[at] = NULL;
}

static bool find_part(void *context, struct process_mapping *mapping)
{
    struct maps *maps = context;
    const char *path = process_path(&maps->root, mapping->file.path);
    if (!maps->libjvm[0] && mapping->offset == 0 && is_libjvm(path)) {
        snprintf(maps->libjvm, PATH_MAX, "%s", path);
        maps->bias = mapping->start;
    }
    if (mapping->rights[2] == 'x' && is_dump(path)) {
        snprintf(maps->dump, PATH_MAX, "%s", path);
    }
    return true;
}

/* Its struct walk_jvm with what is known of it, not yet walked by. False: it is not there yet. */
static bool describe(const struct maps *maps)
{
    struct walker *walker = maps->walker;
    struct walked_jvm *jvm = maps->jvm;
    struct walk_layout layout;
    uint32_t version = UINT32_MAX;
    /* A dump has a head at first, and code when all heaps of the code cache are made. */
    struct fed_code first;
    bool is_known = open_dump(jvm, maps->dump) && code_feed_next(&jvm->feed, &first) &&
                    layout_read(jvm->directory, maps->libjvm, maps->bias, &layout, &version) == 0;
    bool is_too_old = walker->options.is_default && version < WALK_OLDEST_BY_DEFAULT;
    if (!is_known || is_too_old) {
        jvm->tries = is_too_old ? TRIES_MAX : jvm->tries;
        forget_code(walker, jvm);
        return false;
    }
    struct walk_jvm *its = &walker->program.jvms[jvm->number];
    *its = (struct walk_jvm){.layout = layout, .code_low = UINT64_MAX};
    for (int i = 0; i < WALK_HEAPS; i++) {
        if (layout.heaps[i].low && layout.heaps[i].low < its->code_low) {
            its->code_low = layout.heaps[i].low;
        }
    }
    add_code(walker, jvm, &first);
    return true;
}

/* Virtual threads have begun, so the heap is there; where the first of them goes to is told a
 * moment later than the code is. */
static void describe_frozen(const struct maps *maps)
{
    struct walked_jvm *jvm = maps->jvm;
    struct walk_frozen frozen;
    struct walk_frozen *its = &maps->walker->program.jvms[jvm->number].frozen;
    int err =
        layout_read_frozen(jvm->directory, maps->libjvm, maps->bias, jvm->feed.frozen, &frozen);
    jvm->is_new |= jvm->wants_frozen = err == -EAGAIN && ++jvm->tries < TRIES_MAX;
    if (!err && !its->stack) {
        uint32_t stack = frozen.stack;
        frozen.entry_pc = frozen.entry_pc ? frozen.entry_pc : jvm->entry;
        frozen.stack = 0;
        *its = frozen;
        __atomic_store_n(&its->stack, stack, __ATOMIC_RELEASE);
    }
}

/* What it maps has changed, or is not known. */
static void look(struct walker *walker, struct walked_jvm *jvm)
{
    struct maps maps = {.walker = walker, .jvm = jvm};
    process_root_read(jvm->directory, &maps.root);
    read_maps(&maps, find_part);
    bool is_jvm = maps.libjvm[0] && maps.dump[0];
    jvm->is_new = false;
    if (jvm->has_feed && !is_jvm) { /* it runs another program */
        stop_walking(walker, jvm);
        forget_code(walker, jvm);
    } else if (!jvm->has_feed && is_jvm && !describe(&maps)) {
        jvm->is_new = jvm->tries < TRIES_MAX && ++jvm->tries < TRIES_MAX;
    }
    bool is_unread = !jvm->has_feed && (jvm->is_unread || jvm->tries == TRIES_TOLD);
    walker->told->unread += (uint32_t)is_unread - (uint32_t)jvm->is_unread;
    jvm->is_unread = is_unread;
    if (jvm->has_feed) {
        put_mappings(walker, jvm, &maps);
        (void)follow_code(walker, jvm);
        if (jvm->wants_frozen) {
            describe_frozen(&maps);
        }
        if (!jvm->is_walked) {
            jvm->is_walked = walk(walker, jvm, jvm->number + WALK_FIRST_JVM);
        }
    }
}

/* Whether there was something to do. */
static bool look_after(struct walker *walker, struct walked_jvm *jvm)
{
    bool was_new = jvm->is_new;
    if (was_new) {
        look(walker, jvm);
    }
    bool is_more = jvm->is_walked && follow_code(walker, jvm);
    bool is_file = jvm->is_walked && add_wanted_file(walker, jvm);
    return was_new || is_more || is_file;
}

static void forget_ended(struct walker *walker)
{
    for (uint32_t i = 0; i < WALK_JVMS; i++) {
        if (walker->jvms[i] && faccessat(walker->jvms[i]->directory, "maps", F_OK, 0) != 0) {
            forget_jvm(walker, i);
        }
    }
}

/* As above, of all. Who is no JVM, as most children of one, leaves his place to others: should he
 * become one, he maps more code, and is noticed again. */
static bool look_after_all(struct walker *walker)
{
    bool is_busy = false;
    for (uint32_t i = 0; i < WALK_JVMS; i++) {
        struct walked_jvm *jvm = walker->jvms[i];
        is_busy |= jvm && look_after(walker, jvm);
        if (jvm && !jvm->is_new && !jvm->has_feed && !jvm->is_unread) {
            forget_jvm(walker, i);
        }
    }
    return is_busy;
}

/* Its place among those that are looked after; or else one that is free, or `most`. */
static uint32_t place_of(const struct walker *walker, pid_t pid, uint32_t most)
{
    uint32_t unused = most;
    for (uint32_t i = 0; i < most; i++) {
        if (walker->jvms[i] && walker->jvms[i]->pid == pid) {
            return i;
        }
        unused = !walker->jvms[i] && unused == most ? i : unused;
    }
    return unused;
}

static void take_notice(struct walker *walker, pid_t pid)
{
    const uint32_t most = walker->program.room.jvms;
    uint32_t place = place_of(walker, pid, most);
    if (place == most) {
        forget_ended(walker);
        (void)look_after_all(walker);
        place = place_of(walker, pid, most);
    }
    if (place < most && walker->jvms[place]) {
        walker->jvms[place]->is_new = true;
        return;
    }
    struct walked_jvm *jvm = place < most ? calloc(1, sizeof *jvm) : NULL;
    walker->told->is_out_of_jvms |= !jvm;
    char path[32];
    snprintf(path, sizeof path, "/proc/%d", (int)pid);
    if (jvm && (jvm->directory = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC)) >= 0) {
        jvm->pid = pid;
        jvm->number = place;
        jvm->is_new = true;
        walker->jvms[place] = jvm;
        return;
    }
    free(jvm);
}

static uint64_t now(void)
{
    return clock_ns(CLOCK_MONOTONIC) / 1000000;
}

/* Looks after the tables until our parent has ended. */
static void make_tables(struct walker *walker)
{
    int every = EVERY_LEAST;
    uint64_t settled = now();
    uint64_t forgotten = settled;
    for (;;) {
        uint64_t time = now();
        if (time - forgotten >= FORGET_EVERY) {
            forgotten = time;
            forget_ended(walker);
        }
        if (time - settled >= SETTLE_EVERY) {
            settled = time;
            tables_settle(&walker->tables);
        }
        bool is_busy = look_after_all(walker);
        is_busy |= add_all_wanted_rows(walker);
        walker->told->is_full |= walker->tables.is_full;
        every = is_busy ? EVERY_LEAST : every * 2 < EVERY_MOST ? every * 2 : EVERY_MOST;
        struct pollfd woken = {.fd = walker->notices, .events = POLLIN};
        pid_t noticed[64];
        if (poll(&woken, 1, every) <= 0) {
            continue;
        }
        ssize_t got = read(walker->notices, noticed, sizeof noticed);
        if (got <= 0) {
            return;
        }
        for (size_t i = 0; i < (size_t)got / sizeof *noticed; i++) {
            take_notice(walker, noticed[i]);
        }
    }
}

/* Half a second of work at the beginning, for which all stacks are copied; nothing where that is
 * not allowed. */
static void go_first(void)
{
    (void)setpriority(PRIO_PROCESS, 0, NICE);
}

/* Nothing is open in it but what it says, and these two. */
static void close_others(struct walker *walker, int notices, int wishes)
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
    walker->notices = NOTICES;
    walker->wishes = WISHES;
}

/* The process that has no rights but to look into those that are sampled: what they tell of
 * themselves, their dumps and files, is nobody's to trust. */
static void be_maker(struct walker *walker, int notices, int wishes)
{
    static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT}; /* our parent's concern */
    struct utsname name = {0};
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++) {
        (void)signal(ignored[i], SIG_IGN);
    }
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)prctl(PR_SET_NAME, "jdperf-walker");
    go_first();
    close_others(walker, notices, wishes);
    (void)uname(&name);
    const struct objects_options objects = {
        .machine = OWN_MACHINE, .here = true, .os_release = name.release, .sparing = true};
    walker->sources = calloc(walker->program.room.blobs, sizeof *walker->sources);
    if (walker->sources && objects_new(&objects, &walker->objects) == 0 &&
        confined_enter(dup(walker->wishes))) {
        make_tables(walker);
    }
    _exit(EXIT_SUCCESS);
}

/* ---- What it may ---- */

/* In place of those that have ended. */
static void hold_process(struct walker *walker, pid_t pid)
{
    char path[32];
    for (uint32_t i = 0; i < walker->held_count;) {
        struct held_process *held = &walker->held[i];
        if (faccessat(held->directory, "maps", F_OK, 0) == 0) {
            if (held->pid == pid) {
                return;
            }
            i++;
            continue;
        }
        rights_let_go(walker->rights, held->directory);
        close(held->directory);
        *held = walker->held[--walker->held_count];
    }
    snprintf(path, sizeof path, "/proc/%d", (int)pid);
    int directory = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0 || ARRAY_RESERVE(walker->held, walker->held_count, walker->held_room)) {
        (void)(directory >= 0 && close(directory));
        return;
    }
    walker->held[walker->held_count++] = (struct held_process){pid, directory};
    rights_hold(walker->rights, path, directory);
}

/* False: it is to end. */
static bool take_notices(struct walker *walker)
{
    uint64_t woken;
    (void)!read(walker->wake, &woken, sizeof woken);
    pthread_mutex_lock(&walker->lock);
    for (uint32_t i = 0; i < walker->noticed_count; i++) {
        hold_process(walker, walker->noticed[i]);
        (void)!write(walker->notices, &walker->noticed[i], sizeof *walker->noticed);
    }
    walker->noticed_count = 0;
    bool goes_on = !walker->ends;
    pthread_mutex_unlock(&walker->lock);
    return goes_on;
}

/* False: it has ended, or says what it does not. */
static bool answer_wish(const struct walker *walker)
{
    struct walk_wish wish;
    if (recv(walker->wishes, &wish, sizeof wish, MSG_DONTWAIT) != sizeof wish ||
        wish.value >= WALK_FIRST_JVM + walker->program.room.jvms) {
        return false;
    }
    int err = walk_program_walk(&walker->program, wish.process, wish.value);
    return send(walker->wishes, &err, sizeof err, MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof err;
}

static int start_maker(struct walker *walker)
{
    int notices[2] = {-1, -1};
    int wishes[2] = {-1, -1};
    int err =
        pipe2(notices, O_CLOEXEC) || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, wishes)
            ? -errno
            : 0;
    walker->maker = err ? -1 : fork();
    if (walker->maker == 0) {
        be_maker(walker, notices[0], wishes[1]);
    }
    err = err ? err : walker->maker < 0 ? -errno : 0;
    walker->notices = notices[1];
    walker->wishes = wishes[0];
    (void)(notices[0] >= 0 && close(notices[0]));
    (void)(wishes[1] >= 0 && close(wishes[1]));
    (void)fcntl(walker->notices, F_SETFL, O_NONBLOCK); /* it may not read them */
    return err;
}

/* NULL, or why it cannot be had. Where nobody asked for it, it takes 18 MB of the kernel's memory,
 * which is a JVM's whole code cache of 120 MB, or some JVMs with less; else 51 MB. */
static const char *load(struct walker *walker)
{
    static const struct walk_room whole = {WALK_JVMS, WALK_PAGES, WALK_BLOBS, WALK_ROWS};
    static const struct walk_room small = {16, 2560, WALK_BLOBS / 2, WALK_ROWS / 4};
    const struct walk_room *room = walker->options.is_default ? &small : &whole;
    const char *lacks = walk_program_load(&walker->program, room, &walker->maps);
    if (lacks) {
        return lacks;
    }
    tables_new(&walker->tables, &walker->program, OWN_MACHINE);
    walker->program.config->depth = walker->options.depth;
    walker->program.config->compares = walker->options.compares;
    walker->rights = rights_new();
    walker->told = confined_shared(sizeof *walker->told);
    if (!walker->rights || !walker->told) {
        return strerror(ENOMEM);
    }
    rights_read_objects(walker->rights, NULL);
    int err = start_maker(walker);
    return err ? strerror(-err) : NULL;
}

static void *serve(void *context)
{
    struct walker *walker = context;
    go_first(); /* this thread alone */
    const char *lacks = load(walker);
    if (lacks) {
        walker_lacks(walker, lacks);
        return NULL;
    }
    walker->is_loaded = true;
    bool lives = confined_meet(walker->wishes, walker->maker, "what JVMs tell of themselves",
                               walker->rights, &walker->confined) == 0;
    while (lives && take_notices(walker)) {
        struct pollfd list[] = {{.fd = walker->wake, .events = POLLIN},
                                {.fd = walker->wishes, .events = POLLIN},
                                {.fd = confined_listener(walker->confined), .events = POLLIN}};
        (void)poll(list, 3, -1);
        if (list[2].revents) {
            confined_answer(walker->confined);
        }
        lives = !list[1].revents || answer_wish(walker);
    }
    if (!lives) { /* what is in the tables will not be true for long */
        walker->has_died = true;
        (void)kill(walker->maker, SIGKILL);
        for (uint32_t i = 0; i < walker->held_count; i++) {
            (void)walk_program_walk(&walker->program, (uint32_t)walker->held[i].pid, WALK_COPY);
        }
    }
    return NULL;
}

/* ---- From outside ---- */

struct walker *walker_new(const struct walker_options *options)
{
    struct walker *walker = calloc(1, sizeof *walker);
    if (walker) {
        walker->options = *options;
        walker->notices = walker->wishes = -1;
        walker->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        pthread_mutex_init(&walker->lock, NULL);
    }
    return walker;
}

void tell_not_walked(const char *lacks)
{
    info_message("stacks are not walked in the kernel, but copied: %s", lacks);
}

void walker_lacks(const struct walker *walker, const char *what)
{
    if (!walker->options.is_default) {
        tell_not_walked(what);
    }
}

void walker_shares(struct walker *walker, const struct walk_maps *maps)
{
    walker->maps = *maps;
}

bool walker_begins(struct walker *walker, uint64_t copied)
{
    if (walker->has_begun || copied < walker->options.after) {
        return false;
    }
    walker->has_begun = true;
    walker->has_thread = threads_start(&walker->thread, serve, walker);
    return walker->has_thread;
}

static void wake(struct walker *walker)
{
    const uint64_t one = 1;
    (void)!write(walker->wake, &one, sizeof one);
}

void walker_free(struct walker *walker)
{
    if (!walker) {
        return;
    }
    if (walker->has_thread) {
        pthread_mutex_lock(&walker->lock);
        walker->ends = true;
        pthread_mutex_unlock(&walker->lock);
        wake(walker);
        pthread_join(walker->thread, NULL);
    }
    if (walker->maker > 0) {
        (void)kill(walker->maker, SIGKILL);
        (void)waitpid(walker->maker, NULL, 0);
    }
    descriptor_close(walker->notices);
    descriptor_close(walker->wishes);
    confined_part(walker->confined);
    for (uint32_t i = 0; i < walker->held_count; i++) {
        close(walker->held[i].directory);
    }
    rights_free(walker->rights);
    confined_unshare(walker->told, sizeof *walker->told);
    tables_free(&walker->tables);
    walk_program_close(&walker->program);
    pthread_mutex_destroy(&walker->lock);
    close(walker->wake);
    free(walker->held);
    free(walker->noticed);
    free(walker);
}

int walker_program(const struct walker *walker, enum walk_of what)
{
    return walker->is_loaded ? walker->program.programs[what] : -1;
}

int walker_output(const struct walker *walker, uint32_t processor, int event)
{
    return bpf.update(walker->program.output, &processor, &event, BPF_ANY);
}

bool walker_compares(const struct walker *walker)
{
    return walker->options.compares;
}

void walker_notice(struct walker *walker, pid_t process)
{
    if (!walker->has_thread) {
        return;
    }
    pthread_mutex_lock(&walker->lock);
    bool is_last = walker->noticed_count && walker->noticed[walker->noticed_count - 1] == process;
    if (!is_last && !ARRAY_RESERVE(walker->noticed, walker->noticed_count, walker->noticed_room)) {
        walker->noticed[walker->noticed_count++] = process;
    }
    pthread_mutex_unlock(&walker->lock);
    wake(walker);
}

static void tell_ends(const struct walker *walker)
{
    static const char *const names[WALKED_ENDS] = {
        [WALKED_ROOT] = "to the root",     [WALKED_CUT] = "cut",
        [WALKED_UNKNOWN] = "unknown code", [WALKED_NO_ROW] = "no row",
        [WALKED_COMPLEX] = "complex row",  [WALKED_BROKEN] = "no sane frame",
        [WALKED_FAULT] = "unreadable",     [WALKED_CHANGED] = "newer code",
    };
    uint64_t ends[WALKED_ENDS + 1];
    char text[400] = "";
    walk_program_ends(&walker->program, ends);
    for (int i = 0; i < WALKED_ENDS; i++) {
        size_t at = strlen(text);
        snprintf(text + at, sizeof text - at, "%s%s %llu", i ? ", " : "", names[i],
                 (unsigned long long)ends[i]);
    }
    uint64_t written = ends[WALKED_ROOT] + ends[WALKED_CUT];
    info_message("walks: %s; %llu bytes each", text,
                 (unsigned long long)(written ? ends[WALKED_ENDS] / written : 0));
}

void walker_tell(const struct walker *walker)
{
    if (!walker->is_loaded) {
        return;
    }
    if (walker->options.compares) {
        tell_ends(walker);
    }
    if (walker->has_died) {
        info_message("the process that reads JVMs' code for walking stacks ended: stacks were "
                     "copied from then on");
    }
    if (walker->told->unread && !walker->options.is_default) {
        info_message("libjvm.so or the dump of %u JVMs cannot be read: their stacks were copied",
                     (unsigned)walker->told->unread);
    }
    if (walker->told->is_full) {
        info_message("the kernel's tables for walking stacks are full: other stacks were copied");
    }
    if (walker->told->is_out_of_jvms) {
        info_message("the kernel walks stacks of at most %u processes: other stacks were copied",
                     (unsigned)walker->program.room.jvms);
    }
}
