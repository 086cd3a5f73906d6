/* The HTTP edge in this process's own loop, against clients that behave and that do not. */
#include "../rows.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "core/clock.h"
#include "os/file.h"
#include "os/sock.h"
#include "wire/http.h"

#define OTHER_UID 65534

static char top[40], path[64];
static int listen_fd;
static struct http_server *server;
static struct http_request *kept[8];
static unsigned kept_count, gone_count, handled;

static void on_gone(void *ctx, struct http_request *r)
{
    gone_count++;
    for (unsigned i = 0; i < kept_count; i++)
        if (kept[i] == r)
            kept[i] = NULL;
}

/* /keep waits, /forget waits and does not want to know, /big is large; else what came is
 * said. */
static void handle(void *ctx, struct http_request *r)
{
    AUTO_BUF struct buf text = { 0 };
    unsigned count;
    size_t len;

    handled++;
    if (!strcmp(http_path(r), "/keep") || !strcmp(http_path(r), "/forget")) {
        kept[kept_count++ % ARRAY_LEN(kept)] = r;
        if (!strcmp(http_path(r), "/keep"))
            http_on_gone(r, on_gone, NULL);
        return;
    }
    if (!strcmp(http_path(r), "/big")) {
        char *much = calloc(1, 4 << 20);
        http_answer(r, 200, "text/plain", NULL, much, 4 << 20);
        free(much);
        return;
    }
    const struct http_query *query = http_query(r, &count);
    http_body(r, &len);
    buf_addf(&text, "%s %s body=%zu:%.10s uid=%u pid=%d", http_method(r), http_path(r), len,
             http_body(r, &len), http_peer(r)->uid, (int)http_peer(r)->pid);
    for (unsigned i = 0; i < count && i < HTTP_QUERY_MAX; i++)
        buf_addf(&text, " %s=%s", query[i].key, query[i].value);
    http_answer(r, 200, "text/plain", "GET", text.text, text.len);
}

static void begin(const struct http_limits *limits)
{
    struct sl_err err;
    strcpy(top, "/tmp/sluice-wi-XXXXXX");
    assert_non_null(mkdtemp(top));
    chmod(top, 0711);
    snprintf(path, sizeof path, "%s/s", top);
    listen_fd = sock_listen_unix(path, SOCK_STREAM, 0666, &err);
    assert_true(listen_fd >= 0);
    server = http_create(listen_fd, limits, handle, NULL, &err);
    assert_non_null(server);
    kept_count = gone_count = handled = 0;
}

static int finish(void **state)
{
    http_destroy(server);
    server = NULL;
    close(listen_fd);
    return file_remove_tree(top, NULL);
}

/* Run the loop for so long, or until fd can be read. */
static void pump(int fd, int ms)
{
    uint64_t end = clock_now_ns() + (uint64_t)ms * NS_PER_MS;
    for (;;) {
        struct pollfd p[2] = { { .fd = http_fd(server), .events = POLLIN },
                               { .fd = fd, .events = POLLIN } };
        int wait = http_timeout_ms(server);
        uint64_t now = clock_now_ns(), left = now < end ? (end - now) / NS_PER_MS + 1 : 0;
        if (wait < 0 || (uint64_t)wait > left)
            wait = (int)left;
        poll(p, 2, wait);
        http_run(server);
        if ((fd >= 0 && p[1].revents) || clock_now_ns() >= end)
            return;
    }
}

static int dial(void)
{
    int fd = sock_connect_unix(path, SOCK_STREAM, NULL);
    assert_true(fd >= 0);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    return fd;
}

static void say(int fd, const char *text, size_t len)
{
    while (len > 0) {
        ssize_t put = send(fd, text, len, MSG_NOSIGNAL);
        if (put < 0 && errno == EAGAIN)
            pump(-1, 1);
        else if (put < 0)
            return;
        else {
            text += put;
            len -= (size_t)put;
        }
    }
}

/* What comes until the end, or until nothing came for `ms`; the text lasts until the next
 * call.  *closed: the end came. */
