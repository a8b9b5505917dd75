/*
 * Parts of jdperf watch: files it keeps and removes, limits per user and JVM, its slicer's pipes,
 * and access to its status.
 */
#include "test.h"

#include "jdtool/live/runtime_dir.h"
#include "jdtool/watch/doors.h"
#include "jdtool/watch/files.h"
#include "jdtool/watch/shares.h"
#include "jdtool/watch/slice_pipe.h"
#include "tests/random.h"
#include "tests/scratch.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

/* ---- Files ---- */

static struct labels labels;

static uint32_t files_in(const char *path)
{
    uint32_t count = 0;
    DIR *entries = opendir(path);
    const struct dirent *entry;
    assert_non_null(entries);
    while ((entry = readdir(entries))) {
        count += entry->d_name[0] != '.';
    }
    closedir(entries);
    return count;
}

static void make_file(const char *directory, const char *name, size_t size)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, (off_t)size), 0);
    close(fd);
}

static bool is_there(const char *directory, const char *name)
{
    char path[512];
    struct stat status;
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return lstat(path, &status) == 0;
}

static int give(struct slice_files *files, const char *service, time_t seconds, size_t size)
{
    static const uint8_t body[4096];
    memset(&labels, 0, sizeof labels);
    labels_set(&labels, "service_name", service);
    return slice_files_give(files, &labels, 7, (uint64_t)seconds * 1000000000 + 5, body, size);
}

TEST_WITH(test_files_by_age, scratch_create, scratch_remove)
{
    const char *directory = scratch_path(state, "kept");
    struct slice_files_options options = {.directory = directory, .keep_seconds = 3600};
    struct slice_files *files;
    uint64_t count;
    uint64_t bytes;
    time_t now = time(NULL);
    assert_int_equal(slice_files_new(&options, &files), 0);
    struct stat status;
    assert_int_equal(stat(directory, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0700);
    assert_int_equal(give(files, "shop", now - 7200, 100), 0);
    assert_int_equal(files_in(directory), 0);
    assert_int_equal(give(files, "shop", now - 3000, 100), 0);
    assert_int_equal(give(files, "shop", now, 200), 0);
    assert_int_equal(files_in(directory), 2);
    slice_files_counts(files, &count, &bytes);
    assert_int_equal(count, 2);
    assert_int_equal(bytes, 300);
    slice_files_free(files);
}

/* Under sudo: that of whoever called it, with the directory that was made for them. */
TEST_WITH(test_files_are_the_callers, scratch_create, scratch_remove)
{
    const char *directory = scratch_path(state, "kept");
    struct slice_files_options options = {.directory = directory};
    struct slice_files *files;
    struct stat status;
    char path[512];
    if (geteuid() != 0) {
        skip();
    }
    setenv("SUDO_UID", "65534", 1);
    setenv("SUDO_GID", "65533", 1);
    assert_int_equal(slice_files_new(&options, &files), 0);
    assert_int_equal(give(files, "shop", 0, 100), 0);
    snprintf(path, sizeof path, "%s/shop-7-19700101T000000Z.pb.gz", directory);
    assert_int_equal(lstat(path, &status), 0);
    assert_true(status.st_uid == 65534 && status.st_gid == 65533);
    assert_int_equal(stat(directory, &status), 0);
    assert_true(status.st_uid == 65534 && status.st_gid == 65533);
    slice_files_free(files);

    /* A directory that was root's stays root's, and so does what is in it. */
    assert_int_equal(unlink(path), 0);
    assert_int_equal(chown(directory, 0, 0), 0);
    assert_int_equal(slice_files_new(&options, &files), 0);
    assert_int_equal(give(files, "shop", 0, 100), 0);
    assert_int_equal(lstat(path, &status), 0);
    assert_int_equal(status.st_uid, 0);
    slice_files_free(files);
    unsetenv("SUDO_UID");
    unsetenv("SUDO_GID");
}

/* Those of an earlier watch count; nothing else is touched, whatever it looks like. */
TEST_WITH(test_files_that_were_there, scratch_create, scratch_remove)
{
    const char *directory = scratch_path(state, "kept");
    struct slice_files_options options = {.directory = directory, .keep_seconds = 3600};
    static const char *const others[] = {"notes.txt",
                                         "x.pb.gz",
                                         "shop-7-20200101T00000Z.pb.gz",
                                         "shop-7-2020x101T000000Z.pb.gz",
                                         "-20200101T000000Z.pb.gz",
                                         "shop-7-20200101T000000Z.pb.gz.part"};
    struct slice_files *files;
    assert_int_equal(mkdir(directory, 0700), 0);
    make_file(directory, "shop-7-20200101T000000Z.pb.gz", 10);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        make_file(directory, others[i], 10);
    }
    make_file(directory, "precious", 10);
    char link[512];
    snprintf(link, sizeof link, "%s/link-7-20200101T000000Z.pb.gz", directory);
    assert_int_equal(symlink("precious", link), 0);
    assert_int_equal(slice_files_new(&options, &files), 0);
    assert_int_equal(give(files, "shop", time(NULL), 100), 0);
    assert_false(is_there(directory, "shop-7-20200101T000000Z.pb.gz"));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_true(is_there(directory, others[i]));
    }
    assert_true(is_there(directory, "link-7-20200101T000000Z.pb.gz"));
    assert_true(is_there(directory, "precious"));
    slice_files_free(files);
}

