/* Owns the agent that a test talks to. */
#include "live.h"

#include "../rows.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "os/file.h"

void live_init(struct live *l)
{
    memset(l, 0, sizeof *l);
    strcpy(l->dir, "/tmp/slt-XXXXXX");
    assert_non_null(mkdtemp(l->dir));
    chmod(l->dir, 0711);
    snprintf(l->sock, sizeof l->sock, "%s/agent.sock", l->dir);
}

const char *live_start(struct live *l, const char *const *more)
{
    static char said[300];
    const char *argv[32] = { AGENT_PROGRAM,  "--run-dir",  l->dir,
                             "--foreground", "--ready-fd", "9" };
    int ends[2], n = 6, log;
    size_t have = 0;
    ssize_t got;
    for (; *more; more++)
        argv[n++] = *more;
    char log_path[90];
    snprintf(log_path, sizeof log_path, "%s/test.log", l->dir);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    l->agent = fork();
    if (l->agent == 0) {
        log = open(log_path, O_WRONLY | O_CREAT | O_APPEND, 0600);
        dup2(log, 2);
        dup2(ends[1], 9);
        execv(argv[0], (char **)argv);
        _exit(127);
    }
    close(ends[1]);
    memset(said, 0, sizeof said);
    while ((got = read(ends[0], said + have, sizeof said - 1 - have)) > 0)
        have += (size_t)got;
    close(ends[0]);
    return said;
}

void live_must_start(struct live *l, const char *const *more)
{
    const char *said = live_start(l, more);
    if (said[0] != '+')
        fail_msg("the agent did not start: %s", said);
}

int live_stop(struct live *l, int sig)
{
    int status = 0;
    if (sig)
        kill(l->agent, sig);
    assert_int_equal(waitpid(l->agent, &status, 0), l->agent);
    l->agent = 0;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void live_finish(struct live *l)
{
    if (l->agent) {
        live_call(l, "DELETE", "/v1/node?force=1", NULL, NULL);
        live_stop(l, 0);
    }
    file_remove_tree(l->dir, NULL);
}

static int connect_to(const char *path)
{
    struct sockaddr_un a = { .sun_family = AF_UNIX };
    snprintf(a.sun_path, sizeof a.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, (struct sockaddr *)&a, sizeof a) == 0)
        return fd;
    close(fd);
    return -1;
}

int live_call(struct live *l, const char *method, const char *path, const char *body,
              json_t **out)
{
    int fd = connect_to(l->sock), status = 0;
    if (out)
        *out = NULL;
    if (fd < 0)
        return 0;
    struct buf text = { 0 };
    char chunk[4096];
    buf_addf(&text,
             "%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: "
             "application/json\r\n"
             "Content-Length: %zu\r\n\r\n%s",
             method, path, body ? strlen(body) : 0, body ? body : "");
    send(fd, text.text, text.len, MSG_NOSIGNAL); /* the agent may be gone: no answer */
    buf_finish(&text);
    text = (struct buf){ 0 };
    for (ssize_t n; (n = read(fd, chunk, sizeof chunk)) > 0;)
        buf_add_bytes(&text, chunk, (size_t)n);
    close(fd);
    if (text.text)
        sscanf(text.text, "HTTP/1.1 %d", &status);
    const char *start = text.text ? strstr(text.text, "\r\n\r\n") : NULL;
    if (out && start)
        *out = json_loads(start + 4, JSON_DISABLE_EOF_CHECK, NULL);
    buf_finish(&text);
    return status;
}

pid_t live_call_async(struct live *l, uid_t uid, const char *method, const char *path,
                      const char *body)
{
    pid_t pid = fork();
    if (pid == 0) {
        if (uid && (setresgid(uid, uid, uid) || setresuid(uid, uid, uid)))
            _exit(1);
        _exit(live_call(l, method, path, body, NULL) / 10 + (uid ? 0 : 0));
    }
    return pid;
}

int live_join(pid_t caller)
{
    int status;
    assert_int_equal(waitpid(caller, &status, 0), caller);
    return WIFEXITED(status) ? WEXITSTATUS(status) * 10 : 0;
}

const char *live_get(const json_t *j, const char *path)
{
    static char out[300];
    char part[64];
    while (*path && j) {
        size_t n = strcspn(path, ".");
        snprintf(part, sizeof part, "%.*s", (int)n, path);
        j = json_is_array(j) ? json_array_get(j, (size_t)atoi(part))
                             : json_object_get(j, part);
        path += n + (path[n] == '.');
    }
    out[0] = '\0';
    if (json_is_string(j))
        snprintf(out, sizeof out, "%s", json_string_value(j));
    else if (json_is_integer(j))
        snprintf(out, sizeof out, "%lld", (long long)json_integer_value(j));
    else if (json_is_boolean(j))
        snprintf(out, sizeof out, "%s", json_is_true(j) ? "true" : "false");
    else if (json_is_null(j))
        snprintf(out, sizeof out, "null");
    return out;
}

bool live_until(struct live *l, const char *url, const char *path, const char *want)
{
    for (int i = 0; i < 500; i++) {
        json_t *j;
        live_call(l, "GET", url, NULL, &j);
        bool is = j && strcmp(live_get(j, path), want) == 0;
        json_decref(j);
        if (is)
            return true;
        usleep(20000);
    }
    return false;
}

bool live_lease_is(struct live *l, const char *name, const char *key, const char *value)
{
    char url[80];
    snprintf(url, sizeof url, "/v1/leases/%s", name);
    return live_until(l, url, key, value);
}

void live_release(struct live *l, const char *name)
{
    char url[80];
    snprintf(url, sizeof url, "/v1/leases/%s", name);
    assert_int_equal(live_call(l, "DELETE", url, NULL, NULL), 200);
}

pid_t live_broker(struct live *l)
{
    json_t *j;
    live_call(l, "GET", "/v1/node", NULL, &j);
    pid_t pid = atoi(live_get(j, "broker.pid"));
    json_decref(j);
    return pid;
}
