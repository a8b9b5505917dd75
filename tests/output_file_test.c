/* Writes a dump to a disk that is full, slow, failing or cut off. */
#include "faulty_disk.h"
#include "scratch.h"
#include "test.h"

#include "writer/message.h"
#include "writer/output_file.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

static int set_up(void **state)
{
    faulty_disk_mend();
    message_set_level(-1); /* the faults are ours */
    return scratch_create(state);
}

static void assert_file_is(const char *path, const char *expected)
{
    char *text = (char *)scratch_read(path, NULL);
    assert_non_null(text);
    assert_string_equal(text, expected);
    free(text);
}

TEST_WITH(file_is_private, set_up, scratch_remove)
{
    static const mode_t umasks[] = {0, 0777};
    for (size_t i = 0; i < 2; i++) {
        const char *path = scratch_path(state, "file");
        mode_t before = umask(umasks[i]);
        struct output_file file;
        assert_int_equal(output_file_create(&file, AT_FDCWD, path, OUTPUT_FILE_REPLACE_STALE), 0);
        umask(before);
        struct stat there;
        assert_int_equal(stat(path, &there), 0);
        assert_int_equal(there.st_mode, S_IFREG | 0600);
        assert_int_equal(fcntl(file.fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
        output_file_release(&file);
    }
}

TEST_WITH(stale_file_is_replaced_not_written_to, set_up, scratch_remove)
{
    const char *path = scratch_path(state, "file");
    const char *other_name = scratch_path(state, "other name");
    scratch_write(path, "stale");
    assert_int_equal(link(path, other_name), 0);
    struct output_file file;
    assert_int_equal(output_file_create(&file, AT_FDCWD, path, OUTPUT_FILE_REPLACE_STALE), 0);
    assert_int_equal(output_file_append(&file, "new", 3), 0);
    output_file_release(&file);
    assert_file_is(path, "new");
    assert_file_is(other_name, "stale");
}

/* As between two copies of the library in one process. */
TEST_WITH(file_that_is_written_is_not_stale, set_up, scratch_remove)
{
    const char *path = scratch_path(state, "file");
    struct output_file file;
    assert_int_equal(output_file_create(&file, AT_FDCWD, path, OUTPUT_FILE_REPLACE_STALE), 0);
    assert_int_equal(output_file_append(&file, "one", 3), 0);
    struct output_file other;
    assert_int_equal(output_file_create(&other, AT_FDCWD, path, OUTPUT_FILE_REPLACE_STALE), -EBUSY);
    assert_int_equal(other.fd, -1);
    assert_int_equal(output_file_append(&file, "two", 3), 0);
    assert_file_is(path, "onetwo");

    /* A child that has it open keeps nobody away. */
    int fd = dup(file.fd);
    output_file_release(&file);
    assert_int_equal(output_file_create(&other, AT_FDCWD, path, OUTPUT_FILE_REPLACE_STALE), 0);
    output_file_release(&other);
    close(fd);
}

static void assert_refused(const char *path)
{
    struct stat before;
    assert_int_equal(lstat(path, &before), 0);
    struct output_file file;
    assert_int_equal(output_file_create(&file, AT_FDCWD, path, OUTPUT_FILE_REPLACE_STALE), -EEXIST);
    assert_int_equal(file.fd, -1);
    struct stat after;
    assert_int_equal(lstat(path, &after), 0);
    assert_int_equal(after.st_ino, before.st_ino);
    output_file_release(&file);
}

TEST_WITH(links_are_refused, set_up, scratch_remove)
{
    const char *target = scratch_path(state, "target");
    const char *path = scratch_path(state, "link");
    scratch_write(target, "precious");
    assert_int_equal(symlink(target, path), 0);
    assert_refused(path);
    assert_file_is(target, "precious");

    const char *dangling = scratch_path(state, "dangling");
    assert_int_equal(symlink(scratch_path(state, "nowhere"), dangling), 0);
    assert_refused(dangling);
    assert_int_equal(access(scratch_path(state, "nowhere"), F_OK), -1);
}

TEST_WITH(what_is_no_file_is_refused, set_up, scratch_remove)
{
    const char *fifo = scratch_path(state, "fifo");
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_refused(fifo); /* and does not wait for a reader */

    const char *directory = scratch_path(state, "directory");
    assert_int_equal(mkdir(directory, 0700), 0);
    assert_refused(directory);

    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", scratch_path(state, "socket"));
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_refused(address.sun_path);
    close(fd);
}

TEST_WITH(files_of_others_are_refused, set_up, scratch_remove)
{
    if (geteuid() != 0) {
        print_message("skipped: only root can make a file of somebody else's\n");
        skip();
    }
    const char *path = scratch_path(state, "file");
    scratch_write(path, "theirs");
    assert_int_equal(chown(path, 65534, 65534), 0);
    assert_refused(path);
    assert_file_is(path, "theirs");
}

TEST_WITH(missing_directory_is_an_error, set_up, scratch_remove)
{
    struct output_file file;
    assert_int_equal(output_file_create(&file, AT_FDCWD, scratch_path(state, "no/file"),
                                        OUTPUT_FILE_REPLACE_STALE),
                     -ENOENT);
    output_file_release(&file);
}

TEST_WITH(descriptors_of_stdio_are_left_alone, set_up, scratch_remove)
{
    const char *path = scratch_path(state, "file");
    pid_t child = fork();
    if (child == 0) {
        close(STDOUT_FILENO);
        close(STDERR_FILENO);
        struct output_file file;
        bool good = output_file_create(&file, AT_FDCWD, path, OUTPUT_FILE_REPLACE_STALE) == 0 &&
                    file.fd > STDERR_FILENO && write(STDERR_FILENO, "stray", 5) < 0;
        _exit(good ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_file_is(path, "");
}

TEST_WITH(short_and_interrupted_writes_are_continued, set_up, scratch_remove)
{
    const char *path = scratch_path(state, "file");
    struct output_file file;
    assert_int_equal(output_file_create(&file, AT_FDCWD, path, OUTPUT_FILE_REPLACE_STALE), 0);
    faulty_disk.chunk = 3;
    faulty_disk.interrupt = true;
    assert_int_equal(output_file_append(&file, "first record,", 13), 0);
    assert_int_equal(output_file_append(&file, "second record", 13), 0);
    assert_int_equal(file.size, 26);
    output_file_release(&file);
    assert_file_is(path, "first record,second record");
}

TEST_WITH(record_that_does_not_fit_is_cut_back, set_up, scratch_remove)
{
    static const int errors[] = {ENOSPC, EDQUOT, EFBIG, EIO};
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        const char *path = scratch_path(state, "file");
        struct output_file file;
        assert_int_equal(output_file_create(&file, AT_FDCWD, path, OUTPUT_FILE_REPLACE_STALE), 0);
        assert_int_equal(output_file_append(&file, "first,", 6), 0);
        faulty_disk.error = errors[i];
        faulty_disk.room = 4;
        assert_int_equal(output_file_append(&file, "second", 6), -errors[i]);
        assert_int_equal(file.fd, -1);
        faulty_disk.error = 0; /* somebody made room: what is missing stays missing */
        assert_int_equal(output_file_append(&file, "third", 5), -EPIPE);
        assert_int_equal(file.size, 6);
        assert_string_equal(file.path, path);
        output_file_release(&file);
        assert_file_is(path, "first,");
    }
}

TEST_WITH(size_limit_does_not_kill, set_up, scratch_remove)
{
    const char *path = scratch_path(state, "file");
    pid_t child = fork();
    if (child == 0) {
        signal(SIGXFSZ, SIG_DFL);
        const struct rlimit limit = {1000, 1000};
        setrlimit(RLIMIT_FSIZE, &limit);
        struct output_file file;
        char record[64] = "";
        int error = output_file_create(&file, AT_FDCWD, path, OUTPUT_FILE_REPLACE_STALE);
        while (!error) {
            error = output_file_append(&file, record, sizeof(record));
        }
        sigset_t signals;
        sigpending(&signals);
        bool pending = sigismember(&signals, SIGXFSZ);
        pthread_sigmask(SIG_SETMASK, NULL, &signals);
        _exit(error == -EFBIG && !pending && !sigismember(&signals, SIGXFSZ) ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    struct stat there;
    assert_int_equal(stat(path, &there), 0);
    assert_int_equal(there.st_size, 1000 / 64 * 64);
}

TEST_WITH(discarding_removes_the_file, set_up, scratch_remove)
{
    const char *path = scratch_path(state, "file");
    struct output_file file;
    assert_int_equal(output_file_create(&file, AT_FDCWD, path, OUTPUT_FILE_REPLACE_STALE), 0);
    output_file_discard(&file);
    assert_int_equal(access(path, F_OK), -1);
    /* Somebody else may have removed it before. */
    assert_int_equal(output_file_create(&file, AT_FDCWD, path, OUTPUT_FILE_REPLACE_STALE), 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(output_file_append(&file, "lost", 4), 0);
    output_file_release(&file);
}

TEST_WITH(replacing_takes_over_the_path, set_up, scratch_remove)
{
    const char *path = scratch_path(state, "file");
    struct output_file file;
    struct output_file fresh;
    assert_int_equal(output_file_create(&file, AT_FDCWD, path, OUTPUT_FILE_REPLACE_STALE), 0);
    assert_int_equal(output_file_append(&file, "old", 3), 0);
    assert_int_equal(output_file_create(&fresh, AT_FDCWD, scratch_path(state, "fresh"),
                                        OUTPUT_FILE_REPLACE_STALE),
                     0);
    assert_int_equal(output_file_append(&fresh, "fresh", 5), 0);
    assert_int_equal(output_file_replace(&file, &fresh), 0);
    assert_string_equal(file.path, path);
    assert_int_equal(output_file_append(&file, " and more", 9), 0);
    assert_int_equal(output_file_overwrite(&file, 1, "RE", 2), 0);
    output_file_release(&file);
    assert_file_is(path, "fREsh and more");
    assert_int_equal(access(scratch_path(state, "fresh"), F_OK), -1);
}

TEST_MAIN(NULL, NULL)
