/* Tests brokers that end, are killed, come back, or find another one in their place. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "core/clock.h"
#include "core/err.h"
#include "core/macros.h"
#include "broker/identity.h"
#include "live.h"
#include "proc.h"
#include "runfile.h"

/* ---- restart -------------------------------------------------------------------- */

static void restart(struct live *l, int signal)
{
    live_kill(l, signal);
    live_start(l);
    assert_int_equal(live_device(l, 0, (1 << 20) + 1000), 0);
}

static void test_records_survive_a_kill(void **state)
{
    struct live *l = *state;
    struct actor a = actor_start(l), dead = actor_start(l), execed = actor_start(l);
    assert_int_equal(live_lease(l, 7, 900, getpid()), 0);
    actor_hold(&a, 600);
    actor_hold(&dead, 100);
    actor_hold(&execed, 50);
    live_kill(l, SIGKILL);
    actor_kill(&dead);
    live_start(l);
    assert_int_equal(live_info(l).info.recovered_clients, 2);
    assert_int_equal(live_client(l, a.pid).client_stat.state, 2);
    assert_int_equal(live_client(l, a.pid).client_stat.bytes, 600);
    assert_int_equal(live_client(l, dead.pid).code, -SL_NOT_FOUND);

    /* the lease is said again: its clients are charged before they come back */
    assert_int_equal(live_device(l, 0, (1 << 20) + 1000), 0);
    assert_int_equal(live_lease(l, 7, 900, 0), 0);
    assert_int_equal(live_used(l, 7), 650);

    /* one comes back without an anchor: its record names the lease */
    assert_int_equal(actor_do(&a, ORDER_HELLO, 1, 600).code, 0);
    assert_int_equal(live_client(l, a.pid).client_stat.state, 0);
    assert_int_equal(live_client(l, a.pid).client_stat.identity, BROKER_IDENTITY_RECORD);
    assert_int_equal(live_used(l, 7), 650);
    assert_int_equal(actor_do(&a, ORDER_RESERVE, 251, 0).code, -SL_NO_CAPACITY);
    assert_int_equal(actor_do(&a, ORDER_RESERVE, 250, 0).code, 0);

    /* the other execs without ever coming back */
    actor_begin(&execed, ORDER_EXEC, 0, 0);
    LIVE_UNTIL(live_used(l, 7) == 850);
    actor_kill(&a);
    actor_kill(&execed);
    LIVE_UNTIL(live_used(l, 7) == 0);
}

static void test_death_after_restart_returns_bytes(void **state)
{
    struct live *l = *state;
    struct actor a = actor_start(l);
    assert_int_equal(live_lease(l, 7, 900, getpid()), 0);
    actor_hold(&a, 600);
    restart(l, SIGKILL);
    actor_kill(&a);
    LIVE_UNTIL(live_info(l).info.clients == 0);
    /* and the one after that finds nothing of it */
    restart(l, SIGKILL);
    assert_int_equal(live_info(l).info.recovered_clients, 0);
}

