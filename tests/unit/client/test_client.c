/* The client against the API on a real socket, in two processes. */
#include "../rows.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "api/api.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "client/client.h"
#include "os/file.h"
#include "os/sock.h"

static char top[40], path[64];
static pid_t server;

static void op_node(void *ctx, struct api_request *r)
{
    struct api_caller who = api_request_caller(r);
    api_answer(r, 200, json_pack("{s:i,s:i}", "pid", (int)who.pid, "uid", (int)who.uid));
}
static void op_get(void *ctx, struct api_request *r, const char *id)
{
    if (!strcmp(id, "die"))
        _exit(0);
    if (!strcmp(id, "never"))
        return;
    struct sl_err err;
    sl_fail(&err, SL_NO_CAPACITY, "no room for %s", id);
    api_fail_with(r, &err, json_pack("{s:[s]}", "alternatives", "wait"));
}
static void op_resize(void *ctx, struct api_request *r, const char *id, const json_t *patch)
{
    api_answer(r, 200, json_deep_copy(patch));
}
static void op_log(void *ctx, struct api_request *r, const char *id)
{
    enum { SIZE = 3 << 20 };
    char *much = malloc(SIZE);
    memset(much, 'x', SIZE);
    api_answer_text(r, much, strcmp(id, "empty") ? SIZE : 0);
    free(much);
}

static const struct api_ops ops = {
    .node = op_node, .get_lease = op_get, .resize_lease = op_resize, .job_log = op_log
};

static void serve(int fd)
{
    struct api_server *s = api_create(fd, &ops, NULL, NULL);
    for (;;) {
        struct pollfd p = { .fd = api_fd(s), .events = POLLIN };
        poll(&p, 1, api_timeout_ms(s));
        api_run(s);
    }
}

static int start(void **state)
{
    strcpy(top, "/tmp/sluice-cl-XXXXXX");
    if (!mkdtemp(top))
        return -1;
    snprintf(path, sizeof path, "%s/s", top);
    int fd = sock_listen_unix(path, SOCK_STREAM, 0600, NULL);
    server = fork();
    if (server == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        serve(fd);
    }
    close(fd);
    *state = client_create(path, NULL);
    return 0;
}

static int stop(void **state)
{
    client_destroy(*state);
    kill(server, SIGKILL);
    waitpid(server, NULL, 0);
    return file_remove_tree(top, NULL);
}

static void a_call_brings_the_decoded_body(void **state)
{
    struct sl_err err = { 0 };
    AUTO_JSON json_t *out = NULL;
    int rc = client_call(*state, "GET", "/v1/node", NULL, 5000, &out, NULL, &err);
    if (rc)
        fail_msg("%s", err.msg);
    assert_int_equal(json_integer_value(json_object_get(out, "pid")), getpid());
    assert_int_equal(json_integer_value(json_object_get(out, "uid")), getuid());
    assert_int_equal(client_call(*state, "GET", "/v1/node", NULL, 0, NULL, NULL, &err), 0);
}

static void a_body_travels_there_and_back(void **state)
{
    struct sl_err err;
    AUTO_JSON json_t *patch = json_pack("{s:{s:I}}", "mem", "request", 1LL << 40),
                     *out = NULL;
    assert_int_equal(
        client_call(*state, "PATCH", "/v1/leases/b", patch, 5000, &out, NULL, &err), 0);
    assert_true(json_equal(patch, out));
}

static void a_problem_becomes_its_code_and_message(void **state)
{
    struct sl_err err;
    AUTO_JSON json_t *problem = NULL, *out = NULL;
    int rc = client_call(*state, "GET", "/v1/leases/b", NULL, 5000, &out, &problem, &err);
    assert_int_equal(rc, -SL_NO_CAPACITY);
    assert_int_equal(err.code, SL_NO_CAPACITY);
    assert_string_equal(err.msg, "no room for b");
    assert_null(out);
    assert_int_equal(json_array_size(json_object_get(problem, "alternatives")), 1);
    rc = client_call(*state, "GET", "/v1/nodes", NULL, 5000, NULL, NULL, NULL);
    assert_int_equal(rc, -SL_NOT_FOUND);
}

static void no_answer_in_time_is_a_timeout(void **state)
{
    struct sl_err err;
    int rc = client_call(*state, "GET", "/v1/leases/never", NULL, 100, NULL, NULL, &err);
    assert_int_equal(rc, -SL_TIMEOUT);
    assert_int_equal(client_call(*state, "GET", "/v1/node", NULL, 5000, NULL, NULL, &err),
                     0);
}

static void a_server_that_dies_is_unavailable(void **state)
{
    struct sl_err err;
    assert_int_equal(
        client_call(*state, "GET", "/v1/leases/die", NULL, 5000, NULL, NULL, &err),
        -SL_UNAVAILABLE);
    waitpid(server, NULL, 0);
    assert_int_equal(client_call(*state, "GET", "/v1/node", NULL, 5000, NULL, NULL, &err),
                     -SL_UNAVAILABLE);
    assert_non_null(strstr(err.msg, "nobody listens at /tmp/"));
    server = fork(); /* for stop() */
    if (server == 0)
        _exit(0);
}

