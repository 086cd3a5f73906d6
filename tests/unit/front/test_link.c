/* The link against a fake broker: hello, memory, loss and return, fork. */
#include "front_test.h"

#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "front/link.h"

#define MIB (1024ull * 1024)

static struct fake_broker b;
static struct link l;

static int setup(void **state)
{
    memset(&b, 0, sizeof b);
    atomic_store(&b.limit_bytes, 100 * MIB);
    b.mode = PROTO_HARD;
    b.request_permille = b.limit_permille = 500;
    fake_start(&b);
    return 0;
}

static int teardown(void **state)
{
    link_close(&l);
    fake_end(&b);
    return 0;
}

static void hello(void **state)
{
    struct sl_err err;
    assert_int_equal(link_open(&l, b.path, &err), 0);
    assert_int_equal(link_page(&l)->lease, 7);
    int fd = atomic_load(&l.fd);
    assert_true(fd >= 1000);
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    assert_true(link_check(&l));
    assert_int_equal(b.last_hello.hello.resume, 0);
}

static void refusals(void **state)
{
    char longpath[200];
    memset(longpath, 'x', sizeof longpath);
    longpath[sizeof longpath - 1] = 0;
    const struct {
        const char *label, *path;
        int hello_code, version, want;
    } cases[] = {
        { "no broker", "/tmp/slf-none/broker.sock", 0, 0, -SL_UNAVAILABLE },
        { "no lease", b.path, -SL_DENIED, 0, -SL_DENIED },
        { "the broker's own reason", b.path, -SL_NO_CAPACITY, 0, -SL_NO_CAPACITY },
        { "another version", b.path, 0, PROTO_VERSION + 1, -SL_PROTOCOL },
        { "a path too long for a socket", longpath, 0, 0, -SL_INVALID },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct sl_err err = { 0 };
        atomic_store(&b.hello_code, cases[i].hello_code);
        atomic_store(&b.version, cases[i].version);
        int rc = link_open(&l, cases[i].path, &err);
        if (rc != cases[i].want || err.code != (enum sl_code) - rc || !err.msg[0])
            fail_msg("%s: %d %s", cases[i].label, rc, err.msg);
        assert_int_equal(atomic_load(&l.state), LINK_CLOSED);
    }
}

static void memory(void **state)
{
    struct link_reservation r;
    uint64_t free_bytes;
    assert_int_equal(link_open(&l, b.path, NULL), 0);
    assert_int_equal(link_reserve(&l, 0, 60 * MIB, &r, &free_bytes), 0);
    link_commit(&l, &r, 50 * MIB);
    assert_int_equal(link_reserve(&l, 0, 50 * MIB + 1, &r, &free_bytes), -SL_NO_CAPACITY);
    assert_int_equal(free_bytes, 50 * MIB);
    assert_int_equal(link_reserve(&l, 0, 50 * MIB, &r, &free_bytes), 0);
    link_abort(&l, &r);
    link_free(&l, 0, 20 * MIB);
    eventually(atomic_load(&b.used_bytes) == 30 * MIB);
    assert_int_equal(link_committed_bytes(&l, 0), 30 * MIB);
    link_free(&l, 0, 40 * MIB); /* more than held */
    assert_int_equal(link_committed_bytes(&l, 0), 0);
    eventually(atomic_load(&b.used_bytes) == 0);
    assert_int_equal(link_reserve(&l, PROTO_MAX_SLOTS, 1, &r, &free_bytes), -SL_INVALID);
}

/* Lost with 50 MiB committed and a reservation on its way. */
static void lost(void **state)
{
    struct link_reservation r, on_the_way;
    uint64_t free_bytes;
    assert_int_equal(link_open(&l, b.path, NULL), 0);
    assert_int_equal(link_reserve(&l, 0, 50 * MIB, &r, &free_bytes), 0);
    link_commit(&l, &r, 50 * MIB);
    assert_int_equal(link_reserve(&l, 1, 10 * MIB, &on_the_way, &free_bytes), 0);
    struct proto_page *old = link_page(&l);
    eventually(atomic_load(&b.used_bytes) == 60 * MIB);
    fake_kill(&b);

    assert_int_equal(link_reserve(&l, 0, 1, &r, &free_bytes), -SL_UNAVAILABLE);
    assert_int_equal(free_bytes, 0);
    assert_int_equal(atomic_load(&l.state), LINK_LOST);
    link_free(&l, 0, 20 * MIB);
    link_commit(&l, &on_the_way, 10 * MIB);
    assert_false(link_want(&l, 0));

    atomic_store(&b.used_bytes, 50 * MIB); /* as its run file says */
    fake_start(&b);
    eventually(link_check(&l));
    assert_int_equal(b.last_hello.hello.resume, 1);
    assert_int_equal(b.last_hello.hello.declared_bytes[0], 50 * MIB);
    assert_int_equal(b.last_hello.hello.declared_bytes[1], 0);
    /* what happened meanwhile followed: 20 MiB freed, 10 MiB more on slot 1 */
    eventually(atomic_load(&b.used_bytes) == 40 * MIB);
    assert_int_equal(atomic_load(&b.freed_bytes), 20 * MIB);
    assert_ptr_not_equal(link_page(&l), old);
    assert_int_equal(old->magic, PROTO_PAGE_MAGIC); /* still mapped */
    assert_int_equal(link_reserve(&l, 0, 60 * MIB, &r, &free_bytes), 0);
}

static void *reserve_one(void *code)
{
    struct link_reservation r;
    uint64_t free_bytes;
    *(int *)code = link_reserve(&l, 0, MIB, &r, &free_bytes);
    return NULL;
}