/* A record whose pid lives, but began at another time, is somebody else's. */
static void test_reused_pid_is_dropped(void **state)
{
    struct live *l = *state;
    struct runfile f;
    struct proc_stat s;
    live_kill(l, SIGKILL);
    int dir = open(l->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(runfile_open(&f, dir, NULL), 0);
    assert_int_equal(proc_read_stat(getpid(), &s), 0);
    struct runfile_record r = { .pid = getpid(),
                                .start_ticks = s.start_ticks,
                                .lease = 7,
                                .epoch = 1,
                                .bytes = { 100 } };
    runfile_write(&f, 3, &r);
    r.start_ticks++;
    runfile_write(&f, 4, &r);
    r.pid = 0x3fffffff;
    runfile_write(&f, 5, &r);
    runfile_close(&f);
    close(dir);
    live_start(l);
    assert_int_equal(live_info(l).info.recovered_clients, 1);
    assert_int_equal(live_device(l, 0, (1 << 20) + 1000), 0);
    assert_int_equal(live_lease(l, 7, 900, 0), 0);
    assert_int_equal(live_used(l, 7), 100);
}

static void test_orderly_end_keeps_records(void **state)
{
    struct live *l = *state;
    struct actor a = actor_start(l);
    char path[64];
    assert_int_equal(live_lease(l, 7, 900, getpid()), 0);
    actor_hold(&a, 600);
    live_kill(l, SIGTERM);
    snprintf(path, sizeof path, "%s/broker.sock", l->dir);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(kill(a.pid, 0), 0);
    assert_int_equal(actor_do(&a, ORDER_HELLO, 1, 600).code, -SL_UNAVAILABLE);
    restart(l, SIGTERM);
    assert_int_equal(live_lease(l, 7, 900, 0), 0);
    assert_int_equal(live_used(l, 7), 600);
    actor_kill(&a);
}

static void test_hello_waits_for_its_lease(void **state)
{
    struct live *l = *state;
    struct actor a = actor_start(l), fresh = actor_start(l), stranger = actor_start(l);
    assert_int_equal(live_lease(l, 7, 900, a.pid), 0);
    actor_hold(&a, 600);
    restart(l, SIGKILL);
    actor_begin(&a, ORDER_HELLO, 1, 600);
    actor_begin(&fresh, ORDER_HELLO, 0, 0);
    actor_begin(&stranger, ORDER_HELLO, 0, 0);
    usleep(100000);
    assert_int_equal(live_lease(l, 7, 500, fresh.pid), 0);
    assert_int_equal(actor_reply(&a).code, 0);
    assert_int_equal(actor_reply(&fresh).code, 0);
    assert_int_equal(actor_reply(&stranger).code, -SL_DENIED);
    actor_kill(&a);
    actor_kill(&fresh);
    actor_kill(&stranger);
}

static void test_parked_client_that_dies(void **state)
{
    struct live *l = *state;
    struct actor a = actor_start(l);
    assert_int_equal(live_lease(l, 7, 900, getpid()), 0);
    actor_hold(&a, 600);
    restart(l, SIGKILL);
    actor_begin(&a, ORDER_HELLO, 1, 600);
    usleep(50000);
    actor_kill(&a);
    LIVE_UNTIL(live_info(l).info.clients == 0);
    assert_int_equal(live_lease(l, 7, 900, getpid()), 0);
    assert_int_equal(live_used(l, 7), 0);
}

static void test_spoiled_run_file(void **state)
{
    struct live *l = *state;
    struct actor a = actor_start(l);
    char path[64];
    struct stat st;
    assert_int_equal(live_lease(l, 7, 900, getpid()), 0);
    actor_hold(&a, 600);
    live_kill(l, SIGKILL);
    snprintf(path, sizeof path, "%s/ledger", l->dir);
    int fd = open(path, O_WRONLY);
    assert_int_equal(pwrite(fd, "garbage", 7, 0), 7);
    close(fd);
    live_start(l);
    assert_int_equal(live_info(l).info.recovered_clients, 0);
    snprintf(path, sizeof path, "%s/ledger.bad", l->dir);
    assert_int_equal(stat(path, &st), 0);
    actor_kill(&a);
}

/* Kill it at any moment of many commits and frees: what the file says is what
 * the client was told, or one message more. */
static void test_kill_at_any_moment(void **state)
{
    struct live *l = *state;
    for (int i = 0; i < 20; i++) {
        struct actor a = actor_start(l);
        assert_int_equal(live_lease(l, 7, 1000, getpid()), 0);
        actor_hold(&a, 600);
        atomic_store(live_holders, 0);
        actor_begin(&a, ORDER_RACE, 1000000, 0);
        usleep((useconds_t)(1000 + i * 371));
        live_kill(l, SIGKILL);
        actor_reply(&a);
        live_start(l);
        assert_int_equal(live_device(l, 0, (1 << 20) + 1000), 0);
        assert_int_equal(live_lease(l, 7, 1000, 0), 0);
        uint64_t bytes = live_client(l, a.pid).client_stat.bytes;
        assert_in_range(bytes, 600, 601);
        assert_int_equal(live_used(l, 7), bytes);
        actor_kill(&a);
        LIVE_UNTIL(live_info(l).info.clients == 0);
    }
}

/* Killed at each marked point, the n-th time it is passed; the actor holds 600,
 * then commits 1 and frees it over and over. */
static const struct {
    const char *label, *fault;
} points[] = {
    { "in the middle of its first record", "broker.half-record:kill" },
    { "in the middle of the first commit's record", "broker.half-record:kill@2" },
    { "in the middle of the second commit's record", "broker.half-record:kill@3" },
    { "in the middle of a record much later", "broker.half-record:kill@100" },
    { "committed, not recorded", "broker.commit:kill@5" },
    { "freed, not recorded", "broker.free:kill@5" },
    { "joined, not recorded", "broker.join:kill" },
    { "recorded, not welcomed", "broker.welcome:kill" },
    { "left the ledger, still in the file", "broker.leave:kill" },
};

static void test_kill_at_marked_points(void **state)
{
    struct live *l = *state;
    for (size_t i = 0; i < ARRAY_LEN(points); i++) {
        live_kill(l, SIGKILL);
        live_forget(l);
        l->fault = points[i].fault;
        live_start(l);
        l->fault = NULL;
        assert_int_equal(live_device(l, 0, (1 << 20) + 1000), 0);
        assert_int_equal(live_lease(l, 7, 1000, getpid()), 0);
        struct actor a = actor_start(l);
        uint64_t held = 0;
        struct reply r = actor_do(&a, ORDER_HELLO, 0, 0);
        if (!r.code)
            r = actor_do(&a, ORDER_RESERVE, 600, 0);
        if (!r.code && !actor_do(&a, ORDER_COMMIT, 600, r.value).code &&
            !actor_do(&a, ORDER_PING, 0, 0).code) {
            held = 600;
            atomic_store(live_holders, 0);
            actor_do(&a, ORDER_RACE, strstr(points[i].fault, "leave") ? 10 : 1000, 0);
        }
        bool dies = strstr(points[i].fault, "leave");
        if (dies)
            actor_kill(&a);
        assert_int_equal(waitpid(l->broker, NULL, 0), l->broker);
        close(l->control);
        live_start(l);
        assert_int_equal(live_device(l, 0, (1 << 20) + 1000), 0);
        assert_int_equal(live_lease(l, 7, 1000, getpid()), 0);
        uint64_t used = live_used(l, 7);
        if (dies ? used != 0
                 : used != held && used != held + 1 && !(held == 0 && used == 600))
            fail_msg("%s: held %d, charged %d", points[i].label, (int)held, (int)used);
        if (!dies) {
            assert_int_equal(actor_do(&a, ORDER_HELLO, 1, 600).code, 0);
            assert_int_equal(live_used(l, 7), 600);
            actor_kill(&a);
        }
        LIVE_UNTIL(live_info(l).info.clients == 0);
        assert_int_equal(live_used(l, 7), 0);
    }
}

/* ---- ends that are asked for -------------------------------------------------------- */

static void test_quit(void **state)
{
    struct live *l = *state;
    struct actor a = actor_start(l);
    assert_int_equal(live_lease(l, 7, 900, getpid()), 0);
    actor_hold(&a, 600);
    struct proto_ctl m = { .kind = PROTO_CTL_QUIT };
    assert_int_equal(live_control(l, &m), -SL_CONFLICT);
    m.info.force = 1;
    assert_int_equal(live_control(l, &m), 0);
    int status;
    assert_int_equal(waitpid(l->broker, &status, 0), l->broker);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    l->broker = 0;
    actor_kill(&a);
}

static void test_drop(void **state)
{
    struct live *l = *state;
    struct actor a = actor_start(l), late = actor_start(l);
    assert_int_equal(live_lease(l, 7, 900, getpid()), 0);
    actor_hold(&a, 600);
    struct proto_ctl m = { .kind = PROTO_CTL_DROP };
    m.drop.number = 7;
    m.drop.epoch = 1;
    assert_int_equal(live_control(l, &m), 0);
    assert_int_equal(actor_do(&late, ORDER_HELLO, 0, 0).code, -SL_DENIED);
    assert_int_equal(actor_do(&a, ORDER_RESERVE, 1, 0).code, -SL_NO_CAPACITY);
    assert_int_equal(live_used(l, 7), 600);
    actor_kill(&a);
    LIVE_UNTIL(live_info(l).info.leases == 0);
    m = (struct proto_ctl){ .kind = PROTO_CTL_DROP };
    m.drop.number = 7;
    m.drop.epoch = 1;
    assert_int_equal(live_control(l, &m), -SL_NOT_FOUND);
    /* the number may be given again */
    assert_int_equal(live_lease(l, 7, 900, getpid()), 0);
    actor_kill(&late);
}

static const struct {
    const char *label;
    uint16_t kind;
    uint64_t number, epoch, device, slices, mode;
    int code;
} bad_control[] = {
    { "kind 0", 0, 0, 0, 0, 0, 0, -SL_UNSUPPORTED },
    { "an unknown kind", 99, 0, 0, 0, 0, 0, -SL_UNSUPPORTED },
    { "lease 0", PROTO_CTL_LEASE, 0, 1, 0, 1, 0, -SL_INVALID },
    { "a lease without slices", PROTO_CTL_LEASE, 9, 1, 0, 0, 0, -SL_INVALID },
    { "a lease with nine slices", PROTO_CTL_LEASE, 9, 1, 0, 9, 0, -SL_INVALID },
    { "an unknown mode", PROTO_CTL_LEASE, 9, 1, 0, 1, 7, -SL_INVALID },
    { "an unknown device", PROTO_CTL_LEASE, 9, 1, 5, 1, 0, -SL_NOT_FOUND },
    { "a device beyond the table", PROTO_CTL_LEASE, 9, 1, 64, 1, 0, -SL_NOT_FOUND },
    { "an older epoch", PROTO_CTL_LEASE, 7, 0, 0, 1, 0, -SL_STALE },
};

static void test_bad_control(void **state)
{
    struct live *l = *state;
    assert_int_equal(live_lease(l, 7, 900, getpid()), 0);
    for (size_t i = 0; i < ARRAY_LEN(bad_control); i++) {
        struct proto_ctl m = { .kind = bad_control[i].kind };
        m.lease.number = bad_control[i].number;
        m.lease.epoch = bad_control[i].epoch;
        m.lease.mode = (uint32_t)bad_control[i].mode;
        m.lease.slice_count = (uint32_t)bad_control[i].slices;
        m.lease.slice[0].device = (uint32_t)bad_control[i].device;
        m.lease.slice[0].request_permille = m.lease.slice[0].limit_permille = 100;
        int code = live_control(l, &m);
        if (code != bad_control[i].code)
            fail_msg("%s: %d", bad_control[i].label, code);
    }
    struct proto_ctl m = { .kind = PROTO_CTL_ANCHOR };
    m.anchor.number = 7;
    assert_int_equal(live_control(l, &m), -SL_STALE);
    m = (struct proto_ctl){ .kind = PROTO_CTL_ANCHOR };
    m.anchor.number = 8;
    assert_int_equal(live_control(l, &m), -SL_NOT_FOUND);
    /* a device that is leased does not become another one */
    m = (struct proto_ctl){ .kind = PROTO_CTL_DEVICE };
    m.device.flags = PROTO_DEVICE_EMULATED;
    strcpy(m.device.id, "other");
    assert_int_equal(live_control(l, &m), -SL_CONFLICT);
    assert_int_equal(live_info(l).info.leases, 1);
}

/* ---- two brokers --------------------------------------------------------------------- */

static void test_second_broker_on_one_directory(void **state)
{
    struct live *l = *state;
    char text[512], want[64];
    const char *const arguments[] = { "--run-dir", l->dir, NULL };
    assert_int_equal(live_try(arguments, text, sizeof text), 1);
    snprintf(want, sizeof want, "already runs here (pid %d)", (int)l->broker);
    assert_non_null(strstr(text, want));
    assert_int_equal(live_info(l).code, 0);
}

static int claim(struct live *l, struct proto_ctl *m)
{
    *m = (struct proto_ctl){ .kind = PROTO_CTL_DEVICE };
    m->device.index = 1;
    m->device.capacity_bytes = 1000;
    snprintf(m->device.id, sizeof m->device.id, "test-%d", (int)getpid());
    return live_control(l, m);
}

static void test_second_broker_on_one_device(void **state)
{
    struct live *l = *state, other = { .dir = "/tmp/slb-XXXXXX" };
    struct live *p = &other;
    struct proto_ctl m;
    assert_non_null(mkdtemp(other.dir));
    live_start(p);
    assert_int_equal(claim(l, &m), 0);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(claim(p, &m), -SL_CONFLICT);
        assert_true(m.device.flags & PROTO_DEVICE_HELD);
        assert_int_equal(m.device.holder_pid, l->broker);
        assert_int_equal(m.device.holder_uid, geteuid());
        claim(l, &m); /* its loop ran: whoever asks faster than it answers learns no name */
    }
    assert_int_equal(claim(l, &m), 0); /* said again: still ours */
    m.device.index = 2;
    assert_int_equal(live_control(l, &m), 0); /* under another index too */
    live_kill(l, SIGKILL);
    assert_int_equal(claim(p, &m), 0); /* the kernel gave it back */
    assert_int_equal(m.device.flags & PROTO_DEVICE_HELD, 0);
    void *state_of_other = p;
    assert_int_equal(live_teardown(&state_of_other), 0);
}