TEST_WITH(test_files_by_size, scratch_create, scratch_remove)
{
    const char *directory = scratch_path(state, "kept");
    struct slice_files_options options = {.directory = directory, .keep_bytes = 1000};
    struct slice_files *files;
    uint64_t count;
    uint64_t bytes;
    time_t then = 1577836800; /* 2020-01-01 */
    assert_int_equal(mkdir(directory, 0700), 0);
    make_file(directory, "b-7-20191231T000001Z.pb.gz", 400);
    make_file(directory, "a-7-20191231T000002Z.pb.gz", 400);
    assert_int_equal(slice_files_new(&options, &files), 0);
    assert_int_equal(give(files, "c", then, 100), 0);
    assert_int_equal(files_in(directory), 3);
    assert_int_equal(give(files, "d", then + 1, 101), 0);
    assert_false(is_there(directory, "b-7-20191231T000001Z.pb.gz")); /* the oldest */
    assert_true(is_there(directory, "a-7-20191231T000002Z.pb.gz"));
    assert_true(is_there(directory, "c-7-20200101T000000Z.pb.gz"));
    for (int i = 2; i < 1500; i++) {
        assert_int_equal(give(files, "e", then + i, 300), 0);
        slice_files_counts(files, &count, &bytes);
        assert_in_range(bytes, 0, 1000);
    }
    assert_int_equal(files_in(directory), 3);
    assert_int_equal(count, 3);
    slice_files_free(files);
}

/* Who owns the directory above puts a link in its place: nothing is written where that leads. */
TEST_WITH(test_files_stay_in_their_directory, scratch_create, scratch_remove)
{
    char directory[512];
    char moved[512];
    char precious[512];
    snprintf(directory, sizeof directory, "%s", scratch_path(state, "kept"));
    snprintf(moved, sizeof moved, "%s", scratch_path(state, "moved"));
    snprintf(precious, sizeof precious, "%s", scratch_path(state, "precious"));
    struct slice_files_options options = {.directory = directory, .keep_bytes = 1000};
    struct slice_files *files;
    assert_int_equal(slice_files_new(&options, &files), 0);
    assert_int_equal(mkdir(precious, 0700), 0);
    assert_int_equal(rename(directory, moved), 0);
    assert_int_equal(symlink(precious, directory), 0);
    assert_int_equal(give(files, "a", 1577836800, 100), 0);
    slice_files_free(files);
    assert_int_equal(files_in(precious), 0);
    assert_int_equal(files_in(moved), 1);
    assert_int_equal(slice_files_new(&options, &files), -ENOTDIR);
    strcat(directory, "/");
    assert_int_equal(slice_files_new(&options, &files), -ENOTDIR);
}

