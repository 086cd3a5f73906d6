/* Tests a running broker with real processes: identity, memory, death, nonsense. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "broker/identity.h"
#include "core/clock.h"
#include "core/err.h"
#include "core/macros.h"
#include "live.h"

/* ---- identity -------------------------------------------------------------------- */

static void test_hello_by_ancestry(void **state)
{
    struct live *l = *state;
    assert_int_equal(live_lease(l, 7, 900, getpid()), 0);
    struct actor a = actor_start(l);
    struct reply r = actor_do(&a, ORDER_HELLO, 0, 0);
    assert_int_equal(r.code, 0);
    assert_int_equal(r.value, 900);
    struct proto_ctl c = live_client(l, a.pid);
    assert_int_equal(c.client_stat.lease, 7);
    assert_int_equal(c.client_stat.identity, BROKER_IDENTITY_ANCESTRY);
    assert_int_equal(c.client_stat.state, 0);
    /* a grandchild in its own session is still of the lease */
    assert_int_equal(actor_do(&a, ORDER_SETSID, 0, 0).code, 0);
    r = actor_do(&a, ORDER_SPAWN, 0, 0);
    assert_int_equal(r.code, 0);
    assert_int_equal(live_client(l, (pid_t)r.value).client_stat.lease, 7);
    actor_kill(&a);
    LIVE_UNTIL(live_info(l).info.clients == 0);
}

static void test_stranger_is_refused(void **state)
{
    struct live *l = *state;
    struct actor shim = actor_start(l), stranger = actor_start(l);
    assert_int_equal(live_lease(l, 7, 900, shim.pid), 0);
    assert_int_equal(actor_do(&stranger, ORDER_HELLO, 0, 0).code, -SL_DENIED);
    assert_int_equal(actor_do(&stranger, ORDER_PING, 0, 0).code, -SL_IO);
    assert_int_equal(actor_do(&shim, ORDER_SPAWN, 0, 0).code, 0);
    struct proto_ctl info = live_info(l);
    assert_int_equal(info.info.refused_clients, 1);
    assert_int_equal(info.info.clients, 1);
    actor_kill(&stranger);
    actor_kill(&shim);
}

/* A shim's pid that now belongs to another process anchors nothing. */
static void test_reused_shim_pid_is_refused(void **state)
{
    struct live *l = *state;
    assert_int_equal(live_lease(l, 7, 900, 0), 0);
    struct proto_ctl m = { .kind = PROTO_CTL_ANCHOR };
    m.anchor.number = 7;
    m.anchor.epoch = 1;
    m.anchor.shim_pid = getpid();
    m.anchor.shim_start_ticks = 12345;
    assert_int_equal(live_control(l, &m), 0);
    struct actor a = actor_start(l);
    assert_int_equal(actor_do(&a, ORDER_HELLO, 0, 0).code, -SL_DENIED);
    actor_kill(&a);
}

static const struct {
    const char *label, *options[4];
    unsigned identity; /* of a process in the lease's cgroup, below its shim */
} fallbacks[] = {
    { "all that this kernel has", { NULL }, BROKER_IDENTITY_PIDFD_CGROUP },
    { "no PIDFD_GET_INFO (before 6.13)",
      { "--no-pidfd-info" },
      BROKER_IDENTITY_PROC_CGROUP },
    { "no SO_PEERPIDFD either (before 6.5)",
      { "--no-pidfd-info", "--no-peerpidfd" },
      BROKER_IDENTITY_PROC_CGROUP },
    { "cgroup only", { "--identity", "cgroup" }, BROKER_IDENTITY_PIDFD_CGROUP },
    { "ancestry only", { "--identity", "ancestry" }, BROKER_IDENTITY_ANCESTRY },
    { "ancestry on an old kernel",
      { "--identity", "ancestry", "--no-peerpidfd" },
      BROKER_IDENTITY_ANCESTRY },
};

/* A directory in the v2 hierarchy, or false where we may make none. */
static bool make_cgroup(char *path, size_t size, const char *parent)
{
    static const char *const mounts[] = { "/sys/fs/cgroup/unified", "/sys/fs/cgroup" };
    for (size_t i = 0; i < ARRAY_LEN(mounts); i++) {
        struct stat st;
        char procs[96];
        snprintf(procs, sizeof procs, "%s/cgroup.procs", parent ? parent : mounts[i]);
        if (stat(procs, &st))
            continue;
        snprintf(path, size, "%s/sluice-test-%d", parent ? parent : mounts[i],
                 (int)getpid());
        return !mkdir(path, 0755) || errno == EEXIST;
    }
    return false;
}