/* ---- run directories that will not do ---------------------------------------------------
 */

static void expect_failure(const char *label, const char *dir, int status, const char *say)
{
    char text[512];
    const char *const arguments[] = { "--run-dir", dir, NULL };
    int rc = live_try(arguments, text, sizeof text);
    if (rc != status || !strstr(text, say))
        fail_msg("%s: status %d: %s", label, rc, text);
}

static void test_unfit_directories(void **state)
{
    char dir[] = "/tmp/slb-XXXXXX", path[256];
    assert_non_null(mkdtemp(dir));
    expect_failure("missing", "/tmp/slb-nothing-here", 3, "does not exist");
    memset(path, 'x', sizeof path);
    path[0] = '/';
    path[95] = 0;
    expect_failure("one byte too long", path, 2, "at most 94 bytes");
    path[95] = 'x';
    path[200] = 0;
    expect_failure("much too long", path, 2, "at most 94 bytes");
    snprintf(path, sizeof path, "%s/file", dir);
    close(open(path, O_CREAT | O_WRONLY, 0600));
    expect_failure("a file", path, 1, "Not a directory");
    unlink(path);
    assert_int_equal(chmod(dir, 0770), 0);
    expect_failure("group may write", dir, 4, "others may write");
    assert_int_equal(chmod(dir, 0700), 0);
    if (geteuid() == 0) {
        assert_int_equal(chown(dir, 12345, 0), 0);
        expect_failure("not ours", dir, 4, "belongs to uid 12345");
    }
    assert_int_equal(rmdir(dir), 0);
}

