#include "jdtool/watch/slicing.h"

#include "jdtool/base/descriptor.h"
#include "jdtool/base/text.h"
#include "jdtool/confined/confined.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- Its command line ---- */

static void add_number(struct words *words, const char *format, unsigned number)
{
    char text[16];
    snprintf(text, sizeof text, "%u", number);
    words_add(words, format, text);
}

/* ---- Its beginning ---- */

/* Ours in [0], its in [1]. */
struct slicing_pairs {
    int recording[2], orders[2], slices[2], parent[2];
    int at_work; /* a file in memory, for both */
};

/* What is in the environment may be a secret. */
static int forget_servers(void *context)
{
    (void)context;
    unsetenv("JDPERF_PUSH");
    return 0;
}

static int run(struct slicing *slicing, const struct watch_jvm_options *options,
               const struct slicing_pairs *pairs)
{
    struct words words = {0};
    const int keep[] = {pairs->orders[1], pairs->slices[1], pairs->parent[1], pairs->at_work};
    WORDS_ADD(&words, "/proc/self/exe", "live", "watch-slicer");
    add_number(&words, "--parent=%s", (unsigned)pairs->parent[1]);
    add_number(&words, "--orders=%s", (unsigned)pairs->orders[1]);
    add_number(&words, "--out=%s", (unsigned)pairs->slices[1]);
    add_number(&words, "--at-work=%s", (unsigned)pairs->at_work);
    add_number(&words, "--slice=%s", options->slice);
    for (uint32_t i = 0; i < options->format_count; i++) {
        words_add(&words, "--format=%s", options->formats[i]->name);
    }
    if (options->threads) {
        WORDS_ADD(&words, "--threads");
    }
    const struct child_options child = {
        .arguments = words.list,
        .in = pairs->recording[1],
        .out = -1,
        .err = slicing->says,
        .keep = keep,
        .keep_count = sizeof keep / sizeof *keep,
        .own_group = true, /* Ctrl-C is for us, who then end it */
        .death_signal = SIGKILL,
        .prepare = forget_servers,
    };
    int err = words.failed ? -ENOMEM : child_start(&slicing->child, &child);
    words_free(&words);
    return err;
}

static void close_end(int *fd)
{
    descriptor_close(*fd);
    *fd = -1;
}

/* Its end to read and our end to write. */
static int open_pipe_to(int pair[2])
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return -errno;
    }
    pair[0] = ends[1];
    pair[1] = ends[0];
    return 0;
}

/* On failure some are open. */
static int open_pairs(struct slicing *slicing, struct slicing_pairs *pairs)
{
    int err = open_pipe_to(pairs->recording);
    err = err ? err : open_pipe_to(pairs->orders);
    err = err ? err : pipe2(pairs->slices, O_CLOEXEC) != 0 ? -errno : 0;
    if (err) {
        return err;
    }
    (void)fcntl(pairs->recording[0], F_SETPIPE_SZ, 1 << 20); /* as much as anybody may have */
    (void)fcntl(pairs->slices[0], F_SETPIPE_SZ, 1 << 18);
    fcntl(pairs->orders[0], F_SETFL, O_NONBLOCK);
    fcntl(pairs->orders[1], F_SETFL, O_NONBLOCK);
    fcntl(pairs->slices[0], F_SETFL, O_NONBLOCK);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pairs->parent) != 0) {
        return -errno;
    }
    slicing->says = memfd_create("watch-slicer", MFD_CLOEXEC);
    pairs->at_work = memfd_create("watch-at-work", MFD_CLOEXEC);
    if (slicing->says < 0 || pairs->at_work < 0 ||
        ftruncate(pairs->at_work, sizeof *slicing->at_work) != 0) {
        return -errno;
    }
    void *memory = mmap(NULL, sizeof *slicing->at_work, PROT_READ, MAP_SHARED, pairs->at_work, 0);
    slicing->at_work = memory == MAP_FAILED ? NULL : memory;
    return 0;
}