static const char *hear(int fd, int ms, bool *closed)
{
    static struct buf text;
    buf_finish(&text);
    buf_add(&text, "");
    *closed = false;
    for (;;) {
        char block[65536];
        ssize_t got = recv(fd, block, sizeof block, 0);
        if (got > 0) {
            buf_add_bytes(&text, block, (size_t)got);
            continue;
        }
        if (got == 0 || errno == ECONNRESET) {
            *closed = true;
            break;
        }
        size_t before = text.len;
        pump(fd, ms);
        struct pollfd p = { .fd = fd, .events = POLLIN };
        if (poll(&p, 1, 0) == 0 && text.len == before)
            break;
    }
    static char copy[8192];
    snprintf(copy, sizeof copy, "%s", text.text);
    buf_finish(&text);
    return copy;
}

/* One request on its own connection: the answer. */
static const char *ask(const char *request)
{
    AUTO_CLOSE int fd = dial();
    bool closed;
    say(fd, request, strlen(request));
    shutdown(fd, SHUT_WR);
    return hear(fd, 300, &closed);
}

static void requests_are_read(void **state)
{
    static const struct {
        const char *label, *request, *say;
    } rows[] = {
        { "a path and a query", "GET /a/b?x=1&y&z=%20%2F HTTP/1.1\r\nHost: x\r\n\r\n",
          "GET /a/b body=0: uid=" },
        { "the query's pairs", "GET /?x=1&y&z=%20%2F HTTP/1.1\r\nHost: x\r\n\r\n",
          " x=1 y= z= /" },
        { "escapes in the path", "GET /a%20b HTTP/1.1\r\nHost: x\r\n\r\n",
          "GET /a b body" },
        { "a body", "POST /p HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello",
          "POST /p body=5:hello" },
        { "a body in pieces",
          "POST /p HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: "
          "chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n"
          "0\r\n\r\n",
          "POST /p body=5:hello" },
        { "another method", "PATCH /p HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
          "PATCH /p body=0" },
        { "a head", "HEAD /p HTTP/1.1\r\nHost: x\r\n\r\n", "200 OK" },
        { "headers we set", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "Allow: GET\r\n" },
        { "one byte over the bound",
          "POST /p HTTP/1.1\r\nHost: x\r\nContent-Length: 1001\r\n\r\n", " 413 " },
        { "an absurd length",
          "POST /p HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n",
          "" },
        { "a negative length", "POST /p HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
          "" },
        { "no HTTP", "\x16\x03\x01\x02\r\n\r\n", "" },
        { "nothing", "", "" },
        { "half a request", "GET / HTT", "" },
    };
    struct http_limits limits = http_limits_default;
    limits.body_bytes = 1000;
    begin(&limits);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const char *answer = ask(rows[i].request);
        if (!strstr(answer, rows[i].say))
            fail_msg("row \"%s\": it says: %s", rows[i].label, answer);
    }
    char uid[40];
    snprintf(uid, sizeof uid, "uid=%u pid=%d", getuid(), (int)getpid());
    assert_non_null(strstr(ask("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), uid));
}

static void a_body_has_a_largest_size(void **state)
{
    struct http_limits limits = http_limits_default;
    char request[1200], chunk[2100];
    limits.body_bytes = 1000;
    begin(&limits);

    int head = snprintf(request, sizeof request,
                        "POST /p HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n");
    memset(request + head, 'x', 1000);
    request[head + 1000] = '\0';
    assert_non_null(strstr(ask(request), "body=1000:xxxxxxxxxx"));

    /* a body of unknown length is read to its end, and not kept */
    head = snprintf(
        chunk, sizeof chunk,
        "POST /p HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n7d0\r\n");
    memset(chunk + head, 'x', 1900);
    memset(chunk + head + 1900, 'x', 100);
    strcpy(chunk + head + 2000, "\r\n0\r\n\r\n");
    handled = 0;
    assert_non_null(strstr(ask(chunk), " 413 "));
    assert_int_equal(handled, 0);
}

static void headers_have_a_largest_size(void **state)
{
    begin(NULL);
    AUTO_CLOSE int fd = dial();
    bool closed;
    static char much[100000];
    memset(much, 'h', sizeof much);
    say(fd, "GET / HTTP/1.1\r\nX: ", 19);
    say(fd, much, sizeof much);
    hear(fd, 1000, &closed);
    assert_true(closed);
    assert_int_equal(handled, 0);
    assert_non_null(strstr(ask("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), "200 OK"));
}

static void an_answer_may_come_later(void **state)
{
    begin(NULL);
    AUTO_CLOSE int late = dial();
    bool closed;
    say(late, "GET /keep HTTP/1.1\r\nHost: x\r\n\r\n", 31);
    assert_string_equal(hear(late, 50, &closed), "");
    assert_int_equal(kept_count, 1);
    assert_non_null(strstr(ask("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), "200 OK"));

    http_answer(kept[0], 201, "text/plain", NULL, "at last", 7);
    assert_int_equal(http_timeout_ms(server),
                     0); /* or it is sent whenever the next one asks */
    const char *answer = hear(late, 300, &closed);
    assert_non_null(strstr(answer, "201 Created"));
    assert_non_null(strstr(answer, "at last"));
    assert_false(closed);
    /* the connection serves on */
    say(late, "GET /x HTTP/1.1\r\nHost: x\r\n\r\n", 28);
    assert_non_null(strstr(hear(late, 300, &closed), "GET /x"));
    assert_int_equal(gone_count, 0);
}

static void a_peer_that_hangs_up_is_noticed(void **state)
{
    begin(NULL);
    int fd = dial(), other = dial();
    say(fd, "GET /keep HTTP/1.1\r\nHost: x\r\n\r\n", 31);
    say(other, "GET /keep HTTP/1.1\r\nHost: x\r\n\r\n", 31);
    pump(-1, 30);
    assert_int_equal(kept_count, 2);
    close(fd);
    pump(-1, 30);
    assert_int_equal(gone_count, 1);

    /* who only stops sending still waits for the answer */
    bool closed;
    shutdown(other, SHUT_WR);
    pump(-1, 30);
    assert_int_equal(gone_count, 1);
    struct http_request *r = kept[0] ? kept[0] : kept[1];
    http_answer(r, 200, "text/plain", NULL, "still", 5);
    assert_non_null(strstr(hear(other, 300, &closed), "still"));
    close(other);
}

static void an_answer_to_nobody_goes_nowhere(void **state)
{
    begin(NULL);
    int fd = dial();
    say(fd, "GET /forget HTTP/1.1\r\nHost: x\r\n\r\n", 33);
    pump(-1, 30);
    assert_int_equal(kept_count, 1);
    close(fd);
    pump(-1, 30);
    assert_int_equal(gone_count, 0);
    assert_int_equal(http_peer(kept[0])->pid, getpid());
    http_answer(kept[0], 200, "text/plain", NULL, "x", 1);
    assert_non_null(strstr(ask("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), "200 OK"));
}

static void the_end_of_the_server_tells_who_waits(void **state)
{
    begin(NULL);
    int fds[3];
    for (int i = 0; i < 3; i++) {
        fds[i] = dial();
        say(fds[i],
            i < 2 ? "GET /keep HTTP/1.1\r\nHost: x\r\n\r\n"
                  : "GET /forget HTTP/1.1\r\nHost: x\r\n\r\n",
            i < 2 ? 31 : 33);
        pump(-1, 20);
    }
    assert_int_equal(kept_count, 3);
    http_destroy(server);
    assert_int_equal(gone_count, 2);
    http_answer(kept[2], 200, "text/plain", NULL, "x", 1); /* outlived the server */
    struct sl_err err;
    server =
        http_create(listen_fd, NULL, handle, NULL, &err); /* the socket is still ours */
    assert_non_null(server);
    assert_non_null(strstr(ask("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), "200 OK"));
    for (int i = 0; i < 3; i++)
        close(fds[i]);
}

static void a_peer_that_leaves_in_the_middle_raises_no_signal(void **state)
{
    begin(NULL);
    signal(SIGPIPE, SIG_DFL);
    for (int i = 0; i < 5; i++) {
        int fd = dial();
        say(fd, "GET /big HTTP/1.1\r\nHost: x\r\n\r\n", 30);
        pump(fd, 1000);
        close(fd);
        pump(-1, 10);
    }
    assert_non_null(strstr(ask("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), "200 OK"));
}

/* Drops of a header and of a body, silence, and an open keep-alive: each ends, and others
 * are served meanwhile. */
static void slow_clients_end(void **state)
{
    struct http_limits limits = http_limits_default;
    limits.idle_s = 1;
    limits.request_s = 1;
    begin(&limits);
    int fds[4];
    static const char *const first[] = {
        "GET /slow HTTP/1.1\r\nX: ",
        "POST /slow HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n",
        "",
        "GET /keep HTTP/1.1\r\nHost: x\r\n\r\n",
    };
    for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
        fds[i] = dial();
        say(fds[i], first[i], strlen(first[i]));
    }
    uint64_t start = clock_now_ns();
    bool closed[4] = { false };
    while (clock_now_ns() - start < 6 * NS_PER_S &&
           !(closed[0] && closed[1] && closed[2])) {
        for (int i = 0; i < 3; i++) {
            char byte;
            if (i < 2 && !closed[i])
                say(fds[i], "x", 1);
            ssize_t got = recv(fds[i], &byte, 1, 0);
            closed[i] |= got == 0 || (got < 0 && errno != EAGAIN);
        }
        pump(-1, 200);
    }
    assert_true(closed[0]);
    assert_true(closed[1]);
    assert_true(closed[2]);
    assert_int_equal(gone_count, 0); /* who waits for us is not slow */
    http_answer(kept[0], 200, "text/plain", NULL, "late", 4);
    assert_non_null(strstr(hear(fds[3], 300, &closed[3]), "late"));
    for (int i = 0; i < 4; i++)
        close(fds[i]);
}

/* In a child of another uid: so many connections, the answer to the last as its status. */
static pid_t open_as_other(int count, int *said)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        if (getuid() == 0 && (setgid(OTHER_UID) || setuid(OTHER_UID)))
            _exit(1);
        int fd = -1;
        for (int i = 0; i < count; i++)
            fd = sock_connect_unix(path, SOCK_STREAM, NULL);
        send(fd, "GET / HTTP/1.1\r\nHost: x\r\n\r\n", 27, MSG_NOSIGNAL);
        char text[600] = "";
        ssize_t got = recv(fd, text, sizeof text - 1, 0);
        text[got > 0 ? got : 0] = '\0';
        if (write(ends[1], text, strlen(text)) < 0)
            _exit(1);
        pause();
        _exit(0);
    }
    close(ends[1]);
    *said = ends[0];
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    return child;
}

static void connections_are_counted_per_uid(void **state)
{
    struct http_limits limits = http_limits_default;
    limits.per_uid = 4;
    begin(&limits);
    int said;
    bool closed;
    for (int round = 0; round < 2; round++) {
        for (int count = 4; count <= 5; count++) {
            pid_t child = open_as_other(count, &said);
            char text[600] = "";
            pump(said, 3000);
            ssize_t got = read(said, text, sizeof text - 1);
            text[got > 0 ? got : 0] = '\0';
            if (!strstr(text, count == 4 ? "200 OK" : "too many connections"))
                fail_msg("round %d, %d connections: %s", round, count, text);
            if (getuid() == 0) /* root and others are still served */
                assert_non_null(strstr(ask("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), "200 OK"));
            kill(child, SIGKILL);
            waitpid(child, NULL, 0);
            close(said);
            pump(-1, 50); /* the dead one's connections end */
        }
    }
    AUTO_CLOSE int fd = dial();
    say(fd, "GET / HTTP/1.1\r\nHost: x\r\n\r\n", 27);
    assert_non_null(strstr(hear(fd, 300, &closed), "200 OK"));
}

static void without_descriptors_the_loop_does_not_spin(void **state)
{
    struct rlimit old, few;
    begin(NULL);
    int fds[6];
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        fds[i] = dial();
    getrlimit(RLIMIT_NOFILE, &old);
    few = old;
    few.rlim_cur = (rlim_t)fds[5] + 3; /* two or three of them find room */
    setrlimit(RLIMIT_NOFILE, &few);
    pump(-1, 100);
    struct pollfd p = { .fd = http_fd(server), .events = POLLIN };
    int awake = poll(&p, 1, 0);
    setrlimit(RLIMIT_NOFILE, &old);
    assert_int_equal(awake, 0);
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        close(fds[i]);
    assert_non_null(strstr(ask("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), "200 OK"));
}

#define T(name) cmocka_unit_test_teardown(name, finish)
static const struct CMUnitTest tests[] = {
    T(requests_are_read),
    T(a_body_has_a_largest_size),
    T(headers_have_a_largest_size),
    T(an_answer_may_come_later),
    T(a_peer_that_hangs_up_is_noticed),
    T(an_answer_to_nobody_goes_nowhere),
    T(the_end_of_the_server_tells_who_waits),
    T(a_peer_that_leaves_in_the_middle_raises_no_signal),
    T(slow_clients_end),
    T(connections_are_counted_per_uid),
    T(without_descriptors_the_loop_does_not_spin),
};
ROWS_MAIN(tests)
