/*
 * What jdperf watch pushes, delays and drops, and which TLS certificates it accepts, with a
 * simulated server.
 */
#include "test.h"

#include "jdtool/watch/push.h"
#include "tests/scratch.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

/* ---- The clock: it goes only where the test sets it, however slow the machine is ---- */

static int64_t ahead_ms;

int __wrap_clock_gettime(clockid_t id, struct timespec *now);

int __wrap_clock_gettime(clockid_t id, struct timespec *now)
{
    (void)id;
    *now = (struct timespec){.tv_sec = 1000 + ahead_ms / 1000};
    return 0;
}

/* ---- The server ---- */

enum { BODY_MAX = 65536, REQUESTS_MAX = 64 };

struct played {
    int listener, fd;
    unsigned port;
    int status;       /* that it answers; 0: nothing at all */
    const char *more; /* further lines of its head */
    char in[BODY_MAX + 4096];
    size_t got;
    unsigned requests;
    char head[4096]; /* of the last request */
    uint8_t body[BODY_MAX];
    size_t body_size;
    uint8_t marks[REQUESTS_MAX]; /* the first bytes of all bodies */
};

static void play(struct played *server)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof address;
    memset(server, 0, sizeof *server);
    server->fd = -1;
    server->status = 200;
    server->more = "";
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    server->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_int_equal(bind(server->listener, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(server->listener, 8), 0);
    assert_int_equal(getsockname(server->listener, (struct sockaddr *)&address, &size), 0);
    server->port = ntohs(address.sin_port);
}

static void take_request(struct played *server, const char *end)
{
    const char *length = strcasestr(server->in, "\r\ncontent-length:");
    size_t head = (size_t)(end - server->in) + 4;
    size_t size = length && length < end ? strtoul(length + 17, NULL, 10) : 0;
    assert_in_range(size, 0, BODY_MAX);
    if (server->got < head + size) {
        return;
    }
    snprintf(server->head, sizeof server->head, "%.*s", (int)head, server->in);
    memcpy(server->body, server->in + head, size);
    server->body_size = size;
    assert_in_range(server->requests, 0, REQUESTS_MAX - 1);
    server->marks[server->requests++] = size ? server->body[0] : 0;
    server->got = 0;
    if (server->status) {
        char answer[512];
        int n =
            snprintf(answer, sizeof answer, "HTTP/1.1 %d Why\r\nContent-Length: 4\r\n%s\r\nwhy\n",
                     server->status, server->more);
        assert_int_equal(send(server->fd, answer, (size_t)n, MSG_NOSIGNAL), n);
    }
}

static void serve(struct played *server)
{
    if (server->fd < 0) {
        server->fd = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        server->got = 0;
    }
    ssize_t n = server->fd < 0 ? -1
                               : recv(server->fd, server->in + server->got,
                                      sizeof server->in - 1 - server->got, 0);
    if (server->fd >= 0 && (n == 0 || (n < 0 && errno != EAGAIN))) {
        close(server->fd);
        server->fd = -1;
    }
    if (n > 0) {
        server->got += (size_t)n;
        server->in[server->got] = '\0';
        const char *end = strstr(server->in, "\r\n\r\n");
        if (end) {
            take_request(server, end);
        }
    }
}

static void stop_playing(struct played *server)
{
    close(server->listener);
    if (server->fd >= 0) {
        close(server->fd);
    }
}

/* ---- A pusher to it ---- */

struct setting {
    struct played server;
    struct pusher_options options;
    struct pusher *pusher;
    const char *urls[2];
    const char *headers[3];
    char url[128];
};

static void open_pusher(struct setting *setting, const char *form, size_t spool)
{
    ahead_ms = 0;
    snprintf(setting->url, sizeof setting->url, form, setting->server.port);
    setting->urls[0] = setting->url;
    setting->headers[0] = "X-Scope-OrgID: tenant";
    setting->options =
        (struct pusher_options){.urls = setting->urls, .headers = setting->headers, .spool = spool};
    assert_int_equal(pusher_new(&setting->options, &setting->pusher), 0);
}

