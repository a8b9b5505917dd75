/* Which owners and links are accepted on the path to the dump. */
#include "test.h"

#include "agent/session/dump_directory.h"
#include "scratch.h"
#include "writer/message.h"

#include <stdbool.h>

enum { NOBODY = 65534 };

static int set_up(void **state)
{
    message_set_level(-1);
    return scratch_create(state);
}

/* The directory that is named is the one that is open. */
static void assert_same(int fd, const char *path)
{
    struct stat by_name;
    struct stat by_fd;
    assert_int_equal(stat(path, &by_name), 0);
    assert_int_equal(fstat(fd, &by_fd), 0);
    assert_int_equal(by_name.st_ino, by_fd.st_ino);
}

/* Whether a path is used, and then for what. */
static bool leads_to(const char *path, const char *expected)
{
    char out[PATH_MAX] = "";
    int fd = dump_directory_make(path, out);
    if (fd < 0) {
        return false;
    }
    assert_same(fd, out);
    assert_string_equal(out, expected);
    close(fd);
    return true;
}

static void need_root(void)
{
    if (geteuid() != 0) {
        print_message("skipped: only root can make something of somebody else's\n");
        skip();
    }
}

TEST_WITH(given_one_is_made_and_used_as_it_is, set_up, scratch_remove)
{
    const char *path = scratch_path(state, "new");
    assert_true(leads_to(path, path));
    struct stat made;
    assert_int_equal(stat(path, &made), 0);
    assert_int_equal(made.st_mode, S_IFDIR | 0700);
    assert_true(leads_to(path, path));
    assert_false(leads_to(scratch_path(state, "missing/new"), ""));
    scratch_write(scratch_path(state, "file"), "");
    assert_false(leads_to(scratch_path(state, "file"), ""));
}

TEST_WITH(links_of_our_own_are_followed, set_up, scratch_remove)
{
    const char *real = scratch_path(state, "real");
    assert_int_equal(mkdir(real, 0700), 0);
    const char *relative = scratch_path(state, "relative");
    assert_int_equal(symlink("./real/../real", relative), 0);
    assert_true(leads_to(relative, real));
    const char *absolute = scratch_path(state, "absolute");
    assert_int_equal(symlink(relative, absolute), 0);
    assert_true(leads_to(absolute, real));
    const char *loop = scratch_path(state, "loop");
    assert_int_equal(symlink("loop", loop), 0);
    assert_false(leads_to(loop, ""));
}

TEST_WITH(relative_paths_start_here, set_up, scratch_remove)
{
    int here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(chdir(*state), 0);
    assert_true(leads_to("sub", scratch_path(state, "sub")));
    assert_true(leads_to(".", *state));
    assert_int_equal(fchdir(here), 0);
    close(here);
}

TEST_WITH(directories_of_others_are_refused, set_up, scratch_remove)
{
    need_root();
    const char *theirs = scratch_path(state, "theirs");
    assert_int_equal(mkdir(theirs, 0777), 0);
    assert_int_equal(chown(theirs, NOBODY, NOBODY), 0);
    assert_false(leads_to(theirs, ""));
    const char *below = scratch_path(state, "theirs/below");
    assert_false(leads_to(below, ""));
    assert_int_equal(access(below, F_OK), -1);
    /* Ours below theirs is no better: they can put another one in its place. */
    assert_int_equal(mkdir(below, 0755), 0);
    assert_false(leads_to(below, ""));
    /* But one that is closed to them: nobody but us can have made what they put there. */
    assert_int_equal(chmod(below, 0700), 0);
    assert_true(leads_to(below, below));
    assert_false(leads_to(scratch_path(state, "theirs/below/new"), ""));
    const char *link = scratch_path(state, "theirs/link");
    assert_int_equal(symlink("below", link), 0);
    assert_false(leads_to(link, ""));
    assert_int_equal(unlink(link), 0);
    assert_int_equal(chown(below, NOBODY, NOBODY), 0);
    assert_false(leads_to(below, ""));
    setenv("JITDUMPDIR", theirs, 1);
    assert_false(leads_to("", ""));
    unsetenv("JITDUMPDIR");
    assert_int_equal(rmdir(below), 0);
}

TEST_WITH(links_of_others_are_refused, set_up, scratch_remove)
{
    need_root();
    const char *link = scratch_path(state, "link");
    assert_int_equal(symlink("/tmp", link), 0);
    assert_true(leads_to(link, "/tmp"));
    assert_int_equal(lchown(link, NOBODY, NOBODY), 0);
    assert_false(leads_to(link, ""));
    assert_false(leads_to(scratch_path(state, "link/sub"), ""));
}

TEST_WITH(default_is_always_new, set_up, scratch_remove)
{
    setenv("JITDUMPDIR", *state, 1);
    char first[PATH_MAX] = "";
    char second[PATH_MAX] = "";
    int fd = dump_directory_make("", first);
    assert_same(fd, first);
    close(fd);
    fd = dump_directory_make("", second);
    assert_same(fd, second);
    close(fd);
    assert_string_not_equal(first, second);
    assert_int_equal(strncmp(first, scratch_path(state, ".debug/jit/java-jit-"),
                             strlen(*state) + strlen("/.debug/jit/java-jit-")),
                     0);
    assert_int_equal(rmdir(first), 0);
    assert_int_equal(rmdir(second), 0);
    assert_int_equal(rmdir(scratch_path(state, ".debug/jit")), 0);
    unsetenv("JITDUMPDIR");
}

TEST_MAIN(NULL, NULL)