static bool enter_cgroup(const char *path, pid_t pid)
{
    char file[192];
    snprintf(file, sizeof file, "%s/cgroup.procs", path);
    int fd = open(file, O_WRONLY);
    bool ok = fd >= 0 && dprintf(fd, "%d\n", (int)pid) > 0;
    if (fd >= 0)
        close(fd);
    return ok;
}

static void test_identity_fallbacks(void **state)
{
    struct live *l = *state;
    char top[80], below[160];
    struct stat st;
    if (!make_cgroup(top, sizeof top, NULL)) {
        print_message("SKIP: fallbacks of identity: no cgroup can be made here\n");
        skip();
    }
    for (size_t i = 0; i < ARRAY_LEN(fallbacks); i++) {
        live_kill(l, SIGKILL);
        live_forget(l);
        for (int o = 0; o < 4; o++)
            l->options[o] = fallbacks[i].options[o];
        live_start(l);
        assert_int_equal(live_device(l, 0, 2 << 20), 0);
        /* removed and made again: an id is never used twice */
        assert_true(make_cgroup(top, sizeof top, NULL) && !stat(top, &st));
        assert_true(make_cgroup(below, sizeof below, top));
        assert_int_equal(live_lease(l, 7, 900, 0), 0);
        struct actor in = actor_start(l), deep = actor_start(l), out = actor_start(l);
        bool ancestry = fallbacks[i].identity == BROKER_IDENTITY_ANCESTRY;
        assert_int_equal(live_anchor(l, 7, ancestry ? getpid() : 0, st.st_ino), 0);
        assert_true(enter_cgroup(top, in.pid) && enter_cgroup(below, deep.pid));

        struct reply r = actor_do(&in, ORDER_HELLO, 0, 0);
        struct reply d = actor_do(&deep, ORDER_HELLO, 0, 0);
        struct reply o = actor_do(&out, ORDER_HELLO, 0, 0);
        unsigned how = live_client(l, in.pid).client_stat.identity;
        if (r.code || d.code || how != fallbacks[i].identity ||
            (!ancestry && o.code != -SL_DENIED))
            fail_msg("%s: hello %d %d %d, identity %u", fallbacks[i].label, r.code, d.code,
                     o.code, how);
        actor_kill(&in);
        actor_kill(&deep);
        actor_kill(&out);
        LIVE_UNTIL(live_info(l).info.clients == 0);
        LIVE_UNTIL(!rmdir(below) || errno == ENOENT);
        LIVE_UNTIL(!rmdir(top) || errno == ENOENT);
    }
}

/* ---- memory and death --------------------------------------------------------------- */

static void test_limit_holds(void **state)
{
    struct live *l = *state;
    assert_int_equal(live_lease(l, 7, 900, getpid()), 0);
    struct actor a = actor_start(l), b = actor_start(l);
    actor_hold(&a, 600);
    assert_int_equal(actor_do(&b, ORDER_HELLO, 0, 0).code, 0);
    struct reply r = actor_do(&b, ORDER_RESERVE, 301, 0);
    assert_int_equal(r.code, -SL_NO_CAPACITY);
    assert_int_equal(r.value, 300);
    r = actor_do(&b, ORDER_RESERVE, UINT64_MAX, 0);
    assert_int_equal(r.code, -SL_NO_CAPACITY);
    r = actor_do(&b, ORDER_RESERVE, 300, 0);
    assert_int_equal(r.code, 0);
    assert_int_equal(live_used(l, 7), 900);
    actor_do(&b, ORDER_ABORT, 0, r.value);
    actor_do(&b, ORDER_PING, 0, 0);
    assert_int_equal(live_used(l, 7), 600);
    /* freeing more than is held is cut: never below nothing */
    actor_do(&a, ORDER_FREE, UINT64_MAX, 0);
    actor_do(&a, ORDER_FREE, 600, 0);
    actor_do(&a, ORDER_PING, 0, 0);
    assert_int_equal(live_used(l, 7), 0);
    actor_kill(&a);
    actor_kill(&b);
}