static struct setting *start(const char *form, size_t spool)
{
    struct setting *setting = calloc(1, sizeof *setting);
    assert_non_null(setting);
    play(&setting->server);
    open_pusher(setting, form, spool);
    return setting;
}

static void end(struct setting *setting)
{
    pusher_free(setting->pusher);
    stop_playing(&setting->server);
    free(setting);
}

/* A profile of that size which begins with a mark; in OpenTelemetry's format it is sent as it is.
 */
static void give(struct setting *setting, uint8_t mark, size_t size)
{
    static struct labels labels;
    static uint8_t body[BODY_MAX];
    struct slice_message message = {.slice = {.sizes = {size}}};
    const uint8_t *bodies[SLICE_FORMATS_MAX] = {body};
    const char *format = strncmp(setting->url, "otlp", 4) == 0 ? "otlp" : "pprof";
    const struct export_format *formats[SLICE_FORMATS_MAX] = {export_format_of(format)};
    memset(&labels, 0, sizeof labels);
    labels_set(&labels, "service_name", "shop");
    memset(body, 'x', size);
    body[0] = mark;
    pusher_give(setting->pusher, &labels, &message, bodies, formats);
}

static struct push_counts counts(const struct setting *setting)
{
    struct push_counts told;
    assert_true(pusher_counts(setting->pusher, 0, &told));
    return told;
}

static void turn(struct setting *setting)
{
    struct pollfd fd = {.fd = setting->server.listener, .events = POLLIN};
    pusher_turn(setting->pusher);
    serve(&setting->server);
    pusher_poll(setting->pusher, &fd, 1, 1);
}

/* So many turns that what is under way would have come. */
static void settle(struct setting *setting)
{
    for (int i = 0; i < 100; i++) {
        turn(setting);
    }
}

static void until_requests(struct setting *setting, unsigned requests)
{
    for (int i = 0; setting->server.requests < requests; i++) {
        assert_true(i < 4000);
        turn(setting);
    }
    settle(setting);
}

/* How many ms of waiting it takes till it asks again, at most so many; in steps of a second, or of
 * a twentieth. */
static int64_t until_asked_again(struct setting *setting, int64_t most)
{
    unsigned before = setting->server.requests;
    int64_t begun = ahead_ms;
    while (setting->server.requests == before) {
        assert_true(ahead_ms - begun <= most);
        ahead_ms += most > 20000 ? most / 20 / 1000 * 1000 : 1000;
        for (int i = 0; i < 40 && setting->server.requests == before; i++) {
            turn(setting);
        }
    }
    settle(setting);
    return ahead_ms - begun;
}

/* ---- What is sent ---- */