/* Whatever order the directory has them in, the oldest goes first. */
TEST_WITH(test_the_oldest_goes, scratch_create, scratch_remove)
{
    const char *directory = scratch_path(state, "kept");
    struct slice_files_options options = {.directory = directory, .keep_bytes = 1500};
    struct slice_files *files;
    char file[64];
    assert_int_equal(mkdir(directory, 0700), 0);
    for (int i = 0; i < 13; i++) {
        snprintf(file, sizeof file, "x%d-7-201912%02dT000000Z.pb.gz", i, 1 + i * 5 % 13);
        make_file(directory, file, 100);
    }
    assert_int_equal(slice_files_new(&options, &files), 0);
    for (int i = 0; i < 13; i++) {
        assert_int_equal(give(files, "new", 1577836800 + i, i ? 100 : 300), 0);
        for (int k = 0; k < 13; k++) {
            snprintf(file, sizeof file, "x%d-7-201912%02dT000000Z.pb.gz", k, 1 + k * 5 % 13);
            assert_int_equal(is_there(directory, file), k * 5 % 13 > i);
        }
    }
    slice_files_free(files);
}

/* A service may be called anything. */
TEST_WITH(test_file_names, scratch_create, scratch_remove)
{
    const char *directory = scratch_path(state, "kept");
    struct slice_files_options options = {.directory = directory, .keep_bytes = 1 << 20};
    struct slice_files *files;
    time_t then = 1577836800;
    assert_int_equal(slice_files_new(&options, &files), 0);
    assert_int_equal(give(files, "../../x y\xff", then, 10), 0);
    assert_true(is_there(directory, "_._.._x_y_-7-20200101T000000Z.pb.gz"));
    char name[200];
    memset(name, 'n', sizeof name);
    name[199] = '\0';
    assert_int_equal(give(files, name, then, 10), 0);
    memset(&labels, 0, sizeof labels);
    assert_int_equal(slice_files_give(files, &labels, 9, 0, (const uint8_t *)"", 0), 0);
    assert_true(is_there(directory, "java-9-19700101T000000Z.pb.gz"));
    assert_int_equal(files_in(directory), 3);
    slice_files_free(files);
}

/* ---- Shares ---- */

TEST(test_places)
{
    static const uid_t users[] = {5, 7, 5, 0, 5, 7, 5, 7};
    assert_int_equal(shares_place_for(users, 8, 9), 6); /* 5 has four: his last */
    assert_int_equal(shares_place_for(users, 8, 0), 6);
    assert_int_equal(shares_place_for(users, 8, 7), NO_PLACE); /* 7 would have as many */
    assert_int_equal(shares_place_for(users, 8, 5), NO_PLACE);
    assert_int_equal(shares_place_for(users, 2, 9), NO_PLACE); /* one each */
    assert_int_equal(shares_place_for(users, 0, 9), NO_PLACE);
    /* Whatever users come, in the end nobody has two more than somebody who was refused, and
     * nobody is sent away for one who has as many. */
    uid_t places[16] = {0};
    uint64_t seed = 5;
    for (int i = 0; i < 2000; i++) {
        uid_t newcomer = random_below(&seed, 5);
        size_t place = shares_place_for(places, 16, newcomer);
        size_t has[5] = {0};
        size_t most = 0;
        for (size_t k = 0; k < 16; k++) {
            has[places[k]]++;
            most = has[places[k]] > most ? has[places[k]] : most;
        }
        assert_int_equal(place != NO_PLACE, most > has[newcomer] + 1);
        if (place != NO_PLACE) {
            assert_int_equal(has[places[place]], most);
            places[place] = newcomer;
        }
    }
}

TEST(test_processor)
{
    assert_int_equal(shares_of_processor(10, 100, 1), 1000);
    assert_int_equal(shares_of_processor(10, 100, 10), 1000);
    assert_int_equal(shares_of_processor(10, 100, 40), 250);
    assert_int_equal(shares_of_processor(10, 1, 256), 1);
    assert_int_equal(shares_of_processor(10, 0, 256), 1000);
    assert_int_equal(shares_of_processor(0, 100, 2), 5000);
    assert_int_equal(shares_of_processor(0, 0, 2), 0);
}

