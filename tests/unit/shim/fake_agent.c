/* The fake agent: accepts, reads one request, appends it to a file, answers. */
#include "fake_agent.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static const char lease[] =
    "{\"id\":\"L7\",\"name\":null,\"tenant\":\"uid:0\",\"uid\":0,\"device\":\"fake-0\","
    "\"state\":\"active\",\"mode\":\"hard\",\"priority\":50,\"epoch\":1,"
    "\"grade\":{\"memory\":\"front\",\"time\":\"front\",\"fault\":\"none\","
    "\"visibility\":\"front\",\"network\":\"none\"},\"placement\":\"environment\","
    "\"slices\":[{\"device\":\"fake-0\",\"index\":0,"
    "\"mem\":{\"request\":536870912,\"limit\":536870912,\"used\":null},"
    "\"compute\":{\"request\":300,\"limit\":300,\"achieved_10s\":null}}]}";

static const char *given_answer;

static int listen_at(const char *dir)
{
    struct sockaddr_un a = { .sun_family = AF_UNIX };
    snprintf(a.sun_path, sizeof a.sun_path, "%s/agent.sock", dir);
    unlink(a.sun_path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(fd, (struct sockaddr *)&a, sizeof a) || listen(fd, 64))
        abort();
    return fd;
}

static size_t read_request(int fd, char *out, size_t size)
{
    size_t used = 0;
    for (;;) {
        ssize_t n = read(fd, out + used, size - 1 - used);
        if (n <= 0)
            break;
        used += (size_t)n;
        out[used] = 0;
        const char *end = strstr(out, "\r\n\r\n"),
                   *len = strcasestr(out, "content-length:");
        if (end && (!len || used >= (size_t)(end + 4 - out) + strtoul(len + 15, NULL, 10)))
            break;
    }
    out[used] = 0;
    return used;
}

static void answer(int fd, const char *request)
{
    char reply[4096];
    const char *body = lease;
    if (!strncmp(request, "POST /v1/leases ", 16) && given_answer) {
        if (write(fd, given_answer, strlen(given_answer)) < 0)
            abort();
        return;
    }
    if (!strncmp(request, "GET /v1/leases ", 15))
        body = "{\"leases\":[]}";
    int code = strncmp(request, "POST /v1/leases ", 16) ? 200 : 201;
    int n = snprintf(reply, sizeof reply,
                     "HTTP/1.1 %d Fine\r\nContent-Type: application/json\r\n"
                     "Content-Length: %zu\r\nConnection: close\r\n\r\n%s",
                     code, strlen(body), body);
    if (write(fd, reply, (size_t)n) < 0)
        return;
}

static void serve(const char *dir, int listener)
{
    static char request[1 << 20], line[1 << 20];
    char path[96];
    snprintf(path, sizeof path, "%s/requests", dir);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGPIPE, SIG_IGN);
    for (;;) {
        int fd = accept(listener, NULL, NULL);
        if (fd < 0)
            continue;
        if (read_request(fd, request, sizeof request)) {
            const char *body = strstr(request, "\r\n\r\n");
            int n =
                snprintf(line, sizeof line, "%.*s %s\n", (int)strcspn(request, "\r") - 9,
                         request, body ? body + 4 : "");
            int log = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
            if (write(log, line, (size_t)n) != n)
                abort();
            close(log);
            answer(fd, request);
        }
        close(fd);
    }
}

void fake_restart(struct fake_agent *a)
{
    int listener = listen_at(a->dir);
    a->pid = fork();
    if (a->pid == 0)
        serve(a->dir, listener);
    close(listener);
}

void fake_start(struct fake_agent *a, const char *lease_answer)
{
    strcpy(a->dir, "/tmp/slshXXXXXX");
    if (!mkdtemp(a->dir))
        abort();
    given_answer = lease_answer;
    char path[96];
    snprintf(path, sizeof path, "%s/front", a->dir);
    mkdir(path, 0755);
    /* the real front where one is given: a user's is loaded to see that it can be;
     * else an empty one: nothing here uses OpenCL */
    strcat(path, "/libsluice-opencl.so");
    const char *front = getenv("FRONT");
    if (!front || symlink(front, path) != 0)
        close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    fake_restart(a);
}

void fake_kill(struct fake_agent *a)
{
    kill(a->pid, SIGKILL);
    waitpid(a->pid, NULL, 0);
    a->pid = 0;
}

void fake_stop(struct fake_agent *a)
{
    char command[128];
    if (a->pid)
        fake_kill(a);
    snprintf(command, sizeof command, "rm -rf '%s' 2>/dev/null", a->dir);
    /* A shim may be writing its last word still. */
    for (int i = 0; system(command) != 0; i++)
        if (i == 100)
            abort();
        else
            usleep(20000);
}

const char *fake_requests(const struct fake_agent *a)
{
    static char text[1 << 20];
    char path[96];
    snprintf(path, sizeof path, "%s/requests", a->dir);
    text[0] = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return text;
    ssize_t n = read(fd, text, sizeof text - 1);
    text[n > 0 ? n : 0] = 0;
    close(fd);
    return text;
}

bool fake_saw(const struct fake_agent *a, const char *text)
{
    for (int i = 0; i < 1000; i++) {
        if (strstr(fake_requests(a), text))
            return true;
        usleep(10000);
    }
    return false;
}