int slicing_start(struct slicing *slicing, const struct watch_jvm_options *options)
{
    struct slicing_pairs pairs = {{-1, -1}, {-1, -1}, {-1, -1}, {-1, -1}, -1};
    *slicing = NO_SLICING;
    slicing->began = now_ms();
    slicing->rights = rights_new();
    int err = slicing->rights ? open_pairs(slicing, &pairs) : -ENOMEM;
    if (!err) {
        rights_read_objects(slicing->rights, NULL);
    }
    err = err ? err : run(slicing, options, &pairs);
    close_end(&pairs.recording[1]);
    close_end(&pairs.orders[1]);
    close_end(&pairs.slices[1]);
    close_end(&pairs.parent[1]);
    close_end(&pairs.at_work);
    slicing->recording = pairs.recording[0];
    slicing->orders.fd = pairs.orders[0];
    slicing->from = pairs.slices[0];
    err = err ? err
              : confined_meet(pairs.parent[0], slicing->child.pid, "what JVMs tell of themselves",
                              slicing->rights, &slicing->confined);
    close_end(&pairs.parent[0]);
    if (err) {
        slicing_close(slicing);
    }
    return err;
}

void slicing_close(struct slicing *slicing)
{
    child_end(&slicing->child);
    confined_part(slicing->confined);
    rights_free(slicing->rights);
    close_end(&slicing->recording);
    close_end(&slicing->orders.fd);
    close_end(&slicing->from);
    close_end(&slicing->says);
    perf_pipe_free(&slicing->orders);
    slice_reader_free(&slicing->reader);
    if (slicing->at_work) {
        munmap((void *)slicing->at_work, sizeof *slicing->at_work);
    }
    *slicing = NO_SLICING;
}

void slicing_end_recording(struct slicing *slicing)
{
    close_end(&slicing->recording);
}

/* ---- While it runs ---- */

void slicing_order(struct slicing *slicing, enum slice_order_kind kind, pid_t jvm, uint32_t one_in,
                   const struct labels *labels)
{
    struct bytes bytes = {0};
    const struct slice_order order = {.kind = kind, .pid = (uint32_t)jvm, .one_in = one_in};
    if (slicing->orders.fd >= 0) {
        slice_order_put(&bytes, &order, labels);
        perf_pipe_put(&slicing->orders, bytes.at, bytes.failed ? 0 : bytes.size);
        (void)perf_pipe_flush(&slicing->orders);
        bytes_free(&bytes);
    }
}

size_t slicing_descriptors(const struct slicing *slicing, struct pollfd *list)
{
    size_t count = 0;
    if (slicing->confined && confined_listener(slicing->confined) >= 0) {
        list[count++] =
            (struct pollfd){.fd = confined_listener(slicing->confined), .events = POLLIN};
    }
    if (slicing->from >= 0) {
        list[count++] = (struct pollfd){.fd = slicing->from, .events = POLLIN};
    } else if (slicing->child.pidfd >= 0) {
        list[count++] = (struct pollfd){.fd = slicing->child.pidfd, .events = POLLIN};
    }
    if (perf_pipe_waiting(&slicing->orders) > 0) {
        list[count++] = (struct pollfd){.fd = slicing->orders.fd, .events = POLLOUT};
    }
    return count;
}

void slicing_turn(struct slicing *slicing)
{
    if (slicing->confined) {
        confined_answer(slicing->confined);
    }
    if (slicing->orders.fd >= 0) {
        (void)perf_pipe_flush(&slicing->orders);
    }
}

pid_t slicing_worked_on(const struct slicing *slicing)
{
    return slicing->at_work ? (pid_t)slicing->at_work->pid : 0;
}

pid_t slicing_grower(const struct slicing *slicing, uint64_t rss, uint64_t least)
{
    const struct slicer_at_work *at_work = slicing->at_work;
    if (!at_work) {
        return 0;
    }
    uint64_t peak = at_work->peak;
    return at_work->grown >= least             ? (pid_t)at_work->grower
           : rss > peak && rss - peak >= least ? (pid_t)at_work->pid
                                               : 0;
}