TEST(test_thinning)
{
    assert_int_equal(shares_thinning(8, 1000000, 0), 1); /* no limit */
    assert_int_equal(shares_thinning(1, 100, 100), 1);
    assert_int_equal(shares_thinning(1, 101, 100), 2);
    assert_int_equal(shares_thinning(1, 900, 100), 16); /* at once, as far as needed */
    assert_int_equal(shares_thinning(4, 250, 100), 16);
    assert_int_equal(shares_thinning(4, 34, 100), 4);
    assert_int_equal(shares_thinning(4, 32, 100), 2); /* by degrees: the next has twice that */
    assert_int_equal(shares_thinning(2, 0, 100), 1);
    assert_int_equal(shares_thinning(1, 0, 100), 1);
    assert_int_equal(shares_thinning(1, UINT64_MAX, 1), THINNING_MAX);
    assert_int_equal(shares_thinning(THINNING_MAX, 101, 100), THINNING_MAX);
}

/* ---- Slices through a pipe ---- */

TEST(test_slices_through_a_pipe)
{
    int ends[2];
    static struct slice_reader reader;
    struct slice_message message = {
        .magic = SLICE_MAGIC, .kind = SLICE_COST, .pid = 7, .cpu_ns = 5, .lost = 6};
    memset(&reader, 0, sizeof reader);
    assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    assert_int_equal(slice_read(&reader, ends[0]), 0);
    message.slice.sizes[0] = 100; /* of which nothing follows */
    assert_int_equal(slice_send(ends[1], &message), 0);
    assert_int_equal(slice_read(&reader, ends[0]), 1);
    assert_int_equal(reader.message.pid, 7);
    assert_int_equal(reader.message.cpu_ns, 5);

    message.kind = SLICE_PROFILE;
    message.slice.bodies[0] = (const uint8_t *)"first";
    message.slice.sizes[0] = 5;
    message.slice.bodies[1] = (const uint8_t *)"second";
    message.slice.sizes[1] = 6;
    message.slice.samples = 9;
    assert_int_equal(slice_send(ends[1], &message), 0);
    assert_int_equal(slice_read(&reader, ends[0]), 1);
    assert_int_equal(reader.message.slice.samples, 9);
    assert_memory_equal(reader.bodies[0], "first", 5);
    assert_memory_equal(reader.bodies[1], "second", 6);
    assert_int_equal(slice_read(&reader, ends[0]), 0);

    /* Byte by byte, as a busy machine may have it. */
    char bytes[sizeof message + 11];
    memcpy(bytes, &message, sizeof message);
    memcpy(bytes + sizeof message, "firstsecond", 11);
    for (size_t i = 0; i < sizeof bytes; i++) {
        assert_int_equal(write(ends[1], bytes + i, 1), 1);
        assert_int_equal(slice_read(&reader, ends[0]), i + 1 == sizeof bytes);
    }
    assert_memory_equal(reader.bodies[1], "second", 6);
    close(ends[1]);
    assert_int_equal(slice_read(&reader, ends[0]), -EPIPE);
    close(ends[0]);
    slice_reader_free(&reader);
}

static int read_wrong(const struct slice_message *message)
{
    static struct slice_reader reader;
    int ends[2];
    memset(&reader, 0, sizeof reader);
    assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    assert_int_equal(write(ends[1], message, sizeof *message), sizeof *message);
    int result = slice_read(&reader, ends[0]);
    slice_reader_free(&reader);
    close(ends[0]);
    close(ends[1]);
    return result;
}

/* The other end parses what JVMs give: should it be taken over, we are not. */
TEST(test_wrong_slices)
{
    struct slice_message message = {.magic = SLICE_MAGIC + 1, .kind = SLICE_PROFILE};
    assert_int_equal(read_wrong(&message), -EBADMSG);
    message.magic = SLICE_MAGIC;
    assert_int_equal(read_wrong(&message), 1);
    message.kind = SLICE_KINDS;
    assert_int_equal(read_wrong(&message), -EBADMSG);
    message.kind = SLICE_PROFILE;
    message.slice.sizes[1] = SLICE_BODY_MAX + 1;
    assert_int_equal(read_wrong(&message), -EBADMSG);
    message.slice.sizes[1] = SLICE_BODY_MAX;
    assert_int_equal(read_wrong(&message), 0);
}

