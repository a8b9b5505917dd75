#include "jdtool/walk/walker.h"

#include "jdtool/base/array.h"
#include "jdtool/base/descriptor.h"
#include "jdtool/base/message.h"
#include "jdtool/base/processes.h"
#include "jdtool/base/threads.h"
#include "jdtool/confined/confined.h"
#include "jdtool/walk/libbpf.h"
#include "jdtool/walk/maker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define NICE (-10)

/* A process that is sampled: the one that makes the tables may look into this very one. */
struct held_process {
    pid_t pid;
    int directory; /* /proc/PID */
};

struct walker {
    struct walk_program program;
    struct walk_told *told; /* by the process that makes the tables */
    int notices;            /* to it */
    int wishes;             /* its */
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
};

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
    int directory = process_directory_open(pid);
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
        maker_run(&walker->program, walker->told, walker->options.is_default, notices[0],
                  wishes[1]);
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
    walker->program.config->depth = walker->options.depth;
    walker->program.config->copied = walker->options.copied;
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
    /* This thread alone, and its child: half a second of work at the beginning, for which all
     * stacks are copied. Nothing where that is not allowed. */
    (void)setpriority(PRIO_PROCESS, 0, NICE);
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

void walker_copied(const struct walker *walker)
{
    const pid_t nobody = MAKER_NOBODY;
    if (walker->is_loaded) {
        (void)!write(walker->notices, &nobody, sizeof nobody);
    }
}

static void tell_ends(const struct walker *walker)
{
    static const char *const names[WALKED_ENDS] = {
        [WALKED_ROOT] = "to the root",     [WALKED_CUT] = "cut",
        [WALKED_UNKNOWN] = "unknown code", [WALKED_NO_ROW] = "no row",
        [WALKED_COMPLEX] = "complex row",  [WALKED_BROKEN] = "no sane frame",
        [WALKED_FAULT] = "unreadable",     [WALKED_CHANGED] = "newer code",
        [WALKED_DEEP] = "deeper",
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