static void text_of_any_size_is_read(void **state)
{
    struct sl_err err;
    AUTO_FREE char *text = NULL, *empty = NULL;
    size_t len;
    assert_int_equal(client_get_text(*state, "/v1/jobs/L7/log", &text, &len, &err), 0);
    assert_int_equal(len, 3 << 20);
    assert_int_equal(strlen(text), len);
    assert_int_equal(client_get_text(*state, "/v1/jobs/empty/log", &empty, NULL, &err), 0);
    assert_string_equal(empty, "");
    assert_int_equal(client_get_text(*state, "/v1/jobs", &empty, &len, &err),
                     -SL_UNSUPPORTED);
}

static void a_body_that_is_too_large_is_refused(void **state)
{
    struct sl_err err;
    char *much = calloc(1, 2 << 20);
    memset(much, 'x', (2 << 20) - 1);
    AUTO_JSON json_t *body = json_pack("{s:s}", "command", much);
    free(much);
    int rc = client_call(*state, "POST", "/v1/leases", body, 5000, NULL, NULL, &err);
    /* the server answers and closes without reading: the send may fail first */
    assert_true(rc == -SL_TOO_LARGE || rc == -SL_UNAVAILABLE);
    assert_int_equal(client_call(*state, "GET", "/v1/node", NULL, 5000, NULL, NULL, &err),
                     0);
}

static void the_environments_proxy_is_not_asked(void **state)
{
    struct sl_err err;
    setenv("http_proxy", "http://127.0.0.1:9", 1);
    setenv("all_proxy", "http://127.0.0.1:9", 1);
    int rc = client_call(*state, "GET", "/v1/node", NULL, 5000, NULL, NULL, &err);
    unsetenv("http_proxy");
    unsetenv("all_proxy");
    assert_int_equal(rc, 0);
}

static void what_is_no_answer_is_a_protocol_error(void **state)
{
    static const struct {
        const char *label, *sent;
        int want;
    } rows[] = {
        { "not HTTP", "hello\r\n\r\n", -SL_PROTOCOL },
        { "nothing", "", -SL_UNAVAILABLE },
        { "half an answer", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{",
          -SL_UNAVAILABLE },
        { "not JSON", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n{", -SL_PROTOCOL },
        { "an error without a problem", "HTTP/1.1 503 x\r\nContent-Length: 2\r\n\r\nno",
          -SL_UNAVAILABLE },
        { "a problem of another kind",
          "HTTP/1.1 409 x\r\nContent-Length: 16\r\n\r\n{\"code\":\"later\"}",
          -SL_CONFLICT },
        { "a list", "HTTP/1.1 500 x\r\nContent-Length: 2\r\n\r\n[]", -SL_INTERNAL },
    };
    char odd[64];
    snprintf(odd, sizeof odd, "%s/odd", top);
    AUTO_CLOSE int at = sock_listen_unix(odd, SOCK_STREAM, 0600, NULL);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        pid_t child = fork();
        if (child == 0) {
            char block[4096];
            int fd = accept(at, NULL, NULL);
            if (read(fd, block, sizeof block) > 0 &&
                write(fd, rows[i].sent, strlen(rows[i].sent)) >= 0)
                shutdown(fd, SHUT_WR);
            _exit(0);
        }
        struct client *c = client_create(odd, NULL);
        AUTO_JSON json_t *out = NULL;
        struct sl_err err;
        int rc = client_call(c, "GET", "/v1/node", NULL, 5000, &out, NULL, &err);
        client_destroy(c);
        waitpid(child, NULL, 0);
        if (rc != rows[i].want)
            fail_msg("row \"%s\": %d: %s", rows[i].label, rc, err.msg);
    }
}

static void a_path_that_is_too_long_is_said(void **state)
{
    char longest[200];
    struct sl_err err;
    memset(longest, 'x', sizeof longest);
    longest[150] = '\0';
    assert_null(client_create(longest, &err));
    assert_int_equal(err.code, SL_INVALID);
}

#define T(name) cmocka_unit_test_setup_teardown(name, start, stop)
static const struct CMUnitTest tests[] = {
    T(a_call_brings_the_decoded_body),         T(a_body_travels_there_and_back),
    T(a_problem_becomes_its_code_and_message), T(no_answer_in_time_is_a_timeout),
    T(a_server_that_dies_is_unavailable),      T(text_of_any_size_is_read),
    T(a_body_that_is_too_large_is_refused),    T(the_environments_proxy_is_not_asked),
    T(what_is_no_answer_is_a_protocol_error),  T(a_path_that_is_too_long_is_said),
};
ROWS_MAIN(tests)