/* Orders may come in any pieces, and labels are what they were. */
TEST(test_orders)
{
    static struct labels got;
    struct bytes bytes = {0};
    struct slice_order order = {.kind = ORDER_BEGIN, .pid = 7};
    char longest[LABEL_VALUE_MAX];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    memset(&labels, 0, sizeof labels);
    for (int i = 0; i < LABELS_MAX; i++) {
        char name[LABEL_NAME_MAX];
        snprintf(name, sizeof name, "%s_%02d", "a", i);
        labels_set(&labels, name, i == 3 ? "a=b" : i == 4 ? "line\nbreak" : longest);
    }
    slice_order_put(&bytes, &order, &labels);
    size_t first = bytes.size;
    order = (struct slice_order){.kind = ORDER_THIN, .pid = 8, .one_in = 4};
    slice_order_put(&bytes, &order, NULL);
    for (size_t size = 0; size < first; size++) {
        assert_int_equal(slice_order_take(bytes.at, size, &order, &got), 0);
    }
    assert_int_equal(slice_order_take(bytes.at, bytes.size, &order, &got), first);
    assert_int_equal(order.kind, ORDER_BEGIN);
    assert_int_equal(order.pid, 7);
    assert_int_equal(got.count, LABELS_MAX);
    assert_string_equal(labels_get(&got, "a_03"), "a=b");
    assert_string_equal(labels_get(&got, "a_04"), "line?break");
    assert_string_equal(labels_get(&got, "a_31"), longest);
    assert_int_equal(slice_order_take(bytes.at + first, bytes.size - first, &order, &got),
                     sizeof order);
    assert_int_equal(order.kind, ORDER_THIN);
    assert_int_equal(order.pid, 8);
    assert_int_equal(order.one_in, 4);
    assert_int_equal(got.count, 0);
    bytes_free(&bytes);
}

/* ---- Who may ask ---- */

static char *say(void *context)
{
    return strdup(context);
}

/* What a process gets that talks to the socket as that user: "" nothing, "refused". */
static void ask_as(uid_t uid, struct doors *doors, const char *path, char answer[64])
{
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid_t child = fork();
    if (child == 0) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        char text[64] = "refused";
        ssize_t n = 7;
        snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);
        if (setgid(uid) == 0 && setuid(uid) == 0 &&
            connect(fd, (struct sockaddr *)&address, sizeof address) == 0) {
            n = read(fd, text, sizeof text);
        }
        _exit(n < 0 || write(ends[1], text, (size_t)n) != n);
    }
    close(ends[1]);
    int status = 0;
    for (int i = 0; waitpid(child, &status, WNOHANG) == 0; i++) {
        assert_true(i < 4000);
        doors_turn(doors);
        usleep(1000);
    }
    assert_int_equal(status, 0);
    ssize_t n = read(ends[0], answer, 63);
    answer[n > 0 ? n : 0] = '\0';
    close(ends[0]);
}

static char name[32];

static struct doors_options the_options(void)
{
    snprintf(name, sizeof name, "test-%d", (int)getpid());
    return (struct doors_options){.name = name, .status = say, .metrics = say, .context = "hello"};
}

static void socket_path(char path[PATH_MAX])
{
    char directory[PATH_MAX];
    assert_true(snprintf(path, PATH_MAX, "%s/watch-%s", runtime_dir_path(directory), name) <
                PATH_MAX);
}

/* The only one of its name; itself and root are answered, nobody else. */
TEST(test_status)
{
    struct doors_options options = the_options();
    struct doors *doors;
    struct doors *other;
    char path[PATH_MAX];
    char answer[64];
    assert_int_equal(doors_open(&options, &doors), 0);
    assert_int_equal(doors_open(&options, &other), -EADDRINUSE);
    socket_path(path);
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    ask_as(geteuid(), doors, path, answer);
    assert_string_equal(answer, "hello");
    if (geteuid() == 0) {
        ask_as(65534, doors, path, answer);
        assert_string_equal(answer, "refused");
        assert_int_equal(chmod(path, 0666), 0); /* were the file's mode all that keeps him out */
        ask_as(65534, doors, path, answer);
        assert_string_equal(answer, "");
    } else {
        puts("LEFT OUT: asked by another user: needs is_root");
    }
    doors_close(doors);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(doors_ask(name), -ECONNREFUSED);
    /* One that was killed leaves its socket, which is in nobody's way. */
    pid_t child = fork();
    if (child == 0) {
        _exit(doors_open(&options, &doors) != 0);
    }
    int ended;
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_int_equal(ended, 0);
    assert_int_equal(access(path, F_OK), 0);
    snprintf(name, sizeof name, "other-%d", (int)getpid());
    assert_int_equal(doors_open(&options, &doors), 0);
    assert_int_equal(access(path, F_OK), -1);
    doors_close(doors);
}

