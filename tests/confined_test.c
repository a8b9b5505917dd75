/* A process that reads other users' data has no rights. */
#include "test.h"

#include "jdtool/base/output_file.h"
#include "jdtool/base/threads.h"
#include "jdtool/base/verb.h"
#include "jdtool/confined/confined.h"
#include "tests/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* What the process without rights tells: it shares this page, and nothing else, with the test. */
struct told {
    int results[64]; /* of the attempts: 0, or a negative errno */
    int count;
    char text[4096];
};

static struct told *told;
static char directory[] = "/tmp/jd-confined-XXXXXX";
static char given[64], out[64], outside[64];

static const char *path_in(const char *where, const char *name)
{
    static char paths[8][128];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", where, name);
    return path;
}

static void put(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

static bool exists(const char *path)
{
    struct stat status;
    return lstat(path, &status) == 0;
}

static int set_up(void **state)
{
    (void)state;
    told = mmap(NULL, sizeof *told, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (told == MAP_FAILED || !mkdtemp(directory)) {
        return -1;
    }
    snprintf(given, sizeof given, "%s", path_in(directory, "given"));
    snprintf(out, sizeof out, "%s", path_in(directory, "out"));
    snprintf(outside, sizeof outside, "%s", path_in(directory, "outside"));
    if (mkdir(given, 0700) || mkdir(out, 0700) || mkdir(outside, 0700)) {
        return -1;
    }
    put(path_in(given, "text"), "given");
    put(path_in(outside, "secret"), "secret");
    put(path_in(out, "other"), "other");
    /* Another user's file, to which somebody has given a name in our directory. */
    put(path_in(outside, "others"), "secret");
    if (geteuid() == 0 && (chown(path_in(outside, "others"), 65534, 65534) ||
                           link(path_in(outside, "others"), path_in(given, "second")))) {
        return -1;
    }
    return symlink(path_in(outside, "secret"), path_in(given, "link")) ||
           mkfifo(path_in(given, "fifo"), 0600);
}

static int tear_down(void **state)
{
    (void)state;
    munmap(told, sizeof *told);
    (void)nftw(directory, scratch_remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return 0;
}

static int run(int (*work)(void *), void *context, uint32_t cpu_seconds)
{
    struct rights *rights = rights_new();
    assert_non_null(rights);
    rights_read(rights, given);
    rights_write(rights, path_in(out, "result"));
    memset(told, 0, sizeof *told);
    int status = confined_run(&(struct confined_options){.rights = rights,
                                                         .what = "it",
                                                         .cpu_seconds = cpu_seconds,
                                                         .work = work,
                                                         .context = context});
    rights_free(rights);
    return status;
}

/* ---- Whether there is such a thing here ---- */

static int tell_where(void *context)
{
    (void)context;
    told->count = confined_here();
    return STATUS_DONE;
}

static void need_confinement(void)
{
    assert_int_equal(run(tell_where, NULL, 0), STATUS_DONE);
    if (!told->count) {
        skip();
    }
}

/* ---- What it may not ---- */

static void attempt(long result)
{
    told->results[told->count++] = result < 0 ? -errno : 0;
}

/* Each has to fail. */
static int try_everything(void *context)
{
    char *arguments[] = {"true", NULL};
    char text[8];
    char parent[64];
    struct iovec ours = {text, sizeof text};
    struct iovec its = {context, sizeof text};
    pid_t pid = getppid();
    attempt(open("/etc/passwd", O_RDONLY | O_CLOEXEC));
    attempt(open(path_in(outside, "secret"), O_RDONLY | O_CLOEXEC));
    attempt(open(path_in(given, "link"), O_RDONLY | O_CLOEXEC));
    attempt(open(path_in(given, "../outside/secret"), O_RDONLY | O_CLOEXEC));
    attempt(open(path_in(given, "fifo"), O_RDONLY | O_CLOEXEC));
    attempt(open(path_in(given, "second"), O_RDONLY | O_CLOEXEC)); /* not there: we are not root */
    attempt(open("/dev/zero", O_RDONLY | O_CLOEXEC));
    attempt(open(outside, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    attempt(open(outside, O_PATH | O_DIRECTORY | O_CLOEXEC));
    snprintf(parent, sizeof parent, "/proc/%d/mem", (int)pid);
    attempt(open(parent, O_RDWR | O_CLOEXEC));
    attempt(open(parent, O_RDONLY | O_CLOEXEC));
    snprintf(parent, sizeof parent, "/proc/%d/environ", (int)pid);
    attempt(open(parent, O_RDONLY | O_CLOEXEC));
    attempt(open(path_in(outside, "new"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    attempt(open(path_in(out, "new"), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    attempt(open(path_in(out, "other"), O_WRONLY | O_TRUNC | O_CLOEXEC));
    attempt(open(path_in(given, "text"), O_RDWR | O_CLOEXEC));
    attempt(open(outside, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
    attempt(unlink(path_in(out, "other")));
    attempt(unlink(path_in(outside, "secret")));
    attempt(rename(path_in(outside, "secret"), path_in(out, "result")));
    attempt(rename(path_in(out, "other"), path_in(out, "result")));
    attempt(link("/bin/true", path_in(out, "result")));
    attempt(symlink("/etc/passwd", path_in(out, "result")));
    attempt(mkdir(path_in(out, "result"), 0700));
    attempt(chmod(path_in(given, "text"), 0777));
    attempt(truncate(path_in(given, "text"), 0));
    attempt(chdir("/"));
    attempt(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    attempt(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    attempt(execv("/bin/true", arguments));
    attempt(fork());
    attempt(ptrace(PTRACE_ATTACH, pid, NULL, NULL));
    attempt(process_vm_readv(pid, &ours, 1, &its, 1, 0));
    attempt(kill(pid, SIGTERM));
    attempt(kill(getpid(), SIGURG)); /* which Landlock would let it do */
    attempt(syscall(SYS_tgkill, pid, pid, SIGTERM));
    attempt(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0));
    attempt(ioctl(STDIN_FILENO, TIOCSTI, "x"));
    attempt(syscall(SYS_bpf, 0, NULL, 0));
    attempt(syscall(SYS_io_uring_setup, 1, NULL));
    attempt(syscall(SYS_unshare, 0x10000000 /* CLONE_NEWUSER */));
    attempt(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
                    MAP_FAILED
                ? -1
                : 0);
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    attempt(mprotect(page, 4096, PROT_READ | PROT_EXEC));
    return STATUS_DONE;
}

TEST(test_nothing_else_works)
{
    need_confinement();
    assert_int_equal(run(try_everything, told, 0), STATUS_DONE);
    assert_int_equal(told->count, 43);
    for (int i = 0; i < told->count; i++) {
        if (told->results[i] >= 0) {
            fail_msg("attempt %d has succeeded", i);
        }
    }
    assert_true(exists(path_in(out, "other")) && exists(path_in(outside, "secret")));
    assert_false(exists(path_in(out, "result")) || exists(path_in(out, "new")) ||
                 exists(path_in(outside, "new")));
}

static int tell_status(void *context)
{
    char path[64];
    (void)context;
    snprintf(path, sizeof path, "/proc/%d/status", (int)getpid());
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = fd < 0 ? 0 : read(fd, told->text, sizeof told->text - 1);
    told->text[size > 0 ? size : 0] = '\0';
    struct rlimit core;
    told->results[0] = getrlimit(RLIMIT_CORE, &core) == 0 && core.rlim_max == 0;
    struct rlimit memory;
    told->results[1] = getrlimit(RLIMIT_DATA, &memory) == 0 && memory.rlim_max != RLIM_INFINITY;
    return 7;
}

TEST(test_state)
{
    need_confinement();
    assert_int_equal(run(tell_status, NULL, 0), 7); /* the exit status is the work's */
    assert_non_null(strstr(told->text, "CapPrm:\t0000000000000000"));
    assert_non_null(strstr(told->text, "CapEff:\t0000000000000000"));
    assert_non_null(strstr(told->text, "NoNewPrivs:\t1"));
    assert_non_null(strstr(told->text, "Seccomp:\t2"));
    assert_true(told->results[0] && told->results[1]);
}

/* ---- What it may ---- */

static int read_file(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);
    text[n > 0 ? n : 0] = '\0';
    return fd < 0 ? -errno : close(fd);
}

static void *do_nothing(void *context)
{
    return context;
}

static int do_work(void *context)
{
    pthread_t thread;
    struct output_file *file;
    char text[16];
    struct stat status;
    (void)context;
    attempt(read_file(path_in(given, "text"), told->text, sizeof told->text));
    attempt(read_file("/bin/true", text, sizeof text)); /* code, wherever it is */
    attempt(stat(path_in(given, "text"), &status));
    attempt(access(path_in(given, "text"), R_OK));
    int folder = open(given, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    attempt(folder);
    attempt(openat(folder, "text", O_RDONLY | O_CLOEXEC));
    char *real = realpath(path_in(given, "text"), NULL);
    attempt(real && strcmp(real, path_in(given, "text")) == 0 ? 0 : -1);
    free(real);
    int err = output_file_open(path_in(out, "result"), &file);
    attempt(err);
    if (!err) {
        output_file_put(file, "made", 4);
        attempt(output_file_finish(file));
    }
    attempt(threads_start(&thread, do_nothing, NULL) ? pthread_join(thread, NULL) : -1);
    return STATUS_DONE;
}

TEST(test_work)
{
    char text[16];
    need_confinement();
    assert_int_equal(run(do_work, NULL, 0), STATUS_DONE);
    assert_int_equal(told->count, 10);
    for (int i = 0; i < told->count; i++) {
        if (told->results[i] != 0) {
            fail_msg("work %d: %s", i, strerror(-told->results[i]));
        }
    }
    assert_string_equal(told->text, "given");
    assert_int_equal(read_file(path_in(out, "result"), text, sizeof text), 0);
    assert_string_equal(text, "made");
    assert_int_equal(unlink(path_in(out, "result")), 0);
}

/* Its directory is another's by the time it is put in its place: the descriptor counts. */
static int make_elsewhere(void *context)
{
    struct output_file *file;
    (void)context;
    if (output_file_open(path_in(out, "result"), &file)) {
        return STATUS_FAILED;
    }
    output_file_put(file, "made", 4);
    told->count = 1;
    while (*(volatile int *)&told->count == 1) {
        usleep(1000);
    }
    return output_file_finish(file) ? STATUS_FAILED : STATUS_DONE;
}

TEST(test_swapped_directory)
{
    need_confinement();
    told->count =
        0; /* need_confinement left a 1 there, which the attacker would take for its sign */
    pid_t attacker = fork();
    if (attacker == 0) {
        for (int i = 0; i < 10000 && *(volatile int *)&told->count != 1; i++) {
            usleep(1000);
        }
        (void)!rename(out, path_in(directory, "away"));
        (void)!symlink(outside, out);
        told->count = 2;
        _exit(0);
    }
    assert_int_equal(run(make_elsewhere, NULL, 0), STATUS_DONE);
    waitpid(attacker, NULL, 0);
    assert_false(exists(path_in(outside, "result")));
    assert_int_equal(unlink(out), 0);
    assert_int_equal(rename(path_in(directory, "away"), out), 0);
    assert_int_equal(unlink(path_in(out, "result")), 0); /* where it was to be */
}

/* A directory that is held is what its path means, whatever somebody has put there. */
static int use_held(void *context)
{
    struct output_file *file;
    (void)context;
    attempt(read_file(path_in(given, "text"), told->text, sizeof told->text));
    attempt(open(path_in(given, "secret"), O_RDONLY | O_CLOEXEC));
    int err = output_file_open(path_in(given, "result"), &file);
    if (!err) {
        output_file_put(file, "made", 4);
        err = output_file_finish(file);
    }
    attempt(err);
    return STATUS_DONE;
}

TEST(test_held)
{
    char word[80];
    need_confinement();
    struct rights *rights = rights_new();
    assert_non_null(rights);
    int held = open(given, O_PATH | O_DIRECTORY | O_CLOEXEC);
    snprintf(word, sizeof word, "%d:%s", held, given);
    assert_true(held >= 0 && rights_hold_word(rights, word));
    assert_false(rights_hold_word(rights, given) || rights_hold_word(rights, "3:relative"));
    assert_int_equal(rename(given, path_in(directory, "away")), 0);
    assert_int_equal(symlink(outside, given), 0);
    rights_read(rights, given);
    rights_write(rights, path_in(given, "result"));
    memset(told, 0, sizeof *told);
    assert_int_equal(
        confined_run(&(struct confined_options){.rights = rights, .what = "it", .work = use_held}),
        STATUS_DONE);
    rights_free(rights);
    close(held);
    assert_string_equal(told->text, "given");
    assert_int_equal(told->results[0], 0);
    assert_int_equal(told->results[1], -ENOENT);
    assert_int_equal(told->results[2], 0);
    assert_false(exists(path_in(outside, "result")));
    assert_int_equal(unlink(given), 0);
    assert_int_equal(rename(path_in(directory, "away"), given), 0);
    assert_int_equal(unlink(path_in(given, "result")), 0);
}

/* Of a process that is held the memory is read, and of no other; nor once it is let go. */
static int look_into(void *context)
{
    char path[48];
    pid_t pid = *(const pid_t *)context;
    snprintf(path, sizeof path, "/proc/%d", (int)pid);
    int process = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    attempt(process);
    attempt(openat(process, "mem", O_RDONLY | O_CLOEXEC));
    attempt(openat(process, "root", O_PATH | O_DIRECTORY | O_CLOEXEC));
    attempt(openat(process, "mem", O_RDWR | O_CLOEXEC));
    attempt(openat(process, "environ", O_RDONLY | O_CLOEXEC));
    snprintf(path, sizeof path, "/proc//%d/mem", (int)pid);
    attempt(open(path, O_RDONLY | O_CLOEXEC));
    snprintf(path, sizeof path, "/proc/%d/mem", (int)getppid());
    attempt(open(path, O_RDONLY | O_CLOEXEC));
    return STATUS_DONE;
}

TEST(test_held_process)
{
    char path[32];
    need_confinement();
    struct rights *rights = rights_new();
    assert_non_null(rights);
    pid_t pid = fork();
    if (pid == 0) {
        (void)pause();
        _exit(0);
    }
    snprintf(path, sizeof path, "/proc/%d", (int)pid);
    int held = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    assert_true(pid > 0 && held >= 0);
    for (int is_held = 1; is_held >= 0; is_held--) {
        if (is_held) {
            rights_hold(rights, path, held);
        } else {
            rights_let_go(rights, held);
        }
        memset(told, 0, sizeof *told);
        assert_int_equal(confined_run(&(struct confined_options){
                             .rights = rights, .what = "it", .work = look_into, .context = &pid}),
                         STATUS_DONE);
        assert_int_equal(told->count, 7);
        for (int i = 0; i < told->count; i++) {
            bool can = i == 0 || (is_held && i < 3);
            assert_int_equal(told->results[i], can ? 0 : -EACCES);
        }
    }
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    close(held);
    rights_free(rights);
}

/* ---- An overflow ---- */

static int nothing(const char *text)
{
    return text != NULL;
}

/* As a parser with a mistake: what a file holds runs over its buffer and into a pointer behind it,
 * which becomes system's. */
static int overflow(void *context)
{
    struct {
        char text[64];
        int (*then)(const char *);
    } victim = {.then = nothing};
    memcpy((char *)&victim, context, sizeof victim);
    told->results[0] = victim.then(victim.text);
    return STATUS_DONE;
}

TEST(test_overflow)
{
    struct {
        char text[64];
        int (*then)(const char *);
    } hostile = {.then = system};
    need_confinement();
    snprintf(hostile.text, sizeof hostile.text, "touch %s", path_in(outside, "pwned"));
    /* It works. */
    assert_int_equal(overflow(&hostile), STATUS_DONE);
    assert_int_equal(unlink(path_in(outside, "pwned")), 0);
    assert_int_equal(run(overflow, &hostile, 0), STATUS_DONE);
    assert_int_not_equal(told->results[0], 0);
    assert_false(exists(path_in(outside, "pwned")));
}

/* ---- Its death ---- */

static int die(void *context)
{
    signal(*(int *)context, SIG_DFL); /* cmocka has a handler for some */
    raise(*(int *)context);
    return STATUS_DONE;
}

static int spin(void *context)
{
    while (*(volatile int *)context) {
    }
    return STATUS_DONE;
}

TEST(test_death)
{
    int number = SIGSEGV;
    need_confinement();
    assert_int_equal(run(die, &number, 0), STATUS_FAILED);
    number = SIGSYS;
    assert_int_equal(run(die, &number, 0), STATUS_FAILED);
    assert_int_equal(run(spin, &number, 1), STATUS_FAILED);
    /* What a user ends it with ends us, too. */
    pid_t pid = fork();
    if (pid == 0) {
        number = SIGTERM;
        (void)run(die, &number, 0);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}

static int wait_long(void *context)
{
    (void)context;
    told->count = getpid();
    while (told->count) {
        sleep(1);
    }
    return STATUS_DONE;
}

/* A signal for us reaches it, and without us it does not live. */
TEST(test_signals)
{
    need_confinement();
    for (int i = 0; i < 2; i++) {
        told->count = 0;
        pid_t pid = fork();
        if (pid == 0) {
            _exit(run(wait_long, NULL, 0));
        }
        for (int k = 0; k < 10000 && (told->count == 0 || told->count == 1); k++) {
            usleep(1000);
        }
        pid_t reader = told->count;
        assert_true(reader > 1);
        assert_int_equal(kill(pid, i ? SIGKILL : SIGTERM), 0);
        int status;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == (i ? SIGKILL : SIGTERM));
        int alive = 0;
        for (int k = 0; k < 10000 && (alive = kill(reader, 0)) == 0; k++) {
            usleep(1000); /* until somebody has reaped it */
        }
        assert_int_not_equal(alive, 0);
    }
}

TEST_MAIN(set_up, tear_down)