static void test_kill_returns_bytes(void **state)
{
    struct live *l = *state;
    assert_int_equal(live_lease(l, 7, 900, getpid()), 0);
    struct actor a = actor_start(l), b = actor_start(l);
    actor_hold(&a, 600);
    /* b dies between reserve and commit */
    assert_int_equal(actor_do(&b, ORDER_HELLO, 0, 0).code, 0);
    assert_int_equal(actor_do(&b, ORDER_RESERVE, 100, 0).code, 0);
    assert_int_equal(live_used(l, 7), 700);
    actor_kill(&b);
    LIVE_UNTIL(live_used(l, 7) == 600);
    actor_kill(&a);
    LIVE_UNTIL(live_used(l, 7) == 0);
    struct proto_ctl info = live_info(l);
    assert_int_equal(info.info.deaths, 2);
    assert_int_equal(info.info.clients, 0);
    assert_true(info.info.death_to_free_ns_max > 0);
}

static void test_race_for_the_last_byte(void **state)
{
    struct live *l = *state;
    assert_int_equal(live_lease(l, 7, 1, getpid()), 0);
    struct actor a = actor_start(l), b = actor_start(l);
    atomic_store(live_holders, 0);
    assert_int_equal(actor_do(&a, ORDER_HELLO, 0, 0).code, 0);
    assert_int_equal(actor_do(&b, ORDER_HELLO, 0, 0).code, 0);
    actor_begin(&a, ORDER_RACE, 10000, 0);
    actor_begin(&b, ORDER_RACE, 10000, 0);
    struct reply ra = actor_reply(&a), rb = actor_reply(&b);
    assert_int_equal(ra.code, 0);
    assert_int_equal(rb.code, 0);
    assert_true(ra.value + rb.value > 0); /* who wins how often is the machine's choice */
    actor_do(&a, ORDER_PING, 0, 0);
    actor_do(&b, ORDER_PING, 0, 0);
    assert_int_equal(live_used(l, 7), 0);
    assert_int_equal(live_info(l).info.nonsense_messages, 0);
    actor_kill(&a);
    actor_kill(&b);
}

static void test_anothers_reservation(void **state)
{
    struct live *l = *state;
    struct actor shim = actor_start(l), a = actor_start(l);
    assert_int_equal(live_lease(l, 7, 400, shim.pid), 0);
    assert_int_equal(live_lease(l, 8, 400, a.pid), 0);
    assert_int_equal(actor_do(&shim, ORDER_HELLO, 0, 0).code, 0);
    assert_int_equal(actor_do(&a, ORDER_HELLO, 0, 0).code, 0);
    struct reply r = actor_do(&a, ORDER_RESERVE, 100, 0);
    assert_int_equal(r.code, 0);
    actor_do(&shim, ORDER_COMMIT, 100, r.value);
    actor_do(&shim, ORDER_ABORT, 0, r.value);
    actor_do(&shim, ORDER_PING, 0, 0);
    assert_int_equal(live_used(l, 7), 0);
    assert_int_equal(live_used(l, 8), 100);
    assert_int_equal(live_info(l).info.nonsense_messages, 2);
    actor_do(&a, ORDER_COMMIT, 100, r.value);
    actor_do(&a, ORDER_PING, 0, 0);
    assert_int_equal(live_client(l, a.pid).client_stat.bytes, 100);
    actor_kill(&shim);
    actor_kill(&a);
}

/* ---- sockets that end while the process lives ------------------------------------------
 */