/* Nobody else can take its place: not by a name that anybody may bind, nor by a directory. */
TEST_WITH(test_squatters, scratch_create, scratch_remove)
{
    if (geteuid() != 0) {
        puts("LEFT OUT: other users: needs is_root");
        skip();
    }
    struct doors_options options = the_options();
    struct doors *doors;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int n = snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "jdperf-watch-0-%s", name);
    int squatter = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(squatter, (struct sockaddr *)&address,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)),
                     0);
    assert_int_equal(listen(squatter, 1), 0);
    assert_int_equal(doors_open(&options, &doors), 0);
    doors_close(doors);
    close(squatter);
    /* An ordinary user's is in his own directory, or nowhere. */
    for (int own = 0; own < 2; own++) {
        const char *directory = scratch_path(state, own ? "own" : "others");
        assert_int_equal(chmod(*state, 0755), 0);
        assert_int_equal(mkdir(directory, 0777), 0);
        assert_int_equal(chmod(directory, own ? 0700 : 0777), 0);
        assert_int_equal(chown(directory, own ? 65534 : 65533, 65534), 0);
        pid_t child = fork();
        if (child == 0) {
            setenv("XDG_RUNTIME_DIR", directory, 1);
            int err = setgid(65534) || setuid(65534) ? -1 : doors_open(&options, &doors);
            char path[PATH_MAX];
            socket_path(path);
            bool listens = access(path, F_OK) == 0;
            doors_close(err ? NULL : doors);
            _exit(err != 0 || listens != own);
        }
        int ended;
        assert_int_equal(waitpid(child, &ended, 0), child);
        assert_int_equal(ended, 0);
    }
}

/* ---- Metrics ---- */

static void ask_metrics(struct doors *doors, const char *request, size_t size, char answer[2048])
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)doors_port(doors))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    size_t got = 0;
    ssize_t n = -1;
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(send(fd, request, size, MSG_NOSIGNAL), size);
    for (int i = 0; n != 0; i++) {
        assert_true(i < 4000);
        doors_turn(doors);
        n = recv(fd, answer + got, 2047 - got, MSG_DONTWAIT);
        if (n < 0 && errno == EAGAIN) {
            usleep(1000);
        } else if (n < 0) {
            break; /* reset: it has not read all that was sent */
        }
        got += n > 0 ? (size_t)n : 0;
    }
    answer[got] = '\0';
    close(fd);
}

TEST(test_metrics)
{
    struct doors_options options = the_options();
    struct doors *doors;
    char answer[2048];
    options.listen = "0";
    assert_int_equal(doors_open(&options, &doors), 0);
    assert_in_range(doors_port(doors), 1, 65535);
    static const char get[] = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";
    ask_metrics(doors, get, sizeof get - 1, answer);
    assert_non_null(strstr(answer, "HTTP/1.1 200 "));
    assert_non_null(strstr(answer, "\r\n\r\nhello"));
    static const char head[] = "HEAD /metrics HTTP/1.1\r\n\r\n";
    ask_metrics(doors, head, sizeof head - 1, answer);
    assert_non_null(strstr(answer, "HTTP/1.1 200 "));
    assert_null(strstr(answer, "hello"));
    static const char where[] = "GET /x HTTP/1.1\r\n\r\n";
    ask_metrics(doors, where, sizeof where - 1, answer);
    assert_non_null(strstr(answer, "HTTP/1.1 404 "));
    static const char post[] = "POST /metrics HTTP/1.1\r\n\r\n";
    ask_metrics(doors, post, sizeof post - 1, answer);
    assert_non_null(strstr(answer, "HTTP/1.1 405 "));
    char endless[5000];
    memset(endless, 'x', sizeof endless);
    ask_metrics(doors, endless, 4096, answer);
    assert_string_equal(answer, "");
    doors_close(doors);
    static const char *const wrong[] = {"x", "host:1", "127.0.0.1", "127.0.0.1:x", "[::1:1"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        options.listen = wrong[i];
        assert_true(doors_open(&options, &doors) < 0);
    }
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    return tests_run(NULL, NULL);
}