TEST(test_what_is_sent)
{
    struct setting *setting = start("otlp+http://127.0.0.1:%u/base/", 1 << 20);
    give(setting, 'a', 100);
    until_requests(setting, 1);
    const char *head = setting->server.head;
    assert_non_null(strstr(head, "POST /base/v1development/profiles HTTP/1.1\r\n"));
    assert_non_null(strstr(head, "\r\nContent-Type: application/x-protobuf\r\n"));
    assert_non_null(strstr(head, "\r\nContent-Encoding: gzip\r\n"));
    assert_non_null(strstr(head, "\r\nX-Scope-OrgID: tenant\r\n"));
    assert_null(strcasestr(head, "\r\nExpect:"));
    assert_int_equal(setting->server.body_size, 100);
    assert_int_equal(counts(setting).sent, 1);
    assert_int_equal(counts(setting).sent_bytes, 100);
    assert_int_equal(counts(setting).waiting, 0);
    assert_int_equal(counts(setting).waiting_bytes, 0);
    assert_false(pusher_is_busy(setting->pusher));
    /* In order, one at a time. */
    for (uint8_t mark = 'b'; mark <= 'f'; mark++) {
        give(setting, mark, 100);
    }
    assert_true(pusher_is_busy(setting->pusher));
    until_requests(setting, 6);
    assert_memory_equal(setting->server.marks, "abcdef", 6);
    end(setting);

    setting = start("pyroscope+http://127.0.0.1:%u", 1 << 20);
    give(setting, 'p', 100);
    until_requests(setting, 1);
    head = setting->server.head;
    assert_non_null(strstr(head, "POST /push.v1.PusherService/Push HTTP/1.1\r\n"));
    assert_non_null(strstr(head, "\r\nContent-Type: application/proto\r\n"));
    assert_null(strstr(head, "Content-Encoding"));
    assert_non_null(memmem(setting->server.body, setting->server.body_size, "process_cpu", 11));
    assert_non_null(memmem(setting->server.body, setting->server.body_size, "shop", 4));
    end(setting);

    setting = start("parca+http://127.0.0.1:%u", 1 << 20);
    give(setting, 'p', 100);
    until_requests(setting, 1);
    assert_non_null(strstr(setting->server.head, "POST /api/profiles/writeraw HTTP/1.1\r\n"));
    assert_non_null(strstr(setting->server.head, "\r\nContent-Type: application/json\r\n"));
    end(setting);
}

TEST(test_urls)
{
    static const char *const good[] = {"pyroscope+http://h", "otlp+https://h:1/x",
                                       "parca+http://u:p@h"};
    static const char *const bad[] = {"",
                                      "http://h",
                                      "pyroscope",
                                      "otlp+h",
                                      "otlp+ftp://h",
                                      "otlp+http://",
                                      "otlpxhttp://h",
                                      "zipkin+http://h",
                                      "otlpx+http://h",
                                      "otlp+https:/h"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_non_null(push_protocol_of(good[i]));
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_null(push_protocol_of(bad[i]));
    }
    char *longest = malloc(5000);
    memset(longest, 'x', 4999);
    longest[4999] = '\0';
    memcpy(longest, "otlp+http://", 12);
    assert_null(push_protocol_of(longest));
    free(longest);
    /* What is shown has no password; what is sent has it. */
    struct setting *setting = start("otlp+http://user:secret@127.0.0.1:%u", 1 << 20);
    assert_null(strstr(counts(setting).url, "secret"));
    assert_null(strstr(counts(setting).url, "user"));
    assert_non_null(strstr(counts(setting).url, "otlp+http://***@127.0.0.1:"));
    give(setting, 'a', 10);
    until_requests(setting, 1);
    assert_non_null(strstr(setting->server.head, "\r\nAuthorization: Basic dXNlcjpzZWNyZXQ=\r\n"));
    end(setting);
}