static void test_close_makes_a_suspect(void **state)
{
    struct live *l = *state;
    assert_int_equal(live_lease(l, 7, 900, getpid()), 0);
    struct actor a = actor_start(l);
    actor_hold(&a, 600);
    assert_int_equal(actor_do(&a, ORDER_CLOSE, 0, 0).code, 0);
    LIVE_UNTIL(live_client(l, a.pid).client_stat.state == 1);
    usleep(600000); /* two looks at whether it has exec'ed */
    assert_int_equal(live_used(l, 7), 600);
    assert_int_equal(actor_do(&a, ORDER_HELLO, 1, 600).code, 0);
    struct proto_ctl c = live_client(l, a.pid);
    assert_int_equal(c.client_stat.state, 0);
    assert_int_equal(c.client_stat.bytes, 600);
    assert_int_equal(live_info(l).info.clients, 1);
    /* a reservation of the old connection is void, a first hello declares nothing */
    assert_int_equal(actor_do(&a, ORDER_RESERVE, 300, 0).code, 0);
    assert_int_equal(live_used(l, 7), 900);
    assert_int_equal(actor_do(&a, ORDER_HELLO, 0, 0).code, 0);
    assert_int_equal(live_used(l, 7), 600);
    /* what it declares is taken as the free or the commit that was lost */
    assert_int_equal(actor_do(&a, ORDER_HELLO, 1, 500).code, 0);
    assert_int_equal(live_used(l, 7), 500);
    assert_int_equal(actor_do(&a, ORDER_HELLO, 1, 700).code, 0);
    assert_int_equal(live_used(l, 7), 700);
    assert_int_equal(actor_do(&a, ORDER_HELLO, 1, UINT64_MAX).code, 0);
    assert_int_equal(live_used(l, 7), 900);
    actor_kill(&a);
    LIVE_UNTIL(live_used(l, 7) == 0);
}

static void test_exec_returns_bytes(void **state)
{
    struct live *l = *state;
    assert_int_equal(live_lease(l, 7, 900, getpid()), 0);
    struct actor a = actor_start(l);
    actor_hold(&a, 600);
    actor_begin(&a, ORDER_EXEC, 0, 0);
    LIVE_UNTIL(live_used(l, 7) == 0);
    assert_int_equal(kill(a.pid, 0), 0);
    assert_int_equal(live_info(l).info.clients, 0);
    assert_int_equal(live_info(l).info.deaths, 0);
    actor_kill(&a);
}

static void test_exec_after_close_returns_bytes(void **state)
{
    struct live *l = *state;
    assert_int_equal(live_lease(l, 7, 900, getpid()), 0);
    struct actor a = actor_start(l);
    actor_hold(&a, 600);
    actor_do(&a, ORDER_CLOSE, 0, 0);
    LIVE_UNTIL(live_client(l, a.pid).client_stat.state == 1);
    assert_int_equal(live_used(l, 7), 600);
    actor_begin(&a, ORDER_EXEC, 0, 0);
    LIVE_UNTIL(live_used(l, 7) == 0);
    actor_kill(&a);
}

static void test_forked_child_on_the_socket(void **state)
{
    struct live *l = *state;
    assert_int_equal(live_lease(l, 7, 900, getpid()), 0);
    struct actor a = actor_start(l);
    actor_hold(&a, 600);
    assert_int_equal(actor_do(&a, ORDER_CHILD_FREE, 600, 0).code, 0);
    assert_int_equal(actor_do(&a, ORDER_PING, 0, 0).code, 0);
    assert_int_equal(live_used(l, 7), 600);
    assert_int_equal(live_info(l).info.nonsense_messages, 1);
    /* and a child's own hello is a client of its own */
    assert_int_equal(actor_do(&a, ORDER_SPAWN, 0, 0).code, 0);
    assert_int_equal(live_info(l).info.clients, 2);
    actor_kill(&a);
    LIVE_UNTIL(live_used(l, 7) == 0);
}

/* ---- nonsense
 * ----------------------------------------------------------------------------- */

static const struct {
    const char *label;
    enum order order;
    uint64_t x, y;
} nonsense[] = {
    { "garbage of the right size", ORDER_RAW, sizeof(struct proto_msg), 1 },
    { "half a message", ORDER_RAW, sizeof(struct proto_msg) / 2, 2 },
    { "one byte", ORDER_RAW, 1, 3 },
    { "one byte too many", ORDER_RAW, sizeof(struct proto_msg) + 1, 4 },
    { "4 KiB", ORDER_RAW, 4096, 5 },
    { "kind 0", ORDER_SEND, 0, 0 },
    { "an unknown kind", ORDER_SEND, 999, 0 },
    { "an answer", ORDER_SEND, PROTO_WELCOME, 0 },
    { "a second hello", ORDER_SEND, PROTO_HELLO, 0 },
    { "a slot that the lease does not have", ORDER_SEND, PROTO_RESERVE, 1 },
    { "a slot beyond the page", ORDER_SEND, PROTO_WANT, UINT32_MAX },
    { "release of a slot beyond the page", ORDER_SEND, PROTO_RELEASE, 8 },
    { "free of a slot beyond the page", ORDER_SEND, PROTO_FREE, 1000 },
};

