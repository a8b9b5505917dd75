/*
 * Fuzzes the reader of perf's pipe, with a dump that is still written. The input is a byte that
 * chooses options, two with the size of what is in the pipe, that, the dump; of the dump a half is
 * there at first, and the rest comes when it is asked whether the JVM lives.
 */
#include "checking_sink.h"

static const uint8_t *rest;
static size_t rest_size;

/* In the place of libc's: JVMs live as long as they have something to tell. */
int kill(pid_t pid, int number)
{
    (void)pid;
    (void)number;
    size_t size = rest_size < 64 ? rest_size : 64;
    if (size) {
        write_dump(O_APPEND, rest, size);
    }
    rest += size;
    rest_size -= size;
    errno = ESRCH;
    return size ? 0 : -1;
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *until, struct timespec *left)
{
    (void)clock;
    (void)flags;
    (void)until;
    (void)left;
    return 0;
}

static void begin(void)
{
    write_dump(O_TRUNC, "", 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 3) {
        return 0;
    }
    size_t recording = data[1] | (size_t)data[2] << 8;
    if (recording > size - 3) {
        recording = size - 3;
    }
    const uint8_t *dump = data + 3 + recording;
    size_t dump_size = size - 3 - recording;
    write_dump(O_TRUNC, dump, dump_size / 2);
    rest = dump + dump_size / 2;
    rest_size = dump_size - dump_size / 2;

    int ends[2];
    if (pipe2(ends, O_CLOEXEC) || write(ends[1], data + 3, recording) != (ssize_t)recording) {
        abort(); /* inputs are smaller than a pipe */
    }
    close(ends[1]);
    if (dup2(ends[0], STDIN_FILENO) < 0) {
        abort();
    }
    close(ends[0]);
    char *named[] = {"jit-4242.dump"};
    const struct stream_options options = {.input = "-",
                                           .dumps = named,
                                           .dump_count = data[0] & 1,
                                           .symbolize = data[0] & 2,
                                           .keep_stacks = data[0] & 4};
    (void)run_stream(&options);
    return 0;
}