/* No part of a secret is shown, however the URL was mistyped; and it is told who could read it. */
TEST(test_secrets)
{
    static const struct {
        const char *url, *shown;
        bool open, open_with_header;
    } cases[] = {
        {"otlp+http://h:4318/x", "otlp+http://h:4318/x", false, true},
        {"otlp+http://u:secret@h/x@y", "otlp+http://***@h/x@y", true, true},
        {"otlp+http://u:sec@ret@h", "otlp+http://***@h", true, true},
        {"otlp+https://u:secret@h", "otlp+https://***@h", false, false},
        {"otlp+https://h/x?token=secret", "otlp+https://h/x?***", false, false},
        {"otlp+http://u:secret@127.0.0.1:1", "otlp+http://***@127.0.0.1:1", false, false},
        {"otlp+http://localhost:1/", "otlp+http://localhost:1/", false, false},
        {"otlp+http://u:p@localhost", "otlp+http://***@localhost", false, false},
        {"otlp+http://localhost.example", "otlp+http://localhost.example", false, true},
        {"otlp+http://[::1]:1", "otlp+http://[::1]:1", false, false},
        {"http//u:secret@h", "***@h", false, false},
        {"u:secret/x@h", "***@h", false, false},
        {"h", "h", false, false},
        {"", "", false, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char shown[64];
        push_url_shown(cases[i].url, shown, sizeof shown);
        assert_string_equal(shown, cases[i].shown);
        assert_int_equal(push_url_is_open(cases[i].url, false), cases[i].open);
        assert_int_equal(push_url_is_open(cases[i].url, true), cases[i].open_with_header);
    }
}

/* ---- What waits ---- */

TEST(test_spool)
{
    struct setting *setting = start("otlp+http://127.0.0.1:%u", 10000);
    setting->server.status = 0; /* takes a request and says nothing */
    give(setting, 'A', 1000);
    until_requests(setting, 1);
    for (int i = 0; i < 26; i++) {
        give(setting, (uint8_t)('a' + i), 1000);
        assert_in_range(counts(setting).waiting_bytes, 0, 10000);
    }
    /* The first is under way and stays; of the others the newest do. */
    assert_int_equal(counts(setting).waiting, 10);
    assert_int_equal(counts(setting).waiting_bytes, 10000);
    assert_int_equal(counts(setting).dropped, 17);
    give(setting, 'Z', 10001); /* larger than all of it */
    assert_int_equal(counts(setting).dropped, 18);
    assert_int_equal(counts(setting).waiting, 10);
    setting->server.status = 200;
    static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    assert_true(send(setting->server.fd, answer, sizeof answer - 1, MSG_NOSIGNAL) > 0);
    until_requests(setting, 10);
    assert_memory_equal(setting->server.marks, "Arstuvwxyz", 10);
    assert_int_equal(counts(setting).sent, 10);
    assert_int_equal(counts(setting).waiting_bytes, 0);
    end(setting);

    /* The only one that waits is dropped: the next is still behind the one under way. */
    setting = start("otlp+http://127.0.0.1:%u", 2000);
    setting->server.status = 0;
    give(setting, 'A', 1000);
    until_requests(setting, 1);
    give(setting, 'b', 1000);
    give(setting, 'c', 1000);
    setting->server.status = 200;
    assert_true(send(setting->server.fd, answer, sizeof answer - 1, MSG_NOSIGNAL) > 0);
    until_requests(setting, 2);
    assert_memory_equal(setting->server.marks, "Ac", 2);
    end(setting);
}

/* Nobody listens: after 1 s, 2 s, 4 s… and at most once a minute, a quarter more by chance. */
TEST(test_pauses)
{
    struct setting *setting = start("otlp+http://127.0.0.1:%u", 10000);
    setting->server.status = 503;
    give(setting, 'a', 10);
    until_requests(setting, 1);
    assert_int_equal(counts(setting).failures, 1);
    assert_int_equal(counts(setting).refused, 0);
    assert_non_null(strstr(counts(setting).trouble, "503"));
    assert_non_null(strstr(counts(setting).trouble, "why"));
    static const int64_t least[] = {1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000};
    for (size_t i = 0; i < sizeof least / sizeof *least; i++) {
        int64_t took = until_asked_again(setting, least[i] * 5 / 4 + 8000);
        assert_true(took >= least[i] - 1000);
    }
    assert_int_equal(counts(setting).waiting, 1);
    setting->server.status = 200;
    until_asked_again(setting, 80000);
    assert_int_equal(counts(setting).sent, 1);
    assert_string_equal(counts(setting).trouble, "");
    /* And it begins anew. */
    setting->server.status = 503;
    give(setting, 'b', 10);
    until_requests(setting, setting->server.requests + 1);
    until_asked_again(setting, 8000);
    end(setting);
}

TEST(test_retry_after)
{
    struct setting *setting = start("otlp+http://127.0.0.1:%u", 10000);
    setting->server.status = 429;
    setting->server.more = "Retry-After: 120\r\n";
    give(setting, 'a', 10);
    until_requests(setting, 1);
    assert_true(until_asked_again(setting, 200000) >= 120000 - 1000);
    /* A server that asks for a day is asked after some ten minutes. */
    setting->server.more = "Retry-After: 86400\r\n";
    until_asked_again(setting, 200000);
    int64_t took = until_asked_again(setting, 900000);
    assert_in_range(took, 599000, 880000);
    assert_int_equal(counts(setting).waiting, 1);
    assert_int_equal(counts(setting).refused, 0);
    end(setting);
}

/* What it would refuse again is dropped, and what comes behind is sent at once. */
TEST(test_refused)
{
    struct setting *setting = start("otlp+http://127.0.0.1:%u", 10000);
    setting->server.status = 400;
    give(setting, 'a', 10);
    until_requests(setting, 1);
    assert_int_equal(counts(setting).refused, 1);
    assert_int_equal(counts(setting).failures, 0);
    assert_int_equal(counts(setting).waiting, 0);
    setting->server.status = 200;
    give(setting, 'b', 10);
    until_requests(setting, 2);
    assert_memory_equal(setting->server.marks, "ab", 2);
    for (int status = 408; status; status = status == 408 ? 425 : status == 425 ? 500 : 0) {
        struct setting *other = start("otlp+http://127.0.0.1:%u", 10000);
        other->server.status = status;
        give(other, 'a', 10);
        until_requests(other, 1);
        assert_int_equal(counts(other).waiting, 1);
        end(other);
    }
    end(setting);
}

/* Control characters of a server reach no terminal. */
TEST(test_trouble_is_plain)
{
    struct setting *setting = start("otlp+http://127.0.0.1:%u", 10000);
    setting->server.status = 400;
    setting->server.more = "X: y\r\n\r\n\033[2"; /* and so the body begins */
    give(setting, 'a', 10);
    until_requests(setting, 1);
    assert_non_null(strstr(counts(setting).trouble, "400"));
    assert_null(strchr(counts(setting).trouble, '\033'));
    end(setting);
}

/* What waits when the watch ends is lost, which is said. */
TEST(test_lost_at_the_end)
{
    struct setting *setting = start("otlp+http://127.0.0.1:%u", 10000);
    char said[512] = "";
    int kept = dup(STDERR_FILENO);
    int file = memfd_create("said", MFD_CLOEXEC);
    assert_true(kept >= 0 && dup2(file, STDERR_FILENO) == STDERR_FILENO);
    setting->server.status = 503;
    give(setting, 'a', 10);
    give(setting, 'b', 10);
    until_requests(setting, 1);
    end(setting);
    (void)dup2(kept, STDERR_FILENO);
    assert_true(pread(file, said, sizeof said - 1, 0) > 0);
    assert_non_null(strstr(said, "takes no profiles now, they wait: status 503"));
    assert_non_null(strstr(said, "profiles that have not reached"));
    assert_non_null(strstr(said, ": 2\n"));
    close(kept);
    close(file);
}

/* ---- TLS ---- */

/* openssl's server: hands on what comes and what we say. */
struct tls_server {
    pid_t pid;
    int in, out;
    unsigned port;
};

static bool start_tls(struct tls_server *server, const char *certificate)
{
    int in[2];
    int out[2];
    char text[4096];
    size_t got = 0;
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    server->pid = fork();
    if (server->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* however the test ends */
        dup2(in[0], 0);
        dup2(out[1], 1);
        dup2(out[1], 2);
        execlp("openssl", "openssl", "s_server", "-accept", "127.0.0.1:0", "-cert", certificate,
               (char *)NULL);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    server->in = in[1];
    server->out = out[0];
    server->port = 0;
    while (!server->port && got < sizeof text - 1) {
        ssize_t n = read(server->out, text + got, sizeof text - 1 - got);
        if (n <= 0) {
            return false;
        }
        got += (size_t)n;
        text[got] = '\0';
        const char *at = strstr(text, "ACCEPT 127.0.0.1:");
        server->port = at && strchr(at, '\n') ? (unsigned)strtoul(at + 17, NULL, 10) : 0;
    }
    fcntl(server->out, F_SETFL, O_NONBLOCK);
    return server->port != 0;
}

static void stop_tls(struct tls_server *server)
{
    kill(server->pid, SIGKILL);
    waitpid(server->pid, NULL, 0);
    close(server->in);
    close(server->out);
}

/* RSA, for 127.0.0.1. False: there is no openssl. */
static bool make_certificate(const char *path)
{
    char command[1024];
    snprintf(command, sizeof command,
             "openssl req -x509 -newkey rsa:2048 -nodes -keyout %s -out %s.crt -days 2 -subj "
             "/CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1 2>/dev/null && cat %s.crt >>%s",
             path, path, path, path);
    return system(command) == 0; /* NOLINT: the test's own words */
}

/* A test that is killed leaves no server behind. */
TEST_WITH(test_tls_servers_end_with_their_test, scratch_create, scratch_remove)
{
    const char *certificate = scratch_path(state, "both.pem");
    if (!make_certificate(certificate)) {
        skip();
    }
    int told[2];
    pid_t server = 0;
    int status = 0;
    assert_int_equal(pipe2(told, O_CLOEXEC), 0);
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    pid_t test = fork();
    if (test == 0) {
        struct tls_server its;
        bool is = start_tls(&its, certificate) && write(told[1], &its.pid, sizeof its.pid) > 0;
        kill(getpid(), is ? SIGKILL : SIGTERM);
    }
    assert_int_equal(waitpid(test, &status, 0), test);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_int_equal(read(told[0], &server, sizeof server), sizeof server);
    pid_t ended = 0;
    for (int i = 0; i < 10000 && !ended; i++) {
        ended = waitpid(server, &status, WNOHANG);
        poll(NULL, 0, ended ? 0 : 1);
    }
    if (!ended) {
        kill(server, SIGKILL);
    }
    assert_int_equal(ended, server);
    close(told[0]);
    close(told[1]);
}

/* Whom the certificates that we are told of do not name gets nothing, and is asked again. */
TEST_WITH(test_tls, scratch_create, scratch_remove)
{
    const char *certificate = scratch_path(state, "both.pem");
    if (!make_certificate(certificate)) {
        fputs("LEFT OUT: TLS: needs openssl\n", stdout);
        skip();
    }
    for (int trusted = 0; trusted < 2; trusted++) {
        struct tls_server server;
        struct setting *setting = calloc(1, sizeof *setting);
        play(&setting->server); /* for the poll alone */
        assert_true(start_tls(&server, certificate));
        setting->server.port = server.port;
        open_pusher(setting, "otlp+https://127.0.0.1:%u", 10000);
        setting->options.ca = trusted ? certificate : NULL;
        give(setting, 'a', 10);
        char said[8192];
        size_t got = 0;
        bool answered = false;
        for (int i = 0; counts(setting).failures == 0 && counts(setting).sent == 0; i++) {
            assert_true(i < 4000);
            turn(setting);
            ssize_t n = read(server.out, said + got, sizeof said - 1 - got);
            got += n > 0 ? (size_t)n : 0;
            said[got] = '\0';
            if (!answered && strstr(said, "POST /v1development")) {
                static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
                answered = write(server.in, answer, sizeof answer - 1) > 0;
            }
        }
        assert_int_equal(counts(setting).sent, trusted);
        assert_int_equal(counts(setting).failures, !trusted);
        assert_int_equal(counts(setting).waiting, !trusted);
        assert_int_equal(answered, trusted);
        assert_true(trusted || strcasestr(counts(setting).trouble, "certificate"));
        end(setting);
        stop_tls(&server);
    }
}

int main(void)
{
    /* A proxy of the environment's would be asked for loopback, too. */
    unsetenv("http_proxy");
    unsetenv("https_proxy");
    unsetenv("HTTPS_PROXY");
    unsetenv("ALL_PROXY");
    unsetenv("all_proxy");
    signal(SIGPIPE, SIG_IGN);
    return tests_run(NULL, NULL);
}