static void test_nonsense_ends_that_client_only(void **state)
{
    struct live *l = *state;
    assert_int_equal(live_lease(l, 7, 900, getpid()), 0);
    struct actor good = actor_start(l);
    actor_hold(&good, 100);
    for (size_t i = 0; i < ARRAY_LEN(nonsense); i++) {
        struct actor bad = actor_start(l);
        actor_hold(&bad, 10);
        uint64_t before = live_info(l).info.nonsense_messages;
        actor_do(&bad, nonsense[i].order, nonsense[i].x, nonsense[i].y);
        if (actor_do(&bad, ORDER_PING, 0, 0).code != -SL_IO ||
            live_info(l).info.nonsense_messages != before + 1 || live_used(l, 7) != 110)
            fail_msg("%s: not ended, not counted, or its bytes were lost",
                     nonsense[i].label);
        actor_kill(&bad);
        LIVE_UNTIL(live_used(l, 7) == 100);
        assert_int_equal(actor_do(&good, ORDER_PING, 0, 0).code, 0);
    }
    actor_kill(&good);
}

static void test_nonsense_before_hello(void **state)
{
    struct live *l = *state;
    assert_int_equal(live_lease(l, 7, 900, getpid()), 0);
    struct actor a = actor_start(l);
    actor_do(&a, ORDER_HELLO, 0, 0);
    actor_do(&a, ORDER_CLOSE, 0, 0);
    assert_int_equal(actor_do(&a, ORDER_HELLO, 0, 0).code, 0);
    actor_kill(&a);
    LIVE_UNTIL(live_info(l).info.clients == 0);
}

static void test_flood_starves_nobody(void **state)
{
    struct live *l = *state;
    assert_int_equal(live_lease(l, 7, 900, getpid()), 0);
    struct actor flood = actor_start(l), good = actor_start(l);
    const char *full = getenv("SLUICE_TEST_FULL");
    uint64_t count = full ? 1000000 : 100000, served = 0;
    assert_int_equal(actor_do(&flood, ORDER_HELLO, 0, 0).code, 0);
    assert_int_equal(actor_do(&good, ORDER_HELLO, 0, 0).code, 0);
    actor_begin(&flood, ORDER_FLOOD, count, 0);
    while (live_info(l).info.nonsense_messages < count) {
        struct reply r = actor_do(&good, ORDER_RESERVE, 1, 0);
        assert_int_equal(r.code, 0);
        actor_do(&good, ORDER_ABORT, 0, r.value);
        served++;
    }
    assert_int_equal(actor_reply(&flood).code, 0);
    assert_true(served > 10);
    struct stat st;
    char log[64];
    snprintf(log, sizeof log, "%s/broker.log", l->dir);
    assert_true(!stat(log, &st) && st.st_size < 1 << 20);
    actor_kill(&flood);
    actor_kill(&good);
}

/* ---- time
 * ------------------------------------------------------------------------------------ */

static void test_stopped_holder_is_passed_over(void **state)
{
    struct live *l = *state;
    struct actor a = actor_start(l), b = actor_start(l);
    assert_int_equal(live_lease(l, 7, 400, a.pid), 0);
    assert_int_equal(live_lease(l, 8, 400, b.pid), 0);
    assert_int_equal(actor_do(&a, ORDER_HELLO, 0, 0).code, 0);
    assert_int_equal(actor_do(&b, ORDER_HELLO, 0, 0).code, 0);
    actor_do(&a, ORDER_WANT, 0, 0);
    assert_int_equal(actor_do(&a, ORDER_TURN, 5 * NS_PER_S, 0).code, 0);
    kill(a.pid, SIGSTOP);
    actor_do(&b, ORDER_WANT, 0, 0);
    assert_int_equal(actor_do(&b, ORDER_TURN, 10 * NS_PER_S, 0).code, 0);
    kill(a.pid, SIGCONT);
    actor_kill(&a);
    actor_kill(&b);
}

