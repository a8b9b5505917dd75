#include "writer/process.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_uint generation;

static pthread_once_t watching = PTHREAD_ONCE_INIT;
static int watch_error;

static void count_fork(void)
{
    atomic_fetch_add_explicit(&generation, 1, memory_order_relaxed);
}

static void watch(void)
{
    watch_error = -pthread_atfork(NULL, NULL, count_fork);
}

int process_watch_forks(void)
{
    pthread_once(&watching, watch);
    return watch_error;
}

unsigned process_generation(void)
{
    return atomic_load_explicit(&generation, memory_order_relaxed);
}

pid_t process_thread_id(void)
{
    static _Thread_local pid_t id;
    static _Thread_local unsigned id_generation;
    unsigned now = process_generation();
    if (id == 0 || id_generation != now) {
        id = (pid_t)syscall(SYS_gettid); /* glibc before 2.30 has no gettid() */
        id_generation = now;
    }
    return id;
}

bool process_thread_is_runnable(pid_t thread)
{
    char text[64 + 1]; /* "1234 (at most 15 bytes) R ..." */
    snprintf(text, sizeof(text), "/proc/self/task/%d/stat", (int)thread);
    int fd = open(text, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    ssize_t size = read(fd, text, sizeof(text) - 1);
    close(fd);
    text[size > 0 ? size : 0] = '\0';
    const char *state = strrchr(text, ')');
    return state && strncmp(state, ") R", 3) == 0;
}