static void test_usage(void **state)
{
    char text[2048];
    const char *const none[] = { NULL };
    assert_int_equal(live_try(none, text, sizeof text), 2);
    assert_non_null(strstr(text, "--run-dir is missing"));
    const char *const identity[] = { "--identity", "name", NULL };
    assert_int_equal(live_try(identity, text, sizeof text), 2);
    assert_non_null(strstr(text, "unknown identity: name"));
}

#define ROW(test) cmocka_unit_test_setup_teardown(test, live_setup, live_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        ROW(test_records_survive_a_kill),
        ROW(test_death_after_restart_returns_bytes),
        ROW(test_reused_pid_is_dropped),
        ROW(test_orderly_end_keeps_records),
        ROW(test_hello_waits_for_its_lease),
        ROW(test_parked_client_that_dies),
        ROW(test_spoiled_run_file),
        ROW(test_kill_at_any_moment),
        ROW(test_kill_at_marked_points),
        ROW(test_quit),
        ROW(test_drop),
        ROW(test_bad_control),
        ROW(test_second_broker_on_one_directory),
        ROW(test_second_broker_on_one_device),
        cmocka_unit_test(test_unfit_directories),
        cmocka_unit_test(test_usage),
    };
    /* the lock of a real device is machine-wide: take it where nobody else is */
    if (unshare(CLONE_NEWNET) && errno != EPERM)
        return 1;
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("broker-restart", tests, NULL, NULL);
}