static void test_dead_holder_hands_over(void **state)
{
    struct live *l = *state;
    struct actor a = actor_start(l), b = actor_start(l);
    assert_int_equal(live_lease(l, 7, 400, a.pid), 0);
    assert_int_equal(live_lease(l, 8, 400, b.pid), 0);
    assert_int_equal(actor_do(&a, ORDER_HELLO, 0, 0).code, 0);
    assert_int_equal(actor_do(&b, ORDER_HELLO, 0, 0).code, 0);
    actor_do(&a, ORDER_WANT, 0, 0);
    assert_int_equal(actor_do(&a, ORDER_TURN, 5 * NS_PER_S, 0).code, 0);
    actor_do(&b, ORDER_WANT, 0, 0);
    actor_begin(&b, ORDER_TURN, 10 * NS_PER_S, 0);
    actor_kill(&a);
    assert_int_equal(actor_reply(&b).code, 0);
    actor_kill(&b);
}

/* ---- many
 * ----------------------------------------------------------------------------------------
 */

static void test_many_clients(void **state)
{
    struct live *l = *state;
    unsigned count = getenv("SLUICE_TEST_FULL") ? 2000 : 300;
    struct actor *a = calloc(count, sizeof *a);
    assert_int_equal(live_lease(l, 7, 1000, getpid()), 0);
    unsigned started = 0;
    for (; started < count; started++)
        a[started] = actor_start(l);
    for (unsigned i = 0; i < count; i++)
        actor_begin(&a[i], ORDER_HELLO, 0, 0);
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(actor_reply(&a[i]).code, 0);
    assert_int_equal(live_info(l).info.clients, count);
    struct reply r = actor_do(&a[count - 1], ORDER_RESERVE, 1000, 0);
    assert_int_equal(r.code, 0);
    for (unsigned i = 0; i < count; i++)
        actor_kill(&a[i]);
    LIVE_UNTIL(live_info(l).info.clients == 0);
    assert_int_equal(live_used(l, 7), 0);
    free(a);
}

static void test_descriptors_return(void **state)
{
    struct live *l = *state;
    assert_int_equal(live_lease(l, 7, 900, getpid()), 0);
    unsigned before = live_descriptors(l);
    struct actor a[20];
    for (int i = 0; i < 20; i++) {
        a[i] = actor_start(l);
        actor_hold(&a[i], 10);
        for (int again = 0; again < 3; again++)
            assert_int_equal(actor_do(&a[i], ORDER_HELLO, 1, 10).code, 0);
        assert_int_equal(actor_do(&a[i], ORDER_PASS, 1 + i % 16, 0).code, 0);
    }
    assert_int_equal(live_descriptors(l), before + 20 * 3);
    for (int i = 0; i < 20; i++) {
        if (i % 4 == 0)
            actor_do(&a[i], ORDER_CLOSE, 0, 0);
        if (i % 4 == 1)
            actor_begin(&a[i], ORDER_EXEC, 0, 0);
        if (i % 4 == 2)
            actor_do(&a[i], ORDER_RAW, 7, 7);
    }
    LIVE_UNTIL(live_used(l, 7) == 150);
    for (int i = 0; i < 20; i++)
        actor_kill(&a[i]);
    LIVE_UNTIL(live_descriptors(l) == before);
}

#define ROW(test) cmocka_unit_test_setup_teardown(test, live_setup, live_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        ROW(test_hello_by_ancestry),
        ROW(test_stranger_is_refused),
        ROW(test_reused_shim_pid_is_refused),
        ROW(test_identity_fallbacks),
        ROW(test_limit_holds),
        ROW(test_kill_returns_bytes),
        ROW(test_race_for_the_last_byte),
        ROW(test_anothers_reservation),
        ROW(test_close_makes_a_suspect),
        ROW(test_exec_returns_bytes),
        ROW(test_exec_after_close_returns_bytes),
        ROW(test_forked_child_on_the_socket),
        ROW(test_nonsense_ends_that_client_only),
        ROW(test_nonsense_before_hello),
        ROW(test_flood_starves_nobody),
        ROW(test_stopped_holder_is_passed_over),
        ROW(test_dead_holder_hands_over),
        ROW(test_many_clients),
        ROW(test_descriptors_return),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("broker-live", tests, NULL, NULL);
}