/* The broker dies, a program asks, then the broker is back. */
static void asked_meanwhile(void **state)
{
    pthread_t asker;
    int code = 1;
    assert_int_equal(link_open(&l, b.path, NULL), 0);
    fake_kill(&b);
    assert_int_equal(pthread_create(&asker, NULL, reserve_one, &code), 0);
    eventually(atomic_load(&l.state) == LINK_LOST);
    fake_start(&b);
    pthread_join(asker, NULL);
    assert_int_equal(code, 0);
}

static void *open_one(void *code)
{
    *(int *)code = link_open(&l, b.path, NULL);
    return NULL;
}

static void started_meanwhile(void **state)
{
    pthread_t starter;
    int code = 1;
    fake_kill(&b);
    assert_int_equal(pthread_create(&starter, NULL, open_one, &code), 0);
    fake_start(&b);
    pthread_join(starter, NULL);
    assert_int_equal(code, 0);
}

/* The broker has the hello and dies before it answers. */
static void killed_at_hello(void **state)
{
    pthread_t starter;
    int code = 1;
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    fake_kill(&b);
    strcpy(addr.sun_path, b.path);
    unlink(b.path);
    int listener = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&addr, sizeof addr), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(pthread_create(&starter, NULL, open_one, &code), 0);
    struct proto_msg hello;
    int conn = accept(listener, NULL, NULL);
    assert_int_equal(recv(conn, &hello, sizeof hello, 0), sizeof hello);
    close(conn);
    close(listener);
    unlink(b.path);
    fake_start(&b);
    pthread_join(starter, NULL);
    assert_int_equal(code, 0);
}

static void restarted(void **state)
{
    struct link_reservation r;
    uint64_t free_bytes;
    assert_int_equal(link_open(&l, b.path, NULL), 0);
    fake_kill(&b);
    fake_start(&b);
    assert_int_equal(link_reserve(&l, 0, MIB, &r, &free_bytes), 0);
    assert_int_equal(atomic_load(&l.generation), 2);
}

static void refused_later(void **state)
{
    assert_int_equal(link_open(&l, b.path, NULL), 0);
    fake_kill(&b);
    atomic_store(&b.hello_code, -SL_DENIED);
    fake_start(&b);
    assert_false(link_check(&l));
    uint32_t hellos = atomic_load(&b.hellos);
    for (int i = 0; i < 100; i++)
        assert_false(link_check(&l));
    assert_in_range(atomic_load(&b.hellos) - hellos, 0, 1);
    assert_int_equal(atomic_load(&l.state), LINK_LOST);
}

static void closed_descriptor(void **state)
{
    struct link_reservation r;
    uint64_t free_bytes;
    assert_int_equal(link_open(&l, b.path, NULL), 0);
    int fd = atomic_load(&l.fd);
    close(fd);
    assert_int_equal(link_reserve(&l, 0, 30 * MIB, &r, &free_bytes), 0);
    link_commit(&l, &r, 30 * MIB);
    assert_int_equal(atomic_load(&b.hellos), 2);
    assert_int_equal(b.last_hello.hello.resume, 1);

    /* something else at our number: not ours to write to, nor to close */
    int theirs = open("/dev/null", O_RDWR);
    fd = atomic_load(&l.fd);
    assert_int_equal(dup2(theirs, fd), fd);
    assert_false(link_want(&l, 0));
    link_free(&l, 0, 10 * MIB);
    assert_int_equal(atomic_load(&b.hellos), 3);
    assert_int_equal(b.last_hello.hello.declared_bytes[0], 30 * MIB);
    eventually(atomic_load(&b.freed_bytes) == 10 * MIB);
    assert_int_equal(fcntl(fd, F_GETFD), 0);
    assert_int_not_equal(atomic_load(&l.fd), fd);
    close(fd);
    close(theirs);
}

static int child(void)
{
    struct link_reservation r;
    uint64_t free_bytes;
    static struct link own;
    if (!link_forked(&l) || fcntl(atomic_load(&l.fd), F_GETFD) != -1)
        return 1;
    if (link_reserve(&l, 0, 1, &r, &free_bytes) != -SL_UNAVAILABLE || link_want(&l, 0) ||
        link_check(&l))
        return 2;
    if (link_open(&own, b.path, NULL) != 0 || link_forked(&own))
        return 3;
    return link_reserve(&own, 0, MIB, &r, &free_bytes) == 0 ? 0 : 4;
}

static void forked(void **state)
{
    int status;
    struct link_reservation r;
    uint64_t free_bytes;
    assert_int_equal(link_open(&l, b.path, NULL), 0);
    pid_t pid = fork();
    if (pid == 0)
        _exit(child());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(atomic_load(&b.hellos), 2);
    assert_int_equal(link_reserve(&l, 0, MIB, &r, &free_bytes), 0);
    assert_false(link_forked(&l));
}

int main(int argc, char **argv)
{
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest rows[] = {
        row("a hello gets the page; the socket is high and close-on-exec", hello),
        row("no broker, no lease and another version are told apart", refusals),
        row("reserve, commit, abort and free; a refusal says what is free", memory),
        row("a lost broker refuses growth; frees and commits follow at resume", lost),
        row("who asks for memory while the broker restarts waits for it", asked_meanwhile),
        row("a program that starts while the broker restarts waits for it",
            started_meanwhile),
        row("a broker that dies at a hello is waited for", killed_at_hello),
        row("a restart between two calls is not noticed by the caller", restarted),
        row("a refused return is tried seldom", refused_later),
        row("a closed or overwritten descriptor is replaced by a new hello",
            closed_descriptor),
        row("a forked child's link is dead until a hello of its own", forked),
    };
    return cmocka_run_group_tests(rows, NULL, NULL);
}
